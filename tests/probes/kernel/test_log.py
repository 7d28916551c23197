"""The kernel's log: every form in which it is printed, every message that is an event, and what is not believed."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from probes.host.interface import Absent, Denied, Failed, ReadError
from probes.kernel import log as kernel_log
from probes.kernel import log_events
from probes.kernel.log_events import CODES_LIMIT, EVENTS_LIMIT, events
from probes.kernel.log_facts import KernelLogFacts, LogEvent
from probes.kernel.log_lines import LINE_CHARACTERS, keep_read_lines, lines, split_boots
from probes.sources.identify import identify_command
from tests.probes.machine import Machine

XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=7, name=python3, GPU has fallen off the bus."
BOOT = 1_700_000_000


def log_host(
    log: bytes | ReadError, outputs: Mapping[tuple[str, ...], str] | None = None, live: bool = False
) -> Machine:
    """A host that has a log, or none."""
    host = Machine(live=live).put({"/proc/stat": f"btime {BOOT}\n"})
    if isinstance(log, ReadError):
        host.refused["/dev/kmsg"] = log
    else:
        host.put({"/dev/kmsg": log})
    for argv, text in (outputs or {}).items():
        host.says(*argv, stdout=text)
    return host


def found(text: str) -> list[LogEvent]:
    return events(lines(text, BOOT))[0]


@pytest.mark.parametrize(
    ("line", "at", "logged"),
    [
        pytest.param(f"4,12,12500000,-;{XID}", "2023-11-14T22:13:32Z", None, id="record"),
        pytest.param(f"4,12,12500000,-,caller=T7;{XID}", "2023-11-14T22:13:32Z", None, id="record with a caller"),
        pytest.param(f"[   12.500000] {XID}", "2023-11-14T22:13:32Z", None, id="dmesg"),
        pytest.param(f"[   12.500000][  T312] {XID}", "2023-11-14T22:13:32Z", None, id="dmesg with a thread"),
        pytest.param(f"<4>[   12.500000] {XID}", "2023-11-14T22:13:32Z", None, id="dmesg --raw"),
        pytest.param(f"kern  :warn  : [   12.500000] {XID}", "2023-11-14T22:13:32Z", None, id="dmesg -x"),
        pytest.param(f"[Fri Aug 30 11:43:09 2024] {XID}", None, "Fri Aug 30 11:43:09 2024", id="dmesg -T"),
        pytest.param(f"kern  :warn  : 2025-01-21T04:41:44,283302+01:00 {XID}", "2025-01-21T03:41:44Z", None, id="iso"),
        pytest.param(f"2025-01-21T04:41:44.283302+0100 n1 kernel: {XID}", "2025-01-21T03:41:44Z", None, id="j. iso"),
        pytest.param(f"Feb  4 05:03:41 n1 kernel: {XID}", None, "Feb  4 05:03:41", id="journal"),
        pytest.param(f"Feb  4 05:03:41 {XID}", None, "Feb  4 05:03:41", id="a date alone"),
        pytest.param(f"2026-02-08 17:16:02.125 {XID}", None, "2026-02-08 17:16:02", id="a date alone, ISO"),
        pytest.param(f"Mo 2026-02-08 17:16:02 CET n1 {XID}", None, "Mo 2026-02-08 17:16:02", id="zone and host"),
        pytest.param(f"[31.12.2026 17:16:02] {XID}", None, "31.12.2026 17:16:02", id="a date in brackets"),
        pytest.param(f"31/12/2026, 17:16:02 n1 {XID}", None, "31/12/2026, 17:16:02", id="day, month, year"),
        pytest.param(f"<4>Feb  4 05:03:41 n1 kernel: {XID}", None, "Feb  4 05:03:41", id="syslog with its priority"),
        pytest.param(f"<4>1 2025-01-21T04:41:44.28+01:00 n1 kernel - - - [68.615790] {XID}", "2025-01-21T03:41:44Z",
                     None, id="RFC 5424"),
        pytest.param(f"2025-01-21T04:41:44.28+01:00 n1 kernel - - [a@1 b=\"c\"] {XID}", "2025-01-21T03:41:44Z",
                     None, id="RFC 5424 with data"),
        pytest.param(f"april 24 16:22:15 n1 kernel: {XID}", None, "april 24 16:22:15", id="a journal in Italian"),
        pytest.param(f"Sep 19 16:18:02 n1 kernel: [68183.615790] {XID}", None, "Sep 19 16:18:02", id="syslog"),
        pytest.param(f"user: warning: [2024-08-30T11:43:09.123456789Z]: {XID}",
                     "2024-08-30T11:43:09Z", None, id="Talos"),
        pytest.param(f"172.20.0.2: kern:    info: [2024-08-30T11:43:09.1Z]: {XID}", "2024-08-30T11:43:09Z", None,
                     id="Talos, with the node"),
        pytest.param(f"[Jan21 10:02] {XID}", None, "Jan21 10:02", id="dmesg -H"),
        pytest.param(f"[Jan21 10:02] x\n[  +0.500000] y\n[  +0.250000] {XID}", None, "Jan21 10:02 +0.750 s",
                     id="dmesg -H, a later line"),
        pytest.param(f"[\u4e94 11\u6708 15 10:59:09 2019] {XID}", None, "\u4e94 11\u6708 15 10:59:09 2019",
                     id="dmesg -T in Chinese"),
        pytest.param(f"11\u6708 16 04:38:20 n1 kernel: {XID}", None, "11\u6708 16 04:38:20", id="a journal in Chinese"),
        pytest.param(f"ao\u00fbt 25 19:38:04 n1 kernel: {XID}", None, "ao\u00fbt 25 19:38:04", id="in French"),
        pytest.param(f"\u043d\u043e\u044f 11 10:00:00 n1 kernel: {XID}", None, "\u043d\u043e\u044f 11 10:00:00",
                     id="in Russian"),
        pytest.param(f"  Sep 19 16:18:02 kernel: {XID}", None, "Sep 19 16:18:02", id="without a host, indented"),
        pytest.param(f"kernel: {XID}", None, None, id="without a time"),
        pytest.param(XID, None, None, id="bare"),
    ],
)  # fmt: skip
def test_a_message_is_found_in_every_form(line: str, at: str | None, logged: str | None) -> None:
    """The time where the form gives one, and else what the log says of it."""
    (event,) = found(line + "\n")

    assert ("xid", "0000:3b:00.0", "79", at, logged) == (event.kind, event.subject, event.code, event.at, event.logged)
    assert event.text.startswith("NVRM: Xid")


HEALTH = "mlx5_core 0000:3b:00.0: device's health compromised - reached miss count"


@pytest.mark.parametrize(
    "form",
    [
        "09:21:33 {}", "[2026-02-08 17:16:02] {}", "<4>1 2026-02-08T17:16:02Z n1 kernel - - - {}", "(12.500000) {}",
        "n1: Feb  4 05:03:41 n1 kernel: {}", "| [ 12.500000] {} |", "- {}", "3. {}", "WARN: {}",
        "INFO - INFO - [ 12.500000] {}", "kernel:[ 12.500000] {}",
        '{{"MESSAGE":"{}","_TRANSPORT":"kernel","PRIORITY":"3"}}', 'level=error msg="{}" source=kmsg',
    ],
)  # fmt: skip
def test_a_line_of_a_driver_is_read_behind_whatever_a_collector_puts_before_it(form: str) -> None:
    """A driver and the address of its device are what no program writes; what stands around them is not its text."""
    text = form.format(HEALTH) + "\n"
    (event,) = found(text)

    assert (("dmesg",),) == identify_command(text)
    assert ("0000:3b:00.0", HEALTH) == (event.subject, event.text)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(f"12,5,1000000,-;{XID}", id="a record that a program wrote"),
        pytest.param(f"Feb  4 05:03:41 n1 python3[77]: {XID}", id="a line of a program in the journal"),
        pytest.param(f"2025-01-21T04:41:44+0000 n1 logger[77]: {XID}", id="a line of a program, ISO time"),
        pytest.param("6,5,1000000,-;nvidia-nvswitch2: open (major=510)", id="noise"),
        pytest.param(
            "7,5,1,-;nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected invalid context, skipping",
            id="a process died with its memory pinned",
        ),
        pytest.param("[ 1.0] bnxt_en 0000:c4:00.0: 63.008 Gb/s available PCIe bandwidth (8.0 GT/s x8 link)", id="x"),
        pytest.param(
            "mlx5_core 0000:13:00.0: mlx5_pcie_event:297:(pid 11): PCIe slot power capability was not advertised.",
            id="slot power unknown",
        ),
        pytest.param("[ 1.000000] pcieport 10000:e0:06.0: AER: can't find device of IDe100", id="no device"),
    ],
)  # fmt: skip
def test_what_says_nothing_is_no_event(line: str) -> None:
    """Anybody may write a line that looks like the kernel's; and a healthy boot is full of words."""
    assert [] == found(line)


