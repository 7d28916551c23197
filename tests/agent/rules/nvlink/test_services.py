"""Fabric Manager and IMEX; and every guard alone."""

from __future__ import annotations

import pytest

from agent.model.node import Module
from agent.rules.engine import judge
from agent.rules.nvlink.services import fabric_manager_down, imex_down
from agent.rules.nvlink.services import imex_channel_denied as channel
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import changed_gpus, changed_nic, fails, models, node, probe, server, software, topology
from tests.agent.rules.fabric import CHANNEL, FM, IMEX, hgx, registration, service, tray
from tests.agent.rules.rows import B200, NO_CLUSTER

# fabric-manager-down: when it fires, when it must not, and every guard alone.


def stopped(state: str = "inactive"):
    return service(hgx(), FM, state)


def unregistered(context):
    return changed_gpus(registration(context, None, state="not_started", status=None), p2p=None)


def hidden(gpus: int = 8):
    """B200: the switches are no PCI functions."""
    return service(models(probe(server(gpus), "services", "ok"), B200), FM, "inactive")


@pytest.mark.parametrize("state", ["inactive", "failed"])
def test_a_stopped_manager_is_critical(state: str) -> None:
    """Also where the fabric still stands."""
    (fault,) = fails(fabric_manager_down, stopped(state))

    assert ("node", "node", fabric_manager_down.severity) == (fault.subject, fault.label, "critical")
    assert f"nvidia-fabricmanager does not run ({state}), and this host has NVSwitches" == fault.summary


def test_one_that_is_not_installed_is_critical_where_nothing_is_registered() -> None:
    """Nobody set the fabric up."""
    (fault,) = fails(fabric_manager_down, unregistered(stopped("not_installed")))

    assert "is not installed" in fault.summary
    assert fault.remedy.startswith("Install nvidia-fabricmanager in ")
    assert fails(fabric_manager_down, stopped())[0].remedy.startswith(
        "Start it: `systemctl enable --now nvidia-fabricmanager`"
    )


@pytest.mark.parametrize(
    ("modules", "switches", "lacks"),
    [
        (("ib_core", "mlx5_ib"), "hidden", True),
        (("ib_core", "ib_umad"), "hidden", False),
        (("mlx5_core",), "hidden", False),  # built into the kernel, or not read
        (("ib_core", "mlx5_ib"), "on the bus", False),
    ],
)
def test_hidden_switches_need_ib_umad(modules: tuple[str, ...], switches: str, lacks: bool) -> None:
    """It is named first where it is not loaded: the manager would end again at once."""
    context = software(hidden() if switches == "hidden" else stopped(), modules=[Module(name=name) for name in modules])
    (finding,) = judge(context, [fabric_manager_down])[1]

    stated = next((row.value for row in finding.evidence if row.what == "ib_umad"), None)
    assert stated in (None, "loaded" if "ib_umad" in modules else "not loaded" if lacks else "not known")
    assert lacks == ("ib_umad is not loaded" in finding.summary) == finding.steps[0].do.startswith("Load ib_umad")
    assert (switches == "hidden") == ("nvlsm" in str(finding.steps))
    assert (switches == "hidden") == ("management functions (ConnectX-7)" in [row.what for row in finding.evidence])


def test_the_management_functions_are_evidence() -> None:
    """Those that the report knows as the fabric manager's."""
    context = changed_nic(hidden(), 1, limited="a management function of the NVLink switches")
    values = [[row.value for row in fails(fabric_manager_down, item)[0].evidence] for item in (hidden(), context)]

    assert [["inactive", "not known", "none recognized"], ["inactive", "not known", "mlx5_1"]] == values


# fabric-manager-mismatch: when it fires, when it must not, and every guard alone.


# imex-down and imex-channel-denied: when they fire, when they must not, and every guard alone.


def stopped_imex():
    return service(tray(), IMEX, "inactive")


def imex(context, **words: str):
    return software(context, imex=words)


@pytest.mark.parametrize(
    ("context", "severity"),
    [
        (stopped_imex(), "error"),
        (service(tray(), IMEX, "failed"), "error"),
        (imex(tray(), nodes_config="2", node="INITIALIZING"), "error"),
        (imex(tray(), nodes_config="18", node="DEGRADED"), "warning"),
        (imex(stopped_imex(), nodes_config="18", node="DEGRADED"), "error"),
    ],
)
def test_a_configured_imex_must_be_ready(context, severity: str) -> None:
    """Two nodes and more."""
    (fault,) = fails(imex_down, context)

    assert ("node", severity) == (fault.subject, fault.severity)


NEEDLESS = [
    pytest.param(lambda c: registration(c, None, cluster_uuid=NO_CLUSTER), NotApplicable, id="a node of its own"),
    pytest.param(lambda c: registration(c, None, state="in_progress"), NotApplicable, id="not registered"),
    pytest.param(lambda c: service(c, IMEX, "not_installed"), NotApplicable, id="not installed"),
    pytest.param(lambda c: imex(c, nodes_config="1"), NotApplicable, id="itself alone"),
    pytest.param(lambda c: imex(c, nodes_config="0"), NotApplicable, id="a scheduler runs it"),
    pytest.param(lambda c: imex(c), Unknown, id="configuration not read"),
    pytest.param(lambda c: imex(c, nodes_config="9" * 5000), Unknown, id="more nodes than there are numbers"),
    pytest.param(lambda c: imex(c, nodes_config="many"), Unknown, id="configuration not understood"),
    pytest.param(lambda c: service(c, IMEX, "unknown"), Unknown, id="state not known"),
    pytest.param(lambda c: software(c, services=[]), Unknown, id="services not read"),
    pytest.param(lambda c: node(c, container="docker"), Unknown, id="container"),
    pytest.param(lambda c: probe(changed_gpus(c, fabric=None), "nvml", "failed", "x"), Unknown, id="no driver answers"),
    pytest.param(
        lambda c: probe(topology(c, gpus=[]), "nvml", "failed", "x"), NotApplicable, id="no GPU, and no driver answers"
    ),
]


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        *NEEDLESS,
        pytest.param(lambda c: service(c, IMEX, "active"), Pass, id="ready"),
        pytest.param(
            lambda c: imex(service(c, IMEX, "active"), nodes_config="2", node="UNAVAILABLE"),
            Pass,
            id="unavailable is well",
        ),
        pytest.param(lambda c: imex(service(c, IMEX, "active"), nodes_config="2"), Unknown, id="does not tell"),
        pytest.param(lambda c: node(c, uptime_seconds=60.0), Unknown, id="just booted"),
    ],
)
def test_a_guard_keeps_it_silent_imex(circumstance, kind) -> None:
    """The firing case and this circumstance."""
    (answer,) = imex_down.check(circumstance(stopped_imex()))

    assert isinstance(answer, kind), answer


def test_no_channel_is_a_warning() -> None:
    """Other devices are none."""
    (fault,) = fails(channel, software(tray(), device_nodes=["nvidia0", "nvidia-caps/nvidia-cap1"]))

    assert ("node", "warning") == (fault.subject, fault.severity or channel.severity)


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        *NEEDLESS,
        pytest.param(lambda c: software(c, device_nodes=[CHANNEL]), Pass, id="a channel"),
        pytest.param(lambda c: software(c, device_nodes=None), Unknown, id="/dev not read"),
    ],
)
def test_a_guard_keeps_the_channel_silent(circumstance, kind) -> None:
    """The firing case and this circumstance."""
    (answer,) = channel.check(circumstance(software(tray(), device_nodes=[])))

    assert isinstance(answer, kind), answer
