"""What Ibis' own engines have in common: an expression goes there as it is, its rows come back through Arrow."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ibis.expr import types as ir

from agent.fleet.dataset import Dataset
from agent.fleet.engines import shapes
from agent.fleet.engines.engine import EngineRefused, Unbound, one_line
from agent.fleet.engines.query import Row


@contextmanager
def refused(name: str) -> Iterator[None]:
    """Whatever an engine raises becomes EngineRefused, one line that begins with its name."""
    try:
        yield
    except EngineRefused:
        raise
    except Exception as error:  # each engine, and each library below it, has errors of its own
        raise EngineRefused(one_line(name, error)) from error


class Backend(Unbound):
    """Tables that stand in an engine under our names."""

    def __init__(self, name: str, backend: Any) -> None:
        self.name = name
        self._backend = backend

    def rows(self, expression: ir.Table) -> list[Row]:
        """Compiled, run there, and fetched. Raises EngineRefused."""
        with refused(self.name):
            columns = self._backend.to_pyarrow(expression).columns
        return list(zip(*(each.to_pylist() for each in columns), strict=True))

    def batches(self, expression: ir.Table) -> Any:
        """A pyarrow.RecordBatchReader. Raises EngineRefused."""
        with refused(self.name):
            return self._backend.to_pyarrow_batches(expression)

    def close(self) -> None:
        """Disconnect."""
        self._backend.disconnect()


class Views(Backend, ABC):
    """Views over the files that the manifest names, each made when it is first asked for."""

    def __init__(self, name: str, backend: Any, dataset: Dataset) -> None:
        super().__init__(name, backend)
        self._dataset = dataset
        self._views: set[str] = set()

    def latest(self, name: str) -> ir.Table:
        """The view of that table."""
        self._view(name, self._dataset.latest(name))
        return super().latest(name)

    def history(self, name: str) -> ir.Table:
        """The view of that table's history."""
        self._view(shapes.HISTORY + name, self._dataset.history(name))
        return super().history(name)

    @abstractmethod
    def make(self, name: str, files: list[str]) -> None:
        """The view of that name over these files, with our columns: those that older files lack are null.

        No files: the dataset was made before there was that table.
        """

    def _view(self, name: str, files: list[str]) -> None:
        if name in self._views:
            return
        with refused(self.name):
            self.make(name, files)
        self._views.add(name)
