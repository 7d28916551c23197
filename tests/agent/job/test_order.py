"""What comes first: a failure that shows more before what is general and later, who ended a job, a regular end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.job.jobs import Log, answer, check, steps

_SIGABRT = "mpirun noticed that process rank 1 with PID 912 on node gpu7 exited on signal 6 (Aborted).\n"
_UNKNOWN = "[TensorRT-LLM][ERROR] Assertion failed: pipeline of 3 stages on 4 ranks\n"
_ENDED_BY_TORCHRUN = "torch.distributed.elastic.multiprocessing.api.SignalException: Process 91 got signal: 15\n"
_RPC = "gpu7: rank 2 CUDA error: the remote procedural call between the MPS server and the MPS client failed\n"
_ILLEGAL = "gpu7: rank 1 CUDA error: an illegal memory access was encountered\n"
_NOT_READY = "gpu7: UserWarning: CUDA initialization: Error 802: system not yet initialized\n"
_NO_GPU = "gpu7: RuntimeError: No CUDA GPUs are available\n"
_NAN = "non-finite gradients on rank 3 (host gpu7, cuda:3) at step {}\n"
_GDRCOPY = "WARN: GDRCopy open call failed, falling back to not using GDRCopy\n"
_WAITING = "node gpu7 registered: {} of 8 GPUs\n"
_PREEMPTED = "slurmstepd: error: *** JOB 88 ON gpu7 CANCELLED AT 2026-11-03T04:12:30 DUE TO PREEMPTION ***\n"
_LOST = "gpu7 kernel: [11.5] Lustre: fs1-OST0003-osc-ff4c: Connection to fs1-OST0003 (at 192.0.2.1@o2ib) was lost; in\n"
_BACK = "gpu7 kernel: [18.5] Lustre: fs1-OST0003-osc-ff4c: Connection restored to 192.0.2.1@o2ib (at 192.0.2.1@o2ib)\n"
_TIMED_OUT = "[rank3]:[E1103 04:12:57.1 ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught collective operation "
_TIMED_OUT += (
    "timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600042 ms\n"
)

LOGS = (
    Log("an abort follows from an error that no row explains", _UNKNOWN + _SIGABRT,
        "failed: tensorrt-error (unknown, low), then ranks [1]", "pipeline of 3 stages"),
    Log("an abort that the job outlived an error before", _UNKNOWN + steps(8) + _SIGABRT,
        "failed: aborted (software, medium, ranks [1], gpu7)"),
    Log("a client of MPS ends all others", (_ILLEGAL + _RPC) * 2, "failed: cuda-700 (software, medium, gpu7)"),
    Log("the server of MPS alone", _RPC, "failed: cuda-806 (peer, medium)"),
    Log("the fabric manager before the GPUs that are not seen", _NOT_READY + _NO_GPU,
        "failed: cuda-802 (rank, high)"),
    Log("ports of HCCL before time-outs",
        "[ERROR] HCCL(31,python):2026-11-03-04:12:08.118 [a.cc:1][31][Create]bind ip[192.0.2.1] port[16666] fail\n"
        "[ERROR] 2026-11-03-04:14:10 (PID:33, Device:2, RankID:2) EI0006: Getting socket times out.\n",
        "failed: hccl-port-taken (software, medium), then ranks [2]", "on port 16666 at 192.0.2.1"),
    Log("a file of another host's own folder",
        "[gpu7:8]: step\n[gpu8:9]: FileNotFoundError: [Errno 2] No such file or directory: '/tmp/index/a.npy'\n"
        "[gpu7:8]: [W TCPStore.cpp:122] [c10d] recvValue failed\n",
        "failed: local-file-missing (software, medium, ranks [9], gpu8), then ranks [8]"),
    Log("LSF names its limit below what the processes wrote",
        _ENDED_BY_TORCHRUN + "TERM_RUNLIMIT: job killed after reaching LSF run time limit.\n",
        "killed: time-limit (setting, high)"),
    Log("memory of LSF",
        "TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.\nExited with exit code 137.\n",
        "failed: memory-limit (setting, high)"),
    Log("memory of HTCondor", "012 (77.0.0) 2026-11-03 04:12:30 Job was held.\n"
        "\tError from slot1_2@gpu7: Job has gone over cgroup memory limit of 4096 megabytes.\n",
        "failed: memory-limit (setting, high, gpu7)"),
    Log("an autoscaler", _ENDED_BY_TORCHRUN + "5m39s   Normal   Evicted   pod/train-1   Evicted pod: Drifted\n",
        "failed: pod-evicted (software, high)", "Evicted pod: Drifted"),
    Log("a spot instance", "spot interruption notice for i-0ab1, 120 s left\n" + _ENDED_BY_TORCHRUN,
        "killed: job-displaced (unknown, high)"),
    Log("no license", "Licensed number of users already reached.\nsrun: error: gpu7: task 0: Exited with exit code 1\n",
        "failed: license-refused (setting, medium), then ranks [0]"),
    Log("NaN again and again on one rank", "".join(_NAN.format(step) for step in (8, 20, 31)),
        "failed: nan-on-rank (unknown, low, ranks [3], gpu7)", "3 times, and no other rank did"),
    Log("GPUs that did not come", _WAITING.format(7) + "31 of 32 GPUs registered\nTimeoutError: 31 of 32 GPUs came\n",
        "failed: gpus-missing (rank, medium, gpu7)", "has 31: gpu7 has 7 of 8"),
    Log("GPUs that came late", _WAITING.format(7) + _WAITING.format(8) + steps() + "Training complete\n",
        "well: no cause"),
    Log("a cluster of Ray with a GPU less",
        "Error: No available node types can fulfill resource request {'GPU': 1.0}.\n"
        " 0.0/7.0 GPU\n {'GPU': 1.0} * 8 (PACK): 1+ pending placement groups\n",
        "failed: pod-not-placed (software, medium)", "Ray has 7 GPUs, and 8 are asked for"),
    Log("a host that was taken, and the job went on elsewhere",
        _PREEMPTED + steps(3) + "`Trainer.fit` stopped: `max_epochs=20` reached.\n", "well: 1 note"),
    Log("a regular end, and a failure below it",
        "Job completed\n" + _PREEMPTED, "killed: job-displaced (unknown, high)"),
    Log("counts of errors that are 0", steps() + "[HIP error count 0] [CUDA errors 0]\n", "unknown: no cause"),
    Log("a server that was lost, and is not back, before a time-out", _LOST + _TIMED_OUT,
        "failed: storage-lost (unknown, medium, gpu7)", "storage at fs1-OST0003"),
    Log("a server that was lost and came back", _LOST + _BACK + steps(3) + "Training complete\n", "well: 1 note"),
    Log("a rank that came when the others had given up",
        "".join(f"{rank}: a.RendezvousTimeoutError\n" for rank in (0, 1)) +
        "2: [E103 04:12:57.1 socket.cpp:1019] [c10d] The client socket has timed out after 60000ms while trying to "
        "connect to (gpu1, 29400).\n",
        "failed: rendezvous-late (rank, medium, ranks [2]), then ranks [0, 1, 2]"),
    Log("a pod without a host, for which the placed ones waited",
        "2m Warning FailedScheduling pod/w-2 0/4 nodes are available: 4 Insufficient nvidia.com/gpu.\n"
        "3m Normal Scheduled pod/w-1 Successfully assigned ml/w-1 to gpu7\na.RendezvousTimeoutError\n",
        "failed: pod-not-placed (software, medium)", "(pod w-2)"),
    Log("the kernel's host is not that of the log",
        "gpu8 kernel: mlx5_core 0000:a1:00.0: poll_health:829:(pid 0): Fatal error 1 detected\n"
        "gpu7:471:481 [2] misc/socket.cc:540 NCCL WARN socketProgress: Connection closed by remote peer gpu8<41>\n",
        "failed: nic-firmware-failed (hardware, high, gpu8)", "0000:a1:00.0 on gpu8"),
    Log("a library that is left out in a job that ends well", _GDRCOPY + steps() + "ALL TESTS PASSED\n",
        "well: 1 note"),
    Log("the same without an end", _GDRCOPY + steps(), "unknown: gdrcopy-failed (software, medium)"),
    Log("what Python ignores", steps() + "Exception ignored in: <Finalize object, dead>\n$ echo $?\n0\n",
        "well: no cause"),
    Log("another answer", steps() + "$ echo $?\n1\n", "unknown: no cause"),
    Log("an exception is not undone by a command that worked", "[rank2]: ValueError: bad shape\n$ echo $?\n0\n",
        "failed: python-exception (software, medium, ranks [2])"),
    Log("an error as a measure", steps() + "best error 0.020 at epoch 10\n", "unknown: no cause"),
    Log("a line that no row explains, and a command that worked", steps() + "frob: error of stage 3\n$ echo $?\n0\n",
        "well: 1 note"),
    Log("a farewell", steps() + 'Performance:   229.8   0.1\nA word: "Error is a strange word" (Anonymous)\n',
        "well: no cause"),
    Log("errors that are counted, and none",
        steps() + "Run finished. 0 errors, 3 warnings, 0 failed ranks\nError in training: None\n", "unknown: no cause"),
)  # fmt: skip


@pytest.mark.parametrize("row", LOGS, ids=[row.about for row in LOGS])
def test_what_comes_first(tmp_path: Path, row: Log) -> None:
    """The cause, and what is none."""
    check(tmp_path, row)


def test_a_report_of_the_slowest_rank(tmp_path: Path) -> None:
    """It is named; one that is hardly slower than the others is not."""
    report = "timing: slowest rank: 3 (host gpu7, gpu 3) compute {} ms, median over ranks 770 ms\n"

    assert [] == answer(tmp_path, log=steps() + report.format(801)).causes
    cause = answer(tmp_path, log=steps() + report.format(1404)).causes[0]
    assert ("rank-slower", [3], "gpu7") == (cause.id, cause.at_fault.ranks, cause.at_fault.host)
