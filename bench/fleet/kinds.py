"""The catalogue of what can be planted, by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench.fleet.cables import CABLES, OF_MANY, Plant, older_ports
from bench.fleet.faults import DRIFTS, HIGH_COUNTERS, MODELS, OF_SMALL_CLASSES, OVERLAYS, RATES, Make
from bench.fleet.forms import Moment, Node, write
from bench.fleet.groups import Group
from bench.fleet.identity import Identity, domain
from bench.fleet.overlaid import PAIRS, new_findings, overlaid, two_causes
from bench.fleet.planting import LEAST, Effect, Planter

DAMAGES = ("truncated", "not-json", "other-schema")
STALE_DAYS = 9
SCRAPPED_DAYS = 40
FLAPPING_SWEEPS = 6
SAME_NAME = 3
SLOW_SECONDS = 11.5
CLOCK_SECONDS = 23 * 3_600
NODES_A_FAULT = 2_500
# clocks are seen by the times of files, which a stream has none of; what ends of links can do by iblinkinfo; rates by
# a second sweep
ON_REQUEST = (
    "clock-ahead",
    "clock-behind",
    "uplink-older",
    *RATES,
    *HIGH_COUNTERS,
    *OF_MANY,
    *MODELS,
    *map("+".join, PAIRS),
)


def _of_small_class(make: Make) -> Plant:
    """One of two nodes of a product, beside many of another with the same devices."""

    def plant(planter: Planter, kind: str) -> bool:
        found = planter.of_small_class()
        odd = make(found[0].platform, found[0].templates.shape) if found else None
        if found is None or odd is None:
            return False
        group, node = found
        planter.effect(node, Effect(odd.overlay))
        findings = new_findings(group, odd.overlay)
        return planter.odd(kind, [node], odd.subject, odd.detail, findings=findings)

    return plant


def _duplicate(form: str, name: str, prefix: int = 0) -> Plant:
    """Two nodes with one number: the second has borrowed it from the first. `prefix`: length of its address there."""

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
        at = shape.rails[rail] if shape.rails else ""
        overlay = {"device": {at: {"net": {"prefix": prefix}}}} if prefix else {}
        planter.effect(borrower, Effect(overlay, {(form, key): text}))
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
    result = planter.one(lambda _: True)
    if result is None:
        return False
    planter.effect(result[1], Effect(stale_days=STALE_DAYS))
    return planter.odd(kind, [result[1]], "node", {"days": STALE_DAYS})


def _stale_finding(planter: Planter, kind: str) -> bool:
    """It had a finding when it was last heard of, long ago."""
    make = OVERLAYS["gpu-link-narrow"]
    found = planter.one(lambda group: make(group.platform, group.templates.shape) is not None)
    if found is None:
        return False
    group, node = found
    odd = make(group.platform, group.templates.shape)
    assert odd is not None
    planter.effect(node, Effect(odd.overlay, stale_days=SCRAPPED_DAYS))
    findings = new_findings(group, odd.overlay)
    return planter.odd(kind, [node], odd.subject, {"days": SCRAPPED_DAYS, **odd.detail}, findings=findings)


def _flapping(planter: Planter, kind: str) -> bool:
    """A finding that is there in every second sweep; began three times in six of them."""
    make = OVERLAYS["gpu-link-narrow"]
    if planter.sweeps < FLAPPING_SWEEPS:
        return False
    found = planter.one(lambda group: make(group.platform, group.templates.shape) is not None)
    if found is None:
        return False
    group, node = found
    odd = make(group.platform, group.templates.shape)
    assert odd is not None
    sweep = (planter.sweeps - 1) % 2  # it is there in the last one
    planter.effect(node, Effect(odd.overlay, sweep=sweep, flaps=True))
    findings = new_findings(group, odd.overlay)
    return planter.odd(kind, [node], odd.subject, odd.detail, sweep=sweep, findings=findings)


def _never(planter: Planter, kind: str) -> bool:
    """It never sent anything."""
    found = planter.one(lambda _: True)
    if found is None:
        return False
    planter.effect(found[1], Effect(gone=True))
    return planter.odd(kind, [found[1]], "node", {})


def _same_name(planter: Planter, kind: str) -> bool:
    """Machines without a name of their own."""
    group = planter.group(lambda each: each.subnet is None, nodes=SAME_NAME)
    nodes = [node for _ in range(SAME_NAME) if group and (node := planter.node(group)) is not None]
    if planter.sweeps < 2 or len(nodes) < SAME_NAME:
        return False
    for node in nodes:
        planter.effect(node, Effect(over={("hostname", 0): "localhost"}))
    return planter.odd(kind, nodes, "node", {"name": "localhost"})


def _moved_gpu(planter: Planter, kind: str) -> bool:
    """From a sweep on the GPUs of two nodes are in each other's slot."""
    group = planter.group(lambda each: len(each.templates.shape.gpus) > 3, nodes=2)
    nodes = [node for _ in range(2) if group and (node := planter.node(group)) is not None]
    if planter.sweeps < 2 or group is None or len(nodes) < 2:
        return False
    sweep, slots, forms = planter.later(), (0, 2), ("uuid", "gpu-serial")
    moments = [Node(Identity(planter.seed, group.place(node)), Moment(0, 0.0)) for node in nodes]
    texts = [[write(moment, form, [slot])[0] for form in forms] for moment, slot in zip(moments, slots, strict=True)]
    for node, slot, others in zip(nodes, slots, reversed(texts), strict=True):
        planter.effect(node, Effect(over={(form, slot): text for form, text in zip(forms, others, strict=True)},
                                    sweep=sweep))  # fmt: skip
    detail = {"gpus": [f"GPU{slot}" for slot in slots], "uuids": [pair[0] for pair in texts]}
    return planter.odd(kind, nodes, "node", detail, sweep=sweep)


