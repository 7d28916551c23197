"""The catalogue of what can be planted, by name."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

from bench.fleet.cables import CABLES, Plant
from bench.fleet.faults import DRIFTS, OVERLAYS, Make
from bench.fleet.forms import Moment, Node, write
from bench.fleet.groups import LINK, Group
from bench.fleet.identity import Identity
from bench.fleet.planting import LEAST, Effect, Planter

DAMAGES = ("truncated", "not-json", "other-schema")
STALE_DAYS = 9
SLOW_SECONDS = 11.5
CLOCK_SECONDS = 23 * 3_600
NODES_A_FAULT = 2_500
PLATFORMS_A_FAULT = 2
ON_REQUEST = ("clock-ahead", "clock-behind")  # seen by the times of files, which a stream has none of


def _overlaid(make: Make, drift: bool = False) -> Plant:
    """A node with another description, really scanned: from the start, or from a later sweep on."""
    make = functools.cache(make)

    def plant(planter: Planter, kind: str) -> bool:
        if drift and planter.sweeps < 2:
            return False
        scanned = planter.platforms.setdefault(kind, set())  # a scan for each: two are enough

        def suits(group: Group) -> bool:
            if len(scanned) >= PLATFORMS_A_FAULT and group.platform.name not in scanned:
                return False
            return _can(group, kind) and make(group.platform, group.templates.shape) is not None

        found = planter.one(suits)
        if found is None:
            return False
        group, node = found
        scanned.add(group.platform.name)
        odd = make(group.platform, group.templates.shape)
        assert odd is not None
        over = {(LINK, rail): what for rail, what in odd.links.items()}
        sweep = planter.later() if drift else 0
        planter.effect(node, Effect(odd.overlay, over, sweep))
        findings = _new_findings(group, odd.overlay)
        return planter.odd(kind, [node], odd.subject, odd.detail, sweep=sweep, findings=findings)

    return plant


def _can(group: Group, kind: str) -> bool:
    if kind == "bios":  # where the report says it
        return getattr(group.templates.healthy.node, "bios_version", None) is not None
    return not (group.rollout and "firmware" in kind)


def _new_findings(group: Group, overlay: Mapping[str, Any]) -> list[dict[str, str]]:
    """What a node's own report says because of it."""
    usual = {(rule, subject) for rule, subject, _ in group.templates.of().findings}
    found = group.templates.of("plain", overlay).findings
    rows = [row for row in found if row[:2] not in usual]
    return [{"rule": rule, "subject": subject, "severity": severity} for rule, subject, severity in rows]


def _duplicate(form: str, name: str) -> Plant:
    """Two nodes with one number: the second has borrowed it from the first."""

    def plant(planter: Planter, kind: str) -> bool:
        group = planter.group(lambda each: _has(each, form), nodes=2)
        lender = planter.node(group) if group else None
        borrower = planter.node(group) if group else None
        if group is None or lender is None or borrower is None:
            return False
        shape = group.templates.shape
        rail = len(shape.rails) // 2
        key = _key(group, form, rail)
        who = Identity(planter.seed, group.place(lender))
        text = who.hexes([key])[0] if form == "number" else write(Node(who, Moment(0, 0.0)), form, [key])[0]
        planter.effect(borrower, Effect(over={(form, key): text}))
        at = shape.rails[rail] if shape.rails else ""
        subjects = {"number": f"pci:{at}", "lid": f"port:{at}/1", "ip": f"netdev:{at}"}
        detail: dict[str, Any] = {name: text}
        if form == "number":  # a MAC and the GIDs are made of it
            mac = f"b8:3f:d2:{text[:2]}:{text[2:4]}:{text[4:]}"
            detail = {name: f"b83f:d203:00{text[:2]}:{text[2:]}", "mac": mac}
        elif form == "lid":
            detail = {name: int(text), "subnet": group.subnet}
        elif form == "uuid":
            subjects[form] = f"gpu:{shape.gpus[key]}"
        return planter.odd(kind, [lender, borrower], subjects.get(form, "node"), detail)

    return plant


