"""What people paste of the board: the BMC's log and sensors, filtered lists of PCI, lines of a log without a date."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.outputs.text.findings import render_findings
from probes.tool_reports import bmc
from tests.agent.rules.test_fragments import scan_text, warnings_of

SEL = "{id:4} | {at} | 10:00:0{n} | {what} | {state}\n"


def sel(*rows: str, at: str = "03/01/2025", state: str = "Asserted") -> str:
    return "".join(SEL.format(id=n, at=at, n=n, what=what, state=state) for n, what in enumerate(rows, 1))


HOT = "Temperature GPU4 Temp | Upper Critical going high"
FATAL = "Critical Interrupt PCIe Err | Bus Fatal Error"
RACADM = (
    "Record:      {n}\nDate/Time:   03/03/2025 10:11:12\nSeverity:    {severity}\nDescription: {what}\n-----------\n"
)
REDFISH = (
    '{{"Members": [{{"@odata.type": "#LogEntry.v1_9_0.LogEntry", "Severity": "{severity}", "Created": '
    '"2025-05-01T10:00:00+00:00", "Message": "The resource property GPU_SXM_5 has detected errors", "Links": '
    '{{"OriginOfCondition": {{"@odata.id": "/redfish/v1/Chassis/HGX_GPU_SXM_5"}}}}}}]}}\n'
)
ACS = "\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir{} CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-\n"
ACS_OF_ONE = f"# lspci -s e0:01.1 -vvv | grep -i acsctl\n{ACS.format('+')}"
TRANSLATED = "$ dmesg | grep iommu\n[    0.412233] iommu: Default domain type: Translated\n"
LINK = "\t\tLnkSta:\tSpeed 32GT/s (ok), Width {}\n"
GPU, OTHER = "GPU 00000000:18:00.0\n", "GPU 00000000:2A:00.0\n"
REMAPPED = "        Remapping Failure Occurred        : {}\n"
SLOW = "        HW Slowdown                       : {0}\n            HW Thermal Slowdown           : {0}\n"
WIDTH = (
    "            Link Width\n                Max                       : 16x\n"
    "                Current                   : {}x\n"
)
CHASSIS = (
    "$ ipmitool chassis status\nSystem Power         : on\nMain Power Fault     : false\nCooling/Fan Fault    : {}\n"
)
REDFISH_ARGUMENTS = (
    '{\n  "Members": [\n    {\n      "@odata.type": "#LogEntry.v1_13_0.LogEntry",\n'
    '      "Created": "2025-06-18T07:40:02+00:00",\n      "Message": "GPU_SXM_6 Link_4 has errors",\n'
    '      "MessageArgs": ["GPU_SXM_6 Link_4"],\n      "Severity": "Critical"\n    }\n  ]\n}\n'
)
FAULTS = {
    "a slot": (
        sel("Slot / Connector GPU5 Slot | Fault Status", "System Event | Timestamp Clock Sync"),
        {"warning tool-reports-fault GPU5 Slot low"},
    ),
    "a PCIe error": (f"$ ipmitool sel elist\n{sel(FATAL, FATAL)}", {"warning tool-reports-fault PCIe Err low"}),
    "before the clock ran": (
        "   1 |  Pre-Init  |0000198492| Critical Interrupt #0xa1 | PCI SERR | Asserted\n",
        {"warning tool-reports-fault Critical Interrupt #0xa1 low"},
    ),
    "memory of the host": (
        sel("Memory #0x87 | Correctable ECC", "Memory #0x87 | Uncorrectable ECC"),
        {"warning tool-reports-fault Memory #0x87 low"},
    ),
    "a machine check": (sel("Processor CPU1 | IERR"), {"warning tool-reports-fault CPU1 low"}),
    "heat": (sel(HOT), {"warning tool-reports-fault GPU4 Temp low"}),
    "a fan": (sel("Fan FAN_7 | Lower Critical going low"), {"warning tool-reports-fault FAN_7 low"}),
    "a supply": (sel("Power Supply PSU3 Status | Power Supply AC lost"), {
        "warning tool-reports-fault PSU3 Status low",
    }),
    "a voltage": (sel("Voltage P12V | Lower Critical going low"), {"warning tool-reports-fault P12V low"}),
    "ipmi-sel": (
        "ID  | Date        | Time     | Name             | Type                     | Event\n"
        "2   | Feb-19-2025 | 03:41:55 | GPU4 Temp        | Temperature              | Upper Critical - going high ; "
        "Sensor Reading = 94.00 C ; Threshold = 92.00 C\n",
        {"warning tool-reports-fault GPU4 Temp low"},
    ),
    "racadm": (
        RACADM.format(n=1, severity="Ok", what="Log cleared.")
        + RACADM.format(n=2, severity="Critical", what="A fatal error was detected on a component at bus 203 device 0 "
                        "function 0."),
        {"warning tool-reports-fault device 0000:cb:00.0 low"},
    ),
    "racadm, an event of no class": (
        RACADM.format(n=2, severity="Critical", what="The system board battery is missing."),
        {"warning tool-reports-fault node low"},
    ),
    "Redfish": (REDFISH.format(severity="Critical"), {"warning tool-reports-fault HGX_GPU_SXM_5 low"}),
    "ACS of one port beside the kernel's log": (
        f"{ACS_OF_ONE}\n{TRANSLATED}", {"warning gpu-p2p-redirected node low"},
    ),
    "ACS of no port beside the kernel's log": (
        f"$ lspci -vvv | grep ACSCtl\n{ACS.format('+')}{ACS.format('-')}\n{TRANSLATED}",
        {"warning tool-reports-fault node low"},
    ),
    "grep with the line of each GPU": (
        f"$ nvidia-smi -q | grep -E '^GPU|Failure'\n{GPU}{REMAPPED.format('No')}{OTHER}{REMAPPED.format('Yes')}",
        {"error gpu-remap-failed GPU@0000:2a:00.0 high"},
    ),
    "grep of slowdowns with the line of each GPU": (
        f"{GPU}{SLOW.format('Not Active')}--\n{OTHER}{SLOW.format('Active')}",
        {"error gpu-throttled GPU@0000:2a:00.0 high"},
    ),
    "grep of widths with the line of each GPU": (
        f"{GPU}{WIDTH.format(16)}--\n{OTHER}{WIDTH.format(4)}",
        {"warning pcie-width-downgraded GPU@0000:2a:00.0 low"},
    ),
    "slowdowns of some GPU": (f"    Clocks Event Reasons\n{SLOW.format('Active')}", {
        "warning tool-reports-fault node medium",
    }),
    "an action that some GPU needs": ("    GPU Recovery Action                   : Reset\n", {
        "error tool-reports-fault node medium",
    }),
    "sensors": (
        "$ ipmitool sdr\nCPU1 Temp        | 44 degrees C      | ok\nGPU2 Temp        | 95 degrees C      | cr\n",
        {"warning tool-reports-fault GPU2 Temp medium"},
    ),
    "sensors with their limits": (
        "FAN2             | 0.000      | RPM        | nr    | 500.000   | 700.000   | na | na | na | na\n",
        {"warning tool-reports-fault FAN2 medium"},
    ),
}  # fmt: skip
FAULTS |= {
    "sensors with their numbers": (
        "Fan3A            | 33h | cr  | 29.3 | 480 RPM\n",
        {"warning tool-reports-fault Fan3A medium"},
    ),
    "remapped rows of a query": (
        "gpu_bus_id, gpu_uuid, remapped_rows.pending, remapped_rows.failure\n"
        "00000000:1B:00.0, GPU-11111111, 0, 0\n00000000:43:00.0, GPU-22222222, 1, 0\n",
        {"warning gpu-remap-pending GPU@0000:43:00.0 high"},
    ),
    "a failed supply in a list of sensors": (
        "PS2 Status       | 86h | ok  | 10.2 | Presence detected, Failure detected, Power Supply AC lost\n",
        {"warning tool-reports-fault PS2 Status medium"},
    ),
    "the chassis": (CHASSIS.format("true"), {"warning tool-reports-fault Cooling/Fan Fault medium"}),
    "Redfish as curl shows it": (
        f"$ curl -sk https://bmc/redfish/v1/Systems/1/LogServices/EventLog/Entries\n{REDFISH_ARGUMENTS}",
        {"warning tool-reports-fault GPU_SXM_6 Link_4 low"},
    ),
    "fields of a query beside the number of the GPU": (
        "index, clocks_throttle_reasons.hw_thermal_slowdown, temperature.gpu\n0, Not Active, 61\n2, Active, 92\n",
        {"error gpu-throttled GPU2 high"},
    ),
    "ACS beside GPUs that may copy to each other": (
        f"$ nvidia-smi topo -p2p r\n \tGPU0\tGPU1\n GPU0\tX\tOK\n GPU1\tOK\tX\n{ACS_OF_ONE}\n{TRANSLATED}",
        {"warning gpu-p2p-redirected node low"},
    ),
    "an Xid without the name of the driver": (
        "Xid (PCI:0000:c1:00): 79, pid='<unknown>', GPU has fallen off the bus.\n",
        {"critical gpu-xid device 0000:c1:00.0 high"},
    ),
}
HEALTHY = {
    "a supply in a list of sensors": "PS2 Status       | 86h | ok  | 10.2 | Presence detected\n",
    "the chassis": CHASSIS.format("false"),
    "fields of a query": "index, clocks_throttle_reasons.hw_thermal_slowdown, temperature.gpu\n0, Not Active, 61\n",
    "starts": sel("System Boot Initiated #0x01 | Initiated by warm reset", "Power Supply PSU1 | Presence detected"),
    "what is over": sel(HOT) + sel(HOT, at="03/02/2025", state="Deasserted"),
    "redundant again": sel(*(f"Power Supply PSUs | {state}" for state in ("Redundancy Lost", "Fully Redundant"))),
    "long ago": sel(FATAL, at="03/01/2023") + sel("System Boot Initiated #0x01 | Initiated by power up"),
    "corrected": sel("Memory #0x87 | Correctable ECC"),
    "racadm": RACADM.format(n=1, severity="Ok", what="The power supply 2 is operating normally."),
    "Redfish": REDFISH.format(severity="OK"),
    "ACS of one port": ACS_OF_ONE,
    "ACS that redirects nothing": f"{ACS_OF_ONE.replace('ReqRedir+', 'ReqRedir-')}\n{TRANSLATED}",
    "ACS where the IOMMU passes through": f"{ACS_OF_ONE}\n{TRANSLATED.replace('Translated', 'Passthrough')}",
    "ACS of ports of a cut list": (
        "e0:01.1 PCI bridge: Advanced Micro Devices, Inc. [AMD] Device 14ab (rev 01)\n"
        f"\tCapabilities: [2a0 v1] Access Control Services\n{ACS.format('+')}\n{TRANSLATED}"
    ),
    "grep with the line of each GPU": f"{GPU}{REMAPPED.format('No')}{OTHER}{REMAPPED.format('No')}",
    "slowdowns of no GPU": f"    Clocks Event Reasons\n{SLOW.format('Not Active')}",
    "no action that a GPU needs": "    GPU Recovery Action                   : None\n",
    "links of a loop": f"17:00.0\n{LINK.format('x16 (ok)')}2a:00.0\n{LINK.format('x8 (downgraded)')}",
    "sensors": "CPU1 Temp        | 44 degrees C      | ok\nFAN9             | no reading        | ns\n"
    "PSU2             | 0x00              | ok\nIntrusion        | no reading        | cr\n",
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_fragment_gives_its_finding(name: str, tmp_path: Path) -> None:
    text, expected = FAULTS[name]

    report = scan_text(tmp_path, text, "issue.txt")

    assert expected == {f"{f.severity} {f.rule} {f.label} {f.confidence}" for f in warnings_of(report)}


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_fragment_gives_no_warning(name: str, tmp_path: Path) -> None:
    assert [] == warnings_of(scan_text(tmp_path, HEALTHY[name], "issue.txt"))


def test_a_log_of_the_bmc_beside_the_list_of_devices_is_a_note(tmp_path: Path) -> None:
    """Its events are older than what the devices show now."""
    (tmp_path / "ipmitool_sel_elist.txt").write_text(sel(FATAL))
    lspci = (
        "00:00.0 Host bridge: Intel Corporation Device 09a2\n17:00.0 3D controller: NVIDIA Corporation GH100 [H100]\n"
    )

    report = scan_text(tmp_path, lspci, "lspci_-vvv.txt")

    assert ["info"] == [finding.severity for finding in report.findings if finding.rule == "tool-reports-fault"]


def test_events_of_one_part_and_kind_are_counted() -> None:
    (report,) = bmc.list_log_events(sel(FATAL, FATAL, FATAL))

    assert "Bus Fatal Error, 3 times, last 03/01/2025 10:00:03" == dict(report.detail)["what"]


def test_a_port_that_redirects_is_named_in_a_note(tmp_path: Path) -> None:
    (finding,) = scan_text(tmp_path, ACS_OF_ONE, "issue.txt").findings

    assert ("gpu-p2p-redirected", "info", "low") == (finding.rule, finding.severity, finding.confidence)
    assert "at 0000:e0:01.1" in finding.summary


def test_a_loop_that_prints_addresses_states_whose_link_is_narrow(tmp_path: Path) -> None:
    loop = "$ for i in $(lspci | awk '/NVIDIA/{print $1}'); do echo $i; lspci -s $i -vvv | grep LnkSta: ; done\n"

    (finding,) = scan_text(tmp_path, loop + HEALTHY["links of a loop"], "issue.txt").findings

    assert ("pcie-width-downgraded", "pci:0000:2a:00.0", "info") == (finding.rule, finding.subject, finding.severity)


XID = "[{at:5}.000001] NVRM: Xid (PCI:0000:1a:00): {code}\n"
GSP = "119, pid=4021, name=python3, Timeout after 6s of waiting for RPC response from GPU6 GSP!"
DBE = "48, pid=1533, name=python3, DBE (double bit error) detected"
CONTAINED = "94, pid=1201, name=python3, Contained: SM (0x1). RST: No, D-RST: No"
RECOVERED = "154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"
LOADED = "[{at:5}.000001] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15\n"


def log(*lines: str) -> str:
    return "".join((line if "NVRM" in line else XID.replace("{code}", line)).format(at=100 * n + 100)
                   for n, line in enumerate(lines))  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "is_again"),
    [
        ((GSP, LOADED, GSP), True),
        ((GSP, RECOVERED, GSP), True),
        ((LOADED, GSP, GSP), False),
        ((GSP, GSP, LOADED), False),
        ((GSP, RECOVERED.replace("None", "Drain P2P"), GSP), False),
        ((GSP, RECOVERED.replace("1a", "2b"), CONTAINED), False),
    ],
    ids=["loaded again", "recovered", "loaded before", "loaded after", "not recovered", "once"],
)
def test_an_xid_that_came_again_after_a_reset_is_not_reset_once_more(
    lines: tuple[str, ...], is_again: bool, tmp_path: Path
) -> None:
    finding = next(f for f in scan_text(tmp_path, log(*lines), "dmesg.txt").findings if f.rule == "gpu-xid")

    assert is_again == ("again after a reset" in finding.summary)
    assert is_again != ("Reset the GPU" in finding.remedy)


def test_an_error_that_needs_a_reset_comes_before_one_that_ends_a_job(tmp_path: Path) -> None:
    (finding,) = scan_text(tmp_path, log(CONTAINED, DBE, CONTAINED), "dmesg.txt").findings

    assert finding.summary.startswith("Xid 48")


def test_a_mark_of_a_reset_counts_no_error_twice(tmp_path: Path) -> None:
    """The same lines in a second log, which has no line of the driver's start."""
    (tmp_path / "journalctl_-k.txt").write_text(log(GSP, GSP))

    (finding,) = scan_text(tmp_path, log(GSP, LOADED, GSP), "dmesg.txt").findings

    assert 1 == len(finding.evidence)


