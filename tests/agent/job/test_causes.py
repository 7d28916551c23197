"""Causes in order, what follows from them, and how a job ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.rules.gpu.xid_catalogue import XIDS
from tests.agent.job.jobs import Log, answer, begin, check, describe, first, info, steps, warn

CLOSED = "socketProgress: Connection closed by remote peer {}<40211>"
FLAP = warn(1, "NET/IB : mlx5_1:1 Got async error event: port error", "gpu2", "04:11:31")
ECC = warn(0, "Cuda failure 214 'uncorrectable ECC error encountered'", "gpu1", "04:11:00")
RETRIES = "NET/IB : Got completion from peer 10.0.0.2<41022> with status=12 opcode=1 len=0 vendor err 129 (Recv)"
FLUSHED = RETRIES.replace("status=12", "status=5").replace("129", "249")
LOST_BY_THREE = "".join(warn(rank, CLOSED.format("gpu2"), f"gpu{rank // 2 + 1}", "04:12:02") for rank in (0, 1, 2))
EXIT = """Root Cause (first observed failure):
[0]:
  host      : gpu2
  rank      : 3 (local_rank: 1)
  exitcode  : {} (pid: 4711)
"""
VICTIM = "[1]:\n  host      : gpu1\n  rank      : 0 (local_rank: 0)\n  exitcode  : -15 (pid: 4711)\n"
AGENT_EXIT = "E1106 04:43:02 26 api.py:869] failed (exitcode: 1) local_rank: 0 (pid: 26026) of binary: python\n"
BARRIER = "RuntimeError: [Rank 0]: Ranks 4, 5 failed to pass monitoredBarrier in 2000 ms\n"
STEP_ENDED = "slurmstepd: error: *** STEP 7.0 ON gpu1 CANCELLED AT 2026-11-21T09:00:02{} ***\n"
TASKS_KILLED = "srun: error: gpu1: tasks 0-7: Killed\n"
NO_DEVICE, SOCKETS = info(0, "NET/IB : No device found."), info(0, "Using network Socket")
NOT_OPENED = warn(0, "NET/IB : Unable to open device mlx5_59")
NO_NVLS = (
    "Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error 401 'x'. Proceeding without NVLS"
)
VIOLATION = "".join((
    warn(3, "NET/IB : mlx5_1:1 Got async fatal event on QP 0x2f1: local access violation work queue error",
         "gpu2", at="07:14:02"),
    warn(1, "NET/IB: Got completion from peer 10.0.0.2<51003> with status=IBV_WC_REM_ACCESS_ERR(10) "
         "opcode=IBV_WC_RDMA_WRITE(1) vendor_err=136 hca mlx5_1", at="07:14:03"),
))  # fmt: skip
END = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 43.1\n"
STALLED = "HorovodBroadcast_w_0 [missing ranks: 0, 3]\n"
SERVED = "".join(f'INFO:     10.2.0.{n}:40114 - "POST /v1/completions HTTP/1.1" 200 OK\n' for n in range(1, 9))
PAIR = """== {0}
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
  4294967296    1073741824     float     sum      -1    20114  213.53  {1}.00      0    20125  213.53  {1}.00      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 43.1
