"""What the page shows, as plain data, and as its script reads it. Nothing here reads a dataset.

Nodes are numbered in the order of `Nodes.names`; every list of node numbers is sorted. What is equal on many nodes is
held once, in a list of what differs, and a node has its place in that list (`Coded`); -1 is not known.

For the script a column of numbers is [..] or, where runs of one number are shorter, {"r": [number, how often, ..]}.
Texts that many findings share are in `texts` once, and nothing in it does harm between the tags of a page.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from xml.etree.ElementTree import Element

import msgspec

from agent.fleet.questions.options import NODE_STATES, find_state
from agent.fleet.questions.summary import RuleCoverage
from agent.model.finding import Evidence
from agent.model.labels import name_runs
from agent.outputs.formatting import clean_line
from agent.outputs.html.elements import LIMIT, to_text

LOOKS = NODE_STATES  # worst first, as on the map
MOST_STEPS = 8000  # characters of a fix: with a step cut off its cost and what ends it are lost
STATES = {"fail": "f", "unknown": "u", "pass": "p", "not_applicable": "n", "disabled": "d"}  # of a rule; blank: none
SEVERITY = {"info": 1, "warning": 2, "error": 3, "critical": 4}
# In JSON these are in texts only. With none of them, no tag, comment or entity can begin
_HARMLESS = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_ESCAPED = str.maketrans(_HARMLESS)
Column = list[int] | dict[str, list[int]]


class CodedColumn(msgspec.Struct, frozen=True, kw_only=True):
    """A value a node. `ordered`: labels rise from the lowest to the highest; `below`: nodes under their class's."""

    key: str
    title: str
    labels: list[str]
    codes: list[int]
    ordered: bool = False
    below: list[int] = []


class RailState(msgspec.Struct, frozen=True):
    """One rail of a node. Codes point into the lists of `Rails`; `severity` 0: no finding on it."""

    number: int
    severity: int = 0
    leaf: int = -1
    rate: int = -1
    link: int = -1


class Rails(msgspec.Struct, frozen=True, kw_only=True):
    """Rails of all nodes: `sets` are the ways in which nodes' rails differ."""

    leaves: list[str] = []
    rates: list[str] = []  # rising
    links: list[str] = []  # rising
    sets: list[list[RailState]] = []
    codes: list[int] = []


class ReportedFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A finding as a node reports it. `evidence` is None where the page had no room for it."""

    rule: str
    severity: str
    label: str
    summary: str
    impact: str
    remedy: str
    evidence: list[Evidence] | None = []
    silenced: str | None = None  # why and until when; None: it counts


class JudgedRules(msgspec.Struct, frozen=True, kw_only=True):
    """How rules ended: `vectors` hold a letter of `STATES` a rule, in the order of `rules`."""

    rules: list[str] = []
    vectors: list[str] = []
    codes: list[int] = []


class Nodes(msgspec.Struct, frozen=True, kw_only=True):
    """All nodes in columns of one length."""

    names: list[str]
    verdicts: list[str]
    stale: list[bool]
    classes: CodedColumn
    lost_gpus: dict[int, tuple[str, str]] = {}  # nodes that had more GPUs and report nothing wrong: state, text
    places: list[CodedColumn] = []  # ways to arrange the map: rack, unit, domain
    metrics: list[CodedColumn] = []  # ways to colour it
    facts: list[CodedColumn] = []  # what a node's panel lists: driver, kernel, ..
    rails: Rails = Rails()
    judged: JudgedRules = JudgedRules()
    found: list[ReportedFinding] = []
    found_sets: list[list[int]] = []
    found_codes: list[int] = []  # -1: none
    lines: list[list[str]] = []  # GPUs, rails and links in words
    line_codes: list[int] = []
    unjudged: list[list[str]] = []  # "rule: reason"
    unjudged_codes: list[int] = []
    days: CodedColumn = CodedColumn(key="days", title="last days", labels=[], codes=[])  # letters, see days.py
    changed: list[list[str]] = []  # findings that came and went on the last day
    changed_codes: list[int] = []  # -1: none
    pages: dict[int, str] = {}  # node -> address of its own page


class PageItem(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is reported of some nodes. `about`: what it is filed under (a rule, a kind)."""

    words: str
    about: str = ""
    severity: str | None = None
    nodes: list[int] = []
    more: list[tuple[str, str]] = []  # ("remedy", "..")
    whole_class: bool = False  # most nodes of the class have it
    group: str = ""  # hardware class that it is listed under
    quiet: bool = False  # it counts nowhere: shown in grey, and nothing is offered to be done about it


