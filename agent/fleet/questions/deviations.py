"""What is odd, one thing at a time, and folded into answers: things that differ alike from the same are one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from agent.fleet.hostlist import fold
from agent.fleet.questions.baseline import Baseline
from agent.model.labels import group_by_key

LABELS = 8  # of devices that one answer names

# What follows from another difference of the same nodes is reported with it
FOLLOWS = {
    "cuda": ("driver",),
    "rdma-stack-version": ("rdma-stack",),
    "port-phys-state": ("port-state",),
    "port-rate-gbit-s": ("port-width", "port-speed", "port-link-layer"),
    "port-speed": ("port-link-layer",),
    "rail-speed-gbit-s": ("port-rate-gbit-s", "port-speed", "port-width"),
    "port-active-mtu": ("rail-mtu",),
    "gpu-fabric-status": ("gpu-fabric-state",),
    "gpu-memory-mib": ("gpu-mig", "gpu-models"),
    "gpu-vbios": ("gpu-models",),
    "gpu-bar1-mib": ("gpu-models",),
    "numa-nodes": ("sockets",),
    "numa-memory": ("memory", "numa-nodes"),
    "nics": ("rails",),
    "rails": ("gpus",),  # a NIC whose GPU is gone is no GPU's rail
    "nic-role": ("rails", "gpus"),
    "probe-status": ("gpus",),  # the driver of a node without GPUs
    "gpu-cluster-uuid": ("gpu-fabric-state",),
    "gpu-clique": ("gpu-fabric-state", "gpu-cluster-uuid"),
    "port-roce-gid-index": ("port-gid-types",),
    "profile": ("gpus", "rails", "nics", "gpu-models"),
}


# What a difference costs, the most severe first: what is lost, what is slower or may lose packets, settings, versions
_LOST = """
gpus rails nics sockets numa-nodes memory numa-memory gpu-models gpu-memory-mib gpu-driver-state gpu-nvlinks-active
gpu-fabric-state gpu-fabric-status gpu-recovery-action nic-state nic-board nic-role port-state port-phys-state
port-link-layer
"""
_SLOWER = """
gpu-bar1-mib gpu-mig gpu-clique gpu-cluster-uuid port-rate-gbit-s port-width port-speed port-active-mtu port-gid-types
pcie-width pcie-speed pcie-acs rail-mtu rail-speed-gbit-s rail-fec rail-fec-active rail-trust rail-pfc rail-dscp-prio
rail-prio-tc rail-tc-bandwidth rail-ecn rail-pause rail-pause-rx rail-pause-tx part-settings
"""
_VERSIONS = """
cpu driver driver-open cuda nccl rdma-stack rdma-stack-version bios kernel os virtualization profile gpu-vbios
nic-firmware switch-version probe-status probe-seconds clock
"""
_SETTING = 2
_WEIGHTS = {key: weight for weight, keys in enumerate((_LOST, _SLOWER, "", _VERSIONS)) for key in keys.split()}
_ERRORS = "error-rate-"
_PORTS = ("switch-port-", "interface-")  # what is compared of them as of rails


class PeerGroup(NamedTuple):
    """What a value is compared within."""

    key: str  # of the attribute
    what: str
    hardware_class: str
    place: str | None  # the board, the rail, the address: what else is the same
    one: str  # what is counted


class Deviation(NamedTuple):
    """One thing that differs from its peers."""

    group: PeerGroup
    usual: Baseline
    value: str
    expected: str
    node: str
    label: str | None
    by: str | None = None


class Outlier(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes that differ alike from what is usual in their group."""

    attribute: str
    what: str
    hardware_class: str
    places: list[str] = []  # boards, rails, addresses that are compared with each other only
    value: str
    usual: str
    usual_count: int
    of: int  # things of that group whose value is known
    one: str  # what is counted: "node", "GPU"
    hosts: str  # folded
    nodes: int
    things: int  # of those nodes
    labels: list[str] = []  # of the things; empty: too many, or the node itself
    by: str | None = None  # how far it is away, where that is a number
    also: list[str] = []  # what else differs on the same nodes because of it
    common: list[str] = []  # what all of these nodes have and few others of the class: a rack, a leaf, a kernel
    stale: str = ""  # those of them without a recent report, folded


