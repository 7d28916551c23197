"""Failures that no row explains: the part, what its words show, the first and not the last; no false accusation."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.job import catalogue
from agent.job.causes import find_candidates
from agent.job.evidence import Evidence
from agent.job.lines import LogLine
from agent.job.named_parts import read_words
from probes.tool_reports.sentences.parts import find_part
from tests.agent.job.jobs import Log, answer, check, first, steps

WATCHDOG = (
    "[rank{0}]:[E1103 04:18:0{1}.1 ProcessGroupNCCL.cpp:632] [Rank {0}] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=31, OpType=ALLREDUCE, NumelIn=64, NumelOut=64, Timeout(ms)=600000) ran for 600012 milliseconds "
    "before timing out.\n"
)
WAITED = "".join(WATCHDOG.format(rank, rank % 10) for rank in range(16) if rank != 5)
CLOSED = (
    "[2026-11-03 04:12:2{0}] gpu-b{0}:41:42 [0] misc/socket.cc:484 NCCL WARN socketProgress: Connection closed by "
    "remote peer gpu-b3<40211>\n"
)
WORKERS = "".join(f"(Worker_TP{rank} pid={900 + rank}) INFO 11-03 04:00:01 [w.py:11] ready\n" for rank in range(8))
ENGINE = "(EngineCore pid=880) ERROR 11-03 04:01:12 [core.py:718] EngineCore failed to start.\n"
READY = "".join(f"{rank:2}: worker {rank} is ready\n" for rank in range(32))
EXITED = (
    "srun: error: gpu-c4: task 17: Exited with exit code 1\nsrun: error: gpu-c2: tasks 0-7: Terminated\n"
    "srun: error: gpu-c3: tasks 8-15: Terminated\nsrun: Force Terminated StepId=991.0\n"
)
UP = "INFO:     Started server process [71]\nINFO:     Application startup complete.\n"
GLOG = "E1103 04:05:11.20 771 {}\n"
LOGS = (
    Log("a message below its heading, and an abort", "Fatal error:\nstep 134: a water molecule left the box\n"
        + "-\n" * 4 + "MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD\n",
        "failed: ends-in-error (unknown, low), then ranks [1]", "step 134: a water molecule left the box"),
    Log("commands after the end", "ERROR queue: cannot reach redis://store:6379\n$ kubectl get pods\n"
        + "a 1/1 Running 0\n" * 6,
        "failed: ends-in-error (unknown, low)", "a service or download"),
    Log("an end in other words", "cleanup\nrank 3: loss diverged, stopping\n", "failed: ends-in-error (unknown, low)"),
    Log("other words that the job outlived", "step 1\ntenant quota exceeded, waiting\n" + "step 2\n" * 3,
        "unknown: no cause"),
    Log("a GPU of another maker", "[rank5] RuntimeError: level_zero backend failed: UR_RESULT_ERROR_DEVICE_LOST\n",
        "failed: gpu-lost (hardware, medium, ranks [5])"),
    Log("tasks that are jobs of their own", "rank 0 of 1 on gpu7\nrank 0 of 1 on gpu8\nstep 1 loss 2\n",
        "failed: ranks-alone (setting, medium)", "2 processes on gpu7, gpu8"),
    Log("an exception that names a NIC", "[rank5]: RuntimeError: lane broker: mlx5_3 refused the window (code 17)\n",
        "failed: part-failed (unknown, low, ranks [5], mlx5_3)", "rank 5 reports an unexplained failure of mlx5_3: "),
    Log("even one that is mostly the program's own", "[rank5]: ValueError: window of mlx5_3 is empty\n",
        "failed: part-failed (unknown, low, ranks [5], mlx5_3)"),
    Log("a step of RDMA without a NIC", "[rank1]: RuntimeError: queue pair 71 stayed in INIT\n",
        "failed: python-exception (unknown, low, ranks [1])", "by its words: a step of RDMA, and no NIC is named"),
    Log("a connection", "[rank1]: OSError: broker: handshake with 10.9.0.9:400 not finished\n",
        "failed: python-exception (unknown, low, ranks [1])", "by its words: a connection"),
    Log("the program's own error is the program's", "[rank1]: LayoutError: 7 tiles do not fit 31 rows\n",
        "failed: python-exception (software, medium, ranks [1])"),
    Log("a framework's name is no fabric",
        "lightning.fabric.utilities.exceptions.MisconfigurationException: the `Fabric` plan 'x' is not registered\n",
        "failed: python-exception (software, medium)"),
    Log("data on a GPU is no failure of it", "[rank0]: PlacementError: tile on GPU 3, rows on GPU 4\n",
        "failed: python-exception (software, medium, ranks [0])"),
    Log("the rank that failed ten minutes before 15 others waited",
        steps(7) + "[rank5]: [2026-11-03 04:08:11] [ERROR] weight push: mlx5_3 stopped taking work\n" + WAITED,
        "failed: part-failed (unknown, low, ranks [5], mlx5_3), then ranks [5]", "weight push: mlx5_3 stopped"),
    Log("what follows by its words from another rank", "[rank3]: RuntimeError: proxy: NPU 3 link is unhealthy\n"
        + "".join(f"[rank{rank}]: RuntimeError: proxy: closed by rank 3 on mlx5_{rank}\n" for rank in (0, 1, 2)),
        "failed: part-failed (unknown, low, ranks [3]), then ranks [0, 1, 2]", "NPU 3 (a link, firmware or hardware)"),
    Log("a rail that lost its carrier, in no word for an error",
        GLOG.format("nicmon.cc:88] rail 4: carrier lost on ens8f0np0")
        + GLOG.format("agent.cc:9] Failed to send a heartbeat: Socket closed") * 3,
        "failed: part-failed (unknown, low); 1 note", "rail 4, ens8f0np0"),
    Log("what a process wrote before it exited",
        READY + "17: loader: shard 412 not read: Input/output error (/mnt/ds/412.tar)\n" + EXITED,
        "failed: ends-in-error (unknown, low, ranks [17]), then ranks [17]", "by its words: storage, not"),
    Log("a log of workers is no output of a host",
        WORKERS + "(Worker_TP6 pid=906) ERROR 11-03 04:01:10 [k.py:2] kvx: bnxt_re6: registration failed\n" + ENGINE,
        "failed: part-failed (unknown, low, ranks [6], bnxt_re6)", "memory or queues that it could not have"),
    Log("a server that came up after an error", GLOG.format("probe.cc:10] Failed to query mlx5_4: not supported") + UP,
        "unknown: 1 note"),
    Log("an error after it came up", UP + GLOG.format("probe.cc:10] Failed to use mlx5_4: not permitted"),
        "failed: part-failed (unknown, low, mlx5_4); 1 note", "mlx5_4 (missing rights)"),
    Log("counters are no errors", "iteration 7\nRX Error Count : 0\nlink error count : [0   7   0]\nFailed: 0\n",
        "unknown: no cause"),
    Log("an error that many steps came after", "mlx5_3: window refused, error\n" + steps(40), "unknown: no cause"),
    Log("flushed requests of another transport of UCX, by their words",
        "[1800000000.1] [9f2c:537  :1]  srd_iface.c:221  UCX  ERROR send completion[0] with error on rdmap90s0/0x55: "
        "Work Request Flushed Error, vendor_err 0x1\n", "failed: completion-5 (unknown, low, 9f2c, rdmap90s0)"),
    Log("a device that the transfer engine cannot open",
        GLOG.format("rdma_context.cpp:81] Failed to open device mlx5_8 on port  with GID 0"),
        "failed: transfer-device-not-opened (setting, medium, mlx5_8)", "nothing at GID index 0"),
    Log("a name that is not resolved", "ssh: Could not resolve hostname w-3.w.ns.svc: Name or service not known\n",
        "failed: store-unresolved (setting, medium)", "the name of a host: w-3.w.ns.svc"),
    Log("a code of CUDA that has no meaning here", "n1:22:22 [0] a.cc:89 NCCL WARN Cuda failure 205 'mapping failed'\n",
        "failed: cuda-205 (unknown, medium, n1)", "CUDA error 205 (mapping failed)"),
    Log("a store that is gone is no watchdog", "[rank0]:[W510 09:16:33.3 ProcessGroupNCCL.cpp:1771] [PG ID 0 PG GUID 0 "
        "Rank 0] Failed to check the \"should dump\" flag on TCPStore, with error: Broken pipe\n",
        "failed: store-lost (peer, low, ranks [0])"),
)  # fmt: skip


@pytest.mark.parametrize("row", LOGS, ids=lambda row: row.about)
def test_what_the_words_of_a_failure_show(tmp_path: Path, row: Log) -> None:
    """The part, and what it is about; what is the program's own stays so."""
    check(tmp_path, row)


