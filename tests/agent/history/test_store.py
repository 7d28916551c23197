"""The state directory: whatever lies there, and whatever happens to it, costs one line and not the scan."""

from __future__ import annotations

import errno
import fcntl
import multiprocessing
import os
import signal
import stat
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.config import Configuration
from agent.diagnose import evaluate_report
from agent.history import store
from agent.history.state import FIRST_RUN, HostState, add_history, update_state
from agent.history.store import StateError, apply_state_file, load_state, save_state
from agent.model.report import Report
from probes.own_files import temporary_path
from tests.agent.history.build import DAY, counting, report

LATER = report(counting(9), DAY + 3600)


class Lines(list[str]):
    """What was said."""

    def __call__(self, text: str) -> None:
        self.append(text)


def file_of(place: Path) -> Path:
    (result,) = place.glob("host-*.json")
    return result


def seconds(made: Report) -> float | None:
    assert made.counters_window is not None
    return made.counters_window.seconds


def why(made: Report) -> str:
    """The reason, which window and history share."""
    assert made.counters_window is not None
    assert made.history is not None
    assert made.counters_window.reset_reason == made.history.reason
    return made.history.reason or ""


def test_the_second_run_is_compared_with_the_first(tmp_path: Path) -> None:
    """In a directory that the first one makes; one small file and the lock, which no other user may hold."""
    place, result = tmp_path / "state", Lines()

    assert FIRST_RUN == why(apply_state_file(str(place), report(), result))
    assert 3600.0 == seconds(apply_state_file(str(place), LATER, result))
    assert [] == result
    assert {"lock", file_of(place).name} == {item.name for item in place.iterdir()}
    modes = (place, file_of(place), place / "lock")
    assert [0o700, 0o640, 0o600] == [stat.S_IMODE(mode.stat().st_mode) for mode in modes]
    assert "machine-1" not in file_of(place).name


def test_every_host_and_container_has_its_own(tmp_path: Path) -> None:
    """A capture of another machine never compares with this one's; a renamed host does."""
    result = Lines()
    apply_state_file(str(tmp_path), report(), result)

    for other in ({"machine_id": "machine-2"}, {"container": "docker"}, {"container": "docker", "hostname": "pod-7"}):
        assert FIRST_RUN == why(apply_state_file(str(tmp_path), report(uptime=DAY + 60, **other), result))
    assert 4 == len(list(tmp_path.glob("host-*.json")))
    assert 60.0 == seconds(apply_state_file(str(tmp_path), report(uptime=DAY + 60, hostname="renamed"), result))


def test_a_source_without_any_name_is_not_remembered(tmp_path: Path) -> None:
    """One line says so."""
    result = Lines()

    assert "nothing identifies" in why(apply_state_file(str(tmp_path), report(machine_id=None, hostname=None), result))
    assert 1 == len(result)
    assert [] == list(tmp_path.iterdir())


def test_a_run_that_is_not_to_be_kept_leaves_nothing(tmp_path: Path) -> None:
    """It is compared with what is there."""
    apply_state_file(str(tmp_path), report(), Lines())
    before = file_of(tmp_path).read_bytes()

    assert 3600.0 == seconds(apply_state_file(str(tmp_path), LATER, Lines(), keep=False))
    assert before == file_of(tmp_path).read_bytes()


def test_what_was_taken_out_on_purpose_is_accepted(tmp_path: Path) -> None:
    """This run's report knows of it already."""
    apply_state_file(str(tmp_path), report(), Lines())
    bare = msgspec.structs.replace(LATER, topology=msgspec.structs.replace(LATER.topology, gpus=[]))

    for accept, gpus in ((False, 4), (True, 0), (False, 0)):
        result = apply_state_file(str(tmp_path), bare, Lines(), accept=accept)
        assert result.history is not None
        assert gpus == sum(item.subject.startswith("gpu:") for item in result.history.inventory)


DAMAGED = [b"", b"{", b"\x00" * 300, b"[]", b"\xff\xfe", b"[" * 100_000, b'{"schema": 5}', b'"text"']


@pytest.mark.parametrize("data", [*DAMAGED, b'{"schema": "fabricscope.state/1", "runs": "many"}'], ids=range(9))
def test_a_damaged_file_is_put_aside_and_a_new_one_begun(tmp_path: Path, data: bytes) -> None:
    """One line names it; the next run is compared again."""
    apply_state_file(str(tmp_path), report(), Lines())
    place, result = file_of(tmp_path), Lines()
    place.write_bytes(data)

    reason = why(apply_state_file(str(tmp_path), LATER, result))

    assert [reason] == result
    assert "damaged" in reason
    assert data == place.with_name(f"{place.name}.damaged").read_bytes()
    assert 60.0 == seconds(apply_state_file(str(tmp_path), report(uptime=DAY + 3660), result))
    assert 1 == len(result)


