"""Logs that logrotate put aside: which there are, in which order, what is in them, and what cannot be read."""

from __future__ import annotations

import bz2
import gzip
import lzma
import tarfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest

from probes.host.interface import LOG_LIMIT_BYTES, OUTPUT_LIMIT_BYTES
from probes.host_reader import HostReader
from probes.kernel import log, log_files
from probes.kernel.log_facts import KernelLogFacts
from probes.kernel.log_files import is_rotated, list_log_files, read_log_file
from probes.services import probe as services
from probes.sources.dump import SavedOutputs
from probes.sources.memory import MemoryFiles
from probes.sources.open_source import open_source
from probes.sources.tree import TreeHost

XID = "NVRM: Xid (PCI:0000:3b:00): {}, pid=1"
START = "Linux version 6.8.0-60-generic (buildd@x)"
FM = "nv-fabricmanager[9]: detected number of NVSwitches don't match with any supported system topology, aborting"


def host_of(**logs: bytes | str) -> TreeHost:
    """A machine with these files in /var/log; two underscores are a dot."""
    files = MemoryFiles({"sys/x": b""})
    for name, content in logs.items():
        files.add(f"/var/log/{name.replace('__', '.')}", content.encode() if isinstance(content, str) else content)
    return TreeHost("tree", "x", files, SavedOutputs(MemoryFiles()))


def lines(*texts: str, day: int = 1) -> str:
    return "".join(f"Feb {day:2} 10:00:00 n1 kernel: {text}\n" for text in texts)


def boots_of(facts: KernelLogFacts) -> dict[str | None, str | None]:
    return {event.code: event.boot for event in facts.events}


def test_files_of_each_log_are_listed_from_the_oldest_on() -> None:
    host = host_of(
        syslog="x", syslog__1="x", syslog__2__gz="x", syslog__10__gz="x", auth__log="x", kern__log="x",
        **{"messages-20260108": "x", "messages-20260101__gz": "x", "messages": "x", "syslogd": "x"},
    )  # fmt: skip

    assert {
        "kern.log": ["/var/log/kern.log"],
        "syslog": [f"/var/log/syslog{end}" for end in (".10.gz", ".2.gz", ".1", "")],
        "messages": [f"/var/log/messages{end}" for end in ("-20260101.gz", "-20260108", "")],
    } == list_log_files(host)
    assert {} == list_log_files(TreeHost("tree", "x", MemoryFiles(), SavedOutputs(MemoryFiles())))


@pytest.mark.parametrize(
    ("name", "aside"),
    [("syslog", False), ("syslog.1", True), ("messages-20260101", True), ("kern.log.2.gz", True), ("dmesg.txt", False)],
)
def test_which_files_were_put_aside(name: str, aside: bool) -> None:
    assert aside is is_rotated(name) is is_rotated(f"/var/log/{name}")


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("damage", [lambda c: c[:-9], lambda c: c[:12] + bytes(40) + c[40:]], ids=["cut", "damaged"])
def test_a_damaged_one_is_a_gap(pack: Callable[[bytes], bytes], damage: Callable[[bytes], bytes]) -> None:
    content = damage(pack(bytes(range(256)) * 40))
    reader = HostReader(host := host_of(syslog__1__gz=content))

    assert read_log_file(host, reader, "/var/log/syslog.1.gz") is None
    assert "/var/log/syslog.1.gz: is damaged or cut short" == reader.missing
    assert "log-unread" == getattr(reader.missing, "code", None)


def test_one_that_grows_without_end_is_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_files, "LOG_LIMIT_BYTES", 1 << 20)
    reader = HostReader(host := host_of(syslog__1__gz=gzip.compress(bytes(2 << 20))))

    assert read_log_file(host, reader, "/var/log/syslog.1.gz") is None
    assert "longer than 1 MiB" in str(reader.missing)


def test_what_an_archive_cut_is_a_gap() -> None:
    reader = HostReader(host := host_of(syslog=b"x" * OUTPUT_LIMIT_BYTES))

    assert read_log_file(host, reader, "/var/log/syslog") is None
    assert f"longer than {OUTPUT_LIMIT_BYTES >> 20} MiB" in str(reader.missing)


def test_of_a_long_one_the_lines_that_count_are_kept() -> None:
    noise = lines("usb 1-1: new device") * 400_000
    text = read_log_file(host_of(syslog=noise + lines(XID.format(79))), HostReader(host_of()), "/var/log/syslog")

    assert OUTPUT_LIMIT_BYTES < len(noise) < LOG_LIMIT_BYTES
    assert text is not None
    assert len(text) < 10_000
    assert XID.format(79) in text


def test_a_boot_goes_on_in_the_newer_file() -> None:
    """Nothing began in the newer ones: their lines are of the boot that the oldest one shows."""
    host = host_of(
        messages=lines("usb: c", XID.format(3), day=3),
        **{
            "messages-20260201": lines("usb: b", XID.format(2), day=2),
            "messages-20260101__gz": gzip.compress(lines(XID.format(0), START, XID.format(1)).encode()),
        },
    )
    assert {"3": None, "2": None, "1": None, "0": "earlier"} == boots_of(log.read(host).facts)


def test_a_boot_that_began_in_the_newer_file_ends_there() -> None:
    host = host_of(syslog=lines(START, XID.format(3)), syslog__1=lines(XID.format(2)), syslog__2=lines(XID.format(1)))
    facts = log.read(host).facts

    assert {"3": None, "2": "earlier", "1": "earlier"} == boots_of(facts)
    assert {"/var/log/syslog.1", "/var/log/syslog.2", None} == {event.source for event in facts.events}


