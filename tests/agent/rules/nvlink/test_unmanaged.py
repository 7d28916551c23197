"""Fabric registration that goes on while nothing manages the fabric: a module, a manager, an uptime that is unknown."""

from __future__ import annotations

import pytest

from agent.model.node import Module
from agent.rules.context import RuleContext
from agent.rules.nvlink.fabric import fabric_incomplete, nvls_unavailable
from agent.rules.rule import Fail, Unknown
from tests.agent.rules.build import answers, changed_gpus, changed_nics, fails, models, node, probe, server, software
from tests.agent.rules.fabric import FM, SUBJECTS, registration, service
from tests.agent.rules.rows import B200, H100

MODULES = ("nvidia", "ib_core")
WITH_UMAD = (*MODULES, "ib_umad")


def board(*modules: str, manager: str = "active", device: str = B200, name: str = "NVIDIA B200") -> RuleContext:
    """B200: the switches are no PCI functions; its GPUs register since nobody knows when."""
    context = service(probe(models(server(8), device), "services", "ok"), FM, manager)
    context = changed_gpus(context, name=name, architecture="Blackwell")
    context = software(context, modules=[Module(name=module) for module in modules])
    return node(registration(context, None, state="in_progress", status=None), uptime_seconds=None)


def incomplete(context: RuleContext) -> Fail:
    (fault,) = fails(fabric_incomplete, context)
    return fault


def is_open(context: RuleContext) -> bool:
    """Whether the registration may still come to its end."""
    return any(isinstance(answer, Unknown) for answer in answers(fabric_incomplete, context, SUBJECTS[0]))


def test_without_the_module_of_hidden_switches_it_does_not_end() -> None:
    fault = incomplete(board(*MODULES))

    assert ("node", "critical", "no-umad") == (fault.subject, fault.severity, fault.situation)
    assert fault.summary.startswith("registration with the NVLink fabric: in progress; ib_umad is not loaded")
    assert ("ib_umad", "lsmod") in [(row.what, row.source) for row in fault.evidence]


def test_without_the_manager_it_does_not_end() -> None:
    fault = incomplete(board(*WITH_UMAD, manager="failed"))

    assert ("error", "", True) == (fault.severity, fault.situation, fault.summary.endswith("in progress: GPU0-7"))
    assert (FM, "failed") in [(row.what, row.value) for row in fault.evidence]


@pytest.mark.parametrize(
    "context",
    [
        pytest.param(board(*WITH_UMAD), id="all that is needed is there"),
        pytest.param(changed_nics(board(), rdma_device=None), id="modules are not known"),
        pytest.param(board(*WITH_UMAD, manager="unknown"), id="the manager is not known"),
        pytest.param(changed_nics(board("nvidia"), rdma_device="mlx5_0"), id="the RDMA stack is built in"),
        pytest.param(board(*MODULES, manager="failed", device=H100, name="NVIDIA H100"), id="no manager is due here"),
        pytest.param(board(*MODULES, manager="failed", device="", name="NVIDIA GB200"), id="a tray"),
        pytest.param(board(*MODULES, manager="failed", device=H100, name="NVIDIA B200"), id="its PCI id decides"),
    ],
)
def test_otherwise_it_may_still_end(context: RuleContext) -> None:
    assert is_open(context)
    assert [] == fails(nvls_unavailable, context)


def test_without_a_pci_list_the_name_decides() -> None:
    assert not is_open(board(*MODULES, device="", name="NVIDIA B200"))
    assert not is_open(board(*MODULES, device="", name="NVIDIA B300 SXM6 AC"))


def test_modules_that_are_not_built_in() -> None:
    """An RDMA device beside ib_core as a module: ib_umad would be one, too."""
    assert not is_open(changed_nics(board(*MODULES), rdma_device="mlx5_0"))
    assert not is_open(changed_nics(board("nvidia"), rdma_device=None))


def test_multicast_is_judged_where_the_registration_is() -> None:
    assert 1 == len(fails(nvls_unavailable, board(*MODULES)))
    assert 1 == len(fails(nvls_unavailable, node(board(*WITH_UMAD), uptime_seconds=86400.0)))
    assert 1 == len(fails(nvls_unavailable, registration(board(*WITH_UMAD), None, state="not_started", status=None)))
