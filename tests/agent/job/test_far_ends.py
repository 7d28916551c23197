"""Where a transport sent what failed: a LID, a GID, an endpoint; and which of several lines is the first failure."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.job.jobs import Log, answer, check, first

RETRIES = (
    "[{0}:{1}:0:{1}] ib_mlx5_log.c:177  Transport retry count exceeded on mlx5_2:1/{2} "
    "(synd 0x15 vend 0x81 hw_synd 0/0)\n"
)
SENT = "[{0}:{1}:0:{1}] ib_mlx5_log.c:177  DCI QP 0x{1} wqe[44]: SEND s-e [rqpn 0x32cb rlid {2}] [inl len 20]\n"
ROUTED = (
    "[{0}:{1}:0:{1}] ib_mlx5_log.c:177  RC QP 0x{1} wqe[7]: SEND s-e [rqpn 0x9a rmac 50:6b:4b:01:02:03 sgix 1 dgid {2} "
    "tc 0] [inl len 18]\n"
)
HANDLE = (
    "[1745563465.85] [gpu5:1617 :0]   ib_device.c:1332 UCX  ERROR   ibv_create_ah(dlid=49152 sl=0 port=1 "
    "src_path_bits=0 dgid=::ffff:10.9.1.2 flow_label=0xffffffff sgid_index=3 traffic_class=1) for UD mlx5 connect on "
    "mlx5_6 failed: {}\n"
)
MPICH = (
    "MPICH ERROR [Rank 71] [job id 88120.0] [Tue Nov 3 04:11:42 2026] [nid0042] - Abort(539602063) (rank 71 in comm 0"
    "): Fatal error in PMPI_Waitall: Other MPI error, error stack:\nMPIDI_OFI_handle_cq_error(1075): OFI poll failed"
    " (ofi_events.c:1077:MPIDI_OFI_handle_cq_error:Input/output error - {})\n"
)
QUEUE = (
    "PE 4: MPICH WARNING: OFI is failing to make progress on posting a send. MPICH suspects a hang due to completion "
    "queue exhaustion. OFI retry continuing...\n"
)
LOST = (
    "command terminated with exit code 137\n{}\nORTE has lost communication with a remote daemon.\n\n  HNP daemon   : "
    "[[11,0],0] on node run-launcher\n  Remote daemon: [[11,0],1] on node run-worker-1\n\n"
).format("-" * 74)
SERVER = (
    "hcl_device_control_factory.cpp::71(initDevice): The condition [ false ] failed. Invalid server type (6[HLS3]) "
    "requested to generate controller.\nHCCL demo error: In function initDevice(): synDeviceAcquire(&h) failed with "
    "synapse error: 20\n"
)
PROVIDER = (
    "gpu5: WARN: Function: find_ofi_provider Line: 543: NET/OFI Couldn't find any optimal provider\n"
    "gpu5: WARN: Function: main Line: 66: NET/OFI OFI NCCL failure: 2\n"
)
LINK_LOCAL = (
    "gpu5:33:33 [0] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to 169.254.25.10<43369> failed : "
    "Connection refused\n"
)
TIMED_OUT = (
    "[rank2]:[E626 05:06:30.9 ProcessGroupNCCL.cpp:632] [Rank 2] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=1204, OpType=_ALLGATHER_BASE, NumelIn=16, NumelOut=128, Timeout(ms)=1800000) ran for 1800065 "
    "milliseconds before timing out.\n"
)
STUCK = (
    "[rank5]:[E626 05:{}:36.3 ProcessGroupNCCL.cpp:1743] [PG ID 0 PG GUID 0(default_pg) Rank 5] ProcessGroupNCCL's "
    "watchdog got stuck for 480 seconds without making progress in monitoring enqueued collectives.\n"
)
LOGS = (
    Log("two hosts lose one port", "".join(
        RETRIES.format(host, pid, "IB") + SENT.format(host, pid, 552) for host, pid in (("gpu1", 411), ("gpu2", 422))),
        "failed: completion-12 (peer, medium, mlx5_2)", "gpu1, gpu2 all got no answer from LID 552"),
    Log("one host loses one port", RETRIES.format("gpu1", 411, "IB") + SENT.format("gpu1", 411, 552),
        "failed: completion-12 (fabric, medium, gpu1, mlx5_2)", "from LID 552 on mlx5_2"),
    Log("one host loses several ports",
        "".join(RETRIES.format("gpu1", pid, "IB") + SENT.format("gpu1", pid, pid) for pid in (411, 422)),
        "failed: completion-12 (fabric, medium, gpu1, mlx5_2)", "a process on gpu1 got no answer on mlx5_2"),
    Log("RoCE to a link-local address",
        RETRIES.format("gpu1", 411, "RoCE") + ROUTED.format("gpu1", 411, "fe80::526b:4bff:fe01:203"),
        "failed: gid-link-local (setting, high, gpu1, mlx5_2)", "(GID index 1)"),
    Log("RoCE to an address with a route",
        RETRIES.format("gpu1", 411, "RoCE") + ROUTED.format("gpu1", 411, "::ffff:10.9.1.2"),
        "failed: completion-12 (fabric, medium, gpu1, mlx5_2)"),
    Log("an address that does not answer", HANDLE.format("Connection timed out"),
        "failed: qp-address-unresolved (fabric, medium, gpu5, mlx5_6)", "GID ::ffff:10.9.1.2, from mlx5_6"),
    Log("an address handle that is refused", HANDLE.format("Invalid argument"),
        "failed: verbs-port-setting (setting, medium, gpu5, mlx5_6)"),
    Log("Slingshot: the peer's endpoint is gone", MPICH.format("PTLTE_NOT_FOUND"),
        "failed: cxi-error (peer, medium, ranks [71], nid0042), then ranks [71]", "the peer has no such endpoint"),
    Log("Slingshot: undelivered", MPICH.format("UNDELIVERABLE"),
        "failed: cxi-error (fabric, medium, ranks [71], nid0042), then ranks [71]", "not delivered"),
    Log("Slingshot: a full queue", QUEUE, "failed: cxi-queue-full (setting, medium, ranks [4])"),
    Log("a container that was killed, and its daemon", LOST, "killed: killed (rank, medium, run-worker-1)"),
    Log("a server that HCL does not know", SERVER, "failed: gaudi-server-type (software, medium)", "type 6[HLS3]"),
    Log("no device for libfabric, then the plugin's failure", PROVIDER, "failed: efa-not-found (setting, high)"),
    Log("an address that no other host has", LINK_LOCAL, "failed: connect-failed (setting, high, gpu5)", "link-local"),
    Log("a watchdog that hangs since another rank's time-out", TIMED_OUT + STUCK.format("14"),
        "hung: collective-stuck (unknown, low), then ranks [5]"),
    Log("a watchdog that hung before", STUCK.format("08") + TIMED_OUT,
        "failed: heartbeat-stuck (rank, medium, ranks [5])"),
)  # fmt: skip
WAITING = (
    "INFO:root:Waiting in store based barrier to initialize process group for rank: {}, key: store_based_barrier_key:1 "
    "(world_size=4, worker_count=3, timeout=0:30:00)\n"
)


@pytest.mark.parametrize("row", LOGS, ids=[row.about for row in LOGS])
def test_the_far_end_and_the_first_failure_are_named(tmp_path: Path, row: Log) -> None:
    check(tmp_path, row)


def test_a_first_barrier_at_the_end_of_a_log_names_the_rank_that_is_not_there(tmp_path: Path) -> None:
    once = "".join(WAITING.format(rank) for rank in (0, 1, 3))
    done = once + "INFO:root:Rank 0: Completed store-based barrier for key:store_based_barrier_key:1 with 4 nodes.\n"

    assert "rank 2 has no such line" in answer(tmp_path, log=once).notes[0].summary
    assert not answer(tmp_path, log=done).notes
    assert not answer(tmp_path, log=once + "step 1 loss 2.5\n").notes
    again = answer(tmp_path, log=once + once)
    assert (again.job.ended, first(again).id, first(again).confidence) == ("hung", "store-barrier-waiting", "low")


def test_a_folder_that_a_node_does_not_have_is_a_note_as_the_task_starts(tmp_path: Path) -> None:
    result = answer(
        tmp_path,
        log="slurmstepd: error: couldn't chdir to `/scratch/run1': No such file or directory: going to /tmp instead\n",
    )

    assert not result.causes
    assert "/scratch/run1 is not on a node" in result.notes[0].summary


def test_the_first_collective_of_gpus_of_one_host_asks_for_their_peer_access(tmp_path: Path) -> None:
    result = answer(tmp_path, log=TIMED_OUT.replace("SeqNum=1204", "SeqNum=1"))

    assert any("NCCL_P2P_DISABLE=1" in step for step in first(result).next)


DEVX = (
    "[1784273406.68] [gpu5:411:0]   ib_mlx5_dv.c:452  UCX  ERROR   mlx5dv_devx_obj_create(CQ) failed on mlx5_3, "
    "syndrome 0x1a2b3c: Remote I/O error\n"
    "[1784273406.71] [gpu5:411:0]   gdaki.c:397  UCX  ERROR   gdaki channel: create_cq/qp failed (ch=1 ep=2)\n"
)
PLUGIN = (
    "Failed, NCCL error /src/ncclPlugin/sendPlugin.cpp:12 'internal error - please report this issue to the NCCL "
    "developers'\nmpirun detected that one or more processes exited with non-zero status\n"
)
NO_PORT = (
    "WARNING: There is at least non-excluded one OpenFabrics device found,\nbut there are no active ports detected (or "
    "Open MPI was unable to use\nthem). The openib BTL will be\nignored for this job.\n\n  Local host: gpu7\n"
)
REVERSE = (
    "gpu5:1:2 [0] graph/paths.cc:92 NCCL WARN Failed to find reverse path from remNode 0/500000 nlinks 3 to node "
    "0/90000\n"
)
REFUSED = "file register error: GPUDirect Storage not supported on current file filename:/data/run1/gdsio.0\n"
FIRST = (
    Log("firmware that refuses an object, then UCX above it", DEVX, "failed: devx-refused (rank, medium, gpu5, mlx5_3)",
        "the firmware of mlx5_3 refuses to create an object (CQ)"),
    Log("an error of NCCL in a plugin's words, and mpirun's exit", PLUGIN, "failed: backend-error (unknown, low)",
        "internal error"),
    Log("no active port for Open MPI", NO_PORT, "unknown: mpi-no-active-port (rank, low, gpu7)", "device of gpu7"),
    Log("a link that one end does not show", REVERSE, "failed: links-one-sided (setting, medium, gpu5)", "0/90000"),
    Log("a file that cuFile refuses", REFUSED, "failed: gds-refused (setting, medium)", "(/data/run1/gdsio.0)"),
    Log("cuFile without GPUDirect Storage", "   WARNING - cuFile compat mode\n         GDS not enabled\n",
        "unknown: 1 note"),
)  # fmt: skip


@pytest.mark.parametrize("row", FIRST, ids=[row.about for row in FIRST])
def test_what_is_specific_comes_before_what_follows_from_it(tmp_path: Path, row: Log) -> None:
    check(tmp_path, row)