def test_two_boots_in_the_newer_file_leave_none_to_the_older() -> None:
    host = host_of(syslog=lines("[  9.000000] a", "[  1.000000] b"), syslog__1=lines(XID.format(2)))
    assert {"2": "earlier"} == boots_of(log.read(host).facts)


def test_a_rotated_log_alone_is_no_log_of_this_boot() -> None:
    """The newest file is missing."""
    reading = log.read(host_of(syslog__1=lines(XID.format(2))))

    assert {"2": "earlier"} == boots_of(reading.facts)
    assert "log-unread" == getattr(reading.missing, "code", None)
    with pytest.raises(Exception, match="kmsg"):
        log.read(host_of(syslog__1=lines("usb 1-1: x")))


def test_an_unread_part_is_no_pass() -> None:
    reading = log.read(host_of(syslog=lines(START), syslog__1__gz=gzip.compress(b"x")[:-4]))
    assert "log-unread" == getattr(reading.missing, "code", None)


def test_files_that_somebody_saved_are_told_by_their_names(tmp_path: Path) -> None:
    (tmp_path / "dmesg.txt").write_text(f"[    0.000000] {START}\n[   12.000000] {XID.format(3)}\n")
    (tmp_path / "messages-20260101").write_text(lines(XID.format(1), XID.format(3)))
    (tmp_path / "syslog.1").write_text(lines(XID.format(2)))
    host = open_source(str(tmp_path))
    assert isinstance(host, TreeHost)
    events = {event.code: (event.boot, event.source) for event in log.read(host).facts.events}

    assert {"3": (None, None), "1": ("earlier", "messages-20260101"), "2": ("earlier", "syslog.1")} == events
    assert host.saved is not None
    read_as = {file.name: (file.read_as, file.reason) for file in host.saved.list_files()}
    assert ("earlier kernel log", None) == read_as["messages-20260101"] == read_as["syslog.1"]


def test_services_are_read_from_the_same_files() -> None:
    line = f"Feb  1 10:00:00 n1 {FM}\n"
    host = host_of(syslog=f"{line}{lines('x')}", fabricmanager__log=f"[Feb 01 2026 10:00:00] [ERROR] {FM[21:]}\n")
    (event,) = services.read(host).facts.events
    (first,) = services.read(host_of(syslog__1=line, syslog=lines(START))).facts.events

    assert ("fm-topology", "/var/log/fabricmanager.log", None) == (event.code, event.source, event.boot)
    assert "earlier" == first.boot


def sos(tmp_path: Path, **members: bytes | str) -> TreeHost:
    """A sosreport; two underscores are a slash, three a dot."""
    place = tmp_path / "sosreport-n1.tar.gz"
    with tarfile.open(place, "w:gz") as archive:
        for name, content in {"sos_commands__kernel__lsmod": "a 1 0\n", **members}.items():
            data = content.encode() if isinstance(content, str) else content
            member = tarfile.TarInfo(f"sosreport-n1/{name.replace('___', '.').replace('__', '/')}")
            member.size = len(data)
            archive.addfile(member, BytesIO(data))
    host = open_source(str(place))
    assert isinstance(host, TreeHost)
    return host


def test_logs_of_a_sosreport(tmp_path: Path) -> None:
    noise = lines("usb 1-1: x") * 100_000
    older = gzip.compress(lines(XID.format(1)).encode())
    host = sos(
        tmp_path,
        **{
            "var__log__messages": f"{lines(START)}{noise}{lines(XID.format(3))}",
            "var__log__messages-20260101": lines(XID.format(2)),
            "var__log__messages-20260101___gz": older,
            "var__log__secure": "secret",
            "var__log__fabricmanager___log": f"[Feb 01 2026 10:00:00] [ERROR] {FM[21:]}\n",
        },
    )

    assert {"3": None, "2": "earlier", "1": "earlier"} == boots_of(log.read(host).facts)
    assert ["fm-topology"] == [event.code for event in services.read(host).facts.events]
    with pytest.raises(Exception, match="no probe asks for"):
        host.read("/var/log/secure")


def test_journals_of_services_in_a_sosreport(tmp_path: Path) -> None:
    host = sos(
        tmp_path,
        **{
            "sos_commands__nvidia__journalctl_--no-pager_--unit_nvidia-fabricmanager": f"Feb  1 10:00:00 n1 {FM}\n",
            "sos_commands__systemd__systemctl_status_--all": "● openibd.service - x\n   Active: failed (Result: x)\n",
            "sos_commands__x__journalctl_--no-pager_--unit_sshd": f"Feb  1 10:00:00 n1 {FM}\n",
        },
    )
    facts = services.read(host).facts

    assert {("openibd", "failed")} == {(service.name, service.state) for service in facts.services}
    assert {("nvidia-fabricmanager", "fm-topology"), ("openibd", "failed")} == {
        (e.subject, e.code) for e in facts.events
    }


def test_a_log_of_a_sosreport_that_is_too_long_is_named(tmp_path: Path) -> None:
    host = sos(tmp_path, var__log__messages=b"x" * OUTPUT_LIMIT_BYTES, var__log__syslog=lines(START))
    missing = log.read(host).missing

    assert "log-unread" == getattr(missing, "code", None)
    assert "/var/log/messages" in str(missing)


def test_a_log_of_a_service_that_cannot_be_read_is_a_gap_of_the_services_alone() -> None:
    """Rules about the kernel log go on without it."""
    host = host_of(fabricmanager__log=b"x" * OUTPUT_LIMIT_BYTES, syslog=f"{lines(START)}Feb  1 10:00:00 n1 {FM}\n")
    missing = services.read(host).missing

    assert "service-log-unread" == getattr(missing, "code", None)
    assert log.read(host).missing is None
