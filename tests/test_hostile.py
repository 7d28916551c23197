"""The program against its surroundings: closed streams, full disks, devices as output, limits, hostile sources."""

from __future__ import annotations

import json
import os
import pty
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest

from tests.conftest import ROOT
from tests.texts import error_lines

pytestmark = pytest.mark.usefixtures("real_commands")

PROGRAM = (sys.executable, "-m", "fabricscope")


def ran(arguments: Sequence[str], shell: str = "", **environment: str) -> subprocess.CompletedProcess[bytes]:
    """The program in a shell; `shell`: redirections and limits, around "$@"."""
    script = shell or 'exec "$@"'
    env = {"PATH": os.defpath, **environment}
    return subprocess.run(
        ["sh", "-c", script, "sh", *PROGRAM, *arguments],
        cwd=ROOT,
        env=env,
        capture_output=True,
        timeout=60,
        check=False,
    )


def one_line(output: bytes) -> str:
    """What stood on stderr: one line of the program, no traceback."""
    (line,) = error_lines(output.decode())
    assert line.startswith("error: ")
    return line


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize(
    ("redirected", "output"),
    [('exec "$@" >&-', "stdout: Bad file descriptor"), ('exec "$@" >/dev/full', "stdout: No space left on device")],
)
def test_a_stdout_that_takes_nothing_is_one_line(capture: Path, form: str, redirected: str, output: str) -> None:
    """Closed or full: exit 2, and nothing is said to be written."""
    done = ran(["scan", "--source", str(capture), "--format", form], redirected)

    assert 2 == done.returncode
    assert output in one_line(done.stderr)


def test_check_answers_unknown_where_nobody_can_read_it(capture: Path) -> None:
    """A monitoring plugin without a stdout is 3."""
    assert [3, 3] == [
        ran(["check", "--source", str(capture)], f'exec "$@" {to}').returncode for to in (">&-", ">/dev/full")
    ]


def test_closed_streams_are_no_files(capture: Path, tmp_path: Path) -> None:
    """Without stdin, stdout and stderr a report to a file is whole, and nothing else is written into it."""
    place = tmp_path / "r.json"
    done = ran(["scan", "--source", str(capture), "-o", str(place)], 'exec "$@" <&- >&- 2>&-')

    assert 0 == done.returncode
    assert "ok" == json.loads(place.read_bytes())["summary"]["verdict"]


def test_what_is_no_file_is_written_to_and_not_replaced(capture: Path, tmp_path: Path) -> None:
    """`--output` names a pipe, a link or a device as well; a rename would put a file in its place."""
    pipe, link, real = tmp_path / "pipe", tmp_path / "link", tmp_path / "real.json"
    os.mkfifo(pipe)
    link.symlink_to(real)
    arguments = ["scan", "--source", str(capture), "--format", "json", "--output"]
    piped = ran([*arguments, str(pipe)], 'cat "$PIPE" & "$@"; wait', PIPE=str(pipe))
    ran([*arguments, str(link)])
    printed = ran([*arguments, "/dev/stdout"])

    assert pipe.is_fifo()
    assert link.is_symlink()
    reports = [json.loads(item)["topology"] for item in (piped.stdout, printed.stdout, real.read_bytes())]
    assert reports[0] == reports[1] == reports[2]


@pytest.mark.parametrize(
    "environment",
    [
        {"PATH": ""},
        {"LC_ALL": "C"},
        {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"LANG": "tr_TR.UTF-8", "LC_ALL": "tr_TR.UTF-8"},
        {"TERM": "dumb", "COLUMNS": "20"},
        {"HOME": "/nonexistent", "TMPDIR": "/nonexistent"},
    ],
    ids=str,
)
def test_the_environment_changes_no_report(capture: Path, environment: dict[str, str]) -> None:
    """Neither locale nor terminal nor a missing HOME decides what is seen; the page is drawn in what can be shown."""
    env = {"PATH": os.defpath} | environment
    page = subprocess.run(
        [*PROGRAM, "scan", "--source", str(capture)], cwd=ROOT, env=env, capture_output=True, timeout=60, check=True
    )
    report = subprocess.run(
        [*PROGRAM, "scan", "--source", str(capture), "--format", "json"],
        cwd=ROOT, env=env, capture_output=True, timeout=60, check=True,
    )  # fmt: skip

    assert b"" == page.stderr
    assert page.stdout.decode()
    assert "ok" == json.loads(report.stdout)["summary"]["verdict"]


@pytest.mark.parametrize("limit", ["ulimit -n 16", "ulimit -v 400000", "ulimit -f 0"])
def test_small_limits_are_enough(capture: Path, limit: str) -> None:
    """16 files, 400 MB of address space, no file of any size: a report all the same."""
    done = ran(["scan", "--source", str(capture), "--format", "json"], f'{limit}; "$@" | cat')

    assert "ok" == json.loads(done.stdout)["summary"]["verdict"]


