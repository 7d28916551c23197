"""An ingest that is killed at any moment leaves a dataset that is whole; the next one loses and doubles nothing.

FABRICSCOPE_KILLS=200 tries so many random moments, and every call; a plain run tries few.
"""

from __future__ import annotations

import functools
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.fleet.dataset import BadDataset, open_dataset
from agent.fleet.ingest import locked_dataset
from agent.fleet.ingest.locked_dataset import open_dataset as open_locked
from agent.fleet.ingest.run import IngestOptions, ingest
from agent.fleet.store import Folder
from tests.agent.fleet.small import files, history, named, report, rows, take, taken
from tests.conftest import IN_FULL, ROOT

KILLS = int(os.environ.get("FABRICSCOPE_KILLS", "12" if IN_FULL else "4"))
pytestmark = pytest.mark.timeout(60 + 5 * KILLS)
NODES = 70  # enough for two processes
ARRIVED = 1_768_500_000.0  # of every file, so that both datasets have the same
_SLACK_SECONDS = 30.0


def test_killed_at_random_moments(tmp_path: Path) -> None:
    chance = random.Random(7)
    fleet = _Fleet(tmp_path)
    seconds = _seconds(lambda: _forked(fleet.ingest))
    hit = 0
    while hit < KILLS:
        fleet.next_sweep()
        for _ in range(3):
            after = chance.uniform(0, seconds * 1.1)
            hit += _killed(_start(fleet.ingest), after)
            fleet.check()
    fleet.finish()


def test_killed_before_each_call_that_changes_the_dataset(tmp_path: Path) -> None:
    fleet = _Fleet(tmp_path)
    fleet.ingest()
    for call in range(0, 1000, 1 if KILLS >= 200 else 9):
        fleet.check()
        fleet.next_sweep()
        code = _forked(functools.partial(_ended_at, call, fleet.ingest))
        if code != -signal.SIGKILL:
            break
    fleet.finish()

    assert code == 0
    assert call > 40


