"""Faults that all subjects of a node have alike, reported once: all were set on purpose, or one part explains all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from agent.rules.rule import Fail, Merge, Pass, Result
from agent.rules.wording import join_labels


def on_all(summary: str) -> Merge:
    """The `merge` of a rule: one finding, "`summary`: labels", where all that pass or fail have the same fault."""
    return lambda _, answers: merge_if_on_all(*count_faults(answers), summary)


def aggregate_node_wide(answers: Iterable[Result], summary: str) -> Iterator[Result]:
    """The answers of a rule that is not about one subject at a time, faults last, merged as by `on_all`."""
    listed = list(answers)
    yield from (answer for answer in listed if not isinstance(answer, Fail))
    yield from merge_if_on_all(*count_faults(listed), summary)


def count_faults(answers: Sequence[Result]) -> tuple[list[Fail], int]:
    """The faults, and how many answers pass or fail."""
    passed = sum(isinstance(answer, Pass) for answer in answers)
    faults = [answer for answer in answers if isinstance(answer, Fail)]
    return faults, passed + len(faults)


def merge_if_on_all(faults: Sequence[Fail], judged: int, summary: str) -> Iterator[Fail]:
    """One finding for the node where every subject has the fault: all were set on purpose."""
    if len(faults) < 2 or len(faults) < judged or len({(f.severity, f.cause) for f in faults}) > 1:
        yield from faults
        return
    one = merge_failures(faults, summary)
    yield replace(one, evidence=tuple(dict.fromkeys(one.evidence)))


def merge_failures(faults: Sequence[Fail], summary: str) -> Fail:
    """The faults as one of the node: words and severity of the first, evidence and places of all."""
    return replace(
        faults[0],
        subject="node",
        label="node",
        summary=f"{summary}: {join_labels([fault.label for fault in faults])}",
        evidence=tuple(row for fault in faults for row in fault.evidence),
        ids=frozenset().union(*(fault.ids for fault in faults)),
        explains_ids=frozenset().union(
            *(fault.ids if fault.explains_ids is None else fault.explains_ids for fault in faults)
        ),
        parts=tuple(part for fault in faults for part in fault.parts or (fault,)),
    )
