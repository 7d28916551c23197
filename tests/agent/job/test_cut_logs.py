"""Logs of which the first cause is one line among consequences, or of which only a part is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.cli.errors import CliError
from tests.agent.job.jobs import Log, answer, begin, check, first, info, steps, warn

DUMP = """mlx5: gpu-k7: got completion with error:
00000000 00000000 00000000 00000000
00000000 00000000 00000000 00000000
0000001a 00000000 00000000 00000000
00000000 0000{} 0a0007a2 0011c8d2
"""
NO_GPUDIRECT = """I20261103 07:12:01.110231 4711 transfer_engine.cpp:127] Topology discovery complete. Found 2 HCAs
E20261103 07:12:01.140231 4711 rdma_context.cpp:1343] DMA BUF supported required for GPU RDMA without nvidia-peermem
E20261103 07:12:01.141999 4711 rdma_context.cpp:209] Failed to open device mlx5_2 on port  with GID 3 of this hostXX
"""
DEEPEP = "DeepEP dispatch NVL receiver timeout, channel: 2, RDMA: 1, nvl: 3, src RDMA: 0, src nvl: 5, start: 0\n"
LAUNCH_FAILURE = "RuntimeError: CUDA error: unspecified launch failure\n"
EFA = """libfabric:41:1800000000::efa:cq:efa_cq_open():688<warn> Unable to create extended CQ: Cannot allocate memory
n1:41:57 [5] ofiutils_init_connection:274 NCCL WARN NET/OFI Couldn't open CQ. RC: -22, ERROR: Invalid argument
n1:41:57 [5] NCCL INFO Using network Socket
"""
TASKS = "DEADLINE_EXCEEDED: Barrier timed out. Timed out task names:\n" + "/job:jax_worker/replica:0/task:{}\n"
TABLE = """W1103 07:12:40.200000 71 elastic/multiprocessing/api.py:897] Sending process 83 closing signal SIGTERM
Root Cause (first observed failure):
[0]:
  time      : 2026-11-03_07:12:40
  host      : gpu-c2
  rank      : 13 (local_rank: 5)
  exitcode  : -6 (pid: 86)
