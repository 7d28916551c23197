"""Probes on a live host run in children that can be left behind; no probe takes another along, whatever it does."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from probes import child, locks, worker, worker_pool
from probes.capture.writer import write_capture
from probes.host import process
from probes.host.interface import Absent, Denied, Host
from probes.host.live import LiveHost
from probes.host.process import run_tool
from probes.pci.facts import PciFacts, PciFunction
from probes.probe import Outcome, Probe, Reading, Skipped, Status
from probes.run import run_probes
from probes.sources.capture import CaptureHost
from probes.sources.dump import SavedOutputs
from probes.sources.memory import MemoryFiles
from probes.sources.open_source import open_source
from probes.sources.tree import TreeHost
from probes.worker import Worker
from tests.conftest import ROOT
from tests.probes.runs import HOSTNAME, PATIENCE, ended, name, one, ran, sleep, stubborn

pytestmark = pytest.mark.usefixtures("real_commands", "lock_folder", "nothing_leaks")


def test_outcomes_stand_in_the_order_of_the_catalogue() -> None:
    """Whichever ends first; facts and sources come whole out of the children."""

    def slow(host: Host) -> Reading:
        time.sleep(0.3)
        return name(host)

    outcomes = ran(Probe("a", slow), Probe("b", name), Probe("c", slow)).outcomes

    assert [("a", Status.OK), ("b", Status.OK), ("c", Status.OK)] == [(o.name, o.status) for o in outcomes]
    assert {os.uname().nodename} == {o.facts for o in outcomes}
    assert {(HOSTNAME,)} == {o.sources for o in outcomes}


def read_pid(_host: Host) -> Reading:
    return Reading((os.getpid(), os.getsid(0)), ())


def numbered(*reads: Callable[[Host], Reading], bound: float = 10.0) -> list[Outcome]:
    """Probes named by number."""
    return ran(*(Probe(str(n), read, bound) for n, read in enumerate(reads))).outcomes


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However loaded the machine is, no second child is started for a probe that takes long."""
    monkeypatch.setattr(worker_pool, "SLOW_SECONDS", 60.0)


def test_nothing_of_a_probe_happens_in_the_parent(patient: None) -> None:
    """One child with its own session runs one probe after the other; a bug in one is no matter of the others."""

    def broken(_host: Host) -> Reading:
        raise ValueError("no number")

    first, failed, last = numbered(read_pid, broken, read_pid)
    pid, session = first.facts

    assert first.facts == last.facts
    assert os.getpid() != pid == session
    assert (Status.FAILED, "ValueError at broken") == (failed.status, (failed.reason or "")[:20])


def test_while_a_probe_takes_long_the_others_run_in_a_second_child() -> None:
    """They have ended before it."""

    def slow(host: Host) -> Reading:
        time.sleep(0.4)
        return Reading((os.getpid(), time.monotonic()), ())

    ends = [outcome.facts for outcome in numbered(slow, lambda _: Reading((os.getpid(), time.monotonic()), ()))]

    assert ends[0][0] != ends[1][0]
    assert ends[1][1] < ends[0][1]


@pytest.mark.parametrize(
    ("read", "is_alone"), [(read_pid, True), (lambda _: Reading({}["x"], ()), True), ("skipped", False)]
)
def test_after_a_vendors_library_the_child_runs_no_other_probe(
    patient: None, read: Callable[[Host], Reading] | str, is_alone: bool
) -> None:
    """What it may have spoiled there is not taken for what the next probe read; one that left before that has not."""

    def leaves(_host: Host) -> Reading:
        raise Skipped("no device")

    library = Probe("library", leaves if isinstance(read, str) else read, loads_library=True)
    before, _, after = ran(Probe("before", read_pid), library, Probe("after", read_pid)).outcomes

    assert is_alone == (before.facts != after.facts)


def test_what_hangs_takes_no_other_with_it(patient: None) -> None:
    """Those after it run in another child."""
    first, hung, second, third = numbered(read_pid, sleep, read_pid, read_pid, bound=0.3)

    assert Status.TIMED_OUT is hung.status
    assert first.facts != second.facts == third.facts


def test_what_dies_takes_no_other_with_it() -> None:
    """The rest answers, and the outcome of the one that died says how."""

    def die(_host: Host) -> Reading:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("it is dead")

    dead, after = numbered(die, read_pid)

    assert (Status.FAILED, "its process died of SIGKILL") == (dead.status, dead.reason)
    assert after.facts


