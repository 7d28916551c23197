"""Sentences and pieces of output, anywhere in a text: the finding that each gives, and none of a healthy one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.rules.test_fragments import scan_text, warnings_of

BURN = (
    "$ ./gpu_burn 60\nBurning for 60 seconds.\n"
    "GPU 0: NVIDIA A30 (UUID: GPU-0a1b2c3d-0000-1111-2222-333344445555)\n"
    "GPU 1: NVIDIA A30 (UUID: GPU-0a1b2c3d-0000-1111-2222-333344446666)\n"
    "50.0%  proc'd: 1600 (9011 Gflop/s) - 1590 (8990 Gflop/s)   errors: 0 - 0   temps: 61 C - {hot} C \n"
    "Killing processes.. done\n\nTested 2 GPUs:\n\tGPU 0: OK\n\tGPU 1: {verdict}\n"
)
PODS = (
    "NAME                                      READY   STATUS             RESTARTS      AGE\n"
    "nvidia-device-plugin-daemonset-k2m9x      1/1     Running            0             3d\n"
    "nvidia-operator-validator-7hd4q           0/1     {status:<18} 12 (3m ago)   3d\n"
    "web-frontend-5d4c8b-xx1aa                 0/1     CrashLoopBackOff   44 (1m ago)   3d\n"
)
CUDA_SAMPLE = 'CUDA error at ../Common/helper_cuda.h:801 code={code}({name}) "cudaSetDevice(dev)" \n'
BANDWIDTH = (
    "Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)\n"
    "   D\\D     0      1 \n     0 871.20  {rate} \n     1  {rate} 869.94 \n"
)
HOST_BANDWIDTH = (
    "Host/Device Bandwidth Matrix (GB/s), memory=Pinned\n   Dir\\D       0      1      2      3\n"
    "   D2H     25.81  25.79  25.80  {rate}\n   H2D     24.50  24.48  24.49  24.50\n"
)
ACS = "\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir{sign} CmpltRedir{sign} UpstreamFwd{sign} EgressCtrl- DirectTrans-\n"
CARD = (
    "$ lspci -k\n9a:00.0 Display controller: Intel Corporation Ponte Vecchio XT (2 Tile) (rev 2f)\n"
    "\tSubsystem: Intel Corporation Device 0000\n{driver}\n$ dmesg\n[   44.120001] {line}\n"
)
WEDGED = "xe 0000:9a:00.0: [drm] *ERROR* CRITICAL: Xe has declared device 0000:9a:00.0 as wedged."
WAITING = "xe 0000:9a:00.0: [drm] In Survivability Mode"
BOUND = "\tKernel driver in use: xe\n"
AMD_START = (
    "[   39.201188] amdgpu 0000:05:00.0: amdgpu: {reason}\n"
    "[   39.201801] amdgpu 0000:05:00.0: amdgpu: Fatal error during GPU init\n"
    "[   39.201990] amdgpu: probe of 0000:05:00.0 failed with error -22\n"
)
NODE = "Capacity:\n  cpu: 128\n  nvidia.com/gpu:  4\nAllocatable:\n  cpu: 127\n  nvidia.com/gpu:  {left}\n"
DMON = (
    "# gpu    pwr  gtemp     sm   pclk  pviol  tviol\n# Idx      W      C      %    MHz      %   bool\n"
    + 2 * "    0    301     88     99   1100      0      {held}\n    1    299     66     99   1410      0      0\n"
)
TRANSFERS = (
    " Host to Device Bandwidth, 1 Device(s)\n PINNED Memory Transfers\n   Transfer Size (Bytes)\tBandwidth(GB/s)\n"
    "   32000000\t\t\t{rate}\n\n Device to Device Bandwidth, 1 Device(s)\n PINNED Memory Transfers\n"
    "   Transfer Size (Bytes)\tBandwidth(GB/s)\n   32000000\t\t\t1.2\n"
)
DOMAIN = (
    "$ nvidia-imex-ctl -N\nConnectivity Table Legend:\nC - Connected - Ready for operation\n\nNodes:\n"
    "Node #0   * 10.9.1.1 *   - READY                - Version: 580.95   - Hostname: r1-n0\n"
    "Node #1   - 10.9.1.2     - {state:<20} - Version: 580.95   - Hostname: r1-n1\n"
    "\n Nodes From\\To  0   1\n       0        C   C\n       1        C   C\nDomain State: {domain}\n"
)
NOT_LOADED = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA "
    "driver is installed and running.\n"
)
FAULTS = {
    "an SXid in the JSON of a log collector": (
        '{"stream":"kernel","msg":"kern :err : nvidia-nvswitch2: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 27 LTSSM '
        'Fault Up"}\n',
        {"error gpu-xid NVSwitch 0000:c1:00.0 high"},
    ),
    "an Xid in a table": (
        "| 09:14 | `NVRM: Xid (PCI:0000:4b:00): 79, pid=77, GPU has fallen off the bus.` |\n",
        {"critical gpu-xid device 0000:4b:00.0 high"},
    ),
    "nvidia-smi in quotes": (
        'it prints\n**"Unable to determine the device handle for GPU 0000:4B:00.0: GPU is lost"**\n',
        {"error gpu-missing GPU@0000:4b:00.0 medium"},
    ),
    "nvidia-smi of one GPU that is lost": (
        "$ nvidia-smi -q -i 2\nUnable to determine the device handle for GPU 0000:4B:00.0: Unknown Error\n",
        {"error gpu-missing GPU@0000:4b:00.0 medium"},
    ),
    "nvidia-smi beside a list without drivers": (
        f"$ lspci -n\n00:00.0 0600: 8086:1237 (rev 02)\n00:05.0 0302: 10de:20b5 (rev a1)\n$ nvidia-smi\n{NOT_LOADED}",
        {"error gpu-driver-unusable node medium"},
    ),
    "gpu-burn": (BURN.format(hot=66, verdict="FAULTY"), {"error tool-reports-fault GPU1 medium"}),
    "gpu-burn of a hot GPU": (BURN.format(hot=94, verdict="OK"), {"warning tool-reports-fault GPU1 low"}),
    "gpu-burn that could not go on": (
        "10.0%  proc'd: -1 (0 Gflop/s) - 80 (9000 Gflop/s)   errors: 4711  (DIED!)- 0   temps: 40 C - 41 C \n",
        {"warning tool-reports-fault node low"},
    ),
    "gpu-burn without the fabric manager": (
        "terminate called after throwing an instance of 'std::runtime_error'\n"
        "  what():  Error (gpu_burn-drv.cpp:301): system not yet initialized\n",
        {"error service-reports-failure CUDA medium"},
    ),
    "pods": (PODS.format(status="Init:Error"), {"warning tool-reports-fault node low"}),
    "a part of the description of a node": (NODE.format(left=3), {"error tool-reports-fault node medium"}),
    "a code of DCGM": (
        'level=warn msg="GpuMemWatch" errorCode=DCGM_FR_ROW_REMAP_FAILURE GPU:5 Recommended Action=CONTACT_SUPPORT\n',
        {"error tool-reports-fault GPU5 medium"},
    ),
    "a code of DCGM without a meaning of its own": (
        'level=warn msg="watch" errorCode=DCGM_FR_SOMETHING_NEW GPU:5\n',
        {"warning tool-reports-fault GPU5 low"},
    ),
    "the record of a health agent names the part by its address": (
        '{"level":"INFO","event":{"agent":"gpu-health-monitor","isFatal":true,"errorCode":'
        '["DCGM_FR_FALLEN_OFF_BUS"],"entitiesImpacted":[{"entityType":"PCI","entityValue":"0001:04:00.0"}]}}\n',
        {"error tool-reports-fault device 0001:04:00.0 medium"},
    ),
    "the record of a health agent about two parts": (
        '{"errorCode":["DCGM_FR_NVLINK_DOWN"],"entities":["0001:04:00.0","0001:05:00.0"]}\n',
        {"error tool-reports-fault node medium"},
    ),
    "an IMEX daemon that no job needs": (
        "GpuNvlinkWatch = True  ErrorCode:DCGM_FR_IMEX_UNHEALTHY IMEX daemon status is -3\n",
        set(),
    ),
    "an event of Kubernetes about a pod": (
        "Events:\n  Type     Reason      Age   From     Message\n"
        "  Warning  FailedMount   9s  kubelet  MountVolume failed for the volume gpu-data\n" + NODE.format(left=4),
        set(),
    ),
    "a node that Slurm holds back": (
        "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\nall*         up   infinite      1  drain n3\n", set(),
    ),
    "an Intel card that its driver gave up": (
        CARD.format(driver=BOUND, line=WEDGED),
        {"critical driver-reports-failure device 0000:9a:00.0 high"},
    ),
    "an Intel card without a driver that waits for firmware": (
        CARD.format(driver="", line=WAITING),
        {"critical driver-reports-failure device 0000:9a:00.0 high"},
    ),
    "an Intel card that waited for firmware, and has a driver now": (CARD.format(driver=BOUND, line=WAITING), set()),
    "the part of an AMD GPU that did not start": (
        AMD_START.format(reason="get invalid ip discovery binary signature"),
        {"critical driver-reports-failure device 0000:05:00.0 high"},
    ),
    "an AMD GPU that did not start, without a reason": (
        AMD_START.format(reason="finishing device."),
        {"warning pci-driver-missing 0000:05:00.0 medium"},
    ),
    "a table of checks": (
        "# Node health report\n| Node | Hostname | Status | Top fail reason |\n|---|---|---|---|\n"
        "| 0 | gpu-a1 | PASS | |\n| 1 | gpu-a2 | FAIL | gpu3: HBM busy: 100 GiB in use |\n",
        {"warning tool-reports-fault gpu-a2 low"},
    ),
    "a diagnostic of an Intel card": (
        "# xpu-smi diag -d 1 -l 3\n"
        "+--------------------------+----------------------------------------+\n"
        "| Device ID                | 1                                      |\n"
        "+--------------------------+----------------------------------------+\n"
        "| Software Library         | Result: Pass                           |\n"
        "| Integration PCIe         | Result: Fail                           |\n"
        "|                          | Message: Fail to check PCIe bandwidth. |\n"
        "+--------------------------+----------------------------------------+\n",
        {"warning tool-reports-fault device 1 low"},
    ),
    "checks, each in a line": (
        "Running the acceptance test of the node\n[PASS] gpu count 8\n[FAIL] xgmi bandwidth GPU2-GPU3: 21 GB/s\n",
        {"warning tool-reports-fault node low"},
    ),
    "a diagnostic of DCGM that met an Xid": (
        '{"level":"INFO","message":"Detected XID 79 for GPU 2 Please consult the documentation.","errorCode":'
        '["DCGM_FR_XID_ERROR"]}\n',
        {"warning tool-reports-fault GPU2 low"},
    ),
    "an Xid as gpud states it": (
        "XID 79.0 (err status 0x00000000) GPU_LOST detected on GPU PCI:0000:4b:00\n",
        {"warning tool-reports-fault device 0000:4b:00.0 low"},
    ),
    "a sentence that a page broke into lines": (
        "Warning  UnexpectedAdmissionError  kubelet\n  Allocate failed due to no healthy devices present;\n"
        "  cannot allocate unhealthy devices amd.com/gpu\n",
        {"error tool-reports-fault node medium"},
    ),
    "a driver that is in use": (
        "nvidia driver module is already loaded with refcount 12\nCould not unload NVIDIA driver kernel modules, "
        "driver is in use\n",
        {"warning tool-reports-fault node medium"},
    ),
    "a device plugin that is too old": (
        "E0102 1 main.go:9] error starting plugins: error getting device memory: Not Supported\n",
        {"warning tool-reports-fault node medium"},
    ),
    "the description of a pod": (
        "Name:         nvidia-driver-daemonset-x7k2p\nNamespace:    gpu-operator\nInit Containers:\n  manager:\n"
        "    State:          Waiting\n      Reason:       CrashLoopBackOff\n    Last State:     Terminated\n"
        "      Reason:       Error\n",
        {"warning tool-reports-fault node low"},
    ),
    "a sentence of a service in quotes": (
        "* `Failed to query NVIDIA devices. Please ensure that the NVIDIA device files (/dev/nvidia*) exist.`\n",
        {"error service-reports-failure nvidia-persistenced high"},
    ),
    "a hypervisor of the cloud": (
        "Failed moving device BAR: failed allocating new MMIO range: 0xe0000000->0x0(0x100000)\n",
        {"warning tool-reports-fault node medium"},
    ),
    "a group of a guest": (
        "qemu-system-x86_64: -device vfio-pci,host=0000:81:00.0: vfio 0000:81:00.0: group 55 is not viable\n",
        {"warning tool-reports-fault device 0000:81:00.0 medium"},
    ),
    "a guest without an IOMMU": (
        "error: unsupported configuration: host doesn't support VFIO PCI passthrough\n"
        "error: unsupported configuration: host doesn't support passthrough of host PCI devices\n",
        {"warning tool-reports-fault node medium"},
    ),
    "a group that is not there": (
        "kvm: -device vfio-pci,host=0000:81:00.0: vfio 0000:81:00.0: no iommu_group found: No such file or directory\n",
        {"warning tool-reports-fault device 0000:81:00.0 medium"},
    ),
    "Proxmox without an IOMMU": (
        "TASK ERROR: cannot prepare PCI pass-through, IOMMU not present\n", {"warning tool-reports-fault node medium"},
    ),
    "a device that stays asleep": (
        "kvm: vfio: Unable to power on device, stuck in D3\n", {"warning tool-reports-fault node medium"},
    ),
    "a device that is gone": (
        "qemu-kvm: ../hw/pci/pci.c:1637: pci_irq_handler: Assertion `0 <= irq_num && irq_num < 4' failed.\n",
        {"warning tool-reports-fault node medium"},
    ),
    "a guest's memory": (
        "qemu-kvm: VFIO_MAP_DMA failed: Cannot allocate memory\n", {"warning tool-reports-fault node medium"},
    ),
    "a device without a reset": (
        "vfio: Cannot reset device 0000:81:00.1, no available reset mechanism.\n",
        {"warning tool-reports-fault device 0000:81:00.1 low"},
    ),
    "a reset that failed": (
        "error: internal error: Unable to reset PCI device 0000:81:00.0: no FLR, PM reset or bus reset available\n",
        {"warning tool-reports-fault device 0000:81:00.0 low"},
    ),
    "Proxmox and a reset": (
        "can't reset PCI device '0000:81:00.0'\n", {"warning tool-reports-fault device 0000:81:00.0 low"},
    ),
    "a device of another guest": (
        "TASK ERROR: PCI device '0000:81:00.0' already in use by VMID '204'\n",
        {"warning tool-reports-fault device 0000:81:00.0 medium"},
    ),
    "a device of another domain": (
        "error: Requested operation is not valid: PCI device 0000:81:00.0 is in use by driver QEMU, domain gpu-vm-2\n",
        {"warning tool-reports-fault device 0000:81:00.0 medium"},
    ),
    "a device that vfio-pci does not get": (
        "TASK ERROR: Cannot bind 0000:81:00.0 to vfio\n", {"warning tool-reports-fault device 0000:81:00.0 medium"},
    ),
    "too little address space": (
        "2031-01-02T03:04:05.678Z In(05) vmx - PCIPassthru: total number of pages needed (8392704) exceeds limit "
        "(917504), failing\n2031-01-02T03:04:05.679Z In(05) vmx - Module 'DevicePowerOn' power on failed.\n",
        {"warning tool-reports-fault node medium"},
    ),
    "a device that the host does not offer": (
        "Failed to start the virtual machine. Device 023:00.0 is not a passthrough device.\n",
        {"warning tool-reports-fault node low"},
    ),
    "DKMS": (
        "Error! Bad return status for module build on kernel: 6.11.0-29-generic (x86_64)\n",
        {"warning tool-reports-fault node low"},
    ),
    "modprobe": (
        "modprobe: FATAL: Module nvidia not found in directory /lib/modules/6.11.0-29-generic\n",
        {"warning tool-reports-fault node medium"},
    ),
    "a code of CUDA": (
        CUDA_SAMPLE.format(code=214, name="cudaErrorECCUncorrectable"), {"error tool-reports-fault node medium"},
    ),
    "deviceQuery": (
        "cudaGetDeviceCount returned 999\n-> unknown error\nResult = FAIL\n", {"warning tool-reports-fault node low"},
    ),
    "a device for a guest that does not wake up": (
        "[ 900.100000] vfio-pci 0000:81:00.0: Unable to change power state from D3cold to D0, device inaccessible\n",
        {"warning driver-reports-failure device 0000:81:00.0 low"},
    ),
    "a hypervisor in a journal": (
        "Jan 03 10:11:12 pve7 kernel: vfio-pci 0000:41:00.0: enabling device (0000 -> 0003)\n"
        "Jan 03 10:11:13 pve7 QEMU[4242]: kvm: vfio 0000:41:00.0: group 31 is not viable\n",
        {"warning tool-reports-fault device 0000:41:00.0 medium"},
    ),
    "a journal that a filter cut": (
        "root@pve7:~# journalctl -b | grep -i vfio\n"
        "Jan 03 10:11:13 pve7 QEMU[4242]: kvm: vfio 0000:41:00.0: group 31 is not viable\n",
        {"warning tool-reports-fault device 0000:41:00.0 medium"},
    ),
    "nvidia-smi dmon": (DMON.format(held=1), {"warning tool-reports-fault GPU0 medium"}),
    "a node of an IMEX domain": (
        DOMAIN.format(state="UNAVAILABLE", domain="DEGRADED"), {"error tool-reports-fault r1-n1 medium"},
    ),
    "an IMEX domain": (DOMAIN.format(state="READY", domain="DOWN"), {"error tool-reports-fault node medium"}),
    "a GPU that is slow in one direction": (
        HOST_BANDWIDTH.format(rate=" 6.40"), {"warning tool-reports-fault GPU3 medium"},
    ),
}  # fmt: skip
HEALTHY = {
    "gpu-burn": BURN.format(hot=66, verdict="OK"),
    "pods": PODS.format(status="Running"),
    "pods that start": PODS.format(status="Init:0/4"),
    "a node": NODE.format(left=4),
    "ACS": ACS.format(sign="-") * 3,
    "two GPUs": BANDWIDTH.format(rate="13.10"),
    "each direction": HOST_BANDWIDTH.format(rate="25.80"),
    "nvidia-smi dmon": DMON.format(held=0),
    "the description of a pod": (
        "Name:         nvidia-driver-daemonset-x7k2p\nNamespace:    gpu-operator\nContainers:\n  driver:\n"
        "    State:          Running\n    Last State:     Terminated\n      Reason:       Error\n"
    ),
    "a table of checks that passed": (
        "# Node health report\n| Hostname | Status | Reason |\n|---|---|---|\n| gpu-a1 | PASS | |\n"
    ),
    "an IMEX domain": DOMAIN.format(state="READY", domain="UP"),
    "bandwidthTest": TRANSFERS.format(rate="24.9"),
    "numactl": (
        "available: 1 nodes (0)\nnode 0 cpus: 0 1 2 3\nnode 0 size: 64000 MB\nnode distances:\nnode   0 \n  0:  10 \n"
    ),
    "lscpu": "NUMA:\n  NUMA node(s):          2\n  NUMA node0 CPU(s):     0-47\n  NUMA node1 CPU(s):     48-95\n",
    "a query below other lines": (
        "-- node 7\nuuid, mig.mode.current, mig.mode.pending\n"
        "GPU-0a1b2c3d-0000-1111-2222-333344445555, Enabled, Enabled\n"
    ),
    "a part of nvidia-smi -q": "    Fabric\n        State                             : N/A\n        Status : N/A\n",
    "a code of CUDA for an application": CUDA_SAMPLE.format(code=700, name="cudaErrorIllegalAddress")
    + NODE.format(left=4),
}


@pytest.mark.parametrize(("text", "expected"), FAULTS.values(), ids=FAULTS)
def test_what_a_text_states_is_found(tmp_path: Path, text: str, expected: set[str]) -> None:
    report = scan_text(tmp_path, text, "issue.txt")

    assert expected == {f"{f.severity} {f.rule} {f.label} {f.confidence}" for f in warnings_of(report)}
    assert all(finding.steps for finding in report.findings)


@pytest.mark.parametrize("text", HEALTHY.values(), ids=HEALTHY)
def test_a_healthy_text_has_no_finding(tmp_path: Path, text: str) -> None:
    report = scan_text(tmp_path, text, "issue.txt")

    assert [] == list(report.findings)
    assert report.source.files


def test_slow_copies_between_two_gpus_are_a_note(tmp_path: Path) -> None:
    """Many boards wire the second slot so."""
    (finding,) = scan_text(tmp_path, BANDWIDTH.format(rate=" 6.30"), "issue.txt").findings

    assert ("info", "low") == (finding.severity, finding.confidence)
    assert "GPU0 to GPU1 6.3 GB/s" in finding.summary


def test_slow_copies_to_a_gpu_are_a_note(tmp_path: Path) -> None:
    """Copies within the GPU are in the same output, and do not count."""
    (finding,) = scan_text(tmp_path, TRANSFERS.format(rate="3.1"), "issue.txt").findings

    assert ("info", "low") == (finding.severity, finding.confidence)
    assert "host to device 3.1 GB/s" in finding.summary


def test_what_explains_a_guest_that_does_not_start_stands_alone(tmp_path: Path) -> None:
    (finding,) = scan_text(tmp_path, FAULTS["too little address space"][0], "issue.txt").findings

    assert "8392704" in finding.summary


def test_numa_nodes_are_those_that_numactl_prints(tmp_path: Path) -> None:
    nodes = scan_text(tmp_path, HEALTHY["numactl"], "issue.txt").node.numa_nodes

    assert [(0, "0,1,2,3", 64000, (10,))] == [
        (node.id, node.cpus, node.memory_mib, tuple(node.distances)) for node in nodes
    ]


@pytest.mark.parametrize(
    ("xid", "severity", "words", "step"),
    [
        (31, "info", "Xid 31 (memory page fault, mostly an application's)", "Look at the application first"),
        (48, "warning", "Xid 48 (double-bit ECC error)", "Look at the repair of its memory"),
        (62, "warning", "Xid 62 (the GPU's micro-controller stopped)", "Reset the GPU"),
        (79, "warning", "Xid 79 (the GPU fell off the bus)", "power off, at least 30 seconds"),
        (999, "info", "Xid 999", "Look it up in NVIDIA's Xid catalogue"),
    ],
)
def test_an_xid_that_monitoring_states_has_the_meaning_and_the_steps_of_its_number(
    tmp_path: Path, xid: int, severity: str, words: str, step: str
) -> None:
    metric = f'DCGM_FI_DEV_XID_ERRORS{{gpu="3"}} {xid}\n'
    (finding,) = scan_text(tmp_path, metric, "metrics.txt").findings
    assert (finding.severity, finding.summary) == (severity, f"monitoring reports an Xid of the GPU: {words}")
    assert "dmesg -T | grep Xid" in finding.steps[0].do
    assert any(step in one.do for one in finding.steps[1:])