srun: error: gpu-c2: task 1: Exited with exit code 1
"""
TIMED_OUT = (
    "{0:2d}: [rank{0}]:[E1103 07:12:{0:02d}.1 ProcessGroupNCCL.cpp:685] [Rank {0}] Watchdog caught collective "
    "operation timeout: WorkNCCL(SeqNum=900, OpType=ALLREDUCE, NumelIn=8, NumelOut=8, Timeout(ms)=600000) ran for "
    "600012 milliseconds before timing out.\n"
)
ALL_BUT_6 = (
    " 6: reading shard 877 of the corpus\n"
    + "".join(TIMED_OUT.format(rank) for rank in range(12) if rank != 6)
    + "srun: error: gpu-c1: tasks 0-5: Exited with exit code 1\n"
)
ENDED_BY_WATCHDOG = (
    "[rank{0}]:[E1103 07:12:05.1 ProcessGroupNCCL.cpp:1895] [PG ID 0 PG GUID 0(default_pg) Rank {0}] Process group "
    "watchdog thread terminated with exception: [Rank {0}] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum={1}, OpType=ALLREDUCE, NumelIn=8, NumelOut=8, Timeout(ms)=600000) ran for 600012 milliseconds\n"
)
NO_VERBS = warn(0, "Failed to open libibverbs.so[.1]", "n1") + info(0, "Using network Socket", "n1")
RAS_PORT = "n1:41:57 [0] ras/client_support.cc:160 NCCL WARN Call to {} failed: {}\n"
NO_ANSWER = (
    "gpu-{0}:88:90 [2] transport/net_ib.cc:2011 NCCL WARN NET/IB: Got completion from peer 10.9.9.14<{0}48> with "
    "status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_RDMA_WRITE(1) vendor_err=129 localGid ::ffff:10.8.2.{0} remoteGids "
    "::ffff:10.8.2.14 hca mlx5_2\n"
)
RAY = (
    "(raylet) A worker died. Worker ID: 5e Worker IP address: 10.0.1.75 Worker port: 10230 Worker PID: 207258 Worker\n"
)
LINK_LOCAL = NO_ANSWER.replace("::ffff:10.8.2.{0}", "{1}").replace("::ffff:10.8.2.14", "{1}")
DEAD_TASK = "UNAVAILABLE: The following tasks are unhealthy (stopped sending heartbeats):\n/job:w/replica:0/task:13\n"
TRACEBACK = "[2026-11-03 07:12:{} TP{}] Scheduler hit an exception: Traceback (most recent call last):\n"
OF_NCCL = "RuntimeError: NCCL error: remote process exited or there was a network error\n\n"
ILLEGAL = '  File "/a/b.py", line 6, in replay\nCudaError: CUDA error: an illegal memory access was encountered\n'
FLAP = warn(0, "NET/IB : mlx5_0:1 Got async error event: port error", "n1")
FLAP += warn(0, "NET/IB : mlx5_0:1 Got async error event: port active", "n1")
XID = "[1{0}.1] NVRM: Xid (PCI:0000:9a:00): {1}\n"
NVLINK = XID.format(1, "145, RLW_REMAP Nonfatal XC0 i0 Link 07 (0x00000004 0x00000000 0x00000000)")
LUSTRE = "LustreError: 11-0: scratch-OST0007-osc-ffff9d: operation ost_write to node 10.9.12.7@o2ib failed: rc = -107\n"
LOST_PEER = (
    "gpu-h{0} [rank{1}]: RuntimeError: [gloo/transport/tcp/pair.cc:525] Read error [10.9.0.2]:{1}: "
    "Connection reset by peer\n"
)
NODE = "The node with node id: 8f20 and ip: 10.12.0.7 has been marked dead because the detector has missed too many\n"
OFI = """Open MPI failed an OFI Libfabric library call (fi_domain).  This is highly
unusual; your job may behave unpredictably (and/or abort) after this.
  Local host: gpu-c7
  Error: Function not implemented (38)
"""
NODE_LOST = warn(0, "socketProgress: Connection closed by remote peer gpu-x4<50122>", "gpu-x2")
NODE_LOST += "srun: error: Node failure on gpu-x4\n"
MPI_CONNECT = """  Local host: gpu-m1
  PID:        5221
  Message:    connect() to 10.9.0.7:1024 failed
  Error:      No route to host (113)
