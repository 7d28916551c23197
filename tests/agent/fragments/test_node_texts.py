"""Texts about GPUs, their drivers and servers that people paste: cut at either end, without what names them."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.host.interface import BadSource
from probes.sources.open_source import open_source
from tests.agent.rules.test_fragments import scan_text, warnings_of

_ROWS = (  # of `nvidia-smi topo -m`: GPU1 reaches the others over PCIe
    "GPU0  X  NODE NV18 NV18 NV18 PIX NODE 0-31 0 N/A",
    "GPU1  NODE  X  NODE SYS SYS NODE PIX 0-31 0 N/A",
    "GPU2  NV18 NODE  X  NV18 NV18 NODE NODE 0-31 0 N/A",
    "GPU3  NV18 SYS NV18  X  NV18 SYS SYS 32-63 1 N/A",
)
_BESIDE_NICS = (  # {nic}: from GPU1 to NIC1
    "\tGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tNIC2\tNIC3\tCPU Affinity\tNUMA Affinity\n"
    "GPU0\t X \tNV18\tNV18\tNV18\tPIX\tNODE\tSYS\tSYS\t0-47\t0\n"
    "GPU1\tNV18\t X \tNV18\tNV18\tNODE\t{nic}\tSYS\tSYS\t0-47\t0\n"
    "GPU2\tNV18\tNV18\t X \tNV18\tSYS\tSYS\tPIX\tNODE\t48-95\t1\n"
    "GPU3\tNV18\tNV18\tNV18\t X \tSYS\tSYS\tNODE\t{other}\t48-95\t1\n"
)
_ENTRY = (
    '{{"@odata.type":"#LogEntry.v1_3_0.LogEntry","Created":"2026-02-0{day}T04:00:00Z","EntryCode":"{code}",'
    '"Links":{{}},"Message":"{message}","SensorNumber":87,"SensorType":"Power Supply / Converter",'
    '"Severity":"{grade}"}}'
)
_LOST = _ENTRY.format(day=1, code="Redundancy Lost", message="Power supply redundancy is lost.", grade="Critical")
_BACK = _ENTRY.format(day=2, code="Fully Redundant", message="The power supplies are redundant.", grade="OK")


def test_a_matrix_without_its_heading(tmp_path: Path) -> None:
    """The last row was not pasted: how GPU4 reaches the others is in theirs."""
    (finding,) = warnings_of(scan_text(tmp_path, "\n".join(_ROWS), "chat.txt"))

    assert ("nvlink-path-missing", "GPU1") == (finding.rule, finding.label)


@pytest.mark.parametrize(
    ("nic", "other", "expected"), [("PIX", "PIX", []), ("NODE", "PIX", ["GPU1"]), ("NODE", "NODE", [])]
)
def test_a_matrix_in_which_one_gpu_has_no_nic_near(tmp_path: Path, nic: str, other: str, expected: list[str]) -> None:
    """The matrix has every NIC; where half of the GPUs have none near, the server is built so."""
    found = warnings_of(scan_text(tmp_path, _BESIDE_NICS.format(nic=nic, other=other), "chat.txt"))

    assert [("affinity-gpu-far-from-nic", label) for label in expected] == [(one.rule, one.label) for one in found]
    assert all("or a NIC is in another slot or missing" in one.impact for one in found)


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("Health log: uncorrectable memory error of the module @P2-DIMMF1, asserted\n", "P2-DIMMF1"),
        ("the board lost CPU1_DIMM_B2: it is no longer detected\n", "CPU1_DIMM_B2"),
        ("CPU2_DIMM_A1 | 64 GB | OK\nCPU2_DIMM_B1 | 64 GB | OK\n", None),
    ],
)
def test_a_memory_module_by_the_label_of_its_board(tmp_path: Path, text: str, label: str | None) -> None:
    """Whichever maker's; its commands are those of memory."""
    (tmp_path / "chat.txt").write_text(text)
    if label is None:
        with pytest.raises(BadSource):
            open_source(str(tmp_path / "chat.txt"), None)
        return
    (finding,) = scan_text(tmp_path, text, "chat.txt").findings
    assert (label, ["ipmitool sel elist; dmidecode -t memory; grep . /sys/devices/system/edac/mc/mc*/*count"]) == (
        finding.label,
        finding.confirm,
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f'4:00Z","Severity":"OK"}},{_LOST},{{"@odata.id":"/redfish/v1/Managers/1/Lo', ["Power Supply / Converter 87"]),
        (f'4:00Z","Severity":"OK"}},{_BACK},{_LOST},{{"@odata.id":"/redfish/v1/Managers/1/Lo', []),  # newest first
    ],
)
def test_a_log_of_a_bmc_that_is_cut_at_both_ends(tmp_path: Path, text: str, expected: list[str]) -> None:
    assert expected == [finding.label for finding in warnings_of(scan_text(tmp_path, text, "chat.txt"))]


