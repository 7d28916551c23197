"""NVIDIA's bug report tells what its machine is: sections are files and outputs, whatever stands between them."""

from __future__ import annotations

import gzip
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.diagnose import ScanPlan, diagnose
from agent.model.pci import Acs
from agent.model.report import Report
from probes.host.interface import Absent, BadSource, Failed, Host
from probes.sources import bug_report
from probes.sources.open_source import open_source
from tests.conftest import ROOT
from tests.machines import scan_machine
from tests.probes.sources import bundles
from tests.probes.sources.bundles import END, PROLOGUE, RULE, commands_section, file_section, section
from tests.probes.sources.test_sosreport import read_or_refused, said

H100 = "8xh100-sxm-2s-8xcx7-ib-4nvsw"
LSPCI = pytest.mark.skipif(not shutil.which("lspci"), reason="pciutils is not installed")
TEXT, HEX = ("lspci", "-D", "-nn", "-vvv"), ("lspci", "-D", "-nn", "-xxxx")
START = PROLOGUE.format(rule=RULE, date=bundles.DATE, uname="Linux a 6.8.0 #1 SMP x86_64 GNU/Linux", blank=" ")
SMI = "/usr/bin/nvidia-smi"


def opened(text: str, folder: Path) -> Host:
    place = folder / "saved"
    place.write_bytes(text.encode())
    return open_source(str(place))


def report_of(host: Host) -> Report:
    return diagnose(host, ScanPlan())[0]


@LSPCI
def test_the_same_machine_through_two_doors(tmp_path: Path, real_commands: None) -> None:
    """Plain, compressed, in many gzip members as the script writes it, with line ends of Windows."""
    whole = scan_machine(H100)
    log = bundles.bug_report(H100)
    members = b"".join(gzip.compress(f"{part}".encode(), 1) for part in re.split(f"(?={RULE})", log))
    plain = log.encode()

    for content in (plain, gzip.compress(plain, 1), members, plain.replace(b"\n", b"\r\n"), b"```\n" + plain):
        (tmp_path / "log").write_bytes(content)
        report = report_of(open_source(str(tmp_path / "log")))
        assert ("bug-report", "2026-01-15T08:00:00Z") == (report.source.kind, report.observed_at)
        assert said(whole) == said(report)
        for name in ("hostname", "kernel", "arch", "memory_mib", "cmdline"):
            assert getattr(whole.node, name) == getattr(report.node, name)
        assert whole.node.cpu == report.node.cpu
        assert whole.software.driver == report.software.driver
        assert {"info"} >= {finding.severity for finding in report.findings}


@LSPCI
def test_only_nvidias_functions_with_their_bytes(tmp_path: Path, real_commands: None) -> None:
    """Until driver 450: a list of all functions, and 256 bytes of NVIDIA's and PLX's. The rest is not lost for it."""
    bytes_of = {vendor: bundles.lspci(H100, "-v", "-xxx", "-d", f"{vendor}:") for vendor in ("10de", "10b5")}
    pci = [(f'-d "{vendor}:*" -v -xxx', text) for vendor, text in bytes_of.items()]
    host = opened(bundles.bug_report(H100, pci=(*pci, ("-t", ""), ("-nn", bundles.lspci(H100, "-nn")))), tmp_path)
    report = report_of(host)

    whole = scan_machine(H100).topology
    assert [row.id for row in whole.pci] == [row.id for row in report.topology.pci]
    for old, new in zip(whole.pci, report.topology.pci, strict=True):
        assert (old.vendor, old.device, old.class_code[:6]) == (new.vendor, new.device, (new.class_code or "")[:6])
        assert (new.link is not None) == (new.vendor in ("0x10de", "0x10b5") and old.link is not None)
        assert new.acs is None or new.acs == old.acs == Acs()  # -v names every capability, and tells no bits of one
    assert {"critical", "error"}.isdisjoint(finding.severity for finding in report.findings)


