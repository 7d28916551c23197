"""Causes in the network: failed completions, queue pairs that do not connect, ports that went down."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from agent.job.candidate import PossibleCause, first_of, name_hosts, name_ranks
from agent.job.catalogue import load_codes
from agent.job.causes.generic import collect_words, fill, find_generic
from agent.job.evidence import Evidence, LineEvent
from agent.job.lines import Moment

_TAIL = re.compile(r"localGid (?P<local>\S{1,60})|remoteGids\s?(?P<remote>\S{1,60})|\bhca (?P<nic>[\w.-]{1,60})")
_QP = re.compile(
    r"on dev (?P<nic>[\w.-]{1,60}):(?P<port>\d{1,3})|local GID index (?P<index>-?\d{1,4})|local GID "
    r"(?P<local>[\da-fA-F:.]{2,60})"
    r"|remote GID (?P<remote>[\da-fA-F:.]{2,60})"
)
_AT_ONCE = "no collective had worked before: addresses (GID), MTU, routes or VLANs of the rails"
_LATER = "collectives had worked before: a link that flapped, loss under load, or a peer that ended"


def worked_before(evidence: Evidence, at: Moment | None) -> bool:
    """Whether collectives had worked before the failure."""
    if evidence.progress or evidence.ended_well:
        return True
    done = any(process.init_done for process in evidence.ranks.processes.values())
    return done and any((state.waits or 0) > 2 for state in evidence.watchdog)


def find_completions(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """One candidate per status and NIC's name; flushed ones are consequences unless they are alone."""
    codes = load_codes()["completion"]
    by_status: dict[tuple[int, str | None], list[LineEvent]] = defaultdict(list)
    for event in events:
        status = int(event.groups.get("status", "0"), 16 if event.row.id == "ucx-completion" else 10)
        if event.row.id == "ucx-completion":
            status = {0x15: 12, 0x16: 13, 0x01: 1, 0x02: 2, 0x04: 4, 0x05: 5, 0x12: 9, 0x13: 10, 0x14: 11}.get(
                status, 21
            )
        by_status[status, _nic_of(evidence, event)].append(event)
    statuses = {status for status, _ in by_status}
    for (status, nic), rows in by_status.items():
        code: dict[str, Any] = codes.get(str(status), {})
        role = "consequence" if status == 5 and statuses != {5} else "network"
        candidate = PossibleCause(f"completion-{status}", role, code.get("fault", "unknown"), "")
        candidate.nic = nic or None
        candidate.add_events(evidence, rows)
        for event in rows:
            if (host := evidence.ranks.find_host(event.groups.get("peer", ""))) is not None:
                candidate.peers.setdefault(host)
            for match in _TAIL.finditer(event.groups.get("tail", "")):
                for name, value in match.groupdict().items():
                    if value:
                        candidate.facts.setdefault(name, value)
        words = collect_words(evidence, candidate, first_of(rows))
        words["peers"] = name_hosts(list(candidate.peers))
        name = f"completion status {status}" + (f" ({code['name']})" if code else "")
        who = words["who"]
        if status == 12:
            yield _unanswered(evidence, candidate, who, name)
            continue
        if status == 5 and role == "network":
            candidate.confidence = "low"
        candidate.summary = f"{who}: {name}: {code.get('means', 'no meaning is known')}"
        candidate.next = [fill(text, words) for text in code.get("next", [])]
        yield candidate


