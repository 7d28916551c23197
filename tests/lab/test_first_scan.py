"""A first scan, without an earlier one to compare with: what it finds, what it needs, and what it leaves alone."""

from __future__ import annotations

import pytest

from tests.lab.batches import SMALL
from tests.lab.conftest import RecordRow, above_info, started
from tests.lab.qemu.guest import SCAN, Guest
from tests.lab.qemu.shown import BARE

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("real_commands"), pytest.mark.timeout(900)]
SHOWN = SMALL
NIC, OTHER_NIC = "0000:1b:00.0", "0000:9b:00.0"
PORT, OTHER_PORT = "enp27s0np0", "enp155s0np0"
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs", "--")
COMMANDS = (
    "scan --timeout 60 --quiet",
    "check --timeout 60",
    "capture -o /tmp/CAPTURE.tar.zst",
    "recommend --timeout 60",
)
ASK = "import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 20)"  # NETLINK_RDMA
SETTLED_SECONDS = 1200  # since boot: lines of the first quarter of an hour are left out
FLAPS = 6
ARP = "/proc/sys/net/ipv4/conf"


def loaded(guest: Guest) -> set[str]:
    """The modules of the kernel."""
    return {line.split()[0] for line in guest.must("cat", "/proc/modules").splitlines()}


def test_no_module_is_loaded_by_reading(record_row: RecordRow) -> None:
    """Not by the kernel either, for the protocol of a socket, a netlink family or an ioctl; root and nobody."""
    guest = started("-bare", shape=BARE)
    try:
        before = loaded(guest)
        for number, command in enumerate(COMMANDS):
            for who in ((), NOBODY):
                words = command.replace("CAPTURE", f"{number}-{len(who)}").split()
                done = guest.run(*who, SCAN, *words, seconds=3600)  # its clock leaps where it waits for the disk
                assert done.code in (0, 1, 2, 3), (words, done)
                assert "Traceback" not in done.err
        after = loaded(guest)
        guest.must(*NOBODY, "python3", "-c", ASK)
        control = loaded(guest)
    finally:
        guest.close()

    assert "ib_core" not in before
    assert before == after
    assert "ib_core" in control  # one such socket, opened by nobody, and the kernel would have loaded it
    result = f"{len(before)} modules before and after {len(COMMANDS)} commands, by root and by a user without privilege"
    record_row("No module is loaded by a scan; a netlink socket of RDMA would load ib_core", result, "nothing loaded")


def test_a_user_without_privilege_sees_the_healthy_machine(guest: Guest, record_row: RecordRow) -> None:
    """Every essential rule is judged without root: the verdict is ok and not unknown."""
    report = guest.scan(user=NOBODY)
    denied = [probe["name"] for probe in report["probes"] if probe["status"] in ("denied", "partial")]

    assert [] == above_info(report)
    assert "ok" == report["summary"]["verdict"]
    assert [] == [probe for probe in report["probes"] if probe["status"] in ("failed", "timed_out")]
    result = f"verdict {report['summary']['verdict']}; in part or denied: {', '.join(denied) or 'none'}"
    record_row("A scan by a user without privilege", guest.must(*NOBODY, "id", "-u").strip(), result)


def test_rails_in_one_subnet_are_found(guest: Guest, record_row: RecordRow) -> None:
    """By addresses and sysctls as the kernel has them; with ARP kept apart it is no finding."""
    guest.shell(f"ip address add 10.77.0.1/24 dev {PORT}; ip address add 10.77.0.2/24 dev {OTHER_PORT}")
    try:
        report = guest.scan()
        kernel = guest.shell(f"grep -H . {ARP}/all/arp_ignore {ARP}/{PORT}/arp_ignore")
        guest.write(f"{ARP}/all/arp_ignore", "1")
        apart = guest.scan()
    finally:
        guest.write(f"{ARP}/all/arp_ignore", "0")
        guest.shell(f"ip address del 10.77.0.1/24 dev {PORT}; ip address del 10.77.0.2/24 dev {OTHER_PORT}")

    assert [("rails-one-subnet", "warning", "node")] == above_info(report)
    assert [] == above_info(apart)
    record_row("Two rails have addresses of one IPv4 subnet", kernel, summary(report, "rails-one-subnet"))


def test_a_rail_without_its_rdma_device_is_found(guest: Guest, record_row: RecordRow) -> None:
    """Its driver is bound and its interface up: one rail, then all of them with the module unloaded."""
    guest.tell([f"remove {NIC}"])
    one = guest.scan()
    guest.tell([f"remove {OTHER_NIC}"])
    guest.shell("rmmod mlx5_ib; udevadm settle")
    every = guest.scan()

    assert ("rdma-device-missing", "error", f"pci:{NIC}") in above_info(one)
    assert {"rdma-device-missing"} == {rule for rule, _, _ in above_info(one)}
    assert [("rdma-device-missing", "critical", "node")] == above_info(every)
    result = f"{summary(one, 'rdma-device-missing')}; {summary(every, 'rdma-device-missing')}"
    kernel = guest.shell("ls /sys/class/infiniband | wc -l; grep -c mlx5_ib /proc/modules || true")
    record_row("A rail without its RDMA device; all rails, and mlx5_ib is unloaded", kernel, result)


def test_flaps_are_found_by_the_kernel_log_alone(record_row: RecordRow) -> None:
    """On the first scan, with no earlier sample: the lines that the driver printed, hours apart."""
    guest = started("-flaps", shape=SMALL)
    try:
        guest.must("sleep", str(SETTLED_SECONDS), seconds=2.0 * SETTLED_SECONDS)
        for _ in range(FLAPS):
            guest.tell([f"log mlx5_core {NIC} {PORT}: Link down"])
            guest.must("sleep", "20")
            guest.tell([f"log mlx5_core {NIC} {PORT}: Link up"])
            guest.must("sleep", "600", seconds=1200)
        report = guest.scan(uptime=None)
        kernel = guest.shell(f"dmesg | grep '{PORT}: Link down' | tail -2")
    finally:
        guest.close()

    assert [("roce-link-flap", "error", f"port:{NIC}/1")] == above_info(report)
    assert report["counters_window"] is None
    record_row(
        "The link of a rail went down six times before the first scan", kernel, summary(report, "roce-link-flap")
    )


def summary(report: dict[str, object], rule: str) -> str:
    """What the finding of a rule says."""
    findings = report["findings"]
    assert isinstance(findings, list)
    return "; ".join(finding["summary"] for finding in findings if finding["rule"] == rule)
