"""What lies beside a log, or is written into it: limits, RAS, kernel logs, JSON of collectors, counts of NICs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.agent.job.jobs import Log, answer, begin, check, first, info, steps, warn

REGISTER = "Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory"
FLAP = "NET/IB : mlx5_1:1 Got async error event: port error"
SNAPSHOT = """NCCL version 2.26.5 compiled with CUDA 12.8
CUDA runtime version 12080, driver version 12080

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      1          4            1          4        4

#0-0 (7c11d0aa51be9f02) MISMATCH
  Communicator ranks have different AllReduce operation counts
  3 ranks have launched up to operation {most}
  Rank 2 has launched up to operation {least} -- GPU 2 managed by process 102 on node gpu1
"""


@pytest.mark.parametrize(
    ("line", "words", "fault"),
    [
        ("max locked memory       (kbytes, -l) 8192", "the limit of locked memory there is 8192 KiB", "setting"),
        ("-l: locked-in-memory size (kbytes)  64", "the limit of locked memory there is 64 KiB", "setting"),
        ("Max locked memory         65536                65536                bytes     ", "is 64 KiB", "setting"),
        ("max locked memory       (kbytes, -l) unlimited", "the limit of locked memory is not low", "rank"),
        ("max locked memory       (kbytes, -l) 1048576", "the limit of locked memory is not low", "rank"),
        ("max memory size         (kbytes, -m) 64", "the limit of locked memory of the job is too low", "setting"),
    ],
)
def test_the_limit_of_locked_memory_beside_a_job(tmp_path: Path, line: str, words: str, fault: str) -> None:
    """`ulimit -a` of the job, or limits of its process in /proc."""
    cause = first(answer(tmp_path, log=begin(2) + warn(1, REGISTER), limits=f"core file size (blocks, -c) 0\n{line}\n"))

    assert "memlock-low" == cause.id
    assert words in cause.summary
    assert fault == cause.at_fault.kind
    assert ("locked" in line.lower()) == any("limits" == row.source for row in cause.evidence)


def test_ras_text_inside_a_log(tmp_path: Path) -> None:
    """Snapshots between records of NCCL, with the prefix of a launcher; two of equal counts are a hang."""
    dumps = [SNAPSHOT.format(most=2218, least=2210).splitlines() for _ in range(2)]
    noise = info(0, "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM").strip()
    lines = [*begin(4).splitlines(), *steps().splitlines(), *dumps[0], noise, "$ ncclras", *dumps[1]]
    for prefix in ("", "0: "):
        result = answer(tmp_path, log="".join(f"{prefix}{line}\n" for line in lines))
        assert "hung" == result.job.ended, prefix
        assert "rank 2 (GPU 2 on gpu1, process 102) stays at AllReduce 2210" in first(result).summary
        number = first(result).evidence[0].line or 0
        assert "Rank 2 has launched up to operation 2210" in (tmp_path / "log").read_text().splitlines()[number - 1]


def test_records_between_the_lines_of_a_snapshot_are_read(tmp_path: Path) -> None:
    """A warning there is a cause like any other."""
    head, _, tail = SNAPSHOT.format(most=2218, least=2210).partition("  3 ranks")
    result = answer(tmp_path, log=begin(4) + steps() + head + warn(1, FLAP).lstrip() + "  3 ranks" + tail)

    assert {"port-down", "rank-behind"} == {cause.id for cause in result.causes}


def test_a_kernel_log_in_the_folder_of_a_host(tmp_path: Path) -> None:
    """Its Xid is of that host; without the folder it may be of either."""
    xid = "[70000.000002] NVRM: Xid (PCI:0000:11:00): 79, pid=1010, GPU has fallen off the bus.\n"
    log = begin(4, 2) + steps() + warn(0, "socketProgress: Connection closed by remote peer gpu2<41000>")
    (tmp_path / "gpu2").mkdir()
    (tmp_path / "gpu2" / "dmesg").write_text(xid)
    cause = first(answer(tmp_path, log=log))
    assert ("xid", [2], "gpu2") == (cause.id, cause.at_fault.ranks, cause.at_fault.host)

    (tmp_path / "gpu2" / "dmesg").rename(tmp_path / "dmesg")
    cause = first(answer(tmp_path, log=log))
    assert ("xid", [], "medium") == (cause.id, cause.at_fault.ranks, cause.confidence)
    assert "of gpu1 or gpu2 (no line names its host)" in cause.summary


@pytest.mark.parametrize("key", ["log", "message", "msg", "MESSAGE"])
def test_lines_of_a_log_collector(tmp_path: Path, key: str) -> None:
    """JSON around each line is removed; its time stays."""
    rows = [
        {key: line + "\n", "stream": "stderr", "time": "2026-11-03T04:12:09.5Z"}
        for line in (begin(2) + steps() + warn(1, FLAP)).splitlines()
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows) + '{"cut": \n'
    result = answer(tmp_path, log=text)

    assert "port 1 of mlx5_1 on gpu1 (rank 1)" in first(result).summary
    assert "2026-11-03T04:12:09" == first(result).at
    assert 1 == result.job.nodes


def test_the_host_with_fewer_nics(tmp_path: Path) -> None:
    """By what each rank lists; without that the line alone."""
    line = "Detected mixed local Net device counts across ranks (min 7, max 8)"
    counts = info(0, "Rank 0 has 8 local Net devices") + info(2, "Rank 2 has 7 local Net devices", "gpu2", 0)
    cause = first(answer(tmp_path, log=begin(4, 2) + counts + warn(0, line)))
    assert ("device-counts-differ", "gpu2", [2]) == (cause.id, cause.at_fault.host, cause.at_fault.ranks)
    assert "gpu2 has fewer NICs than the others: 7 of 8" == cause.summary

    assert "min 7, max 8" in first(answer(tmp_path, log=begin(4, 2) + warn(0, line))).summary


def test_settings_that_differ_explain_sizes_that_differ(tmp_path: Path) -> None:
    """The cause is the setting, with both values."""
    line = "NET/Socket : peer 10.0.0.1<5000> message truncated : receiving 1048576 bytes instead of 65536"
    sets = [info(rank, f"NCCL_PROTO set by environment to {value}") for rank, value in ((0, "LL"), (1, "Simple"))]
    cause = first(answer(tmp_path, log=begin(2) + "".join(sets) + warn(1, line)))
    assert ("socket-truncated", "setting") == (cause.id, cause.at_fault.kind)
    assert "ranks differ in NCCL_PROTO (LL in the environment of rank 0, Simple" in cause.summary

    cause = first(answer(tmp_path, log=begin(2) + sets[0] + warn(1, line)))
    assert "software" == cause.at_fault.kind


def test_a_rank_that_stops_while_the_others_wait(tmp_path: Path) -> None:
    """Its exception is the cause, also where it is printed late; one of a rank that waited, or that may follow from
    what the others did and comes afterwards, is not."""
    waits = "".join(
        f"[rank{rank}]:[E ProcessGroupNCCL.cpp:607] [Rank {rank}] Watchdog caught collective operation timeout: "
        f"WorkNCCL(SeqNum=5, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600060 milliseconds "
        "before timing out.\n"
        for rank in (0, 1, 2)
    )
    error = "[rank3]: KeyError: 'labels'\n"
    assert ("python-exception", [3]) == (
        (cause := first(answer(tmp_path, log=error + waits))).id,
        cause.at_fault.ranks,
    )
    assert "python-exception" == first(answer(tmp_path, log=waits + error)).id
    lost = "[rank3]: RuntimeError: worker is gone\n"
    assert "collective-stuck" == first(answer(tmp_path, log=waits + lost)).id
    assert "collective-stuck" == first(answer(tmp_path, log=error.replace("rank3", "rank1") + waits)).id


@pytest.mark.parametrize(
    ("form", "group"),
    [
        ("[PG 1 Rank {}] Exception (either an error or timeout) detected by watchdog at work: 500, last enqueued NCCL "
         "work: {}, last completed NCCL work: 499.", "1"),
        ("[PG 0 Rank {}] Timeout at NCCL work: 500, last enqueued NCCL work: {}, last completed NCCL work: 499.", "0"),
    ],
)  # fmt: skip
def test_older_forms_of_the_watchdog(tmp_path: Path, form: str, group: str) -> None:
    """Where each rank is."""
    lines = [f"[rank{rank}]:[E606 10:00:00.1 ProcessGroupNCCL.cpp:1] {form.format(rank, 502)}" for rank in range(3)]
    dump = (
        "Received a dump signal due to a collective timeout from  rank 0 and we will try our best. "
        "Last enqueued NCCL work: 499, last completed NCCL work: 499."
    )
    lines.append(f"[rank3]:[E606 10:00:01.1 ProcessGroupNCCL.cpp:1] [PG {group} Rank 3] {dump}")
    cause = first(answer(tmp_path, log="\n".join(lines) + "\n"))

    assert ("rank-behind", [3], "high") == (cause.id, cause.at_fault.ranks, cause.confidence)


def exits(*codes: int) -> str:
    """The table of torchrun."""
    rows = "".join(
        f"  host      : gpu1\n  rank      : {rank} (local_rank: {rank})\n  exitcode  : {code} (pid: {100 + rank})\n"
        for rank, code in enumerate(codes)
    )
    return f"Failures:\n{rows}"


def test_aborts_of_waiting_ranks_follow_from_the_rank_that_stopped(tmp_path: Path) -> None:
    """In the launcher's table, too; where all aborted, the first is named."""
    error = "[rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20 GiB.\n"
    for log, expected in (
        (error + exits(-6, -6, 1), ["gpu-out-of-memory"]),
        (error + exits(-6, -6), ["gpu-out-of-memory"]),
        (exits(-6, -6, -11), ["crash"]),
        (exits(-6, -6), ["aborted"]),
    ):
        assert expected == [cause.id for cause in answer(tmp_path, log=log).causes], log


