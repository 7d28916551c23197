"""Faults that are told once and laid over every machine that they apply to: the tables of tests/matrix/*.toml.

A cause names devices by what they are on the healthy machine: `{gpu1}` the PCI address of the second GPU, `{rail0}`
of the first rail, `{storage0}`, `{nvswitch0}`; `{above:rail0}` the port above it, `{uplink:rail0}` the upstream port of
the switch that it is below, `{top:rail0}` its root port, `{near:gpu1}` the first rail that is nearest to it,
`{netdev:rail0}` its interface, `{rdma:rail0}` its RDMA device. What a machine does not have keeps the cause off it.
"""

from __future__ import annotations

import re
import sys
from functools import cache
from typing import Any

import msgspec

from agent.model.report import Report
from fixtures.build import capture_machine, host_in_memory
from fixtures.loader import merge_tables, read_table
from fixtures.machine import parse_machine as described
from probes.sources.capture import CaptureHost
from tests.conftest import ROOT
from tests.machines import HOSTS, LIKE, scan_machine

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PLACEHOLDER = re.compile(r"\{(?:(above|uplink|top|near|netdev|rdma):)?(gpu|rail|storage|nvswitch)(\d+)\}")

CONSEQUENCES = "consequences.toml"  # no causes: what two of them do to each other

EVERY_GPU = "{gpus}"  # a key of `overlay.device`: the same words for every GPU of the machine
EVERY_RAIL = "{rails}"  # likewise


class Cause(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One root cause. `on`: machines by name, or of a kind: all, roce, infiniband, nvswitch, gpus, bare_metal.

    One that is like another machine is on none by its kind.
    """

    about: str
    on: list[str]
    without: list[str] = []  # machines that `on` would take, and why not stands in the remark beside it
    overlay: dict[str, Any] = {}
    earlier: dict[str, Any] | None = None  # an overlay too: what the machine was when the last run looked
    seconds: int = 3600  # between that run and this one
    config: dict[str, Any] = {}  # the operator's configuration, as its TOML
    finds: list[tuple[str, str, str]] = []  # rule, severity, subject: all that is above info
    informs: list[tuple[str, str]] = []  # rule, subject: infos that must be among them
    unknown: list[str] = []  # rules that must say unknown


class NotHere(Exception):
    """The machine has no such device."""


@cache
def causes() -> dict[str, Cause]:
    """Every cause by name ("roce/pfc-off-one-rail")."""
    collected = {}
    tables = (ROOT / "tests" / "matrix").glob("*.toml")
    for path in sorted(path for path in tables if path.name != CONSEQUENCES):
        for name, table in tomllib.loads(path.read_text()).items():
            collected[f"{path.stem}/{name}"] = msgspec.convert(table, Cause)
    return collected


def pairs() -> list[tuple[str, str]]:
    """Every cause on every machine that it applies to."""
    return [(name, shape) for name, cause in causes().items() for shape in machines_of(cause)]


def machines_of(cause: Cause) -> list[str]:
    """The machines on which a cause can be."""
    own = [shape for shape in HOSTS if shape not in LIKE]
    named = [shape for shape in HOSTS if shape in cause.on or (shape in own and any(_is(shape, k) for k in cause.on))]
    return [shape for shape in named if shape not in cause.without and _fits(cause, shape)]


def overlaid(shape: str, overlay: dict[str, Any]) -> CaptureHost:
    """A machine with an overlay whose placeholders are filled in, in memory."""
    result = capture_machine(described(merge_tables(read_table("hosts", shape), filled(overlay, shape)), shape))
    return host_in_memory(result, shape)


def filled(value: Any, shape: str) -> Any:
    """The same with every placeholder replaced. Raises NotHere."""
    if isinstance(value, dict):
        for every in {EVERY_GPU, EVERY_RAIL} & value.keys():
            item = dict.fromkeys(_every(every, shape), value[every])
            own = {filled(key, shape): table for key, table in value.items() if key != every}
            value = merge_tables(item, own)
        return {filled(key, shape): filled(item, shape) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(filled(item, shape) for item in value)
    if isinstance(value, str):
        return PLACEHOLDER.sub(lambda found: _device(scan_machine(shape), *found.groups()), value)
    return value


def _every(kind: str, shape: str) -> list[str]:
    topology = scan_machine(shape).topology
    if kind == EVERY_GPU:
        return [str(gpu.pci) for gpu in topology.gpus]
    return [str(nic.pci) for nic in topology.host_nics if nic.role == "rail"]


def _fits(cause: Cause, shape: str) -> bool:
    try:
        filled(msgspec.structs.astuple(cause), shape)
    except NotHere:
        return False
    return True


def _is(shape: str, kind: str) -> bool:
    report = scan_machine(shape)
    rails = [nic for nic in report.topology.host_nics if nic.role == "rail"]
    layers = {port.link_layer for nic in rails for port in nic.ports}
    return {
        "all": True,
        "gpus": any(gpu.vendor == "NVIDIA" for gpu in report.topology.gpus),
        "roce": "Ethernet" in layers,
        "infiniband": "InfiniBand" in layers,
        "nvswitch": bool(report.topology.nvswitches),
        "bare_metal": report.node.virtualization is None,
    }.get(kind, False)


def _device(report: Report, how: str | None, kind: str, number: str) -> str:
    n = int(number)
    rows = {
        "gpu": [gpu.pci for gpu in report.topology.gpus],
        "rail": [nic.pci for nic in report.topology.host_nics if nic.role == "rail"],
        "storage": [nic.pci for nic in report.topology.host_nics if nic.role == "storage"],
        "nvswitch": [switch.pci for switch in report.topology.nvswitches],
    }[kind]
    if n >= len(rows) or rows[n] is None:
        raise NotHere(f"{kind}{n}")
    address = str(rows[n])
    if how == "near":
        return _nearest(report, address)
    if how in ("netdev", "rdma"):
        if how == "rdma":
            return next(nic.label for nic in report.topology.host_nics if nic.pci == address)
        result = [netdev.label for netdev in report.topology.netdevs if netdev.pci == address]
    elif how == "uplink":
        result = [item for item in _above(report, address) if _is_upstream(report, item)][:1]
    elif how in ("above", "top"):
        result = _above(report, address)[:1] if how == "above" else _above(report, address)[-1:]
    else:
        return address
    if not result:
        raise NotHere(f"{how}:{kind}{n}")
    return result[0]


def _above(report: Report, address: str) -> list[str]:
    """Bridges above a function, nearest first."""
    parents = {function.id: function.parent for function in report.topology.pci}
    collected = []
    while above := parents.get(address):
        collected.append(above)
        address = above
    return collected


def _is_upstream(report: Report, address: str) -> bool:
    """A switch's upstream port: below a root port, or below a downstream port; reported by how deep it stands."""
    return len(_above(report, address)) % 2 == 1


def _nearest(report: Report, gpu: str) -> str:
    rails = {nic.id for nic in report.topology.host_nics if nic.role == "rail"}
    for kind in ("PIX", "PXB", "PHB", "NODE", "SYS"):
        for path in report.topology.paths:
            if path.pcie_kind == kind and gpu in (path.a, path.b) and rails & {path.a, path.b}:
                return path.b if path.a == gpu else path.a
    raise NotHere(f"near:{gpu}")
