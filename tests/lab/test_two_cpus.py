"""A guest with a CPU in each of its NUMA nodes: what is judged only there."""

from __future__ import annotations

import pytest

from tests.lab.batches import IB, machine
from tests.lab.conftest import RecordRow, above_info
from tests.lab.qemu.guest import Guest
from tests.lab.qemu.shown import TWO_CPUS
from tests.matrix.cases import causes, filled

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("real_commands"), pytest.mark.timeout(900)]
PART = ("--only", "kernel,dmi,cpu,numa,pci,modules,rdma")
GPU = "0000:19:00.0"
SHOWN = TWO_CPUS


def test_a_host_bridge_without_a_numa_node(guest: Guest, record_row: RecordRow) -> None:
    """The firmware names none: told on a host that has two, and not of the healthy twin."""
    cause = causes()["machine/no-numa-node"]
    healthy = guest.scan(*PART)
    guest.become(machine(IB, cause.overlay))
    report = guest.scan(*PART)
    output = guest.shell(f"head -v /sys/bus/pci/devices/{GPU}/numa_node /sys/devices/system/node/node?/cpulist")

    assert ["0", "1"] == [node["cpus"] for node in healthy["node"]["numa_nodes"]]
    assert [] == above_info(healthy)
    assert sorted(tuple(finding) for finding in filled(cause.finds, IB)) == above_info(report)
    (items,) = [finding["summary"] for finding in report["findings"] if finding["rule"] == "numa-unknown"]
    record_row(cause.about, output, items)
