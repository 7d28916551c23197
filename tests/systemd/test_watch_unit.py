"""The unit of `watch`: all that the scan's unit forbids, and only what listening needs besides."""

from __future__ import annotations

import re
import shlex

import pytest
import typer.main

from agent.cli.commands import app
from tests.conftest import ROOT
from tests.systemd.test_units import ANALYZE, analyze

PLACE = ROOT / "systemd" / "fabricscope-watch.service"
EXPOSURE = 2.0  # the scan's unit has 1.9: to read the log as it is written costs the rest
MEASURED = 252
OF_A_SCAN = {
    "Type",
    "ExecStart",
    "TimeoutStartSec",
    "SupplementaryGroups",
    "AmbientCapabilities",
    "CapabilityBoundingSet",
}


def settings(name: str) -> list[tuple[str, str]]:
    """The lines of a unit's [Service]."""
    text = (ROOT / "systemd" / name).read_text().partition("[Service]\n")[2].partition("\n[")[0]
    return [(key, value) for key, equals, value in (line.partition("=") for line in text.splitlines()) if equals]


def test_it_forbids_whatever_the_scan_forbids() -> None:
    """Line for line, but for what makes one a scan; beyond that one device to read, and one capability."""
    scan, watch = settings("fabricscope-scan.service"), settings(PLACE.name)

    assert [] == [row for row in scan if row[0] not in OF_A_SCAN and row not in watch and not row[0].startswith("#")]
    more = [row for row in watch if row[0] in ("DeviceAllow", "AmbientCapabilities") and row not in scan]
    assert [("AmbientCapabilities", "CAP_SYS_ADMIN CAP_SYSLOG"), ("DeviceAllow", "/dev/kmsg r")] == more


def test_its_command_is_one_that_there_is() -> None:
    """Every option of the line is an option of `watch`."""
    argv = shlex.split(dict(settings(PLACE.name))["ExecStart"])
    command = typer.main.get_command(app).commands["watch"]  # type: ignore[attr-defined]  # a group
    known = {option for parameter in command.params for option in parameter.opts}

    assert "watch" == argv[1]
    assert {word for word in argv[2:] if word.startswith("--")} <= known


@pytest.mark.skipif(ANALYZE is None, reason="systemd-analyze is not installed")
def test_its_exposure_is_what_was_measured(real_commands: None) -> None:
    """By systemd's own score; other versions count otherwise, and the limit of all units holds there."""
    version = re.search(r"systemd (\d+)", analyze("--version"))
    if version is None or int(version[1]) != MEASURED:
        pytest.skip(f"the score was measured with systemd {MEASURED}")
    match = re.search(r"Overall exposure level for \S+: ([0-9.]+)", analyze("security", "--offline=true", str(PLACE)))

    assert match is not None
    assert float(match[1]) <= EXPOSURE