"""
BAD_HANDLE = "Cuda failure 101 'invalid device ordinal'"

SIGNALLED = "srun: error: gpu1: task 0: Exited with exit code 1\n"

LOGS = (
    Log("a user ends the job, and connections close by it",
        begin(2) + steps() + STEP_ENDED.format(" by UID 1207") + warn(1, CLOSED.format("gpu9")) + SIGNALLED,
        "killed: cancelled (software, high, gpu1), then ranks [0, 1]"),
    Log("a full disk by the message of a shell's tool, while others wait",
        "tee: /scratch/run.log: No space left on device\n" + AGENT_EXIT,
        "failed: disk-full (setting, high)", "/scratch/run.log"),
    Log("a time limit, and tasks that exit by its signal", STEP_ENDED.format(" DUE TO TIME LIMIT") + SIGNALLED,
        "killed: time-limit (setting, high), then ranks [0]", "time limit"),
    Log("a user ends the job, and a task exits by the signal", STEP_ENDED.format(" by UID 1207") + SIGNALLED,
        "killed: cancelled (software, high), then ranks [0]", "by UID 1207"),
    Log("a task exits, and its step is ended for it", SIGNALLED + STEP_ENDED.format(""),
        "failed: exit-code (software, medium, ranks [0], gpu1)", "exit code 1"),
    Log("healthy, with the noise that healthy logs have",
        begin(2) + info(0, "socketPollConnect: Connect to 10.0.0.9<4> failed : Connection refused, retrying")
        + info(0, "NET/Plugin: Could not find: libnccl-net.so. Using internal net plugin.") + steps() + END,
        "well: no cause", "No failure in it"),
    Log("the process that the launcher saw end first, below others of its table",
        VICTIM.replace("-15", "1") + EXIT.format(1) + "  traceback : To enable traceback see: https://pytorch.org/x\n",
        "failed: exit-code (software, medium, ranks [3], gpu2)", "with code 1"),
    Log("the same, cut off before its code", VICTIM.replace("-15", "1") + EXIT.partition("  exitcode")[0],
        "failed: exit-code (software, medium, ranks [3], gpu2)", "ended first"),
    Log("a signal in a table that was copied as a text",
        "rank2 (local rank: 2)exitcode: -9 (pid: 36071)error file: <N/A>\n"
        "traceback : signal 9 (SIGKILL) received by PID 36071\n", "killed: killed (rank, medium)", "SIGKILL"),
    Log("a rendezvous at the address of a container, for a process elsewhere",
        "(RayWorker pid=7, ip=10.0.1.75) [E socket.cpp:922] [c10d] The client socket has timed out after 1800s while "
        "trying to connect to (172.17.0.2, 44737).\n"
        "(Actor pid=8, ip=10.0.1.75) [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3856, "
        "OpType=ALLREDUCE, NumelIn=1, Timeout(ms)=1800000) ran for 1800268 milliseconds before timing out.\n",
        "failed: store-unreachable (setting, medium, 10.0.1.75)", "which other hosts do not reach"),
    Log("what a person announces, and lines of a container of YARN",
        "I tried four GPUs but I got an error like this:\n\n" + "".join(
            f"2019-07-04T06:18:48.000Z /container_e559_1557431881457_79419_05_000002: {line}\n" for line in (
                "Traceback (most recent call last):", "PermissionError: [Errno 13] Permission denied: '/root'")),
        "failed: python-exception (software, medium)", "Permission denied"),
    Log("a warning that no row is for", begin(2) + warn(1, "Frobnication of the bus failed"),
        "failed: unexplained (unknown, low, ranks [1], gpu1)", "Frobnication"),
    Log("closed connections follow from the first cause",
        begin(4, 2) + steps() + warn(3, "Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory", "gpu2",
        "04:12:00") + LOST_BY_THREE, "failed: memlock-low (setting, medium, ranks [3], gpu2), then ranks [0, 1, 2]"),
    Log("the rank that wrote nothing, while all others lose their connections to its host",
        begin(4, 2) + steps() + LOST_BY_THREE,
        "failed: rank-silent (rank, medium, ranks [3], gpu2), then ranks [0, 1, 2]"),
    Log("a host whose log is not here", begin(2) + "".join(warn(r, CLOSED.format("gpu9")) for r in (0, 1)),
        "failed: peer-gone (peer, low, gpu9), then ranks [0, 1]"),
    Log("time-outs of the rail whose port went down",
        begin(4, 4) + steps() + FLAP + warn(0, f"{RETRIES} hca mlx5_1", "gpu1", "04:12:09"),
        "failed: port-down (wire, high, ranks [1], gpu2, mlx5_1), then ranks [0]"),
    Log("time-outs of another rail on other hosts",
        begin(4, 4) + steps() + FLAP + warn(2, f"{RETRIES} hca mlx5_7", "gpu3", "04:12:09"),
        "failed: port-down (wire, high, ranks [1], gpu2, mlx5_1); "
        "completion-12 (fabric, medium, ranks [2], gpu3, mlx5_7)"),
    Log("time-outs before the port went down",
        begin(4, 4) + steps() + warn(0, f"{RETRIES} hca mlx5_1", "gpu1", "04:01:00") + FLAP,
        "failed: port-down (wire, high, ranks [1], gpu2, mlx5_1); "
        "completion-12 (fabric, medium, ranks [0], gpu1, mlx5_1)"),
    Log("a memory error of a GPU, and a port of another host", begin(4, 4) + steps() + ECC + FLAP,
        "failed: cuda-214 (hardware, high, ranks [0], gpu1); port-down (wire, high, ranks [1], gpu2, mlx5_1)"),
    Log("retries at once: addresses and MTU", begin(2) + warn(0, RETRIES),
        "failed: completion-12 (fabric, medium, ranks [0], gpu1)", "no collective had worked before"),
    Log("retries later: links and peers", begin(2) + steps() + warn(0, RETRIES),
        "failed: completion-12 (fabric, medium, ranks [0], gpu1)", "collectives had worked before"),
    Log("flushed requests follow from another", begin(2) + warn(0, RETRIES) + warn(0, FLUSHED),
        "failed: completion-12 (fabric, medium, ranks [0], gpu1), then ranks [0]"),
    Log("flushed requests alone", begin(2) + warn(0, FLUSHED), "failed: completion-5 (unknown, low, ranks [0], gpu1)"),
    Log("exit codes of torchrun; those that the agent ended are victims",
        begin(4, 2) + steps() + VICTIM + EXIT.format(-9), "killed: killed (rank, medium, ranks [3], gpu2)"),
    Log("ranks that never started",
        "".join(line for line in begin(4, 2, done=False).splitlines(keepends=True) if ":103:" not in line),
        "hung: rank-not-started (rank, low, ranks [3])"),
    Log("all ranks started", begin(4, 2), "unknown: no cause"),
    Log("TCP between hosts that should have RDMA", begin(2, 2) + NO_DEVICE + SOCKETS + END,
        "well: sockets (setting, medium)"),
    Log("TCP between hosts of which nothing shows RDMA", begin(2, 2) + SOCKETS + END, "well: no cause"),
    Log("TCP within a host", begin(2) + NO_DEVICE + SOCKETS + END, "well: no cause"),
    Log("NVLS that NCCL goes without is slow", begin(2) + info(0, NO_NVLS) + END,
        "well: nvls-bind-failed (hardware, medium, ranks [0], gpu1)", "Slow: "),
    Log("NVLS that NCCL cannot go without", begin(2) + warn(0, NO_NVLS),
        "failed: nvls-bind-failed (hardware, medium, ranks [0], gpu1)"),
    Log("an exception after the regular end", begin(2) + steps() + END + "ImportError: flash_attn is not installed\n",
        "failed: python-exception (software, medium, gpu1)"),
    Log("an error at the end that nothing explains",
        begin(2) + steps() + "launcher: fatal: the frobnicator has failed\n",
        "failed: ends-in-error (unknown, low, gpu1)"),
    Log("the exception has the message, the exit code follows",
        begin(4, 2) + steps() + "ValueError: bad shape\n" + EXIT.format(1),
        "failed: python-exception (software, medium), then ranks [3]"),
    Log("a lost connection of the program follows from the process that was killed",
        begin(4, 2) + steps() + "RuntimeError: [../gloo/pair.cc:534] Connection closed by peer [10.0.0.1]:27113\n"
        + EXIT.format(-9), "killed: killed (rank, medium, ranks [3], gpu2)"),
    Log("a consequence alone, whose cause is elsewhere",
        "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting.\n",
        "failed: nccl-result (unknown, low)", "not in these files"),
    Log("a time limit", begin(2) + steps() + STEP_ENDED.format(" DUE TO TIME LIMIT"),
        "killed: time-limit (setting, high, gpu1)"),
    Log("another end from outside", begin(2) + steps() + STEP_ENDED.format(" DUE TO PREEMPTION"),
        "killed: job-displaced (unknown, high, gpu1)", "the job's hosts were taken for another job (preemption)"),
    Log("an end from outside without a reason", begin(2) + steps() + STEP_ENDED.format(""),
        "killed: cancelled (software, high, gpu1)", "\nthe job was ended from outside\n"),
    Log("an access violation is of the host that was written to, not of the rank with the status",
        begin(4, 2) + steps() + VIOLATION,
        "failed: device-event (rank, high, ranks [3], gpu2, mlx5_1), then ranks [1]"),
    Log("mpirun names the rank of a process whose own lines have its number alone",
        "[1763712862.396315] [gpu-m07:82049:0]  ib_mlx5_log.c:179  UCX  ERROR Transport retry count exceeded on "
        "mlx5_2:1/IB (synd 0x15 vend 0x81 hw_synd 0/0)\n"
        "mpirun noticed that process rank 18 with PID 82049 on node gpu-m07 exited on signal 6 (Aborted).\n",
        "failed: completion-12 (fabric, medium, ranks [18], gpu-m07, mlx5_2), then ranks [18]"),
    Log("ranks that did not pass a barrier", BARRIER, "hung: monitored-barrier (rank, high, ranks [4, 5])"),
    Log("a task of JAX", "UNAVAILABLE: Task /job:jax_worker/replica:0/task:3 heartbeat timeout.\n",
        "failed: jax-task-dead (rank, medium, ranks [3])"),
    Log("a barrier of JAX", "Barrier timed out. Timed out task names:\n/job:jax_worker/replica:0/task:6\n",
        "hung: jax-barrier (rank, high, ranks [6])"),
    Log("a communicator's id that did not come",
        "[2] is setting up NCCL communicator and retreiving ncclUniqueId from [0] via c10d key-value store by key "
        "'0', but store->get('0') got error: Socket Timeout\n", "hung: unique-id-missing (rank, medium, ranks [0])"),
    Log("a worker of Ray",
        "A worker died. Worker IP address: 10.0.1.75 Worker port: 10230 Worker PID: 207 Worker exit type\n",
        "failed: worker-died (rank, medium, 10.0.1.75)"),
    Log("a signal", "x.py:434:kill] ['python3', '--local_rank=0'] exits with return code = -12\n",
        "failed: signal (software, medium)"),
    Log("a container that crashed", "command terminated with exit code 139\n", "failed: crash (software, medium)"),
    Log("a daemon of MPI", "  Remote daemon: [[4,0],20] on node worker-19\n",
        "failed: mpi-daemon-lost (peer, medium, worker-19)"),
    Log("a kernel's line within a log of a launcher",
        "gpu1: step 1\ngpu1: Nov 12 03:11:09 gpu1 kernel: NVRM: Xid (PCI:0000:c1:00): 79, x\n" * 4,
        "failed: xid (hardware, high, gpu1)"),
    Log("two hosts whose names differ in digits only",
        "".join(f"srun: error: Task launch for StepId=96.0 failed on node n{n}: No such process\n" for n in (2, 3)),
        "failed: launch-failed (software, medium)",
        "\nSlurm could not start the job's tasks on n2, n3: No such process\n"),
    Log("killed before it was ended from outside", steps() + TASKS_KILLED + STEP_ENDED.format(""),
        "killed: killed (rank, medium, ranks [0, 1, 2, 3, 4, 5, 6, 7], gpu1)", "ranks 0-7 on gpu1 were killed"),
    Log("killed after it was ended from outside", steps() + STEP_ENDED.format("") + TASKS_KILLED,
        "killed: cancelled (software, high), then ranks [0, 1, 2, 3, 4, 5, 6, 7]"),
    Log("an exit without a rank, and a barrier", BARRIER + AGENT_EXIT,
        "hung: monitored-barrier (rank, high, ranks [4, 5])"),
    Log("an exit without a rank, and an exception", "[rank2]: ValueError: bad shape\n" + AGENT_EXIT,
        "failed: python-exception (software, medium, ranks [2])"),
    Log("an exit without a rank alone", AGENT_EXIT.replace("exitcode: 1", "exitcode: -9"),
        "killed: killed (rank, medium)"),
    Log("the peer of gloo; the unknown line behind it is no cause",
        "RuntimeError: [../gloo/pair.cc:598] Connection closed by peer [10.244.48.107]:12717\n"
        "DEBUG: User process failed with error data: {\n", "failed: peer-gone (peer, low, 10.244.48.107)"),
    Log("an error of nccl-tests", "gpu7: Test NCCL failure common.cu:959 'internal error - please report / '\n",
        "failed: backend-error (unknown, low)", "NCCL: internal error - please report"),
    Log("a CUDA error of nccl-tests", "gpu7: Test CUDA failure common.cu:963 'invalid device ordinal'\n",
        "failed: cuda-101 (rank, high)"),
    Log("a device that verbs cannot open beside others", NOT_OPENED + begin(1) + info(0, "Using network IB"),
        "unknown: verbs-device-unusable (software, medium, ranks [0], gpu1, mlx5_59)", "goes on with the others"),
    Log("a device that verbs cannot open alone", NOT_OPENED,
        "failed: verbs-device-unusable (software, medium, gpu1, mlx5_59)", "cannot open it mlx5_59\n"),
    Log("a device that verbs cannot open, and sockets", NOT_OPENED + SOCKETS,
        "failed: verbs-device-unusable (software, medium, gpu1, mlx5_59)", "cannot open it mlx5_59\n"),
    Log("a handle that cannot be imported is IMEX", warn(0, BAD_HANDLE, place="transport/p2p.cc:275"),
        "failed: imex-not-working (rank, high, gpu1)", "IMEX"),
    Log("a GPU that is missing", warn(0, BAD_HANDLE, place="init.cc:275"), "failed: cuda-101 (rank, high, gpu1)"),
    Log("stalled ranks of Horovod, in both forms", STALLED + "Stalled ranks:\n1: [HorovodAllreduce_x]\n",
        "hung: horovod-stalled (rank, medium, ranks [0, 1, 3])"),
    Log("stalled ranks that came in the end", steps() + STALLED + steps() + END, "well: 1 note"),
    Log("stalled ranks that came, and no end", STALLED + steps(), "unknown: 1 note", "At work in its last lines: "),
    Log("a server that answers until its last line", SERVED, "unknown: no cause", "the server answers requests"),
    Log("a server that sees NaN in its last lines", SERVED + "loss: nan\n", "unknown: no cause", "Not known from"),
    Log("steps that are skipped until the end",
        "".join(f"loss scaler 0 reducing loss scale to {2**n}.0\nstep {n} loss 2.1\n" for n in range(12, 4, -1)),
        "unknown: steps-skipped (software, medium)", "fell to 32"),
    Log("a loss scale that finds its value at the start",
        "".join(f"loss scaler 0 reducing loss scale to {2**n}.0\n" for n in range(15, 11, -1)) + steps(),
        "unknown: no cause", "At work"),
    Log("one host in all slow pairs", "".join(PAIR.format(*row) for row in (
        ("n1,n2", 371), ("n1,n3", 182), ("n2,n3", 181), ("n2,n4", 372))),
        "well: slow-host-of-pairs (unknown, medium, n3)", "n3 is in all 2 measurements"),
    Log("pairs that are alike", "".join(PAIR.format(*row) for row in (
        ("n1,n2", 371), ("n1,n3", 362), ("n2,n3", 365), ("n2,n4", 372))), "well: no cause"),
    Log("collectives of other speeds on the same hosts", "".join(PAIR.format(*row) for row in (
        ("all_reduce", 371), ("all_gather", 370), ("alltoall v2", 48), ("sendrecv v2", 46))), "well: no cause"),
    Log("a regular end of Paddle", steps() + "LAUNCH INFO 2026-05-20 20:11:12,121 Exit code 0\n", "well: no cause"),
    Log("a regular end with its writer before it", steps() + "I main.py:240] Done.\n", "well: no cause"),
    Log("a regular end of Ray Train", steps() + "Result(metrics={'epoch': 4}, path='/r', error=None)\n",
        "well: no cause"),
    Log("the rank that Paddle names",
        "ABORT!!! Out of all 2 trainers, the trainer process with rank=[1] was aborted.\n",
        "failed: exit-code (software, medium, ranks [1])"),
    Log("a person who ended the job", steps() + "^CTraceback (most recent call last):\nKeyboardInterrupt\n",
        "killed: launcher-signal (software, high)"),
    Log("devices that are busy", "RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable\n",
        "failed: cuda-46 (rank, high)"),
    Log("a regular end of Transformers", steps() + "{'train_runtime': 3052.1, 'train_loss': 0.61, 'epoch': 1.0}\n",
        "well: no cause"),
    Log("a regular end of Megatron", steps() + "[after training is done] datetime: 2025-06-01 23:11:02\n",
        "well: no cause"),
    Log("a regular end of Lightning", steps() + "`Trainer.fit` stopped: `max_steps=50` reached.\n", "well: no cause"),
    Log("a regular end of torchrun",
        steps() + "api: [INFO] [default] worker group successfully finished. Waiting 300 seconds\n", "well: no cause"),
    Log("a regular end of Ray", steps() + "Job 'raysubmit_abc' succeeded\n", "well: no cause"),
)  # fmt: skip


@pytest.mark.parametrize("row", LOGS, ids=lambda row: row.about)
def test_what_a_log_shows(tmp_path: Path, row: Log) -> None:
    """How the job ended, and every cause with its kind, confidence, ranks, host and NIC."""
    check(tmp_path, row)


@pytest.mark.parametrize(
    ("log", "ended"),
    [
        (begin(2), "unknown"),
        (begin(2) + steps(), "unknown"),
        (begin(2)[:-30], "cut"),
        (begin(2) + warn(0, "Something that no table has"), "failed"),
        (begin(2) + "Traceback (most recent call last):\nValueError: bad shape\n", "failed"),
        (begin(2) + "Segmentation fault (core dumped)\n", "failed"),
        (
            begin(2) + "slurmstepd: error: *** STEP 7.0 ON gpu1 CANCELLED AT 2026-11-03T04:12:30 DUE TO TIME LIMIT "
            "***\n",
            "killed",
        ),
        (begin(2) + "# Out of bounds values : 3 FAILED\n", "failed"),
    ],
)
def test_never_green_over_nothing(tmp_path: Path, log: str, ended: str) -> None:
    """Without a regular end there is no "no failure", and an error at the end is one."""
    result = answer(tmp_path, log=log)

    assert ended == result.job.ended
    assert "No failure" not in result.headline
    if ended in ("unknown", "cut"):
        assert result.headline.startswith(("Not known from these files: ", "At work in its last lines: "))
        assert result.cannot_tell[0].save


def test_an_xid_of_the_gpu_of_a_rank(tmp_path: Path) -> None:
    """In a kernel log in the same folder; Xids of applications are no hardware."""
    log = begin(2) + steps() + warn(0, CLOSED.format("gpu1"))
    hard = answer(
        tmp_path, log=log, dmesg__txt="[100.5] NVRM: Xid (PCI:0000:21:00): 79, pid=1, GPU has fallen off the bus.\n"
    )
    soft = answer(tmp_path, log=log, dmesg__txt="[100.5] NVRM: Xid (PCI:0000:21:00): 31, pid=1, MMU Fault\n")

    assert "failed: xid (hardware, high, ranks [1], gpu1), then ranks [0]" == describe(hard)
    assert "software" == next(cause for cause in soft.causes if cause.id == "xid").at_fault.kind


def test_an_xid_means_in_a_job_what_it_means_in_a_scan(tmp_path: Path) -> None:
    """NVIDIA's catalogue has one place: also numbers that jobs seldom meet."""
    log = begin(2) + steps() + warn(0, CLOSED.format("gpu1"))
    line = "[100.5] NVRM: Xid (PCI:0000:21:00): 62, pid='<unknown>', name=<unknown>, 0000a6c0 00000000\n"
    xid = next(cause for cause in answer(tmp_path, log=log, dmesg__txt=line).causes if cause.id == "xid")

    assert ("hardware", True) == (xid.at_fault.kind, XIDS["62"].meaning in xid.summary)