_GDS = (
    " GDS release version: 1.9.1.3\n {module}libcufile version: 2.12\n Platform: x86_64\n =====================\n"
    " DRIVER CONFIGURATION:\n =====================\n NVMe : Unsupported\n NVMeOF : Unsupported\n NFS : Unsupported\n"
    " Userspace RDMA : Unsupported\n --Mellanox PeerDirect : Disabled\n properties.use_compat_mode : {compat}\n"
    " IOMMU: {iommu}\n"
)
_LOADED = {"module": "nvidia_fs version:  2.20 ", "compat": "true", "iommu": "disabled"}


@pytest.mark.parametrize(
    ("changes", "causes", "fails"),
    [
        ({}, "PeerDirect is disabled", False),
        ({"module": ""}, "nvidia_fs is not loaded, PeerDirect is disabled", False),
        ({"iommu": "Enabled", "compat": "false"}, "PeerDirect is disabled, the IOMMU is on", True),
    ],
)
def test_why_gdscheck_supports_nothing(tmp_path: Path, changes: dict[str, str], causes: str, fails: bool) -> None:
    (finding,) = warnings_of(scan_text(tmp_path, _GDS.format(**{**_LOADED, **changes}), "chat.txt"))

    assert (causes, fails) == (finding.summary.partition(": ")[2], "fail" in finding.impact)


def test_rows_of_gdscheck_alone(tmp_path: Path) -> None:
    rows = "".join(f" {name:19}: Unsupported\n" for name in ("NVMe", "NVMeOF", "SCSI", "NFS", "WekaFS"))
    (finding,) = warnings_of(scan_text(tmp_path, f"I get only this:\n{rows}", "chat.txt"))

    assert "GPUDirect Storage supports no storage" in finding.summary


def test_a_daemon_of_imex_that_no_job_needs_now(tmp_path: Path) -> None:
    line = "ErrorCode:DCGM_FR_IMEX_UNHEALTHY GPU:2 IMEX daemon status is -3 (not READY)\n"
    report = scan_text(tmp_path, line, "chat.txt")

    assert ["info"] == [finding.severity for finding in report.findings]


def test_lines_of_the_driver_without_a_time(tmp_path: Path) -> None:
    """Nothing but its name and the function that wrote them begins these lines."""
    (finding,) = warnings_of(scan_text(tmp_path, "NVRM: _kgspRpcRecvPoll: LibOS heartbeat timed out\n", "chat.txt"))

    assert "(GSP) stopped answering" in finding.summary


_MODULE = (
    "Handle 0x110{n}, DMI type 17, 92 bytes\nMemory Device\n\tTotal Width: 80 bits\n\tSize: {size}\n"
    "\tLocator: P{cpu}_DIMM_{slot}1\n\tBank Locator: BANK {n}\n\tSpeed: 5600 MT/s\n"
    "\tConfigured Memory Speed: {rate}\n\n"
)


def memory_modules(*modules: tuple[int, str, str], rate: str = "5600 MT/s") -> str:
    """What `dmidecode -t memory` prints: each module with its CPU, its slot and its size."""
    return "".join(
        _MODULE.format(n=n, cpu=cpu, slot=slot, size=size, rate=rate if size[0].isdecimal() else "Unknown")
        for n, (cpu, slot, size) in enumerate(modules)
    )


_FULL = tuple((cpu, slot, "64 GB") for cpu in (0, 1) for slot in "ABCD")


def without(*slots: int, modules: tuple[tuple[int, str, str], ...] = _FULL) -> tuple[tuple[int, str, str], ...]:
    """The same with some slots empty."""
    return tuple(
        (cpu, slot, "No Module Installed" if n in slots else size) for n, (cpu, slot, size) in enumerate(modules)
    )


@pytest.mark.parametrize(
    ("modules", "rate", "expected"),
    [
        (_FULL, "5600 MT/s", []),
        (without(3, 7), "5600 MT/s", []),
        (without(6), "5600 MT/s", ["warning CPU 0: 4 of 4, CPU 1: 3 of 4"]),
        (without(6, 7), "5600 MT/s", []),  # half of them: so it was fitted
        (without(1, 2, 3, 5, 6, 7), "5600 MT/s", []),
        (without(2, modules=_FULL[:4]), "5600 MT/s", []),  # one CPU
        (_FULL[:7], "5600 MT/s", []),  # other slots
        (_FULL, "4800 MT/s", ["info 8 of 8 modules, 4800 of 5600 MT/s"]),
    ],
)
def test_memory_modules(
    tmp_path: Path, modules: tuple[tuple[int, str, str], ...], rate: str, expected: list[str]
) -> None:
    report = scan_text(tmp_path, memory_modules(*modules, rate=rate), "mail.txt")

    assert expected == [f"{finding.severity} {finding.summary.partition(': ')[2]}" for finding in report.findings]


