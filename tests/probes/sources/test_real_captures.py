"""Captures of real machines, and those that earlier versions wrote."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agent.diagnose import ScanPlan, diagnose
from agent.model.report import Report
from agent.reports import encode_report
from probes.host.interface import Absent, BadSource, Failed, Refusal
from probes.sources.capture import CaptureHost
from probes.sources.capture_nvml import NOT_RECORDED, RecordedNvml
from probes.sources.memory import MemoryFiles, Node, SymlinkNode
from probes.sources.open_source import open_source
from probes.system.cpu import parse_cpulist
from release.real_capture import cut, pack
from tests.conftest import ROOT
from tests.machines import still

FOLDER = ROOT / "fixtures" / "captures"
CAPTURES = sorted(path.name.removesuffix(".tar.gz") for path in FOLDER.glob("*.tar.gz"))
MAC = re.compile(rb"\b([0-9a-f]{2})(?::[0-9a-f]{2}){5}\b")
ADDRESS = re.compile(rb"\b[0-9]{1,3}(?:\.[0-9]{1,3}){3}\b")
VERSION = b"1.0.2.0"  # of a module
PRIVATE = re.compile(
    rb"/home/(?!user-)|/root/|/proc/[0-9]+/|\bBEGIN [A-Z ]*KEY|[\w.]+@[\w.-]+\.[a-z]{2,}", re.IGNORECASE
)


@pytest.fixture(scope="module")
def scans() -> Mapping[str, Report]:
    """The report of each capture."""
    reports = {}
    for name in CAPTURES:
        source = open_source(str(FOLDER / f"{name}.tar.gz"))
        assert isinstance(source, CaptureHost)
        reports[name], _ = diagnose(source, ScanPlan())
    return reports


def read_members(name: str) -> dict[str, bytes]:
    """The files of a capture by their path."""
    with tarfile.open(FOLDER / f"{name}.tar.gz") as tar:
        return {member.name: part.read() for member in tar if member.isreg() and (part := tar.extractfile(member))}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """The folder that each capture unpacks to."""
    places = {name: tmp_path_factory.mktemp(name) for name in CAPTURES}
    for name, folder in places.items():
        with tarfile.open(FOLDER / f"{name}.tar.gz") as tar:
            # "data" would refuse links that are absolute in the other host; Python before 3.11.4 has no filters
            tar.extraction_filter = getattr(tarfile, "tar_filter", None)
            tar.extractall(folder)
    return places


@pytest.mark.parametrize("name", CAPTURES)
def test_a_real_machine_is_healthy(name: str, scans: Mapping[str, Report]) -> None:
    report = scans[name]

    assert [] == [finding.rule for finding in report.findings]
    assert [] == [run.name for run in report.probes if run.status == "failed"]
    assert report.topology.pci


def test_the_facts_of_a_virtual_machine_without_a_gpu(scans: Mapping[str, Report]) -> None:
    report = scans["cpu-only-vm"]
    network = {row.id: row for row in report.topology.pci}["0000:00:03.0"]
    interfaces = {row.label: row for row in report.topology.netdevs}

    assert [f"0000:00:0{number}.0" for number in range(6)] == [row.id for row in report.topology.pci]
    assert ("0x1af4", "0x1041", "0x020000", "virtio-pci", "0000:00", None, "present", 256) == (
        *(network.vendor, network.device, network.class_code, network.driver),
        *(network.root_bus, network.link, network.state, network.config_bytes),
    )
    assert {"0": 0x80000} == network.bars_bytes
    assert ("0000:00:03.0", "up", 1400, "virtio_net") == tuple(
        getattr(interfaces["eth0"], field) for field in ("pci", "operstate", "mtu", "driver")
    )
    assert ("AMD EPYC", 1, 1) == (report.node.cpu.name, report.node.cpu.sockets, report.node.cpu.threads_per_core)
    assert ("kvm", "docker", "x86_64") == (report.node.virtualization, report.node.container, report.node.arch)
    assert "nothing_to_check" == report.summary.verdict


@pytest.mark.parametrize("name", CAPTURES)
def test_a_capture_and_the_folder_that_it_unpacks_to_are_one_machine(
    name: str, scans: Mapping[str, Report], folders: Mapping[str, Path]
) -> None:
    unpacked, _ = diagnose(open_source(str(folders[name])), ScanPlan())

    assert encode_report(still(scans[name])) == encode_report(still(unpacked))


@pytest.mark.parametrize("name", CAPTURES)
def test_every_function_is_listed_once_with_the_numbers_of_its_files(
    name: str, scans: Mapping[str, Report], folders: Mapping[str, Path]
) -> None:
    """Read without the probe: vendor, device, class and driver of each link in /sys/bus/pci/devices."""
    devices = folders[name] / "files/sys/bus/pci/devices"
    read = {
        entry.name: (
            *((entry / attribute).read_text().strip() for attribute in ("vendor", "device", "class")),
            os.path.basename(os.readlink(entry / "driver")) if (entry / "driver").is_symlink() else "",
        )
        for entry in devices.iterdir()
    }
    rows = scans[name].topology.pci

    assert read == {row.id: (row.vendor, row.device, row.class_code, row.driver) for row in rows}
    assert {"present"} == {row.state for row in rows}
    assert {None, *read} >= {row.parent for row in rows}


@pytest.mark.parametrize("name", CAPTURES)
def test_lspci_reports_the_same_of_a_capture(
    name: str, scans: Mapping[str, Report], folders: Mapping[str, Path], real_commands: None
) -> None:
    if shutil.which("lspci") is None:
        pytest.skip("no lspci on this machine (package pciutils)")
    sysfs = folders[name] / "files/sys/bus/pci"
    command = ["lspci", "-A", "linux-sysfs", "-O", f"sysfs.path={sysfs}", "-D", "-n", "-mm"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    listed = {fields[0]: fields[1:4] for fields in map(shlex.split, lines)}

    assert listed == {
        row.id: [(row.class_code or "")[2:6], (row.vendor or "")[2:], (row.device or "")[2:]]
        for row in scans[name].topology.pci
    }


@pytest.mark.parametrize("name", CAPTURES)
def test_memory_and_processors_are_those_of_the_files(name: str, scans: Mapping[str, Report]) -> None:
    members, node = read_members(name), scans[name].node
    total = re.search(rb"MemTotal: +([0-9]+) kB", members["files/proc/meminfo"])
    processors = members["files/proc/cpuinfo"].count(b"processor\t:")

    assert total
    assert int(total[1]) >> 10 == node.memory_mib
    assert processors == sum(len(parse_cpulist(numa.cpus or "")) for numa in node.numa_nodes)


@pytest.mark.parametrize("name", CAPTURES)
def test_a_capture_holds_nothing_that_is_one_machines(name: str, scans: Mapping[str, Report]) -> None:
    """Host, users and identifiers are made up; no process, log or unit of the machine is in it."""
    members = read_members(name)
    whole = b"\n".join([*members.values(), *(path.encode() for path in members)])

    assert re.fullmatch(r"host-[0-9a-f]{6}", scans[name].node.hostname or "")
    assert [] == PRIVATE.findall(whole)
    assert [] == [address for address in ADDRESS.findall(whole.replace(VERSION, b"")) if not is_made_up(address)]
    assert [] == [first for first in MAC.findall(whole) if first not in (b"00", b"ff") and not int(first, 16) & 2]
    assert [] == [
        path for path in members if re.match(r"files/(proc/([0-9]+|self/cgroup)|dev/kmsg|home|var/log)", path)
    ]
    assert (FOLDER / f"{name}.tar.gz").stat().st_size <= 200_000


def is_made_up(address: bytes) -> bool:
    """Whether an address is one that redacting writes, or no machine's own."""
    first = int(address.partition(b".")[0])
    return first in (0, 10, 127, 255)


