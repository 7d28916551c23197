"""Hangs and stragglers: watchdog lines, flight recorder, RAS, Inspector."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from agent.job.dumps.plain_pickle import NotPlain, read_plain_pickle
from tests.agent.job.jobs import Log, answer, check, describe, first, info, steps

STAMP = "E1103 04:12:09.1"


def timeout(rank: int, sequence: int = 9, operation: str = "ALLREDUCE", group: str = "0 PG GUID 0(default_pg)") -> str:
    """A rank that waited."""
    return (
        f"[rank{rank}]:[{STAMP} ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught collective operation timeout: "
        f"WorkNCCL(SeqNum={sequence}, OpType={operation}, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600012 "
        f"milliseconds before timing out.\n[rank{rank}]:[{STAMP} ProcessGroupNCCL.cpp:2271] [PG ID {group} Rank "
        f"{rank}]  failure "
        f"detected by watchdog at work sequence id: {sequence} PG status: last enqueued work: {sequence + 1}, "
        f"last completed "
        f"work: {sequence - 1}\n"
    )


def dump(rank: int, enqueued: int, completed: int) -> str:
    """A rank that did not wait."""
    return (
        f"[rank{rank}]:[{STAMP} ProcessGroupNCCL.cpp:1746] [PG ID 0 PG GUID 0(default_pg) Rank {rank}] Received a "
        f"dump signal "
        f"due to a collective timeout from  rank 1 and we will try our best to dump the debug info. Last enqueued "
        f"NCCL work: "
        f"{enqueued}, last completed NCCL work: {completed}.\n"
    )


OTHER_GROUP = timeout(5, 900, group="7 PG GUID 7(tensor_parallel)")
OLD = "[E ProcessGroupNCCL.cpp:458] [Rank {}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={}, "
OLD += "OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1800887 milliseconds before timing out.\n"
OWN = dump(6, -1, -1).replace("from  rank 1", "from this local rank")


def stack(pid: int, *frames: str, rank: int | None = None) -> str:
    """Of py-spy, the innermost frame first."""
    head = "" if rank is None else f"Process {pid}: python -u train.py --local_rank={rank}\nPython v3.12.1 (python)\n\n"
    return f'{head}Thread {pid} (active): "MainThread"\n' + "".join(f"    {frame}\n" for frame in frames)


_BARRIER = ("synchronize (torch/cuda/__init__.py:985)", "barrier (torch/distributed/distributed_c10d.py:4551)")
_DELETES = ("_rmtree_safe_fd (shutil.py:677)", "rotate (app/checkpoints.py:87)")
_LOCKED = ("wait (torch/utils/file_baton.py:43)", "load (torch/utils/cpp_extension.py:1312)")
_SERVES = ("select (selectors.py:468)", "poll (zmq/_poll.pyx:179)")
LOGS = (
    Log("a stack that is not in the barrier in which the others are",
        steps(3) + "".join(stack(4710 + rank, *_BARRIER, rank=rank) for rank in range(3))
        + stack(4713, *_DELETES, rank=3), "hung: stack-elsewhere (rank, medium, ranks [3])", "it uses files"),
    Log("processes by their numbers alone", stack(4710, *_BARRIER) + stack(4711, "forward (app/model.py:8)"),
        "hung: stack-elsewhere (rank, low)", "process 4711 is in forward (model.py), while 1 others"),
    Log("all of them in one wait that is no collective", stack(4710, *_LOCKED, rank=0) + stack(4711, *_LOCKED, rank=1),
        "hung: stack-elsewhere (software, medium, ranks [0, 1])", "it waits for a lock file"),
    Log("faulthandler", "Current thread 0x00007f2b (most recent call first):\n"
        '  File "/app/ckpt.py", line 8 in fsync_dir\n  File "/app/train.py", line 2 in main\n',
        "hung: stack-elsewhere (software, medium)", "fsync_dir (ckpt.py)"),
    Log("a server that has no request", steps(3) + stack(4710, *_SERVES), "unknown: no cause"),
    Log("stacks of a job that goes on", stack(4710, *_LOCKED) + steps(3), "unknown: no cause"),
    Log("all of them in one barrier", stack(4710, *_BARRIER) + stack(4711, *_BARRIER), "unknown: no cause"),
    Log("a line that a terminal cut within the name of the collective",
        timeout(0) + timeout(2).replace("OpType=ALLREDUCE", "OpType=ALLRED[451/1919]"),
        "hung: collective-stuck (unknown, low)", "2 ranks waited"),
    Log("the rank that did not come, not the one whose time-out started the dumps",
        "".join(timeout(rank) for rank in (0, 1, 3)) + dump(2, 8, 8),
        "hung: rank-behind (rank, high, ranks [2])", "3 ranks waited"),
    Log("a number that is missing below the highest of those that waited",
        "".join(timeout(rank) for rank in (0, 1, 3)), "hung: rank-silent (rank, low, ranks [2])", "3 ranks waited"),
    Log("two ranks of many that are not known", timeout(0) + timeout(7), "hung: collective-stuck (unknown, low)"),
    Log("a rank whose last enqueued work is the one that the others wait in",
        timeout(0) + timeout(1) + dump(2, 9, 8), "hung: collective-stuck (unknown, low)"),
    Log("a rank of another group has other numbers", timeout(0) + timeout(1) + OTHER_GROUP,
        "hung: collective-stuck (unknown, low); collective-stuck (unknown, low)"),
    Log("different operations as the same number", timeout(0) + timeout(1, operation="ALLGATHER"),
        "failed: collectives-differ (software, high, ranks [0, 1])"),
    Log("the dump line alone, the most pasted one", dump(13, 912, 912), "hung: rank-behind (rank, low, ranks [13])"),
    Log("the dump line of a rank that waited itself", dump(13, 915, 912), "unknown: no cause"),
    Log("ranks that wait in different collectives; the first number of a rank counts",
        timeout(0, 12) + timeout(0, 11) + timeout(1, 11) + timeout(2, 7),
        "hung: rank-behind (rank, medium, ranks [2])", "7 (ALLREDUCE), and ranks 0-1 in 11"),
    Log("the watchdog of the rank that is behind ends its process",
        "".join(timeout(rank, 11) for rank in (0, 1, 3)) + timeout(2, 10)
        + "srun: error: gpu014: task 2: Aborted (core dumped)\n",
        "hung: rank-behind (rank, medium, ranks [2]), then ranks [2]"),
    Log("a rank that was aborted before the others waited for it",
        "srun: error: gpu014: task 3: Aborted (core dumped)\n" + "".join(timeout(rank) for rank in (0, 1, 2)),
        "failed: aborted (software, medium, ranks [3], gpu014)"),
    Log("two ranks that wait in different collectives", timeout(0, 12) + timeout(1, 7),
        "hung: rank-behind (rank, medium, ranks [1])"),
    Log("old lines without a group may be of different groups",
        OLD.format(0, 96) + OLD.format(1, 96) + OLD.format(7, 64),
        "hung: rank-behind (rank, low, ranks [7])", "different groups"),
    Log("one rank that is ahead of the others", "".join(timeout(rank, 7) for rank in range(3)) + timeout(3, 9),
        "hung: collective-stuck (unknown, low)"),
    Log("a dump of a time-out that is not shown", OWN, "hung: time-out-not-shown (unknown, low)"),
    Log("the same with its line", OWN + timeout(6), "hung: collective-stuck (unknown, low)"),
)  # fmt: skip


@pytest.mark.parametrize("row", LOGS, ids=lambda row: row.about)
def test_what_a_watchdog_shows(tmp_path: Path, row: Log) -> None:
    """Which rank is behind, if any."""
    check(tmp_path, row)


def recorder(
    rank: int, states: dict[str, tuple[int, str]], members: dict[str, list[int]], operation: str = "all_reduce"
) -> dict[str, Any]:
    """A dump: by group the last sequence number and its state; a ring of three entries."""
    entries = [
        {
            "pg_id": number,
            "process_group": [name, f"title of {name}"],
            "collective_seq_id": sequence,
            "profiling_name": f"nccl:{operation}",
            "state": state if sequence == last else "completed",
            "is_p2p": False,
            "input_sizes": [[4]],
            "time_created_ns": 1,
        }
        for number, (name, (last, state)) in enumerate(states.items())
        for sequence in range(last - 2, last + 1)
    ]
    config = {name: {"name": name, "desc": name, "ranks": str(ranks)} for name, ranks in members.items()}
    status = {
        str(number): {"last_enqueued_collective": last, "last_completed_collective": last - (state != "completed")}
        for number, (last, state) in enumerate(states.values())
    }
    return {"version": "2.10", "pg_config": config, "pg_status": status, "entries": entries}


GROUPS = {"tp0": [0, 1], "tp1": [2, 3], "dp0": [0, 2], "dp1": [1, 3]}


def write_dumps(folder: Path, as_pickle: bool, missing: int = 3, **changes: dict[str, Any]) -> None:
    """Rank 3 is missing in tp1 and dp1; the others wait for it, or for those that wait."""
    for rank in range(4):
        groups = [name for name, ranks in GROUPS.items() if rank in ranks]
        states = {name: (50, "scheduled" if missing in GROUPS[name] else "completed") for name in groups}
        if rank == missing:
            states = dict.fromkeys(groups, (49, "completed"))
        document = recorder(rank, states, {name: GROUPS[name] for name in groups}) | changes.get(f"rank_{rank}", {})
        data = pickle.dumps(document, protocol=2) if as_pickle else json.dumps(document).encode()
        (folder / f"nccl_trace_rank_{rank}").write_bytes(data)


@pytest.mark.parametrize("as_pickle", [False, True])
def test_the_missing_rank_of_the_flight_recorder(tmp_path: Path, as_pickle: bool) -> None:
    """In every group that it is in; entries that the ring has lost are not missing."""
    write_dumps(tmp_path, as_pickle)
    result = answer(tmp_path)

    assert "hung: rank-behind (rank, high, ranks [3])" == describe(result)
    assert "tp1 at 50" in first(result).summary
    assert "dp1 at 50" in first(result).summary
    assert 1 == len(result.causes)


def test_a_dump_that_is_not_there_is_low_in_confidence(tmp_path: Path) -> None:
    """It may not have been saved."""
    write_dumps(tmp_path, False)
    (tmp_path / "nccl_trace_rank_3").unlink()
    result = answer(tmp_path)

    assert "hung: rank-silent (rank, low, ranks [3])" == describe(result)


def test_groups_that_wait_for_each_other(tmp_path: Path) -> None:
    """No rank is free: the order of the program differs."""
    members = {"a": [0, 1], "b": [0, 1]}
    one = recorder(0, {"a": (5, "scheduled"), "b": (4, "completed")}, members)
    other = recorder(1, {"a": (4, "completed"), "b": (5, "scheduled")}, members)
    result = answer(tmp_path, rank_0=json.dumps(one), rank_1=json.dumps(other))

    assert "hung: groups-wait-for-each-other (software, medium, ranks [0, 1])" == describe(result)


def test_different_operations_under_one_number(tmp_path: Path) -> None:
    """A mismatch, which no time-out names."""
    members = {"a": [0, 1]}
    one = recorder(0, {"a": (5, "scheduled")}, members)
    other = recorder(1, {"a": (5, "scheduled")}, members, "broadcast")
    result = answer(tmp_path, rank_0=json.dumps(one), rank_1=json.dumps(other))

    assert "collectives-differ" == first(result).id
    assert "broadcast" in first(result).summary


def test_a_bare_list_of_entries_is_the_oldest_form(tmp_path: Path) -> None:
    """With `seq_id`, and no groups of which ranks are known: nothing is claimed."""
    entries = [{"pg_id": 0, "seq_id": 3, "profiling_name": "nccl:all_reduce", "state": "completed", "record_id": 1}]
    result = answer(tmp_path, rank_0=json.dumps(entries))

    assert ([], "flight recorder") == (result.causes, result.source.files[0].read_as)


class Evil:
    """What a pickle must not do."""

    def __reduce__(self) -> Any:
        return print, ("called",)


@pytest.mark.parametrize("protocol", range(6))
def test_a_pickle_can_build_nothing_but_plain_data(protocol: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Numbers, texts, lists, dicts, tuples; a call, a class and a set are refused and not carried out."""
    plain = {"a": [1, -5, 2.5, None, True, ("x", b"y", 10**30)], "é": {}}

    assert plain == read_plain_pickle(pickle.dumps(plain, protocol=max(protocol, 3)))
    for value in (Evil(), {"a": [Evil()]}, {1, 2}, print, Path("x")):
        with pytest.raises(NotPlain):
            read_plain_pickle(pickle.dumps(value, protocol=protocol))
    assert "" == capsys.readouterr().out


