"""Switches and hosts by the names and addresses that LLDP and cabling plans have for them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence

from agent.fleet.cluster.cabling_plan import normalize_port
from agent.fleet.lossless.hop import HostPort
from agent.model.node import shorten_host
from probes.switches.facts import PortFacts, SwitchFacts, SwitchNeighbor


def _find_short_names(names: Collection[str]) -> dict[str, str]:
    """The names by what is before their domain, where only one of them has it.

    >>> _find_short_names(["Leaf1.site.org", "gpu1.a", "gpu1.b"])
    {'leaf1': 'Leaf1.site.org'}
    """
    short = {name: shorten_host(name.lower()) for name in names}
    counts = Counter(short.values())
    return {word: name for name, word in short.items() if counts[word] == 1}


def looks_like_switch_port(name: str) -> bool:
    """Whether only a switch has a port of that name.

    >>> [looks_like_switch_port(name) for name in ("Ethernet8", "swp1s0", "et-0/0/1", "eth0", "ens3f0np0")]
    [True, True, True, False, False]
    """
    return name.lower().startswith(("ethernet", "etp", "swp", "hundredgig", "fourhundredgig", "et-"))


class KnownSwitches:
    """Switches by the names that LLDP and plans have for them."""

    def __init__(self, switches: Mapping[str, SwitchFacts]) -> None:
        self.by_name = {name.lower(): switch for name, switch in switches.items()}
        self.by_short = {short: switches[name] for short, name in _find_short_names(switches).items()}
        self.by_chassis = {_mac(switch.chassis): switch for switch in switches.values() if _mac(switch.chassis)}
        self.ports: dict[str, dict[str, PortFacts | None]] = {}

    def switch(self, name: str | None, chassis: str | None = None) -> SwitchFacts | None:
        """By its name, else by its chassis."""
        word = (name or "").strip().lower()
        found = self.by_name.get(word) or self.by_short.get(word.partition(".")[0]) if word else None
        return found or self.by_chassis.get(_mac(chassis) or "?")

    def port(self, switch: SwitchFacts, *names: str | None) -> PortFacts | None:
        """The first of the names that is the name, alias or description of exactly one port."""
        index = self.ports.get(switch.name)
        if index is None:
            index = self.ports[switch.name] = _index_ports(switch)
        for name in names:
            if name and (port := index.get(normalize_port(name).lower()) or index.get(name.lower())):
                return port
        return None


def _index_ports(switch: SwitchFacts) -> dict[str, PortFacts | None]:
    index: dict[str, PortFacts | None] = {name.lower(): port for name, port in switch.ports.items()}
    for field in ("alias", "description"):
        other: dict[str, PortFacts | None] = {}
        for facts in switch.ports.values():
            word = (getattr(facts, field) or "").lower()
            if word and word not in index:
                other[word] = None if word in other else facts
        index.update(other)
    for name, port in list(index.items()):
        if name.startswith("eth") and not name.startswith("ethernet"):
            index.setdefault(f"ethernet{name[3:]}", port)
        elif name.startswith("ethernet"):
            index.setdefault(f"eth{name[8:]}", port)
    return index


class KnownHosts:
    """Hosts' interfaces by name and by MAC address."""

    def __init__(self, hosts: Sequence[HostPort]) -> None:
        self.by_host: defaultdict[str, dict[str, HostPort]] = defaultdict(dict)
        self.by_mac: dict[str, HostPort | None] = {}
        names = _find_short_names({host.host for host in hosts})
        self.short = {short: name.lower() for short, name in names.items()}
        for host in hosts:
            self.by_host[host.host.lower()][host.name.lower()] = host
            mac = _mac(host.mac)
            if mac:
                self.by_mac[mac] = None if mac in self.by_mac else host

    def find(self, neighbor: SwitchNeighbor) -> HostPort | None:
        """The interface that a switch's LLDP names."""
        for word in (neighbor.port, neighbor.description, neighbor.chassis):
            host = self.by_mac.get(_mac(word) or "?")
            if host is not None:
                return host
        ports = self.interfaces(neighbor.name)
        return next(
            (ports[word.lower()] for word in (neighbor.port, neighbor.description) if word and word.lower() in ports),
            None,
        )

    def interfaces(self, name: str | None) -> Mapping[str, HostPort]:
        """Those of a host by name."""
        word = (name or "").lower()
        return self.by_host.get(word) or self.by_host.get(self.short.get(word.partition(".")[0], "?"), {})

    def knows(self, name: str | None) -> bool:
        """Whether there is a report of that name."""
        return bool(self.interfaces(name))


def _mac(text: str | None) -> str | None:
    digits = (text or "").lower().replace(":", "").replace("-", "").replace(".", "")
    return digits if len(digits) == 12 and not set(digits) - set("0123456789abcdef") else None
