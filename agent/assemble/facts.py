"""The facts that assemble works on: the outcomes of all probes, by name, typed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from probes.probe import Outcome

F = TypeVar("F")


class Facts:
    """Outcomes by probe name. `of` gives one probe's facts, or None where it has none."""

    def __init__(self, outcomes: Iterable[Outcome]) -> None:
        self.outcomes = {outcome.name: outcome for outcome in outcomes}

    def of(self, name: str, kind: type[F]) -> F | None:
        """The facts of one probe, if it answered."""
        outcome = self.outcomes.get(name)
        return outcome.facts if outcome and isinstance(outcome.facts, kind) else None

    def told(self, name: str) -> Any:
        """The same, where the caller knows the shape as a type only: to import it would be to import its reader."""
        outcome = self.outcomes.get(name)
        return outcome.facts if outcome else None
