"""Every field of every group of peers: parts of one board, role and position first, then across these."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Hashable, Iterator, Sequence
from typing import Any

import msgspec

from agent.model.peers import PeerWord
from agent.rules.peers.fields import PeerField, list_fields, read_all
from agent.rules.peers.parts import PeerPart
from agent.rules.peers.voting import Vote, vote


class PeerDifference(msgspec.Struct, frozen=True):
    """A field in which some parts of a group differ from the rest."""

    field: PeerField
    parts: tuple[PeerPart, ...]  # those of the group whose value is known
    values: tuple[Any, ...]
    vote: Vote


class PeerGap(msgspec.Struct, frozen=True):
    """A field that a part does not state, and its nearest peers do."""

    field: PeerField
    part: PeerPart
    peer: PeerPart  # one of them
    value: Any  # of that
    count: int  # of these peers


_MOST = 3  # times as many parts that state a field as those that do not


def compare_parts(parts: Sequence[PeerPart], free: Container[str] = ()) -> Iterator[PeerDifference | PeerGap]:
    """The differences among parts of one kind and role. `free`: fields that are left out."""
    struct: Any = type(parts[0].row)
    products: dict[str, list[PeerPart]] = defaultdict(list)
    for part in parts:
        products[part.product].append(part)
    for word in ("equal", "usual"):
        for field in list_fields(struct, word):
            if f"{parts[0].kind}.{field.path}" in free:
                continue
            groups = [list(parts)] if field.word.mixed_boards else list(products.values())
            for group in groups:
                values = read_all(field, [part.row for part in group])
                if values is not None:
                    yield from _find_gaps(field, group, values)
                    yield from _compare_levels(field, group, values)


def _find_gaps(field: PeerField, group: Sequence[PeerPart], values: Sequence[Any]) -> Iterator[PeerGap]:
    leaves: dict[Hashable, list[tuple[PeerPart, Any]]] = defaultdict(list)
    for part, value in zip(group, values, strict=True):
        leaves[part.product, part.position].append((part, value))
    for leaf in leaves.values():
        known = [row for row in leaf if row[1] is not None]
        if len(known) >= _MOST * max(len(leaf) - len(known), 1):
            gaps = (part for part, value in leaf if value is None)
            yield from (PeerGap(field, part, *known[0], len(known)) for part in gaps)


def _compare_levels(field: PeerField, group: Sequence[PeerPart], values: Sequence[Any]) -> Iterator[PeerDifference]:
    """A part that is odd among its nearest peers does not vote again among all."""
    known = [(part, value) for part, value in zip(group, values, strict=True) if value is not None]
    rows = [(part, value, _make_key(value, field.word, [other for _, other in known])) for part, value in known]
    for level in (lambda part: (part.product, part.position), lambda part: part.product, lambda part: ""):
        leaves: dict[Hashable, list[tuple[PeerPart, Any, Hashable]]] = defaultdict(list)
        for row in rows:
            leaves[level(row[0])].append(row)
        is_last = len(leaves) == 1
        for leaf in leaves.values():
            if len({key for _, _, key in leaf}) < 2:
                continue
            if len(leaf) == 2 and not is_last:
                continue  # of two none is the odd one: their further peers decide
            some = [part for part, _, _ in leaf]
            result = vote([key for _, _, key in leaf], some)
            if result is None:
                continue
            yield PeerDifference(field, tuple(some), tuple(value for _, value, _ in leaf), result)
            gone = {some[n].key for n in (result.odd if not result.halves else (*result.odd, *result.usual))}
            rows = [row for row in rows if row[0].key not in gone]


def _make_key(value: Any, word: PeerWord, others: Sequence[Any]) -> Hashable:
    """What is compared in the place of a value: of tables and lists their text, of numbers near the middle that one."""
    if isinstance(value, dict):
        return repr(sorted(value.items()))
    if isinstance(value, list):
        return repr(value)
    if word.tolerance:
        middle: float = sorted(others)[len(others) // 2]
        return middle if abs(value - middle) <= word.tolerance * abs(middle) else float(value)
    key: Hashable = value
    return key
