"""Tools are bounded in time and output, whatever they do, and find a clean environment."""

from __future__ import annotations

import getpass
import os
import re
import selectors
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from probes.catalogue import probe
from probes.host import process as tool
from probes.host.commands import BOUND_SECONDS, COMMANDS, SERVICE_JOURNAL
from probes.host.interface import Absent, Failed, TimedOut
from probes.host.live import LiveHost
from probes.host.process import describe_process, run_tool
from tests.probes.runs import ended

PATIENCE = 30.0  # on a busy machine; what hangs here does so for 60 s or for ever

pytestmark = pytest.mark.usefixtures("real_commands")


@pytest.fixture
def folder(tmp_path: Path) -> tuple[str, ...]:
    """Where the tests' tools lie."""
    return (str(tmp_path),)


def install(folder: tuple[str, ...], script: str, name: str = "ibstat") -> None:
    place = Path(folder[0]) / name
    place.write_text(f"#!/bin/sh\n{script}\n")
    place.chmod(0o755)


def test_a_tool_answers(folder: tuple[str, ...]) -> None:
    """Output, errors and exit code; a non-zero exit is an answer."""
    install(folder, 'printf "a\\377b"; echo oh >&2; exit 3')

    done = run_tool(("ibstat",), 5, folder)

    assert ("a\ufffdb", "oh\n", 3) == (done.stdout, done.stderr, done.returncode)


