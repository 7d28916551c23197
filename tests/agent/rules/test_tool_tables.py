"""Tables that people paste, alone: the finding that each gives, and none of a healthy machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.host.interface import BadSource
from tests.agent.rules.test_fragments import ibstat, scan_text, warnings_of
from tests.probes.gpu.test_nvidia_smi_table import R390, TABLE, row, table
from tests.probes.sources.test_wrappers import ULIMIT
from tests.probes.tool_reports import tool_texts as texts

NODE = texts.NODE_WORDS
LOST = "N/A   ERR!   ERR!           ERR! /  700W |              GPU is lost | ERR!      Default"
NO_FAN = "ERR!  30C    P0              72W /  700W |       1MiB /  81559MiB |      0%      Default"
NO_SENSORS = "ERR!  ERR!   P0             ERR! /  700W |       1MiB /  81559MiB |      0%      Default"
LSPCI = "17:00.0 3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)\n"
PORT_JSON = (
    '{{"result": {{"output": {{"Operational Info": {{"State": "{state}", "Physical state": "LinkUp"}}, '
    '"Troubleshooting Info": {{"Status Opcode": "{opcode}", "Recommendation": "{reason}"}}}}}}}}\n'
)
MODULE = (
    "\tIdentifier                                : 0x11 (QSFP28)\n\tLaser wavelength                          : 850nm\n"
    + "".join(f"\tRcvr signal avg optical power(Channel {n})  : 0.91 mW / -0.4{n} dBm\n" for n in (1, 2, 4))
    + "\tRcvr signal avg optical power(Channel 3)  : {power} dBm\n"
)
NPU_LANES = (  # of a module that states no limits
    "# hccn_tool -i 2 -optical -g\npresent : present\nRx Power0 : 0.9021 mW\nRx Power1 : 0.9101 mW\n"
    "Rx Power2 : {weak} mW\nRx Power3 : 0.8811 mW\n"
)
IFCONFIG = (
    "ens8f1: flags=4163<UP,BROADCAST,RUNNING,MULTICAST>  mtu 9000\n        RX packets 712331122  bytes 612233112233\n"
    "        RX errors 3  dropped 0  overruns {overruns}  frame 3\n"
)
LINKS_OF_ONE = "$ nvidia-smi nvlink -e -i 5\nGPU 5: NVIDIA A100-SXM4-80GB (UUID: GPU-aaaaaaaa-1111)\n"
GAUDI_QUERY = "index, module_id, bus_id, ecc.errors.uncorrected.aggregate.total\n0, 2, 0000:33:00.0, {count}\n"
FRAMES = "     rx_packets_phy: 1200000\n     rx_crc_errors_phy: {count}\n"
MATRIX = (
    "$ nvidia-smi topo -m\n\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\tNUMA Affinity\n"
    "GPU0\t X \tNV4\tNV4\tNV4\t0-31\t0\nGPU1\tNV4\t X \tNV4\tNV4\t0-31\t0\n"
    "GPU2\tNV4\tNV4\t X \t{odd}\t32-63\t1\nGPU3\tNV4\tNV4\t{odd}\t X \t32-63\t1\n"
)
LINK_ERRORS = "$ nvidia-smi nvlink -e\nGPU 2: NVIDIA A100-SXM4-80GB (UUID: GPU-aaaaaaaa-1111)\n" + "".join(
    f"\t Link {n}: Replay Errors: {{{n}}}\n\t Link {n}: CRC Errors: 0\n" for n in range(4)
)
SLURM_NODE = (
    "NodeName=n7 Arch=x86_64 CoresPerSocket=48\n   CPUAlloc=0 CPUEfctv=192 CPUTot=192 CPULoad=0.4\n"
    "   Gres=gpu:h200:8\n   State={state} ThreadsPerCore=2 TmpDisk=0\n   CfgTRES=cpu=192,gres/gpu=8\n"
    "   Reason={reason} [root@2025-03-11T02:20:02]\n"
)
ACCESS = (
    "P2P Connectivity Matrix\n     D\\D     0     1     2\n     0       1     1     {0}\n     1       1     1     {0}\n"
    "     2       {0}     {0}     1\n"
)
HELD = "REASON               USER      TIMESTAMP           NODELIST\n"
FEC = "FEC parameters for ens3np0:\nSupported/Configured FEC encodings: {modes}\nActive FEC encoding: {active}\n"
INTERFACE = (
    "{n}: {name}: <{flags},BROADCAST,MULTICAST,UP> mtu {mtu} qdisc mq state {state} mode DEFAULT group default "
    "qlen 1000\n    link/ether {mac} brd ff:ff:ff:ff:ff:ff\n"
)


def ip_link(*mtus: int, down: tuple[int, ...] = (), maker: str = "b8:3f:d2") -> str:
    """Interfaces of cards of one maker, behind one of the board."""
    rows = [(2, "eno1", 1500, "3c:ec:ef:00:00:01")]
    rows += [(n, f"ens{n}np0", mtu, f"{maker}:00:00:{n:02x}") for n, mtu in enumerate(mtus, 3)]
    return "".join(
        INTERFACE.format(
            n=n, name=name, mtu=mtu, mac=mac,
            flags="NO-CARRIER" if n in down else "LOWER_UP", state="DOWN" if n in down else "UP",
        )
        for n, name, mtu, mac in rows
    )  # fmt: skip


VERBS_PORT = (
    "hca_id:\tmlx5_0\n\ttransport:\t\t\tInfiniBand (0)\n\tphys_port_cnt:\t\t\t1\n\t\tport:\t1\n"
    "\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n\t\t\tmax_mtu:\t\t4096 (5)\n\t\t\tactive_mtu:\t\t{mtu}\n"
    "\t\t\tsm_lid:\t\t\t0\n\t\t\tport_lid:\t\t0\n\t\t\tlink_layer:\t\tEthernet\n"
)
NVSM = (
    "Checks\n------\nNumber of logical CPU cores [224]................................ Healthy\n"
    "GPU link width [0000:1b:00.0][x16]............................... {state}\n"
    "GPU link width [0000:43:00.0][x16]............................... Healthy\n\nHealth Summary\n--------------\n"
)


def bandwidths(slow: int | None) -> str:
    """nvbandwidth's tables between four GPUs, and from the CPU: all values of the GPU `slow` are small."""
    rows = "".join(
        f" {row}  "
        + "  ".join("N/A" if row == to else "27.1" if slow in (row, to) else "276.1" for to in range(4))
        + "\n"
        for row in range(4)
    )
    return (
        "Running device_to_device_memcpy_read_ce.\nmemcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)\n"
        f"           0         1         2         3\n{rows}\nSUM device_to_device_memcpy_read_ce 3313.2\n"
    )


def slow_link(node: str, port: int, width: str, hint: str) -> str:
    """One line of `iblinkinfo -l`: that port of a switch, and the link's width."""
    return (
        f'0x0c42a10300a1b2{port:02x} "       {node}"     {20 + port}    1[  ] ==( {width}        53.125 Gbps '
        f'Active/  LinkUp)==>  0xb83fd20300112233      3   {port}[  ] "leaf2" ( {hint})\n'
    )


