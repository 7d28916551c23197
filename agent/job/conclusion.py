"""What the evidence of a job shows: how it ended, its causes, and what followed from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agent.job.candidate import ORDER, SLOW, PossibleCause, name_hosts, name_numbers, suspect_ranks
from agent.job.catalogue import ENDING
from agent.job.causes import find_candidates
from agent.job.causes.differing_ranks import describe_differences
from agent.job.causes.network import read_address
from agent.job.causes.unexplained import find_reason, find_sign
from agent.job.error_lines import has_lower_level
from agent.job.evidence import ASKED, MANY_STEPS, STATES, Evidence
from agent.job.fold import fold
from agent.job.settings import find_nearest, judge_settings
from agent.model.job_answer import JobEvidence, JobSetting
from probes.text import lazy_pattern

_FORGIVABLE = frozenset(("exception", "unexplained", "connect", "consequence"))
# A late rank that came, a batch that was left out, a file that was found at the next try
_RECOVERS = frozenset(
    (
        "part-failed", "horovod-stalled", "gpu-out-of-memory", "gpu-out-of-memory-hip", "download-failed",
        "launcher-signal", "gpus-missing", "ray-head-lost", "nan-on-rank",
    )
)  # fmt: skip
_OF_WHOLE_JOB = lazy_pattern(
    r"[Jj]ob (?:'[\w-]{1,80}' succeeded|completed)|is successfully completed|Trainer\.fit` stopped|'train_runtime':|"
    r"[Tt]raining (?:is )?(?:complete|finished|done)"
)
_OF_REQUEST = lazy_pattern(r"\bserving_\w{2,30}\.py:\d")  # vLLM refuses one of its clients
_GOES_ON = 8  # lines of steps
# What takes a job from its hosts, and how many steps after it was resumed show that it goes on elsewhere
_DISPLACES, _RESUMED = frozenset(("job-displaced", "cancelled", "launcher-signal", "pod-evicted")), 2
_OPTIONAL = frozenset(("gdrcopy-failed",))  # what a library goes on without, in a job that ends well
_FALLS_BACK = frozenset(("copy-between-processes-denied",))  # and in one that makes steps
# What MPI goes another way without: then the program runs, and prints its table
_OF_TRANSPORTS = frozenset(("ucx-memlock", "memlock-low", "verbs-create-failed"))
_SIZING = frozenset(("NCCL_PROTO", "NCCL_ALGO", "NCCL_BUFFSIZE", "NCCL_LL_BUFFSIZE", "NCCL_LL128_BUFFSIZE"))
_LOST_CONNECTIONS = frozenset(
    ("connection-closed", "connection-broken", "connect-failed", "connect-failed-unnamed", "python-connection-lost")
)
_UNREACHABLE = lazy_pattern(r"No route to host|Network is unreachable|[Tt]imed? ?out")
_OF_A_WRONG_GID = ("gid-link-local", "qp-no-route", "qp-address-unresolved", "qp-invalid")
_HUNG = frozenset(("missing", "hang"))
_KILLED = frozenset(("oom-kill", "killed", "job-displaced"))
_WAITING = frozenset(("hang", "missing", "network", "dead"))
_FAILED = frozenset(role for role, order in ORDER.items() if order < SLOW) - _HUNG - {"cancel"}
_SYMPTOMS = frozenset(("hang", "missing", "network", "connect", "silent", "consequence", "dead"))
_OF_COLLECTIVES = lazy_pattern(r"(?i)collective|communicat|barrier|rendezvous|[nh]ccl|process group|\bnan\b|finite")
_BY_SILENCE = _HUNG | {"silent"}


class Conclusion:
    """The causes of a job, and what is needed to put them in words."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.settings = judge_settings(evidence)
        candidates = find_candidates(evidence)
        _blame_settings(evidence, candidates, self.settings)
        _blame_uneven(candidates, self.settings)
        _forgive(evidence, candidates)
        _go_on(evidence, candidates)
        self.notes = [candidate for candidate in candidates if candidate.role == "note"]
        candidates = [candidate for candidate in candidates if candidate.role != "note"]
        is_outlived = bool(self.notes) and not candidates and _ends_well(evidence)
        if evidence.limit_seconds is None:
            lost = [] if is_outlived else _find_lost(evidence, candidates)
            candidates += lost or _find_absent(evidence, candidates)
        else:
            candidates = _distrust_silence(candidates)
        self.causes, self.parents = fold(candidates)
        self.folded = [candidate for candidate in candidates if id(candidate) in self.parents]
        if self.causes and all(cause.role == "consequence" for cause in self.causes):
            self.folded += self.causes[1:]
            self.parents |= {id(cause): self.causes[0] for cause in self.causes[1:]}
            self.causes = self.causes[:1]
            first = self.causes[0]
            first.summary += "; this is a consequence, and what it follows from is not in these files"
            first.next = first.next or ["the logs of all ranks: the first error of each process"]
        for cause in self.causes:
            if cause.role == "consequence":  # of what is not here
                cause.confidence = "low"
        self._find_reason()
        self._place_causes()
        self.ended = self._decide_end()
        self._add_suspects()

    def _find_reason(self) -> None:
        """Srun cancels a step whose task failed: where no line names who or which limit did, what came before did."""
        first = self.causes[0] if self.causes else None
        if first is None or first.id != "cancelled" or "(" in first.summary:
            return
        reason = find_reason(self.evidence, first)
        if reason is not None:
            self.causes[0] = reason
            self.causes = [cause for cause in self.causes if cause.role != "unexplained" or cause is reason]
            self.folded.append(first)
            self.parents |= {name: reason for name, cause in self.parents.items() if cause is first}
            self.parents[id(first)] = reason

    def _place_causes(self) -> None:
        """A container that did not start is of the processes that ended by it, where a launcher names their host."""
        for cause in (cause for cause in self.causes if cause.id.startswith("container-")):
            ends = [effect for effect in self.folded if self.parents[id(effect)] is cause and effect.role == "exit"]
            if len(ends) == 1 and len(ends[0].hosts) == 1 and not (cause.ranks or cause.hosts):
                cause.blame(ends[0].ranks, ends[0].hosts)
                cause.summary += f"; {cause.name(self.evidence)} ended by it"
                host = next(iter(cause.hosts))
                cause.next = [text.replace("on the host", f"on {host}") for text in cause.next]

    def _add_suspects(self) -> None:
        """What one rank prints otherwise, or wrote before: suspects where nothing explains the failure, else notes."""
        is_failure = self.ended in ("failed", "hung", "killed")
        is_explained = any(not _is_symptom(cause) for cause in self.causes if cause.order < SLOW)
        blamed = {rank for cause in self.causes for rank in cause.ranks if cause.role != "hang"}
        if is_failure and not is_explained and (sign := find_sign(self.evidence, self.causes[0])) is not None:
            self.causes.append(sign)
        for suspect in describe_differences(self.evidence, blamed):
            if is_failure and (not is_explained or suspect.facts["version"]):
                self.causes.append(suspect)
            elif not suspect.facts["missing"]:
                self.notes.append(suspect)

    def _decide_end(self) -> str:
        evidence = self.evidence
        roles = [cause.role for cause in self.causes if cause.order < SLOW]
        if any(role in _FAILED for role in roles):
            first = self.causes[0]
            return "killed" if first.id in _KILLED else "failed"
        if any(role in _HUNG for role in roles):
            return "hung"
        if "cancel" in roles:
            return "killed"
        if _ends_well(evidence):
            return "well" if evidence.limit_seconds is None else "unknown"
        logs = {file.name for file in evidence.files if file.read_as and "NCCL" in file.read_as}
        if any(not tail.whole and evidence.names[number] in logs for number, tail in evidence.tails.items()):
            return "cut"
        return "unknown"


