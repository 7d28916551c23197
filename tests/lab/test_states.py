"""What a running kernel does with devices: they sleep, get other names, are taken away and found again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.lab.batches import IB, machine
from tests.lab.conftest import Told, above_info
from tests.lab.guest import UPTIME_SECONDS, Guest

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("real_commands"), pytest.mark.timeout(900)]
SHOWN = IB
GPU, RAIL = "0000:4c:00.0", "0000:1a:00.0"
PART = ("--only", "pci,nvml,modules,numa,cpu,kernel,rdma,netdev")


@pytest.fixture
def node(guest: Guest) -> Guest:
    """The healthy InfiniBand machine."""
    guest.turn_into(machine(IB))
    return guest


def test_a_sleeping_gpu_is_left_asleep(node: Guest, told: Told) -> None:
    """Suspended at run time and without power it reads all-ones (255, Unknown): no fault, and nobody wakes it."""
    place = f"/sys/bus/pci/devices/{GPU}"
    node.shell("mv /dev/nvidiactl /dev/nvidiactl.away")  # NVML wakes what it is asked about
    try:
        node.write(f"{place}/power/control", "auto")
        node.until(f"grep -q suspended {place}/power/runtime_status", 60)
        node.tell([f"gone {GPU}"])
        report = node.scan(*PART)
        status = node.must("cat", f"{place}/power/runtime_status").strip()
        kernel = node.shell(f"cd {place}; echo {status}, $(<max_link_speed) x$(<max_link_width)")
    finally:
        node.clear()  # a device that was away while it slept is not whole again
        node.shell("mv /dev/nvidiactl.away /dev/nvidiactl")

    (row,) = [each for each in report["topology"]["pci"] if each["id"] == GPU]
    assert "asleep" == row["link"]["quality"]["state"]
    assert [] == [each for each in above_info(report) if GPU in each[2]]
    assert "suspended" == status
    told("A GPU that is suspended at run time, without power", kernel, f"{row['link']['quality']['reason']}: no fault")


class Seen(NamedTuple):
    """Three reports in turn."""

    before: dict[str, Any]
    changed: dict[str, Any]
    back: dict[str, Any]


@pytest.fixture(scope="module")
def seen(guest: Guest) -> Iterator[Seen]:
    """As it is; with a rail renamed and a GPU taken away; with both undone."""
    guest.turn_into(machine(IB))
    guest.shell("rm -rf /run/state-states")
    options = ("--state-dir", "/run/state-states")  # whole scans: what is only a part of one is not remembered
    before = guest.scan(*options)
    guest.must("rdma", "dev", "set", "ibp26s0", "name", "mlx5_77")
    guest.shell(f"echo 1 > /sys/bus/pci/devices/{GPU}/remove; udevadm settle")
    guest.become(machine(IB, {"device": {GPU: {"gpu": {"listed": False}}}}))  # nor has the driver it any more
    changed = guest.scan(*options, uptime=UPTIME_SECONDS + 600)
    guest.must("rdma", "dev", "set", "mlx5_77", "name", "ibp26s0")
    guest.shell("echo 1 > /sys/bus/pci/devices/0000:4a:01.0/rescan; udevadm settle")
    guest.become(machine(IB))
    back = guest.scan(*options, uptime=UPTIME_SECONDS + 1200)
    yield Seen(before, changed, back)
    guest.clear()


def test_udev_s_names_are_labels_and_not_identity(seen: Seen, told: Told) -> None:
    """rdma-core's rules rename mlx5_0; another name between two scans is no loss of a device."""
    labels = [
        next(each["label"] for each in report["topology"]["nics"] if each["id"] == RAIL)
        for report in (seen.before, seen.changed)
    ]

    assert ["ibp26s0", "mlx5_77"] == labels
    assert [] == above_info(seen.before)
    assert [] == [each for each in above_info(seen.changed) if GPU not in each[2]]
    told("An RDMA device that is renamed between two scans", ", then ".join(labels), "nothing")


def test_a_gpu_that_is_taken_away_is_missed_until_it_is_back(seen: Seen, told: Told) -> None:
    """By sysfs: remove, and rescan of its bus."""
    assert [("inventory-lost", "critical", f"gpu:{GPU}")] == above_info(seen.changed)
    assert [] == above_info(seen.back)
    said = "; ".join(each["summary"] for each in seen.changed["findings"] if each["severity"] == "critical")
    told("A GPU that is removed from the bus between two scans", f"no {GPU}", said)
