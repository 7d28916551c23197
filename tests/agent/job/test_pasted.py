"""Excerpts as people paste them: a few lines, cut or wrapped, of whatever library failed first."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.job.jobs import NONE, Log, answer, check, describe, first, info, steps

WAITED = "[rank{0}]:[E1103 04:12:57.1 ProcessGroupNCCL.cpp:616] [Rank {0}] Watchdog caught collective operation "
CALL = (
    "timeout: WorkNCCL(SeqNum={}, OpType={}, NumelIn={}, NumelOut=4, Timeout(ms)=600000) ran for 600042 milliseconds\n"
)
WRAPPED = (
    "[rank{}] Watchdog caught collective operation timeout:\nWorkNCCL(SeqNum=77, OpType=ALLREDUCE,\nNumelIn={}, Num"
)
WRAPPED += "elOut={}, Timeout(ms)=600000)\n\n"
THROWN = "terminate called after throwing an instance of 'gloo::IoException'\n"
REFUSED = "  what():  [/src/gloo/transport/tcp/pair.cc:770] connect [{}]:41022: Connection refused\n"
NCCL_THREAD = "[E ProcessGroupNCCL.cpp:916] [Rank 5] NCCL watchdog thread terminated with exception: CUDA error: "
ECC = "uncorrectable ECC error encountered\n"
MPI = "mpirun noticed that process rank 3 with PID 4711 on node 10.9.31.4 exited on signal 11 (Segmentation fault).\n"
AGENT = (
    "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -9) local_rank: 6 (pid: 812) of binary: x\n"
)
NO_ROUTE = (
    "gpu5:471:481 [2] misc/socket.cc:540 NCCL WARN socketPollConnect: Connect to 10.9.0.4<41022> returned 113(No route "
    "to host) errno 115(Operation now in progress)\n"
)
CUT_TRACEBACK = "[2026-11-03 04:12:30 TP9] Scheduler hit an exception: Traceback (most recent call last):\n"
BRIDGED = "n1:10:11 [0] include/socket.h:403 NCCL WARN Connect to fe80::2a:17ff:fe22:b00c%veth2<7> failed : Connection "
DIFFERENT = "Detected mismatch between collectives on ranks. Rank 1 is running collective: CollectiveFingerPrint("
DIFFERENT += "SequenceNumber=31, OpType=ALLREDUCE, TensorShape=[1958], TensorDtypes=BFloat16), but Rank 0 is running "
DIFFERENT += (
    "collective: CollectiveFingerPrint(SequenceNumber=31, OpType=ALLREDUCE, TensorShape=[511], TensorDtypes=BFl"
)

HYDRA = "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   {}PID 4711 RUNNING AT gpu7\n=   {}\n"
MIXED = (
    info(0, "NET/IB : Using [0]mlx5_9:1/RoCE ; OOB eth0:10.9.0.2<0>", "n1")
    + info(1, "Bootstrap : Using eno1:10.9.0.3<0>", "n2")
    + info(1, "NCCL_IB_DISABLE set by environment to 1.", "n2")
    + info(1, "NET/IB : No device found.", "n2")
    + info(1, "Using network Socket", "n2")
)

LEFT_OUT = "WARNING batch 12 is left out: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
NOT_PLACED = "  Warning FailedScheduling 5m default-scheduler 0/4 nodes are available: 4 Insufficient nvidia.com/gpu.\n"

BARRIER = "RuntimeError: Timed out initializing process group in store based barrier on rank: 0, for key: store_based_"
BARRIER += "barrier_key:1 (world_size=2, worker_count={}, timeout=0:10:00)\n"

MASKS = {
    "Slurm": "cpu-bind=MASK - gpu{host}, task  {rank}  0 [471]: mask 0x{mask:x} set\n",
    "Open MPI": "[gpu{host}:4711] Rank {rank} bound to package[0][core:{first}-{last}]\n",
    "Open MPI 4": "[gpu{host}:4711] MCW rank {rank} bound to socket 0[core {first}[hwt 0]], socket 0: [{cells}]\n",
    "Intel MPI": "[0] MPI startup(): {rank}  4711  gpu{host}  {{{first}-{last}}}\n",
    "xthi": "Hello from rank {rank}, thread 0, on gpu{host}. (core affinity = {first}-{last})\n",
}


def masks(form: str, shared: bool) -> str:
    """Four ranks on each of two hosts, two CPUs for each; on the second host perhaps the same two for all."""
    rows = []
    for rank in range(8):
        first = 0 if shared and rank > 3 else rank % 4 * 2
        cells = "/".join("B" if first <= cell <= first + 1 else "." for cell in range(8))
        values = {"rank": rank, "host": 7 + rank // 4, "first": first, "last": first + 1, "mask": 3 << first}
        rows.append(MASKS[form].format(cells=cells, **values))
    return "".join(rows) + steps(3)


def far_pair(distance: int, hosts: tuple[int, ...]) -> str:
    """GPU 3 and NIC 3 of some hosts are far from each other, and the other three pairs are near."""
    form = "GPU Direct RDMA {} for GPU {} / HCA {} (distance {} {} 5)"
    return "".join(
        info(gpu, form.format("Disabled", gpu, gpu, distance, ">") if gpu == 3 and host in hosts
             else form.format("Enabled", gpu, gpu, 4, "<="), f"n{host}")
        for host in (1, 2) for gpu in range(4)
    ) + info(0, "comm 0x5 rank 0 nRanks 8 nNodes 2 localRanks 4 localRank 0 MNNVL 0", "n1")  # fmt: skip


LOGS = (
    *(Log(f"ranks that share cores, {form}", masks(form, shared=True),
          "unknown: ranks-share-cores (setting, medium, ranks [4, 5, 6, 7], gpu8)", "share 2 CPUs") for form in MASKS),
    *(Log(f"ranks with cores of their own, {form}", masks(form, shared=False), "unknown: no cause") for form in MASKS),
    Log("a pair without GPUDirect on one host", far_pair(8, (2,)), "unknown: gpudirect-pair-far (hardware, medium, n2)",
        "distance 8, and 4"),
    Log("the same pair on all hosts", far_pair(8, (1, 2)), "unknown: no cause"),
    Log("one collective with two sizes, wrapped as a browser wraps it",
        WRAPPED.format(6, 45, 45) + WRAPPED.format(5, 8, 8),
        "failed: collectives-differ (software, medium, ranks [5, 6])", "of 8 elements on rank 5"),
    Log("sizes of an operation that may differ", "".join(
        WAITED.format(rank) + CALL.format(7, "GATHER", rank + 1) for rank in (0, 1)),
        "hung: collective-stuck (unknown, low)"),
    Log("one rank that is ahead, in another operation", "".join(
        WAITED.format(rank) + CALL.format(9 + 2 * (rank == 0), "_ALLGATHER_BASE" if rank == 0 else "BROADCAST", 3)
        for rank in (2, 1, 0)),
        "hung: collectives-apart (software, low)", "ranks 1-2 waited in collective 9 (BROADCAST), and rank 0 in 11"),
    Log("a terminal that cut a record within its bracket", WAITED.format(3) + CALL.format(4, "ALLREDUCE", "51\n64")
        + WAITED.format(1) + CALL.format(4, "ALLREDUCE", "51\n64"), "hung: collective-stuck (unknown, low)"),
    Log("shapes of a collective that differ", DIFFERENT, "failed: collectives-differ (software, high)",
        "as number 31: rank 1 ALLREDUCE of shape [1958], rank 0 ALLREDUCE of shape [511]: the program's own error"),
    Log("the message of an exception is on the line after it", THROWN + REFUSED.format("10.9.1.1"),
        "failed: connect-failed (peer, medium)", "cannot connect to [10.9.1.1]:41022"),
    Log("a crash far from it is one of its own", THROWN + "x\n" * 9 + REFUSED.format("10.9.1.1"),
        "failed: crash (software, medium)"),
    Log("an address of the host itself", REFUSED.format("127.0.1.1"),
        "failed: connect-failed (peer, medium)", "the name of a host resolves to it"),
    Log("no route, before the traceback that follows from it", NO_ROUTE + CUT_TRACEBACK,
        "failed: connect-failed (peer, medium, gpu5)", "No route to host"),
    Log("an interface of a container's bridge, on the one host that is known", BRIDGED + "timed out\n",
        "failed: connect-failed (setting, high, n1)", "of veth2, which other hosts do not reach"),
    Log("CUDA's text in the words of another library",
        "[TensorRT-LLM][ERROR] CUDA runtime error in cudaSetDevice(device): invalid device ordinal (/src/a.cpp:34)\n",
        "failed: cuda-101 (rank, high)", "more ranks than GPUs"),
    Log("an old number of CUDA; the text decides", "RuntimeError: cuda runtime error (39) : " + ECC,
        "failed: cuda-214 (hardware, high)"),
    Log("two forms of one error are one cause", "E] failed call to cuCtxCreate: CUDA_ERROR_ECC_UNCORRECTABLE: " + ECC
        + NCCL_THREAD + ECC, "failed: cuda-214 (hardware, high, ranks [5]), then ranks [5]"),
    Log("a process of MPI by its address", MPI, "failed: crash (software, medium, ranks [3], 10.9.31.4)"),
    Log("a process by its number on the host", AGENT, "killed: killed (rank, medium)", "local rank 6 (pid 812)"),
    Log("host memory, of two processes in one line", "memory allocation of memory allocation of 41943040 bytes failed\n"
        " bytes failed\nmemory allocation of 4194304 bytes failed\n", "failed: host-memory (software, high)",
        "(4194304 bytes)"),
    Log("the program's own error, with the rank", "[rank2]: TypeError: f() got an unexpected keyword argument 'x'\n",
        "failed: python-exception (software, medium, ranks [2])", "the program's own error, first on rank 2"),
    Log("the program's own error without a text", "[rank2]: AssertionError\n",
        "failed: python-exception (software, medium, ranks [2])", "nothing of this line is of the network or a GPU"),
    Log("an error of the system is not called the program's", "[rank2]: OSError: [Errno 8] Exec format error: 'x'\n",
        "failed: python-exception (software, medium, ranks [2])", "rank 2 stopped with OSError"),
    Log("a store without an address", "RuntimeError: connect() timed out. Original timeout was 60000 ms.\n",
        "failed: store-unreachable (peer, medium)", "a process cannot reach the rendezvous\n"),
    Log("hosts with and without RDMA", MIXED, "unknown: networks-differ (setting, high, n2)",
        "no RDMA device on n2 (NCCL_IB_DISABLE is set there), and n1 uses theirs"),
    Log("the same, and it works", MIXED + "iteration 7 | loss 1.0\n", "unknown: networks-differ (setting, high, n2)"),
    Log("a log that ends in a note of a library", "I1103 04:12:05.101202 47 bridge.py:660] Unable to open libx.so: "
        "failed\nstep 10 loss 2.31\n", "unknown: no cause"),
    Log("a log that ends in an error of nobody, and its first error", "frob error: 7\nstep 1\nother failure\n",
        "failed: ends-in-error (unknown, low)", "the first in line 1: frob error: 7"),
    Log("the box of Hydra", HYDRA.format("RANK 3 ", "KILLED BY SIGNAL: 9 (Killed)"),
        "killed: killed (rank, medium, ranks [3], gpu7)", "rank 3 on gpu7 was killed"),
    Log("the box of an older Hydra", HYDRA.format("", "EXIT CODE: 139"), "failed: crash (software, medium, gpu7)"),
    Log("a container of Paddle", "Container rank 5 status failed cmd ['python', 'a.py'] code 1 log log/worker.5\n",
        "failed: exit-code (software, medium, ranks [5])"),
    Log("a rank of vLLM, by the prefix of its worker",
        "(VllmWorker rank=3 pid=47) ERROR 07-10 10:00:00 [a.py:54] RuntimeError: CUDA error: " + ECC,
        "failed: cuda-214 (hardware, high, ranks [3])"),
    Log("a rank of SGLang", "[2026-03-01 12:00:00 TP11] Watchdog timeout (self.watchdog_timeout=300)\n",
        "failed: server-no-step (unknown, low, ranks [11])"),
    Log("more than one kind of rank in a prefix is none of the whole job",
        "[2026-03-01 12:00:00 DP1 TP3] Watchdog timeout (self.watchdog_timeout=300)\n",
        "failed: server-no-step (unknown, low)"),
    Log("a rank that another one names", "RuntimeError: Rank 0 successfully reached monitoredBarrier, but received "
        "errors while waiting for send/recv from rank 6. Please check rank 6 logs for faulty rank.\n",
        "hung: monitored-barrier (rank, high, ranks [6])"),
    Log("the number of an abort of MPI", "MPI_ABORT was invoked on rank 4 in communicator MPI_COMM_WORLD\n",
        "failed: exit-code (software, medium, ranks [4])"),
    Log("an address without how it failed",
        "  Message:    connect() to 10.9.0.7:1024 failed\n  Error:      No route to "
        "host (113)\n", "failed: connect-failed (peer, medium)", "cannot connect to 10.9.0.7:1024"),
    Log("a note that looks like an error, and the job goes on",
        "UserWarning: Failed to load an extension\nstep 1 loss 2\n",
        "unknown: no cause"),
    Log("an error that the job outlived by many steps", LEFT_OUT + steps(30), "unknown: 1 note"),
    Log("an error after which few steps are shown", LEFT_OUT + steps(29),
        "failed: gpu-out-of-memory (software, high)"),
    Log("an error that the job outlived, and another one", LEFT_OUT + steps(30) + "[rank2]: MemoryError\n",
        "failed: host-memory (software, high, ranks [2]); 1 note"),
    Log("an exception that Python ignores",
        "Exception ignored in: <function f at 0x7f>\nTraceback (most recent call last):"
        "\n  File \"a.py\", line 7, in f\nValueError: gone\n", "unknown: 1 note"),
    Log("the next one is not ignored", "Exception ignored in: <function f at 0x7f>\nValueError: gone\n[rank1]: "
        "KeyError: 'x'\n", "failed: python-exception (software, medium, ranks [1]); 1 note"),
    Log("a pod that got no host", NOT_PLACED, "failed: pod-not-placed (software, medium)"),
    Log("a pod that got its host later",
        NOT_PLACED + "  Normal  Scheduled  4m  default-scheduler  Successfully assigned "
        "ml/worker-1 to gpu-a07\n", "unknown: 1 note"),
    Log("ranks that did not come to the store", BARRIER.format(1), "failed: store-barrier (peer, medium)",
        "1 of 2 ranks came"),
    Log("more ranks than there are", BARRIER.format(4), "failed: store-barrier (software, high)", "an earlier job"),
    Log("a process of multiprocessing.spawn", "Exception: process 3 terminated with signal SIGKILL\n",
        "killed: killed (rank, medium, ranks [3])", "rank 3 was killed"),
    Log("a log that ends in a warning", "[TensorRT-LLM][WARNING] [json.exception.out_of_range.403] no key\nRank 2\n"
        "model | WARNING | x failed\n", "unknown: no cause"),
    Log("a traceback that a logger writes as a note", "[INFO] [Driver] Traceback (most recent call last):\n",
        "failed: ends-in-error (unknown, low)"),
    Log("a number of GPUs in the program's own error", "AssertionError: batch 256 must be divisible by n_gpus 24\n",
        "failed: python-exception (software, medium)", "the program's own error"),
    Log("an error about a GPU is not called the program's", "AssertionError: GPU 3 is not there\n",
        "failed: python-exception (software, medium)", "stopped with AssertionError"),
    Log("the rank of Ascend's lines",
        "[ERROR] 2026-11-03-07:12:05 (PID:47, Device:3, RankID:3) ERR02200 DIST call hccl api failed.\n",
        "failed: hccl-call-failed (unknown, low, ranks [3])"),
)  # fmt: skip


@pytest.mark.parametrize("row", LOGS, ids=lambda row: row.about)
def test_what_an_excerpt_shows(tmp_path: Path, row: Log) -> None:
    """Its cause, the part, and who was only hit by it."""
    check(tmp_path, row)


def test_a_record_that_names_a_setting_does_not_give_it(tmp_path: Path) -> None:
    """A hint of a library is no launch command."""
    hint = info(0, "Dmabuf feature disabled without NCCL_ENABLE_DMABUF_SUPPORT=1")

    assert [] == answer(tmp_path, log=hint).settings
    assert ["NCCL_DEBUGG"] == [row.name for row in answer(tmp_path, log="export NCCL_DEBUGG=1\n" + hint).settings]


def test_what_to_do_fits_how_a_connection_failed(tmp_path: Path) -> None:
    """A refused one is of the process there, others are of the way."""
    refused = first(answer(tmp_path, log=REFUSED.format("10.9.1.1")))
    late = first(answer(tmp_path, log=NO_ROUTE))

    assert [True, False] == [any("ended first" in step for step in cause.next) for cause in (refused, late)]
    assert [False, True] == [any("firewall" in step for step in cause.next) for cause in (refused, late)]


def test_lines_behind_a_wrapped_record_keep_their_numbers(tmp_path: Path) -> None:
    """What is joined leaves an empty line."""
    result = answer(tmp_path, NONE, log=WRAPPED.format(6, 45, 45) + "[rank2]: RuntimeError: x\n")

    assert "hung: collective-stuck (unknown, low), then ranks [2]" == describe(result)
    assert [5] == [row.evidence[0].line for row in result.consequences]


@pytest.mark.parametrize(
    "prefix",
    [
        "> ",
        "> > ",
        "run.log:12:",
        "logs/rank.err: ",
        "2026-11-20 14:37:16,123 ",
        "[2026-11-20 14:37:16] ",
        "20:46:57.892 ",
        "[20:46:57] ",
        "Nov 16, 2026 @ 20:46:57.892    ",
        "trainer.cn-d003 [stderr] ",
        "(pid=123) ",
        "    ",
    ],
)
def test_an_exception_behind_what_a_paste_has_before_it(tmp_path: Path, prefix: str) -> None:
    """Quotes, file names of grep, and times are no part of it, and name no rank."""
    result = answer(tmp_path, log=f"{prefix}KeyError: 'loss'\n")

    assert "failed: python-exception (software, medium)" == describe(result)
    assert "KeyError: 'loss'; nothing" in first(result).summary


def test_a_log_of_workers_without_a_failure_is_a_job_of_which_the_end_is_not_known(tmp_path: Path) -> None:
    line = "(Worker_TP{0} pid=81{0}) INFO 11-03 04:10:1{0} [gpu_worker.py:227] Available KV cache memory: 5.3 GiB\n"

    result = answer(tmp_path, log="".join(line.format(rank) for rank in range(4)))

    assert (result.job.ended, result.causes, result.notes) == ("unknown", [], [])
