"""Outputs in which tools state faults, and the same of healthy machines. Written by hand, true to the tools' formats."""

from __future__ import annotations

NPU = """\
+--------------------------------------------------------------------------------------------------------+
| npu-smi 25.2.0                                   Version: 25.2.0                                       |
+-------------------------------+-----------------+------------------------------------------------------+
| NPU     Name                  | Health          | Power(W)     Temp(C)           Hugepages-Usage(page) |
| Chip    Device                | Bus-Id          | AICore(%)    Memory-Usage(MB)                        |
+===============================+=================+======================================================+
| 0       310P3                 | OK              | NA           47                0     / 0             |
| 0       0                     | 0000:03:00.0    | 0            1660 / 21527                            |
+===============================+=================+======================================================+
| 32      310P3                 | {state:15} | NA           58                0     / 0             |
| 0       1                     | 0000:83:00.0    | 0            1660 / 21527                            |
+===============================+=================+======================================================+
+-------------------------------+-----------------+------------------------------------------------------+
| NPU     Chip                  | Process id      | Process name             | Process memory(MB)        |
+===============================+=================+======================================================+
| No running processes found in NPU 0                                                                    |
+===============================+=================+======================================================+
"""
HL = """\
+-----------------------------------------------------------------------------+
| HL-SMI Version:                              hl-1.18.0-fw-53.1.1.1          |
| Driver Version:                                     1.18.0-ee698fb          |
|-------------------------------+----------------------+----------------------+
| AIP  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncor-Events|
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | AIP-Util  Compute M. |
|===============================+======================+======================|
|   0  HL-225              N/A  | 0000:21:00.0     N/A |                   0  |
| N/A   31C   N/A    98W / 600W |    768MiB / 98304MiB |     0%           N/A |
|-------------------------------+----------------------+----------------------+
|   1  HL-225              N/A  | 0000:22:00.0     N/A |                   {count}  |
| N/A   32C   N/A    99W / 600W |    768MiB / 98304MiB |     0%           N/A |
|-------------------------------+----------------------+----------------------+
| Compute Processes:                                               AIP Memory |
+=============================================================================+
"""
AMD_MONITOR = """\
GPU  POWER  GPU_TEMP  MEM_TEMP  GFX_UTIL  GFX_CLOCK  SINGLE_ECC  DOUBLE_ECC  PCIE_REPLAY  VRAM_USED  VRAM_TOTAL
  0  140 W     42 °C     36 °C       0 %    132 MHz           0           0            0     283 MB   196592 MB
  1  140 W     42 °C     36 °C       0 %    132 MHz           2     {count:>6}            9     283 MB   196592 MB
"""
RAS = """\


============================ ROCm System Management Interface ============================
======================================== RAS Info ========================================

GPU[0]: \tRAS INFO
         Block       Status    Correctable Error  Uncorrectable Error
           UMC      ENABLED                    2                    0
          SDMA      ENABLED                    0                    0
__________________________________________________________________________________________

GPU[1]: \tRAS INFO
         Block       Status    Correctable Error  Uncorrectable Error
           UMC      ENABLED                    0                    {count}
          SDMA     DISABLED                    0                    0
__________________________________________________________________________________________
==========================================================================================
================================== End of ROCm SMI Log ===================================
"""
AMD_METRIC = """\
GPU: 0
    ECC:
        TOTAL_CORRECTABLE_COUNT: 4
        TOTAL_UNCORRECTABLE_COUNT: 0
        TOTAL_DEFERRED_COUNT: 0
GPU: 1
    ECC:
        TOTAL_CORRECTABLE_COUNT: 0
        TOTAL_UNCORRECTABLE_COUNT: {count}
        TOTAL_DEFERRED_COUNT: 0
"""
AMD_PAGES = """\
GPU: 0
    RETIRED: No bad pages found.
    PENDING: No bad pages found.
    UN_RES: No bad pages found.

GPU: 1
    RETIRED: No bad pages found.
    PENDING: {pending}
    UN_RES: {unreservable}
"""
PAGES = "\n        PAGE_ADDRESS: 0x1f2a000\n        PAGE_SIZE: 4096\n        STATUS: {state}"
NO_PAGES = "No bad pages found."
AMD_BOX = """\
+------------------------------------------------------------------------------+
| AMD-SMI            26.2.0+021c61fc                                           |
| amdgpu Version:    6.16.6                                                    |
|-------------------------------------+----------------------------------------|
| BDF                        GPU-Name | Mem-Uti   Temp   UEC       Power-Usage |
| GPU  HIP-ID  OAM-ID  Partition-Mode | GFX-Uti    Fan               Mem-Usage |
|=====================================+========================================|
| 0000:0c:00.0    AMD Instinct MI300X | 0 %      41 °C   0           139/750 W |
|   0       0       7        SPX/NPS1 | 0 %        N/A           283/196592 MB |
|-------------------------------------+----------------------------------------|
| 0000:22:00.0    AMD Instinct MI300X | 0 %      42 °C   {count}           141/750 W |
|   1       1       5        SPX/NPS1 | 0 %        N/A           283/196592 MB |
+-------------------------------------+----------------------------------------+
"""
HEALTHY = """\
+---------------------------+----------------------------------------------------------+
| Health Monitor Report                                                                |
+===========================+==========================================================+
| Overall Health            | Healthy                                                  |
+---------------------------+----------------------------------------------------------+
"""
UNHEALTHY = """\
+---------------------------+----------------------------------------------------------+
| Health Monitor Report                                                                |
+===========================+==========================================================+
| Overall Health            | Failure                                                  |
| GPU                       |                                                          |
| -> 1                      | Warning                                                  |
|    -> Errors              |                                                          |
|       -> PCIe system      | Warning                                                  |
|                           | Detected more than 8 PCIe replays per minute for GPU   |
|                           | 1 : 13 Reconnect PCIe card.                              |
| -> 3                      | Failure                                                  |
|    -> Errors              |                                                          |
|       -> Memory system    | Failure                                                  |
|                           | A DBE has been detected in GPU 3.                        |
+---------------------------+----------------------------------------------------------+
"""
UNHEALTHY_R1 = """\
Health Monitor Report
+----------------------------------------------------------------------------+
| Group 1          | Overall Health: Warning                                 |
+==================+=========================================================+
| GPU ID: 0        | Warning                                                 |
|                  | PCIe system: Warning - Detected more than 8 PCIe        |
|                  | replays per minute for GPU 0: 13                        |
+------------------+---------------------------------------------------------+
| GPU ID: 1        | Healthy                                                 |
+------------------+---------------------------------------------------------+
"""
HEALTH_JSON = """{
  "body": {
    "GPU": {"children": {"3": {"value": "Failure", "children": {"Errors": {"children": {
      "Memory system": {"value": "Failure", "overflow": ["A DBE has been detected in GPU 3."]}}}}}}},
    "Overall Health": {"value": "Failure"}
  },
  "header": ["Health Monitor Report"]
}
"""
_DIAG_HEAD = """\
Successfully ran diagnostic for group.
+---------------------------+------------------------------------------------+
| Diagnostic                | Result                                         |
+===========================+================================================+
|-----  Metadata  ----------+------------------------------------------------|
| DCGM Version              | 3.3.9                                          |
| Driver Version Detected   | 550.90.07                                      |
|-----  Deployment  --------+------------------------------------------------|
| Denylist                  | Pass                                           |
| Page Retirement/Row Remap | Pass                                           |
+-----  Hardware  ----------+------------------------------------------------+
"""
DIAG_PASSED = (
    _DIAG_HEAD
    + """\
| GPU Memory                | Pass - All                                     |
+-----  Stress  ------------+------------------------------------------------+
| Memory Bandwidth          | Skip - All                                     |
+---------------------------+------------------------------------------------+
"""
)
DIAG = (
    _DIAG_HEAD
    + """\
| GPU Memory                | Pass - GPUs: 0, 1, 2, 4, 5, 6, 7               |
|                           | Fail - GPU: 3                                  |
| Warning                   | GPU 3 There are pending page retirements or r  |
|                           | ow remaps.                                     |
+-----  Stress  ------------+------------------------------------------------+
| Targeted Power            | Fail - All                                     |
+---------------------------+------------------------------------------------+
"""
)
DIAG_R4 = (
    _DIAG_HEAD
    + """\
| memory                    | Fail                                           |
|                           | GPU0: Pass                                     |
|                           | GPU1: Fail                                     |
| Warning: GPU1             | Error using CUDA API cuInit Check DCGM and sy  |
|                           | stem logs.                                     |
|                           | GPU2: Skip                                     |
| pcie                      | Pass                                           |
|                           | GPU0: Pass                                     |
+---------------------------+------------------------------------------------+
"""
)
DIAG_EARLY = """\
+---------------------------+------------------------------------------------+
| Diagnostic                | Result                                         |
+===========================+================================================+
|-----  Deployment  --------+------------------------------------------------|
| Error                     | GPU 3 has uncorrectable memory errors and row  |
|                           |  remappings are pending                        |
+---------------------------+------------------------------------------------+
"""
DIAG_JSON = """{"DCGM Diagnostic": {"metadata": {"version": "4.2.3"}, "test_categories": [
  {"category": "Hardware", "tests": [{"name": "memory", "results": [
    {"entity_group": "GPU", "entity_group_id": 1, "entity_id": 0, "status": "Pass"},
    {"entity_group": "GPU", "entity_group_id": 1, "entity_id": 5, "status": "Fail",
     "warnings": [{"error_id": 15, "warning": "A DBE has been detected."}]}],
   "test_summary": {"status": "Fail"}}]}]}}
"""
DIAG_JSON_R3 = """{"DCGM GPU Diagnostic": {"test_categories": [{"category": "Deployment", "tests": [
  {"name": "Denylist", "results": [{"gpu_id": "0", "status": "PASS"}]},
  {"name": "PCIe", "results": [{"gpu_id": "2", "status": "FAIL", "warnings": "GPU 2 runs at x8."}]}]}]}}
"""
PORT_ERRORS = """\
Errors for 0xb83fd20300a1b200 "MF0;leaf3:MQM9700/U1"
   GUID 0xb83fd20300a1b200 port ALL: [SymbolErrorCounter == 65535] [PortXmitWait == 4294967295]
   GUID 0xb83fd20300a1b200 port 7: [SymbolErrorCounter == 65535] [LinkErrorRecoveryCounter == 31] [LinkDownedCounter == 9]
         Link info:     12   7[  ] ==( 4X       106.25 Gbps Active/  LinkUp)==>  0x946dae0300000700     33    1[  ] "n07 mlx5_2" ( )
   GUID 0xb83fd20300a1b200 port 9: [LinkDownedCounter == 2] [PortXmitDiscards == 512] [PortXmitWait == 88123]
         Link info:     12   9[  ] ==( 4X       106.25 Gbps Active/  LinkUp)==>  0x946dae0300000900     35    1[  ] "n09 mlx5_2" ( )

## Summary: 18 nodes checked, 1 bad nodes found
##          96 ports checked, 2 ports have errors beyond threshold
## Thresholds:
## Suppressed:
"""
PORT_WAITS = """\
Errors for "n09 mlx5_2"
   GUID 0x946dae0300000900 port 1: [LinkDownedCounter == 1] [PortXmitDiscards == 20046] [PortXmitWait == 41864608]
         Link info:     35   1[  ] ==( 4X       106.25 Gbps Active/  LinkUp)==>  0xb83fd20300a1b200     12    9[  ] "MF0;leaf3:MQM9700/U1" ( )

## Summary: 18 nodes checked, 1 bad nodes found
"""
PERFQUERY = """\
# Port extended counters: Lid 33 port 1 (CapMask: 0x5300 CapMask2: 0x0000002)
PortSelect:......................1
CounterSelect:...................0x0000
PortXmitData:....................178791657177235
SymbolErrorCounter:..............{symbols}
LinkErrorRecoveryCounter:........0
LinkDownedCounter:...............1
PortRcvErrors:...................0
PortXmitWait:....................41864608
"""
LINK = '         12 {port:4}[  ] ==( {runs} Active/  LinkUp)==>  {lid:6}    1[  ] "n{port:02} mlx5_2" ({hint})\n'
LINKS = "Switch: 0xb83fd20300a1b200 MF0;leaf3:MQM9700/U1:\n" + "".join(
    LINK.format(port=port, lid=20 + port, runs="4X      106.25 Gbps", hint=" ") for port in range(1, 8)
)
SLOW_LINKS = (
    LINKS
    + LINK.format(port=8, lid=28, runs="2X      106.25 Gbps", hint="Could be 4X ")
    + LINK.format(port=9, lid=29, runs="4X      53.125 Gbps", hint=" Could be 106.25 Gbps")
)
NODE = """\
Name:               n07
Roles:              worker
Labels:             kubernetes.io/hostname=n07
                    nvidia.com/gpu.count=8
                    nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3
Annotations:        node.alpha.kubernetes.io/ttl: 0
Taints:             nvidia.com/gpu=present:NoSchedule
Unschedulable:      false
Conditions:
  Type                 Status  LastHeartbeatTime                 LastTransitionTime                Reason                       Message
  ----                 ------  -----------------                 ------------------                ------                       -------
  NetworkUnavailable   False   Mon, 02 Nov 2026 08:00:00 +0000   Mon, 02 Nov 2026 08:00:00 +0000   CiliumIsUp                   Cilium is running on this node
  MemoryPressure       False   Sat, 28 Nov 2026 09:00:00 +0000   Mon, 02 Nov 2026 08:00:00 +0000   KubeletHasSufficientMemory   kubelet has sufficient memory available
  GPUHealthy           {gpus}    Sat, 28 Nov 2026 09:00:00 +0000   Mon, 02 Nov 2026 08:00:00 +0000   NoXid                        no Xid
  Ready                {ready}    Sat, 28 Nov 2026 09:00:00 +0000   Mon, 02 Nov 2026 08:00:00 +0000   KubeletReady                 kubelet is posting ready status
Addresses:
  InternalIP:  10.0.0.7
Capacity:
  cpu:                   224
  memory:                2113411000Ki
  nvidia.com/gpu:        {capacity}
  rdma/hca_shared:       1k
Allocatable:
  cpu:                   223
  memory:                2113308600Ki
  nvidia.com/gpu:        {allocatable}
  rdma/hca_shared:       1k
System Info:
  Kernel Version:             6.8.0-60-generic
Allocated resources:
  nvidia.com/gpu      7           7
Events:              <none>
"""
NODE_WORDS = {"gpus": "True", "ready": "True", "capacity": "8", "allocatable": "8"}
POD = """\
Name:             train-0
Namespace:        ml
Node:             n07/10.0.0.7
Containers:
  trainer:
    Image:      registry.local/train:1
Events:
  Type     Reason                    Age   From     Message
  ----     ------                    ----  ----     -------
  Warning  UnexpectedAdmissionError  12s   kubelet  Allocate failed due to requested number of devices unavailable for \
nvidia.com/gpu. Requested: 8, Available: 7, which is unexpected
"""
POD_WAITS = (
    POD.partition("Events:")[0]
    + """\
Events:
  Type     Reason            Age   From               Message
  ----     ------            ----  ----               -------
  Warning  FailedScheduling  12s   default-scheduler  0/9 nodes are available: 9 Insufficient nvidia.com/gpu.
"""
)
DOCKER = (
    "docker: Error response from daemon: failed to create task for container: failed to create shim task: OCI runtime "
    "create failed: runc create failed: unable to start container process: error during container init: error running "
    "prestart hook #0: exit status 1, stdout: , stderr: Auto-detected mode as 'legacy'\n"
    "nvidia-container-cli: initialization error: nvml error: driver/library version mismatch: unknown\n"
)

