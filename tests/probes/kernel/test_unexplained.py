"""Lines of drivers that read as a failure and that no sentence explains; tasks that the kernel reports as blocked."""

from __future__ import annotations

import pytest

from probes.kernel.hung_tasks import IN_DRIVER
from probes.kernel.log_events import events
from probes.kernel.log_facts import LogEvent
from probes.kernel.log_lines import keep_read_lines, lines
from probes.kernel.unexplained import HARMLESS_SENTENCES, UNEXPLAINED

NIC = "0000:3b:00.0"
MLX5 = f"mlx5_core {NIC}: mlx5_xyz_init:812:(pid 2211): failed to read a table, err(-12)"


def found(*texts: str, start: float = 100.0) -> list[LogEvent]:
    log = "\n".join(f"[{start + number:12.6f}] {text}" for number, text in enumerate(texts))
    return [event for event in events(lines(log, None))[0] if event.kind == UNEXPLAINED]


@pytest.mark.parametrize(
    ("text", "driver", "subject"),
    [
        (MLX5, "mlx5_core", NIC),
        ("NVRM: GPU0 gpuXyz_IMPL: could not do it, status 0x62", "NVRM", None),
        (f"NVRM: GPU {NIC}: cannot do it", "NVRM", NIC),
        ("nvidia-nvswitch3: unable to read a register", "nvidia-nvswitch", None),
        ("nvidia-uvm: uvm_xyz.c:12 error, rc -5", "nvidia-uvm", None),
        ("infiniband mlx5_4: xyz: timed out", "infiniband", "mlx5_4"),
        (f"bnxt_en {NIC} ens1f0np0: xyz is not responding", "bnxt_en", NIC),
        (f"ice {NIC}: xyz rejected", "ice", NIC),
        ("[drm:xyz_init [amdgpu]] *ERROR* xyz is stuck", "amdgpu", None),
        ("DMAR: xyz fatal", "DMAR", None),
        ("accel accel0: xyz aborted", "accel", "accel0"),
        (f"pcieport {NIC}: xyz is corrupt", "pcieport", NIC),
        ("scsi host5: ib_srp: xyz failed (-5)", "ib_srp", None),
        ("iser: iser_xyz: xyz failed", "iser", None),
        ("[qede_xyz:411(ens1f0)]xyz failed", "qede", None),
        (f"mana {NIC}: xyz failed", "mana", NIC),
        (f"cxi_core {NIC}: cxi2[hsn2] xyz timeout", "cxi_core", NIC),
        (f"octeontx2 {NIC}: xyz failed", "octeontx2", NIC),
    ],
)
def test_a_failure_that_no_row_knows_is_kept(text: str, driver: str, subject: str | None) -> None:
    (event,) = found(text)

    assert (driver, subject, text) == (event.code, event.subject, event.text)


@pytest.mark.parametrize(
    "text",
    [
        f"mlx5_core {NIC}: xyz completed without errors",
        f"mlx5_core {NIC}: recovered from an error",
        f"pcieport {NIC}: xyz: enabled with error reporting",
        f"pcieport {NIC}: AER: Multiple Corrected error received: {NIC}",
        f"bnxt_en {NIC}: error count: 0",
        f"mlx5_core {NIC}: command timeout of 60000 ms",
        f"mlx5_core {NIC} ens1: Link up",
        "nvme nvme0: I/O 12 QID 3 timeout, aborting",
        "EXT4-fs error (device sda1)",
        "NVRM: GPU0 gpuXyz_IMPL: returned status 0x00000000",
        f"NVRM: Xid (PCI:{NIC}): 31, pid=1, MMU Fault",
    ],
)
def test_other_lines_are_none(text: str) -> None:
    assert [] == found(text)


@pytest.mark.parametrize(
    "text",
    [
        "nvidia: module verification failed: signature and/or required key missing - tainting kernel",
        f"nvidia {NIC}:   device [10de:2330] error status/mask=00000001/00002000",
        "NVRM: rm_init_adapter failed for device bearing minor number 0",
        "NVRM: Rate limiting GSP RPC error prints for GPU at PCI:0000:9b:00",
        f"bnxt_en {NIC}: Device requests max timeout of 100 seconds, may trigger hung task watchdog",
        "nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected invalid context, skipping further processing",
        f"amdgpu {NIC}: amdgpu: [Hardware Error]: ACA[01/01].STATUS=0xd8",
        "AMD-Vi: Unable to read/write to IOMMU perf counter.",
        r"DMAR: Failed to find handle for ACPI object \_SB.PCI0",
        f"pcieport {NIC}: can't derive routing for PCI INT A",
        f"pcieport {NIC}: bridge window [io  size 0x1000]: can't assign; no space",
        f"pcieport {NIC}: DPC: error containment capabilities: Int Msg #0, RPExt+ PoisonedTLP+",
        f"pcieport {NIC}: pciehp: Failed to check link status",
    ],
)
def test_usual_lines_are_none(text: str) -> None:
    """By a sentence of the table, each for itself."""
    assert [] == found(text)


