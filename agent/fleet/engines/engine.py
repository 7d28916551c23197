"""What every engine can do, a view of it that is narrowed to some nodes, and views beside the tables, for SQL that
people write; no question reads these.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any, NamedTuple

from agent.fleet.dataset import BadDataset, Dataset, open_dataset
from agent.fleet.engines.query import (
    FINDING,
    SCOPE,
    LookupQuery,
    Pending,
    Query,
    Relation,
    Row,
    identifiers,
    query,
    statement,
)
from agent.fleet.engines.schema import columns
from agent.fleet.table import TEXT
from agent.fleet.tables import PORT_COUNTERS

_SCOPE = query("fleet", "scope")
ABOUT = {
    "rule_check": 'Table "check" by a name that is no reserved word.',
    "finding_episode": "From when to when each finding was there; ended is null while it is.",
    "finding_open": "The findings of each node's newest report, and when they began.",
    "node_setting": "One row per node and setting of NCCL and its like.",
    "node_service": "One row per node and service, with its state.",
    "node_day": "Every node and day (UTC) with a report: its reports, and its state by the last of them.",
    "port_day": "What the error counters of each RDMA port grew by on a day (UTC).",
}
_NO_ERRORS = ("port_rcv_data", "port_xmit_data")


class EngineRefused(Exception):
    """The engine or its dataset cannot be used; the message is one line."""


def one_line(name: str, error: BaseException) -> str:
    """An engine's error for people: its name and the beginning of what it states, on one line, without the SQL."""
    message = " ".join(str(error).partition("\nLINE ")[0].split()) or type(error).__name__
    return f"{name}: {message[:300]}{'...' if len(message) > 300 else ''}"


@contextmanager
def raise_refused(name: str, kinds: tuple[type[Exception], ...] = (Exception,)) -> Iterator[None]:
    """What an engine raises of these kinds becomes EngineRefused, one line that begins with its name."""
    try:
        yield
    except EngineRefused:
        raise
    except kinds as error:  # each engine, and each library below it, has errors of its own
        raise EngineRefused(one_line(name, error)) from error


def dataset_at(url: str) -> Dataset:
    """The dataset as it is now. Raises EngineRefused."""
    try:
        return open_dataset(url)
    except BadDataset as error:
        raise EngineRefused(str(error)) from error


class Tables(ABC):
    """What a question is asked of. All methods raise EngineRefused."""

    @property
    def whole(self) -> Tables:
        """Those of all nodes, where these are of some."""
        return self

    @abstractmethod
    def rows(self, query: Query) -> list[Row]:
        """The rows of a query, in no order. Times are UTC without a zone."""

    def submit(self, query: Query) -> Pending:
        """Ask now, and take the rows when they are needed: an engine may work meanwhile."""
        return partial(self.rows, query)

    def bucket(self, _node: str) -> int:
        """The part of the tables that a node is in: those of few parts are read faster than those of many."""
        return 0

    @abstractmethod
    def batches(self, query: Query) -> Any:
        """A pyarrow.RecordBatchReader, for what is too large for one list."""

    def many_rows(self, query: Query) -> list[Row]:
        """As `rows`; an engine may hold each different text once."""
        return self.rows(query)

    def fetch_by_keys(self, lookup: LookupQuery, values: Iterable[Row]) -> list[Row]:
        """The rows of a lookup. `values`: of its keys, none twice."""
        wanted = lookup.of(values)
        return self.rows(wanted) if wanted.relations[0].rows else []

    def submit_by_keys(self, lookup: LookupQuery, values: Iterable[Row]) -> Pending:
        """The same, taken when they are needed."""
        wanted = lookup.of(values)
        return self.submit(wanted) if wanted.relations[0].rows else list


class Engine(Tables):
    """Tables that someone opened."""

    name: str

    @abstractmethod
    def query(self, sql: str) -> tuple[list[str], Iterator[list[Row]]]:
        """Names of the columns of one SELECT that a person wrote, and its rows in pieces. Nothing is written.

        Raises EngineRefused, also from the pieces.
        """

    @abstractmethod
    def close(self) -> None:
        """Let go of connections and files."""


class Where(NamedTuple):
    """Which nodes are asked about. Empty: all."""

    clusters: frozenset[str] = frozenset()
    classes: tuple[str, ...] = ()  # parts of a hardware class, in any case of letters
    nodes: tuple[str, ...] = ()


class Adapted(Tables):
    """The same tables, by queries that are adapted before they are asked."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    @abstractmethod
    def adapt(self, query: Query) -> Query:
        """The query as it is asked."""

    def bucket(self, node: str) -> int:
        """See Tables."""
        return self._tables.bucket(node)

    def rows(self, query: Query) -> list[Row]:
        """See Tables."""
        return self._tables.rows(self.adapt(query))

    def many_rows(self, query: Query) -> list[Row]:
        """See Tables."""
        return self._tables.many_rows(self.adapt(query))

    def submit(self, query: Query) -> Pending:
        """See Tables."""
        return self._tables.submit(self.adapt(query))

    def batches(self, query: Query) -> Any:
        """See Tables."""
        return self._tables.batches(self.adapt(query))


class Narrowed(Adapted):
    """The same tables, of some nodes only."""

    def __init__(self, tables: Tables, where: Where) -> None:
        super().__init__(tables)
        self._where = where

    @property
    def whole(self) -> Tables:
        """As the engine gives them."""
        return self._tables

    def adapt(self, query: Query) -> Query:
        """Of those nodes."""
        return query._replace(relations=(*query.relations, self._scope), scoped=True)

    @cached_property
    def _scope(self) -> Relation:
        where = self._where
        nodes = list(dict.fromkeys(where.nodes))
        if where.clusters or where.classes:
            parts = [part.lower() for part in where.classes]
            named = set(nodes)
            nodes = [
                node
                for node, cluster, hardware_class in self._tables.rows(_SCOPE)
                if (not named or node in named)
                and (not where.clusters or cluster in where.clusters)
                and (not parts or any(part in (hardware_class or "").lower() for part in parts))
            ]
        return Relation(SCOPE, {"node": TEXT}, [(node,) for node in nodes])


class Silenced(Adapted):
    """The same tables, in which some findings are silenced. `known`: the table SILENCES."""

    def __init__(self, tables: Tables, known: Relation) -> None:
        super().__init__(tables)
        self._known = known

    @property
    def whole(self) -> Tables:
        """Of all nodes, silenced as well."""
        return self if self._tables.whole is self._tables else Silenced(self._tables.whole, self._known)

    def adapt(self, query: Query) -> Query:
        """With them silenced."""
        if FINDING not in query.tables:
            return query
        return query._replace(relations=(*query.relations, self._known), silenced=True)


def narrow(tables: Tables, where: Where) -> Tables:
    """The tables of the nodes that are asked about."""
    return Narrowed(tables, where) if any(where) else tables


def views(with_zone: bool = False) -> dict[str, str]:
    """The SELECT of each view, each after those that it reads. `with_zone`: times have one."""
    counters = [name for name in PORT_COUNTERS if name not in _NO_ERRORS]
    parts = {
        "counters": ", ".join(counters),
        "columns": identifiers(column.name for column in columns("check")),
        "day": statement("views", "day_with_zone" if with_zone else "day"),
        "grown": ", ".join(statement("views", "grown", counter=name) for name in counters),
    }
    return {name: statement("views", name, **parts) for name in ABOUT}
