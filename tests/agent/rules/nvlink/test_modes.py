"""nvlink-bandwidth-mode-reduced, -unused-by-mig, -claimed, -disabled and nvls-unavailable: what somebody set so."""

from __future__ import annotations

import pytest

from agent.model.gpu import Mig
from agent.rules.nvlink.fabric import nvls_unavailable as nvls
from agent.rules.nvlink.links import nvlink_bandwidth_mode_reduced as bandwidth
from agent.rules.nvlink.links import nvlink_disabled as disabled
from agent.rules.nvlink.links import nvlink_unused_by_mig as unused
from agent.rules.rule import Fail, NotApplicable, Pass
from tests.agent.rules.build import (
    changed_gpu,
    changed_gpus,
    fails,
    function,
    kinds,
    models,
    topology,
)
from tests.agent.rules.fabric import driver, hgx, registration, tray
from tests.agent.rules.rows import H100_PCIE


@pytest.mark.parametrize("mode", ["half", "min", "off", "3quarter"])
def test_a_mode_of_the_system(mode: str) -> None:
    """One finding, whatever the GPUs say."""
    (fault,) = fails(bandwidth, changed_gpus(topology(hgx(), bandwidth_mode=mode), nvlink_bandwidth_mode=mode))

    assert ("node", f"NVLink bandwidth mode {mode}") == (fault.subject, fault.summary)


def test_mig_leaves_nvlink_idle() -> None:
    """Info; it names the GPUs that are divided."""
    (fault,) = fails(unused, changed_gpu(hgx(), 2, mig=Mig(current=True)))

    assert ("node", "info") == (fault.subject, fault.severity or unused.severity)
    assert "NVLink of GPU2 is" in fault.summary
    assert 1 == len(fails(unused, changed_gpu(tray(), 2, mig=Mig(current=True))))


@pytest.mark.parametrize(
    ("context", "kind"),
    [
        (hgx(), Pass),
        (changed_gpus(hgx(), mig=Mig(current=False, pending=True)), Pass),
        (changed_gpus(hgx(1), mig=Mig(current=True)), NotApplicable),
        (models(changed_gpus(hgx(), mig=Mig(current=True)), H100_PCIE), NotApplicable),
        (changed_gpus(hgx(), mig=Mig(current=True), driver_state="error"), NotApplicable),
    ],
)
def test_mig_that_is_off_or_divides_a_card(context, kind) -> None:
    """Nothing to say."""
    assert {kind} == kinds(unused, context)


def switched_off(value: str | None = "1"):
    context = changed_gpus(hgx(), links=[], links_known=True, links_reason="NVML: link 0 is NOT_SUPPORTED")
    return driver(context, parameters={"NvLinkDisable": value} if value else {})


@pytest.mark.parametrize("value", ["0", None])
def test_nvlink_that_is_missing_though_nobody_asked_for_it(value: str | None) -> None:
    """The parameter is not what to look at."""
    (fault,) = fails(disabled, switched_off(value))

    assert ("none", value or "not known") == (fault.cause, fault.evidence[1].value)
    assert "kernel's log" in fault.remedy


def test_a_module_that_is_alone_needs_no_nvlink() -> None:
    """Clouds switch it off there; two are a pair, and one that has no driver does not count."""
    alone = changed_gpus(hgx(1), links=[], links_known=True)
    pair, three = (changed_gpus(hgx(n), links=[], links_known=True) for n in (2, 3))
    card = function(pair, pair.topology.gpus[1].pci or "", device=H100_PCIE)
    with_card = function(three, three.topology.gpus[1].pci or "", device=H100_PCIE)
    other = changed_gpu(changed_gpus(hgx(2), links=[], links_known=True), 1, driver_state="no_driver")

    assert {NotApplicable} == kinds(disabled, alone)
    assert {NotApplicable} == kinds(disabled, other)
    assert {NotApplicable} == kinds(disabled, card)
    assert {Fail} == kinds(disabled, pair)
    assert {Fail, NotApplicable} == kinds(disabled, with_card)


@pytest.mark.parametrize(("gpus", "kind"), [(1, NotApplicable), (2, Fail), (3, Fail)])
def test_two_gpus_are_wired_to_each_other(gpus: int, kind: type) -> None:
    """MIG on one is nobody's loss; nor are sums in switches."""
    context = changed_gpus(hgx(gpus), mig=Mig(current=True))
    sums = registration(hgx(gpus), None, state="not_supported", status=None)

    assert {kind} == kinds(unused, context)
    assert {kind} == kinds(nvls, sums)
