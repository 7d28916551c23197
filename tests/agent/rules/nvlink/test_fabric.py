"""The NVLink fabric: unhealthy, incomplete, in several cliques; and every guard alone."""

from __future__ import annotations

import msgspec
import pytest

from agent.model.gpu import Mig
from agent.rules.nvlink.fabric import fabric_clique_mixed, fabric_incomplete, fabric_unhealthy, merge_if_on_all_gpus
from agent.rules.rule import (
    Fail,
    NotApplicable,
    Pass,
    Unknown,
)
from tests.agent.rules.build import (
    answers,
    changed_gpu,
    changed_gpus,
    fails,
    function,
    gpu_id,
    kinds,
    models,
    node,
    topology,
)
from tests.agent.rules.fabric import SUBJECTS, health, hgx, registration, tray
from tests.agent.rules.rows import H100_PCIE, NO_CLUSTER

# fabric-unhealthy: each word of the health, and every guard alone.


@pytest.mark.parametrize(
    ("name", "word", "severity", "said"),
    [
        ("degraded_bandwidth", "true", "error", "degraded bandwidth"),
        ("route_recovery", "true", "warning", "route recovery"),
        ("route_unhealthy", "true", "critical", "route unhealthy"),
        ("access_timeout_recovery", "true", "warning", "access timeout recovery"),
        (
            "incorrect_configuration",
            "incorrect_chassis_sn",
            "critical",
            "wrongly set up: its chassis serial number does not belong here",
        ),
        ("partition_assigned", "false", "error", "no partition is assigned"),
        ("fabric_manager", "disconnected", "error", "fabric manager disconnected"),
        ("summary", "unhealthy", "error", "summary unhealthy"),
        ("summary", "limited_capacity", "warning", "summary limited capacity"),
    ],
)
def test_each_bad_word(name: str, word: str, severity: str, said: str) -> None:
    """Of one GPU."""
    (fault,) = fails(fabric_unhealthy, health(hgx(), 2, **{name: word}))

    assert (SUBJECTS[2], severity, f"NVLink fabric: {said}") == (fault.subject, fault.severity, fault.summary)


def test_several_words_are_one_finding_as_grave_as_the_gravest() -> None:
    """The summary repeats the others."""
    words = {"degraded_bandwidth": "true", "route_unhealthy": "true", "summary": "unhealthy"}
    (fault,) = fails(fabric_unhealthy, health(hgx(), 2, **words))

    assert ("critical", "NVLink fabric: degraded bandwidth, route unhealthy") == (fault.severity, fault.summary)
    assert ("degraded_bandwidth,route_unhealthy", 3) == (fault.cause, len(fault.evidence))


