"""Where the fleet's libraries are not installed, each command says so and how to get them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import ROOT

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
    assert done.stderr.startswith("fabricscope: the fleet's libraries are not installed: pip install ")
    assert 1 == done.stderr.count("\n")