def test_ranks_have_hosts_gpus_and_nics(tmp_path: Path) -> None:
    """By whatever lines tie them."""
    log = begin(4, 2) + info(2, "Channel 00/0 : 2[0] -> 0[0] [send] via NET/IB/1/GDRDMA", "gpu2", 0)
    rows = answer(tmp_path, log=log).ranks

    assert ["gpu1", "gpu1", "gpu2", "gpu2"] == [row.host for row in rows]
    assert "0000:11:00.0" == (rows[2].gpu.pci if rows[2].gpu else None)
    assert ["mlx5_1"] == rows[2].nics


def test_versions_of_banners(tmp_path: Path) -> None:
    """Bare, prefixed, of RCCL."""
    for text, name, version in (
        ("NCCL version 2.4.7+cuda10.0\n", "NCCL", "2.4.7"),
        (info(0, "NCCL version 2.28.9+cuda13.0"), "NCCL", "2.28.9"),
        ("RCCL version : 2.27.7-HEAD:185e78a\n", "RCCL", "2.27.7"),
        ("[1,0]<stdout>:NCCL version 2.18.5+cuda12.2\n", "NCCL", "2.18.5"),
    ):
        library = answer(tmp_path, log=text).job.library
        assert library is not None
        assert (name, version) == (library.name, library.version)


