"""A line that no check explains: what failed by its words, what shows the part, and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.rules.host.failure_words import FAILURE_WORDS, find_kind, list_commands
from tests.agent.rules.test_fragments import scan_text, warnings_of

KINDS = {
    "GPU 2 has fallen off, it needs a reset": "gone",
    "mlx5_3: bad checksum in table 4": "memory",
    "rail 3: lane training gave no result, error": "link",
    "GPU 5: paste too hot": "heat",
    "PSU 2: input lost": "heat",
    "mlx5_3: 96 Gb/s, expected 390 Gb/s": "less",
    "GPU 3 shows gen 1 while other GPUs show gen 4": "less",
    "nvme3: Media and Data Integrity Errors: 5": "memory",
    "mlx5_4 port state is DOWN, expected ACTIVE": "link",
    "mlx5_1: firmware mismatch": "version",
    "mlx5_1: out of resources": "short",
    "/dev/nvidia3: permission denied": "rights",
    "mlx5_1: peer unreachable": "peer",
    "GPU 1: engine stalled": "silent",
    "mlx5_1: not found": "missing",
    "mlx5_1: table rejected": "setting",
    "mlx5_1: failed": None,
}


@pytest.mark.parametrize("line", KINDS)
def test_words_tell_the_kind(line: str) -> None:
    assert KINDS[line] == find_kind(line)


def test_every_kind_is_tried() -> None:
    assert FAILURE_WORDS.keys() == {kind for kind in KINDS.values() if kind}


@pytest.mark.parametrize(
    ("part", "command"),
    [
        ("0000:5e:00.0", "lspci -vvv -s 0000:5e:00.0"),
        ("NVIDIA 3", "nvidia-smi -q -i 3"),
        ("AMD 3", "amd-smi metric -g 3"),
        ("NPU 3", "npu-smi info -t health -i 3"),
        ("hl3", "hl-smi -q"),
        ("neuron3", "neuron-ls"),
        ("nvme3n1", "nvme list"),
        ("NVLink 3", "nvidia-smi nvlink -e"),
        ("GPU-1a2b3c4d", "nvidia-smi -q -i GPU-1a2b3c4d"),
        ("slot 3", "dmidecode -t slot"),
        ("PSU 3", "ipmitool sel elist"),
        ("swp3", "show interface swp3"),
        ("ens3f0", "ethtool -S ens3f0"),
        ("mlx5_3", "rdma link show mlx5_3/1"),
        ("rail 3", "ibstat"),
        (None, "ibstat"),
    ],
)
def test_the_commands_are_those_of_the_part(part: str | None, command: str) -> None:
    assert command in list_commands(part).split("; ")


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("osd.14: up 0, the others 1", "ceph osd tree"),
        ("ost_4 is behind", "lfs check servers"),
        ("md1: degraded", "cat /proc/mdstat"),
        ("C1: memory speed 2000 MT/s", "dmidecode -t memory"),
        ("sdc: realloc 1288, the others 0", "lsblk"),
        ("FAN5: rpm 1410, the others 8100", "ipmitool sdr elist"),
        ("n207: offset_ms -4812, the others 0.02", "chronyc sources"),
        ("card2: xgmi 6/7, the others 7/7", "amd-smi xgmi"),
        ("n4: tflops 331, the others 650", "nvidia-smi topo -m"),
        ("n4: busbw 98, the others 370", "rdma link"),
        ("n4: 98, the others 370", "nvidia-smi -q"),
    ],
)
def test_without_a_part_the_commands_are_those_of_what_the_line_is_about(line: str, command: str) -> None:
    assert command in list_commands(None, line).split("; ")


def test_a_text_of_one_unknown_line_gives_a_note_of_its_part(tmp_path: Path) -> None:
    (note,) = scan_text(tmp_path, "agent: ERROR: mlx5_3 has bad parity in table 4\n", "issue.txt").findings

    assert ("tool-reports-fault", "info", "low", "mlx5_3") == (note.rule, note.severity, note.confidence, note.label)
    assert "memory or logic of the device has an error" in note.summary
    assert "ibstat mlx5_3" in note.remedy


def test_such_a_line_beside_other_outputs_is_read_where_a_program_wrote_it(tmp_path: Path) -> None:
    text = (
        "My GPU 5 fails.\n```\n$ lsmod\nModule Size Used by\nib_core 1 0\n```\n```\nERROR agent: mlx5_4 refuses\n```\n"
    )
    report = scan_text(tmp_path, text, "issue.txt")

    assert ["mlx5_4"] == [note.label for note in report.findings if note.rule == "tool-reports-fault"]
    assert [] == warnings_of(report)


def test_such_a_line_below_an_output_is_read_too(tmp_path: Path) -> None:
    text = "CA 'mlx5_0'\n\tCA type: MT4129\n\tPort 1:\n\t\tState: Active\n\n2026-01-02 ERROR agent: mlx5_4 refuses\n\n"
    report = scan_text(tmp_path, f"```\n{text}```\n", "issue.txt")

    assert ["mlx5_4"] == [note.label for note in report.findings if note.rule == "tool-reports-fault"]


@pytest.mark.parametrize(
    "known",
    ["host,gpu,pcie_width\nn1,0,16\nn2,0,16\nn3,0,16\nn4,0,8\n", "vfio 0000:41:00.0: group 27 is not viable\n"],
    ids=["a table", "a sentence"],
)
def test_what_a_program_wrote_beside_a_fault_is_not_lost(known: str, tmp_path: Path) -> None:
    report = scan_text(tmp_path, f"{known}\nand the agent wrote: ERROR mlx5_4 refuses to arm\n", "issue.txt")
    assert "mlx5_4" in [finding.label for finding in report.findings]
    assert len(report.findings) == 2