DOWN, UP = "mlx5_core 0000:2a:00.0 ens3np0: Link down\n", "mlx5_core 0000:2a:00.0 ens3np0: Link up\n"


def flaps(*heads: str) -> str:
    return "".join(f"{head}{line}" for head in heads for line in (DOWN, UP))


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        (flaps("", "", "", ""), "went down 4 times, by lines without a date"),
        (flaps("", "", ""), None),
        (flaps("[ 1000.000000] ", "[ 1900.000000] ", "[ 4600.000000] "), "went down 3 times within 60 min, by the log"),
        (flaps("[   20.000000] ", "[ 1900.000000] ", "[ 4600.000000] "), None),
        (flaps("[ 1000.000000] ", "[60000.000000] ", "[99000.000000] "), None),
        (flaps(*(f"Mar  3 0{n}:00:00 n7 kernel: " for n in (1, 2, 3))), "went down 3 times within 2 h, by the log"),
        (flaps(*(f"Mar  {n} 01:00:00 n7 kernel: " for n in (1, 2, 3))), None),
        (flaps(*(f"[Mon Mar  3 0{n}:00:00 2025] " for n in (1, 2, 3))), "went down 3 times within 2 h, by the log"),
    ],
    ids=["no date", "few", "a job", "a start", "rare", "syslog", "rare in syslog", "dmesg -T"],
)
def test_flaps_in_a_log_alone(text: str, summary: str | None, tmp_path: Path) -> None:
    """By the times of the log itself: when it was read is not known."""
    found = warnings_of(scan_text(tmp_path, text, "dmesg.txt"))

    assert ([("ens3np0", summary)] if summary else []) == [(f.label, f.summary) for f in found]
    assert all(("roce-link-flap", "low") == (f.rule, f.confidence) for f in found)


