"""The fabric manager's version and IMEX: by command, by log, by file; silence where nothing is installed."""

from __future__ import annotations

import pytest

from probes.host.interface import READ_LIMIT_BYTES
from probes.probe import outcome_of
from probes.system import services
from probes.system.services import LOG, NODES_CONFIG, parse_nodes, parse_state, parse_version
from tests.probes.system.system_machine import Machine
from tests.probes.system.test_services import DAEMON, SLICE, UNITS, booted

STARTED = "[Jan 05 2026 14:44:41] [INFO] [tid 1120] Fabric Manager version {} is running with the following options\n"


def installed(name: str, running: bool = True) -> Machine:
    host = booted().put({f"{UNITS}/{name}.service": DAEMON})
    return host.put({f"{SLICE}/{name}.service/cgroup.events": "populated 1\n"}) if running else host


def facts(host: Machine):
    return outcome_of(services.PROBE, host).facts


def version(host: Machine) -> str | None:
    return next(s.version for s in facts(host).services if s.name == "nvidia-fabricmanager")


def test_the_log_tells_the_last_start() -> None:
    """It is appended to over updates."""
    text = STARTED.format("535.54.03") + "x\n" + STARTED.format("570.124.06")

    assert "570.124.06" == version(installed("nvidia-fabricmanager").put({LOG: text}))


def test_a_log_that_is_cut_tells_nothing() -> None:
    """Its last start may be behind the cut."""
    text = STARTED.format("535.54.03") + "x" * READ_LIMIT_BYTES

    assert version(installed("nvidia-fabricmanager").put({LOG: text})) is None


def test_without_a_fabric_manager_nobody_asks() -> None:
    """A left-over log is no version."""
    assert version(booted().put({LOG: STARTED.format("535.54.03")})) is None


@pytest.mark.parametrize(("text", "nodes"), [("", "0"), ("# a\n\n", "0"), ("10.0.0.1\n10.0.0.2\n", "2"), (None, "0")])
def test_imex_says_how_many_nodes_it_is_told_of(text: str | None, nodes: str) -> None:
    """A folder without the file is a configuration without nodes."""
    host = installed("nvidia-imex", running=False).put({f"{NODES_CONFIG.rpartition('/')[0]}/config.cfg": ""})
    host = host if text is None else host.put({NODES_CONFIG: text})

    assert {"nodes_config": nodes} == facts(host).imex


def test_imex_that_is_not_installed_or_hides_its_folder() -> None:
    """Nothing is known, and nothing said."""
    assert facts(booted().put({NODES_CONFIG: "10.0.0.1\n"})).imex is None
    assert facts(installed("nvidia-imex", running=False)).imex is None


@pytest.mark.parametrize(
    ("text", "said"), [("nv-fabricmanager: not found", None), ("Fabric Manager version is : 570.1.2.3.4", None)]
)
def test_no_version_is_no_version(text: str, said: str | None) -> None:
    """Nor is one that goes on."""
    assert said is parse_version(text)


def test_words() -> None:
    """A state stands alone on its line."""
    assert ("READY", None, 1) == (parse_state("\nREADY\n"), parse_state("not READY"), parse_nodes("a"))
