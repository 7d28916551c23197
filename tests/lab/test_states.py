"""What a running kernel does with devices: they sleep, get other names, are taken away and found again."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lab.batches import IB, machine
from tests.lab.conftest import RecordRow, above_info
from tests.lab.qemu.guest import UPTIME_SECONDS, Guest

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("real_commands"), pytest.mark.timeout(900)]
SHOWN = IB
GPU, RAIL = "0000:4c:00.0", "0000:1a:00.0"
STATE = ("--state-dir", "/run/state-states")
PART = ("--only", "pci,nvml,modules,numa,cpu,kernel,rdma,netdev")


@pytest.fixture(scope="module")
def before(guest: Guest) -> dict[str, Any]:
    """As it is."""
    return guest.scan(*STATE)  # whole: what is only a part of a scan is not remembered


@pytest.fixture(scope="module")
def changed(guest: Guest, before: dict[str, Any]) -> dict[str, Any]:
    """With a rail renamed and a GPU taken away."""
    assert before
    guest.must("rdma", "dev", "set", "ibp26s0", "name", "mlx5_77")
    guest.shell(f"echo 1 > /sys/bus/pci/devices/{GPU}/remove; udevadm settle")
    guest.become(machine(IB, {"device": {GPU: {"gpu": {"listed": False}}}}))  # nor has the driver it any more
    return guest.scan(*STATE, uptime=UPTIME_SECONDS + 600)


@pytest.fixture(scope="module")
def back(guest: Guest, changed: dict[str, Any]) -> dict[str, Any]:
    """With both undone."""
    assert changed
    guest.must("rdma", "dev", "set", "mlx5_77", "name", "ibp26s0")
    guest.shell("echo 1 > /sys/bus/pci/devices/0000:4a:01.0/rescan; udevadm settle")
    guest.become(machine(IB))
    return guest.scan(*STATE, uptime=UPTIME_SECONDS + 1200)


def test_udev_s_names_are_labels_and_not_identity(
    before: dict[str, Any], changed: dict[str, Any], record_row: RecordRow
) -> None:
    """rdma-core's rules rename mlx5_0; another name between two scans is no loss of a device."""
    labels = [
        next(nic["label"] for nic in report["topology"]["nics"] if nic["id"] == RAIL) for report in (before, changed)
    ]

    assert ["ibp26s0", "mlx5_77"] == labels
    assert [] == above_info(before)
    assert [] == [finding for finding in above_info(changed) if GPU not in finding[2]]
    record_row("An RDMA device that is renamed between two scans", ", then ".join(labels), "nothing")


def test_a_gpu_that_is_taken_away_is_missed_until_it_is_back(
    changed: dict[str, Any], back: dict[str, Any], record_row: RecordRow
) -> None:
    """By sysfs: remove, and rescan of its bus."""
    assert [("inventory-lost", "critical", f"gpu:{GPU}")] == above_info(changed)
    assert [] == above_info(back)
    result = "; ".join(finding["summary"] for finding in changed["findings"] if finding["severity"] == "critical")
    record_row("A GPU that is removed from the bus between two scans", f"no {GPU}", result)


def test_a_sleeping_gpu_is_left_asleep(guest: Guest, record_row: RecordRow) -> None:
    """Suspended at run time and without power it reads all-ones (255, Unknown): no fault, and nobody wakes it."""
    guest.turn_into(machine(IB))
    place = f"/sys/bus/pci/devices/{GPU}"
    guest.shell("mv /dev/nvidiactl /dev/nvidiactl.away")  # NVML wakes what it is asked about
    try:
        guest.write(f"{place}/power/control", "auto")
        guest.until(f"grep -q suspended {place}/power/runtime_status", 60)
        guest.tell([f"gone {GPU}"])
        report = guest.scan(*PART)
        status = guest.must("cat", f"{place}/power/runtime_status").strip()
        kernel = guest.shell(f"cd {place}; echo {status}, $(<max_link_speed) x$(<max_link_width)")
    finally:
        guest.shell("mv /dev/nvidiactl.away /dev/nvidiactl")
        guest.clear()  # a device that was away while it slept is not whole again

    (row,) = [function for function in report["topology"]["pci"] if function["id"] == GPU]
    assert "asleep" == row["link"]["quality"]["state"]
    assert [] == [finding for finding in above_info(report) if GPU in finding[2]]
    assert "suspended" == status
    record_row(
        "A GPU that is suspended at run time, without power", kernel, f"{row['link']['quality']['reason']}: no fault"
    )