def _other_domain(planter: Planter, kind: str) -> bool:
    """A tray in the NVLink domain of another rack: one host too many there."""
    group = planter.group(lambda each: each.platform.rack and each.nodes > each.platform.unit)
    node = planter.node(group) if group else None
    if group is None or node is None:
        return False
    racks = [group.first_rack, group.first_rack + 1]
    (other,) = {*racks} - {group.place(node).rack} if group.place(node).rack in racks else {racks[0]}
    planter.effect(node, Effect(over={("domain", 0): domain(planter.seed, other)}))
    return planter.odd(kind, [node], "node", {"cluster_uuid": domain(planter.seed, other)})


def _gone(planter: Planter, kind: str) -> bool:
    """From a sweep on it sends nothing."""
    result = planter.one(lambda _: True) if planter.sweeps > 1 else None
    if result is None:
        return False
    sweep = planter.later()
    planter.effect(result[1], Effect(sweep=sweep, gone=True))
    return planter.odd(kind, [result[1]], "node", {}, sweep=sweep)


def _clock(seconds: int) -> Plant:
    """Its clock is wrong, all the time."""

    def plant(planter: Planter, kind: str) -> bool:
        result = planter.one(lambda group: group.nodes > LEAST)
        if result is None:
            return False
        planter.effect(result[1], Effect(clock_seconds=seconds))
        return planter.odd(kind, [result[1]], "node", {"seconds": seconds})

    return plant


def _slow_probe(planter: Planter, kind: str) -> bool:
    result = planter.one(lambda group: bool(group.templates.shape.gpus))
    if result is None:
        return False
    group, node = result
    names = [run.name for run in group.templates.healthy.probes]
    over = {("seconds", names.index("nvml")): str(SLOW_SECONDS), ("total", 0): str(SLOW_SECONDS + 1.2)}
    planter.effect(node, Effect(over=over))
    return planter.odd(kind, [node], "node", {"probe": "nvml", "seconds": SLOW_SECONDS})


def _damaged(damage: str) -> Plant:
    def plant(planter: Planter, kind: str) -> bool:
        result = planter.one(lambda _: True)
        if result is None:
            return False
        planter.effect(result[1], Effect(damage=damage))
        if damage in DAMAGES:
            return planter.odd(kind, [result[1]], "node", {"readable": False})
        return planter.noise(kind, planter.hostname(result[1]), {"readable": True})

    return plant


KINDS: dict[str, Plant] = {
    **{kind: overlaid(make) for kind, make in OVERLAYS.items()},
    **{kind: overlaid(make, drift=True) for kind, make in DRIFTS.items()},
    **{kind: _of_small_class(make) for kind, make in OF_SMALL_CLASSES.items()},
    "nvlink-domain-other": _other_domain,
    "gpu-moved": _moved_gpu,
    "flapping": _flapping,
    "node-gone": _gone,
    "node-never": _never,
    "same-name": _same_name,
    "duplicate-guid": _duplicate("number", "node_guid"),
    "duplicate-serial": _duplicate("serial", "serial"),
    "duplicate-machine-id": _duplicate("machine-id", "machine_id"),
    "duplicate-ip": _duplicate("ip", "address"),
    "duplicate-ip-prefix": _duplicate("ip", "address", prefix=24),
    "duplicate-lid": _duplicate("lid", "lid"),
    "duplicate-gpu-uuid": _duplicate("uuid", "uuid"),
    **CABLES,
    **OF_MANY,
    "uplink-older": older_ports,
    **{kind: overlaid(make, last=True) for kind, make in RATES.items()},
    **{kind: overlaid(make) for kind, make in {**HIGH_COUNTERS, **MODELS}.items()},
    **{"+".join(pair): two_causes(*pair) for pair in PAIRS},
    "stale": _stale,
    "stale-finding": _stale_finding,
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
