"""Rows of a dataset, a record for each switch: what its outputs state, its hops as judged, and its findings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime, timezone
from typing import TypeVar

import msgspec

from agent.fleet.lossless.answer import LosslessAnswer
from agent.fleet.lossless.rows import HopEnd, HopRow
from agent.fleet.receipt import receive
from agent.fleet.rows import SwitchRecord
from agent.fleet.rows.report_fields import FindingFields
from agent.fleet.rows.row_columns import MOST, Row, fill_row
from agent.fleet.rows.verdicts import finding_rows
from agent.fleet.tables import HOP, SWITCH, SWITCH_PORT
from agent.model.node import SWITCH_PREFIX, choose_node_name
from probes.switches.facts import EcnProfile, Headroom, PortFacts, SwitchFacts

_FINDINGS = msgspec.json.Decoder(list[FindingFields])
_V = TypeVar("_V")
_HopsAt = dict[str, tuple[list[HopRow], dict[str, HopEnd]]]  # by switch: its rows of hops; the far end of each port


def make_records(switches: Mapping[str, SwitchFacts], answer: LosslessAnswer, now: datetime) -> list[SwitchRecord]:
    """A record for each switch, by name."""
    hops, findings = _sort_hops(switches, answer.hops), _sort_findings(switches, answer)
    texts = _PortTexts()
    records = []
    for name, switch in sorted(switches.items()):
        mine, far_ends = hops[name]
        observed = receive(_find_moment(switch, now), 0.0, now).observed_at
        ports = [texts.make_row(switch, port, far_ends.get(port.name)) for port in switch.ports.values()]
        rows = {
            "switch": [_make_switch_row(switch, observed, answer.dscp)],
            "switch_port": ports,
            "hop": _make_hop_rows(name, mine),
            "finding": finding_rows(findings[name]),
        }
        counters = [(f"swport:{name}/{port.name}", port.counters) for port in switch.ports.values() if port.counters]
        node = SWITCH_PREFIX + choose_node_name([name])
        records.append(SwitchRecord(node, observed, _name_class(switch, far_ends.values()), rows, counters))
    return records


def _find_moment(switch: SwitchFacts, now: datetime) -> datetime:
    """The date in the outputs, else the time of the newest file."""
    try:
        moment = msgspec.convert(switch.observed_at, datetime)
        return moment.astimezone(timezone.utc) if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
    except (msgspec.ValidationError, OverflowError, ValueError):
        pass
    try:
        return datetime.fromtimestamp(switch.saved_at, timezone.utc) if switch.saved_at > 0 else now
    except (OverflowError, ValueError, OSError):
        return now


def _name_class(switch: SwitchFacts, far_ends: Iterable[HopEnd]) -> str:
    """Switches that should be alike: of one system and model, with hosts or without."""
    hosts = "with hosts" if any(end.kind == "host" for end in far_ends) else "without hosts"
    return f"switch: {switch.nos or 'unknown system'} {switch.model or 'unknown model'}, {hosts}"


def _sort_hops(switches: Mapping[str, SwitchFacts], hops: Iterable[HopRow]) -> _HopsAt:
    """Each hop at one switch, and the far end of every port."""
    by_switch: _HopsAt = {name: ([], {}) for name in switches}
    for hop in hops:
        ends = [(hop.a, hop.b), (hop.b, hop.a)]
        at = [(here, far) for here, far in ends if here.kind == "switch" and here.node in by_switch]
        for here, far in at:
            by_switch[here.node][1][here.port] = far
        if at:
            by_switch[at[0][0].node][0].append(hop)
    return by_switch


def _sort_findings(switches: Mapping[str, SwitchFacts], answer: LosslessAnswer) -> dict[str, list[FindingFields]]:
    """By switch; a finding about a host's port is listed for the switch that the port is connected to."""
    owners = {f"switch:{name}": name for name in switches}
    owners |= {f"swport:{name}/{port}": name for name, switch in switches.items() for port in switch.ports}
    for hop in answer.hops:
        for here, far in ((hop.a, hop.b), (hop.b, hop.a)):
            if here.kind == "switch" and far.kind != "switch":
                owners.setdefault(f"host:{far.node}/{far.port}", here.node)
            if here.kind == "switch":  # by a port that its outputs do not have
                owners.setdefault(f"swport:{here.node}/{here.port}", here.node)
    found: defaultdict[str, list[FindingFields]] = defaultdict(list)
    fields = _FINDINGS.decode(msgspec.json.encode(answer.findings))
    for finding in fields:
        owner = next((owners[subject] for subject in (finding.subject, *finding.devices) if subject in owners), None)
        if owner is not None:
            found[owner].append(finding)
    return found


def _make_switch_row(switch: SwitchFacts, observed: datetime, dscp: int) -> Row:
    return fill_row(
        SWITCH,
        switch,
        observed_at=observed,
        watchdog_poll_ms=_fit(switch.poll_ms),
        headroom_pool_bytes=_fit(switch.headroom_pool_bytes),
        ports=len(switch.ports),
        dscp=dscp,
        outputs=len(switch.sources),
    )


