"""What every test may rely on: it cannot touch this machine, and the corpus is there or the test is skipped."""

from __future__ import annotations

import fcntl
import gc
import os
import pickle
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent
CORPUS = Path(os.environ.get("FABRICSCOPE_CORPUS", ROOT.parent / "shared" / "corpus"))

settings.register_profile("default", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile(
    "ci", max_examples=100, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("fuzz", max_examples=20_000, deadline=None, suppress_health_check=list(HealthCheck))
PROFILE = os.environ.get("HYPOTHESIS_PROFILE") or "default"
settings.load_profile(PROFILE)
_Item = TypeVar("_Item")
IN_MEMORY = "/dev/shm"  # where tests have their files, if there is room
ROOM_BYTES, ROOM_FILES = 4 << 30, 1_000_000
TOLD_SECONDS = 0.1  # a setup or teardown that takes as long is told with the durations
IN_FULL = PROFILE != "default"  # CI and `make check`: more of what a plain run takes a sample of
# `make test PART=2/3`: of such samples the second third, of the lab's machines too
PART, PARTS = map(int, (os.environ.get("FABRICSCOPE_PART") or ("1/1" if IN_FULL else "1/3")).split("/"))


def sample_of(items: Sequence[_Item]) -> Sequence[_Item]:
    """Of what costs much each: a part, by default all of it in `make check`, each third in a plain run."""
    return items[PART - 1 :: PARTS]


@pytest.hookimpl(optionalhook=True)  # of xdist
def pytest_xdist_auto_num_workers() -> int:
    """Half as many again as there are CPUs: many tests wait for a process, a timeout or a server."""
    return max(2, (os.cpu_count() or 1) * 3 // 2)


RELIED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGCHLD, signal.SIGALRM)


def restore_signals() -> None:
    """As a terminal leaves them: a shell starts what runs in its background with SIGINT ignored, nohup with SIGHUP, and
    every program that a test starts inherits it."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in RELIED_ON:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def pytest_configure() -> None:
    restore_signals()
    gc.disable()  # until all is imported: collecting tests makes no garbage that is worth a search
    if _has_room(IN_MEMORY):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", IN_MEMORY)


def _has_room(folder: str) -> bool:
    """Whether the files of all tests fit: half a million, most of them small, which cost a busy disk a minute."""
    try:
        room = os.statvfs(folder)
    except OSError:
        return False
    free, runs_programs = room.f_bavail * room.f_frsize, not room.f_flag & os.ST_NOEXEC
    return free >= ROOM_BYTES and room.f_favail >= ROOM_FILES and runs_programs and os.access(folder, os.W_OK)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """A worker of xdist sends one message of a test that passed, not five: they took a tenth of a run."""
    if not hasattr(item.config, "workerinput"):
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed or report.duration > TOLD_SECONDS:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


def pytest_collection_finish() -> None:
    """What was collected stays until the end: a search through it takes seconds, in the middle of some test."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000)
    gc.enable()


@pytest.fixture
def corpus() -> Path:
    """The folder of real captures; tests that need it are skipped where it is not there."""
    if not (CORPUS / "TREES.tsv").is_file():
        pytest.skip("no corpus of real machines here (FABRICSCOPE_CORPUS)")
    return CORPUS


@pytest.fixture(scope="session")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The capture of a small healthy machine as a folder; tests only read it."""
    from fixtures.build import write_capture
    from tests.machines import SMALL

    place = tmp_path_factory.mktemp("captures") / SMALL
    write_capture(SMALL, None, place)
    return place


MakeOnce = Callable[[str, Callable[[Path], Any]], tuple[Path, Any]]


@pytest.fixture(scope="session")
def make_once(tmp_path_factory: pytest.TempPathFactory) -> MakeOnce:
    """Makes what takes seconds once for all workers of a run: by its name a folder, and a value that can be pickled.

    Tests only read both: which worker has made them is chance.
    """
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # each worker's own is below it

    def make(name: str, write: Callable[[Path], Any]) -> tuple[Path, Any]:
        place, value = folder / name, folder / f"{name}.pickle"
        with (folder / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not value.exists():
                place.mkdir(exist_ok=True)  # is there where the one before us failed
                value.write_bytes(pickle.dumps(write(place)))
        return place, pickle.loads(value.read_bytes())  # our own

    return make


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, once a file of tests; these have the marks tests.browser.NEEDED."""
    from tests.browser import CHROMIUM

    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(autouse=True)
def no_real_commands(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """A test that starts a process says so with the fixture `real_commands`."""
    if "real_commands" in request.fixturenames:
        return

    def refuse(*args: object, **_: object) -> None:
        raise AssertionError(f"a test tried to run {args!r:.200}; give it a recorded host, or ask for `real_commands`")

    monkeypatch.setattr(subprocess, "Popen", refuse)


@pytest.fixture
def real_commands() -> None:
    """This test starts real processes, on purpose."""
