"""docs/tutorial-fleet.md, command by command, in a folder of its own and with fewer nodes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

pytest.importorskip("duckdb")
pytestmark = [pytest.mark.timeout(600), pytest.mark.release, pytest.mark.usefixtures("real_commands")]
PAGE = (ROOT / "docs" / "tutorial-fleet.md").read_text()
BLOCKS = re.findall(r"^```\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def test_every_command_of_the_tutorial(tmp_path: Path) -> None:
    """All exit with 0; each shows something of what was planted."""
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    for name, words in (
        ("pip", "true"),
        ("python", sys.executable),
        ("fabricscope", f"{sys.executable} -m fabricscope"),
    ):
        program = tmp_path / ".venv" / "bin" / name
        program.write_text(f'#!/bin/sh\nexec env PYTHONPATH={ROOT} {words} "$@"\n')
        program.chmod(0o755)
    script = "".join(BLOCKS).replace("python3 -m venv .venv\n", "").replace("--nodes 400", "--nodes 60")
    assert "--nodes 60" in script
    done = subprocess.run(["bash", "-ex"], input=script, capture_output=True, text=True, cwd=tmp_path, check=False)

    assert 0 == done.returncode, done.stderr[-2000:]
    for shown in (
        "60 nodes in build",
        "Deviations from the expected layout",
        "nodes compared since",
        "Never reported: ",
    ):
        assert shown in done.stdout + done.stderr, shown
    for name in ("findings.csv", "gpus.csv", "fleet.html"):
        assert (tmp_path / "build" / name).stat().st_size > 1000, name
