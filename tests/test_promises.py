"""What the report promises: valid, small, deterministic, judged again with one result; what sleeps is not woken."""

from __future__ import annotations

import contextlib
import functools
import json
import random
import re
from collections.abc import Iterable, Mapping
from typing import Any

import jsonschema_rs
import msgspec
import pytest

from agent.config import Configuration
from agent.diagnose import ScanPlan, diagnose, evaluate_report
from agent.model.report import REPORT_LIMIT_BYTES, Report, schema_text
from agent.reports import encode_report
from probes.host.interface import ReadError
from tests.conftest import sample_of
from tests.machines import FAULTS, HOSTS, machine, scan_machine, still

MACHINES = [(shape, None) for shape in HOSTS] + [("", fault) for fault in FAULTS]
NAMES = [shape or f"fault-{fault}" for shape, fault in MACHINES]


@functools.cache
def validator() -> jsonschema_rs.Draft202012Validator:
    """The schema's."""
    return jsonschema_rs.Draft202012Validator(json.loads(schema_text()))


@pytest.mark.parametrize(("shape", "fault"), MACHINES, ids=NAMES)
def test_a_report_is_valid_and_small(shape: str, fault: str | None) -> None:
    """By the schema, and below 4 MiB."""
    data = encode_report(scan_machine(shape, fault))

    assert [] == [error.message for error in validator().iter_errors(json.loads(data))]
    assert len(data) < REPORT_LIMIT_BYTES


@pytest.mark.parametrize(("shape", "fault"), MACHINES, ids=NAMES)
def test_judging_a_report_again_gives_the_same(shape: str, fault: str | None) -> None:
    """`--report`: same checks, findings and summary, from the bytes alone."""
    report = scan_machine(shape, fault)
    again = evaluate_report(msgspec.json.decode(encode_report(report), type=Report), Configuration())

    assert encode_report(report) == encode_report(still(again))


@pytest.mark.parametrize(("shape", "fault"), sample_of(MACHINES), ids=sample_of(NAMES))
def test_the_order_of_evidence_is_no_evidence(shape: str, fault: str | None) -> None:
    """Folders listed in another order give the same bytes."""
    shuffler = random.Random(7)
    host = machine(shape, fault)
    listdir = host.listdir

    def shuffled(path: str) -> list[str]:
        names = listdir(path)
        shuffler.shuffle(names)
        return names

    host.listdir = shuffled  # type: ignore[method-assign]  # the one answer that has an order
    from agent.diagnose import ScanPlan, diagnose

    assert encode_report(scan_machine(shape, fault)) == encode_report(still(diagnose(host, ScanPlan())[0]))


@pytest.mark.parametrize("shape", HOSTS)
def test_floats_have_at_most_three_decimals_and_rows_are_sorted(shape: str) -> None:
    """And ids are unique."""
    report = json.loads(encode_report(scan_machine(shape)))

    def walk(value: object) -> None:
        if isinstance(value, float):
            assert round(value, 3) == value
        elif isinstance(value, dict | list):
            for item in value.values() if isinstance(value, dict) else value:
                walk(item)

    walk(report)
    for table in ("pci", "gpus", "nvswitches", "nics", "netdevs"):
        ids = [row["id"] for row in report["topology"][table]]
        assert len(ids) == len(set(ids)), table


# All probes together, over a host interface that writes down what passes: a device that sleeps is not touched.


# What the kernel answers from its own memory (drivers/pci/pci-sysfs.c, pci-driver.c, iov.c, pcie/aer.c,
# net/core/net-sysfs.c, cxl/core/memdev.c, port.c, cxl/mem.c); dev_id of devdrv_sysfs.c (hicann/driver)
IN_MEMORY = frozenset({
    "aer_dev_correctable", "aer_dev_fatal", "aer_dev_nonfatal", "class", "device", "local_cpulist", "numa_node",
    "power_state", "resource", "revision", "sriov_numvfs", "sriov_totalvfs", "subsystem_device", "subsystem_vendor",
    "vendor", "address", "dev_port", "ifindex", "runtime_status",
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
