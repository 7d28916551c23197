"""All probes together, over a host interface that writes down what passes: a device that sleeps is not touched."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from agent.diagnose import ScanPlan, diagnose
from probes.host.interface import ReadError
from tests.machines import HOSTS, machine

# What the kernel answers from its own memory (drivers/pci/pci-sysfs.c, pci-driver.c, iov.c, pcie/aer.c,
# net/core/net-sysfs.c, cxl/core/memdev.c, port.c, cxl/mem.c); dev_id of devdrv_sysfs.c (hicann/driver);
# numa_status is the NVIDIA driver's own note (nv-procfs.c)
IN_MEMORY = frozenset({
    "aer_dev_correctable", "aer_dev_fatal", "aer_dev_nonfatal", "class", "device", "local_cpulist", "numa_node",
    "power_state", "resource", "revision", "sriov_numvfs", "sriov_totalvfs", "subsystem_device", "subsystem_vendor",
    "vendor", "address", "dev_port", "ifindex", "numa_status", "runtime_status",
    "dpa_size", "firmware_version", "size", "qos_class", "dev_id",
})  # fmt: skip
_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


class Asleep:
    """A host on which every device sleeps, and what was asked of it: files by their real paths, NVML calls."""

    def __init__(self, shape: str) -> None:
        self.host = machine(shape)
        self.files: list[str] = []
        self.calls: list[str] = []
        self._read, self._attributes, self._nvml = self.host.read, self.host.attributes, self.host.nvml
        self.host.read = self.read  # type: ignore[method-assign]  # the host interface, observed
        self.host.attributes = self.attributes  # type: ignore[method-assign]  # as above
        self.host.nvml = self.nvml  # type: ignore[method-assign]  # as above

    def read(self, path: str, *limit: int) -> bytes:
        folder, _, name = path.rpartition("/")
        self._noted(folder, name)
        return b"suspended\n" if name == "runtime_status" else self._read(path, *limit)

    def attributes(self, directory: str, names: Iterable[str]) -> Mapping[str, bytes | ReadError]:
        wanted = list(names)
        for name in wanted:
            self._noted(directory, name)
        expected: dict[str, bytes | ReadError] = dict(self._attributes(directory, wanted))
        return expected | {name: b"suspended\n" for name in wanted if name.endswith("runtime_status")}

    def nvml(self, function: str, *arguments: Any) -> Any:
        self.calls.append(function)
        return self._nvml(function, *arguments)

    def _noted(self, folder: str, name: str) -> None:
        with contextlib.suppress(ReadError):
            folder = self.host.resolve(folder)
        self.files.append(f"{folder}/{name}")


@pytest.mark.parametrize("shape", HOSTS)
def test_nothing_that_reaches_a_sleeping_device_is_read(shape: str) -> None:
    """Its state is asked first; then only what the kernel keeps in memory: no config space, link, port, MTU or NVML."""
    asleep = Asleep(shape)
    report, _ = diagnose(asleep.host, ScanPlan())
    known: set[str] = set()
    wakes: list[str] = []
    for path in asleep.files:
        addresses = _ADDRESS.findall(path)
        if addresses and path.endswith("/power/runtime_status"):
            known.add(addresses[-1])
        elif addresses and not path.startswith("/run/udev/"):
            remaining = path.rpartition("/")[2] in IN_MEMORY
            wakes += [] if remaining and (addresses[-1] in known or path.startswith("/proc/")) else [path]

    assert len(known) == len(report.topology.pci) > 0
    assert [] == wakes
    assert [] == [call for call in asleep.calls if call.startswith("nvmlDeviceGet")]
    assert {"asleep"} == {function.state for function in report.topology.pci}
    assert [] == [f.rule for f in report.findings if f.severity in ("error", "critical")]
