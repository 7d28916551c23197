"""What a fleet is made of: fixture machines by the name of their group, how many of a unit, and how they are wired."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from agent.config import Configuration
from agent.diagnose import ScanPlan, diagnose
from agent.history.context import build_context
from agent.model.report import Report, Source
from agent.platforms.profiles import choose_profile
from agent.rules import engine, fingerprints
from agent.rules.catalogue import rules_for
from bench.fleet.forms import Recipe
from bench.fleet.template import OWN_DOMAIN, Keys, Template
from fixtures.build import capture_machine, host_in_memory
from fixtures.loader import merge_tables, read_table
from fixtures.machine import parse_machine


class Wiring(NamedTuple):
    """The switches that the rails of a group are on."""

    radix: int
    model: str
    device_id: str  # as ibnetdiscover writes it
    hca_device_id: str
    speed: str  # of a lane


NDR = Wiring(64, "MQM9700", "0xd2f2", "0x1021", "NDR")
HDR = Wiring(40, "MQM8700", "0xd2f0", "0x101b", "HDR")


class Platform(NamedTuple):
    """One kind of node. `share`: of all nodes. `unit`: nodes whose rail k is on the same leaf."""

    name: str
    shape: str
    share: float
    unit: int
    wiring: Wiring | None = None  # InfiniBand
    lldp: bool = False  # the far ends of its rails are reported by LLDP
    rack: bool = False  # a unit is one NVLink domain
    nccl: str = ""  # version of the library that all of them have
    product: str = ""  # instead of the fixture's: another class, with the same devices
    scattered: bool = False  # a node's ports on its leaves follow no pattern: two ToR switches a rack


PLATFORMS = (
    Platform("h100-ib", "8xh100-sxm-2s-8xcx7-ib-4nvsw", 0.40, 32, NDR),
    Platform("h200-roce", "8xh200-sxm-2s-16xcx7-roce-4nvsw", 0.22, 32, lldp=True, nccl="2.27.3"),
    Platform("b200-ib", "8xb200-sxm-2s-8xcx7-ib-hidden-nvsw", 0.10, 32, NDR),
    Platform("gb200-ib", "4xgb200-tray-2xgrace-4xcx7-ib", 0.10, 18, NDR, rack=True),
    Platform("a100-ib", "8xa100-sxm4-2s-nps4-8xcx6-ib-6nvsw", 0.08, 20, HDR),
    Platform("l40s-roce", "8xl40s-pcie-2s-2xcx7-roce", 0.04, 32, lldp=True),
    Platform("l40s-tor", "8xl40s-pcie-2s-2xcx7-roce", 0.02, 16, lldp=True, product="ESC8000A-E12", scattered=True),
    Platform("cpu", "cpu-only-2s", 0.04, 40),
)
PAIR = Platform("rtx3090", "4xrtx3090-1s-nvlink-pairs", 0.0, 2)  # two nodes, which differ: neither is the odd one
# two nodes each: classes too small for a majority, with the GPUs of many others
TWINS = tuple(
    Platform(f"h200-twin-{n}", "8xh200-sxm-2s-16xcx7-roce-4nvsw", 0.0, 2, nccl="2.27.3", product=f"XE9680-{n}")
    for n in range(1, 4)
)
BY_NAME = {platform.name: platform for platform in (*PLATFORMS, PAIR, *TWINS)}

_OLDER_DISK = {"vendor": "0x1e0f", "device": "0x0001", "name": "KIOXIA CM6 NVMe SSD"}


def nccl(version: str) -> dict[str, Any]:
    """NCCL of that version, as a package installs it; "": none."""
    folder = "/usr/lib/x86_64-linux-gnu"
    return {"links": {f"{folder}/libnccl.so.2": f"{folder}/libnccl.so.{version}"}} if version else {}


class Shape(NamedTuple):
    """What a platform's healthy machine has: PCI addresses."""

    gpus: tuple[str, ...]
    rails: tuple[str, ...]
    rail_netdevs: tuple[str, ...]
    rail_devices: tuple[str, ...]  # RDMA devices
    disks: tuple[str, ...]
    infiniband: bool
    nvlinks: int  # of a GPU
    vbios: str
    acs_port: str  # a root port or switch port with ACS; "": none