@pytest.mark.parametrize(
    ("text", "kind", "subject", "code", "detail"),
    [
        (
            "NVRM: Xid (PCI:0018:01:00): 145, pid=8, name=ray, RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x04 0x08)",
            "xid", "0018:01:00.0", "145", {"unit": "RLW_RXPIPE", "severity": "Nonfatal", "link": "13"},
        ),
        (
            "NVRM: Xid (PCI:0000:dc:00): 45, pid=1, name=p, Ch 00000001 caused by previous Xid 149",
            "xid", "0000:dc:00.0", "45", {"previous": "149"},
        ),
        (
            "NVRM: Xid (PCI:0000:dc:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot)",
            "xid", "0000:dc:00.0", "154", {"before": "0x0 (None)", "after": "0x2 (Node Reboot)"},
        ),
        (
            "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 24007, Fatal, Link 44 sourcetrack timeout error",
            "sxid", "0000:c1:00.0", "24007", {"switch": "nvidia-nvswitch3", "severity": "Fatal", "link": "44"},
        ),
        (
            "pcieport 0000:15:01.0: DPC: containment event, status:0x1f01 source:0x0000",
            "dpc", "0000:15:01.0", "containment", {"status": "0x1f01"},
        ),
        ("pcieport 0000:15:01.0: pciehp: Slot(21): Link Down", "hotplug", "0000:15:01.0", "Link Down", {"slot": "21"}),
        (
            "pci 0000:8b:00.0: 252.048 Gb/s available PCIe bandwidth, limited by 16.0 GT/s PCIe x16 link "
            "at 0000:87:00.0 (capable of 504.112 Gb/s with 32.0 GT/s PCIe x16 link)",
            "pcie_bandwidth", "0000:8b:00.0", None,
            {"available": "252.048", "limit": "16.0 GT/s PCIe x16", "hop": "0000:87:00.0", "capable": "504.112"},
        ),
        (
            "mlx5_core 0000:5c:00.0: mlx5_pcie_event:299:(pid 2): Detected insufficient power on the PCIe slot (27W).",
            "mlx5", "0000:5c:00.0", "slot-power", {"watts": "27"},
        ),
        (
            "mlx5_core 0000:5c:00.0: poll_health:826:(pid 0): device's health compromised - reached miss count",
            "mlx5", "0000:5c:00.0", "health", {"what": "device's health compromised"},
        ),
        (
            "mlx5_core 0000:5c:00.0: device's health compromised - reached miss count",
            "mlx5", "0000:5c:00.0", "health", {"what": "device's health compromised"},
        ),
        (
            "mlx5_core 0000:5c:00.0: mlx5_health_try_recover:326: health recovery failed",
            "mlx5", "0000:5c:00.0", "health", {"what": "health recovery failed"},
        ),
        (
            "bnxt_en 0000:c4:00.0 net00: Firmware reset aborted, rc = -110", "nic_firmware", "0000:c4:00.0",
            "reset-failed", {"what": ", rc = -110"},
        ),
        (
            "mlx5_core 0000:5c:00.0: Port module event[error]: module 0, Cable error, High Temperature",
            "mlx5", "0000:5c:00.0", "module", {"module": "0", "what": "Cable error, High Temperature"},
        ),
        (
            "mlx5_core 0000:5c:00.0: port_module:252:(pid 0): Port module event[error]: module 0, Cable error, "
            "Power budget exceeded",
            "mlx5", "0000:5c:00.0", "module", {"module": "0", "what": "Cable error, Power budget exceeded"},
        ),
        (
            "mlx5_core 0000:05:00.0: mlx5_cmd_out_err:838:(pid 9): ACCESS_REG(0x805) op_mod(0x1) failed, status bad",
            "mlx5", "0000:05:00.0", "access-reg", {"register": "0x805"},
        ),
        (
            "amdgpu 0000:9d:00.0: {1}socket: 6, die: 1, 3 new correctable hardware errors detected in xgmi_wafl block",
            "amd_ras", "0000:9d:00.0", "xgmi_wafl", {"socket": "6", "severity": "correctable"},
        ),
        (
            "amdgpu 0000:46:00.0: amdgpu: socket: 3, die: 0, 7 new uncorrectable hardware errors detected in umc "
            "block, no user action is needed",
            "amd_ras", "0000:46:00.0", "umc", {"socket": "3", "severity": "uncorrectable"},
        ),
        (
            "amdgpu 0000:46:00.0: amdgpu: {88} socket: 3, die: 0, 9 deferred hardware errors detected in total in umc "
            "block", "amd_ras", "0000:46:00.0", "umc", {"socket": "3", "severity": "deferred"},
        ),
        (
            "amdgpu 0000:46:00.0: 2 uncorrectable hardware errors detected in gfx block",
            "amd_ras", "0000:46:00.0", "gfx", {"severity": "uncorrectable"},
        ),
        ("amdgpu 0000:dd:00.0: amdgpu: VRAM is lost due to GPU reset!", "amd_vram_lost", "0000:dd:00.0", None, {}),
        ("amdgpu 0000:dd:00.0: amdgpu: Saved bad pages 129 reaches threshold value 128",
         "amd_bad_pages", "0000:dd:00.0", None, {}),
        ("mlx5_core 0000:ab:00.0 mlx5_5: Port: 1 Link DOWN", "link_down", "0000:ab:00.0", None, {"name": "mlx5_5"}),
        ("mlx5_core 0000:ab:00.0 mlx5_5: Port: 1 Link ACTIVE", "link_up", "0000:ab:00.0", None, {"name": "mlx5_5"}),
        ("mlx5_core 0000:2e:00.0 ens1f0np0: Link down", "link_down", "0000:2e:00.0", None, {"name": "ens1f0np0"}),
        ("bnxt_en 0000:c4:00.0 net00: NIC Link is Down", "link_down", "0000:c4:00.0", None, {"name": "net00"}),
        (
            "nvidia_peermem: disagrees about version of symbol ib_register_peer_memory_client",
            "peermem", None, "symbol", {"module": "nvidia_peermem", "symbol": "ib_register_peer_memory_client"},
        ),
    ],
)  # fmt: skip
def test_a_message_is_an_event(
    text: str, kind: str, subject: str | None, code: str | None, detail: dict[str, str]
) -> None:
    """Device, code, and what else the line says."""
    (event,) = found(f"[   12.500000] {text}\n")

    assert (kind, subject, code, detail) == (event.kind, event.subject, event.code, dict(event.detail))