def test_the_command_and_its_processes_killed_together(tmp_path: Path, real_commands: None) -> None:
    chance = random.Random(8)
    fleet = _Fleet(tmp_path)
    fleet.ingest()
    fleet.check()
    command = [sys.executable, "-m", "fabricscope", "fleet", "ingest", *map(str, fleet.sources)]
    command += ["--jobs", "2", "--quiet"]
    environment = {**os.environ, "FABRICSCOPE_DATASET": str(fleet.dataset), "PYTHONPATH": str(ROOT)}
    seconds = _seconds(lambda: subprocess.run(command, env=environment, check=True))
    for _ in range(max(KILLS // 5, 1)):
        fleet.next_sweep()
        running = subprocess.Popen(command, env=environment, start_new_session=True)
        time.sleep(chance.uniform(0.3, 1.0) * seconds)
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
        fleet.check()
    fleet.finish()


@pytest.mark.parametrize("known", [False, True])
def test_workers_end_where_the_command_is_killed(known: bool, tmp_path: Path, real_commands: None) -> None:
    reports = [report(f"gpu{number}") for number in range(NODES)]
    if known:
        take(tmp_path / "d", *reports)
    command = [sys.executable, "-m", "fabricscope", "fleet", "ingest", "-", "--dataset", str(tmp_path / "d")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    running = subprocess.Popen([*command, "--jobs", "2", "--quiet"], stdin=subprocess.PIPE, env=environment)
    assert running.stdin is not None
    running.stdin.write(b"".join(report + b"\n" for report in reports))
    running.stdin.flush()  # and no end: it waits for more
    children = Path(f"/proc/{running.pid}/task/{running.pid}/children")
    _wait_until(lambda: len(children.read_text().split()) >= 2)
    workers = children.read_text().split()
    running.kill()
    running.wait()
    running.stdin.close()

    _wait_until(lambda: not any(map(_is_running, workers)))


def test_a_copy_is_made_of_a_process_without_threads_alone(real_commands: None) -> None:
    code = """
import threading, pyarrow.parquet
from agent.fleet.ingest.worker_pool import _is_without_threads as ask
first = ask()
end = threading.Event()
threading.Thread(target=end.wait).start()
print(first, ask())
end.set()
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment, check=True, text=True)
    assert "True False\n" == ran.stdout


def _wait_until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + _SLACK_SECONDS
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.02)


def _is_running(process: str) -> bool:
    """A zombie has ended; whoever adopts it may be slow."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class _Fleet:
    """A dataset, the sweep that is being taken into it, and what it may say meanwhile."""

    def __init__(self, folder: Path) -> None:
        self.dataset, self.sources = folder / "d", (folder / "site-a", folder / "site-b")  # of two receivers
        self._reference, self._all = folder / "reference", folder / "all"
        for source in self.sources:
            source.mkdir()
        self._all.mkdir()
        self._sweep = 0
        self._states: list[Any] = [None]
        self._done = False
        self._write()

    def ingest(self) -> None:
        """The sweep of now."""
        taken(self.dataset, *self.sources)

    def next_sweep(self) -> None:
        """Other reports, if those of now are in."""
        if self._done:
            self._sweep += 1
            self._write()

    def check(self) -> None:
        """The dataset is whole, and as it was before the sweep or after it."""
        now = _told(self.dataset)
        assert now in self._states[-2:], "neither before nor after"
        self._done = now == self._states[-1]

    def finish(self) -> None:
        """Everything again: nothing is lost, doubled or left behind."""
        taken(self.dataset, self._all)
        taken(self._reference, self._all)
        assert _told(self.dataset) == _told(self._reference)
        assert history(self.dataset, "gpu") == history(self._reference, "gpu")
        assert files(self.dataset) == named(self.dataset)
        assert not (self.dataset / ".staging").exists()
        lines = (self.dataset / "quarantine" / "reasons.ndjson").read_text().splitlines()
        assert len({line.split('"sha256"')[1] for line in lines}) == self._sweep + 1

    def _write(self) -> None:
        for item in (item for source in self.sources for item in source.iterdir()):
            item.unlink()
        for number in range(NODES):
            hour = self._sweep * 2 - (3 if number == 3 and self._sweep > 2 else 0)  # one comes late
            data = report(f"gpu{number}", hour, f"{self._sweep}" if number % 7 == 0 else "same")
            of_both = self.sources if number % 10 == 0 else self.sources[number % 2 :][:1]  # some come by both ways
            for folder in (*of_both, self._all):
                path = folder / f"{self._sweep:03d}-{number}.json"
                path.write_bytes(data)
                os.utime(path, (ARRIVED, ARRIVED))
        for folder in (self.sources[0], self._all):
            (folder / f"{self._sweep:03d}-bad.json").write_text(f"{{{self._sweep}")
        taken(self._reference, *self.sources)
        self._states.append(_told(self._reference))
        self._done = False


def _told(dataset: Path) -> Any:
    """What a dataset says, by reading every file of its manifest; None where there is none yet."""
    if not (dataset / "manifest.json").exists():
        return None
    manifest = open_dataset(str(dataset)).manifest
    hosts = rows(dataset, "host")
    assert manifest.nodes == len(hosts) == len({host[0] for host in hosts})
    for table in manifest.latest:
        assert len(rows(dataset, table)) == sum(file.rows for file in manifest.latest[table])
    changes = history(dataset, "change", 'node, "table", observed_at')
    assert len(changes) == len(set(changes))
    return hosts, rows(dataset, "gpu"), changes, history(dataset, "sighting")


def _ended_at(call: int, work: Callable[[], None]) -> None:
    """Die before that call of those which change the dataset."""
    count = 0

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def do(*arguments: Any, **more: Any) -> Any:
            nonlocal count
            if count == call:
                os.kill(os.getpid(), signal.SIGKILL)
            count += 1
            return real(*arguments, **more)

        return do

    for name in ("take", "replace", "remove"):
        setattr(Folder, name, counted(getattr(Folder, name)))
    os.replace = counted(os.replace)  # type: ignore[assignment]
    locked_dataset.shutil.rmtree = counted(locked_dataset.shutil.rmtree)  # type: ignore[assignment,attr-defined]
    work()


def _start(work: Callable[[], None]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        os.setsid()
        work()
        os._exit(0)
    except BaseException:  # noqa: BLE001  # the child must not come back as a second pytest
        traceback.print_exc()
    finally:
        os._exit(1)


def _forked(work: Callable[[], None]) -> int:
    """How a child ended."""
    return _end(_start(work))


def _killed(child: int, after: float) -> bool:
    """Whether it was still at work then."""
    time.sleep(after)
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:  # it has no group of its own yet
        os.kill(child, signal.SIGKILL)
    return _end(child) == -signal.SIGKILL


def _end(child: int) -> int:
    until = time.monotonic() + _SLACK_SECONDS
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    pytest.fail("an ingest in a child hangs")


def _seconds(work: Callable[[], object]) -> float:
    start = time.monotonic()
    work()
    return time.monotonic() - start


def contents(folder: Path) -> dict[str, bytes]:
    """Its files; what an ingest stages is none of the dataset."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".staging" not in path.parts
    }


@pytest.mark.parametrize("stage", ["read", "write"])
@pytest.mark.parametrize("then", ["gone", "replaced", "copied"])
def test_it_stays_as_it_was(stage: str, then: str, tmp_path: Path) -> None:
    """One line; the moved one is whole, and a later ingest goes on with it; the other one is not touched, also where it
    has what this ingest stages (a copy with all files)."""
    dataset, moved, other = tmp_path / "d", tmp_path / "moved", tmp_path / "other"
    take(dataset, report("gpu1"))
    take(other, report("gpu9"))
    before, of_other = contents(dataset), contents(other)
    source = tmp_path / "in.ndjson"
    source.write_bytes(report("gpu2").replace(b"\n", b" ") + b"\n")
    stages = []

    def tell(now: str, _done: int) -> None:
        stages.append(now)
        if now == stage and not moved.exists():
            dataset.rename(moved)
            if then != "gone":
                shutil.copytree(moved if then == "copied" else other, dataset)

    with pytest.raises((BadDataset, OSError), match=r"moved or replaced|No such file"):
        ingest(IngestOptions(sources=[str(source)], dataset=str(dataset)), tell)

    assert stage in stages
    assert before == contents(moved)
    assert [("gpu1",)] == rows(moved, "host", "node")
    if then == "gone":
        assert not dataset.exists()
    else:
        assert (before if then == "copied" else of_other) == contents(dataset)
    assert 1 == taken(moved, source).fresh
    assert [("gpu1",), ("gpu2",)] == rows(moved, "host", "node")
    assert not (moved / ".staging").exists()


def test_what_is_moved_before_the_end_is_not_written_to(tmp_path: Path) -> None:
    """Nothing is new in it: its list of known files is not left at the old path."""
    dataset, source = tmp_path / "d", tmp_path / "in.ndjson"
    source.write_bytes(report("gpu1").replace(b"\n", b" ") + b"\n")
    taken(dataset, source)

    def tell(_now: str, _done: int) -> None:
        if dataset.exists():
            dataset.rename(tmp_path / "moved")

    source.write_bytes(source.read_bytes() * 2)
    ingest(IngestOptions(sources=[str(source)], dataset=str(dataset)), tell)

    assert not dataset.exists()


def test_what_another_ingest_writes_in_a_dataset_put_in_its_place_stays(tmp_path: Path) -> None:
    """The path is that of our staging, the folder is another one's."""
    dataset, source = tmp_path / "d", tmp_path / "in.ndjson"
    source.write_bytes(report("gpu1").replace(b"\n", b" ") + b"\n")
    taken(dataset, source)

    with open_locked(str(dataset), 5.0):
        dataset.rename(tmp_path / "moved")
        shutil.copytree(tmp_path / "moved", dataset)
        assert (dataset / ".staging" / "files").is_dir()

    assert (dataset / ".staging" / "files").is_dir()
