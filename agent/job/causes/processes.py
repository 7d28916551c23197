"""Processes that ended, were killed, never came, or were declared dead."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from agent.job.candidate import PossibleCause, find_hosts, first_of, name_hosts, name_numbers, suspect_ranks
from agent.job.causes.generic import describe, find_generic
from agent.job.evidence import Evidence, LineEvent
from agent.job.lines import LogLine
from agent.model.node import shorten_host


class _Exit(NamedTuple):
    """How a process ended, as a launcher writes it."""

    how: str
    hosts: str | None
    tasks: list[int]
    line: LogLine
    groups: dict[str, str]  # what else the line names
    is_first: bool = False  # by the launcher


def find_exits(evidence: Evidence, events: dict[str, list[LineEvent]]) -> Iterator[PossibleCause]:
    """The process that ended first, by launchers; those that were terminated afterwards are victims."""
    exits = [_read_exit(event) for name in _OF_TASKS for event in events.get(name, ())]
    exits += [
        _Exit(
            "" if row.code is None else f"code {row.code}",
            row.host,
            [] if row.rank is None else [row.rank],
            row.line,
            {},
            row.is_first,
        )
        for row in evidence.exits
    ]
    exits += [_read_exit(event) for name in _OF_PROCESSES for event in events.get(name, ())]
    own = [row for row in exits if not _is_victim(row.how)]
    if any(row.rank is not None for row in evidence.exits):  # a task of srun is torchrun, and ends with code 1 after it
        own = [row for row in own if row.how != "Exited with exit code 1"]
    own.sort(key=lambda row: (not row.is_first, not (row.how or row.hosts or row.tasks)))  # last what names nothing
    killed = events.get("oom-kill")
    if not own:
        return
    # an abort is mostly the watchdog of a rank that waited for another one
    first = next((row for row in own if _read_how(row.how)[0] != "aborted"), own[0])
    how, hosts, tasks, line, groups, is_first = first
    host = shorten_host(hosts) if hosts and "[" not in hosts and "," not in hosts else None
    key, role, fault, text = _read_how(how)
    if killed and key in ("killed", "oom-kill"):
        return  # that candidate takes these ranks
    if not (how or hosts or tasks):
        role, fault = "consequence", "unknown"  # mpirun names no process
    candidate = PossibleCause(key, role, fault, "", "medium")
    alike = sorted({task for row in own if key == "exit-code" and row.how == how for task in row.tasks})
    if len(alike) > len(tasks) + 1 and not is_first:  # the order of such lines shows nothing
        tasks, host, text = alike, None, f"{text.replace('ended first', 'ended')}; no line shows the first of them"
    lost = {event.groups["hosts"]: None for event in events.get("mpi-daemon-lost", [])}
    if key == "killed" and not host and not tasks and len(lost) == 1:
        host = next(iter(lost))  # whose container it was
    candidate.blame(tasks, [*([host] if host else ()), *find_hosts(evidence, tasks)])
    who = candidate.name(evidence)
    if groups.get("local"):
        who = f"the process of local rank {groups['local']} (pid {groups['pid']})"
    candidate.summary = f"{who} {text.replace('was ', 'were ', 1) if len(candidate.ranks) > 1 else text}"
    candidate.show(evidence, line)
    candidate.at, candidate.first_line = line.at, (line.file, line.number)
    where = next(iter(candidate.hosts), "its host")
    candidate.next = [
        f"the kernel log of {where} at that time: out of memory, Xids, segfaults"
        if fault != "setting"
        else f"`df /dev/shm` on {where}",
        f"the last lines of the log of {who}",
    ]
    if key in ("exit-code", "aborted"):
        candidate.next.reverse()  # it wrote why
    yield candidate


def _read_exit(event: LineEvent) -> _Exit:
    groups = event.groups
    how = groups.get("how") or next((f"{name} {groups[name]}" for name in ("signal", "code") if groups.get(name)), "")
    how = _BY_RAY if event.row.id == "ray-worker-died" else how
    hosts = event.line.host if groups.get("code") else groups.get("hosts")
    return _Exit(how, hosts, read_numbers(groups.get("tasks") or groups.get("task") or ""), event.line, groups)


def _is_victim(how: str) -> bool:
    """Ended by the launcher because another had ended."""
    return bool(re.search(r"Terminated|code (?:-15|143)\b|signal 15\b|SIGTERM|Broken pipe", how))


def _read_how(how: str) -> tuple[str, str, str, str]:
    """id, role, fault and text of an exit."""
    for form, answer in _HOW:
        if re.search(form, how):
            return answer
    signal = re.search(r"(?:code -|signal )(\d{1,2})\b", how)
    if signal is not None:
        return "signal", "exit", "software", f"was ended by signal {signal[1]}"
    return "exit-code", "exit", "software", f"ended first, with {how}" if how else "ended first"


_OF_TASKS, _OF_PROCESSES = ("task-exit", "mpi-exit", "trainer-exit", "spawn-exit"), ("process-exit", "ray-worker-died")
_BY_RAY = "Ray"
_HOW = (
    (_BY_RAY, ("worker-died", "exit", "rank", "ended without a message to Ray: killed, or crashed")),
    (
        r"code 12[67]\b",
        (
            "program-not-found",
            "hard",
            "setting",
            "could not start its program: not found there, or no program (code 127, 126)",
        ),
    ),
    (r"Out Of Memory", ("oom-kill", "hard", "software", "was killed: out of host memory")),
    (
        r"code (?:-9|137)\b|Killed|signal 9\b|SIGKILL",
        ("killed", "exit", "rank", "was killed (SIGKILL): by the out-of-memory killer, a limit, or a person"),
    ),
    (
        r"code (?:-7|135)\b|Bus error|signal 7\b|SIGBUS",
        ("bus-error", "exit", "setting", "ended with a bus error: /dev/shm is full, or a mapped file was cut"),
    ),
    (
        r"code (?:-11|139)\b|Segmentation fault|signal 11\b|SIGSEGV",
        ("crash", "exit", "software", "crashed (segmentation fault)"),
    ),
    (
        r"code (?:-8|136)\b|signal 8\b|SIGFPE",
        ("crash", "exit", "software", "ended by a floating point exception (SIGFPE): numbers of the program itself"),
    ),
    (
        r"code (?:-6|134)\b|Aborted|signal 6\b|SIGABRT",
        ("aborted", "exit", "software", "aborted: its watchdog or an assertion"),
    ),
)


def read_numbers(text: str) -> list[int]:
    """Task numbers of "8-10,12".

    >>> read_numbers("8-10,12")
    [8, 9, 10, 12]
    """
    numbers: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if first.isdecimal() and (last.isdecimal() or not dash):
            numbers += range(int(first), min(int(last or first), int(first) + 100_000) + 1)
    return numbers


def find_oom(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """Who was killed: by the process number, or by the launcher's line about the task."""
    candidate = PossibleCause("oom-kill", "hard", "software", "")
    candidate.add_events(evidence, events)
    candidate.ranks.clear()
    for event in events:
        pid = event.groups.get("pid")
        for process in evidence.ranks.processes.values():
            if pid and process.pid == int(pid) and process.rank is not None:
                candidate.ranks.setdefault(process.rank)
                candidate.hosts.setdefault(process.host)
    for event in evidence.find_events("task-exit"):
        if re.search(r"Out Of Memory|Killed", event.groups.get("how", "")):
            tasks, hosts = read_numbers(event.groups["tasks"]), event.groups["hosts"]
            if len(tasks) <= 8 and not candidate.ranks:
                candidate.blame(tasks)
                candidate.hosts |= {hosts: None} if "[" not in hosts and "," not in hosts else {}
            candidate.show(evidence, event.line)
    for row in evidence.exits:
        if row.code == -9 and not candidate.ranks and row.rank is not None:
            candidate.ranks.setdefault(row.rank)
            candidate.hosts |= {row.host: None} if row.host else {}
            candidate.show(evidence, row.line)
    if candidate.ranks:
        candidate.hosts = dict.fromkeys(find_hosts(evidence, list(candidate.ranks))) or candidate.hosts
    describe(evidence, candidate, events[0])
    yield candidate