def test_the_start_of_a_driver_is_an_event_after_a_failure_only() -> None:
    """Every boot has one of each NIC; a NIC that is dead reports a version of all ones."""
    start = "[  {}.000000] mlx5_core 0000:5c:00.0: firmware version: {}\n"
    failure = "[  2.000000] mlx5_core 0000:5c:00.0: poll_health:826: device's health compromised - reached miss count\n"

    assert [] == found(start.format(1, "28.39.1002"))
    dead = found(start.format(1, "28.39.1002") + failure + start.format(3, "65535.65535.65535"))
    assert ["health"] == [event.code for event in dead]
    assert ["health", "started"] == [event.code for event in found(failure + start.format(4, "28.39.1002"))]


def test_an_aer_record_is_one_event_whatever_its_bits() -> None:
    """The first line says whose and how grave, the next ones which; an unnamed one counts, too."""
    result = found(
        "[   1.000000] pcieport 0000:00:00.0: AER: Multiple Corrected error received: 0000:01:00.0\n"
        "[   1.000001] mlx5_core 0000:01:00.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer, (R)\n"
        "[   1.000002] mlx5_core 0000:01:00.0:   device [15b3:1019] error status/mask=00000041/00000000\n"
        "[   1.000003] mlx5_core 0000:01:00.0:    [ 0] RxErr                  (First)\n"
        "[   1.000004] mlx5_core 0000:01:00.0: AER:    [ 6] BadTLP\n"
        "[   2.000001] nvme 0000:02:00.0: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Transaction Layer, (\n"
        "[   3.000001] pcieport 0000:03:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (\n"
        "[   3.000002] pcieport 0000:03:00.0:    [14] Completion Timeout     (First)\n"
    )

    assert [
        ("0000:01:00.0", "RxErr", "corrected"),
        ("0000:02:00.0", None, "nonfatal"),
        ("0000:03:00.0", "Completion Timeout", "fatal"),
    ] == [(e.subject, e.code, dict(e.detail)["severity"]) for e in result]


