"""Asking: what is simply not there is silent, every other reason is kept."""

from __future__ import annotations

from probes.asking import REASONS_SHOWN, HostReader
from probes.host.interface import Denied
from tests.probes.system.system_machine import Machine


def test_absent_file_is_no_gap():
    """A machine without a file is whole all the same; the probe decides what it misses."""
    asking = HostReader(Machine())

    assert asking.text("/etc/machine-id") is None
    assert asking.missing is None
    assert asking.sources == ()


def test_denied_file_is_a_gap_with_its_reason():
    """What may not be read is named."""
    machine = Machine().put({"/sys/a": "1"})
    machine.refused["/sys/a"] = Denied("/sys/a: Permission denied", "EACCES")
    asking = HostReader(machine)

    assert asking.text("/sys/a") is None
    assert asking.missing == "/sys/a: Permission denied"


def test_many_reasons_are_counted_not_listed():
    """A thousand refused files give one readable line."""
    asking = HostReader(Machine())
    for number in range(REASONS_SHOWN + 3):
        asking.gap(f"reason {number}")

    assert asking.missing is not None
    assert asking.missing.endswith("; and 3 more")


def test_sources_name_patterns_not_every_file():
    """Many files of one kind are one source that a person can repeat."""
    asking = HostReader(Machine().put({"/sys/node0/cpulist": "0-3\n", "/sys/node1/cpulist": "4-7\n"}))
    for node in ("node0", "node1"):
        asking.attributes(f"/sys/{node}", ("cpulist",), source="/sys/node*")

    assert asking.sources == ("/sys/node*/cpulist",)
