"""The manual page: whole, and without a complaint of what renders it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from agent.cli.command_tree import read_commands, walk_commands
from agent.cli.commands import app
from release.share import MANUAL


def test_mandoc_has_no_complaint(share: dict[str, Path], real_commands: None) -> None:
    """At its strictest level: style."""
    if shutil.which("mandoc") is None:
        pytest.skip("mandoc is not installed")

    assert "" == subprocess.run(["mandoc", "-Tlint", share[MANUAL]], capture_output=True, text=True, check=False).stdout


def test_groff_has_no_complaint_and_shows_every_command_and_option(share: dict[str, Path], real_commands: None) -> None:
    """As `man -l` prints it, 80 columns wide."""
    if shutil.which("man") is None or shutil.which("groff") is None:
        pytest.skip("man and groff are not installed")
    done = subprocess.run(
        ["man", "--warnings", "-l", str(share[MANUAL])], capture_output=True, text=True, check=False,
        env={"PATH": "/usr/bin:/bin", "MANWIDTH": "80", "LC_ALL": "C.UTF-8"},
    )  # fmt: skip
    shown = " ".join(done.stdout.replace("‐\n", "").split())

    assert ("", 0) == (done.stderr, done.returncode)
    assert 80 >= max(len(line) for line in done.stdout.splitlines())
    for command in walk_commands(read_commands(app)):
        if command.words and not command.commands:
            assert f" fabricscope {command.name} " in shown
        for option in command.options:
            assert ", ".join(option.names) in shown
