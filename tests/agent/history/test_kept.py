"""The window of counters where a part only was read again."""

from __future__ import annotations

import msgspec

from agent.history.kept import NOT_THERE, carried
from agent.history.state import compared, remember
from agent.model.gpu import Gpu
from agent.model.report import CountersWindow, Report
from tests.agent.history.build import DAY, counting, moved_rail, report
from tests.agent.rules.build import nic_id

PORT = f"port:{nic_id(0)}/1"


def whole() -> Report:
    """A report with the window of an hour in which the rail counted six more."""
    return compared(remember(None, report(counting(1))), report(counting(7), DAY + 3600))


def test_the_window_stays_that_of_the_last_full_reading() -> None:
    """With its time: what was found by it is found again, whatever the counters of the part say."""
    full = whole()
    part = carried(full, report(counting(9), DAY + 3700))
    made = window(full, part)

    assert full.counters_window is not None
    assert {"out_of_sequence": 6} == made.moved[PORT]
    assert 3600.0 == made.seconds
    assert full.counters_window.since == made.since
    assert full.generated_at == made.until
    assert full.counters_window.moved == made.moved
    assert made == window(part, report(counting(9), DAY + 3800))


def test_a_window_that_says_why_there_is_none_stays_too() -> None:
    """And none is none."""
    first = compared(None, report())

    assert first.counters_window is not None
    assert first.counters_window.reset_reason == window(first, report(uptime=DAY + 60)).reset_reason
    assert carried(report(), first).counters_window is None


def test_what_moved_to_another_place_keeps_its_counters() -> None:
    """By what lasts of it."""
    made = window(whole(), report(moved_rail(counting(7), "0000:ff:00.0"), DAY + 3700))

    assert {"out_of_sequence": 6} == made.moved["port:0000:ff:00.0/1"]
    assert PORT not in made.moved
    assert PORT not in made.not_compared


def test_what_was_not_there_is_not_called_quiet() -> None:
    """A GPU that came, one that went, and one that was exchanged for another."""
    full = whole()
    gpus = full.topology.gpus
    gpu = f"gpu:{gpus[0].id}"
    came = window(with_gpus(full, *gpus[1:]), full)
    went = window(full, with_gpus(full, *gpus[1:]))
    other = window(full, with_gpus(full, msgspec.structs.replace(gpus[0], uuid="GPU-other"), *gpus[1:]))

    assert gpu in window(full, full).moved
    assert {"*": NOT_THERE} == came.not_compared[gpu] == other.not_compared[gpu]
    assert gpu not in {*came.moved, *other.moved}
    assert gpu not in {*went.moved, *went.not_compared}


def with_gpus(made: Report, *gpus: Gpu) -> Report:
    return msgspec.structs.replace(made, topology=msgspec.structs.replace(made.topology, gpus=list(gpus)))


def window(full: Report, made: Report) -> CountersWindow:
    found = carried(full, made).counters_window
    assert found is not None
    return found
