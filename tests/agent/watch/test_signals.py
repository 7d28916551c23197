"""A signal breaks into probes and never into a write; children are ended, and nothing is left behind."""

from __future__ import annotations

import os
import select
import signal
import time
from pathlib import Path

import pytest

from agent.watch.signals import Ended, Signals
from probes import children, locks
from probes.host.interface import Host
from probes.host.live import LiveHost
from probes.probe import Probe, Reading
from probes.run import run_probes

pytestmark = pytest.mark.usefixtures("real_commands")
LONG = 60.0


def me(number: int) -> None:
    os.kill(os.getpid(), number)


def test_probes_that_run_are_ended_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGTERM while four children sleep: none of them stays, and nobody waits for their bound."""
    monkeypatch.setenv(locks.FOLDER_VARIABLE, str(tmp_path / "run"))

    def sleeps(_host: Host) -> Reading:
        time.sleep(LONG)
        raise AssertionError("nobody waits so long")

    def soon(*_: object) -> None:
        me(signal.SIGTERM)

    probes = [Probe(f"sleeps{k}", sleeps, LONG) for k in range(4)]
    alarm = signal.signal(signal.SIGALRM, soon)
    started = time.monotonic()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        with Signals() as signals, pytest.raises(Ended), signals.interruptible():
            run_probes(probes, LiveHost(), LONG)
    finally:
        signal.signal(signal.SIGALRM, alarm)

    assert signals.ended
    assert time.monotonic() - started < LONG / 2
    assert [] == children._left_behind
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_what_is_written_is_finished_first() -> None:
    """Inside of whole() nothing is broken off; what is around it ends after that."""
    done = []

    def writes() -> None:
        with signals.whole():
            me(signal.SIGTERM)
            done.append("written")
        done.append("not reached")

    with Signals() as signals, pytest.raises(Ended), signals.interruptible():
        writes()

    assert ["written"] == done


def test_outside_of_probes_a_signal_is_only_noted() -> None:
    """The loop looks; a second one changes nothing."""
    with Signals() as signals:
        me(signal.SIGINT)
        me(signal.SIGTERM)
        assert signals.ended
        with pytest.raises(Ended), signals.interruptible():
            raise AssertionError("nothing is begun any more")


def test_a_signal_wakes_whoever_waits_and_the_wish_is_taken_once() -> None:
    """SIGUSR1: poll(2) returns at once, and not again."""
    with Signals() as signals:
        poll = select.poll()
        poll.register(signals.fileno(), select.POLLIN)
        assert [] == poll.poll(0)
        me(signal.SIGUSR1)
        me(signal.SIGUSR1)

        assert poll.poll(10_000)
        assert signals.take()
        assert not signals.take()
        assert [] == poll.poll(0)
        assert not signals.ended


def test_what_was_ignored_stays_ignored() -> None:
    """nohup: a terminal that closes does not end it then."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Signals() as signals:
            me(signal.SIGHUP)
            assert not signals.ended
        assert signal.SIG_IGN == signal.getsignal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_child_that_was_just_forked_is_not_the_parent() -> None:
    """It ends there and then: the parent's way out is not its own."""
    with Signals() as signals, signals.interruptible():
        child = os.fork()
        if child == 0:
            me(signal.SIGTERM)
            os._exit(0)
        _, status = os.waitpid(child, 0)

    assert 128 + signal.SIGTERM == os.waitstatus_to_exitcode(status)
    assert not signals.ended