PAGES_INFO = """\
============================ ROCm System Management Interface ============================
======================================= Pages Info =======================================

GPU[1]: ALL PAGES INFO
    Page address     Page size      Status
      0xf8b03000       0x1000      reserved
      0xf8b04000       0x1000      {state}
==========================================================================================
================================== End of ROCm SMI Log ===================================
"""

DATA_COUNTERS = """\
Data Counters for 0xfc6a1c0300b2f340 "MF0;leaf3:MQM9700/U1"
   GUID 0xfc6a1c0300b2f340 port 1: [PortXmitData == 34223420 (130.552MB)] [PortRcvData == 112331230 (428.509MB)]
## Summary: 1 nodes checked, 0 bad nodes found
"""

LINK_STATES = """\
+----------------------+
|  NvLink Link Status  |
+----------------------+
GPUs:
    gpuId 0:
        U U U U _ _
    gpuId 1:
        {states}
NvSwitches:
    No NvSwitches found.

Key: Up=U, Down=D, Disabled=X, Not Supported=_
"""
NODE_YAML = """\
apiVersion: v1
kind: Node
status:
  allocatable:
    cpu: "96"
    nvidia.com/gpu: "{left}"
  capacity:
    cpu: "96"
    nvidia.com/gpu: "8"
"""
PLUGIN_LOG = """\
2026/03/02 19:09:42 XidCriticalError: Xid=74 on Device=GPU-1f0e, the device will go unhealthy.
2026/03/02 19:09:42 'nvidia.com/gpu' device marked unhealthy: GPU-1f0e
2026/03/02 19:11:00 'nvidia.com/gpu' device marked unhealthy: GPU-77aa
"""
MLXLINK = """\
Operational Info
----------------
State                              : {state}
Physical state                     : ETH_AN_FSM_ENABLE
Speed                              : N/A

Troubleshooting Info
--------------------
Status Opcode                      : {opcode}
Group Opcode                       : PHY FW
Recommendation                     : {reason}

Physical Counters and BER Info
------------------------------
Raw Physical BER                   : 3E-6
Effective Physical BER             : {rate}
Symbol BER                         : 15E-255
"""
GAUDI_PORTS = (
    "accel0\n3 ports up (port 8 port 22 port 23)\naccel1\n2 ports up (port 8, port 22)\n1 ports down (port 23)\n"
)
ETHTOOL = "Settings for ens8np0:\n\tSpeed: Unknown!\n\tLink detected: {state}\n"
ROCM_SHORT = """\
========================================= ROCm System Management Interface =========================================
=================================================== Concise Info ===================================================
Device  Node  IDs              Temp        Power     Partitions          SCLK    MCLK    Fan  Perf  PwrCap  VRAM%  GPU%
              (DID,     GUID)  (Junction)  (Socket)  (Mem, Compute, ID)
====================================================================================================================
{rows}\
====================================================================================================================
=============================================== End of ROCm SMI Log ================================================
"""
XGMI_ERRORS = (
    "$ rocm-smi --showxgmierr\n============================ ROCm System Management Interface ============================\n"
    "==================================== XGMI Error status ===================================\n"
    "GPU[0]\t\t: XGMI Error count: 0 (No errors detected)\nGPU[1]\t\t: XGMI Error count: {count} ({state})\n"
    "==========================================================================================\n"
)
BOND = (
    "Ethernet Channel Bonding Driver: v5.15.0\n\nBonding Mode: IEEE 802.3ad Dynamic link aggregation\nMII Status: up\n"
    "\nSlave Interface: ens1f0np0\nMII Status: up\nLink Failure Count: 0\nAggregator ID: 1\n"
    "\nSlave Interface: ens1f1np1\nMII Status: {state}\nLink Failure Count: {failures}\nAggregator ID: {aggregator}\n"
)
SLURMD = (
    "[2026-03-02T11:41:49.123] error: Waiting for gres.conf file /dev/nvidia5\n"
    "[2026-03-02T11:42:09.223] fatal: can't stat gres.conf file /dev/nvidia5: No such file or directory\n"
)
INVALID = (
    "[2026-03-02T11:42:03.123] error: Setting node n7 state to INVAL with reason:gres/gpu count reported lower than "
    "configured (3 < 4)\n"
)
SONIC = (
    "admin@leaf2:~$ show interfaces counters\n"
    "     IFACE    STATE    RX_OK      RX_BPS    RX_UTIL    RX_ERR    RX_DRP    TX_OK\n"
    "----------  -------  -------  ----------  ---------  --------  --------  -------\n"
    " Ethernet0        U  912,381    1.2 GB/s      2.11%         0     1,312  812,381\n"
    "Ethernet16        U  912,381    1.2 GB/s      2.11%    {errors}         0  812,381\n"
)
EOS = (
    "leaf1#show interfaces counters errors\nPort      FCS    Align   Symbol      Rx    Runts   Giants      Tx\n"
    "Et1/1       0        0        0       0        0        0       0\n"
    "Et2/1       {errors}        0        0       3        0        3       0\n"
)
CLOSED = (
    "leaf1#show interfaces status errdisabled\nPort      Name              Status       Reason\n"
    "--------- ----------------- ------------ ----------------\nEt12/1    gpu-22-rail3      errdisabled  link-flap\n"
)
NVUE = (
    "cumulus@leaf01:mgmt:~$ nv show interface swp12 counters\n                     operational\n"
    "-------------------  -----------\nin-bytes             91.2 TB\nin-pkts              9123812381\n"
    "in-errors            {errors}\ncarrier-transitions  83\n"
)
OLD_DIAGNET = (
    '-W- link with LOG=INI found at direct path "1,12"\n'
    "    From: a Switch PortGUID=0x0002c902004a1234 Port=12\n    To:   a CA PortGUID=0x0002c903000b5678 Port=1\n"
    "-W- lid=0x0007 guid=0x0002c902004a1234 dev=48438 Port=9\n    Performance Monitor counter     : Value\n"
    "    symbol_error_counter            : 0xffff\n    link_error_recovery_counter     : 0x1f\n"
)
ONE_LANE = (
    "Switch: 0xb8599f0300ab1234 MF0;leaf3:MQM8700/U1:\n"
    '   12    6[  ] ==( 4X      53.125 Gbps Active/  LinkUp)==>     201    1[  ] "gpu-08 mlx5_0" ( )\n'
    '   12    7[  ] ==( {width}      53.125 Gbps Active/  LinkUp)==>     202    1[  ] "gpu-09 mlx5_0" ( Could be 4X)\n'
)
GAUDI_LINKS = "$ hl-smi -n link -i 0000:4d:00.0\nport 0:         UP\nport 1:         UP\nport 2:         {state}\n"
NPU_MODULE = (
    "# hccn_tool -i 2 -optical -g\npresent : present\ntemperature : 41 C\nTx Power0 : 1.0211 mW\nTx Power1 : 1.0312 mW\n"
    "Rx Power0 : {dark} mW\nRx Power1 : 0.9021 mW\nTxPower High Thres : 3.5481 mW\nTxPower Low Thres : 0.2818 mW\n"
    "RxPower High Thres : 3.5481 mW\nRxPower Low Thres : 0.1445 mW\n"
)
EOS_LIGHT = (
    "leaf1#show interfaces transceiver\n"
    "Port      (Celsius)  (Volts)     (mA)      (dBm)     (dBm)     Last Update\n"
    "-----     ---------  --------    --------  --------  --------  -------------------\n"
    "Et5/1       35.12      3.29        7.21      0.81     -1.12     0:00:02 ago\n"
    "Et6/1       34.92      3.29        7.11      0.91     -0.98     0:00:02 ago\n"
    "Et7/1       35.77      3.29        7.35      0.77    {light}     0:00:02 ago\n"
)
SONIC_STATUS = (
    "admin@leaf1:~$ show interfaces status\n"
    "  Interface            Lanes    Speed    MTU    FEC    Alias    Vlan    Oper    Admin      Type    Asym PFC\n"
    "-----------  ---------------  -------  -----  -----  -------  ------  ------  -------  --------  ----------\n"
    "  Ethernet0      73,74,75,76     400G   9100     rs     etp1  routed      up       up   QSFP-DD         N/A\n"
    "  Ethernet8      65,66,67,68     400G   9100     rs     etp2  routed      up       up   QSFP-DD         N/A\n"
    " Ethernet64      25,26,27,28     400G   9100     rs     etp9  routed    down       up   QSFP-DD         N/A\n"
    " Ethernet72      33,34,35,36     400G   9100     rs    etp10  routed      up       up   QSFP-DD         N/A\n"
)
CONDITIONS = (
    "Conditions:\n"
    "  Type             Status  LastHeartbeatTime                 LastTransitionTime                Reason      Message\n"
    "  ----             ------  -----------------                 ------------------                ------      -------\n"
    "  IBPortDown       {state}   Mon, 02 Mar 2026 10:11:12 +0000   Mon, 02 Mar 2026 08:11:12 +0000   IBPortDown  mlx5_6\n"
    "Addresses:\n"
)
HEALTH_CHECK = "ERROR:  nhc:  Health check failed:  check_hw_ib:  No IB port mlx5_3:1 is ACTIVE (LinkUp 200 Gb/sec).\n"
MARKED_OFFLINE = (
    "20260302 08:12:31 [slurm] /usr/libexec/nhc/node-mark-offline gpu-041 check_hw_ib:  No IB port mlx5_3:1 is ACTIVE "
    "(LinkUp 200 Gb/sec).\n"
)
NPU_HEALTH = (
    "# npu-smi info -t health -i 3 -c 0\n\tHealth                         : {state}\n"
    "\tError Code                     : 81078603\n\tError Information              : NPU port link failure\n"
)
NIC_PORTS = (
    "$ sudo nicctl show port\nNIC  : 42424650 (0000:06:00.0)\n\nPort : a (eth1/1)\n  Spec:\n"
    "    Admin state                 : UP\n  Status:\n    Operational status          : UP\n"
    "Port : b (eth1/1)\n  Spec:\n    Admin state                 : UP\n  Status:\n"
    "    Operational status          : {state}\n    Link FSM state              : WAIT_PHY_LINK_UP\n"
)
PERFTEST = (
    "$ ib_write_bw -d mlx5_0 10.0.0.2\n Link type       : Ethernet\n Completion with error at client\n"
    " Failed status 12: wr_id 0 syndrom 0x81\nscnt=128, ccnt=0\n"
)
STORM = (
    "       QUEUE       STATUS    STORM DETECTED/RESTORED    TX OK/DROP    RX OK/DROP\n"
    "------------  -----------  -------------------------  ------------  ------------\n"
    "Ethernet12:3    {state}                         12/11       812/91         12/331\n"
    " Ethernet8:3  operational                         0/0           0/0           0/0\n"
)
EOS_PORT = (
    "leaf2#show interfaces Ethernet3/1\nEthernet3/1 is up, line protocol is up (connected)\n"
    "     91238123 packets input, 812381238123 bytes\n     0 runts, 0 giants\n"
    "     {errors} input errors, {errors} CRC, 0 alignment, 12 symbol, 0 input discards\n"
)
LINKS_OF_ONE_SWITCH = (
    "Switch: 0x7cfe9003009ce6a0 MF0;tor2:MQM9700/U1:\n"
    '          21   17[  ] ==( 4X  106.25 Gbps Active/  LinkUp)==>  41  1[  ] "node-u mlx5_1" ( )\n'
    '          21   18[  ] ==( 4X  25.78125 Gbps Active/  LinkUp)==>  43  1[  ] "node-v mlx5_1" ({hint})\n'
)
PORT_INFO = (
    "$ smpquery portinfo 12 13\n# Port info: Lid 12 port 13\nLinkWidthActive:.................4X\n"
    "LinkState:.......................{state}\nPhysLinkState:...................LinkUp\n"
)
NO_NICS = (
    "2026/03/02 13:16:23 Warning: no devices in device pool, creating empty resource server for rdma_shared_device_a\n"
)

