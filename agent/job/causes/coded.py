"""Failures whose line has a code of its library: EFA, Slingshot's NIC, NIXL."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

from agent.job.candidate import PossibleCause, first_of, name_hosts
from agent.job.catalogue import load_codes
from agent.job.causes.generic import find_generic
from agent.job.causes.words import collect_words, fill
from agent.job.evidence import Evidence, LineEvent
from probes.text import lazy_pattern


def find_efa(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """Failed requests of EFA, by the status of its provider."""
    codes = load_codes()["efa"]
    for candidate in find_generic(evidence, events):
        groups = first_of(events).groups
        status = groups.get("status") or groups.get("provider")
        code = codes.get(status or "", {})
        if not code and groups.get("code") in _RAW_STATUSES:
            status = groups["code"]
            code = load_codes()["completion"][status]
        if not code:
            words = " ".join(event.line.text for event in events).lower()
            status, code = next(((number, row) for number, row in codes.items() if row["name"] in words), (status, {}))
        peers = list(dict.fromkeys(name for event in events for name in _EFA_PEER.findall(event.line.text)))
        if code:
            candidate.summary = f"{candidate.name(evidence)}: EFA status {status} ({code['name']}): {code['means']}"
            candidate.fault = code["fault"]
            candidate.next = [
                "the security group of all hosts: all traffic from and to itself, inbound and outbound"
                if code["fault"] == "fabric"
                else "the peer's own log: whether its process ended first"
            ]
        elif "text" not in groups:
            candidate.summary += f": {first_of(events).line.text[:160]}"
        if peers:
            candidate.summary += f"; its peer: {name_hosts(peers)}"
        yield candidate


_EFA_PEER = lazy_pattern(r"Peer host id: (i-[0-9a-f]{4,32})")
_RAW_STATUSES = ("20", "21")  # of libfabric before 1.16: a status of verbs, which is no number of an error here


def find_coded(table: str) -> Callable[[Evidence, list[LineEvent]], Iterator[PossibleCause]]:
    """Failures whose line has a code, each by what this table of codes has for it."""

    def find(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
        by_code: dict[str, list[LineEvent]] = defaultdict(list)
        for event in events:
            by_code[event.groups.get("status", "")].append(event)
        for status, rows in by_code.items():
            for candidate in find_generic(evidence, rows):
                code = load_codes()[table].get(status, {})
                if code:
                    words = collect_words(evidence, candidate, first_of(rows))
                    candidate.summary += f": {code['means']}"
                    candidate.fault, candidate.next = code["fault"], [fill(text, words) for text in code["next"]]
                yield candidate

    return find
