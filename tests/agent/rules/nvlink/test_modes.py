"""nvlink-bandwidth-mode-reduced, -unused-by-mig, -claimed, -disabled and nvls-unavailable: what somebody set so."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from agent.model.gpu import Fabric, Mig
from agent.model.profile import Profile
from agent.rules.catalogue import every_rule
from agent.rules.engine import judge
from agent.rules.host.profile import profile_differs
from agent.rules.nvlink.fabric import nvls_unavailable as nvls
from agent.rules.nvlink.links import nvlink_bandwidth_mode_reduced as bandwidth
from agent.rules.nvlink.links import nvlink_disabled as disabled
from agent.rules.nvlink.links import nvlink_unused_by_mig as unused
from agent.rules.rule import Fail, NotApplicable, Pass, Unknown
from tests.agent.rules.build import (
    all_functions,
    answers,
    changed_gpu,
    changed_gpus,
    fails,
    function,
    kinds,
    models,
    node,
    probe,
    topology,
    virtual,
)
from tests.agent.rules.fabric import SUBJECTS, driver, hgx, profile, registration, tray
from tests.agent.rules.nvlink.test_inactive import dead
from tests.agent.rules.rows import H100_PCIE


@pytest.mark.parametrize("mode", ["half", "min", "off", "3quarter"])
def test_a_mode_of_the_system(mode: str) -> None:
    """One finding, whatever the GPUs say."""
    (fault,) = fails(bandwidth, changed_gpus(topology(hgx(), bandwidth_mode=mode), nvlink_bandwidth_mode=mode))

    assert ("node", f"NVLink bandwidth mode {mode}") == (fault.subject, fault.summary)


def test_a_mode_of_gpus() -> None:
    """One, or all."""
    assert [SUBJECTS[2]] == [
        f.subject for f in fails(bandwidth, changed_gpu(hgx(), 2, nvlink_bandwidth_mode="reduced"))
    ]
    assert ["node"] == [f.subject for f in fails(bandwidth, changed_gpus(hgx(), nvlink_bandwidth_mode="half"))]


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: c, Unknown, id="not told"),
        pytest.param(lambda c: topology(c, bandwidth_mode="full"), Pass, id="full system"),
        pytest.param(lambda c: changed_gpu(c, 2, nvlink_bandwidth_mode="full"), Pass, id="full GPU"),
        pytest.param(lambda c: changed_gpu(c, 2, architecture="Ampere"), NotApplicable, id="A100"),
        pytest.param(lambda c: changed_gpu(c, 2, architecture=None), Unknown, id="architecture not known"),
        pytest.param(lambda c: models(c, H100_PCIE), NotApplicable, id="a card"),
        pytest.param(lambda c: changed_gpu(c, 2, mig=Mig(current=True)), NotApplicable, id="MIG"),
        pytest.param(lambda c: changed_gpu(c, 2, mig=Mig(current=False)), Unknown, id="MIG is off"),
        pytest.param(lambda c: changed_gpu(c, 2, links=[]), NotApplicable, id="no NVLink"),
        pytest.param(lambda c: changed_gpu(c, 2, links=[], links_known=False), Unknown, id="NVLinks not known"),
        pytest.param(lambda c: changed_gpu(c, 2, driver_state="vfio"), NotApplicable, id="no driver"),
    ],
)
def test_modes_that_are_full_or_not_told(circumstance, kind) -> None:
    """Not told is never full."""
    context = circumstance(topology(hgx(), bandwidth_mode=None))

    assert [kind] == [type(answer) for answer in answers(bandwidth, context, SUBJECTS[2])]


def test_a_gpu_without_a_driver_has_no_mode_to_judge() -> None:
    """Though a stale one is told."""
    context = changed_gpu(changed_gpu(hgx(), 2, nvlink_bandwidth_mode="half"), 2, driver_state="no_driver")

    assert [] == fails(bandwidth, context)


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


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: c, Fail, id="full"),
        pytest.param(lambda c: topology(c, bandwidth_mode="half"), NotApplicable, id="of the system"),
        pytest.param(lambda c: changed_gpu(c, 2, nvlink_bandwidth_mode="reduced"), NotApplicable, id="of the GPU"),
        pytest.param(lambda c: changed_gpu(c, 2, links=dead(9, "unknown")), Unknown, id="states not known"),
    ],
)
def test_links_that_a_mode_switched_off_do_not_differ_from_a_profile(circumstance, kind) -> None:
    """The mode is the finding."""
    expected = profile(nvlinks_per_gpu=18)
    site = Profile(name="site", gpu_devices=["10de:2330"], nvlinks_per_gpu=expected.nvlinks_per_gpu)
    context = circumstance(changed_gpu(replace(hgx(), profile=site), 2, links=dead(9)))

    assert [kind] == [type(answer) for answer in answers(profile_differs, context, SUBJECTS[2])]


def switched_off(value: str | None = "1"):
    context = changed_gpus(hgx(), links=[], links_known=True, links_reason="NVML: link 0 is NOT_SUPPORTED")
    return driver(context, parameters={"NvLinkDisable": value} if value else {})


def test_nvlink_that_the_driver_was_told_to_leave() -> None:
    """One finding of the node, which says where it was set."""
    (fault,) = fails(disabled, switched_off())

    assert ("node", "parameter") == (fault.subject, fault.cause)
    assert "NvLinkDisable" in fault.summary
    assert "/etc/modprobe.d" in fault.remedy
    assert "1" == fault.evidence[1].value


@pytest.mark.parametrize("value", ["0", None])
def test_nvlink_that_is_missing_though_nobody_asked_for_it(value: str | None) -> None:
    """The parameter is not what to look at."""
    (fault,) = fails(disabled, switched_off(value))

    assert ("none", value or "not known") == (fault.cause, fault.evidence[1].value)
    assert "kernel's log" in fault.remedy


def test_one_module_without_nvlink() -> None:
    """Its siblings have theirs."""
    (fault,) = fails(disabled, changed_gpu(hgx(), 2, links=[], links_known=True))

    assert SUBJECTS[2] == fault.subject


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: models(c, H100_PCIE), NotApplicable, id="cards"),
        pytest.param(lambda c: changed_gpus(c, mig=Mig(current=True)), NotApplicable, id="MIG"),
        pytest.param(lambda c: changed_gpus(c, mig=Mig(current=False)), Fail, id="MIG is off"),
        pytest.param(lambda c: changed_gpus(c, driver_state="vfio"), NotApplicable, id="no driver"),
        pytest.param(lambda c: changed_gpus(c, links_known=False), Unknown, id="not told"),
        pytest.param(lambda c: changed_gpus(c, links=hgx().topology.gpus[0].links), Pass, id="links"),
        pytest.param(lambda c: changed_gpus(c, links=dead(18)), Pass, id="dead links are those of another rule"),
        pytest.param(lambda c: driver(c, confidential_computing=True), NotApplicable, id="confidential computing"),
        pytest.param(virtual, Unknown, id="a guest"),
    ],
)
def test_a_guard_keeps_what_is_switched_off_silent(circumstance, kind) -> None:
    """The firing case and this circumstance."""
    assert {kind} == kinds(disabled, circumstance(switched_off()))


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


def unsummed(state: str | None = "not_supported", status: str | None = None):
    return registration(hgx(), None, state=state, status=status)


def test_gpus_on_switches_that_register_with_nothing() -> None:
    """Warning; the GPUs are named."""
    (fault,) = fails(nvls, unsummed())

    assert ("node", "warning") == (fault.subject, fault.severity or nvls.severity)
    assert "GPU0-7" in fault.summary
    assert "GPU2 not registered" in fails(nvls, registration(hgx(), 2, state="not_supported"))[0].summary


def test_what_explains_it_stands_for_it() -> None:
    """A registration that hangs."""
    _, findings, _ = judge(unsummed("in_progress"), every_rule())

    assert "nvls-unavailable" not in {finding.rule for finding in findings}


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(virtual, NotApplicable, id="a guest"),
        pytest.param(lambda c: topology(c, nvswitches=[]), NotApplicable, id="no switch"),
        pytest.param(lambda c: changed_gpus(c, architecture="Ampere"), NotApplicable, id="A100"),
        pytest.param(lambda c: models(c, H100_PCIE), NotApplicable, id="cards"),
        pytest.param(lambda c: changed_gpus(c, mig=Mig(current=True)), NotApplicable, id="MIG"),
        pytest.param(lambda c: changed_gpus(c, driver_state="error"), NotApplicable, id="not offered"),
        pytest.param(lambda c: node(c, uptime_seconds=60.0), Unknown, id="just booted"),
        pytest.param(lambda c: changed_gpus(c, fabric=None), Unknown, id="not told"),
        pytest.param(lambda c: registration(c, None, state=None), Unknown, id="no state"),
        pytest.param(lambda c: registration(c, None, state="completed"), Unknown, id="no status"),
        pytest.param(
            lambda c: changed_gpus(c, fabric=Fabric(state="completed", status="success")), Pass, id="registered"
        ),
        pytest.param(lambda c: probe(topology(c, nvswitches=[]), "pci", "failed", "x"), Unknown, id="bus unread"),
    ],
)
def test_a_guard_keeps_nvls_silent(circumstance, kind) -> None:
    """The firing case and this circumstance."""
    assert {kind} == kinds(nvls, circumstance(unsummed()))


def test_a_mode_that_one_of_eight_does_not_tell() -> None:
    """The others are in it: one finding for the node where the eighth is not judged."""
    context = changed_gpus(hgx(), nvlink_bandwidth_mode="half")
    away_one = changed_gpu(context, 2, driver_state="no_driver")

    assert ["node"] == [fault.subject for fault in fails(bandwidth, context)]
    assert ["node"] == [fault.subject for fault in fails(bandwidth, away_one)]
    whole = changed_gpu(context, 2, nvlink_bandwidth_mode="full")
    assert 7 == len(fails(bandwidth, whole))


@pytest.mark.parametrize(("gpus", "kind"), [(1, NotApplicable), (2, Fail), (3, Fail)])
def test_two_gpus_are_wired_to_each_other(gpus: int, kind: type) -> None:
    """MIG on one is nobody's loss; nor are sums in switches."""
    context = changed_gpus(hgx(gpus), mig=Mig(current=True))
    sums = registration(hgx(gpus), None, state="not_supported", status=None)

    assert {kind} == kinds(unused, context)
    assert {kind} == kinds(nvls, sums)


