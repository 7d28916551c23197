"""Measured figures beside what the model expects, as text."""

from __future__ import annotations

from agent.model.measured import JudgedMeasurement, MeasuredAnswer
from agent.outputs.text.lines import BLANK, Line, make_heading, make_line, wrap_paragraph
from agent.outputs.text.recommend import format_size

_STYLES = {"good": "ok", "low": "error", "above": "warning", "not-judged": "dim"}
_WORDS = {"above": "above what is possible", "not-judged": "not judged"}
_MOST = 40  # rows that are printed


def render_measured(answer: MeasuredAnswer, width: int) -> list[Line]:
    """The whole answer: the rows, then what could explain those that are not good."""
    lines = [make_line((answer.machine, "bold")), BLANK, make_heading("Measured, and expected (GB/s)")]
    lines += [_line(row) for row in answer.rows[:_MOST]]
    if len(answer.rows) > _MOST:
        lines.append(make_line(f"  and {len(answer.rows) - _MOST} more rows"))
    for verdict in ("low", "above", "good", "not-judged"):
        reasons = dict.fromkeys(reason for row in answer.rows if row.verdict == verdict for reason in row.reasons)
        if reasons:
            lines += [BLANK, make_heading(_title(verdict))]
            lines += [line for text in reasons for line in wrap_paragraph(text, width, "    ", first="  - ")]
    return lines


def _title(verdict: str) -> str:
    titles = {"low": "What could explain what is low, the likeliest first", "above": "Why it is above what is possible"}
    return titles.get(verdict, "Good" if verdict == "good" else "Why it is not judged")


def _line(row: JudgedMeasurement) -> Line:
    size = format_size(row.measured.size_bytes) if row.measured.size_bytes else ""
    text = f"  {row.measured.what:44}  {size:>8}  {row.measured.gbyte_s:8.1f}  "
    if row.expected_gbyte_s is not None and row.range_gbyte_s is not None:
        text += f"{row.expected_gbyte_s:6.0f} ({row.range_gbyte_s[0]:.0f}-{row.range_gbyte_s[1]:.0f})  "
    return make_line(text, (_WORDS.get(row.verdict, row.verdict), _STYLES[row.verdict]))