def test_a_sentence_over_three_lines() -> None:
    """A GPU that was gone when the driver was loaded has no Xid."""
    (event,) = found(
        "[ 1843.308145] NVRM: The NVIDIA GPU 0000:b3:00.0\n"
        "               NVRM: (PCI ID: 10de:26b5) installed in this system has\n"
        "               NVRM: fallen off the bus and is not responding to commands.\n"
    )

    assert ("gpu_lost", "0000:b3:00.0") == (event.kind, event.subject)


def test_equal_lines_are_one_event() -> None:
    """The first time and the last; a row of its own for each code, and no more rows than a report can hold."""
    log = "".join(f"4,{n},{n}000000,-;{XID}\n" for n in range(1, 6)) + f"4,9,9000000,-;{XID.replace('79', '45')}\n"
    (gone, other) = found(log)

    assert (5, "2023-11-14T22:13:21Z", "2023-11-14T22:13:25Z") == (gone.count, gone.first_at, gone.at)
    assert ("45", 1, None) == (other.code, other.count, other.first_at)
    many, left_out = events(lines("".join(f"NVRM: Xid (PCI:{n:04x}:01:00): 79\n" for n in range(CODES_LIMIT + 7)), 0))
    assert (CODES_LIMIT, 7) == (len(many), left_out)