class Skew(msgspec.Struct, frozen=True, kw_only=True):
    """The versions of one thing within one class: (value, nodes), the most frequent first."""

    hardware_class: str
    what: str
    of: int  # nodes of the class
    values: list[tuple[str, list[int]]]


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the page in words. `empty` is shown where there is nothing, `note` always."""

    title: str
    anchor: str
    said: list[PageItem] = []
    empty: str = "None."
    note: str = ""


class HopLine(msgspec.Struct, frozen=True, kw_only=True):
    """A port of a switch with its hop, in texts."""

    port: str
    far: str
    verdict: str
    priority: str
    pfc: str
    reason: str


class SwitchCard(msgspec.Struct, frozen=True, kw_only=True):
    """A switch with its hops, the worst first."""

    name: str
    system: str
    ports: int
    lines: list[HopLine]


class FabricHops(msgspec.Struct, frozen=True, kw_only=True):
    """RoCE hop by hop, where outputs of switches were given."""

    section: Section
    switches: list[SwitchCard]
    picture: Element
    notes: list[str]


class FleetScene(msgspec.Struct, frozen=True, kw_only=True):
    """The whole page."""

    title: str
    made: str  # RFC 3339, UTC
    version: str
    newest: str | None  # the newest look at a node
    stale_after_hours: float
    nodes: Nodes
    sections: list[Section] = []
    hops: FabricHops | None = None  # of its section
    skew: list[Skew] = []
    coverage: list[RuleCoverage] = []
    coverage_words: str = ""  # as `fleet summary` has it
    notes: list[str] = []  # what the dataset could not show
    quarantined: int | None = 0  # reports that could not be read; None: the engine has no number


def list_looks(nodes: Nodes) -> list[str]:
    """The state of every node, as it is counted and drawn."""
    states = zip(nodes.verdicts, nodes.stale, strict=True)
    return [
        find_state(verdict, stale, nodes.lost_gpus.get(at, (None,))[0]) for at, (verdict, stale) in enumerate(states)
    ]


def sort_worst_first(nodes: Nodes) -> list[int]:
    """All nodes that something is wrong with, is not judged or is old: the worst first."""
    node_looks = list_looks(nodes)
    ranks = [_rank(nodes, at, node_looks[at]) for at in range(len(node_looks))]
    listed = [at for at, look in enumerate(node_looks) if look not in ("ok", "nothing_to_check")]
    return sorted(listed, key=lambda at: (ranks[at], at))


def _rank(nodes: Nodes, at: int, look: str) -> tuple[int, int, int, int]:
    code = nodes.found_codes[at] if nodes.found_codes else -1
    node_findings = [nodes.found[finding] for finding in nodes.found_sets[code]] if code >= 0 else []
    counts = Counter(finding.severity for finding in node_findings if finding.silenced is None)
    critical, error, warning = (-counts[severity] for severity in ("critical", "error", "warning"))
    return LOOKS.index(look), critical, error, warning


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
    """Node numbers as one attribute.

    >>> encode_spans([0, 1, 2, 7, 9, 10])
    '0-2 7 9-10'
    """
    return " ".join(name_runs(numbers))


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
    text_ids = [texts.at(part) for part in (finding.label, finding.summary, finding.impact)]
    text_ids.append(texts.at(finding.remedy, MOST_STEPS))
    silenced = [texts.at(finding.silenced)] if finding.silenced is not None else []
    severity = SEVERITY.get(finding.severity, 0)
    return [rules.get(finding.rule, -1), severity, *text_ids, evidence, texts.at(finding.rule), *silenced]


class _Texts:
    """Each text once."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._places: dict[str, int] = {}

    def at(self, text: str, most: int = LIMIT) -> int:
        """Its place in `all`, of at most so many characters."""
        cleaned = clean_line(text, most)
        if cleaned not in self._places:
            self._places[cleaned] = len(self.all)
            self.all.append(cleaned)
        return self._places[cleaned]