def test_a_child_that_dies_between_two_probes_costs_neither() -> None:
    """The second one runs in another child."""

    class Fleeting(Worker):
        """Its process dies once the first probe has answered."""

        def rest(self) -> None:
            """See Worker.rest."""
            super().rest()
            os.kill(self.pid, signal.SIGKILL)
            ended(self.pid)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker_pool, "Worker", Fleeting)
        first, second, third = numbered(read_pid, read_pid, read_pid)

    assert 3 == len({outcome.facts for outcome in (first, second, third)})


def test_the_lock_of_a_probe_is_held_until_it_has_answered(patient: None, lock_folder: Path) -> None:
    """Another run waits for what is under way, and for nothing else."""

    def look(_host: Host) -> Reading:
        return Reading([isinstance(locks.acquire_lock(str(lock_folder), name), locks.Lock) for name in "012"], ())

    held = numbered(read_pid, look, read_pid)[1].facts

    assert [True, False, True] == held


def test_every_way_to_fail_is_an_outcome() -> None:
    """Refusals, bugs, facts that cannot be sent, an exit in the middle."""

    def refused(_: Host) -> Reading:
        raise Denied("needs root")

    def leaves(_: Host) -> Reading:
        raise Skipped("asleep")

    def broken(_: Host) -> Reading:
        return Reading({}["x"], ())

    def unsendable(_: Host) -> Reading:
        return Reading(lambda: None, ())

    def exits(_: Host) -> Reading:
        os._exit(7)

    probes = [Probe(f.__name__, f) for f in (refused, leaves, broken, unsendable, exits, name)]
    outcomes = {o.name: (o.status, o.reason or "") for o in ran(*probes).outcomes}

    assert (Status.DENIED, "needs root") == outcomes["refused"]
    assert (Status.SKIPPED, "asleep") == outcomes["leaves"]
    assert (Status.FAILED, "its process ended with exit code 7 and no answer") == outcomes["exits"]
    for probe, why in (("broken", "KeyError at broken:"), ("unsendable", "cannot be handed over")):
        assert Status.FAILED == outcomes[probe][0]
        assert why in outcomes[probe][1]
    assert Status.OK == outcomes["name"][0]


def test_a_child_that_dies_of_a_signal_says_which() -> None:
    """A segmentation fault in a driver's library takes nothing along."""

    def crash(_: Host) -> Reading:
        faulthandler.disable()  # pytest's, which would print over the test's own output
        ctypes.string_at(0)
        raise AssertionError("address 0 was read")

    outcome = one(crash)

    assert (Status.FAILED, "its process died of SIGSEGV") == (outcome.status, outcome.reason)


def test_an_answer_that_is_too_long_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """And is not read into the parent."""
    monkeypatch.setattr(worker, "ANSWER_LIMIT_BYTES", 1000)
    outcome = one(lambda _: Reading("x" * 2000, ()))

    assert Status.FAILED == outcome.status
    assert "bytes; 1000 are the most" in (outcome.reason or "")


def test_a_long_answer_comes_whole() -> None:
    """Much more than a pipe holds."""
    facts = one(lambda _: Reading(bytes(range(256)) * 40_000, ())).facts

    assert bytes(range(256)) * 40_000 == facts


def test_what_a_library_prints_does_not_reach_our_output(capfd: pytest.CaptureFixture[str]) -> None:
    """stdout carries data only."""

    def chatty(_: Host) -> Reading:
        os.write(1, b"hello from the driver")
        os.write(2, b"and its errors")
        return Reading(1, ())

    assert Status.OK == one(chatty).status
    assert ("", "") == capfd.readouterr()


@pytest.mark.parametrize("read", [sleep, stubborn])
def test_a_probe_has_its_bound(read: Callable[[Host], Reading]) -> None:
    """TERM, then KILL; its outcome says what it was doing, and the others have answered."""
    began = time.monotonic()
    slow, other = ran(Probe("slow", read, 0.4), Probe("other", name)).outcomes

    assert time.monotonic() - began < PATIENCE
    assert (Status.TIMED_OUT, Status.OK) == (slow.status, other.status)
    assert not slow.hung
    assert "no answer within 0.4 s: pid " in (slow.reason or "")
    assert "state S (sleeping)" in (slow.reason or "")


def computing(seconds: float) -> Callable[[Host], Reading]:
    """A probe that is at work all the time."""

    def read(host: Host) -> Reading:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            pass
        return name(host)

    return read