def test_details_of_many_links_hide_no_other_code() -> None:
    """One fault of a fabric is a line per link and unit of every GPU; what a GPU says after it is still an event."""
    units = [f"U{unit:02d}" for unit in range(40)]
    links = "".join(
        f"4,{n},{n}000000,-;{XID.replace('79', '145')} {unit} Nonfatal XC0 i0 Link {link:02d} (0x1 0x2)\n"
        for n, (unit, link) in enumerate((unit, link) for unit in units for link in range(18))
    )
    many, left_out = events(lines(f"{links}4,9999,9999000000,-;{XID}\n", 0))

    assert (EVENTS_LIMIT + 1, 40 * 18 - EVENTS_LIMIT) == (len(many), left_out)
    assert ["145", "79"] == sorted({str(event.code) for event in many})


def test_hostile_lines_end() -> None:
    """Long, empty, binary, with times that are none."""
    text = (
        "[" * 100_000
        + "\n"
        + "\x00\n\n"
        + f"4,1,{'9' * 18},-;{XID}\n"
        + f"[999999999.000000] {XID}\n"
        + XID
        + "x" * 9999
    )
    result = found(text)

    assert {"0000:3b:00.0"} == {event.subject for event in result}
    assert all(len(event.text) <= LINE_CHARACTERS for event in result)


def test_the_log_is_read_where_it_may_be() -> None:
    """Whole from sequence number 0 on; the oldest line that is left says since when."""
    reading = kernel_log.read(log_host(f"6,0,0,-;Linux version\n4,1,12500000,-;{XID}\n".encode(), live=True))
    cut = kernel_log.read(log_host(f"6,77,5000000,-;late\n4,78,12500000,-;{XID}\n".encode(), live=True))

    assert isinstance(reading.facts, KernelLogFacts)
    assert ("/dev/kmsg", "2023-11-14T22:13:20Z", True, None) == reading.facts[1:]
    assert reading.missing is None
    assert cut.facts.whole is False
    assert "overwritten" in (cut.missing or "")


JOURNAL = ("journalctl", "-k", "-b", "-q", "--no-pager", "-o", "short-iso-precise")


def test_the_journal_where_the_log_is_denied() -> None:
    """An ordinary user may be in its group; who may read neither is told why, and what would help."""
    denied = Denied("/dev/kmsg: needs CAP_SYSLOG (root)", "EPERM")
    line = f"2026-01-15T08:00:01.123456+0000 n1 kernel: {XID}\n"
    reading = kernel_log.read(log_host(denied, {JOURNAL: line}, live=True))

    assert ("journalctl -k -b -q --no-pager -o short-iso-precise", None) == (reading.facts.source, reading.facts.whole)
    assert ["79"] == [event.code for event in reading.facts.events]
    for outputs in ({}, {JOURNAL: "\n"}):
        with pytest.raises(Denied, match="CAP_SYSLOG"):
            kernel_log.read(log_host(denied, outputs, live=True))