METRICS = (
    "# HELP DCGM_FI_DEV_XID_ERRORS Value of the last XID error encountered.\n"
    'DCGM_FI_DEV_XID_ERRORS{{gpu="0",UUID="GPU-aa",device="nvidia0",Hostname="n7"}} 0\n'
    'DCGM_FI_DEV_XID_ERRORS{{gpu="3",UUID="GPU-ab",device="nvidia3",Hostname="n7"}} {xid}\n'
    'DCGM_FI_DEV_ROW_REMAP_FAILURE{{gpu="4",UUID="GPU-ac",device="nvidia4"}} {remap}\n'
    'DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{{gpu="5",UUID="GPU-ad",device="nvidia5"}} {ecc}\n'
)
REPORTERS = (
    "$ devlink health show\npci/0000:08:00.0:\n  reporter fw\n    state healthy error 0 recover 0 auto_dump true\n"
    "  reporter fw_fatal\n    state {state} error 3 recover 2 grace_period 60000 auto_recover true auto_dump true\n"
)
WIDTHS = (
    "index, name, pstate, pcie.link.width.current, pcie.link.width.max\n"
    "0, NVIDIA {name}, {state}, {one}, 16\n1, NVIDIA {name}, {state}, {other}, 16\n"
)
ECC = (
    "    ECC Errors\n        Volatile\n            SRAM Correctable              : 7\n"
    "            SRAM Uncorrectable SEC-DED    : {now}\n            DRAM Uncorrectable            : 0\n"
    "        Aggregate\n            SRAM Correctable              : 9\n"
    "            DRAM Uncorrectable            : {ever}\n            SRAM Threshold Exceeded       : {exceeded}\n"
)
CONTROLLER = (
    "[2025-03-11T10:01:02.123] update_node: node n3 reason set to: GPU 5 fell off the bus\n"
    "[2025-03-11T10:01:02.124] update_node: node n3 state set to DRAINED\n"
    "[2025-03-11T11:01:02.124] error: Nodes n[7-8] not responding, setting DOWN\n"
)
FAULTS = {  # name: text, and its findings of warning or more
    "an ECC count": (TABLE, {"error gpu-ecc GPU1 high"}),
    "a lost GPU": (table(row(), row(1, "2A", second=LOST)), {"error gpu-missing GPU1 medium"}),
    "no sensors": (table(row(second=NO_SENSORS)), {"error tool-reports-fault GPU0 medium"}),
    "no fan": (table(row(second=NO_FAN)), {"warning tool-reports-fault GPU0 medium"}),
    "ECC of one GPU off": (table(row(), row(1, "2A", ecc="Off")), {"warning gpu-ecc GPU1 high"}),
    "device handle": (
        "Unable to determine the device handle for GPU0000:CB:00.0: Unknown Error\n",
        {"error gpu-missing GPU@0000:cb:00.0 medium"},
    ),
    "mismatch": (
        "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.54\n",
        {"error gpu-driver-unusable node medium"},
    ),
    "no devices": ("No devices were found\n", {"error gpu-driver-unusable node medium"}),
    "no driver": (
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest "
        "NVIDIA driver is installed and running.\n",
        {"error gpu-driver-unusable node medium"},
    ),
    "a lost container": ("Failed to initialize NVML: Unknown Error\n", {"error gpu-driver-unusable node medium"}),
    "ulimit -a": (ULIMIT, {"warning gdr-memlock-low node medium"}),
    "ulimit -l": ("$ ulimit -l\n64\n", {"warning gdr-memlock-low node medium"}),
    "npu-smi": (texts.NPU.format(state="Alarm"), {"error tool-reports-fault GPU32 medium"}),
    "hl-smi": (texts.HL.format(count=2), {"error tool-reports-fault GPU1 medium"}),
    "rocm-smi": (texts.RAS.format(count=2), {"error tool-reports-fault GPU1 medium"}),
    "amd-smi metric": (texts.AMD_METRIC.format(count=2), {"error tool-reports-fault GPU1 medium"}),
    "amd-smi": (texts.AMD_BOX.format(count=2), {"error tool-reports-fault GPU1 medium"}),
    "amd-smi monitor": (texts.AMD_MONITOR.format(count=2), {"error tool-reports-fault GPU1 medium"}),
    "amd-smi bad-pages": (
        texts.AMD_PAGES.format(pending=texts.PAGES.format(state="PENDING"), unreservable=texts.NO_PAGES),
        {"warning tool-reports-fault GPU1 medium"},
    ),
    "dcgmi health": (
        texts.UNHEALTHY,
        {"error tool-reports-fault GPU3 medium", "warning tool-reports-fault GPU1 medium"},
    ),
    "dcgmi health, R1": (texts.UNHEALTHY_R1, {"warning tool-reports-fault GPU0 medium"}),
    "dcgmi health -j": (texts.HEALTH_JSON, {"error tool-reports-fault GPU3 medium"}),
    "dcgmi diag": (texts.DIAG, {"error tool-reports-fault GPU3 medium", "error tool-reports-fault node medium"}),
    "dcgmi diag -j": (texts.DIAG_JSON, {"error tool-reports-fault GPU5 medium"}),
    "ibqueryerrors": (texts.PORT_ERRORS, {"warning ib-fabric-errors port 7 of MF0;leaf3:MQM9700/U1 medium"}),
    "perfquery": (texts.PERFQUERY.format(symbols=65535), {"warning ib-fabric-errors port 1 of LID 33 medium"}),
    "kubectl": (texts.NODE.format(**{**NODE, "allocatable": "7"}), {"error tool-reports-fault node medium"}),
    "pod": (texts.POD, {"error tool-reports-fault node medium"}),
    "docker": (texts.DOCKER, {"error tool-reports-fault node medium"}),
    "kubectl, its begin": (
        texts.NODE.format(**{**NODE, "gpus": "False"}).partition("Capacity:")[0],
        {"warning tool-reports-fault node medium"},
    ),
    "kubectl get node": (texts.NODE_YAML.format(left=7), {"error tool-reports-fault node medium"}),
    "device plugin": (f"the pod logs:\n```\n{texts.PLUGIN_LOG}```\n", {
        "error tool-reports-fault node medium",
    }),
    "dcgmi nvlink": (texts.LINK_STATES.format(states="U D U U _ _"), {"error tool-reports-fault GPU1 medium"}),
    "dcgmi nvlink, all": (texts.LINK_STATES.format(states="D D D D _ _"), {"warning tool-reports-fault GPU1 low"}),
    "dcgmi diag without its head": (
        "+-----  Integration  -------+-----------------------------------------+\n"
        "| PCIe                      | Fail - GPU: 2                           |\n"
        "| Warning                   | GPU 2 NvLink link 3 is currently down   |\n",
        {"error tool-reports-fault GPU2 medium"},
    ),
    "dcgmi health without its head": (
        "| Overall Health            | Failure                                 |\n"
        "| -> 4                      | Failure                                 |\n"
        "|    -> NVLINK system       | Failure                                 |\n",
        {"error tool-reports-fault GPU4 medium"},
    ),
    "remapped rows": ("    Remapped Rows\n        Uncorrectable Error : 4\n        Pending : Yes\n", {
        "warning tool-reports-fault node medium",
    }),
    "a failed remapping": (
        "$ nvidia-smi -q | grep -A5 Remapped\n    Remapped Rows\n        Pending : No\n"
        "        Remapping Failure Occurred : Yes\n",
        {"error tool-reports-fault node medium"},
    ),
    "the fabric of some GPU": ("$ nvidia-smi -q | grep -A2 Fabric\n    Fabric\n        State : In Progress\n", {
        "warning tool-reports-fault node low",
    }),
    "nvidia-smi -q of one GPU": (
        "$ nvidia-smi -q -d ROW_REMAPPER -i 3\n\n==============NVSMI LOG==============\n\n"
        "Attached GPUs                             : 8\nGPU 00000000:5D:00.0\n    Remapped Rows\n"
        "        Correctable Error                 : 0\n        Uncorrectable Error               : 8\n"
        "        Pending                           : No\n        Remapping Failure Occurred        : Yes\n",
        {"error gpu-remap-failed GPU@0000:5d:00.0 high"},
    ),
    "nvidia-smi -q without its head": (
        "> GPU 00000000:5D:00.0\n>     Remapped Rows\n>         Correctable Error                 : 0\n"
        ">         Uncorrectable Error               : 8\n>         Pending                           : No\n"
        ">         Remapping Failure Occurred        : Yes\n",
        {"error gpu-remap-failed GPU@0000:5d:00.0 high"},
    ),
    "dmesg --time-format=iso": (
        "2025-07-01T12:00:02,118291+00:00 pcieport 0000:40:01.1: DPC: containment event, status:0x1f01 source:0x0000\n",
        {"warning pcie-containment device 0000:40:01.1 high"},
    ),
    "a pair of a matrix": (MATRIX.format(odd="SYS"), {"warning nvlink-matrix-uneven GPU2 - GPU3 no NVLink low"}),
    "rocm-smi without a driver": (
        "$ rocm-smi\nERROR:root:Driver not initialized (amdgpu not found in modules)\n",
        {"error tool-reports-fault node medium"},
    ),
    "npu-smi without a driver": (
        "dcmi module initialize failed. ret is -8005\n", {"error tool-reports-fault node medium"},
    ),
    "npu-smi info without a driver": (
        "[root@n7 ~]# npu-smi info\nLog level is not read.\ndcmi module initialize failed. ret is -8005\n",
        {"error tool-reports-fault node medium"},
    ),
    "rocm-smi --showtopo without a driver": (
        "$ rocm-smi --showtopo\nERROR:root:Driver not initialized (amdgpu not found in modules)\n",
        {"error tool-reports-fault node medium"},
    ),
    "neuron-ls without a driver": (
        'FATA[0000] Failed to discover neuron devices  error="Unable to read device information from the driver."\n',
        {"error tool-reports-fault node medium"},
    ),
    "ibdiagnet without its lines": (
        "-I- Fabric Discover finished successfully\n-E- Links Check finished with errors\n",
        {"warning tool-reports-fault node low"},
    ),
    "CUDA with another library": (
        "RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling "
        "NumCudaDevices() that might have already set an error? Error 803: system has unsupported display driver / "
        "cuda driver combination (Triggered internally at ../c10/cuda/CUDAFunctions.cpp:108.)\n",
        {"error tool-reports-fault node medium"},
    ),
    "CUDA with a library for newer GPUs": (
        "Error 804: forward compatibility was attempted on non supported HW\n",
        {"warning tool-reports-fault node medium"},
    ),
    "CUDA without a GPU": (
        "cudaGetDeviceCount returned 100\n-> no CUDA-capable device is detected\nResult = FAIL\n",
        {"warning tool-reports-fault node low"},
    ),
    "CUDA without a driver": (
        "RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU\n",
        {"warning tool-reports-fault node low"},
    ),
    "CUDA without its library": (
        "ImportError: libcuda.so.1: cannot open shared object file: No such file or directory\n",
        {"warning tool-reports-fault node low"},
    ),
    "a device plugin with a driver that is not loaded": (
        "E1103 10:11:12.000001 1 main.go:123] error starting plugins: unable to create plugin manager: nvml init "
        "failed: Driver Not Loaded\n",
        {"warning tool-reports-fault node low"},
    ),
    "CUDA with an old driver": (
        "RuntimeError: The NVIDIA driver on your system is too old (found version 11040). Please update\n",
        {"warning tool-reports-fault node medium"},
    ),
    "CUDA with a runtime that is too new": (
        "CUDA error 35: CUDA driver version is insufficient for CUDA runtime version\n",
        {"warning tool-reports-fault node medium"},
    ),
    "CUDA and an error of memory": (
        "RuntimeError: CUDA error: uncorrectable ECC error encountered\n", {"error tool-reports-fault node medium"},
    ),
    "CUDA and an NVLink": (
        "CUDA error: uncorrectable NVLink error detected during the execution\n",
        {"error tool-reports-fault node medium"},
    ),
    "CUDA and the hardware": ("CUDA error: hardware stack error\n", {"warning tool-reports-fault node low"}),
    "CUDA and a GPU in use": (
        "RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable\n",
        {"warning tool-reports-fault node low"},
    ),
    "CUDA that does not start": (
        "RuntimeError: CUDA unknown error - this may be due to an incorrectly set up environment, e.g. changing\n",
        {"warning tool-reports-fault node low"},
    ),
    "a device plugin without a driver": (
        "2026/11/03 10:11:12 Failed to initialize NVML: could not load NVML library.\n2026/11/03 10:11:12 If this is a "
        "GPU node, did you set the docker default runtime to `nvidia`?\n",
        {"warning tool-reports-fault node low"},
    ),
    "ibv_devinfo without a device": (
        "$ ibv_devinfo\nNo IB devices found\n", {"warning tool-reports-fault node low"},
    ),
    "a library that does not fit": (
        "root@pod-1:/# ibv_devinfo\nlibibverbs: Warning: Driver bnxt_re does not support the kernel ABI of 6 "
        "(supports 1 to 1) for device /sys/class/infiniband/bnxt_re2\nNo IB devices found\n",
        {"error tool-reports-fault node medium"},
    ),
    "fi_info without a device": (
        "$ fi_info -p efa\nfi_getinfo: -61 (No data available)\n", {"warning tool-reports-fault node low"},
    ),
    "a driver that does not answer": (
        "kubelet[33]: nvidia-container-cli: detection error: driver error: timed out: unknown\n",
        {"error tool-reports-fault node medium"},
    ),
    "a log from pdsh": (
        "n7: [142.445220] mlx5_core 0000:61:00.0: wait_func:1132:(pid 1): CREATE_DCT(0x710) timeout. Will cause a leak "
        "of a command resource\nn7: [142.445224] mlx5_core 0000:61:00.0: wait_func:1132:(pid 2): CREATE_DCT(0x710) "
        "timeout. Will cause a leak of a command resource\n",
        {"warning nic-firmware-dead NIC 0000:61:00.0 medium"},
    ),
    "one NVLink of one GPU": (
        "$ nvidia-smi nvlink --status\nGPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-aaaaaaaa-1111)\n"
        + "".join(f"\t Link {n}: {'<inactive>' if n == 3 else '25 GB/s'}\n" for n in range(12)),
        {"warning nvlink-inactive GPU0 low"},
    ),
    "a GPU that did not start": (
        "$ sudo dmesg | grep amdgpu\n[    8.839735] amdgpu 0000:c3:00.0: amdgpu: Fatal error during GPU init\n"
        "$ lspci | grep MI\nc3:00.0 Display controller: Advanced Micro Devices, Inc. [AMD/ATI] MI210 (rev 02)\n",
        {"warning pci-driver-missing 0000:c3:00.0 medium"},
    ),
    "mlxlink --json": (PORT_JSON.format(state="Polling", opcode="2", reason="Negotiation failure, no partner"), {
        "warning tool-reports-fault node medium",
    }),
    "mlxlink --json of a device": (
        "# mlxlink -d mlx5_4 --json\n" + PORT_JSON.format(state="Active", opcode="15", reason="Bad signal integrity"),
        {"warning tool-reports-fault mlx5_4 medium"},
    ),
    "amd-smi metric without its begin": (
        "        TOTAL_DEFERRED_COUNT: 0\n" + texts.AMD_METRIC.format(count=2) + "GPU: 2\n    ECC:\n        TOTAL_UNC",
        {"error tool-reports-fault GPU1 medium"},
    ),
    "lsmod with nouveau": (
        "Module                  Size  Used by\nnouveau              2596864  4\nmxm_wmi  16384  1 nouveau\n",
        {"warning tool-reports-fault node low"},
    ),
    "lsmod | grep": ("$ lsmod | grep nouveau\nnouveau 2596864  1\n", {"warning tool-reports-fault node low"}),
    "iblinkinfo": (texts.SLOW_LINKS, {
        f"warning ib-fabric-errors port {port} of MF0;leaf3:MQM9700/U1 low" for port in (8, 9)
    }),
    "hl-smi -Q": (GAUDI_QUERY.format(count=3), {"error tool-reports-fault device 0000:33:00.0 medium"}),
    "rocm-smi --showxgmierr": (texts.XGMI_ERRORS.format(count=2, state="Multiple errors detected"),
                                {"warning tool-reports-fault GPU1 low"}),
    "a bond with a member down": (
        texts.BOND.format(state="down", failures=41, aggregator=2), {"warning tool-reports-fault ens1f1np1 low"},
    ),
    "a bond with a member that flaps": (
        texts.BOND.format(state="up", failures=41, aggregator=1), {"warning tool-reports-fault ens1f1np1 low"},
    ),
    "a bond with a member outside": (
        "$ cat /proc/net/bonding/bond0\n" + texts.BOND.format(state="up", failures=1, aggregator=2),
        {"warning tool-reports-fault ens1f1np1 medium"},
    ),
    "slurmd": (texts.SLURMD, {"error tool-reports-fault /dev/nvidia5 medium"}),
    "slurmctld and fewer GPUs": (texts.INVALID, {"error tool-reports-fault n7 medium"}),
    "ports of a SONiC switch": (
        texts.SONIC.format(errors="91,231"), {"warning tool-reports-fault Ethernet16 low"},
    ),
    "errors of an EOS switch": (texts.EOS.format(errors=91_231), {"warning tool-reports-fault Et2/1 low"}),
    "a port that a switch closed": (texts.CLOSED, {"warning tool-reports-fault Et12/1 medium"}),
    "an NVUE switch": (texts.NVUE.format(errors=812_312), {"warning tool-reports-fault swp12 low"}),
    "a dim port of an EOS switch": (texts.EOS_LIGHT.format(light="-18.20"), {"warning tool-reports-fault Et7/1 low"}),
    "conditions of a node": (texts.CONDITIONS.format(state="True "), {"warning tool-reports-fault node medium"}),
    "a health check of the site": (texts.HEALTH_CHECK, {"warning tool-reports-fault node low"}),
    "a health check that took a node out": (
        texts.MARKED_OFFLINE + texts.HEALTH_CHECK, {"warning tool-reports-fault gpu-041 low"},
    ),
    "npu-smi info -t health": (texts.NPU_HEALTH.format(state="Alarm"), {"error tool-reports-fault NPU 3 medium"}),
    "a port of a Pensando NIC": (texts.NIC_PORTS.format(state="DOWN"), {"warning tool-reports-fault port b low"}),
    "a transfer without an answer": (texts.PERFTEST, {"warning tool-reports-fault mlx5_0 low"}),
    "a storm on a SONiC switch": (
        texts.STORM.format(state="stormed"), {"warning tool-reports-fault Ethernet12:3 medium"},
    ),
    "a port of an EOS switch": (texts.EOS_PORT.format(errors=812_312), {"warning tool-reports-fault Ethernet3/1 low"}),
    "smpquery": (texts.PORT_INFO.format(state="Initialize"), {"warning ib-fabric-errors port 13 of LID 12 medium"}),
    "an RDMA plugin without devices": (texts.NO_NICS, {"warning tool-reports-fault node low"}),
    "ibdiagnet 1": (texts.OLD_DIAGNET, {
        "warning ib-fabric-errors port 9 of LID 7 medium",
        "warning ib-fabric-errors port 12 of 0002c902004a1234 medium",
    }),
    "a link of one lane among few": (
        texts.ONE_LANE.format(width="1X"), {"warning ib-fabric-errors port 7 of MF0;leaf3:MQM8700/U1 low"},
    ),
    "hl-smi -n link": (texts.GAUDI_LINKS.format(state="DOWN"), {"warning tool-reports-fault node medium"}),
    "a dark lane of an NPU's module": (texts.NPU_MODULE.format(dark="0.0001"), {
        "warning npu-optic-power NPU 2 high",
    }),
    "a lane of an NPU's module that receives far less": (NPU_LANES.format(weak="0.0300"), {
        "warning npu-optic-power NPU 2 high",
    }),
    "lanes of an NPU's module within the usual spread": (NPU_LANES.format(weak="0.6000"), set()),
    "metrics of node_exporter": (
        'node_network_receive_errs_total{device="ens3"} 0\nnode_network_receive_packets_total{device="ens3"} 8.1e+08\n'
        'node_network_receive_errs_total{device="ens4"} 712331\n'
        'node_network_receive_packets_total{device="ens4"} 9.1e+08\n',
        {"warning roce-rt-crc ens4 low"},
    ),
    "frames that a NIC had no buffer for": (
        IFCONFIG.format(overruns=7_712_233), {"warning roce-rt-rx-discards ens8f1 low"},
    ),
    "ip link of one interface": (
        "[root@n3 ~]# ip -s -s -d link show dev eth6\n"
        "9: eth6: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP mode DEFAULT group default qlen 1000\n"
        "    link/ether b8:ce:f6:0a:0b:1c brd ff:ff:ff:ff:ff:ff promiscuity 0 minmtu 68 maxmtu 9978\n"
        "    RX:  bytes packets errors dropped  missed   mcast\n    712233112233 81223312  22991  0  0  1201\n"
        "    RX errors:  length    crc   frame    fifo overrun\n          0  22991       0       0       0\n",
        {"warning roce-rt-crc eth6 low"},
    ),
    "one of two links": (
        texts.LINKS_OF_ONE_SWITCH.format(hint=" Could be 106.25 Gbps"),
        {"warning ib-fabric-errors port 18 of MF0;tor2:MQM9700/U1 low"},
    ),
    "an alert": (
        '{"status":"firing","alerts":[{"status":"firing","labels":{"alertname":"IBPortDown","device":"mlx5_9"}}]}\n',
        {"warning tool-reports-fault mlx5_9 low"},
    ),
    "a resource of a BMC": (
        '{"@odata.id": "/redfish/v1/Systems/1/Processors/GPU_SXM_7", "Id": "GPU_SXM_7", '
        '"Status": {"Health": "Critical"}}\n',
        {"warning tool-reports-fault GPU_SXM_7 medium"},
    ),
    "ethtool -S of no interface": (
        "NIC statistics:\n" + FRAMES.format(count=70_000), {"warning roce-rt-crc ethX low"},
    ),
    "ethtool -S | grep of no interface": (FRAMES.format(count=70_000), {"warning roce-rt-crc ethX low"}),
    "ethtool -m of no interface": (
        MODULE.format(power="0.001 mW / -30.00"), {"warning roce-optics-power ethX low"},
    ),
    "NVLinks of one GPU": (
        LINKS_OF_ONE
        + "".join(f"\t Link {n}: Recovery Errors: {40 if n == 3 else 0}\n" for n in range(12)),
        {"warning nvlink-recoveries-outlier GPU5 NVLink 3 high"},
    ),
    "a Neuron device in a log": (
        "[ 1204.004120] NEURON_HW_ERR=SRAM_UNCORRECTABLE_ERROR instance-id=i-0 nd-id=6 nc-id=1 serial-num=a "
        "action=TERMINATE_INSTANCE\n",
        {"error neuron-hw-errors node high"},
    ),
    "a function of a NIC in a log": (
        "Oct  2 11:20:03 n4 kernel: irdma: probe of ice.roce.0 failed with error -5\n",
        {"error driver-reports-failure ice.roce.0 high"},
    ),
    "links with many errors": (LINK_ERRORS.format(0, 0, 771, 230), {"warning tool-reports-fault GPU2 low"}),
    "ECC errors of some GPU": (ECC.format(now=3, ever=3, exceeded="No"), {"error tool-reports-fault node medium"}),
    "a threshold of some GPU": (ECC.format(now=0, ever=3, exceeded="Yes"), {"error tool-reports-fault node medium"}),
    "a switch in a log of dmesg -H": (
        "[May07 03:11] nvidia-nvswitch3: SXid (PCI:0000:06:00.0): 24007, Fatal, Link 46 sourcetrack timeout error\n",
        {"error gpu-xid NVSwitch 0000:06:00.0 high"},
    ),
    "metrics of DCGM": (METRICS.format(xid=79, remap=1, ecc=2), {
        "warning tool-reports-fault GPU3 low", "error tool-reports-fault GPU4 medium",
        "error tool-reports-fault GPU5 medium",
    }),
    "a reporter of a NIC": (
        REPORTERS.format(state="error"), {"error tool-reports-fault device 0000:08:00.0 medium"}
    ),
    "lanes of one GPU": (
        WIDTHS.format(name="H100 PCIe", state="P0", one=16, other=8), {"warning pcie-width-downgraded GPU1 low"}
    ),
    "a node without a GPU": (
        SLURM_NODE.format(state="IDLE+DRAIN", reason="gres/gpu count reported lower than configured (7 < 8)"),
        {"error tool-reports-fault n7 medium"},
    ),
    "a node whose check failed": (
        f"$ scontrol show node n7\n{SLURM_NODE.format(state='DOWN*+DRAIN', reason='NHC: check_hw_ib failed')}",
        {"warning tool-reports-fault n7 low"},
    ),
    "a node whose GPU was exchanged for nothing": (
        SLURM_NODE.format(state="IDLE+DRAIN", reason="GPU 3 replaced, ECC errors again"),
        {"warning tool-reports-fault n7 low"},
    ),
    "the log of slurmctld": (
        CONTROLLER, {"warning tool-reports-fault n3 low", "warning tool-reports-fault n[7-8] low"},
    ),
    "the journal of slurmctld": (
        "Mar 11 10:01:02 head slurmctld[1533]: error: Nodes n7 not responding, setting DOWN\n",
        {"warning tool-reports-fault n7 low"},
    ),
    "a stale mount": (
        "ls: cannot access '/mnt/ckpt': Stale file handle\n", {"warning tool-reports-fault node medium"},
    ),
    "a shell on a dead drive": (
        "bash: /scratch/run7/log: Input/output error\n", {"warning tool-reports-fault node medium"},
    ),
    "an address of another host": (
        "n4 systemd-networkd[881]: ens5np0: IPv4 address 10.10.3.4 conflict detected with b8:3f:d2:11:22:33\n",
        {"warning tool-reports-fault node medium"},
    ),
    "a module's flag, alone": (
        "$ ethtool -m ens5np0 | grep -i alarm\n\tLaser bias current high alarm             : Off\n"
        "\tModule temperature high alarm             : On\n",
        {"warning port-module-fault ens5np0 low"},
    ),
    "states of nodes, then their reasons": (
        f"$ sinfo\nPARTITION AVAIL TIMELIMIT NODES STATE NODELIST\ngpu* up infinite 1 drain n3\n"
        f"gpu* up infinite 1 down n7\n$ sinfo -R\n{HELD}Xid 79 on GPU 3      root      2025-03-11T10:01:02 n3\n",
        {"warning tool-reports-fault n3 low"},
    ),
    "a port of ibqueryerrors without its node": (
        "GUID 0x2c902004a1234 port 17:[SymbolErrorCounter == 65535] [PortRcvErrors == 4211]\n"
        "  Link info:     12   17[  ] ==( 4X  106.25 Gbps Active/  LinkUp)==>       88    1[  ] \"n3 mlx5_3\" ( )\n",
        {"warning ib-fabric-errors port 17 of 2c902004a1234 medium"},
    ),
    "MIG on one GPU of a query": (
        "index, mig.mode.current\n0, Disabled\n1, Disabled\n2, Disabled\n3, Enabled\n",
        {"warning peer-differs GPU3 high"},
    ),
    "nodes that are held back": (
        f"$ sinfo -R\n{HELD}Xid 79 on GPU 3      root      2025-03-11T10:01:02 n[3,11]\n"
        "Not responding       slurm     2025-03-12T06:31:44 n7\n"
        "new firmware         ops       2025-03-12T06:31:44 n8\n",
        {"warning tool-reports-fault n[3,11] low", "warning tool-reports-fault n7 low"},
    ),
    "FEC that does not come up": (FEC.format(modes="RS", active="Off"), {"warning tool-reports-fault ens3np0 low"}),
    "a module that is refused": (
        "modprobe: ERROR: could not insert 'nvidia_peermem': Invalid argument\n",
        {"warning tool-reports-fault node medium"},
    ),
    "memory that is not locked": (
        "[1712001122.3] [n7:8812 :0] ib_md.c:293 UCX ERROR ibv_reg_mr(address=0x7f00, length=4096, access=0xf) failed: "
        "Cannot allocate memory : Please set max locked memory (ulimit -l) to 'unlimited' (current: 64 kbytes)\n",
        {"warning tool-reports-fault node medium"},
    ),
    "no subnet manager": ("$ sminfo\nsminfo: iberror: failed: query\n", {"warning tool-reports-fault node low"}),
    "a subnet manager that is not the master": (
        "[root@sm2 ~]# sminfo\nsminfo: sm lid 9 sm guid 0x8c0eb0300a1b2c3, activity count 0 priority 2 state 0 "
        "SMINFO_NOTACT\n",
        {"warning tool-reports-fault lid 9 medium"},
    ),
    "settings for interfaces of one network": (
        "$ sysctl -a | grep arp_ignore\nnet.ipv4.conf.all.arp_ignore = 0\nnet.ipv4.conf.ens3np0.arp_ignore = 0\n"
        "net.ipv4.conf.ens4np0.arp_ignore = 0\n$ ip -br addr\nens3np0 UP 10.9.0.3/24\nens4np0 UP 10.9.0.4/24\n",
        {"warning tool-reports-fault node medium"},
    ),
    "an interface with another MTU": (ip_link(9000, 9000, 1500, 9000, 9000), {"warning roce-mtu-mismatch node low"}),
    "an interface without a link": (ip_link(*[9000] * 4, down=(5,)), {"warning roce-link-down ens5np0 low"}),
    "a module in a log": (
        "[ 1811.332000] mlx5_core 0000:5e:00.1: Port module event[error]: module 1, Cable error, Bus stuck\n",
        {"warning port-module-fault NIC 0000:5e:00.1 low"},
    ),
    "a hot module with one lane in the text": (
        "$ ethtool -m ens2np0\n\tIdentifier                                : 0x18 (QSFP-DD)\n"
        "\tModule temperature                        : 84.11 degrees C / 183.40 degrees F\n"
        "\tModule temperature high alarm             : On\n",
        {"warning port-module-fault ens2np0 low"},
    ),
    "packets of a RoCE port": (VERBS_PORT.format(mtu="1024 (3)"), {"warning roce-mtu-small mlx5_0/1 low"}),
    "small packets of a RoCE port": (VERBS_PORT.format(mtu="512 (2)"), {"warning roce-mtu-small mlx5_0/1 low"}),
    "the status of a card": (
        f"{LSPCI}\tCapabilities: [100 v2] Advanced Error Reporting\n\t\tUESta:\tDLP- SDES- TLP- FCP- CmpltTO- MalfTLP+ "
        "UnsupReq- ACSViol-\n",
        {"warning pcie-errors-uncorrectable GPU@0000:17:00.0 low"},
    ),
    "a fabric that did not come up": (
        "    Fabric\n        State : Completed\n        Status : Insufficient Resources\n        CliqueId : N/A\n",
        {"error tool-reports-fault node medium"},
    ),
    "FEC with its statistics": (
        "$ ethtool -I --show-fec ens7f0np0\nFEC parameters for ens7f0np0:\nConfigured FEC encodings: Auto RS\n"
        "Active FEC encoding: RS\nStatistics:\n  corrected_blocks: 18812331\n  uncorrectable_blocks: 28831\n",
        {"warning roce-fec-ber ens7f0np0 low"},
    ),
    "a health issue of a NIC": (
        "[ 905.100000] mlx5_core 0000:5e:00.0: x: Health issue observed, unrecoverable hardware "
        "error, severity(2) CRITICAL:\n[ 905.200000] mlx5_core 0000:5e:00.0: x: assert_var[0] 0\n",
        {"warning nic-firmware-dead NIC 0000:5e:00.0 medium"},
    ),
    "a syndrome of a NIC": (
        "[ 905.100000] mlx5_core 0000:5e:00.0: print_health_info:406:(pid 0): synd 0x7: irisc not responding\n",
        {"warning nic-firmware-dead NIC 0000:5e:00.0 medium"},
    ),
    "iblinkinfo | grep Could": (
        f"$ iblinkinfo -l | grep Could\n{slow_link('n3 mlx5_0', 3, '2X', 'Could be 4X')}"
        f"{slow_link('n4 mlx5_0', 4, '2X', 'Could be 4X')}",
        {f"warning ib-fabric-errors port 1 of {node} mlx5_0 low" for node in ("n3", "n4")},
    ),
    "iblinkinfo of four links, two of which are slow in another way each": (
        slow_link("n1 mlx5_0", 1, "4X", "")
        + slow_link("n2 mlx5_0", 2, "4X", "")
        + slow_link("n3 mlx5_0", 3, "2X", "Could be 4X")
        + slow_link("n4 mlx5_0", 4, "4X", "Could be 106.25 Gbps"),
        {f"warning ib-fabric-errors port 1 of {node} mlx5_0 low" for node in ("n3", "n4")},
    ),
    "perftest, whose command names the device": (
        "[root@n7 ~]# ib_send_bw -d mlx5_4 -F n8 &\n[1] 991\n[root@n7 ~]#  Port number 1 state is Down\n"
        " Couldn't set the link layer\n",
        {"warning tool-reports-fault mlx5_4 medium"},
    ),
    "ibportstate of two ports": (
        "".join(
            f"[root@sw1 ~]# ibportstate 7 {port}\nPortInfo:\n# Port info: Lid 7 port {port}\n"
            "LinkState:.......................Active\nPhysLinkState:...................LinkUp\n"
            "LinkWidthEnabled:................1X or 4X\nLinkWidthActive:.................1X\n"
            for port in (21, 22)
        ),
        {f"warning ib-fabric-errors port {port} of LID 7 low" for port in (21, 22)},
    ),
    "a port of Omni-Path that udev renamed": (
        "opap9s0:1                   PortGID:0xfe80000000000000:0011750101aabbcc\n   PortState:     Init (LinkUp)\n",
        {"warning tool-reports-fault opap9s0:1 medium"},
    ),
    "why a GPU is slow": (
        "    Clocks Throttle Reasons\n        Idle : Not Active\n        HW Slowdown : Active\n"
        "            HW Thermal Slowdown : Active\n            HW Power Brake Slowdown : Not Active\n",
        {"warning tool-reports-fault node medium"},
    ),
    "why one GPU of four is slow, as CSV": (
        "index, clocks_event_reasons.hw_thermal_slowdown, temperature.gpu\n0, Not Active, 55\n1, Active, 91\n",
        {"error gpu-throttled GPU1 high"},
    ),
    "GPUs without a number": (
        "name, pcie.link.gen.current, pcie.link.width.current, pcie.link.width.max\n"
        + "".join(f"NVIDIA H100 80GB HBM3, 5, {lanes}, 16\n" for lanes in (16, 16, 8, 16)),
        {"warning pcie-width-downgraded GPU2 low"},
    ),
    "nvsm": (f"# nvsm show health\n{NVSM.format(state='UnHealthy')}", {
        "warning tool-reports-fault device 0000:1b:00.0 medium",
    }),
    "nvbandwidth": (bandwidths(slow=2), {"warning tool-reports-fault GPU2 medium"}),
    "p2pBandwidthLatencyTest": (
        "Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)\n   D\\D     0      1      2 \n"
        "     0 2501.11  21.33 391.87 \n     1  21.41 2498.12  22.02 \n     2 390.99  21.07 2511.33 \n"
        "P2P=Enabled Latency (P2P Writes) Matrix (us)\n   GPU     0      1      2 \n     0  1.1  2.1  2.0 \n",
        {"warning tool-reports-fault GPU1 medium"},
    ),
    "ibping": (
        "$ ibping -L 12\nibwarn: [4411] mad_rpc_rmpp: _do_madrpc failed; dport (Lid 12)\n",
        {"warning tool-reports-fault node low"},
    ),
    "ibv_rc_pingpong": (
        "$ ibv_rc_pingpong -d mlx5_0 -g 0 10.0.0.2\n  local address:  LID 0x0000, QPN 0x00012a\n"
        "Failed to modify QP to RTR\nCouldn't connect to remote QP\n",
        {"warning tool-reports-fault mlx5_0 low"},
    ),
    "perftest without memory": (
        "$ ulimit -l\nunlimited\n$ ib_write_bw -d mlx5_0 --use_cuda=0\nCouldn't allocate MR\n failed to create mr\n",
        {"warning tool-reports-fault mlx5_0 low"},
    ),
    "perftest without a link": (
        "$ ib_send_bw -d mlx5_0\n Port number 1 state is Down\n Couldn't set the link layer\n",
        {"warning tool-reports-fault mlx5_0 medium"},
    ),
    "perftest without an answer": (
        " Completion with error at client\n Failed status 12: wr_id 0 syndrom 0x81\nscnt=128, ccnt=0\n",
        {"warning tool-reports-fault node low"},
    ),
    "perftest without a path": (
        " Failed to modify QP 1122 to RTR\n Unable to Connect the HCA's through the link\n",
        {"warning tool-reports-fault node low"},
    ),
    "lspci | grep": (f"$ lspci | grep -i nvidia\n{LSPCI}{LSPCI.replace('17', '3d').replace('a1', 'ff')}", {
        "critical pcie-device-gone GPU@0000:3d:00.0 high",
    }),
}  # fmt: skip
HEALTHY = {
    "few frames that a NIC had no buffer for": IFCONFIG.format(overruns=112),
    "an alert about a disk": (
        '{"status":"firing","alerts":[{"status":"firing","labels":{"alertname":"DiskFull","device":"sda1"}}]}\n'
    ),
    "a port that is closed": texts.PORT_INFO.format(state="Down").replace("LinkUp", "Disabled"),
    "large packets of a RoCE port": VERBS_PORT.format(mtu="4096 (5)"),
    "the status of a card": (
        f"{LSPCI}\tCapabilities: [100 v2] Advanced Error Reporting\n\t\tUESta:\tDLP- UnsupReq+ ACSViol-\n"
    ),
    "nvsm": NVSM.format(state="Healthy"),
    "nvbandwidth": bandwidths(slow=None),
    "nvbandwidth of two halves": bandwidths(slow=None).replace("276.1  276.1 ", "27.1  27.1 "),
    "a NIC with little to state": (
        "[ 905.100000] mlx5_core 0000:5e:00.0: x: Health issue observed, High temperature, "
        "severity(4) WARNING:\n[ 905.200000] mlx5_core 0000:5e:00.0: print_health_info:406: synd 0x0: No error\n"
    ),
    "iblinkinfo of a fabric whose cables are slower": (
        "".join(slow_link(f"n{n} mlx5_0", n, "4X", "Could be 106.25 Gbps") for n in range(2, 8))
    ),
    "perftest at the receiver": "$ ib_send_bw -d mlx5_0\n Failed status 13: wr_id 0 syndrom 0x87\n",
    "a slot with little power, as many have": (
        "[   22.114000] mlx5_core 0000:5e:00.0: mlx5_pcie_event:301:(pid 12): Detected insufficient power on the PCIe "
        "slot (27W).\n"
    ),
    "nodes that came back": CONTROLLER + "[2025-03-12T10:01:02.123] update_node: node n3 state set to IDLE\n"
    "[2025-03-12T10:01:02.124] node_did_resp: node n[7-8] returned to service\n",
    "ECC errors of the past": ECC.format(now=0, ever=3, exceeded="No") + "    Remapped Rows\n        Pending : No\n",
    "a port of management": "ibwarn: [99] mad_rpc_open_port: can't open UMAD port ((null):0)\n",
    "metrics of DCGM": METRICS.format(xid=0, remap=0, ecc=9223372036854775794),
    "metrics of an application's Xid": METRICS.format(xid=31, remap=0, ecc=0),
    "reporters of a NIC": REPORTERS.format(state="healthy"),
    "ibdiagnet": "-I- Fabric Discover finished successfully\n-I- Links Check finished successfully\n",
    "lanes of all GPUs": WIDTHS.format(name="H100 PCIe", state="P0", one=8, other=8),
    "lanes of an idle GPU": WIDTHS.format(name="H100 PCIe", state="P8", one=16, other=8),
    "lanes of a superchip": WIDTHS.format(name="GB200", state="P0", one=16, other=1),
    "lanes of cards for games": WIDTHS.format(name="GeForce RTX 4090", state="P0", one=16, other=8),
    "links with a few errors": LINK_ERRORS.format(0, 0, 7, 2),
    "links that all have errors": LINK_ERRORS.format(910, 840, 771, 230),
    "a node that works": SLURM_NODE.format(state="MIXED", reason="GPU 3 was exchanged"),
    "a node that is off": SLURM_NODE.format(state="IDLE+DRAIN+POWERED_DOWN", reason="no GPU jobs"),
    "a node that is worked on": SLURM_NODE.format(state="IDLE+DRAIN", reason="kernel upgrade, ticket 4410"),
    "a node with new GPUs": SLURM_NODE.format(state="DOWN+DRAIN", reason="GPU driver update, back on Monday"),
    "no node that is held back": f"$ sinfo -R\n{HELD}",
    "FEC of a short cable": FEC.format(modes="Auto Off RS BaseR", active="Off"),
    "FEC": FEC.format(modes="RS", active="RS"),
    "another module": "modprobe: ERROR: could not insert 'zfs': No such device\n$ sinfo -R\n" + HELD,
    "interfaces": ip_link(9000, 9000, 9000, 9000),
    "half of the interfaces": ip_link(9000, 9000, 9000, 9000, down=(3, 5)),
    "interfaces for management": ip_link(1500, 1500, 1500, 1500, down=(5,)),
    "interfaces of guests": ip_link(9000, 9000, 9000, 9000, down=(5,), maker="52:54:00"),
    "three interfaces": ip_link(9000, 9000, 9000, down=(5,)),
    "nvidia-smi": table(row(), row(1, "2A")),
    "nvidia-smi R390": R390.replace("                  Off |", "                    0 |"),
    "nvidia-smi with MIG": table(*(row(n, f"{n}8", ecc="On", mig="Enabled") for n in range(2))),
    "nvidia-smi -L in a file of that name": "GPU 0: NVIDIA H200 (UUID: GPU-6f3b5fe1-0000-0000-0000-000000000000)\n",
    "ulimit -a": ULIMIT.replace(" 64\n", " unlimited\n"),
    "npu-smi": texts.NPU.format(state="OK"),
    "hl-smi": texts.HL.format(count=0),
    "rocm-smi": texts.RAS.format(count=0),
    "amd-smi metric": texts.AMD_METRIC.format(count=0),
    "amd-smi": texts.AMD_BOX.format(count=0),
    "amd-smi monitor": texts.AMD_MONITOR.format(count=0),
    "amd-smi bad-pages": texts.AMD_PAGES.format(pending=texts.NO_PAGES, unreservable=texts.NO_PAGES),
    "dcgmi health": texts.HEALTHY,
    "dcgmi diag": texts.DIAG_PASSED,
    "ibqueryerrors": texts.PORT_WAITS,
    "perfquery": texts.PERFQUERY.format(symbols=3),
    "kubectl": texts.NODE.format(**NODE),
    "pod": texts.POD_WAITS,
    "kubectl, its begin": texts.NODE.format(**NODE).partition("Capacity:")[0],
    "kubectl get node": texts.NODE_YAML.format(left=8),
    "dcgmi nvlink": texts.LINK_STATES.format(states="U U U U _ _"),
    "ibv_devinfo with a warning": (
        "libibverbs: Warning: couldn't open config directory '/etc/libibverbs.d'.\nhca_id:\tmlx5_0\n"
        "\ttransport:\t\t\tInfiniBand (0)\n\tfw_ver:\t\t\t\t28.39.2048\n\tphys_port_cnt:\t\t\t1\n\t\tport:\t1\n"
        "\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n"
        "\t\t\tlink_layer:\t\tInfiniBand\n"
    ),
    "words of an error in a sentence": (
        f"Why does it print No IB devices found?\n```\n{texts.NPU.format(state='OK')}```\n"
    ),
    "lspci | grep ACSCtl": (
        "\t\tACSCtl: SrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-\n"
        "\t\tACSCtl: SrcValid- TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-\n"
    ),
    "LnkSta alone": "\t\tLnkSta:\tSpeed 5GT/s (downgraded), Width x1 (downgraded)\n\t\t\tTrErr- Train-\n",
    "two bridged GPUs": (
        "GPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNV4\t0-47\t\tN/A\nGPU1\tNV4\t X \t0-47\t\tN/A\n"
    ),
    "ibdev2netdev | column": "mlx5_0  port  1  ==>  ibp26s0  (Down)  # rail 0\nmlx5_1  port  1  ==>  eno1  (Up)\n",
    "lspci -s | grep": (
        "$ sudo lspci -s 3b:00.0 -vv | grep -E 'LnkCap:|LnkSta:'\n"
        "\t\tLnkCap: Port #0, Speed 32GT/s, Width x16, ASPM L1\n\t\tLnkSta: Speed 32GT/s, Width x16\n"
    ),
    "lspci | grep": f"$ lspci | grep -i nvidia\n{LSPCI}",
    "mlxlink --json": PORT_JSON.format(state="Active", opcode="0", reason="No issue was observed"),
    "amd-smi metric without its begin": "TOTAL_UNCORRECTABLE_COUNT: 9\n" + texts.AMD_METRIC.format(count=0),
    "lsmod": "Module  Size  Used by\nnvidia_drm 122880 3\nnvidia 54308864 26 nvidia_drm\nnouveau 2596864 1\n",
    "lsmod, nouveau unused": "Module  Size  Used by\nmlx5_core 2134016 1 mlx5_ib\nnouveau 2596864 0\n",
    "lsmod | grep": "$ lsmod | grep -E 'nvidia|mlx5'\nnvidia 54308864 26 nvidia_uvm\nmlx5_core 2134016 1 mlx5_ib\n",
    "nvidia-smi -q without its head": (
        f"$ lspci | grep NVIDIA\n{LSPCI}{LSPCI.replace('17', '3d')}\nand\n\n"
        "GPU 00000000:17:00.0\n    Remapped Rows\n        Correctable Error                 : 0\n"
        "        Pending                           : No\n        Remapping Failure Occurred        : No\n"
    ),
    "dmesg --time-format=iso": "[2025-07-01T12:00:02,118291+00:00] pcieport 0000:40:01.1: DPC: enabled with IRQ 34\n",
    "a matrix": MATRIX.format(odd="NV4"),
    "a matrix of bridged pairs": MATRIX.format(odd="NV4").replace("NV4\tNV4", "SYS\tNV4"),
    "hl-smi -Q": GAUDI_QUERY.format(count=0),
    "rocm-smi --showxgmierr": texts.XGMI_ERRORS.format(count=0, state="No errors detected"),
    "a bond": texts.BOND.format(state="up", failures=3, aggregator=1),
    "a port of a SONiC switch without a link": texts.SONIC_STATUS,
    "conditions of a node": texts.CONDITIONS.format(state="False"),
    "npu-smi info -t health": texts.NPU_HEALTH.format(state="OK"),
    "ports of a Pensando NIC": texts.NIC_PORTS.format(state="UP"),
    "the one port of a NIC": texts.NIC_PORTS.format(state="DOWN").partition("Port : b")[2].join(["Port : b", ""]),
    "smpquery": texts.PORT_INFO.format(state="Active"),
    "two links of four lanes": texts.ONE_LANE.format(width="2X"),
    "hl-smi -n link": texts.GAUDI_LINKS.format(state="UP"),
    "an NPU's module": texts.NPU_MODULE.format(dark="0.9021"),
    "ethtool -S of no interface": "NIC statistics:\n" + FRAMES.format(count=3),
    "ethtool -m of no interface": MODULE.format(power="0.88 mW / -0.55"),
    "ethtool -i of no interface": "driver: mlx5_core\nversion: 6.8.0\nfirmware-version: 28.39.2048 (MT_0000000838)\n",
    "NVLinks of one GPU": (LINKS_OF_ONE + "".join(f"\t Link {n}: Recovery Errors: 0\n" for n in range(12))),
    "functions of NICs that start": (
        "[   12.1] irdma: irdma_probe: ice.roce.0 is up\n[   12.300000] mlx5_core 0000:19:00.0: E-Switch: on\n"
    ),
    "lspci | grep LnkSta": f'$ lspci -vv | grep -E "LnkSta|^[0-9]"\n{LSPCI}\t\tLnkSta:\tSpeed 32GT/s, Width x16\n',
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_table_alone_gives_a_finding(name: str, tmp_path: Path) -> None:
    text, expected = FAULTS[name]
    report = scan_text(tmp_path, text, "issue.txt")

    assert expected == {f"{f.severity} {f.rule} {f.label} {f.confidence}" for f in warnings_of(report)}


def test_the_gravest_reason_is_first_and_none_is_hidden_by_many(tmp_path: Path) -> None:
    held = "".join(f"planned maintenance  ops       2025-03-12T06:31:44 m{n}\n" for n in range(200))
    rows = (
        "Kill task failed     root      2025-03-12T06:31:44 n4\nXid 79 on GPU 3      root      2025-03-12T06:31:44 n3\n"
    )
    report = scan_text(tmp_path, f"$ sinfo -R\n{HELD}{held}{rows}", "issue.txt")

    assert ["n3", "n4"] == [finding.label for finding in warnings_of(report)]


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_table_gives_no_warning(name: str, tmp_path: Path) -> None:
    report = scan_text(tmp_path, HEALTHY[name], "issue.txt")

    assert [] == warnings_of(report)
    assert "critical" != report.summary.verdict


@pytest.mark.parametrize(("access", "count"), [(0, 1), (1, 0)])
def test_gpus_without_direct_access_are_one_note(access: int, count: int, tmp_path: Path) -> None:
    findings = scan_text(tmp_path, ACCESS.format(access), "issue.txt").findings

    assert [("info", "low")] * count == [(finding.severity, finding.confidence) for finding in findings]
    assert all("GPU0-GPU2, GPU1-GPU2, 2 of 3 pairs" in finding.summary for finding in findings)


@pytest.mark.parametrize("head", ["3b:00.0 3D controller: NVIDIA Corporation GH100 [H100 PCIe] (rev a1)\n", ""])
def test_lines_that_a_filter_left_are_of_the_address_of_the_command(head: str, tmp_path: Path) -> None:
    text = (
        f"$ lspci | grep 3b:00\n{head}$ sudo lspci -s 3b:00.0 -vv | grep -E 'LnkCap:|LnkSta:'\n"
        "\t\tLnkCap: Port #0, Speed 32GT/s, Width x16, ASPM L1\n\t\tLnkSta: Speed 32GT/s, Width x8 (downgraded)\n"
    )
    (finding,) = scan_text(tmp_path, text, "issue.txt").findings

    expected = ("pcie-width-downgraded", "pci:0000:3b:00.0", "warning" if head else "info")
    assert expected == (finding.rule, finding.subject, finding.severity)


@pytest.mark.parametrize("name", [name for name in FAULTS if name != "ulimit -l"])
def test_the_steps_have_no_words_to_fill_in(name: str, tmp_path: Path) -> None:
    for finding in warnings_of(scan_text(tmp_path, FAULTS[name][0], "issue.txt")):
        assert not {"NPU_CARD", "NPU_CHIP", "GPU_INDEX", "ADDRESS", "DEVICE", "SLURM_NODE", "REPORTER"} & set(
            finding.remedy.split()
        )


SETTINGS = (
    "Settings for ens1f0np0:\n\tSupported link modes:   {modes}/Full\n\tAuto-negotiation: on\n\tLink detected: {link}\n"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (SETTINGS.format(modes="100000baseCR4", link="no (No cable)"), {"info tool-reports-fault ens1f0np0 medium"}),
        (SETTINGS.format(modes="25000baseCR", link="no"), {"info roce-link-down ens1f0np0 low"}),
        (SETTINGS.format(modes="100000baseCR4", link="yes"), set()),
        (SETTINGS.format(modes="10000baseT", link="no"), set()),
    ],
    ids=["no cable", "no", "a link", "of management"],
)
def test_a_link_that_ethtool_alone_shows_is_a_note(text: str, expected: set[str], tmp_path: Path) -> None:
    """Also from a file that is named after the tool alone: the text states the interface. No file of a RDMA device,
    which is assumed, is its source."""
    report = scan_text(tmp_path, text, "ethtool.txt")

    assert expected == {f"{f.severity} {f.rule} {f.label} {f.confidence}" for f in report.findings}
    assert all(row.source.startswith("ethtool.txt") for f in report.findings for row in f.evidence)


