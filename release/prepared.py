"""SQL of the fleet's queries that have no values of their own, compiled by Ibis: DuckDB then begins without it.

`python -m release.prepared agent/fleet/engines/prepared.json` writes it anew.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import ibis
from ibis.expr import types as ir

from agent.fleet.engines import shapes
from agent.fleet.engines.embedded import TYPES, compiled, streamed
from agent.fleet.engines.engine import Make, Row, Unbound
from agent.fleet.questions.duplicates import duplicates
from agent.fleet.questions.findings import findings
from agent.fleet.questions.outliers import outliers
from agent.fleet.questions.summary import summary

QUESTIONS: tuple[Callable[[Any], object], ...] = (summary, outliers, findings, duplicates)


class Noting(Unbound):
    """Tables without a row, which keep what is asked by name."""

    def __init__(self) -> None:
        self.queries: dict[str, dict[str, Any]] = {}
        self._asked: set[str] = set()
        self._database = duckdb.connect()
        for name in shapes.names():
            columns = ", ".join(f'"{each.name}" {TYPES[each.type]}' for each in shapes.columns(name))
            self._database.execute(f'CREATE TABLE "{name}" ({columns})')

    def latest(self, name: str) -> ir.Table:
        """Noted, too."""
        self._asked.add(name)
        return super().latest(name)

    def rows(self, expression: ir.Table) -> list[Row]:
        """Those of nothing."""
        return self._database.execute(compiled(expression)).fetchall()

    def batches(self, expression: ir.Table) -> Any:
        """Those of nothing."""
        return streamed(self._database, expression)

    def prepared(self, name: str, make: Make) -> Callable[[], list[Row]]:
        """Kept by its name."""
        self._asked = set()
        expression = make(self)
        self.queries[name] = {"tables": sorted(self._asked), "sql": compiled(expression)}
        return self.later(expression)


def text() -> str:
    """The file."""
    noting = Noting()
    for question in QUESTIONS:
        question(noting)
    file = {"compiled_by": f"ibis {ibis.__version__}", "queries": dict(sorted(noting.queries.items()))}
    return json.dumps(file, indent=1) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(text(), encoding="utf-8")
