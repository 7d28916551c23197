"""Findings as the page holds them: each text once, and each set of findings that many nodes have once.

One fault is one card: a difference from peers that a finding explains is shown with that finding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from agent.fleet.engines.query import Row
from agent.fleet.page.columns import find_distinct
from agent.fleet.page.reading import read_cells
from agent.fleet.page.scene import SEVERITY, PageItem, ReportedFinding, Section
from agent.model.finding import Evidence, list_devices

MOST = 12_000  # different findings of which the page has all texts; of the rest rule, severity and label
ROWS = 6  # of evidence
LETTERS = 240  # of a text in it


class PageFindings(NamedTuple):
    """`found`, the sets of them, each node's set; `on_devices`: node -> device -> the worst finding on it (1 to 4)."""

    found: list[ReportedFinding]
    sets: list[list[int]]
    codes: list[int]
    on_devices: dict[str, dict[str, int]]


def findings(nodes: Sequence[str], rows: Sequence[Row]) -> PageFindings:
    """From (rule, severity, label, summary, impact, remedy, evidence, where, silenced, why, until).

    Evidence None: texts are left out.
    """
    places: dict[tuple[str, ...], int] = {}
    reported: list[ReportedFinding] = []
    of: dict[str, list[int]] = {}
    on_devices: dict[str, dict[str, int]] = {}
    for number, (rule, severity, label, summary, impact, remedy, evidence, where, *silence) in enumerate(rows):
        silenced = _describe_silence(*silence)
        known = (rule, severity, label, silenced or "") if evidence is None else (str(number),)
        at = places.setdefault(known, len(reported))
        if at == len(reported):
            reported.append(ReportedFinding(
                rule=rule, severity=severity, label=label, summary=summary or "", impact=impact or "",
                remedy=remedy or "", evidence=None if evidence is None else _list_evidence(evidence), silenced=silenced,
            ))  # fmt: skip
        rank = SEVERITY.get(severity, 0)
        for node, subject, listed in read_cells(where):
            of.setdefault(node, []).append(at)
            if rank > 1 and silenced is None:
                devices = on_devices.setdefault(node, {})
                for device in list_devices(subject) or listed.split():
                    devices[device] = max(rank, devices.get(device, 0))
    sets, codes = find_distinct([tuple(sorted(of[node])) if node in of else None for node in nodes])
    return PageFindings(reported, [list(members) for members in sets], codes, on_devices)


def _describe_silence(silenced: bool, reason: str, until: str) -> str | None:
    """In words; None: it is not.

    >>> _describe_silence(True, "ticket 7", "2026-02-01"), _describe_silence(True, "", "")
    ('silenced until 2026-02-01: ticket 7', 'silenced')
    """
    if not silenced:
        return None
    words = f"silenced until {until}" if until else "silenced"
    return f"{words}: {_cut(reason)}" if reason else words


def _list_evidence(text: str | None) -> list[Evidence]:
    """Cut to what fits; what is no list of evidence is none."""
    try:
        rows = msgspec.json.decode(text or "[]", type=list[Evidence])
    except (msgspec.DecodeError, RecursionError):
        return []
    rows_shown = [Evidence(what=_cut(row.what), value=_cut(row.value), source=_cut(row.source)) for row in rows[:ROWS]]
    if len(rows) > ROWS:
        rows_shown.append(Evidence(what=f"and {len(rows) - ROWS} more", value="", source="the node's report"))
    return rows_shown


def _cut(text: str) -> str:
    return text if len(text) <= LETTERS else text[: LETTERS - 1] + "…"


# Attribute of `fleet outliers` -> the rules whose finding explains it
EXPLAINED_BY = {
    "port-state": ("ib-port-down", "roce-link-down"),
    "port-phys-state": ("ib-port-down", "roce-link-down"),
    "port-rate-gbit-s": ("ib-port-down", "ib-rate-degraded", "roce-link-down", "roce-speed-degraded"),
    "port-width": ("ib-port-down", "ib-rate-degraded"),
    "port-speed": ("ib-port-down", "ib-rate-degraded"),
    "port-active-mtu": ("roce-mtu-small",),
    "rail-mtu": ("roce-mtu-small",),
    "rail-pfc": ("roce-pfc-off",),
    "rail-trust": ("roce-trust-pcp-untagged",),
    "rail-ecn": ("roce-ecn-off",),
    "rail-speed-gbit-s": ("roce-link-down", "roce-speed-degraded"),
    "nic-firmware": ("nic-fw-mixed",),
    "nic-state": ("pci-driver-missing",),
    "gpu-nvlinks-active": ("nvlink-inactive",),
    "error-rate-wire": ("ib-symbol-errors", "ib-link-flap", "roce-link-flap", "roce-rt-crc", "roce-fec-ber"),
    "error-rate-pcie": ("pcie-errors-correctable",),
    "error-rate-link": ("nvlink-errors", "c2c-errors", "xgmi-errors"),
    "pcie-width": ("pcie-width-downgraded",),
    "pcie-speed": ("pcie-speed-downgraded",),
    "pcie-max-payload-bytes": ("pcie-mps-small", "pcie-mps-mismatch"),
    "pcie-max-read-request-bytes": ("gdr-mrrs-small",),
    "pcie-relaxed-ordering": ("gdr-relaxed-ordering-off",),
}


def join_outliers(findings: Section, outliers: Section) -> tuple[Section, Section]:
    """The findings with the differences that they explain, and the differences that are left."""
    cards, left, joined = list(findings.said), [], 0
    for outlier in outliers.said:
        place = _find_cause(outlier, cards)
        if place is None:
            left.append(outlier)
            continue
        joined += 1
        card = cards[place]
        cards[place] = msgspec.structs.replace(
            card, more=[*card.more, ("compared with peers", _format_words(outlier, card))]
        )
    if not joined:
        return findings, outliers
    of = f"{joined} of {len(outliers.said)} differences: see the finding of the same fault, above."
    return (
        msgspec.structs.replace(findings, said=cards),
        msgspec.structs.replace(outliers, said=left, note=f"{outliers.note} {of}".strip()),
    )


def _find_cause(outlier: PageItem, cards: list[PageItem]) -> int | None:
    rules = EXPLAINED_BY.get(outlier.about)
    if rules is None or not outlier.nodes:
        return None
    for place, card in enumerate(cards):
        if card.about in rules and set(outlier.nodes) <= set(card.nodes):
            return place
    return None


def _format_words(outlier: PageItem, card: PageItem) -> str:
    return outlier.words if set(outlier.nodes) == set(card.nodes) else f"{outlier.words} (of {outlier.group})"
