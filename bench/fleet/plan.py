"""A whole fleet from a seed: `plan(1000, 1).reports()`; what is odd in it is its `truth`."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import gcd
from typing import Any

from agent.model.report import SCHEMA, SCHEMA_MINOR
from bench.fleet.fabric import Fabric, iblinkinfo, ndt
from bench.fleet.forms import DAY, Moment, Node, stamp
from bench.fleet.groups import Group, groups
from bench.fleet.identity import NODES, Identity
from bench.fleet.kinds import DAMAGES, KINDS, defaults
from bench.fleet.planting import Effect, Planted, Planter, has_restarted
from bench.fleet.platforms import PAIR, ROLLOUT

FORMAT = "fabricscope.fleet-truth/1"
FIRST = 1_768_464_000  # 2026-01-15T08:00:00Z
HOUR = 3_600
_SPREAD_SECONDS = 900  # of one sweep
_SETTLED = 2_000  # seconds after a start at which a node is looked at, at least
_USUAL = Effect()
FABRIC_FORMS = {"ibnetdiscover": Fabric.text, "iblinkinfo": iblinkinfo, "ndt": ndt}


@dataclass(frozen=True)
class Plan:
    """A fleet. Nothing of a node is kept but of odd ones: memory does not grow with their number."""

    nodes: int
    seed: int
    sweeps: int
    groups: tuple[Group, ...]
    planted: Planted

    def reports(self, sweep: int = 0, one_line: bool = False) -> Iterator[bytes]:
        """Every node's report of that sweep, in the order in which they arrive."""
        return (data for _, data in self.named(sweep, one_line))

    def named(self, sweep: int = 0, one_line: bool = False) -> Iterator[tuple[str, bytes]]:
        """The same, each with its node's host name."""
        starts = [group.first for group in self.groups]
        for index in _shuffled(self.nodes, sweep):
            effect = self.planted.effects.get(index, _USUAL)
            if effect.gone and sweep >= effect.sweep:
                continue
            group = self.groups[bisect_right(starts, index) - 1]
            yield group.hostname(index), self._report(group, index, sweep, effect, one_line)

    @property
    def fabrics(self) -> list[str]:
        """Names of the InfiniBand fabrics."""
        return [group.name for group in self.groups if group.subnet]

    def fabric_text(self, name: str | None = None, form: str = "ibnetdiscover") -> Iterator[str]:
        """One InfiniBand fabric (the first) in a file of that form (FABRIC_FORMS), in pieces. Raises ValueError."""
        for group in self.groups:
            if group.subnet and name in (None, group.name):
                assert group.fabric is not None
                overs = {index: effect.over for index, effect in self.planted.effects.items()}
                return FABRIC_FORMS[form](group.fabric, dict(group.rails(self.seed, overs)))
        raise ValueError(f"no InfiniBand fabric {name!r}: there are {', '.join(self.fabrics) or 'none'}")

    @property
    def truth(self) -> dict[str, Any]:
        """What is odd, as bench/fleet/__init__.py says."""
        effects = self.planted.effects.values()
        damaged = sum(effect.damage in DAMAGES for effect in effects)
        files = [self.nodes - sum(e.gone and sweep >= e.sweep for e in effects) for sweep in range(self.sweeps)]
        return {
            "format": FORMAT,
            "nodes": self.nodes,
            "seed": self.seed,
            "sweeps": [stamp(FIRST + sweep * HOUR) for sweep in range(self.sweeps)],
            "groups": [_told(group) for group in self.groups],
            "reports": [{"sweep": n, "files": count, "readable": count - damaged} for n, count in enumerate(files)],
            "oddities": self.planted.oddities,
            "noise": self.planted.noise,
        }

    def _report(self, group: Group, index: int, sweep: int, effect: Effect, one_line: bool) -> bytes:
        there = sweep >= effect.sweep and not (effect.flaps and (sweep - effect.sweep) % 2)
        overlay, over = (effect.overlay, effect.over) if there else ({}, {})
        template = group.templates.of(group.style(index), overlay or None)
        who = Identity(self.seed, group.place(index), over)
        moment = _moment(index, 0 if effect.stale_days else sweep, effect.stale_days, effect.clock_seconds)
        data = template.render(Node(who, moment), one_line).encode()
        return _damaged(data, effect.damage) if effect.damage else data