class Templates:
    """All templates of one platform, each scanned when it is first asked for."""

    def __init__(self, platform: Platform) -> None:
        self.platform = platform
        self._keys = Keys()
        self._made: dict[str, Template] = {}

    @functools.cached_property
    def shape(self) -> Shape:
        """What the healthy machine has."""
        plain = not (self.platform.lldp or self.platform.rack)
        return _shape(self.healthy if plain else scanned(self.platform.shape, {}))

    @functools.cached_property
    def healthy(self) -> Report:
        """The report of the healthy machine, in the fleet's wiring."""
        return scanned(self.platform.shape, self._lasting)

    def of(self, style: str = "plain", overlay: Mapping[str, Any] | None = None) -> Template:
        """The template of that style, with an oddity laid over it."""
        name = f"{style} {overlay or ''}"
        result = self._made.get(name)
        if result is None:
            if name == "plain ":
                report = self.healthy
            else:
                self.of()  # numbers of devices are those of the healthy machine
                table = functools.reduce(merge_tables, (self._lasting, self._style(style), dict(overlay or {})))
                report = scanned(self.platform.shape, table)
            result = self._made[name] = Template(report, self._keys, recipes(report))
        return result

    def key(self, kind: str, of: str) -> int:
        """The number of a device in the slots of this platform's templates."""
        self.of()
        return self._keys.of(kind, of)

    @functools.cached_property
    def rail_digits(self) -> tuple[str, ...]:
        """The last six digits of the fixture's rails' GUIDs."""
        nics = {nic.id: nic for nic in self.healthy.topology.nics}
        return tuple(str(nics[at].node_guid).replace(":", "")[-6:] for at in self.shape.rails)

    def devices(self, style: str) -> tuple[str, ...]:
        """The names of the rails' RDMA devices."""
        return tuple(_renamed(self.shape)) if style == "renamed" else self.shape.rail_devices

    @functools.cached_property
    def _lasting(self) -> dict[str, Any]:
        """What every node of the platform has, over the fixture."""
        device: dict[str, Any] = {}
        if self.platform.lldp:
            for rail, address in enumerate(self.shape.rails):
                device[address] = {
                    "net": {"neighbor": {"system": f"leaf-of-rail-{rail}", "port": f"port-of-rail-{rail}"}}
                }
        if self.platform.rack:
            for address in self.shape.gpus:
                device[address] = {"gpu": {"cluster_uuid": OWN_DOMAIN, "clique": 1, "chassis": [1, 1]}}
        lasting: dict[str, Any] = {"device": device} if device else {}
        if self.platform.product:
            lasting["system"] = {"product": self.platform.product}
        return lasting | nccl(self.platform.nccl)

    def _style(self, style: str) -> dict[str, Any]:
        """Differences that mean nothing."""
        if style == "renamed":
            names = zip(self.shape.rails, _renamed(self.shape), strict=True)
            return {"device": {address: {"rdma": {"name": name}} for address, name in names}}
        if style == "disks":
            return {"device": dict.fromkeys(self.shape.disks, _OLDER_DISK)}
        if style == "rollout":
            return {"device": {address: {"rdma": {"firmware": ROLLOUT}} for address in self.shape.rails}}
        return {}


ROLLOUT = "28.45.1200"  # the firmware to which a group is being brought


def _shape(report: Report) -> Shape:
    topology = report.topology
    rails = [nic for nic in topology.nics if nic.role == "rail"]
    netdevs = {netdev.nic: netdev.label for netdev in topology.netdevs}
    return Shape(
        gpus=tuple(str(gpu.pci) for gpu in topology.gpus),
        rails=tuple(nic.id for nic in rails),
        rail_netdevs=tuple(netdevs[nic.id] for nic in rails),
        rail_devices=tuple(str(nic.rdma_device) for nic in rails),
        disks=tuple(function.id for function in topology.pci if (function.class_code or "").startswith("0x0108")),
        infiniband=any(port.link_layer == "InfiniBand" for nic in rails for port in nic.ports),
        nvlinks=max((len(gpu.links) for gpu in topology.gpus), default=0),
        vbios=next((str(gpu.vbios) for gpu in topology.gpus), ""),
        acs_port=next((function.id for function in topology.pci if function.acs and function.acs.capability), ""),
    )


def _renamed(shape: Shape) -> list[str]:
    """As udev names RDMA devices by their place: "ibp26s0", "rocep16s0f1"."""
    if shape.infiniband:
        return list(shape.rail_netdevs)
    return [f"roce{label[2:].partition('np')[0]}" for label in shape.rail_netdevs]


def scanned(shape: str, overlay: Mapping[str, Any]) -> Report:
    """The report of a fixture machine with that laid over its description, as a scan of a live host writes it."""
    return _scanned(shape, json.dumps(overlay))


@functools.lru_cache(maxsize=128)  # fleets of tests have the same machines
def _scanned(shape: str, overlay: str) -> Report:
    result = capture_machine(parse_machine(merge_tables(read_table("hosts", shape), json.loads(overlay)), shape))
    report, _ = diagnose(host_in_memory(result, shape), ScanPlan())
    return msgspec.structs.replace(report, source=Source(kind="live"))


def fault(name: str) -> dict[str, Any]:
    """The overlay of a fault of fixtures/faults, with the shape that it is made for as "base"."""
    return read_table("faults", name)


def recipes(report: Report) -> list[Recipe]:
    """What the fingerprint of every finding of a report is made of, in their order."""
    chosen = choose_profile("auto" if report.platform.profile else "none", report.platform)
    context = build_context(report, Configuration().settings, chosen.platform, chosen.profile)
    collected = {}
    for rule, fault in engine.evaluate(context, rules_for(context))[1]:
        identity = fingerprints.lasting_identity(fault.subject, context)
        collected[fingerprints.fingerprint(rule.name, fault, context)] = Recipe(rule.name, fault.cause, [identity], [])
    return [collected[finding.fingerprint] for finding in report.findings]
