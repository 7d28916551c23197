"""Counters of successive reports of a node become windows in the dataset, judged by the rules of the node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent.config import Configuration
from agent.diagnose import evaluate_report
from agent.fleet.ingest import windows
from agent.fleet.rows.counters import CounterDigests, CounterRows, ReportCounters
from agent.history.state import add_history, update_state
from agent.history.window import WINDOW_SECONDS
from agent.model.reasons import needs_sample
from agent.model.report import Report
from agent.rules.context import SETTLE_SECONDS, RuleContext
from tests.agent.fleet.small import at, history, rows, take, taken
from tests.agent.history.build import DAY, counting, report

FLAPS = counting(5, downs=40)
SAME = counting(5, downs=0)


def scanned(
    context: RuleContext = SAME, hour: float = 0, configuration: Configuration = Configuration(), **node: Any
) -> Report:
    """A report of the machine at an hour, as a node without a state folder judges it."""
    plain = report(context, node.pop("uptime", DAY + 3600 * hour), **node)
    plain = msgspec.structs.replace(plain, generated_at=at(hour), observed_at=at(hour))
    return msgspec.structs.replace(evaluate_report(plain, configuration), generated_at=at(hour))


def judged_there(first: Report, second: Report) -> tuple[Report, dict[str, str]]:
    """The second report of a node that keeps state, and the answers that a single report has not."""
    report_ = evaluate_report(add_history(update_state(None, first), second), Configuration())
    pending = {check.rule for check in second.checks if needs_sample(check)}
    return report_, {
        check.rule: check.state for check in report_.checks if check.rule in pending and not needs_sample(check)
    }


def sent(*reports: Report) -> list[bytes]:
    """As they arrive."""
    return [msgspec.json.encode(one) for one in reports]


def checks(dataset: Path) -> dict[str, tuple[str, str | None]]:
    """State and reason of every rule, of the one node."""
    return {rule: (state, reason) for rule, state, reason in rows(dataset, "check", "rule, state, reason")}


def found(dataset: Path) -> list[str]:
    """Rules of findings that the fleet made of its history."""
    return [rule for rule, _ in rows(dataset, "finding", "rule, summary", "summary LIKE '%(fleet history, %'")]


def test_what_the_fleet_finds_is_what_the_node_would_have_found(tmp_path: Path) -> None:
    first, second = scanned(), scanned(FLAPS, 1)
    take(tmp_path / "d", *sent(first, second))

    on_node, expected = judged_there(first, second)
    assert len(expected) > 10
    assert expected == {rule: state for rule, (state, _) in checks(tmp_path / "d").items() if rule in expected}
    new = sorted(finding.rule for finding in on_node.findings if finding.rule in expected)
    assert new
    assert new == sorted(found(tmp_path / "d"))
    (host,) = rows(tmp_path / "d", "host", "verdict, error + critical")
    assert (on_node.summary.verdict, True) == (host[0], host[1] > 0)


def test_a_late_report_is_judged_by_its_neighbor_of_the_same_ingest(tmp_path: Path) -> None:
    take(tmp_path / "d", *sent(scanned(), scanned(FLAPS, 4)))
    now = found(tmp_path / "d")
    result = take(tmp_path / "d", *sent(scanned(SAME, 2), scanned(counting(5, downs=30), 3)))

    assert (result.late, result.unjudged) == (2, 1), "the first of them has no neighbor"
    past = history(tmp_path / "d", "finding", "observed_at, rule", "summary LIKE '%fleet history%'")
    assert {3} == {moment.hour - 8 for moment, _ in past}, "and as it is, it was still there an hour later"
    assert now == found(tmp_path / "d"), "a newer report's answers stay"


@pytest.mark.parametrize("second", [scanned(hour=2), scanned(FLAPS, 2)])
def test_a_late_report_without_a_neighbor_is_counted_as_not_judged(tmp_path: Path, second: Report) -> None:
    take(tmp_path / "d", *sent(scanned(), scanned(hour=4)))
    assert 1 == take(tmp_path / "d", *sent(second)).unjudged
    assert 0 == take(tmp_path / "d", *sent(second)).unjudged, "it is known now"


def test_the_length_of_the_window_and_what_grew_are_kept(tmp_path: Path) -> None:
    take(tmp_path / "d", *sent(scanned()))
    assert [(None,)] == rows(tmp_path / "d", "host", "window_seconds")
    take(tmp_path / "d", *sent(scanned(hour=1)))
    assert [(3600.0,)] == rows(tmp_path / "d", "host", "window_seconds"), "nothing moved"
    assert [] == rows(tmp_path / "d", "rate")
    take(tmp_path / "d", *sent(scanned(FLAPS, 3)))
    assert [(7200.0,)] == rows(tmp_path / "d", "host", "window_seconds")
    grown = rows(tmp_path / "d", "rate", "name, place, grown, seconds")
    assert [("carrier_down_count", "rail 0", 40, 7200.0), ("link_downed", "rail 0", 40, 7200.0)] == grown
    ((window,),) = set(rows(tmp_path / "d", "finding", "fleet_window", "fleet_window IS NOT NULL"))
    assert f"{at(1)} to {at(3)}" == window


def test_what_the_window_dates_is_one_finding_and_no_count_since_boot(tmp_path: Path) -> None:
    first, second = scanned(), scanned(counting(5, downs=300), 1)
    assert "counter-outlier" in {finding.rule for finding in second.findings}, "the node has one sample"
    take(tmp_path / "d", *sent(first, second))

    on_node, _ = judged_there(first, second)
    stored = [rule for (rule,) in rows(tmp_path / "d", "finding", "rule")]
    assert sorted(finding.rule for finding in on_node.findings) == stored
    assert "counter-outlier" not in stored
    assert "pass" == checks(tmp_path / "d")["counter-outlier"][0]


def test_a_count_that_no_longer_grows_is_no_finding_after_the_second_report(tmp_path: Path) -> None:
    high = counting(5, downs=300)
    take(tmp_path / "d", *sent(scanned(high)))
    assert [("counter-outlier",)] == rows(tmp_path / "d", "finding", "rule")
    take(tmp_path / "d", *sent(scanned(high, 1)))
    assert [] == rows(tmp_path / "d", "finding", "rule")
    assert "pass" == checks(tmp_path / "d")["counter-outlier"][0]
    assert [("ok",)] == rows(tmp_path / "d", "host", "verdict")


def test_the_window_and_both_times_are_shown(tmp_path: Path) -> None:
    take(tmp_path / "d", *sent(scanned(), scanned(FLAPS, 1)))
    ((summary, evidence),) = rows(tmp_path / "d", "finding", "summary, evidence", "summary LIKE '%fleet history%'")
    assert summary.endswith(f"(fleet history, {at(0)} to {at(1)})")
    assert f'"value":"{at(0)} to {at(1)}"' in evidence


def test_where_nothing_moved_the_rules_pass_and_say_so(tmp_path: Path) -> None:
    take(tmp_path / "d", *sent(scanned()))
    ((before, digest),) = rows(tmp_path / "d", "host", "unknown_rules, check_digest")
    take(tmp_path / "d", *sent(scanned(hour=1)))

    _, expected = judged_there(scanned(), scanned(hour=1))
    assert expected == {rule: state for rule, (state, _) in checks(tmp_path / "d").items() if rule in expected}
    ((after, other),) = rows(tmp_path / "d", "host", "unknown_rules, check_digest")
    assert (True, True) == (after < before, digest != other)
    assert [] == found(tmp_path / "d")


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("together", [True, False])
def test_however_reports_are_spread_the_answer_is_the_same(tmp_path: Path, together: bool, jobs: int) -> None:
    given = sent(scanned(), scanned(FLAPS, 1), scanned(FLAPS, 2))
    if together:
        take(tmp_path / "d", *reversed(given), jobs=jobs)
    else:
        for one in given:
            take(tmp_path / "d", one, jobs=jobs)

    assert [] == found(tmp_path / "d"), "in the last hour nothing moved"
    past = history(tmp_path / "d", "finding", "observed_at, rule", "summary LIKE '%fleet history%'")
    assert [1] == [moment.hour - 8 for moment, _ in past]


@pytest.mark.parametrize(
    "second",
    [
        pytest.param(scanned(FLAPS, 1, boot_id="boot-2"), id="another boot"),
        pytest.param(scanned(FLAPS, 1, boot_id=None), id="no boot"),
        pytest.param(scanned(FLAPS, 1, uptime=None), id="no uptime"),
        pytest.param(scanned(FLAPS, 59 / 3600), id="too soon"),
        pytest.param(scanned(counting(1, downs=0), 1), id="reset"),
        pytest.param(
            scanned(FLAPS, 1, configuration=Configuration(thresholds={"ib-link-flap.flaps": 3.0})), id="configured"
        ),
    ],
)
def test_what_cannot_be_compared_is_not(tmp_path: Path, second: Report) -> None:
    take(tmp_path / "d", *sent(scanned(), second))
    assert [] == found(tmp_path / "d")


def test_a_node_that_judged_its_own_window_is_not_judged_twice(tmp_path: Path) -> None:
    first = scanned()
    second = evaluate_report(add_history(update_state(None, first), scanned(FLAPS, 1)), Configuration())
    take(tmp_path / "d", *sent(first, second))

    assert [] == found(tmp_path / "d")
    assert sorted(finding.rule for finding in second.findings) == [
        rule for (rule,) in rows(tmp_path / "d", "finding", "rule")
    ]


def test_a_report_whose_file_is_gone_when_its_bucket_is_written_stays_as_it_is(tmp_path: Path) -> None:
    place = tmp_path / "drop"
    place.mkdir()
    for hour, context in enumerate((SAME, FLAPS)):
        (place / f"{hour}.json").write_bytes(sent(scanned(context, hour))[0])
    taken(tmp_path / "d", place)
    assert found(tmp_path / "d"), "of files, too"


def test_the_minimum_window_is_the_node_s() -> None:
    assert (WINDOW_SECONDS, SETTLE_SECONDS) == (windows._WINDOW_SECONDS, windows._SETTLE_SECONDS)


def stand(*rows_: tuple[str, str, int]) -> CounterDigests:
    """The digests of some counters."""
    counters = ReportCounters(CounterRows())
    for subject, name, value in rows_:
        counters.add_rows(subject, {name: value})
    return counters.digests()


def test_traffic_moves_nothing_and_errors_do() -> None:
    errors = ("port:a/1", "symbol_error", 3)
    quiet = stand(errors, ("port:a/1", "port_rcv_data", 10))
    assert quiet == stand(("netdev:b", "rx_prio3_bytes", 99), errors, ("port:a/1", "tx_packets_phy", 4))
    assert quiet.standing
    for other in (("port:a/1", "symbol_error", 4), ("port:b/1", "symbol_error", 3), ("port:a/1", "rx_crc_errors", 3)):
        assert quiet.standing != stand(other).standing
    assert CounterDigests(0, 0, False) == stand(("port:a/1", "port_rcv_data", 10))


@pytest.mark.parametrize(
    ("name", "value", "saturated"),
    [("link_downed", 255, True), ("link_downed", 254, False), ("other", 255, False), ("other", 2**32 - 1, True)],
)
def test_a_counter_at_its_end_is_no_quiet_one(name: str, value: int, saturated: bool) -> None:
    assert saturated is stand(("port:a/1", name, value)).needs_judging


def test_the_shape_is_of_devices_their_identity_and_their_counters() -> None:
    shapes = []
    for subject, identity, names in (
        ("port:a/1", "guid 1", ("x", "y")),
        ("port:b/1", "guid 1", ("x", "y")),
        ("port:a/1", "guid 2", ("x", "y")),
        ("port:a/1", "guid 1", ("x",)),
    ):
        counters = ReportCounters(CounterRows())
        counters.add_shape(subject, identity, names)
        shapes.append(counters.shape)
    assert 4 == len(set(shapes))
