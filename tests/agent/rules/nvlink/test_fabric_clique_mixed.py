"""fabric-clique-mixed: when it fires, how grave it is, and every guard alone."""

from __future__ import annotations

import pytest

from agent.rules.nvlink.fabric import fabric_clique_mixed as rule
from agent.rules.rule import (
    NotApplicable,
    Pass,
    Unknown,
)
from tests.agent.rules.build import changed_gpu, fails, gpu_id, kinds
from tests.agent.rules.fabric import hgx, registration, tray
from tests.agent.rules.rows import NO_CLUSTER

OTHER = "7b110000-0000-0000-0000-0000000000a1"


def test_another_clique_on_a_node_of_its_own_is_an_error() -> None:
    """One GPU of eight; the fault is about it."""
    (fault,) = fails(rule, registration(hgx(), 2, clique=3))

    assert ("node", "error", "clique") == (fault.subject, fault.severity, fault.cause)
    assert "clique 3: GPU2" in fault.summary
    assert frozenset({gpu_id(2)}) == fault.places


def test_cliques_of_one_rack_may_be_partitions() -> None:
    """Warning."""
    assert ["warning"] == [fault.severity for fault in fails(rule, registration(tray(), 2, clique=3))]


@pytest.mark.parametrize("uuid", [OTHER, NO_CLUSTER])
def test_another_cluster_is_an_error(uuid: str) -> None:
    """Or none, where the others have one."""
    (fault,) = fails(rule, registration(tray(), 2, cluster_uuid=uuid))

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
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: the others still agree."""
    case = circumstance(registration(hgx(), 2, clique=3))

    assert [] == fails(rule, case)
    assert kind in kinds(rule, case)


def test_one_gpu_has_nothing_to_differ_from() -> None:
    """Not applicable."""
    assert {NotApplicable} == kinds(rule, hgx(1))


def test_two_agree_and_one_alone_says_nothing() -> None:
    """A pass where there was something to compare; no answer for the node where nothing registered."""
    nothing = registration(hgx(2), None, state="in_progress")

    assert [Pass("node")] == list(rule.check(hgx(2)))
    assert "node" not in {answer.subject for answer in rule.check(nothing)}


def test_a_cluster_is_told_by_its_first_eight_digits() -> None:
    """As nvidia-smi prints them."""
    (fault,) = fails(rule, registration(tray(), 2, clique=3))

    assert "3a5c0000/3" in fault.summary
