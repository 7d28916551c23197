"""What is left behind by the units' service: a child that no signal ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab.batches import SMALL
from tests.lab.conftest import RecordRow
from tests.lab.qemu.guest import Guest
from tests.lab.qemu.processes import SERVICE, report, scanning

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("real_commands"), pytest.mark.timeout(900)]
SHOWN = SMALL
NIC = "0000:9b:00.0"
STOPPED_SECONDS = 70.0  # systemd waits TimeoutStopSec (15 s) four times: a TERM and a KILL, and both once more
TIMES = f"systemctl show -p ExecMainExitTimestampMonotonic -p InactiveEnterTimestampMonotonic --value {SERVICE}"


@pytest.fixture(scope="module")
def silent(guest: Guest) -> Iterator[Guest]:
    """A NIC's firmware never answers, and no signal ends who asked."""
    guest.shell("systemctl stop fabricscope-scan.timer; rm -rf /var/lib/private/fabricscope /var/lib/fabricscope")
    guest.tell([f"silent {NIC} 1"])
    yield guest
    guest.tell([f"silent {NIC} 0"])


def test_a_hung_child_does_not_hold_up_the_unit(silent: Guest, record_row: RecordRow) -> None:
    """What is left behind has a bounded time to end, and the next run knows of it: its lock outlasts the service."""
    silent.run("systemctl", "start", SERVICE, seconds=200)  # it ends badly: with what it left behind
    hung, left = how(report(silent), "rdma"), scanning(silent)
    remaining, ended = (float(word) / 1e6 for word in silent.shell(TIMES).split())
    silent.run("systemctl", "start", SERVICE, seconds=200)
    again = how(report(silent), "rdma")

    assert "it cannot be killed and was left behind" in hung
    assert {"D"} == {line.split()[0] for line in left}
    assert ended - remaining < STOPPED_SECONDS
    assert "an earlier run's child is stuck since" in again
    record_row("A hung child of fabricscope-scan.service", f"it ended {ended - remaining:.0f} s after its scan", again)


def test_root_has_locks_of_its_own(silent: Guest, record_row: RecordRow) -> None:
    """A user who may write where the service keeps its locks cannot keep root from asking."""
    own = how(silent.scan("--only", "kernel,rdma", "--timeout", "30"), "rdma")
    folders = silent.shell("stat -Lc '%n %U %a' /run/fabricscope-root /run/fabricscope")

    assert "it cannot be killed and was left behind" in own
    # of a user that is gone
    assert ["/run/fabricscope-root root 700", "/run/fabricscope UNKNOWN 755"] == folders.splitlines()
    record_row("The same NIC, asked by root", folders, own)


def how(result: dict[str, Any], probe: str) -> str:
    """Why a probe did not end well."""
    return next(str(item["reason"]) for item in result["probes"] if item["name"] == probe)
