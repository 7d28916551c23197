"""HostReader: what is simply not there is silent, every other reason is kept."""

from __future__ import annotations

from probes.host.interface import Denied
from probes.host_reader import REASONS_SHOWN, HostReader
from tests.probes.machine import Machine


def test_absent_file_is_no_gap():
    """A machine without a file is whole all the same; the probe decides what it misses."""
    reader = HostReader(Machine())

    assert reader.text("/etc/machine-id") is None
    assert reader.missing is None
    assert reader.sources == ()


def test_denied_file_is_a_gap_with_its_reason():
    """What may not be read is named."""
    machine = Machine().put({"/sys/a": "1"})
    machine.refused["/sys/a"] = Denied("/sys/a: Permission denied", "EACCES")
    reader = HostReader(machine)

    assert reader.text("/sys/a") is None
    assert reader.missing == "/sys/a: Permission denied"


def test_many_reasons_are_counted_not_listed():
    """A thousand refused files give one readable line."""
    reader = HostReader(Machine())
    for number in range(REASONS_SHOWN + 3):
        reader.gap(f"reason {number}")

    assert reader.missing is not None
    assert reader.missing.endswith("; and 3 more")


def test_sources_name_patterns_not_every_file():
    """Many files of one kind are one source that a person can repeat."""
    reader = HostReader(Machine().put({"/sys/node0/cpulist": "0-3\n", "/sys/node1/cpulist": "4-7\n"}))
    for node in ("node0", "node1"):
        reader.attributes(f"/sys/{node}", ("cpulist",), source="/sys/node*")

    assert reader.sources == ("/sys/node*/cpulist",)
