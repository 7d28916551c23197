"""`export`: one report in the form that a neighbour reads."""

from __future__ import annotations

from agent.cli.asked import Asked
from agent.cli.delivery import deliver
from agent.outputs.export import exported


def export(asked: Asked, form: str, output: str | None) -> None:
    """Write it to stdout or a file."""
    report, _ = asked.reported()
    deliver(exported(form, report).encode("utf-8", "replace"), output)