@pytest.mark.parametrize(
    "line",
    [
        "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.\n",
        warn(1, "NET/IB : Got completion from peer 10.0.0.2<4> with status=12 opcode=0 len=0 vendor err 129"),
    ],
)
def test_a_failure_before_many_steps_and_the_regular_end_is_a_note(tmp_path: Path, line: str) -> None:
    """The process that states it goes on, and so does its job; without the end, or the steps, it is the cause."""
    lived, cut = begin(2) + line + steps(40) + END, begin(2) + line + steps(40)

    assert "well: 1 note" == describe(answer(tmp_path, log=lived))
    assert describe(answer(tmp_path, log=begin(2) + line + END)).startswith("failed: ")
    assert describe(answer(tmp_path, log=cut)).startswith("failed: ")


def test_a_connection_that_a_job_outlived_means_no_lost_peer(tmp_path: Path) -> None:
    line = warn(1, "socketProgress: Connection closed by remote peer gpu2<1>", place="misc/socket.cc:50")

    assert "well: 1 note" == describe(answer(tmp_path, log=begin(2) + line + steps(40) + END))


@pytest.mark.parametrize("form", ["There was no 'NCCL WARN {}' in any log.\n", "If you see `{}` check the cables.\n"])
def test_a_failure_that_a_person_denies_is_none(tmp_path: Path, form: str) -> None:
    line = form.format("NET/IB : Got completion from peer 10.0.0.2<4> with status=12 opcode=0 len=0 vendor err 129")
    result = answer(tmp_path, log=begin(2) + steps() + line + END)

    assert ("well", []) == (result.job.ended, result.causes)


