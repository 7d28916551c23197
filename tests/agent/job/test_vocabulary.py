"""One line of each meaning of the programs that a job runs on, alone; lines of healthy jobs; who failed first.

Sentences of these programs are facts of their sources; names, numbers and addresses are ours.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.job.jobs import answer, describe, steps

LINES = (
    (
        "gpu-c11:911:930 [2] misc/socket.cc:604 NCCL WARN Call to socket failed : Too many open files",
        "failed: open-files-limit (setting, high, gpu-c11)",
    ),
    (
        "RuntimeError: received 0 items of ancdata",
        "failed: open-files-limit (setting, high)",
    ),
    (
        "OpenBLAS blas_thread_init: pthread_create failed for thread 3 of 64: Resource temporarily unavailable",
        "failed: thread-limit (setting, high)",
    ),
    (
        "[gpu-c11:911] Read -1, expected 88432, errno = 1",
        "unknown: copy-between-processes-denied (setting, medium, gpu-c11)",
    ),
    (
        "[1800000000.118] [gpu-c11:911:0]      cma_ep.c:85   UCX  ERROR process_vm_readv(pid=912 "
        "length=8192) returned -1: Operation not permitted",
        "unknown: copy-between-processes-denied (setting, medium, gpu-c11)",
    ),
    (
        "[1800000000.118] [gpu-c11:911:0]         tcp_ep.c:2101 UCX  ERROR try to increase "
        '"net.core.somaxconn", "net.core.netdev_max_backlog", "net.ipv4.tcp_max_syn_backlog"',
        "failed: listen-queue-full (setting, medium, gpu-c11)",
    ),
    (
        "[1800000000.118] [gpu-c11:911:0]            sys.c:899  UCX  ERROR shmget(size=2097152 flags=0xfb0) "
        "for user memory failed: No space left on device, please check shared memory limits by 'ipcs -l'",
        "failed: sysv-memory (setting, medium, gpu-c11)",
    ),
    (
        "[1800000000.118] [gpu-c11:911:0]       mm_posix.c:234  UCX  ERROR Not enough memory to write total "
        "of 4292720 bytes. Please check that /dev/shm or the directory you specified has more available memory.",
        "failed: shm-full (setting, high, gpu-c11)",
    ),
    (
        "gpu-c11:911:930 [2] init.cc:1415 NCCL WARN Failed to determine local ranks rank 9 hostHash 5e "
        "pidHash 1c localRank -1 localRanks 0 localRank0 -1",
        "failed: host-identity (setting, high, gpu-c11)",
    ),
    (
        "gpu-c11:911:930 [2] transport.cc:41 NCCL WARN No transport found for rank 6[ca000] -> rank 2[4b000]",
        "failed: no-transport (setting, high, gpu-c11)",
    ),
    (
        "gpu-c11:911:930 [2] transport/p2p.cc:355 NCCL WARN failed to peer with device 6(=ca000): 711 peer "
        "access resources exhausted",
        "failed: peer-access-failed (hardware, medium, gpu-c11)",
    ),
    (
        "gpu-c11:911:930 [2] gin/gin_host.cc:102 NCCL WARN No GIN-capable devices found.",
        "failed: gin-unavailable (setting, medium, gpu-c11)",
    ),
    (
        "gpu-c11:911:930 [2] dev_runtime.cc:1428 NCCL WARN NCCL library is too old. This application was "
        "compiled with NCCL version 2.30.1, but is running with NCCL library version 2.27.7.",
        "failed: library-too-old (software, medium, gpu-c11)",
    ),
    (
        "gpu-c11:911:930 [2] graph/topo.cc:1360 NCCL WARN TOPO/NET : Could not force merge NICs "
        "mlx5_2,mlx5_9. Please specify a valid NCCL_NET_FORCE_MERGE string.",
        "failed: nic-merge-invalid (setting, high, gpu-c11)",
    ),
    (
        "gpu-c11:911:930 [2] bootstrap.cc:114 NCCL WARN Invalid NCCL_COMM_ID, please use format: "
        "<ipv4>:<port> or [<ipv6>]:<port> or <hostname>:<port>",
        "failed: setting-invalid (setting, high, gpu-c11)",
    ),
    (
        "gpu-c11:911:930 [2] transport/net_ib.cc:1176 NCCL WARN NET/IB : Local mergedDev=mlx5_4 has a "
        "different number of devices=1 as remoteDev=mlx5_4+mlx5_5 nRemDevs=2",
        "failed: network-differs (setting, high, gpu-c11)",
    ),
    (
        "gpu-c11:911:930 [2] sharp_plugin.c:440 NCCL WARN NET/IB : SHARP coll init error: Failed to connect "
        "to Aggregation Manager(-21)",
        "unknown: sharp-failed (fabric, medium, gpu-c11)",
    ),
    (
        "gpu-c11:911:930 [2] sharp_plugin.c:617 NCCL WARN SHARP allreduce failed",
        "failed: sharp-operation-failed (fabric, medium, gpu-c11)",
    ),
    (
        "gpu-c11:911:930 [2] misc/gdrwrap.cc:148 NCCL WARN gdr_pin_buffer(addr 7f11, size 65536) failed: 22",
        "unknown: gdrcopy-failed (software, medium, gpu-c11)",
    ),
    (
        "[1800000000.118] [gpu-c11:911:0]          ib_md.c:1101 UCX  ERROR mlx5_3: Couldn't enable GPUDirect "
        "RDMA. Please make sure nv_peer_mem, amdgpu plugin, or Intel Xe driver installed correctly.",
        "unknown: gpudirect-missing (software, medium, gpu-c11, mlx5_3)",
    ),
    (
        "gpu-c11:911:930 [2] proxy.cc:161 NCCL WARN Couldn't find opId=0x7f3a11",
        "failed: nccl-internal (software, low, gpu-c11)",
    ),
    (
        "gpu-c11:911:930 [2] init.cc:2869 NCCL WARN commReclaim: cleanup comm 0x7f3a10 rank 3 failed in "
        "destroy/abort, error 3",
        "failed: torn-down (unknown, low, gpu-c11)",
    ),
    (
        "gpu-c11:911:930 [2] graph/paths.cc:192 NCCL WARN Error : could not find CPU close to GPU 2",
        "failed: topology-broken (setting, medium, gpu-c11)",
    ),
    (
        "gpu-c11:911:930 [2] misc/rocmwrap.cc:84 NCCL WARN pfn_hsa_system_get_info failed with 4096",
        "failed: unexplained (unknown, low, gpu-c11)",
    ),
    (
        "[1800000000.118] [gpu-c11:911:0]    ucp_context.c:1711 UCX  ERROR no usable transports/devices "
        "(asked dc_x,cuda on network:mlx5_7:1)",
        "failed: ucx-setting (setting, high, gpu-c11)",
    ),
    (
        "[1800000000.118] [gpu-c11:911:0]       ib_iface.c:1243 UCX  ERROR unable to find specified pkey "
        "0x8021 on mlx5_2:1",
        "failed: verbs-port-setting (setting, medium, gpu-c11, mlx5_2)",
    ),
    (
        "[1800000000.118] [gpu-c11:911:0]      ib_device.c:500  UCX  WARN  IB Async event on mlx5_6: port "
        "error on port 1",
        "failed: port-down (wire, high, gpu-c11, mlx5_6)",
    ),
    (
        "[1800000000.118] [gpu-c11:911:0]       rc_iface.c:800  UCX  ERROR error modifying QP to RTR: "
        "Connection timed out",
        "failed: qp-address-unresolved (fabric, medium, gpu-c11)",
    ),
    (
        "[1800000000.118] [gpu-c11:911:0]          ud_ep.c:278  UCX  FATAL Fatal: endpoint timeout",
        "failed: ucx-peer-silent (peer, medium, gpu-c11)",
    ),
    (
        "[1800000000.118] [gpu-c11:911:0]   cuda_copy_md.c:301  UCX  ERROR cuMemGetAddressRange(0x7f3a10) "
        "failed: uncorrectable ECC error encountered",
        "failed: cuda-214 (hardware, high, gpu-c11)",
    ),
    (
        "[1800000000.118] [gpu-c11:911:0]    cuda_ipc_md.c:702  UCX  ERROR multi-node NVLINK support is "
        "requested but not supported",
        "failed: fabric-handle-failed (setting, medium, gpu-c11)",
    ),
    (
        "[1800000000.118] [gpu-c11:911:0]  cl_basic_team.c:120  CL_BASIC ERROR no tl teams were created",
        "failed: ucc-no-transport (setting, medium, gpu-c11)",
    ),
    (
        "[1800000000.118] [gpu-c11:911:0]   tl_mlx5_team.c:44   TL_MLX5 ERROR failed to init dm pool",
        "failed: ucc-error (unknown, low, gpu-c11)",
    ),
    (
        "[1800000000.118] [gpu-c11:911:0]     ucp_worker.c:1501 UCX  ERROR too many rkey configurations: 256 "
        "(max: 255)",
        "failed: ucx-error (unknown, low, gpu-c11)",
    ),
    (
        "/w/nvshmem/src/modules/transport/ibgda/ibgda.cpp:2101: NULL value cannot allocate mlx5dv_devx_uar",
        "failed: nvshmem-ibgda-denied (setting, medium)",
    ),
    (
        "/w/nvshmem/src/modules/transport/ibgda/ibgda.cpp:1390: non-zero status: 121 Error in "
        "mlx5dv_devx_obj_modify for INIT2RTR_QP with syndrome 1b2c3d",
        "failed: nvshmem-queue-pairs (setting, medium)",
    ),
    (
        "/w/nvshmem/src/modules/transport/ibrc/ibrc.cpp:431: non-zero status: 110 ibv_modify_qp failed",
        "failed: qp-address-unresolved (fabric, medium)",
    ),
    (
        "/w/nvshmem/src/host/mem/mem_heap.cpp:1746: non-zero status: 2 Not enough space for allocating memory",
        "failed: nvshmem-heap-full (setting, high)",
    ),
    (
        "/w/nvshmem/src/host/init/init.cu:386: non-zero status: 7 NVSHMEM requires the same number of PEs on "
        "all nodes (7 PEs on gpu-c12)",
        "failed: nvshmem-uneven (setting, high, gpu-c12)",
    ),
    (
        "/w/nvshmem/src/host/bootstrap/bootstrap.cpp:198: non-zero status: 7 bootstrap_pmi_init returned "
        "error for mode PMI",
        "failed: nvshmem-bootstrap (setting, medium)",
    ),
    (
        "/w/nvshmem/src/host/proxy/proxy.cpp:nvshmemi_proxy_progress:1406: received timeout signal from GPU "
        "thread(s) in nvshmem_quiet",
        "failed: nvshmem-waits (peer, medium)",
    ),
    (
        "libfabric:911:1800000000::efa:cq:efa_rdm_cq_poll():231<warn> The peer of address "
        "fi_addr_efa://[fe80::44]:3:0 becomes unresponsive",
        "failed: efa-peer-silent (peer, medium)",
    ),
    (
        "libfabric:911:1800000000::efa:mr:efa_mr_reg_impl():712<warn> Unable to register MR of 65536 bytes: "
        "Cannot allocate memory, ibv pd 0x5, total mr reg size 99, mr reg count 3",
        "failed: memlock-low (setting, medium)",
    ),
    (
        "libfabric:911:1800000000::efa:domain:efa_domain_open():212<warn> Failed to open the shared memory domain",
        "failed: ends-in-error (unknown, low); 1 note",
    ),
    (
        "gpu-c11:911:930 [2] nccl_ofi_net.cpp:158 NCCL WARN NET/OFI Failed to initialize rdma protocol",
        "failed: efa-plugin-failed (unknown, medium, gpu-c11)",
    ),
    (
        "2027:01:03-04:12:09:(911) |CCL_ERROR| internal_kvs.cpp:529 kvs_init: connection error: Connection refused",
        "failed: oneccl-error (unknown, low)",
    ),
    (
        "2027:01:03-04:12:09:(911) |CCL_ERROR| atl_ofi.cpp:97 open: can not find any endpoint",
        "failed: oneccl-transport (setting, medium)",
    ),
    (
        "There are not enough slots available in the system to satisfy the 32",
        "failed: mpi-too-few-slots (setting, high)",
    ),
    (
        "prterun was unable to launch the specified application as it could not access",
        "failed: mpi-program-missing (setting, high)",
    ),
    (
        "At least one pair of MPI processes are unable to reach each other for",
        "failed: mpi-peers-unreachable (setting, medium)",
    ),
    (
        "No PMIx server was reachable, but a PMI1/2 was detected.",
        "failed: mpi-no-runtime (setting, high)",
    ),
    (
        "[gpu-c11:911] pml_ucx.c:291  Error: Failed to create UCP worker",
        "failed: mpi-library-call (software, low, gpu-c11)",
    ),
    (
        "[gpu-c11:911] PMIX ERROR: PMIX_ERR_NOT_FOUND in file gds_shmem2.c at line 412",
        "failed: mpi-error-log (unknown, low, gpu-c11)",
    ),
    (
        "bash: prted: command not found",
        "failed: daemon-not-found (setting, high)",
    ),
    (
        "orted: error while loading shared libraries: libopen-rte.so.40: cannot open shared object file: No "
        "such file or directory",
        "failed: shared-library-missing (software, high)",
    ),
    (
        '[proxy:0:1@gpu-c12] HYDU_sock_connect (utils/sock/sock.c:145): unable to connect from "gpu-c12" to '
        '"gpu-c11" (No route to host)',
        "failed: hydra-unreachable (setting, medium, gpu-c12)",
    ),
    (
        "[proxy:0:1@gpu-c12] HYD_pmcd_pmip_control_cmd_cb (pm/pmiserv/pmip_cb.c:480): assert (!closed) failed",
        "failed: hydra-error (unknown, low, gpu-c12)",
    ),
    (
        "srun: error: Unable to allocate resources: Requested node configuration is not available",
        "failed: slurm-refused (setting, high)",
    ),
    (
        "srun: error: Unable to allocate resources: Unable to contact slurm controller (connect failure)",
        "failed: slurm-unreachable (setting, medium)",
    ),
    (
        "slurmstepd: error: Munge decode failed: Expired credential",
        "failed: slurm-credential (setting, high)",
    ),
    (
        "srun: error: Couldn't find the specified plugin name for mpi/pmix_v5 looking at all files",
        "failed: slurm-mpi-plugin (setting, high)",
    ),
    (
        "slurmstepd: error: couldn't chdir to `/mnt/home/u9': No such file or directory: going to /tmp instead",
        "unknown: 1 note",
    ),
    (
        "slurmstepd: error: StepId=77.0 exceeded memory limit (269484032 > 268435456), being killed",
        "failed: memory-limit (setting, high)",
    ),
    (
        "slurmstepd: error: unlink(/run/slurm/x): Permission denied",
        "failed: slurm-error (unknown, low)",
    ),
    (
        "slurmstepd: error:  mpi/pmix_v4: _errhandler: gpu-c12 [1]: pmixp_client_v2.c:211: Error handler "
        "invoked: status = -61, source = [slurm.pmix.77.0:9]",
        "failed: mpi-peer-lost (peer, low)",
    ),
    (
        "jaxlib.xla_extension.XlaRuntimeError: ABORTED: /job:jax_worker/replica:0/task:11 unexpectedly tried "
        "to connect with a different incarnation. It has likely restarted.",
        "failed: jax-restarted (rank, high, ranks [11])",
    ),
    (
        "jax.errors.JaxRuntimeError: UNAVAILABLE: The following tasks are unhealthy (stopped sending "
        "heartbeats): /job:jax_worker/replica:0/task:5",
        "failed: jax-task-dead (rank, medium, ranks [5])",
    ),
    (
        "[2027-01-03 04:12:30,1 C 91 91] gcs_client.cc:99: Couldn't reconnect to GCS server. The last "
        "attempted GCS server address was 10.7.0.1:6379",
        "failed: ray-head-lost (peer, medium)",
    ),
    (
        "ValueError: The number of required GPUs exceeds the total number of available GPUs in the placement group.",
        "failed: too-few-gpus (setting, high)",
    ),
    (
        "ValueError: Free memory on device (9.1/79.1 GiB) on startup is less than desired GPU memory "
        "utilization (0.9, 71.2 GiB).",
        "failed: gpu-out-of-memory (software, high)",
    ),
    (
        "[TensorRT-LLM][ERROR] Error deserializing the engine: version tag does not match",
        "failed: tensorrt-error (unknown, low)",
    ),
    (
        "RuntimeError: CUDA driver error: CUDA_ERROR_SYSTEM_NOT_READY",
        "failed: cuda-802 (rank, high)",
    ),
    (
        "CUDA_ERROR_CONTAINED: Invalid access of peer GPU memory over nvlink or a hardware error",
        "failed: cuda-226 (hardware, high)",
    ),
    (
        "Failed to initialize NVML: Unknown Error",
        "failed: nvml-failed (software, high)",
    ),
    (
        "hipErrorNoBinaryForGpu: Unable to find code object for all current devices!",
        "failed: no-code-for-gpu (software, high)",
    ),
    (
        "hipBLAS error: HIPBLAS_STATUS_INTERNAL_ERROR when calling hipblasLtMatmul",
        "failed: cuda-library-error (software, medium)",
    ),
    (
        "ValueError: Error initializing torch.distributed using env:// rendezvous: environment variable RANK "
        "expected, but not set",
        "failed: variable-missing (setting, high)",
    ),
    (
        "Rank 11, node gpu-c12, device 3, iteration 7: Unexpected result nan (message='found NaN in local "
        "forward loss calculation')",
        "failed: nan-on-rank (unknown, low, ranks [11], gpu-c12)",
    ),
    (
        "RuntimeError: npuSynchronizeDevice:build/NPUStream.cpp:77 NPU function error: "
        "AclrtSynchronizeDeviceWithTimeout, error code is 507011",
        "failed: npu-call-failed (unknown, low)",
    ),
    (
        "RuntimeError: [enforce fail at gloo/transport/tcp/device.cc:83] ifa != nullptr. Unable to find "
        "address for: ens9",
        "failed: no-socket-interface (setting, high)",
    ),
    (
        "[gpu-c11:911] [[77,1],8] selected pml cm, but peer [[77,1],0] on gpu-c12 selected pml ucx",
        "failed: mpi-transports-differ (setting, high)",
    ),
    (
        "W0724 03:14:20.702893 91 worker_pool.cpp:303] Too many errors found in local RNIC "
        "10.7.2.69:15858@mlx5_bond_3, mark it inactive",
        "failed: transfer-nic-out (rank, medium, mlx5_bond_3)",
    ),
    (
        "E0724 03:14:20.707079 91 rdma_context.cpp:130] Failed to create completion queue: Cannot allocate memory [12]",
        "failed: transfer-memory (setting, medium)",
    ),
    (
        "E0724 03:14:20.707079 91 nixl_agent.cpp:500] createXferReq: no common backend found",
        "failed: transfer-no-device (setting, medium)",
    ),
    ("[gpu-c11:911] PML ucx cannot be selected", "failed: mpi-no-component (software, medium, gpu-c11)"),
    ("E0724 03:14:20.707079 91 frob_tool.cpp:9] frobnicated", "unknown: 1 note"),
    (
        "[1800000000.1] [gpu-c11:911:0] cuda_ipc_cache.c:301  UCX  ERROR cuIpcCloseMemHandle(a) "
        "failed: driver shutting down",
        "unknown: 1 note",
    ),
    (
        "[1800000000.1] [gpu-c11:911:0] tl_sharp_coll.c:33   TL_SHARP ERROR "
        "sharp_coll_do_allreduce_nb failed:No resources",
        "failed: sharp-operation-failed (fabric, medium, gpu-c11)",
    ),
    ("slurmstepd: error: frob_stat: 'jobacct' argument is NULL", "failed: slurm-error (unknown, low)"),
    (
        "[W103 04:12:09.1 socket.cpp:601] [c10d] The client socket has failed to connect to "
        "[gpu-c11]:29511 (errno: 113 - No route to host).",
        "failed: store-unreachable (peer, medium)",
    ),
    ("gpu-c12: bash: deepspeed: command not found", "failed: daemon-not-found (setting, high)"),
    ("pdsh@gpu-c11: gpu-c12: ssh exited with exit code 255", "failed: ssh-failed (setting, medium)"),
    (
        "[rank2]: Failed to find reverse path from remNode 0/300000 nlinks 3 to node 0/900000",
        "failed: links-one-sided (setting, medium, ranks [2])",
    ),
)


@pytest.mark.parametrize(("line", "found"), LINES)
def test_a_line_alone(tmp_path: Path, line: str, found: str) -> None:
    """Its meaning, with the host, rank and NIC that it names; what no row explains names the program."""
    assert found == describe(answer(tmp_path, log=line + "\n"))


HEALTHY = (
    "2027-01-03 04:12:09.8: E external/xla/cuda_fft.cc:477] Unable to register cuFFT factory: one is there",
    "libfabric:911:1800000000:efa:core:rxr_info_to_rxr():506<warn> FI_HMEM capability "
    "requires RDMA, which this device does not have.",
    "[1800000000.118] [gpu-c11:911:0]          mpool.c:38   UCX  WARN  object 0x55d0c0a1b2c0 was not "
    "returned to mpool ucp_am_bufs",
    "[1800000000.118] [gpu-c11:911:0]    ucp_context.c:2137 UCX  INFO  Version 1.18.0 (loaded from "
    "/opt/hpcx/ucx/lib/libucp.so.0)",
    "[1800000000.118] [gpu-c11:911:0]     ucp_worker.c:1888 UCX  INFO    0x55d0c0 self cfg#0 tag(self/memory "
    "cma/memory) rma(self/memory)",
    "[1800000000.118] [gpu-c11:911:0]          ib_md.c:1101 UCX  DEBUG mlx5_0: failed to open, ibv_reg_mr() "
    "failed: Cannot allocate memory",
    "[1800000000.118] [gpu-c11:911:0]   ucc_context.c:420  UCC  INFO  created ucc context 0x55 for lib UCC 1.4",
    "libfabric:911:1800000000::efa:core:efa_device_open():61<info> ibv_create_qp failed with sl 8, errno: "
    "22. Retrying with default sl.",
    "libfabric:911:1800000000::core:core:fi_getinfo_():1377<info> Since psm3 can be used, psm3 has been skipped.",
    "[NVSHMEM INFO] GDRCopy open call failed, disabling GDRCopy.",
    "2027:01:03-04:12:09:(911) |CCL_INFO| process launcher: hydra, local_proc_idx: 1, local_proc_count: 8",
    "gpu-c11:911:930 [2] NCCL INFO ncclCommGrow: 4 rank creating new communicator with 16 total ranks",
    "gpu-c11:911:930 [2] NCCL INFO Call to ibv_modify_qp failed with 110 Connection timed out, on dev "
    "mlx5_2:1, retrying 1/34 after 100 msec of sleep",
    "gpu-c11:911:930 [2] NCCL INFO Failed to multicast-bind user buffer: CUDA error 801 'operation not supported'",
    "gpu-c11:911:930 [2] NCCL INFO External network plugin ofi is unsupported",
    "gpu-c11:911:930 [2] NCCL INFO Unable to use GIN: Peermem is not supported, nor DMA-BUF.",
    "gpu-c11:911:930 [2] NCCL INFO comm 0x55aa rank 2 nranks 8 cudaDev 2 busId b1000 - Destroy COMPLETE",
    "srun: job 4711 queued and waiting for resources",
    "srun: job 4711 has been allocated resources",
    "srun: Job step creation temporarily disabled, retrying (Requested nodes are busy)",
    "[mpiexec@gpu-c11] Launch arguments: /opt/mpi/bin/hydra_bstrap_proxy --upstream-host gpu-c11",
    "[rank0]:[W103 04:12:09.1 ProcessGroupNCCL.cpp:1496] Warning: WARNING: destroy_process_group() was not "
    "called before program exit, which can leak resources.",
    "E rendezvous.cc:38] This thread has been waiting for `initialize clique for rank 6` for 10 seconds and "
    "may be stuck. Expected 8 threads to join the rendezvous, but not all of them arrived on time.",
    "WARNING: There was an error initializing an OpenFabrics device.",
)


@pytest.mark.parametrize("line", HEALTHY)
def test_a_line_of_a_healthy_job(tmp_path: Path, line: str) -> None:
    """Nothing, or a note, whether the job went on or not."""
    assert not answer(tmp_path, log=f"{steps()}{line}\n{steps()}").causes
    assert not answer(tmp_path, log=f"{steps()}{line}\n").causes


def test_a_warning_of_no_row_names_the_part_of_the_library(tmp_path: Path) -> None:
    """By the source file, whatever folder it was built in; what to look at first is of that part."""
    place = "/usr/src/rccl/build/hipify/src/transport/net_ib.cc:9"
    (cause,) = answer(tmp_path, log=f"gpu-c11:911:930 [2] {place} NCCL WARN Frobnicated 3\n").causes

    assert "NCCL warns of its InfiniBand and RoCE transport" in cause.summary
    assert cause.next[0].startswith("ports, GIDs, MTU and error counters of the rails: `fabricscope scan` on gpu-c11")


# Eight ranks on two hosts, their lines mixed: one fails, the others lose it, the launcher lists all


def write_job(*own: str, failed: int = 5) -> str:
    """A log in which one rank writes lines of its own before the others write theirs."""
    host = {rank: f"gpu-d{rank // 4 + 1}" for rank in range(8)}
    heads = {rank: f"{host[rank]}:{700 + rank}:{800 + rank} [{rank % 4}]" for rank in range(8)}
    lines = [
        f"{heads[rank]} NCCL INFO ncclCommInitRank comm 0xa{rank} rank {rank} nranks 8 cudaDev {rank % 4} nvmlDev "
        f"{rank % 4} busId {rank % 4 + 1}b000 commId 0x7 - Init {state}"
        for state in ("START", "COMPLETE")
        for rank in range(8)
    ]
    lines += [f"step {number} loss 2.{number}" for number in range(300)]
    lines += [line.replace("HEAD", heads[failed]) for line in own]
    for rank in (number for number in range(8) if number != failed):
        lines += [
            f"{heads[rank]} misc/socket.cc:58 NCCL WARN socketProgress: Connection closed by remote peer "
            f"{host[failed]}<4{rank}111>",
            f"{heads[rank]} NCCL INFO misc/socket.cc:752 -> 6",
            f"[rank{rank}]: torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:328, remote process "
            "exited or there was a network error",
        ]
    lines += [f"srun: error: {host[rank]}: task {rank}: Exited with exit code 1" for rank in range(8)]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("", "rank-silent (rank, medium, ranks [5], gpu-d2)"),
        ("HEAD misc/x.cc:84 NCCL WARN frobnicated", "unexplained (unknown, low, ranks [5], gpu-d2)"),
        ("HEAD misc/socket.cc:604 NCCL WARN Call to socket failed : Too many open files",
         "open-files-limit (setting, high, ranks [5], gpu-d2)"),
        ("[rank5]: RuntimeError: a shape is wrong", "python-exception (software, medium, ranks [5], gpu-d2)"),
        ("[1800000000.1] [gpu-d2:705:0] rc_iface.c:800  UCX  ERROR error modifying QP to RTR: Invalid argument",
         "qp-invalid (setting, medium, ranks [5], gpu-d2)"),
        ("[1800000000.1] [gpu-d2:705:0] ucp_worker.c:15 UCX  ERROR frobnicated",
         "ucx-error (unknown, low, ranks [5], gpu-d2)"),
        ("[1800000000.1] [gpu-d2:705:0] tl_mlx5_team.c:44   TL_MLX5 ERROR frobnicated",
         "ucc-error (unknown, low, ranks [5], gpu-d2)"),
    ],
)  # fmt: skip
def test_the_rank_that_failed_first(tmp_path: Path, line: str, found: str) -> None:
    """Not the first of the launcher's list, in which all ranks are, nor one that lost its connection."""
    result = answer(tmp_path, log=write_job(line))

    assert describe(result).startswith(f"failed: {found}, then ranks [0, 1, 2, 3, 4")
    assert 1 == len(result.causes)


def test_ranks_that_all_exited_alike(tmp_path: Path) -> None:
    """Which was first is not known; two of them are still named."""
    lines = [f"srun: error: gpu-d1: task {rank}: Exited with exit code 3\n" for rank in range(4)]

    assert "failed: exit-code (software, medium, ranks [0, 1, 2, 3])" == describe(answer(tmp_path, log="".join(lines)))
    assert "ended, with Exited with exit code 3; no line shows the first of them" in answer(tmp_path).causes[0].summary
