"""Many functions: virtual ones that the kernel makes of a NIC, and a tree of a thousand."""

from __future__ import annotations

import pytest

from fixtures.machine import Machine
from fixtures.machine import machine as described
from fixtures.reading import toml
from tests.lab.batches import IB, machine
from tests.lab.conftest import Told, above_info
from tests.lab.described import virtual_functions
from tests.lab.guest import Guest

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("real_commands"), pytest.mark.timeout(900)]
RAIL = "0000:3c:00.0"
NO_UDEV = "systemctl stop systemd-udevd-kernel.socket systemd-udevd-control.socket systemd-udevd 2>&1"
UDEV = "systemctl start systemd-udevd-kernel.socket systemd-udevd-control.socket systemd-udevd"


def test_virtual_functions_are_seen_as_such(guest: Guest, told: Told) -> None:
    """`echo 4 > sriov_numvfs`: the kernel makes them, and they are no NICs that somebody forgot."""
    shown = machine(IB)
    guest.turn_into(shown)
    guest.tell(virtual_functions(shown, RAIL, 4))
    place = f"/sys/bus/pci/devices/{RAIL}"
    guest.write(f"{place}/sriov_drivers_autoprobe", "0")
    guest.write(f"{place}/sriov_numvfs", "4")
    try:
        guest.must("udevadm", "settle")
        report = guest.scan()
        kernel = guest.shell(f"cd {place}; echo $(<sriov_numvfs) of $(<sriov_totalvfs); lspci -ns 3c:")
    finally:
        guest.write(f"{place}/sriov_numvfs", "0")

    made = [row for row in report["topology"]["pci"] if row["physical_function"] == RAIL]
    (card,) = [nic for nic in report["topology"]["nics"] if nic["pci"] == RAIL]
    assert [f"{RAIL[:-1]}{number}" for number in (2, 3, 4, 5)] == [row["id"] for row in made]
    assert {("0x15b3", "0x101e")} == {(row["vendor"], row["device"]) for row in made}
    assert 4 == card["virtual_functions"]
    assert [] == above_info(report)
    told("SR-IOV: four virtual functions of a rail", kernel, "4 functions of 0000:3c:00.0; nothing above info")


def thousand() -> Machine:
    """Seven switches with sixteen ports each, and eight functions below every port, in two domains."""
    lines = []
    for number in range(7):
        first = 0x10 + 0x20 * number
        lines += [f"host {number % 2:04x}:{first:02x} node={number % 2}", f"  {first:02x}:00.0 root-port-gen4"]
        lines += [f"    {first + 1:02x}:00.0 pex880xx-up"]
        for port in range(16):
            lines.append(f"      {first + 2:02x}:{port:02x}.0 pex880xx-down")
            lines += [f"        {first + 3 + port:02x}:00.{function} nvme" for function in range(8)]
    table = {**toml("hosts", "cpu-only-2s"), "device": {}, "pci": {"tree": "\n".join(lines)}}
    return described(table, "a thousand functions")


def test_a_thousand_functions(guest: Guest, told: Told) -> None:
    """All are read in the scan's time, and nothing is wrong with them."""
    guest.clear()
    guest.shell(NO_UDEV)  # two events a function, a process an event: minutes, on an emulated CPU
    try:
        guest.show(thousand())
        report = guest.scan("--only", "pci,kernel,numa,cpu")
    finally:
        guest.clear()
        guest.shell(UDEV)

    (run,) = [each for each in report["probes"] if each["name"] == "pci"]
    functions = [row for row in report["topology"]["pci"] if row["device"] != "0x29c0"]
    assert "ok" == run["status"]
    assert len(thousand().nodes) <= len(functions)
    assert [] == above_info(report)
    said = f"{len(functions)} functions in {run['duration_seconds']:.0f} s; nothing above info"
    told("A thousand functions", f"{len(thousand().nodes)} functions, 112 ports of 7 switches", said)
