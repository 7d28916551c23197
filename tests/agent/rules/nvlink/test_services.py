"""Fabric Manager and IMEX; and every guard alone."""

from __future__ import annotations

import pytest

from agent.model.node import Module, Service
from agent.rules.catalogue import every_rule
from agent.rules.engine import judge
from agent.rules.nvlink.services import fabric_manager_down, fabric_manager_mismatch, imex_down
from agent.rules.nvlink.services import imex_channel_denied as channel
from agent.rules.rule import (
    Fail,
    NotApplicable,
    Pass,
    Unknown,
)
from tests.agent.rules.build import (
    changed_gpu,
    changed_gpus,
    changed_nic,
    fails,
    function,
    models,
    node,
    probe,
    server,
    software,
    topology,
    virtual,
)
from tests.agent.rules.fabric import CHANNEL, FM, IMEX, SWITCH, driver, hgx, registration, service, tray
from tests.agent.rules.nvlink.test_inactive import dead
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


def test_hidden_switches_of_a_board_need_one_too() -> None:
    """B200, also where GPUs of the board are lost; not of half a board, nor in a guest."""
    assert 1 == len(fails(fabric_manager_down, hidden()))
    assert 1 == len(fails(fabric_manager_down, hidden(5)))
    assert [] == fails(fabric_manager_down, hidden(4))
    assert [] == fails(fabric_manager_down, virtual(hidden()))


def test_a_guest_that_sees_switches_manages_them() -> None:
    """Full passthrough."""
    assert 1 == len(fails(fabric_manager_down, virtual(stopped())))


def test_it_stands_for_what_follows() -> None:
    """Registration, paths and links that were never set up."""
    context = changed_gpus(unregistered(stopped()), links=dead(18))
    _, findings, _ = judge(context, every_rule())
    result = {finding.rule for finding in findings if finding.severity in ("error", "critical")}

    assert {"fabric-manager-down"} == result & {
        "fabric-manager-down",
        "fabric-incomplete",
        "nvlink-inactive",
        "nvls-unavailable",
    }