@pytest.mark.parametrize(
    ("text", "is_down"),
    [
        (DOWN, True),
        (UP + DOWN, False),  # in which order is not known
        (f"Mar  3 01:00:00 n7 kernel: {DOWN}", True),
        (f"Mar  3 01:00:00 n7 kernel: {UP}Mar  3 01:09:00 n7 kernel: {DOWN}", True),
        (f"Mar  3 01:00:00 n7 kernel: {DOWN}Mar  3 01:09:00 n7 kernel: {UP}", False),
        (f"[   12.000000] {DOWN}", False),
        (f"[Mon Mar  3 01:00:00 2025] Linux version 6.8.0 (gcc)\n[Mon Mar  3 09:00:00 2025] {DOWN}", False),
    ],
    ids=["alone", "no date", "syslog", "at the end", "back", "a start", "a whole log"],
)
def test_a_link_that_is_down_at_the_end_of_an_excerpt_is_a_note(text: str, is_down: bool, tmp_path: Path) -> None:
    found = [f for f in scan_text(tmp_path, text, "dmesg.txt").findings if f.rule == "roce-link-flap"]

    assert ([("ens3np0", "info", "low")] if is_down else []) == [(f.label, f.severity, f.confidence) for f in found]


def test_what_a_start_brings_is_no_flap(tmp_path: Path) -> None:
    heads = [f"[Mon Mar  3 01:0{n}:00 2025] " for n in (1, 2, 3)]
    text = f"[Mon Mar  3 01:00:00 2025] Linux version 6.8.0 (gcc)\n{flaps(*heads)}"

    assert [] == warnings_of(scan_text(tmp_path, text, "dmesg.txt"))


