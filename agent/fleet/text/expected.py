"""`fleet expected` for people."""

from __future__ import annotations

from agent.fleet.expected import ExpectedAnswer, ExpectedRow
from agent.fleet.hostlist import fold
from agent.fleet.text.parts import count, hosts, number, wrap_item
from agent.outputs.text.lines import BLANK, Line, make_heading, make_line

TITLES = {
    "never": ("Never reported", "error"),
    "silent": ("Reports stopped", "warning"),
    "unexpected": ("Report, but are in no list", "warning"),
    "drain": ("To drain", "error"),
    "out": ("Out of service, by the list", ""),
}


def page(answer: ExpectedAnswer, width: int = 80) -> list[Line]:
    """The whole answer."""
    verb = "reports" if answer.expected == 1 else "report"
    head = f"{number(answer.reporting)} of {count(answer.expected, 'expected node')} {verb}"
    lines = [make_line((head, "bold"))]
    if not any(answer.of(what) for what in TITLES if what != "out"):
        lines.append(make_line(("no node is missing, unexpected or to be drained", "ok")))
    for what, (title, style) in TITLES.items():
        rows = answer.of(what)
        if not rows:
            continue
        lines += [BLANK, make_heading(f"{title}: {count(len(rows), 'node')}")]
        numbered = [row for row in rows if row.hostname]  # by a key that is no host name
        for row in sorted(numbered, key=lambda row: (row.hostname or "", row.node)):
            lines += wrap_item(f"{row.hostname} ({row.node})", width, style=style)
        rows = [row for row in rows if not row.hostname]
        if not rows:
            continue
        if what in ("never", "unexpected"):
            lines += wrap_item(hosts(fold(row.node for row in rows), len(rows)), width, style=style)
        else:
            for row in sorted(rows, key=lambda row: row.node):
                lines += wrap_item(_line(row), width, style=style)
    return lines


def _line(row: ExpectedRow) -> str:
    parts = [f"{row.node}:"]
    parts += [", ".join(row.rules)] if row.rules else []
    parts += [row.state] if row.state and row.what == "out" else []
    parts += [f"({row.reason})"] if row.reason else []
    last = f"last report {row.last_report}" if row.last_report else "no report"
    return " ".join([*parts, last] if row.what != "drain" else parts)