def _has(group: Group, form: str) -> bool:
    shape = group.templates.shape
    ethernet = bool(shape.rails) and not shape.infiniband  # in one subnet the second of two GUIDs would never come up
    return {"number": ethernet, "ip": ethernet, "lid": shape.infiniband, "uuid": bool(shape.gpus)}.get(form, True)


def _key(group: Group, form: str, rail: int) -> int:
    templates = group.templates
    if form == "number":
        return templates.key("number", templates.rail_digits[rail])
    if form == "ip":
        return templates.key("ip", templates.shape.rails[rail])
    return rail if form == "lid" else 0


def _stale(planter: Planter, kind: str) -> bool:
    """Nothing new was heard of it for days."""
    found = planter.one(lambda _: True)
    if found is None:
        return False
    planter.effect(found[1], Effect(stale_days=STALE_DAYS))
    return planter.odd(kind, [found[1]], "node", {"days": STALE_DAYS})


def _gone(planter: Planter, kind: str) -> bool:
    """From a sweep on it sends nothing."""
    found = planter.one(lambda _: True) if planter.sweeps > 1 else None
    if found is None:
        return False
    sweep = planter.later()
    planter.effect(found[1], Effect(sweep=sweep, gone=True))
    return planter.odd(kind, [found[1]], "node", {}, sweep=sweep)


def _clock(seconds: int) -> Plant:
    """Its clock is wrong, all the time."""

    def plant(planter: Planter, kind: str) -> bool:
        found = planter.one(lambda group: group.nodes > LEAST)
        if found is None:
            return False
        planter.effect(found[1], Effect(clock_seconds=seconds))
        return planter.odd(kind, [found[1]], "node", {"seconds": seconds})

    return plant


def _slow_probe(planter: Planter, kind: str) -> bool:
    found = planter.one(lambda group: bool(group.templates.shape.gpus))
    if found is None:
        return False
    group, node = found
    names = [run.name for run in group.templates.healthy.probes]
    over = {("seconds", names.index("nvml")): str(SLOW_SECONDS), ("total", 0): str(SLOW_SECONDS + 1.2)}
    planter.effect(node, Effect(over=over))
    return planter.odd(kind, [node], "node", {"probe": "nvml", "seconds": SLOW_SECONDS})


def _damaged(damage: str) -> Plant:
    def plant(planter: Planter, kind: str) -> bool:
        found = planter.one(lambda _: True)
        if found is None:
            return False
        planter.effect(found[1], Effect(damage=damage))
        if damage in DAMAGES:
            return planter.odd(kind, [found[1]], "node", {"readable": False})
        return planter.noise(kind, planter.hostname(found[1]), {"readable": True})

    return plant


KINDS: dict[str, Plant] = {
    **{kind: _overlaid(make) for kind, make in OVERLAYS.items()},
    **{kind: _overlaid(make, drift=True) for kind, make in DRIFTS.items()},
    "node-gone": _gone,
    "duplicate-guid": _duplicate("number", "node_guid"),
    "duplicate-serial": _duplicate("serial", "serial"),
    "duplicate-machine-id": _duplicate("machine-id", "machine_id"),
    "duplicate-ip": _duplicate("ip", "address"),
    "duplicate-lid": _duplicate("lid", "lid"),
    "duplicate-gpu-uuid": _duplicate("uuid", "uuid"),
    **CABLES,
    "stale": _stale,
    "slow-probe": _slow_probe,
    "clock-ahead": _clock(CLOCK_SECONDS),
    "clock-behind": _clock(-CLOCK_SECONDS),
    "damaged-truncated": _damaged("truncated"),
    "damaged-not-json": _damaged("not-json"),
    "damaged-schema": _damaged("other-schema"),
    "newer-minor": _damaged("newer-minor"),
}


def defaults(nodes: int) -> Iterator[tuple[str, int]]:
    """Every kind once in 2,500 nodes, and at least once."""
    for kind in KINDS:
        if kind in ON_REQUEST:
            continue
        yield kind, max(1, round(nodes / NODES_A_FAULT))
