"""The IOMMU and AER of the real kernel: groups and their types, and errors that QEMU's root port reports."""

from __future__ import annotations

import struct

import pytest

from tests.lab.batches import IB, machine
from tests.lab.conftest import Told, above_info
from tests.lab.guest import UPTIME_SECONDS, Guest

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("real_commands"), pytest.mark.timeout(900)]
PAIRS = ("0000:19:00.0", "0000:1a:00.0")  # a GPU and its rail
TRANSLATED = """
for at in {devices}; do
  cd /sys/bus/pci/devices/$at; driver=$(readlink -f driver)
  echo $at > $driver/unbind; echo {type} > iommu_group/type; echo $at > $driver/bind
done
"""
PART = ("--only", "pci,nvml,modules,rdma,netdev,kernel,cpu,numa,dmi")
TYPES = "cat /sys/kernel/iommu_groups/*/type | sort | uniq -c"
RX_ERR, DLP = 0x1, 0x10
FLOOD = 60


def test_groups_are_read_and_a_translating_one_is_told(guest: Guest, told: Told) -> None:
    """`iommu=pt` gives every function a group of type identity; one pair is then told to translate, and back."""
    guest.turn_into(machine(IB))
    whole = guest.scan(*PART)
    guest.shell(TRANSLATED.format(devices=" ".join(PAIRS), type="DMA"))
    try:
        report = guest.scan(*PART)
        kernel = guest.shell(TYPES)
    finally:
        guest.shell(TRANSLATED.format(devices=" ".join(PAIRS), type="identity"))

    rows = {row["id"]: row for row in whole["topology"]["pci"]}
    assert {"identity"} == {row["iommu_type"] for row in rows.values()}
    assert rows[PAIRS[0]]["iommu_group"] != rows[PAIRS[1]]["iommu_group"]
    assert rows["0000:27:00.0"]["iommu_group"] == rows["0000:27:00.1"]["iommu_group"]  # one card without ACS
    assert [] == above_info(whole)
    assert [("gdr-iommu-translated", "error", "node")] == above_info(report)
    told("The IOMMU translates for one GPU and its rail", kernel, report["findings"][0]["summary"])


def test_aer_counts_what_a_root_port_reports(guest: Guest, told: Told) -> None:
    """aer_inject, the kernel's own: an interrupt, the AER driver, the counters; the drive below has the finding."""
    guest.turn_into(machine(IB))
    guest.shell("modprobe aer_inject; rm -rf /run/state-aer")
    options = (*PART, "--state-dir", "/run/state-aer")
    quiet = guest.scan(*options)
    guest.must("python3", "-c", inject("0000:00:10.0", correctable=RX_ERR, times=FLOOD))
    flooded = guest.scan(*options, uptime=UPTIME_SECONDS + 600)
    guest.must("python3", "-c", inject("0000:00:10.0", uncorrectable=DLP, times=1))
    fatal = guest.scan(*options, uptime=UPTIME_SECONDS + 1200)
    kernel = guest.shell("cd /sys/bus/pci/devices/0000:00:10.0; grep -Hv ' 0$' aer_dev_*")

    assert [] == above_info(quiet)
    assert ["pcie-errors-correctable"] == [each[0] for each in above_info(flooded)]
    assert ["pcie-errors-uncorrectable"] == [each[0] for each in above_info(fatal)]
    said = "; ".join(each["summary"] for report in (flooded, fatal) for each in report["findings"])
    told("AER: correctable errors in plenty, then a fatal one (aer_inject)", kernel, said)


def inject(address: str, correctable: int = 0, uncorrectable: int = 0, times: int = 1) -> str:
    """A program that writes the errors to aer_inject (drivers/pci/pcie/aer_inject.c), again where that is busy."""
    domain, bus, rest = address.split(":")
    device, function = rest.split(".")
    place = bytes((int(bus, 16), int(device, 16), int(function)))
    record = struct.pack("<3sxIIIIIII", place, uncorrectable, correctable, 0, 1, 2, 3, int(domain, 16))
    return (
        "import time\n"
        f"for number in range({times}):\n"
        "    for attempt in range(50):\n"
        "        try:\n"
        "            with open('/dev/aer_inject', 'wb', buffering=0) as file:\n"
        f"                file.write({record!r})\n"
        "            break\n"
        "        except OSError:\n"
        "            time.sleep(0.05)\n"
        "    time.sleep(0.02)\n"
    )
