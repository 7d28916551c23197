"""Counters between two samples."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.history.window import (
    COUNTERS_OF_PROBE,
    MAXIMUM_VALUE,
    TWO_32,
    WHOLE_SUBJECT,
    CounterDeltas,
    add_window,
    compute_deltas,
    is_count,
    merge_outcomes,
    select_counter_probes,
)
from agent.model.counters import Counted
from agent.model.report import ProbeRun, Report
from probes.catalogue import probes
from probes.probe import Outcome, Status
from tests.agent.history.build import DAY, report
from tests.agent.history.build import counting as machine
from tests.agent.rules.build import nic_id

# Counters of one subject: what moved, what wrapped, and what is not to be believed.


NAMES = st.sampled_from(["a", "b", "c", "link_downed", "out_of_sequence", "symbol_ber_packed", "lifespan"])
VALUES = st.one_of(
    st.integers(-(2**70), 2**70),
    st.integers(0, 300),
    st.integers(TWO_32 - 300, TWO_32 + 300),
    st.integers(2**64 - 3, 2**64 + 3),
)
TABLES = st.dictionaries(NAMES, VALUES, max_size=6)


def port(counters: dict[str, int], wraps: bool = False, twice: frozenset[str] = frozenset()) -> Counted:
    return Counted("port:0000:15:00.0/1", counters, twice, frozenset(counters if wraps else ()))


def test_what_moved_is_listed_and_what_stood_still_is_not() -> None:
    """Neither table holds a counter that did not move."""
    assert CounterDeltas({"a": 3}, {}) == compute_deltas({"a": 4, "b": 9, "c": 0}, port({"a": 7, "b": 9, "c": 0}))


@pytest.mark.parametrize(("name", "end"), sorted(MAXIMUM_VALUE.items()))
def test_a_counter_at_its_maximum_counts_no_further(name: str, end: int) -> None:
    """Legacy counters of InfiniBand stick there, however narrow; one below still counts."""
    at_end = compute_deltas({name: 1}, port({name: end}))

    assert {} == at_end.moved
    assert f"its maximum ({end})" in at_end.gaps[name]
    assert {} == compute_deltas({name: end}, port({name: end})).moved
    assert CounterDeltas({name: end - 2}, {}) == compute_deltas({name: 1}, port({name: end - 1}))


def test_only_ports_have_counters_that_stick() -> None:
    """255 of an interface is a number as any other."""
    assert CounterDeltas({"link_downed": 5}, {}) == compute_deltas(
        {"link_downed": 250}, Counted("netdev:eth0", {"link_downed": 255})
    )


@pytest.mark.parametrize("value", [TWO_32 - 1, 2**64 - 1])
@pytest.mark.parametrize("earlier", [True, False])
def test_all_ones_are_not_compared(value: int, earlier: bool) -> None:
    """They are a maximum or what a dead device reads."""
    before, now = (
        ({"a": value, "b": 1}, {"a": value + 1, "b": 1}) if earlier else ({"a": 1, "b": 1}, {"a": value, "b": 1})
    )
    made = compute_deltas(before, port(now))

    assert {} == made.moved
    assert ["a"] == list(made.gaps)


def test_a_32_bit_counter_goes_on_from_zero() -> None:
    """Where another counter of the port counts on, the fall is no reset."""
    made = compute_deltas({"a": TWO_32 - 10, "b": 5}, port({"a": 20, "b": 6}, wraps=True))

    assert CounterDeltas({"a": 30, "b": 1}, {}) == made


@pytest.mark.parametrize(
    ("before", "now", "wraps"),
    [
        pytest.param({"a": TWO_32 - 10, "b": 5, "c": 5}, {"a": 20, "b": 6, "c": 6}, False, id="not a 32-bit counter"),
        pytest.param({"a": TWO_32 // 2 - 1, "b": 5, "c": 5}, {"a": 20, "b": 6, "c": 6}, True, id="of the lower half"),
        pytest.param({"a": TWO_32 + 9, "b": 5, "c": 5}, {"a": 20, "b": 6, "c": 6}, True, id="wider than 32 bits"),
        pytest.param(
            {"a": TWO_32 // 2 + 9, "b": 5, "c": 5}, {"a": TWO_32 // 2 - 9, "b": 6, "c": 6}, True, id="half the range"
        ),
        pytest.param(
            {"a": TWO_32 - 10, **dict.fromkeys("bcde", 5)},
            {"a": 20, "b": 4, **dict.fromkeys("cde", 6)},
            True,
            id="not alone",
        ),
    ],
)
def test_a_fall_that_may_be_a_reset_is_no_wrap(before: dict[str, int], now: dict[str, int], wraps: bool) -> None:
    """Then the number is not known; that of the others is."""
    made = compute_deltas(before, port(now, wraps))

    assert "a" not in made.moved
    assert "fell from" in made.gaps["a"]
    assert 1 == made.moved["c"]


@pytest.mark.parametrize(
    ("before", "now"),
    [
        pytest.param({"a": 7, "b": 9, "c": 0}, {"a": 0, "b": 1, "c": 3}, id="all fell"),
        pytest.param({"a": 7, "b": 9, "c": 0}, {"a": 8, "b": 1, "c": 3}, id="half of them fell"),
        pytest.param({"a": TWO_32 - 5, "b": 0}, {"a": 3, "b": 3}, id="a wrap with nothing beside it that counts"),
    ],
)
def test_a_reset_takes_the_whole_subject(before: dict[str, int], now: dict[str, int]) -> None:
    """What did not fall is of the new count, too."""
    made = compute_deltas(before, port(now, wraps=True))

    assert {} == made.moved
    assert [WHOLE_SUBJECT] == list(made.gaps)
    assert "restarted" in made.gaps[WHOLE_SUBJECT]


def test_a_counter_that_is_new_or_twice_or_none_is_not_compared() -> None:
    """Each with its reason; the rest is."""
    before = {"a": 1, "twice": 1, "symbol_ber_packed": 1, "lifespan": 10, "outbound_pci_stalled_wr": 3}
    now = {**dict.fromkeys(before, 12), "new": 5}
    made = compute_deltas(before, port(now, twice=frozenset({"twice"})))

    assert {"a": 11} == made.moved
    assert now.keys() - {"a"} == made.gaps.keys()
    assert "not in the earlier sample" == made.gaps["new"]


def test_a_rate_that_falls_resets_nothing() -> None:
    """It is no counter."""
    assert {"a": 1} == compute_deltas({"a": 1, "symbol_ber_packed": 900}, port({"a": 2, "symbol_ber_packed": 1})).moved


def test_nothing_in_common_is_one_gap() -> None:
    """Not a line for each."""
    assert CounterDeltas({}, {WHOLE_SUBJECT: "the earlier sample has none of its counters"}) == compute_deltas(
        {"x": 1}, port({"a": 1, "b": 1})
    )


@given(before=TABLES, now=TABLES, wraps=st.booleans())
def test_no_delta_is_ever_negative_or_absurd(before: dict[str, int], now: dict[str, int], wraps: bool) -> None:
    """A move is either the plain difference or a wrap of less than half the range; what is neither has a reason."""
    made = compute_deltas(before, port(now, wraps))

    for name, move in made.moved.items():
        assert 0 < move
        assert is_count(now[name])
        assert move == now[name] - before[name] or (wraps and now[name] < before[name] and move < TWO_32 // 2)
        assert name not in made.gaps
    for name in now:
        told = name in made.gaps or WHOLE_SUBJECT in made.gaps
        assert told or (name in made.moved) != (now[name] == before[name])


@given(before=st.dictionaries(NAMES, st.integers(1, TWO_32 - 2), min_size=1), after=st.integers(0, 0))
def test_a_reset_never_yields_a_number(before: dict[str, int], after: int) -> None:
    """A driver that was loaded anew: every counter of the port begins at 0."""
    assert {} == compute_deltas(before, port(dict.fromkeys(before, after), wraps=True)).moved


# Two readings in one run.


PORT = f"port:{nic_id(0)}/1"


def outcome(name: str, facts: object = "facts", status: Status = Status.OK) -> Outcome:
    return Outcome(name, status if facts is not None else Status.TIMED_OUT, facts, None, (), 0.1)


def seen(made: Report) -> Report:
    """With probes that answered."""
    return msgspec.structs.replace(made, probes=[ProbeRun(name=name, status="ok") for name in COUNTERS_OF_PROBE])


def test_probes_that_count_run_twice_with_their_fall_backs() -> None:
    """And no other: they cost what they cost."""
    names = {probe.name for probe in select_counter_probes(probes())}

    assert {"kernel", "pci", "nvml", "rdma", "netdev", "lspci", "nvidia_smi", "rdma_tools"} <= names
    assert {"dmi", "cpu", "numa", "modules", "services"}.isdisjoint(names)


def test_the_second_answer_is_the_reports() -> None:
    """Only where both are there: one tool's answer beside another's would be two machines."""
    first = [outcome("kernel", 1), outcome("nvml", 1), outcome("nvidia_smi", None), outcome("dmi", 1)]
    second = [outcome("kernel", 2), outcome("nvml", None), outcome("nvidia_smi", 2)]

    assert [2, 1, None, 1] == [each.facts for each in merge_outcomes(first, second)]


def test_the_window_is_between_the_two() -> None:
    """By the host's own clock, however short."""
    made = add_window(
        report(machine(1)), seen(report(machine(4), DAY + 5)), [outcome(name) for name in COUNTERS_OF_PROBE]
    )

    assert made.counters_window is not None
    assert 5.0 == made.counters_window.seconds
    assert {"out_of_sequence": 3} == made.counters_window.moved[PORT]
    assert {} == made.counters_window.not_compared


def test_a_probe_that_answered_once_says_nothing_of_movement() -> None:
    """The same numbers twice did not stand still."""
    second = [outcome(name, None if name == "rdma" else "facts") for name in COUNTERS_OF_PROBE]
    made = add_window(report(machine(1)), seen(report(machine(4), DAY + 5)), second)

    assert made.counters_window is not None
    assert "rdma did not answer twice" in made.counters_window.not_compared[PORT][WHOLE_SUBJECT]
    assert PORT not in made.counters_window.moved
    assert f"netdev:{nic_id(0)}" in made.counters_window.moved


def test_without_a_clock_there_is_no_window() -> None:
    """The kernel probe failed."""
    for pair in ((report(uptime=None), report()), (report(), report(uptime=None))):
        made = add_window(pair[0], seen(pair[1]), [outcome(name) for name in COUNTERS_OF_PROBE])

        assert made.counters_window is not None
        assert "uptime" in (made.counters_window.reset_reason or "")
