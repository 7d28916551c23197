"""The answer about a job, in words: its headline, causes in order, what followed, and what the files do not show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from agent.job.candidate import ORDER, SLOW, PossibleCause, name_numbers, name_ranks
from agent.job.causes.watchdog import last_of_ranks
from agent.job.conclusion import Conclusion
from agent.job.evidence import Evidence
from agent.job.runs import Run, name_parts
from agent.model.job_answer import (
    AtFault,
    CannotTell,
    Job,
    JobAnswer,
    JobCause,
    JobConsequence,
    JobSource,
    Library,
    OtherJob,
    Rank,
    TimelineEntry,
)
from agent.model.report import Generator
from agent.recommend.constants import parse_version
from agent.version import VERSION
from probes.text import lazy_pattern

_MOST_FILES = 256
_MOST_RANKS = 65_536
_MOST_TIMES = 400
_OWN_REASONS = frozenset(map(ORDER.get, ("hard", "port", "setup", "error")))  # what outputs beside it need not explain
LOOKED_FOR = (
    "looked for: NCCL, RCCL, HCCL, UCX, libfabric, MPI; exits of launchers and schedulers; steps and their times; "
    "errors"
)


def write_answer(conclusion: Conclusion, generated_at: str) -> JobAnswer:
    """The answer, without what reports and tables add."""
    evidence = conclusion.evidence
    causes = [_write_cause(cause, evidence) for cause in conclusion.causes]
    ended = conclusion.ended
    cannot = list(list_unknown(conclusion))
    return JobAnswer(
        generated_at=generated_at,
        generator=Generator(name="fabricscope", version=VERSION),
        headline=_write_headline(conclusion, causes, cannot),
        source=JobSource(
            files=evidence.files[:_MOST_FILES], files_more=max(0, len(evidence.files) - _MOST_FILES) or None
        ),
        job=_describe_job(conclusion, ended),
        ranks=_list_ranks(conclusion),
        causes=causes,
        consequences=_list_consequences(conclusion),
        settings=conclusion.settings,
        timeline=_list_times(conclusion),
        notes=[_write_note(note) for note in sorted(conclusion.notes, key=lambda one: one.id)],
        cannot_tell=cannot,
    )


def add_other_jobs(answer: JobAnswer, conclusions: Sequence[Conclusion], runs: Sequence[Run], chosen: int) -> JobAnswer:
    """The answer, with the others of several jobs in the files in short."""
    if len(runs) < 2:
        return answer
    kept = runs[-len(conclusions) :]
    others = []
    for number, (conclusion, run) in enumerate(zip(conclusions, kept, strict=True)):
        if number != chosen:
            whole = write_answer(conclusion, "")
            others.append(
                OtherJob(where=name_parts(run)[:_MOST_FILES], headline=whole.headline, job=whole.job,
                         causes=whole.causes[:3])
            )  # fmt: skip
    return msgspec.structs.replace(
        answer, where=name_parts(kept[chosen])[:_MOST_FILES], other_jobs=others,
        other_jobs_more=len(runs) - len(kept) or None,
    )  # fmt: skip


def _write_cause(cause: PossibleCause, evidence: Evidence) -> JobCause:
    hosts, ranks = list(cause.hosts), sorted(cause.ranks)
    gpu = cause.gpu
    if gpu is None and len(ranks) == 1 and (found := evidence.ranks.gpu(ranks[0])) is not None:
        gpu = found.pci or (f"GPU{found.index}" if found.index is not None else None)
    fault = AtFault(
        kind=cause.fault,
        ranks=ranks,
        host=hosts[0] if len(hosts) == 1 else None,
        gpu=gpu or cause.bus,
        nic=cause.nic,
        port=cause.port,
    )
    return JobCause(
        id=cause.id,
        confidence=cause.confidence,
        at_fault=fault,
        summary=cause.summary,
        at=cause.at.format(evidence.year) if cause.at else None,
        evidence=cause.evidence,
        next=cause.next,
        findings=cause.findings,
    )


def _write_headline(conclusion: Conclusion, causes: Sequence[JobCause], cannot: Sequence[CannotTell]) -> str:
    first = conclusion.causes[0] if conclusion.causes else None
    beside = next((cause.summary for cause in conclusion.causes if cause.id == "output-shows"), None)
    shown = f"; an output beside the log: {beside}" if beside else ""
    signs = [cause for cause in conclusion.causes[1:] if cause.id == "earlier-sign" or cause.facts.get("version")]
    shown = f"; {signs[0].summary}" if signs and not shown else shown
    words = {"failed": "Failed", "hung": "Hung", "killed": "Killed"}
    if first is not None and first.id != "output-shows":
        is_sure = first.confidence == "high" or (first.order in _OWN_REASONS and first.confidence != "low")
        return f"{words.get(conclusion.ended, 'Slow')}: {causes[0].summary}{'' if is_sure else shown}"
    if conclusion.ended == "well":
        return "No failure in it"
    if not conclusion.causes and (works := _describe_work(conclusion.evidence)) is not None:
        return works
    reason = cannot[0].what if cannot else "it has no line that shows an end"
    save = f"; save {cannot[0].save}" if cannot and cannot[0].save and not shown else ""
    return f"Not known from these files: {reason}{shown}{save}"


_LAST_LINES = 12
_NOT_A_NUMBER = lazy_pattern(r"(?i)\bnan\b(?! iterations)")
_SETTLED = 10  # steps after a line that shows something unusual


def _describe_work(evidence: Evidence) -> str | None:
    """What the job did until its last lines, where nothing of note came before: a server has no regular end."""
    if evidence.limit_seconds is not None:
        return None
    ends = [evidence.tails[file].number - steps[-1] for file, steps in evidence.last_steps.items() if len(steps) > 1]
    signs = [line for lines in evidence.signs.values() for line in lines.values()]
    is_odd = any(_NOT_A_NUMBER.search(tail.line) is not None for tail in evidence.tails.values())
    is_odd |= any(sum(n > line.number for n in evidence.last_steps.get(line.file, ())) < _SETTLED for line in signs)
    if not ends or min(ends) > _LAST_LINES or is_odd:
        return None
    work = "the server answers requests" if evidence.serves else "the job makes steps"
    return (
        f"At work in its last lines: {work}, and no failure is in these files; that it went on, or ended well, "
        "they do not show"
    )


def _describe_job(conclusion: Conclusion, ended: str) -> Job:
    evidence = conclusion.evidence
    ranks = evidence.ranks
    name, version = evidence.library or (None, None)
    framework = max(evidence.framework, key=lambda key: (evidence.framework[key], key)) if evidence.framework else None
    first = [
        cause.at for cause in (*conclusion.causes, *conclusion.folded) if cause.at is not None and cause.order < SLOW
    ]
    earliest = min(first, key=lambda at: at.seconds, default=None)
    known = {*ranks.host_of, *ranks.seen}
    listed = len(known) if known and len(known) == max(known) + 1 else 0  # with gaps there may be more of them
    world = ranks.world or listed
    return Job(
        framework=framework,
        library=Library(name=name, version=version) if name else None,
        nodes=_count_hosts(evidence, world),
        ranks=world or None,
        ended=ended,
        first_failure_at=earliest.format(evidence.year) if earliest else None,
    )


def _count_hosts(evidence: Evidence, world: int) -> int | None:
    """Hosts of the job: as its communicator counts them, else those of its ranks where all of them have one."""
    ranks, facts = evidence.ranks, evidence.nccl.result()
    if world and facts.nodes and facts.ranks == world:
        return facts.nodes
    placed = sum(ranks.host(rank) is not None for rank in ranks.ranks())
    return len(ranks.hosts()) or None if placed >= world else None


def _list_ranks(conclusion: Conclusion) -> list[Rank]:
    evidence = conclusion.evidence
    ranks, last = evidence.ranks, last_of_ranks(evidence)
    if evidence.dumps is not None:
        last = evidence.dumps.last_of_ranks() | last
    states: dict[int, str] = {}
    for cause in conclusion.causes:
        state = (
            "slow"
            if cause.order >= SLOW
            else "behind"
            if cause.role == "missing"
            else "ended"
            if cause.role in ("exit", "silent", "dead") or cause.id == "oom-kill"
            else "failed"
        )
        for rank in cause.ranks:
            states.setdefault(rank, "waiting" if cause.role == "hang" else state)
    for watched in evidence.watchdog:
        if watched.waits is not None:
            states.setdefault(watched.rank, "waiting")
    for effect in conclusion.folded:
        for rank in effect.ranks:
            states.setdefault(rank, "failed")
    known = sorted({*ranks.ranks(), *last, *states})[:_MOST_RANKS]
    default = "ok" if conclusion.ended == "well" else "unknown"
    return [
        Rank(
            rank=rank,
            host=ranks.host(rank),
            gpu=ranks.gpu(rank),
            nics=ranks.nics(rank),
            state=states.get(rank, default),
            last=last.get(rank, None),
        )
        for rank in known
    ]


def _list_consequences(conclusion: Conclusion) -> list[JobConsequence]:
    rows = []
    for effect in sorted(
        (effect for effect in conclusion.folded if effect.id != "ends-in-error"),
        key=lambda one: (one.order, one.at.seconds if one.at else 0.0, one.id, one.summary),
    ):
        who = name_ranks(conclusion.evidence, list(effect.ranks), list(effect.hosts))
        summary = (
            effect.summary if effect.role != "consequence" or who in effect.summary else f"{effect.summary}: {who}"
        )
        parent = conclusion.parents[id(effect)]
        rows.append(
            JobConsequence(
                summary=summary,
                of=parent.id,
                ranks=sorted(effect.ranks),
                count=max(1, effect.count),
                evidence=effect.evidence[:2],
            )
        )
    return rows


def _write_note(note: PossibleCause) -> JobConsequence:
    steps = f"; {note.next[0]}" if note.next else ""
    return JobConsequence(
        summary=f"{note.summary}{steps}", ranks=sorted(note.ranks), count=max(1, note.count), evidence=note.evidence[:2]
    )


def _list_times(conclusion: Conclusion) -> list[TimelineEntry]:
    evidence = conclusion.evidence
    entries = []
    for candidate in (*conclusion.causes, *conclusion.folded):
        if candidate.at is None:
            continue
        role = (
            "cause"
            if id(candidate) not in conclusion.parents
            else "hang"
            if candidate.role == "hang"
            else "consequence"
        )
        hosts = list(candidate.hosts)
        entries.append(
            TimelineEntry(
                at=candidate.at.format(evidence.year),
                ranks=sorted(candidate.ranks),
                host=hosts[0] if len(hosts) == 1 else None,
                text=candidate.summary,
                role=role,
            )
        )
    return sorted(entries, key=lambda entry: (entry.at, entry.role, entry.text))[:_MOST_TIMES]


_Gap = tuple[str, str | None]  # what is not known, what to save
_INFO_NEXT = "NCCL_DEBUG=INFO with NCCL_DEBUG_SUBSYS=INIT,ENV,NET,GRAPH for one run"


def _describe_limit(evidence: Evidence) -> str:
    """Which files the time limit left out; the rows of the files have the reasons."""
    unread = sum(not file.read_as for file in evidence.files)
    left = f", {unread} of {len(evidence.files)} not at all" if unread else ""
    return f"files were not read whole{left} (time limit {evidence.limit_seconds:.3g} s; --timeout sets another)"


def list_unknown(conclusion: Conclusion) -> list[CannotTell]:
    """What these files do not show, and what to save next time."""
    rows = (_find_end(conclusion), _find_ranks(conclusion), *_find_details(conclusion))
    return [CannotTell(what=what, save=save) for what, save in filter(None, rows)]


_SAVE_ALL = "the output of all ranks with NCCL_DEBUG=INFO"


def _find_end(conclusion: Conclusion) -> _Gap | None:
    """How the job ended."""
    evidence = conclusion.evidence
    if evidence.limit_seconds is not None:
        return _describe_limit(evidence), None
    if conclusion.ended in ("failed", "hung", "killed", "well"):
        return None
    if conclusion.ended == "cut":
        return "a log ends in the middle of a line", "the whole log of each rank"
    lines = (
        evidence.nccl.lines, evidence.library, evidence.watchdog, evidence.events, evidence.framework,
        evidence.progress,
    )  # fmt: skip
    if not any((*lines, *evidence.table_lines.values())):
        return f"no line in them is of a collective library ({LOOKED_FOR})", _SAVE_ALL
    return (
        "no failure is in it, and no regular end: the job may go on, or the log stops before it ended",
        "the launcher's exit codes, and the output of all ranks until the end",
    )


def _find_ranks(conclusion: Conclusion) -> _Gap | None:
    """Ranks of which there is no line."""
    ranks = conclusion.evidence.ranks
    with_lines = {rank for rank in ranks.ranks() if ranks.find(rank) is not None or rank in ranks.seen}
    if conclusion.ended == "well" or ranks.world < 2 or not 0 < len(with_lines) < ranks.world:
        return None
    missing = [rank for rank in range(min(ranks.world, 100_000)) if rank not in with_lines]
    counted = f"{len(with_lines)} of {ranks.world} ranks are in these files"
    return f"ranks {name_numbers(missing)[:80]} have no line: {counted}", "the output of every rank"


# Causes that NCCL has no part in
_OF_OTHERS = ("ucx-", "hccl-", "jax-", "xla-", "transfer-", "nixl-", "efa-", "deepep-")


def _find_details(conclusion: Conclusion) -> Iterator[_Gap]:
    """Of a job that did not end well: paths, calls, times."""
    evidence, ended = conclusion.evidence, conclusion.ended
    name, version = evidence.library or (None, None)
    other_library = name in ("HCCL", "HCL") or any(
        cause.id.startswith(_OF_OTHERS) or "link" in cause.facts for cause in conclusion.causes
    )
    is_of_network = any(cause.role in ("network", "hang", "consequence") for cause in conclusion.causes)
    if ended in ("failed", "hung") and is_of_network and not other_library and not evidence.nccl.lines:
        yield "which NIC and path each rank used: the log has no line of NCCL at level INFO", _INFO_NEXT
    if conclusion.causes and conclusion.causes[0].id in ("aborted", "exit-code"):
        who = conclusion.causes[0].name(evidence)
        yield f"why {who} ended: no line here has its own error", "the log of it from the start"
    if ended == "hung" and evidence.dumps is None and not other_library:
        recorder = "TORCH_NCCL_TRACE_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1"
        yield "which call a rank was in", f"the flight recorder: {recorder}"
    if evidence.first_at is None and ended in ("failed", "hung", "killed"):
        save = "the output with times of the launcher (`| ts`, kubectl logs --timestamps)"
        if name in ("NCCL", "RCCL") and version and parse_version(version) >= (2, 26):
            save = "NCCL_DEBUG_TIMESTAMP_LEVELS=ALL"
        yield "when it failed: no line has a time", save
