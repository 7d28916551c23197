"""Which nodes are compared with each other, beyond the hardware class that each report gives.

A class is made of counts of devices: a node that lost half of its GPUs leaves it, and a class of two nodes has no
majority. Here such nodes are put back among their peers, and small classes beside the nodes most like them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import Pending, Row, lookup, query
from agent.fleet.questions.options import Options
from agent.fleet.table import TEXT
from agent.platforms.profiles import list_profiles, load_profile

FACTS = query("outliers", "class_facts")
EARLIER = lookup({"hardware_class": TEXT}, "outliers", "earlier_classes")
_OF_THE_GPU = frozenset(("driver", "driver-open", "cuda", "cmdline", "settings"))
_RAILS = "rails"
_OF_THE_SYSTEM = frozenset(("kernel", "os", "nccl"))  # the same whatever GPU a node has


class _Class(NamedTuple):
    """What is known of a hardware class. `product`: vendor and product, as the class begins; null: not known."""

    name: str
    product: str | None
    profile: str | None
    arch: str | None
    gpus: int  # of the node with most
    nodes: int
    devices: Mapping[str, int]  # how many of what, by the class; rails of whatever board
    gpu_names: frozenset[str]


class ParentClass(NamedTuple):
    """Classes whose nodes are compared together in some attributes. `small`: those that have no others to compare."""

    name: str
    members: frozenset[str]
    small: frozenset[str]
    attributes: frozenset[str]

    @property
    def same_gpus(self) -> bool:
        """Whether all of them have the same GPUs."""
        return self.attributes > _OF_THE_SYSTEM


class DeviceLoss(NamedTuple):
    """A node that was in a class with more devices once."""

    node: str
    peers: str  # that class
    gpus: int | None
    rails: int | None


class PeerClasses(NamedTuple):
    """`of`: the class as which each is compared, itself or one with more devices; without those with too few nodes."""

    of: Mapping[str, str]
    sizes: dict[str, int]  # of those: nodes
    too_few: dict[str, int]
    wider: list[ParentClass]
    lost: list[DeviceLoss]
    devices: Mapping[str, Mapping[str, int]]  # of classes that others were put back to: GPUs and rails before any died


def read_peer_classes(tables: Tables, facts: Pending, options: Options) -> PeerClasses:
    """`facts`: rows of FACTS."""
    classes = _read_classes(facts())
    fuller = {peer_class.name: _find_fuller(peer_class, classes.values(), options) for peer_class in classes.values()}
    suspects = {name: full for name, full in fuller.items() if full is not None}
    earlier = _find_earlier(tables, suspects, fuller)
    came = Counter(row.name for row in earlier)
    of = {name: name for name, peer_class in classes.items() if peer_class.nodes >= options.fewest}
    for name, full in suspects.items():
        peer_class = classes[name]
        if (
            peer_class.nodes < options.fewest
            or 2 * came[name] > peer_class.nodes
            or (_expects_more(peer_class) and classes[full].gpus > peer_class.gpus)
        ):
            of[name] = full
    of = {name: of.get(peers, peers) for name, peers in of.items()}
    sizes: Counter[str] = Counter()
    for name, peers in of.items():
        sizes[peers] += classes[name].nodes
    small = [peer_class for peer_class in classes.values() if peer_class.name not in of]
    return PeerClasses(
        of=of,
        sizes=dict(sorted(sizes.items())),
        too_few={peer_class.name: peer_class.nodes for peer_class in small},
        wider=_find_wider(small, classes.values(), options),
        lost=[row.lost for row in earlier if of.get(row.name) == row.name],
        devices={
            peers: {"gpus": classes[peers].gpus, "rails": classes[peers].devices.get(_RAILS, 0)}
            for name, peers in of.items()
            if name != peers
        },
    )


def _read_classes(rows: Iterable[Row]) -> dict[str, _Class]:
    """Of rows of a class that differ, in profile or architecture, those of most nodes."""
    kinds: dict[str, list[tuple[int, str | None, str | None, str | None, str | None, int, int]]] = {}
    for name, vendor, product, profile, arch, gpus, rails, nodes in rows:
        if name is not None:
            kinds.setdefault(name, []).append((nodes, vendor, product, profile, arch, gpus or 0, rails or 0))
    classes_of = {}
    for name in sorted(kinds):
        _, vendor, product, profile, arch, _, _ = max(kinds[name], key=lambda row: (row[0], str(row)))
        gpus, rails = max(row[5] for row in kinds[name]), max(row[6] for row in kinds[name])
        called = " ".join(part.strip() for part in (vendor, product) if part and part.strip())
        parts = [part.partition("x ") for part in name[len(called or "unknown product") + 2 :].split(", ")]
        counts = [(what, int(count)) for count, _, what in parts if count.isdecimal() and len(count) < 9]
        of_gpus = counts[: len(counts) - (rails > 0)] if gpus else []  # rails are last
        devices = dict([*of_gpus, *((_RAILS, count) for _, count in counts[len(of_gpus) :])])
        nodes = sum(row[0] for row in kinds[name])
        classes_of[name] = _Class(name, called or None, profile, arch, gpus, nodes, devices, frozenset(dict(of_gpus)))
    return classes_of


def _find_fuller(one: _Class, classes: Iterable[_Class], options: Options) -> str | None:
    """The class of the same product with as many devices or more that most nodes are in, if more than in this one."""
    if one.product is None:
        return None
    fuller_classes = [
        peer_class
        for peer_class in classes
        if peer_class.product == one.product
        and peer_class.nodes >= options.fewest
        and peer_class.nodes > one.nodes
        and peer_class.name != one.name
        and all(peer_class.devices.get(what, 0) >= count for what, count in one.devices.items())
    ]
    return (
        max(fuller_classes, key=lambda peer_class: (peer_class.nodes, peer_class.name)).name if fuller_classes else None
    )


class _EarlierClass(NamedTuple):
    name: str  # the class that the node is in now
    lost: DeviceLoss


def _find_earlier(tables: Tables, suspects: Mapping[str, str], fuller: Mapping[str, str | None]) -> list[_EarlierClass]:
    """Nodes that were in the fuller class once, by the history."""
    rows = tables.fetch_by_keys(EARLIER, [(name,) for name in sorted(suspects)])
    earlier = {
        node: _EarlierClass(name, DeviceLoss(node, before, gpus, rails))
        for node, name, before, gpus, rails in rows
        if fuller.get(name) == before
    }
    return [earlier[node] for node in sorted(earlier)]


def _expects_more(one: _Class) -> bool:
    """Whether the platform that its nodes were recognized as has more GPUs."""
    if one.profile is None or one.profile not in list_profiles():
        return False
    expected = load_profile(one.profile).gpus
    return expected is not None and isinstance(expected.value, int) and expected.value > one.gpus


def _find_wider(small: list[_Class], classes: Iterable[_Class], options: Options) -> list[ParentClass]:
    """For small classes: the nodes with the same GPUs; and those with any, of the same architecture."""
    every = [peer_class for peer_class in classes if peer_class.gpus]
    wider = []
    for names in sorted({peer_class.gpu_names for peer_class in small if peer_class.gpu_names}, key=sorted):
        members = [peer_class for peer_class in every if peer_class.gpu_names == names]
        wider.append((f"all nodes with {' and '.join(sorted(names))}", members, _OF_THE_GPU | _OF_THE_SYSTEM))
    wide_enough = {
        member.name for _, members, _ in wider if _count_nodes(members) >= options.fewest for member in members
    }
    for arch in sorted(
        {
            peer_class.arch
            for peer_class in small
            if peer_class.gpus and peer_class.arch and peer_class.name not in wide_enough
        }
    ):
        members = [peer_class for peer_class in every if peer_class.arch == arch]
        wider.append((f"all {arch} nodes with GPUs", members, _OF_THE_SYSTEM))
    names_of_small = {peer_class.name for peer_class in small}
    return [
        ParentClass(name, frozenset(member.name for member in members), frozenset(few), keys)
        for name, members, keys in wider
        if _count_nodes(members) >= options.fewest
        and (
            few := names_of_small
            & {member.name for member in members} - (wide_enough if keys is _OF_THE_SYSTEM else set())
        )
    ]


def _count_nodes(classes: Iterable[_Class]) -> int:
    return sum(peer_class.nodes for peer_class in classes)
