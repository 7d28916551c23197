"""Engines that no test can start: every expression of every question can be written in their SQL."""

from __future__ import annotations

from typing import Any

import sqlglot
from ibis.backends.sql import compilers
from ibis.expr import types as ir

from agent.fleet.engines import connect
from agent.fleet.engines.engine import Engine, Unbound
from agent.fleet.engines.query import Row
from tests.agent.fleet.engines.test_equal import answers


class Noting(Unbound):
    """DuckDB, which is asked in the tables' names as an engine is that holds them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.asked: list[ir.Table] = []

    def latest(self, name: str) -> ir.Table:
        self._engine.latest(name)  # a view of it must be there
        return super().latest(name)

    def history(self, name: str) -> ir.Table:
        self._engine.history(name)
        return super().history(name)

    def rows(self, expression: ir.Table) -> list[Row]:
        self.asked.append(expression)
        return self._engine.rows(expression)

    def batches(self, expression: ir.Table) -> Any:
        raise NotImplementedError


COMPILERS = (
    compilers.BigQueryCompiler,
    compilers.ClickHouseCompiler,
    compilers.PostgresCompiler,
    compilers.SnowflakeCompiler,
    compilers.TrinoCompiler,
)


def test_every_expression_has_its_sql(dataset: Any) -> None:
    engine = connect(None, str(dataset))
    noting = Noting(engine)
    assert answers(noting) == answers(engine)  # expressions say what the prepared queries do
    engine.close()

    assert len(noting.asked) > 80
    for compiler in COMPILERS:
        writer: Any = compiler()
        for each in noting.asked:
            sql = writer.to_sqlglot(each).sql(dialect=writer.dialect)
            assert sqlglot.parse_one(sql, dialect=writer.dialect)