def test_of_many_logs_the_one_whose_part_failed(tmp_path: Path) -> None:
    """The others lost their connection to its host."""
    for host in range(8):
        lines = f"gpu-b{host}:41:42 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.{host + 1}<0>\n"
        lost = "2026-11-03 04:12:09 ERROR offload: GPU 5 is not responding, context lost\n"
        (tmp_path / f"gpu-b{host}.log").write_text(lines + (lost if host == 3 else CLOSED.format(host)))

    cause = first(answer(tmp_path))

    assert ("part-failed", "gpu-b3") == (cause.id, cause.at_fault.host)
    assert "the kernel log of gpu-b3 at that time: Xids, AER, resets" in cause.next
    assert any("`fabricscope scan` on gpu-b3" in step for step in cause.next)


def test_of_many_logs_the_first_error_in_time(tmp_path: Path) -> None:
    """Not that of the first file."""
    for rank in range(4):
        second = 9 if rank == 2 else 30
        text = "shard 7 is damaged" if rank == 2 else "batch is incomplete"
        (tmp_path / f"worker-{rank}.log").write_text(f"2026-11-03 04:12:{second:02} ERROR data: {text}\n")

    assert "worker-2.log ends in an unexplained error: data: shard 7" in answer(tmp_path).headline


def test_a_grave_finding_of_outputs_is_in_an_answer_that_knows_no_more(tmp_path: Path) -> None:
    """A log that shows nothing, beside a kernel log that does."""
    text = "libibverbs: Warning: Driver bnxt_re does not support the kernel ABI of 6 (supports 1 to 1) for device x\n"

    assert "; of the host: error tool-reports-fault" in answer(tmp_path, out=text).headline


