"""Machines that guests are kept with, showing them already: those that many tests ask for, and those that take long."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from fixtures.loader import read_table
from fixtures.machine import Machine
from fixtures.machine import parse_machine as described
from tests.lab.batches import IB, ROCE, SMALL, machine

THOUSAND, TWO_CPUS = "a-thousand-functions", "two-cpus"
BARE = "bare"  # a guest that has booted, before any module of ours or of RDMA is loaded
# Two events a function, a process an event: minutes, on an emulated CPU
NO_UDEV = "systemctl stop systemd-udevd-kernel.socket systemd-udevd-control.socket systemd-udevd 2>&1"


class Shown(NamedTuple):
    """What one guest shows, with how many CPUs, and a shell line before that."""

    machine: Callable[[], Machine]
    cpus: int = 1
    before: str = "true"
    look: bool = True  # scan it once, so that what a scan imports is in memory


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
    table = {**read_table("hosts", "cpu-only-2s"), "device": {}, "pci": {"tree": "\n".join(lines)}}
    return described(table, THOUSAND)


MACHINES = {
    IB: Shown(lambda: machine(IB)),
    ROCE: Shown(lambda: machine(ROCE)),
    SMALL: Shown(lambda: machine(SMALL)),
    THOUSAND: Shown(thousand, before=NO_UDEV, look=False),
    TWO_CPUS: Shown(lambda: machine(IB), cpus=2),
}