def test_saved_outputs_of_another_host() -> None:
    """dmesg of a folder; a source without any says so."""
    reading = kernel_log.read(
        log_host(Absent("no /dev/kmsg"), {("dmesg",): f"[    0.000000] Linux\n[ 1.000000] {XID}\n"})
    )

    assert ("dmesg", True, 1) == (reading.facts.source, reading.facts.whole, len(reading.facts.events))
    with pytest.raises(Absent):
        kernel_log.read(log_host(Absent("no /dev/kmsg")))
    with pytest.raises(Absent):
        kernel_log.read(log_host(b"\n\n"))


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("dmesg: read kernel buffer failed: Operation not permitted\n", Denied, "Operation not permitted"),
        ("dmesg: klogctl: Operation not permitted\n", Denied, "Operation not permitted"),
        ("sudo: a password is required\n", Denied, "a password is required"),
        ("[sudo] password for ada: \n", Denied, "password for ada"),
        ("bash: dmesg: command not found\n", Failed, "command not found"),
        ("<!DOCTYPE html>\n<html><body>Sign in</body></html>\n", Failed, "begins with: <!DOCTYPE html>"),
        ("-- No entries --\n", Failed, "No entries"),
    ],
)
def test_a_refused_log_is_not_a_clean_one(text: str, kind: type[Exception], words: str) -> None:
    """Its sentence is the reason; another log beside it is read."""
    refused = {("dmesg",): text}
    with pytest.raises(kind, match=words):
        kernel_log.read(log_host(Absent("no /dev/kmsg"), refused))
    with pytest.raises(Denied, match="CAP_SYSLOG"):
        kernel_log.read(log_host(Denied("needs CAP_SYSLOG"), {JOURNAL: text}, live=True))
    beside = kernel_log.read(log_host(Absent("no"), refused | {("journalctl", "-k", "-b"): f"kernel: {XID}\n"}))

    assert ("journalctl -k -b", 1) == (beside.facts.source, len(beside.facts.events))


@pytest.mark.parametrize(
    "line",
    [
        "Linux version 6.8.0-60-generic (buildd@x)",
        "ACPI: PM: Power Resource",
        "BIOS-e820: [mem 0x0-0x9ffff] usable",
        "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.86.15",
        "mlx5_core 0000:5c:00.0: firmware version: 28.39.1002",
        "pcieport 0000:15:01.0: PME: Signaling with IRQ 33",
    ],
)
def test_a_log_without_times_is_one(line: str) -> None:
    """dmesg -t prints none: what only a kernel writes tells."""
    assert () == kernel_log.read(log_host(Absent("no /dev/kmsg"), {("dmesg",): f"{line}\nx: y\n"})).facts.events


@pytest.mark.parametrize("level", ["", "kern  :err   : "])
def test_colours_of_dmesg_are_no_text(level: str) -> None:
    """dmesg --color=always paints the time, the subsystem and what is grave."""
    head, text = XID.split(" ", 1)
    (event,) = found(f"{level}\x1b[32m[   12.500000] \x1b[0m\x1b[33m{head} \x1b[0m\x1b[31m{text}\x1b[0m\n")

    assert ("79", "2023-11-14T22:13:32Z", XID) == (event.code, event.at, event.text)


def test_a_saved_log_that_is_too_long_is_not_called_absent() -> None:
    """The reason names it."""

    for log, kind, words in (
        (NOT_THERE, Failed, "longer than 16 MiB"),
        (Denied("needs root", "EPERM"), Denied, "root"),
    ):
        host = log_host(log)
        host.outputs["dmesg",] = Failed("dmesg.txt: longer than 16 MiB", "EFBIG")
        with pytest.raises(kind, match=words):
            kernel_log.read(host)


AGAIN = "NVRM: Xid (PCI:0000:3b:00): 48, pid=7, name=p, DBE (double bit error)"
FIRST_BOOT = f"Nov 15 10:00:00 n1 kernel: [   90.000000] {XID}\n"
NEXT_BOOT = f"Nov 17 10:00:00 n1 kernel: [    1.000000] {AGAIN}\n"
NOT_THERE = Absent("no /dev/kmsg")


def test_logs_of_earlier_boots_are_told_by_boot() -> None:
    """The journal by its number, a file by its place; one line in two logs is one event."""
    host = log_host(
        NOT_THERE,
        {
            ("dmesg",): "[    0.000000] Linux version 6.8\n",
            ("journalctl", "-b", "-1"): f"Nov 16 04:38:20 n1 kernel: {XID}\n",
        },
    )
    host.put(
        {
            "/var/log/kern.log": f"{FIRST_BOOT}Nov 15 10:00:00 n1 kernel: [   95.000000] {AGAIN}\n"
            f"Nov 17 10:00:00 n1 kernel: [    1.000000] {XID}\n"
        }
    )
    reading = kernel_log.read(host)

    assert [("79", "-1", "journalctl -b -1"), ("48", "earlier", "/var/log/kern.log")] == [
        (event.code, event.boot, event.source) for event in reading.facts.events
    ]
    assert reading.missing is None


