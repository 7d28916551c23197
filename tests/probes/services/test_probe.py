"""Services by their traces: what each trace proves, and what none can; the fabric manager's version and IMEX."""

from __future__ import annotations

from functools import partial

import pytest

from probes.catalogue import probe
from probes.host.commands import SERVICE_JOURNAL
from probes.host.interface import READ_LIMIT_BYTES, Denied
from probes.probe import Status, outcome_of
from probes.services import probe as services
from probes.services.probe import (
    LOG,
    NODES_CONFIG,
    SystemdTraces,
    parse_nodes,
    parse_state,
    parse_version,
    state_of,
)
from probes.sources.memory import SymlinkNode
from tests.probes.machine import Machine, read_facts

UNITS = "/usr/lib/systemd/system"
SLICE = "/sys/fs/cgroup/system.slice"
DAEMON = "[Unit]\nDescription=x\n[Service]\nType=forking\nExecStart=/usr/bin/x\n"
ONESHOT = "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/etc/init.d/openibd start\n"


def booted() -> Machine:
    """A host with systemd on cgroup v2, on which one service of no interest runs."""
    return Machine().put(
        {"/run/systemd/system/x": "", "/run/systemd/units/x": "", f"{SLICE}/ssh.service/cgroup.events": "populated 1\n"}
    )


def states(host: Machine) -> dict[str, str]:
    """Every service's state."""
    return {service.name: service.state for service in outcome_of(probe("services"), host).facts.services}


def test_running_daemon():
    """A unit file and a living process: active."""
    host = booted().put({f"{UNITS}/nvidia-fabricmanager.service": DAEMON})
    host.put({f"{SLICE}/nvidia-fabricmanager.service/cgroup.events": "populated 1\nfrozen 0\n"})

    assert "active" == states(host)["nvidia-fabricmanager"]


def test_installed_daemon_that_does_not_run():
    """A unit file and no control group: inactive (or failed: the traces are the same)."""
    host = booted().put({f"{UNITS}/nvidia-fabricmanager.service": DAEMON})

    assert "inactive" == states(host)["nvidia-fabricmanager"]


def test_nothing_installed():
    """No unit file: not installed, for every service of interest."""
    assert {"not_installed"} == set(states(booted()).values())
    assert list(services.NAMES) == list(states(booted()))


def test_oneshot_that_left_no_process_is_active():
    """openibd loads modules and leaves; systemd's own link says that it is up."""
    host = booted().put({f"{UNITS}/openibd.service": ONESHOT})
    host.put({"/run/systemd/units/invocation:openibd.service": SymlinkNode("4f1c")})

    assert "active" == states(host)["openibd"]


def test_version_1_control_groups_count_processes():
    """Without cgroup.events, a list of processes says it."""
    host = Machine().put({"/run/systemd/system/x": "", "/run/systemd/units/x": ""})
    host.put({f"{UNITS}/irqbalance.service": DAEMON})
    host.put({"/sys/fs/cgroup/systemd/system.slice/irqbalance.service/cgroup.procs": "812\n"})

    assert "active" == states(host)["irqbalance"]


def test_fabric_manager_of_a_driver_container():
    """The GPU operator's fabric manager has no unit on the host, but its process lives."""
    pid = "/run/nvidia/driver/run/nvidia-fabricmanager/nv-fabricmanager.pid"
    host = booted().put({pid: "4711\n", "/proc/4711/comm": "nv-fabricmanage\n"})

    assert "active" == states(host)["nvidia-fabricmanager"]


def test_stale_pid_file_proves_nothing():
    """The process number was given to another program since."""
    pid = "/run/nvidia-fabricmanager/nv-fabricmanager.pid"
    host = booted().put({pid: "4711\n", "/proc/4711/comm": "bash\n"})

    assert "not_installed" == states(host)["nvidia-fabricmanager"]


def test_unit_file_that_may_not_be_read_is_installed():
    """A refused unit file is there: never "not installed"."""
    path = f"{UNITS}/nvidia-imex.service"
    host = booted().put({path: DAEMON})
    host.refused[path] = Denied(f"{path}: Permission denied")

    assert "inactive" == states(host)["nvidia-imex"]


def test_without_control_groups_a_daemon_is_unknown():
    """A container may show the units and not the control groups: unknown, with the reason."""
    host = Machine().put({"/run/systemd/system/x": "", f"{UNITS}/nvidia-persistenced.service": DAEMON})
    outcome = outcome_of(probe("services"), host)

    assert Status.PARTIAL == outcome.status
    assert "unknown" == states(host)["nvidia-persistenced"]
    assert "control groups" in outcome.reason


def test_without_systemd_nothing_is_said():
    """A container without its own systemd says nothing of the host's services."""
    host = Machine().put({f"{UNITS}/nvidia-fabricmanager.service": DAEMON})

    assert Status.ABSENT == outcome_of(probe("services"), host).status


@pytest.mark.parametrize("unit", [None, DAEMON, ONESHOT])
@pytest.mark.parametrize("invoked", [None, True, False])
@pytest.mark.parametrize("populated", [None, True, False])
def test_every_combination_of_traces(unit: str | None, invoked: bool | None, populated: bool | None):
    """A living process is active; a unit file is never "not installed"; what was not seen is not "inactive"."""
    state = state_of(SystemdTraces(unit, invoked, populated))

    assert (state == "active") or not populated
    assert (state != "not_installed") or unit is None
    assert (state != "inactive") or invoked is False or populated is False


STARTED = "[Jan 05 2026 14:44:41] [INFO] [tid 1120] Fabric Manager version {} is running with the following options\n"


def installed(name: str, running: bool = True) -> Machine:
    host = booted().put({f"{UNITS}/{name}.service": DAEMON})
    return host.put({f"{SLICE}/{name}.service/cgroup.events": "populated 1\n"}) if running else host


facts = partial(read_facts, "services")


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


JOURNAL = (
    "2026-11-20T09:40:11.120001+00:00 n7 systemd[1]: Starting NVIDIA fabric manager service...\n"
    "2026-11-20T09:40:12.480001+00:00 n7 nv-fabricmanager[4100]: detected number of NVSwitches don't match with any "
    "supported system topology, aborting fabric manager\n"
    "2026-11-20T09:40:12.500001+00:00 n7 systemd[1]: nvidia-fabricmanager.service: Failed with result 'exit-code'.\n"
)


def node_with_journal(stdout: str, unit: str = "nvidia-fabricmanager") -> Machine:
    host = booted().put({f"{UNITS}/{unit}.service": DAEMON})
    host.live = True
    return host.says(*SERVICE_JOURNAL[0], stdout=stdout)


def test_the_journal_of_an_installed_service_is_read_by_one_command():
    """A stopped service and a failed one leave the same traces: the journal tells them apart, and why."""
    host = node_with_journal(JOURNAL)
    facts = outcome_of(probe("services"), host).facts

    assert {"failed", "fm-topology"} == {event.code for event in facts.events}
    assert "failed" == {service.name: service.state for service in facts.services}["nvidia-fabricmanager"]


@pytest.mark.parametrize(
    "host",
    [node_with_journal(""), node_with_journal(JOURNAL, "irqbalance"), booted()],
    ids=["not readable for this user", "no service with a journal that is read", "no such command"],
)
def test_without_a_journal_the_traces_are_all(host: Machine):
    outcome = outcome_of(probe("services"), host)

    assert Status.OK == outcome.status
    assert () == outcome.facts.events