def _make_hop_rows(name: str, hops: Iterable[HopRow]) -> list[Row]:
    rows: dict[tuple[str, str, str], Row] = {}
    for hop in hops:
        here, far = (hop.a, hop.b) if (hop.a.kind, hop.a.node) == ("switch", name) else (hop.b, hop.a)
        row = fill_row(
            HOP,
            hop,
            switch=name,
            port=here.port,
            far_kind=far.kind,
            far_node=far.node,
            far_port=far.port,
            rail=here.rail if far.rail is None else far.rail,
            priority=here.priority,
            far_priority=far.priority,
            pfc=_format_bits(here.pfc),
            far_pfc=_format_bits(far.pfc),
            findings=" ".join(hop.findings),
        )
        rows.setdefault((here.port, far.node, far.port), row)
    return list(rows.values())


class _PortTexts:
    """Makes rows of ports. Most ports share their maps with others: each is written as text once."""

    def __init__(self) -> None:
        self._texts: dict[tuple[str, int], tuple[object, str]] = {}

    def make_row(self, switch: SwitchFacts, port: PortFacts, far: HopEnd | None) -> Row:
        """A row of table switch_port."""
        neighbor = port.neighbors[0] if len(port.neighbors) == 1 else None
        rooms = port.headroom.values() if port.headroom is not None else ()
        return fill_row(
            SWITCH_PORT,
            port,
            switch=switch.name,
            port=port.name,
            mtu=_fit(port.mtu),
            neighbor_name=neighbor and neighbor.name,
            neighbor_port=neighbor and (neighbor.port or neighbor.description),
            neighbor_chassis=neighbor and neighbor.chassis,
            dscp_prio=self._format(port.dscp_prio, str),
            dscp_queue=self._format(port.dscp_queue, str),
            pfc=_format_bits(port.pfc),
            pfc_active=_format_bits(port.pfc_active),
            pause=_format_state(port.global_pause),
            pfc_wd=_format_state(port.watchdog_configured),
            wd_action=port.watchdog_action,
            wd_detect_ms=_fit(port.watchdog_detect_ms),
            wd_state=self._format(port.watchdog_state or None, str),
            ecn=self._format(port.ecn, _format_ecn),
            queue_sched=self._format(port.scheduler, _format_schedule),
            headroom=self._format(port.headroom, _format_headroom),
            headroom_shared=next((room.shared for room in rooms if room.shared is not None), None),
            cable_metres_assumed=_fit(port.cable_metres),
            link_retry=port.link_retry.enabled if port.link_retry is not None else None,
            peer_group=_name_group(port, far),
        )

    def _format(self, values: Mapping[int, _V] | None, write: Callable[[_V], str]) -> str | None:
        """ "26:3 48:6"; the map is held, so that its id stays its own."""
        if values is None:
            return None
        key = (write.__name__, id(values))
        known = self._texts.get(key)
        if known is None:
            text = " ".join(f"{number}:{write(value)}" for number, value in sorted(values.items()))
            known = self._texts[key] = values, text
        return known[1]


def _name_group(port: PortFacts, far: HopEnd | None) -> str | None:
    """Headroom and ECN follow the speed and the length of the cable: only ports alike in these are compared."""
    if far is None or not far.node:
        return None
    parts: Iterator[str | None] = iter((
        f"to {'an unknown device' if far.kind == 'unknown' else f'a {far.kind}'}",
        None if port.speed_gbit_s is None else f"{port.speed_gbit_s:g} Gbit/s",
        None if port.cable_metres is None else f"{port.cable_metres} m",
    ))  # fmt: skip
    return ", ".join(part for part in parts if part)


def _format_bits(priorities: Collection[int] | None) -> str | None:
    """
    >>> _format_bits([3, 4]), _format_bits([]), _format_bits(None)
    ('00011000', '00000000', None)
    """
    return None if priorities is None else "".join("01"[number in priorities] for number in range(8))


def _format_state(value: bool | None) -> str | None:
    return None if value is None else "on" if value else "off"


def _format_ecn(profile: EcnProfile) -> str:
    low, high, percent = ("?" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
                          for value in (profile.min_bytes, profile.max_bytes, profile.percent))  # fmt: skip
    return f"{low}-{high}@{percent}" + ("" if profile.marks else ",drop" if profile.marks is False else "")


def _format_schedule(schedule: tuple[str, int | None]) -> str:
    kind, weight = schedule
    return kind if kind == "strict" or weight is None else str(weight)


def _format_headroom(room: Headroom) -> str:
    size, xoff = ("?" if value is None else str(value) for value in (room.size_bytes, room.xoff_bytes))
    return f"{size}+{xoff}"


def _fit(value: int | None) -> int | None:
    """A number that a column can hold."""
    return value if value is not None and abs(value) <= MOST else None
