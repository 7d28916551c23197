"""A real NVIDIA GPU, where this machine has one: the live report beside `nvidia-smi -q -x`, which asks the same driver.

What such a GPU answered to each call stands in docs/real-gpu.md.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import ROOT

SMI = shutil.which("nvidia-smi")
# Of a report's GPU what nvidia-smi says of it: how it prints each. None where it prints N/A.
FIELDS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "product_name": lambda gpu: gpu["name"],
    "product_architecture": lambda gpu: gpu["architecture"],
    "uuid": lambda gpu: gpu["uuid"],
    "serial": lambda gpu: gpu["serial"],
    "minor_number": lambda gpu: gpu["minor"],
    "vbios_version": lambda gpu: gpu["vbios"],
    "platformInfo/module_id": lambda gpu: gpu["module_id"],
    "mig_mode/current_mig": lambda gpu: gpu["mig"] and ("Enabled" if gpu["mig"]["current"] else "Disabled"),
    "mig_mode/pending_mig": lambda gpu: gpu["mig"] and ("Enabled" if gpu["mig"]["pending"] else "Disabled"),
    "fb_memory_usage/total": lambda gpu: f"{gpu['memory_mib']} MiB",
    "bar1_memory_usage/total": lambda gpu: f"{gpu['bar1_mib']} MiB",
    "pci/pci_gpu_link_info/pcie_gen/device_current_link_gen": lambda gpu: gpu["pcie"]["generation"],
    "pci/pci_gpu_link_info/pcie_gen/max_link_gen": lambda gpu: gpu["pcie"]["max_generation"],
    "pci/pci_gpu_link_info/link_widths/current_link_width": lambda gpu: f"{gpu['pcie']['width']}x",
    "pci/pci_gpu_link_info/link_widths/max_link_width": lambda gpu: f"{gpu['pcie']['max_width']}x",
    "pci/replay_counter": lambda gpu: gpu["pcie_counters"].get("replays"),
    "performance_state": lambda gpu: gpu["pstate"],
    "fabric/cliqueId": lambda gpu: gpu["fabric"] and gpu["fabric"]["clique"],
    "fabric/clusterUuid": lambda gpu: gpu["fabric"] and gpu["fabric"]["cluster_uuid"],
}
# What a scan must leave as it was.
SETTINGS = ("persistence_mode", "compute_mode", "ecc_mode/current_ecc", "accounting_mode", "addressing_mode")


def smi() -> ET.Element | None:
    """What nvidia-smi says, or None where there is none, or no GPU that it can speak to."""
    if SMI is None:
        return None
    done = subprocess.run([SMI, "-q", "-x"], capture_output=True, text=True, timeout=60, check=False)
    output = ET.fromstring(done.stdout) if done.returncode == 0 else None
    return output if output is not None and output.find("gpu") is not None else None


@pytest.fixture(scope="module")
def before() -> ET.Element:
    """Its word before the scan."""
    output = smi()
    if output is None:
        pytest.skip("no NVIDIA GPU with a driver on this machine")
    return output


@pytest.fixture(scope="module")
def report(before: ET.Element) -> dict[str, Any]:
    """A live scan, in a process of its own."""
    command = [sys.executable, "-m", "fabricscope", "scan", "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True, timeout=60)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.fixture(scope="module")
def after(report: dict[str, Any]) -> ET.Element:
    """And after it."""
    output = smi()
    assert output is not None
    return output


def words(output: ET.Element, path: str) -> str | None:
    """A value as nvidia-smi prints it; None: it has no such line."""
    result = output.find(path)
    return None if result is None else (result.text or "").strip()


def by_address(output: ET.Element) -> dict[str, ET.Element]:
    """Its GPUs by PCI address, as the kernel writes it."""
    result = {match.get("id", "").lower(): match for match in output.findall("gpu")}
    return {re.sub(r"^0000(?=[0-9a-f]{4}:)", "", name): gpu for name, gpu in result.items()}


def test_the_driver_and_its_gpus_are_all_there(before: ET.Element, report: dict[str, Any]) -> None:
    """No more and no fewer, at the same addresses."""
    driver = report["software"]["driver"]

    assert words(before, "driver_version") == driver["version"]
    assert words(before, "cuda_version") == driver["cuda"]
    gpus = {gpu["pci"]: gpu for gpu in report["topology"]["gpus"] if gpu["driver_state"] == "open"}
    assert sorted(by_address(before)) == sorted(gpus)
    assert words(before, "attached_gpus") == str(len(gpus))


@pytest.mark.parametrize("field", FIELDS)
def test_a_gpu_is_what_nvidia_smi_says(
    field: str, before: ET.Element, report: dict[str, Any], after: ET.Element
) -> None:
    """Where it says the same before and after the scan: clocks and links move, and so does what depends on them."""
    now, then = by_address(after), by_address(before)
    for gpu in report["topology"]["gpus"]:
        output = words(then[gpu["pci"]], field)
        if output is None or output != words(now[gpu["pci"]], field):
            continue
        ours = FIELDS[field](gpu)
        assert (None if output in ("N/A", "[N/A]") else output) == (None if ours is None else str(ours)), gpu["label"]


def test_a_scan_leaves_every_setting_as_it_was(before: ET.Element, after: ET.Element) -> None:
    """And no process on the GPU."""
    for address, gpu in by_address(after).items():
        was = by_address(before)[address]
        for path in SETTINGS:
            assert words(was, path) == words(gpu, path), path
        assert "fabricscope" not in ET.tostring(gpu, encoding="unicode")


def test_nvml_answered_in_time_and_nothing_failed(report: dict[str, Any]) -> None:
    """Every call has an answer or a reason."""
    run = next(probe for probe in report["probes"] if probe["name"] == "nvml")

    assert run["status"] in ("ok", "partial"), run["reason"]
    assert 5 > run["duration_seconds"]
    for gpu in report["topology"]["gpus"]:
        assert gpu["links_known"] or gpu["links_reason"]