def test_a_probe_that_is_at_work_is_slow_and_not_hung() -> None:
    """On a loaded machine it gets longer than its bound; three bounds are the end of it."""
    began = time.monotonic()
    slow, endless = ran(Probe("slow", computing(0.6), 0.4), Probe("endless", computing(60.0), 0.3)).outcomes

    assert time.monotonic() - began < PATIENCE
    assert (Status.OK, Status.TIMED_OUT) == (slow.status, endless.status)
    assert 3 * 0.3 <= endless.seconds
    assert "state R (running)" in (endless.reason or "")


def test_a_child_that_waits_for_its_reader_is_not_hung() -> None:
    """Its answer fills the pipe, and this process got no CPU to read on: it sleeps because of us."""
    probe = Probe("large", lambda _: Reading("x" * 5_000_000, ()), 5.0)
    large = Worker([probe], LiveHost(), False, None, ())
    assert large.begin(probe, 1)
    while process.is_running(large.pid):
        time.sleep(0.01)
    silent = large.is_busy(time.monotonic())
    large._data += os.read(large.descriptor, 1024)
    answering = large.is_busy(time.monotonic())
    while not large.receive():
        time.sleep(0.01)
    large.close()
    os.waitpid(large.pid, 0)

    assert (False, True) == (silent, answering)
    assert large.answer is not None
    assert Status.OK is large.answer[0].status


def test_an_answer_in_the_last_moment_counts() -> None:
    """A child that still answers after TERM has answered."""

    def late(host: Host) -> Reading:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(0.6)
        return name(host)

    assert Status.OK == ran(Probe("late", late, 0.3)).outcomes[0].status


def test_the_whole_run_has_its_bound() -> None:
    """What runs is ended, what waits was not reached; each has an outcome."""
    began = time.monotonic()
    outcomes = ran(*(Probe(f"p{i}", sleep) for i in range(9)), seconds=0.5).outcomes

    assert time.monotonic() - began < PATIENCE
    assert {Status.TIMED_OUT} == {o.status for o in outcomes}
    reasons = [o.reason or "" for o in outcomes]
    started = sum("no answer within 0.5 s of the whole run" in reason for reason in reasons)
    assert 1 <= started <= worker_pool.AT_ONCE  # a further child starts when one is late: fewer on a busy machine
    assert 9 - started == sum(reason == "not reached within the 0.5 s of the whole run" for reason in reasons)


def test_a_tool_ends_with_its_probe(tmp_path: Path) -> None:
    """The child ends what it has started before it goes."""
    mark = tmp_path / "pid"
    (tmp_path / "ibstat").write_text(f"#!/bin/sh\necho $$ > {mark}\nexec sleep 60\n")
    (tmp_path / "ibstat").chmod(0o755)

    def asks(_: Host) -> Reading:
        return Reading(run_tool(("ibstat",), 30, (str(tmp_path),)), ())

    assert Status.TIMED_OUT == one(asks, 0.6).status
    assert ended(int(mark.read_text()))


def test_an_interrupt_ends_the_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the parent: no child outlives it."""

    def mark(_: Host) -> Reading:
        (tmp_path / "pid").write_text(str(os.getpid()))
        time.sleep(60)
        return Reading(None, ())

    class Impatient(worker_pool.WorkerPool):
        """Somebody presses Ctrl-C once the child runs."""

        def show(self, running: object) -> None:
            """See Run.show."""
            if (tmp_path / "pid").exists() and (tmp_path / "pid").read_text():
                raise KeyboardInterrupt

    monkeypatch.setattr(worker_pool, "WorkerPool", Impatient)
    with pytest.raises(KeyboardInterrupt):
        ran(Probe("one", mark))

    assert ended(int((tmp_path / "pid").read_text()))


SIGNALLED = """
import os, signal, sys
from probes.host.live import LiveHost
from probes.probe import Probe, Reading
from probes.run import run_probes

def fork(real=os.fork):
    pid = real()
    if pid == 0:
        os.kill(os.getpid(), signal.Signals[sys.argv[1]])
    return pid

def blocked(_host):
    lines = open("/proc/self/status").read().splitlines()
    masks = {name: int(value, 16) for name, value in (line.split(":") for line in lines if line[:4] == "SigB")}
    return Reading(masks["SigBlk"], ())

def raise_it(number, frame):
    raise SystemExit("raised")

for number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, raise_it)
if sys.argv[2:]:
    os.fork = fork
