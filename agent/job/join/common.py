"""What all slow or failed ranks of a cause have in common, and the other ranks have not: GPU, rail, leaf switch, host.

By intersection. Leaf switches are those that reports of the hosts name, by LLDP or by the fabric's own discovery.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

from agent.job.candidate import PossibleCause, name_hosts
from agent.job.conclusion import Conclusion
from agent.job.evidence import Evidence
from agent.job.join.context import HostReport
from agent.model.nic import Nic
from agent.model.report import Report

_T = TypeVar("_T")
_SLOW = ("rank-late", "communicator-slow")
_MOST_OTHERS = 0.25  # of the ranks of a leaf that may be well, as traffic takes other ways too


class RankPlace(NamedTuple):
    """Where the traffic of one rank goes."""

    host: str
    gpu: int | None
    nic: str | None
    leaf: str | None
    leaf_port: str | None


def find_common_parts(conclusion: Conclusion, reports: Mapping[str, HostReport]) -> None:
    """Add to each network or slow cause the part that all its ranks share."""
    groups: dict[str, list[PossibleCause]] = {}
    for cause in (*conclusion.causes, *conclusion.folded):
        if cause.role == "network" or cause.id in _SLOW:
            groups.setdefault(cause.id, []).append(cause)
    for causes in groups.values():
        if id(causes[0]) in conclusion.parents or causes[0].fault == "setting":
            continue  # what explains it is another kind of cause, or no part
        for cause in causes:
            _blame_peer(conclusion.evidence, cause)
        affected = list(dict.fromkeys(pair for cause in causes for pair in _list_affected(conclusion.evidence, cause)))
        if len(affected) < 2:
            continue
        nics = {cause.nic for cause in causes}
        nic = nics.pop() if len(nics) == 1 else None
        _add(conclusion.evidence, causes[0], affected, nic, reports)


def _blame_peer(evidence: Evidence, cause: PossibleCause) -> None:
    """A host that ranks of several hosts name, and no other, as the peer that does not answer."""
    if len(cause.hosts) < 2 or len(cause.peers) != 1 or cause.fault == "setting":
        return
    peer = next(iter(cause.peers))
    if peer in cause.hosts:
        return
    local = _only(evidence.ranks.local(rank) for rank in cause.ranks)
    rank = evidence.ranks.find_rank(peer, local) if local is not None else None
    who = f"{peer} (rank {rank})" if rank is not None else peer
    cause.summary += f"; all of them name {who}"
    cause.fault, cause.hosts = "peer", {peer: None}
    cause.ranks = {} if rank is None else {rank: None}


def _list_affected(evidence: Evidence, cause: PossibleCause) -> list[tuple[str, int | None]]:
    """Host and GPU of each rank, or of each host of a slow communicator."""
    if cause.local is not None:
        return [(host, cause.local) for host in cause.hosts]
    return [(host, evidence.ranks.local(rank)) for rank in cause.ranks if (host := evidence.ranks.host(rank))]


def _add(
    evidence: Evidence,
    cause: PossibleCause,
    affected: list[tuple[str, int | None]],
    nic: str | None,
    reports: Mapping[str, HostReport],
) -> None:
    everybody = list(
        dict.fromkeys(
            (host, evidence.ranks.local(rank)) for rank in evidence.ranks.ranks() if (host := evidence.ranks.host(rank))
        )
    )
    hit = set(affected)
    bad = [_find_place(evidence, host, gpu, nic, reports) for host, gpu in affected]
    good = [_find_place(evidence, host, gpu, None, reports) for host, gpu in everybody if (host, gpu) not in hit]
    parts = list(_name_parts(bad, good))
    if not parts:
        return
    hosts = list(dict.fromkeys(place.host for place in bad))
    cause.summary += f"; common to all of them: {', '.join(parts)}"
    if len(hosts) > 1:
        cause.summary += f" ({name_hosts(hosts)})"
    leaf = _only(place.leaf for place in bad)
    names = {place.nic for place in bad}
    if cause.nic is None and len(names) == 1:
        cause.nic = names.pop()
    if leaf is not None and any(part.startswith("leaf switch") for part in parts):
        ports = ", ".join(sorted({place.leaf_port for place in bad if place.leaf_port})[:8])
        text = f"{len(bad)} ranks are on {leaf}; {sum(place.leaf == leaf for place in good)} of {len(good)} others are"
        text += f"; its ports: {ports}" if ports else ""
        cause.fault = "fabric"
        cause.show_text(text, reports[bad[0].host].source)
        cause.next.insert(0, f"{leaf}: its uplinks, error counters, drops and buffers at that time")
    elif len(hosts) == 1 and cause.fault in ("fabric", "unknown", "peer"):
        cause.fault = "rank"
        cause.nic = cause.nic if len(names) == 1 else None
        ranks = [rank for host, gpu in affected if (rank := evidence.ranks.find_rank(host, gpu)) is not None]
        cause.blame(ranks)


def _name_parts(bad: list[RankPlace], good: list[RankPlace]) -> Iterable[str]:
    """Parts that all bad places have and that are not those of all others as well."""
    host = _only(place.host for place in bad)
    if host is not None and any(place.host != host for place in good):
        yield f"host {host}"
    gpu = _only(place.gpu for place in bad)
    nic = _only(place.nic for place in bad)
    others = {place.gpu for place in good}
    if host is None and gpu is not None and others - {gpu}:
        yield f"GPU {gpu} and its rail{f' {nic}' if nic else ''}"
    elif host is None and nic is not None and {place.nic for place in good} - {nic}:
        yield nic
    leaf = _only(place.leaf for place in bad)
    if leaf is not None and good:
        on_leaf = sum(place.leaf == leaf for place in good)
        if any(place.leaf not in (None, leaf) for place in good) and on_leaf <= _MOST_OTHERS * (on_leaf + len(bad)):
            yield f"leaf switch {leaf}"


def _only(values: Iterable[_T]) -> _T | None:
    """The one value that all have; None: they differ, or one has none."""
    different = Counter(values)
    return next(iter(different)) if len(different) == 1 else None


def _find_place(
    evidence: Evidence, host: str, gpu: int | None, name: str | None, reports: Mapping[str, HostReport]
) -> RankPlace:
    rank = evidence.ranks.find_rank(host, gpu)
    used = evidence.ranks.nics(rank) if name is None and rank is not None else []
    name = name or (used[0] if len(used) == 1 else None)
    one = reports.get(host)
    if one is None:
        return RankPlace(host, gpu, name, None, None)
    nic = _find_nic(one.report, gpu, name)
    leaf, port = _find_leaf(one.report, nic) if nic is not None else (None, None)
    return RankPlace(host, gpu, (nic.rdma_device or nic.label) if nic is not None else name, leaf, port)


def _find_nic(report: Report, gpu: int | None, name: str | None) -> Nic | None:
    """By name, else the GPU's rail where there is one for each GPU."""
    if name is not None:
        return next((nic for nic in report.topology.nics if name in (nic.rdma_device, nic.label)), None)
    rails = [nic for nic in report.topology.nics if nic.role == "rail"]
    if gpu is None or len(rails) != len(report.topology.gpus) or gpu >= len(rails):
        return None
    return rails[gpu]


def _find_leaf(report: Report, nic: Nic) -> tuple[str | None, str | None]:
    for port in nic.ports:
        if port.neighbor is not None and port.neighbor.name:
            return port.neighbor.name, str(port.neighbor.port)
    for netdev in report.topology.netdevs:
        if netdev.nic == nic.id and netdev.neighbor is not None and netdev.neighbor.system:
            return netdev.neighbor.system, netdev.neighbor.port
    return None, None
