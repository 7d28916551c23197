"""Every planted oddity is found, and none is invented."""

from __future__ import annotations

import os
from datetime import datetime

from agent.fleet.engines import connect
from agent.fleet.hostlist import unfold
from agent.fleet.questions.drift import drift
from agent.fleet.questions.outliers import outliers
from agent.fleet.questions.summary import summary
from bench.fleet.answers import DUPLICATES, OUTLIERS, UNREADABLE, compared
from bench.fleet.kinds import CLOCK_SECONDS, KINDS, ON_REQUEST, STALE_DAYS
from bench.fleet.plan import FIRST, plan
from tests.agent.fleet.questions.conftest import OF_CABLES
from tests.agent.fleet.small import taken

OTHERWISE = {"node-gone", "stale", "newer-minor", *UNREADABLE}


def test_every_kind_of_oddity_is_asked_for():
    kinds = {kind for kind in KINDS if not kind.startswith(OF_CABLES) and kind not in ON_REQUEST}
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


def test_clocks_that_are_wrong_by_a_day_do_no_harm(tmp_path):
    """By the times of files: no other node is stale, and none of these; the one that is ahead is an outlier."""
    made = plan(24, 8, {**dict.fromkeys(ON_REQUEST, 1), "mtu-1500": 1, "stale": 1}, mix={"l40s-roce": 1})
    wrong = {odd["kind"]: odd["hosts"][0] for odd in made.truth["oddities"]}
    assert {*ON_REQUEST, "mtu-1500", "stale"} == wrong.keys()
    drop = tmp_path / "drop"
    drop.mkdir()
    for host, data in made.named(0):
        path = drop / f"{host}.json"
        path.write_bytes(data)
        arrived = FIRST + 3600 - (STALE_DAYS * 86_400 if host == wrong["stale"] else 0)
        os.utime(path, (arrived, arrived))
    taken(tmp_path / "dataset", drop)
    engine = connect(None, str(tmp_path / "dataset"))
    try:
        assert summary(engine).stale_hosts == wrong["stale"]
        found = {each.attribute: (each.hosts, each.value) for each in outliers(engine).outliers}
    finally:
        engine.close()
    assert found.pop("clock")[0] == wrong["clock-ahead"]
    assert found.keys() == {"rail-mtu"}
    assert CLOCK_SECONDS > 22 * 3600
