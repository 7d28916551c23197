"""Lines of a log: what stands around them, who wrote them, and what many of them have in common."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from agent.cli.job import JobOptions, answer_job
from agent.job.evidence import Evidence
from agent.job.lines import LogLine, Prefixes, find_time, split_line
from agent.job.log_reader import LogReader
from agent.job.streams import find_width, read_sample
from tests.agent.fleet import small
from tests.agent.job.jobs import answer, first, info, warn

PLAIN = "gpu-a01.site.org:4711:4811 [3] NCCL INFO Using network IB"


def split(line: str, sample: list[str] | None = None) -> list[LogLine]:
    """The messages of a line."""
    return list(split_line(line.encode() + b"\n", 7, 0, Prefixes(sample or [line])))


@pytest.mark.parametrize(
    ("prefix", "task"),
    [
        ("", None),
        (" 11: ", 11),
        ("[1,26]<stdout>:", 26),
        ("[prterun-host-4@1,5]<stderr>: ", 5),
        ("[default3]:", None),
        ("[pod/worker-0/pytorch] ", None),
        ("(RayWorker pid=99, ip=10.0.0.9) ", None),
        ("worker-1 | ", None),
        ("2026-11-03T04:12:09.123Z stdout F ", None),
        ("Nov  3 04:12:09 gpu-a01 slurmstepd[3]: ", None),
        ("gpu-a01: ", None),
        ("\x1b[36m(Worker pid=3)\x1b[0m ", None),
        ("gpu-a01: [1,2]<stdout>:", 2),
    ],
)
def test_prefixes_of_launchers_are_removed(prefix: str, task: int | None) -> None:
    """Whatever stands before it, the message, host and process are the same."""
    (line,) = split(prefix + PLAIN)

    assert ("Using network IB", "INFO", "gpu-a01", 4711, 3) == (line.text, line.level, line.host, line.pid, line.device)
    assert task == line.task


def test_a_word_before_a_colon_is_no_host() -> None:
    """Of an ordinary message, however many lines begin so."""
    lines = ["ValueError: bad shape", "srun: error: gpu-b07: task 13: Aborted", "libfabric:85:1:core: x", "12 apples"]

    for line in lines:
        assert line == split(line, [line] * 20)[0].text


def test_two_ranks_in_one_line_are_two_messages() -> None:
    """Without a line break between them, or with a carriage return."""
    both = "n1:1:2 [0] NCCL INFO Using network IBn1:3:4 [1] transport/net.cc:7 NCCL WARN Broken"
    first, second = split(both)
    third, fourth = split("n1:1:2 [0] NCCL INFO a\rn1:3:4 [1] NCCL INFO b")

    assert ("Using network IB", "Broken") == (first.text, second.text)
    assert (3, "WARN", "transport/net.cc:7") == (second.pid, second.level, second.place)
    assert ("a", "b") == (third.text, fourth.text)


@pytest.mark.parametrize(
    ("line", "time"),
    [
        ("[2026-11-03 04:12:09] gpu:1:2 [0] NCCL INFO x", "2026-11-03T04:12:09"),
        ("[rank1]:[E606 20:32:23.955 ProcessGroupNCCL.cpp:629] x", "06-06T20:32:23"),
        ("[E1118 20:32:23.9 x.cpp:1]", "11-18T20:32:23"),
        ("Nov  3 04:12:09 host kernel: x", "11-03T04:12:09"),
        ("[Tue Nov  3 04:12:09 2026] NVRM: x", "2026-11-03T04:12:09"),
        ("HCCL(1,x):2026-11-03-04:12:09.101.552 [a.cc:1]", "2026-11-03T04:12:09"),
        ("2026-13-41 99:00:00 no time", None),
        ("no time", None),
    ],
)
def test_times(line: str, time: str | None) -> None:
    """With and without a year; what is none is none."""
    moment = find_time(line)

    assert time == (moment.format() if moment else None)


def test_old_and_new_line_forms() -> None:
    """NCCL 2.2 writes no NCCL, 2.30 the function beside the place."""
    (old,) = split("host:1:2 [0] INFO NET : Using interface eth0:10.0.0.1<0>")
    (new,) = split("host:1:2 [0] transport/net.cc:7 (ncclTest) NCCL WARN Broken")

    assert ("INFO", "WARN", "Broken") == (old.level, new.level, new.text)


def test_equal_lines_of_a_process_count_once() -> None:
    """500 of them are one event."""
    evidence = Evidence()
    line = b"\nn1:1:2 [0] misc/socket.cc:1 NCCL WARN socketProgress: Connection closed by remote peer n2<4000>\n"
    LogReader(evidence).read_file("x", (line * 500).splitlines(keepends=True))

    assert [500] == [event.count for event in evidence.events.values()]


def test_hosts_of_ucx_and_open_mpi() -> None:
    """In brackets, in the middle of a line."""
    (ucx,) = split("[1647516906.396315] [gpu07:82049:0]  ib_md.c:349  UCX  ERROR ibv_reg_mr() failed")
    (mpi,) = split("[gpu-b07:4711] *** Process received signal ***")

    assert ("gpu07", 82049, "gpu-b07", 4711) == (ucx.host, ucx.pid, mpi.host, mpi.pid)


def test_every_line_of_a_long_log_is_read_at_its_number(tmp_path: Path) -> None:
    """Also the one behind the lines by which prefixes are known."""
    for before in (398, 399, 400, 401, 402):
        text = "x\n" * before + warn(0, "NET/IB : mlx5_1:1 Got async error event: port error").lstrip()
        result = answer(tmp_path, log=text)

        assert [before + 1] == [row.line for row in first(result).evidence]
        assert before + 1 == result.source.files[0].lines


def test_an_indented_paste(tmp_path: Path) -> None:
    """As a list of Markdown has it: a table of nccl-tests with the prefixes of mpirun."""
    head = "#  size count type redop root time algbw busbw #wrong time algbw busbw #wrong"
    rows = [f"{1 << size} {1 << size - 2} float sum -1 100 30.0 40.0 0 100 30.0 40.0 0" for size in (28, 29, 30)]
    lines = [head, *rows, "# Out of bounds values : 0 OK", "# Avg bus bandwidth    : 40.0"]
    result = answer(tmp_path, notes="1. Run it:\n" + "".join(f"   [1,0]<stdout>:{line}\n" for line in lines))

    assert ("No failure in it", [3]) == (result.headline, [table.rows for table in result.measured])


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zstandard.ZstdCompressor().compress])
def test_a_compressed_log(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    """By what it holds, whatever its name."""
    (tmp_path / "log.1").write_bytes(pack(warn(0, "NET/IB : mlx5_1:1 Got async error event: port error").encode()))

    assert ["port-down"] == [cause.id for cause in answer_job([str(tmp_path / "log.1")], JobOptions([])).causes]


def test_records_of_pytorch_in_one_line() -> None:
    """Behind a progress bar, each with its rank."""
    lines = split("13/620 [01:07<50:20][rank0]:[E1123 00:52:57.6 x.cpp:607] one [rank1]:[E1123 00:53:57.7 x.cpp:6] two")

    assert [(0, "00:52:57"), (1, "00:53:57")] == [
        (line.rank, line.at.format()[-8:]) for line in lines if line.at is not None
    ]


@pytest.mark.parametrize(
    "prefix",
    [
        "(EngineCore_DP0 pid=16) ERROR 09-18 00:55:15 [v1/engine/core.py:718] ",
        "ERROR 04-01 10:49:43 ray_utils.py:44] ",
        "[2025-02-22 08:21:43 DP1 TP26] ",
    ],
)
def test_prefixes_of_inference_servers(prefix: str) -> None:
    """Are no part of the message."""
    assert ["RuntimeError: x"] == [line.text for line in split(f"{prefix}RuntimeError: x")]


def test_a_word_behind_the_host_is_no_host() -> None:
    """Where every line begins with the host of pdsh."""
    lines = ["gpu1: NVRM: one"] * 8

    assert [("gpu1", "NVRM: one")] == [(line.host, line.text) for line in split(lines[0], lines)]


def wrap(text: str, width: int) -> str:
    """As a terminal cuts it."""
    return "".join(
        line[start : start + width] + "\n" for line in text.splitlines() for start in range(0, len(line), width)
    )


WAITED = (
    "[E ProcessGroupNCCL.cpp:475] [Rank {}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={}, "
    "OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=1800000) ran for 1800268 milliseconds before timing out.\n"
)


@pytest.mark.parametrize("width", [80, 90, 120])
def test_lines_that_a_terminal_cut(tmp_path: Path, width: int) -> None:
    """Are read as one, at the number of their first line, where several are cut."""
    text = wrap(f"started\n{WAITED.format(3, 3856)}(pid=7) {WAITED.format(11, 3857)}done\n", width)
    lines = text.splitlines(keepends=True)
    sample, rest = read_sample((line.encode() for line in lines), 3)
    joined = [*sample, *rest]

    assert len(lines) == len(joined)
    assert text.replace("\n", "") == b"".join(joined).decode().replace("\n", "")
    assert "rank 3 waited in collective 3856 (ALLREDUCE), and rank 11 in 3857" in answer(tmp_path, log=text).headline


@pytest.mark.parametrize(
    "rows",
    [
        ["NVRM: Xid (PCI:0000:c1:00): 145, pid=1, RLW_REMAP Nonfatal XC0 i0 Link 00 (0x00000004 0x8000)"] * 2,
        [f"mlx5_{number} port 1 ==> eth{number} (Up) {'x' * 60}" for number in range(8)],
        ["# " + "=" * 78, "word " + "-" * 75, "# " + "=" * 78, "word"],
        [f"{'a' * 79}{letter}\n  indented" for letter in "bc"],
        [f"{'a' * 79} \nnext {letter}" for letter in "bc"],
        [f"{'a' * 500}\nnext {letter}" for letter in "bc"],
        ["a" * 80, "next"],
    ],
)
def test_lines_that_nothing_cut(rows: list[str]) -> None:
    """Rows of a table, rules, what follows with a blank, lines wider than terminals, and one long line alone."""
    text = ("\n".join(rows) + "\nend\n").encode()

    assert find_width(text.splitlines(keepends=True)) is None


# What all slow or failed ranks have in common: leaf switch, rail, GPU, host, peer; and what is no common part.


HOSTS, LOCAL = 8, 4
STATUS = "NET/IB: Got completion from peer 10.9.0.{}<4000> with status=12 opcode=1 len=0 vendor err 129 (Recv) hca {}"


def host_report(number: int, **port: Any) -> bytes:
    """A host with a rail for each GPU; hosts 1 to 4 are on other leaves than hosts 5 to 8."""
    nics, netdevs = [], []
    for rail in range(LOCAL):
        nic = f"0000:1{rail}:00.0"
        ports = [{"port": 1, "state": "ACTIVE", "link_layer": "Ethernet", **port}]
        nics.append({"id": nic, "label": f"mlx5_{rail}", "rdma_device": f"mlx5_{rail}", "role": "rail", "ports": ports})
        leaf = {"system": f"leaf-{(number - 1) // 4}-{rail}", "chassis": "c", "port": f"Ethernet{number}"}
        netdevs.append({"id": f"eth{rail}", "label": f"eth{rail}", "nic": nic, "neighbor": leaf})
    gpus = [{"id": f"0000:2{rail}:00.0", "label": f"GPU{rail}", "index": rail} for rail in range(LOCAL)]
    return small.report(f"gpu{number}", 1, topology={"nics": nics, "netdevs": netdevs, "gpus": gpus})


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of all hosts."""
    path = tmp_path_factory.mktemp("fleet") / "data"
    small.take(path, *(host_report(number) for number in range(1, HOSTS + 1)))
    return str(path)


