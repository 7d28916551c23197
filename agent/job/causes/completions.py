"""Failed completions of the network: who did not answer, and whether anything had worked before."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from agent.job.candidate import PossibleCause, first_of, name_hosts
from agent.job.catalogue import load_codes
from agent.job.causes.words import collect_words, fill
from agent.job.evidence import Evidence, LineEvent
from agent.job.lines import Moment
from probes.text import lazy_pattern

_TAIL = lazy_pattern(r"localGid (?P<local>\S{1,60})|remoteGids\s?(?P<remote>\S{1,60})|\bhca (?P<nic>[\w.-]{1,60})")
_AT_ONCE = "addresses (GID), MTU, routes or VLANs of the rails"
_AT_ONCE_IB = "states, P_Keys or routes of the ports"
_LATER = "a link that flapped, loss under load, or a peer that ended"
# of mlx5, which UCX prints, too, as verbs number them
_SYNDROMES = {0x15: 12, 0x16: 13, 0x01: 1, 0x02: 2, 0x04: 4, 0x05: 5, 0x12: 9, 0x13: 10, 0x14: 11}
_STATUSES = (  # rdma-core libibverbs/enum_strs.c
    ("flush", 5), ("transport retry", 12), ("rnr retry|receive-no-ready", 13), ("local length", 1), ("local qp op", 2),
    ("local protection", 4), ("bad response", 7), ("local access", 8), ("invalid request", 9), ("remote access", 10),
    ("remote operation", 11), ("fatal", 19), ("response timeout", 20),
)  # fmt: skip
_NO_NAME = 21
_SOON, _LONG = 120.0, 600.0  # seconds after the job's first line


def worked_before(evidence: Evidence, at: Moment | None) -> bool | None:
    """Whether collectives had worked before the failure; None: the files do not show it."""
    if evidence.progress or evidence.ended_well or any((state.waits or 0) > 2 for state in evidence.watchdog):
        return True
    processes = [process for process in evidence.ranks.processes.values() if process.init_started]
    passed = at.seconds - evidence.first_at.seconds if at is not None and evidence.first_at is not None else None
    if not processes:
        return True if passed is not None and passed > _LONG else None
    if passed is not None and passed > _LONG:
        return True
    return False if passed is None or passed < _SOON else None


def find_completions(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """One candidate per status and NIC's name; flushed ones are consequences unless they are alone."""
    codes = load_codes()["completion"]
    by_status: dict[tuple[int, str | None], list[LineEvent]] = defaultdict(list)
    for event in events:
        is_syndrome = (event.row.form_of or event.row.id) == "ucx-completion"
        status = int(event.groups.get("status", "0"), 16 if is_syndrome else 10)
        if is_syndrome:
            status = _SYNDROMES.get(status) or _read_status(event.groups.get("what", ""))
        by_status[status, _nic_of(event)].append(event)
    statuses = {status for status, _ in by_status}
    for (status, nic), rows in by_status.items():
        code: dict[str, Any] = codes.get(str(status), {})
        role = "consequence" if status == 5 and statuses != {5} else "network"
        candidate = PossibleCause(f"completion-{status}", role, code.get("fault", "unknown"), "", "medium")
        candidate.nic = nic or None
        candidate.add_events(evidence, rows)
        candidate.hosts |= {name: None for event in rows if (name := event.groups.get("hosts"))}
        for event in rows:
            if (host := evidence.ranks.find_host(event.groups.get("peer", ""))) is not None:
                candidate.peers.setdefault(host)
            if event.groups.get("link"):
                candidate.facts.setdefault("link", event.groups["link"])
            for match in _TAIL.finditer(event.groups.get("tail", "")):
                candidate.note_facts(match)
        _read_destinations(evidence, candidate)
        words = collect_words(evidence, candidate, first_of(rows))
        named = dict.fromkeys(event.groups["peer"].partition("<")[0] for event in rows if event.groups.get("peer"))
        words["peers"] = name_hosts(list(candidate.peers) or list(named))
        name = f"completion status {status}" + (f" ({code['name']})" if code else "")
        who = words["who"]
        if status == 12:
            yield _unanswered(evidence, candidate, who, name, list(candidate.peers) or list(named))
            continue
        if status == 5 and role == "network":
            candidate.confidence = "low"
        on = f" on {candidate.nic}" if candidate.nic else ""
        candidate.summary = f"{who}: {name}{on}: {code.get('means', 'no meaning is known')}"
        candidate.next = [fill(text, words) for text in code.get("next", [])]
        yield candidate


def _read_status(words: str) -> int:
    """The number of a completion status, by the words that verbs have for it."""
    return next((number for form, number in _STATUSES if re.search(form, words, re.IGNORECASE)), _NO_NAME)


def _read_destinations(evidence: Evidence, candidate: PossibleCause) -> None:
    """Where UCX sent what was not answered: the line below the error of the same process."""
    ends = evidence.find_events("ucx-destination")
    own = [event for event in ends if (event.line.host, event.line.pid) in candidate.pids]
    ports = {event.groups["lid"] for event in own if event.groups.get("lid")}
    if len(ports) == 1:
        candidate.facts["lid"] = ports.pop()
    for event in own:
        if candidate.facts.get("link") == "RoCE" and event.groups.get("gid", "").startswith("fe80"):
            candidate.facts.setdefault("remote", event.groups["gid"])
            candidate.facts.setdefault("index", event.groups["index"])
    if own and ("lid" in candidate.facts or "remote" in candidate.facts):
        candidate.show(evidence, own[0].line)