CABLE = "mlx5_core 0000:2a:00.0: Port module event: module 0, Cable {}\n"
PLUGGED, UNPLUGGED = CABLE.format("plugged"), CABLE.format("unplugged")
LATE = "[66021.771000] "


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        (LATE + UNPLUGGED, "info"),
        (UNPLUGGED, "info"),
        ("[    9.771000] " + UNPLUGGED, None),
        (f"[    9.771000] {PLUGGED}{LATE}{UNPLUGGED}", "warning"),
        (f"[    9.771000] {UP}{LATE}{UNPLUGGED}", "warning"),
        (f"{LATE}{UNPLUGGED}{LATE}{PLUGGED}", None),
    ],
    ids=["later", "no date", "a start", "a cable before", "a link before", "plugged again"],
)
def test_a_cable_that_a_log_alone_shows_as_unplugged(text: str, severity: str | None, tmp_path: Path) -> None:
    found = [(f.rule, f.label, f.severity, f.confidence) for f in scan_text(tmp_path, text, "dmesg.txt").findings]

    assert ([("port-module-fault", "NIC 0000:2a:00.0", severity, "low")] if severity else []) == found


LINK_OF_PORT = "link mlx5_{n}/1 state {state} netdev ens{n}np0 \n"


def rdma_link(*down: int) -> str:
    states = ("ACTIVE physical_state LINK_UP", "DOWN physical_state DISABLED")
    return "".join(LINK_OF_PORT.format(n=n, state=states[n in down]) for n in range(4))