def test_a_deep_or_cut_pickle_is_refused() -> None:
    """And one that contains itself."""
    deep: list[Any] = []
    for _ in range(100):
        deep = [deep]
    loop: list[Any] = []
    loop.append(loop)
    for data in (
        pickle.dumps(deep),
        pickle.dumps(loop),
        pickle.dumps([1, 2])[:-1],
        b"\x80\x02",
        b"\x80\x02.",
        b"\x80\x02(l",
    ):
        with pytest.raises(NotPlain):
            read_plain_pickle(data)


def test_the_pickle_of_a_job_that_is_refused_is_named(tmp_path: Path) -> None:
    """It is not read, and the answer states it."""
    result = answer(tmp_path, rank_0=pickle.dumps({"entries": [Evil()]}, protocol=2), log="x\n" + timeout(0))

    assert any("more than plain data" in (file.reason or "") for file in result.source.files)


RAS = """NCCL version 2.26.5 compiled with CUDA 12.8

Job summary
===========

Communicators... (0.00s)
=============

Warnings
========

#0-0 (7c11) MISMATCH
  Communicator ranks have different AllReduce operation counts
  {many} ranks have launched up to operation {most}
  Rank {rank} has launched up to operation {one} -- GPU 5 managed by process 52021 on node 10.31.7.22
"""


