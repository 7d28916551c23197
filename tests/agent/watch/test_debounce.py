"""When it is judged, on a clock that the tests move."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.watch.debounce import (
    AFFECTED_PROBES,
    ALWAYS_READ,
    IDLE_REST_SECONDS,
    REASON_LIMIT,
    REQUESTED,
    REST_FACTOR,
    REST_SECONDS,
    SETTLE_LIMIT_FACTOR,
    START,
    TIME,
    Batch,
    Debouncer,
    affected_probes,
)
from probes.catalogue import probes
from probes.kernel import events, sentences
from probes.kernel.events import INTERFACE, MISSED, PCI, SOFTWARE_INTERFACE, KernelEvent

SETTLE, EVERY = 2.0, 3600.0


def event(kind: str = INTERFACE, subject: str = "ens1") -> KernelEvent:
    return KernelEvent(kind, subject, f"{subject} up -> down", "rtnetlink")


def begun(settle: float = SETTLE, every: float = EVERY) -> Debouncer:
    """After the first full scan, at second 0."""
    debouncer = Debouncer(settle, every)
    batch = debouncer.full_batch(KernelEvent(START, None, "", "clock"), 0.0)
    debouncer.finish(batch, False, 0.0, 0.0)
    return debouncer


def taken(debouncer: Debouncer, now: float) -> Batch:
    """What is due, which there must be."""
    batch = debouncer.due_batch(now)
    assert batch is not None
    return batch


def test_nothing_is_due_but_the_full_scan() -> None:
    """And that at its time, for that reason."""
    debouncer = begun()

    assert EVERY == debouncer.next_due()
    assert debouncer.due_batch(EVERY - 1) is None
    batch = taken(debouncer, EVERY)
    assert batch.full
    assert [TIME] == [reason.event.kind for reason in batch.reasons]
    assert 2 * EVERY == debouncer.next_due()


def test_a_burst_is_one_judging_after_the_quiet_time() -> None:
    """Counted, not repeated; nothing is left of it."""
    debouncer = begun()
    for k in range(10):
        debouncer.add([event(), event(PCI, "0000:16:00.0")], 100 + k)
        assert debouncer.due_batch(100 + k) is None

    assert 109 + SETTLE == debouncer.next_due()
    batch = taken(debouncer, debouncer.next_due())
    assert not batch.full
    assert {INTERFACE, PCI} == batch.kinds
    assert [10, 10] == [reason.times for reason in batch.reasons]
    debouncer.finish(batch, True, 0.5, 112)
    assert EVERY == debouncer.next_due()


def test_a_link_that_flaps_for_ever_is_judged_all_the_same() -> None:
    """Ten times the quiet time after it began."""
    debouncer, now = begun(), 100.0
    while debouncer.due_batch(now) is None:
        debouncer.add([event()], now)
        now += SETTLE / 2

    assert 100 + SETTLE_LIMIT_FACTOR * SETTLE <= now <= 100 + SETTLE_LIMIT_FACTOR * SETTLE + SETTLE


def test_noise_of_one_kind_does_not_starve_another() -> None:
    """The bound is each kind's own."""
    debouncer = begun()
    debouncer.add([event(PCI)], 100)
    for k in range(1, 100):
        debouncer.add([event()], 100 + k)
        if batch := debouncer.due_batch(100 + k):
            assert PCI in batch.kinds
            assert k <= SETTLE_LIMIT_FACTOR * SETTLE
            return
    raise AssertionError("it was never judged")


def test_what_no_rule_looks_at_waits_for_nothing() -> None:
    """And does not hold up what waits."""
    debouncer = begun()
    debouncer.add([event(SOFTWARE_INTERFACE, "veth1")], 100)
    assert EVERY == debouncer.next_due()

    debouncer.add([event()], 101)
    debouncer.add([event(SOFTWARE_INTERFACE, "veth1")], 102)
    assert 101 + SETTLE == debouncer.next_due()


def test_what_was_missed_and_what_is_not_known_is_a_full_scan() -> None:
    """Which answers for everything that waits, and is the next one's beginning."""
    for kind in (MISSED, "a kind of a later version"):
        debouncer = begun()
        debouncer.add([event(), event(kind)], 100)
        batch = taken(debouncer, 100 + SETTLE)
        debouncer.finish(batch, True, 1, 103)

        assert batch.full
        assert {INTERFACE, kind} == batch.kinds
        assert 103 + EVERY == debouncer.next_due()


def test_somebody_asks() -> None:
    """At once, in full, with all that waits."""
    debouncer = begun()
    debouncer.add([event()], 100)
    batch = debouncer.full_batch(KernelEvent(REQUESTED, None, "SIGUSR1", "signal"), 100)

    assert batch.full
    assert [REQUESTED, INTERFACE] == [reason.event.kind for reason in batch.reasons]
    assert 100 + EVERY == debouncer.next_due()


def test_what_changes_is_looked_at_for_a_tenth_of_the_time_at_most() -> None:
    """A judging that took long is followed by a rest of its kind; a long one by a minute at most."""
    for seconds, rest in ((1.0, REST_FACTOR * 1.0), (30.0, REST_SECONDS)):
        debouncer = begun()
        debouncer.add([event()], 100)
        debouncer.finish(taken(debouncer, 102), True, seconds, 110)
        debouncer.add([event(), event(PCI)], 110)

        batch = taken(debouncer, 110 + SETTLE)
        assert {PCI} == batch.kinds, "the other kind rests"
        debouncer.finish(batch, True, 0, 112)
        assert 110 + rest == debouncer.next_due()
        assert {INTERFACE} == taken(debouncer, 110 + rest).kinds