def test_a_source_that_is_no_evidence_is_one_line(tmp_path: Path) -> None:
    """Pipes, sockets, devices, loops, holes of 10 GB, a folder nobody may read, nothing at all: exit 2, soon."""
    named = {name: tmp_path / name for name in ("pipe", "socket", "loop", "hole", "empty", "folder")}
    os.mkfifo(named["pipe"])
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(named["socket"]))
    named["loop"].symlink_to(named["loop"])
    named["empty"].touch()
    named["folder"].mkdir(mode=0)
    with named["hole"].open("wb") as file:
        file.truncate(10 * 2**30)

    for source in (*map(str, named.values()), "/dev/null", "/dev/zero", "/sys", str(tmp_path / "none")):
        done = ran(["scan", "--source", source])

        assert 2 == done.returncode, source
        assert source in one_line(done.stderr)


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("after_seconds", [0.05, 0.15, 0.25, 0.4])
def test_stopped_at_any_moment_it_leaves_no_half_file_and_no_child(
    tmp_path: Path, stop: signal.Signals, after_seconds: float
) -> None:
    """A live scan of this host: the report is whole or not there."""
    place = tmp_path / "r.json"
    scan = psutil.Popen([*PROGRAM, "scan", "-o", str(place)], cwd=ROOT, stderr=subprocess.DEVNULL)
    time.sleep(after_seconds)
    children = scan.children(recursive=True) if scan.is_running() else []
    scan.send_signal(stop)
    scan.wait(20)
    _, left = psutil.wait_procs(children, timeout=5)

    assert [] == left
    assert set(os.listdir(tmp_path)) <= {"r.json"}
    assert not place.exists() or json.loads(place.read_bytes())["schema"]


IGNORING = """
import os, signal, sys
for name in ("SIGINT", "SIGHUP", "SIGTERM", "SIGQUIT", "SIGCHLD", "SIGALRM"):
    signal.signal(getattr(signal, name), signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGALRM, signal.SIGINT))
os.execv(sys.argv[1], sys.argv[1:])
"""
EXIT_CODES = """
import subprocess, sys
from agent.cli.main import run
assert 0 == run(["--version"])
print(subprocess.run([sys.executable, "-c", "raise SystemExit(7)"]).returncode)
"""
IN_TESTS = """
import signal
from tests.conftest import RELIED_ON, pytest_configure
pytest_configure()
print(*{str(signal.getsignal(number) is signal.SIG_IGN) for number in RELIED_ON}, signal.pthread_sigmask(0, ()))
"""


def test_a_caller_that_ignores_signals_hides_no_exit_code() -> None:
    """A program that ignores SIGCHLD has those of its children dropped, and what it starts inherits it: a tool that
    failed would count as one that ended well."""
    assert "7" == _ignoring(EXIT_CODES).splitlines()[-1]


def test_tests_rely_on_no_signal_of_the_callers_shell() -> None:
    """`nohup make test &` in a script: what tests start can be interrupted all the same."""
    assert "False set()" == _ignoring(IN_TESTS)


def _ignoring(program: str) -> str:
    command = [sys.executable, "-c", IGNORING, sys.executable, "-c", program]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert "" == done.stderr
    return done.stdout.strip()


FULL_SHARED_MEMORY = """
mount -t tmpfs -o size=8k,nr_inodes=3 full /dev/shm || exit 77
cat /dev/zero > /dev/shm/a 2> /dev/null
touch /dev/shm/b
touch /dev/shm/c 2> /dev/null && exit 78
exec "$@"
"""
WITH_IT_FULL = """
import sys
from pathlib import Path
from tests.agent.fleet.small import report, take
from tests.conftest import IN_MEMORY, _has_room
print(_has_room(IN_MEMORY), take(Path(sys.argv[1]), *(report(f"gpu{n}") for n in range(8)), jobs=2).fresh)
"""


def test_a_full_shared_memory_stops_nothing(real_commands: None) -> None:
    """Neither processes that share work, which semaphores would need, nor the choice of where tests have files."""
    command = ["unshare", "-rm", "sh", "-c", FULL_SHARED_MEMORY, "sh", sys.executable, "-c", WITH_IT_FULL]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # that of other tests may be in shared memory
        done = subprocess.run([*command, f"{folder}/dataset"], env=environment, capture_output=True, text=True,
                              timeout=100, check=False)  # fmt: skip
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip(f"no namespace of its own can be made: {done.stderr.strip()[:80]}")

    assert (0, "False 8", "") == (done.returncode, done.stdout.strip(), done.stderr)


def test_a_terminal_gets_printable_text_whatever_the_format() -> None:
    """JSON escapes only some of the characters that a terminal obeys; to a pipe it goes as it is."""
    printing = "from agent.cli.output import deliver; deliver('[\"\x9b31m\u202e\"]\\n'.encode(), None)"
    ours, theirs = pty.openpty()
    try:
        subprocess.run([sys.executable, "-c", printing], stdout=theirs, check=True, cwd=ROOT)
        shown = os.read(ours, 1000)
    finally:
        os.close(ours)
        os.close(theirs)
    piped = subprocess.run([sys.executable, "-c", printing], stdout=subprocess.PIPE, check=True, cwd=ROOT).stdout

    assert b'["\\u009b31m\\u202e"]\r\n' == shown
    assert '["\x9b31m\u202e"]\n'.encode() == piped
