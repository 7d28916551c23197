"""A fault that stands in one log of a source alone, wherever that is: no rule passes over it."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent.diagnose import ScanPlan, diagnose
from agent.rules.gpu.xid import gpu_xid
from agent.rules.rule import NotApplicable, Result, Unknown
from probes.host.files import Files
from probes.sources import dump
from probes.sources.open_source import open_source
from tests.agent.rules.build import probe, server

XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus."
DMESG = (
    "[    0.000000] Linux version 6.8.0-60-generic (buildd@x)\n"
    "[    5.000000] nvidia 0000:3b:00.0: enabling device (0000 -> 0003)\n"
)
LATE = f"{DMESG}[   99.000000] {XID}\n"
SYSLOG = f"Feb  1 10:00:00 n1 kernel: usb 1-1: x\nFeb  1 10:00:01 n1 kernel: {XID}\n"
LSPCI = "3b:00.0 3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)\n"
NOW, BEFORE = ("critical", "high"), ("error", "medium")
BUG_REPORT = """\
____________________________________________

Start of NVIDIA bug report log file.  Please include this file, along
with a detailed description of your problem, when reporting a graphics
driver bug via the NVIDIA Linux forum (see forums.developer.nvidia.com).

nvidia-bug-report.sh Version: 37007862

Date: Thu Jan 15 08:00:00 UTC 2026
____________________________________________

Scanning kernel log files for NVIDIA kernel messages:

  {log}:
{lines}
____________________________________________

/usr/bin/lspci -nntv

{lspci}
____________________________________________

