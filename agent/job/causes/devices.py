"""Causes in GPUs and their drivers: Xids, results of CUDA."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from agent.job.candidate import PossibleCause, first_of
from agent.job.catalogue import load_codes
from agent.job.causes.generic import describe, find_generic
from agent.job.causes.words import collect_words, fill
from agent.job.evidence import Evidence, LineEvent
from agent.rules.gpu.xid_catalogue import UNLISTED, XIDS


def find_xids(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """One candidate per GPU, by its most severe Xid."""
    by_gpu: dict[tuple[str | None, str], list[LineEvent]] = defaultdict(list)
    for event in events:
        by_gpu[evidence.host_of(event.line), event.groups["bus"].lower()].append(event)
    order = ("hard", "error", "note", "consequence")
    for (host, bus), rows in by_gpu.items():
        role, worst = min(((_judge_xid(event), event) for event in rows), key=lambda pair: order.index(pair[0]))
        number = worst.groups["number"]
        means = XIDS[number].meaning if number in XIDS else "see NVIDIA's list of Xids"
        candidate = PossibleCause("xid", role, "hardware" if role == "hard" else "software", "")
        candidate.add_events(evidence, [worst, *(event for event in rows if event is not worst)])
        candidate.ranks.clear()
        candidate.bus = _normal_bus(bus)
        there = [
            process
            for process in evidence.ranks.processes.values()
            if process.bus == candidate.bus and process.rank is not None and host in (None, process.host)
        ]
        if len({process.host for process in there}) == 1:
            candidate.ranks |= {process.rank: None for process in there if process.rank is not None}
            candidate.hosts.setdefault(there[0].host)
        who = f"on {host}" if host else ""
        if candidate.ranks:
            who = candidate.name(evidence)
        elif len(there) > 1:
            candidate.confidence = "medium"
            who = f"of {' or '.join(sorted({process.host for process in there})[:4])} (no line names its host)"
        candidate.summary = f"Xid {number} of the GPU at {candidate.bus}{f' {who}' if who else ''}: {means}"
        candidate.next = [
            f"`nvidia-smi -q` and the kernel log of {host or 'its host'}; `fabricscope scan` there names the "
            f"repair of this Xid"
        ]
        yield candidate


_CLEAN_UP, _MAY_FOLLOW = "45", "109"  # what comes after another error, and what comes of a program that hangs, too
_OF_PROGRAMS = ("CHECK_APP", "CONTACT_SUPPORT")  # what the catalogue looks into where a program may have caused it


def _find_role(number: str) -> str:
    """What an Xid of NVIDIA's catalogue is in a job.

    >>> [_find_role(number) for number in ("79", "154", "31", "45", "109", "999")]
    ['hard', 'note', 'error', 'consequence', 'error', 'note']
    """
    xid = XIDS.get(number, UNLISTED)
    if number == _MAY_FOLLOW:
        return "error"
    if xid.severity in ("critical", "error"):
        return "hard"
    if number == _CLEAN_UP:
        return "consequence"
    return "error" if xid.severity == "info" and xid.after in _OF_PROGRAMS else "note"


def _judge_xid(event: LineEvent) -> str:
    """The role of an Xid; the driver calls errors of NVLink 5 from which it recovers "Nonfatal"."""
    return "note" if "Nonfatal" in event.groups.get("text", "") else _find_role(event.groups["number"])


_NO_IMPORT = (
    ": memory of a peer's GPU cannot be imported: IMEX on an NVLink domain of several hosts (its channel in the "
    "container, its daemons), or GPUs that this container does not have"
)


def _normal_bus(bus: str) -> str:
    parts = bus.split(":")
    parts = ["0000", *parts] if len(parts) == 2 else parts
    last = parts[-1] if "." in parts[-1] else f"{parts[-1]}.0"
    return ":".join([parts[0][-4:], *parts[1:-1], last])


# Scales that a sound model does not fall to, in how many halvings; steps of which the loss is no number
_NEVER_USED, _FALLS, _NAN_STEPS = 128, 5, 3
_SINGLE = 3  # lines of steps that may follow the last of them: the bar of the same step


def find_not_finite(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """Ranks that computed no number; again and again on one rank alone is seldom the model's."""
    count, tasks = sum(event.count for event in events), {event.groups["task"] for event in events}
    again = f"{count} times, and no other rank did" if count > 1 and len(tasks) == 1 else ""
    for candidate in find_generic(evidence, events):
        describe(evidence, candidate, first_of(events), meaning=again)
        yield candidate


