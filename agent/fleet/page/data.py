"""The scene as the page's script reads it: small, and harmless between the tags of a page.

A column of numbers is [..] or, where runs of one number are shorter, {"r": [number, how often, ..]}. Texts that many
findings share are in `texts` once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from agent.fleet.page.scene import LOOKS, SEVERITY, Coded, FleetScene, ReportedFinding, looks
from agent.outputs.html.elements import to_text

# In JSON these stand in texts only. With none of them, no tag, comment or entity can begin
_HARMLESS = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_ESCAPED = str.maketrans(_HARMLESS)

Column = list[int] | dict[str, list[int]]


def embedded(scene: FleetScene) -> str:
    """JSON that may stand in a script element of type application/json."""
    return msgspec.json.encode(packed(scene)).decode().translate(_ESCAPED)


def packed(scene: FleetScene) -> dict[str, Any]:
    """The nodes as plain values."""
    nodes = scene.nodes
    texts = _Texts()
    places = {rule: at for at, rule in enumerate(nodes.judged.rules)}
    return {
        "names": [to_text(each) for each in nodes.names],
        "look": column([LOOKS.index(each) for each in looks(nodes)]),
        "verdict": column([(*LOOKS, "").index(each) if each in LOOKS else len(LOOKS) for each in nodes.verdicts]),
        "stale": column([int(each) for each in nodes.stale]),
        "class": _coded(nodes.classes),
        "places": [_coded(each) for each in nodes.places],
        "metrics": [_coded(each) for each in nodes.metrics],
        "facts": [_coded(each) for each in nodes.facts],
        "rails": {
            "leaves": [to_text(each) for each in nodes.rails.leaves],
            "rates": [to_text(each) for each in nodes.rails.rates],
            "links": [to_text(each) for each in nodes.rails.links],
            "sets": [[list(msgspec.structs.astuple(rail)) for rail in each] for each in nodes.rails.sets],
            "codes": column(nodes.rails.codes),
        },
        "rules": [to_text(each) for each in nodes.judged.rules],
        "vectors": nodes.judged.vectors,
        "judged": column(nodes.judged.codes),
        "found": [_found(each, places, texts) for each in nodes.found],
        "foundSets": nodes.found_sets,
        "foundBy": column(nodes.found_codes),
        "lines": [[to_text(line) for line in each] for each in nodes.lines],
        "lineBy": column(nodes.line_codes),
        "unjudged": [[to_text(line) for line in each] for each in nodes.unjudged],
        "unjudgedBy": column(nodes.unjudged_codes),
        "pages": {str(at): address for at, address in nodes.pages.items()},
        "texts": texts.all,
    }


def column(numbers: Sequence[int]) -> Column:
    """As runs where that is shorter.

    >>> column([5, 5, 5, 5, 5, 7])
    {'r': [5, 5, 7, 1]}
    >>> column([1, 2, 3])
    [1, 2, 3]
    """
    runs: list[int] = []
    for number in numbers:
        if runs and runs[-2] == number:
            runs[-1] += 1
        else:
            runs += (number, 1)
    return {"r": runs} if len(runs) < len(numbers) else list(numbers)


def spans(numbers: Iterable[int]) -> str:
    """Sorted node numbers as one attribute.

    >>> spans([0, 1, 2, 7, 9, 10])
    '0-2 7 9-10'
    """
    found: list[list[int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return " ".join(str(first) if first == last else f"{first}-{last}" for first, last in found)


def _coded(each: Coded) -> dict[str, Any]:
    return {
        "key": each.key,
        "title": each.title,
        "labels": [to_text(label) for label in each.labels],
        "codes": column(each.codes),
        "ordered": each.ordered,
        "below": spans(each.below),
    }


def _found(each: ReportedFinding, rules: Mapping[str, int], texts: _Texts) -> list[Any]:
    """[rule, severity, label, summary, impact, remedy, evidence: flat texts of what, value, source, or null]."""
    evidence = None
    if each.evidence is not None:
        evidence = [texts.at(part) for row in each.evidence for part in (row.what, row.value, row.source)]
    said = [texts.at(part) for part in (each.label, each.summary, each.impact, each.remedy)]
    return [rules.get(each.rule, -1), SEVERITY.get(each.severity, 0), *said, evidence, texts.at(each.rule)]


class _Texts:
    """Each text once."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._places: dict[str, int] = {}

    def at(self, text: str) -> int:
        """Its place in `all`."""
        shown = to_text(text)
        if shown not in self._places:
            self._places[shown] = len(self.all)
            self.all.append(shown)
        return self._places[shown]