def test_ports_in_two_halves_are_one_note(tmp_path: Path) -> None:
    (finding,) = scan_text(tmp_path, rdma_link(2, 3), "rdma_link.txt").findings

    assert ("roce-link-down", "info", "low", "node") == (
        finding.rule, finding.severity, finding.confidence, finding.subject,
    )  # fmt: skip
    assert "no link on mlx5_2/1 (ens2np0) and mlx5_3/1 (ens3np0)" in finding.summary.replace(", ", " and ")


def test_ports_that_all_have_a_link_or_none_are_no_halves(tmp_path: Path) -> None:
    for down, summaries in (((), []), ((0, 1, 2, 3), ["none of the ports that are listed has one"])):
        folder = tmp_path / str(len(down))
        folder.mkdir()

        found = scan_text(folder, rdma_link(*down), "rdma_link.txt").findings
        assert summaries == [f.summary.partition("; ")[2] for f in found if "no link on" in f.summary]


FIRMWARE = (
    "{{2}}[Hardware Error]:  Error 0, type: {severity}\n{{2}}[Hardware Error]:   section_type: PCIe error\n"
    "{{2}}[Hardware Error]:   device_id: 0000:ab:00.0\n{{2}}[Hardware Error]:   vendor_id: 0x10de, device_id: 0x2330\n"
    "{{2}}[Hardware Error]:   aer_{kind}_status: 0x{status}, aer_{kind}_mask: 0x{mask}\n"
)