outcome, = run_probes((Probe("one", blocked), ), LiveHost(), 20.0).outcomes
print(outcome.status.name, outcome.facts)
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_to_a_child_that_has_just_begun_ends_it_alone(name: str) -> None:
    """Whatever the parent does with it: its code does not go on in the child. Nothing stays blocked in one."""

    def run(*arguments: str) -> tuple[int, str, str]:
        argv = [sys.executable, "-c", SIGNALLED, name, *arguments]
        result = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
        return result.returncode, result.stdout, result.stderr

    assert (0, "FAILED None\n", "") == run("early")
    assert (0, "OK 0\n", "") == run()


def test_every_fork_is_in_one_place() -> None:
    """What holds signals back until the child is a process of its own."""
    paths = [path for folder in ("agent", "probes") for path in (ROOT / folder).rglob("*.py")]
    forks = re.compile(r"\bos\.fork|_context\(\"fork|preexec_fn=")

    assert ["child.py"] == [path.name for path in paths if forks.search(path.read_text())]


def test_a_tool_ignores_no_signal_that_the_caller_of_the_scan_ignores(tmp_path: Path) -> None:
    """A background job of a shell has SIGINT ignored, nohup SIGHUP: it goes on to what is started."""
    (tmp_path / "ibstat").write_text("#!/bin/sh\nexec grep SigIgn /proc/self/status\n")
    (tmp_path / "ibstat").chmod(0o755)

    def asks(_: Host) -> Reading:
        return Reading(run_tool(("ibstat",), 30, (str(tmp_path),)).stdout, ())

    before = {number: signal.signal(number, signal.SIG_IGN) for number in child.STOP_SIGNALS}
    try:
        facts = one(asks).facts
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

    assert not int(facts.split()[1], 16) & sum(1 << (number - 1) for number in child.STOP_SIGNALS)


def ibstat(_: Host) -> bool:
    return True


def fails(_: Host) -> Reading:
    raise Absent("no driver")


def test_a_fall_back_runs_only_where_it_is_needed() -> None:
    """On a live host: after its primary, where that has not answered. Partial is an answer."""
    partial = Probe("partial", lambda _: Reading(1, (), "half"))
    outcomes = ran(
        Probe("for_good", name, fallback_for="good", evidence=ibstat),
        Probe("for_bad", name, fallback_for="bad"),
        Probe("for_partial", name, fallback_for="partial"),
        Probe("for_nobody", name, fallback_for="left out"),
        Probe("good", name),
        Probe("bad", fails),
        partial,
    ).outcomes
    result = {o.name: (o.status, o.reason) for o in outcomes}

    assert (Status.SKIPPED, "good answered") == result["for_good"]
    assert (Status.SKIPPED, "partial answered") == result["for_partial"]
    assert (Status.OK, None) == result["for_bad"] == result["for_nobody"]


def recorded(**files: bytes) -> CaptureHost:
    manifest = {"manifest.json": b'{"format": "fabricscope.capture/1"}'}
    memory = MemoryFiles()
    memory.add(HOSTNAME, b"replayed\n")
    return CaptureHost("x", MemoryFiles({**manifest, **files}), memory)


def test_a_recorded_host_is_asked_in_this_process() -> None:
    """Nothing can hang; a fall-back tells what its evidence holds, also where the primary has answered."""
    here = os.getpid()
    outcomes = ran(
        Probe("second", name, fallback_for="first", evidence=lambda _: True),
        Probe("third", name, fallback_for="first", evidence=lambda _: False),
        Probe("fourth", name, fallback_for="first", evidence=fails),  # type: ignore[arg-type]  # it raises a refusal
        Probe("first", lambda _: Reading(os.getpid(), ())),
        host=recorded(),
    ).outcomes
    result = {o.name: (o.status, o.facts) for o in outcomes}

    assert (Status.OK, here) == result["first"]
    assert (Status.OK, "replayed") == result["second"]
    assert (Status.SKIPPED, None) == result["third"] == result["fourth"]
    assert ["second", "third", "fourth", "first"] == [o.name for o in outcomes]


def test_a_run_over_its_time_ends_on_a_recorded_host_too() -> None:
    """Between two probes."""
    outcomes = ran(Probe("a", name), Probe("b", name), host=recorded(), seconds=-1).outcomes

    assert {Status.TIMED_OUT} == {o.status for o in outcomes}


