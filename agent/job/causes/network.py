"""Causes in the network: queue pairs and connections that fail, memory that is not registered, ports that went down."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from agent.job.candidate import PossibleCause, first_of, name_hosts
from agent.job.catalogue import load_codes
from agent.job.causes.completions import is_link_local
from agent.job.causes.generic import find_boxed, find_generic
from agent.job.causes.words import fill
from agent.job.evidence import Evidence, LineEvent
from agent.job.lines import Moment
from probes.text import lazy_pattern

_QP = lazy_pattern(
    r"on dev (?P<nic>[\w.-]{1,60}):(?P<port>\d{1,3})|local GID index (?P<index>-?\d{1,4})|local GID "
    r"(?P<local>[\da-fA-F:.]{2,60})"
    r"|remote GID (?P<remote>[\da-fA-F:.]{2,60})|dgid=(?P<remote2>[\da-fA-F:.]{2,60})|sgid_index=(?P<index2>\d{1,4})|"
    r"connect on (?P<nic2>[\w.-]{1,60})"
)
_DEVICE_NEXT = "the kernel log of {host}: the NIC's driver and AER"


def find_queue_pairs(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """Failures to connect, with the addresses that later versions print."""
    for candidate in find_generic(evidence, events):
        for event in events:
            for match in _QP.finditer(event.groups.get("tail", "")):
                candidate.note_facts(match)
        for name in ("remote", "index", "nic"):  # as UCX names them
            if (value := candidate.facts.pop(f"{name}2", None)) is not None:
                candidate.facts.setdefault(name, value)
        candidate.nic = candidate.facts.get("nic")
        if candidate.id == "qp-address-unresolved" and "remote" in candidate.facts:
            on = f", from {candidate.nic}" if candidate.nic else ""
            candidate.summary += f" {candidate.facts['remote']}{on}"
        index = next(iter(evidence.settings.get("NCCL_IB_GID_INDEX", {})), None)
        if index is not None:
            candidate.facts.setdefault("index", index)
            candidate.next.insert(0, f"NCCL_IB_GID_INDEX={index}: whether that GID is RoCE v2 with a routable address")
        if is_link_local(evidence, candidate, candidate.facts.get("local", "")):
            candidate.id, candidate.fault = "gid-link-local", "setting"
            candidate.summary += "; the local GID is link-local (fe80::)"
        yield candidate


_LOW_KIB = 1 << 20  # 1 GiB


def find_memlock(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """Memory that is not registered: the limit decides, where the files have it."""
    for candidate in find_generic(evidence, events):
        hosts = candidate.hosts
        limits = [
            (kib, line) for kib, line in evidence.memlock if not hosts or evidence.host_of(line) in (None, *hosts)
        ]
        low = [(kib, line) for kib, line in limits if kib is not None and kib < _LOW_KIB]
        candidate.show(evidence, *(line for _, line in (low or limits)[:2]))
        if low:
            candidate.confidence = "high"
            candidate.summary += f"; the limit of locked memory there is {low[0][0]} KiB"
        elif limits and candidate.id != "ucx-memlock":
            candidate.confidence, candidate.fault = "medium", "rank"
            candidate.summary = (
                f"{candidate.name(evidence)}: memory cannot be registered with the "
                "NIC, and the limit of locked memory is not low: a quota of the HCA, BAR1 of the GPU, or the IOMMU"
            )
            candidate.next = candidate.next[1:]
        yield candidate


def find_async(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """A port that went down: one candidate per host and port, with its return."""
    codes = load_codes()["async"]
    groups: dict[tuple[str | None, str | None, str], list[LineEvent]] = defaultdict(list)
    for event in events:
        text = event.groups.get("event", "").strip().lower()
        name = next((key for key in codes if key.lower() in text), None)
        if name is not None:
            groups[evidence.host_of(event.line), event.groups.get("nic"), name].append(event)
    for (host, nic, name), rows in groups.items():
        code = codes[name]
        if code["role"] == "fact":
            continue
        candidate = PossibleCause(
            "port-down" if code["role"] == "port" else "device-event", code["role"], code["fault"], ""
        )
        candidate.add_events(evidence, rows)
        candidate.nic, port = nic, rows[0].groups.get("port")
        candidate.port = int(port) if port else None
        part = f"port {candidate.port or 1} of {nic}" if nic else "a port of an RDMA device"
        on = f" on {host}" if host else ""
        count = len(candidate.ranks)
        ranks = f" (rank {next(iter(candidate.ranks))})" if count == 1 else f" ({count} ranks)" if count else ""
        returns = groups.get((host, nic, "port active"), [])
        back = _came_back(returns, candidate.at) if name == "port error" else ""
        candidate.summary = f"{part}{on}{ranks} {code['means']}{back}"
        candidate.next = (
            [
                f"cable, optic and switch port of {nic or 'the NIC'}{on}: `fabricscope scan` there, link_downed "
                f"counter, kernel log",
                "clean or replace the cable or optic where it happens again",
            ]
            if code["role"] == "port"
            else [fill(text, {"host": host or "the host"}) for text in code.get("next", [_DEVICE_NEXT])]
        )
        candidate.show(evidence, *(event.line for event in returns[:1]))
        if back:
            candidate.facts["back"] = back
        yield candidate


def _came_back(events: list[LineEvent], at: Moment | None) -> str:
    if not events:
        return ""
    back = first_of(events).line.at
    if back is None or at is None or back.seconds < at.seconds:
        return ", and came up again"
    return f", and came up again after {back.seconds - at.seconds:.0f} s"


# Networks of one host alone: bridges of containers and virtual machines, addresses that no server gave
_BRIDGES = "docker|virbr|cni|flannel|podman|lxcbr|lxdbr|br-[0-9a-f]{12}|veth"
_OF_ONE_HOST = lazy_pattern(rf"(?:{_BRIDGES}|lo$)|169\.254\.|127\.|172\.17\.0\.|fe80:")
_LINK_LOCAL = "169.254."  # no other host can reach it
_BRIDGE = lazy_pattern(rf"%({_BRIDGES})")
_INTERFACE_NEXT = (
    "NCCL_SOCKET_IFNAME (and GLOO_SOCKET_IFNAME) with the interface that connects the hosts, the same "
    "choice on all of them: `ip -br address`"
)

_RENDEZVOUS_NEXT = (
    "MASTER_ADDR (or --rdzv_endpoint, or the address that the program asks its own host for) as the hosts reach each "
    "other: `getent hosts $(hostname)` on the host of rank 0; in a container its network is that of the host "
    "(`--network host`)"
)


def find_connect(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """Connections that fail; where the address is of a network of one host alone, a setting is at fault."""
    for candidate in find_boxed(evidence, events):
        refused = re.search("refused|reset", candidate.summary) is not None
        candidate.next = candidate.next[:1] if refused else candidate.next[1:]
        for peer in {event.groups.get("peer", ""): None for event in events}:
            if _blame_address(evidence, candidate, peer):
                break
        yield candidate


def find_store_connect(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """A rendezvous that does not answer; at one within a host it is a setting, where processes are elsewhere."""
    for candidate in find_generic(evidence, events):
        for event in events:
            peer, own = event.groups.get("peer", ""), event.line.address or ""
            is_elsewhere = bool(own) and own.split(".")[:2] != peer.split(".")[:2]
            if _OF_ONE_HOST.match(peer) and (is_elsewhere or len(evidence.ranks.hosts()) > 1):
                candidate.summary += "; that address is of a network within one host, which other hosts do not reach"
                candidate.fault, candidate.role, candidate.peers, candidate.confidence = (
                    "setting",
                    "error",
                    {},
                    "medium",
                )
                candidate.next = [_RENDEZVOUS_NEXT, _INTERFACE_NEXT]
                break
        yield candidate


def find_unnamed_connect(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """Connections that fail by lines without an address: NCCL may have offered its peers one of the host itself."""
    for candidate in find_generic(evidence, events):
        _blame_loopback(evidence, candidate)
        yield candidate


def _blame_loopback(evidence: Evidence, candidate: PossibleCause) -> None:
    used = {address: hosts for address, hosts in evidence.ranks.interfaces.items() if address.startswith("127.")}
    hosts = dict.fromkeys(host for names in used.values() for host in names)
    if not hosts or len(evidence.ranks.hosts()) < 2:
        return
    names = ", ".join(sorted({name for interfaces in used.values() for name in interfaces.values()}))
    candidate.summary += f"; NCCL also uses {names} on {name_hosts(list(hosts))}, which other hosts do not reach"
    candidate.fault, candidate.role, candidate.peers = "setting", "error", {}
    candidate.confidence = "medium"
    candidate.next = [_INTERFACE_NEXT]


def _blame_address(evidence: Evidence, candidate: PossibleCause, peer: str) -> bool:
    """Whether an address that does not answer is one that other hosts cannot reach."""
    address = read_address(peer)
    hosts = evidence.ranks.interfaces.get(address, {})
    bridge = _BRIDGE.search(address)
    names = sorted(set(hosts.values())) or ([address.partition("%")[2]] if bridge else [])
    local = bool(address) and any(_OF_ONE_HOST.match(text) for text in (address, *names))
    if bridge is None and not address.startswith(_LINK_LOCAL) and len(evidence.ranks.hosts()) < 2:
        alone = address.startswith("127.") and not evidence.ranks.hosts()
        if alone:
            candidate.confidence = "medium"
            candidate.summary += (
                "; that address is of the host itself: in a job of several hosts the name of a host resolves to it, in "
                "a job of one host the process there ended first"
            )
            candidate.next = [
                "several hosts: `getent hosts $(hostname)` on each must give an address that the others reach "
                "(/etc/hosts), or GLOO_SOCKET_IFNAME and NCCL_SOCKET_IFNAME name the interface",
                "one host: the first error of the other ranks",
            ]
        return alone
    if not local and len(hosts) < 2:
        return False
    kind = (
        "link-local, as a DNS cache or a BMC has it"
        if address.startswith(_LINK_LOCAL)
        else "of a network within one host"
    )
    part = f"of {', '.join(names[:3])}" if names else kind
    several = f" on each of {name_hosts(list(hosts))}" if len(hosts) > 1 else ""
    candidate.summary += f"; that address is {part}{several}, which other hosts do not reach"
    candidate.fault, candidate.role, candidate.peers = "setting", "error", {}
    candidate.confidence = "high"
    candidate.next = [_INTERFACE_NEXT]
    return True


def read_address(peer: str) -> str:
    """The address of "10.0.0.1<4711>", "[10.0.0.1]:4711", "10.0.0.1:4711" or "('10.0.0.1', 4711)".

    >>> [read_address(text) for text in ("10.0.0.1<7>", "[fe80::1%eth0]:7", "10.0.0.1:7", "('10.0.0.1', 7)")]
    ['10.0.0.1', 'fe80::1%eth0', '10.0.0.1', '10.0.0.1']
    """
    bare = peer.partition("<")[0].partition("', ")[0].lstrip("[('")
    if "]" in bare:
        return bare.partition("]")[0]
    return bare.rpartition(":")[0] if bare.count(":") == 1 else bare
