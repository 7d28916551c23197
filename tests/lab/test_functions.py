"""A tree of a thousand functions."""

from __future__ import annotations

import pytest

from fixtures.machine import Machine
from fixtures.machine import machine as described
from fixtures.reading import toml
from tests.lab.conftest import Told, above_info
from tests.lab.guest import Guest

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("real_commands"), pytest.mark.timeout(900)]
NO_UDEV = "systemctl stop systemd-udevd-kernel.socket systemd-udevd-control.socket systemd-udevd 2>&1"


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
    guest.shell(NO_UDEV)  # two events a function, a process an event: minutes, on an emulated CPU
    guest.show(thousand())
    report = guest.scan("--only", "pci,kernel,numa,cpu")

    (run,) = [each for each in report["probes"] if each["name"] == "pci"]
    functions = [row for row in report["topology"]["pci"] if row["device"] != "0x29c0"]
    assert "ok" == run["status"]
    assert len(thousand().nodes) <= len(functions)
    assert [] == above_info(report)
    said = f"{len(functions)} functions in {run['duration_seconds']:.0f} s; nothing above info"
    told("A thousand functions", f"{len(thousand().nodes)} functions, 112 ports of 7 switches", said)
