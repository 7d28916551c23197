"""When a report arrived, and which clock counts."""

from __future__ import annotations

import os
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from agent.fleet.receipt import Receipt, receive

NOW = datetime(2026, 1, 15, 12, tzinfo=timezone.utc)
HOUR = timedelta(hours=1)


def at(moment: datetime) -> float:
    """As a file's time."""
    return moment.timestamp()


@pytest.mark.parametrize(
    ("observed", "modified", "expected"),
    [
        (NOW - HOUR, at(NOW - HOUR), Receipt(NOW - HOUR, NOW - HOUR, 0.0)),
        (NOW - HOUR, 0.0, Receipt(NOW - HOUR, NOW - HOUR, None)),
        (NOW + 20 * HOUR, at(NOW - HOUR), Receipt(NOW - HOUR, NOW - HOUR, 21 * 3600.0)),
        (NOW + 20 * HOUR, 0.0, Receipt(NOW, NOW, 20 * 3600.0)),
        (NOW + timedelta(minutes=4), 0.0, Receipt(NOW + timedelta(minutes=4), NOW, None)),
        (NOW - 48 * HOUR, at(NOW - HOUR), Receipt(NOW - 48 * HOUR, NOW - HOUR, -47 * 3600.0)),
        (NOW - HOUR, at(NOW + HOUR), Receipt(NOW - HOUR, NOW - HOUR, None)),
        (NOW - HOUR, 1.0, Receipt(NOW - HOUR, NOW - HOUR, None)),
        (NOW - HOUR, 1e30, Receipt(NOW - HOUR, NOW - HOUR, None)),
    ],
    ids=[
        "in step", "a line", "ahead", "a line, ahead", "nearly in step", "behind", "a file of the future",
        "a file without its time", "a file's time beyond the calendar",
    ],
)  # fmt: skip
def test_what_counts(observed: datetime, modified: float, expected: Receipt) -> None:
    assert expected == receive(observed, modified, NOW)


def test_one_clock_that_is_ahead_makes_no_other_node_stale(tmp_path: Path) -> None:
    """Nor is its node deaf: its next report is the newest, too."""
    pytest.importorskip("duckdb")
    from agent.fleet.engines import connect
    from agent.fleet.questions.options import Options
    from agent.fleet.questions.outliers import find_outliers
    from agent.fleet.questions.summary import build_summary
    from tests.agent.fleet.small import report, rows, taken

    now = datetime.now(timezone.utc).replace(microsecond=0)
    drop = tmp_path / "drop"
    drop.mkdir()

    def leave(host: str, age: timedelta, skew: timedelta, driver: str) -> None:
        moment = (now - age + skew).isoformat()
        path = drop / f"{host}-{age}.json"
        path.write_bytes(report(host, driver=driver, generated_at=moment, observed_at=moment))
        os.utime(path, (at(now - age),) * 2)

    skews = {"ahead": 20 * HOUR, "behind": -48 * HOUR}
    for host in ("a", "b", "c", "d", "e", "f", "g", "ahead", "behind"):
        leave(host, 2 * HOUR, skews.get(host, timedelta()), "1")
    taken(tmp_path / "d", drop)
    for host in ("a", "b", "c", "d", "e", "f", "ahead", "behind"):
        leave(host, HOUR, skews.get(host, timedelta()), "2")
    taken(tmp_path / "d", drop)

    assert [("2",)] * 8 == rows(tmp_path / "d", "host", "driver", "node != 'g'")
    engine = connect(None, str(tmp_path / "d"))
    try:
        naive = now.replace(tzinfo=None)
        answer = build_summary(engine, Options(stale_after_seconds=5400, now=naive))
        assert (1, "g", False) == (answer.stale, answer.stale_hosts, answer.silent)
        later = build_summary(engine, Options(stale_after_seconds=5400, now=naive + 24 * HOUR))
        assert (0, True) == (later.stale, later.silent)
        clocks = [outlier for outlier in find_outliers(engine).outliers if outlier.attribute == "clock"]
        assert [("ahead", "20 h ahead", 8, 9)] == [
            (clock.hosts, clock.value, clock.usual_count, clock.of) for clock in clocks
        ]
    finally:
        engine.close()
