"""The input of assemble (the outcomes of all probes, by name, typed), and how it becomes rows: by name, and sorted."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache
from typing import Any, TypeVar

import msgspec

from agent.model.labels import natural
from probes.probe import Outcome
from probes.text import PCI_ADDRESS_PARTS

_ADDRESS = re.compile(PCI_ADDRESS_PARTS)

Key = tuple[int | str, ...]


@lru_cache(maxsize=4096)
def sort_key(name: str) -> Key:
    """A sort key: PCI addresses first, by domain, bus, device and function; then names, their numbers as numbers.

    >>> sorted(["mlx5_10", "10000:00:00.0", "mlx5_9", "0000:e1:00.0"], key=sort_key)
    ['0000:e1:00.0', '10000:00:00.0', 'mlx5_9', 'mlx5_10']
    >>> sorted(["0000:e1:00.0/17", "0000:e1:00.0/5", "0000:e1:00.0", "0000:40:00.0/3"], key=sort_key)
    ['0000:40:00.0/3', '0000:e1:00.0', '0000:e1:00.0/5', '0000:e1:00.0/17']
    """
    address = _ADDRESS.match(name)
    if address:
        return 0, *(int(part, 16) for part in address.groups()), natural(name[address.end() :])
    return 1, natural(name)


def card_address(address: str) -> str:
    """The card of a function: its PCI address without the function number."""
    return address.rpartition(".")[0]


F = TypeVar("F")
K = TypeVar("K")
R = TypeVar("R")
S = TypeVar("S", bound=msgspec.Struct)


def merge_by_key(sources: Iterable[Iterable[R]], key: Callable[[R], K], fill: Callable[[R, R], R]) -> dict[K, R]:
    """The rows of several probes, each thing once: an earlier source wins, later ones fill its missing fields."""
    merged: dict[K, R] = {}
    for rows in reversed(list(sources)):
        merged |= {key(row): fill(row, merged[key(row)]) if key(row) in merged else row for row in rows}
    return merged


def build_row(kind: type[S], facts: Any, **computed: Any) -> S:
    """A row of the report from a probe's facts: a field takes the fact of its name, unless its value is computed.

    A table is sorted, a sequence is a list. What the probe did not read (None) is what the row has by default.
    """
    for name, value in zip(_shared_fields(kind, facts.__class__), facts, strict=True):
        if value is not None and name is not None and name not in computed:
            computed[name] = value if value.__class__ in _PLAIN else _to_plain(value)
    return kind(**computed)


_PLAIN = frozenset((str, int, float, bool))


@cache
def _shared_fields(kind: type[msgspec.Struct], facts: Any) -> tuple[str | None, ...]:
    """The facts' names, by their places; None: the row has no such field."""
    return tuple(name if name in kind.__struct_fields__ else None for name in facts._fields)


def _to_plain(value: Any) -> Any:
    kind = type(value)
    if kind is dict:
        return {key: _to_plain(part) for key, part in sorted(value.items())}
    if kind is tuple:
        return list(value)
    return sorted(value) if kind is frozenset else value


class ProbeFacts:
    """Outcomes by probe name. `of` returns the facts of one probe, or None where it has none."""

    def __init__(self, outcomes: Iterable[Outcome], providers: Mapping[str, tuple[str, ...]]) -> None:
        self.outcomes = {outcome.name: outcome for outcome in outcomes}
        self.providers = providers  # names of probes by the subject that their facts are about

    def of(self, name: str, kind: type[F]) -> F | None:
        """The facts of one probe, or None if it has none."""
        outcome = self.outcomes.get(name)
        return outcome.facts if outcome and isinstance(outcome.facts, kind) else None

    def all_of(self, subject: str, kind: type[F]) -> list[tuple[str, F]]:
        """Name and facts of every probe about one subject, in catalogue order: where they differ the first counts."""
        return [(name, facts) for name in self.providers[subject] if (facts := self.of(name, kind)) is not None]

    def get(self, name: str) -> Any:
        """The same without a type check, for callers that only need the type for annotations: it is not imported."""
        outcome = self.outcomes.get(name)
        return outcome.facts if outcome else None