def test_what_changes_nothing_is_looked_at_more_and_more_rarely() -> None:
    """A counter that a driver logs for ever; five minutes are the most, and quiet makes it new."""
    debouncer, now, pauses = begun(), 100.0, []
    for _ in range(12):
        heard = now
        debouncer.add([event("aer")], now)
        now = debouncer.next_due()
        pauses.append(now - heard)
        debouncer.finish(taken(debouncer, now), False, 0.1, now)

    assert SETTLE == pauses[0]
    assert pauses == sorted(pauses)
    assert IDLE_REST_SECONDS == pauses[-1]

    now += 3 * IDLE_REST_SECONDS
    debouncer.add([event("aer")], now)
    assert now + SETTLE == debouncer.next_due()
    debouncer.finish(taken(debouncer, now + SETTLE), False, 0.1, now + SETTLE)
    debouncer.add([event("aer")], now + SETTLE)
    assert now + SETTLE + SETTLE == debouncer.next_due()


def test_reasons_are_listed_to_a_number() -> None:
    """The rest is counted."""
    debouncer = begun()
    debouncer.add([event(INTERFACE, f"ens{k}") for k in range(50)], 100)
    batch = taken(debouncer, 102)

    assert REASON_LIMIT == len(batch.reasons)
    assert 50 - REASON_LIMIT == batch.more


def test_no_quiet_time_is_at_once() -> None:
    """--settle 0."""
    debouncer = begun(settle=0.0)
    debouncer.add([event()], 100)

    assert 100 == debouncer.next_due()
    assert taken(debouncer, 100).kinds == {INTERFACE}


@given(
    st.lists(st.tuples(st.floats(0, 30), st.sampled_from([INTERFACE, PCI, MISSED, "xid"]), st.booleans()), max_size=60),
    st.floats(0, 20),
)
def test_every_event_is_judged_in_time_and_judging_is_never_all_the_time(
    steps: list[tuple[float, str, bool]], settle: float
) -> None:
    """Whatever comes whenever: within the longest wait and the longest rest; a turn holds what waited, once."""
    debouncer, now, waiting = begun(settle, 1e9), 100.0, {}
    for pause, kind, changed in steps:
        until = now + pause
        while debouncer.next_due() <= until and waiting:
            now = max(now, debouncer.next_due())
            batch = taken(debouncer, now)
            assert batch.kinds
            for kind in batch.kinds:
                assert now - waiting.pop(kind) <= SETTLE_LIMIT_FACTOR * settle + IDLE_REST_SECONDS + 1e-6
            debouncer.finish(batch, changed, 0.5, now)
        now = max(now, until)
        debouncer.add([event(kind)], now)
        waiting.setdefault(kind, now)

    assert all(debouncer.next_due() <= now + SETTLE_LIMIT_FACTOR * settle + IDLE_REST_SECONDS for _ in waiting)


CATALOGUE = probes()
NAMES = {probe.name for probe in CATALOGUE}
OF_THE_LOG = {form.kind for form in sentences.SENTENCES} | {"aer", "gpu_lost"}


def test_every_kind_of_event_has_a_row_and_no_row_is_of_none() -> None:
    """But for what was missed, which is everything."""
    kinds = {events.INTERFACE, events.SOFTWARE_INTERFACE, events.RDMA, events.PCI, events.GPU, events.MODULE}

    assert kinds | OF_THE_LOG == AFFECTED_PROBES.keys()
    assert events.MISSED not in AFFECTED_PROBES


@pytest.mark.parametrize("kind", AFFECTED_PROBES)
def test_every_name_is_a_probe(kind: str) -> None:
    """And is told once."""
    assert set(AFFECTED_PROBES[kind]) <= NAMES
    assert len(AFFECTED_PROBES[kind]) == len(set(AFFECTED_PROBES[kind]))


@pytest.mark.parametrize("kind", [kind for kind, names in AFFECTED_PROBES.items() if names])
def test_with_a_probe_goes_what_stands_in_for_it_and_the_time(kind: str) -> None:
    """A fall-back that was not asked because its probe answered must be asked where it does not any more."""
    read = affected_probes([kind], CATALOGUE)

    assert {probe.name for probe in CATALOGUE if probe.fallback_for in AFFECTED_PROBES[kind]} <= read
    assert set(ALWAYS_READ) <= read
    assert read < NAMES


def test_some_rows() -> None:
    """A cable is pulled: no GPU is asked. A GPU falls off: it is. A container's interface touches nothing."""
    assert {"nvml", "nvidia_smi", "pci", "dmi"}.isdisjoint(affected_probes([events.INTERFACE], CATALOGUE))
    assert {"nvml", "nvidia_smi", "pci", "lspci", "kernel_log"} <= affected_probes(["xid"], CATALOGUE)
    assert frozenset() == affected_probes([events.SOFTWARE_INTERFACE], CATALOGUE)
    assert affected_probes(["xid", events.INTERFACE], CATALOGUE) == affected_probes(
        ["xid"], CATALOGUE
    ) | affected_probes(["link_up"], CATALOGUE)
