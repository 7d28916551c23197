"""Oddities that are another description of a node, really scanned: one, or two on one node."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from bench.fleet.cables import Plant
from bench.fleet.faults import DRIFTS, HIGH_COUNTERS, MODELS, OVERLAYS, RATES, Make, Odd
from bench.fleet.groups import DEVICE, LINK, Group
from bench.fleet.planting import Effect, Planter

PLATFORMS_A_FAULT = 2
# Two causes on one node: on two devices, on one, of the whole node and one device, and both of the history
PAIRS = (
    ("gpu-link-narrow", "mtu-1500"),
    ("gpu-link-narrow", "nic-firmware-node"),
    ("gpus-half-lost", "nic-firmware-one"),
    ("gpus-half-lost", "kernel"),
    ("gpu-model", "nic-link-narrow"),
    ("gpu-model", "driver"),
    ("nic-no-driver", "gpu-link-slow"),
    ("port-slow", "nic-link-narrow"),
    ("pfc-off", "mtu-1500-first"),
    ("driver", "cmdline"),
    ("nvlink-fewer", "vbios"),
    ("rate-link-downs", "rate-symbol-errors"),
)


def overlaid(*makes: Make, kinds: Sequence[str] = (), drift: bool = False, last: bool = False) -> Plant:
    """A node with another description: from the start, from a later sweep on, or in the last one. Of several makes all
    are on one node, each written down as one of `kinds`."""
    makes = tuple(functools.cache(make) for make in makes)

    def plant(planter: Planter, kind: str) -> bool:
        if (drift or last) and planter.sweeps < 2:
            return False
        scanned = planter.platforms.setdefault(kind, set())  # a scan for each: two are enough

        def suits(group: Group) -> bool:
            if len(scanned) >= PLATFORMS_A_FAULT and group.platform.name not in scanned:
                return False
            return all(can(group, one) for one in kinds or [kind]) and _all(group, makes) is not None

        result = planter.one(suits, stays_up=last)
        if result is None:
            return False
        group, node = result
        scanned.add(group.platform.name)
        odds = _all(group, makes)
        assert odds is not None
        overlay = merge_overlays({}, *(odd.overlay for odd in odds))
        over: dict[tuple[str, int], str] = {}
        for odd in odds:
            over |= in_the_fabric(group, odd)
        sweep = planter.sweeps - 1 if last else planter.later() if drift else 0
        planter.effect(node, Effect(overlay, over, sweep))
        findings = new_findings(group, overlay)  # of all: what which of them is said by is not known
        return all(
            planter.odd(name, [node], odd.subject, odd.detail, sweep=sweep, findings=findings)
            for name, odd in zip(kinds or [kind], odds, strict=True)
        )

    return plant


def two_causes(first: str, second: str) -> Plant:
    """Both on one node."""
    every = OVERLAYS | RATES | HIGH_COUNTERS | MODELS | DRIFTS
    return overlaid(every[first], every[second], kinds=(first, second), last=first in RATES)


def in_the_fabric(group: Group, odd: Odd) -> dict[tuple[str, int], str]:
    """What the fabric's file has otherwise: links, and the names of the other devices."""
    names = group.templates.of("plain", odd.overlay).devices if odd.links else {}
    over = {(DEVICE, rail): names[at] for rail, at in enumerate(group.templates.shape.rails) if at in names}
    return over | {(LINK, rail): what for rail, what in odd.links.items()}


def can(group: Group, kind: str) -> bool:
    """Whether a difference of that kind is one there."""
    if kind == "bios":  # where the report says it
        return getattr(group.templates.healthy.node, "bios_version", None) is not None
    return not (group.rollout and "firmware" in kind)


def new_findings(group: Group, overlay: Mapping[str, Any]) -> list[dict[str, str]]:
    """What a node's own report says because of it."""
    usual_value = {(rule, subject) for rule, subject, _ in group.templates.of().findings}
    result = group.templates.of("plain", overlay).findings
    rows = [row for row in result if row[:2] not in usual_value]
    return [{"rule": rule, "subject": subject, "severity": severity} for rule, subject, severity in rows]


def _all(group: Group, makes: Sequence[Make]) -> list[Odd] | None:
    """What each makes of a node there; None where one cannot be."""
    odds = [make(group.platform, group.templates.shape) for make in makes]
    return [odd for odd in odds if odd] if all(odds) else None


def merge_overlays(first: dict[str, Any], *others: Mapping[str, Any]) -> dict[str, Any]:
    """All of them, tables joined; of two values for one key the last."""
    for other in others:
        for key, value in other.items():
            old = first.get(key)
            first[key] = (
                merge_overlays(dict(old), value) if isinstance(old, dict) and isinstance(value, dict) else value
            )
    return first
