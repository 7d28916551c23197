"""Samples, what is kept of them, and the window between two."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.history.state import add_history, update_state
from agent.history.window import (
    REPLACED_OR_GONE,
    ROW_LIMIT,
    WHOLE_SUBJECT,
    WINDOW_SECONDS,
    CounterSample,
    carry_window,
    compare_outputs,
    compare_samples,
    make_window,
    select_samples,
    take_sample,
)
from agent.model.gpu import Gpu
from agent.model.report import CountersWindow, Report
from tests.agent.history.build import DAY, counting, moved_rail, report
from tests.agent.rules.build import changed_gpu, changed_netdev, changed_nic, function, gpu_id, nic_id, topology

RAIL, GPU = nic_id(0), gpu_id(0)


def taken(of: Report) -> CounterSample:
    result = take_sample(of)
    assert result is not None
    return result


def test_every_kind_of_subject_is_compared() -> None:
    """PCI, GPU, port and interface, each under the subject of its findings; what stood still is in no table."""
    result = compare_samples(taken(report(counting(5))), report(counting(8), DAY + 3600))

    assert 3600.0 == result.seconds
    assert {} == result.not_compared
    assert {
        f"pci:{RAIL}": {"correctable.RxErr": 3},
        **{f"gpu:{gpu_id(n)}": {"replays": 3} for n in range(4)},
        f"port:{RAIL}/1": {"out_of_sequence": 3},
        f"netdev:{RAIL}": {"rx_crc_errors": 3},
    } == result.moved


def test_a_device_that_moved_is_compared_with_itself() -> None:
    """By its GUID: port and interface come along, and the PCI function, which has no serial, is not compared."""
    result = compare_samples(taken(report(counting(5))), report(moved_rail(counting(8), "0000:99:00.0"), DAY + 3600))

    assert {"out_of_sequence": 3} == result.moved["port:0000:99:00.0/1"]
    assert {"rx_crc_errors": 3} == result.moved["netdev:0000:99:00.0"]
    assert [WHOLE_SUBJECT] == list(result.not_compared["pci:0000:99:00.0"])


def test_another_device_in_the_same_place_is_not_compared() -> None:
    """A GPU that was exchanged counts for itself."""
    result = compare_samples(
        taken(report(counting(5))), report(changed_gpu(counting(8), 0, uuid="GPU-other"), DAY + 3600)
    )

    assert "another device" in result.not_compared[f"gpu:{GPU}"][WHOLE_SUBJECT]
    assert f"gpu:{GPU}" not in result.moved


def test_an_identity_that_is_not_told_now_leaves_the_place() -> None:
    """The driver did not give the UUID this time: the GPU at that address is still that GPU."""
    result = compare_samples(taken(report(counting(5))), report(changed_gpu(counting(8), 0, uuid=None), DAY + 3600))

    assert {"replays": 3} == result.moved[f"gpu:{GPU}"]


def test_a_borrowed_mac_does_not_make_two_one() -> None:
    """Members of a bond have one MAC: their places tell them apart."""
    bond = changed_netdev(changed_netdev(counting(8), 0, mac="02:aa", master="bond0"), 1, mac="02:aa", master="bond0")
    result = compare_samples(taken(report(counting(5))), report(bond, DAY + 3600))

    assert {"rx_crc_errors": 3} == result.moved[f"netdev:{RAIL}"]


def test_a_subject_that_is_new_is_not_compared() -> None:
    """It may have counted for years."""
    bare = topology(counting(5), nics=[])
    result = compare_samples(taken(report(bare)), report(counting(8), DAY + 3600))

    assert [WHOLE_SUBJECT] == list(result.not_compared[f"port:{RAIL}/1"])


def test_mlx5_wraps_and_a_name_that_stands_twice_is_not_compared() -> None:
    """What the report knows of a counter reaches the comparison."""
    case = counting(2**32 - 5)
    (port,) = case.topology.nics[0].ports
    twice = msgspec.structs.replace(port, hw_counters={"out_of_sequence": 3, "port_rcv_data": 2})
    base = taken(report(function(case, RAIL, aer=None)))

    wrapped = compare_samples(base, report(changed_nic(counting(7), 0, driver="mlx5_core"), DAY + 60))
    other = compare_samples(base, report(changed_nic(counting(7), 0, driver="bnxt_re"), DAY + 60))
    clash = compare_samples(taken(report(counting(1))), report(changed_nic(counting(7), 0, ports=[twice]), DAY + 60))

    assert {"out_of_sequence": 12} == wrapped.moved[f"port:{RAIL}/1"]
    assert f"port:{RAIL}/1" not in other.moved
    assert "have this name" in clash.not_compared[f"port:{RAIL}/1"]["port_rcv_data"]


def test_a_window_has_a_limit() -> None:
    """The report must stay small enough to be kept; what is left out is said to be."""
    many = {f"c{n}": 1 for n in range(ROW_LIMIT - 20)}
    before, now = (
        changed_netdev(changed_netdev(counting(), 0, counters=row), 1, counters=row)
        for row in (many, dict.fromkeys(many, 2))
    )
    of_runs = compare_samples(taken(report(before)), report(now, DAY + 60))
    of_outputs = compare_outputs(report(before), [(report(now), 60)]).counters_window

    assert of_outputs is not None
    for result in (of_runs, of_outputs):
        assert ROW_LIMIT >= sum(map(len, result.moved.values())) + sum(map(len, result.not_compared.values()))
        assert "more counters" in result.not_compared[f"netdev:{nic_id(1)}"][WHOLE_SUBJECT]


def test_hostile_numbers_are_not_kept() -> None:
    """A counter below 0 or above 64 bits would not be written."""
    result = taken(report(changed_gpu(counting(), 0, pcie_counters={"a": -1, "b": 2**64, "c": 3})))

    assert {"c": 3} == result.counters[f"gpu:{GPU}"]


@pytest.mark.parametrize(
    ("uptimes", "now", "base"),
    [
        ([1000.0], 1060.0, 1000.0),
        ([1000.0], 1059.9, None),
        ([1000.0, 2000.0], 2059.0, 1000.0),
        ([1000.0, 2000.0], 2060.0, 2000.0),
        ([], 2000.0, None),
    ],
)
def test_the_window_begins_at_the_newest_sample_that_is_old_enough(
    uptimes: list[float], now: float, base: float | None
) -> None:
    """A minute at least: less says little of any rate."""
    samples = [taken(report(uptime=up)) for up in uptimes]
    result = make_window(samples, report(uptime=now))

    assert (now - base if base else None) == result.seconds
    assert (base is None) == bool(result.reset_reason)


def test_a_source_that_knows_no_uptime_has_no_window() -> None:
    """The wall clock jumps."""
    assert take_sample(report(uptime=None)) is None
    assert "uptime" in (make_window([taken(report())], report(uptime=None)).reset_reason or "")


@given(st.lists(st.floats(0.1, 500.0), min_size=1, max_size=40))
def test_few_samples_serve_runs_of_any_frequency(pauses: list[float]) -> None:
    """Never more than four; once the runs span two windows there is one to compare with, and never a stale one."""
    samples: list[CounterSample] = []
    up = first = 1000.0
    for pause in pauses:
        up += pause
        result = CounterSample(uptime_seconds=up, at="", counters={}, identity={})
        ready = [sample.uptime_seconds for sample in samples if up - sample.uptime_seconds >= WINDOW_SECONDS]
        if up - pause - (first + pauses[0]) >= WINDOW_SECONDS:
            assert ready
            assert up - max(ready) <= 2 * WINDOW_SECONDS + max(pauses)
        samples = select_samples(samples, result)

        assert samples[-1] is result
        assert len(samples) <= 4


def test_samples_of_a_later_time_are_dropped() -> None:
    """A clock that went back."""
    samples = [taken(report(uptime=up)) for up in (1000.0, 5000.0)]

    assert [1000.0, 2000.0] == [
        select_sample.uptime_seconds for select_sample in select_samples(samples, taken(report(uptime=2000.0)))
    ]


PORT = f"port:{nic_id(0)}/1"


def whole() -> Report:
    """A report with the window of an hour in which the rail counted six more."""
    return add_history(update_state(None, report(counting(1))), report(counting(7), DAY + 3600))


def test_the_window_stays_that_of_the_last_full_reading() -> None:
    """With its time: what was found by it is found again, whatever the counters of the part say."""
    full = whole()
    part = carry_window(full, report(counting(9), DAY + 3700))
    result = carried_window(full, part)

    assert full.counters_window is not None
    assert {"out_of_sequence": 6} == result.moved[PORT]
    assert 3600.0 == result.seconds
    assert full.counters_window.since == result.since
    assert full.generated_at == result.until
    assert full.counters_window.moved == result.moved
    assert result == carried_window(part, report(counting(9), DAY + 3800))


def test_a_window_that_says_why_there_is_none_stays_too() -> None:
    """And none is none."""
    first = add_history(None, report())

    assert first.counters_window is not None
    assert first.counters_window.reset_reason == carried_window(first, report(uptime=DAY + 60)).reset_reason
    assert carry_window(report(), first).counters_window is None


def test_what_moved_to_another_place_keeps_its_counters() -> None:
    """By what lasts of it."""
    result = carried_window(whole(), report(moved_rail(counting(7), "0000:ff:00.0"), DAY + 3700))

    assert {"out_of_sequence": 6} == result.moved["port:0000:ff:00.0/1"]
    assert PORT not in result.moved
    assert PORT not in result.not_compared


def test_what_was_not_there_is_not_called_quiet() -> None:
    """A GPU that came, one that went, and one that was exchanged for another."""
    full = whole()
    gpus = full.topology.gpus
    gpu = f"gpu:{gpus[0].id}"
    came = carried_window(with_gpus(full, *gpus[1:]), full)
    went = carried_window(full, with_gpus(full, *gpus[1:]))
    other = carried_window(full, with_gpus(full, msgspec.structs.replace(gpus[0], uuid="GPU-other"), *gpus[1:]))

    assert gpu in carried_window(full, full).moved
    assert {"*": REPLACED_OR_GONE} == came.not_compared[gpu] == other.not_compared[gpu]
    assert gpu not in {*came.moved, *other.moved}
    assert gpu not in {*went.moved, *went.not_compared}


def with_gpus(made: Report, *gpus: Gpu) -> Report:
    return msgspec.structs.replace(made, topology=msgspec.structs.replace(made.topology, gpus=list(gpus)))


def carried_window(full: Report, made: Report) -> CountersWindow:
    result = carry_window(full, made).counters_window
    assert result is not None
    return result


@pytest.mark.parametrize(("waits", "seconds"), [((60, 60), 120), ((60, None), None), ((60,), 60)])
def test_the_last_of_several_outputs_is_compared_over_the_whole_time(
    waits: tuple[int | None, ...], seconds: int | None
) -> None:
    """Each states how long after the one before it: what grew since the first took all of it."""
    outputs = [report(counting(5 + number)) for number in range(len(waits) + 1)]
    window = compare_outputs(outputs[0], list(zip(outputs[1:], waits, strict=True))).counters_window

    assert window is not None
    assert seconds == window.seconds
    assert {len(waits)} == {value for row in window.moved.values() for value in row.values()}
