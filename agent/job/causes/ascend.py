"""Causes that HCCL names: links that did not come up, fault codes, NPUs that waited."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from agent.job.candidate import PossibleCause, find_hosts, first_of, name_numbers, name_ranks, suspect_ranks
from agent.job.catalogue import load_codes
from agent.job.causes.generic import describe, find_generic
from agent.job.evidence import Evidence, LineEvent
from probes.text import lazy_pattern

_PEER = lazy_pattern(r"\bdst_rank\[(\d{1,7})\]")


def find_link_timeouts(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """Lines beside HCCL's table of links, which has the ranks: then they show nothing more."""
    for candidate in find_generic(evidence, events):
        candidate.role = "consequence" if evidence.links else candidate.role
        if candidate.ranks:
            candidate.summary += f": {candidate.name(evidence)} waited for the other end"
        candidate.next = [
            "the first error of the other ranks: one that ended, or that came late, lets all others wait",
            "the table LINK_ERROR_INFO of the plogs of all ranks: addresses, ranks and TLS status",
        ]
        yield candidate


def find_hccl_codes(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """One candidate per fault code."""
    codes = load_codes()["hccl"]
    groups: dict[str, list[LineEvent]] = defaultdict(list)
    for event in events:
        groups[event.groups["code"]].append(event)
    for name, rows in groups.items():
        row = rows[0].row
        candidate = PossibleCause(f"hccl-{name.lower()}", "error", row.fault, "")
        candidate.add_events(evidence, rows)
        describe(evidence, candidate, first_of(rows), meaning=codes[name]["means"], check=codes[name]["check"])
        peers = {int(match[1]) for event in rows if (match := _PEER.search(event.groups.get("text", "")))}
        if peers:
            hosts = find_hosts(evidence, peers)
            candidate.fault = "peer"
            candidate.peers |= dict.fromkeys(hosts)
            candidate.summary += f"; its peer is {name_ranks(evidence, sorted(peers), hosts)}"
            candidate.next.insert(0, f"the log of rank {name_numbers(peers)}: its own first error")
        yield candidate


def find_links(evidence: Evidence) -> Iterator[PossibleCause]:
    """HCCL's table of links that did not come up: TLS that differs, else the rank that most others miss."""
    if not evidence.links:
        return
    tls: dict[int, str] = {link.rank: link.tls for link in evidence.links if link.tls in ("ENABLE", "DISABLE")}
    states = sorted(set(tls.values()), key=lambda state: sum(value == state for value in tls.values()))
    accused: dict[int, set[int]] = defaultdict(set)
    for link in evidence.links:
        accused[link.peer].add(link.rank)
    most = max(accused, key=lambda rank: (len(accused[rank]), -rank))
    if len(states) == 2:
        odd = sorted(rank for rank, state in tls.items() if state == states[0])
        hosts = find_hosts(evidence, odd)
        who = _name_npus(evidence, odd, hosts)
        on = "on" if states[0] == "ENABLE" else "off"
        text = (
            f"TLS is {on} for {who} and {'off' if on == 'on' else 'on'} for the others: links between them never "
            f"come up"
        )
        candidate = PossibleCause("tls-differs", "hard", "setting", text)
        candidate.next = [
            "`hccn_tool -i N -tls -g` on all NPUs, then the same value everywhere (`hccn_tool -i N -tls -s "
            "enable 0` or 1)"
        ]
        ranks = odd
    else:
        hosts = find_hosts(evidence, [most])
        who = _name_npus(evidence, [most], hosts)
        candidate = PossibleCause(
            "link-not-established",
            "missing" if len(accused[most]) > 1 else "network",
            "peer",
            f"no link to {who} was established: {len(accused[most])} rank{'s' if len(accused[most]) > 1 else ''} "
            f"waited for it",
            "medium",
        )
        candidate.next = [
            f"the log of rank {most}: whether its process is there, and its own first error",
            "`hccn_tool -i N -link -g` and `-net_health -g` of that NPU, and its address",
        ]
        ranks = [most]
    candidate.blame(ranks, hosts)
    lines = [link for link in evidence.links if link.rank in ranks] + [
        link for link in evidence.links if link.peer in ranks
    ]
    candidate.show(evidence, *(link.line for link in lines[:4]))
    candidate.at = next((link.line.at for link in lines[:4] if link.line.at), None)
    candidate.count = len(evidence.links)
    yield candidate


def _name_npus(evidence: Evidence, ranks: Sequence[int], hosts: Sequence[str]) -> str:
    if len(ranks) != 1:
        return name_ranks(evidence, ranks, hosts)
    local = evidence.ranks.local(ranks[0])
    device = f"device {local} of " if local is not None and hosts else ""
    return f"rank {ranks[0]} ({device}{hosts[0]})" if hosts else f"rank {ranks[0]}"


def find_npu_calls(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """Calls that fail. One that waits for the NPU returns the time-out that HCCL states."""
    waits = all("Synchronize" in event.groups.get("call", "Synchronize") for event in events)
    for candidate in find_generic(evidence, events):
        if waits and evidence.find_events("hccl-notify-timeout"):
            candidate.role = "consequence"
        yield candidate


def find_waiting_npus(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """Ranks of HCCL that waited until their time-out; one of few that did not is the suspect."""
    waited = {int(event.groups["number"]) for event in events if event.groups.get("number")}
    world = evidence.ranks.world
    rest = [rank for rank in range(world) if rank not in waited] if world <= 100_000 else []
    row = events[0].row
    if waited and rest and len(rest) <= max(1, world // 4):
        text = f"did not wait: {len(waited)} ranks waited for it until their time-out"
        candidate = suspect_ranks(evidence, "rank-silent", "missing", rest, text, "medium")
        candidate.next = [f"the log of rank {rest[0]}: its own first error, or what it was doing"]
        candidate.show(evidence, *(event.line for event in events[:2]))
    else:
        candidate = PossibleCause(
            "collective-stuck",
            "hang",
            "unknown",
            "ranks waited for others until their time-out (HCCL_EXEC_TIMEOUT)",
            "low",
        )
        candidate.add_events(evidence, events)
        candidate.waits_for_all = True
        candidate.next = [
            "the logs of all ranks: the one that did not wait is the suspect; compare tag, index and count"
        ]
        awaited = {event.groups["from"]: event.groups.get("group") for event in events if event.groups.get("from")}
        if awaited:
            named = [f"rank {rank}{f' of {group}' if group else ''}" for rank, group in awaited.items()]
            candidate.summary = (
                f"{candidate.name(evidence)} waited until the time-out (HCCL_EXEC_TIMEOUT) for {', '.join(named[:4])}"
                " (the group's own numbers)"
            )
            candidate.next.insert(0, f"the log of {named[0]}: its own first error, or for whom it waits itself")
    candidate.id = candidate.id if candidate.role == "missing" else row.id
    candidate.at = first_of(events).line.at
    yield candidate
