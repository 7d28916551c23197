"""Causes that need no rule of their own, warnings that no row is for, and the words of summaries."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from agent.job.candidate import PossibleCause, first_of, name_hosts, name_ranks
from agent.job.catalogue import load_codes
from agent.job.evidence import Evidence, LineEvent

_OF_THEIR_OWN = frozenset(("xid", "port", "missing", "hang", "exit", "fact", "noise"))  # roles
_NEAR_THE_END = 3  # lines
_BOX = 12  # of them, of a message of Open MPI


def find_generic(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """One candidate for all lines of a row and role, with the ranks that wrote them."""
    by_role: dict[str, list[LineEvent]] = defaultdict(list)
    for event in events:
        by_role[event.role].append(event)
    for role, rows in by_role.items():
        if role in _OF_THEIR_OWN or rows[0].row.id == "unwinding":
            continue
        row, first = rows[0].row, first_of(rows)
        candidate = PossibleCause(row.form_of or row.id, role, row.fault, "", row.confidence)
        candidate.is_plain = row.plain
        candidate.add_events(evidence, rows)
        candidate.nic = first.groups.get("nic") or None
        if candidate.nic and first.groups.get("port", "").isdecimal():
            candidate.port = int(first.groups["port"])
        candidate.ranks |= {int(task): None for event in rows if (task := event.groups.get("task", "")).isdecimal()}
        if "how" in first.groups:
            candidate.facts["how"] = first.groups["how"]
        candidate.hosts |= {name: None for event in rows if (name := event.groups.get("hosts"))}
        for event in rows:
            host = evidence.ranks.find_host(event.groups.get("peer", ""))
            if host is not None:
                candidate.peers.setdefault(host)
        describe(evidence, candidate, first)
        yield candidate


def find_boxed(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """Messages of Open MPI in a box, whose host is a line below them."""
    places = [event for event in evidence.events.values() if event.row.id == "mpi-local-host"]
    for candidate in find_generic(evidence, events):
        file, number = candidate.first_line or (0, 0)
        candidate.blame(
            hosts=(
                event.groups["hosts"].partition(".")[0]
                for event in places
                if event.line.file == file and 0 < event.line.number - number <= _BOX
            )
        )
        describe(evidence, candidate, first_of(events))
        yield candidate


def describe(evidence: Evidence, candidate: PossibleCause, event: LineEvent, **more: str) -> dict[str, str]:
    """Summary and next steps of the event's row; `more`: further words for their placeholders. Returns all words."""
    words = collect_words(evidence, candidate, event) | more
    candidate.summary = fill(event.row.summary, words)
    candidate.next = [fill(text, words) for text in event.row.next]
    return words


def collect_words(evidence: Evidence, candidate: PossibleCause, event: LineEvent) -> dict[str, str]:
    """What the placeholders of a row are filled with."""
    hosts = list(candidate.hosts)
    who = name_ranks(evidence, list(candidate.ranks), hosts)
    line = event.line.text[:200].strip()
    groups = {name: value for name, value in event.groups.items() if value}
    if "peer" in groups and (host := evidence.ranks.find_host(groups["peer"])) is not None:
        groups["peer"] = f"{groups['peer'].partition('<')[0]} ({host})" if host not in groups["peer"] else host
    where = who if len(hosts) < 2 or len(candidate.ranks) < 2 else name_hosts(hosts)
    where = "the host" if who == "a process" else where
    return {
        "who": who,
        "ranks": who if candidate.ranks else "",
        "where": where,
        "host": name_hosts(hosts) if hosts else "the host",
        "text": line,
        "line": line,
        **groups,
    }


def fill(template: str, words: dict[str, str]) -> str:
    """A template with its placeholders; those that the line does not have are left out."""
    known = {name: value for name, value in words.items() if value}
    while (optional := _OPTIONAL.search(template)) is not None:  # the innermost first
        names = re.findall(r"\{(\w+)\}", optional[1])
        kept = optional[1] if known.keys() >= set(names) else ""
        template = template[: optional.start()] + kept + template[optional.end() :]
    filled = re.sub(r"( ?)\{(\w+)\}", lambda match: match[1] + known[match[2]] if match[2] in known else "", template)
    return filled.strip().rstrip(": ")


_OPTIONAL = re.compile(r"\[\[((?:(?!\[\[|\]\]).)*)\]\]")


def find_unexplained(evidence: Evidence) -> Iterator[PossibleCause]:
    """Warnings that no row is for, and a log that ends in an error: never silent, and never sure."""
    if evidence.unexplained:
        events = list(evidence.unexplained.values())
        first = first_of(events)
        candidate = PossibleCause("unexplained", "unexplained", "unknown", "", "low")
        candidate.add_events(evidence, events)
        text, place = (
            first.line.text[:160],
            (first.line.place or "").rpartition("/src/")[2],
        )  # a build has a path before it
        part = next((entry for start, entry in load_codes()["place"].items() if place.startswith(start)), None)
        words = collect_words(evidence, candidate, first)
        what = f"NCCL warns of {part['means']}" if part else "NCCL warns of a failure"
        candidate.summary = f"{words['who']}: {what}, and the table of failures does not have it: {text}"
        candidate.next = ["the source of NCCL at the line's file and number; the lines around it"]
        if part:
            candidate.next.insert(0, fill(part["check"], words))
        yield candidate
    outputs = {
        file.name for file in evidence.files if file.read_as in ("kernel log", "log of a service", "saved output")
    }
    for file, line in sorted(evidence.last_errors.items()):
        if evidence.names[file] in outputs:
            continue  # of a host, not of the job
        steps = evidence.last_steps.get(file)
        if steps and steps[-1] > line.number:
            continue  # the job went on
        tail = evidence.tails.get(file)
        if tail is not None and tail.number - line.number <= _NEAR_THE_END:
            candidate = PossibleCause("ends-in-error", "unexplained", "unknown", "", "low")
            candidate.add(evidence, line)
            text = line.text.strip()[:160]
            candidate.summary = f"{evidence.names[file]} ends in an error that is not in the table of failures: {text}"
            start = evidence.first_errors.get(file)
            if start is not None and start.number < line.number:
                candidate.show(evidence, start)
                candidate.summary += f"; its first error is in line {start.number}"
            candidate.next = ["the first error of the file, and the lines before it; the logs of the other ranks"]
            if text.endswith("Traceback (most recent call last):"):
                candidate.next.insert(0, "the rest of this traceback: its last line has the error")
            yield candidate
            return
