"""The loop on real descriptors and a fixture machine: what is heard is judged; signals and places that end."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable

import pytest

from agent.diagnose import ScanPlan
from agent.model.profile import BadProfile
from agent.model.report import Report
from agent.watch import loop as loop_of
from agent.watch.judging import Judge, Judged
from agent.watch.loop import Watch
from agent.watch.pace import ASKED, START, Pace, Turn
from agent.watch.signals import Signals
from probes.host.event_sockets import Overrun
from probes.host.interface import Failed
from probes.kernel.events import MISSED, UEVENTS, Listener, device_events
from tests.agent.watch.test_judging import NAMES, WIDTH, Machine

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
        self.told: list[tuple[Turn, Judged]] = []
        self.said: list[str] = []
        self.kept: list[Report] = []
        self.asks = False  # for a full scan, whenever something is said

    def tell(self, turn: Turn, made: Judged) -> None:
        self.told.append((turn, made))
        step = self.steps.pop(0) if self.steps else lambda: os.kill(os.getpid(), signal.SIGTERM)
        step()

    def keep(self, report: Report) -> None:
        self.kept.append(report)

    def say(self, text: str) -> None:
        self.said.append(text)
        if self.asks:
            os.kill(os.getpid(), signal.SIGUSR1)

    def run(self, judge: Judge, wire: Wire | None = None) -> None:
        """Until the end of the script."""
        places = [Listener(UEVENTS, wire, device_events)] if wire else []
        with Signals() as signals:
            Watch(places, Pace(0.02, 3600), judge, signals, self).run()

    def reasons(self) -> list[list[str]]:
        return [[reason.event.kind for reason in turn.reasons] for turn, _ in self.told]


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
    judge = Judge(machine, ScanPlan())

    def narrows() -> None:
        machine.fault = "gpu-width-x8"
        for _ in range(5):
            wire.far.send(PCI)

    script = Script(narrows, lambda: os.kill(os.getpid(), signal.SIGUSR1))
    script.run(judge, wire)

    assert [[START], ["pci"], [ASKED]] == script.reasons()
    (_, first), (turn, second), (_, third) = script.told
    assert NAMES == first.read == third.read
    assert judge.asked(["pci"]) == set(second.read)
    assert 5 == turn.reasons[0].times
    assert [WIDTH] == [change.what for change in second.changes if change.group == "findings" and change.kind == "new"]
    assert [first.report, second.report, third.report] == script.kept
    assert [] == script.said


def test_an_overrun_is_a_full_scan(wire: Wire) -> None:
    """Something was missed: everything is read."""
    script = Script(lambda: wire.far.send(LOST))
    script.run(Judge(Machine(), ScanPlan()), wire)

    assert [[START], [MISSED]] == script.reasons()
    assert NAMES == script.told[1][1].read


def test_a_place_that_ends_is_told_once_and_the_rest_works(wire: Wire) -> None:
    """Without it the loop goes on: it still answers who asks."""
    script = Script(lambda: wire.far.send(ENDS))
    script.asks = True
    script.run(Judge(Machine(), ScanPlan(only=("kernel",))), wire)

    assert ["uevents is not listened to any more: the place is gone"] == script.said
    assert [[START], [ASKED]] == script.reasons()


def test_an_event_of_what_is_left_out_is_no_judging(wire: Wire) -> None:
    """--only numa: a device of RDMA touches nothing that is read; a PCI device, later, does."""
    alarm = signal.signal(signal.SIGALRM, lambda *_: wire.far.send(PCI))

    def happens() -> None:
        wire.far.send(RDMA)
        signal.setitimer(signal.ITIMER_REAL, 0.5)

    script = Script(happens)
    try:
        script.run(Judge(Machine(), ScanPlan(only=("numa",))), wire)
    finally:
        signal.signal(signal.SIGALRM, alarm)

    assert [[START], ["pci"]] == script.reasons()
    assert [["numa"], ["numa"]] == [made.read for _, made in script.told]


def test_a_profile_that_is_gone_is_told_and_does_not_end_it() -> None:
    """It is read anew at each judging: a bad file is a line, and the report stays what it was."""
    judge = Judge(Machine(), ScanPlan())
    script = Script()
    times = []

    def broken(names: object = None) -> Judged:
        times.append(names)
        if len(times) == 1:
            os.kill(os.getpid(), signal.SIGUSR1)
            raise BadProfile("h200.toml: no such file")
        return Judge.judge(judge)

    judge.judge = broken  # type: ignore[method-assign]  # a file that goes between two judgings
    script.run(judge)

    assert ["not judged: h200.toml: no such file"] == script.said
    assert [[ASKED]] == script.reasons()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_each_signal_ends_it(number: signal.Signals) -> None:
    """And what was there before is there again."""
    before = [signal.getsignal(each) for each in (number, signal.SIGUSR1)]
    script = Script(lambda: os.kill(os.getpid(), number))
    script.run(Judge(Machine(), ScanPlan(only=("kernel",))))

    assert [[START]] == script.reasons()
    assert before == [signal.getsignal(each) for each in (number, signal.SIGUSR1)]