def test_every_truncation_is_noticed(tmp_path: Path) -> None:
    """No half state is taken for a whole one."""
    apply_state_file(str(tmp_path), report(), Lines())
    place = file_of(tmp_path)
    whole = place.read_bytes()
    for length in range(0, len(whole), 97):
        place.write_bytes(whole[:length])
        with pytest.raises(StateError):
            load_state(str(place))


def test_a_file_that_is_too_large_is_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And is not read whole to find out."""
    apply_state_file(str(tmp_path), report(), Lines())
    monkeypatch.setattr(store, "STATE_LIMIT_BYTES", 100)

    with pytest.raises(StateError, match="larger than"):
        load_state(str(file_of(tmp_path)))


@pytest.mark.parametrize("schema", ["fabricscope.state/2", "fabricscope.report/1", "other", ""])
def test_what_is_not_of_this_version_is_left_alone(tmp_path: Path, schema: str) -> None:
    """A newer version's state must survive that an older one ran."""
    apply_state_file(str(tmp_path), report(), Lines())
    place, result = file_of(tmp_path), Lines()
    place.write_text(f'{{"schema": "{schema}", "precious": 1}}')

    assert "left unchanged" in why(apply_state_file(str(tmp_path), LATER, result))
    assert "precious" in place.read_text()
    assert 1 == len(result)


def test_what_is_no_file_is_left_alone(tmp_path: Path) -> None:
    """A folder, a named pipe that nobody writes to, a link to somewhere else."""
    apply_state_file(str(tmp_path), report(), Lines())
    place = file_of(tmp_path)
    for make in (lambda: place.mkdir(), lambda: os.mkfifo(place), lambda: place.symlink_to("/etc/passwd")):
        place.unlink() if not place.is_dir() else place.rmdir()
        make()
        result = Lines()

        assert "cannot be used" in why(apply_state_file(str(tmp_path), LATER, result))
        assert 1 == len(result)
    assert place.is_symlink()


@pytest.mark.parametrize("place", ["/proc/nowhere/state", "/dev/null", "/dev/null/state"])
def test_a_place_that_cannot_be_a_directory_is_one_line(place: str) -> None:
    """Whatever it is."""
    result = Lines()

    assert place.rpartition("/state")[0] in why(apply_state_file(place, report(), result)) or result
    assert 1 == len(result)


def test_a_directory_that_may_not_be_written_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check by another user compares with what the timer keeps, and says that it leaves nothing."""
    apply_state_file(str(tmp_path), report(), Lines())
    real = os.open

    def denied(path: str, flags: int, *mode: int) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR):
            raise OSError(errno.EACCES, "Permission denied", path)
        return real(path, flags, *mode)

    monkeypatch.setattr(os, "open", denied)
    result = Lines()

    assert 3600.0 == seconds(apply_state_file(str(tmp_path), LATER, result))
    assert 1 == len(result)
    assert "not kept" in result[0]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_full_disk_is_one_line_and_the_old_state_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Nothing half-written is left beside it."""
    apply_state_file(str(tmp_path), report(), Lines())
    before, result = file_of(tmp_path).read_bytes(), Lines()

    def full(descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", full)

    assert 3600.0 == seconds(apply_state_file(str(tmp_path), LATER, result))
    assert ["not kept" in line for line in result] == [True]
    assert before == file_of(tmp_path).read_bytes()
    assert [] == list(tmp_path.glob(".*.tmp"))


def test_a_state_that_is_too_large_loses_older_samples_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then it is not written."""
    state = update_state(update_state(None, report()), LATER)
    whole, small = len(msgspec.json.encode(state)), str(tmp_path / "s.json")
    monkeypatch.setattr(store, "STATE_LIMIT_BYTES", whole - 1)
    save_state(small, state)
    remaining = load_state(small)
    monkeypatch.setattr(store, "STATE_LIMIT_BYTES", 100)

    assert remaining is not None
    assert state.samples[-1:] == remaining.samples
    with pytest.raises(StateError, match="more than a state can be"):
        save_state(small, state)


def _turn(place: str, start: float) -> None:
    apply_state_file(place, report(uptime=DAY + start), lambda text: None)


def test_two_runs_at_once_both_count(tmp_path: Path) -> None:
    """One waits for the other: no run is lost, no file torn."""
    fork = multiprocessing.get_context("fork")
    children = [fork.Process(target=_turn, args=(str(tmp_path), n * 100.0)) for n in range(8)]
    for child in children:
        child.start()
    for child in children:
        child.join(30)
    state = load_state(str(file_of(tmp_path)))

    assert [0] * 8 == [child.exitcode for child in children]
    assert state is not None
    assert 8 == state.runs


def test_a_directory_that_is_held_for_long_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that hangs must not hang the next one."""
    monkeypatch.setattr(store, "LOCK_SECONDS", 0.1)
    result = Lines()
    with (tmp_path / "lock").open("w") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)

        assert "another run holds it" in why(apply_state_file(str(tmp_path), report(), result))
    assert 1 == len(result)


