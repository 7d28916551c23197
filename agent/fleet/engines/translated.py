"""What engines other than DuckDB have in common: statements translated by sqlglot, tables that a load made.

All differences of the dialects that sqlglot does not translate are in this file.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import sqlglot
from sqlglot import exp

from agent.fleet.engines import schema
from agent.fleet.engines.engine import Engine, EngineRefused, raise_refused
from agent.fleet.engines.query import Query, Relation, Row, make_distinct, not_one_select, with_ctes
from agent.fleet.table import TIME
from probes.time_limit import TimeIsUp, TimeLimit

_PIECE = 8192  # rows
_NARROW = "ask about fewer nodes, or less of each"
# Of one answer of a server: what is more is no answer that a command can use, and takes the memory of this machine
MOST_ROWS, MOST_BYTES, ANSWER_SECONDS = 10_000_000, 4 << 30, 600.0


@contextmanager
def limit_time(name: str) -> Iterator[None]:
    """Raises EngineRefused once an answer has taken too long, however it comes."""
    try:
        with TimeLimit(time.monotonic() + ANSWER_SECONDS):
            yield
    except TimeIsUp:
        raise EngineRefused(f"{name}: no whole answer within {ANSWER_SECONDS:g} s: {_NARROW}") from None


class AnswerSize:
    """How much of an answer has come. `add` raises EngineRefused for too much."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._rows = self._bytes = 0

    def add(self, rows: int, size: int) -> None:
        """Of a piece."""
        self._rows, self._bytes = self._rows + rows, self._bytes + size
        if self._rows > MOST_ROWS:
            raise EngineRefused(f"{self._name}: the answer has more than {MOST_ROWS:,} rows: {_NARROW}")
        if self._bytes > MOST_BYTES:
            raise EngineRefused(f"{self._name}: the answer has more than {MOST_BYTES >> 20:,} MiB: {_NARROW}")


class Translated(Engine):
    """Tables that are in an engine under our names."""

    dialect: str  # of sqlglot

    def __init__(self, name: str) -> None:
        self.name = name

    def rows(self, query: Query) -> list[Row]:
        """See Tables."""
        with raise_refused(self.name):
            parameters = dict(query.parameters)
            ctes = []
            for relation in query.relations:
                parameters.update(relation.lists)
                ctes.append((relation.name, self.relation(relation)))
            ctes += [(name, translate(select, self.dialect)) for name, select in query.ctes()]
            statement = with_ctes(ctes, translate(query.sql, self.dialect))
            with limit_time(self.name):  # not of what sqlglot imports: half a dialect would stay
                return self.fetch(statement, parameters)

    def batches(self, query: Query) -> Any:
        """See Tables: of a whole table, all at once."""
        import pyarrow as pa

        from agent.fleet.columns import TYPES

        types = {**TYPES, TIME: pa.timestamp("us")}
        (table,) = query.tables
        rows = self.rows(query)
        arrow_schema = pa.schema([(column.name, types[column.type]) for column in schema.columns(table)])
        columns = zip(*rows, strict=True) if rows else ([] for _ in arrow_schema)
        arrays = [pa.array(list(values), field.type) for values, field in zip(columns, arrow_schema, strict=True)]
        return pa.Table.from_arrays(arrays, schema=arrow_schema).to_reader(max_chunksize=65_536)

    def query(self, sql: str) -> tuple[list[str], Iterator[list[Row]]]:
        """See Engine. The SELECT is DuckDB's SQL here, too, and is translated."""
        with raise_refused(self.name):
            statement = translate(_one_select(sql), self.dialect)
            with limit_time(self.name):
                names, rows = self.fetch_named(statement)
        return make_distinct(names), (rows[at : at + _PIECE] for at in range(0, len(rows), _PIECE))

    @abstractmethod
    def relation(self, relation: Relation) -> str:
        """A SELECT of its rows; parameters have the relation's name and the column's number: `wanted_0`."""

    @abstractmethod
    def fetch(self, sql: str, parameters: Mapping[str, Any]) -> list[Row]:
        """The rows of a SELECT in the engine's own dialect."""

    @abstractmethod
    def fetch_named(self, sql: str) -> tuple[Sequence[str], list[Row]]:
        """Names of columns and rows of a SELECT of a person in the engine's own dialect; nothing is written."""


def arrow_rows(table: Any) -> list[Row]:
    """The rows of a table or batch of pyarrow. Times are UTC without a zone."""
    import pyarrow as pa

    columns = (
        itercolumn.cast(pa.timestamp("us")) if pa.types.is_timestamp(itercolumn.type) else itercolumn
        for itercolumn in table.itercolumns()
    )
    return list(zip(*(column.to_pylist() for column in columns), strict=True))


def _one_select(sql: str) -> str:
    """A statement that is one SELECT. Raises EngineRefused, and sqlglot's errors."""
    kinds = [type(statement).__name__.lower() for statement in sqlglot.parse(sql, dialect="duckdb") if statement]
    if len(kinds) != 1 or kinds[0] not in ("select", "union", "intersect", "except", "subquery"):
        raise EngineRefused(not_one_select(kinds))
    return sql


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
    if isinstance(node, exp.SplitPart):
        return _call("arrayElement", _call("splitByString", node.args["delimiter"], node.this), node.args["part_index"])
    if isinstance(node, exp.Anonymous) and node.name.lower() == "regexp_split_to_array":
        text, pattern = node.expressions
        return _call("splitByRegexp", pattern, _call("ifNull", text, exp.Literal.string("")))
    if isinstance(node, exp.Select):
        _join_arrays(node)
    return node


def _join_arrays(select: exp.Select) -> None:
    """A list that is a table of one column: ClickHouse has a join of its own for it."""
    for join in select.args.get("joins") or []:
        if isinstance(join.this, exp.Unnest):
            (values,), alias = join.this.expressions, join.this.args["alias"]
            for column in list(select.find_all(exp.Column)):
                if column.table == alias.name:
                    column.set("table", None)
            join.replace(exp.Join(this=exp.alias_(values, alias.columns[0].name), kind="ARRAY"))


def _group_by_places(select: exp.Select) -> None:
    """GROUP BY ALL, which PostgreSQL 15 has not: by the place of every column that aggregates nothing."""
    group = select.args.get("group")
    if group is not None and group.args.get("all"):
        plain = [place for place, column in enumerate(select.expressions, 1) if column.find(exp.AggFunc) is None]
        places = [exp.Literal.number(place) for place in plain]
        select.set("group", exp.Group(expressions=places) if places else None)


def _postgres(node: exp.Expression) -> exp.Expression:
    """PostgreSQL sorts lists where it makes them, and joins by no condition that takes null for a value."""
    if isinstance(node, exp.Select):
        _group_by_places(node)
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