@pytest.mark.parametrize(
    ("text", "parts", "means"),
    [
        ("QP on mlx5_bond_2 not permitted", ("mlx5_bond_2",), "missing rights"),
        ("irdma1: GID 3 is empty", ("irdma1",), "addresses, partitions or routes"),
        ("rdmap90s0: cannot allocate 64 queues", ("rdmap90s0",), "memory or queues that it could not have"),
        ("hsn0 not found", ("hsn0",), "a device or file that is not there for this process"),
        ("0000:5e:00.0: no completion after 30 s", ("0000:5e:00.0",), "no answer in time"),
        ("Ethernet1/5 went down", ("Ethernet1/5",), "a link, firmware or hardware"),
        ("mlx5_0: flushed", ("mlx5_0",), "follows from another failure"),
        ("libmlx5_1.so and /sys/mlx5_2 and mlx5_core", (), None),
        ("NVLink domain is incomplete", (), "links between GPUs"),
        ("etcd at 10.0.0.1:2379 is sealed", (), "a service or download, not the network of the GPUs"),
        ("weights.safetensors is short", (), "a file of the program"),
    ],
)
def test_parts_and_words(text: str, parts: tuple[str, ...], means: str | None) -> None:
    """Names of parts as libraries write them, and no paths or modules."""
    words = read_words(text)

    assert (parts, means) == (words.parts, words.means)


@pytest.mark.parametrize(
    "name", ["bnxt_re_bond0", "erdma_0", "qedr1", "roceo12399", "ib2", "eth7", "swp17s2", "xe-0/0/3", "400GE1/0/5"]
)
def test_a_scan_and_a_job_know_the_same_parts(name: str) -> None:
    """Their names have one place."""
    assert (name,) == read_words(f"{name} went down").parts
    assert name == find_part(f"{name} went down")


def test_a_row_of_each_role_gives_a_cause() -> None:
    """A row that no reader is for is not dropped, whatever its role."""
    base = next(pattern.row for pattern in catalogue.load_patterns() if pattern.row.id == "hint")
    for role in catalogue.ROLES:
        evidence = Evidence()
        evidence.names.append("log")
        row = type(base)(id="odd", words=["odd"], pattern="odd", role=role, summary="odd", fires=[], silent=[])
        evidence.add_event(row, role, {}, LogLine("odd", "odd", 1, 0), 1)

        assert (role not in ("fact", "noise")) == any(cause.id == "odd" for cause in find_candidates(evidence)), role


def test_a_steady_pace_does_not_repeat_its_file(tmp_path: Path) -> None:
    """The source of a note has it."""
    lines = "".join(f"step {number} | 812 ms/step\n" for number in range(40))
    note = next(note for note in answer(tmp_path, run=lines).notes if "pace" in note.summary)

    assert not any("run" in row.text for row in note.evidence)


def test_a_date_with_colons_is_no_rank(tmp_path: Path) -> None:
    """OneCCL begins its lines with one."""
    line = "2026:05:23-19:04:20:(4711) |CCL_ERROR| atl_ofi_helper.cpp:1242 init: can't init provider psm3:mlx5_2\n"
    cause = first(answer(tmp_path, a__log=line))

    assert [] == cause.at_fault.ranks
    assert "mlx5_2: atl_ofi_helper.cpp:1242 init" in cause.summary


def test_the_rank_that_psm3_names(tmp_path: Path) -> None:
    """With its host, before the message."""
    line = (
        "[1748048660.727622923] gpu-7:rank3.python: Failed to modify UD QP to INIT on mlx5_2: Operation not permitted\n"
    )
    cause = first(answer(tmp_path, a__log=line))

    assert ([3], "gpu-7") == (cause.at_fault.ranks, cause.at_fault.host)
    assert "(missing rights): Failed to modify UD QP to INIT on mlx5_2" in cause.summary
