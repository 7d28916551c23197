"""Runs that are killed, that meet each other, or that have no room on a disk: nothing is lost or doubled."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.ship.options import TargetOptions, open_target
from agent.ship.payload import compress, parse_payload
from agent.ship.run import RunResult
from agent.ship.run import ship as run_ship
from agent.ship.target import FolderTarget, SendResult, SendStatus, Target
from tests.agent.ship.servers import OK, QUICK, Down, Request, Run, Up, hang, raw, reply, report, serving
from tests.conftest import IN_FULL, ROOT

KILLS = 30 if IN_FULL else 10
CODE = "import sys; from agent.cli.main import run; sys.exit(run(sys.argv[1:]))"
CALLS = ("open", "write", "fsync", "replace", "rename", "unlink", "truncate", "listdir", "scandir", "close", "makedirs")


def command(run: Run, url: str, *reports: str, timeout: float = 30) -> list[str]:
    """`fabricscope ship`, as a process."""
    spool = ["--spool", str(run.path), "--timeout", str(timeout)]
    return [sys.executable, "-c", CODE, "ship", *reports, "--to", url, *spool]


def start(arguments: list[str]) -> subprocess.Popen[str]:
    """It runs."""
    pipe = subprocess.PIPE
    return subprocess.Popen(arguments, cwd=ROOT, text=True, stdout=pipe, stderr=pipe)


def test_killed_again_and_again(real_commands: None, run: Run) -> None:
    """kill -9 at a random moment, thirty times, while a slow endpoint is fed: all that was ever taken in arrives, each
    with one key."""

    def slow(sock: object, request: Request) -> bool:
        time.sleep(random.random() * 0.02)
        return random.choice([OK, OK, OK, reply(503), raw(b"")])(sock, request)  # type: ignore[arg-type]  # a socket

    run.ship(Down(), *[report(number, "error" if number % 3 else "ok") for number in range(40)])
    known = {name.split("_")[2][:64] for name in run.waiting}
    endings = []
    with serving(OK) as server:
        started = time.monotonic()
        start(command(Run(run.folder / "other", []), server.url, run.file(report()))).communicate()
        whole = time.monotonic() - started  # of a run with nothing to do, on this machine today
        server.behaviours = [slow]
        for number in range(3 * KILLS):  # until one was in time to take its report in
            if number >= KILLS and len(known) > 40:
                break
            child = start(command(run, server.url, run.file(report(100 + number), f"{number}.json")))
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(whole * (0.3 + 0.8 * random.random()))
            child.kill()
            child.communicate()
            endings.append(child.returncode)
            before = len(known)
            known |= {name.split("_")[2][:64] for name in run.waiting if not name.startswith(".")}
            whole *= 1 if len(known) > before else 1.15  # a machine that became slower: later moments, too
        server.behaviours = [OK]
        result = run.ship(open_target(TargetOptions(server.url), {}))

    arrived: dict[str, set[str]] = {}
    for request in server.requests:
        arrived.setdefault(hashlib.sha256(request.report).hexdigest(), set()).add(request.headers["idempotency-key"])
    assert result.all_handed_over
    assert len(known) > 40, endings
    assert -signal.SIGKILL in endings
    assert known <= set(arrived)
    assert {digest: {digest} for digest in arrived} == arrived
    assert [] == run.waiting
    assert {"healthy": 0, "not_judged": 0, "with_findings": 0, "set_aside": 0} == run.state["dropped"]
    assert [] == list((run.path / "aside").iterdir())


def killed_at(count: int, run: Run, target: object, *reports: bytes) -> bool:
    """A run in a child that ends without a word before its call `count` that touches the disk; whether it got there."""
    child = os.fork()
    if child == 0:
        left = [count]

        def counted(name: str) -> object:
            real = getattr(os, name)

            def call(*arguments: object, **more: object) -> object:
                left[0] -= 1
                if left[0] == 0:
                    os._exit(9)
                return real(*arguments, **more)

            return call

        for name in CALLS:
            setattr(os, name, counted(name))
        run.ship(target, *reports)  # type: ignore[arg-type]  # a target
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


class Writes(Down):
    """A target that takes and remembers, across processes."""

    def __init__(self, path: Path) -> None:
        super().__init__(SendResult(SendStatus.ACCEPTED))
        self.path = path

    def hand_over(self, payload: object, until: float) -> SendResult:
        """Append."""
        with open(self.path, "a") as file:
            file.write(f"{payload.digest}\n")  # type: ignore[attr-defined]  # a payload
        return self.answer


def test_killed_before_every_single_call_while_it_hands_over(run: Run) -> None:
    """One after another, every call that touches the disk: the report arrives in the end, whatever was the last one."""
    for count in range(1, 400):
        place = Run(run.folder / str(count), [])
        place.folder.mkdir()
        target = Writes(place.folder / "taken")
        place.ship(Down(), report(0), report(1, "error"))
        got_there = killed_at(count, place, target, report(2))
        place.ship(target, report(2))

        taken = (place.folder / "taken").read_text().split()
        assert {parse_payload(item).digest for item in (report(0), report(1, "error"), report(2))} == set(taken)
        assert [] == place.waiting
        assert {"healthy": 0, "not_judged": 0, "with_findings": 0, "set_aside": 0} == place.state["dropped"]
        if not got_there:
            break
    else:
        pytest.fail("it never ends")
    assert count > 20


def test_killed_before_every_single_call_while_it_drops(run: Run) -> None:
    """A full spool: what waits and what is counted as dropped is together what was taken in, whenever it was killed."""
    for count in range(1, 400):
        place = Run(run.folder / str(count), [], count=2)
        place.folder.mkdir()
        place.ship(Down(), report(0), report(1))
        got_there = killed_at(count, place, Down(), report(2, "error"), report(3, "error"))
        place.ship(Down(), report(2, "error"), report(3, "error"))

        assert ["error", "error"] == [name.split("_")[1] for name in place.waiting]
        assert {"healthy": 2, "not_judged": 0, "with_findings": 0, "set_aside": 0} == place.state["dropped"]
        if not got_there:
            break
    else:
        pytest.fail("it never ends")
    assert count > 20


def test_two_runs_at_once(real_commands: None, run: Run) -> None:
    """One hands over what both have; each report goes once, and both end well."""
    run.ship(Down(), *[report(number) for number in range(30)])

    def slow(sock: object, request: Request) -> bool:
        time.sleep(0.02)
        return OK(sock, request)  # type: ignore[arg-type]  # a socket

    with serving(slow) as server:
        files = [run.file(report(number), f"{number}.json") for number in (50, 51)]
        children = [start(command(run, server.url, file)) for file in files]
        result = [child.communicate(timeout=60) for child in children]

    assert [0, 0] == [child.returncode for child in children], result
    assert 32 == len(server.requests)
    assert 32 == len({request.headers["idempotency-key"] for request in server.requests})
    assert 32 == run.state["handed_over"]


def test_a_run_that_hangs_on_costs_no_report(run: Run) -> None:
    """Another one holds the spool all the time: the report is left with it, and goes with the next run."""
    with run.spool().lock(time.monotonic()) as holder:
        assert holder
        result = run.ship(Up(), report(), seconds=0.2)
        assert (0, 1) == (result.accepted, result.waiting)
        assert "another run holds" in (result.reason or "")
    up = Up()
    assert run.ship(up).all_handed_over
    assert [report()] == [payload.data for payload in up.payloads]


def test_an_interrupt_leaves_nothing_half(real_commands: None, run: Run) -> None:
    """No traceback, and the report waits."""
    with serving(hang) as server:
        child = start(command(run, server.url, run.file(report())))
        until = time.monotonic() + 30
        while not server.requests and time.monotonic() < until:
            time.sleep(0.02)
        child.send_signal(signal.SIGINT)
        _, result = child.communicate(timeout=30)

    assert len(result.splitlines()) <= 1
    assert "Traceback" not in result
    assert 130 == child.returncode
    assert [gzip.decompress(compress(report(), "gzip"))] == [
        gzip.decompress((run.path / "waiting" / name).read_bytes()) for name in run.waiting
    ]


# A real disk without room, on our side and on the other: what can be kept is, and the rest is counted.


@pytest.fixture
def small_disk(tmp_path: Path, real_commands: None) -> Iterator[Path]:
    """A real file system of 160 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=160k", "fabricscope-test", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("mounting a small disk needs root")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def fill(disk: Path) -> None:
    """Leave no room."""
    with contextlib.suppress(OSError), open(disk / "ballast", "ab", buffering=0) as file:
        while True:
            file.write(b"x" * 512)


