"""A row of the report takes the facts of its names. Both declare one type, so that none is carried over as another."""

from __future__ import annotations

import collections.abc
import types
import typing
from typing import Any

import pytest

from agent.assemble.facts import build_row
from agent.model import gpu, nic, node, pci
from probes.ascend.hccn import HccnFacts, RankDevice
from probes.ascend.hccn_tool import PortOptics
from probes.cxl import facts as cxl
from probes.ethtool.netlink import FecReading, PauseReading
from probes.gpu import facts as driver_gpu
from probes.kernel.log_facts import LogEvent
from probes.kernel.system import KernelFacts
from probes.nccl.jobs import NcclVariable
from probes.nccl.probe import NcclLibraryFile
from probes.netdev.lldp import LldpNeighbor
from probes.netdev.probe import Netdev
from probes.optics import facts as optics
from probes.pci.facts import PciFunction
from probes.rdma import facts as rdma
from probes.services.probe import ServiceState
from probes.system.cpu import CpuPackage
from probes.system.numa import NumaNodeFacts
from probes.tool_reports.facts import ToolReport

PAIRS = [  # a row, its facts, and the fields that are computed
    (pci.PciFunction, PciFunction, "acs"),
    (pci.CxlDevice, cxl.CxlMemdev, ""),
    (pci.CxlRegion, cxl.CxlRegion, ""),
    (gpu.Gpu, driver_gpu.Gpu, "health xgmi fabric pstate vendor"),
    (gpu.GpuHealth, driver_gpu.GpuHealth, ""),
    (gpu.GpuLink, driver_gpu.NvLink, ""),
    (gpu.XgmiPorts, driver_gpu.XgmiPorts, ""),
    (gpu.Fabric, driver_gpu.GpuFabric, ""),
    (gpu.Ascend, HccnFacts, ""),
    (gpu.RankDevice, RankDevice, ""),
    (nic.Netdev, Netdev, ""),
    (nic.Pause, PauseReading, ""),
    (nic.Fec, FecReading, ""),
    (nic.TransceiverModule, optics.ModuleReading, "lanes"),
    (nic.TransceiverModule, PortOptics, ""),
    (nic.Lane, optics.LaneReading, ""),
    (nic.Neighbor, LldpNeighbor, "applications"),
    (nic.Port, rdma.RdmaPort, "gids"),
    (nic.Gid, rdma.GidEntry, ""),
    (node.Node, KernelFacts, ""),
    (node.Cpu, CpuPackage, ""),
    (node.NumaNode, NumaNodeFacts, ""),
    (node.Event, LogEvent, "detail"),
    (node.Event, ToolReport, "detail"),
    (node.Service, ServiceState, ""),
    (node.NcclLibrary, NcclLibraryFile, ""),
    (node.NcclSetting, NcclVariable, ""),
]


@pytest.mark.parametrize(("row", "facts", "computed"), PAIRS, ids=lambda part: getattr(part, "__name__", ""))
def test_a_row_and_its_facts_declare_the_same_types(row: Any, facts: Any, computed: str) -> None:
    types_of_row, types_of_facts = typing.get_type_hints(row), typing.get_type_hints(facts)
    shared = (types_of_row.keys() & types_of_facts.keys()) - set(computed.split())

    assert shared
    assert {name: plain(types_of_facts[name]) for name in shared} == {
        name: plain(types_of_row[name]) for name in shared
    }


def plain(hint: Any) -> frozenset[Any]:
    """The kinds of JSON value that a type has, without null: what is not known is what the row has by default."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return frozenset().union(*(plain(part) for part in parts if part is not type(None)))
    if origin in (dict, collections.abc.Mapping):
        return frozenset([("table", plain(parts[0]), plain(parts[1]))])
    if origin in (list, tuple, frozenset, collections.abc.Sequence):
        return frozenset([("list", plain(parts[0]))])
    return frozenset([hint])


def test_a_computed_value_wins_and_what_is_not_known_is_left_to_the_row() -> None:
    facts = KernelFacts(hostname="n1", os=None, virtualization_known=True)
    service = ServiceState("b", "active")

    row = build_row(node.Node, facts, hostname="n2", chassis=node.Chassis(), cpu=node.Cpu(), numa_nodes=[])

    assert ("n2", None, True) == (row.hostname, row.os, row.virtualization_known)
    assert ("b", "active", None) == tuple(
        getattr(build_row(node.Service, service), n) for n in ("name", "state", "version")
    )
    with pytest.raises(TypeError, match="name"):
        build_row(node.Service, service._replace(name=None))  # type: ignore[arg-type]


def test_tables_are_sorted_and_sequences_are_lists() -> None:
    reading = optics.ModuleReading(thresholds={"b": 1.0, "a": 2.0}, flags=("z", "a"))
    interface = Netdev("eth0", bond={"slaves": ("b", "a"), "mode": "802.3ad"})

    module = build_row(nic.TransceiverModule, reading, lanes=[])
    row = build_row(nic.Netdev, interface, id="eth0", label="eth0", addresses=[])

    assert ["a", "b"] == list(module.thresholds)
    assert ["z", "a"] == module.flags
    assert [("mode", "802.3ad"), ("slaves", ["b", "a"])] == list((row.bond or {}).items())
    assert {} == row.counters