def test_a_file_fills_what_the_first_log_lost() -> None:
    """The ring of this boot was overwritten: the last boot of a file is this one."""
    host = log_host(NOT_THERE, {("dmesg",): "[  900.000000] x\n"})
    host.put({"/var/log/syslog": FIRST_BOOT + NEXT_BOOT})

    events_of = {event.code: event.boot for event in kernel_log.read(host).facts.events}

    assert events_of == {"79": "earlier", "48": None}


def test_a_file_alone_is_the_log_of_its_last_boot() -> None:
    """Where no dmesg was saved."""
    host = log_host(NOT_THERE)
    host.put({"/var/log/messages": FIRST_BOOT + NEXT_BOOT})
    facts = kernel_log.read(host).facts

    assert ("/var/log/messages", [("48", None), ("79", "earlier")]) == (
        facts.source, [(event.code, event.boot) for event in facts.events],
    )  # fmt: skip


def test_a_log_that_could_not_be_read_is_a_gap_with_a_code() -> None:
    """No rule passes then."""
    host = log_host(NOT_THERE, {("dmesg",): "[    0.000000] x\n"})
    host.put({"/var/log/kern.log": ""}).refused["/var/log/kern.log"] = Failed("cut", "EIO")
    missing = kernel_log.read(host).missing

    assert ("/var/log/kern.log: cut", "log-unread") == (missing, getattr(missing, "code", None))


def test_a_live_host_is_read_once() -> None:
    """Its other logs are its own business."""
    host = log_host(b"6,0,1,-;x\n", live=True)
    host.put({"/var/log/kern.log": FIRST_BOOT})

    assert () == kernel_log.read(host).facts.events


def test_a_sentence_of_two_lines_is_of_the_gpu_that_its_first_line_names() -> None:
    """Of the driver's name the date, too, where the second line has none; the next GPU is another matter."""
    log = (
        "Jul 01 22:55:07 n1 kernel: NVRM: The NVIDIA GPU 0000:01:00.0 (PCI ID: 10de:2b85)\n"
        "                           NVRM: installed in this system requires use of the NVIDIA open kernel modules.\n"
        "Jul 01 22:55:08 n1 kernel: NVRM: request_mem_region failed for 16M @ 0x0. This can\n"
    )
    record = (
        log.split(": ", 1)[1].split("\n")[0] + "\\x0aNVRM: installed requires use of the NVIDIA open kernel modules."
    )

    assert [("open-modules", "0000:01:00.0", "Jul 01 22:55:07"), ("registers-taken", None, "Jul 01 22:55:08")] == [
        (event.code, event.subject, event.logged) for event in found(log)
    ]
    assert [("open-modules", "0000:01:00.0")] == [(e.code, e.subject) for e in found(f"3,9,500,-;{record}\n")]


def test_the_name_of_an_rdma_device_leads_to_its_address() -> None:
    """Where another line of the driver has both."""
    log = "infiniband bnxt_re0: Couldn't start port\nbnxt_en 0003:02:00.0 bnxt_re0: Failed to destroy HW QP\n"
    event, _ = found(log)

    assert ("0003:02:00.0", (("name", "bnxt_re0"),)) == (event.subject, event.detail)


def test_a_very_long_log_keeps_every_line_that_is_an_event() -> None:
    """What is left out cannot be one: the events are the same, also of records of several lines."""
    noise = "".join(f"[{number:12.6f}] usb {number}-1: new device\n" for number in range(60))
    log = (
        f"{noise}[  100.000000] nvme 0000:02:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Data, x\n"
        "[  100.000001] nvme 0000:02:00.0:    [ 5] SDES\n[  100.000002] nvme 0000:02:00.0:    [14] CmpltTO (First)\n"
        f"{noise}[  200.000000] {XID}\n[  200.000001] infiniband bnxt_re0: Couldn't start port\n"
        "[  200.000002] bnxt_en 0003:02:00.0 bnxt_re0: Failed to destroy HW QP\n[    0.000000] Linux version 6.8"
    )
    kept = keep_read_lines(log.encode()).decode()

    assert found(log) == found(kept)
    assert len(found(kept)) == 4
    assert len(split_boots(kept)) > 1
    assert kept.count("usb") < 60
    assert kept.startswith(log[:500])


