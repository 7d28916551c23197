"""What every engine can do, and a view of it that is narrowed to some nodes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from agent.fleet.dataset import BadDataset, Dataset, open_dataset
from agent.fleet.engines import shapes
from agent.fleet.engines.query import Choice, Dated, Query, Row, Source, in_pieces, since

if TYPE_CHECKING:
    from ibis.expr import types as ir

Asked = Callable[[], list[Row]]  # the rows, once they are needed


class EngineRefused(Exception):
    """The engine or its dataset cannot be used; the message is one line."""


def one_line(name: str, error: BaseException) -> str:
    """An engine's error for people: its name and the beginning of what it says, on one line, without the SQL."""
    said = " ".join(str(error).partition("\nLINE ")[0].split()) or type(error).__name__
    return f"{name}: {said[:300]}{'...' if len(said) > 300 else ''}"


def dataset_at(url: str) -> Dataset:
    """The dataset as it is now. Raises EngineRefused."""
    try:
        return open_dataset(url)
    except BadDataset as error:
        raise EngineRefused(str(error)) from error


class Tables(Source, Protocol):
    """What a question is asked of."""

    @property
    def whole(self) -> Tables:
        """Those of all nodes, where these are of some."""

    def rows(self, expression: ir.Table) -> list[Row]:
        """The rows of an expression, in no order. Times are UTC without a zone. Raises EngineRefused."""

    def later(self, expression: ir.Table) -> Asked:
        """Ask now, and take the rows when they are needed: an engine may work meanwhile. Raises EngineRefused."""

    def begun(self, query: Query) -> Asked:
        """As `later`: an engine may know the query by its name."""

    def chosen(self, choice: Choice, values: Iterable[Row]) -> list[Row]:
        """The rows of a choice. `values`: of its keys, none twice. Raises EngineRefused."""

    def since(self, query: Dated, moment: datetime) -> Asked:
        """As `later`. `moment`: UTC without a zone."""

    def batches(self, expression: ir.Table) -> Any:
        """A pyarrow.RecordBatchReader, for what is too large for one list. Raises EngineRefused."""


class Engine(Tables, Protocol):
    """Tables that somebody opened."""

    name: str

    def close(self) -> None:
        """Let go of connections and files."""


class Expressions(ABC):
    """Whatever has a name is asked as its expression, here and when it is needed."""

    @property
    def whole(self) -> Tables:
        """Themselves."""
        return self

    @abstractmethod
    def batches(self, expression: ir.Table) -> Any:
        """The rows of an expression, as a pyarrow.RecordBatchReader."""

    @abstractmethod
    def latest(self, name: str) -> ir.Table:
        """A table of the newest reports."""

    @abstractmethod
    def history(self, name: str) -> ir.Table:
        """A table's history."""

    @abstractmethod
    def rows(self, expression: ir.Table) -> list[Row]:
        """The rows of an expression."""

    def later(self, expression: ir.Table) -> Asked:
        """See Tables."""
        return partial(self.rows, expression)

    def begun(self, query: Query) -> Asked:
        """See Tables."""
        return self.later(query.make(self))

    def chosen(self, choice: Choice, values: Iterable[Row]) -> list[Row]:
        """In several goes, where they are many."""
        return in_pieces(self, choice, values)

    def since(self, query: Dated, moment: datetime) -> Asked:
        """See Tables."""
        return partial(since, self, query, moment)


class Where(NamedTuple):
    """Which nodes are asked about. Empty: all."""

    clusters: frozenset[str] = frozenset()
    classes: tuple[str, ...] = ()  # parts of a hardware class, in any case of letters
    nodes: tuple[str, ...] = ()


class Narrowed(Expressions):
    """The same tables, of some nodes only: no query is the one that an engine knows by its name."""

    def __init__(self, tables: Tables, where: Where) -> None:
        self._tables, self._where = tables, where

    @property
    def whole(self) -> Tables:
        """As the engine gives them."""
        return self._tables

    def latest(self, name: str) -> ir.Table:
        """Only rows of those nodes."""
        return self._of_these(self._tables.latest(name))

    def history(self, name: str) -> ir.Table:
        """Only rows of those nodes."""
        return self._of_these(self._tables.history(name))

    def rows(self, expression: ir.Table) -> list[Row]:
        """As the engine gives them."""
        return self._tables.rows(expression)

    def later(self, expression: ir.Table) -> Asked:
        """As the engine gives them."""
        return self._tables.later(expression)

    def batches(self, expression: ir.Table) -> Any:
        """As the engine gives them."""
        return self._tables.batches(expression)

    def _of_these(self, table: ir.Table) -> ir.Table:
        where = self._where
        if where.nodes:
            table = table.filter(table.node.isin(where.nodes))
        if not where.clusters and not where.classes:
            return table
        host = self._tables.latest("host")
        if where.clusters:
            host = host.filter(host.cluster.isin(sorted(where.clusters)))
        if where.classes:
            wanted = host.hardware_class.lower().contains(where.classes[0].lower())
            for each in where.classes[1:]:
                wanted = wanted | host.hardware_class.lower().contains(each.lower())
            host = host.filter(wanted)
        return table.semi_join(host.select("node"), "node")


def narrowed(tables: Tables, where: Where) -> Tables:
    """The tables of the nodes that are asked about."""
    return Narrowed(tables, where) if any(where) else tables


class Unbound(Expressions):
    """Tables by name, for engines that hold them under these names."""

    def latest(self, name: str) -> ir.Table:
        """By name."""
        return shapes.table(name)

    def history(self, name: str) -> ir.Table:
        """By name."""
        return shapes.table(shapes.HISTORY + name)
