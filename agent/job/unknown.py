"""What the files of a job do not show, and what to save so that they would."""

from __future__ import annotations

from agent.job.candidate import name_numbers
from agent.job.conclusion import Conclusion
from agent.job.evidence import Evidence
from agent.model.job_answer import (
    CannotTell,
)
from agent.recommend.constants import parse_version

_INFO_NEXT = "NCCL_DEBUG=INFO with NCCL_DEBUG_SUBSYS=INIT,ENV,NET,GRAPH for one run"


def _describe_limit(evidence: Evidence) -> str:
    """Which files the time limit left out; the rows of the files have the reasons."""
    unread = sum(not file.read_as for file in evidence.files)
    left = f", {unread} of {len(evidence.files)} not at all" if unread else ""
    return f"files were not read whole{left} (time limit {evidence.limit_seconds:.3g} s; --timeout sets another)"


def list_unknown(conclusion: Conclusion) -> list[CannotTell]:
    """What these files do not show, and what to save next time."""
    evidence = conclusion.evidence
    rows: list[CannotTell] = []
    has_nccl = evidence.nccl.lines > 0
    decided = conclusion.ended in ("failed", "hung", "killed", "well")
    if evidence.limit_seconds is not None:
        rows.append(CannotTell(what=_describe_limit(evidence)))
    elif not decided:
        if conclusion.ended == "cut":
            rows.append(CannotTell(what="a log ends in the middle of a line", save="the whole log of each rank"))
        elif not (
            has_nccl
            or evidence.library
            or evidence.watchdog
            or evidence.events
            or evidence.framework
            or any(evidence.table_lines.values())
        ):
            rows.append(
                CannotTell(
                    what="no line in them is of a collective library",
                    save="the output of all ranks with NCCL_DEBUG=INFO",
                )
            )
        else:
            rows.append(
                CannotTell(
                    what="the log has neither an error nor a regular end",
                    save="the launcher's exit codes, and the output of all ranks until the end",
                )
            )
    ranks = evidence.ranks
    with_lines = {rank for rank in ranks.ranks() if ranks.find(rank) is not None or rank in ranks.seen}
    if ranks.world > 1 and 0 < len(with_lines) < ranks.world and conclusion.ended != "well":
        missing = [rank for rank in range(min(ranks.world, 100_000)) if rank not in with_lines]
        rows.append(
            CannotTell(
                what=f"ranks {name_numbers(missing)[:80]} have no line: {len(with_lines)} of {ranks.world} ranks "
                f"are in these files",
                save="the output of every rank",
            )
        )
    other_library = bool(evidence.library and evidence.library[0] in ("HCCL", "HCL")) or any(
        cause.id.startswith("ucx-") or "link" in cause.facts for cause in conclusion.causes
    )
    if (
        not has_nccl
        and not other_library
        and conclusion.ended in ("failed", "hung")
        and any(cause.role in ("network", "hang", "consequence") for cause in conclusion.causes)
    ):
        rows.append(
            CannotTell(
                what="which NIC and path each rank used: the log has no line of NCCL at level INFO", save=_INFO_NEXT
            )
        )
    if conclusion.ended == "hung" and evidence.dumps is None:
        rows.append(
            CannotTell(
                what="which call a rank was in",
                save="the flight recorder: TORCH_NCCL_TRACE_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1",
            )
        )
    if evidence.first_at is None and conclusion.ended in ("failed", "hung", "killed"):
        save = "the output with times of the launcher (`| ts`, kubectl logs --timestamps)"
        name, version = evidence.library or (None, None)
        if name in ("NCCL", "RCCL") and version and parse_version(version) >= (2, 26):
            save = "NCCL_DEBUG_TIMESTAMP_LEVELS=ALL"
        rows.append(CannotTell(what="when it failed: no line has a time", save=save))
    return rows