@pytest.mark.parametrize(("links", "ports"), [(texts.LINKS, ()), (texts.SLOW_LINKS, (8, 9))], ids=["healthy", "slow"])
def test_slow_links_of_the_fabric_around_a_host_are_named(tmp_path: Path, links: str, ports: tuple[int, ...]) -> None:
    """A fabric alone is no host: `fleet topology` reads it."""
    (tmp_path / "iblinkinfo.txt").write_text(links)
    report = scan_text(tmp_path, ibstat(*["Active"] * 4))

    assert {f"ib-fabric-errors port {port} of MF0;leaf3:MQM9700/U1 low" for port in ports} == {
        f"{f.rule} {f.label} {f.confidence}" for f in warnings_of(report)
    }


def test_a_fabric_whose_links_are_all_fast_is_refused(tmp_path: Path) -> None:
    """With the command that reads it."""
    with pytest.raises(BadSource, match="describes a whole InfiniBand fabric"):
        scan_text(tmp_path, texts.LINKS, "issue.txt")


@pytest.mark.parametrize(
    "text",
    [
        texts.SONIC.format(errors="12"),
        texts.EOS.format(errors=3),
        texts.NVUE.format(errors=3),
        texts.EOS_LIGHT.format(light="-1.20"),
        texts.EOS_PORT.format(errors=3),
        texts.STORM.format(state="operational").replace("12/11", "0/0"),
    ],
)
def test_a_switch_without_a_fault_is_refused(tmp_path: Path, text: str) -> None:
    """It is no host."""
    with pytest.raises(BadSource, match="holds outputs of a switch, not of a host"):
        scan_text(tmp_path, text, "issue.txt")


