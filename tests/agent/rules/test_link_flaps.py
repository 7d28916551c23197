"""How often a link went down: which counter speaks, limits by time, and what earlier runs saw."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from agent.model.node import Nccl
from agent.model.report import History
from agent.rules.applicability import has_infiniband_flaps
from agent.rules.context import RuleContext, Settings
from agent.rules.counter_deltas import CounterDelta
from agent.rules.infiniband.flaps import ib_link_flap
from agent.rules.link_flaps import largest_delta
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import fails, node, software
from tests.agent.rules.moves import HOUR, PORT, infiniband, moved, one

ONCE = moved(infiniband(), PORT, {"link_downed": 1})  # from 10:00 to 11:00


def seen(*at: str) -> RuleContext:
    """The link went down once in the window, and earlier runs saw it at these times."""
    return replace(ONCE, history=History(runs=5, link_downs={PORT: list(at)}))


def test_of_several_counters_the_one_that_moved_most_speaks() -> None:
    """They are not added; where none can be counted, missing data is the reason."""
    few, many = CounterDelta({"a": 1}, ()), CounterDelta({"b": 2}, ())
    unread, nothing = Unknown("x", "not read"), NotApplicable("x", "not counted")

    assert many == largest_delta(few, many, unread)
    assert CounterDelta({"a": 0}, ()) == largest_delta(CounterDelta({}, (), "restarted"), CounterDelta({"a": 0}, ()))
    assert unread == largest_delta(nothing, unread)
    assert nothing == largest_delta(nothing, NotApplicable("y", "neither"))


def test_what_was_seen_at_the_ends_of_twelve_hours_counts() -> None:
    """Twelve hours before the end of the window, and the moment at which the window began."""
    assert 1 == len(fails(ib_link_flap, seen("2026-04-30T23:00:00Z", "2026-05-01T10:00:00Z")))
    assert [] == fails(ib_link_flap, seen("2026-04-30T22:59:59Z", "2026-05-01T10:00:00Z"))
    assert [] == fails(ib_link_flap, seen("2026-04-30T23:00:00Z", "2026-05-01T10:00:01Z"))


def test_links_that_were_noted_are_judged_without_an_earlier_sample() -> None:
    """`watch` after its first full scan: no window, and it counted since."""
    first = replace(ONCE, window=None, history=History(runs=1))

    assert isinstance(has_infiniband_flaps(first), Unknown)
    assert has_infiniband_flaps(replace(first, history=History(runs=1, link_downs={PORT: ["now"]}))) is None
    assert isinstance(has_infiniband_flaps(replace(first, history=None)), Unknown)


def test_what_this_run_noted_itself_is_in_the_window() -> None:
    """The clock was set back meanwhile: its own note lies before the window."""
    earlier = seen("2026-05-01T08:00:00Z", "2026-05-01T09:00:00Z")

    assert 1 == len(fails(ib_link_flap, earlier))
    assert [] == fails(ib_link_flap, replace(earlier, observed_at="2026-05-01T09:00:00Z"))


@pytest.mark.parametrize(("count", "hours", "expected"), [(5, 24, True), (5, 25, False), (6, 28, True), (6, 29, False)])
def test_of_a_window_longer_than_a_day_the_share_of_a_day_counts(count: int, hours: int, expected: bool) -> None:
    """Five in 24 hours."""
    context = node(moved(infiniband(), PORT, {"link_downed": count}, hours * HOUR), uptime_seconds=10**6)

    assert expected == bool(fails(ib_link_flap, context))


@pytest.mark.parametrize(
    ("jobs", "count", "limit", "expected"),
    [(1, 1, 1, True), (0, 1, 1, False), (None, 1, 1, False), (1, 1, 2, False), (1, 2, 2, True)],
)
def test_while_a_job_runs_fewer_are_too_many(jobs: int | None, count: int, limit: int, expected: bool) -> None:
    """One job is enough; an operator may allow more."""
    context = software(moved(infiniband(), PORT, {"link_downed": count}, 600.0), nccl=Nccl(jobs=jobs))
    context = replace(context, settings=Settings(thresholds={"ib-link-flap.in_job": limit}))

    assert expected == bool(fails(ib_link_flap, context))
    assert expected or Pass(PORT) == one(ib_link_flap, context, PORT)