def test_mig_of_another_maker_s_gpus_is_nothing_here() -> None:
    """And MIG that is off keeps no sum from its switch."""
    foreign = all_functions(changed_gpus(hgx(), mig=Mig(current=True)), "0x030200", vendor="0x1002")

    assert {NotApplicable} == kinds(unused, foreign)
    assert 1 == len(fails(nvls, changed_gpus(unsummed(), mig=Mig(current=False))))
    assert {NotApplicable} == kinds(nvls, changed_gpus(unsummed(), mig=Mig(current=True)))


def test_a_completed_state_with_a_bad_status_is_none() -> None:
    """Completed without a word of the outcome is not known; with a bad one it is."""
    assert 1 == len(fails(nvls, unsummed("completed", "failure")))
    assert {Unknown} == kinds(nvls, unsummed("completed", None))


def test_nvlink_that_is_switched_off_explains_what_follows() -> None:
    """Nothing is reported of NVLS or of what differs from the profile."""
    site = Profile(name="site", gpu_devices=["10de:2330"], nvlinks_per_gpu=profile(nvlinks_per_gpu=18).nvlinks_per_gpu)
    context = replace(registration(switched_off(), None, state="not_supported", status=None), profile=site)

    result = [f.rule for f in judge(context, every_rule())[1]]

    assert "nvlink-disabled" in result
    assert not {"nvls-unavailable", "profile-differs"} & set(result)