KUBE_TABLE = (
    "$ kubectl get nodes -o custom-columns=NAME:.metadata.name,GPU:.status.capacity.nvidia\\.com/gpu,"
    "FREE:.status.allocatable.nvidia\\.com/gpu\nNAME   GPU   FREE\nn1     8     8\nn2     8     {left}\n"
)
KUBE_COUNTS = (
    "$ kubectl get nodes -o custom-columns=NAME:.metadata.name,GPU:.status.allocatable.nvidia\\.com/gpu,"
    "HCA:.status.allocatable.rdma/hca\nNAME   GPU   HCA\nn1     8     8\nn2     8     8\nn3     {gpus}     8\n"
    "n4     8     {hcas}\n"
)
KUBE_PATH = (
    '$ kubectl get nodes -o jsonpath=\'{{range .items[*]}}{{.metadata.name}}{{"\\t"}}'
    '{{.status.capacity.nvidia\\.com/gpu}}{{"\\t"}}{{.status.allocatable.nvidia\\.com/gpu}}{{"\\n"}}{{end}}\'\n'
    "n1\t8\t8\nn2\t8\t{left}\n"
)
KUBE_JQ = """\
$ k get node n2 -o json | jq '.status.capacity'
{{
  "nvidia.com/gpu": "{gpus}",
  "pods": "110",
  "rdma/hca_a": "{hcas}"
}}
$ k get node n2 -o json | jq '.status.allocatable'
{{
  "nvidia.com/gpu": "{gpus}",
  "rdma/hca_a": "{hcas}"
}}
"""
NUMA_NODES = (
    "==> /sys/bus/pci/devices/0000:18:00.0/numa_node <==\n{node}\n/sys/bus/pci/devices/0000:9a:00.0/numa_node:-1\n"
)
RATES = "==> /sys/class/infiniband/mlx5_*/ports/1/rate <==\n" + "400 Gb/sec (4X NDR)\n" * 3 + "{rate}\n"


def discovered(count: int, narrow: int) -> str:
    """What `ibnetdiscover` prints of nodes at one switch; the link of the node `narrow` has one lane."""
    return "".join(
        f'Ca\t1 "H-00000000000000{n:02x}"\t\t# "n{n} mlx5_0"\n[1](a{n:02x}) \t"S-1070fd0300aa1bc0"[{10 + n}]\t\t'
        f'# lid {n} lmc 0 "MF0;ib-leaf:MQM9700/U1" lid 4 {1 if n == narrow else 4}xNDR\n'
        for n in range(1, count + 1)
    )
