"""What never answers: a file, a card's firmware, a driver under `nvidia-smi`. The scan ends, and says who hangs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab.batches import SMALL, machine
from tests.lab.conftest import RecordRow, above_info
from tests.lab.place import LAB
from tests.lab.qemu.guest import UPTIME_SECONDS, Guest
from tests.lab.qemu.processes import scanning

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("real_commands"), pytest.mark.timeout(900)]

SHOWN = SMALL
GPU, NIC = "0000:43:00.0", "0000:9b:00.0"
WHOLE_SECONDS = 120.0  # of a scan in the guest, its own start and end included: the longest bound is 30 s
NVML = "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"
SMI = "/usr/local/bin/nvidia-smi"
STAND_IN = "#!/bin/bash\nexec 3< /dev/nvidiactl\necho No devices were found\nexit 6\n"
SILENT = "/sys/module/nvidia/parameters/silent"


@pytest.fixture
def node(guest: Guest) -> Iterator[Guest]:
    """The healthy machine; whatever hangs is let go in the end."""
    guest.turn_into(machine(SMALL))
    yield guest
    guest.tell([f"silent {NIC} 0"])
    guest.shell(f"echo 0 > {SILENT}; rm -f {SMI}; umount {NVML} 2>/dev/null || true")
    guest.run("systemctl", "stop", "lab-never")
    guest.run("umount", place(guest))


def place(guest: Guest) -> str:
    """The file that does not answer, by its real path."""
    return guest.shell(f"readlink -f /sys/bus/pci/devices/{GPU}/current_link_width").strip()


def ran(report: dict[str, Any]) -> dict[str, str]:
    """How each probe ended. Partial is ok here: a slow guest, and a log that was overwritten."""
    return {probe["name"]: probe["status"].replace("partial", "ok") for probe in report["probes"]}


def why(report: dict[str, Any], probe: str) -> str:
    """The reason of one."""
    return next(str(item["reason"]) for item in report["probes"] if item["name"] == probe)


def none_left(guest: Guest) -> bool:
    """Whether all of them end within some seconds."""
    for _ in range(20):
        if not scanning(guest):
            return True
        guest.must("sleep", "1")
    return False


def scan_guest(guest: Guest, *options: str, later: int = 0) -> dict[str, Any]:
    """A report within the time that was promised; `later`: so many seconds after the first one."""
    report = guest.scan(*options, uptime=UPTIME_SECONDS + later)
    assert guest.seconds < WHOLE_SECONDS
    return report


def lay_over(guest: Guest, file: str) -> None:
    """Let a file never answer: inside/never.py."""
    guest.write("/run/never.py", (LAB / "inside" / "never.py").read_text())
    guest.shell("modprobe fuse; rm -f /run/never")
    unit = ("systemd-run", "--quiet", "--unit=lab-never", "--property=StandardOutput=truncate:/run/never")
    guest.must(*unit, "python3", "/run/never.py", file)
    guest.shell(
        "for each in {1..100}; do grep -q mounted /run/never && break; sleep 0.2; done; grep mounted /run/never"
    )


def states(processes: list[str]) -> set[str]:
    """State, and where in the kernel."""
    return {" ".join(process.split()[:2]) for process in processes}


def test_a_file_that_never_answers(node: Guest, record_row: RecordRow) -> None:
    """One attribute of a GPU's PCI function: FUSE, whose reads nobody answers and no signal ends."""
    options = ("--only", "kernel,pci,lspci")
    file = place(node)
    lay_over(node, file)
    first = scan_guest(node, *options)
    left = scanning(node)
    second = scan_guest(node, *options, later=600)
    still = scanning(node)
    node.must("systemctl", "stop", "lab-never")
    gone = none_left(node)
    node.must("umount", file)
    third = scan_guest(node, *options, later=1200)

    assert ("timed_out", "ok") == (ran(first)["pci"], ran(first)["lspci"])
    assert "it cannot be killed and was left behind" in why(first, "pci")
    assert [("probe-hung", "error", "node")] == above_info(first) == above_info(second)
    assert ids(first, "pci") == ids(third, "pci")
    assert ids(first, "gpus") == ids(third, "gpus")
    assert {"D request_wait_answer"} == states(left)
    assert re.search("an earlier run's child is stuck since 20.*state D", why(second, "pci"))
    assert left == still  # no second one joined it
    assert gone
    assert [] == above_info(third)
    assert "ok" == ran(third)["pci"]
    text = f"{why(first, 'pci')}; the next run: {why(second, 'pci')}"
    record_row("A file of a GPU in sysfs never answers (FUSE over it); let go", left[0], text)


