"""The input of assemble: the outcomes of all probes, by name, typed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from probes.probe import Outcome

F = TypeVar("F")


class ProbeFacts:
    """Outcomes by probe name. `of` returns the facts of one probe, or None where it has none."""

    def __init__(self, outcomes: Iterable[Outcome]) -> None:
        self.outcomes = {outcome.name: outcome for outcome in outcomes}

    def of(self, name: str, kind: type[F]) -> F | None:
        """The facts of one probe, or None if it has none."""
        outcome = self.outcomes.get(name)
        return outcome.facts if outcome and isinstance(outcome.facts, kind) else None

    def get(self, name: str) -> Any:
        """The same without a type check, for callers that only need the type for annotations: it is not imported."""
        outcome = self.outcomes.get(name)
        return outcome.facts if outcome else None
