"""One fault is one card: a difference from peers that a finding explains is told with that finding."""

from __future__ import annotations

import msgspec

from agent.fleet.page.scene import Said, Section

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
    "pcie-width": ("pcie-width-downgraded",),
    "pcie-speed": ("pcie-speed-downgraded",),
    "pcie-max-payload-bytes": ("pcie-mps-small", "pcie-mps-mismatch", "pcie-mps-uneven"),
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
            card, more=[*card.more, ("compared with peers", _in_words(outlier, card))]
        )
    if not joined:
        return findings, outliers
    of = f"{joined} of {len(outliers.said)} differences: see the finding of the same fault, above."
    return (
        msgspec.structs.replace(findings, said=cards),
        msgspec.structs.replace(outliers, said=left, note=f"{outliers.note} {of}".strip()),
    )


def _find_cause(outlier: Said, cards: list[Said]) -> int | None:
    rules = EXPLAINED_BY.get(outlier.about)
    if rules is None or not outlier.nodes:
        return None
    for place, card in enumerate(cards):
        if card.about in rules and set(outlier.nodes) <= set(card.nodes):
            return place
    return None


def _in_words(outlier: Said, card: Said) -> str:
    return outlier.words if set(outlier.nodes) == set(card.nodes) else f"{outlier.words} (of {outlier.group})"
