"""The number with which a driver's start ended decides what to look at first."""

from __future__ import annotations

import pytest

from agent.config import Configuration
from agent.diagnose import ScanPlan, diagnose
from agent.model.finding import Finding
from probes.sources.dump import SavedOutputs
from probes.sources.memory import MemoryFiles
from probes.sources.tree import TreeHost

BOOT = (
    "[    8.1] [drm] amdgpu kernel modesetting enabled.\n"
    "[    8.2] amdgpu 0000:{bus}:00.0: amdgpu: Fatal error during GPU init\n"
)
NEW, OLD = (
    "[    8.3] amdgpu 0000:{bus}:00.0: probe with driver amdgpu failed with error {error}\n",
    "[    8.3] amdgpu: probe of 0000:{bus}:00.0 failed with error {error}\n",
)


def find_start(log: str) -> Finding:
    files = MemoryFiles({"dmesg.txt": log.encode()})
    plan = ScanPlan(configuration=Configuration())
    report, _ = diagnose(TreeHost("dump", "log", MemoryFiles(), SavedOutputs(files)), plan)
    return next(finding for finding in report.findings if finding.rule == "pci-driver-missing")


@pytest.mark.parametrize("form", [NEW, OLD])
@pytest.mark.parametrize(
    ("error", "meaning", "step"),
    [
        (-12, "no memory window, or no memory", "Above 4G"),
        (-28, "no memory window, or no memory", "lspci -vvv -s 0000:c3:00.0"),
        (-2, "a file of firmware is missing", "firmware"),
        (-22, "the driver refuses what it reads of the device", "VBIOS"),
        (-110, "the device did not answer in time", "power cycle"),
    ],
)
def test_a_known_number_comes_with_its_meaning_and_first_step(form: str, error: int, meaning: str, step: str) -> None:
    finding = find_start((BOOT + form).format(bus="c3", error=error))

    assert f"({error}: {meaning})" in finding.summary
    assert step in finding.steps[0].do
    assert any(f"failed with error {error}" in evidence.value for evidence in finding.evidence)


@pytest.mark.parametrize("log", [BOOT, BOOT + OLD.replace("{error}", "-99"), BOOT + OLD.replace("{bus}", "43")])
def test_without_a_known_number_of_this_device_the_log_is_read_first(log: str) -> None:
    finding = find_start(log.format(bus="c3", error=-12))

    assert "no memory window" not in finding.summary
    assert finding.steps[0].do.startswith("Read the kernel log")
