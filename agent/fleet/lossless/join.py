"""Joins ports by LLDP of both sides and by the plan: one hop for each cable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from agent.fleet.cluster.cabling_plan import Planned
from agent.fleet.lossless.hop import CableEnd, Hop, HostPort
from agent.fleet.lossless.known_ends import KnownHosts, KnownSwitches, looks_like_switch_port
from agent.fleet.text.parts import count
from probes.switches.facts import PortFacts, SwitchFacts, SwitchNeighbor

_NO_LINK = ("ethernet-bp", "ethernet-ib", "eth0", "management", "mgmt")


class JoinedHops(NamedTuple):
    """The hops. `notes`: ports whose LLDP cannot be used; `unjudged`: how many ports are in no hop, and why; `others`:
    cables without PFC that lead out of what was given."""

    hops: list[Hop]
    notes: list[str]
    unjudged: list[str]
    others: list[Hop]


def join(
    switches: Mapping[str, SwitchFacts],
    before: Mapping[str, SwitchFacts],
    hosts: Sequence[HostPort],
    plan: Iterable[Planned],
    only_known_hosts: bool,
) -> JoinedHops:
    """All hops. `only_known_hosts`: ports that lead to other hosts carry no RoCE that is asked about."""
    names, known = KnownSwitches(switches), KnownHosts(hosts)
    joiner = _Joiner(switches, before, names, known, _Plan(plan, names), only_known_hosts)
    joiner.add_switch_claims()
    joiner.add_host_claims(hosts)
    hops = sorted(joiner.list_hops(), key=Hop.key)
    return JoinedHops(hops, joiner.notes, list(joiner.count_unjudged()), joiner.others)


class _Plan:
    """Cable lengths by the switch port at either end."""

    def __init__(self, plan: Iterable[Planned], names: KnownSwitches) -> None:
        self.rows: dict[tuple[str, str], tuple[str, str, float | None]] = {}
        for row in plan:
            metres = _metres(row.length)
            for name, port, far, far_port in (
                (row.switch, row.port, row.node, row.rail),
                (row.node, row.rail, row.switch, row.port),
            ):
                switch = names.switch(name)
                facts = names.port(switch, port) if switch else None
                if switch is not None and facts is not None:
                    self.rows[switch.name, facts.name] = far, far_port, metres

    def metres(self, end: CableEnd) -> float | None:
        """The length of the cable that belongs at a switch port."""
        return self.rows.get((end.node, end.port), ("", "", None))[2]


@dataclass
class _Joiner:
    switches: Mapping[str, SwitchFacts]
    before: Mapping[str, SwitchFacts]
    names: KnownSwitches
    hosts: KnownHosts
    plan: _Plan
    only_known_hosts: bool
    hops: dict[tuple[str, str], Hop] = field(default_factory=dict)  # by the switch port at either end, or "host", ..
    notes: list[str] = field(default_factory=list)
    others: list[Hop] = field(default_factory=list)
    other_hosts: int = 0
    down: int = 0

    def add_switch_claims(self) -> None:
        """What switches' LLDP states; of a switch without it every port that is not down."""
        for switch in self.switches.values():
            told = any(port.neighbors for port in switch.ports.values())
            for port in switch.ports.values():
                if port.name.lower().startswith(_NO_LINK):
                    continue
                if port.oper == "down" or (port.admin == "down" and port.oper is None):
                    self.down += 1
                    continue
                here = self._switch_end(switch, port)
                if len(port.neighbors) > 1:
                    self.notes.append(f"{here.label}: LLDP names {len(port.neighbors)} neighbors, none is taken")
                elif port.neighbors:
                    self._add_claim(here, self._far_end(port.neighbors[0]))
                elif (switch.name, port.name) in self.plan.rows:
                    self._add_planned(here)
                elif not told and not self.only_known_hosts and (switch.name, port.name) not in self.hops:
                    self._put(Hop(here, CableEnd("", "")))

    def _far_end(self, neighbor: SwitchNeighbor) -> CableEnd:
        switch = self.names.switch(neighbor.name, neighbor.chassis)
        if switch is not None:
            port = self.names.port(switch, neighbor.port, neighbor.description)
            return self._switch_end(switch, port) if port else CableEnd(switch.name, neighbor.port or "", switch)
        host = self.hosts.find(neighbor)
        if host is not None:
            return CableEnd(host.host, host.name, host=host)
        return CableEnd(neighbor.name or neighbor.chassis or "", neighbor.description or neighbor.port or "")

    def _switch_end(self, switch: SwitchFacts, port: PortFacts) -> CableEnd:
        earlier = self.before.get(switch.name)
        return CableEnd(switch.name, port.name, switch, port, before=earlier.ports.get(port.name) if earlier else None)

    def _add_claim(self, here: CableEnd, far: CableEnd) -> None:
        if self.only_known_hosts and far.switch is None and far.host is None and not self._is_switch(far):
            self.other_hosts += 1
            return
        unknown = far.switch is None and far.host is None
        if self.only_known_hosts and unknown and here.facts is not None and here.facts.pfc == frozenset():
            self.others.append(Hop(here, far, "a"))  # a way out, as far as is known: no RoCE is meant to be there
            return
        own = self.hops.get((here.node, here.port))
        if own is not None and far.switch is not None and far.facts is None and own.a.node == far.node:
            own.told_by = "both"  # by a name of the port that it has nowhere else
            return
        there = self.hops.get((far.node, far.port)) if far.facts is not None or far.host is not None else None
        if there is not None and there.b.facts is None and there.b.host is None and there.b.node in ("", here.node):
            there.b, there.told_by = here, "both" if there.b.node else "b"  # it named no port, or nothing at all
            self._put(there)
        elif there is None:
            self._put(Hop(here, far, "a"))
        elif (there.b.node, there.b.port) == (here.node, here.port):
            there.told_by = "both"
        else:
            said = f"{here.label} names {far.label}, which names {there.b.label}"
            there.disagreement = there.disagreement or said
            self._put(Hop(here, CableEnd(far.node, far.port), "a", disagreement=said))

    def _is_switch(self, far: CableEnd) -> bool:
        """Whether an unknown neighbor is a switch by its port's name: its own outputs are missing."""
        return looks_like_switch_port(far.port) and not self.hosts.knows(far.node)

    def _add_planned(self, here: CableEnd) -> None:
        far, far_port, _ = self.plan.rows[here.node, here.port]
        switch = self.names.switch(far)
        if switch is not None:
            port = self.names.port(switch, far_port)
            if port is not None and (switch.name, port.name) not in self.hops:
                self._put(Hop(here, self._switch_end(switch, port), "plan"))
            return
        rails = self.hosts.interfaces(far)
        host = rails.get(far_port.lower()) or next(
            (port for port in rails.values() if far_port.isdecimal() and port.rail == int(far_port)), None
        )
        if host is None and rails:
            return
        if host is not None and host.neighbor_name:  # its own LLDP shows where it is
            return
        self._put(Hop(here, CableEnd(host.host, host.name, host=host) if host else CableEnd(far, far_port), "plan"))

    def add_host_claims(self, hosts: Sequence[HostPort]) -> None:
        """What hosts' LLDP states."""
        for host in hosts:
            here = CableEnd(host.host, host.name, host=host)
            hop = self.hops.get((host.host, host.name))
            switch = self.names.switch(host.neighbor_name, host.neighbor_chassis)
            port = self.names.port(switch, host.neighbor_port) if switch else None
            if hop is not None:
                if switch is None or port is None or hop.a.switch is None:
                    continue
                if (hop.a.node, hop.a.port) == (switch.name, port.name):
                    hop.told_by = "both" if hop.told_by == "a" else hop.told_by
                else:
                    hop.disagreement = f"{hop.a.label} names {here.label}, which names {switch.name} {port.name}"
                continue
            if host.up is False:
                self.down += 1
                continue
            if switch is not None and port is not None:
                far = self._switch_end(switch, port)
                other = self.hops.get((switch.name, port.name))
                if other is None or (other.b.host is None and not other.is_trunk and not other.b.node):
                    self._put(Hop(far, here, "b"))
                else:
                    differs = f"{here.label} names {far.label}, which names {other.b.label or 'no neighbor'}"
                    self._put(Hop(here, CableEnd(far.node, far.port), "b", disagreement=differs))
            elif host.neighbor_name:
                name = switch.name if switch else host.neighbor_name
                self._put(Hop(here, CableEnd(name, host.neighbor_port or "", switch), "a"))
            else:
                self._put(Hop(here, CableEnd("", "")))

    def _put(self, hop: Hop) -> None:
        for end in hop.ends:
            if end.facts is not None or end.host is not None:
                self.hops[end.node, end.port] = hop

    def list_hops(self) -> Iterator[Hop]:
        """Each once; the lower row first: a host's end, then by name."""
        done: set[int] = set()
        for hop in self.hops.values():
            if id(hop) in done:
                continue
            done.add(id(hop))
            if hop.b.host is not None and hop.a.host is None:
                hop.a, hop.b = hop.b, hop.a
                hop.told_by = {"a": "b", "b": "a"}.get(hop.told_by, hop.told_by)
            lengths = [metres for end in hop.ends if (metres := self.plan.metres(end)) is not None]
            hop.metres_plan = max(lengths) if lengths else None
            yield hop

    def count_unjudged(self) -> Iterator[str]:
        """Ports that are in no hop, in words."""
        if self.other_hosts:
            yield (f"{count(self.other_hosts, 'switch port')} to hosts without a report: not judged")
        if self.others:
            yield (f"{count(len(self.others), 'port')} without PFC to devices of which nothing was given: not judged")
        if self.down:
            yield (f"{count(self.down, 'port')} down: not judged")


def _metres(text: str) -> float | None:
    """A length as plans have it.

    >>> [_metres(text) for text in ("40", "5m", "1.5 m", "10 ft", "")]
    [40.0, 5.0, 1.5, 3.048, None]
    """
    word = text.strip().lower()
    number = word.rstrip("abcdefghijklmnopqrstuvwxyz ")
    unit = {"": 1.0, "m": 1.0, "meter": 1.0, "meters": 1.0, "metre": 1.0, "metres": 1.0, "ft": 0.3048, "cm": 0.01}.get(
        word[len(number) :].strip()
    )
    try:
        value = float(number) if unit is not None else -1.0
    except ValueError:
        return None
    return round(value * (unit or 0), 3) if 0 < value < 1e5 else None