def _unanswered(evidence: Evidence, candidate: PossibleCause, who: str, name: str, targets: list[str]) -> PossibleCause:
    """Retries exceeded: by the addresses in the line, and by whether anything had worked before."""
    peers = f" from {name_hosts(targets)}" if targets else ""
    on = f" on {candidate.nic}" if candidate.nic else ""
    local, remote = candidate.facts.get("local", ""), candidate.facts.get("remote", "")
    if is_link_local(evidence, candidate, local, remote):
        candidate.id, candidate.fault, candidate.confidence = "gid-link-local", "setting", "high"
        candidate.summary = (
            f"{who} got no answer{peers}{on} ({name}): the GIDs in use are link-local (fe80::), "
            f"which routed RoCE does not reach"
        )
        index = next(iter(evidence.settings.get("NCCL_IB_GID_INDEX", {})), None)
        if index is not None:
            candidate.facts.setdefault("index", index)
            candidate.summary += f"; NCCL_IB_GID_INDEX={index} chooses them"
        elif "index" in candidate.facts:
            candidate.summary += f" (GID index {candidate.facts['index']})"
        candidate.next = [
            "`show_gids` on both hosts: the index of the RoCE v2 GID with an IPv4 address",
            "UCX_IB_GID_INDEX with that index"
            if "link" in candidate.facts
            else "NCCL_IB_GID_INDEX with that index (NCCL 2.21 and later choose it without the setting)",
        ]
        return candidate
    candidate.confidence = "medium"
    worked = worked_before(evidence, candidate.at)
    infiniband = _is_infiniband(evidence, candidate) or local.startswith("fe80")
    at_once = _AT_ONCE_IB if infiniband else _AT_ONCE
    if worked is None:
        why = f"whether it had worked before is not in the log: if so, {_LATER}; else {at_once}"
    else:
        why = f"collectives had worked before: {_LATER}" if worked else f"no collective had worked before: {at_once}"
    lid = candidate.facts.get("lid")
    target = f" from LID {lid}" if lid and not peers else ""
    candidate.summary = f"{who} got no answer{peers}{target}{on} ({name}); {why}"
    is_common = (bool(lid) or len(targets) == 1) and len(candidate.hosts.keys() - candidate.peers.keys()) > 1
    if is_common:
        candidate.summary = (
            f"{name_hosts(list(candidate.hosts))} all got no answer{peers or target}{on} ({name}): that host, its port "
            "or its link is what they have in common"
        )
        candidate.fault = "peer"
    hosts = name_hosts(list(candidate.hosts | candidate.peers)) or "both hosts"
    later = [
        f"link flaps, drops and retransmissions of the rails on {hosts}: `fabricscope scan`, kernel log",
        "the peer's own log: whether its process ended first",
    ]
    if is_common and targets:
        later.insert(0, f"the rail of {targets[0]}{on}: `fabricscope scan` there, its kernel log, its switch port")
    first = (
        [
            f"`ibstat` on {hosts}: states and P_Keys of the ports; `sminfo`: the subnet manager",
            "`ib_write_bw` between the two ports",
        ]
        if infiniband
        else [
            f"`show_gids`, and active MTU of the rails on {hosts}: the same type and MTU at both ends",
            "`ping` from rail to rail with the MTU's size: `ping -M do -s 4000 -I INTERFACE PEER`",
        ]
    )
    candidate.next = later if worked else first if worked is False else [*later, first[0]]
    if lid:
        candidate.next.insert(
            0, f"`smpquery nodedesc {lid}`: the host of that port; its link, kernel log and processes"
        )
    return candidate


_OF_A_MAC = lazy_pattern(r"fe80:[\da-f:]{0,30}[\da-f]{0,2}ff:fe[\da-f]{2}:[\da-f]{1,4}$", re.IGNORECASE)


def is_link_local(evidence: Evidence, candidate: PossibleCause, *gids: str) -> bool:
    """Whether a GID is of RoCE and link-local. On InfiniBand fe80:: is the usual prefix, before a GUID; on RoCE an
    address that is made of the MAC follows it, with ff:fe in the middle."""
    own = [gid for gid in gids if gid.startswith("fe80")]
    if not own or _is_infiniband(evidence, candidate):
        return False
    layers = {layer for devices in evidence.ranks.devices.values() for _, _, layer in devices.values()}
    is_roce = candidate.facts.get("link") == "RoCE" or layers == {"RoCE"}
    return is_roce or any(_OF_A_MAC.match(gid.partition("%")[0]) for gid in own)


def _is_infiniband(evidence: Evidence, candidate: PossibleCause) -> bool:
    """Whether the NIC, or all that the job uses, is InfiniBand."""
    layers = {
        layer
        for devices in evidence.ranks.devices.values()
        for name, _, layer in devices.values()
        if candidate.nic in (None, name)
    }
    return candidate.facts.get("link") == "IB" or layers == {"IB"}


def _nic_of(event: LineEvent) -> str | None:
    """The NIC that a line names, else the only one that its rank uses."""
    match = re.search(r"\bhca ([\w.-]{1,60})", event.groups.get("tail", ""))
    return match[1] if match is not None else event.groups.get("nic") or None
