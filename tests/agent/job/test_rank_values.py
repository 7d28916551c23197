"""Values that a log lists for each rank: reports of stragglers, sections, tables of ranks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.job.jobs import answer, first

NORMAL = (0.98, 0.97, 1.0, 0.96, 0.99, 0.98, 0.97, 0.99)


def scores(slow: dict[int, float], heading: str = "GPU relative performance") -> str:
    """Of NVRx: a score of each rank, with its node."""
    rows = [f"  Rank={rank} Node=gpu-{rank // 4} Score={slow.get(rank, NORMAL[rank]):.2f}" for rank in range(8)]
    return "\n".join([f"bridge.NVRxStragglerDetection: {heading}:", *rows, ""])


def sections(slow: float, name: str = "forward_backward") -> str:
    """Of a straggler report: milliseconds of each rank."""
    times = {rank: slow if rank == 2 else 812.4 + rank for rank in range(8)}
    rows = [f"[default0]:    Rank {rank}: {time}ms" for rank, time in times.items()]
    return "\n".join([f"[default0]:  {name}:", "[default0]:    Min: 812.4ms, Max: 999.9ms", *rows, ""])


def table(slow: float, column: str = "all-reduce GB/s", separator: str = "|") -> str:
    """A row for each rank."""
    rows = [
        f"{separator} ".join(
            (f" {rank} ", f"gpu-{rank // 4}", f"{690 + rank}.5", f"{slow if rank == 6 else 350 + rank}")
        )
        for rank in range(8)
    ]
    return "\n".join([f" rank {separator} host {separator} gemm TFLOP/s {separator} {column}", *rows, ""])


def steps_of_ranks(slow: dict[int, float], name: str = "fwd_time") -> str:
    """What each rank prints of its steps."""
    return "".join(
        f"[rank{rank}]: step {step} | {name}: {slow.get(rank, 0.4 + rank / 1000):.3f} s | loss 2.1\n"
        for step in range(20, 26)
        for rank in range(8)
    )


def test_times_that_each_rank_prints_itself(tmp_path: Path) -> None:
    """The prefix of a line is its rank."""
    cause = first(answer(tmp_path, a__log=steps_of_ranks({6: 0.71})))

    assert ("rank-slower", [6]) == (cause.id, cause.at_fault.ranks)
    assert "fwd_time 0.71 s, the other 7 about 0.403 s" in cause.summary


def test_the_host_of_a_slow_rank_may_be_the_number_of_a_container(tmp_path: Path) -> None:
    """It begins with a digit; a plain number is no host."""
    ids = scores({5: 0.58}).replace("gpu-1", "9fd01be77b10").replace("gpu-0", "22ca9bdcfc9a")
    numbers = scores({5: 0.58}).replace("gpu-", "")

    assert ["9fd01be77b10", None] == [first(answer(tmp_path, a__log=log)).at_fault.host for log in (ids, numbers)]


def test_a_score_below_all_others(tmp_path: Path) -> None:
    """Its rank and host are named, with the usual score."""
    cause = first(answer(tmp_path, a__log=scores({5: 0.58})))

    assert ("rank-slower", "rank", "medium", "gpu-1") == (
        cause.id, cause.at_fault.kind, cause.confidence, cause.at_fault.host,
    )  # fmt: skip
    assert "GPU relative performance: Score 0.58, the other 7 about 0.98" in cause.summary


def test_a_section_that_takes_longer_on_one_rank(tmp_path: Path) -> None:
    """A stage of a pipeline may have more work: low confidence, and the step that settles it."""
    cause = first(answer(tmp_path, a__log=sections(1421.8)))

    assert ("low", [2]) == (cause.confidence, cause.at_fault.ranks)
    assert "forward_backward 1422 ms" in cause.summary
    assert any("stage of a pipeline" in step for step in cause.next)


@pytest.mark.parametrize("separator", ["|", ","])
def test_a_table_of_ranks(tmp_path: Path, separator: str) -> None:
    """The column that differs separates the network from the GPU."""
    cause = first(answer(tmp_path, a__csv=table(121, separator=separator)))

    assert ([6], "gpu-1") == (cause.at_fault.ranks, cause.at_fault.host)
    assert "all-reduce GB/s 121, the other 7 about 353; its other values are as theirs" in cause.summary
    assert "cable" in cause.next[0]


def phases(slow: float, waits: float = 2900.0, column: str = "data") -> str:
    """A table of milliseconds in columns of spaces."""
    rows = [
        f" {rank:>2}  gpu-{rank // 4}  {slow if rank == 6 else 4.0 + rank / 10:>7.1f} 310.{rank}  "
        f"{waits if rank == 6 else 2900 + rank:>7.1f}"
        for rank in range(8)
    ]
    return "\n".join([f"rank  host    {column}    fwd   allreduce", *rows, ""])


def test_a_table_in_columns_of_spaces(tmp_path: Path) -> None:
    """Where the others wait for that rank in a transfer, it is more sure."""
    cause = first(answer(tmp_path, a__log=phases(2688.0, 219.5)))

    assert ("rank-slower", "medium", [6]) == (cause.id, cause.confidence, cause.at_fault.ranks)
    assert "data 2688, the other 7 about 4.3; they wait for it: allreduce 219.5" in cause.summary
    assert "data loader" in cause.next[0]
    assert "low" == first(answer(tmp_path, a__log=phases(2688.0))).confidence


def test_values_that_have_a_unit_and_no_sign(tmp_path: Path) -> None:
    """A name, a number, a unit; the host may stand before them."""
    times = {rank: 4633.1 if rank == 5 else 1560.0 + rank for rank in range(8)}
    log = "".join(f"rank {r:>3} host gpu-{r // 4} gpu {r % 4}: forward {t} ms  temp 66C\n" for r, t in times.items())
    cause = first(answer(tmp_path, a__log=log))

    assert ("rank-slower", [5], "gpu-1") == (cause.id, cause.at_fault.ranks, cause.at_fault.host)
    assert "forward 4633 ms, the other 7 about 1563 ms" in cause.summary


@pytest.mark.parametrize(
    "log",
    [
        "".join(
            f"[rank{r}]: step {s} time: {9.0 if (s, r) == (0, 3) else 1 + r / 100:.2f} s\n"
            for s in range(3)
            for r in range(8)
        ),
        phases(4.5),
        phases(12.0),  # small beside the step
        phases(2688.0, column="loss"),
        phases(4.5, 219.5),  # it comes last, and no value shows why
        scores({}),
        scores({5: 0.9}),  # not far enough
        scores({rank: 0.5 + rank / 30 for rank in range(8)}),  # all differ
        scores({1: 0.5, 3: 0.5, 5: 0.5}),  # no exception
        scores({5: 0.58}) + scores({}) + scores({}),  # once in three reports
        sections(820.0),
        sections(1421.8, "allreduce_wait"),  # others come late
        table(121, "loss"),  # which way is better is not known
        scores({5: 0.58}, "evaluation") + "iteration 5 | loss 2.1\n",
        steps_of_ranks({6: 0.7}, "sync_time"),
    ],
)
def test_values_of_no_slow_rank(tmp_path: Path, log: str) -> None:
    """None is named."""
    assert [] == answer(tmp_path, a__log=log).causes


def extremes(slow: float) -> str:
    """Of a straggler detector: the least and the most of all ranks, and which rank has it."""
    form = "iter {} | MnRtt/Rnk: 801.1ms/{} | MxRtt/Rnk: {}ms/6 | MnClk/Rnk: {}MHz/6 | MxClk/Rnk: 1980.0MHz/1 |\n"
    return "".join(form.format(step, step % 5, slow + step, 990 if slow > 1000 else 1950) for step in range(1, 5))


def test_the_rank_that_is_the_extreme_of_most_reports(tmp_path: Path) -> None:
    cause = first(answer(tmp_path, a__log=extremes(1590.0)))

    assert ("rank-slower", [6]) == (cause.id, cause.at_fault.ranks)
    assert "Clk 990MHz (most of others 1980)" in cause.summary


def test_extremes_that_are_near_are_none(tmp_path: Path) -> None:
    assert not answer(tmp_path, a__log=extremes(812.0)).causes
