"""Whatever the bytes, there is an answer or a clear reason, in time; of what was not read nothing is claimed."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import pickle
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from random import Random
from types import SimpleNamespace

import msgspec
import pytest

from agent.cli.errors import CliError
from agent.cli.job import JobOptions, answer_job
from agent.cli.job_inputs import choose_limit, end_parts
from agent.job import files
from agent.job.evidence import Evidence
from agent.job.files import Given, open_given
from agent.job.lines import WHOLE, Part
from agent.model.job_answer import JobFile
from agent.outputs.html.job import render_job_page
from agent.outputs.text.job import render_job
from tests.agent.job import test_beside, test_hangs, test_several_jobs, test_slow
from tests.agent.job.jobs import answer, begin, steps, warn
from tests.conftest import PROFILE, ROOT, sample_of
from tests.fuzz.mutations import mutated

SHORT = (
    b"\x80",
    b"\x80\x02",
    b"\x1f",
    b"\x1f\x8b",
    b"{",
    b"[",
    b"\0",
    b"\n",
    gzip.compress(b"\x80"),
    gzip.compress(b""),
)
MUTATIONS = {"ci": sample_of(range(120)), "fuzz": range(20_000)}.get(PROFILE, range(60))
SECONDS = 5.0


def seeds() -> dict[str, list[bytes]]:
    """What each reader reads."""
    from agent.job.catalogue import load_patterns

    lines = "\n".join(
        f"n1:1:2 [0] transport/nvls.cc:7 NCCL WARN {line}"
        for row in (pattern.row for pattern in load_patterns())
        if row.id != "workers-restarted"
        for line in row.fires
    )  # or all is read twice
    members = {"a": [0, 1]}
    document = test_hangs.recorder(0, {"a": (5, "scheduled")}, members)
    hccl = (
        "[ERROR] HCCL(7,train):2026-11-03-04:12:09.1 [a.cc:583] [7]   |  192.0.2.56(6)   |  16666  |   "
        "192.0.2.50(0)   |  3  |  client  | time out |  DISABLE  | x\n"
        "[INFO] HCCL(7,train):2026-11-03-04:09:41.0 [b.cc:330] [7][LocalRank Key Info]userRank[6] "
        "hostIp[10.5.0.2] devicePhyId[2] server[10.5.0.2] deviceIp[192.0.2.56]\n"
    )
    table = (
        "#  Rank  0 Group  0 Pid 1 on gpu1 device  0 [0x1] H100\n# size count type redop root time algbw "
        "busbw #wrong\n1048576 262144 float sum -1 1 2 3 0\n"
    )
    wrapped = "".join(
        json.dumps({"log": line, "time": "2026-11-03T04:12:09.5Z"}) + "\n" for line in begin(2).split("\n")
    )
    return {
        "log": [
            (
                begin(4, 2) + steps() + warn(1, "NET/IB : mlx5_1:1 Got async error event: port error", at="04:11:31")
            ).encode()
        ],
        "rows": [lines.encode()],
        "watchdog": [(test_hangs.timeout(0) + test_hangs.timeout(1) + test_hangs.dump(2, 8, 8)).encode()],
        "rank_0.json": [json.dumps(document).encode()],
        "rank_1": [pickle.dumps(document, protocol=2), pickle.dumps(document, protocol=4)],
        "ras": [test_hangs.RAS.format(many=31, most=18, rank=21, one=10).encode()],
        "inspector": [text.encode() for text in test_hangs.inspector({"1": {0: 3000, 1: 400}}).values()],
        "metrics.prom": [test_slow.metrics({("gpu1", gpu, "tp0"): 300.0 + 900.0 * gpu for gpu in range(3)}).encode()],
        "pairs": [text.encode()[:4000] for text in test_slow.pair_records({(0, 4)}, count=3).values()],
        "rank_2.json": [test_slow.dump(2, 2).encode()],
        "wrapped": [wrapped.encode()],
        "restart": [(test_several_jobs.job(1, test_several_jobs.FLAP) + test_several_jobs.job(2, None)).encode()],
        "limits": [b"max locked memory       (kbytes, -l) 8192\n" + warn(1, test_beside.REGISTER).encode()],
        "hccl": [hccl.encode()],
        "table": [table.encode()],
        "hostfile": [b"gpu1 slots=8\nrank 3 host gpu2\n"],
        "exits": [b"  host      : gpu2\n  rank      : 3 (local_rank: 1)\n  exitcode  : -9 (pid: 4711)\n"],
    }


@pytest.mark.parametrize("name", seeds())
def test_damage_is_read_or_refused(tmp_path: Path, name: str) -> None:
    """With all that follows from it: causes, text and page."""
    path = tmp_path / name
    for number in MUTATIONS:
        path.write_bytes(mutated(Random(number), seeds()[name]))
        started = time.thread_time()
        try:
            result = answer_job([str(tmp_path)], JobOptions([]))
            render_job(result, 80)
            render_job_page(result)
        except CliError:
            pass
        assert time.thread_time() - started < SECONDS, number


@pytest.mark.parametrize(
    "content",
    [
        b"n1:1:2 [0] NCCL WARN " * 20_000,
        b"\n" * 500_000,
        b"\x00" * 100_000,
        b"{" * 100_000,
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b"a" * 3_000_000,
        b"[1,2]<stdout>:" * 50_000,
        b"\r" * 200_000,
        b"NCCL WARN Call to ibv_reg_mr" + b" failed" * 100_000,
        b"\x80\x02" + b"(" * 100_000,
        b"\x80\x02]" + b"q\x01h\x01" * 50_000 + b".",
    ],
    ids=range(12),
)
def test_hostile_contents(tmp_path: Path, content: bytes) -> None:
    """One line without an end, nesting without an end, nothing at all."""
    started = time.thread_time()
    with contextlib.suppress(CliError):
        answer(tmp_path, x=content)

    assert time.thread_time() - started < 10


def test_a_bomb_is_read_piece_by_piece(tmp_path: Path) -> None:
    """And has nothing in it."""
    packer = zlib.compressobj(9, wbits=31)
    bomb = b"".join(packer.compress(bytes(1 << 20)) for _ in range(64)) + packer.flush()

    with pytest.raises(CliError):
        answer(tmp_path, x=bomb)


def test_names_of_files_and_hosts_reach_no_terminal(tmp_path: Path) -> None:
    """Escape sequences are replaced."""
    from agent.outputs.text.lines import to_plain_text

    (tmp_path / "a\x1b[31m").write_text(begin(2) + warn(1, "bad \x1b]0;title\x07 thing"))
    text = to_plain_text(render_job(answer_job([str(tmp_path)], JobOptions([])), 80))

    assert "\x1b" not in text


def test_a_long_log_is_read_in_seconds(tmp_path: Path) -> None:
    """10 MB of lines that say nothing new, of a core's own time."""
    lines = begin(8, 2).encode()
    (tmp_path / "log").write_bytes(lines * (10_000_000 // len(lines)))
    started = time.thread_time()
    answer_job([str(tmp_path)], JobOptions([]))

    assert time.thread_time() - started < 5


def test_mixed_jobs_of_one_file_do_not_crash(tmp_path: Path) -> None:
    """Two jobs of different sizes, cut in the middle."""
    result = answer(tmp_path, log=(begin(8, 2) + begin(4, 1))[:-100] + warn(9, "x"))

    assert "failed" == result.job.ended


def test_files_of_a_byte_or_two(tmp_path: Path) -> None:
    """Shorter than the mark of any form."""
    for number, content in enumerate(SHORT):
        (tmp_path / f"rank_{number}").write_bytes(content)

    with pytest.raises(CliError, match="rank_3: it is damaged gzip"):
        answer_job([str(tmp_path)], JobOptions([]))


def test_what_a_folder_holds_beside_files_is_named_and_not_opened(tmp_path: Path) -> None:
    """A link leads to what only this user may read; a pipe would be waited for, whenever it is put there."""
    (tmp_path / "secret").write_text(begin(2) + warn(1, "secret"))
    folder = tmp_path / "job"
    folder.mkdir()
    (folder / "a.log").write_text(begin(2) + warn(1, "bad thing"))
    (folder / "b.log").symlink_to(tmp_path / "secret")
    os.mkfifo(folder / "c.log")
    result = answer_job([str(folder)], JobOptions([]))

    assert {
        "a.log": None,
        "b.log": "a symbolic link, which is not followed",
        "c.log": "not a regular file",
    } == {file.name: file.reason for file in result.source.files}
    assert b"secret" not in msgspec.json.encode(result)
    for name, why in (("b.log", "symbolic link"), ("c.log", "FIFO")):  # that came after the listing
        with pytest.raises(OSError, match=why):
            open_given(str(folder / name), True)


def test_a_damaged_file_in_a_folder_costs_no_answer(tmp_path: Path) -> None:
    """A report that is none, records of which none is whole, a snapshot that is too large."""
    log = begin(2) + warn(1, "bad thing")
    files = {
        "cut.json": b'{"schema": "fabricscope.report/1", "node": {',
        "inspector.json": b'{"coll_perf": [[]]}',
        "ras.json": b'{"communicators": [' + b" " * (16 << 20),
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(CliError, match=name):
            answer_job([str(tmp_path / name)], JobOptions([]))
    (tmp_path / "a.log").write_text(log)
    result = answer_job([str(tmp_path)], JobOptions([]))

    assert "failed" == result.job.ended
    assert dict.fromkeys(files) == {file.name: file.read_as for file in result.source.files if file.name != "a.log"}
    assert all(file.reason for file in result.source.files if file.name != "a.log")


@pytest.mark.parametrize("below", ["", "a/b"])
def test_a_folder_without_end_is_refused_while_it_is_listed(
    below: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not once a million names are in memory; folders count as files do."""
    (tmp_path / below).mkdir(parents=True, exist_ok=True)
    for number in range(40):
        (tmp_path / below / f"{number}.d").mkdir()
    monkeypatch.setattr(files, "_MOST_FILES", 30)
    described: list[str] = []
    monkeypatch.setattr(files._Walk, "_describe", lambda _walk, entry, name: described.append(name))

    with pytest.raises(files.UnreadableError, match="more than 30 files and folders"):
        files.list_files([str(tmp_path)])
    assert [] == described
    monkeypatch.setattr(files, "_MOST_FILES", 42)
    assert [] == files.list_files([str(tmp_path)])


def test_a_file_that_is_gone_once_it_is_listed_has_a_reason(tmp_path: Path) -> None:
    """A job may still be writing, and removing, there."""
    (tmp_path / "gone.log").write_text("x")
    (entry,) = os.scandir(tmp_path)
    (tmp_path / "gone.log").unlink()

    assert "No such file or directory" == files._Walk(str(tmp_path), 1)._describe(entry, "gone.log").reason


# `job` ends in time whatever it is given, and states what it did not read; silence there accuses no rank.


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


def test_a_log_of_powershell_is_read(tmp_path: Path) -> None:
    """UTF-16 with its mark, as `scan` reads it, in pieces."""
    log = begin(2) + warn(1, "NET/IB : mlx5_1:1 Got async error event: port error") + "x\n" * 200_000

    assert answer(tmp_path, a=log).headline == answer(tmp_path, a=log.encode("utf-16")).headline


def test_characters_of_a_page_hide_no_failure(tmp_path: Path) -> None:
    """Blanks, quotation marks and marks without a width, as chats and pages write them; zeros where a host crashed."""
    log = begin(2) + warn(1, "NET/IB : mlx5_1:1 Got async error event: port error")
    pasted = log.replace(" ", "\u00a0").replace("NET", "\u200eNET").replace("\n", "\n" + "\0" * 9)

    assert answer(tmp_path, a=log).headline == answer(tmp_path, a="Log:\n" * 900 + pasted).headline


def test_a_stdin_without_an_end_is_answered_in_time(real_commands: None) -> None:
    """By what came until then, and the answer states that."""
    command = [sys.executable, "-m", "fabricscope", "job", "-", "--timeout", "4", "--format", "json"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as job:
        assert job.stdin is not None
        assert job.stdout is not None
        job.stdin.write((begin(2) + warn(1, "NET/IB : mlx5_1:1 Got async error event: port error")).encode())
        job.stdin.flush()
        (file,) = json.loads(job.stdout.read())["source"]["files"]

    assert "the time limit of 4 s was reached" in file["reason"]