def _is_symptom(cause: PossibleCause) -> bool:
    """Whether a cause shows that something is gone, or did not answer, and not why."""
    is_general = cause.id in ("exit-code", "aborted") or (
        cause.id == "python-exception" and _OF_COLLECTIVES.search(cause.summary) is not None
    )
    return cause.confidence == "low" or cause.role in _SYMPTOMS or is_general


def _ends_well(evidence: Evidence) -> bool:
    """A regular end, and no file whose last line is an error."""
    if not evidence.ended_well:
        return False
    processes = [process for process in evidence.ranks.processes.values() if process.init_started]
    destroyed = [process for process in processes if process.destroyed]
    if list(evidence.ended_well) == ["destroy complete"]:
        return len(destroyed) == len(processes) > 0
    return True


def _forgive(evidence: Evidence, candidates: list[PossibleCause]) -> None:
    """Warnings and exceptions that a job outlived are notes: its regular end, or many steps, come after them. Of any
    other failure a job is known to have outlived it where both do."""
    ends = {evidence.names[line.file]: line.number for name, line in evidence.ended_well.items() if name != ASKED}
    asked = {evidence.names[line.file]: line.number for name, line in evidence.ended_well.items() if name == ASKED}
    whole = _find_whole_ends(evidence)
    goes_on = {
        evidence.names[file]: steps[0] for file, steps in evidence.last_steps.items() if len(steps) == MANY_STEPS
    }
    ends_well = _ends_well(evidence)
    measured = {evidence.names[file]: heads[0].line.number for file, heads in evidence.table_heads.items()
                if len(heads) == 1 and len(evidence.table_lines[file]) > heads[0].start + 1}  # fmt: skip
    resumed = {evidence.names[event.line.file]: event.line.number for event in evidence.find_events("job-resumed")}
    for candidate in candidates:
        candidate.steps_after = _count_steps(evidence, candidate)
        if candidate.role == "exception" and all(_OF_REQUEST.search(row.text) for row in candidate.evidence):
            candidate.role = "note"
        if candidate.id in _OF_TRANSPORTS and _is_before(candidate, measured):
            candidate.role = "note"
        if candidate.id == "horovod-stalled" and candidate.steps_after >= _RESUMED:
            candidate.role = "note"  # the rank that all waited for came
    if not ends_well:
        if any(candidate.role in _WAITING for candidate in candidates):
            return  # for what the others wrote, one that ended may be waited for
        ends = goes_on
    for candidate in candidates:
        is_forgivable = candidate.role in _FORGIVABLE or candidate.id in _RECOVERS
        is_forgivable |= ends_well and all(has_lower_level(row.text) for row in candidate.evidence)
        if _is_before(candidate, ends) and (
            is_forgivable or (ends_well and candidate.role in _FAILED | _HUNG and _is_before(candidate, goes_on))
        ):
            candidate.role = "note"
        if candidate.role == "unexplained" and _is_before(candidate, asked):
            candidate.role = "note"
        is_optional = (ends_well and candidate.id in _OPTIONAL | _FALLS_BACK) or (
            candidate.id in _FALLS_BACK and candidate.steps_after > _GOES_ON
        )
        if is_optional and candidate.role == "slow":
            candidate.role = "note"
        if _is_before(candidate, whole) and candidate.order < SLOW:
            candidate.role = "note"
        if candidate.id in _DISPLACES and _is_before(candidate, resumed) and candidate.steps_after >= _RESUMED:
            candidate.role = "note"


