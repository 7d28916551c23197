"""Every planted oddity is found, and none is invented."""

from __future__ import annotations

import os
from datetime import datetime

import pytest

from agent.cli.main import run
from agent.fleet.engines import connect
from agent.fleet.episodes.finding_changes import news_since
from agent.fleet.hostlist import unfold
from agent.fleet.questions.drift import find_drift
from agent.fleet.questions.findings import find_findings
from agent.fleet.questions.options import ORDINARY
from agent.fleet.questions.outliers import find_outliers
from agent.fleet.questions.summary import build_summary
from agent.fleet.text.findings import page
from bench.fleet.answers import DRIFT, DUPLICATES, NEWS, OUTLIERS, STALE, UNREADABLE, compared
from bench.fleet.faults import HIGH_COUNTERS
from bench.fleet.kinds import CLOCK_SECONDS, FLAPPING_SWEEPS, KINDS, STALE_DAYS
from bench.fleet.overlaid import PAIRS
from bench.fleet.plan import FIRST, plan
from tests.agent.fleet.questions.conftest import OF_CABLES, ON_THEIR_OWN
from tests.agent.fleet.small import report, rows, take, taken

pytestmark = pytest.mark.timeout(400)  # its fleet is made within the first test
OTHERWISE = {
    "node-gone",
    "node-never",
    "stale",
    "newer-minor",
    "rate-retransmissions",
    *UNREADABLE,
    *map("+".join, PAIRS),
}
NOISE = {"clock-behind", "uplink-older", *HIGH_COUNTERS}


def test_every_kind_of_oddity_is_asked_for():
    assert {*KINDS} - {*OF_CABLES} == {*OUTLIERS, *DUPLICATES, *DRIFT, *NEWS, *OTHERWISE, *NOISE}


def test_every_oddity_is_found_and_none_is_invented(fleet):
    planted = {odd["kind"] for odd in fleet.truth["oddities"]}
    assert {*OUTLIERS, *DUPLICATES, *DRIFT, "stale", "node-gone", "node-never"} - {*ON_THEIR_OWN} <= planted, (
        "choose another seed"
    )
    for question, sides in compared(fleet.engine, fleet.truth, fleet.fabrics).items():
        assert not sides.missed, f"{question}: planted and not found"
        assert not sides.invented, f"{question}: found and not planted"
        assert sides.right or question == "news", question


def test_a_finding_that_comes_and_goes_is_flapping(tmp_path):
    made = plan(16, 2, {"flapping": 1}, sweeps=FLAPPING_SWEEPS, mix={"h200-roce": 1})
    take(tmp_path / "dataset", *(data for sweep in range(made.sweeps) for data in made.reports(sweep, one_line=True)))
    engine = connect(None, str(tmp_path / "dataset"))
    try:
        answers = compared(engine, made.truth)
    finally:
        engine.close()
    assert {question: sides[:2] for question, sides in answers.items()} == dict.fromkeys(answers, (set(), set()))
    assert answers["news"].right == 1


def test_rates_are_found_between_two_sweeps_and_counters_that_only_stand_high_are_not(tmp_path):
    """And a node with a GPU of another model is an outlier of its class."""
    faults = {"rate-link-downs": 2, "rate-symbol-errors": 1, "gpu-model": 1, "counter-high": 2}
    made = plan(32, 3, faults, sweeps=2, mix={"h100-ib": 1})
    take(tmp_path / "dataset", *(data for sweep in range(made.sweeps) for data in made.reports(sweep, one_line=True)))
    found = rows(tmp_path / "dataset", "finding", "node, subject, rule", "summary LIKE '%(fleet history, %'")
    rules = {"rate-link-downs": "ib-link-flap", "rate-symbol-errors": "ib-symbol-errors"}
    planted = [odd for odd in made.truth["oddities"] if odd["kind"] in rules]
    assert len(planted) == 3
    assert found == sorted((host, odd["subject"], rules[odd["kind"]]) for odd in planted for host in odd["hosts"])
    engine = connect(None, str(tmp_path / "dataset"))
    sides = compared(engine, made.truth)["outliers"]
    outliers, findings = find_outliers(engine), find_findings(engine)
    news = [item for item in news_since(engine, datetime(2026, 1, 15, 8, 59), ORDINARY).items if item.kind == "new"]  # noqa: DTZ001  # UTC
    engine.close()
    of_fleet = {group.rule: group.by_fleet for group in findings.findings if group.by_fleet}
    assert of_fleet == {"ib-link-flap": 2, "ib-symbol-errors": 1}
    assert {group.rule for group in findings.findings} == {*of_fleet, "gpu-model-mixed"}, "each cause is one finding"
    assert sorted(item.rule for item in news if item.fleet_window) == ["ib-link-flap"] * 2 + ["ib-symbol-errors"]
    lines = "\n".join("".join(text for text, *_ in line) for line in page(findings, 200))
    assert "From the fleet's history: ib-link-flap, ib-symbol-errors" in lines
    assert (sides.missed, sides.invented, sides.right) == (set(), set(), 4)
    assert len(outliers.classes) == 1
    assert [each.value for each in outliers.outliers if each.attribute == "gpu-models"] == [
        odd["detail"]["models"] for odd in made.truth["oddities"] if odd["kind"] == "gpu-model"
    ]