def test_what_a_job_outlived_is_a_note(tmp_path: Path) -> None:
    """A warning or exception before its regular end; after it, it is the end."""
    exception = "ImportError: flash_attn is not installed\n"
    before = answer(tmp_path, log=begin(2) + exception + warn(0, "Frobnication") + steps() + END)
    after = answer(tmp_path, log=begin(2) + steps() + END + exception)

    assert ("well", [], 2) == (before.job.ended, before.causes, len(before.notes))
    assert "failed: python-exception (software, medium, gpu1)" == describe(after)


def test_a_bootstrap_on_a_bridge_of_containers(tmp_path: Path) -> None:
    """A setting: the address is of one host alone; of a job on one host, and of a network of all, it is none."""
    refused = warn(
        2, "socketStartConnect: Connect to {}<43215> failed : Connection refused", "gpu2", place="socket.cc:4"
    )
    for interface, address, hosts, setting in (
        ("docker0", "172.17.0.1", ("gpu1", "gpu2"), True),
        ("ens5", "169.254.3.4", ("gpu1", "gpu2"), True),
        ("ens5", "10.1.0.4", ("gpu1", "gpu2"), True),  # each of them has it
        ("eth0", "10.0.0.1", ("gpu1",), False),
        ("lo", "127.0.0.1", (), False),
    ):
        lines = "".join(info(number * 2, f"Bootstrap : Using {interface}:{address}<0>", host, 0)
                        for number, host in enumerate(hosts))  # fmt: skip
        lines += info(2, "NET/IB : No device found.", "gpu2", 0)
        result = answer(tmp_path, log=lines + refused.format(address))
        cause = first(result)

        assert "connect-failed" == cause.id
        assert setting == (cause.at_fault.kind == "setting"), interface
        assert setting == ("NCCL_SOCKET_IFNAME" in " ".join(cause.next)), interface