End of NVIDIA bug report log file.
"""


def judge(path: Path) -> list[tuple[str, str]]:
    """Severity and confidence of each finding about an Xid; that the rule passed, where there is none."""
    report, *_ = diagnose(open_source(str(path), None), ScanPlan())
    found = [(one.severity, one.confidence) for one in report.findings if one.rule == "gpu-xid"]
    return found or [("", check.state) for check in report.checks if check.rule == "gpu-xid"]


def save(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def test_a_source_without_the_fault_passes(tmp_path: Path) -> None:
    assert [("", "pass")] == judge(save(tmp_path, {"lspci.txt": LSPCI, "dmesg.txt": DMESG, "kern.log": SYSLOG[:39]}))


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("dmesg_-T.txt", LATE, NOW),
        ("journalctl_-k_-b.txt", SYSLOG, NOW),
        ("journalctl_-b.txt", SYSLOG, NOW),
        ("journalctl_-k.txt", SYSLOG, NOW),
        ("journalctl.txt", SYSLOG, NOW),
        ("journalctl_-b_-0.txt", SYSLOG, NOW),
        ("journalctl_-k_-b_-1.txt", SYSLOG, BEFORE),
        ("journalctl_-b_-2.txt", SYSLOG, BEFORE),
        ("journalctl_-b_-5.txt", SYSLOG, BEFORE),
        ("journalctl_--no-pager_-k_-b_-1.txt", SYSLOG, BEFORE),
        ("journalctl_-b-1_-k.txt", SYSLOG, BEFORE),
        ("kern.log", SYSLOG, BEFORE),
        ("syslog", SYSLOG, BEFORE),
        ("messages", SYSLOG, BEFORE),
        ("syslog.1", SYSLOG, BEFORE),
        ("messages-20260101", SYSLOG, BEFORE),
        ("syslog.2.gz", gzip.compress(SYSLOG.encode()), BEFORE),
        ("messages-20260101.xz", lzma.compress(SYSLOG.encode()), BEFORE),
        ("kern.log.3.bz2", bz2.compress(SYSLOG.encode()), BEFORE),
        ("dmesg.0", LATE, BEFORE),
        ("var/log/kern.log", SYSLOG, BEFORE),
        ("var/log/dmesg.0", LATE, BEFORE),
        ("var/log/syslog.2.gz", gzip.compress(SYSLOG.encode()), BEFORE),
    ],
    ids=lambda item: item if isinstance(item, str) and "\n" not in item else "",
)
def test_beside_a_dmesg_without_it(tmp_path: Path, name: str, content: str | bytes, expected: tuple[str, str]) -> None:
    assert [expected] == judge(save(tmp_path, {"lspci.txt": LSPCI, "dmesg.txt": DMESG, name: content}))


@pytest.mark.parametrize("name", ["journalctl_-k_-b_-1.txt", "journalctl_-b_-2.txt", "syslog.1"])
def test_a_log_of_an_earlier_boot_alone(tmp_path: Path, name: str) -> None:
    assert [BEFORE] == judge(save(tmp_path, {"lspci.txt": LSPCI, name: SYSLOG}))


@pytest.mark.parametrize(
    ("log", "expected"),
    [("/var/log/kern.log", NOW), ("/var/log/syslog", NOW), ("journalctl -b -0", NOW), ("journalctl -b -1", BEFORE)],
)
def test_in_the_scan_of_a_bug_report(tmp_path: Path, log: str, expected: tuple[str, str]) -> None:
    path = tmp_path / "nvidia-bug-report.log"
    path.write_text(BUG_REPORT.format(log=log, lines=SYSLOG, lspci=LSPCI))
    assert expected[0] in {severity for severity, _ in judge(path)}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("sos_commands/logs/journalctl_--no-pager_--boot", SYSLOG.encode()),
        ("sos_commands/logs/journalctl_--no-pager_--boot_-1", SYSLOG.encode()),
        ("var/log/messages", SYSLOG.encode()),
        ("var/log/messages-20260101.gz", gzip.compress(SYSLOG.encode())),
    ],
)
def test_in_a_sosreport(tmp_path: Path, name: str, content: bytes) -> None:
    files = {
        "version.txt": b"sosreport: 4.7\n",
        "sos_commands/kernel/dmesg": DMESG.encode(),
        "sos_commands/pci/lspci_-nnvv": LSPCI.encode(),
        name: content,
    }
    path = tmp_path / "sosreport-n1.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for member, data in files.items():
            row = tarfile.TarInfo(f"sosreport-n1/{member}")
            row.size = len(data)
            archive.addfile(row, io.BytesIO(data))
    assert judge(path)[0][0] in ("critical", "error")


def test_a_long_log_is_gone_through_once_for_all_of_its_readers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what looks for other hosts in it, by the kernel's probe and by that of services."""
    gone_through: list[tuple[str, ...]] = []
    read = dump.read_long_log

    def count(files: Files, path: str, argv: tuple[str, ...]) -> bytes:
        gone_through.append(argv)
        return read(files, path, argv)

    monkeypatch.setattr(dump, "read_long_log", count)
    filler = "[   50.000000] usb 1-1: new high-speed USB device number 7 using xhci_hcd\n" * (17 << 20 >> 6)
    assert [NOW] == judge(save(tmp_path, {"lspci.txt": LSPCI, "dmesg.txt": DMESG + filler + f"[   99.000000] {XID}\n"}))
    assert len(gone_through) == 1


@pytest.mark.parametrize(
    ("status", "code", "state"),
    [("timed_out", None, Unknown), ("ok", None, NotApplicable), ("absent", None, NotApplicable)],
)
def test_a_log_that_is_there_and_was_not_read_is_no_answer(status: str, code: str | None, state: type[Result]) -> None:
    """Also where the list of devices was not read either: then no GPU is known."""
    context = server()
    context = replace(context, topology=replace(context.topology, gpus=[], nvswitches=[]), events=())
    for name in ("pci", "lspci"):
        context = probe(context, name, "timed_out")
    (answer,) = gpu_xid.check(probe(context, "kernel_log", status, code=code))
    assert isinstance(answer, state)


@pytest.mark.parametrize(
    "files",
    [{"a.txt": DMESG, "b.txt": LATE}, {"dmesg.txt": DMESG, "n7_dmesg.txt": LATE}],
    ids=["by content", "by name"],
)
def test_a_further_dmesg_that_may_be_of_another_host_is_no_pass(tmp_path: Path, files: dict[str, str]) -> None:
    assert [("", "unknown")] == judge(save(tmp_path, {"lspci.txt": LSPCI, **files}))