_DEGREES = (
    "==============NVSMI LOG==============\n\nAttached GPUs : 1\nGPU 00000000:9B:00.0\n    Temperature\n"
    "        GPU Current Temp                  : {gpu} C\n        GPU T.Limit Temp                  : {margin}\n"
    "        GPU Shutdown Temp                 : {shutdown}\n        GPU Slowdown Temp                 : {slowdown}\n"
    "        GPU Max Operating Temp            : 85 C\n        Memory Current Temp               : {memory} C\n"
    "        Memory Max Operating Temp         : 95 C\n"
)
_LIMITS = {"gpu": 61, "margin": "N/A", "shutdown": "92 C", "slowdown": "89 C", "memory": 66}
_BY_MARGIN = {"margin": "24 C", "shutdown": "N/A", "slowdown": "N/A"}


@pytest.mark.parametrize(
    ("degrees", "expected"),
    [
        ({}, []),
        (_BY_MARGIN, []),
        ({"gpu": 84, "memory": 94}, []),
        ({"gpu": 85}, ["GPU 85 °C, highest in operation 85 °C"]),
        ({"gpu": 90}, ["GPU 90 °C, slowdown 89 °C"]),
        ({"memory": 95}, ["memory 95 °C, highest in operation 95 °C"]),
        (_BY_MARGIN | {"margin": "-2 C"}, ["GPU 2 °C over its limit"]),
        (_BY_MARGIN | {"margin": "0 C"}, ["GPU at its limit"]),
    ],
)
def test_temperatures_at_a_limit(tmp_path: Path, degrees: dict[str, object], expected: list[str]) -> None:
    report = scan_text(tmp_path, _DEGREES.format(**{**_LIMITS, **degrees}), "chat.txt")
    hot = [finding for finding in warnings_of(report) if finding.rule == "tool-reports-fault"]

    assert expected == [finding.summary.partition(": ")[2] for finding in hot]


def test_a_temperature_beside_the_reason_of_the_clocks(tmp_path: Path) -> None:
    """The slowdown has a finding of its own."""
    text = _DEGREES.format(**{**_LIMITS, "gpu": 90}).replace(
        "    Temperature\n", "    Clocks Event Reasons\n        HW Thermal Slowdown : Active\n    Temperature\n"
    )
    assert ["gpu-throttled"] == [finding.rule for finding in warnings_of(scan_text(tmp_path, text, "chat.txt"))]


def test_a_row_of_the_table_of_nvidia_smi_alone(tmp_path: Path) -> None:
    rows = (
        "|   5  NVIDIA A100-SXM4-80GB      On   | 00000000:C1:00.0 Off |                    0 |\n"
        "| N/A   31C    P0   ERR! / 400W |      4MiB / 81920MiB |      0%      Default |\n"
    )
    (finding,) = warnings_of(scan_text(tmp_path, f"it shows this:\n{rows}\n", "chat.txt"))

    assert ("GPU5", "nvidia-smi reads ERR! for the power") == (finding.label, finding.summary)


def test_every_gpu_that_could_not_be_reset(tmp_path: Path) -> None:
    rows = "".join(f"  GPU 00000000:{bus}:00.0: In use by another client\n" for bus in ("1B", "5D", "CB"))
    findings = warnings_of(scan_text(tmp_path, f"The following GPUs could not be reset:\n{rows}", "chat.txt"))

    assert ["0000:1b:00.0", "0000:5d:00.0", "0000:cb:00.0"] == [finding.subject[4:] for finding in findings]


def test_an_address_that_someone_typed(tmp_path: Path) -> None:
    """It is no address of PCI; its first part is no number of a GPU."""
    line = "Unable to determine the device handle for GPU 007:BA:80.0: Unknown Error\n"
    (finding,) = warnings_of(scan_text(tmp_path, line, "chat.txt"))

    assert "007:BA:80.0: Unknown Error" in finding.summary
    assert "GPU7" != finding.label


