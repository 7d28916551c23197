"""Which process holds the lock of a probe: told on stderr when a run is refused by it, and in no report."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from agent.cli.main import run
from probes.locks import FOLDER_VARIABLE

HOLD = """
import sys, time
from probes.locks import Lock, run_folder, acquire_lock
lock = acquire_lock(run_folder(), "numa")
assert isinstance(lock, Lock)
lock.name_holder(__import__("os").getpid(), -100.0)  # long over its bound
print("held", flush=True)
time.sleep(60)
"""


def test_a_run_that_is_refused_names_the_holder(
    real_commands: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Name, user, pid, state and age of a process that an earlier run could not end."""
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "run"))
    holder = subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None
        assert "held\n" == holder.stdout.readline()
        assert 0 == run(["scan", "--only", "numa", "--format", "json"])
    finally:
        holder.kill()
        holder.communicate()

    output = capsys.readouterr()
    (line,) = output.err.splitlines()
    pid = holder.pid
    place = re.escape(str(tmp_path / "run" / "numa.lock"))
    assert re.fullmatch(
        rf"warning: numa: \S+ of \S+, pid {pid}, state S \(sleeping\)(, in \w+)?, running for \d+ s, holds {place}",
        line,
    )
    (probe,) = (probe for probe in json.loads(output.out)["probes"] if probe["name"] == "numa")
    assert ("timed_out", True) == (probe["status"], probe["hung"])
    assert f"pid {pid}, state S" in probe["reason"]
    assert "running for" not in output.out
