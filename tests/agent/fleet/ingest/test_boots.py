"""Within one boot the order of a node's reports is by uptime, whatever its clock shows."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from agent.fleet.ingest.boots import BootTime, order_by_uptime
from agent.fleet.ingest.spill import Entry
from tests.agent.fleet.small import START, as_of, at, history, report, rows, take

SECOND = 1_000_000


def entry(uptime: float | None, observed: float, boot: str | None = "b") -> Entry:
    """A report at seconds of uptime and of the node's clock."""
    return Entry("n", round(observed * SECOND), 0, f"{uptime} {observed}", [], [], "", boot, uptime)


def moments(entries: list[Entry], newest: BootTime | None = None) -> dict[float | None, float]:
    """Uptime -> the moment that counts, in seconds."""
    return {row.uptime_seconds: row.observed / SECOND for row in order_by_uptime(entries, newest)}


def test_clocks_that_go_on_stay_as_they_are() -> None:
    given = [entry(20, 120), entry(10, 110), entry(30, 130)]
    assert all(not row.corrected for row in order_by_uptime(given, BootTime("b", 5, 105 * SECOND)))


def test_a_clock_that_is_set_back_counts_on_by_uptime() -> None:
    assert {10: 110, 20: 120, 30: 130} == moments([entry(30, 11), entry(10, 110), entry(20, 5)])
    assert {30: 130} == moments([entry(30, 7)], BootTime("b", 10, 110 * SECOND))
    assert {30: 7} == moments([entry(30, 7)], BootTime("other", 10, 110 * SECOND))


def test_a_report_of_before_stays_before() -> None:
    newest = BootTime("b", 30, 130 * SECOND)
    assert {20: 119} == moments([entry(20, 119)], newest)
    assert {20: 120} == moments([entry(20, 999)], newest)
    assert {30: 7} == moments([entry(30, 7)], newest)  # the same evidence, of a clock that was read wrong


@pytest.mark.parametrize("given", [entry(None, 7), entry(30, 7, None)])
def test_without_boot_or_uptime_the_clock_counts(given: Entry) -> None:
    assert [given] == order_by_uptime([given], BootTime("b", 10, 110 * SECOND))


def test_less_than_a_microsecond_is_an_order() -> None:
    newest = BootTime("b", 10.0, 110 * SECOND)
    (late,), (early,) = (
        order_by_uptime([entry(up, clock)], newest) for up, clock in ((10 + 1e-9, 3), (10 - 1e-9, 200))
    )
    assert early.observed < newest.moment < late.observed


def observed(uptime_hours: float, clock: float, driver: str) -> bytes:
    """A report of one boot."""
    node = {"hostname": "gpu1", "boot_id": "b", "uptime_seconds": uptime_hours * 3600}
    return report(hour=clock, driver=driver, node=node)


@pytest.mark.parametrize("together", [True, False])
def test_a_node_whose_clock_is_set_back_has_its_newest_state(tmp_path: Path, together: bool) -> None:
    given = [observed(1, 10, "570.1"), observed(2, 3, "570.2"), observed(4, 5, "570.3")]
    counted = [take(tmp_path / "d", *given)] if together else [take(tmp_path / "d", one) for one in given]

    assert 0 == sum(one.late for one in counted)
    (row,) = rows(tmp_path / "d", "host", "driver, observed_at, received_at >= observed_at")
    assert ("570.3", at(13), True) == (row[0], row[1].strftime("%Y-%m-%dT%H:%M:%SZ"), row[2])
    assert 3 == len(history(tmp_path / "d", "host", "driver"))
    assert "570.2" in as_of(tmp_path / "d", "host", START + timedelta(hours=11.5))[0]
