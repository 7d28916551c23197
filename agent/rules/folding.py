"""Faults that all subjects of a node have alike, told once: somebody set them all so, or one part explains all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from agent.rules.counting import named
from agent.rules.rule import Answer, Fail, Pass


def folded(answers: Iterable[Answer], summary: str) -> Iterator[Answer]:
    """The answers, faults last; one finding, "`summary`: labels", where all that pass or fail have the same fault."""
    faults: list[Fail] = []
    judged = 0
    for answer in answers:
        judged += isinstance(answer, Pass | Fail)
        if isinstance(answer, Fail):
            faults.append(answer)
        else:
            yield answer
    yield from as_one(faults, judged, summary)


def as_one(faults: Sequence[Fail], judged: int, summary: str) -> Iterator[Fail]:
    """One finding for the node where every subject has the fault: somebody set them all so."""
    if len(faults) < 2 or len(faults) < judged or len({(f.severity, f.cause) for f in faults}) > 1:
        yield from faults
        return
    one = joined(faults, summary)
    yield one._replace(evidence=tuple(dict.fromkeys(one.evidence)))


def joined(faults: Sequence[Fail], summary: str) -> Fail:
    """The faults as one of the node: words and severity of the first, evidence and places of all."""
    return faults[0]._replace(
        subject="node",
        label="node",
        summary=f"{summary}: {named([fault.label for fault in faults])}",
        evidence=tuple(row for fault in faults for row in fault.evidence),
        places=frozenset().union(*(fault.places for fault in faults)),
        covers=frozenset().union(*(fault.places if fault.covers is None else fault.covers for fault in faults)),
        parts=tuple(part for fault in faults for part in fault.parts or (fault,)),
    )
