"""Several jobs in one file or folder: each is answered, and their lines are not mixed."""

from __future__ import annotations

import io
import re
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


def move(text: str, host: str, number: int) -> str:
    """The same job on other hosts: gpu1 is HOST1, gpu2 is HOST2."""
    return re.sub(r"\bgpu(?=[12]:)", host, text).replace("commId 0x9", f"commId 0x9{number}")


def split(text: str, *hosts: str) -> list[str]:
    """A log for each host."""
    return ["".join(line for line in text.splitlines(True) if f"{host}:" in line or ":" not in line) for host in hosts]


def test_jobs_of_other_hosts_at_the_same_time(tmp_path: Path) -> None:
    """By numbers of Slurm in the names of logs, by ranks of torch and by lists of nccl-tests; else they are one."""
    one = move(begin(4, 2) + steps() + warn(3, FLAP, "gpu2"), "a", 1)
    other = move(begin(4, 2) + steps() + warn(2, ECC, "gpu2"), "b", 2)
    texts = [*split(one, "a1", "a2"), *split(other, "b1", "b2")]
    table = "#  Rank  0 Group  0 Pid 100 on {} device  0 [0x1] H100\n"
    torch = "[rank0]:[W1103 04:00:00.1 ProcessGroupNCCL.cpp:4115] x\n"
    forms: dict[str, tuple[list[str], list[str]]] = {
        "slurm": (
            [f"slurm-{number}-{host}.log" for number, host in ((7, "a1"), (7, "a2"), (8, "b1"), (8, "b2"))],
            texts,
        ),
        "torch": (list("pqrs"), [torch + texts[0], texts[1], torch + texts[2], texts[3]]),
        "table": (list("pqrs"), [table.format("a1") + texts[0], texts[1], table.format("b1") + texts[2], texts[3]]),
        "none": (list("pqrs"), texts),
        "same": (list("pqrs"), [torch + texts[0], torch + texts[1], texts[2], texts[3]]),  # tied by a communicator
    }
    for form, (names, contents) in forms.items():
        folder = tmp_path / form
        folder.mkdir()
        for name, content in zip(names, contents, strict=True):
            (folder / name).write_text(content)
        result = answer(folder)
        if form in ("none", "same"):
            assert [] == result.other_jobs, form
            continue
        assert ("cuda-214", 2, 4) == (first(result).id, result.job.nodes, result.job.ranks), form
        assert ["port-down"] == [job.headline and "port-down" for job in result.other_jobs if "a2" in job.headline], (
            form
        )
        assert [names[:2]] == [job.where for job in result.other_jobs], form


def test_a_file_of_no_job_is_read_for_each(tmp_path: Path) -> None:
    """As the launcher's log."""
    one, other = move(job(1, None), "a", 1), move(job(2, ECC), "b", 2)
    result = answer(tmp_path, slurm_1__out=one, slurm_2__out=other, common="srun: error: b1: task 1: Killed\n")

    assert "common" in result.where
    assert ["common"] == [name for other in result.other_jobs for name in other.where if name == "common"]


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


STARTS = "[default] worker group FAILED. {}/3 attempts left; will restart worker group\n"
KILLED = "Memory cgroup out of memory: Killed process 922 (python3) total-vm:1kB\n"
STALE = "[rank2]: OSError: [Errno 116] Stale file handle: '/ckpt/step_12.pt'\n"


@pytest.mark.parametrize("left", [(2,), (2, 1)])
def test_attempts_of_torchrun_in_one_log_are_jobs_of_their_own(tmp_path: Path, left: tuple[int, ...]) -> None:
    """What ended an earlier one is not the cause of the last."""
    result = answer(tmp_path, log="".join(KILLED + STARTS.format(number) for number in left) + STALE)

    assert ["storage-error"] == [cause.id for cause in result.causes]
    assert len(left) == len(result.other_jobs)
    assert [f"log, lines {2 * len(left) + 1} to the end"] == result.where


def test_the_last_attempt_counts_where_it_ended_well(tmp_path: Path) -> None:
    result = answer(tmp_path, log=KILLED + STARTS.format(2) + "step 1 loss 2\nTraining complete\n")

    assert "well" == result.job.ended
    assert ["killed"] == [other.job.ended for other in result.other_jobs]


def test_attempts_that_are_not_the_same_in_all_logs_are_not_separated(tmp_path: Path) -> None:
    assert [] == answer(tmp_path, one=KILLED + STARTS.format(2) + STALE, two=STARTS.format(1) + STALE).other_jobs


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