def test_a_list_that_ends_at_a_lost_gpu_is_of_no_other_host(tmp_path: Path) -> None:
    (tmp_path / "nvidia-smi.txt").write_text(FAULTS["device handle"][0])
    listed = "".join(f"GPU {n}: NVIDIA H100 (UUID: GPU-6f3b5fe{n}-0000-0000-0000-000000000000)\n" for n in range(2))
    report = scan_text(tmp_path, listed, "nvidia-smi_-L.txt")

    assert not report.source.hosts
    assert ["gpu-missing"] == [finding.rule for finding in warnings_of(report)]


def test_a_filtered_list_concludes_nothing_from_what_is_absent(tmp_path: Path) -> None:
    report = scan_text(tmp_path, HEALTHY["lspci | grep"], "issue.txt")

    assert "unknown" == report.summary.verdict
    assert "partial" in (report.summary.devices_unread or "")


def test_lines_that_state_no_device_conclude_nothing_from_what_they_state_not(tmp_path: Path) -> None:
    lines = f"{LSPCI}$ lspci -vvv | grep ACSCap\n\t\tACSCap:\tSrcValid+ TransBlk+ ReqRedir+ CmpltRedir+\n"
    report = scan_text(tmp_path, lines, "issue.txt")

    assert [] == [finding.rule for finding in report.findings if finding.rule == "tool-reports-fault"]
    assert {"lspci", "lspci | grep"} >= {file.read_as for file in report.source.files if file.read_as}