def log(failed: list[tuple[int, int, int]]) -> str:
    """All ranks; of host, rail and the peer's host those that get no answer."""
    text = ""
    for rank in range(HOSTS * LOCAL):
        host, local = f"gpu{rank // LOCAL + 1}", rank % LOCAL
        text += info(rank, f"Bootstrap : Using eth9:10.9.0.{rank // LOCAL + 1}<0>", host, local)
        text += info(
            rank,
            f"ncclCommInitRank comm 0x{rank + 1:x} rank {rank} nranks {HOSTS * LOCAL} cudaDev {local} nvmlDev {local} "
            f"busId 2{local}000 commId 0x9 - Init COMPLETE",
            host,
            local,
        )
        text += info(rank, f"Channel 00/0 : {rank}[{local}] -> 0[0] [send] via NET/IB/{local}/GDRDMA", host, local)
        devices = " ".join(f"[{rail}]mlx5_{rail}:1/RoCE" for rail in range(LOCAL))
        text += info(rank, f"NET/IB : Using {devices} [RO]; OOB eth9:10.9.0.{rank // LOCAL + 1}<0>", host, local)
    text += "".join(f"iteration {step} | loss 1.0\n" for step in range(5))
    for host_number, rail, peer in failed:
        rank = (host_number - 1) * LOCAL + rail
        line = f"gpu{host_number}:{100 + rank}:{200 + rank} [{rail}] transport/net_ib.cc:1 NCCL WARN "
        text += "\n" + line + STATUS.format(peer, f"mlx5_{rail}") + "\n"
    return text