def find_missing(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """Ranks that a line names as missing."""
    listed = evidence.find_events("jax-barrier")
    # which names its tasks in the lines below it
    dead = [event for event in evidence.find_events("jax-task-dead") if "missing" not in event.groups]
    if dead and events[0].row.id == "jax-barrier":
        return
    if dead and events[0].row.id == "jax-task-dead":
        events = [*events, *(event for event in listed if event.line.number > dead[0].line.number)]
    ranks = [
        number
        for event in events
        for number in read_numbers(
            (event.groups.get("missing") or event.groups.get("stalled", "")).replace(" ", "").strip(",")
        )
    ]
    row, first = events[0].row, first_of(events)
    role = row.role if ranks else "network"
    candidate = PossibleCause(row.id, role, row.fault, "", row.judge(role))
    candidate.blame(sorted(set(ranks)), find_hosts(evidence, ranks))
    describe(evidence, candidate, first)
    candidate.summary = f"{candidate.name(evidence) if ranks else 'a rank'} {_ABSENT[row.id]}"
    if row.id in _AT_START and len(ranks) * 2 > max(evidence.ranks.world, *ranks):
        candidate.fault, candidate.confidence = "setting", "medium"
        candidate.next.append(
            "as most ranks are missing: whether they were started, and reach the address of rank 0 that they were "
            "given: not localhost, an open port"
        )
    candidate.show(evidence, first.line)
    candidate.at, candidate.first_line = first.line.at, (first.line.file, first.line.number)
    yield candidate


_AT_START = ("jax-barrier", "hccl-root-timeout")  # where processes that were not started are missing, too
_ABSENT = {
    "monitored-barrier": "did not come to the barrier",
    "hccl-root-timeout": "never came to the root",
    "horovod-stalled": "did not submit tensors that the others wait for",
    "jax-barrier": "did not come to the barrier of JAX",
    "jax-task-dead": "stopped: JAX got no heartbeat from it",
    "jax-restarted": "restarted while the others of JAX went on",
    "unique-id-missing": "did not publish the id of the communicator: it never came to its first collective, or ended",
}


def find_store_barrier(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """Ranks that did not come to the store; or more than there are: a store that earlier processes used, too."""
    for candidate in find_generic(evidence, events):
        world, count = (max(int(event.groups[name]) for event in events) for name in ("world", "count"))
        if count > world:
            candidate.fault, candidate.role, candidate.confidence = "software", "error", "high"
            candidate.summary = (
                f"{count} processes came to the first barrier of a job of {world} ranks: the world size is wrong, "
                "ranks are given twice, or the store has those of an earlier job"
            )
            candidate.next = [
                "the world size and rank of each process: the launcher's number of processes per host against the "
                "program's own",
                "a store of an earlier job: another MASTER_PORT, or the file of init_method removed before the start",
            ]
        yield candidate


def find_store_waits(evidence: Evidence, events: dict[str, list[LineEvent]]) -> Iterator[PossibleCause]:
    """Ranks that still wait for others at the first barrier where the log ends."""
    waits = events.get("store-barrier-waiting", [])
    tails = "\n".join(tail.line for tail in evidence.tails.values())
    if not waits or "store-barrier-done" in events or "store-barrier" in events or _WAITS not in tails:
        return
    world, count = (max(int(event.groups[name]) for event in waits) for name in ("world", "count"))
    missing = sorted(set(range(min(world, _MOST_RANKS))) - {int(event.groups["number"]) for event in waits})
    if not 0 < count < world:
        return
    again = any(event.count > 1 for event in waits)  # they write so every ten seconds
    who = f"; rank {name_numbers(missing)} has no such line" if len(missing) == world - count else ""
    text = f"{count} of {world} ranks had come to the first barrier where the log ends{who}"
    candidate = PossibleCause("store-barrier-waiting", "hang" if again else "note", "peer", text, "low")
    candidate.waiting = frozenset(int(event.groups["number"]) for event in waits)
    candidate.next = [
        f"the log of rank {name_numbers(missing[:8])}: whether it started, and its own first error"
        if who
        else "the launcher's line of each rank: which did not start"
    ]
    candidate.show(evidence, *(event.line for event in waits[:2]))
    yield candidate


_WAITS = "Waiting in store based barrier"
_MOST_RANKS = 100_000


def find_unplaced(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """Parts of a job for which there is no host; a note where one was found later."""
    placed = {event.groups["number"] for event in evidence.find_events("pod-placed")}
    pods = {pod for event in events if (pod := event.groups.get("pod"))}
    ray = [event.groups for event in evidence.find_events("ray-resources")]
    there = max((int(groups["number"]) for groups in ray if "number" in groups), default=0)
    wanted = max((int(groups["seq"]) for groups in ray if "seq" in groups), default=0)
    left_out = [event for event in events if event.groups.get("pod") in pods - placed]
    for candidate in find_generic(evidence, left_out or events):
        if 0 < there < wanted:
            candidate.summary += f"; Ray has {there} GPUs, and {wanted} are asked for: a host registered fewer"
        if placed and pods <= placed:
            candidate.role = "note"
        elif pods and not evidence.progress:
            candidate.role = "error"  # which the others waited for
            candidate.summary += f" (pod {', '.join(sorted(pods - placed)[:3])})"
        yield candidate


def find_late(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """A rendezvous that ran into its time-out; who comes to it after that is the one that the others waited for."""
    yield from find_generic(evidence, events)
    gave_up = {rank for event in events if (rank := evidence.rank_of(event.line)) is not None}
    last = max((event.line for event in events), key=lambda line: (line.file, line.number))
    late = [
        event
        for event in evidence.find_events("store-unreachable")
        if event.line.file == last.file and event.line.number > last.number
        if (rank := evidence.rank_of(event.line)) is not None and rank not in gave_up
    ]
    ranks = sorted({rank for event in late if (rank := evidence.rank_of(event.line)) is not None})
    if gave_up and ranks and len(ranks) < len(gave_up):
        text = "came to the rendezvous after the others had given up: what it did before took too long"
        candidate = suspect_ranks(evidence, "rendezvous-late", "error", ranks, text, "medium")
        candidate.add_events(evidence, late)
        candidate.next = [
            "the lines of this rank before its first one of the rendezvous: the image that is imported, a mount, a "
            "download; the same on the other hosts, and how long it took there",
            "the image or data on local storage of every host before the job starts, or a longer time-out",
        ]
        yield candidate


def find_missing_gpus(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """GPUs for which a job waits that never ran; the host that has fewer than its own number is named."""
    short = [event for event in events if int(event.groups["first"]) < int(event.groups["second"])]
    last = max(events, key=lambda event: event.line.number)
    if last not in short or evidence.progress:
        return
    named = [event for event in short if "hosts" in event.groups]
    candidate = PossibleCause(last.row.id, "hard", last.row.fault, "", "medium" if named else "low")
    candidate.add_events(evidence, [*named, last] if last not in named else named)
    candidate.hosts = dict.fromkeys(event.groups["hosts"] for event in named)
    where = ", ".join(f"{row['hosts']} has {row['first']} of {row['second']}" for row in (e.groups for e in named[:8]))
    describe(evidence, candidate, last, hosts=where)
    yield candidate


def find_dead(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """The first that was declared dead."""
    first = first_of(events)
    row = first.row
    candidate = PossibleCause(row.id, "dead", row.fault, "", row.judge("dead"))
    place = first.groups.get("peer") or first.groups.get("where", "").partition("/")[0]
    host = evidence.ranks.find_host(place) or place.partition("<")[0]
    device = first.groups.get("where", "").partition("/")[2]
    ranks = [
        rank
        for rank in evidence.ranks.ranks()
        if evidence.ranks.host(rank) == host and str(evidence.ranks.local(rank)) == device
    ]
    candidate.blame(ranks, [host])
    what = first.groups.get("kind")
    name = f"{host}, device {device}" if device else host
    candidate.summary = (
        f"{name}: {what} (all ranks of HCCL name the root this way)"
        if what
        else f"a process on {host} died: RAS of NCCL declared it dead first"
    )
    candidate.next = [f"the log of {name}: what it wrote last", f"the kernel log of {host}"]
    candidate.show(evidence, first.line)
    candidate.at = first.line.at
    yield candidate


def find_alone(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """Processes of which each is the only one of its job, on several hosts: their MPI does not find the launcher."""
    hosts = list(dict.fromkeys(host for event in events if (host := event.groups.get("hosts"))))
    if len(hosts) > 1:
        count = sum(event.count for event in events)
        text = f"{count} processes on {name_hosts(hosts)} run as rank 0 of 1 each: jobs of their own, not one job"
        candidate = PossibleCause("ranks-alone", "hard", "setting", text, "medium")
        candidate.add_events(evidence, events)
        candidate.next = [
            "`srun --mpi=list` and `ompi_info | grep -i pmi`: --mpi= must name what the program's MPI was built for "
            "(pmix, pmi2), or start it by its own mpirun"
        ]
        yield candidate
