"""What nvidia-smi and NVML state of a GPU in a few lines: how grave it is depends on what else was read."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.model.finding import Finding
from probes.sources.unwrap import join_wrapped
from tests.machines import scan_text

ROW = """+-------------------------------+----------------------+----------------------+
|   2  Tesla T4            On   | 00000000:2B:00.0 Off |                    0 |
|{fan}  41C    P0  {power} /  70W |    120MiB / 15360MiB |      3%      Default |
|                               |                      |                  N/A |
+-------------------------------+----------------------+----------------------+
"""
NO_LINKS = "NVML: Unable to retrieve NVLink information as all links are inActive\n"
LISTED = "GPU {n}: NVIDIA A100-PCIE-40GB (UUID: GPU-2222222{n}-3333-4444-5555-666666666666)\n"


def _judge(folder: Path, text: str) -> list[Finding]:
    return [finding for finding in scan_text(folder, text).findings if finding.severity != "info"]


@pytest.mark.parametrize(
    ("fan", "power", "severity", "reset"),
    [(" N/A", "ERR!", "warning", False), ("ERR!", "ERR!", "error", True), ("ERR!", " 29W", "warning", False)],
)
def test_one_reading_that_failed_is_no_lost_gpu(
    fan: str, power: str, severity: str, reset: bool, tmp_path: Path
) -> None:
    """The other ones were read: nothing is reset before it is read again."""
    (finding,) = _judge(tmp_path, ROW.format(fan=fan, power=power))
    assert severity == finding.severity
    assert reset == any("nvidia-smi -r" in step.do for step in finding.steps)


def test_nvml_names_the_gpu_that_it_lost(tmp_path: Path) -> None:
    (finding,) = _judge(tmp_path, "rows of GPU-2b2b2b2b-1111-2222-3333-444444444444: ERROR_GPU_IS_LOST\n")
    assert ("error", "GPU-2b2b2b2b-1111-2222-3333-444444444444") == (finding.severity, finding.label)


def test_a_sentence_below_its_gpu_is_no_line_that_a_terminal_broke(tmp_path: Path) -> None:
    """Lines of one length, and a card may have no bridge."""
    text = "".join(LISTED.format(n=n) + NO_LINKS for n in range(2))
    assert join_wrapped(text) == text
    assert [] == _judge(tmp_path, text)


@pytest.mark.parametrize(
    ("row", "label"),
    [
        ("dimm7            | 08h | ok  | 32.8 | Memory Device Disabled, Presence Detected\n", "dimm7"),
        ("21 | FAN 2 | Fan | Critical | 0.00 | RPM | 'At or Below (<=) Lower Critical Threshold'\n", "FAN 2"),
        ("22 | PSU 1 Failure | Power Supply | N/A | N/A | 'transition to OK'\n", None),
    ],
)
def test_a_row_of_sensors_without_its_heading_is_read(row: str, label: str | None, tmp_path: Path) -> None:
    """Of ipmitool and of ipmi-sensors."""
    assert [label] * (label is not None) == [finding.label for finding in scan_text(tmp_path, row).findings]
