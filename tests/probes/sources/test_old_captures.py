"""Captures of earlier versions, and those of NVML."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent.diagnose import ScanPlan, diagnose
from agent.model.report import Report
from probes.host.interface import Absent, BadSource, Failed, Refusal
from probes.sources.capture import CaptureHost
from probes.sources.capture_nvml import NOT_RECORDED, RecordedNvml
from probes.sources.memory import MemoryFiles, Node, SymlinkNode

# A capture made by another version is judged by this one: what it lacks is not known, what it has more is no error.


FUNCTION = "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0"
FILES: dict[str, Node] = {
    "/proc/sys/kernel/hostname": b"old-1\n",
    "/proc/sys/kernel/osrelease": b"5.15.0\n",
    "/sys/bus/pci/devices/0000:00:01.0": SymlinkNode("../../../devices/pci0000:00/0000:00:01.0"),
    "/sys/bus/pci/devices/0000:01:00.0": SymlinkNode("../../../devices/pci0000:00/0000:00:01.0/0000:01:00.0"),
    f"{FUNCTION}/class": b"0x030200\n",
    f"{FUNCTION}/vendor": b"0x10de\n",
    f"{FUNCTION}/device": b"0x2330\n",
    "/sys/devices/pci0000:00/0000:00:01.0/class": b"0x060400\n",
}
NVML = [
    {"function": "nvmlInit_v2", "arguments": [], "answer": None},
    {"function": "nvmlDeviceGetCount_v2", "arguments": [], "answer": 1},
    {"function": "nvmlDeviceGetName", "arguments": [0], "answer": "NVIDIA H100 80GB HBM3", "since": "a later version"},
    {
        "function": "nvmlDeviceGetPciInfo_v3",
        "arguments": [0],
        "answer": {"busId": "00000000:01:00.0", "pciDeviceId": 0x233010DE, "pciSubSystemId": 0, "later": 1},
    },
]


def capture(manifest: dict[str, Any], nvml: list[dict[str, Any]] | None = None, **documents: object) -> CaptureHost:
    """One, as it would be unpacked."""
    evidence = MemoryFiles()
    evidence.add("/manifest.json", json.dumps(manifest).encode())
    if nvml is not None:
        evidence.add("/nvml.json", json.dumps(nvml).encode())
    for name, document in documents.items():
        evidence.add(f"/{name}/000.json", json.dumps(document).encode())
    for path, node in FILES.items():
        evidence.add(f"/files{path}", node)
    files = evidence.below("/files")
    assert files is not None
    return CaptureHost("old.tar.gz", evidence, files)


def judged(host: CaptureHost) -> Report:
    """Its report."""
    return diagnose(host, ScanPlan())[0]


def test_the_least_that_is_a_capture() -> None:
    """A manifest with its format alone, and files: the rest is not known, and nothing fails."""
    report = judged(capture({"format": "fabricscope.capture/1", "captured_at": None}))
    ends = {run.name: run.status for run in report.probes}

    assert ("capture", None) == (report.source.kind, report.observed_at)
    assert "old-1" == report.node.hostname
    assert ["0000:00:01.0", "0000:01:00.0"] == [function.id for function in report.topology.pci]
    assert "failed" not in ends.values()
    assert "absent" == ends["nvml"]
    assert [] == report.findings
    assert [] != [check for check in report.checks if check.state == "unknown"]


def test_fewer_answers_than_this_version_asks_for() -> None:
    """Each that is not there is not known; the GPU is there by what was asked."""
    report = judged(capture({"format": "fabricscope.capture/1", "captured_at": "2026-01-01T00:00:00Z"}, NVML))
    (gpu,) = report.topology.gpus

    assert ("NVIDIA H100 80GB HBM3", "0000:01:00.0") == (gpu.name, gpu.pci)
    assert (None, None, None) == (gpu.uuid, gpu.memory_mib, gpu.pcie)
    assert [] == gpu.links


def test_more_than_this_version_knows() -> None:
    """Keys, folders and commands of a later version are left alone."""
    manifest = {
        "format": "fabricscope.capture/1",
        "captured_at": "2026-01-01T00:00:00Z",
        "generator": {"name": "fabricscope", "version": "9.9", "build": 7},
        "source_kind": "something new",
        "redacted": True,
        "missing": ["rdma: no answer within 10 s"],
        "weather": {"rain": True},
    }
    command = {"argv": ["newtool", "--all"], "returncode": 0, "stdout": "x", "stderr": "", "seconds": 1, "host": "y"}
    host = capture(manifest, NVML, commands=command, tomorrow={"a": 1})

    assert "capture" == host.kind
    assert "x" == host.run("newtool", "--all").stdout
    assert 1 == len(judged(host).topology.gpus)


@pytest.mark.parametrize("kind", ["tree", "dump", "sosreport", "bug-report"])
def test_a_capture_of_a_tree_is_a_tree(kind: str) -> None:
    """What a pruned source lacks is not known to be absent, however often it is captured."""
    host = capture({"format": "fabricscope.capture/1", "captured_at": None, "source_kind": kind})

    assert kind == host.kind
    assert kind == judged(host).source.kind


@pytest.mark.parametrize("form", ["fabricscope.capture/2", "other.capture/1", None, 1])
def test_another_format_is_refused_aloud(form: object) -> None:
    """In one line that names the file and what can be read."""
    with pytest.raises(BadSource, match=r"old\.tar\.gz: is a capture of another format; .*fabricscope\.capture/1"):
        capture({"format": form, "captured_at": None})


# Recorded NVML answers: whole calls as they were, field values field by field.


def row(field: int, scope: int, value: int) -> dict[str, Any]:
    return {"id": field, "scope": scope, "return": 0, "value": value}


CALLS = [
    (("nvmlDeviceGetName", "[0]"), "NVIDIA H100"),
    (("nvmlDeviceGetSerial", "[0]"), Refusal("failed", "Not Supported", "NOT_SUPPORTED")),
    (("nvmlDeviceGetFieldValues", json.dumps([0, [[164, 0], [165, 0]]])), [row(164, 0, 26562), row(165, 0, 1)]),
    (("nvmlDeviceGetFieldValues", json.dumps([0, [[165, 1]]])), [row(165, 1, 1)]),
]


def test_a_call_is_answered_as_it_was() -> None:
    """Answers, refusals, and what was not asked when it was recorded."""
    recorded = RecordedNvml(CALLS)

    assert "NVIDIA H100" == recorded.answer("nvmlDeviceGetName", (0,))
    with pytest.raises(Failed, match="Not Supported"):
        recorded.answer("nvmlDeviceGetSerial", (0,))
    with pytest.raises(Absent, match="not recorded"):
        recorded.answer("nvmlDeviceGetUUID", (0,))


def test_another_batch_of_fields_is_put_together_from_what_is_there() -> None:
    """A field that nobody recorded is not "not supported": the code says nothing of the device."""
    answer = RecordedNvml(CALLS).answer("nvmlDeviceGetFieldValues", (0, [[165, 1], [164, 0], [230, 0]]))

    assert [row(165, 1, 1), row(164, 0, 26562)] == answer[:2]
    assert {"id": 230, "scope": 0, "return": NOT_RECORDED, "value": None} == answer[2]


def test_a_device_of_which_no_field_was_recorded_is_absent() -> None:
    """GPU 1 does not get the answers of GPU 0."""
    with pytest.raises(Absent, match="not recorded"):
        RecordedNvml(CALLS).answer("nvmlDeviceGetFieldValues", (1, [[165, 0]]))
