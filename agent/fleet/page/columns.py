"""Values of nodes as columns: each different value once, and what is under the usual of its class; versions that differ
within a class, and how the rules ended on each node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

from agent.fleet.page.reading import Texts, read_cells
from agent.fleet.page.scene import CodedColumn, JudgedRules, Nodes, Skew
from agent.model.labels import count_by_key, group_by_key, natural

FEWEST, MAJORITY = 5, 0.8  # nodes of a class, and the share of them, that make a value usual
T = TypeVar("T", bound=Hashable)
# What a panel lists of a node: column of the table `host`, and how people call it
FACTS = (
    ("seen", "last seen"), ("driver", "GPU driver"), ("cuda", "CUDA of the driver"), ("kernel", "kernel"), ("os", "OS"),
    ("bios", "BIOS"), ("rdma_stack_version", "RDMA stack"), ("nccl", "NCCL"), ("settings", "NCCL settings"),
    ("profile", "platform"), ("serial", "serial"), ("generator", "fabricscope"),
)  # fmt: skip
COMPARED = (
    "driver",
    "kernel",
    "os",
    "bios",
    "rdma_stack_version",
    "nccl",
    "settings",
    "generator",
    "vbios",
    "firmware",
)
VALUES = 8  # of one thing in one class
LINES = 40  # rules that a node's panel gives the reason of
REASON = 200  # letters


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
    known = ((where, code) for code, where in zip(codes, classes, strict=True) if code >= 0 and where >= 0)
    usual_codes = {where: _find_usual(members) for where, members in count_by_key(known).items()}
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


def _find_usual(members: Counter[int]) -> int | None:
    of = members.total()
    ((code, having),) = members.most_common(1)
    return code if of >= FEWEST and having >= MAJORITY * of else None


def find_skew(nodes: Nodes) -> list[Skew]:
    """By class, the largest first; what differs for most nodes first."""
    compared = [fact for fact in nodes.facts if fact.key in COMPARED]
    members = group_by_key((code, at) for at, code in enumerate(nodes.classes.codes))
    skews = []
    for code in sorted(
        (member for member in members if member >= 0), key=lambda member: (-len(members[member]), member)
    ):
        skew_or_none = [_find_one(nodes.classes.labels[code], members[code], coded) for coded in compared]
        skews += sorted((one for one in skew_or_none if one), key=lambda one: (len(one.values[0][1]), one.what))
    return skews


def _find_one(name: str, members: list[int], compared: CodedColumn) -> Skew | None:
    by = group_by_key((compared.codes[at], at) for at in members if compared.codes[at] >= 0)
    if len(by) < 2:
        return None
    order = sorted(by, key=lambda code: (-len(by[code]), code))
    values = [(compared.labels[code], by[code]) for code in order[:VALUES]]
    rest = sorted(at for code in order[VALUES:] for at in by[code])
    if rest:
        values.append((f"{len(order) - VALUES} others", rest))
    return Skew(hardware_class=name, what=compared.title, of=len(members), values=values)


def read_judged(nodes: Sequence[str], rules: list[str], texts: Texts) -> JudgedRules:
    """Rules, and of every node a letter for each."""
    return JudgedRules(rules=rules, vectors=texts.all, codes=[texts.of.get(node, -1) for node in nodes])


def format_lines(text: str) -> list[str]:
    """Rules that could not be judged, those of one reason in a line."""
    alike = group_by_key((row[1] if len(row) > 1 else "", row[0]) for row in read_cells(text))
    texts = [f"{reason[:REASON] or 'no reason is given'}: {', '.join(rules)}" for reason, rules in alike.items()]
    return texts if len(texts) <= LINES else [*texts[:LINES], f"and for {len(texts) - LINES} more reasons"]
