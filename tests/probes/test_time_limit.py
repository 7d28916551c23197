"""What is done in this process ends at its limit, wherever it is; a timer of the caller's goes on."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from probes.probe import Probe, Reading, Status
from probes.run import run_probes
from probes.sources.dump import SavedOutputs
from probes.sources.memory import MemoryFiles
from probes.sources.tree import TreeHost
from probes.time_limit import TimeIsUp, TimeLimit


def compute() -> None:
    """Without end, and with a wall that takes every error."""
    while True:
        with contextlib.suppress(Exception):
            sum(range(1000))


def wait_for_a_pipe() -> None:
    """A read that nobody answers."""
    reading, _writing = os.pipe()
    os.read(reading, 1)


@pytest.mark.parametrize("work", [compute, wait_for_a_pipe])
def test_it_ends_at_its_limit(work: Callable[[], None]) -> None:
    began = time.monotonic()
    with pytest.raises(TimeIsUp), TimeLimit(began + 0.2):
        work()
    with pytest.raises(TimeIsUp), TimeLimit(began):  # has passed already
        work()

    assert 0.2 <= time.monotonic() - began < 5


def test_what_swallows_the_first_is_interrupted_again() -> None:
    """As a destructor does."""

    def work() -> None:
        with contextlib.suppress(TimeIsUp):
            compute()
        compute()

    with pytest.raises(TimeIsUp), TimeLimit(time.monotonic() + 0.1):
        work()


def test_what_ends_in_time_is_left_alone() -> None:
    with TimeLimit(time.monotonic() + 0.2):
        pass
    time.sleep(0.3)


@pytest.fixture
def alarms() -> Iterator[list[int]]:
    """Signals that reach a handler of the caller's."""
    came: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, _: came.append(number))
    timer = signal.setitimer(signal.ITIMER_REAL, 0)
    yield came
    signal.signal(signal.SIGALRM, before)
    signal.setitimer(signal.ITIMER_REAL, *timer)


@pytest.mark.parametrize(("inner", "seconds"), [(0.05, 0.4), (0.3, 0.1)])
def test_a_timer_of_the_caller_goes_on(inner: float, seconds: float, alarms: list[int]) -> None:
    signal.setitimer(signal.ITIMER_REAL, seconds)
    with contextlib.suppress(TimeIsUp), TimeLimit(time.monotonic() + inner):
        compute()
    assert [] == alarms or seconds < inner
    time.sleep(0.5)

    assert [signal.SIGALRM] == alarms


def test_a_caller_that_blocks_the_signal(alarms: list[int]) -> None:
    """Its mask is inherited by every program that it starts."""
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGALRM,))
    with pytest.raises(TimeIsUp), TimeLimit(time.monotonic() + 0.1):
        compute()


def test_another_thread_has_no_limit() -> None:
    done = []

    def work() -> None:
        with TimeLimit(time.monotonic() - 1):
            done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    assert [True] == done


def test_a_probe_of_saved_outputs_is_interrupted() -> None:
    """It has its outcome, as have those that are not reached, and the time counts from when the run began."""

    def slow(_: object) -> Reading:
        compute()
        return Reading(1, ())

    host = TreeHost("dump", "x", MemoryFiles(), SavedOutputs(MemoryFiles()))
    quick = Probe("quick", lambda _: Reading(1, ()))
    began = time.monotonic()
    outcomes = run_probes([quick, Probe("slow", slow), Probe("late", slow)], host, 60.3, began=began - 60).outcomes

    assert time.monotonic() - began < 5
    assert [Status.OK, Status.TIMED_OUT, Status.TIMED_OUT] == [outcome.status for outcome in outcomes]
    assert "no answer within 60.3 s of the whole run" == outcomes[1].reason
    assert not outcomes[1].hung


def test_opening_counts_against_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Unpacking, recognizing, a report: one line, and exit 2 (`check`: 3)."""
    from agent.cli.main import run
    from probes.sources import archive

    source = tmp_path / "ibstat.txt"
    source.write_text("x")
    monkeypatch.setattr(archive, "load", lambda _: compute())
    began = time.monotonic()

    assert [2, 3] == [run([command, "--source", str(source), "--timeout", "0.3"]) for command in ("scan", "check")]
    assert time.monotonic() - began < 5
    error = f"error: {source}: cannot be opened within 0.3 s\nhint: --timeout SECONDS gives it more\n"
    assert 2 * error == capsys.readouterr().err


def test_looking_whether_a_source_is_a_report_counts_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is on a server that does not answer."""
    from agent.cli.main import run

    monkeypatch.setattr("agent.cli.request.is_report", lambda _: compute())

    assert 2 == run(["scan", str(tmp_path), "--timeout", "0.3"])
    assert f"error: {tmp_path}: cannot be opened within 0.3 s\n" in capsys.readouterr().err


def test_what_opening_took_is_missing_to_the_probes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The limit is of the whole run."""
    from agent.cli import request
    from agent.cli.main import run

    opened = request.open_source

    def open_slowly(*arguments: str | None) -> object:
        time.sleep(0.3)
        return opened(*arguments)

    spent: list[float] = []

    def note_began(_host: object, plan: request.ScanPlan) -> None:
        spent.append(time.monotonic() - (plan.began or time.monotonic()))
        raise request.BadSource("x")

    monkeypatch.setattr(request, "open_source", open_slowly)
    monkeypatch.setattr(request, "diagnose", note_began)
    (tmp_path / "ibstat.txt").write_text("CA 'mlx5_0'\n\tCA type: MT4129\n")
    assert 2 == run(["scan", str(tmp_path)])

    assert [True] == [seconds > 0.3 for seconds in spent]


def test_outputs_of_which_each_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """No comparison of what each states alone, and no probe of the whole: the report says so of each."""
    from agent.diagnose import ScanPlan, diagnose

    outputs = SavedOutputs(MemoryFiles({"ibstat.txt": b"CA 'mlx5_0'\n\tCA type: MT4129\n", "lsmod.txt": b"a 1 0\n"}))
    monkeypatch.setattr(outputs, "list_parts", compute)
    began = time.monotonic()
    report, _ = diagnose(TreeHost("dump", "x", MemoryFiles(), outputs), ScanPlan(timeout_seconds=0.3))

    assert time.monotonic() - began < 5
    assert {"timed_out"} == {run.status for run in report.probes}
    assert "unknown" == report.summary.verdict
