"""The loop on real descriptors and a fixture machine: what is heard is judged; signals and places that end."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from agent.diagnose import ScanPlan
from agent.model.profile import BadProfile
from agent.model.report import Report
from agent.watch import loop as loop_of
from agent.watch.debounce import REQUESTED, START, Batch, Debouncer
from agent.watch.evaluate import Evaluation, Evaluator
from agent.watch.loop import StopSignal, Watch, WatchSignals
from probes import locks, worker_pool
from probes.host.event_sockets import Overrun
from probes.host.interface import Failed, Host
from probes.host.live import LiveHost
from probes.kernel.events import MISSED, UEVENTS, Listener, device_events
from probes.probe import Probe, Reading
from probes.run import run_probes
from tests.agent.watch.test_evaluate import NAMES, WIDTH, Machine
from tests.conftest import ROOT

PCI = b"change@/devices/pci0000:4a/0000:4a:01.0/0000:4c:00.0\0SUBSYSTEM=pci\0"
RDMA = b"add@/devices/pci0000:16/0000:1a:00.0/infiniband/mlx5_0\0SUBSYSTEM=infiniband\0"
LOST, ENDS = b"lost", b"ends"


class Wire:
    """A place whose datagrams the test sends; two of them stand for an overrun and for its end."""

    def __init__(self) -> None:
        self.far, self._near = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._near.setblocking(False)

    def fileno(self) -> int:
        return self._near.fileno()

    def waiting(self) -> list[bytes]:
        data = self._near.recv(1000)
        if data == LOST:
            raise Overrun
        if data == ENDS:
            raise Failed("the place is gone")
        return [data]

    def close(self) -> None:
        self.far.close()
        self._near.close()


class Script:
    """What is done after each judging, in turn; after the last the process is told to end."""

    def __init__(self, *steps: Callable[[], None]) -> None:
        self.steps = list(steps)
        self.printed: list[tuple[Batch, Evaluation]] = []
        self.warnings: list[str] = []
        self.kept: list[Report] = []
        self.asks = False  # for a full scan, whenever something is said

    def write_changes(self, batch: Batch, evaluation: Evaluation) -> None:
        self.printed.append((batch, evaluation))
        step = self.steps.pop(0) if self.steps else lambda: os.kill(os.getpid(), signal.SIGTERM)
        step()

    def write_report(self, report: Report) -> None:
        self.kept.append(report)

    def warn(self, text: str) -> None:
        self.warnings.append(text)
        if self.asks:
            os.kill(os.getpid(), signal.SIGUSR1)

    def run(self, evaluator: Evaluator, wire: Wire | None = None) -> None:
        """Until the end of the script."""
        places = [Listener(UEVENTS, wire, device_events)] if wire else []
        with WatchSignals() as signals:
            Watch(places, Debouncer(0.02, 3600), evaluator, signals, self).run()

    def reasons(self) -> list[list[str]]:
        return [[reason.event.kind for reason in batch.reasons] for batch, _ in self.printed]


@pytest.fixture
def wire() -> Wire:
    return Wire()


@pytest.fixture(autouse=True)
def no_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests' own stdout may be a pipe that somebody closes: it is none of theirs."""
    monkeypatch.setattr(loop_of, "_is_pipe", lambda _: False)


def test_what_is_heard_is_judged_and_a_signal_ends_it(wire: Wire) -> None:
    """A GPU's link narrows: the PCI tree is read for the event; then somebody asks, and everything is."""
    machine = Machine()
    evaluator = Evaluator(machine, ScanPlan())

    def narrows() -> None:
        machine.fault = "gpu-width-x8"
        for _ in range(5):
            wire.far.send(PCI)

    script = Script(narrows, lambda: os.kill(os.getpid(), signal.SIGUSR1))
    script.run(evaluator, wire)

    assert [[START], ["pci"], [REQUESTED]] == script.reasons()
    (_, first), (batch, second), (_, third) = script.printed
    assert NAMES == first.read == third.read
    assert evaluator.affected_probes(["pci"]) == set(second.read)
    assert 5 == batch.reasons[0].times
    assert [WIDTH] == [change.what for change in second.changes if change.group == "findings" and change.kind == "new"]
    assert [first.report, second.report, third.report] == script.kept
    assert [] == script.warnings


def test_an_overrun_is_a_full_scan(wire: Wire) -> None:
    """Something was missed: everything is read."""
    script = Script(lambda: wire.far.send(LOST))
    script.run(Evaluator(Machine(), ScanPlan()), wire)

    assert [[START], [MISSED]] == script.reasons()
    assert NAMES == script.printed[1][1].read


def test_a_place_that_ends_is_told_once_and_the_rest_works(wire: Wire) -> None:
    """Without it the loop goes on: it still answers who asks."""
    script = Script(lambda: wire.far.send(ENDS))
    script.asks = True
    script.run(Evaluator(Machine(), ScanPlan(only=("kernel",))), wire)

    assert ["uevents is no longer watched: the place is gone"] == script.warnings
    assert [[START], [REQUESTED]] == script.reasons()


def test_an_event_of_what_is_left_out_is_no_judging(wire: Wire) -> None:
    """--only numa: a device of RDMA touches nothing that is read; a PCI device, later, does."""
    alarm = signal.signal(signal.SIGALRM, lambda *_: wire.far.send(PCI))

    def happens() -> None:
        wire.far.send(RDMA)
        signal.setitimer(signal.ITIMER_REAL, 0.5)

    script = Script(happens)
    try:
        script.run(Evaluator(Machine(), ScanPlan(only=("numa",))), wire)
    finally:
        signal.signal(signal.SIGALRM, alarm)

    assert [[START], ["pci"]] == script.reasons()
    assert [["numa"], ["numa"]] == [evaluation.read for _, evaluation in script.printed]


