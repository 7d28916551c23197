"""The scene as the page's script reads it: small, and harmless between the tags of a page.

A column of numbers is [..] or, where runs of one number are shorter, {"r": [number, how often, ..]}. Texts that many
findings share are in `texts` once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from agent.fleet.page.scene import LOOKS, SEVERITY, CodedColumn, FleetScene, ReportedFinding, list_looks
from agent.outputs.html.elements import to_text

# In JSON these are in texts only. With none of them, no tag, comment or entity can begin
_HARMLESS = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_ESCAPED = str.maketrans(_HARMLESS)

Column = list[int] | dict[str, list[int]]


def encode_scene(scene: FleetScene) -> str:
    """JSON that may be in a script element of type application/json."""
    return msgspec.json.encode(pack_scene(scene)).decode().translate(_ESCAPED)


def pack_scene(scene: FleetScene) -> dict[str, Any]:
    """The nodes as plain values."""
    nodes = scene.nodes
    texts = _Texts()
    places = {rule: at for at, rule in enumerate(nodes.judged.rules)}
    return {
        "names": [to_text(name) for name in nodes.names],
        "look": column([LOOKS.index(look) for look in list_looks(nodes)]),
        "verdict": column(
            [(*LOOKS, "").index(verdict) if verdict in LOOKS else len(LOOKS) for verdict in nodes.verdicts]
        ),
        "stale": column([int(stale) for stale in nodes.stale]),
        "lost": {str(at): text for at, (_, text) in nodes.lost_gpus.items()},
        "class": _pack_column(nodes.classes),
        "places": [_pack_column(place) for place in nodes.places],
        "metrics": [_pack_column(metric) for metric in nodes.metrics],
        "facts": [_pack_column(fact) for fact in nodes.facts],
        "rails": {
            "leaves": [to_text(leaf) for leaf in nodes.rails.leaves],
            "rates": [to_text(rate) for rate in nodes.rails.rates],
            "links": [to_text(link) for link in nodes.rails.links],
            "sets": [[list(msgspec.structs.astuple(rail)) for rail in members] for members in nodes.rails.sets],
            "codes": column(nodes.rails.codes),
        },
        "rules": [to_text(rule) for rule in nodes.judged.rules],
        "vectors": nodes.judged.vectors,
        "judged": column(nodes.judged.codes),
        "found": [_pack_finding(finding, places, texts) for finding in nodes.found],
        "foundSets": nodes.found_sets,
        "foundBy": column(nodes.found_codes),
        "lines": [[to_text(line) for line in node_lines] for node_lines in nodes.lines],
        "lineBy": column(nodes.line_codes),
        "unjudged": [[to_text(line) for line in lines] for lines in nodes.unjudged],
        "unjudgedBy": column(nodes.unjudged_codes),
        "days": _pack_column(nodes.days),
        "changed": [[to_text(line) for line in lines] for lines in nodes.changed],
        "changedBy": column(nodes.changed_codes),
        "pages": {str(at): address for at, address in nodes.pages.items()},
        "texts": texts.all,
    }


def column(numbers: Sequence[int]) -> Column:
    """The column, as runs where that is shorter.

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


def encode_spans(numbers: Iterable[int]) -> str:
    """Sorted node numbers as one attribute.

    >>> encode_spans([0, 1, 2, 7, 9, 10])
    '0-2 7 9-10'
    """
    pairs: list[list[int]] = []
    for number in numbers:
        if pairs and pairs[-1][1] == number - 1:
            pairs[-1][1] = number
        else:
            pairs.append([number, number])
    return " ".join(str(first) if first == last else f"{first}-{last}" for first, last in pairs)


def _pack_column(coded: CodedColumn) -> dict[str, Any]:
    return {
        "key": coded.key,
        "title": coded.title,
        "labels": [to_text(label) for label in coded.labels],
        "codes": column(coded.codes),
        "ordered": coded.ordered,
        "below": encode_spans(coded.below),
    }


def _pack_finding(finding: ReportedFinding, rules: Mapping[str, int], texts: _Texts) -> list[Any]:
    """[rule, severity, label, summary, impact, remedy, evidence: flat texts of what, value, source, or null,
    name of the rule; of a silenced one also why and until when]."""
    evidence = None
    if finding.evidence is not None:
        evidence = [texts.at(part) for row in finding.evidence for part in (row.what, row.value, row.source)]
    text_ids = [texts.at(part) for part in (finding.label, finding.summary, finding.impact, finding.remedy)]
    silenced = [texts.at(finding.silenced)] if finding.silenced is not None else []
    severity = SEVERITY.get(finding.severity, 0)
    return [rules.get(finding.rule, -1), severity, *text_ids, evidence, texts.at(finding.rule), *silenced]


class _Texts:
    """Each text once."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._places: dict[str, int] = {}

    def at(self, text: str) -> int:
        """Its place in `all`."""
        cleaned = to_text(text)
        if cleaned not in self._places:
            self._places[cleaned] = len(self.all)
            self.all.append(cleaned)
        return self._places[cleaned]
