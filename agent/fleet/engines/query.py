"""Queries: the SQL of agent/fleet/queries with its bound values, and one SELECT that a person wrote.

Statements are in DuckDB's dialect. Only identifiers and fragments of the same files vary; values are always bound.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

from agent.fleet.engines import schema

Row = tuple[Any, ...]
Pending = Callable[[], list[Row]]  # waits for the rows
WANTED = "wanted"  # the table of the keys that are looked up
SCOPE = "scope"  # the table of the nodes that are asked about, where these are not all
SILENCES = "silences"  # the table of findings that the operator of the fleet silenced
FINDING = "finding"
_FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "queries")
_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_HEAD = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_COMMENT = re.compile(r"^ *--.*\n?", re.MULTILINE)
_TABLE = re.compile(r'\b(?:FROM|JOIN)\s+"?([a-z_]+)')


class Relation(NamedTuple):
    """A table that is bound to a query: `columns` are names and types (agent/fleet/columns.py)."""

    name: str
    columns: Mapping[str, str]
    rows: Sequence[Row]

    @property
    def lists(self) -> dict[str, list[Any]]:
        """Its rows as one parameter for each column: "wanted_0"."""
        columns = zip(*self.rows, strict=True) if self.rows else ([] for _ in self.columns)
        return {f"{self.name}_{at}": list(values) for at, values in enumerate(columns)}


class Query(NamedTuple):
    """One SELECT, its parameters, and the tables that are bound to it.

    `scoped`: only of the nodes of SCOPE. `silenced`: findings of SILENCES are as if their nodes had silenced them.
    """

    sql: str
    parameters: Mapping[str, Any] = {}
    relations: tuple[Relation, ...] = ()
    scoped: bool = False
    silenced: bool = False

    def bind(self, **parameters: Any) -> Query:
        """With these parameters, too."""
        return self._replace(parameters={**self.parameters, **parameters})

    @property
    def tables(self) -> list[str]:
        """The dataset's tables in it; where it is scoped, table host is no other than it was."""
        return tables_of(self.sql)

    @property
    def nodes(self) -> set[str] | None:
        """The only nodes whose rows are in its answer, as far as that is certain; None: any."""
        for relation in self.relations:
            is_lookup = relation.name == WANTED and "node" in relation.columns and len(_list_tables(self.sql)) == 1
            if is_lookup or relation.name == SCOPE:
                place = list(relation.columns).index("node")
                return {row[place] for row in relation.rows} - {None}
        return None

    def ctes(self, schema: str = "", narrowed: Mapping[str, str] = MappingProxyType({})) -> list[tuple[str, str]]:
        """Names and SELECTs that are before it, so that tables have the rows of some nodes only, and silences.

        `schema`: of the tables, where an engine takes their bare names for those that it reads. `narrowed`: what is
        read in place of some tables.
        """
        sources = {name: narrowed.get(name, f"{schema}{quote(name)}") for name in self.tables}
        if self.scoped:
            made = {name: _scope(quote(name), source) for name, source in sources.items()}
        else:
            made = {name: f"SELECT * FROM {source}" for name, source in narrowed.items()}  # noqa: S608  # our names
        if self.silenced and FINDING in self.tables:
            made[FINDING] = _with_silences(made.get(FINDING, f"SELECT * FROM {sources[FINDING]}"))  # noqa: S608
        return list(made.items())


def _with_silences(findings: str) -> str:
    known = {"silenced": "TRUE", "silenced_reason": "known.reason", "silenced_until": "known.until"}
    columns = [
        f"CASE WHEN coalesce(found.silenced, FALSE) THEN found.{name} WHEN coalesce(known.reason, '') <> '' "
        f"THEN {known[name]} ELSE found.{name} END AS {name}" if name in known else f'found."{name}"'
        for name in (column.name for column in schema.columns(FINDING))
    ]  # fmt: skip
    same = " AND ".join(f"known.{key} = found.{key}" for key in ("node", "rule", "subject", "fingerprint"))
    return f"SELECT {', '.join(columns)} FROM ({findings}) AS found LEFT JOIN {SILENCES} AS known ON {same}"  # noqa: S608  # our names


def _scope(table: str, source: str) -> str:
    return f"SELECT {table}.* FROM {source} AS {table} SEMI JOIN {SCOPE} ON {table}.node = {SCOPE}.node"  # noqa: S608  # our names