def test_files_and_outputs(tmp_path: Path) -> None:
    """A file byte by byte; several commands of one section, also one that printed nothing; long options."""
    log = (
        START + file_section("/proc/driver/nvidia/./version", "NVRM version\n\nGCC\n") + file_section("/proc/empty", "")
    )
    log += file_section("/.bottlerocket/rootfs/etc/os-release", "ID=bottlerocket\n")
    log += commands_section(
        (f"{SMI} --query", "q\n"), (f"{SMI} nvlink --errorcounters", ""), (f"{SMI} nvlink --status", "s\n")
    )
    log += commands_section(("/usr/sbin/ibstat", "CA 'a'\n"), ("/usr/sbin/ibswitches -C mlx5_0", "Switch\n"))
    host = opened(log + section("dmesg:\n\n[ 0.0] x\n") + END, tmp_path)

    assert b"NVRM version\n\nGCC\n" == host.read("/proc/driver/nvidia/version")
    assert (b"", b"ID=bottlerocket\n") == (host.read("/proc/empty"), host.read("/etc/os-release"))
    for argv, output in (
        (("nvidia-smi", "-q"), "q\n"),
        (("nvidia-smi", "nvlink", "-e"), ""),
        (("nvidia-smi", "nvlink", "-s"), "s\n"),
        (("ibstat",), "CA 'a'\n"),
        (("dmesg",), "[ 0.0] x\n"),
        (("uname", "-a"), "Linux a 6.8.0 #1 SMP x86_64 GNU/Linux"),
    ):
        assert output == host.run(*argv).stdout
    assert not host.has_output("nvidia-smi", "topo", "-m")


def test_what_it_does_not_hold_is_named(tmp_path: Path) -> None:
    """With the script's own reason; a part of /sys never passes for the machine."""
    log = START + section("*** /proc/cpuinfo does not exist") + section("*** /proc/meminfo is not readable")
    log += section("Skipping: ibstat output\nibstat not found") + section("Skipping lspci output (lspci not found)")
    log += file_section("/sys/bus/pci/devices/0000:17:00.0/numa_node", "0\n") + file_section("/etc/../x", "1")
    host = opened(log + END, tmp_path)

    for path in ("/proc/cpuinfo", "/sys/bus/pci/devices", "/etc/x"):
        with pytest.raises(Absent, match=f"the bug report holds no {path}"):
            host.read(path)
    with pytest.raises(Failed, match="not whole"):
        host.read("/proc/meminfo")
    with pytest.raises(Absent, match=r"no output of ibstat \(Skipping: ibstat output ibstat not found\)"):
        host.run("ibstat")
    with pytest.raises(Absent, match=r"\(Skipping lspci output \(lspci not found\)\)"):
        host.run(*TEXT)


@pytest.mark.parametrize("end", ["", "___", RULE])
def test_a_log_without_its_end_loses_its_last_section(end: str, tmp_path: Path) -> None:
    """The script hung, or the file was cut: what stands last may be half of it."""
    host = opened(START + file_section("/proc/a", "1\n") + commands_section((f"{SMI} --query", "half")) + end, tmp_path)

    assert b"1\n" == host.read("/proc/a")
    with pytest.raises(Absent, match="the bug report, which ends early, holds no output of nvidia-smi -q"):
        host.run("nvidia-smi", "-q")


def test_bytes_from_sysfs_where_there_is_no_lspci(tmp_path: Path) -> None:
    """As the newest script dumps them."""
    rows = "00: de 10 30 23 06 04 10 00 a1 00 02 03 10 00 00 00\n"
    rows += "".join(f"{at:02x}:{' 00' * 16}\n" for at in range(16, 4096, 16))
    dump = (
        "PCI devices configuration space dump using sysfs\n\n\n0000:19:00.0 030200: Vendor 10de Device 2330 (rev a1)\n"
    )
    host = opened(START + section(dump + rows) + END, tmp_path)
    rows_found = report_of(host).topology.pci

    assert host.has_output(*HEX)
    assert [("0000:19:00.0", "0x10de", "0x2330", "0x030200")] == [
        (row.id, row.vendor, row.device, row.class_code) for row in rows_found
    ]


def test_a_section_longer_than_any_answer_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a file nor a list of functions is shown in part; what all outputs weigh is bounded."""
    monkeypatch.setattr(bug_report, "OUTPUT_LIMIT_BYTES", 10_000)
    log = START + file_section("/proc/long", "x\n" * 10_000) + section("/usr/bin/lspci -nn\n\n" + "y\n" * 10_000)
    host = opened(log + commands_section((f"{SMI} --query", "q\n"), ("/usr/bin/ibstat", "z" * 10_000)) + END, tmp_path)

    with pytest.raises(Failed, match="not whole"):
        host.read("/proc/long")
    assert (False, False) == (host.has_output(*TEXT), host.has_output("ibstat"))
    assert "q\n" == host.run("nvidia-smi", "-q").stdout
    monkeypatch.setattr(bug_report, "KEPT_LIMIT_BYTES", 5000)
    with pytest.raises(BadSource, match="holds more than 0 MiB of what is asked for"):
        opened(START + file_section("/proc/a", "x" * 6000) + END, tmp_path)


def test_hostile_logs_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many bug_report, a file below a file, too much behind a little gzip, an end in the middle of the gzip."""
    monkeypatch.setattr(bug_report, "SECTIONS_LIMIT", 100)
    monkeypatch.setattr(bug_report, "INFLATED_LIMIT_BYTES", 4 << 20)
    whole = gzip.compress(START.encode() + b"y" * 10_000)
    twice = START + file_section("/proc/a", "") + file_section("/proc/a/b", "") + END
    hostile = {
        "more than 100 sections": START.encode() + f"{RULE}\n".encode() * 200,
        "as a file and as a folder": twice.encode(),
        "decompresses to more than 4 MiB": gzip.compress(START.encode() + bytes(8 << 20)),
        "damaged or cut short": whole[:-9],
    }

    for why, content in hostile.items():
        (tmp_path / "log").write_bytes(content)
        with pytest.raises(BadSource, match=why):
            open_source(str(tmp_path / "log"))