@pytest.mark.parametrize(
    ("severity", "kind", "status", "mask", "named"),
    [
        ("recoverable", "uncor", "00004000", "00000000", "non-fatal PCIe errors (CmpltTO): "),
        ("recoverable", "uncor", "00044000", "00004000", "non-fatal PCIe errors (MalfTLP): "),
        ("recoverable", "uncor", "00004000", "00004000", "non-fatal PCIe errors: "),
        ("corrected", "cor", "00000041", "00000000", "corrected PCIe errors (RxErr): "),
        ("corrected", "uncor", "00004000", "00000000", "corrected PCIe errors: "),
    ],
)
def test_a_record_of_the_firmware_names_the_error(
    severity: str, kind: str, status: str, mask: str, named: str, tmp_path: Path
) -> None:
    record = FIRMWARE.format(severity=severity, kind=kind, status=status, mask=mask)
    text = "".join(f"[   12.500000] {line}\n" for line in record.splitlines())
    found = scan_text(tmp_path, text + text.replace("{2}", "{3}").replace("ab:", "ac:"), "dmesg.txt").findings

    assert ["0000:ab:00.0", "0000:ac:00.0"] == [finding.label for finding in found]
    assert all(f"kernel log: {named}" in finding.summary for finding in found)


def test_a_reading_beside_the_number_of_its_sensor_is_shown() -> None:
    (report,) = bmc.list_sensor_states("Fan3A            | 33h | cr  | 29.3 | 480 RPM\n")

    assert {"what": "480 RPM"} == dict(report.detail)


@pytest.mark.parametrize(("lanes", "notes"), [(8, ["8x"]), (16, [])])
def test_lanes_of_some_gpu_are_a_note(lanes: int, notes: list[str], tmp_path: Path) -> None:
    findings = scan_text(tmp_path, f"        GPU Link Info\n{WIDTH.format(lanes)}", "issue.txt").findings

    assert notes == [f.summary.rpartition(": ")[2] for f in findings if f.severity == "info"]


def test_the_first_screen_names_parts_that_have_no_address(tmp_path: Path) -> None:
    text = sel("Slot / Connector GPU5 Slot | Fault Status", FATAL)
    rows = render_findings(scan_text(tmp_path, text, "ipmitool_sel_elist.txt"), width=200)
    screen = "\n".join("".join(words for words, _ in row) for row in rows)

    assert "part      PCIe Err: the BMC logs an uncorrectable PCIe error" in screen
    assert "            GPU5 Slot: the BMC logs a fault of a slot" in screen
