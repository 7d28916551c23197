"""Children that cannot be killed, what their tools leave behind, and the locks by which later runs know of them."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from probes import locks, worker, worker_pool
from probes.host import process
from probes.host.interface import Host
from probes.host.process import run_tool
from probes.probe import Probe, Reading, Status
from probes.worker import Worker
from tests.probes.runs import PATIENCE, ended, name, one, ran, stubborn

pytestmark = pytest.mark.usefixtures("real_commands", "lock_folder", "nothing_leaks")


class Unkillable(Worker):
    """A stand-in for a child in an uninterruptible sleep: signals do nothing, and it never ends."""

    asleep = True

    def signal(self, number: signal.Signals) -> None:
        """Nothing, to the one that is stuck."""
        if not self.is_stuck():
            super().signal(number)

    def reap(self) -> int | None:
        """Not while it sleeps."""
        return None if self.asleep and self.is_stuck() else super().reap()

    def is_stuck(self) -> bool:
        """Whether it runs the probe of that name."""
        return self.probe is not None and self.probe.name == "stuck"


@pytest.fixture
def unkillable(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Children of this test cannot be killed, until its end."""
    monkeypatch.setattr(worker_pool, "Worker", Unkillable)
    for module in (worker, locks):  # ours sleeps where signals would reach it
        monkeypatch.setattr(module, "is_uninterruptible", lambda pid: True)
    monkeypatch.setattr(locks, "GRACE_SECONDS", 0.0)

    yield

    Unkillable.asleep = False
    for stuck in worker_pool._left_behind:
        os.kill(stuck.pid, signal.SIGKILL)
        os.waitpid(stuck.pid, 0)
    worker_pool._left_behind.clear()
    Unkillable.asleep = True


def test_a_child_that_cannot_be_killed_is_left_behind(unkillable: None) -> None:
    """The run goes on, ends in time, and says so; the next run says since when, at once, and adds no other."""
    began = time.monotonic()
    first, other = ran(Probe("stuck", stubborn, 0.3), Probe("other", name)).outcomes
    assert time.monotonic() - began < PATIENCE
    (left,) = worker_pool._left_behind
    began = time.monotonic()
    second, again = ran(Probe("stuck", name, 0.3), Probe("other", name)).outcomes

    assert "it cannot be killed and was left behind" in (first.reason or "")
    assert first.hung
    assert time.monotonic() - began < PATIENCE
    assert (Status.TIMED_OUT, Status.OK) == (second.status, again.status)
    assert f"an earlier run's child is stuck since {time.gmtime().tm_year}-" in (second.reason or "")
    assert second.hung
    assert f"pid {left.pid}, state S" in (second.reason or "")
    assert [left] == worker_pool._left_behind
    assert Status.OK == other.status
    assert re.fullmatch(
        rf"\S+ of \S+, pid {left.pid}, state S \(sleeping\)(, in \w+)?, running for \d+ s, holds \S+/run/stuck\.lock",
        locks.describe_holder("stuck") or "",
    )
    assert [None, None] == [locks.describe_holder(name) for name in ("other", "never run")]


LEAVES_A_DAEMON = """#!/bin/sh
(exec setsid sleep 60 </dev/null >/dev/null 2>&1) &
until [ "$(cat /proc/$!/comm)" = sleep ]; do :; done
echo $! >"$0.pid"
"""


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Callable[[Host], Reading]]:
    """A probe whose tool leaves a process behind, as nvidia-smi may start nvidia-persistenced."""
    tool = tmp_path / "ibstat"
    tool.write_text(LEAVES_A_DAEMON)
    tool.chmod(0o755)
    yield lambda _: Reading(run_tool(("ibstat",), 5.0, (str(tmp_path),)).returncode, ())
    os.kill(int((tmp_path / "ibstat.pid").read_text()), signal.SIGKILL)


def test_a_daemon_that_a_tool_left_is_no_hang(
    daemon: Callable[[Host], Reading], tmp_path: Path, lock_folder: Path
) -> None:
    """It holds the lock for good, and sleeps: the next run reads the fact, at once, and names it."""
    assert Status.OK is one(daemon).status
    pid = int((tmp_path / "ibstat.pid").read_text())
    assert isinstance(locks.acquire_lock(str(lock_folder), "one"), locks.LockHolder)
    began = time.monotonic()
    outcomes = [one(name), one(name)]

    assert [(Status.OK, False)] * 2 == [(outcome.status, outcome.hung) for outcome in outcomes]
    assert time.monotonic() - began < PATIENCE / 2
    assert f", pid {pid}, state S" in (locks.describe_holder("one", of_a_run=False) or "")


