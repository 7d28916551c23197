"""The units under a real systemd: they fire, they cannot write to the host, and a failure is one line of the status."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import ROOT
from tests.lab.batches import IB, machine
from tests.lab.conftest import RecordRow
from tests.lab.qemu.guest import Guest
from tests.lab.qemu.processes import FILE, SERVICE, report

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("real_commands"), pytest.mark.timeout(900)]
SHOWN = IB

DROP_IN = "/run/systemd/system/{unit}.d/lab.conf"
ATTEMPTS = {  # what must not succeed inside the sandbox
    "write to /etc": "echo x > /etc/fabricscope-was-here",
    "write to /usr": "echo x > /usr/fabricscope-was-here",
    "write to /var/lib": "echo x > /var/lib/fabricscope-was-here",
    "write to /root": "echo x > /root/fabricscope-was-here",
    "write to /run": "echo x > /run/fabricscope-was-here",
    "write to /dev/shm of the host": "echo x > /dev/shm/../shm-was-here",
    "remove a PCI device": "echo 1 > /sys/bus/pci/devices/{gpu}/remove",
    "write config space": "printf x | dd of=/sys/bus/pci/devices/{gpu}/config bs=1 seek=4 conv=notrunc",
    "write config space by setpci": "setpci -s {gpu} 4.w=0; test 0000 = $(setpci -s {gpu} 4.w)",
    "a kernel setting": "echo 1 > /proc/sys/kernel/sysrq",
    "mount": "mount -t tmpfs tmpfs /mnt",
    "a new mount namespace": "unshare -m true",
    "load a module": "insmod /lab/objects/gdrdrv.ko || false",
    "set an interface down": "ip link set lo down",
    "the host's name": "hostname was-here",
    "the clock": "date -s 2001-01-01",
    "kill a process of root": "kill -0 1",
    "a socket to the network": "python3 -c 'import socket; socket.socket(socket.AF_INET)'",
    "become root": "python3 -c 'import os; os.setuid(0)'",
    "the kernel's log": "dmesg -C",
    "a device node of memory": "head -c1 /dev/mem",
}


@pytest.fixture(scope="module")
def node(guest: Guest) -> Guest:
    """A guest that shows the healthy InfiniBand machine, with nothing of an earlier run."""
    guest.turn_into(machine(IB))
    guest.shell("systemctl stop fabricscope-scan.timer; rm -rf /var/lib/private/fabricscope /var/lib/fabricscope")
    return guest


def drop_in(guest: Guest, unit: str, text: str) -> None:
    """Settings over those of a unit; empty: none."""
    path = DROP_IN.format(unit=unit)
    guest.shell(f"mkdir -p {path.rpartition('/')[0]}")
    guest.must("tee", path, text=text)
    guest.must("systemctl", "daemon-reload")


@pytest.fixture(scope="module")
def first(node: Guest) -> dict[str, Any]:
    """What the service wrote when it was started by hand."""
    node.must("systemctl", "start", SERVICE, seconds=200)
    return report(node)


def test_the_service_scans(node: Guest, first: dict[str, Any], record_row: RecordRow) -> None:
    """As a user of its own it reads whole config spaces."""
    assert [4096] * 8 == [row["config_bytes"] for row in first["topology"]["pci"] if row["device"] == "0x2330"]
    owner = node.shell(f"stat -Lc '%U %a' {FILE}; systemctl show -p Result --value {SERVICE}")
    record_row("fabricscope-scan.service", owner, "a report was written, with config spaces as root reads them")


@pytest.mark.usefixtures("first")
def test_the_timer_fires_and_what_is_known_survives(node: Guest, record_row: RecordRow) -> None:
    """Its calendar is waited for by nobody: one second after it was started. systemd itself begins anew before."""
    unit = "fabricscope-scan.timer"
    node.must("systemctl", "daemon-reexec")
    node.shell(f"rm -f {FILE}")
    drop_in(node, unit, "[Timer]\nOnBootSec=\nOnCalendar=\nOnActiveSec=1s\nRandomizedDelaySec=0\n")
    try:
        node.must("systemctl", "start", unit)
        node.until(f"test -s {FILE}", 200)
        output = node.shell(f"systemctl show -p LastTriggerUSec,Unit {unit}")
    finally:
        node.run("systemctl", "stop", unit)
        drop_in(node, unit, "")
    inventory = {check["rule"]: check["state"] for check in report(node)["checks"]}["inventory-lost"]

    assert "LastTriggerUSec=n/a" not in output
    assert "pass" == inventory
    record_row(
        "fabricscope-scan.timer, after it", output, f"inventory-lost: {inventory}, against the first run's inventory"
    )


def test_nothing_of_the_host_can_be_written(node: Guest, record_row: RecordRow) -> None:
    """The same unit with a shell in the place of the scan: every attempt fails, and reading still works."""
    gpu = "0000:19:00.0"
    script = "\n".join(
        f'({command.format(gpu=gpu)}) >/dev/null 2>&1; echo "$? {name}"' for name, command in ATTEMPTS.items()
    )
    script += f'\necho "$(wc -c < /sys/bus/pci/devices/{gpu}/config) bytes read"\n'
    node.must("tee", "/run/attempts.sh", text=script)
    unit = (ROOT / "systemd" / SERVICE).read_text()
    instead = "ExecStart=/bin/bash -c 'bash /run/attempts.sh > ${STATE_DIRECTORY}/tried'"
    lines = [instead if line.startswith("ExecStart=") else line for line in unit.splitlines()]
    node.must("tee", "/run/systemd/system/fabricscope-try.service", text="\n".join(lines) + "\n")
    node.must("systemctl", "daemon-reload")
    traces = "find / -xdev -name '*was-here*'; find /run /dev -name '*was-here*'"
    state = f"cat /proc/sys/kernel/sysrq; uname -n; ip -br link; setpci -s {gpu} 4.w; {traces}"
    before = node.shell(state)
    node.must("systemctl", "start", "fabricscope-try.service", seconds=200)
    tried = [line.split(" ", 1) for line in node.must("cat", "/var/lib/fabricscope/tried").splitlines()]
    after = node.shell(state)

    assert ["4096", "bytes read"] == tried[-1]
    assert list(ATTEMPTS) == [name for _, name in tried[:-1]]
    assert [] == [name for code, name in tried[:-1] if code == "0"]
    assert before == after
    assert "was-here" not in after
    record_row("A shell in the unit's sandbox", f"{len(ATTEMPTS)} ways to change the host, each refused", "-")


def test_a_failing_scan_is_one_line_of_the_status(node: Guest, record_row: RecordRow) -> None:
    """What is wrong, and no traceback."""
    program = "/opt/fabricscope/bin/fabricscope"
    drop_in(node, SERVICE, f"[Service]\nExecStart=\nExecStart={program} scan --quiet --config /nowhere.toml\n")
    try:
        failed = node.run("systemctl", "start", SERVICE, seconds=200)
        status = node.run("systemctl", "status", "--no-pager", SERVICE)
    finally:
        drop_in(node, SERVICE, "")
        node.run("systemctl", "reset-failed", SERVICE)

    assert failed.code != 0
    output = [line.partition("]: ")[2] for line in status.out.splitlines() if "]: error: " in line]
    assert 1 == len(output), status.out
    assert "/nowhere.toml" in output[0]
    assert "Traceback" not in status.out
    record_row(
        "A failing scan under systemd", next(line for line in status.out.splitlines() if "Active:" in line), output[0]
    )
