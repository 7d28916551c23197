"""When it is judged, on a clock that the tests move."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent.watch.pace import (
    ASKED,
    IDLE_SECONDS,
    LONGEST,
    MOST_REASONS,
    REST_SECONDS,
    SHARE,
    START,
    TIME,
    Pace,
    Turn,
)
from probes.kernel.events import INTERFACE, MISSED, PCI, SOFTWARE_INTERFACE, Event

SETTLE, EVERY = 2.0, 3600.0


def event(kind: str = INTERFACE, subject: str = "ens1") -> Event:
    return Event(kind, subject, f"{subject} up -> down", "rtnetlink")


def begun(settle: float = SETTLE, every: float = EVERY) -> Pace:
    """After the first full scan, at second 0."""
    pace = Pace(settle, every)
    turn = pace.all(Event(START, None, "", "clock"), 0.0)
    pace.judged(turn, False, 0.0, 0.0)
    return pace


def taken(pace: Pace, now: float) -> Turn:
    """What is due, which there must be."""
    turn = pace.turn(now)
    assert turn is not None
    return turn


def test_nothing_is_due_but_the_full_scan() -> None:
    """And that at its time, for that reason."""
    pace = begun()

    assert EVERY == pace.due()
    assert pace.turn(EVERY - 1) is None
    turn = taken(pace, EVERY)
    assert turn.full
    assert [TIME] == [reason.event.kind for reason in turn.reasons]
    assert 2 * EVERY == pace.due()


def test_a_burst_is_one_judging_after_the_quiet_time() -> None:
    """Counted, not repeated; nothing is left of it."""
    pace = begun()
    for k in range(10):
        pace.heard([event(), event(PCI, "0000:16:00.0")], 100 + k)
        assert pace.turn(100 + k) is None

    assert 109 + SETTLE == pace.due()
    turn = taken(pace, pace.due())
    assert not turn.full
    assert {INTERFACE, PCI} == turn.kinds
    assert [10, 10] == [reason.times for reason in turn.reasons]
    pace.judged(turn, True, 0.5, 112)
    assert EVERY == pace.due()


def test_a_link_that_flaps_for_ever_is_judged_all_the_same() -> None:
    """Ten times the quiet time after it began."""
    pace, now = begun(), 100.0
    while pace.turn(now) is None:
        pace.heard([event()], now)
        now += SETTLE / 2

    assert 100 + LONGEST * SETTLE <= now <= 100 + LONGEST * SETTLE + SETTLE


def test_noise_of_one_kind_does_not_starve_another() -> None:
    """The bound is each kind's own."""
    pace = begun()
    pace.heard([event(PCI)], 100)
    for k in range(1, 100):
        pace.heard([event()], 100 + k)
        if turn := pace.turn(100 + k):
            assert PCI in turn.kinds
            assert k <= LONGEST * SETTLE
            return
    raise AssertionError("it was never judged")


def test_what_no_rule_looks_at_waits_for_nothing() -> None:
    """And does not hold up what waits."""
    pace = begun()
    pace.heard([event(SOFTWARE_INTERFACE, "veth1")], 100)
    assert EVERY == pace.due()

    pace.heard([event()], 101)
    pace.heard([event(SOFTWARE_INTERFACE, "veth1")], 102)
    assert 101 + SETTLE == pace.due()


def test_what_was_missed_and_what_is_not_known_is_a_full_scan() -> None:
    """Which answers for everything that waits, and is the next one's beginning."""
    for kind in (MISSED, "a kind of a later version"):
        pace = begun()
        pace.heard([event(), event(kind)], 100)
        turn = taken(pace, 100 + SETTLE)
        pace.judged(turn, True, 1, 103)

        assert turn.full
        assert {INTERFACE, kind} == turn.kinds
        assert 103 + EVERY == pace.due()


def test_somebody_asks() -> None:
    """At once, in full, with all that waits."""
    pace = begun()
    pace.heard([event()], 100)
    turn = pace.all(Event(ASKED, None, "SIGUSR1", "signal"), 100)

    assert turn.full
    assert [ASKED, INTERFACE] == [reason.event.kind for reason in turn.reasons]
    assert 100 + EVERY == pace.due()


def test_what_changes_is_looked_at_for_a_tenth_of_the_time_at_most() -> None:
    """A judging that took long is followed by a rest of its kind; a long one by a minute at most."""
    for seconds, rest in ((1.0, SHARE * 1.0), (30.0, REST_SECONDS)):
        pace = begun()
        pace.heard([event()], 100)
        pace.judged(taken(pace, 102), True, seconds, 110)
        pace.heard([event(), event(PCI)], 110)

        turn = taken(pace, 110 + SETTLE)
        assert {PCI} == turn.kinds, "the other kind rests"
        pace.judged(turn, True, 0, 112)
        assert 110 + rest == pace.due()
        assert {INTERFACE} == taken(pace, 110 + rest).kinds


def test_what_changes_nothing_is_looked_at_more_and_more_rarely() -> None:
    """A counter that a driver logs for ever; five minutes are the most, and quiet makes it new."""
    pace, now, pauses = begun(), 100.0, []
    for _ in range(12):
        heard = now
        pace.heard([event("aer")], now)
        now = pace.due()
        pauses.append(now - heard)
        pace.judged(taken(pace, now), False, 0.1, now)

    assert SETTLE == pauses[0]
    assert pauses == sorted(pauses)
    assert IDLE_SECONDS == pauses[-1]

    now += 3 * IDLE_SECONDS
    pace.heard([event("aer")], now)
    assert now + SETTLE == pace.due()
    pace.judged(taken(pace, now + SETTLE), False, 0.1, now + SETTLE)
    pace.heard([event("aer")], now + SETTLE)
    assert now + SETTLE + SETTLE == pace.due()


def test_reasons_are_listed_to_a_number() -> None:
    """The rest is counted."""
    pace = begun()
    pace.heard([event(INTERFACE, f"ens{k}") for k in range(50)], 100)
    turn = taken(pace, 102)

    assert MOST_REASONS == len(turn.reasons)
    assert 50 - MOST_REASONS == turn.more


def test_no_quiet_time_is_at_once() -> None:
    """--settle 0."""
    pace = begun(settle=0.0)
    pace.heard([event()], 100)

    assert 100 == pace.due()
    assert taken(pace, 100).kinds == {INTERFACE}


@given(
    st.lists(st.tuples(st.floats(0, 30), st.sampled_from([INTERFACE, PCI, MISSED, "xid"]), st.booleans()), max_size=60),
    st.floats(0, 20),
)
def test_every_event_is_judged_in_time_and_judging_is_never_all_the_time(
    steps: list[tuple[float, str, bool]], settle: float
) -> None:
    """Whatever comes whenever: within the longest wait and the longest rest; a turn holds what waited, once."""
    pace, now, waiting = begun(settle, 1e9), 100.0, {}
    for pause, kind, changed in steps:
        until = now + pause
        while pace.due() <= until and waiting:
            now = max(now, pace.due())
            turn = taken(pace, now)
            assert turn.kinds
            for each in turn.kinds:
                assert now - waiting.pop(each) <= LONGEST * settle + IDLE_SECONDS + 1e-6
            pace.judged(turn, changed, 0.5, now)
        now = max(now, until)
        pace.heard([event(kind)], now)
        waiting.setdefault(kind, now)

    assert all(pace.due() <= now + LONGEST * settle + IDLE_SECONDS for _ in waiting)