def test_a_host_that_is_glued_to_the_record_before_it(tmp_path: Path) -> None:
    """Two ranks in one line: the process is known by its own lines."""
    glued = info(0, "Channel 00/0 : 0[0] -> 1[0] via P2P/CUMEM").strip() + warn(1, FLAP, "gpu2").strip() + "\n"
    cause = first(answer(tmp_path, log=begin(2, 2) + glued))

    assert ("port-down", "gpu2", [1]) == (cause.id, cause.at_fault.host, cause.at_fault.ranks)


def test_a_process_that_its_number_alone_names(tmp_path: Path) -> None:
    """Ray gives the number; where two hosts have it, it names none."""
    line = "(Worker pid=101, ip=10.0.0.9) torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    assert [1] == first(answer(tmp_path, log=begin(2) + line)).at_fault.ranks

    twice = begin(2) + info(5, "x", "gpu2").replace("gpu2:105", "gpu2:101")
    assert [] == first(answer(tmp_path, log=twice + line)).at_fault.ranks


@pytest.mark.parametrize(
    "line",
    [
        "[  224.528173] bnxt_en 0003:02:00.0 bnxt_re0: Failed to destroy HW QP",
        "<4>[  224.528173] pcieport 0000:00:03.0: AER: device recovery failed",
        "[Tue Nov  3 04:12:30 2026] mlx5_core 0000:18:00.0: command failed, error",
        "Nov 03 04:12:30 gpu1 nvidia-fabricmanager[224]: failed to start: error",
        "[Oct 31 2023 21:11:20] [ERROR] [tid 527118]   multicast handle failed, error",
        "Nov 03 04:12:30 gpu1 kernel: NVRM: GPU 0000:01:00.0: rm_init_adapter failed",
    ],
)
def test_a_kernel_log_that_ends_in_an_error_fails_no_job(tmp_path: Path, line: str) -> None:
    """It is of the host; a job's own log that ends so is a failure."""
    lines = "".join(line.replace("224", str(number)) + "\n" for number in range(224, 230))
    healthy = begin(2) + steps() + "Training complete\n"
    result = answer(tmp_path, log=healthy, host=lines)
    assert ("well", "No failure in it", []) == (result.job.ended, result.headline, result.causes)

    result = answer(tmp_path, log=healthy, app="the program failed: an error\n")
    assert ["ends-in-error"] == [cause.id for cause in result.causes]


