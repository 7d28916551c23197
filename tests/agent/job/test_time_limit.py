"""`job` ends in time whatever it is given, and states what it did not read; silence there accuses no rank."""

from __future__ import annotations

import gzip
import os
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from agent.cli.errors import CliError
from agent.cli.job import JobOptions, answer_job
from agent.cli.job_inputs import choose_limit, end_parts
from agent.job import files
from agent.job.evidence import Evidence
from agent.job.files import Given
from agent.job.lines import WHOLE, Part
from agent.model.job_answer import JobFile
from tests.agent.job.jobs import answer, begin, steps, warn

LIMITED = JobOptions([], timeout=60.0)
END = "job finished\n" + warn(1, "NET/IB : mlx5_1:1 Got async error event: port error", at="04:11:31")
LONG = begin(4, 2) + steps(45_000) + END
STARTS = begin(4, done=False)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Let each look at the clock cost seconds: half of the 60 are for the first reading."""

    def begin_at(seconds: float) -> None:
        ticks: Iterator[float] = (time.monotonic() + number * seconds for number in count())
        monkeypatch.setattr(files, "time", SimpleNamespace(monotonic=lambda: next(ticks)))

    return begin_at


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_log_is_read_until_the_limit(
    tmp_path: Path, slow: Callable[[float], None], pack: Callable[[bytes], bytes]
) -> None:
    """Of what comes after it nothing is claimed, not even that the job ended."""
    whole = answer(tmp_path, LIMITED, log=pack(LONG.encode()))
    assert ("failed", None) == (whole.job.ended, whole.source.files[0].reason)
    slow(20)
    cut = answer(tmp_path, LIMITED)

    (file,) = cut.source.files
    assert "NCCL log" == file.read_as
    assert f"only the first {file.lines} lines were read: the time limit of 60 s was reached" == file.reason
    assert 0 < (file.lines or 0) < LONG.count("\n")
    assert ("unknown", []) == (cut.job.ended, cut.causes)
    assert (
        "Not known from these files: files were not read whole (time limit 60 s; --timeout sets another)"
        == cut.headline
    )


def test_a_regular_end_does_not_count_where_more_is_unread(tmp_path: Path, slow: Callable[[float], None]) -> None:
    """An error may come in the other file."""
    log = begin(2) + steps() + "Finished training\n"
    assert "well" == answer(tmp_path, LIMITED, a=log, b=steps()).job.ended
    slow(40)
    cut = answer(tmp_path, LIMITED)
    assert ["NCCL log", None] == [file.read_as for file in cut.source.files]
    assert "unknown" == cut.job.ended
    assert "files were not read whole, 1 of 2 not at all" in cut.headline


def test_no_rank_is_accused_of_lines_that_were_not_read(tmp_path: Path, slow: Callable[[float], None]) -> None:
    """Rank 3 began in a file that the limit left out; without that file it did not."""
    lines = STARTS.splitlines(keepends=True)
    others, last = ("".join(line for line in lines if ("gpu1:103:" in line) == own) for own in (False, True))
    (alone := tmp_path / "alone").mkdir()
    assert ["rank-not-started"] == [cause.id for cause in answer(alone, LIMITED, a=others).causes]
    (both := tmp_path / "both").mkdir()
    slow(40)
    cut = answer(both, LIMITED, a=others, b=last)
    assert ("not read: the time limit of 60 s was reached", []) == (cut.source.files[1].reason, cut.causes)


@pytest.mark.timeout(20)
def test_a_pipe_without_a_writer_is_given_up(tmp_path: Path) -> None:
    """And one whose writer writes no more."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CliError, match=r"pipe: not read: the time limit of 0.2 s was reached"):
        answer_job([str(tmp_path / "pipe")], JobOptions([], timeout=0.2))
    writer = os.open(tmp_path / "pipe", os.O_RDWR)
    os.write(writer, b"x" * 100)
    with pytest.raises(CliError, match=r"time limit of 0.2 s"):
        answer_job([str(tmp_path / "pipe")], JobOptions([], timeout=0.2))
    os.close(writer)


def test_jobs_end_where_the_first_reading_did() -> None:
    """What was not read when they were told apart is of no one of them."""
    parts: dict[str, Part | None] = {"a": Part(5, 9), "b": WHOLE, "c": None, "d": Part(3, 1 << 60)}
    first = Evidence()
    assert parts is end_parts(parts, first)
    first.limit_seconds = 1.0
    first.files = [JobFile(name="b", lines=7), *(JobFile(name=name, lines=7, reason="cut") for name in "ad")]
    assert {"a": Part(5, 7), "b": WHOLE, "c": None, "d": Part(3, 7)} == end_parts(parts, first)


def test_the_limit_grows_with_the_files_unless_it_is_given() -> None:
    """30 seconds, and one for each 4 MiB."""
    large = [Given("a", "a", 40 << 20), Given("b", "b", 80 << 20)]
    assert (30.0, 60.0, 5.0) == (choose_limit([], None), choose_limit(large, None), choose_limit(large, 5.0))
