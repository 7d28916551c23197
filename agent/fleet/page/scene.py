"""What the page shows, as plain data: nodes in columns, and what is reported of them. Nothing here reads a dataset.

Nodes are numbered in the order of `Nodes.names`; every list of node numbers is sorted. What is equal on many nodes is
held once, in a list of what differs, and a node has its place in that list (`Coded`); -1 is not known.
"""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree.ElementTree import Element

import msgspec

from agent.fleet.questions.options import NODE_STATES, find_state
from agent.model.finding import Evidence

LOOKS = NODE_STATES  # worst first, as on the map
STATES = {"fail": "f", "unknown": "u", "pass": "p", "not_applicable": "n", "disabled": "d"}  # of a rule; blank: none
SEVERITY = {"info": 1, "warning": 2, "error": 3, "critical": 4}


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


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """How one rule was checked over the fleet, in nodes; stale nodes are counted apart."""

    rule: str
    passed: int = 0
    failed: int = 0
    unknown: int = 0
    not_applicable: int = 0
    stale: int = 0
    missing: int = 0  # nodes whose report does not have the rule
    reasons: list[tuple[str, int]] = []  # why it is unknown, the most frequent first


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
    coverage: list[Coverage] = []
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


def count_values(values: Iterable[str]) -> dict[str, int]:
    """How often each value occurs.

    >>> count_values("aba")
    {'a': 2, 'b': 1}
    """
    counts_of: dict[str, int] = {}
    for value in values:
        counts_of[value] = counts_of.get(value, 0) + 1
    return counts_of


def _rank(nodes: Nodes, at: int, look: str) -> tuple[int, int, int, int]:
    code = nodes.found_codes[at] if nodes.found_codes else -1
    node_findings = [nodes.found[finding] for finding in nodes.found_sets[code]] if code >= 0 else []
    counts = count_values(finding.severity for finding in node_findings if finding.silenced is None)
    critical, error, warning = (-counts.get(severity, 0) for severity in ("critical", "error", "warning"))
    return LOOKS.index(look), critical, error, warning