def test_one_dead_link_is_not_its_fault() -> None:
    """Links of a whole board only."""
    _, findings, _ = judge(changed_gpu(stopped(), 2, links=dead(1)), every_rule())

    assert {"fabric-manager-down", "nvlink-inactive"} <= {finding.rule for finding in findings}


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: service(c, FM, "active"), Pass, id="it runs"),
        pytest.param(lambda c: service(c, FM, "unknown"), Unknown, id="state not known"),
        pytest.param(lambda c: software(c, services=[]), Unknown, id="services not read"),
        pytest.param(lambda c: node(c, container="docker"), Unknown, id="container"),
        pytest.param(lambda c: node(c, uptime_seconds=300.0), Unknown, id="just booted"),
        pytest.param(lambda c: service(c, FM, "not_installed"), Unknown, id="managed elsewhere: registered"),
        pytest.param(
            lambda c: registration(service(c, FM, "not_installed"), None, state=None), Unknown, id="elsewhere: P2P"
        ),
        pytest.param(lambda c: topology(c, nvswitches=[]), NotApplicable, id="no switch"),
        pytest.param(lambda c: probe(topology(c, nvswitches=[]), "pci", "failed", "x"), Unknown, id="bus unread"),
        pytest.param(lambda c: function(c, SWITCH, driver="vfio-pci"), NotApplicable, id="switches for a guest"),
        pytest.param(lambda c: changed_gpus(c, driver_state="vfio"), NotApplicable, id="GPUs for a guest"),
        pytest.param(lambda c: changed_gpus(c, driver_state="no_driver"), NotApplicable, id="no driver"),
    ],
)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance."""
    (answer,) = fabric_manager_down.check(circumstance(stopped()))

    assert isinstance(answer, kind), answer


@pytest.mark.parametrize(
    ("context", "faults"),
    [
        (changed_gpus(stopped("not_installed"), p2p=None), 0),
        (changed_gpus(unregistered(stopped("not_installed")), p2p={"0000:14:00.0": {"nvlink": "OK"}}), 0),
        (changed_gpus(unregistered(stopped("not_installed")), p2p={"0000:14:00.0": {"nvlink": "NS"}}), 1),
        (changed_gpus(unregistered(stopped("not_installed")), p2p={"0000:14:00.0": {"read": "OK"}}), 1),
    ],
    ids=["registered", "reached by NVLink", "not reached", "reached over PCIe"],
)
def test_what_shows_that_it_is_managed_elsewhere(context, faults: int) -> None:
    """A completed registration or an open NVLink, each alone; P2P over PCIe needs no manager."""
    assert faults == len(fails(fabric_manager_down, context))


def test_other_services_say_nothing_of_it() -> None:
    """One of them runs."""
    context = software(hgx(), services=[Service(name="openibd", state="active"), Service(name=FM, state="failed")])

    assert 1 == len(fails(fabric_manager_down, context))


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


def other(state: str = "inactive"):
    return service(hgx(), FM, state, "570.124.07")


@pytest.mark.parametrize(
    ("state", "severity"), [("active", "warning"), ("inactive", "critical"), ("failed", "critical")]
)
def test_the_last_number_counts(state: str, severity: str) -> None:
    """One that still runs will not start again."""
    (fault,) = fails(fabric_manager_mismatch, other(state))

    assert (severity, "fabric manager 570.124.07, driver 570.124.06: they must be equal") == (
        fault.severity,
        fault.summary,
    )


def test_it_stands_for_a_manager_that_ended() -> None:
    """One finding."""
    _, findings, _ = judge(other(), every_rule())
    result = [(f.rule, f.absorbs) for f in findings if f.rule.startswith("fabric")]

    assert [("fabric-manager-mismatch", ["fabric-manager-down node"])] == result


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: driver(c, version="570.124.07"), Pass, id="equal"),
        pytest.param(lambda c: driver(c, version=None), Unknown, id="no driver version"),
        pytest.param(lambda c: service(c, FM, "active"), Unknown, id="no version of the manager"),
        pytest.param(lambda c: service(c, FM, "not_installed", "570.124.07"), NotApplicable, id="not installed"),
        pytest.param(lambda c: service(c, FM, "unknown", "570.124.07"), Unknown, id="state not known"),
        pytest.param(lambda c: software(c, services=[]), Unknown, id="services not read"),
        pytest.param(lambda c: topology(c, nvswitches=[]), NotApplicable, id="no switch"),
        pytest.param(lambda c: node(c, container="docker"), Unknown, id="container"),
    ],
)
def test_a_guard_keeps_it_silent_fabric_manager_mismatch(circumstance, kind) -> None:
    """The firing case and this circumstance."""
    (answer,) = fabric_manager_mismatch.check(circumstance(other()))

    assert isinstance(answer, kind), answer


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


def test_imex_that_is_down_stands_for_its_channels() -> None:
    """One finding."""
    _, findings, _ = judge(software(stopped_imex(), device_nodes=[]), every_rule())

    assert [["imex-channel-denied node"]] == [f.absorbs for f in findings if f.rule.startswith("imex")]


def test_an_hgx_needs_no_imex() -> None:
    """Not applicable."""
    assert [NotApplicable] == [type(answer) for answer in imex_down.check(hgx())]


@pytest.mark.parametrize(("nodes", "kind"), [("9" * 9, Fail), ("9" * 10, Unknown), ("2", Fail), ("1", NotApplicable)])
def test_how_many_nodes_are_a_number(nodes: str, kind: type) -> None:
    """Two to nine digits of them."""
    (answer,) = imex_down.check(imex(stopped_imex(), nodes_config=nodes))

    assert isinstance(answer, kind)


def test_a_service_that_is_stopped_and_tells_no_state_is_down() -> None:
    """Only one that runs should tell."""
    assert ["error"] == [fault.severity for fault in fails(imex_down, imex(stopped_imex(), nodes_config="18"))]
