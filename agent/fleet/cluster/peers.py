"""Which members belong together, and when their majority is clear: a healthy fabric must give no false alarm.

Nodes on the same leaves are a scalable unit, leaves on the same spines a block. A member with a cable at the wrong
place still belongs where most of its cables go.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping
from typing import NamedTuple, TypeVar

from agent.model.labels import count_by_key, group_by_key

AGREE = 3  # so many at least, and
SHARE = 0.75  # this part of all: one of four may be wrong

K = TypeVar("K", bound=Hashable)
T = TypeVar("T", bound=Hashable)


class Majority(NamedTuple):
    """How many of how many have it."""

    agree: int
    of: int

    @property
    def words(self) -> str:
        """ "19 of 20"."""
        return f"{self.agree:,} of {self.of:,}"


def find_most(counts: Counter[T]) -> tuple[T, Majority] | None:
    """What most have, or none where no majority is clear.

    >>> find_most(Counter(a=3, b=1)), find_most(Counter(a=2)), find_most(Counter(a=5, b=3))
    (('a', Majority(agree=3, of=4)), None, None)
    """
    if not counts:
        return None
    value, agree = counts.most_common(1)[0]
    of = counts.total()
    return (value, Majority(agree, of)) if agree >= AGREE and agree >= SHARE * of else None


def find_most_by_key(pairs: Iterable[tuple[K, T]]) -> dict[K, tuple[T, Majority]]:
    """The same of each key, without those of which no majority is clear."""
    most = {key: find_most(counts) for key, counts in count_by_key(pairs).items()}
    return {key: clear for key, clear in most.items() if clear is not None}


class Cohort(NamedTuple):
    """Members, and the places that the most alike of them share."""

    members: tuple[str, ...]
    places: frozenset[str]


def group_peers(places_of: Mapping[str, Counter[str]]) -> tuple[list[Cohort], list[str]]:
    """Groups, the largest first, and members that hang between groups."""
    alike: defaultdict[frozenset[str], list[str]] = defaultdict(list)
    seen: dict[int, frozenset[str]] = {}  # members can share one object
    for member, places in places_of.items():
        if places:
            if id(places) not in seen:
                seen[id(places)] = frozenset(places)
            alike[seen[id(places)]].append(member)
    order = sorted(alike.items(), key=lambda item: (-len(item[1]), -len(item[0]), sorted(item[0])))
    seeds: list[frozenset[str]] = []
    at: defaultdict[str, list[int]] = defaultdict(list)
    members: list[list[str]] = []
    loose: list[str] = []
    for shared, these in order:
        weight: Counter[str] = Counter()
        times = Counter([id(places_of[each]) for each in these])
        for places in {id(places_of[each]): places_of[each] for each in these}.values():
            for place, count in places.items():
                weight[place] += count * times[id(places)]
        nearest, share = _find_nearest(weight, seeds, at)
        if nearest is not None and share > 0.5:
            members[nearest] += these
        elif nearest is not None and len(these) == 1 and len(members[nearest]) > 2:
            loose += these
        else:
            for place in shared:
                at[place].append(len(seeds))
            seeds.append(shared)
            members.append(list(these))
    cohorts = [Cohort(tuple(own), seed) for own, seed in zip(members, seeds, strict=True)]
    return sorted(cohorts, key=lambda group: (-len(group.members), sorted(group.places))), loose


def _find_nearest(
    weight: Counter[str], seeds: list[frozenset[str]], at: Mapping[str, list[int]]
) -> tuple[int | None, float]:
    """The group with most of the cables, and its part of them."""
    shared: Counter[int] = Counter()
    for place, count in weight.items():
        for number in at.get(place, ()):
            shared[number] += count
    if not shared:
        return None, 0.0
    number = min(shared, key=lambda seed_number: (-shared[seed_number], len(seeds[seed_number]), seed_number))
    return number, shared[number] / weight.total()


class Joined:
    """Sets that grow together (union-find)."""

    def __init__(self) -> None:
        self._up: dict[Hashable, Hashable] = {}

    def find(self, one: Hashable) -> Hashable:
        """The representative of its set."""
        up = self._up
        root = one
        while up.setdefault(root, root) != root:
            root = up[root]
        while up[one] != root:
            up[one], one = root, up[one]
        return root

    def join(self, one: Hashable, other: Hashable) -> None:
        """Make two sets one."""
        self._up[self.find(other)] = self.find(one)

    def group(self, members: Iterable[T]) -> list[list[T]]:
        """These members, those of one set together."""
        return list(group_by_key((self.find(member), member) for member in members).values())