def _killed_at(place: str, step: int) -> None:
    """Save, and die right before the step-th call that changes something."""
    left = [step]

    def dying(real):  # type: ignore[no-untyped-def]  # any function of os
        def call(*arguments, **named):  # type: ignore[no-untyped-def]  # as that one
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **named)

        return call

    for name in ("open", "fdopen", "fsync", "replace"):
        setattr(os, name, dying(getattr(os, name)))
    apply_state_file(place, LATER, lambda text: None)


@pytest.mark.parametrize("step", range(9))
def test_a_kill_at_any_moment_leaves_the_old_state_or_the_new(tmp_path: Path, step: int) -> None:
    """Never half of one; and the next run goes on, with no more than one file left over, which it uses."""
    apply_state_file(str(tmp_path), report(), Lines())
    child = multiprocessing.get_context("fork").Process(target=_killed_at, args=(str(tmp_path), step))
    child.start()
    child.join(30)
    state, result = load_state(str(file_of(tmp_path))), Lines()

    assert state is not None
    assert state.runs in (1, 2)
    assert (step >= 7) == (child.exitcode == 0)
    assert seconds(apply_state_file(str(tmp_path), report(uptime=DAY + 7200), result))
    assert [] == result
    assert [] == list(tmp_path.glob(".*.tmp"))


def test_an_interrupt_leaves_nothing_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And ends the program as it should."""

    def interrupted(descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        apply_state_file(str(tmp_path), report(), Lines())

    assert ["lock"] == [item.name for item in tmp_path.iterdir()]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(data=st.binary(max_size=300))
def test_any_bytes_are_one_line(tmp_path: Path, data: bytes) -> None:
    """Never a traceback."""
    place = tmp_path / "s.json"
    place.write_bytes(data)
    with pytest.raises(StateError):
        load_state(str(place))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_state_that_somebody_changed_is_judged_or_refused(data: st.DataObject) -> None:
    """Any value of it replaced by any other of JSON: no traceback, and a new state that can be written."""
    table = msgspec.json.decode(msgspec.json.encode(update_state(update_state(None, report()), LATER)))
    at: Any = table
    while True:
        key = data.draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at))))
        if not isinstance(at[key], dict | list) or not at[key] or data.draw(st.integers(0, 3)) == 0:
            break
        at = at[key]
    numbers = st.one_of(st.integers(-(2**63), 2**64 - 1), st.floats(allow_nan=False))
    at[key] = data.draw(st.one_of(st.none(), st.booleans(), numbers, st.text(max_size=9), st.just([]), st.just({})))
    try:
        state = msgspec.convert(table, HostState)
    except msgspec.ValidationError:
        return
    now = report(counting(10), DAY + 7200)

    msgspec.json.encode(update_state(state, now))
    msgspec.json.encode(evaluate_report(add_history(state, now), Configuration()))


def test_threads_are_not_needed() -> None:
    """Probes fork: a state that started a thread would break them."""
    before = threading.active_count()
    apply_state_file("/dev/null/x", report(), Lines())

    assert before == threading.active_count()


def test_what_another_put_at_the_temporary_name_is_left_there(tmp_path: Path) -> None:
    """A pipe that nobody reads is not waited for; a link is neither followed nor removed."""
    victim = tmp_path / "victim"
    victim.write_text("mine")
    state = update_state(None, report())
    path = str(tmp_path / "state.json")
    temporary = Path(temporary_path(path, sole=True))
    for make in (os.mkfifo, os.mkdir, lambda new: new.symlink_to(victim)):
        make(temporary)
        save_state(path, state)
        assert state == load_state(path)
        assert sorted([temporary.name, "state.json", "victim"]) == sorted(item.name for item in tmp_path.iterdir())
        temporary.rmdir() if temporary.is_dir() and not temporary.is_symlink() else temporary.unlink()
    temporary.write_text("half")
    save_state(path, state)
    assert not temporary.exists()
    assert "mine" == victim.read_text()
