"""Hops as links of the cluster graph: what switches' LLDP adds to that of hosts in `fleet topology` and `cables`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from agent.fleet.cluster.graph import FabricGraph, HostLink, LinkRate, Switch, SwitchLink, SwitchPort
from agent.fleet.lossless.hop import CableEnd, Hop, HostPort
from agent.fleet.lossless.join import join
from agent.fleet.lossless.known_ends import KnownSwitches, looks_like_switch_port
from agent.fleet.text.parts import count
from probes.switches.facts import SwitchFacts


class SwitchOutputs(NamedTuple):
    """Switches whose outputs were read, and the ports of the hosts that have reports; None: there are no reports."""

    switches: Mapping[str, SwitchFacts]
    hosts: Sequence[HostPort] | None = None
    problems: Sequence[str] = ()

    @property
    def source(self) -> str:
        """What was read, in words."""
        return f"outputs of {count(len(self.switches), 'switch')}"

    def add_to(self, graph: FabricGraph) -> FabricGraph:
        """The graph with cables between switches, and cables that only a switch's LLDP shows.

        What a host's report names a switch or a port by becomes the switch's own name of it.
        """
        joined = join(self.switches, {}, self.hosts or (), [], only_known_hosts=self.hosts is not None)
        graph = add_hops(graph, self.switches, [*joined.hops, *joined.others], only_reported=self.hosts is not None)
        unread = (
            [f"{count(len(self.problems), 'line')} on outputs that are not read: {self.problems[0]}"]
            if self.problems
            else []
        )
        return graph._replace(notes=(*graph.notes, *joined.notes, *unread))


def add_hops(
    graph: FabricGraph, facts: Mapping[str, SwitchFacts], hops: Sequence[Hop], only_reported: bool
) -> FabricGraph:
    """The graph with the hops' links. `only_reported`: hosts without a report are none of its hosts."""
    names = KnownSwitches(facts)
    own = {
        switch.id: known
        for switch in graph.switches.values()
        if switch.by_hosts and (known := names.switch(switch.name, switch.id))
    }
    switches = {switch.id: switch for switch in graph.switches.values() if switch.id not in own}
    for known in facts.values():
        has_neighbors = any(port.neighbors for port in known.ports.values())
        switches[known.name] = Switch(
            known.name, known.name, len(known.ports), by_hosts=not has_neighbors, whole=has_neighbors
        )
    links = [_rename_port(link, own, names) for link in graph.host_links]
    shared = []
    for port in graph.shared:
        renamed = tuple(_rename_port(link, own, names) for link in port.links)
        shared.append(port._replace(at=renamed[0].at, links=renamed))
    hosts = _index_hosts(graph)
    taken = {(link.host, link.device) for link in links}, {link.at for link in links}
    trunks: list[SwitchLink] = []
    for hop in hops:
        for end, far in (hop.ends, hop.ends[::-1]):
            link = _find_host_link(end, far, hosts, only_reported)
            if link is not None and (link.host, link.device) not in taken[0] and link.at not in taken[1]:
                links.append(link)
        trunks += _list_trunks(hop, switches)
    return graph._replace(
        switches=switches,
        host_links=tuple(links),
        switch_links=(*graph.switch_links, *trunks),
        shared=tuple(shared),
        aliases=dict(_list_aliases(facts)),
    )


def _rename_port(link: HostLink, own: Mapping[str, SwitchFacts], names: KnownSwitches) -> HostLink:
    known = own.get(link.at.switch)
    if known is None:
        return link
    port = names.port(known, link.at.port)
    return link._replace(at=SwitchPort(known.name, port.name if port else link.at.port))


def _index_hosts(graph: FabricGraph) -> dict[str, str]:
    """Hosts of the graph by their names, and by what follows the cluster's name where only one has it."""
    names = {*graph.rails, *(link.host for link in graph.host_links)}
    short: dict[str, str | None] = {}
    for name in names:
        word = name.rpartition("/")[2]
        short[word] = None if word in short else name
    return {word: name for word, name in short.items() if name} | {name: name for name in names}


def _find_host_link(end: CableEnd, far: CableEnd, hosts: Mapping[str, str], only_reported: bool) -> HostLink | None:
    """A host's end on a port of a switch. Of a host without a report its names in the switch's LLDP."""
    if far.facts is None or end.switch is not None or not end.node:
        return None
    at, pace = SwitchPort(far.node, far.port), LinkRate(gbit_s=end.speed or far.speed)
    if end.host is not None:
        rail = f"rail {end.host.rail}" if end.host.rail is not None else end.port
        return HostLink(hosts.get(end.node, end.node), rail, end.port, at, pace)
    if only_reported or looks_like_switch_port(end.port):
        return None
    return HostLink(end.node, end.port, end.port, at, pace)


def _list_trunks(hop: Hop, switches: dict[str, Switch]) -> Iterator[SwitchLink]:
    """Between switches; one of which no output was read is known by its neighbors only."""
    a, b = hop.ends
    if hop.disagreement and not all(end.facts is not None for end in hop.ends):
        return  # the same cable as another hop, in the words of its other end
    for end, far in (hop.ends, hop.ends[::-1]):
        unknown = end.switch is None and end.host is None and end.node and looks_like_switch_port(end.port)
        if unknown and far.switch is not None:
            switches.setdefault(end.node, Switch(end.node, end.node, whole=False))
    if a.node in switches and b.node in switches and a.port and b.port and a.node != b.node:
        speeds = {end.speed for end in hop.ends if end.speed}
        pace = LinkRate(gbit_s=speeds.pop() if len(speeds) == 1 else None)  # of ends that differ none is usual
        yield SwitchLink(SwitchPort(a.node, a.port), SwitchPort(b.node, b.port), pace)


def _list_aliases(facts: Mapping[str, SwitchFacts]) -> Iterator[tuple[SwitchPort, str]]:
    for switch in facts.values():
        for port in switch.ports.values():
            if port.alias and port.alias not in switch.ports:
                yield SwitchPort(switch.name, port.alias.lower()), port.name