def test_a_full_disk(small_disk: Path) -> None:
    """A healthy report that waits goes for a finding; what has no room is tried at once; all of it is counted."""
    run = Run(small_disk.parent, [])
    on_disk = Run(small_disk, run.warnings)
    spool = on_disk.path

    def ship(target: Target, *reports: bytes) -> RunResult:
        paths = [run.file(data, f"{number}.json") for number, data in enumerate(reports)]
        return run_ship(paths, target, on_disk.spool(), time.monotonic() + 30, QUICK, run.warnings.append)

    ship(Down(), *[report(number, pad=2500) for number in range(5)])
    fill(small_disk)
    result = ship(Down(), report(10, "error", pad=2500))
    assert (1, 5) == (result.dropped["healthy"], result.waiting)
    assert 1 == sum("_error_" in name for name in on_disk.waiting)

    fill(small_disk)
    result = ship(Down(), report(0, "ok", pad=2400))  # the oldest of all, and healthy
    assert (1, 5) == (result.dropped["healthy"], result.waiting)
    fill(small_disk)
    up = Up()
    result = ship(up, report(11, "ok", pad=9000))
    assert (6, True) == (result.accepted, result.all_handed_over)
    (small_disk / "ballast").unlink()
    ship(Up())
    assert 2 == on_disk.state["dropped"]["healthy"]  # type: ignore[index]  # a map
    assert 6 == on_disk.state["handed_over"]
    assert spool.exists()


def test_a_full_drop(small_disk: Path, tmp_path: Path) -> None:
    """The other end is full: nothing half is left there, and the report waits."""
    fill(small_disk)
    run = Run(tmp_path, [])
    result = run.ship(FolderTarget(str(small_disk), "none"), report(pad=5000))

    assert 1 == result.waiting
    assert "No space left" in (result.reason or "")
    assert ["ballast"] == [item.name for item in small_disk.iterdir()]
    (small_disk / "ballast").unlink()
    assert run.ship(FolderTarget(str(small_disk), "none")).all_handed_over