def plan(
    nodes: int,
    seed: int = 1,
    faults: Mapping[str, int] | None = None,
    *,
    sweeps: int = 1,
    mix: Mapping[str, float] | None = None,
    layout: str = "rail",
    oversubscription: float = 1.0,
) -> Plan:
    """A fleet of so many nodes. `faults`: kind -> how many (none: every kind, once in 2,500 nodes). `mix`: platform ->
    share. `layout`: rail | fat-tree. Raises ValueError.
    """
    if not 1 <= nodes <= NODES:
        raise ValueError(f"{nodes} nodes: from 1 to {NODES} can be made")
    if sweeps < 1 or oversubscription < 1 or any(not share > 0 for share in (mix or {}).values()):
        raise ValueError("sweeps and oversubscription are at least 1, and a share is more than 0")
    unknown = sorted(set(faults or ()) - set(KINDS))
    if unknown:
        raise ValueError(f"no kind {unknown[0]!r} of fault: there are {', '.join(KINDS)}")
    result = groups(nodes, seed, mix, layout, oversubscription)
    planter = Planter(result, seed, sweeps)
    _noise(result, planter)
    for kind, count in defaults(nodes) if faults is None else faults.items():
        for _ in range(count):
            if not KINDS[kind](planter, kind):
                break  # no more room for it
    return Plan(nodes, seed, sweeps, tuple(result), planter.done)


def _noise(made: list[Group], planter: Planter) -> None:
    """Half of one RoCE platform gets another firmware, as planned; and a class of two nodes that differ."""
    roce = [group for group in made if group.platform.lldp and group.nodes >= 16]
    platform = max(roce, key=lambda each: each.nodes).platform.name if roce else None
    for group in (item for item in roce if item.platform.name == platform):
        group.rollout = True
        detail = {"firmware": ROLLOUT, "group": group.name, "of": group.nodes}
        planter.noise("firmware-rollout", f"every second one of {_hosts(group)}", detail)
    for group in made:
        if group.platform is PAIR:
            planter.effect(group.first + 1, Effect(overlay={"software": {"driver": "535.183.06"}}))
            planter.noise("class-of-two", _hosts(group), {"what": "driver", "group": group.name})
    if any(group.platform.name == "b200-ib" for group in made):
        planter.noise("node-local-lids", "B200", {"what": "LIDs of ports inside the node, role auxiliary: no subnet"})


def _hosts(group: Group) -> str:
    first, last = (group.hostname(n) for n in (group.first, group.first + group.nodes - 1))
    return f"{first[:3]}[{first[3:]}-{last[3:]}]"


def _told(group: Group) -> dict[str, Any]:
    shape, fabric = group.templates.shape, group.fabric
    return {
        "name": group.name,
        "platform": group.templates.healthy.platform.profile,
        "shape": group.platform.shape,
        "hosts": _hosts(group),
        "nodes": group.nodes,
        "unit_nodes": group.platform.unit,
        "units": -(-group.nodes // group.platform.unit),
        "racks": group.platform.rack,
        "link_layer": "InfiniBand" if shape.infiniband else "Ethernet" if shape.rails else None,
        "rails": len(shape.rails),
        "layout": fabric.layout if fabric else None,
        "oversubscription": fabric.oversubscription if fabric else None,
        "fabric": group.name if group.subnet else None,
        "switches": {"leaf": fabric.leaves, "spine": fabric.spines, "core": fabric.cores} if fabric else None,
        "tiers": fabric.tiers if fabric else None,
        "subnet": group.subnet,
        "judged_alike": group.alike,
    }


def _moment(index: int, sweep: int, days_ago: int, clock_seconds: int = 0) -> Moment:
    """When a node is looked at, and how long it has been up."""
    restarts = [n for n in range(1, sweep + 1) if has_restarted(index, n)]
    up = DAY * (1 + index * 37 % 199) + index * 97 % DAY + sweep * HOUR + 0.25
    if restarts:
        up = _SETTLED + (sweep - restarts[-1]) * HOUR + index % 1_000 + 0.5
    at = FIRST + sweep * HOUR + index * 7_919 % _SPREAD_SECONDS - days_ago * DAY + clock_seconds
    return Moment(at, up, len(restarts), sweep)


def _shuffled(nodes: int, sweep: int) -> Iterator[int]:
    """Every node once, in another order in every sweep."""
    step = max(int(nodes * 0.618) + sweep, 1)
    while gcd(step, nodes) != 1:
        step += 1
    return ((n * step + sweep) % nodes for n in range(nodes))


def _damaged(data: bytes, damage: str) -> bytes:
    if damage == "truncated":
        return data[: len(data) * 2 // 3]
    if damage == "not-json":
        return b"<html><head><title>502 Bad Gateway</title></head></html>\n"
    if damage == "other-schema":
        return data.replace(SCHEMA.encode(), b"fabricscope.report/9", 1)
    later = f'{SCHEMA_MINOR + 7}, "colour": {{"of": ["tomorrow"]}}'.encode()
    return re.sub(rb'(?<="schema_minor": )\d+|(?<="schema_minor":)\d+', later, data, count=1)
