"""Causes in order, what follows from them, and how a job ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.job.jobs import answer, begin, first, info, steps, warn

CLOSED = "socketProgress: Connection closed by remote peer {}<40211>"
FLAP = "NET/IB : mlx5_1:1 Got async error event: port error"
RETRIES = "NET/IB : Got completion from peer 10.0.0.2<41022> with status=12 opcode=1 len=0 vendor err 129 (Recv)"


def test_a_job_that_ends_well_has_no_failure(tmp_path: Path) -> None:
    """With the noise that healthy logs have."""
    log = begin(2) + info(0, "socketPollConnect: Connect to 10.0.0.9<4> failed : Connection refused, retrying")
    log += info(0, "NET/Plugin: Could not find: libnccl-net.so. Using internal net plugin.") + steps()
    log += "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 43.1\n"
    result = answer(tmp_path, log=log)

    assert ("No failure in it", "well", [], []) == (
        result.headline,
        result.job.ended,
        result.causes,
        result.cannot_tell,
    )


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
        assert result.headline.startswith("Not known from these files: ")
        assert result.cannot_tell[0].save


def test_a_warning_that_no_row_is_for_is_shown(tmp_path: Path) -> None:
    """With low confidence and its own words."""
    result = answer(tmp_path, log=begin(2) + warn(1, "Frobnication of the bus failed"))

    assert ("unexplained", "low", [1]) == (first(result).id, first(result).confidence, first(result).at_fault.ranks)
    assert "Frobnication" in first(result).summary


def test_consequences_fold_into_the_first_cause(tmp_path: Path) -> None:
    """Closed connections of all others are not causes of their own."""
    log = (
        begin(4, 2)
        + steps()
        + warn(3, "Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory", "gpu2", "04:12:00")
    )
    log += "".join(warn(rank, CLOSED.format("gpu2"), f"gpu{rank // 2 + 1}", "04:12:02") for rank in (0, 1, 2))
    result = answer(tmp_path, log=log)

    assert ["memlock-low"] == [cause.id for cause in result.causes]
    assert [3] == first(result).at_fault.ranks
    assert {"memlock-low"} == {row.of for row in result.consequences}
    assert [0, 1, 2] == sorted(rank for row in result.consequences for rank in row.ranks)


def test_the_rank_that_wrote_nothing_is_the_suspect(tmp_path: Path) -> None:
    """When all others lose their connections to its host."""
    log = (
        begin(4, 2) + steps() + "".join(warn(rank, CLOSED.format("gpu2"), f"gpu{rank // 2 + 1}") for rank in (0, 1, 2))
    )
    result = answer(tmp_path, log=log)

    assert ("rank-silent", "medium", [3], "gpu2") == (
        first(result).id,
        first(result).confidence,
        first(result).at_fault.ranks,
        first(result).at_fault.host,
    )


def test_a_host_whose_log_is_not_here_is_named(tmp_path: Path) -> None:
    """Its own first error decides."""
    result = answer(tmp_path, log=begin(2) + "".join(warn(rank, CLOSED.format("gpu9")) for rank in (0, 1)))

    assert ("peer-gone", "low", "gpu9") == (first(result).id, first(result).confidence, first(result).at_fault.host)


def test_a_port_event_explains_time_outs_of_its_rail_only(tmp_path: Path) -> None:
    """Those of another rail on other hosts are a cause of their own."""
    log = begin(4, 4) + steps() + warn(1, FLAP, "gpu2", "04:11:31")
    same = log + warn(0, f"{RETRIES} hca mlx5_1", "gpu1", "04:12:09")
    other = log + warn(2, f"{RETRIES} hca mlx5_7", "gpu3", "04:12:09")

    assert ["port-down"] == [cause.id for cause in answer(tmp_path, log=same).causes]
    assert ["port-down", "completion-12"] == [cause.id for cause in answer(tmp_path, log=other).causes]


def test_what_comes_before_a_port_event_does_not_follow_from_it(tmp_path: Path) -> None:
    """By time."""
    log = (
        begin(4, 4) + steps() + warn(0, f"{RETRIES} hca mlx5_1", "gpu1", "04:01:00") + warn(1, FLAP, "gpu2", "04:11:31")
    )

    assert {"port-down", "completion-12"} == {cause.id for cause in answer(tmp_path, log=log).causes}


def test_two_causes_are_two(tmp_path: Path) -> None:
    """A memory error of a GPU, and a port of another host."""
    log = begin(4, 4) + steps() + warn(0, "Cuda failure 214 'uncorrectable ECC error encountered'", "gpu1", "04:11:00")
    result = answer(tmp_path, log=log + warn(1, FLAP, "gpu2", "04:11:31"))

    assert ["cuda-214", "port-down"] == [cause.id for cause in result.causes]
    assert ["hardware", "wire"] == [cause.at_fault.kind for cause in result.causes]


@pytest.mark.parametrize(
    ("before", "words"), [("", "no collective had worked before"), (steps(), "collectives had worked before")]
)
def test_retries_at_once_and_later(tmp_path: Path, before: str, words: str) -> None:
    """Addresses and MTU, or links and peers."""
    assert words in first(answer(tmp_path, log=begin(2) + before + warn(0, RETRIES))).summary


def test_flushed_requests_are_a_consequence_unless_alone(tmp_path: Path) -> None:
    """Status 5."""
    flushed = RETRIES.replace("status=12", "status=5").replace("129", "249")
    both = answer(tmp_path, log=begin(2) + warn(0, RETRIES) + warn(0, flushed))
    alone = answer(tmp_path, log=begin(2) + warn(0, flushed))

    assert ["completion-12"] == [cause.id for cause in both.causes]
    assert ("completion-5", "low") == (first(alone).id, first(alone).confidence)


def test_an_xid_of_the_gpu_of_a_rank(tmp_path: Path) -> None:
    """In a kernel log in the same folder; Xids of applications are no hardware."""
    log = begin(2) + steps() + warn(0, CLOSED.format("gpu1"))
    hard = answer(
        tmp_path, log=log, dmesg__txt="[100.5] NVRM: Xid (PCI:0000:21:00): 79, pid=1, GPU has fallen off the bus.\n"
    )
    soft = answer(tmp_path, log=log, dmesg__txt="[100.5] NVRM: Xid (PCI:0000:21:00): 31, pid=1, MMU Fault\n")

    assert ("xid", "hardware", [1]) == (first(hard).id, first(hard).at_fault.kind, first(hard).at_fault.ranks)
    assert "software" == next(cause for cause in soft.causes if cause.id == "xid").at_fault.kind


TABLE = """
  rank      : {} (local_rank: {})
  exitcode  : {} (pid: 4711)
