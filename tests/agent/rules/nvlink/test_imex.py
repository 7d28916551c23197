"""imex-down and imex-channel-denied: when they fire, when they must not, and every guard alone."""

from __future__ import annotations

import pytest

from agent.rules.catalogue import every_rule
from agent.rules.engine import judge
from agent.rules.nvlink.services import imex_channel_denied as channel
from agent.rules.nvlink.services import imex_down as rule
from agent.rules.rule import (
    Fail,
    NotApplicable,
    Pass,
    Unknown,
)
from tests.agent.rules.build import changed_gpus, fails, node, probe, software, topology
from tests.agent.rules.fabric import CHANNEL, IMEX, hgx, registration, service, tray
from tests.agent.rules.rows import NO_CLUSTER


def stopped():
    return service(tray(), IMEX, "inactive")


def imex(case, **words: str):
    return software(case, imex=words)


@pytest.mark.parametrize(
    ("case", "severity"),
    [
        (stopped(), "error"),
        (service(tray(), IMEX, "failed"), "error"),
        (imex(tray(), nodes_config="2", node="INITIALIZING"), "error"),
        (imex(tray(), nodes_config="18", node="DEGRADED"), "warning"),
        (imex(stopped(), nodes_config="18", node="DEGRADED"), "error"),
    ],
)
def test_a_configured_imex_must_be_ready(case, severity: str) -> None:
    """Two nodes and more."""
    (fault,) = fails(rule, case)

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
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance."""
    (answer,) = rule.check(circumstance(stopped()))

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
    _, findings, _ = judge(software(stopped(), device_nodes=[]), every_rule())

    assert [["imex-channel-denied node"]] == [f.absorbs for f in findings if f.rule.startswith("imex")]


def test_an_hgx_needs_no_imex() -> None:
    """Not applicable."""
    assert [NotApplicable] == [type(answer) for answer in rule.check(hgx())]


@pytest.mark.parametrize(("nodes", "kind"), [("9" * 9, Fail), ("9" * 10, Unknown), ("2", Fail), ("1", NotApplicable)])
def test_how_many_nodes_are_a_number(nodes: str, kind: type) -> None:
    """Two to nine digits of them."""
    (answer,) = rule.check(imex(stopped(), nodes_config=nodes))

    assert isinstance(answer, kind)


def test_a_service_that_is_stopped_and_tells_no_state_is_down() -> None:
    """Only one that runs should tell."""
    assert ["error"] == [fault.severity for fault in fails(rule, imex(stopped(), nodes_config="18"))]