def test_a_card_whose_firmware_never_answers(node: Guest, record_row: RecordRow) -> None:
    """sysfs and netlink of RDMA wait in its driver, state D, and so do the tools that stand in. The rest is whole."""
    hung = {"rdma", "rdma_netlink", "rdma_tools"}
    again = ("--only", ",".join(["kernel", "pci", "netdev", *sorted(hung)]))
    node.tell([f"silent {NIC} 1"])
    first = scan_guest(node)
    left = scanning(node)
    second = scan_guest(node, *again, later=600)
    still = scanning(node)
    node.tell([f"silent {NIC} 0"])
    gone = none_left(node)
    third = scan_guest(node, *again, later=1200)

    assert hung == {name for name, how in ran(first).items() if how == "timed_out"}
    assert {"ok", "absent", "skipped"} == {how for name, how in ran(first).items() if name not in hung}
    assert {"probe-hung"} == {rule for rule, _, _ in above_info(first)}
    for part in ("pci", "gpus", "netdevs"):
        assert ids(first, part) == ids(third, part)
    assert {"D query_port"} == states(left)
    assert hung == {name for name in hung if "stuck since 20" in why(second, name)}
    assert left == still
    assert gone
    assert [] == above_info(third)
    assert {"ok", "skipped"} == {ran(third)[name] for name in hung}
    record_row("The firmware of a NIC never answers; let go", f"{len(left)} processes: {left[0]}", why(first, "rdma"))


def test_nvidia_smi_in_state_d(node: Guest, record_row: RecordRow) -> None:
    """Without NVML's library it is asked; it opens the driver's node, waits there, and nobody can kill it."""
    options = ("--only", "kernel,pci,nvml,nvidia_smi", "--timeout", "20")
    node.write(SMI, STAND_IN)
    node.shell(f"chmod 755 {SMI}; mount --bind /dev/null {NVML}; echo 1 > {SILENT}")
    first = scan_guest(node, *options)
    left = scanning(node)
    second = scan_guest(node, *options, later=600)
    still = scanning(node)
    node.write(SILENT, "0")
    gone = none_left(node)
    node.shell(f"umount {NVML}; rm {SMI}")
    third = scan_guest(node, *options, later=1200)

    assert ("absent", "timed_out") == (ran(first)["nvml"], ran(first)["nvidia_smi"])
    assert ids(first, "gpus") == ids(third, "gpus")
    assert {"D open"} == states(left)
    assert "nvidia-smi -q -x" in left[0]
    assert "stuck since 20" in why(second, "nvidia_smi")
    assert [("probe-hung", "critical", "node")] == above_info(second)
    assert left == still
    assert gone
    assert [] == above_info(third)
    assert ("ok", "skipped") == (ran(third)["nvml"], ran(third)["nvidia_smi"])
    text = f"{why(first, 'nvidia_smi')}; the next run: {why(second, 'nvidia_smi')}"
    record_row("nvidia-smi in state D, in the driver's open; let go", left[0], text)


def ids(report: dict[str, Any], part: str) -> list[str]:
    """What was found of that kind."""
    result = [item["id"] for item in report["topology"][part]]
    assert result
    return result
