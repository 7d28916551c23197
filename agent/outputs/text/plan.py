"""Layouts of a training job, as text: the table, then the arithmetic of the first."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.plan import Layout, TrainingPlan
from agent.outputs.text.lines import BLANK, Line, make_heading, make_line, wrap_paragraph

_HEADS = ("TP", "CP", "EP", "PP", "DP", "sharding", "recompute", "micro-batches", "GB a GPU", "bubble", "step s")


def render_plan(plan: TrainingPlan, width: int) -> list[Line]:
    """The whole answer."""
    lines = [make_line((plan.machine, "bold"))]
    lines += wrap_paragraph(f"assumed: {'; '.join(plan.assumed)}", width) if plan.assumed else []
    lines += [BLANK, make_heading("Layouts that fit, the shortest step first")]
    lines += _table(plan.layouts) if plan.layouts else [make_line(("  none fits: use more GPUs", "warning"))]
    for reason, count in plan.rejected.items():
        lines += wrap_paragraph(f"{count} layouts left out: {reason}", width, "    ", "dim", first="  ")
    lines += [BLANK, make_heading("Arithmetic")]
    lines += [line for text in plan.arithmetic for line in wrap_paragraph(text, width, "    ", first="  ")]
    if plan.layouts:
        lines += [
            line for text in _explain(plan.layouts[0]) for line in wrap_paragraph(text, width, "    ", first="  ")
        ]
    lines += [BLANK, make_heading("Ranks")]
    lines += [line for text in plan.rules for line in wrap_paragraph(text, width, "    ", first="  - ")]
    return lines


def _table(layouts: list[Layout]) -> Iterator[Line]:
    rows = [
        (
            str(row.tensor), str(row.context), str(row.expert), str(row.pipeline), str(row.data), row.sharding,
            row.recompute, str(row.micro_batches), f"{row.memory_gbyte:.0f}", f"{row.bubble_percent:.0f}%",
            "{:.3g}-{:.3g}".format(*row.step_seconds),
        )
        for row in layouts
    ]  # fmt: skip
    widths = [max(len(row[column]) for row in (_HEADS, *rows)) for column in range(len(_HEADS))]
    for number, row in enumerate((_HEADS, *rows)):
        text = "  ".join(cell.rjust(size) for cell, size in zip(row, widths, strict=True))
        yield make_line((f"  {text}", "dim" if number == 0 else ""))


def _explain(row: Layout) -> Iterator[str]:
    yield f"first layout, memory: {row.memory_formula}; together {row.memory_gbyte:g} GB"
    for part in row.traffic:
        exposed = "{:.3g} to {:.3g}".format(*part.exposed_seconds)
        yield f"{part.kind}, {part.group} GPUs ({part.where}): {part.formula}; exposed {exposed} s [{part.source}]"
    step = "{:.3g} to {:.3g}".format(*row.step_seconds)
    yield f"step: {row.compute_seconds:.3g} s x (1 + {row.bubble_percent:g}%) + exposed = {step} s"
