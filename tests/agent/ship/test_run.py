"""A run: what comes while it is under way, what it has no time for, and what is no report."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.ship.answer import Answer, Kind
from agent.ship.parcel import Parcel
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
        def hand_over(self, parcel: Parcel, until: float) -> Answer:
            if len(self.asked) < 2:
                path.with_suffix(".new").write_bytes(report(len(self.asked) + 1))
                path.with_suffix(".new").replace(path)
            return super().hand_over(parcel, until)

    target = Meanwhile(Answer(Kind.TAKEN) if up else None)
    made = run.ship(target, report(0))

    assert ((3, 0) if up else (0, 2)) == (made.taken, made.waiting)
    assert (3 if up else 1) == len(target.asked)


def test_a_report_that_had_no_room_and_is_replaced_is_counted(run: Run) -> None:
    """It was seen, and it is gone: that is told."""
    small = run._replace(count=1)
    small.ship(Down(), report(5, "error"))
    path = Path(run.file(report(0), "0.json"))

    class Meanwhile(Down):
        def hand_over(self, parcel: Parcel, until: float) -> Answer:
            path.write_bytes(report(9, "critical"))
            return super().hand_over(parcel, until)

    made = small.ship(Meanwhile(), report(0))

    assert {"healthy": 1, "not_judged": 0, "with_findings": 1, "set_aside": 0} == made.dropped
    assert ["critical"] == [name.split("_")[1] for name in small.waiting]


def test_many_reports_and_little_time(run: Run) -> None:
    """What is not reached stands where it was named, and is told; nothing of it is counted as dropped."""
    made = run.ship(Down(), *[report(number) for number in range(20)], seconds=0)

    assert (1, 19, False) == (made.waiting, made.left, made.all_gone)
    assert 0 == sum(made.dropped.values())
    full = run._replace(count=1)
    made = full.ship(Up(), *[report(number) for number in range(30, 33)])
    assert (4, True) == (made.taken, made.all_gone)


def test_no_target_keeps_everything(run: Run) -> None:
    """A secret that is missing today."""
    assert (0, 1) == run.ship(None, report())[:2]


def test_a_file_that_is_no_report_keeps_nothing_back(run: Run) -> None:
    """It is told; the others go."""
    made = run.ship(Up(), report(), b"{}", report(1))

    assert 2 == made.taken
    assert ["its schema"] == [part for line in made.bad for part in ["its schema"] if part in line]