def test_a_daemon_that_hangs_is_a_hang(
    daemon: Callable[[Host], Reading], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The child of the run is gone: its tool is found by the lock that it keeps open."""
    one(daemon)
    pid = int((tmp_path / "ibstat.pid").read_text())
    thread, actual = f"{pid}/task/{pid}", process._state
    monkeypatch.setattr(process, "_state", lambda asked: "D" if asked == thread else actual(asked))
    hung = one(name)
    monkeypatch.setattr(process, "_state", lambda asked: "R" if asked == thread else actual(asked))
    assert Status.OK is one(name).status

    assert hung.hung
    assert f"an earlier run's child is stuck since {time.gmtime().tm_year}-" in (hung.reason or "")
    assert f": pid {pid}, state " in (hung.reason or "")


def test_a_process_that_sleeps_in_the_kernel_for_a_moment_is_no_hang(
    daemon: Callable[[Host], Reading], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As every one does that reads a disk."""
    one(daemon)
    pid = int((tmp_path / "ibstat.pid").read_text())
    thread, actual, looks = f"{pid}/task/{pid}", process._state, iter("DDD")
    monkeypatch.setattr(process, "_state", lambda asked: next(looks, "S") if asked == thread else actual(asked))

    outcome = one(name)

    assert (Status.OK, False) == (outcome.status, outcome.hung)
    assert [] == list(looks)


def test_daemons_on_both_locks(daemon: Callable[[Host], Reading], tmp_path: Path) -> None:
    """The probe runs without one."""
    pids = []
    for _ in range(2):
        assert Status.OK is one(daemon).status
        pids.append(int((tmp_path / "ibstat.pid").read_text()))

    assert Status.OK is one(name).status
    os.kill(pids[0], signal.SIGKILL)


def test_a_process_at_its_end_is_found_without_its_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The kernel has taken its list of open files, and the lock is released with the last of them: one of this user
    that began after the lock was taken; flags and start as proc_pid_stat(5) has them."""
    pid, began = os.getpid(), time.clock_gettime(time.CLOCK_BOOTTIME)
    fields = ["D", *"1" * 5, "4194308", *"0" * 12, f"{began * 100:.0f}"]
    monkeypatch.setattr(process, "_list_processes", lambda: [pid])
    monkeypatch.setattr(process, "_list_threads", lambda _: [f"{pid}/task/{pid}"])
    monkeypatch.setattr(process, "_read_stat", lambda _: fields)
    lock = str(tmp_path / "one.lock")

    assert pid == process.find_uninterruptible(lock, began - 5)
    assert process.find_uninterruptible(lock, began + 5) is None
    fields[6] = "4194304"
    assert process.find_uninterruptible(lock, began - 5) is None
    fields[:] = ["D"]
    assert process.find_uninterruptible(lock, began - 5) is None


def test_a_number_that_another_process_has_now() -> None:
    """A process that started after the note about it was written is another one."""
    pid, now = os.getpid(), time.clock_gettime(time.CLOCK_BOOTTIME)

    assert not process.is_gone(pid, now)
    assert process.is_gone(pid, 0.0)
    assert process.is_gone(2**22 + 1, now)


def test_a_killed_child_that_never_ends_and_does_not_sleep_is_no_hang(
    unkillable: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that gives it no CPU: it is left behind, and what is stated is what was seen."""
    monkeypatch.setattr(worker, "DYING_SECONDS", 0.5)
    monkeypatch.setattr(worker, "is_uninterruptible", lambda pid: False)

    (outcome,) = ran(Probe("stuck", stubborn, 0.3)).outcomes

    assert (Status.TIMED_OUT, False) == (outcome.status, outcome.hung)
    assert "it has not ended 0.5 s after it was killed and was left behind" in (outcome.reason or "")


class Dying(Worker):
    """A stand-in for a child that was killed and gets no CPU to end with: it is there for a second more."""

    def receive(self) -> bool:
        """Its pipe stays open as long."""
        return time.monotonic() > self.started + 3.0 and super().receive()


def test_a_killed_child_that_takes_its_time_to_end_is_no_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not in an uninterruptible sleep: it is waited for, and nobody is told to reboot."""
    monkeypatch.setattr(worker_pool, "Worker", Dying)

    (outcome,) = ran(Probe("stubborn", stubborn, 0.3)).outcomes

    assert Status.TIMED_OUT is outcome.status
    assert not outcome.hung
    assert "left behind" not in (outcome.reason or "")
    assert [] == worker_pool._left_behind


def test_a_lock_ends_with_the_child(unkillable: None) -> None:
    """Once the kernel lets go, nothing is left to clean up: the next run asks again."""
    ran(Probe("stuck", stubborn, 0.3))
    (left,) = worker_pool._left_behind
    Unkillable.asleep = False
    os.kill(left.pid, signal.SIGKILL)
    assert ended(left.pid)

    assert Status.OK == ran(Probe("stuck", name, 0.3)).outcomes[0].status


def test_a_healthy_run_at_the_same_time_is_waited_for() -> None:
    """It is not stuck: both answer."""

    def slow(host: Host) -> Reading:
        time.sleep(0.8)
        return name(host)

    def both(_: Host) -> Reading:
        pid = os.fork()
        if pid == 0:
            os._exit(0 if Status.OK == ran(Probe("same", slow, 5)).outcomes[0].status else 1)
        time.sleep(0.3)
        outcome = ran(Probe("same", slow, 5)).outcomes[0]
        return Reading((outcome.status, os.waitpid(pid, 0)[1]), ())

    began = time.monotonic()

    assert (Status.OK, 0) == one(both, 15).facts
    assert time.monotonic() - began > 1.5


@pytest.mark.parametrize(
    "content", ["[1, 2", "[" * 4096, "[1e999, 0, 0, 0]", "[null, 0, 0, 0]", '["x"]', "[NaN, 1, 1, 1]"]
)
def test_a_damaged_lock_names_no_holder(content: str, tmp_path: Path) -> None:
    """Whatever is in it, it is held."""
    (tmp_path / "one.lock").write_text(content)
    (tmp_path / "one.lock").chmod(0o600)
    with open(tmp_path / "one.lock") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        holder = locks.acquire_lock(str(tmp_path), "one")

    assert isinstance(holder, locks.LockHolder)
    assert 0 == holder.pid


@pytest.mark.parametrize("before", ["[4711, 5.5", "[" + "7" * 200], ids=["a name", "what is no name"])
def test_a_holder_writes_over_the_one_before(tmp_path: Path, before: str) -> None:
    """Without freeing the file's page first, which takes 0.1 ms for each probe; whatever is longer goes first."""
    (tmp_path / "one.lock").write_text(before + " 1, 2, 3, 4, 5, 6]")
    lock = locks.acquire_lock(str(tmp_path), "one")
    assert isinstance(lock, locks.Lock)
    lock.name_holder(42, 1.5)
    holder = locks.acquire_lock(str(tmp_path), "one")
    lock.close()

    assert isinstance(holder, locks.LockHolder)
    assert (42, 1.5) == (holder.pid, holder.bound_seconds)


def test_a_lock_that_stays_held_by_the_healthy_is_timed_out(lock_folder: Path) -> None:
    """After the probe's own bound, in words that blame nobody."""
    os.mkdir(lock_folder, 0o700)
    holder = locks.acquire_lock(str(lock_folder), "one")
    assert isinstance(holder, locks.Lock)
    holder.name_holder(os.getpid(), 100.0)
    outcome = one(name, 0.4)
    holder.close()

    assert Status.TIMED_OUT == outcome.status
    assert f"another run is still at it (pid {os.getpid()}, " in (outcome.reason or "")


def test_a_tool_that_cannot_be_killed_keeps_the_lock(tmp_path: Path, lock_folder: Path) -> None:
    """The probe's child is gone, its tool is not: no second one joins it."""
    mark = tmp_path / "pid"
    (tmp_path / "ibstat").write_text(f"#!/bin/sh\necho $$ > {mark}\nexec sleep 60\n")
    (tmp_path / "ibstat").chmod(0o755)

    def abandons(_: Host) -> Reading:
        os.killpg = lambda *_: None  # type: ignore[assignment]  # in this child: as if the kernel did not let go
        return Reading(run_tool(("ibstat",), 0.3, (str(tmp_path),)), ())

    assert Status.TIMED_OUT == one(abandons, 5).status
    holder = locks.acquire_lock(str(lock_folder), "one")
    os.kill(int(mark.read_text()), signal.SIGKILL)

    assert isinstance(holder, locks.LockHolder)


@pytest.mark.parametrize("place", ["/proc/nowhere", "{tmp}/file", "{tmp}/open"])
def test_without_a_place_for_locks_probes_run_all_the_same(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No folder, no folder possible, or one that others can write to."""
    (tmp_path / "file").write_text("")
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    monkeypatch.setenv(locks.FOLDER_VARIABLE, place.format(tmp=tmp_path))

    assert Status.OK == one(name).status
    assert locks.run_folder() is None
    assert [] == os.listdir(tmp_path / "open")


def test_the_folder_of_a_service_may_be_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """systemd's RuntimeDirectory= is one, to /run/private, where the user is dynamic."""
    (tmp_path / "private").mkdir(mode=0o755)
    (tmp_path / "service").symlink_to("private")
    monkeypatch.setenv(locks.FOLDER_VARIABLE, str(tmp_path / "service"))

    assert str(tmp_path / "private") == locks.run_folder()


def test_a_lock_file_that_is_a_link_is_not_followed(lock_folder: Path, tmp_path: Path) -> None:
    """Nothing is written through it."""
    os.mkdir(lock_folder, 0o700)
    (tmp_path / "victim").write_text("mine")
    (lock_folder / "one.lock").symlink_to(tmp_path / "victim")

    assert Status.OK == one(name).status
    assert "mine" == (tmp_path / "victim").read_text()


@pytest.mark.parametrize("text", ["", "{", "[1]", '["a", "b", "c", "d"]', json.dumps([1, 2]) * 3])
def test_a_lock_file_that_says_nothing_is_no_stuck_child(text: str, lock_folder: Path) -> None:
    """Its holder has just begun, as far as anybody knows."""
    os.mkdir(lock_folder, 0o700)
    held = locks.acquire_lock(str(lock_folder), "one")
    assert isinstance(held, locks.Lock)
    os.pwrite(held.descriptor, text.encode(), 0)
    holder = locks.acquire_lock(str(lock_folder), "one")
    held.close()

    assert isinstance(holder, locks.LockHolder)
    assert not holder.is_over


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("fsfreeze"), reason="needs root and fsfreeze")
def test_a_real_uninterruptible_sleep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ext4 on a loop device, frozen: a child that writes there can be killed by nobody. The run comes back."""
    monkeypatch.setattr(locks, "GRACE_SECONDS", 0.0)
    with frozen(tmp_path) as mount:

        def write(_: Host) -> Reading:
            (mount / "file").write_bytes(b"x")
            return Reading(1, ())

        began = time.monotonic()
        first = ran(Probe("disk", write, 0.5)).outcomes[0]
        first_took = time.monotonic() - began
        began = time.monotonic()
        second = ran(Probe("disk", write, 0.5)).outcomes[0]
        second_took = time.monotonic() - began
        (left,) = worker_pool._left_behind
    assert ended(left.pid)
    third = ran(Probe("disk", lambda host: Reading(1, ()), 0.5)).outcomes[0]

    assert (Status.TIMED_OUT, Status.TIMED_OUT, Status.OK) == (first.status, second.status, third.status)
    assert "state D (uninterruptible sleep)" in (first.reason or "")
    assert "it cannot be killed and was left behind" in (first.reason or "")
    assert "an earlier run's child is stuck since 20" in (second.reason or "")
    assert first.hung
    assert second.hung
    assert f"pid {left.pid}, state D" in (second.reason or "")
    assert first_took < PATIENCE
    assert second_took < PATIENCE


class frozen:  # noqa: N801 - reads as a context manager
    """A mounted filesystem that takes no writes until the end."""

    def __init__(self, folder: Path) -> None:
        self.image, self.mount = folder / "image", folder / "mount"

    def __enter__(self) -> Path:
        with self.image.open("wb") as file:
            file.truncate(16 << 20)
        self.mount.mkdir()
        for argv in (["mkfs.ext4", "-q", self.image], ["mount", "-o", "loop", self.image, self.mount]):
            done = subprocess.run(argv, capture_output=True, text=True, check=False)
            if done.returncode:
                pytest.skip(f"no loop device here: {done.stderr.strip()}")
        subprocess.run(["fsfreeze", "-f", self.mount], check=True)
        return self.mount

    def __exit__(self, *_: object) -> None:
        subprocess.run(["fsfreeze", "-u", self.mount], check=True)
        for _ in range(50):
            if subprocess.run(["umount", self.mount], capture_output=True, check=False).returncode == 0:
                return
            time.sleep(0.1)