def test_every_harmless_sentence_has_a_source() -> None:
    assert all(source for _, source in HARMLESS_SENTENCES)


def test_lines_of_one_form_are_one() -> None:
    event, other = found(MLX5, MLX5.replace("812", "813").replace("2211", "9"), MLX5.replace(NIC, "0000:5e:00.0"))

    assert (2, "+101.000 s") == (event.count, event.logged)
    assert ("first", "+100.000 s") in event.detail
    assert (1, "0000:5e:00.0") == (other.count, other.subject)


def test_many_forms_and_many_parts_are_bounded() -> None:
    forms = found(*(f"{MLX5} {'x' * number}" for number in range(9)))
    assert 3 == len(forms)
    assert ("more", "6") in forms[-1].detail

    parts = [MLX5.replace("3b", f"{number:02x}") for number in range(200)]
    assert 64 == len(found(*parts))


def test_a_sentence_that_waits_for_its_gpu_is_explained() -> None:
    """It is an event of the next GPU that does not start."""
    assert [] == found(
        "NVRM: GPU0 kgspBootstrap: Timeout waiting for lockdown release.",
        f"NVRM: GPU {NIC}: RmInitAdapter failed! (0x62:0x65:1)",
    )


def test_a_very_long_log_keeps_them() -> None:
    noise = "".join(f"[{number:12.6f}] ata7 port7: status 0x5\n" for number in range(60))
    kept = keep_read_lines(f"{noise}[   99.000000] {MLX5}\n".encode()).decode()

    assert MLX5 in kept
    assert kept.count("ata7") < 60


# Tasks that the kernel reports as blocked, by the driver in which they wait.


BLOCKED = "INFO: task python:4711 blocked for more than 120 seconds."
WAIT = "schedule+0x69/0x110"
CALL = "uvm_va_space_destroy+0x1f2/0x6c0 [nvidia_uvm]"


def found_blocked(*texts: str) -> list[dict[str, str]]:
    log = "".join(f"[{100 + number:12.6f}] {text}\n" for number, text in enumerate(texts))
    return [dict(event.detail) for event in events(lines(log, None))[0] if event.code == IN_DRIVER]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ((BLOCKED, "Call Trace:", " <TASK>", f" {WAIT}", f" {CALL}"), [("python", "nvidia_uvm")]),
        ((BLOCKED, f" ? {CALL}"), [("python", "nvidia_uvm")]),
        ((BLOCKED, " mlx5_cmd_exec+0x1f/0x6c [mlx5_core]", f" {CALL}"), [("python", "mlx5_core")]),
        ((BLOCKED, " snd_x+0x1f/0x6c [snd_hda]"), []),
        ((f" {CALL}",), []),
        ((BLOCKED, *[f" {WAIT}"] * 90, f" {CALL}"), []),
        ((BLOCKED, BLOCKED.replace("python", "cp"), f" {CALL}"), [("cp", "nvidia_uvm")]),
        ((BLOCKED, f" {CALL}", f" {CALL}"), [("python", "nvidia_uvm")]),
    ],
    ids=["in the driver", "maybe", "the first call", "another module", "no task", "far below", "the last task", "once"],
)
def test_the_first_call_in_a_driver_names_it(texts: tuple[str, ...], expected: list[tuple[str, str]]) -> None:
    assert expected == [(detail["task"], detail["module"]) for detail in found_blocked(*texts)]


def test_a_very_long_log_keeps_the_calls() -> None:
    noise = "".join(f"[{number:12.6f}] usb 1-1: new device\n" for number in range(60))
    log = f"{noise}[  100.000000] {BLOCKED}\n[  100.000001]  {WAIT}\n[  100.000002]  {CALL}\n{noise}"

    assert CALL in keep_read_lines(log.encode()).decode()
