"""Several jobs in one file or folder: each is answered, and their lines are not mixed."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from agent.cli.main import run
from tests.agent.job.jobs import answer, begin, first, steps, warn

FLAP = "NET/IB : mlx5_1:1 Got async error event: port error"
ECC = "Cuda failure 214 'uncorrectable ECC error encountered'"


def job(number: int, failure: str | None, done: bool = True) -> str:
    """Two ranks on one host: other processes and another communicator than those of other numbers."""
    text = begin(2, done=done).replace("commId 0x9", f"commId 0x9{number}") + steps()
    text += warn(1, failure) if failure else "Training complete\n"
    for rank in (0, 1):
        text = text.replace(f"gpu1:{100 + rank}:{200 + rank}", f"gpu1:{1000 * number + rank}:{200 + rank}")
    return text


@pytest.mark.parametrize(
    ("parts", "cause", "headlines"),
    [
        ((FLAP, None), "port-down", ["No failure in it"]),
        ((None, ECC), "cuda-214", ["No failure in it"]),
        ((FLAP, ECC), "cuda-214", ["Failed: port 1 of mlx5_1 on gpu1 (rank 1) went down during the job"]),
        ((None, None), None, ["No failure in it"]),
    ],
)
def test_a_restart_in_one_log(
    tmp_path: Path, parts: tuple[str | None, ...], cause: str | None, headlines: list[str]
) -> None:
    """The last that failed is answered, the others are in short."""
    texts = [job(number, part) for number, part in enumerate(parts, 1)]
    result = answer(tmp_path, log="".join(texts))
    chosen = 0 if parts[1] is None and parts[0] is not None else 1
    lines = texts[0].count("\n")
    ends = [f"log, lines 1 to {lines + 1}", f"log, lines {lines + 2} to the end"]  # begin() starts with a banner

    assert cause == (result.causes[0].id if result.causes else None)
    assert headlines == [other.headline[: len(headlines[0])] for other in result.other_jobs]
    assert [ends[chosen]] == result.where
    assert [[ends[1 - chosen]]] == [other.where for other in result.other_jobs]
    assert 2 == result.job.ranks


def test_evidence_of_one_job_is_not_of_the_other(tmp_path: Path) -> None:
    """Neither its causes nor its end."""
    result = answer(tmp_path, log=job(1, FLAP) + job(2, None))

    assert "failed" == result.job.ended
    assert ["port-down"] == [cause.id for cause in result.causes]
    assert ["well"] == [other.job.ended for other in result.other_jobs]
    assert [[]] == [other.causes for other in result.other_jobs]


def test_one_job_stays_one(tmp_path: Path) -> None:
    """Groups of its processes, a second communicator of all, and other processes on its GPUs while it runs."""
    second = begin(2).replace("commId 0x9", "commId 0x8")
    other = begin(2).replace("commId 0x9", "commId 0x7").replace("gpu1:10", "gpu1:90")
    for text in (begin(2) + second + steps(), begin(2) + other + steps()):
        result = answer(tmp_path, log=text + warn(1, FLAP))

        assert [] == result.other_jobs
        assert [] == result.where
        assert "port-down" == first(result).id


def test_another_jobs_log_in_the_folder(tmp_path: Path) -> None:
    """Other processes on the same GPUs, at another time; at the same time they are of one job."""
    stamp = "[2026-11-03 {}] gpu1:{}:9 [1] NCCL INFO step\n"
    for second, expected in (("09:00:00", 1), ("04:00:30", 0)):
        texts = (
            job(1, FLAP) + stamp.format("04:00:00", 1001) + stamp.format("04:01:00", 1001),
            job(2, None) + stamp.format(second, 2001),
        )
        result = answer(tmp_path, a__log=texts[0], b__log=texts[1])

        assert expected == len(result.other_jobs), second
        assert "port-down" == first(result).id


def test_ranks_of_two_hosts_in_two_files_are_one_job(tmp_path: Path) -> None:
    """They share no GPU."""
    text = begin(4, 2) + steps()
    files = {f"gpu{n}__log": "".join(line for line in text.splitlines(True) if f"gpu{n}:" in line) for n in (1, 2)}
    result = answer(tmp_path, **files)

    assert [] == result.other_jobs
    assert (4, 2) == (result.job.ranks, result.job.nodes)


def test_processes_without_a_communicators_number(tmp_path: Path) -> None:
    """NCCL before 2.18: a rank that is claimed a second time, after an error, is of another job."""
    old = [job(number, failure).replace(f" commId 0x9{number}", "") for number, failure in ((1, FLAP), (2, None))]

    assert 1 == len(answer(tmp_path, log="".join(old)).other_jobs)
    assert [] == answer(tmp_path, log=old[0]).other_jobs


def test_attempts_of_torchrun(tmp_path: Path) -> None:
    """By the name of the folder."""
    for attempt, text in ((0, "[rank0]: ValueError: no\n"), (1, "[rank0]: KeyError: 'x'\n")):
        path = tmp_path / "run" / f"attempt_{attempt}" / "0" / "stderr.log"
        path.parent.mkdir(parents=True)
        path.write_text(text)
    result = answer(tmp_path)

    assert "KeyError" in result.headline
    assert ["ValueError" in other.headline for other in result.other_jobs] == [True]


def time_outs(sequence: int, clock: str, ranks: int = 3) -> str:
    """Of the watchdog, without any line of NCCL."""
    return "".join(
        f"[rank{rank}]:[E1103 {clock}.5 ProcessGroupNCCL.cpp:629] [Rank {rank}] Watchdog caught collective operation "
        f"timeout: WorkNCCL(SeqNum={sequence}, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for "
        "600010 milliseconds before timing out.\n"
        for rank in range(ranks)
    )


def test_a_rank_that_times_out_again_much_later_ran_again(tmp_path: Path) -> None:
    """Of other lines than those of the watchdog nothing is known."""
    result = answer(tmp_path, log=time_outs(900, "04:00:00") + "starting again\n" + time_outs(17, "06:30:00"))

    assert "collective 17 " in result.headline
    assert ["log, lines 1 to 4"] == result.other_jobs[0].where
    assert "collective 900 " in result.other_jobs[0].headline
    for second in (time_outs(17, "04:00:40"), time_outs(900, "06:30:00")):
        assert [] == answer(tmp_path, log=time_outs(900, "04:00:00") + second).other_jobs


def test_many_restarts_are_counted(tmp_path: Path) -> None:
    """The last eight are answered."""
    result = answer(tmp_path, log="".join(job(number, ECC) for number in range(1, 12)))

    assert (7, 3) == (len(result.other_jobs), result.other_jobs_more)


def test_text_page_and_stdin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All state how many jobs there are."""
    text = job(1, FLAP) + job(2, None)
    (tmp_path / "log").write_text(text)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    for arguments in ([str(tmp_path / "log")], ["-"], [str(tmp_path / "log"), "--format", "html"]):
        assert 0 == run(["job", *arguments])
        printed = " ".join(capsys.readouterr().out.split())
        assert "2 jobs are in these files" in printed
        assert "No failure in it" in printed