def test_the_same_of_every_gpu_is_one_finding() -> None:
    """A switch."""
    assert ["node"] == [fault.subject for fault in fails(fabric_unhealthy, health(hgx(), None, route_recovery="true"))]
    assert 2 == len(fails(fabric_unhealthy, health(health(hgx(), 1, route_recovery="true"), 2, route_recovery="true")))


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: registration(c, 2, state="in_progress"), NotApplicable, id="not completed"),
        pytest.param(lambda c: registration(c, 2, health={}), NotApplicable, id="no health"),
        pytest.param(
            lambda c: registration(c, 2, health={"summary": "not_supported"}), NotApplicable, id="not supported"
        ),
        pytest.param(
            lambda c: health(c, 2, degraded_bandwidth="not_supported"), Pass, id="that field is not supported"
        ),
        pytest.param(lambda c: health(c, 2, degraded_bandwidth="unknown_3"), Unknown, id="a newer word"),
        pytest.param(lambda c: health(c, 2, something_new="true"), Pass, id="a newer field"),
        pytest.param(lambda c: changed_gpu(c, 2, driver_state="error"), NotApplicable, id="lost"),
    ],
)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance."""
    (answer,) = answers(fabric_unhealthy, circumstance(health(hgx(), 2, degraded_bandwidth="true")), SUBJECTS[2])

    assert isinstance(answer, kind), answer


def made(n: int, **changes) -> Fail:
    """A fault of one GPU."""
    values = {"impact": "", "remedy": "", "evidence": (), "severity": "error", "summary": "it"} | changes
    return Fail(subject=f"gpu:{n}", label=f"GPU{n}", ids=frozenset({str(n)}), **values)


@pytest.mark.parametrize(
    ("faults", "judged", "subjects"),
    [
        ([], 0, []),
        ([made(0)], 1, ["gpu:0"]),
        ([made(0), made(1)], 2, ["node"]),
        ([made(0), made(1)], 3, ["gpu:0", "gpu:1"]),
        ([made(0), made(1, severity="warning")], 2, ["gpu:0", "gpu:1"]),
        ([made(0), made(1, cause="x")], 2, ["gpu:0", "gpu:1"]),
        ([made(0), made(1, summary="that")], 2, ["gpu:0", "gpu:1"]),
        ([made(0), made(1), made(2)], 3, ["node"]),
    ],
)
def test_the_same_of_all_is_one(faults, judged: int, subjects: list[str]) -> None:
    """Two at least, all that were judged, alike in all that is said."""
    assert subjects == [fault.subject for fault in merge_if_on_all_gpus(faults, judged)]


@pytest.mark.parametrize(("index", "command"), [(2, "nvidia-smi -q -i 2"), (None, "nvidia-smi -q")])
def test_the_command_names_the_gpu(index: int | None, command: str) -> None:
    """Where it has a number."""
    (fault,) = fails(fabric_unhealthy, changed_gpu(health(hgx(), 2, route_unhealthy="true"), 2, index=index))

    assert command == fault.evidence[0].source


def test_it_is_about_the_gpu_and_its_function() -> None:
    """Both are places, where they have different ids."""
    context = health(hgx(1), 0, route_unhealthy="true")
    (gpu,) = context.topology.gpus
    (fault,) = fails(fabric_unhealthy, topology(context, gpus=[msgspec.structs.replace(gpu, id="GPU-0")]))

    assert {"GPU-0", gpu.pci} == fault.ids


# fabric-incomplete: when it fires, when it must not, and every guard alone.


GPU = gpu_id(2)


def stuck(n: int | None = 2, state: str = "in_progress"):
    return registration(hgx(), n, state=state, status=None)


@pytest.mark.parametrize("state", ["not_started", "in_progress"])
def test_a_registration_that_goes_on_is_an_error(state: str) -> None:
    """Of one GPU."""
    (fault,) = fails(fabric_incomplete, stuck(state=state))

    assert (f"gpu:{GPU}", "error") == (fault.subject, fault.severity)
    assert state.replace("_", " ") in fault.summary


def test_an_error_at_completion_is_critical() -> None:
    """Of every GPU: one finding."""
    (fault,) = fails(fabric_incomplete, registration(hgx(), None, status="UNKNOWN"))

    assert ("node", "critical") == (fault.subject, fault.severity)
    assert {gpu_id(n) for n in range(8)} < fault.ids


def test_gpus_that_fail_in_different_ways_stand_alone() -> None:
    """Nothing explains both."""
    context = registration(stuck(1), 2, status="UNKNOWN")

    assert 2 == len(fails(fabric_incomplete, context))
    assert 1 == len(fails(fabric_incomplete, registration(hgx(1), 0, state="not_started")))


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: node(c, uptime_seconds=300.0), Unknown, id="just booted"),
        pytest.param(lambda c: node(c, uptime_seconds=None), Unknown, id="since when is not known"),
        pytest.param(lambda c: registration(c, 2, state="not_supported"), NotApplicable, id="not supported"),
        pytest.param(lambda c: registration(c, 2, state="completed"), Unknown, id="completed, nobody says how"),
        pytest.param(lambda c: changed_gpu(c, 2, mig=Mig(current=True)), NotApplicable, id="MIG"),
        pytest.param(lambda c: changed_gpu(c, 2, driver_state="no_driver"), NotApplicable, id="no driver"),
        pytest.param(lambda c: changed_gpu(c, 2, driver_state="error"), NotApplicable, id="lost"),
        pytest.param(lambda c: function(c, GPU, vendor="0x1002"), NotApplicable, id="another vendor"),
        pytest.param(lambda c: function(c, GPU, state="asleep"), NotApplicable, id="asleep"),
        pytest.param(lambda c: changed_gpu(c, 2, fabric=None), Unknown, id="not told"),
        pytest.param(lambda c: registration(c, 2, state=None), Unknown, id="no state told"),
        pytest.param(lambda c: changed_gpu(c, 2, fabric=None, architecture=None), Unknown, id="nor which generation"),
        pytest.param(lambda c: changed_gpu(c, 2, fabric=None, architecture="Ampere"), NotApplicable, id="A100"),
        pytest.param(lambda c: models(changed_gpus(c, fabric=None), H100_PCIE), NotApplicable, id="a card"),
    ],
)
def test_a_guard_keeps_it_silent_fabric_incomplete(circumstance, kind) -> None:
    """The firing case and this circumstance."""
    (answer,) = answers(fabric_incomplete, circumstance(stuck()), SUBJECTS[2])

    assert isinstance(answer, kind), answer


def test_mig_that_is_off_changes_nothing() -> None:
    """The mode counts."""
    assert 1 == len(fails(fabric_incomplete, changed_gpu(stuck(), 2, mig=Mig(current=False))))


@pytest.mark.parametrize(("index", "command"), [(2, "nvidia-smi -q -i 2"), (None, "nvidia-smi -q")])
def test_the_command_names_the_gpu_fabric_incomplete(index: int | None, command: str) -> None:
    """Where it has a number."""
    (fault,) = fails(fabric_incomplete, changed_gpu(stuck(), 2, index=index))

    assert command == fault.evidence[0].source


# fabric-clique-mixed: when it fires, how grave it is, and every guard alone.


OTHER = "7b110000-0000-0000-0000-0000000000a1"


def test_another_clique_on_a_node_of_its_own_is_an_error() -> None:
    """One GPU of eight; the fault is about it."""
    (fault,) = fails(fabric_clique_mixed, registration(hgx(), 2, clique=3))

    assert ("node", "error", "clique") == (fault.subject, fault.severity, fault.cause)
    assert "clique 3: GPU2" in fault.summary
    assert frozenset({gpu_id(2)}) == fault.ids


def test_cliques_of_one_rack_may_be_partitions() -> None:
    """Warning."""
    assert ["warning"] == [fault.severity for fault in fails(fabric_clique_mixed, registration(tray(), 2, clique=3))]


@pytest.mark.parametrize("uuid", [OTHER, NO_CLUSTER])
def test_another_cluster_is_an_error(uuid: str) -> None:
    """Or none, where the others have one."""
    (fault,) = fails(fabric_clique_mixed, registration(tray(), 2, cluster_uuid=uuid))

    assert ("error", "cluster") == (fault.severity, fault.cause)


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: registration(c, 2, state="in_progress"), NotApplicable, id="not completed"),
        pytest.param(lambda c: registration(c, 2, clique=None), Unknown, id="no clique"),
        pytest.param(lambda c: registration(c, 2, cluster_uuid=None), Unknown, id="no cluster"),
        pytest.param(lambda c: changed_gpu(c, 2, driver_state="error"), NotApplicable, id="lost"),
    ],
)
def test_a_guard_keeps_it_silent_fabric_clique_mixed(circumstance, kind) -> None:
    """The firing case and this circumstance: the others still agree."""
    context = circumstance(registration(hgx(), 2, clique=3))

    assert [] == fails(fabric_clique_mixed, context)
    assert kind in kinds(fabric_clique_mixed, context)


def test_one_gpu_has_nothing_to_differ_from() -> None:
    """Not applicable."""
    assert {NotApplicable} == kinds(fabric_clique_mixed, hgx(1))


def test_two_agree_and_one_alone_says_nothing() -> None:
    """A pass where there was something to compare; no answer for the node where nothing registered."""
    nothing = registration(hgx(2), None, state="in_progress")

    assert [Pass("node")] == list(fabric_clique_mixed.check(hgx(2)))
    assert "node" not in {answer.subject for answer in fabric_clique_mixed.check(nothing)}


def test_a_cluster_is_told_by_its_first_eight_digits() -> None:
    """As nvidia-smi prints them."""
    (fault,) = fails(fabric_clique_mixed, registration(tray(), 2, clique=3))

    assert "3a5c0000/3" in fault.summary
