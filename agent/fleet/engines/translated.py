"""What engines other than DuckDB have in common: statements translated by sqlglot, tables over a dataset's files.

All differences of the dialects that sqlglot does not know are in this file.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

import sqlglot
from sqlglot import exp

from agent.fleet.dataset import Dataset
from agent.fleet.engines import schema
from agent.fleet.engines.engine import Engine, EngineRefused, one_line
from agent.fleet.engines.query import Query, Relation, Row, with_ctes
from agent.fleet.table import BOOL, FLOAT, INT, TEXT, TIME


@contextmanager
def raise_refused(name: str) -> Iterator[None]:
    """Whatever an engine raises becomes EngineRefused, one line that begins with its name."""
    try:
        yield
    except EngineRefused:
        raise
    except Exception as error:  # each engine, and each library below it, has errors of its own
        raise EngineRefused(one_line(name, error)) from error


class Translated(Engine):
    """Tables that are in an engine under our names."""

    dialect: str  # of sqlglot
    mark = '"'  # that names are quoted with

    def __init__(self, name: str) -> None:
        self.name = name

    def rows(self, query: Query) -> list[Row]:
        """See Tables."""
        with raise_refused(self.name):
            for table in query.tables:
                self.make_table(table)
            parameters = dict(query.parameters)
            ctes = []
            for relation in query.relations:
                columns = zip(*relation.rows, strict=True) if relation.rows else ([] for _ in relation.columns)
                parameters.update((f"{relation.name}_{at}", list(values)) for at, values in enumerate(columns))
                ctes.append((relation.name, self.relation(relation)))
            ctes += [(name, translate(select, self.dialect)) for name, select in query.ctes()]
            return self.fetch(with_ctes(ctes, translate(query.sql, self.dialect), self.mark), parameters)

    def batches(self, query: Query) -> Any:
        """See Tables: of a whole table, all at once."""
        import pyarrow as pa

        arrow = {TEXT: pa.string(), INT: pa.int64(), FLOAT: pa.float64(), BOOL: pa.bool_(), TIME: pa.timestamp("us")}
        (table,) = query.tables
        rows = self.rows(query)
        arrow_schema = pa.schema([(column.name, arrow[column.type]) for column in schema.columns(table)])
        columns = zip(*rows, strict=True) if rows else ([] for _ in arrow_schema)
        arrays = [pa.array(list(values), field.type) for values, field in zip(columns, arrow_schema, strict=True)]
        return pa.Table.from_arrays(arrays, schema=arrow_schema).to_reader(max_chunksize=65_536)

    def make_table(self, name: str) -> None:
        """Make a table of ours known to the engine: one that has it needs nothing."""

    @abstractmethod
    def relation(self, relation: Relation) -> str:
        """A SELECT of its rows; parameters have the relation's name and the column's number: `wanted_0`."""

    @abstractmethod
    def fetch(self, sql: str, parameters: Mapping[str, Any]) -> list[Row]:
        """The rows of a SELECT in the engine's own dialect."""


class OverFiles(Translated):
    """Views over the files that the manifest names, each made when it is first asked for."""

    def __init__(self, name: str, dataset: Dataset) -> None:
        super().__init__(name)
        self._dataset = dataset
        self._views: set[str] = set()

    def make_table(self, name: str) -> None:
        """Once."""
        if name not in self._views:
            bare = name.removeprefix(schema.HISTORY)
            self.make_view(name, self._dataset.latest(name) if bare == name else self._dataset.history(bare))
            self._views.add(name)

    @abstractmethod
    def make_view(self, name: str, files: list[str]) -> None:
        """The view of that name over these files, with our columns: those that older files lack are null.

        No files: the dataset was made before there was that table.
        """


def arrow_rows(table: Any) -> list[Row]:
    """The rows of a pyarrow.Table. Times are UTC without a zone."""
    import pyarrow as pa

    columns = (
        itercolumn.cast(pa.timestamp("us")) if pa.types.is_timestamp(itercolumn.type) else itercolumn
        for itercolumn in table.itercolumns()
    )
    return list(zip(*(column.to_pylist() for column in columns), strict=True))


@cache
def translate(sql: str, dialect: str) -> str:
    """A statement of DuckDB in another dialect."""
    tree = sqlglot.parse_one(sql, dialect="duckdb")
    rewrite = _REWRITES.get(dialect)
    if rewrite is not None:
        tree = tree.transform(rewrite)
    return tree.sql(dialect=dialect)


def _clickhouse(node: exp.Expression) -> exp.Expression:
    """ClickHouse has functions of its own for lists, and divides integers to fractions."""
    folded = _match_fold(node)
    if folded is not None:
        cells, separator = folded
        return _call("arrayStringConcat", _call("arraySort", _call("groupArray", cells)), separator)
    if isinstance(node, exp.GroupConcat):
        return _call("arrayStringConcat", _call("groupArray", node.this), node.args["separator"])
    if isinstance(node, exp.RegexpReplace):
        return _call("replaceRegexpAll", node.this, node.expression, node.args["replacement"])
    if isinstance(node, exp.IntDiv):
        return _call("intDiv", node.this, node.expression)
    if isinstance(node, exp.BitwiseLeftShift):
        return _call("bitShiftLeft", node.this, node.expression)
    if isinstance(node, exp.TimeToUnix):
        return _call("toUnixTimestamp", node.this)
    return node


def _postgres(node: exp.Expression) -> exp.Expression:
    """PostgreSQL sorts lists where it makes them, and joins by no condition that takes null for a value."""
    folded = _match_fold(node)
    if folded is not None:
        cells, separator = folded
        return exp.GroupConcat(
            this=exp.Order(this=cells, expressions=[exp.Ordered(this=cells.copy())]), separator=separator
        )
    if isinstance(node, exp.Contains):
        return exp.GT(this=_call("STRPOS", node.this, node.expression), expression=exp.Literal.number(0))
    if isinstance(node, exp.IntDiv):
        return exp.Div(this=node.this, expression=node.expression, typed=True, safe=False)
    if isinstance(node, exp.Join) and isinstance(node.args.get("on"), (exp.And, exp.NullSafeEQ)):
        conditions = list(node.args["on"].flatten()) if isinstance(node.args["on"], exp.And) else [node.args["on"]]
        if all(isinstance(condition, exp.NullSafeEQ) for condition in conditions):
            sides = (
                _record([condition.this for condition in conditions]),
                _record([condition.expression for condition in conditions]),
            )
            node.set("on", exp.EQ(this=sides[0], expression=sides[1]))
    return node


def _match_fold(node: exp.Expression) -> tuple[exp.Expression, exp.Expression] | None:
    """Of `array_to_string(list_sort(list(cells)), separator)`: cells and separator."""
    if isinstance(node, exp.ArrayToString) and isinstance(node.this, exp.ArraySort):
        values = node.this.this
        if isinstance(values, exp.ArrayAgg):
            return values.this, node.expression
    return None


def _call(name: str, *arguments: exp.Expression) -> exp.Expression:
    return exp.Anonymous(this=name, expressions=list(arguments))


def _record(columns: list[exp.Expression]) -> exp.Expression:
    """Records are compared with null as a value, and can be sorted: a join of them is no loop within a loop."""
    return exp.Cast(this=_call("ROW", *columns), to=exp.DataType.build("record", udt=True))


_REWRITES: Mapping[str, Callable[[exp.Expression], exp.Expression]] = {
    "clickhouse": _clickhouse,
    "postgres": _postgres,
}
