"""Layouts of a training job, measured tables and the log of a job, as text."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.recommend_answers import JudgedMeasurement, Layout, LogAnswer, MeasuredAnswer, NcclLog, TrainingPlan
from agent.outputs.text.lines import BLANK, Line, join_cells, make_heading, make_line, wrap_all, wrap_paragraph
from agent.outputs.text.recommend import format_size

_PLAN_HEADS = ("TP", "CP", "EP", "PP", "DP", "sharding", "recompute", "batches", "GB/GPU", "bubble", "step s")


def render_plan(plan: TrainingPlan, width: int) -> list[Line]:
    """The whole answer."""
    lines = [make_line((plan.machine, "bold"))]
    lines += wrap_paragraph(f"assumed: {'; '.join(plan.assumed)}", width) if plan.assumed else []
    lines += [BLANK, make_heading("Layouts that fit, the shortest step first (batches: micro-batches of a step)")]
    lines += _plan_table(plan.layouts) if plan.layouts else [make_line(("  none fits: use more GPUs", "warning"))]
    for reason, count in plan.rejected.items():
        lines += wrap_paragraph(f"{count} layouts left out: {reason}", width, "    ", "dim", first="  ")
    lines += [BLANK, make_heading("Arithmetic")]
    lines += wrap_all(plan.arithmetic, width, first="  ")
    if plan.layouts:
        lines += wrap_all(_plan_explain(plan.layouts[0]), width, first="  ")
    lines += [BLANK, make_heading("Ranks")]
    lines += wrap_all(plan.rules, width)
    return lines


def _plan_table(layouts: list[Layout]) -> Iterator[Line]:
    rows = [
        (
            str(row.tensor), str(row.context), str(row.expert), str(row.pipeline), str(row.data), row.sharding,
            row.recompute, str(row.micro_batches), f"{row.memory_gbyte:.0f}", f"{row.bubble_percent:.0f}%",
            "{:.3g}-{:.3g}".format(*row.step_seconds),
        )
        for row in layouts
    ]  # fmt: skip
    table = [_PLAN_HEADS, *rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for number, row in enumerate(table):
        yield make_line((f"  {join_cells(row, widths, range(len(row)))}", "dim" if number == 0 else ""))


def _plan_explain(row: Layout) -> Iterator[str]:
    yield f"first layout, memory: {row.memory_formula}; together {row.memory_gbyte:g} GB"
    for part in row.traffic:
        exposed = "{:.3g} to {:.3g}".format(*part.exposed_seconds)
        yield f"{part.kind}, {part.group} GPUs ({part.where}): {part.formula}; exposed {exposed} s [{part.source}]"
    step = "{:.3g} to {:.3g}".format(*row.step_seconds)
    yield f"step: {row.compute_seconds:.3g} s x (1 + {row.bubble_percent:g}%) + exposed = {step} s"


_MEASURED_STYLES = {"good": "ok", "low": "error", "above": "warning", "not-judged": "dim"}
_MEASURED_WORDS = {"above": "above what is possible", "not-judged": "not judged"}
_MEASURED_MOST = 40  # rows that are printed


def render_measured(answer: MeasuredAnswer, width: int) -> list[Line]:
    """The whole answer: the rows, then what could explain those that are not good."""
    lines = [make_line((answer.machine, "bold")), BLANK, make_heading("Measured, and expected (GB/s)")]
    lines += [_measured_line(row) for row in answer.rows[:_MEASURED_MOST]]
    if len(answer.rows) > _MEASURED_MOST:
        lines.append(make_line(f"  and {len(answer.rows) - _MEASURED_MOST} more rows"))
    if answer.shapes:
        lines += [BLANK, make_heading("Shape of the table")]
        lines += wrap_all(answer.shapes, width)
    for verdict in ("low", "above", "good", "not-judged"):
        reasons = dict.fromkeys(reason for row in answer.rows if row.verdict == verdict for reason in row.reasons)
        if reasons:
            lines += [BLANK, make_heading(_measured_title(verdict))]
            lines += wrap_all(reasons, width)
    return lines


def _measured_title(verdict: str) -> str:
    titles = {"low": "What could explain what is low, the likeliest first", "above": "Why it is above what is possible"}
    return titles.get(verdict, "Good" if verdict == "good" else "Why it is not judged")


def _measured_line(row: JudgedMeasurement) -> Line:
    size = format_size(row.measured.size_bytes) if row.measured.size_bytes else ""
    text = f"  {row.measured.what:44}  {size:>8}  {row.measured.gbyte_s:8.1f}  "
    if row.expected_gbyte_s is not None and row.range_gbyte_s is not None:
        text += f"{row.expected_gbyte_s:6.0f} ({row.range_gbyte_s[0]:.0f}-{row.range_gbyte_s[1]:.0f})  "
    return make_line(text, (_MEASURED_WORDS.get(row.verdict, row.verdict), _MEASURED_STYLES[row.verdict]))


def render_log_answer(answer: LogAnswer, width: int) -> list[Line]:
    """The whole answer."""
    lines = [make_line((_log_title(answer.log), "bold"))]
    lines += wrap_paragraph(
        f"compared with: {answer.machine or 'no machine (give --report, --source or --profile)'}", width
    )
    lines += wrap_all(_log_facts(answer.log), width, "  ", None)
    lines += [BLANK, make_heading("What differs")]
    lines += [] if answer.differences else [make_line("  nothing of what could be compared")]
    for row in answer.differences:
        lines += wrap_paragraph(
            f"{row.what}: {row.seen}; expected: {row.expected}", width, "    ", "warning", first="  "
        )
        lines += wrap_all(row.reasons, width, "      ", "    - ")
    if answer.as_expected:
        lines += [BLANK, *wrap_paragraph(f"as expected: {', '.join(answer.as_expected)}", width, style="ok", first="")]
    if answer.not_compared:
        lines += [BLANK, make_heading("Not compared")]
        lines += wrap_all(answer.not_compared, width, first="  ")
    return lines


def _log_title(log: NcclLog) -> str:
    size = f"{log.ranks} ranks on {log.nodes} nodes" if log.ranks else "a job of unknown size"
    return f"NCCL {log.version or 'of unknown version'}, {size}"


def _log_facts(log: NcclLog) -> Iterator[str]:
    for graph in log.graphs:
        speed = f"{graph.channels} channels x {graph.inter_gbyte_s:g} GB/s"
        yield f"{graph.algorithm}: {speed}, inside {graph.intra_gbyte_s:g}, paths {graph.paths}"
    if log.transports:
        yield "channels by transport: " + ", ".join(f"{way} {count}" for way, count in log.transports.items())
    if log.devices:
        yield f"RDMA ports: {', '.join(log.devices)}"
    for choice in log.choices[-8:]:
        yield f"{choice.collective} of {choice.size_bytes} bytes: {choice.algorithm} {choice.protocol}"
    if log.settings:
        yield "settings: " + ", ".join(f"{key}={value}" for key, value in log.settings.items())
    for warning in log.warnings[:8]:
        yield f"warning: {warning}"