class NoMajority(msgspec.Struct, frozen=True, kw_only=True):
    """A group that has no usual value, but a few that many share: a roll-out under way."""

    attribute: str
    what: str
    hardware_class: str
    places: list[str] = []
    one: str
    values: list[tuple[str, int]]  # the most frequent first
    of: int


def fold_deviations(odds: Iterable[Deviation], stale: frozenset[str] = frozenset()) -> list[tuple[Outlier, set[str]]]:
    """Answers and their nodes, what costs most first, and of that most nodes last: a single cable is easier to overlook
    than a roll-out."""
    alike = group_by_key(
        ((one.group.key, one.group.hardware_class, one.value, one.expected, one.by), one) for one in odds
    )
    parts = [part for same in alike.values() for part in _group_by_rails(same)]
    outliers = [_make_outlier(part, stale) for part in parts]
    hosts = {id(outlier): {deviation.node for deviation in part} for outlier, part in zip(outliers, parts, strict=True)}
    return sorted(_absorb(outliers, hosts), key=lambda item: _rank(item[0]))


def _rank(outlier: Outlier) -> tuple[str, int, int, str, str]:
    return outlier.hardware_class, _weigh(outlier.attribute), outlier.nodes, outlier.attribute, outlier.hosts


def _weigh(attribute: str) -> int:
    """
    >>> _weigh("gpus"), _weigh("error-rate-wire"), _weigh("switch-port-pfc"), _weigh("cmdline"), _weigh("kernel")
    (0, 1, 1, 2, 3)
    """
    if attribute.startswith(_ERRORS):
        return _WEIGHTS["part-settings"]
    for prefix in _PORTS:
        attribute = attribute.replace(prefix, "rail-")
    return _WEIGHTS.get(attribute, _SETTING)


def _group_by_rails(odds: list[Deviation]) -> list[list[Deviation]]:
    """Nodes of which the same rails are odd: rail 9 of sixteen nodes is another matter than rail 5 of one."""
    if odds[0].group.one != "rail":
        return [odds]
    rails = group_by_key((deviation.node, deviation.group.place) for deviation in odds)
    return list(group_by_key((frozenset(rails[deviation.node]), deviation) for deviation in odds).values())


def _make_outlier(odds: list[Deviation], stale: frozenset[str]) -> Outlier:
    first = odds[0]
    groups = {deviation.group.place: deviation.usual for deviation in odds}
    nodes = {deviation.node for deviation in odds}
    labels = sorted({deviation.label for deviation in odds if deviation.label})
    return Outlier(
        attribute=first.group.key,
        what=first.group.what,
        hardware_class=first.group.hardware_class,
        places=sorted(group for group in groups if group is not None),
        value=first.value,
        usual=first.expected,
        usual_count=sum(group.has for group in groups.values()),
        of=sum(group.of for group in groups.values()),
        one=first.group.one,
        hosts=fold(nodes),
        nodes=len(nodes),
        things=len(odds),
        labels=labels if len(labels) <= LABELS else [],
        by=first.by,
        stale=fold(nodes & stale),
    )


def _absorb(outliers: list[Outlier], hosts: dict[int, set[str]]) -> list[tuple[Outlier, set[str]]]:
    causes = group_by_key(((one.hardware_class, one.attribute), one) for one in outliers)
    because: dict[int, Outlier] = {}
    for one in outliers:
        for key in FOLLOWS.get(one.attribute, ()):
            for cause in causes.get((one.hardware_class, key), []):
                if hosts[id(one)] <= hosts[id(cause)]:
                    because.setdefault(id(one), cause)
    also: dict[int, list[str]] = {}
    for outlier in outliers:
        cause = outlier
        while id(cause) in because:  # what it follows from may follow from something itself
            cause = because[id(cause)]
        if cause is not outlier:
            where = "" if hosts[id(outlier)] == hosts[id(cause)] else f" on {outlier.hosts}"
            also.setdefault(id(cause), []).append(f"{outlier.what} {outlier.value}, usually {outlier.usual}{where}")
    remaining = [outlier for outlier in outliers if id(outlier) not in because]
    return [
        (
            msgspec.structs.replace(outlier, also=also[id(outlier)]) if id(outlier) in also else outlier,
            hosts[id(outlier)],
        )
        for outlier in remaining
    ]
