"""fabric-unhealthy: each word of the health, and every guard alone."""

from __future__ import annotations

import msgspec
import pytest

from agent.rules.nvlink.fabric import fabric_unhealthy as rule
from agent.rules.nvlink.fabric import merge_if_on_all_gpus
from agent.rules.rule import (
    Fail,
    NotApplicable,
    Pass,
    Unknown,
)
from tests.agent.rules.build import answers, changed_gpu, fails, topology
from tests.agent.rules.fabric import SUBJECTS, health, hgx, registration


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
    (fault,) = fails(rule, health(hgx(), 2, **{name: word}))

    assert (SUBJECTS[2], severity, f"NVLink fabric: {said}") == (fault.subject, fault.severity, fault.summary)


def test_several_words_are_one_finding_as_grave_as_the_gravest() -> None:
    """The summary repeats the others."""
    words = {"degraded_bandwidth": "true", "route_unhealthy": "true", "summary": "unhealthy"}
    (fault,) = fails(rule, health(hgx(), 2, **words))

    assert ("critical", "NVLink fabric: degraded bandwidth, route unhealthy") == (fault.severity, fault.summary)
    assert ("degraded_bandwidth,route_unhealthy", 3) == (fault.cause, len(fault.evidence))


def test_the_same_of_every_gpu_is_one_finding() -> None:
    """A switch."""
    assert ["node"] == [fault.subject for fault in fails(rule, health(hgx(), None, route_recovery="true"))]
    assert 2 == len(fails(rule, health(health(hgx(), 1, route_recovery="true"), 2, route_recovery="true")))


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
    (answer,) = answers(rule, circumstance(health(hgx(), 2, degraded_bandwidth="true")), SUBJECTS[2])

    assert isinstance(answer, kind), answer


def made(n: int, **changes) -> Fail:
    """A fault of one GPU."""
    values = {"impact": "", "remedy": "", "evidence": (), "severity": "error", "summary": "it"} | changes
    return Fail(subject=f"gpu:{n}", label=f"GPU{n}", places=frozenset({str(n)}), **values)


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
    (fault,) = fails(rule, changed_gpu(health(hgx(), 2, route_unhealthy="true"), 2, index=index))

    assert command == fault.evidence[0].source


def test_it_is_about_the_gpu_and_its_function() -> None:
    """Both are places, where they have different ids."""
    case = health(hgx(1), 0, route_unhealthy="true")
    (gpu,) = case.topology.gpus
    (fault,) = fails(rule, topology(case, gpus=[msgspec.structs.replace(gpu, id="GPU-0")]))

    assert {"GPU-0", gpu.pci} == fault.places