class LookupQuery(NamedTuple):
    """A query for the rows that have certain values in some columns: `keys` are their names and types."""

    query: Query
    keys: Mapping[str, str]

    def bind(self, **parameters: Any) -> LookupQuery:
        """With these parameters, too."""
        return self._replace(query=self.query.bind(**parameters))

    def of(self, values: Iterable[Row]) -> Query:
        """The query with these values of its keys."""
        return self.query._replace(relations=(Relation(WANTED, self.keys, list(values)),))


@cache
def tables_of(sql: str) -> list[str]:
    """The dataset's tables in a statement."""
    return list(dict.fromkeys(_list_tables(sql)))


@cache
def _list_tables(sql: str) -> list[str]:
    """As often as they are read."""
    known = set(schema.names())
    return [name for name in _TABLE.findall(sql) if name in known]


@cache
def _statements(file: str) -> dict[str, str]:
    with open(os.path.join(_FOLDER, f"{file}.sql"), encoding="utf-8") as opened:
        _, *parts = _HEAD.split(opened.read())
    return {name: _COMMENT.sub("", sql).strip() for name, sql in zip(parts[::2], parts[1::2], strict=True)}


def statement(file: str, name: str, /, **parts: str) -> str:
    """A statement or fragment, with `parts` in the place of {names}. Raises KeyError."""
    return re.sub(r"\{(\w+)\}", lambda place: parts[place[1]], _statements(file)[name])


def query(file: str, name: str, /, **parts: str) -> Query:
    """The query of a statement."""
    return Query(statement(file, name, **parts))


def lookup(keys: Mapping[str, str], file: str, name: str, /, **parts: str) -> LookupQuery:
    """The query of a statement that joins WANTED."""
    return LookupQuery(query(file, name, **parts), keys)


def table_query(name: str, columns: Iterable[str] = ()) -> Query:
    """Columns of a table by the name that engines use; all where none is named. Raises KeyError."""
    wanted = [column.name for column in schema.columns(name)]
    return query("fleet", "columns", columns=identifiers(columns or wanted), table=quote(name))


def quote(name: str, table: str | None = None) -> str:
    """An identifier of the catalogue: never anything that a user gave."""
    assert _NAME.fullmatch(name), name
    return f'{table}."{name}"' if table else f'"{name}"'


def identifiers(names: Iterable[str], table: str | None = None) -> str:
    """A list of them."""
    return ", ".join(quote(name, table) for name in names)


def matching(keys: Iterable[str], null_safe: bool = True) -> str:
    """The condition by which `thing` joins WANTED."""
    equal = "IS NOT DISTINCT FROM" if null_safe else "="
    return " AND ".join(f"{quote(key, 'thing')} {equal} {quote(key, WANTED)}" for key in keys)


def key_types(table: str, keys: Iterable[str]) -> dict[str, str]:
    """The types of columns of a table."""
    types = {column.name: column.type for column in schema.columns(table)}
    return {key: types[key] for key in keys}


def with_ctes(ctes: Iterable[tuple[str, str]], sql: str) -> str:
    """A SELECT with named ones before it."""
    before = ", ".join(f"{quote(name)} AS ({select})" for name, select in ctes)
    return f"WITH {before} SELECT * FROM ({sql}) AS answer" if before else sql  # noqa: S608  # of our statements


def not_one_select(kinds: Sequence[str]) -> str:
    """Why no such statements are run: a message for a person."""
    named = ", ".join(kind.lower().replace("_", " ") for kind in kinds[:4]) or "nothing"
    return f"expected one SELECT, got {named}: the tables are read-only"


def make_distinct(names: Sequence[str]) -> list[str]:
    """With numbers behind those that another column has, so that none hides the other.

    >>> make_distinct(["a", "a", "b", "a_1", "a"])
    ['a', 'a_2', 'b', 'a_1', 'a_3']
    """
    left, numbers = set(names), dict.fromkeys(names, 0)
    taken: set[str] = set()
    distinct_names = []
    for name in names:
        unique_name = name
        while unique_name in taken or (unique_name != name and unique_name in left):
            numbers[name] += 1
            unique_name = f"{name}_{numbers[name]}"
        taken.add(unique_name)
        distinct_names.append(unique_name)
    return distinct_names