CASES = {
    "one leaf": ([(number, 2, number % 4 + 5) for number in (5, 6, 7, 8)], "leaf switch leaf-1-2", "fabric", "mlx5_2"),
    "one rail of all hosts": (
        [(n, 3, n % 8 + 1) for n in range(1, 9)],
        "GPU 3 and its rail mlx5_3",
        "fabric",
        "mlx5_3",
    ),
    "one host": ([(2, rail, 3 + rail) for rail in range(LOCAL)], "host gpu2", "rank", None),
    "no common part": ([(1, 0, 2), (6, 3, 7), (3, 2, 5)], None, "fabric", "mlx5_0"),
    "one peer": ([(n, 1, 7) for n in (1, 2, 3, 5)], "all of them name gpu7 (rank 25)", "peer", "mlx5_1"),
}


@pytest.mark.parametrize("name", CASES)
def test_with_a_dataset(tmp_path: Path, dataset: str, name: str) -> None:
    """Leaf switches are those of LLDP."""
    failed, text, fault, nic = CASES[name]
    cause = first(answer(tmp_path, JobOptions([], dataset=dataset), log=log(failed)))

    assert "completion-12" == cause.id
    assert (fault, nic) == (cause.at_fault.kind, cause.at_fault.nic)
    assert text is None or text in cause.summary
    assert (text is not None) == ("common to all" in cause.summary or "all of them name" in cause.summary)
    assert ("leaf" in cause.summary) == (name == "one leaf")
    if name == "one leaf":
        assert cause.next[0].startswith("leaf-1-2: ")
        row = next(row for row in cause.evidence if "leaf-1-2" in row.text)
        assert "4 ranks are on leaf-1-2; 0 of 28 others are; its ports: Ethernet5, Ethernet6" in row.text


