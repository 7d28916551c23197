"""Values of nodes as columns: each different value once, and what is under the usual of its class."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

from agent.fleet.cluster.graph import natural
from agent.fleet.page.scene import CodedColumn

FEWEST, MAJORITY = 5, 0.8  # nodes of a class, and the share of them, that make a value usual
T = TypeVar("T", bound=Hashable)


def code_texts(key: str, title: str, values: Sequence[str | None]) -> CodedColumn:
    """Texts, in the order of their numbers.

    >>> code_texts("rack", "rack", ["r10", None, "r2"]).codes
    [1, -1, 0]
    """
    labels = sorted({value for value in values if value}, key=lambda value: (natural(value), value))
    places = {label: at for at, label in enumerate(labels)}
    return CodedColumn(key=key, title=title, labels=labels, codes=[places[value] if value else -1 for value in values])


def code_numbers(
    key: str, title: str, values: Sequence[float | None], say: Callable[[float], str], classes: CodedColumn
) -> CodedColumn:  # fmt: skip
    """Numbers, from the lowest to the highest. Those of one text are one."""
    text_of = {value: say(value) for value in {value for value in values if value is not None}}
    labels = list(dict.fromkeys(text_of[value] for value in sorted(text_of)))
    places = {label: at for at, label in enumerate(labels)}
    codes = [-1 if value is None else places[text_of[value]] for value in values]
    return CodedColumn(
        key=key, title=title, labels=labels, codes=codes, ordered=True, below=find_below_usual(codes, classes.codes)
    )


def find_below_usual(codes: Sequence[int], classes: Sequence[int]) -> list[int]:
    """Nodes under what is usual in their class, where a clear majority of enough nodes has one value.

    >>> find_below_usual([2, 2, 2, 2, 0, 2, 0, -1], [0, 0, 0, 0, 0, 0, 1, 0])
    [4]
    """
    counts: dict[int, dict[int, int]] = {}
    for code, where in zip(codes, classes, strict=True):
        if code >= 0 and where >= 0:
            members = counts.setdefault(where, {})
            members[code] = members.get(code, 0) + 1
    usual_codes = {where: _find_usual(members) for where, members in counts.items()}
    return [
        at
        for at, (code, where) in enumerate(zip(codes, classes, strict=True))
        if code >= 0 and where in usual_codes and (common := usual_codes[where]) is not None and code < common
    ]


def find_distinct(values: Sequence[T | None]) -> tuple[list[T], list[int]]:
    """Each value once, and the place of everyone's; None is -1.

    >>> find_distinct(["b", None, "b", "a"])
    (['b', 'a'], [0, -1, 0, 1])
    """
    places: dict[T, int] = {}
    codes = [-1 if value is None else places.setdefault(value, len(places)) for value in values]
    return list(places), codes


def _find_usual(members: dict[int, int]) -> int | None:
    of = sum(members.values())
    code = max(members, key=lambda member: members[member])
    return code if of >= FEWEST and members[code] >= MAJORITY * of else None
