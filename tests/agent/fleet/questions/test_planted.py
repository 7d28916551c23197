"""Every planted oddity is found, and none is invented."""

from __future__ import annotations

from datetime import datetime

from agent.fleet.hostlist import unfold
from agent.fleet.questions.drift import drift
from agent.fleet.questions.outliers import outliers
from agent.fleet.questions.summary import summary
from bench.fleet.answers import DUPLICATES, OUTLIERS, UNREADABLE, compared
from bench.fleet.kinds import KINDS
from tests.agent.fleet.questions.conftest import OF_CABLES

OTHERWISE = {"node-gone", "stale", "newer-minor", *UNREADABLE}


def test_every_kind_of_oddity_is_asked_for():
    kinds = {kind for kind in KINDS if not kind.startswith(OF_CABLES)}
    assert kinds == {*OUTLIERS, *DUPLICATES, *OTHERWISE}


def test_every_oddity_is_found_and_none_is_invented(fleet):
    planted = {odd["kind"] for odd in fleet.truth["oddities"]}
    assert {*OUTLIERS, *DUPLICATES, "stale", "node-gone"} <= planted, "choose another seed"
    for question, sides in compared(fleet.engine, fleet.truth).items():
        assert not sides.missed, f"{question}: planted and not found"
        assert not sides.invented, f"{question}: found and not planted"
        assert sides.right, question


def test_outliers_say_what_is_usual_and_how_many_have_it(fleet):
    answer = outliers(fleet.engine)
    for each in answer.outliers:
        assert each.usual != each.value
        assert each.nodes == len(unfold(each.hosts))
        assert 0.8 * each.of <= each.usual_count < each.of
        assert answer.classes[each.hardware_class] >= 5


def test_a_planned_roll_out_is_mixed_and_nobody_is_odd(fleet):
    half = [each for each in fleet.truth["noise"] if each["kind"] == "firmware-rollout"]
    mixed = {(each.attribute, value) for each in outliers(fleet.engine).mixed for value, _ in each.values}
    assert half
    assert {("nic-firmware", each["detail"]["firmware"]) for each in half} <= mixed


def test_summary(fleet):
    answer = summary(fleet.engine)
    assert set(unfold(answer.stale_hosts)) == fleet.hosts("stale")
    assert sum(answer.verdicts.values()) + answer.stale == answer.nodes
    wrong = {host for odd in fleet.truth["oddities"] if odd["findings"] for host in odd["hosts"]} - fleet.hosts(
        *UNREADABLE
    )
    assert {each.node for each in answer.worst} <= wrong
    assert len(answer.worst) + answer.more_worst <= len(wrong)
    denied = [each for each in answer.coverage if any("denied" in reason for reason, _ in each.reasons)]
    assert denied, "the node whose driver could not be asked is missing in the coverage"
    for each in answer.coverage:
        judged = each.passed + each.failed + each.unknown + each.not_applicable + each.disabled
        assert judged + each.stale + each.missing == answer.nodes, each.rule


def test_nothing_drifted_before(fleet):
    answer = drift(fleet.engine, datetime(2025, 1, 1))  # noqa: DTZ001  # UTC without a zone is what is asked for
    assert answer.changes == []
    assert answer.compared_nodes == 0
