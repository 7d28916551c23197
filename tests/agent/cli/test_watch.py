"""`watch` from outside: a process on this host, its lines and file, its signals, and what it refuses."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.cli.main import run
from agent.reports import read_report
from tests.conftest import ROOT
from tests.probes.namespace import in_namespace

pytestmark = pytest.mark.usefixtures("real_commands")
PATIENCE = 60.0  # seconds that a slow machine gets


class Watching:
    """A process that watches this host."""

    def __init__(self, *arguments: str, stdout: int = subprocess.PIPE) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "fabricscope", "watch", "--format", "ndjson", *arguments],
            stdout=stdout, stderr=subprocess.PIPE, cwd=ROOT,
        )  # fmt: skip

    def line(self) -> dict[str, object]:
        """The next judging."""
        assert self.process.stdout is not None
        assert select.select([self.process.stdout], [], [], PATIENCE)[0], "nothing was said"
        result: dict[str, object] = json.loads(self.process.stdout.readline())
        return result

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Its exit code, and what stood on stderr."""
        self.process.send_signal(number)
        _, output = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, output.decode()


@pytest.fixture
def started() -> Iterator[list[Watching]]:
    """Processes of a test, none of which stays."""
    result: list[Watching] = []
    yield result
    for item in result:
        if item.process.poll() is None:
            item.process.kill()
            item.process.communicate()


def test_it_keeps_a_report_answers_who_asks_and_ends_cleanly(started: list[Watching], tmp_path: Path) -> None:
    """SIGUSR1: a full scan and a new file. SIGTERM: exit 0, a whole file, and nothing beside it."""
    place = tmp_path / "report.json"
    watching = Watching("--output", str(place), "--settle", "0.1", "--skip", "services")
    started.append(watching)
    first = watching.line()
    report = read_report(str(place))
    assert ["start"] == [why["kind"] for why in first["why"]]  # type: ignore[union-attr]  # JSON
    assert first["verdict"] == report.summary.verdict
    assert first["time"] == report.observed_at

    time.sleep(1.1)  # times are of whole seconds
    watching.process.send_signal(signal.SIGUSR1)
    second = watching.line()
    assert "asked" in [why["kind"] for why in second["why"]]  # type: ignore[union-attr]
    assert second["full"]
    assert second["time"] == read_report(str(place)).observed_at != report.observed_at
    code, output = watching.end()
    assert (0, ["report.json"]) == (code, os.listdir(tmp_path))
    assert "listens to rtnetlink, uevents" in output
    assert "Traceback" not in output


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_signal_in_the_first_scan_ends_it_too(number: int, started: list[Watching], tmp_path: Path) -> None:
    """Whole files or none."""
    place = tmp_path / "report.json"
    watching = Watching("--output", str(place))
    started.append(watching)
    assert watching.process.stderr is not None
    output = watching.process.stderr.readline()
    assert b"listen" in output  # what it listens to, or first what it may not
    code, _ = watching.end(number)

    assert 0 == code
    assert set(os.listdir(tmp_path)) <= {"report.json"}
    if place.exists():
        read_report(str(place))


def test_a_restart_compares_with_the_report_that_is_there(tmp_path: Path, started: list[Watching]) -> None:
    """What changed while nobody watched: here, nothing that a scan did not say."""
    place = tmp_path / "report.json"
    assert 0 == run(["scan", "-o", str(place)])
    watching = Watching("--output", str(place))
    started.append(watching)
    first = watching.line()

    assert first["verdict_before"] is not None
    assert 0 == watching.end()[0]


def test_who_reads_no_more_is_noticed(started: list[Watching]) -> None:
    """`watch | head -1` ends by itself, and not at the next change."""
    watching = Watching("--only", "kernel")
    started.append(watching)
    watching.line()
    assert watching.process.stdout is not None
    watching.process.stdout.close()

    assert watching.process.stderr is not None
    output = watching.process.stderr.read().decode()
    assert 0 == watching.process.wait(PATIENCE)
    assert ["listens to"] == [line[:10] for line in output.splitlines()]


