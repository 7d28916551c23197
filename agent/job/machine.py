"""What a report or a platform adds: what NCCL chose against what the machine should give, and measured tables."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from agent.job.conclusion import Conclusion
from agent.job.evidence import Evidence
from agent.job.join.context import HostReport
from agent.job.measured_tables import read_tables
from agent.model.job_answer import AtFault, JobAnswer, JobCause, JobEvidence, JobTable, JoinedReport
from agent.model.profile import Profile
from agent.model.recommend_answers import JudgedMeasurement, LogAnswer, MeasuredTable
from agent.model.report import Report
from agent.recommend.explain import explain_log
from agent.recommend.machine import NodeFacts, assume_node, read_node

_MOST_JUDGED = 200
_TABLE = "measured table"  # as which a file is read that has nothing else
_BOARDS = (  # of eight GPUs, and how their names begin; fewer may be a part of it, or another board
    ("H100 80GB HBM3", "hgx-h100-8"), ("H200", "hgx-h200-8"), ("A100-SXM", "hgx-a100-8"), ("B200", "hgx-b200-8"),
)  # fmt: skip
_ON_BOARD = 8
_GRAVE = ("error", "critical")


def add_machine(
    answer: JobAnswer,
    conclusion: Conclusion,
    joined: Sequence[JoinedReport],
    reports: Sequence[HostReport],
    profile: Profile | None,
) -> JobAnswer:
    """The answer with what the machine should give."""
    report = _first_joined(joined, reports)
    node = _read_node(report, profile)
    log = conclusion.evidence.nccl.result()
    machine = None
    if log.lines:
        if log.nodes is None and answer.job.nodes:
            log = msgspec.structs.replace(log, nodes=answer.job.nodes, ranks=log.ranks or answer.job.ranks)
        machine = explain_log(log, node, report)
    tables = [
        table
        for number in sorted(conclusion.evidence.table_lines)
        for table in _judge(conclusion.evidence, number, node, report, profile)
    ]
    answer = msgspec.structs.replace(answer, machine=machine, reports=list(joined), measured=tables)
    slow = [*_find_left_out(machine), *_find_wrong(tables), *_find_low(tables)]
    if not slow:
        files = answer.source.files
        is_table = (
            answer.job.ended == "unknown"
            and tables
            and not answer.causes
            and all(file.read_as == _TABLE for file in files)
        )
        if is_table:
            return msgspec.structs.replace(answer, headline=_describe_level(tables[0]))
        grave = [] if answer.causes else [row for one in joined for row in one.findings if row.severity in _GRAVE]
        if grave and answer.job.ended == "unknown":
            found = f"{grave[0].severity} {grave[0].rule} on {grave[0].label}: {grave[0].summary}"
            return msgspec.structs.replace(answer, headline=f"{answer.headline}; of the host: {found}")
        return answer
    headline = answer.headline if answer.causes else f"Slow: {slow[0].summary}"
    return msgspec.structs.replace(answer, causes=[*answer.causes, *slow], headline=headline)


def _find_left_out(machine: LogAnswer | None) -> list[JobCause]:
    """Rails that a setting of the job leaves out."""
    for row in machine.differences if machine is not None else ():
        named = [reason for reason in row.reasons if "NCCL_IB_HCA" in reason]
        if row.what == "NICs" and row.seen.startswith("without ") and named:
            summary = f"{named[0]}, which leaves out {row.seen.removeprefix('without ')} ({row.expected} are there)"
            fault = AtFault(kind="setting")
            return [
                JobCause(
                    id="nics-left-out",
                    confidence="medium",
                    at_fault=fault,
                    summary=summary,
                    next=["unset NCCL_IB_HCA, or name all rails in it"],
                )
            ]
    return []


def _find_wrong(tables: Sequence[JobTable]) -> list[JobCause]:
    """Corrupted data."""
    texts = [(table, text) for table in tables for text in table.shapes if "data is corrupted" in text]
    return [
        JobCause(
            id="wrong-values",
            at_fault=AtFault(kind="hardware"),
            summary=text,
            evidence=[JobEvidence(text=text, source=table.source)],
        )
        for table, text in texts[:1]
    ]


def _describe_level(table: JobTable) -> str:
    """What was measured, and what it is compared with."""
    text = f"Measured: {table.largest_gbyte_s:.3g} GB/s at the largest size"
    largest = _find_largest(table)
    if largest is not None:
        machine = table.machine or "the machine"
        return f"{text}, and {machine} should give {largest.expected_gbyte_s:.3g}: {largest.verdict}"
    if table.shapes:
        return f"{text}, {table.shapes[0]}"
    why = next((row.reasons[0] for row in table.judged if row.reasons), None)
    return f"{text}, compared with nothing: {why or 'which machine it is of is not known; --profile names one'}"


def _find_largest(table: JobTable) -> JudgedMeasurement | None:
    """The judged row of the largest size."""
    rows = [row for row in table.judged if row.verdict != "not-judged" and row.expected_gbyte_s]
    return max(rows, key=lambda row: (row.measured.size_bytes or 0, row.measured.gbyte_s), default=None)


def _find_low(tables: Sequence[JobTable]) -> list[JobCause]:
    """A table below what the machine should give, at its largest size."""
    for table in tables:
        largest = _find_largest(table)
        if largest is not None and largest.verdict == "low":
            text = (
                f"{largest.measured.what} reaches {largest.measured.gbyte_s:.3g} GB/s, and "
                f"{table.machine or 'the machine'} should give {largest.expected_gbyte_s:.3g}"
            )
            return [
                JobCause(
                    id="bandwidth-low",
                    confidence="medium",
                    at_fault=AtFault(kind="unknown"),
                    summary=text,
                    evidence=[JobEvidence(text=text, source=table.source)],
                    next=largest.reasons[:4],
                )
            ]
    return []


def _first_joined(joined: Sequence[JoinedReport], reports: Sequence[HostReport]) -> Report | None:
    """The report that is compared with: the first joined one that has the GPUs."""
    pairs = [one.report for row, one in zip(joined, reports, strict=True) if row.joined]
    return next((report for report in pairs if report.topology.gpus), None)


def _read_node(report: Report | None, profile: Profile | None) -> NodeFacts | None:
    if profile is not None:
        return assume_node(profile, None)
    return read_node(report) if report is not None else None


def _judge(
    evidence: Evidence, number: int, node: NodeFacts | None, report: Report | None, profile: Profile | None
) -> list[JobTable]:
    """The table of one file, by its shape and, with a machine, by its level."""
    table = read_tables(evidence.table_lines[number])
    if node is None and (board := _find_board(table)) is not None:
        node, profile = assume_node(board, None), board
    rows = [row for row in table.rows if row.gbyte_s > 0] or table.rows
    if not rows:
        return []
    from agent.recommend.judge import describe_shape  # lazy: few jobs print a table

    largest = max(rows, key=lambda row: (row.size_bytes or 0, row.gbyte_s))
    judged = _by_level(evidence, table, node, report, profile)
    return [
        JobTable(
            source=evidence.names[number],
            tool=largest.tool,
            rows=len(table.rows),
            largest_gbyte_s=largest.gbyte_s,
            shapes=describe_shape(table),
            judged=judged,
            machine=node.title if node is not None and judged else None,
        )
    ]


def _find_board(table: MeasuredTable) -> Profile | None:
    """The board that all GPUs of a table are on, where they are of one host and as many as it has.

    >>> run = MeasuredTable(ranks=8, hosts=1, models=["NVIDIA H100 80GB HBM3"])
    >>> board = _find_board(run)
    >>> board and board.name, _find_board(msgspec.structs.replace(run, hosts=2))
    ('hgx-h100-8', None)
    """
    if table.hosts != 1 or table.ranks != _ON_BOARD or len(table.models) != 1:
        return None
    from agent.platforms.profiles import load_profile

    model = table.models[0].removeprefix("NVIDIA ")
    name = next((name for start, name in _BOARDS if model.startswith(start) and "NVL" not in model), None)
    return load_profile(name) if name else None


def _by_level(
    evidence: Evidence, table: MeasuredTable, node: NodeFacts | None, report: Report | None, profile: Profile | None
) -> list[JudgedMeasurement]:
    if node is None:
        return []
    from agent.recommend.answer import Question, answer_profile, answer_report
    from agent.recommend.judge import judge_table
    from agent.recommend.predict import version_of

    version = evidence.library[1] if evidence.library else None
    question = Question(nccl=version)
    recommendation = answer_report(report, question) if report is not None and profile is None else None
    if recommendation is None:
        assert profile is not None, "a node is of a report or of a profile"
        recommendation = answer_profile(profile, None, question)
    return judge_table(table, node, recommendation, version_of(version, [node]), (None, None)).rows[:_MOST_JUDGED]