def test_a_live_run_and_its_replay_say_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers, refusals, fall-backs, and the child that hung."""

    def gated(host: Host) -> Reading:
        if host.live:
            raise Skipped("asleep")
        return Reading(host.nvml("nvmlInit_v2"), ())

    probes = (
        Probe("name", name),
        Probe("twice", name),
        Probe("gated", gated),
        Probe("refused", lambda host: Reading(host.read("/proc/nothing"), ())),
        Probe("hangs", sleep, 0.3),
        Probe("for_name", name, fallback_for="name"),
        Probe("for_hangs", name, fallback_for="hangs"),
        Probe("links", lambda host: Reading((host.listdir("/sys/class/net"), host.resolve("/sys/class/net/lo")), ())),
    )
    live = ran(*probes, record=True)
    assert live.recording is not None
    write_capture(live.recording, str(tmp_path / "c.tar.gz"))

    replay = ran(*probes, host=open_source(str(tmp_path / "c.tar.gz")))

    assert [
        Status.OK,
        Status.OK,
        Status.SKIPPED,
        Status.ABSENT,
        Status.TIMED_OUT,
        Status.SKIPPED,
        Status.OK,
        Status.OK,
    ] == [o.status for o in live.outcomes]
    assert [(o.name, o.status, o.facts, o.reason, o.sources) for o in live.outcomes] == [
        (o.name, o.status, o.facts, o.reason, o.sources) for o in replay.outcomes
    ]


def test_recording_a_replay_gives_the_same_capture(tmp_path: Path) -> None:
    """A tee on a capture: what is copied is what was asked, lost probes with it."""
    probes = (Probe("name", name), Probe("hangs", sleep, 0.3))
    live = ran(*probes, record=True)
    assert live.recording is not None
    write_capture(live.recording, str(tmp_path / "1.tar"))
    again = ran(*probes, host=open_source(str(tmp_path / "1.tar")), record=True)
    assert again.recording is not None
    write_capture(again.recording, str(tmp_path / "2.tar"))

    assert (tmp_path / "1.tar").read_bytes() == (tmp_path / "2.tar").read_bytes()


def test_progress_is_told_when_it_takes_long() -> None:
    """Names what is still asked; silent for a second."""
    lines: list[str] = []

    def slow(host: Host) -> Reading:
        time.sleep(1.4)
        return name(host)

    run_probes([Probe("quick", name)], LiveHost(), 10, progress=lines.append)
    assert [] == lines
    run_probes([Probe("quick", name), Probe("slow", slow)], LiveHost(), 10, progress=lines.append)

    assert ["1 of 2 probes; asking slow"] == lines


class TestProbesOfOneVendor:
    """They run where the bus has a part of theirs, or was not read."""

    @staticmethod
    def ends(bus: Callable[[Host], Reading] | None, *, live: bool) -> Outcome:
        """How a vendor's probe ends beside this probe of the bus; it stands before that one in the catalogue."""
        vendor = Probe("vendor", lambda _: Reading("facts", ()), devices=(("0x1002", "0x12"),))
        host: Host = LiveHost() if live else TreeHost("tree", "", MemoryFiles(), SavedOutputs(MemoryFiles()))
        probes = [vendor, *([Probe("pci", bus)] if bus else [])]
        return run_probes(probes, host, 10).outcomes[0]

    @staticmethod
    def bus(*functions: tuple[str | None, str | None]) -> Callable[[Host], Reading]:
        """A bus with these vendors and classes."""
        result = tuple(
            PciFunction(f"0000:0{n}:00.0", None, "0000:00", vendor=v, class_code=c)
            for n, (v, c) in enumerate(functions)
        )
        return lambda _: Reading(PciFacts(result), ())

    @pytest.mark.parametrize("live", [False, True])
    def test_one_without_a_part_does_not_run(self, live: bool) -> None:
        """Its vendor's bridges are none, nor is another vendor's accelerator."""
        ended = self.ends(self.bus(("0x1002", "0x060400"), ("0x10de", "0x120000")), live=live)

        assert (Status.ABSENT, "no accelerator of PCI vendor 0x1002") == (ended.status, ended.reason)

    @pytest.mark.parametrize("live", [False, True])
    def test_one_with_a_part_runs_after_the_bus(self, live: bool) -> None:
        """Also where it stands first."""
        assert Status.OK == self.ends(self.bus(("0x1002", "0x120000")), live=live).status

    def test_where_the_bus_is_not_known_it_runs(self) -> None:
        """No list, a list without vendors, no such probe: only a list that was read says "none"."""

        def refuses(_: Host) -> Reading:
            raise Absent("no bus")

        assert Status.OK == self.ends(refuses, live=False).status
        assert Status.OK == self.ends(self.bus(("0x10de", "0x030200"), (None, None)), live=False).status
        assert Status.OK == self.ends(None, live=False).status
