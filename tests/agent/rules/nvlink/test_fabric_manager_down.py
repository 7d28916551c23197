"""fabric-manager-down: when it fires, when it must not, and every guard alone."""

from __future__ import annotations

import pytest

from agent.model.node import Module, Service
from agent.rules.catalogue import every_rule
from agent.rules.engine import judge
from agent.rules.nvlink.services import fabric_manager_down as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
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
from tests.agent.rules.fabric import FM, SWITCH, hgx, registration, service
from tests.agent.rules.nvlink.test_inactive import dead
from tests.agent.rules.rows import B200


def stopped(state: str = "inactive"):
    return service(hgx(), FM, state)


def unregistered(case):
    return changed_gpus(registration(case, None, state="not_started", status=None), p2p=None)


def hidden(gpus: int = 8):
    """B200: the switches are no PCI functions."""
    return service(models(probe(server(gpus), "services", "ok"), B200), FM, "inactive")


@pytest.mark.parametrize("state", ["inactive", "failed"])
def test_a_stopped_manager_is_critical(state: str) -> None:
    """Also where the fabric still stands."""
    (fault,) = fails(rule, stopped(state))

    assert ("node", "node", rule.severity) == (fault.subject, fault.label, "critical")
    assert f"nvidia-fabricmanager does not run ({state}), and this host has NVSwitches" == fault.summary


def test_one_that_is_not_installed_is_critical_where_nothing_is_registered() -> None:
    """Nobody set the fabric up."""
    (fault,) = fails(rule, unregistered(stopped("not_installed")))

    assert "is not installed" in fault.summary
    assert fault.remedy.startswith("Install nvidia-fabricmanager in ")
    assert fails(rule, stopped())[0].remedy.startswith("Start it: systemctl enable --now nvidia-fabricmanager")


def test_hidden_switches_of_a_board_need_one_too() -> None:
    """B200, also where GPUs of the board are lost; not of half a board, nor in a guest."""
    assert 1 == len(fails(rule, hidden()))
    assert 1 == len(fails(rule, hidden(5)))
    assert [] == fails(rule, hidden(4))
    assert [] == fails(rule, virtual(hidden()))


def test_a_guest_that_sees_switches_manages_them() -> None:
    """Full passthrough."""
    assert 1 == len(fails(rule, virtual(stopped())))


def test_it_stands_for_what_follows() -> None:
    """Registration, paths and links that were never set up."""
    case = changed_gpus(unregistered(stopped()), links=dead(18))
    _, findings, _ = judge(case, every_rule())
    told = {finding.rule for finding in findings if finding.severity in ("error", "critical")}

    assert {"fabric-manager-down"} == told & {
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
    (answer,) = rule.check(circumstance(stopped()))

    assert isinstance(answer, kind), answer


@pytest.mark.parametrize(
    ("case", "faults"),
    [
        (changed_gpus(stopped("not_installed"), p2p=None), 0),
        (changed_gpus(unregistered(stopped("not_installed")), p2p={"0000:14:00.0": {"nvlink": "OK"}}), 0),
        (changed_gpus(unregistered(stopped("not_installed")), p2p={"0000:14:00.0": {"nvlink": "NS"}}), 1),
        (changed_gpus(unregistered(stopped("not_installed")), p2p={"0000:14:00.0": {"read": "OK"}}), 1),
    ],
    ids=["registered", "reached by NVLink", "not reached", "reached over PCIe"],
)
def test_what_shows_that_it_is_managed_elsewhere(case, faults: int) -> None:
    """A completed registration or an open NVLink, each alone; P2P over PCIe needs no manager."""
    assert faults == len(fails(rule, case))


def test_other_services_say_nothing_of_it() -> None:
    """One of them runs."""
    case = software(hgx(), services=[Service(name="openibd", state="active"), Service(name=FM, state="failed")])

    assert 1 == len(fails(rule, case))


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
    case = software(hidden() if switches == "hidden" else stopped(), modules=[Module(name=name) for name in modules])
    (finding,) = judge(case, [rule])[1]

    assert lacks == ("ib_umad is not loaded" in finding.summary) == finding.steps[0].do.startswith("Load ib_umad")
    assert (switches == "hidden") == ("nvlsm" in str(finding.steps))
    assert (switches == "hidden") == ("management functions (ConnectX-7)" in [row.what for row in finding.evidence])


def test_the_management_functions_are_evidence() -> None:
    """Those that the report knows as the fabric manager's."""
    case = changed_nic(hidden(), 1, limited="a management function of the NVLink switches")
    values = [[row.value for row in fails(rule, each)[0].evidence] for each in (hidden(), case)]

    assert [["inactive", "not missing", "none recognized"], ["inactive", "not missing", "mlx5_1"]] == values
