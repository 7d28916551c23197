"""What the files of a job do not show, and what to save so that they would."""

from __future__ import annotations

from collections.abc import Iterator

from agent.job.candidate import name_numbers
from agent.job.conclusion import Conclusion
from agent.job.evidence import Evidence
from agent.model.job_answer import CannotTell
from agent.recommend.constants import parse_version

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


def _find_end(conclusion: Conclusion) -> _Gap | None:
    """How the job ended."""
    evidence = conclusion.evidence
    if evidence.limit_seconds is not None:
        return _describe_limit(evidence), None
    if conclusion.ended in ("failed", "hung", "killed", "well"):
        return None
    if conclusion.ended == "cut":
        return "a log ends in the middle of a line", "the whole log of each rank"
    lines = (evidence.nccl.lines, evidence.library, evidence.watchdog, evidence.events, evidence.framework)
    if not any((*lines, *evidence.table_lines.values())):
        return "no line in them is of a collective library", "the output of all ranks with NCCL_DEBUG=INFO"
    return (
        "the log has neither an error nor a regular end",
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


def _find_details(conclusion: Conclusion) -> Iterator[_Gap]:
    """Of a job that did not end well: paths, calls, times."""
    evidence, ended = conclusion.evidence, conclusion.ended
    name, version = evidence.library or (None, None)
    other_library = name in ("HCCL", "HCL") or any(
        cause.id.startswith("ucx-") or "link" in cause.facts for cause in conclusion.causes
    )
    is_of_network = any(cause.role in ("network", "hang", "consequence") for cause in conclusion.causes)
    if ended in ("failed", "hung") and is_of_network and not other_library and not evidence.nccl.lines:
        yield "which NIC and path each rank used: the log has no line of NCCL at level INFO", _INFO_NEXT
    if ended == "hung" and evidence.dumps is None:
        recorder = "TORCH_NCCL_TRACE_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1"
        yield "which call a rank was in", f"the flight recorder: {recorder}"
    if evidence.first_at is None and ended in ("failed", "hung", "killed"):
        save = "the output with times of the launcher (`| ts`, kubectl logs --timestamps)"
        if name in ("NCCL", "RCCL") and version and parse_version(version) >= (2, 26):
            save = "NCCL_DEBUG_TIMESTAMP_LEVELS=ALL"
        yield "when it failed: no line has a time", save