def find_skipped_steps(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """Steps that are all skipped until the end of the log; a scale that falls at the start finds its value."""
    rows = sorted(events, key=lambda event: (event.line.file, event.line.number))
    last = rows[-1]
    rows = [event for event in rows if event.line.file == last.line.file]
    after = sum(number > last.last for number in evidence.last_steps.get(last.line.file, ()))
    are_nan = all(event.groups.get("count", "0") != "0" for event in rows[-_NAN_STEPS:])
    has_fallen = len(rows) >= _FALLS and int(last.groups["number"]) <= _NEVER_USED
    if after > _SINGLE or not (has_fallen or (are_nan and len(rows) >= _NAN_STEPS)):
        return
    candidate = PossibleCause("steps-skipped", "slow", last.row.fault, "", "medium")
    candidate.add_events(evidence, rows)
    candidate.ranks.clear()  # the one that writes
    describe(evidence, candidate, last)
    yield candidate


def find_amd_faults(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """A GPU that ROCm calls by the number of its node: the driver's lines name its address, where it is only one."""
    buses = {event.groups["bus"] for event in evidence.find_events("amdgpu-line")}
    for candidate in find_generic(evidence, events):
        if len(buses) == 1:
            candidate.bus = next(iter(buses))
            candidate.summary += f"; the driver's lines are of the GPU at {candidate.bus}"
        yield candidate


def find_cuda(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """One candidate per error; the number decides, else the text."""
    codes = load_codes()["cuda"]
    texts = {
        str(entry[key]).lower(): number
        for number, entry in codes.items()
        for key in ("text", "also", "enum")
        if key in entry
    }
    groups: dict[str, list[LineEvent]] = defaultdict(list)
    for event in events:
        if event.line.level == "INFO":
            continue  # NCCL goes another way
        text = event.groups.get("text", "").strip().lower()
        number = event.groups.get("number") or next(
            (found for known, found in texts.items() if text.startswith(known) or (len(known) > 15 and known in text)),
            None,
        )
        groups[number or f"'{event.groups.get('text', '')[:80]}'"].append(event)
    for number, rows in groups.items():
        code: dict[str, Any] = codes.get(number, {})
        role = code.get("role", "error")
        if role in ("noise", "consequence"):
            continue
        candidate = PossibleCause(
            f"cuda-{number}" if number.isdecimal() else "cuda-error", role, code.get("fault", "unknown"), ""
        )
        candidate.confidence = "high" if role == "hard" else "medium"
        candidate.is_general = bool(code.get("general", not code))
        candidate.add_events(evidence, rows)
        words = collect_words(evidence, candidate, first_of(rows))
        means = f": {code['means']}" if code else ""
        if number == "101" and all((event.line.place or "").startswith("transport/p2p") for event in rows):
            candidate.id, means = "imex-not-working", _NO_IMPORT
        text = code["text"] if code else first_of(rows).groups.get("text", "").strip(" '")[:80]
        name = f"CUDA error {number}" + (f" ({text})" if text and text not in number else "")
        candidate.summary = f"{words['who']}: {name}{means}"
        candidate.next = [
            fill(text, words) for text in code.get("next", ["`nvidia-smi` and the kernel log of {host} for Xids"])
        ]
        yield candidate