def test_without_a_dataset(tmp_path: Path) -> None:
    """The rail and the host are in the log; a leaf is not."""
    for name, part in (("one rail of all hosts", "GPU 3 and its rail mlx5_3"), ("one host", "host gpu2")):
        cause = first(answer(tmp_path, log=log(CASES[name][0])))
        assert f"common to all of them: {part}" in cause.summary
        assert "leaf" not in cause.summary
    cause = first(answer(tmp_path, log=log(CASES["one peer"][0])))
    assert ("gpu7", [25]) == (cause.at_fault.host, cause.at_fault.ranks)


def test_a_leaf_whose_other_ranks_are_well_is_none(tmp_path: Path, dataset: str) -> None:
    """2 of 4 ranks of the leaf."""
    cause = first(answer(tmp_path, JobOptions([], dataset=dataset), log=log([(5, 2, 6), (6, 2, 7)])))

    assert "leaf switch" not in cause.summary
    assert "GPU 2 and its rail mlx5_2" in cause.summary


def test_the_gid_that_is_right_is_of_the_dataset(tmp_path: Path) -> None:
    """By its index and the interface's address; a GID in use that is right is no fault."""
    gids = [
        {"index": 0, "gid": "fe80::1", "type": "IB/RoCE v1"},
        {"index": 3, "gid": "::ffff:10.5.0.2", "type": "RoCE v2"},
    ]
    document = json.loads(host_report(2, gids=gids, netdevs=["eth0"]))
    for netdev in document["topology"]["netdevs"]:
        netdev["addresses"] = ["10.5.0.2/24"]
    small.take(tmp_path / "data", json.dumps(document).encode())
    (tmp_path / "job").mkdir()
    options = JobOptions([], dataset=str(tmp_path / "data"))
    text = log([(2, 0, 3), (2, 0, 4)])
    for local, remote, expected in (("fe80::5", "fe80::6", True), ("::ffff:10.5.0.2", "::ffff:10.5.0.3", False)):
        gids_of = text.replace(" hca ", f" localGid {local} remoteGids{remote} hca ")
        cause = first(answer(tmp_path / "job", options, log=gids_of))
        assert expected == ("index 3 is RoCE v2 with an IPv4 address" in cause.summary), local
        assert expected == any("NCCL_IB_GID_INDEX=3" in step for step in cause.next)
