"""What is set up differently in the later of two collections of the same switches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import msgspec

from agent.fleet.lossless.traffic import describe_priorities
from agent.model.labels import group_by_key, natural
from probes.switches.facts import PortFacts, SwitchFacts


class SwitchChange(msgspec.Struct, frozen=True, kw_only=True):
    """One setting that became another on some ports of a switch."""

    switch: str
    ports: list[str]
    what: str
    before: str
    after: str


_Read = Callable[[PortFacts, int], str | None]  # a setting in words; None: not known, which is no change


def list_changes(
    switches: Mapping[str, SwitchFacts], before: Mapping[str, SwitchFacts], dscp: int
) -> list[SwitchChange]:
    """Of settings that both collections state; a switch or a port that one of them does not have is none."""
    both = [(name, switch.ports, before[name].ports) for name, switch in switches.items() if name in before]
    ports = group_by_key(
        ((name, *change), port)
        for name, now, then in both
        for port in now
        if port in then
        for change in _compare(then[port], now[port], dscp)
    )
    changes = [
        SwitchChange(switch=switch, ports=sorted(names, key=natural), what=what, before=old, after=new)
        for (switch, what, old, new), names in ports.items()
    ]
    return sorted(changes, key=lambda change: (natural(change.switch), change.what, natural(change.ports[0])))


def _compare(then: PortFacts, now: PortFacts, dscp: int) -> Iterator[tuple[str, str, str]]:
    for what, read in _SETTINGS.items():
        old, new = read(then, dscp), read(now, dscp)
        if old is not None and new is not None and old != new:
            yield what.format(dscp=dscp), old, new


def _format_switch(value: bool | None) -> str | None:
    return None if value is None else "on" if value else "off"


def _format_ecn(port: PortFacts, dscp: int) -> str | None:
    queue = (port.dscp_queue or {}).get(dscp)
    if port.ecn is None or queue is None:
        return None
    profile = port.ecn.get(queue)
    if profile is None:
        return "none"
    low, high = (f"{value:,}" if value is not None else "?" for value in (profile.min_bytes, profile.max_bytes))
    return f"{low} to {high} bytes" + ("" if profile.marks else ", without marking")


def _format_neighbor(port: PortFacts, dscp: int) -> str | None:
    if len(port.neighbors) != 1:
        return None
    neighbor = port.neighbors[0]
    return f"{neighbor.name or neighbor.chassis or ''} {neighbor.port or ''}".strip() or None


def _format_number(value: float | None) -> str | None:
    return None if value is None else f"{value:g}"


def _find_priority(port: PortFacts, dscp: int) -> str | None:
    return _format_number((port.dscp_prio or {}).get(dscp))


_SETTINGS: Mapping[str, _Read] = {
    "PFC": lambda port, _: None if port.pfc is None else describe_priorities(port.pfc),
    "priority of DSCP {dscp}": _find_priority,
    "trust": lambda port, _: port.trust,
    "PFC watchdog": lambda port, _: _format_switch(port.watchdog_configured),
    "action of the PFC watchdog": lambda port, _: port.watchdog_action,
    "ECN of DSCP {dscp}": _format_ecn,
    "asymmetric PFC": lambda port, _: _format_switch(port.pfc_asymmetric),
    "802.3x pause": lambda port, _: _format_switch(port.global_pause),
    "MTU": lambda port, _: None if port.mtu is None else str(port.mtu),
    "speed in Gbit/s": lambda port, _: _format_number(port.speed_gbit_s),
    "FEC": lambda port, _: port.fec_active or port.fec_set,
    "cable length in metres": lambda port, _: _format_number(port.cable_metres),
    "neighbor": _format_neighbor,
}
