"""Small machines for tests of assemble: PCI boards, synthetic or from the text of lspci; outcomes around facts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from agent.assemble import Assembled, assemble
from agent.model.topology import Path
from probes.catalogue import providers
from probes.gpu.facts import Gpu, GpuFacts
from probes.pci.facts import PciFacts, PciFunction
from probes.probe import Outcome, Status

GEN5, GEN4, GEN3, GEN1 = 32.0, 16.0, 8.0, 2.5


def outcome(name: str, facts: Any) -> Outcome:
    """One probe's answer; None is a probe that found nothing."""
    status = Status.OK if facts is not None else Status.ABSENT
    return Outcome(name, status, facts, None if facts is not None else "not there", (), 0.0)


def assemble_facts(**facts: Any) -> Assembled:
    """What is made of facts by probe name."""
    return assemble([outcome(name, value) for name, value in facts.items()], providers())


def paths_by_pair(assembled_: Assembled) -> dict[tuple[str, str], Path]:
    """Every path by its two ends."""
    return {(path.a, path.b): path for path in assembled_.topology.paths}


class Board:
    """A machine under construction. Every bridge and device inherits its root bus and NUMA node from its parent."""

    def __init__(self, privileged: bool = True) -> None:
        self.functions: list[PciFunction] = []
        self.upstreams: set[str] = set()
        self.privileged = privileged  # config space is readable, so port types are known

    def root_port(self, address: str, numa: int | None = 0, **fields: Any) -> str:
        """A root port on the root bus of its own address."""
        return self._add(address, None, "0x060400", "root_port", numa=numa, **fields)

    def upstream(self, address: str, parent: str, **fields: Any) -> str:
        """The upstream port of a switch."""
        self.upstreams.add(address)
        return self._add(address, parent, "0x060400", "upstream", **fields)

    def downstream(self, address: str, parent: str, **fields: Any) -> str:
        """A downstream port of a switch."""
        return self._add(address, parent, "0x060400", "downstream", **fields)

    def bridge(self, address: str, parent: str, **fields: Any) -> str:
        """A bridge from PCIe to conventional PCI."""
        return self._add(address, parent, "0x060400", "bridge", **fields)

    def device(self, address: str, parent: str | None, kind: str, vendor: str, device: str, **fields: Any) -> str:
        """Any other endpoint; `kind` is its class."""
        return self._add(address, parent, kind, "endpoint", vendor=vendor, device=device, **fields)

    def gpu(self, address: str, parent: str | None, device: str = "0x2330", **fields: Any) -> str:
        """An NVIDIA GPU."""
        fields = {"vendor": "0x10de", "driver": "nvidia", **fields}
        return self._add(address, parent, "0x030200", "endpoint", device=device, **fields)

    def nic(self, address: str, parent: str | None, device: str = "0x1021", **fields: Any) -> str:
        """A ConnectX function."""
        fields = {"vendor": "0x15b3", "driver": "mlx5_core", "kind": "0x020700", **fields}
        kind = fields.pop("kind")
        return self._add(address, parent, kind, "endpoint", device=device, **fields)

    def facts(self) -> PciFacts:
        """What the PCI probe would say."""
        return PciFacts(tuple(self.functions))

    def change(self, address: str, **fields: Any) -> None:
        """Other values for a function that stands already."""
        self.functions = [f._replace(**fields) if f.address == address else f for f in self.functions]

    def _add(self, address: str, parent: str | None, kind: str, port: str, **fields: Any) -> str:
        above = next((f for f in self.functions if f.address == parent), None)
        numa = fields.pop("numa", above.numa_node if above else 0)
        speed, width = fields.pop("speed", GEN5), fields.pop("width", 16)
        link = {
            "current_link_speed_gt_s": speed,
            "current_link_width": width,
            "max_link_speed_gt_s": fields.pop("max_speed", speed),
            "max_link_width": fields.pop("max_width", width),
        }
        self.functions.append(
            PciFunction(
                address=address,
                parent=parent,
                root_bus=above.root_bus if above else address.rpartition(":")[0],
                class_code=kind,
                numa_node=numa,
                port_type=port if self.privileged else None,
                **(link | fields),
            )
        )
        return address


def hgx(gpus: int = 2, nics_per_switch: int = 1, privileged: bool = True, nic: str = "0x1021") -> Board:
    """One switch a GPU, with its NICs: buses 0x10, 0x20 ...; the second half of the switches on NUMA node 1."""
    board = Board(privileged)
    for place in range(gpus):
        bus = 0x10 * (place + 1)
        root = board.root_port(f"0000:{bus:02x}:01.0", numa=0 if place < gpus / 2 else 1)
        up = board.upstream(f"0000:{bus + 1:02x}:00.0", root)
        down = board.downstream(f"0000:{bus + 2:02x}:00.0", up)
        board.gpu(f"0000:{bus + 3:02x}:00.0", down)
        for number in range(nics_per_switch):
            port = board.downstream(f"0000:{bus + 2:02x}:{number + 1:02x}.0", up)
            board.nic(f"0000:{bus + 4 + number:02x}:00.0", port, device=nic)
    return board


def driver(gpus: Iterable[Gpu], **fields: Any) -> GpuFacts:
    """What NVML would say."""
    return GpuFacts(tuple(gpus), **fields)


_TOKEN = re.compile(
    r"(?<![0-9a-f:.])(?:\[(?:(?P<domain>[0-9a-f]{4}):)?(?P<bus>[0-9a-f]{2})(?:-[0-9a-f]{2})?\]|"
    r"(?P<slot>[0-9a-f]{2})\.(?P<fn>[0-7])(?=-|  |$))"
)
_CLASSES = (  # what a line names -> vendor, class
    ("NVIDIA Corporation AD102 High Definition", "0x10de", "0x040300"),
    ("NVIDIA Corporation", "0x10de", "0x030000"),
    ("Mellanox Technologies", "0x15b3", "0x020000"),
)


def parse_tree(text: str, nodes: dict[str, int]) -> list[PciFunction]:
    """Functions with parent and root bus. `nodes`: NUMA node by the first two digits of a root bus's number."""
    functions: dict[str, PciFunction] = {}
    level: dict[int, tuple[str, str, str | None]] = {}  # column -> domain:bus, root bus, parent
    for line in text.splitlines():
        here: tuple[str, str, str | None] | None = None
        last: str | None = None
        for token in _TOKEN.finditer(line):
            if token["bus"]:
                domain = token["domain"] or "0000"
                bus = f"{domain}:{token['bus']}"
                here = (bus, functions[last].root_bus or bus, last) if last else (bus, bus, None)
                continue
            here = level[token.start()] = here or level[token.start()]
            last = f"{here[0]}:{token['slot']}.{token['fn']}"
            vendor, kind = _named(line[token.end() :])
            functions[last] = PciFunction(
                last, here[2], here[1], class_code=kind, vendor=vendor, device="0x0000", numa_node=nodes[here[1][5:7]]
            )
            here = None
    return list(functions.values())


def _named(rest: str) -> tuple[str | None, str]:
    if rest.startswith("-["):
        return None, "0x060400"
    for name, vendor, kind in _CLASSES:
        if rest.strip().startswith(name):
            return vendor, kind
    return None, "0x088000"
