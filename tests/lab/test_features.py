"""SR-IOV, the IOMMU and AER by the kernel's own code, on one machine and in three scans."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import pytest

from tests.lab.batches import IB, machine
from tests.lab.conftest import RecordRow, above_info
from tests.lab.qemu.described import virtual_functions
from tests.lab.qemu.guest import UPTIME_SECONDS, Guest

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("real_commands"), pytest.mark.timeout(900)]
SHOWN = IB
RAIL = "0000:3c:00.0"  # gets virtual functions
PAIR = ("0000:19:00.0", "0000:1a:00.0")  # a GPU and its rail, for which the IOMMU is told to translate
PORT = "0000:00:10.0"  # QEMU's root port: it has interrupts, and the AER driver is bound to it
TOLD_TO = """
for at in {devices}; do
  cd /sys/bus/pci/devices/$at; driver=$(readlink -f driver)
  echo $at > $driver/unbind; echo {type} > iommu_group/type; echo $at > $driver/bind
done
"""
TYPES = "cat /sys/kernel/iommu_groups/*/type | sort | uniq -c"
COUNTED = f"cd /sys/bus/pci/devices/{PORT}; grep -Hv ' 0$' aer_dev_*"
VIRTUAL = f"cd /sys/bus/pci/devices/{RAIL}; echo $(<sriov_numvfs) of $(<sriov_totalvfs); lspci -ns 3c:"
STATE = ("--state-dir", "/run/state-features")
RX_ERR, DLP = 0x1, 0x10
FLOOD = 100
INJECT = """
import time
for number in range({times}):
    for attempt in range(50):
        try:
            with open('/dev/aer_inject', 'wb', buffering=0) as file:
                file.write({record!r})
            break
        except OSError as error:  # EBUSY, now and then: it may count all the same
            busy = error
            time.sleep(0.05)
    else:
        raise busy
"""


class Seen(NamedTuple):
    """A report, and what the kernel showed beside it."""

    report: dict[str, Any]
    kernel: str


@pytest.fixture(scope="module")
def whole(guest: Guest) -> Seen:
    """With virtual functions."""
    guest.plug(driver="nvme", drive="nothing", serial="LAB")
    guest.shell("modprobe aer_inject")
    guest.tell(virtual_functions(machine(IB), RAIL, 4))
    guest.write(f"/sys/bus/pci/devices/{RAIL}/sriov_drivers_autoprobe", "0")
    guest.write(f"/sys/bus/pci/devices/{RAIL}/sriov_numvfs", "4")
    guest.must("udevadm", "settle")
    return Seen(guest.scan(*STATE), guest.shell(VIRTUAL))


@pytest.fixture(scope="module")
def flooded(guest: Guest, whole: Seen) -> Seen:
    """Then with a translating pair and correctable errors."""
    assert whole.report
    guest.write(f"/sys/bus/pci/devices/{RAIL}/sriov_numvfs", "0")
    guest.shell(TOLD_TO.format(devices=" ".join(PAIR), type="DMA"))
    inject(guest, correctable=RX_ERR, times=FLOOD)
    return Seen(guest.scan(*STATE, uptime=UPTIME_SECONDS + 120), guest.shell(f"{TYPES}; {COUNTED}"))


@pytest.fixture(scope="module")
def fatal(guest: Guest, flooded: Seen) -> Seen:
    """Then with a fatal error."""
    assert flooded.report
    guest.shell(TOLD_TO.format(devices=" ".join(PAIR), type="identity"))
    inject(guest, uncorrectable=DLP)
    return Seen(guest.scan(*STATE, uptime=UPTIME_SECONDS + 900), guest.shell(COUNTED))


def inject(guest: Guest, correctable: int = 0, uncorrectable: int = 0, times: int = 1) -> None:
    """Errors of the root port, by aer_inject (drivers/pci/pcie/aer_inject.c)."""
    domain, bus, rest = PORT.split(":")
    device, function = rest.split(".")
    place = bytes((int(bus, 16), int(device, 16), int(function)))
    record = struct.pack("<3sxIIIIIII", place, uncorrectable, correctable, 0, 1, 2, 3, int(domain, 16))
    guest.must("python3", "-c", INJECT.format(times=times, record=record))


def test_virtual_functions_are_seen_as_such(whole: Seen, record_row: RecordRow) -> None:
    """`echo 4 > sriov_numvfs`: the kernel makes them, and they are no NICs that somebody forgot."""
    report = [row for row in whole.report["topology"]["pci"] if row["physical_function"] == RAIL]
    (card,) = [nic for nic in whole.report["topology"]["nics"] if nic["pci"] == RAIL]

    assert [f"{RAIL[:-1]}{number}" for number in (2, 3, 4, 5)] == [row["id"] for row in report]
    assert {("0x15b3", "0x101e")} == {(row["vendor"], row["device"]) for row in report}
    assert 4 == card["virtual_functions"]
    assert [] == above_info(whole.report)
    record_row("SR-IOV: four virtual functions of a rail", whole.kernel, f"4 functions of {RAIL}; nothing above info")


def test_correctable_errors_are_counted_and_told(flooded: Seen, record_row: RecordRow) -> None:
    """An interrupt, the AER driver, its counters; the drive below the port has the finding, and nothing else is."""
    result = above_info(flooded.report)

    assert {"pcie-errors-correctable", "gdr-iommu-translated"} == {item[0] for item in result}
    assert 2 == len(result)
    output = summary(flooded.report, "pcie-errors-correctable")
    record_row("AER: a port reports correctable errors in plenty (aer_inject)", flooded.kernel, output)


def test_a_fatal_error_is_told(fatal: Seen, record_row: RecordRow) -> None:
    """The kernel tries to recover; the counter stays."""
    result = above_info(fatal.report)

    assert ["pcie-errors-uncorrectable"] == [item[0] for item in result]
    record_row("AER: a port reports a fatal error (aer_inject)", fatal.kernel, summary(fatal.report, result[0][0]))


def test_groups_of_the_iommu_are_read(whole: Seen, flooded: Seen, fatal: Seen, record_row: RecordRow) -> None:
    """`iommu=pt` gives every function a group of type identity; a pair that translates is told once."""
    rows = {row["id"]: row for row in whole.report["topology"]["pci"]}

    assert {"identity"} == {row["iommu_type"] for row in rows.values()}
    assert rows[PAIR[0]]["iommu_group"] != rows[PAIR[1]]["iommu_group"]
    assert ("gdr-iommu-translated", "error", "node") in above_info(flooded.report)
    assert "gdr-iommu-translated" not in {finding["rule"] for finding in fatal.report["findings"]}
    result = summary(flooded.report, "gdr-iommu-translated")
    record_row("The IOMMU translates for one GPU and its rail", flooded.kernel, result)


def summary(report: dict[str, Any], rule: str) -> str:
    """What the finding of a rule says, and of whom."""
    (finding,) = [finding for finding in report["findings"] if finding["rule"] == rule]
    return f"{finding['subject']}: {finding['summary']}"
