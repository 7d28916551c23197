"""Reasons that stand before an end, work beside the steps, and last lines of logs that ended well."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.job.jobs import answer

CANCELLED = "slurmstepd: error: *** STEP 9.0 ON c1 CANCELLED AT 2026-11-03T04:12:30{why} ***"
BROKEN = "c2: solver: cannot write /data/out.7: Read-only file system (fatal error)"
WAITS = (
    "[rank{rank}]:[E1103 04:12:30.1 ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum=2, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600017 "
    "milliseconds before timing out."
)


def steps(first: int, last: int, of: int = 0) -> list[str]:
    """Lines of steps."""
    return [f"step {number}{f'/{of}' if of else ''} loss 2.5 step_time 1.0 s" for number in range(first, last + 1, 10)]


def read(tmp_path: Path, lines: list[str]) -> tuple[str, str]:
    """The id of the first cause, and the headline."""
    log = tmp_path / "run.log"
    log.write_text("\n".join(lines) + "\n")
    found = answer(log)
    return found.causes[0].id if found.causes else "", found.headline


@pytest.mark.parametrize(
    ("lines", "cause"),
    [
        ([*steps(10, 50), BROKEN, CANCELLED.format(why="")], "stated-reason"),
        ([BROKEN, *steps(10, 50), CANCELLED.format(why="")], "cancelled"),  # steps after it
        ([*steps(10, 50), CANCELLED.format(why="")], "cancelled"),
        ([*steps(10, 50), BROKEN, CANCELLED.format(why=" DUE TO TIME LIMIT")], "time-limit"),
    ],
)
def test_a_cancelled_step_follows_from_what_came_before(tmp_path: Path, lines: list[str], cause: str) -> None:
    """And is the cause where nothing came, or who ended it is stated; the only named host is not the writer's."""
    found, headline = read(tmp_path, lines)
    assert found == cause
    assert "on c1" not in headline


@pytest.mark.parametrize(
    ("work", "is_named"),
    [
        ("rank 2: packing samples {share}% (file {share}/100)", True),
        ("rank 2: step {share}/100 loss 2.1", False),
        ("rank 0: packing samples {share}% (file {share}/100)", False),  # it waits with the others
    ],
)
def test_a_rank_at_other_work_is_named(tmp_path: Path, work: str, is_named: bool) -> None:
    """Where the others waited for it, and its work went on."""
    lines = [work.format(share=share) for share in (10, 20, 30, 40)]
    found, headline = read(tmp_path, [*lines, *(WAITS.format(rank=rank) for rank in (0, 1, 3))])
    assert (found == "rank-busy") is is_named
    assert not is_named or "rank 2" in headline


@pytest.mark.parametrize(
    ("seconds", "is_slow"),
    [
        ([300, 310, 305, 302], True),
        ([20, 21, 90, 95, 92], True),  # it became longer
        ([9, 8, 9, 9], False),
        ([90, 20, 21, 20, 20], False),  # the first one alone
    ],
)
def test_checkpoints_that_take_the_time(tmp_path: Path, seconds: list[int], is_slow: bool) -> None:
    """Most of it, or several times as long as at first."""
    lines = []
    for number, value in enumerate(seconds):
        lines += [*steps(number * 100 + 10, number * 100 + 100), f"checkpoint {number} written, took {value}.0 s"]
    assert (read(tmp_path, lines)[0] == "side-work-slow") is is_slow


@pytest.mark.parametrize(
    ("lines", "ended"),
    [
        ([*steps(10, 100, of=100), "model saved to /out"], True),
        ([*steps(10, 50, of=100), "model saved to /out"], False),
        ([*steps(10, 50), "All done."], True),
        ([*steps(10, 50), "evaluation done"], False),
        ([*steps(10, 50), "Run complete.", *steps(60, 70)], False),
    ],
)
def test_the_last_line_shows_a_regular_end(tmp_path: Path, lines: list[str], ended: bool) -> None:
    """That all is done; what is saved shows it at the end of the plan only."""
    assert (read(tmp_path, lines)[1] == "No failure in it") is ended