def test_a_clock_that_was_set_back_is_an_outlier_and_a_late_sender_is_none(tmp_path):
    drop = tmp_path / "drop"
    drop.mkdir()
    for host in "abcdef":
        for hour in (1, 2):
            shown = hour - 5 if (host, hour) == ("a", 2) else hour
            node = {"hostname": host, "vendor": "V", "product": "P", "boot_id": host, "uptime_seconds": hour * 3600}
            path = drop / f"{host}{hour}.json"
            path.write_bytes(report(host, shown, node=node))
            arrived = FIRST + 3600 * (hour + (3 if host == "b" else 0))
            os.utime(path, (arrived, arrived))
    taken(tmp_path / "dataset", drop)
    engine = connect(None, str(tmp_path / "dataset"))
    outliers = find_outliers(engine).outliers
    engine.close()
    assert [("clock", "a", "5 h behind")] == [(one.attribute, one.hosts, one.value) for one in outliers]


def test_the_same_difference_on_other_rails_is_another_answer(tmp_path):
    made = plan(24, 3, {"mtu-1500": 2, "mtu-1500-first": 1}, mix={"l40s-roce": 1})
    take(tmp_path / "dataset", *made.reports(one_line=True))
    engine = connect(None, str(tmp_path / "dataset"))
    try:
        found = {tuple(unfold(each.hosts)): (each.places, each.also) for each in find_outliers(engine).outliers}
    finally:
        engine.close()
    hosts = {kind: sorted(h for odd in made.truth["oddities"] if odd["kind"] == kind for h in odd["hosts"])
             for kind in ("mtu-1500", "mtu-1500-first")}  # fmt: skip
    also = ["RDMA MTU 1024, usually 4096"]
    assert found == {tuple(hosts["mtu-1500"]): (["rail 1"], also), tuple(hosts["mtu-1500-first"]): (["rail 0"], also)}


def test_of_a_long_map_only_what_differs(fleet):
    (dscp,) = [each for each in find_outliers(fleet.engine).outliers if each.attribute == "rail-dscp-prio"]
    assert (dscp.value, dscp.usual) == ("10:4", "10:1")


def test_an_error_of_a_node_that_is_silent_for_long_is_marked(fleet):
    (host,) = fleet.hosts("stale-finding")
    marked = {each.rule for each in find_findings(fleet.engine).findings if host in unfold(each.stale)}
    assert marked == {row["rule"] for odd in fleet.truth["oddities"] if host in odd["hosts"] for row in odd["findings"]}


def test_nodes_that_were_asked_for_and_never_reported_are_named(fleet, capfdbinary):
    (never,) = fleet.hosts("node-never")
    assert run(["fleet", "summary", "--dataset", str(fleet.path), "--where", f"nodes={never},gpu0001"]) == 0
    assert f"no report from {never}" in capfdbinary.readouterr().err.decode()


def test_outliers_say_what_is_usual_and_how_many_have_it(fleet):
    answer = find_outliers(fleet.engine)
    for each in answer.outliers:
        assert each.usual != each.value
        assert each.nodes == len(unfold(each.hosts))
        assert 0.8 * each.of <= each.usual_count < each.of
        assert each.of >= 5
        assert each.hardware_class in answer.classes or each.hardware_class == "all nodes with H200 SXM"


def test_a_planned_roll_out_is_mixed_and_nobody_is_odd(fleet):
    half = [each for each in fleet.truth["noise"] if each["kind"] == "firmware-rollout"]
    mixed = {(each.attribute, value) for each in find_outliers(fleet.engine).mixed for value, _ in each.values}
    assert half
    assert {("nic-firmware", each["detail"]["firmware"]) for each in half} <= mixed


def test_summary(fleet):
    answer = build_summary(fleet.engine)
    assert set(unfold(answer.stale_hosts)) == fleet.hosts(*STALE)
    assert sum(answer.verdicts.values()) == answer.nodes
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
    answer = find_drift(fleet.engine, datetime(2025, 1, 1))  # noqa: DTZ001  # UTC without a zone is what is asked for
    assert answer.changes == []
    assert answer.compared_nodes == 0


def test_clocks_that_are_wrong_by_a_day_do_no_harm(tmp_path):
    """By the times of files: no other node is stale, and none of these; the one that is ahead is an outlier."""
    clocks = ("clock-ahead", "clock-behind")
    made = plan(24, 8, {**dict.fromkeys(clocks, 1), "mtu-1500": 1, "stale": 1}, mix={"l40s-roce": 1})
    wrong = {odd["kind"]: odd["hosts"][0] for odd in made.truth["oddities"]}
    assert {*clocks, "mtu-1500", "stale"} == wrong.keys()
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
        assert build_summary(engine).stale_hosts == wrong["stale"]
        assert find_drift(engine, datetime(2026, 1, 15, 8)).silent == wrong["stale"]  # noqa: DTZ001  # UTC
        found = {each.attribute: (each.hosts, each.value) for each in find_outliers(engine).outliers}
    finally:
        engine.close()
    assert found.pop("clock")[0] == wrong["clock-ahead"]
    assert found.keys() == {"rail-mtu"}
    assert CLOCK_SECONDS > 22 * 3600