@pytest.mark.parametrize(("interface", "is_setting"), [("lo:127.0.0.1", True), ("eth0:10.1.0.4", False)])
def test_a_connection_without_an_address_beside_the_loopback_interface(
    tmp_path: Path, interface: str, is_setting: bool
) -> None:
    """The line that fails names no address; what NCCL offers to its peers stands in lines of another host."""
    text = info(0, f"NET : Using interface {interface}<0>", "gpu1") + info(0, "NET : Using interface eth0:10.1.0.4<0>")
    text += warn(2, "Call to connect timeout : Connection refused", "gpu2", place="socket.h:3")
    cause = first(answer(tmp_path, log=text))

    assert "connect-failed-unnamed" == cause.id
    assert is_setting == (cause.at_fault.kind == "setting")
    assert is_setting == ("uses lo on gpu1" in cause.summary)


def test_a_label_of_error_handling_is_no_error(tmp_path: Path) -> None:
    """`ucx_info -d` lists what a transport does where a peer fails; a log may end with it."""
    text = begin(2) + "#  device priority: 10\n#   error handling: peer failure, ep_check\n"

    assert "unknown: no cause" == describe(answer(tmp_path, log=text))


def test_the_npu_that_did_not_wait(tmp_path: Path) -> None:
    """Ranks of HCCL that waited are told apart by their numbers."""
    line = (
        "[ERROR] HCCL({0},python):2026-11-21-07:31:0{1}.100.100 [task_exception_handler.cc:560] [{0}]Task run failed, "
        "base information is tag[AllReduce_10.9.0.1]. groupRank information is group:[hccl_world_group], "
        "user define information[], rankSize[4], rankId[{1}].\n"
    )
    root = (
        "[INFO] HCCL({0},python):2026-11-21-07:00:00.1 [op.cc:1] [{0}]Entry-XInner:ranks[4], rank[{1}], rootinfo: x\n"
    )
    for rank in range(4):
        text = root.format(9000 + rank, rank) + (line.format(9000 + rank, rank) if rank != 3 else "")
        (tmp_path / f"plog-{rank}").write_text(text)
    result = answer(tmp_path)

    assert "hung: rank-silent (rank, medium, ranks [3])" == describe(result)