_REFUSED = "modprobe: ERROR: could not insert 'nvidia_peermem': Invalid argument\n"
_WHY = "[  812.331904] {}: disagrees about version of symbol ib_register_peer_memory_client\n"


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        (_REFUSED, ["tool-reports-fault"]),
        (_REFUSED + _WHY.format("nvidia_peermem"), ["gdr-peermem-broken"]),
        (_REFUSED + _WHY.format("nv_peer_mem"), ["gdr-peermem-broken", "tool-reports-fault"]),
    ],
)
def test_a_module_of_which_the_kernel_states_why(tmp_path: Path, text: str, rules: list[str]) -> None:
    """One fault is one finding."""
    assert rules == [finding.rule for finding in warnings_of(scan_text(tmp_path, text, "chat.txt"))]


_XID = "NVRM: Xid (PCI:0000:5e:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 04 (0x025001c6 0x00000000 0x00000000)\n"
_NAMED = "XID 149.37 (err status 0x00000000) NVLINK_NETIR_ERROR detected on GPU PCI:0000:5e:00\n"


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        (_XID + _NAMED, ["gpu-xid"]),
        (_XID + _NAMED.replace("5e:00", "5f:00"), ["gpu-xid", "tool-reports-fault"]),
        (_XID + _NAMED.replace("149", "145"), ["gpu-xid", "tool-reports-fault"]),
    ],
)
def test_an_xid_that_a_tool_names_beside_its_line(tmp_path: Path, text: str, rules: list[str]) -> None:
    assert rules == [finding.rule for finding in warnings_of(scan_text(tmp_path, text, "chat.txt"))]


_CLOCKS = 'DCGM_FI_DEV_{name}{{gpu="{gpu}",device="nvidia{gpu}",Hostname="n7"}} {bits}\n'


@pytest.mark.parametrize(
    ("name", "bits", "expected"),
    [
        ("CLOCK_THROTTLE_REASONS", 0, []),
        ("CLOCK_THROTTLE_REASONS", 1, []),
        ("CLOCK_THROTTLE_REASONS", 0x04, []),  # the power limit of a busy GPU
        ("CLOCK_THROTTLE_REASONS", 0x24, ["GPU5: SW thermal slowdown (0x24)"]),
        ("CLOCKS_EVENT_REASONS", 0x48, ["GPU5: HW thermal slowdown (0x48)"]),
        ("CLOCK_THROTTLE_REASONS", 0x88, ["GPU5: HW power brake (0x88)"]),
        ("CLOCK_THROTTLE_REASONS", 0x08, ["GPU5: HW slowdown (0x8)"]),
    ],
)
def test_bits_of_the_limits_of_clocks(tmp_path: Path, name: str, bits: int, expected: list[str]) -> None:
    text = _CLOCKS.format(name=name, gpu=4, bits=0) + _CLOCKS.format(name=name, gpu=5, bits=bits)
    findings = warnings_of(scan_text(tmp_path, text, "chat.txt"))

    assert expected == [f"{finding.label}: {finding.summary.partition(': ')[2]}" for finding in findings]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("<clocks_event_reason_hw_power_brake_slowdown>Active</clocks_event_reason_hw_power_brake_slowdown>", 1),
        ("<clocks_event_reason_hw_power_brake_slowdown>Not Active</clocks_event_reason_hw_power_brake_slowdown>", 0),
        ("<remapped_row_failure>Yes</remapped_row_failure>", 1),
        ("<remapped_row_pending>Yes</remapped_row_pending>", 1),
        ("<remapped_row_pending>No</remapped_row_pending>", 0),
    ],
)
def test_lines_of_the_xml_of_nvidia_smi(tmp_path: Path, line: str, expected: int) -> None:
    text = f"$ nvidia-smi -q -x | grep -E 'power|remap'\n\t\t{line}\n\t\t<power_state>P0</power_state>\n"
    assert expected == len(warnings_of(scan_text(tmp_path, text, "chat.txt")))


_WITHOUT_ADDRESS = (
    "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring sdma0 timeout, signaled seq=12, emitted seq=14",
    "EDAC MC0: 1 UE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0 (channel:1 slot:0 page:0x1)",
    "mce: [Hardware Error]: CPU 4: Machine Check Exception: 5 Bank 7: be00000000800400",
    "INFO: task python:4711 blocked for more than 120 seconds.",
)


@pytest.mark.parametrize(
    "prefix", ["", "n1: ", "n1 kern.err: ", "<3>", "11-03 10:11:12.123 ", "[n1] 10:11:12 ", "1793700672.123 "]
)
def test_lines_without_an_address_behind_any_prefix(tmp_path: Path, prefix: str) -> None:
    """A collector has forms of its own; the words are the kernel's."""
    for number, line in enumerate(_WITHOUT_ADDRESS):
        folder = tmp_path / str(number)
        folder.mkdir()
        findings = scan_text(folder, f"{prefix}{line}\n", "chat.txt").findings
        assert ["driver-reports-failure"] == [finding.rule for finding in findings], line