def _find_whole_ends(evidence: Evidence) -> dict[str, int]:
    """By file: where its scheduler, operator or trainer states that the whole job ended well, and no failure follows.
    Whatever is above was outlived: a host that was replaced, an attempt that was preempted."""
    whole: dict[int, int] = {}
    for name, line in evidence.ended_well.items():
        if name == STATES or _OF_WHOLE_JOB.search(line.text):
            whole[line.file] = max(line.number, whole.get(line.file, 0))
    failures = [event.line for event in evidence.events.values() if event.role in ENDING]
    return {
        evidence.names[file]: number
        for file, number in whole.items()
        if not any(line.file == file and line.number > number for line in failures)
    }


def _count_steps(evidence: Evidence, candidate: PossibleCause) -> int:
    if candidate.first_line is None:
        return 0
    file, first = candidate.first_line
    name = evidence.names[file]
    last = max((row.line or 0 for row in candidate.evidence if row.source == name), default=first)
    last = max(last, candidate.last_number)
    return sum(number > last for number in evidence.last_steps.get(file, ()))


def _go_on(evidence: Evidence, candidates: list[PossibleCause]) -> None:
    """Ports that went down and came up again, where nothing failed by it and steps follow: they cost time."""
    failures = [candidate for candidate in candidates if candidate.order < SLOW]
    steps = {evidence.names[file]: numbers[-1] for file, numbers in evidence.last_steps.items() if numbers}
    if all(candidate.role == "port" and candidate.facts.get("back") for candidate in failures):
        for candidate in failures:
            if _is_before(candidate, steps):
                candidate.role = "slow"


def _is_before(candidate: PossibleCause, ends: Mapping[str, int]) -> bool:
    """Whether all that a cause rests on is before these lines of its files."""
    lines = [(row.source, row.line or 0) for row in candidate.evidence]
    return bool(lines) and all(source in ends and number < ends[source] for source, number in lines)


def _blame_settings(evidence: Evidence, candidates: list[PossibleCause], settings: Sequence[JobSetting]) -> None:
    """A misspelt or wrong setting that explains why the wrong GID or device is in use."""
    index = next(
        (row for row in settings if row.verdict == "misspelt" and find_nearest(row.name) == "NCCL_IB_GID_INDEX"), None
    )
    for candidate in candidates:
        if index is None or candidate.id not in _OF_A_WRONG_GID:
            continue
        candidate.fault, candidate.confidence = "setting", "high"
        candidate.summary += (
            f"; {index.name} is no setting of NCCL (NCCL_IB_GID_INDEX is), so its value {index.value} has no effect"
        )
        candidate.next.insert(0, f"write NCCL_IB_GID_INDEX={index.value} in place of {index.name}")
        for line in list(evidence.settings[index.name][index.value].values())[:1]:
            candidate.evidence.insert(
                0, JobEvidence(text=line.whole.strip()[:400], source=evidence.names[line.file], line=line.number)
            )


