"""What rules of moved counters share: sums, limits, words, and when several links are one fault."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from agent.rules.context import Settings
from agent.rules.counter_deltas import (
    ANY,
    HOUR,
    MINUTE,
    CounterDelta,
    Counters,
    Limit,
    delta,
    exceeded_limit,
    format_limit,
    format_seconds,
    merge_if_widespread,
    scale_count,
    sum_deltas,
    why_settling,
)
from agent.rules.infiniband.counters import ib_symbol_errors
from agent.rules.infiniband.flaps import ib_link_flap
from agent.rules.pages import Threshold
from agent.rules.rule import Fail, NotApplicable, Unknown
from tests.agent.rules import moves
from tests.agent.rules.build import fails, node
from tests.agent.rules.moves import PORT, infiniband, reset, severities, without_window

TEN = Threshold("test.ten", 10, "ten")


def counters(**now: int) -> Counters:
    """Counters of the port that is looked at."""
    return Counters(PORT, now, lambda name: f"/sys/{name}")


def test_a_sum_is_of_what_the_driver_has() -> None:
    """Others are not missed; what did not move is no evidence."""
    context = moves.moved(infiniband(), PORT, {"a": 3, "b": 4})
    result = delta(context, counters(a=1, b=2, c=3), ["a", "b", "c", "d"])

    assert isinstance(result, CounterDelta)
    assert (7, None) == (result.total, result.gap)
    assert [("a", "+3 in 60 min", "/sys/a"), ("b", "+4 in 60 min", "/sys/b")] == [
        tuple(row_of(r)) for r in result.evidence
    ]


def row_of(row):
    """The fields of a piece of evidence."""
    return row.what, row.value, row.source


def test_why_nothing_can_be_summed() -> None:
    """Not counted, not read, not compared, not settled."""
    context = infiniband()
    assert isinstance(delta(context, counters(x=1), ["a"]), NotApplicable)
    assert isinstance(delta(context, counters(), ["a"]), Unknown)
    unread = Counters(PORT, {"x": 1}, str, "denied")
    assert Unknown(PORT, "denied") == delta(context, unread, ["a"])
    gap = delta(reset(context, PORT, "a"), counters(a=1, b=1), ["a", "b"])
    assert CounterDelta({}, (), "restarted") == gap
    late = delta(node(context, uptime_seconds=HOUR + 60), counters(a=1), ["a"])
    assert isinstance(late, CounterDelta)
    assert late.gap == "the earlier sample is of 1 min after boot: links and drivers settled then"


@pytest.mark.parametrize(("up", "settled"), [(None, True), (HOUR + 900, True), (HOUR + 899, False)])
def test_a_window_that_begins_while_the_host_settles(up: float | None, settled: bool) -> None:
    """A quarter of an hour after boot; who does not know how long it ran does not wait."""
    assert settled == (why_settling(node(infiniband(), uptime_seconds=up)) is None)
    assert why_settling(without_window(infiniband())) is None


@pytest.mark.parametrize(
    ("count", "seconds", "per", "expected"),
    [
        (10, HOUR, HOUR, True),
        (9, HOUR, HOUR, False),
        (10, 60.0, HOUR, True),
        (9, 60.0, HOUR, "9 in 60 s: too short a window for a limit of 10/h"),
        (0, 60.0, HOUR, False),
        (19, 2 * HOUR, HOUR, False),
        (20, 2 * HOUR, HOUR, True),
        (10, 10 * HOUR, ANY, True),
        (600, HOUR, MINUTE, True),
        (599, HOUR, MINUTE, False),
    ],
)
def test_a_limit_needs_its_number_and_its_rate(count: int, seconds: float, per: float, expected) -> None:
    """Two in a minute are not a hundred in the hour."""
    context = moves.moved(infiniband(), PORT, {}, seconds)
    limit = Limit(TEN, "warning", per)

    assert (limit if expected is True else expected or None) == exceeded_limit(context, count, [limit])


def test_the_gravest_limit_that_is_reached_counts() -> None:
    """Gravest first."""
    grave, mild = Limit(Threshold("t.g", 100, ""), "error", HOUR), Limit(TEN, "warning", HOUR)

    assert grave == exceeded_limit(infiniband(), 100, [grave, mild])
    assert mild == exceeded_limit(infiniband(), 99, [grave, mild])


def test_what_did_not_move_is_over_no_limit() -> None:
    """Not even over one that an operator set to 0: then the first event is."""
    none = Limit(Threshold("t.none", 0, ""), "info")

    assert exceeded_limit(infiniband(), 0, [none]) is None
    assert none == exceeded_limit(infiniband(), 1, [none])


def test_an_operator_sets_a_limit() -> None:
    """Up and down, and the text states it."""
    context = moves.moved(infiniband(), PORT, {"symbol_error": 50})
    higher = replace(context, settings=Settings(thresholds={"ib-symbol-errors.per_hour": 51}))
    lower = replace(context, settings=Settings(thresholds={"ib-symbol-errors.per_hour": 5}))

    assert [(PORT, "warning")] == severities(ib_symbol_errors, context)
    assert [] == severities(ib_symbol_errors, higher)
    (fault,) = fails(ib_symbol_errors, lower)
    assert "limit 5/h" in fault.summary


def test_words_for_times_and_limits() -> None:
    """As people say them."""
    assert ["119 s", "2 min", "119 min", "2 h"] == [format_seconds(s) for s in (119, 120, 7140, 7200)]
    result = [format_limit(infiniband(), Limit(TEN, "info", seconds)) for seconds in (ANY, 1.0, MINUTE, HOUR, 600.0)]
    assert ["10", "10/s", "10/min", "10/h", "10 in 10 min"] == result
    assert "10" == format_limit(infiniband(), Limit(TEN, "info"))
    assert 5.0 == scale_count(without_window(infiniband()), 5, HOUR)


def test_sums_of_two_places_are_one() -> None:
    """What can be counted counts; else the reason that is about missing data."""
    some, more = CounterDelta({"a": 1}, ()), CounterDelta({"b": 2}, (), "a gap")
    unknown, nothing = Unknown("x", "not read"), NotApplicable("x", "not counted")

    assert CounterDelta({"a": 1, "b": 2}, (), "a gap") == sum_deltas(some, more, nothing)
    assert unknown == sum_deltas(nothing, unknown)
    assert nothing == sum_deltas(nothing, nothing)


@pytest.mark.parametrize(("count", "of", "one"), [(1, 1, False), (2, 4, True), (2, 5, False), (3, 5, True)])
def test_half_of_all_and_two_at_least_are_one_fault(count: int, of: int, one: bool) -> None:
    """What they share is suspected; the gravest decides."""
    faults = [Fail(f"port:{n}", f"mlx5_{n}", "", "", "", (), "warning") for n in range(count)]
    faults[-1] = replace(faults[-1], severity="error")
    result = merge_if_widespread(faults, of, "together", "several")

    assert (["node"] if one else [fault.subject for fault in faults]) == [fault.subject for fault in result]
    assert not one or ("error", "several") == (result[0].severity, result[0].cause)


@pytest.mark.parametrize("seconds", [1e300, float("inf"), float("nan"), -5.0, 1e-300])
def test_a_report_may_hold_any_number(seconds: float) -> None:
    """Nothing breaks."""
    context = moves.moved(infiniband(), PORT, {"link_downed": 3, "symbol_error": 2**63})
    assert context.window is not None
    context = replace(node(context, uptime_seconds=None), window=replace(context.window, seconds=seconds))

    for rule in (ib_link_flap, ib_symbol_errors):
        list(rule.check(context))