def test_a_reader_that_does_not_read_does_not_keep_it_from_ending(started: list[Watching], tmp_path: Path) -> None:
    """The pipe is full; the report is written all the same, and SIGTERM ends it."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while os.write(writer, bytes(1024)):
            pass
    os.set_blocking(writer, True)
    place = tmp_path / "report.json"
    watching = Watching("--only", "kernel", "--output", str(place), stdout=writer)
    started.append(watching)
    until = time.monotonic() + PATIENCE
    while not place.exists() and time.monotonic() < until:
        time.sleep(0.1)
    time.sleep(0.5)

    assert 0 == watching.end()[0]
    os.close(reader)
    os.close(writer)


LIVE = """
import json, signal, subprocess, sys
argv = [sys.executable, "-m", "fabricscope", "watch", "--format", "ndjson", "--settle", "0.3", "--quiet"]
watch = subprocess.Popen(argv, stdout=subprocess.PIPE)
said = [json.loads(watch.stdout.readline())]
subprocess.run("ip link add v0 type veth peer name v1; ip link set lo up", shell=True, check=True)
said.append(json.loads(watch.stdout.readline()))
subprocess.run("ip link set lo down; ip link del v0", shell=True, check=True)
said.append(json.loads(watch.stdout.readline()))
watch.send_signal(signal.SIGTERM)
print(json.dumps([said, watch.wait(60)]))
"""


def test_an_interface_of_this_kernel_is_judged_when_it_changes() -> None:
    """In a network namespace of its own: loopback up, and down. What no event touched is kept; a veth is none."""
    output, code = json.loads(in_namespace(LIVE).stdout)
    start, up, down = output

    assert 0 == code
    assert start["full"]
    for item, text in ((up, "lo down -> unknown"), (down, "lo unknown -> down")):
        assert not item["full"]
        assert text in [why["text"] for why in item["why"]]
        assert {"interface"} == {why["kind"] for why in item["why"]}
        assert {"netdev", "ethtool", "rdma", "kernel"} <= set(item["read"])
        assert {"pci", "nvml", "cpu"}.isdisjoint(item["read"])


def test_another_kernels_files_are_not_listened_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--root of another machine: its kernel does not speak here."""
    boot = tmp_path / "proc/sys/kernel/random"
    boot.mkdir(parents=True)
    (boot / "boot_id").write_text("00000000-0000-0000-0000-000000000000\n")

    assert 2 == run(["watch", "--root", str(tmp_path)])
    assert "another boot" in capsys.readouterr().err


def test_a_pipe_is_written_to_and_never_read(started: list[Watching]) -> None:
    """--output /dev/stdout: the report, then the line on it."""
    watching = Watching("--only", "kernel", "--output", "/dev/stdout")
    started.append(watching)
    assert watching.process.stdout is not None
    assert select.select([watching.process.stdout], [], [], PATIENCE)[0]

    assert b"{" == watching.process.stdout.readline().strip()
    assert 0 == watching.end()[0]


def test_a_file_that_can_no_longer_be_written_is_told_and_the_watch_goes_on(
    started: list[Watching], tmp_path: Path
) -> None:
    """Its folder is gone: a line on stderr, and the changes are told all the same."""
    folder = tmp_path / "kept"
    folder.mkdir()
    watching = Watching("--only", "kernel", "--output", str(folder / "report.json"))
    started.append(watching)
    watching.line()
    shutil.rmtree(folder)
    watching.process.send_signal(signal.SIGUSR1)

    assert watching.line()["full"]
    code, output = watching.end()
    assert 0 == code
    assert "the report is not kept" in output


def test_a_file_that_cannot_be_written_is_told_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Not after an hour."""
    assert 2 == run(["watch", "--quiet", "--only", "kernel", "--output", "/no/such/folder/report.json"])

    assert "/no/such/folder/report.json: No such file" in capsys.readouterr().err
