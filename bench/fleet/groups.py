"""A fleet's nodes in groups: each of one platform, wired by one fabric, its nodes in a row."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bench.fleet.fabric import Fabric, Port, Rail
from bench.fleet.identity import Far, Identity, Place
from bench.fleet.platforms import BY_NAME, PAIR, PLATFORMS, TWINS, Platform, Templates

_LEAST = 4  # nodes of a group; a smaller share goes to the first platform
_ROCE_RADIX = 128
DEVICE = "device"  # of what is planted: the name of a rail's RDMA device
LINK = "link"  # of what is planted: what the fabric's file says of a rail's link; "": nothing


@dataclass
class Group:
    """Nodes `first` to `first + nodes` of the fleet."""

    name: str
    platform: Platform
    templates: Templates
    first: int
    nodes: int
    first_rack: int
    fabric: Fabric | None
    subnet: str | None
    hostnames: str  # "gpu%04d"
    first_host: int
    rollout: bool = False  # half of it has another firmware, as planned
    alike: bool = True  # large enough to have a majority

    def style(self, index: int) -> str:
        """How a node differs from its like, and nobody cares."""
        n = (index * 2_654_435_761 >> 7) % 8
        if self.rollout and index % 2:
            return "rollout"
        return "renamed" if n == 0 else "disks" if n in (1, 2) and self.templates.shape.disks else "plain"

    def hostname(self, index: int) -> str:
        """Of a node of the group."""
        return self.hostnames % (self.first_host + index - self.first)

    def place(self, index: int) -> Place:
        """Where a node stands."""
        local = index - self.first
        rack, tray = divmod(local, self.platform.unit)
        fabric, rails = self.fabric, range(len(self.templates.shape.rails))
        lids: tuple[int, ...] = ()
        far: tuple[Far, ...] = ()
        if fabric is not None and self.subnet is not None:
            lids = tuple(fabric.lid(local, rail) for rail in rails)
        elif fabric is not None:
            ports = [fabric.port(local, rail) for rail in rails]
            far = tuple(Far(*fabric.told(port)) for port in ports)
        subnet = self.subnet or "fe80:0000:0000:0000"
        return Place(index, self.hostname(index), subnet, lids, far, self.first_rack + rack, tray)

    def rails(self, seed: int, overs: Mapping[int, Mapping[tuple[str, int], str]]) -> Iterator[tuple[Port, Rail]]:
        """What is plugged into the leaves of an InfiniBand group, by its nodes."""
        assert self.fabric is not None
        assert self.fabric.wiring is not None
        keys = [self.templates.key("number", digits) for digits in self.templates.rail_digits]
        for local in range(self.nodes):
            index = self.first + local
            over = overs.get(index, {})
            who = Identity(seed, self.place(index), over)
            devices = self.templates.devices(self.style(index))
            devices = tuple(over.get((DEVICE, rail), name) for rail, name in enumerate(devices))
            for rail, digits in enumerate(who.hexes(keys)):
                lid = int(over.get(("lid", rail), who.place.lids[rail]))
                speed = over.get((LINK, rail), f"4x{self.fabric.wiring.speed}")
                port = self.fabric.port(local, rail)
                if speed:
                    guid, meant = f"b83fd20300{digits}", self.fabric.meant(local, rail)
                    yield port, Rail(who.place.hostname, devices[rail], guid, lid, speed, meant)


def groups(nodes: int, seed: int, mix: Mapping[str, float] | None, layout: str, oversubscription: float) -> list[Group]:
    """All groups of a fleet. `mix`: platform -> share."""
    result: list[Group] = []
    templates: dict[str, Templates] = {}
    width = max(4, len(str(nodes)))
    first = racks = switches = subnets = 0
    hosts = {"gpu": 1, "cpu": 1}
    for platform, count in _counts(nodes, mix):
        kind = templates.setdefault(platform.name, Templates(platform))
        sizes = _sizes(platform, count)
        for part, size in enumerate(sizes, start=1):
            fabric, subnet = None, None
            name = f"{platform.name}-{part}"
            rails = len(kind.shape.rails)
            if rails and (platform.wiring or platform.lldp):
                radix = platform.wiring.radix if platform.wiring else _ROCE_RADIX
                fabric = Fabric(
                    name, seed, switches, size, platform.unit, rails, radix, layout, oversubscription, platform.wiring
                )
                fabric.scattered = platform.scattered
                switches += fabric.switches
            if platform.wiring:
                subnets += 1
                subnet = f"fe80:0000:0000:{subnets:04x}"
            word = "gpu" if kind.shape.gpus else "cpu"
            result.append(
                Group(name, platform, kind, first, size, racks, fabric, subnet, f"{word}%0{width}d", hosts[word])
            )
            result[-1].alike = size > 2
            first += size
            hosts[word] += size
            racks += math.ceil(size / platform.unit)
    return result


def _counts(nodes: int, mix: Mapping[str, float] | None) -> list[tuple[Platform, int]]:
    """How many nodes of each platform; small shares go to the first."""
    if mix is not None:
        unknown = sorted(set(mix) - set(BY_NAME))
        if unknown:
            raise ValueError(f"no platform {unknown[0]!r}: there are {', '.join(BY_NAME)}")
    wanted = [(BY_NAME[name], share) for name, share in mix.items()] if mix else [(p, p.share) for p in PLATFORMS]
    whole = sum(share for platform, share in wanted if platform.share)  # pairs are two nodes whatever their share
    counts = {p.name: int(nodes * share / whole) if p.share else p.unit for p, share in wanted}
    if mix is None:
        counts[PAIR.name] = 2 if nodes >= 40 else 0
        counts |= {twin.name: 2 if nodes >= 200 else 0 for twin in TWINS}
    for platform, _ in wanted[1:]:
        if counts[platform.name] < (platform.unit if platform.rack else _LEAST) and mix is None:
            counts[platform.name] = 0
    main = wanted[0][0].name
    counts[main] += nodes - sum(counts.values())
    return [(BY_NAME[name], count) for name, count in counts.items() if count]


def _sizes(platform: Platform, count: int) -> list[int]:
    """Groups that one fabric can hold, about equal, in whole units but the last."""
    most = platform.unit * (platform.wiring.radix // 2 if platform.wiring else 64)
    parts = math.ceil(count / most)
    item = math.ceil(math.ceil(count / parts) / platform.unit) * platform.unit
    sizes = []
    while count > 0:
        sizes.append(min(item, count))
        count -= sizes[-1]
    return sizes