def test_ras_needs_two_snapshots_to_call_it_a_hang(tmp_path: Path) -> None:
    """One is of low confidence."""
    text = RAS.format(many=31, most=18, rank=21, one=10)
    once = answer(tmp_path, a=text)
    (tmp_path / "b").write_text(text)
    twice = answer(tmp_path)

    assert "hung: rank-behind (rank, low, ranks [21], 10.31.7.22)" == describe(once)
    assert "hung: rank-behind (rank, high, ranks [21], 10.31.7.22)" == describe(twice)
    assert "hang" in first(twice).summary


def test_ranks_that_ras_lists_may_be_ahead(tmp_path: Path) -> None:
    """Then nobody is behind that is known."""
    result = answer(tmp_path, a=RAS.format(many=30, most=10, rank=6, one=11))

    assert [] == result.causes


def snapshot(counts: list[int]) -> str:
    """As `ncclras -f json` prints it."""
    ranks = [
        {
            "rank": rank, "host": f"10.0.0.{rank // 8}", "pid": 100 + rank, "cuda_dev": rank % 8,
            "collective_counts": {"AllReduce": count},
        }
        for rank, count in enumerate(counts)
    ]  # fmt: skip
    communicator = {"hash": "0x7c11", "size": len(counts), "ranks": ranks, "missing_ranks": []}
    return json.dumps({"nccl_version": "2.28.9", "timestamp": "x } {", "communicators": [communicator]}, indent=2)