@pytest.mark.parametrize(
    ("field", "causes"), [('"error": ""', []), ('"errors":[]', []), ('"error":"lost"', ["ends-in-error"])]
)
def test_an_empty_field_of_json_is_no_error(tmp_path: Path, field: str, causes: list[str]) -> None:
    result = answer(tmp_path, log=begin(2) + steps(), app=f'{{"step": 4, {field}, "fatal_error": null}}\n')
    assert causes == [cause.id for cause in result.causes]


def test_outputs_of_a_host_alone_are_no_failed_job(tmp_path: Path) -> None:
    """Not known, and the reports have what is wrong."""
    lines = "[  224.528173] mlx5_core 0000:18:00.0: probe failed, error\n" * 3
    result = answer(tmp_path, dmesg__txt=lines)

    assert ("unknown", []) == (result.job.ended, result.causes)
    assert result.headline.startswith("Not known from these files")


WAITED = "".join(
    f"[rank{rank}]:[E1103 04:12:57.1 ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum=77, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 600042 ms\n"
    for rank in (0, 1, 3)
)
SHARD = "WARNING loader: read of shard 41 failed ([Errno 5] Input/output error)\n"
FULL = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 2 has a total capacity of 79.11 GiB "
)
FULL += (
    "of which 90.06 MiB is free. Process 4711 has 70.44 GiB memory in use. Including non-PyTorch memory, this process "
)
PREEMPTED = (
    "step 10 loss 2\nslurmstepd: error: *** JOB 7 ON gpu1 CANCELLED AT 2026-11-03T04:12:30 DUE TO PREEMPTION ***\n"
)
NETWORKS = "".join(
    f"gpu{host}:1:2 [0] NCCL INFO Bootstrap: Using eth0:10.9.0.{host}<0>\n"
    f"gpu{host}:1:2 [0] NCCL INFO Using network {'Socket' if host == 2 else 'Libfabric'}\n"
    for host in (1, 2, 3)
)
LOGS = (
    Log("what a rank wrote for which the others waited", f"step 76 loss 2.1\n[rank2]: {SHARD}{WAITED}",
        "hung: rank-silent (rank, medium, ranks [2]); earlier-sign (unknown, low, ranks [2])",
        "before it rank 2 wrote: WARNING loader: read of shard 41"),
    Log("the same of a rank that waited", f"step 76 loss 2.1\n[rank0]: {SHARD}{WAITED}",
        "hung: rank-silent (rank, low, ranks [2])"),
    Log("a job that was preempted, and resumed", f"{PREEMPTED}resumed from step 10\nstep 11 loss 2\nstep 12 loss 2\n",
        "unknown: 1 note"),
    Log("one that was not", f"{PREEMPTED}no checkpoint to resume\n", "killed: job-displaced (unknown, high)"),
    Log("the last state of a job", "srun: error: Node failure on gpu7\nstep 3 loss 2\n"
        "77 NODE_FAIL 1:0\n77 COMPLETED 0:0\n",
        "well: 1 note"),
    Log("another job of a list, which failed", "srun: error: gpu1: task 3: Exited with exit code 1\n"
        "77.extern COMPLETED 0:0\n77 FAILED 1:0\n78 COMPLETED 0:0\n",
        "failed: exit-code (software, medium, ranks [3], gpu1)"),
    Log("what a command on several hosts shows", WAITED + "$ pdsh -w gpu[1-4] systemctl is-active firewalld\n"
        + "".join(f"gpu{host}: {'' if host == 3 else 'in'}active\n" for host in range(1, 5)),
        "hung: rank-silent (rank, low, ranks [2]); output-shows (unknown, low)", "beside the log: gpu3: one of"),
    Log("hosts that are alike", WAITED + "$ pdsh -w gpu[1-4] systemctl is-active firewalld\n"
        + "".join(f"gpu{host}: inactive\n" for host in range(1, 5)), "hung: rank-silent (rank, low, ranks [2])"),
    Log("the log of a pod, by its command", "$ kubectl -n ml logs train-2\nRuntimeError: CUDA error: "
        "uncorrectable ECC error encountered\n", "failed: cuda-214 (hardware, high, train-2)"),
    Log("a setting of one host", NETWORKS.replace("Libfabric", "Socket")
        + "gpu2:1:2 [0] NCCL INFO NCCL_P2P_DISABLE set by environment to 1.\n",
        "unknown: setting-of-few (setting, medium, gpu2)",
        "gpu2 alone has NCCL_P2P_DISABLE=1"),
    Log("the network of one host", NETWORKS, "unknown: networks-differ (setting, medium, gpu2)",
        "no RDMA device on gpu2"),
    Log("a GPU that another process fills", f"[rank2]: {FULL}has 8.62 GiB memory in use.\n",
        "failed: gpu-memory-of-others (software, high, ranks [2])", "process 4711 holds 70.44 GiB"),
    Log("a GPU that the job fills", f"[rank2]: {FULL.replace('70.44', '2.44')}has 76.62 GiB memory in use.\n",
        "failed: gpu-out-of-memory (software, high, ranks [2])"),
    Log("a version of one host", "".join(f"gpu{n}: tool 4.1.{2 if n == 4 else 3}, {n}0 plans\n" for n in range(1, 5))
        + "gpu4: ValueError: plans differ\n",
        "failed: python-exception (software, medium, gpu4); rank-differs (rank, low); output-shows (unknown, low)"),
)  # fmt: skip


@pytest.mark.parametrize("row", LOGS, ids=lambda row: row.about)
def test_what_lies_beside_a_failure(tmp_path: Path, row: Log) -> None:
    """Signs before it, states after it, outputs of commands, what one host has otherwise."""
    check(tmp_path, row)