def test_a_service_that_starts_jobs_outweighs_a_shell(tmp_path: Path) -> None:
    """The limit of a login says nothing of a scheduler's jobs."""
    unit = tmp_path / "etc" / "systemd" / "system"
    unit.mkdir(parents=True)
    (unit / "slurmd.service").write_text("[Service]\nLimitMEMLOCK=infinity\n")

    assert [] == warnings_of(scan_text(tmp_path, ULIMIT, "ulimit_-a.txt"))


def test_an_interface_alone_that_could_be_faster_is_a_note(tmp_path: Path) -> None:
    """Beside others it would be none: a switch may choose the speed."""
    text = SETTINGS.format(modes="400000baseCR8", link="yes") + "\tSpeed: {}Mb/s\n"
    notes = {
        speed: [(f.rule, f.severity, f.confidence) for f in scan_text(tmp_path, text.format(speed), "a.txt").findings]
        for speed in (25000, 400000)
    }

    assert {25000: [("roce-speed-degraded", "info", "low")], 400000: []} == notes


NO_CABLE = "$ ethtool {name}\nSettings for {name}:\n\tAuto-negotiation: on\n\tLink detected: no (No cable)\n"
RDMA_LINKS = "$ rdma link\nlink mlx5_0/1 state {} netdev ens3np0\nlink mlx5_1/1 state {} netdev ens4np0\n"
UP, DOWN = "ACTIVE physical_state LINK_UP", "DOWN physical_state POLLING"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (NO_CABLE.format(name="ens3np0"), [("tool-reports-fault", "ens3np0", [])]),
        (
            RDMA_LINKS.format(DOWN, UP) + NO_CABLE.format(name="ens3np0"),
            [("roce-link-down", "mlx5_0/1 (ens3np0)", ["tool-reports-fault node"])],
        ),
    ],
    ids=["alone", "beside its port"],
)
def test_a_port_without_a_link_is_one_finding(
    text: str, expected: list[tuple[str, str, list[str]]], tmp_path: Path
) -> None:
    """What ethtool states of the interface is explained by what a rule finds about its port."""
    report = scan_text(tmp_path, text, "paste.md")

    assert expected == [(finding.rule, finding.label, finding.absorbs) for finding in report.findings]
    assert "errors grow" not in report.findings[0].remedy  # without a link none does
