"""A run: what comes while it is under way, what it has no time for, and what is no report."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.ship.payload import Payload
from agent.ship.target import SendResult, SendStatus
from tests.agent.ship.servers import (
    Down,
    Run,
    Up,
    report,
)


@pytest.mark.parametrize("up", [True, False])
def test_a_report_that_comes_while_we_run_is_taken_too(up: bool, run: Run) -> None:
    """A scan that ends while the service runs starts it no second time."""
    path = Path(run.file(report(0), "0.json"))

    class Meanwhile(Down):
        def hand_over(self, payload: Payload, until: float) -> SendResult:
            if len(self.payloads) < 2:
                path.with_suffix(".new").write_bytes(report(len(self.payloads) + 1))
                path.with_suffix(".new").replace(path)
            return super().hand_over(payload, until)

    target = Meanwhile(SendResult(SendStatus.ACCEPTED) if up else None)
    result = run.ship(target, report(0))

    assert ((3, 0) if up else (0, 2)) == (result.accepted, result.waiting)
    assert (3 if up else 1) == len(target.payloads)


def test_a_report_that_had_no_room_and_is_replaced_is_counted(run: Run) -> None:
    """It was seen, and it is gone: that is told."""
    small = run._replace(count=1)
    small.ship(Down(), report(5, "error"))
    path = Path(run.file(report(0), "0.json"))

    class Meanwhile(Down):
        def hand_over(self, payload: Payload, until: float) -> SendResult:
            path.write_bytes(report(9, "critical"))
            return super().hand_over(payload, until)

    result = small.ship(Meanwhile(), report(0))

    assert {"healthy": 1, "not_judged": 0, "with_findings": 1, "set_aside": 0} == result.dropped
    assert ["critical"] == [name.split("_")[1] for name in small.waiting]


def test_many_reports_and_little_time(run: Run) -> None:
    """What is not reached stands where it was named, and is told; nothing of it is counted as dropped."""
    result = run.ship(Down(), *[report(number) for number in range(20)], seconds=0)

    assert (1, 19, False) == (result.waiting, result.left, result.all_handed_over)
    assert 0 == sum(result.dropped.values())
    full = run._replace(count=1)
    result = full.ship(Up(), *[report(number) for number in range(30, 33)])
    assert (4, True) == (result.accepted, result.all_handed_over)


def test_no_target_keeps_everything(run: Run) -> None:
    """A secret that is missing today."""
    assert (0, 1) == run.ship(None, report())[:2]


def test_a_file_that_is_no_report_keeps_nothing_back(run: Run) -> None:
    """It is told; the others go."""
    result = run.ship(Up(), report(), b"{}", report(1))

    assert 2 == result.accepted
    assert ["its schema"] == [part for line in result.bad for part in ["its schema"] if part in line]