def test_what_runs_on_a_machine_is_cut_from_a_capture(tmp_path: Path) -> None:
    """Processes, logs and home, arguments of the first process, and who built the kernel; the rest stays."""
    files = {
        "proc/12/maps": "libnccl.so",
        "proc/self/cgroup": "0::/pod-1",
        "proc/self/mounts": "tmpfs /dev/shm tmpfs",
        "proc/cmdline": "quiet token=1 iommu=pt -- --key 2",
        "proc/version": "Linux version 6.8.0-site7 (me@build) (gcc)\n#1 SMP",
        "proc/sys/kernel/osrelease": "6.8.0-site7\n",
        "dev/kmsg": "6,0,0,-;login of a user",
        "home/user-1/.ssh": "",
    }
    for name, text in files.items():
        path = tmp_path / "capture" / "files" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    listings = {"/proc": ["12", "cmdline"], "/home": ["user-1"]}
    errors = {"/proc/12/environ": {"status": "denied"}, "/sys/x": {"status": "denied"}}
    manifest = tmp_path / "capture" / "manifest.json"
    manifest.write_text(json.dumps({"hostname": "host-1", "listings": listings, "errors": errors}))

    cut(tmp_path / "capture")
    for name in ("one", "two"):
        pack(tmp_path / "capture", tmp_path / f"{name}.tar.gz")

    with tarfile.open(tmp_path / "one.tar.gz") as tar:
        members = {
            member.name: part.read().decode() for member in tar if member.isreg() and (part := tar.extractfile(member))
        }
    assert {"proc/self/mounts", "proc/cmdline", "proc/version", "proc/sys/kernel/osrelease"} == {
        name.removeprefix("files/") for name in members if name != "manifest.json"
    }
    assert "quiet iommu=pt\n" == members["files/proc/cmdline"]
    assert "Linux version 6.8.0\n" == members["files/proc/version"]
    assert "6.8.0\n" == members["files/proc/sys/kernel/osrelease"]
    assert {
        "hostname": "host-1",
        "listings": {"/proc": ["cmdline"]},
        "errors": {"/sys/x": errors["/sys/x"]},
    } == json.loads(members["manifest.json"])
    assert (tmp_path / "one.tar.gz").read_bytes() == (tmp_path / "two.tar.gz").read_bytes()


# Captures of earlier versions, and those of NVML.


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