"""


def test_exit_codes_of_torchrun(tmp_path: Path) -> None:
    """Those that the agent terminated are victims."""
    table = "Root Cause (first observed failure):\n[0]:\n  host      : gpu2" + TABLE.format(3, 1, -9)
    victims = "[1]:\n  host      : gpu1" + TABLE.format(0, 0, -15)
    result = answer(tmp_path, log=begin(4, 2) + steps() + victims + table)

    assert ("killed", "killed", [3], "gpu2") == (
        result.job.ended,
        first(result).id,
        first(result).at_fault.ranks,
        first(result).at_fault.host,
    )


def test_ranks_that_never_started(tmp_path: Path) -> None:
    """The others began to create the communicator, and it did not come up."""
    lines = begin(4, 2, done=False).splitlines(keepends=True)
    log = "".join(line for line in lines if ":103:" not in line)
    result = answer(tmp_path, log=log)

    assert ("rank-not-started", "low", [3]) == (
        first(result).id,
        first(result).confidence,
        first(result).at_fault.ranks,
    )
    assert [] == answer(tmp_path, log=begin(4, 2, done=True)).causes


def test_tcp_in_place_of_rdma(tmp_path: Path) -> None:
    """Only between hosts, and only where something shows that there should be RDMA."""
    log = (
        begin(2, 2)
        + info(0, "NET/IB : No device found.")
        + info(0, "Using network Socket")
        + "# Avg bus bandwidth : 1\n"
    )
    plain = log.replace("NET/IB : No device found.", "nothing")
    inside = (
        begin(2) + info(0, "NET/IB : No device found.") + info(0, "Using network Socket") + "# Avg bus bandwidth : 1\n"
    )

    assert ["sockets"] == [cause.id for cause in answer(tmp_path, log=log).causes]
    assert [] == answer(tmp_path, log=plain).causes
    assert [] == answer(tmp_path, log=inside).causes


def test_nvls_that_nccl_goes_without_is_slow_and_no_failure(tmp_path: Path) -> None:
    """At level INFO it goes on with rings."""
    text = (
        "Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error 401 'x'. Proceeding "
        "without NVLS"
    )
    end = "# Out of bounds values : 0 OK\n"
    slow = answer(tmp_path, log=begin(2) + info(0, text) + end)
    failed = answer(tmp_path, log=begin(2) + warn(0, text))

    assert ("well", True) == (slow.job.ended, slow.headline.startswith("Slow: "))
    assert "failed" == failed.job.ended


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


END = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 43.1\n"


def test_what_a_job_outlived_is_a_note(tmp_path: Path) -> None:
    """A warning or exception before its regular end; after it, it is the end."""
    exception = "ImportError: flash_attn is not installed\n"
    before = answer(tmp_path, log=begin(2) + exception + warn(0, "Frobnication") + steps() + END)
    after = answer(tmp_path, log=begin(2) + steps() + END + exception)

    assert ("well", [], 2) == (before.job.ended, before.causes, len(before.notes))
    assert ("failed", "python-exception") == (after.job.ended, first(after).id)


def test_a_log_that_ends_in_an_unknown_error(tmp_path: Path) -> None:
    """States so."""
    result = answer(tmp_path, log=begin(2) + steps() + "launcher: fatal: the frobnicator has failed\n")

    assert ("failed", "ends-in-error", "low") == (result.job.ended, first(result).id, first(result).confidence)


def test_the_exception_has_the_message_and_the_exit_code_follows(tmp_path: Path) -> None:
    """Not the other way round."""
    table = "Root Cause (first observed failure):\n[0]:\n  host      : gpu2" + TABLE.format(3, 1, 1)
    result = answer(tmp_path, log=begin(4, 2) + steps() + "ValueError: bad shape\n" + table)

    assert ["python-exception"] == [cause.id for cause in result.causes]


def test_a_lost_connection_of_the_program_is_a_consequence(tmp_path: Path) -> None:
    """Of the process that was killed."""
    lost = "RuntimeError: [../gloo/pair.cc:534] Connection closed by peer [10.0.0.1]:27113\n"
    table = "Root Cause (first observed failure):\n[0]:\n  host      : gpu2" + TABLE.format(3, 1, -9)
    result = answer(tmp_path, log=begin(4, 2) + steps() + lost + table)

    assert ["killed"] == [cause.id for cause in result.causes]


def test_a_consequence_alone_is_called_one(tmp_path: Path) -> None:
    """With low confidence: what it follows from is elsewhere."""
    result = answer(
        tmp_path, log="ncclRemoteError: A call failed possibly due to a network error or a remote process exiting.\n"
    )

    assert ("failed", "low") == (result.job.ended, first(result).confidence)
    assert "not in these files" in result.headline


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


def test_a_time_limit_and_other_ends_from_outside(tmp_path: Path) -> None:
    """What was reached, and what the scheduler says else."""
    step = "slurmstepd: error: *** STEP 7.0 ON gpu1 CANCELLED AT 2026-11-21T09:00:02{} ***\n"
    limit = answer(tmp_path, log=begin(2) + steps() + step.format(" DUE TO TIME LIMIT"))
    other = answer(tmp_path, log=begin(2) + steps() + step.format(" DUE TO PREEMPTION"))
    bare = answer(tmp_path, log=begin(2) + steps() + step.format(""))

    assert [["time-limit"], ["cancelled"], ["cancelled"]] == [
        [cause.id for cause in result.causes] for result in (limit, other, bare)
    ]
    assert "the job was ended from outside DUE TO PREEMPTION" == first(other).summary
    assert "the job was ended from outside" == first(bare).summary


def test_an_access_violation_of_the_host_whose_peer_is_refused(tmp_path: Path) -> None:
    """The registration of the host that was written to is at fault, not the rank that got the status."""
    log = begin(4, 2) + steps()
    log += warn(3, "NET/IB : mlx5_1:1 Got async fatal event on QP 0x2f1: local access violation work queue error",
                "gpu2", at="07:14:02")  # fmt: skip
    log += warn(1, "NET/IB: Got completion from peer 10.0.0.2<51003> with status=IBV_WC_REM_ACCESS_ERR(10) "
                "opcode=IBV_WC_RDMA_WRITE(1) vendor_err=136 hca mlx5_1", at="07:14:03")  # fmt: skip
    result = answer(tmp_path, log=log)

    assert ("device-event", "gpu2", "mlx5_1") == (
        first(result).id,
        first(result).at_fault.host,
        first(result).at_fault.nic,
    )


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

    assert ("rank-silent", [3]) == (first(result).id, first(result).at_fault.ranks)


def test_the_pod_that_was_killed_for_its_memory(tmp_path: Path) -> None:
    """As `kubectl describe pod` names it."""
    text = "Name:         worker-1\nState:        Terminated\n  Reason:     OOMKilled\n"
    result = answer(
        tmp_path, log=begin(2) + steps() + warn(0, "Connection closed by remote peer worker-1<5>"), pod=text
    )

    assert ("oom-kill", "worker-1") == (first(result).id, first(result).at_fault.host)


def test_mpirun_names_the_rank_of_a_process(tmp_path: Path) -> None:
    """Whose own lines have its number alone."""
    text = (
        "[1763712862.396315] [gpu-m07:82049:0]  ib_mlx5_log.c:179  UCX  ERROR Transport retry count exceeded on "
        "mlx5_2:1/IB (synd 0x15 vend 0x81 hw_synd 0/0)\n"
        "mpirun noticed that process rank 18 with PID 82049 on node gpu-m07 exited on signal 6 (Aborted).\n"
    )

    assert [18] == first(answer(tmp_path, log=text)).at_fault.ranks


def test_an_exception_that_another_row_names_is_one_cause(tmp_path: Path) -> None:
    """The barrier that ranks did not pass, not the exception of the rank that says so."""
    log = "RuntimeError: [Rank 0]: Ranks 4, 5 failed to pass monitoredBarrier in 2000 ms\n"
    result = answer(tmp_path, log=log)

    assert (["monitored-barrier"], [4, 5]) == ([cause.id for cause in result.causes], first(result).at_fault.ranks)


@pytest.mark.parametrize(
    ("log", "cause", "ranks", "host"),
    [
        ("UNAVAILABLE: Task /job:jax_worker/replica:0/task:3 heartbeat timeout.\n", "jax-task-dead", [3], None),
        ("Barrier timed out. Timed out task names:\n/job:jax_worker/replica:0/task:6\n", "jax-barrier", [6], None),
        (
            "[2] is setting up NCCL communicator and retreiving ncclUniqueId from [0] via c10d key-value store by key "
            "'0', but store->get('0') got error: Socket Timeout\n",
            "unique-id-missing",
            [0],
            None,
        ),
        (
            "A worker died. Worker IP address: 10.0.1.75 Worker port: 10230 Worker PID: 207 Worker exit type\n",
            "worker-died",
            [],
            "10.0.1.75",
        ),
        ("x.py:434:kill] ['python3', '--local_rank=0'] exits with return code = -8\n", "signal", [], None),
        ("command terminated with exit code 139\n", "crash", [], None),
        ("  Remote daemon: [[4,0],20] on node worker-19\n", "mpi-daemon-lost", [], "worker-19"),
        ("gpu1: step 1\ngpu1: Nov 12 03:11:09 gpu1 kernel: NVRM: Xid (PCI:0000:c1:00): 79, x\n" * 4, "xid", [], "gpu1"),
    ],
)
def test_who_a_launcher_or_framework_names(
    tmp_path: Path, log: str, cause: str, ranks: list[int], host: str | None
) -> None:
    """Ranks and hosts of lines that are not of a collective library."""
    result = answer(tmp_path, log=log)

    assert (cause, ranks, host) == (first(result).id, first(result).at_fault.ranks, first(result).at_fault.host)


def test_every_host_on_which_a_launch_failed(tmp_path: Path) -> None:
    """Equal lines of hosts whose names differ in digits only."""
    line = "srun: error: Task launch for StepId=96.0 failed on node n{}: No such process\n"
    result = answer(tmp_path, log=line.format(2) + line.format(3))

    assert "Slurm could not start the job's tasks on n2, n3: No such process" == first(result).summary


@pytest.mark.parametrize("first_line", ["killed", "cancelled"])
def test_what_is_killed_after_it_was_ended_from_outside(tmp_path: Path, first_line: str) -> None:
    """Follows from that; what was killed before does not."""
    lines = [
        "srun: error: gpu1: tasks 0-7: Killed\n",
        "slurmstepd: error: *** STEP 4.0 ON gpu1 CANCELLED AT 2026-03-02T11:00:00 ***\n",
    ]
    result = answer(tmp_path, log=steps() + "".join(lines if first_line == "killed" else lines[::-1]))

    assert first_line == first(result).id
    if first_line == "killed":
        assert "ranks 0-7 on gpu1 were killed" in first(result).summary


@pytest.mark.parametrize(
    "end",
    [
        "{'train_runtime': 3052.1, 'train_loss': 0.61, 'epoch': 1.0}\n",
        "[after training is done] datetime: 2025-06-01 23:11:02\n",
        "`Trainer.fit` stopped: `max_steps=50` reached.\n",
        "api: [INFO] [default] worker group successfully finished. Waiting 300 seconds\n",
        "Job 'raysubmit_abc' succeeded\n",
    ],
)
def test_regular_ends_of_frameworks(tmp_path: Path, end: str) -> None:
    """No failure in it."""
    assert ("well", []) == ((result := answer(tmp_path, log=steps() + end)).job.ended, result.causes)


def test_ranks_and_hosts_that_are_not_all_known_are_not_counted(tmp_path: Path) -> None:
    """Lines of one of nine hosts, and of rank 4 alone."""
    text = "ncclCommInitRank comm 0x1 rank {} nranks 72 cudaDev {} busId 1000 commId 0x9 - Init START"
    one = answer(tmp_path, log="".join(info(rank, text.format(rank, rank)) for rank in range(8)))
    alone = answer(tmp_path, log="[rank4]: ValueError: bad shape\n")
    both = answer(tmp_path, log="[rank0]: ValueError: bad shape\n[rank1]: ValueError: bad shape\n")

    assert (72, None) == (one.job.ranks, one.job.nodes)
    assert (None, 2) == (alone.job.ranks, both.job.ranks)


def test_an_exit_without_a_rank_explains_no_rank_that_did_not_come(tmp_path: Path) -> None:
    """The exception that a rank wrote, and the barrier, show more than a process that returned 1."""
    exit_line = "E1106 04:43:02 26 api.py:869] failed (exitcode: 1) local_rank: 0 (pid: 26026) of binary: python\n"
    barrier = "RuntimeError: [Rank 0]: Ranks 4, 5 failed to pass monitoredBarrier in 2000 ms\n"
    shown = answer(tmp_path, log=barrier + exit_line)
    raised = answer(tmp_path, log="[rank2]: ValueError: bad shape\n" + exit_line)
    alone = answer(tmp_path, log=exit_line.replace("exitcode: 1", "exitcode: -9"))

    assert ["monitored-barrier"] == [cause.id for cause in shown.causes]
    assert ["python-exception"] == [cause.id for cause in raised.causes]
    assert ["killed"] == [cause.id for cause in alone.causes]


def test_the_peer_of_gloo_ended(tmp_path: Path) -> None:
    """It is named, and the unknown line behind it is no cause of its own."""
    log = "RuntimeError: [../gloo/pair.cc:598] Connection closed by peer [10.244.48.107]:12717\n"
    result = answer(tmp_path, log=log + "DEBUG: User process failed with error data: {\n")

    assert (["peer-gone"], "10.244.48.107") == ([cause.id for cause in result.causes], first(result).at_fault.host)


def test_the_host_and_words_of_nccl_tests(tmp_path: Path) -> None:
    """Its own lines name the error; a CUDA error is one."""
    plain = answer(tmp_path, log="gpu7: Test NCCL failure common.cu:959 'internal error - please report / '\n")
    cuda = answer(tmp_path, log="gpu7: Test CUDA failure common.cu:963 'invalid device ordinal'\n")

    assert "NCCL: internal error - please report" in first(plain).summary
    assert "cuda-101" == first(cuda).id


def test_a_device_that_verbs_cannot_open_stops_no_job_that_has_others(tmp_path: Path) -> None:
    """It is slow; where no other is in use it is the cause."""
    log = warn(0, "NET/IB : Unable to open device mlx5_59")
    others = answer(tmp_path, log=log + begin(1) + info(0, "Using network IB"))
    alone = answer(tmp_path, log=log)
    sockets = answer(tmp_path, log=log + info(0, "Using network Socket"))

    assert ("unknown", True) == (others.job.ended, "goes on with the others" in first(others).summary)
    assert "failed" == alone.job.ended == sockets.job.ended
    assert first(alone).summary.endswith("cannot open it mlx5_59")


def test_a_handle_that_cannot_be_imported(tmp_path: Path) -> None:
    """CUDA error 101 where NCCL imports memory is IMEX; elsewhere it is a GPU that is missing."""
    text = "Cuda failure 101 'invalid device ordinal'"
    imported = answer(tmp_path, log=warn(0, text, place="transport/p2p.cc:275"))
    missing = answer(tmp_path, log=warn(0, text, place="init.cc:275"))

    assert ("imex-not-working", "cuda-101") == (first(imported).id, first(missing).id)
    assert "IMEX" in first(imported).summary


def test_a_stalled_rank_of_horovod(tmp_path: Path) -> None:
    """By number, in both forms; one that came in the end is a note."""
    old, new = "HorovodBroadcast_w_0 [missing ranks: 0, 3]\n", "Stalled ranks:\n1: [HorovodAllreduce_x]\n"
    stalled = answer(tmp_path, log=old + new)
    over = answer(tmp_path, log=steps() + old + steps() + END)

    assert ("hung", "horovod-stalled", [0, 1, 3]) == (
        stalled.job.ended,
        first(stalled).id,
        first(stalled).at_fault.ranks,
    )
    assert ("well", [], 1) == (over.job.ended, over.causes, len(over.notes))


def test_other_launchers_and_an_interrupt(tmp_path: Path) -> None:
    """The rank that Paddle names; a person who ended the job."""
    paddle = answer(tmp_path, log="ABORT!!! Out of all 2 trainers, the trainer process with rank=[1] was aborted.\n")
    ended = answer(tmp_path, log=steps() + "^CTraceback (most recent call last):\nKeyboardInterrupt\n")
    busy = answer(tmp_path, log="RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable\n")

    assert [1] == first(paddle).at_fault.ranks
    assert ("killed", "launcher-signal") == (ended.job.ended, first(ended).id)
    assert "cuda-46" == first(busy).id
