"""A two-tier fabric: hosts by rail on leaves, every leaf on every spine, systems mixed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

SYSTEMS = ("sonic", "cumulus", "other")
DSCP, PRIORITY, CNP = 26, 3, 48


@dataclass
class MadePort:
    """One switch port as it is set up, and its counters now and before."""

    switch: str
    name: str
    alias: str
    far: str = ""
    far_port: str = ""
    far_alias: str = ""
    far_is_host: bool = False
    speed: int = 400
    mtu: int = 9100
    fec: str = "rs"
    trust: str = "dscp"
    priorities: dict[int, int] = field(default_factory=lambda: {DSCP: PRIORITY, CNP: 6})
    pfc: list[int] = field(default_factory=lambda: [PRIORITY])
    watchdog: bool = True
    watches: list[int] | None = None  # None: as `pfc`
    detect_ms: int = 200
    action: str = "drop"
    ecn: tuple[int, int] | None = (1_000_000, 3_000_000)
    wred_only: bool = False
    metres: int = 40
    stormed: bool = False
    pfc_mode: str | None = None
    pfc_known: bool = True
    in_use: list[int] | None = None  # priorities with PFC that the port really uses
    chip_ecn: tuple[int, int] | None = None
    weight: int = 50  # of the data queue
    cnp_strict: bool = True
    asymmetric: bool = False
    pause: bool = False
    retry: int | None = None  # metres of the profile of link layer retry
    told_far: tuple[str, str] | None = None  # what LLDP says, where it is another
    now: dict[str, int] = field(default_factory=dict)
    before: dict[str, int] = field(default_factory=dict)

    @property
    def subject(self) -> str:
        """As findings name it."""
        return f"swport:{self.switch}/{self.name}"


@dataclass
class MadeSwitch:
    """One switch."""

    name: str
    system: str
    ports: list[MadePort] = field(default_factory=list)
    trimming: bool = False
    pool: tuple[int, int] | None = None  # of headroom: its size, and what was in use at once


@dataclass
class MadeRail:
    """One interface of a host."""

    host: str
    name: str
    rail: int
    mac: str
    switch: str
    port: str
    alias: str
    mtu: int = 9000
    metres: int = 5
    priorities: dict[int, int] = field(default_factory=lambda: {DSCP: PRIORITY, CNP: 6})
    pfc: list[int] = field(default_factory=lambda: [PRIORITY])
    losses: int = 0


@dataclass
class MadeFabric:
    """All of it. `planted`: rule and subject of each fault."""

    switches: dict[str, MadeSwitch]
    rails: list[MadeRail]
    lengths: dict[tuple[str, str], int]  # of the plan, by the port of the lower switch
    planted: list[tuple[str, str]] = field(default_factory=list)

    def ports(self, host: bool | None = None) -> Iterator[MadePort]:
        """All switch ports; those to hosts, or to switches."""
        for switch in self.switches.values():
            for port in switch.ports:
                if host is None or port.far_is_host == host:
                    yield port

    def port(self, switch: str, name: str) -> MadePort:
        """One port."""
        ports = self.switches[switch].ports
        number = int("".join(letter for letter in name.partition("/")[0] if letter.isdigit()))
        return ports[number // 8 if self.switches[switch].system == "sonic" else number - 1]


def build(
    leaves: int,
    spines: int,
    hosts: int,
    rails: int = 2,
    systems: tuple[str, ...] = SYSTEMS,
    pods: int = 1,
    cores: int = 0,
) -> MadeFabric:
    """Hosts of a unit share `rails` leaves; rail r is on leaf r of the unit. With several pods every leaf is on the
    spines of its pod, and every spine on its share of the cores."""
    switches = {}
    for number in range(cores):
        switches[f"core{number + 1}"] = MadeSwitch(f"core{number + 1}", systems[number % len(systems)])
    for number in range(leaves):
        switches[f"leaf{number + 1}"] = MadeSwitch(f"leaf{number + 1}", systems[number % len(systems)])
    for number in range(spines):
        switches[f"spine{number + 1}"] = MadeSwitch(f"spine{number + 1}", systems[number % len(systems)])
    fabric = MadeFabric(switches, [], {})
    units = max(leaves // rails, 1)
    for number in range(hosts):
        for rail in range(rails):
            leaf = switches[f"leaf{(number % units) * rails + rail + 1}"]
            port = _add_port(leaf, 5)
            host = f"gpu{number + 1:05d}"
            mac = f"02:{rail:02x}:{number >> 16 & 255:02x}:{number >> 8 & 255:02x}:{number & 255:02x}:01"
            port.far, port.far_port, port.far_is_host = host, f"eth{rail}", True
            fabric.rails.append(MadeRail(host, f"eth{rail}", rail, mac, leaf.name, port.name, port.alias))
    for number in range(leaves):
        pod = number * pods // leaves
        for other in range(pod * spines // pods, (pod + 1) * spines // pods):
            _connect(fabric, switches[f"leaf{number + 1}"], switches[f"spine{other + 1}"])
    per_pod = max(spines // pods, 1)
    for number in range(spines if cores else 0):
        for other in range(number % per_pod, cores, per_pod):
            _connect(fabric, switches[f"spine{number + 1}"], switches[f"core{other + 1}"])
    for port in fabric.ports():
        _start_counters(port)
    return fabric


def _connect(fabric: MadeFabric, lower: MadeSwitch, upper: MadeSwitch) -> None:
    low, high = _add_port(lower, 40), _add_port(upper, 40)
    low.far, low.far_port, low.far_alias = upper.name, high.name, high.alias
    high.far, high.far_port, high.far_alias = lower.name, low.name, low.alias
    fabric.lengths[low.switch, low.name] = 40


def _add_port(switch: MadeSwitch, metres: int) -> MadePort:
    number = len(switch.ports)
    names = {
        "sonic": (f"Ethernet{number * 8}", f"etp{number + 1}"),
        "cumulus": (f"swp{number + 1}", ""),
        "other": (f"Ethernet{number + 1}/1", ""),
    }
    name, alias = names[switch.system]
    switch.ports.append(MadePort(switch.name, name, alias, metres=metres))
    return switch.ports[-1]


def _start_counters(port: MadePort) -> None:
    """Traffic, and no fault."""
    for name, value in (("bytes", 10**12), ("packets", 10**9), ("marks", 10**6), ("drops", 0), ("group_drops", 0)):
        port.before[name] = value
        port.now[name] = value * 2
    port.before["first"], port.now["first"] = 10**6, 2 * 10**6
    for name in ("tx", "rx", "uncorrected", "near_limit", "flaps", "trim_drops"):
        port.before[name] = port.now[name] = 100