@pytest.mark.parametrize(
    ("begin", "logged"),
    [
        ("[ 123.4] ", "+123.400 s"),
        ("[  123.456789] [ T77] ", "+123.457 s"),
        ("n7: [  123.456789] ", "+123.457 s"),
        ("[Nov 3 10:11] ", "Nov 3 10:11"),
        ("Nov 3 2026 10:11:12 n7 kernel: ", "Nov 3 2026 10:11:12"),
        ("2026-11-03 10:11:12 n7 kernel: ", "2026-11-03 10:11:12"),
        ("Tue 2026-11-03 10:11:12 UTC n7 kernel: ", "Tue 2026-11-03 10:11:12"),
        ("n7 kernel: ", None),
    ],
)
def test_further_forms_of_dates(begin: str, logged: str | None) -> None:
    """Also in a text that has words above it."""
    text = f"Hi,\n{begin}mlx5_core 0000:3b:00.0: health recovery failed\n"
    (event,) = events(lines(text, None))[0]

    assert ("0000:3b:00.0", logged) == (event.subject, event.logged)
    assert (("dmesg",),) == identify_command(text)


@pytest.mark.parametrize(
    "text", ["INFO: task cp:9 blocked for more than 120 seconds.\n", "EDAC MC1: 1 UE x on DIMM#0\n"]
)
def test_lines_that_the_kernel_alone_writes_need_no_date(text: str) -> None:
    assert (("dmesg",),) == identify_command(text)


@pytest.mark.parametrize(
    "text",
    [
        "[ 12.5] epoch 3: loss 0.1\n",
        "10:11:12 INFO nvidia: all is well\n",
        "n1:7:7 [0] NCCL INFO x\n[ 12.5] mlx5_core 0000:3b:00.0: x\n",
    ],
)
def test_other_logs_are_none_of_the_kernel(text: str) -> None:
    assert () == identify_command(text)


def test_of_a_flood_of_one_line_its_ends_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another device, error or code between them is another line, however many repeat around it."""
    monkeypatch.setattr("probes.kernel.log_lines._FLOOD_BYTES", 1000)
    monkeypatch.setattr("probes.kernel.log_lines._ENDS", 5)
    flood = [
        f"[{n}.100000] NVRM: Xid (PCI:0000:1b:00): 31, pid={n + 10000}, name=python, Ch 0x{n:08x}" for n in range(99)
    ]
    rare = [
        "[50.200000] NVRM: Xid (PCI:0000:1b:00): 79, pid=10050, name=python, GPU has fallen off the bus.",
        "[50.300000] NVRM: Xid (PCI:0000:2a:00): 31, pid=10050, name=python, Ch 0x00000050",
        "2026-11-02T10:00:00 n7 kernel: NVRM: Xid (PCI:0000:1b:00): 48, pid=10050",
    ]
    log = "\n".join([*flood[:50], *rare, *flood[50:]])

    assert [*flood[:5], *rare, *flood[-5:]] == keep_read_lines(log.encode()).decode().splitlines()
    monkeypatch.setattr("probes.kernel.log_lines._FLOOD_BYTES", 1 << 20)
    assert log == keep_read_lines(log.encode()).decode()


def test_a_flood_of_one_line_takes_no_time_from_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its middle is counted and not read; what else is in the log is an event, and each count is the true one."""
    monkeypatch.setattr("probes.kernel.log_lines._ENDS", 5)
    read: list[str] = []
    plain = log_events._plain
    monkeypatch.setattr(log_events, "_plain", lambda line: read.append(line.text) or plain(line))
    flood = [f"[{n}.100000] mlx5_core 0000:3b:00.0: firmware timeout 0x{n:08x}, no answer" for n in range(200)]
    xid = "[50.200000] NVRM: Xid (PCI:0000:1b:00): 79, pid=10050, name=python, GPU has fallen off the bus."
    (repeated, gone) = sorted(found("\n".join([*flood[:90], xid, *flood[90:]])), key=lambda event: event.kind == "xid")

    assert (200, "79", 1) == (repeated.count, gone.code, gone.count)
    assert len(read) < 40


def test_of_ever_other_lines_the_first_and_the_last_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the log is no lost one where they take longer than a scan may; what is left out is counted."""
    monkeypatch.setattr(log_events, "LINES_LIMIT", 10)
    rows = [f"[{n}.100000] NVRM: Xid (PCI:0000:1b:00): {n}, pid=1" for n in range(30)]
    read, left_out = events(lines("\n".join(rows), None))

    assert [*map(str, range(5)), *map(str, range(25, 30))] == [event.code for event in read]
    assert 20 == left_out