def test_a_profile_that_is_gone_is_told_and_does_not_end_it() -> None:
    """It is read anew at each judging: a bad file is a line, and the report stays what it was."""
    evaluator = Evaluator(Machine(), ScanPlan())
    script = Script()
    times = []

    def broken(names: object = None) -> Evaluation:
        times.append(names)
        if len(times) == 1:
            os.kill(os.getpid(), signal.SIGUSR1)
            raise BadProfile("h200.toml: no such file")
        return Evaluator.evaluate(evaluator)

    evaluator.evaluate = broken  # type: ignore[method-assign]  # a file that goes between two judgings
    script.run(evaluator)

    assert ["not judged: h200.toml: no such file"] == script.warnings
    assert [[REQUESTED]] == script.reasons()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_each_signal_ends_it(number: signal.Signals) -> None:
    """And what was there before is there again."""
    before = [signal.getsignal(item) for item in (number, signal.SIGUSR1)]
    script = Script(lambda: os.kill(os.getpid(), number))
    script.run(Evaluator(Machine(), ScanPlan(only=("kernel",))))

    assert [[START]] == script.reasons()
    assert before == [signal.getsignal(item) for item in (number, signal.SIGUSR1)]


pytestmark = pytest.mark.usefixtures("real_commands")
LONG = 60.0


def me(number: int) -> None:
    os.kill(os.getpid(), number)


def _list_children() -> set[int]:
    """Return the process ids of this process's children; other tests of the same worker may have left some."""
    return {child.pid for child in psutil.Process().children()}


def test_probes_that_run_are_ended_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGTERM while four children sleep: none of them stays, and nobody waits for their bound."""
    monkeypatch.setenv(locks.FOLDER_VARIABLE, str(tmp_path / "run"))

    def sleeps(_host: Host) -> Reading:
        time.sleep(LONG)
        raise AssertionError("nobody waits so long")

    def soon(*_: object) -> None:
        me(signal.SIGTERM)

    probes = [Probe(f"sleeps{k}", sleeps, LONG) for k in range(4)]
    before = _list_children()
    alarm = signal.signal(signal.SIGALRM, soon)
    started = time.monotonic()
    try:
        signal.setitimer(signal.ITIMER_REAL, 1.0)
        with WatchSignals() as signals, pytest.raises(StopSignal), signals.interruptible():
            run_probes(probes, LiveHost(), LONG)
    finally:
        signal.signal(signal.SIGALRM, alarm)

    assert signals.ended
    assert time.monotonic() - started < LONG / 2
    assert [] == worker_pool._left_behind
    assert _list_children() <= before


def test_a_signal_while_a_child_is_forked_leaves_none(tmp_path: Path) -> None:
    """It waits until the child is noted down: nobody else would end it. In a process with one thread, as a run is."""
    code = """
import os, signal, time
import psutil
from agent.watch.loop import StopSignal, WatchSignals
from probes.host.live import LiveHost
from probes.probe import Probe
from probes.run import run_probes
fork = os.fork
def fork_and_stop():
    pid = fork()
    if pid:
        os.kill(os.getpid(), signal.SIGTERM)
    return pid
os.fork = fork_and_stop
try:
    with WatchSignals() as signals, signals.interruptible():
        run_probes([Probe("sleeps", lambda _host: time.sleep(60), 60.0)], LiveHost(), 60.0)
except StopSignal:
    print("stopped", len(psutil.Process().children()))
"""
    told = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env={**os.environ, locks.FOLDER_VARIABLE: str(tmp_path / "run")},
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert told.stdout == "stopped 0\n"


def test_what_is_written_is_finished_first() -> None:
    """Inside of whole() nothing is broken off; what is around it ends after that."""
    done = []

    def writes() -> None:
        with signals.uninterruptible():
            me(signal.SIGTERM)
            done.append("written")
        done.append("not reached")

    with WatchSignals() as signals, pytest.raises(StopSignal), signals.interruptible():
        writes()

    assert ["written"] == done


def test_outside_of_probes_a_signal_is_only_noted() -> None:
    """The loop looks; a second one changes nothing."""
    with WatchSignals() as signals:
        me(signal.SIGINT)
        me(signal.SIGTERM)
        assert signals.ended
        with pytest.raises(StopSignal), signals.interruptible():
            raise AssertionError("nothing is begun any more")


def test_a_signal_wakes_whoever_waits_and_the_wish_is_taken_once() -> None:
    """SIGUSR1: poll(2) returns at once, and not again."""
    with WatchSignals() as signals:
        poll = select.poll()
        poll.register(signals.fileno(), select.POLLIN)
        assert [] == poll.poll(0)
        me(signal.SIGUSR1)
        me(signal.SIGUSR1)

        assert poll.poll(10_000)
        assert signals.take_scan_request()
        assert not signals.take_scan_request()
        assert [] == poll.poll(0)
        assert not signals.ended


def test_what_was_ignored_stays_ignored() -> None:
    """nohup: a terminal that closes does not end it then."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with WatchSignals() as signals:
            me(signal.SIGHUP)
            assert not signals.ended
        assert signal.SIG_IGN == signal.getsignal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_child_that_was_just_forked_is_not_the_parent() -> None:
    """It ends there and then: the parent's way out is not its own."""
    with WatchSignals() as signals, signals.interruptible():
        child = os.fork()
        if child == 0:
            me(signal.SIGTERM)
            os._exit(0)
        _, status = os.waitpid(child, 0)

    assert 128 + signal.SIGTERM == os.waitstatus_to_exitcode(status)
    assert not signals.ended
