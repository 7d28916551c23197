"""Shared options of fleet commands: required libraries, and Ctrl-C while a dataset is open."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from agent.cli.fleet import options
from tests.agent.fleet.small import report, take
from tests.conftest import ROOT

ENDLESS = {
    "counting": "select count(*) from range(1000000000000)",
    "recursive": "with recursive r as (select 1 as n union all select n + 1 from r) select count(*) from r",
    "rows": "select * from range(1000000000000)",
}
STUCK = """
import sys, time
from agent.cli.main import run
from agent.fleet.engines.duckdb_files import Embedded
if sys.argv[1] == "hears nothing":
    Embedded.close = lambda self: time.sleep(100)
answered = Embedded._run_query
endless = {"sql": "select count(*) from range(1000000000000)", "parameters": None}
Embedded._run_query = lambda self, bound, *how: answered(self, bound._replace(**endless), *how)
sys.exit(run(sys.argv[2:]))
"""


def interrupted(*command: str) -> tuple[int, bytes, float]:
    """Exit code, stderr, and how many seconds it took to end."""
    running = subprocess.Popen(
        [sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background job ignores it
    )  # fmt: skip
    until = time.monotonic() + 3
    while time.monotonic() < until and psutil.Process(running.pid).cpu_times().user < BUSY_SECONDS:
        time.sleep(0.05)
    began = time.monotonic()
    running.send_signal(signal.SIGINT)
    try:
        _, errors = running.communicate(timeout=30)
    finally:
        running.kill()
    return running.returncode, errors, time.monotonic() - began


BUSY_SECONDS = 1.5  # of a processor: a third of it is the start, then the query runs


@pytest.mark.parametrize("sql", ENDLESS.values(), ids=ENDLESS)
def test_a_query_that_would_never_end(tmp_path: Path, real_commands: None, sql: str) -> None:
    take(tmp_path / "d", report())
    target = tmp_path / "out" / "a.csv"
    target.parent.mkdir()
    code, errors, seconds = interrupted(
        "-m", "fabricscope", "fleet", "query", sql, "--dataset", str(tmp_path / "d"), "-o", str(target)
    )

    assert (code, errors) == (130, b"error: interrupted\n")
    assert seconds < 25
    assert list(target.parent.iterdir()) == []


@pytest.mark.parametrize("how", ["hears", "hears nothing"])
def test_a_question(tmp_path: Path, real_commands: None, how: str) -> None:
    take(tmp_path / "d", report())
    arguments = ["fleet", "html", "--dataset", str(tmp_path / "d"), "-o", str(tmp_path / "page.html")]
    code, errors, seconds = interrupted("-c", STUCK, how, *arguments)

    assert (code, errors) == (130, b"error: interrupted\n")
    assert seconds < 25
    assert not (tmp_path / "page.html").exists()


def test_what_duckdb_heard_itself(tmp_path: Path) -> None:
    take(tmp_path / "d", report())
    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt), options.open_engine(str(tmp_path / "d"), None):
        raise RuntimeError("Query interrupted")
    with pytest.raises(RuntimeError, match="another"), options.open_engine(str(tmp_path / "d"), None):
        raise RuntimeError("another")
    assert threading.active_count() <= before


LIBRARIES = ("duckdb", "pyarrow", "psycopg")
WITHOUT = f"""
import importlib.util, sys
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name in {LIBRARIES} else real(name, *more)
for each in {LIBRARIES}:
    sys.modules[each] = None
from agent.cli.main import run
sys.exit(run(sys.argv[1:]))
"""
DATASET = ("--dataset", "dataset")
COMMANDS = (
    ("ingest", "reports", *DATASET),
    ("summary", *DATASET),
    ("summary", *DATASET, "--where", "class=H100"),
    ("outliers", *DATASET),
    ("findings", *DATASET),
    ("drift", "--since", "24h", *DATASET),
    ("duplicates", *DATASET),
    ("topology", *DATASET),
    ("cables", *DATASET),
    ("html", *DATASET),
    ("query", "SELECT 1", *DATASET),
    ("export", "csv", "host", *DATASET),
    ("load", "--engine", "postgres://h/d", *DATASET),
)


@pytest.mark.usefixtures("real_commands")
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_without_the_extra_it_is_one_line(command: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, "fleet", *command], capture_output=True, text=True, cwd=ROOT, timeout=60
    )

    assert (2, "") == (done.returncode, done.stdout)
    assert done.stderr.startswith("error: the fleet's libraries are not installed: in the checkout, ")
    assert 1 == done.stderr.count("\n")
