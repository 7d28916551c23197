"""Multicast groups and the log of this kernel: what comes, what was lost, who may speak."""

from __future__ import annotations

import errno
import os
import select
import socket
import subprocess
import sys

import pytest

from probes.host import event_sockets as listening
from probes.host.event_sockets import KERNEL, LINKS, ROUTE, UEVENT, KernelLog, NetlinkGroup, Overrun
from probes.host.interface import Denied, Failed, ReadError
from tests.conftest import ROOT
from tests.probes.namespace import in_namespace

FLOOD = """
import select, subprocess, sys
from probes.kernel import events
from probes.host.event_sockets import NetlinkGroup
events.NetlinkGroup = lambda *which: NetlinkGroup(*which, 1)
listener = events._interfaces("rtnetlink")
batch = "link set lo up\\nlink set lo down\\n" * 100
subprocess.run(["ip", "-batch", "-"], input=batch, text=True, check=True)
poll = select.poll()
poll.register(listener.fileno(), select.POLLIN)
kinds = []
while poll.poll(500):
    kinds += [event.kind for event in listener.heard()]
assert len(kinds) < 200, kinds
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
assert poll.poll(20000)
print(kinds.count("missed"), [event.text for event in listener.heard()])
"""


def test_a_group_that_ran_over_says_so_once_and_goes_on(real_commands: None) -> None:
    """ENOBUFS, for real: 200 changes and room for a few. poll(2) is quiet afterwards; what comes next is heard, and
    held against what is there now, not against what was there before the loss."""
    result = in_namespace(FLOOD).stdout

    assert result.startswith("1 "), result
    assert "['lo down -> unknown']" in result


def test_nothing_is_waited_for() -> None:
    """Both groups can be joined by anybody; without an event there is nothing."""
    for protocol, group in ((ROUTE, LINKS), (UEVENT, KERNEL)):
        place = NetlinkGroup(protocol, group)
        assert place.fileno() > 2
        assert isinstance(place.waiting(), list)
        place.close()


def test_only_the_kernel_is_believed() -> None:
    """A message of another process is thrown away."""
    place = NetlinkGroup(ROUTE, LINKS)
    port = int(place._socket.getsockname()[0])
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as other:
        try:
            other.sendto(b"forged by another process", (port, 0))
        except OSError as error:
            pytest.skip(f"a process may not send to another here: {error.strerror}")

    assert select.select([place], [], [], 10)[0]
    assert [] == place.waiting()
    place.close()


def test_a_group_that_the_kernel_lacks_is_a_reason() -> None:
    """Not a traceback."""
    with pytest.raises(ReadError, match="netlink protocol 31"):
        NetlinkGroup(31, 1)


READS = """
import os, select, subprocess, sys
from probes.host.event_sockets import KernelLog
log = KernelLog()
assert [] == log.waiting(), "what stands there already is not told"
renamed = "ip link add v0 type veth peer name v1; ip link set v0 name w0; ip link del w0"
subprocess.run(["sh", "-c", renamed], check=True)
assert select.select([log], [], [], 20)[0]
print(b"".join(log.waiting()).decode())
"""


def test_the_log_is_read_from_its_end(real_commands: None) -> None:
    """What the kernel writes from now on: here, that an interface was renamed."""
    try:
        KernelLog().close()
    except ReadError as why:
        pytest.skip(f"the kernel's log cannot be read here: {why}")

    assert ";w0: renamed from v0" in in_namespace(READS).stdout


def test_without_privilege_the_log_names_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a user under kernel.dmesg_restrict."""

    def refuse(*_: object) -> int:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(Denied, match="CAP_SYSLOG"):
        KernelLog()


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (BrokenPipeError(errno.EPIPE, "x"), Overrun),
        (OSError(errno.EIO, "x"), Failed),
        (b"", Failed),
    ],
)
def test_records_that_were_overwritten_and_a_log_that_ends(
    answer: bytes | Exception, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """To write the log over would take a real one; so the answer of read(2) is given here."""
    try:
        log = KernelLog()
    except ReadError as why:
        pytest.skip(f"the kernel's log cannot be read here: {why}")
    answers = [b"6,1,2,-;one\n", answer]

    def read(_descriptor: int, _size: int) -> bytes:
        result = answers.pop(0)
        if isinstance(result, Exception):
            raise result
        return result

    monkeypatch.setattr(listening.os, "read", read)
    with pytest.raises(error):
        log.waiting()
    monkeypatch.undo()
    log.close()


def test_an_ordinary_user_can_listen_too(real_commands: None) -> None:
    """As nobody: both groups; the log where the host allows it, else a line that says why not."""
    if os.geteuid() != 0:
        pytest.skip("only root can become nobody")
    code = (
        "import os; from probes.kernel import events; import probes.host.ethtool_ioctl, socket; "
        "os.setgid(65534); os.setuid(65534); found, refused = events.listeners(); "
        "print([each.name for each in found], refused)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)

    assert "['rtnetlink', 'uevents'" in done.stdout
    assert "'/dev/kmsg']" in done.stdout or "needs CAP_SYSLOG" in done.stdout