def _blame_uneven(candidates: list[PossibleCause], settings: Sequence[JobSetting]) -> None:
    """Settings that differ between ranks explain messages whose sizes differ."""
    uneven = [row for row in settings if row.verdict == "uneven" and row.name in _SIZING]
    for candidate in candidates:
        if uneven and candidate.id in ("socket-truncated", "collective-mismatch", "collective-mismatch-old"):
            names = list(dict.fromkeys(row.name for row in uneven))
            values = ", ".join(f"{row.value} in the {row.where}" for row in uneven if row.name == names[0])
            candidate.fault = "setting"
            candidate.summary = f"ranks differ in {' and '.join(names)} ({values}), so their messages differ in size"
            candidate.next = [f"one value of {' and '.join(names)} for all ranks, or none"]


def _distrust_silence(candidates: list[PossibleCause]) -> list[PossibleCause]:
    """Where files were not read whole: no rank is at fault for lines that it may have written there."""
    kept = [candidate for candidate in candidates if candidate.id != "rank-silent"]
    for candidate in kept:
        if candidate.role in _BY_SILENCE:
            candidate.confidence = "low"
    return kept


def _find_lost(evidence: Evidence, candidates: list[PossibleCause]) -> list[PossibleCause]:
    """Who the others lost: a host whose log is not here, or a rank that wrote nothing when all others failed."""
    affected: dict[int, None] = {}
    for candidate in candidates:
        if candidate.role in ("consequence", "network", "connect") and candidate.id != "unwinding":
            affected |= candidate.ranks
    ranks = evidence.ranks
    named: dict[str, None] = {}
    at = None
    lines = []
    for event in evidence.events.values():
        if (event.row.form_of or event.row.id) in _LOST_CONNECTIONS and event.role != "noise":
            peer = event.groups.get("peer", "")
            if peer and "error" not in event.groups and event.row.form_of == "connect-failed":
                continue  # how it failed is not in the line
            address = read_address(peer)
            if _UNREACHABLE.search(event.groups.get("error", "")) or address.startswith(("127.", "169.254.")):
                continue  # of the way there, or of an address that means every host
            if peer:
                named.setdefault(ranks.find_host(peer) or address)
            lines.append(event.line)
            if event.line.at is not None and (at is None or event.line.at.seconds < at.seconds):
                at = event.line.at
    if not lines:
        return []
    known = [rank for rank in ranks.ranks() if ranks.find(rank) is not None]
    own = {
        rank
        for candidate in candidates
        if candidate.role not in ("consequence", "slow")
        and not (candidate.id == "exit-code" and len(candidate.ranks) > 1)
        for rank in candidate.ranks
    }
    silent = [rank for rank in known if rank not in affected and rank not in own]
    suspects = [rank for rank in silent if ranks.host(rank) in named] or silent
    if suspects and len(affected) * 2 >= len(known) and len(suspects) <= max(8, len(known) // 8):
        text = "ended without a message; the others lost their connections to it"
        lost = suspect_ranks(evidence, "rank-silent", "silent", suspects, text, "medium")
        lost.next = [
            f"the kernel log of {name_hosts(list(lost.hosts))} at that time: out of memory, Xids, segfaults",
            f"the launcher's line about the exit of rank {name_numbers(suspects[:8])}",
        ]
    else:
        writers = {host for line in lines if (host := evidence.host_of(line)) is not None}
        writers |= {host for candidate in candidates if candidate.role != "slow" for host in candidate.hosts}
        foreign = [host for host in named if host not in ranks.hosts()] or [h for h in named if h not in writers]
        if not foreign:
            return []
        lost = PossibleCause(
            "peer-gone",
            "silent",
            "peer",
            f"a process on {name_hosts(foreign)} ended first, and no line of it shows why",
            "low",
        )
        lost.blame(hosts=foreign)
        lost.next = [f"the log of {name_hosts(foreign)}: its own first error decides"]
    lost.at = at
    lost.first_line = min((line.file, line.number) for line in lines)
    lost.show(evidence, *lines[:3])
    return [lost]


def _find_absent(evidence: Evidence, candidates: list[PossibleCause]) -> list[PossibleCause]:
    """A communicator that never came up, with nothing else wrong: the ranks that did not start."""
    ranks = evidence.ranks
    started = {
        process.rank for process in ranks.processes.values() if process.init_started and process.world == ranks.world
    }
    done = any(process.init_done or process.destroyed for process in ranks.processes.values())
    if done or evidence.progress or evidence.ended_well or any(candidate.order < SLOW for candidate in candidates):
        return []
    missing = [rank for rank in range(min(ranks.world, 100_000)) if rank not in started]
    if not missing or len(started) < 2 or len(missing) * 2 > ranks.world:
        return []
    text = f"never began to create the communicator; {len(started)} of {ranks.world} ranks did"
    absent = suspect_ranks(evidence, "rank-not-started", "missing", missing, text, "low")
    absent.next = [f"the log of rank {name_numbers(missing[:8])}: whether it started, and where it is"]
    return [absent]
