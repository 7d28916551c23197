"""Ctrl-C: one line, the shell's exit code, and no file half-written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fixtures.build import write_capture
from tests.conftest import ROOT


@pytest.mark.usefixtures("real_commands")
def test_an_interrupted_run_says_so(tmp_path: Path) -> None:
    """While it waits for a profile from a pipe that nobody writes to."""
    source = tmp_path / "profile.toml"
    os.mkfifo(source)
    write_capture("cpu-only-2s", None, tmp_path / "host")
    command = [sys.executable, "-m", "fabricscope", "scan", "--source", str(tmp_path / "host")]
    command += ["--profile", str(source), "--output", str(tmp_path / "out")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)})
    writer = _opened(source, process)
    process.send_signal(signal.SIGINT)
    _, output = process.communicate(timeout=60)
    os.close(writer)

    assert (130, "error: interrupted\n") == (process.returncode, output)
    assert not (tmp_path / "out").exists()


def _opened(source: Path, process: subprocess.Popen[str]) -> int:
    """The writing end, once the program has opened the reading one."""
    for _ in range(600):
        try:
            return os.open(source, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            assert process.poll() is None, process.communicate()
            time.sleep(0.1)
    raise AssertionError("the program did not open its profile")
