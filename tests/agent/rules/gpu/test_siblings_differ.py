"""gpu-siblings-differ: the odd one out, and when nothing is compared."""

from __future__ import annotations

import pytest

from agent.model.gpu import Mig
from agent.rules.gpu.devices import gpu_siblings_differ as rule
from agent.rules.rule import (
    Fail,
    NotApplicable,
    Pass,
    Unknown,
)
from tests.agent.rules.build import (
    all_functions,
    answers,
    changed_gpu,
    changed_gpus,
    fails,
    function,
    gpu_id,
    kinds,
    server,
)

GPU = gpu_id(0)


def alike(gpus: int = 4):
    case = changed_gpus(server(gpus), vbios="96.00.99.00.01", bar1_mib=131072)
    return all_functions(case, "0x030200", subsystem_vendor="0x10de", subsystem_device="0x16c1")


def odd(**changes):
    return changed_gpu(alike(), 0, **({"vbios": "96.00.11.00.01"} | changes))


def test_gpus_that_are_alike_pass() -> None:
    """All of them."""
    assert {Pass} == kinds(rule, alike())


@pytest.mark.parametrize(
    ("case", "cause"),
    [
        (odd, "VBIOS"),
        (lambda: changed_gpu(alike(), 0, bar1_mib=65536), "BAR1"),
        (lambda: function(alike(), GPU, subsystem_device="0x9999"), "subsystem"),
        (lambda: function(alike(), GPU, subsystem_vendor="0x1028"), "subsystem"),
    ],
)
def test_the_odd_one_is_named(case, cause: str) -> None:
    """Information, on that GPU, with what every other has."""
    (fault,) = fails(rule, case())

    assert (f"gpu:{GPU}", None, cause) == (fault.subject, fault.severity, fault.cause)
    assert 4 == len(fault.evidence)
    assert "1 of 4 GPUs" in fault.impact


def test_two_against_two_is_of_the_node() -> None:
    """Which of them is odd nobody knows."""
    case = changed_gpu(odd(), 1, vbios="96.00.11.00.01")

    assert ["node"] == [fault.subject for fault in fails(rule, case)]


@pytest.mark.parametrize(
    "circumstance",
    [
        pytest.param(lambda c: function(c, GPU, device="0x2331"), id="another product"),
        pytest.param(lambda c: function(c, GPU, state="gone"), id="gone"),
        pytest.param(lambda c: changed_gpu(c, 0, virtualization="vgpu"), id="virtual GPU"),
        pytest.param(lambda c: changed_gpu(function(c, GPU, device=None), 0, name=None), id="product not known"),
    ],
)
def test_a_guard_keeps_it_silent(circumstance) -> None:
    """The firing case and this circumstance: the GPU is not compared, the others pass."""
    case = circumstance(odd())

    assert [NotApplicable] == [type(answer) for answer in answers(rule, case, f"gpu:{GPU}")]
    assert [] == fails(rule, case)


def test_the_window_of_a_gpu_in_mig_mode_is_an_instances() -> None:
    """It is not compared."""
    case = changed_gpu(alike(), 0, bar1_mib=4096, mig=Mig(current=True))

    assert [] == fails(rule, case)


def test_what_is_known_of_one_only_is_unknown() -> None:
    """There is nothing to compare with."""
    case = changed_gpus(alike(), vbios=None)

    assert {Unknown} == kinds(rule, case)


def test_two_are_compared() -> None:
    """A difference of two is the node's: nobody knows which is odd; one alone is compared with nothing."""
    two = changed_gpu(alike(2), 0, vbios="96.00.11.00.01")

    assert {Pass} == kinds(rule, alike(2))
    assert ["node"] == [fault.subject for fault in fails(rule, two)]
    assert {NotApplicable} == kinds(rule, alike(1))


def test_what_is_known_of_two_is_compared_and_of_the_third_left_out() -> None:
    """The GPU whose VBIOS was not read is in no evidence, and at no fault."""
    case = changed_gpu(odd(), 1, vbios=None)
    (fault,) = fails(rule, case)

    assert (f"gpu:{GPU}", 3) == (fault.subject, len(fault.evidence))
    assert {gpu_id(0)} == fault.places
    two = changed_gpu(changed_gpu(alike(), 0, vbios=None), 1, vbios=None)
    assert {Pass} == kinds(rule, two)


def test_where_one_thing_differs_the_others_are_not_told_as_unknown() -> None:
    """The fault is the answer, also where another thing was not read."""
    assert {Fail} == kinds(rule, changed_gpus(odd(), bar1_mib=None))


@pytest.mark.parametrize("mode", [Mig(current=False), None])
def test_a_window_outside_of_mig_mode_is_compared(mode: Mig | None) -> None:
    """MIG is possible, and off."""
    assert ["BAR1"] == [fault.cause for fault in fails(rule, changed_gpu(alike(), 0, bar1_mib=4096, mig=mode))]


def test_a_subsystem_or_window_that_was_not_read_is_no_difference() -> None:
    """Of this GPU nothing is known there."""
    assert [] == fails(rule, function(alike(), GPU, subsystem_device=None))
    assert [] == fails(rule, changed_gpu(alike(), 0, bar1_mib=None))


def test_two_odd_ones_are_not_one() -> None:
    """Three of five are alike: two differ from them, and both are places."""
    case = changed_gpu(changed_gpu(alike(5), 0, vbios="a"), 1, vbios="b")
    (fault,) = fails(rule, case)

    assert ("node", {gpu_id(0), gpu_id(1)}) == (fault.subject, fault.places)


def test_what_is_known_of_a_single_one_of_four_is_unknown() -> None:
    """Two are needed to compare."""
    case = changed_gpu(changed_gpus(alike(), vbios=None), 0, vbios="96.00.11.00.01")

    assert {Unknown} == kinds(rule, case)


def test_gpus_of_unknown_products_are_not_one_product() -> None:
    """Nothing says that two of them should be alike."""
    case = odd()
    for n in (0, 1):
        case = changed_gpu(function(case, gpu_id(n), device=None), n, name=None)

    assert [] == fails(rule, case)
    assert [NotApplicable] == [type(answer) for answer in answers(rule, case, f"gpu:{GPU}")]
