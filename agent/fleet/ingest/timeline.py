"""What one node's reports make of its history. Pure: the result depends on the reports, never on their order.

A node's history is, for every table, the moments at which its rows became others. It follows from its sightings: the
reports that count, one a moment (of two with the same moment the one generated last, then that of the larger digest).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol


class Sighting(NamedTuple):
    """A report that counts. Times are microseconds since 1970. Ordered: of one moment the largest counts."""

    observed: int
    generated: int
    report: str


class TableVersion(NamedTuple):
    """What a table's rows became. No rows: digest ""."""

    digest: str
    rows: int


class NodeHistory(NamedTuple):
    """What is known of a node: by moment, and by table and moment.

    Where all that is given is newer, the newest sighting and the newest change of each table are enough.
    """

    sightings: Mapping[int, Sighting]
    changes: Mapping[str, Mapping[int, TableVersion]]


class Given(Protocol):
    """A report that is given."""

    @property
    def sighting(self) -> Sighting:
        """When it is of."""

    def change(self, table: str) -> TableVersion:
        """What its rows of a table are."""


class Added(NamedTuple):
    """A change that history lacks. Its rows are those of a given report, or those of an earlier change of the table."""

    table: str
    moment: int
    change: TableVersion
    given: Given | None
    copied: int  # moment of the change that has the same rows, where no report is given


class Edit(NamedTuple):
    """What is to be done to a node's history, and which report is its newest (None: the one it has)."""

    newest: Given | None
    added: list[Added]
    removed: list[tuple[str, int]]  # table, moment
    seen: list[Sighting]
    unseen: list[int]  # moments whose sighting is another now
    late: int  # of the given reports, those that count and are not newer than all that was known
    repeated: int  # of the given reports, those that change nothing: known, or of a moment that has a better one


def is_late(known: NodeHistory, given: Iterable[Given]) -> bool:
    """Whether more has to be known of the node than its newest sighting."""
    newest = max(known.sightings.values(), default=None)
    return newest is not None and any(
        each.sighting.observed <= newest.observed and each.sighting != newest for each in given
    )


def merged(known: NodeHistory, given: Sequence[Given], tables: Sequence[str]) -> Edit:
    """Put reports into a node's history."""
    best: dict[int, Given] = {}
    for each in given:
        moment = each.sighting.observed
        if moment not in best or best[moment].sighting < each.sighting:
            best[moment] = each
    fresh = {
        moment: each
        for moment, each in best.items()
        if moment not in known.sightings or known.sightings[moment] < each.sighting
    }
    if not fresh:
        return Edit(None, [], [], [], [], 0, len(given))
    moments = sorted(known.sightings.keys() | fresh.keys())
    added: list[Added] = []
    removed: list[tuple[str, int]] = []
    for table in tables:
        _table(table, known.changes.get(table, {}), fresh, moments, added, removed)
    seen = [fresh[moment].sighting for moment in sorted(fresh)]
    unseen = sorted(fresh.keys() & known.sightings.keys())
    late = sum(moment <= max(known.sightings) for moment in fresh) if known.sightings else 0
    return Edit(fresh.get(moments[-1]), added, removed, seen, unseen, late, len(given) - len(fresh))


def _table(
    table: str,
    known: Mapping[int, TableVersion],
    fresh: Mapping[int, Given],
    moments: Sequence[int],
    added: list[Added],
    removed: list[tuple[str, int]],
) -> None:
    """One table: go through all moments as they are now, beside what was known at each."""
    state = before = TableVersion("", 0)
    since = 0  # moment of the known change that `before` is of
    for moment in moments:
        old = known.get(moment)
        if old is not None:
            before, since = old, moment
        given = fresh.get(moment)
        now = given.change(table) if given is not None else before
        if now.digest == state.digest:
            if old is not None:
                removed.append((table, moment))
            continue
        state = now
        if old is not None and (given is None or old.digest == now.digest):
            continue  # it stands there
        if old is not None:
            removed.append((table, moment))
        added.append(Added(table, moment, now, given, since))