@pytest.mark.slow
def test_two_gigabytes_take_little_memory_and_time(tmp_path: Path, real_commands: None) -> None:
    """A kernel log that fills a log: streamed. Measured: 6 s and 17 MB on two cores."""
    line = b"[12345.678901] NVRM: Xid (PCI:0000:19:00): 79, GPU has fallen off the bus.\n"
    block = gzip.compress(line * ((16 << 20) // len(line)), 9)
    with (tmp_path / "log.gz").open("wb") as log:
        log.write(gzip.compress((START + file_section("/proc/a", "1\n") + f"{RULE}\n\njournalctl -b -0:\n").encode()))
        for _ in range(128):
            log.write(block)
        log.write(gzip.compress(("\n" + commands_section((f"{SMI} --query", "q\n")) + END).encode()))
    program = (
        "import sys; from probes.sources.open_source import open_source; host = open_source(sys.argv[1]);"
        "assert host.run('nvidia-smi', '-q').stdout == 'q\\n';"
        "print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])"  # not of the parent, as ru_maxrss is
    )

    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "log.gz")],
        cwd=ROOT, capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip

    assert 64 << 10 > int(done.stdout)


SMALL = (
    START
    + file_section("/proc/cpuinfo", "processor : 0\n")
    + section("/sbin/lspci -nnDvvvxxx\n\n00:00.0 Host bridge: x\n")
)
SMALL += commands_section((f"{SMI} --query", "Attached GPUs : 0\n"), ("/usr/sbin/ibstat", "CA 'a'\n")) + END


@given(st.data())
@settings(max_examples=100)
def test_damage_is_a_bad_source_or_an_answer(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Whatever is changed, doubled or cut out: one line, or a host whose probes end without a traceback."""
    content = bytearray(SMALL.encode())
    for _ in range(data.draw(st.integers(1, 8))):
        at, size = data.draw(st.integers(0, len(content) - 1)), data.draw(st.integers(0, 60))
        content[at : at + size] = data.draw(st.binary(max_size=4) | st.just(bytes(content[at - size : at + size])))
    place = tmp_path_factory.mktemp("damaged") / "log"
    place.write_bytes(content)

    verdict = read_or_refused(place)

    judged = ("ok", "unknown", "nothing_to_check")
    assert verdict in judged or (verdict.startswith(f"{place}: ") and "\n" not in verdict)


def test_scanned_logs_are_the_files_and_journals_that_they_come_from(tmp_path: Path) -> None:
    """Also of earlier boots."""
    log = section(
        "Scanning kernel log files for NVIDIA kernel messages:\n\n  /var/log/kern.log:\nNov 15 h kernel: a\n\n"
        "  journalctl -b -0:\nNov 16 h kernel: b\n\n  journalctl -b -1:\nNov 14 h kernel: c\n"
    )
    host = opened(START + log + END, tmp_path)

    assert b"Nov 15 h kernel: a\n" == host.read("/var/log/kern.log", 100)
    assert "Nov 16 h kernel: b" == host.run("journalctl", "-b", "-0").stdout.strip()
    assert "Nov 14 h kernel: c" == host.run("journalctl", "-b", "-1").stdout.strip()


def test_log_files_of_services_are_read(tmp_path: Path) -> None:
    """Other logs are not."""
    line = "[Feb 01 2026 10:00:00] [ERROR] failed to find the GPU handle 1 in the multicast team request setup 2.\n"
    log = file_section("/var/log/fabricmanager.log", line) + file_section("/var/log/auth.log", "x\n")
    host = opened(START + log + END, tmp_path)

    assert line.encode() == host.read("/var/log/fabricmanager.log", 1000)
    with pytest.raises(Absent):
        host.read("/var/log/auth.log")
