"""What a running kernel does with devices: they sleep, get other names, are taken away and found again."""

from __future__ import annotations

import time

import pytest

from tests.lab.batches import IB, machine
from tests.lab.conftest import Told, above_info
from tests.lab.guest import UPTIME_SECONDS, Guest

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("real_commands"), pytest.mark.timeout(900)]
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
        until = time.monotonic() + 60
        while "suspended" not in node.must("cat", f"{place}/power/runtime_status") and time.monotonic() < until:
            time.sleep(0.5)
        node.tell([f"gone {GPU}"])
        report = node.scan(*PART)
        status = node.must("cat", f"{place}/power/runtime_status").strip()
        kernel = node.shell(f"cd {place}; echo {status}, $(<max_link_speed) x$(<max_link_width)")
    finally:
        node.tell([f"back {GPU}"])
        node.write(f"{place}/power/control", "on")
        node.shell("mv /dev/nvidiactl.away /dev/nvidiactl")

    (row,) = [each for each in report["topology"]["pci"] if each["id"] == GPU]
    assert "asleep" == row["link"]["quality"]["state"]
    assert [] == [each for each in above_info(report) if GPU in each[2]]
    assert "suspended" == status
    told("A GPU that is suspended at run time, without power", kernel, f"{row['link']['quality']['reason']}: no fault")


def test_udev_s_names_are_labels_and_not_identity(node: Guest, told: Told) -> None:
    """rdma-core's rules rename mlx5_0; another name between two scans is no loss of a device."""
    node.shell("rm -rf /run/state-names")
    options = (*PART, "--state-dir", "/run/state-names")
    first = node.scan(*options)
    before = next(each["label"] for each in first["topology"]["nics"] if each["id"] == RAIL)
    node.must("rdma", "dev", "set", before, "name", "mlx5_77")
    second = node.scan(*options, uptime=UPTIME_SECONDS + 600)
    node.must("rdma", "dev", "set", "mlx5_77", "name", before)
    after = next(each["label"] for each in second["topology"]["nics"] if each["id"] == RAIL)

    assert ("ibp26s0", "mlx5_77") == (before, after)
    assert [] == above_info(second)
    told("An RDMA device that is renamed between two scans", f"{before}, then {after}", "nothing")


def test_a_gpu_that_is_taken_away_is_missed_until_it_is_back(node: Guest, told: Told) -> None:
    """By sysfs: remove, and rescan of its bus."""
    node.shell("rm -rf /run/state-removed")
    options = (*PART, "--state-dir", "/run/state-removed")
    node.scan(*options)
    node.shell(f"echo 1 > /sys/bus/pci/devices/{GPU}/remove; udevadm settle")
    node.become(machine(IB, {"device": {GPU: {"gpu": {"listed": False}}}}))  # nor has the driver it any more
    missing = node.scan(*options, uptime=UPTIME_SECONDS + 600)
    node.shell("echo 1 > /sys/bus/pci/devices/0000:4a:01.0/rescan; udevadm settle")
    node.become(machine(IB))
    back = node.scan(*options, uptime=UPTIME_SECONDS + 1200)
    node.clear()

    lost = [each for each in missing["findings"] if GPU in f"{each['subject']} {each['evidence']} {each['summary']}"]
    assert [] != [each for each in lost if each["severity"] in ("error", "critical")]
    assert [] == [each for each in above_info(back) if "lost" in each[0] or "missing" in each[0]]
    said = "; ".join(each["summary"] for each in lost)
    told("A GPU that is removed from the bus between two scans", f"no {GPU}", said)