def test_the_environment_is_clean(folder: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """C locale, our PATH, no standard input, nothing of the caller."""
    monkeypatch.setenv("LANGUAGE", "de")
    for name in ("LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "BASH_ENV", "PYTHONPATH"):
        monkeypatch.setenv(name, "/nowhere/secret.so")
    install(folder, "env; cat; pwd")

    done = run_tool(("ibstat",), 5, folder)
    lines = done.stdout.splitlines()

    assert "LC_ALL=C" in lines
    assert f"PATH={':'.join(tool.DIRECTORIES)}" in lines
    assert "/" == lines[-1]
    assert not [line for line in lines if line.startswith(("LANGUAGE", "HOME")) or "secret" in line]
    assert "" == done.stderr, "the loader complains of a library that it cannot load"


def test_a_tool_that_is_not_installed_is_absent(folder: tuple[str, ...]) -> None:
    """So is one that cannot be executed, and a folder of its name."""
    (Path(folder[0]) / "ibstatus").write_text("#!/bin/sh\n")
    (Path(folder[0]) / "show_gids").mkdir()

    for name in ("ibstat", "ibstatus", "show_gids"):
        with pytest.raises(Absent, match=f"{name} is not installed"):
            run_tool((name,), 5, folder)


def test_a_tool_that_cannot_start_has_a_reason(folder: tuple[str, ...]) -> None:
    """No interpreter, or no program at all."""
    place = Path(folder[0]) / "ibstat"
    place.write_bytes(b"\x7fELF nothing")
    place.chmod(0o755)

    with pytest.raises(Failed, match="Exec format error"):
        run_tool(("ibstat",), 5, folder)


@pytest.mark.parametrize("stream", ["yes", "yes >&2"])
def test_a_tool_that_prints_for_ever_is_ended(
    folder: tuple[str, ...], stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """stdout beyond the limit is an error, not a part passed for the whole; stderr is only cut."""
    monkeypatch.setattr(tool, "OUTPUT_LIMIT_BYTES", 1 << 20)
    install(folder, f"exec {stream}")
    began = time.monotonic()

    with pytest.raises((Failed, TimedOut)) as caught:
        run_tool(("ibstat",), 1.5, folder)

    assert ("EFBIG" if stream == "yes" else "ETIMEDOUT") == caught.value.code
    assert time.monotonic() - began < PATIENCE


def test_both_pipes_are_drained(folder: tuple[str, ...]) -> None:
    """More than a pipe holds on both streams does not dead-lock."""
    install(folder, "head -c 300000 /dev/zero >&2; head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2")

    done = run_tool(("ibstat",), 10, folder)

    assert (300_000, tool.STDERR_LIMIT_BYTES) == (len(done.stdout), len(done.stderr))


def test_a_tool_that_ignores_term_is_killed(folder: tuple[str, ...]) -> None:
    """With all that it started in its session."""
    mark = Path(folder[0]) / "pid"
    install(
        folder,
        f'trap "" TERM; (trap "" TERM; while :; do sleep 0.1; done) & echo $! > {mark}; while :; do sleep 0.1; done',
    )
    began = time.monotonic()

    with pytest.raises(TimedOut, match="ibstat: no end within its time"):
        run_tool(("ibstat",), 0.5, folder)

    assert time.monotonic() - began < PATIENCE
    assert ended(int(mark.read_text()))


def test_a_tool_that_closes_its_output_and_stays_is_ended(folder: tuple[str, ...]) -> None:
    """The end of its output is not its end."""
    install(folder, "exec >&- 2>&-; sleep 60")
    began = time.monotonic()

    with pytest.raises(TimedOut):
        run_tool(("ibstat",), 0.5, folder)

    assert time.monotonic() - began < PATIENCE


def test_a_tool_whose_offspring_holds_the_pipe_has_ended(folder: tuple[str, ...]) -> None:
    """Its answer is not kept waiting for a daemon that it left."""
    mark = Path(folder[0]) / "pid"
    install(folder, f"sleep 60 & echo $! > {mark}; echo done")
    began = time.monotonic()

    done = run_tool(("ibstat",), 10, folder)
    os.kill(int(mark.read_text()), signal.SIGKILL)

    assert "done\n" == done.stdout
    assert time.monotonic() - began < PATIENCE


def test_one_that_cannot_be_killed_is_left_behind(folder: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """As a process in an uninterruptible sleep: TERM and KILL have no effect, and we go on."""
    install(folder, "exec sleep 60")
    with monkeypatch.context() as patched:
        patched.setattr(os, "killpg", lambda *_: None)
        began = time.monotonic()

        with pytest.raises(TimedOut, match="state S"):
            run_tool(("ibstat",), 0.3, folder)

        assert time.monotonic() - began < PATIENCE
    (process,) = tool._left_behind
    tool._left_behind.clear()
    process.kill()
    assert -signal.SIGKILL == process.wait(5)


def test_an_interrupted_run_ends_its_tool(folder: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C, or the end of the probe's child: the tool does not outlive it."""
    mark = Path(folder[0]) / "pid"
    install(folder, f"echo $$ > {mark}; exec sleep 60")

    monkeypatch.setattr(selectors, "DefaultSelector", lambda: _Interrupting(mark))
    with pytest.raises(KeyboardInterrupt):
        run_tool(("ibstat",), 30, folder)

    assert ended(int(mark.read_text()))


class _Interrupting:
    """A selector during which somebody presses Ctrl-C, once the tool runs."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __enter__(self) -> _Interrupting:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def register(self, *_: object) -> None:
        pass

    def get_map(self) -> dict[int, int]:
        return {1: 1}

    def select(self, _seconds: float) -> None:
        while not (self.mark.exists() and self.mark.read_text()):
            time.sleep(0.01)
        raise KeyboardInterrupt


def test_only_committed_commands_are_run() -> None:
    """Anything else is a bug, and nothing is started for it."""
    host = LiveHost()

    for argv in (("nvidia-smi",), ("nvidia-smi", "-r"), ("lspci", "-vvv"), ("sh", "-c", "true"), ()):
        with pytest.raises(ValueError, match=r"commands\.py"):
            host.run(*argv)
    assert not host.has_output("lsmod")


def test_a_real_command_of_the_list() -> None:
    """lspci or lsmod where there is one; absent where not."""
    if not any(os.access(f"{directory}/lsmod", os.X_OK) for directory in tool.DIRECTORIES):
        with pytest.raises(Absent, match="lsmod is not installed"):
            LiveHost().run("lsmod")
        return

    done = LiveHost().run("lsmod")
    assert done.stdout.startswith("Module") if done.returncode == 0 else "modules" in done.stderr  # no /proc/modules


def test_the_list_holds_only_what_reads() -> None:
    """nvidia-smi only in its reading forms; no option that sets, resets, clears or loads."""
    smi = {"-q", "-x", "-L", "topo", "-m", "-p2p", "r", "w", "n", "nvlink", "-s", "-e", "-c", "-R"}

    assert all(set(argv[1:]) <= smi for argv in COMMANDS if argv[0] == "nvidia-smi")
    others = {argv for argv in COMMANDS if argv[0] != "nvidia-smi"}
    readers = {"lspci", "ibstat", "ibstatus", "ibv_devinfo", "rdma", "ibdev2netdev", "show_gids", "lsmod"}
    readers |= {"nv-fabricmanager", "nvidia-imex-ctl", "lldpctl", "journalctl"}
    readers |= {"neuron-ls", "amdsmi"}  # no program: the library's getters
    assert {argv[0] for argv in others} - {"systemctl"} <= readers
    assert all(argv[1] == "show" for argv in others if argv[0] == "systemctl")
    assert {("nv-fabricmanager", "--version"), ("nvidia-imex-ctl", "-q")} == {a for a in others if a[0][:2] == "nv"}
    assert all(argv == ("rdma", "link") for argv in others if argv[0] == "rdma")
    assert all(argv == ("lldpctl", "-f", "json") for argv in others if argv[0] == "lldpctl")
    journals = [argv for argv in others if argv[0] == "journalctl"]
    assert {("-k", "-b", "-q"), ("-b", "-q", "--no-pager")} == {argv[1:4] for argv in journals}
    assert all("-n" in argv for argv in journals if "-k" not in argv)  # that of services: so many lines, few seconds
    assert all(BOUND_SECONDS[argv] < probe("services").bound_seconds for argv in SERVICE_JOURNAL)


def test_nothing_is_started_in_the_suite_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    """run_tool goes through subprocess.Popen, which the suite refuses."""
    seen = []
    monkeypatch.setattr(
        subprocess, "Popen", lambda argv, **_: seen.append(argv) or (_ for _ in ()).throw(OSError(2, "no"))
    )

    with pytest.raises(Absent):
        run_tool(("sh",), 1)
    assert [("/usr/bin/sh",)] == seen


def test_a_running_process_has_a_name_a_user_a_state_and_an_age() -> None:
    """Ours."""
    line = describe_process(os.getpid())

    assert line is not None
    assert re.fullmatch(
        rf"\S+ of {getpass.getuser()}, pid {os.getpid()}, state R \(running\)(, in \w+)?, running for \d+ (s|min|h)",
        line,
    )


def test_an_import_that_hangs_holds_nothing_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Psutil reads /proc/stat."""
    (tmp_path / "psutil.py").write_text("import time\ntime.sleep(60)\n")
    monkeypatch.setattr(tool, "_ANSWER_SECONDS", 0.1)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "psutil", raising=False)

    assert describe_process(os.getpid()) is None


def test_a_process_that_is_gone_is_none() -> None:
    """One that ended, and numbers that no process has."""
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)

    assert [None] * 3 == [describe_process(pid) for pid in (child, 0x7FFFFFFF, -1)]