@pytest.mark.parametrize("form", ["indented", "prefixed", "one line", "file", "cut"])
def test_ras_as_json_within_a_log(tmp_path: Path, form: str) -> None:
    """Two snapshots among other lines, whoever's prefix they have; a part of one is named."""
    text = snapshot([18] * 31 + [10])
    if form == "one line":
        text = json.dumps(json.loads(text))
    first_one, second = text.split("\n"), text.split("\n")
    if form != "file":
        first_one[len(first_one) // 2 : len(first_one) // 2] = ["[0] epoch 3", info(0, "Bootstrap : x").strip()]
    lines = (
        [*first_one, *second] if form == "file" else [*steps().split("\n"), *first_one, *steps().split("\n"), *second]
    )
    if form == "cut":
        lines = lines[:-9]
    if form == "prefixed":
        lines = [f"0: {line}" for line in lines]
    result = answer(tmp_path, log="\n".join(lines) + "\n")

    confidence = "low" if form == "cut" else "high"
    assert f"hung: rank-behind (rank, {confidence}, ranks [31], 10.0.0.3)" == describe(result)
    assert "RAS" in (result.source.files[0].read_as or "")
    assert (form == "cut") == ("a snapshot is damaged or cut" in (result.source.files[0].reason or ""))


def test_dead_processes_of_ras(tmp_path: Path) -> None:
    """In text and in JSON."""
    text = (
        RAS.partition("#0-0")[0]
        + "DEAD\n  1 job process is considered dead\n  Process 77 on node 10.0.0.9 managing GPU 3\n"
    )
    rank = {
        "rank": 3,
        "host": "10.0.0.9",
        "pid": 77,
        "cuda_dev": 3,
        "status": {"considered_dead": True, "unresponsive": True},
    }
    document = {
        "nccl_version": "2.28.3",
        "communicators_count": 1,
        "communicators": [{"hash": "a", "size": 8, "ranks": [], "missing_ranks": [rank]}],
    }

    for content in (text, json.dumps(document)):
        result = answer(tmp_path, ras=content)
        assert "failed: process-dead (rank, high, 10.0.0.9)" == describe(result)


def inspector(times: dict[str, dict[int, float]], count: int = 30, cut: bool = False) -> dict[str, str]:
    """Files of communicators: microseconds of each rank; rank r of each is process r of host gpu<r>."""
    files: dict[str, str] = {}
    for name, ranks in times.items():
        for rank, time in ranks.items():
            for sequence in range(1, count + 1):
                record = {
                    "header": {
                        "id": f"0x{name}",
                        "comm_name": name,
                        "rank": rank,
                        "n_ranks": len(ranks),
                        "nnodes": len(ranks),
                    },
                    "metadata": {"hostname": f"gpu{rank}", "pid": 100},
                    "coll_perf": {
                        "coll": "AllReduce",
                        "coll_sn": sequence,
                        "coll_msg_size_bytes": 1 << 26,
                        "coll_exec_time_us": time + sequence % 3,
                        "coll_timing_source": "kernel_gpu",
                    },
                }
                files[f"gpu{rank}-pid100__log"] = files.get(f"gpu{rank}-pid100__log", "") + json.dumps(record) + "\n"
    if cut:
        files["gpu0-pid100__log"] = files["gpu0-pid100__log"][:-40]
    return files


def test_the_late_rank_has_the_shortest_times(tmp_path: Path) -> None:
    """The others wait for it; a cut last line is tolerated."""
    result = answer(tmp_path, **inspector({"dp0": {0: 3000, 1: 3000, 2: 400, 3: 3000}}, cut=True))

    assert "unknown: rank-late (rank, medium, ranks [2], gpu2)" == describe(result)
    assert any("cut or damaged" in (file.reason or "") for file in result.source.files)


@pytest.mark.parametrize(
    "times",
    [
        {"1": {0: 400.0, 1: 400.0, 2: 370.0, 3: 400.0}},
        {"1": {0: 3000.0, 1: 3000.0, 2: 400.0, 3: 3000.0}, "2": {0: 300.0, 1: 300.0, 2: 300.0, 3: 300.0}},
    ],
    ids=["jitter", "late in one group and even in another"],
)
def test_no_rank_is_late(tmp_path: Path, times: dict[str, dict[int, float]]) -> None:
    """Below what can be told apart, or not everywhere."""
    assert [] == answer(tmp_path, **inspector(times)).causes


def test_few_joint_numbers_show_nothing(tmp_path: Path) -> None:
    """Samples of fewer than 20."""
    result = answer(tmp_path, **inspector({"dp0": {0: 3000, 1: 3000, 2: 400, 3: 3000}}, count=10))

    assert [] == result.causes


def test_a_slow_communicator_beside_its_siblings(tmp_path: Path) -> None:
    """All its ranks alike."""
    even = {0: 500.0, 1: 500.0, 2: 500.0, 3: 500.0}
    slow = dict.fromkeys(even, 1500.0)
    result = answer(tmp_path, **inspector({"1": even, "2": even, "3": slow, "4": even}))

    assert "unknown: communicator-slow (fabric, medium)" == describe(result)
    assert "communicator 3 is slow as a whole" in first(result).summary


@pytest.mark.parametrize(("limit", "expected"), [(1, "time-out-short"), (600_000, "collective-stuck")])
def test_a_time_out_that_no_collective_keeps(limit: int, expected: str, tmp_path: Path) -> None:
    log = (
        "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE, NumelIn=1, "
        f"NumelOut=1, Timeout(ms)={limit}) ran for {limit + 89} milliseconds before timing out.\n"
    )

    assert expected == first(answer(tmp_path, log=log)).id


RAS_END = """#0-0 (fa93daea854b0601) MISMATCH
  Communicator ranks have different AllGather operation counts
  31 ranks have launched up to operation 641
  1 rank has launched up to operation 640
  Rank 21 -- GPU 5 managed by process 4711 on node 10.1.0.24
"""


@pytest.mark.parametrize("start", [0, 1])
def test_the_end_of_a_snapshot_alone(tmp_path: Path, start: int) -> None:
    """A snapshot of RAS is read from whatever line the paste begins with."""
    cause = first(answer(tmp_path, a__log="\n".join(RAS_END.splitlines()[start:])))

    assert ("rank-behind", [21]) == (cause.id, cause.at_fault.ranks)


def test_the_local_rank_of_a_table_of_failures(tmp_path: Path) -> None:
    """The GPU is that of its own row, not its place among the ranks that are known."""
    table = "  host      : gpu-3.train\n  rank      : 30 (local_rank: 6)\n  exitcode  : -9 (pid: 3408)\n"

    assert "rank 30 on gpu-3, GPU 6" in first(answer(tmp_path, a__log=table)).summary