"""
PROMPT = "[u@gpu-p3 ~]$ {}\nRuntimeError: CUDA error: an illegal memory access was encountered\n"

LOGS = (
    Log("prefixes before the rank: a host, an agent, a replica", LOST_PEER.format(1, 0) + LOST_PEER.format(2, 2)
        + "gpu-h2 [rank3]: AssertionError: loss is nan\n",
        "failed: python-exception (software, medium, ranks [3], gpu-h2), then ranks [0, 2]"),
    Log("the same of torchx and of torchrun", "i.pretrain/0 [default0]:[rank0]: KeyError: 'loss'\n",
        "failed: python-exception (software, medium, ranks [0])"),
    Log("an address before a line is that of its host", "10.2.0.7: x\n" * 3
        + "10.2.0.8: OSError: [Errno 28] No space left on device: '/tmp/a'\n",
        "failed: disk-full (setting, high, 10.2.0.8)"),
    Log("an address of Ray's prefix is that of its host",
        "(WorkerDict pid=9, ip=10.2.0.8) Fatal Python error: Aborted\n", "failed: crash (software, medium, 10.2.0.8)"),
    Log("a host that Ray lost, and its actor", NODE + "The actor is dead because its node has died.\n",
        "failed: ray-node-dead (rank, medium, 10.12.0.7)", "no sign of life from 10.12.0.7"),
    Log("the host and the error below a message of Open MPI", OFI,
        "failed: mpi-library-call (software, low, gpu-c7)", "fi_domain: Function not implemented (38)"),
    Log("a line that names a host is of that one, not of the host whose log it is in", NODE_LOST,
        "failed: node-failed (hardware, medium, gpu-x4)", "gpu-x4 does not answer"),
    Log("the host above a connection of Open MPI that fails, and the error below it", MPI_CONNECT,
        "failed: connect-failed (peer, medium, gpu-m1)", "10.9.0.7:1024: No route to host (113)"),
    Log("a pod before a line is its host", "[pod/w-2/main] [rank6]: KeyError: 'x'\n" * 3,
        "failed: python-exception (software, medium, ranks [6], w-2)"),
    Log("an engine of vLLM that was killed",
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): "
        "{'EngineCore_DP0': -9}\n", "killed: killed (rank, medium)"),
    Log("a shell's prompt above a program of this host", PROMPT.format("python train.py"),
        "failed: cuda-700 (software, medium, gpu-p3)"),
    Log("a shell's prompt above one of other hosts", PROMPT.format("srun -N 4 python train.py"),
        "failed: cuda-700 (software, medium)"),
    Log("an NPU that cannot listen: its port may be down",
        "socket type[0], listen on ip[192.0.2.9] and specific port[16666] fail. Please check the port status\n",
        "failed: hccl-port-taken (software, medium)", "the port of the NPU is down"),
    Log("a number of an NPU that is none", "EL0001: Device not found or invalid. Reason: Invalid device ID: 9.\n",
        "failed: npu-not-found (unknown, medium)"),
    Log("a worker thread on CPUs that the process does not have",
        "|CCL_ERROR| base_thread.cpp:36 start: error while creating worker thread #0 pthread_create returns 22\n"
        "RuntimeError: oneCCL: exec.cpp:134 start_workers: EXCEPTION: failed to start worker # 0\n",
        "failed: thread-affinity-invalid (setting, medium)"),
    Log("a process of DeepSpeed that ended well", "[2026-11-03 07:11:01,003] [INFO] [launch.py:100:main] deepspeed\n"
        "[2026-11-03 07:12:01,003] [INFO] [launch.py:348:main] Process 4711 exits successfully.\n",
        "well: no cause", "No failure"),
    Log("a completion that mlx5 prints in words of hex alone", DUMP.format("5104"),
        "failed: completion-4 (rank, medium, gpu-k7)", "local protection error"),
    Log("the same words of a peer that does not answer", DUMP.format("8115"),
        "failed: completion-12 (fabric, medium, gpu-k7)", "got no answer"),
    Log("a dump whose rows were cut", DUMP.partition("0000001a")[0],
        "failed: verbs-completion (unknown, low)", "no status"),
    Log("the words of verbs for a completion",
        "rc_verbs_iface.c:67  send completion with error: local protection error\n",
        "failed: completion-4 (rank, medium)", "IOMMU"),
    Log("RAS needs no port for a job", RAS_PORT.format("bind", "Address already in use"), "unknown: 1 note"),
    Log("lines of glog that a width makes look cut", NO_GPUDIRECT,
        "failed: transfer-no-gpudirect (setting, high); transfer-device-not-opened (setting, medium, mlx5_2)",
        "nvidia_peermem is not loaded"),
    Log("kernels of DeepEP stop themselves after their time-out", DEEPEP + LAUNCH_FAILURE,
        "failed: deepep-timeout (unknown, low)"),
    Log("a launch failure before them has its own cause", LAUNCH_FAILURE + DEEPEP,
        "failed: cuda-719 (software, medium)"),
    Log("why the plugin of EFA did not start, and what NCCL does without it", EFA,
        "failed: efa-plugin-failed (setting, medium, n1); 1 note", "Cannot allocate memory; NCCL then uses TCP"),
    Log("most tasks of JAX are missing: how the job was started", "".join(
        (TASKS if number == 1 else TASKS.partition("\n")[2]).format(number) for number in range(1, 8)),
        "hung: jax-barrier (setting, medium, ranks [1, 2, 3, 4, 5, 6, 7])"),
    Log("one task of JAX is missing", TASKS.format(6), "hung: jax-barrier (rank, high, ranks [6])"),
    Log("the task of srun is torchrun, the rank is in its table", TABLE,
        "failed: aborted (software, medium, ranks [13], gpu-c2)"),
    Log("a rank that wrote by its launcher, and not of the time-out; those that waited exit by it", ALL_BUT_6,
        "hung: rank-silent (rank, medium, ranks [6]), then ranks [0, 1, 2, 3, 4, 5]"),
    Log("the group before the words of a watchdog that ends", ENDED_BY_WATCHDOG.format(4, 51)
        + ENDED_BY_WATCHDOG.format(9, 52), "hung: rank-behind (rank, medium, ranks [4])"),
    Log("no libibverbs, by the log of one host", NO_VERBS, "unknown: 1 note"),
    Log("NIXL has lost the other server", "nixl._bindings.nixlRemoteDisconnectError: NIXL_ERR_REMOTE_DISCONNECT\n",
        "failed: nixl-error (peer, low)", "the connection to the other server was lost"),
    Log("a code of NIXL that is not known", "nixl._bindings.nixlNewError: NIXL_ERR_NEW\n",
        "failed: nixl-error (unknown, low)", "NIXL_ERR_NEW"),
    Log("an exception whose name begins small", "pkg._core.brokenError: no more cheese\n",
        "failed: python-exception (software, medium)", "pkg._core.brokenError"),
    Log("several hosts that reach one peer no more", NO_ANSWER.format(12) + NO_ANSWER.format(13),
        "failed: completion-12 (peer, medium, mlx5_2)", "gpu-12, gpu-13 all got no answer from 10.9.9.14 on mlx5_2"),
    Log("one host that does not reach its peer", NO_ANSWER.format(12) * 2,
        "failed: completion-12 (fabric, medium, gpu-12, mlx5_2)"),
    Log("a worker that died before an unclear error of a NIC", RAY + DUMP.partition("0000001a")[0],
        "failed: worker-died (rank, medium, 10.0.1.75)"),
    Log("a worker that died after it", DUMP.partition("0000001a")[0] + RAY,
        "failed: verbs-completion (unknown, low); worker-died (rank, medium, 10.0.1.75)"),
    Log("link-local GIDs of InfiniBand are usual", LINK_LOCAL.format(12, "fe80::e42:a103:5d:c1e2"),
        "failed: completion-12 (fabric, medium, gpu-12, mlx5_2)", "P_Keys"),
    Log("link-local GIDs of RoCE, by the MAC in them", LINK_LOCAL.format(12, "fe80::e42:a1ff:fe5d:c1e2"),
        "failed: gid-link-local (setting, high, gpu-12, mlx5_2)", "which routed RoCE does not reach"),
    Log("tasks of JAX that are listed below what happened to them", DEAD_TASK,
        "failed: jax-task-dead (rank, medium, ranks [13])"),
    Log("a traceback of which only the first line has the prefix of its rank",
        TRACEBACK.format(40, 6) + OF_NCCL + TRACEBACK.format(39, 11) + ILLEGAL,
        "failed: cuda-700 (software, medium, ranks [11]), then ranks [6]"),
    Log("two tracebacks in one another name no rank", TRACEBACK.format(40, 6) + TRACEBACK.format(39, 11) + ILLEGAL,
        "failed: cuda-700 (software, medium)"),
    Log("a port that came up again, and steps that follow", FLAP + steps(2),
        "unknown: port-down (wire, high, n1, mlx5_0)", "came up again"),
    Log("a port that came up again, and nothing after it", steps(2) + FLAP,
        "failed: port-down (wire, high, n1, mlx5_0)"),
    Log("a port that came up again, and requests that failed", FLAP + NO_ANSWER.format(12) + steps(2),
        "failed: port-down (wire, high, n1, mlx5_0); completion-12 (fabric, medium, gpu-12, mlx5_2)"),
    Log("an error of NVLink that the driver calls nonfatal, before one of memory",
        NVLINK + XID.format(2, "94, pid=90123, name=python, Contained: SM (0x1). RST: No, D-RST: No"),
        "failed: xid (hardware, high)", "Xid 94"),
    Log("an error of NVLink that the driver calls fatal", NVLINK.replace("Nonfatal", "Fatal"),
        "failed: xid (hardware, high)", "Xid 145"),
    Log("a time limit of PBS", "job killed: walltime 43223 exceeded limit 43200\n",
        "killed: time-limit (setting, high)"),
    Log("a job that outlived a lost rank outlived those that waited for it",
        begin(4) + warn(3, "Cuda failure 214 'uncorrectable ECC error encountered'") + "".join(
            TIMED_OUT.format(rank) for rank in range(3)) + steps(30) + "Training completed.\n",
        "well: 2 notes", "No failure"),
    Log("a client of Lustre is no program in Python", LUSTRE, "failed: ends-in-error (unknown, low)"),
)  # fmt: skip


@pytest.mark.parametrize("row", LOGS, ids=lambda row: row.about)
def test_what_a_part_of_a_log_shows(tmp_path: Path, row: Log) -> None:
    check(tmp_path, row)


def test_the_start_of_a_rank_that_aborted_is_asked_for(tmp_path: Path) -> None:
    """Its end alone does not show why."""
    result = answer(tmp_path, log=TABLE)

    assert ["why rank 13 on gpu-c2, GPU 5 ended: no line here has its own error"] == [
        row.what for row in result.cannot_tell
    ]
    assert "torchrun ended the other processes of its host (SIGTERM): a process" == result.consequences[0].summary


@pytest.mark.parametrize(
    "log",
    [TASKS.format(6), "xla/service/rendezvous.cc:58] Termination timeout for `x` of 30 seconds exceeded\n", DEEPEP],
)
def test_nothing_of_nccl_is_asked_for_where_nccl_has_no_part(log: str, tmp_path: Path) -> None:
    assert "NCCL" not in "".join(row.save or "" for row in answer(tmp_path, log=log).cannot_tell)


def test_a_plugin_with_a_space_in_its_name_uses_gpudirect(tmp_path: Path) -> None:
    log = info(0, "Channel 00/0 : 0[4] -> 8[4] [send] via NET/AWS Libfabric/4/GDRDMA")

    machine = answer(tmp_path, log=log).machine

    assert machine is not None
    assert [] == [row.what for row in machine.differences]


def test_a_local_protection_error_is_narrowed_down_before_a_part_is_blamed(tmp_path: Path) -> None:
    """One run without GPUDirect separates a buffer of the program from the way to the GPU."""
    steps = first(answer(tmp_path, log=DUMP.format("5104"))).next

    assert "NCCL_NET_GDR_LEVEL=LOC" in steps[0]
    assert "slower" in steps[0]
    assert "IOMMU" in steps[1]


def test_each_host_that_does_not_reach_a_peer_is_shown(tmp_path: Path) -> None:
    cause = first(answer(tmp_path, log=NO_ANSWER.format(12) + NO_ANSWER.format(13)))

    assert [1, 2] == [row.line for row in cause.evidence]
    assert cause.next[0].startswith("the rail of 10.9.9.14 on mlx5_2: `fabricscope scan` there")


def test_a_log_without_a_known_line_states_what_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(CliError, match=r"no line of a job; looked for: NCCL, RCCL, HCCL"):
        answer(tmp_path, log="good morning\n")


def test_a_log_that_has_nothing_of_its_host_is_no_report_of_it(tmp_path: Path) -> None:
    """An error of a program is of the job."""
    assert [] == answer(tmp_path, log=TRACEBACK.format(39, 11) + ILLEGAL).reports
