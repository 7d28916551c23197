"""Many switches with uplinks missing by one cause are one fault: those of a unit, or those without the same switch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple, TypedDict

from agent.fleet.cluster.cabling_faults.exchanged_rails import list_home_leaves
from agent.fleet.cluster.cabling_faults.fault import CablingFault
from agent.fleet.cluster.fabric_view import View
from agent.fleet.cluster.graph import HostLink, natural
from agent.fleet.cluster.switch_tiers import SwitchBlock

_MANY = 3  # switches: fewer are as many faults
_HEAVY = 0.25  # of a switch's cables up


class MissingCables(NamedTuple):
    """What one switch does not have: cables to `upper`."""

    lower: str
    has: int
    wanted: int
    upper: tuple[str, ...]


Missing = tuple[MissingCables, CablingFault]


def fold_missing(view: View, block: SwitchBlock, missing: Sequence[Missing]) -> list[tuple[str, CablingFault]]:
    """The faults, each with the first switch that it is about."""
    unit_of = {leaf: name for name, leaves in list_home_leaves(view).items() if len(leaves) > 1 for leaf in leaves}
    groups: defaultdict[tuple[str, ...], list[Missing]] = defaultdict(list)
    for row in missing:
        lost, _ = row
        heavy = lost.wanted - lost.has >= max(2, _HEAVY * lost.wanted)
        groups[("unit", unit_of.get(lost.lower, "")) if heavy else ("upper", *lost.upper)].append(row)
    faults: list[tuple[str, CablingFault]] = []
    for (kind, *where), rows in groups.items():
        if len(rows) < _MANY:
            faults += [(lost.lower, fault) for lost, fault in rows]
        elif kind == "unit":
            faults.append((rows[0][0].lower, _report_group(view, block, rows, where[0])))
        else:
            faults.append((rows[0][0].lower, _report_upper(view, rows, where)))
    return sorted(faults, key=lambda item: natural(view.name(item[0])))


def _report_group(view: View, block: SwitchBlock, rows: Sequence[Missing], unit: str) -> CablingFault:
    what = "leaves" if block.tier == 1 else "switches"
    leaves = list_home_leaves(view).get(unit, block.peers)
    has, wanted = sorted({lost.has for lost, _ in rows}), rows[0][0].wanted
    cables = f"{has[0]}" if len(has) == 1 else f"{has[0]} to {has[-1]}"
    where = f"{len(rows)} of {len(leaves)} {what}{f' of {unit}' if unit else ''}"
    return CablingFault(
        kind="fewer-uplinks",
        text=f"{where} have {cables} of {wanted} cables up: {_list_names(view, [lost.lower for lost, _ in rows])}",
        **_join(view, rows),
        fix="look for what they share: a patch panel, a bundle or a row of switches above; then for single cables",
    )


def _report_upper(view: View, rows: Sequence[Missing], upper: Sequence[str]) -> CablingFault:
    return CablingFault(
        kind="missing-uplink",
        text=f"{len(rows)} switches have no cable, or fewer than their peers, to {_list_names(view, upper)}: "
        f"{_list_names(view, [lost.lower for lost, _ in rows])}",
        **_join(view, rows),
        fix=f"look at {_list_names(view, upper)} first: a line card or a row of its ports may be down",
    )


class _Joined(TypedDict):
    hosts: tuple[str, ...]
    ports: tuple[str, ...]
    compared: str
    should: dict[str, str]


def _join(view: View, rows: Sequence[Missing]) -> _Joined:
    """What the faults of single switches have, and the hosts below."""
    hosts = {link.host for lost, _ in rows for link in view.down.get(lost.lower, ()) if isinstance(link, HostLink)}
    return {
        "hosts": tuple(sorted(hosts, key=natural)),
        "ports": tuple(port for _, fault in rows for port in fault.ports),
        "compared": "; ".join(dict.fromkeys(text for _, fault in rows for text in fault.compared.split("; ")[:1])),
        "should": {port: place for _, fault in rows for port, place in fault.should.items()},
    }


def _list_names(view: View, switches: Sequence[str]) -> str:
    names = sorted(map(view.name, switches), key=natural)
    return ", ".join(names) if len(names) <= _MANY else f"{names[0]} .. {names[-1]}"
