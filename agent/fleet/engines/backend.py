"""What Ibis' own engines have in common: an expression goes there as it is, its rows come back through Arrow."""

from __future__ import annotations

from typing import Any

from ibis.expr import types as ir

from agent.fleet.engines.engine import EngineRefused, Row, Unbound


class Backend(Unbound):
    """Tables that stand in an engine under our names."""

    def __init__(self, name: str, backend: Any) -> None:
        self.name = name
        self._backend = backend

    def rows(self, expression: ir.Table) -> list[Row]:
        """Compiled, run there, and fetched. Raises EngineRefused."""
        try:
            columns = self._backend.to_pyarrow(expression).columns
        except Exception as error:  # each engine has errors of its own
            raise EngineRefused(one_line(self.name, error)) from error
        return list(zip(*(each.to_pylist() for each in columns), strict=True))

    def batches(self, expression: ir.Table) -> Any:
        """A pyarrow.RecordBatchReader. Raises EngineRefused."""
        try:
            return self._backend.to_pyarrow_batches(expression)
        except Exception as error:
            raise EngineRefused(one_line(self.name, error)) from error

    def close(self) -> None:
        """Disconnect."""
        self._backend.disconnect()


def one_line(name: str, error: BaseException) -> str:
    """An engine's error for people: the first line that says something, without what follows it."""
    said = " ".join(str(error).split()) or type(error).__name__
    return f"{name}: {said[:300]}{'...' if len(said) > 300 else ''}"
