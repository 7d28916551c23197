"""What a job's log shows against its machine, as text."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.nccl_log import LogAnswer, NcclLog
from agent.outputs.text.lines import BLANK, Line, make_heading, make_line, wrap_paragraph


def render_log_answer(answer: LogAnswer, width: int) -> list[Line]:
    """The whole answer."""
    lines = [make_line((_title(answer.log), "bold"))]
    lines += wrap_paragraph(
        f"compared with: {answer.machine or 'no machine (give --report, --source or --profile)'}", width
    )
    lines += [line for text in _facts(answer.log) for line in wrap_paragraph(text, width)]
    lines += [BLANK, make_heading("What differs")]
    lines += [] if answer.differences else [make_line("  nothing of what could be compared")]
    for row in answer.differences:
        lines += wrap_paragraph(
            f"{row.what}: {row.seen}; expected: {row.expected}", width, "    ", "warning", first="  "
        )
        lines += [line for reason in row.reasons for line in wrap_paragraph(reason, width, "      ", first="    - ")]
    if answer.as_expected:
        lines += [BLANK, *wrap_paragraph(f"as expected: {', '.join(answer.as_expected)}", width, style="ok", first="")]
    if answer.not_compared:
        lines += [BLANK, make_heading("Not compared")]
        lines += [line for text in answer.not_compared for line in wrap_paragraph(text, width, "    ", first="  ")]
    return lines


def _title(log: NcclLog) -> str:
    size = f"{log.ranks} ranks on {log.nodes} nodes" if log.ranks else "a job of unknown size"
    return f"NCCL {log.version or 'of unknown version'}, {size}"


def _facts(log: NcclLog) -> Iterator[str]:
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