def _unanswered(evidence: Evidence, candidate: PossibleCause, who: str, name: str) -> PossibleCause:
    """Retries exceeded: by the addresses in the line, and by whether anything had worked before."""
    peers = f" from {name_hosts(list(candidate.peers))}" if candidate.peers else ""
    on = f" on {candidate.nic}" if candidate.nic else ""
    local, remote = candidate.facts.get("local", ""), candidate.facts.get("remote", "")
    if local.startswith("fe80") or remote.startswith("fe80"):
        candidate.id, candidate.fault = "gid-link-local", "setting"
        candidate.summary = (
            f"{who} got no answer{peers}{on} ({name}): the GIDs in use are link-local (fe80::), "
            f"which routed RoCE does not reach"
        )
        index = next(iter(evidence.settings.get("NCCL_IB_GID_INDEX", {})), None)
        if index is not None:
            candidate.facts.setdefault("index", index)
            candidate.summary += f"; NCCL_IB_GID_INDEX={index} chooses them"
        candidate.next = [
            "`show_gids` on both hosts: the index of the RoCE v2 GID with an IPv4 address",
            "NCCL_IB_GID_INDEX with that index (NCCL 2.21 and later choose it without the setting)",
        ]
        return candidate
    candidate.confidence = "medium"
    later = worked_before(evidence, candidate.at)
    candidate.summary = f"{who} got no answer{peers}{on} ({name}); {_LATER if later else _AT_ONCE}"
    hosts = name_hosts(list(candidate.hosts | candidate.peers)) or "both hosts"
    candidate.next = (
        [
            f"link flaps, drops and retransmissions of the rails on {hosts}: `fabricscope scan`, kernel log",
            "the peer's own log: whether its process ended first",
        ]
        if later
        else [
            f"`show_gids`, and active MTU of the rails on {hosts}: the same type and MTU at both ends",
            "`ping` from rail to rail with the MTU's size: `ping -M do -s 4000 -I INTERFACE PEER`",
        ]
    )
    return candidate


def _nic_of(evidence: Evidence, event: LineEvent) -> str | None:
    """The NIC that a line names, else the only one that its rank uses."""
    match = re.search(r"\bhca ([\w.-]{1,60})", event.groups.get("tail", ""))
    if match is not None or event.groups.get("nic"):
        return match[1] if match is not None else event.groups["nic"]
    return None


def find_queue_pairs(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """Failures to connect, with the addresses that later versions print."""
    for candidate in find_generic(evidence, events):
        for event in events:
            for match in _QP.finditer(event.groups.get("tail", "")):
                for name, value in match.groupdict().items():
                    if value:
                        candidate.facts.setdefault(name, value)
        candidate.nic = candidate.facts.get("nic")
        index = next(iter(evidence.settings.get("NCCL_IB_GID_INDEX", {})), None)
        if index is not None:
            candidate.facts.setdefault("index", index)
            candidate.next.insert(0, f"NCCL_IB_GID_INDEX={index}: whether that GID is RoCE v2 with a routable address")
        if candidate.facts.get("local", "").startswith("fe80"):
            candidate.id, candidate.fault = "gid-link-local", "setting"
            candidate.summary += "; the local GID is link-local (fe80::)"
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
        ranks = f" ({_ranks(candidate)})" if candidate.ranks else ""
        back = _came_back(groups.get((host, nic, "port active"), []), candidate.at) if name == "port error" else ""
        candidate.summary = f"{part}{on}{ranks} {code['means']}{back}"
        candidate.next = (
            [
                f"cable, optic and switch port of {nic or 'the NIC'}{on}: `fabricscope scan` there, link_downed "
                f"counter, kernel log",
                "clean or replace the cable or optic where it happens again",
            ]
            if code["role"] == "port"
            else [f"the kernel log of {host or 'the host'}: the NIC's driver and AER"]
        )
        for event in groups.get((host, nic, "port active"), [])[:1]:
            candidate.show(evidence, event.line)
        yield candidate


def _ranks(candidate: PossibleCause) -> str:
    ranks = sorted(candidate.ranks)
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"{len(ranks)} ranks"


def _came_back(events: list[LineEvent], at: Moment | None) -> str:
    if not events:
        return ""
    back = first_of(events).line.at
    if back is None or at is None or back.seconds < at.seconds:
        return ", and came up again"
    return f", and came up again after {back.seconds - at.seconds:.0f} s"


def find_efa(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """Failed requests of EFA, by the status of its provider."""
    codes = load_codes()["efa"]
    for candidate in find_generic(evidence, events):
        groups = first_of(events).groups
        status = groups.get("status") or groups.get("provider")
        code = codes.get(status or "", {})
        if code:
            candidate.summary = (
                f"{name_ranks(evidence, list(candidate.ranks), list(candidate.hosts))}: EFA "
                f"status {status} ({code['name']}): {code['means']}"
            )
            candidate.fault = code["fault"]
            candidate.next = [
                "the security group of all hosts: all traffic from and to itself, inbound and outbound"
                if code["fault"] == "fabric"
                else "the peer's own log: whether its process ended first"
            ]
        yield candidate