def test_the_pod_that_was_killed_for_its_memory(tmp_path: Path) -> None:
    """As `kubectl describe pod` names it."""
    text = "Name:         worker-1\nState:        Terminated\n  Reason:     OOMKilled\n"
    result = answer(
        tmp_path, log=begin(2) + steps() + warn(0, "Connection closed by remote peer worker-1<5>"), pod=text
    )

    assert "killed: oom-kill (software, high, worker-1), then ranks [0, 1]" == describe(result)


def test_ranks_and_hosts_that_are_not_all_known_are_not_counted(tmp_path: Path) -> None:
    """Lines of one of nine hosts, and of rank 4 alone."""
    text = "ncclCommInitRank comm 0x1 rank {} nranks 72 cudaDev {} busId 1000 commId 0x9 - Init START"
    one = answer(tmp_path, log="".join(info(rank, text.format(rank, rank)) for rank in range(8)))
    alone = answer(tmp_path, log="[rank4]: ValueError: bad shape\n")
    both = answer(tmp_path, log="[rank0]: ValueError: bad shape\n[rank1]: ValueError: bad shape\n")

    assert (72, None) == (one.job.ranks, one.job.nodes)
    assert (None, 2) == (alone.job.ranks, both.job.ranks)


def test_words_of_efa_without_its_status(tmp_path: Path) -> None:
    """A number of libfabric instead of EFA's own: the words name the status, and the line the peer."""
    log = (
        "ip-10-1-0-4:77:78 [4] NCCL WARN NET/OFI Request 0x7f completed with error. RC: 113. Error: 4103 (Unreachable "
        "remote: My host id: i-0a77b083f3fc Peer host id: i-0c1e6d3d5713). Completed length: 0\n"
    )
    summary = first(answer(tmp_path, a__log=log)).summary

    assert "EFA status 15 (unreachable remote)" in summary
    assert "its peer: i-0c1e6d3d5713" in summary


@pytest.mark.parametrize(
    ("log", "ended"),
    [
        (
            "[n7:441] PMIX ERROR: ERROR in file gds_ds12_lock_pthread.c at line 169\n"
            "WC0  264192  1024  4  2  31.49  3.904e+05 ( 4.880e+04)\n"
            "              1 tests completed and passed residual checks,\n",
            "well",
        ),
        (
            "INFO:     Application startup complete.\n"
            "ERROR 07-21 08:20:41 [serving_chat.py:200] ValueError: the maximum context length is 8192 tokens.\n"
            "INFO 07-21 08:21:11 [loggers.py:118] Engine 000: Avg prompt throughput: 5159.7 tokens/s, Avg generation "
            "throughput: 1840.0 tokens/s, Running: 64 reqs, Waiting: 0 reqs\n",
            "unknown",
        ),
    ],
    ids=["a benchmark that passed its own check", "a server that refuses one request"],
)
def test_what_a_job_goes_on_after_fails_none(tmp_path: Path, log: str, ended: str) -> None:
    result = answer(tmp_path, log=log)
    assert (ended, []) == (result.job.ended, result.causes)
