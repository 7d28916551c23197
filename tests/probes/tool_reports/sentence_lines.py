"""Sentences of tools, one line of our own for each row of the tables: what it means, and the part that it names."""

from __future__ import annotations

LINES: tuple[tuple[str, str, str], ...] = (  # a line, the code of what it means, and its part or what else it names
    (
        "Mar 03 04:05:06 n7 dkms[811]: modprobe: ERROR: could not insert 'nvidia': Key was rejected by service",
        "module-unsigned", "nvidia",
    ),
    (
        "qemu-kvm: -device vfio-pci,host=0000:9b:00.0: vfio 0000:9b:00.0: Could not use iommufd: Failed to open "
        "/dev/vfio/devices/vfio3: Permission denied",
        "guest-refused", "0000:9b:00.0",
    ),
    ("vfio: error opening /dev/vfio/27: Operation not permitted", "guest-refused", "/dev/vfio/27"),
    ("   NTP synchronized: no", "clock-free", "NTP synchronized: no"),
    ("Leap status     : Not synchronised", "clock-free", "Leap status     : Not"),
    ("unsynchronised", "clock-free", "unsynchronised"),
    ("IB device mlx5_9 not found", "verbs-no-device", "mlx5_9"),
    ("No RDMA devices were detected", "verbs-no-device", ""),
    ("ls: cannot access '/dev/infiniband': No such file or directory", "verbs-no-device", "/dev/infiniband"),
    ("ibstat: 'mlx5_9' IB device can't be found: No such file or directory", "verbs-no-device", "mlx5_9"),
    ("librdmacm: Warning: couldn't read ABI version.", "rdma-cm-unloaded", ""),
    ("cma detected device removal!!!!", "verbs-device-gone", ""),
    (" Couldn't get context for the device", "verbs-no-device", ""),
    ("can't read sgid of index 3", "gid-none", "3"),
    ("Gid index 9 is out of range", "gid-none", "9"),
    ("Invalid MTU - 9000 ", "mtu", "9000"),
    ("Couldn't init GPU context: 2", "perftest-gpu", ": 2"),
    ("failed to create mr", "perftest-memory", ""),
    ("Couldn't create CQ", "perftest-queue", ""),
    ("Failed to modify QP to RTS", "perftest-route", ""),
    ("Work completion error 12", "verbs-retries", ""),
    (" Completion with error at client", "completion-unknown", ""),
    ("rdma_resolve_addr failed", "rdma-address", ""),
    ("Unexpected CM event bl blka 8", "rdma-refused", "8"),
    ("Error: BW result is below bw limit", "measured-below", "BW result is below bw li"),
    ("VALIDATION: FAILED - 12 error(s)", "data-wrong", "- 12 error(s)"),
    ("# Out of bounds values : 12 FAILED", "data-wrong", "12"),
    (" Unable to set up socket connection", "perftest-peer", ""),
    ("Couldn't connect to 10.1.2.3:18515", "perftest-peer", "10.1.2.3:18515"),
    ("-E- Cannot Burn device in livefish", "firmware-recovery", "livefish"),
    ("-E- Flash gw timeout", "firmware-silent", "Flash gw timeout"),
    ("-E- Firmware reset failed, retry operation or reboot machine.", "firmware-reset", ", retry operation or reb"),
    ("-E- The firmware image was already updated on flash, pending reset.", "firmware-pending", ""),
    ("-E- Cannot open 3b:00.0: MFE_LOCKED_DEVICE", "firmware-locked", "LOCKED_DEVICE"),
    (
        "-E- Burning FS4 image failed: The Digest in the signature is wrong",
        "firmware-refused", "Burning FS4 image failed",
    ),
    ("Fail : The Digest in the signature is wrong", "firmware-refused", "The Digest in the signat"),
    ("-E- Error when trying to check if NV access registers are supported", "firmware-silent", ""),
    ("perfquery: iberror: failed: Failed to open '(null)' port '0'", "mad-no-port", ""),
    ("Failed to build MLNX_OFED_LINUX for 6.1.9-rc3", "stack-build", "6.1.9-rc3"),
    (
        " mlnx-ofed-kernel-modules : Depends: linux-modules-extra-6.1.9 but it is not installable",
        "stack-build", "mlnx-ofed-kernel-modules",
    ),
    ("Failed to build mlnx-ofa_kernel RPM", "stack-build", "mlnx-ofa_kernel"),
    ("Error: The current MLNX_OFED_LINUX is intended for rhel9.4", "stack-build", "intended for rhel9.4"),
    (
        "-E- Failed to set configuration: Bad parameter: ADVANCED_PCI_SETTINGS",
        "firmware-setting", "Failed to set configurat",
    ),
    ("-E- Module is unplugged", "module-unreadable", "Module is unplugged"),
    ("-E- Failed to open the device", "firmware-tool", ""),
    ("-W- Missing mst module: mst start", "firmware-tool", "Missing mst module"),
    ("-E- Duplicated GUIDs detected - Node GUID = 0x1", "ib-duplicate", "Duplicated GUIDs detecte"),
    ("-E- More then one master SM found in fabric", "ib-several-managers", ""),
    (
        "Feb 03 04:05:06 sm1 sharp_am[811]: Local Port validation failed. error: FabricProvider must bind to port with "
        "master SM (SM LID:7 local LID:9. Exiting.",
        "sharp-manager", "SM LID:7 local LID:9",
    ),
    (
        "[n7:3:9911 unique id 12] ERROR collect_ports_data: device mlx5_4 port 1 is not valid (port is used by SM)",
        "sharp-failed", "device mlx5_4 port 1 is",
    ),
    ("[n7:3:99 - comm.c:374] ERROR Failed to lock SAT tree(ID:0x3f ret:0x4)", "sharp-failed", "Failed to lock SAT tre"),
    ("[n7][GENERAL][77][warn ] - Begin job id: 12 failed with status: No resource", "sharp-failed", "No resource"),
    (
        "[n7:0 - context.c:684][2026-02-03 04:05:06] ERROR sharp_job_init_session failed: Connection error(-3)",
        "sharp-failed", "sharp_job_init_session",
    ),
    ("sharp_coll: error in sharp_get_group: Busy (status -7)", "sharp-failed", "error in sharp_get_group"),
    ("sharp_am[31]: - group of job 0x9 denied: quota is used", "sharp-failed", "0x9 denied: quota"),
    (
        "EFA internal error: (4112) Failure to post internal receive buffers",
        "efa-memory", "Failure to post interna",
    ),
    (
        "libfabric:71:1766221133:ofi_rxd:psm2:core:psmx2_getinfo():536<info> no PSM2 device is active.",
        "psm-no-device", "no PSM2 device is activ",
    ),
    ("-E- Credit loop found on the following path", "ib-credit-loop", ""),
    (
        "-W- Port n7/mlx5_3/P1 - BER exceeds the threshold in port = n7/mlx5_3/P1 (BER value = 1.2e-08, "
        "threshold = 1e-14)",
        "ib-bad-link", "Port n7/mlx5_3/P1 - BER",
    ),
    ('-E- Bad Link - Link at the end of direct route "1,3,4"', "ib-bad-link", "Bad Link - Link at the e"),
    (
        "-W- n7/mlx5_3 - Node has FW version 28.39.1002, while the latest FW version for the same device "
        "available on this fabric is 28.41.1000",
        "ib-firmware-differs", "n7/mlx5_3 - Node has FW",
    ),
    ("-E- Missing master SM in the discover fabric", "sm-silent", ""),
    (
        "sminfo: sm lid 9 sm guid 0x8c0eb0300a1b2c3, activity count 0 priority 2 state 1 SMINFO_DISCOVER",
        "sm-not-master", "SMINFO_DISCOVER",
    ),
    (
        "sminfo: sm lid 9 sm guid 0x8c0eb0300a1b2c3, activity count 31 priority 2 state 2 SMINFO_STANDBY",
        "sm-standby", "SMINFO_STANDBY",
    ),
    (
        "-E- Local link (port 1 in device mlx5_0) in state Down. You should have an active link in order to use "
        "ibdiagnet",
        "ib-local-link", "port 1 in device mlx5_0",
    ),
    (
        'ibwarn: [4100] find_route: Bad out port state found: node "MF0;leaf3:MQM9700/U1" outport 12 state 1',
        "ib-route", 'node "MF0;leaf3:MQM9700/',
    ),
    ("ibwarn: [4100] find_route: can't reach to/from ports", "ib-route", "cant reach"),
    ("ibwarn: [4100] ib_path_query_via: sa call path_query failed", "sm-silent", ""),
    ("/usr/sbin/iblinkinfo: iberror: failed: Failed to open 'mlx5_0' port '1'", "umad-closed", "mlx5_0 port"),
    ("ibwarn: [4100] _do_madrpc: send failed; Invalid argument", "mad-unanswered", ""),
    (
        "src/query_smp.c:241; umad (DR path slid 0; dlid 0; 0,1,31 Attr 0x11:0) bad status 110; Connection timed out",
        "mad-unanswered", "DR path slid 0; dlid 0;",
    ),
    ("-E- Discovery at local link failed: smp_node_info: Timeout", "mad-unanswered", "Discovery at local link"),
    ("Cannot get module EEPROM information: Input/output error", "module-unreadable", "Input/output error"),
    ("RTNETLINK answers: Network is down", "interface-down", ""),
    ("Error: mtu greater than device maximum.", "mtu", ""),
    ("n4 systemd-networkd[8]: ib0: IPv4 address 10.1.3.4 conflict detected with b8:3f:d2", "address-taken", "10.1.3.4"),
    ("arping[8811]: 10.1.3.4 is already in use by b8:3f:d2:11:22:33 on ib0", "address-taken", "10.1.3.4"),
    ("ls: cannot access '/mnt/ckpt': Stale file handle", "file-system", "/mnt/ckpt: Stale file handle"),
    ("ssh: connect to host n7 port 22: No route to host", "no-answer", "n7"),
    (
        "--- n7 (Lid 12) ibping statistics ---\n10 packets transmitted, 0 received, 100% packet loss, time 10000 ms",
        "mad-unanswered", "n7 (Lid 12)",
    ),
    ("10 packets transmitted, 7 received, 30% packet loss, time 9200ms", "answers-lost", "30% packet loss"),
    ("RTNETLINK answers: Network is unreachable", "no-route", "Network is unreachable"),
    ('Cannot find device "ens1f0np0"', "interface-missing", "ens1f0np0"),
    ("Cannot get device settings: No such device", "interface-missing", "No such device"),
    ("RTNETLINK answers: Operation not permitted", "no-rights", "Operation not permitted"),
    ("Cannot get device pause settings: Operation not supported", "setting-refused", "Operation not supported"),
    ("Error: Specified qdisc kind is unknown.", "setting-refused", "Specified qdisc kind is"),
    (
        "Failed to initialize NVML: GPU access blocked by the operating system",
        "driver-unusable", "GPU access blocked by th",
    ),
    (
        "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make sure that the NVIDIA "
        "Display Driver is properly installed and present in your system.",
        "driver-unusable", "libnvidia-ml.so",
    ),
    ("  GPU 00000000:18:00.0: Unknown Error", "gpu-not-reset", "0000:18:00.0"),
    (
        "Unable to reset this GPU because it's being used by some other process (e.g. CUDA application, graphics "
        "application like X server, monitoring application like other instance of nvidia-smi). Please first kill "
        "all processes using this GPU and all compute applications running in the system (even when they are "
        "running on other GPUs) and then try to reset the GPU again.",
        "gpu-not-reset", "",
    ),
    ("GPU 00000000:5D:00.0 is currently in use by another process.", "gpu-not-reset", "0000:5d:00.0"),
    ("Unable to enable MIG Mode for GPU 00000000:0F:00.0: In use by another client", "mig-refused", "0000:0f:00.0"),
    (
        "Warning: MIG mode is in pending enable state for GPU 00000000:0F:00.0:In use by another client",
        "mig-refused", "0000:0f:00.0",
    ),
    ("Unable to destroy GPU instance ID 1 from GPU 0: In use by another client", "mig-refused", "NVIDIA 0"),
    ("Unable to set persistence mode for GPU 00000000:86:00.0: Unknown Error", "smi-refused", "0000:86:00.0"),
    ("Resetting GPU 00000000:18:00.0 is not supported.", "smi-refused", "0000:18:00.0"),
    (
        "Warning: persistence mode is disabled on device 00000000:86:00.0. See the Known Issues section of the "
        "nvidia-smi(1) man page for more information.",
        "persistence-off", "0000:86:00.0",
    ),
    ("GPU 00000000:3C:00.0: GPU is lost", "gpu-silent", "0000:3c:00.0"),
    ("Failed to get device handle for gpu 3: Unknown Error", "gpu-silent", "NVIDIA 3"),
    ("Error: Unable to connect to host engine. Host engine connection invalid/disconnected.", "dcgm-unreachable", ""),
    (
        "Error: Unable to retrieve NvLink link status from DCGM. Return: The third-party Profiling module "
        "returned an unrecoverable error",
        "dcgm-refused", "",
    ),
    ("Error: Health watches not enabled. Please enable watches.", "dcgm-refused", "Health watches not enabl"),
    ("Error when executing the diagnostic: Nvvs stderr: ", "dcgm-refused", ": Nvvs stderr:"),
    (
        "ERROR: The Nouveau kernel driver is currently in use by your system.  This driver is incompatible with "
        "the NVIDIA driver, and must be disabled before proceeding.",
        "installer-nouveau", "",
    ),
    (
        "ERROR: An NVIDIA kernel module 'nvidia-uvm' appears to be already loaded in your kernel.  This may be "
        "because it is in use (for example, by an X server, a CUDA program, or the NVIDIA Persistence Daemon), "
        "but this may also happen if your kernel was configured without support for module unloading.",
        "driver-in-use", "nvidia-uvm",
    ),
    (
        "ERROR: The kernel module failed to load because it was not signed by a key that is trusted by the "
        "kernel. Please try installing the driver again, and sign the kernel module when prompted to do so.",
        "module-unsigned", "",
    ),
    (
        "ERROR: Unable to find the kernel source tree for the currently running kernel.  Please make sure you "
        "have installed the kernel source files for your kernel and that they are properly configured.",
        "module-not-built", "",
    ),
    (
        "ERROR: Failed to run `/usr/sbin/dkms build -m nvidia -v 580.65.06 -k 5.15.0-122-generic`:",
        "module-not-built", "5.15.0-122-generic",
    ),
    (
        "depmod: ERROR: could not open directory /lib/modules/6.8.0-45-generic: No such file or directory",
        "module-not-built", "/lib/modules/6.8.0-45-ge",
    ),
    (
        "ERROR: You do not appear to have an NVIDIA GPU supported by the 580.65.06 NVIDIA Linux graphics driver "
        "installed in this system.",
        "driver-unsupported", "580.65.06",
    ),
    (
        "insmod: ERROR: could not insert module nvidia.ko: Unknown symbol in module",
        "module-refused", "nvidia.ko: Unknown symbo",
    ),
    (
        "ERROR: Unable to load the kernel module 'nvidia.ko'.  This happens most frequently when this kernel "
        "module was built against the wrong or improperly configured kernel sources, with a version of gcc that "
        "differs from the one used to build the target kernel, or if another driver, such as nouveau, is present "
        "and prevents the NVIDIA kernel module from obtaining ownership of the NVIDIA device(s), or no NVIDIA "
        "device installed in this system is supported by this NVIDIA Linux graphics driver release.",
        "module-refused", "nvidia.ko",
    ),
    (
        "ERROR: Installation has failed.  Please see the file '/var/log/nvidia-installer.log' for details.  You "
        "may find suggestions on fixing installation problems in the README available on the Linux driver "
        "download page at www.nvidia.com.",
        "installer-failed", "/var/log/nvidia-installe",
    ),
    ("error opening driver (errno=2/No such file or directory)", "gdrcopy-unloaded", "2/No such file or direct"),
    ("ERR:  gdrdrv is too old and does not support the requested feature", "gdrcopy-old", ""),
    ("error 22(22) while mapping handle 0", "gdrcopy-pages", ""),
    ("cuFile driver initialization failed: nvidia-fs driver is not loaded", "gds-unloaded", ""),
    (
        "ERROR cufio:199 cuFileHandleRegister GDS not supported or disabled by config, using cuFile posix "
        "read/write with compat mode enabled",
        "gds-file", "",
    ),
    ("cuFileBufRegister error: device pointer map failed", "gds-file", "device pointer map faile"),
    ("cudaErrorContained: Invalid access of peer GPU memory over nvlink or a hardware error", "cuda-contained", ""),
    ("[CUDA_ERROR_SYSTEM_NOT_READY] system not yet initialized in expression cuInit(0) in main", "cuda-not-ready", ""),
    ("CUDA driver initialization failed, you might not have a CUDA gpu.", "cuda-no-device", ""),
    ("[NVML_ERROR: [Driver Not Loaded]] in expression nvmlInit()", "cuda-no-driver", ""),
    ("IMEX driver: failed to get channel /dev/nvidia-caps-imex-channels/channel0", "cuda-shared", ""),
    ("CUDA error: peer access is not supported between these two devices", "cuda-peer", ""),
    ("cudaErrorMpsConnectionFailed", "cuda-mps", "ConnectionFailed"),
    ("hipErrorNoBinaryForGpu: Unable to find code object for all current devices!", "cuda-image", ""),
    ("cudaErrorExternalDevice: a remote or external device failure", "cuda-external", ""),
    ("CUDA failure 'OS call failed or operation not supported on this OS'", "cuda-unknown", ""),
    ("CUDA error: an illegal memory access was encountered", "cuda-program", ""),
    (
        "amdsmi.amdsmi_exception.AmdSmiLibraryException: Error code: 34 | AMDSMI_STATUS_DRIVER_NOT_LOADED",
        "amd-no-driver", "",
    ),
    ("Unable to open /dev/kfd read-write: Permission denied", "amd-no-rights", ""),
    ("Unable to open /dev/kfd read-write: Invalid argument", "amd-kfd-refused", "Invalid argument"),
    (
        "Unable to open /dev/kfd read-write: No such file or directory",
        "amd-not-passed", "No such file or directory",
    ),
    ("HW Exception by GPU node-3 (Agent handle: 0x55) reason :ECC", "amd-uncorrectable", "ECC"),
    ("HW Exception by GPU node-1 (Agent handle: 0x55) reason :GPU Hang", "amd-hang", "node-1"),
    (
        "Memory access fault by GPU node-4 (Agent handle: 0x55) on address 0x7f00. Reason: Page not present or "
        "supervisor privilege.",
        "amd-fault", "node-4",
    ),
    (
        "hsa api call failure at: /src/rocminfo.cc:1219\nCall returned HSA_STATUS_ERROR_OUT_OF_RESOURCES: The "
        "runtime failed to allocate the necessary resources.",
        "amd-resources", "OUT_OF_RESOURCES",
    ),
    ("    MEMORY_PARTITION: [AMDSMI_STATUS_AMDGPU_RESTART_ERR] Could not restart", "amd-restart", "AMDGPU_RESTART_ERR"),
    ("error code: 56 | AMDSMI_STATUS_CORRUPTED_EEPROM - EEPROM is corrupted", "amd-page-list", "CORRUPTED_EEPROM"),
    ("GPU 4: AMDSMI_STATUS_TIMEOUT - timeout in API call", "amd-unanswered", "AMDSMI_STATUS_TIMEOUT"),
    ("RSMI_STATUS_BUSY: Device or resource busy", "amd-setting-busy", "RSMI_STATUS_BUSY"),
    ("F0203 5 amdgpu.go:151] amdgpu driver unavailable. exiting with exit code 2", "amd-no-driver", ""),
    ("[2026-01-12T16:24:01] warning: The following autodetected GPUs are being ignored:", "slurm-gres", ""),
    ("hipErrorNoDevice: no ROCm-capable device is detected", "hip-no-device", ""),
    ("synStatus 26 [Generic failure]. Device not acquired", "gaudi-device", "26 [Generic failure]"),
    ("HCL error: Port 3 is down", "gaudi-port", "Port 3 is down"),
    ("E19999: Inner Error! HBM uncorrectable", "npu-memory", ""),
    ("aclrtSetDevice failed, error code 507033", "npu-device", "507033"),
    ("[ERROR] drv load failed: drvRet=87", "npu-device", "87"),
    ("Failed to get device health. ret is -8007", "npu-device", "-8007"),
    (
        "EJ0001: Failed to initialize the HCCP process. Reason: Maybe the last training process is running.",
        "npu-busy", "",
    ),
    ("[NLA 0] Uncorrectable HBM error", "neuron-memory", ""),
    ("NRT_EXEC_HW_ERR_COLLECTIVES", "neuron-hardware", "COLLECTIVES"),
    ("No neuron device found", "neuron-no-driver", ""),
    ("nrt: NRT_INIT failed: device 3 is not available", "neuron-busy", ""),
    (
        "ERROR TDRV:exec_consume_infer_status_notifications Missing infer_status notification: (end:4)",
        "neuron-hang", "",
    ),
    ("Detected 3 volatile double-bit ECC error(s) in GPU 4.", "dcgm-memory", "NVIDIA 4"),
    ("GPU 3 had uncorrectable memory errors and row remapping failed.", "dcgm-memory", "NVIDIA 3"),
    (
        "An excess of 3 retired pages due to DBEs have been detected and more than one page has been retired due "
        "to DBEs in the past week in GPU 4.",
        "dcgm-memory", "NVIDIA 4",
    ),
    ("Detected 2 ecc_dbe_volatile_total for GPU 6", "dcgm-memory", "NVIDIA 6"),
    ("Detected a miscompare failure in the L1 cache.", "dcgm-memory", ""),
    ("GPU 3 had uncorrectable memory errors and 4 rows were remapped", "dcgm-memory-pending", "NVIDIA 3"),
    ("A pending retired page has been detected in GPU 3.", "dcgm-memory-pending", "NVIDIA 3"),
    ("ECC memory for GPU 3 is in a pending state.", "dcgm-memory-pending", "NVIDIA 3"),
    ("GPU 3's NvLink link 4 is currently down", "dcgm-link", "NVIDIA 3"),
    ("Detected 3 replay NvLink errors on GPU 4's NVLink which exceeds threshold of 5", "dcgm-link", "NVIDIA 4"),
    ("Detected effective BER 2.00e-07 exceeds minimum threshold on GPU 3's NVLink.", "dcgm-link", "NVIDIA 3"),
    (
        "23.50 replay NvLink errors found occuring per second on GPU 3, exceeding the limit of 100 per second.",
        "dcgm-link", "NVIDIA 3",
    ),
    ("Only 3 NvLinks are up out of the expected 4", "dcgm-link", "Only 3 NvLinks are up ou"),
    ("Detected fatal NvSwitch SXID 20034", "dcgm-switch", "SXID 20034"),
    ("Detected fatal errors on NvSwitch 3 link 4", "dcgm-switch", "fatal errors on NvSwitch"),
    ("Detected more than 3 PCIe replays per minute for GPU 4 : 5", "dcgm-pcie", "NVIDIA 4"),
    (
        "GPU 3 is running at PCI link generation 4, which is below the minimum allowed link generation of 5 "
        "(parameter 'replay')",
        "dcgm-pcie", "NVIDIA 3",
    ),
    (
        "Bandwidth of GPU 3 in direction replay of 23.50 did not exceed minimum required bandwidth of 23.50.",
        "dcgm-pcie", "NVIDIA 3",
    ),
    ("Latency type replay of GPU 3 value 23.50 exceeded maximum allowed latency of 23.50.", "dcgm-pcie", "NVIDIA 3"),
    ("GPU 3 was unsuccessfully written to by GPU 4 in a peer-to-peer test: replay", "dcgm-peer", "NVIDIA 3"),
    ("Detected clocks event due to thermal violation in GPU 3.", "dcgm-hot", "NVIDIA 3"),
    (
        "Message:ErrorCode:GPU_TEMP_HW_SLOWDOWN_VIOLATION GPU 3 thermal margin 4°C below HW slowdown T.Limit",
        "dcgm-hot", "NVIDIA 3",
    ),
    (
        '"message":"GPU had an uncontained error (XID 95) Drain it","errorCode":["DCGM_FR_UNCONTAINED_ERROR"],'
        '"entitiesImpacted":[{"entityType":"GPU","entityValue":"5"},{"entityType":"PCI"',
        "dcgm-memory", "NVIDIA 5",
    ),
    ("ErrorCode:DCGM_FR_IMEX_UNHEALTHY GPU:2 IMEX daemon status is -3 (not READY)", "imex-unready", "-3"),
    ("IMEX domain status is -5 (not UP)", "imex-unready", "-5 (not UP)"),
    ("pynvml.NVMLError_GpuIsLost: GPU is lost", "nvml-lost", ""),
    ("Failed to display compute instances: Insufficient Permissions", "smi-refused", "display compute"),
    ("There were thermal violations totaling 23.50 seconds for GPU 3", "dcgm-hot", "NVIDIA 3"),
    (
        "Clocks event for GPU 3 because of clocks event starting 23.50 seconds into the test. replay",
        "dcgm-hot", "NVIDIA 3",
    ),
    (
        "Temperature 3 of replay 4 exceeded user-specified maximum allowed temperature 5",
        "dcgm-hot", "Temperature 3 of replay",
    ),
    ("Max stress level of 23.50 did not reach desired stress level of 23.50 for GPU 3", "dcgm-slow", "NVIDIA 3"),
    (
        "GPU 3 only achieved a memory bandwidth of 23.50 GB/s, failing to meet 23.50 GB/s for test 4",
        "dcgm-slow", "NVIDIA 3",
    ),
    (
        "Enforced power limit on GPU 3 set to 23.50, which is too low to attempt to achieve target power 23.50",
        "dcgm-slow", "NVIDIA 3",
    ),
    ("Cannot reliably read the power usage for GPU 3.", "dcgm-unreadable", "NVIDIA 3"),
    ("Unable to find a corresponding CUDA device for GPU 3: 'replay'", "dcgm-unreadable", "NVIDIA 3"),
    ("Cuda GPU 3 is no longer bound to a CUDA context...Aborting", "dcgm-unreadable", "3"),
    ("The number of devices NVML returns is different than the number of devices in /dev.", "dcgm-unreadable", ""),
    ("GPU 3 requires a reset to recover from a fault. Recovery action: 4 (GPU_RESET).", "dcgm-recovery", "NVIDIA 3"),
    ("GPU 3 has fallen off the bus", "gpu-off-bus", "NVIDIA 3"),
    (
        "Fabric Manager (Cluster UUID: 0a1b2c3d-0000, Clique ID: 7, Health Mask: 0x2): Route unhealthy.",
        "fabric-state", "Route unhealthy.",
    ),
    ("Detected 41 pcie_replay_counter for GPU 1", "dcgm-pcie", "NVIDIA 1"),
    ("Detected 12 thermal_violation for GPU 4", "dcgm-field", "NVIDIA 4"),
    (
        "replay met or exceeded the threshold of 3 per second: 4 at 23.50 seconds into the test.",
        "dcgm-field", "replay met or exceeded t",
    ),
    ("A corrupt InfoROM has been detected in GPU 3.", "inforom", "NVIDIA 3"),
    ("Error calling NVML API replay: replay", "dcgm-unreadable", "replay: replay"),
    ("More than 3 single-bit ECC error(s) detected in GPU 4 Volatile SBEs: 5", "dcgm-memory-pending", "NVIDIA 4"),
    ("Found 3 NaN-value memory elements on GPU 4", "dcgm-slow", "NVIDIA 4"),
    ("Persistence mode for GPU 3 is disabled.", "dcgm-settings", "NVIDIA 3"),
    ("Found driver on the denylist: replay", "dcgm-settings", "replay"),
    ("XID error 79 has violated policy manager values.", "metric-xid", "79"),
    (
        "nvidia-container-cli: mount error: failed to add device rules: unable to find any existing device "
        "filters attached to the cgroup: bpf_prog_query(BPF_CGROUP_DEVICE) failed: operation not permitted: unknown.",
        "container-cgroup-access", "mount error: failed to a",
    ),
    (
        "nvidia-container-cli: mount error: file creation failed: "
        "/var/lib/docker/overlay2/ab/merged/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1: file exists: unknown.",
        "container-image-files", "mount error: file creati",
    ),
    (
        "nvidia-container-cli: detection error: nvml error: unknown error: unknown.",
        "container-nvml", "detection error: nvml er",
    ),
    (
        "nvidia-container-cli: ldcache error: open failed: /sbin/ldconfig.real: no such file or directory: unknown.",
        "container-setup", "ldcache error: open fail",
    ),
    (
        'time="2026-03-03T04:05:06Z" level=error msg="failed to create NVIDIA Container Runtime: failed to '
        'construct OCI spec modifier: requirements not met: unsatisfied condition: brand=tesla"',
        "container-setup", "failed to construct OCI",
    ),
    (
        'time="2026-03-03T04:05:06Z" level=error msg="Failed to create CDI spec: failed to generate CDI spec: '
        'failed to create device CDI specs: failed to initialize NVML: ERROR_LIBRARY_NOT_FOUND"',
        "container-cdi-spec", "ERROR_LIBRARY_NOT_FOUND",
    ),
    (
        'time="2026-03-03T04:05:06Z" level=error msg="error running [create-symlinks]: failed to get device '
        'minors: error opening MIG minors file: open /proc/driver/nvidia-caps/mig-minors: no such file or directory"',
        "container-cdi-spec", "/proc/driver/nvidia-caps",
    ),
    ("CDI container edits did not apply -- is CDI enabled in your container runtime?", "container-cdi-spec", ""),
    (
        "  Warning  UnexpectedAdmissionError  9s  kubelet  Allocate failed due to no healthy devices present; "
        "cannot allocate unhealthy devices nvidia.com/gpu, which is unexpected",
        "kube-no-healthy", "nvidia.com/gpu",
    ),
    ("E0303 04:05:06.000000       1 factory.go:115] Incompatible strategy detected auto", "plugin-no-driver", ""),
    (
        "E0303 04:05:06.000000       1 main.go:160] error starting plugins: error creating plugin manager: "
        "unable to create plugin manager: invalid device discovery strategy",
        "plugin-failed", "error creating plugin ma",
    ),
    (
        "W0303 04:05:06.000000       1 health.go:64] Failed to start health check: error running health check: "
        "Unknown Error; continuing with health checks disabled",
        "plugin-unwatched", "error running health che",
    ),
    (
        "W0303 04:05:06.000000       1 mig-strategy.go:100] all devices on the node must be configured with the "
        "same migEnabled value",
        "mig-refused", "all devices on the node",
    ),
    (
        "error creating MIG device: error creating GPU instance for '1g.12gb': Insufficient Resources",
        "mig-refused", "error creating GPU insta",
    ),
    (
        'time="2026-03-03T04:05:06Z" level=fatal msg="error validating nvidia-peermem driver installation: '
        'nvidia-peermem driver is not ready"',
        "operator-failed", "error validating nvidia-",
    ),
    ("failed to validate the driver, retrying after 5 seconds", "operator-waits", ""),
    ("MOFED driver failed: mlx5_core is in use, cannot unload", "stack-failed", ""),
    (
        '"msg"="Reconciler error" "error"="OFED driver image not found for kernel 6.8.0-45-generic"',
        "stack-modules", "6.8.0-45-generic",
    ),
    ("[22-Feb-26_04:05:06] FATAL: Could not load mlx5_core", "stack-failed", "mlx5_core"),
    (
        'GPU "0000:3b:00.0" is bound to "nouveau" driver, expected "nvidia" or "vfio-pci"',
        "gpu-driver-other", "0000:3b:00.0",
    ),
    (
        "E0203 04:05:06.1 9 utils.go:2] SyncNodeState(): fail to configure sriov interface 0000:5e:00.0: write "
        "/sys/bus/pci/devices/0000:5e:00.0/sriov_numvfs: cannot allocate memory",
        "sriov-sync", "0000:5e:00.0",
    ),
    (
        "E0303 04:05:06.000000 1 sriov-network-config-daemon: SriovNetworkNodePolicy apply failed: device "
        "0000:3b:00.0 not found",
        "sriov-sync", "device 0000:3b:00.0 not",
    ),
    ("Fail to configure sriov; error =  Link not found", "sriov-sync", "Link not found"),
    (
        'E0301 08:00:01.1 77 x.go:9] "Failed to prepare" err="DRA driver compute-domain.nvidia.com is not registered"',
        "dra-missing", "compute-domain.nvidia.com",
    ),
    (
        "collector: b\"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure\"",
        "driver-unreachable", "",
    ),
    ("Error: EFA libfabric provider not detected.", "efa-no-device", ""),
    (
        "dcmi model initialized failed, because the device is used. ret is -8020",
        "npu-in-use", "the device is used",
    ),
    ("nrtd[77]: [hal] request seq: 4, cmd: 1 timed out", "neuron-hang", "request seq: 4, cmd: 1"),
    (
        "  Warning  RdmaLinkDown   2m1s (x9 over 30m)  link-checker   RDMA interface mlx5_4 is down",
        "kube-event", "RDMA interface mlx5_4 is down",
    ),
    (
        "  message: 'state-OFED: pod mofed-ubuntu24.04-x1 on node w4 is not ready: container x: CrashLoopBackOff'",
        "kube-pod", "mofed-ubuntu24.04-x1 on node w4 is not ready: container x: CrashLoopBackOff",
    ),
    (
        "cxl_aer_uncorrectable_error: memdev=mem3 host=0000:e4:00.0 serial=7: status: 'Poison Received'",
        "cxl-error", "Poison Received",
    ),
    (
        "cxl region: create_region: region2: failed to set target1 to mem5",
        "cxl-refused", "region2: failed to set target1",
    ),
    ("insufficient unused quota for nvidia.com/gpu in flavor h200, 4 more needed", "kube-free", "nvidia.com/gpu"),
    ("4711          NODE_FAIL      0:0          w[03-06]", "slurm-node-fail", "w[03-06]"),
    ('            "Code": "instance-retirement",', "cloud-event", "instance-retirement"),
    ('      "EventType": "Redeploy",', "cloud-event", "Redeploy"),
    ("systemevent-17-9 compute.instances.hostError  europe-west4-b/instances/w7  200 DONE", "cloud-host", "w7"),
    ("0/3 nodes are available: 3 Insufficient rdma/hca_shared_a.", "kube-free", "rdma/hca_shared_a"),
    (
        "cxl_poison: memdev=mem3 host=0000:e4:00.0 serial=7 trace_type=List hpa=ffff dpa=0x1f40 dpa_length=0x40",
        "cxl-poison", "0x1f40",
    ),
    ("salloc: Prolog failure on node k3-6", "slurm-prolog", "k3-6"),
    ("slurmstepd: error: Prolog hung on node w7", "slurm-prolog", "w7"),
    ("Found XID errors: 63", "check-xid", ""),
    ("Fail to config vfs for ndev = ens3f0np0", "sriov-sync", ""),
    (
        "  Warning  FailedCreatePodSandBox  5s  kubelet  Failed to create pod sandbox: rpc error: code = Unknown "
        'desc = failed to setup network for sandbox "ab": plugin type="multus" name="multus-cni-network" failed '
        '(add): [ml/train-0:rail3]: error adding container to network "rail3": SRIOV-CNI failed to load netconf: '
        "LoadConf(): VF pci addr is required",
        "no-vf", "",
    ),
    ("ib-kubernetes: failed to connect to UFM: 401", "ib-guid-manager", "failed to connect to UFM"),
    (
        "E0303 04:05:06.000000       1 nvlib.go:301] NVLink fabric registration error (device 2/GPU-0a): "
        "status=ERROR_UNKNOWN, refusing to start",
        "fabric-refused", "GPU-0a",
    ),
    (
        'E0303 04:05:06.000000       1 device_state.go:512] "error preparing devices" err="ComputeDomain not '
        'ready: current node not ready in ComputeDomain"',
        "imex-waits", "",
    ),
    (
        'F0303 04:05:06.000000       1 main.go:210] error (re)starting IMEX daemon: exec: "nvidia-imex": '
        "executable file not found in $PATH",
        "imex-missing", "exec:",
    ),
    ("Unable to connect to IMEX: UNAVAILABLE", "imex-domain", ""),
    (
        "Error: driver version validation failed: IMEXDaemonsWithDNSNames feature requires GPU driver version >= "
        "570.158.01, but found 570.86.15",
        "driver-too-old", "570.86.15",
    ),
    (
        "device(s) flapping between ACTIVE<>DOWN: mlx5_2 port 1 down since 2026-03-03T04:05:06Z (and flapped "
        "back to active)",
        "port-dropped", "mlx5_2",
    ),
    (
        "ERROR: ✘ component infiniband: only 7 port(s) are active and >=400 Gb/s, expect >=8 port(s); 1 "
        "device(s) physical state Disabled (mlx5_3)",
        "port-dropped", "only 7 port(s) are activ",
    ),
    ("nvidia gpu count mismatch (found 7, expected 8)", "gpu-count", "found 7, expected 8"),
    ("GPU-0a1b2c3d needs reset (detected pending row remapping)", "dcgm-memory-pending", "GPU-0a1b2c3d"),
    (
        "0000:1b:00.0 qualifies for RMA (row remapping failed, remapped due to 12 uncorrectable error(s))",
        "dcgm-memory", "0000:1b:00.0",
    ),
    ("GPU GPU-0a: SRAM uncorrected 4 errors, total uncorrected 4 errors", "dcgm-memory", "GPU-0a"),
    (
        "NVIDIA H100 80GB HBM3 with unhealthy fabric state: GPU GPU-0a: bandwidth degraded, route unhealthy",
        "fabric-state", "GPU-0a",
    ),
    ("fabric manager found but not active", "fabric-manager-off", ""),
    (
        "nvlink threshold violated: require >=8 GPUs with all links active; got 7",
        "dcgm-link", "require >=8 GPUs with al",
    ),
    (
        "GPU temperature anomalies detected: GPU-0a current temperature is 91 °C exceeding the threshold 87 °C",
        "dcgm-hot", "GPU-0a",
    ),
    (
        "hw slowdown events frequency per minute 1.20 (total events per minute count 12) exceeded threshold 0.60 "
        "for the last 10m0s",
        "dcgm-hot", "hw slowdown events frequ",
    ),
    ("ibcore is not using peermem module", "peermem-unused", ""),
    ("SXID 20034(LTSSM Fault Up) detected on PCI:0000:c1:00.0", "metric-sxid", "20034"),
    ("gn12 batch* drained 64 gres/gpu count reported lower than configured (3 < 4)", "slurm-gpus", "3 < 4"),
    ("mc1: csrow2: CPU0_MC1_DIMM#0: 5120 Corrected Errors", "edac-corrected", "5120 Corrected Errors"),
    ("CPU0_MC1_DIMM#0\t5120\t0", "edac-corrected", "5120"),
    (
        "[2026-03-03T04:05:06.123] error: _foreach_slurm_conf: gres/gpu count reported lower than configured (7 < 8)",
        "slurm-gpus", "7 < 8",
    ),
    (
        "slurmd: error: Node configuration differs from hardware: CPUs=192:192(hw) Boards=1:1(hw) "
        "SocketsPerBoard=2:2(hw) CoresPerSocket=96:48(hw) ThreadsPerCore=1:2(hw)",
        "slurm-hardware", "CPUs=192:192(hw) Boards=",
    ),
    (
        "[2026-03-03T04:05:06.123] error: Node n7 has low real_memory size (1031000 < 2063000)",
        "slurm-hardware", "low real_memory size (10",
    ),
    (
        "[2026-03-03T04:05:06.123] error: This GPU specified in [slurm|gres].conf has mismatching Cores or Links "
        "from the device found on the system. Ignoring it.",
        "slurm-gres", "",
    ),
    ("slurmd: fatal: gres.conf duplicate records for Name=gpu File=/dev/nvidia2", "slurm-gres", ""),
    (
        "[2026-03-03T04:05:06.123] error: Failed to initialize NVML: Driver/library version mismatch",
        "slurm-gpu-lost", "Driver/library version m",
    ),
    (
        "[2026-03-03T04:05:06.123] error: *** STEP 812.0 ON n7 CANCELLED AT 2026-03-03T04:05:06 DUE TO NODE "
        "FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***",
        "slurm-silent", "",
    ),
    (
        "[2026-03-03T04:05:06.123] error: Node n7 unexpectedly rebooted boot_time=1772510706 last response=1772510000",
        "slurm-rebooted", "n7",
    ),
    (
        "[2026-03-03T04:05:06.123] error: node n7: Prolog or job env setup failure on node n7, draining the node",
        "slurm-prolog", "n7",
    ),
    (
        "2026-03-03 04:05:06.123 [1510] [328] CRITICAL [Hardware] IBPort [default(1)/leaf3 / 12] [dev_id: e41d] "
        "[dest: n7]: Link went down: (leaf3:12)e41d-(n7 mlx5_3:1)b83f, cable S/N: MT2231",
        "ufm-link", "Link went down: (leaf3:1",
    ),
    (
        "2026-03-03 04:05:06.123 [110] [64] WARNING [Communication_Error] Switch [leaf3] [dest: 9]: Symbol error "
        "counter rate threshold exceeded. Threshold is 200, received value is 2210",
        "ufm-link", "Symbol error counter rat",
    ),
    (
        "2026-03-03 04:05:06.123 [1] [907] CRITICAL [Hardware] Switch [leaf3]: Switch is Down",
        "ufm-node", "Switch [leaf3]: Switch i",
    ),
    ("[702] WARNING Duplicated GUIDs detected", "ib-duplicate", "Duplicated GUIDs detecte"),
    (
        '"MessageId": "ResourceEvent.1.0.ResourceErrorsDetected", "Message": "The resource property GPU_SXM_3 '
        "has detected errors of type 'GPU Fallen off the bus'.\", \"Severity\": \"Critical\"",
        "bmc-device", "GPU_SXM_3",
    ),
    (
        '"MessageId": "ResourceEvent.1.0.ResourceErrorThresholdExceeded", "Message": "The resource property '
        'NVLink_3 has exceeded error threshold"',
        "bmc-device", "The resource property NV",
    ),
    (
        '"MessageId": "OpenBMC.0.4.SensorThresholdCriticalHighGoingHigh", "Message": "HGX_GPU_SXM_3_TEMP_0 '
        'sensor crossed a critical high threshold going high.", "Severity": "Critical"',
        "bmc-temperature", "HGX_GPU_SXM_3_TEMP_0",
    ),
    (
        "\"MessageId\": \"Update.1.0.TransferFailed\", \"Message\": \"Transfer of image 'HGX_FW_GPU_3' to "
        "'HGX_FW_GPU_3' failed.\", \"Severity\": \"Critical\"",
        "bmc-firmware", "HGX_FW_GPU_3",
    ),
    ('"LeakDetector_0 leak detected", "Severity": "Critical"', "bmc-leak", "LeakDetector_0 leak dete"),
    ("Error: Unable to establish IPMI v2 / RMCP+ session", "bmc-unreachable", ""),
    (
        "rasdaemon[900]:            <...>-123   [000]  0.000001: mc_event: 2026-03-03 04:05:06 +0000 1 "
        "Uncorrected error: memory read on CPU_SrcID#0_MC#1_Chan#0_DIMM#0 (mc: 1 location: 0:0 address: 0x1f00 "
        "grain: 5)",
        "ras-memory", "1 Uncorrected error: mem",
    ),
    (
        "\tUncorrected on DIMM Label(s): 'CPU_SrcID#0_MC#1_Chan#0_DIMM#0' location: 1:0:0:-1 errors: 2",
        "ras-memory", "Uncorrected on DIMM Label",
    ),
    ("\t3 Uncorrected (Fatal) errors: Malformed TLP", "ras-pcie", "3 Uncorrected (Fatal)"),
    (
        "rasdaemon[900]: <...>-12 [001] 0.00: aer_event: 2026-03-03 04:05:06 +0000 0000:3b:00.0 Uncorrected "
        "(Fatal), Completion Timeout, TLP Header={ 1,2,3,4 }",
        "ras-pcie", "0000:3b:00.0",
    ),
    (
        "rasdaemon[900]: mce_record: 2026-03-03 04:05:06 +0000 bank=4, status= be00000000800400, MEMORY "
        "CONTROLLER RD_CHANNEL0_ERR Transaction: Memory read error, Uncorrected error",
        "ras-cpu", "Uncorrected error",
    ),
    ("rasdaemon[900]: Offlining page at 0x12345000 failed", "ras-memory", "0x12345000"),
    ("libibverbs: Warning: fork()-safety requested but init failed", "unexplained-line", "libibverbs: Warning: for"),
    ("poll CQ failed -1", "unexplained-line", "poll CQ failed"),
    ("n7: Test CUDA failure common.cu:1032 'out of memory'", "unexplained-line", "CUDA failure common.cu:1"),
    ("GPU 6 trains at x8 (expected x16)", "stated-link", "NVIDIA 6"),
    ("GPU 7 has only x4 of x16", "stated-link", "NVIDIA 7"),
    (
        'the slot has "LnkSta: Speed 32GT/s (ok), Width x8 (downgraded)"',
        "stated-link", "Speed 32GT/s (ok), Width x8 (downgraded)",
    ),
    ("mlx5_4 negotiated Gen3 x16 instead of Gen5 x16", "stated-link", "mlx5_4"),
    ("0000:5e:00.0 stays at gen 1 x16 under full load", "stated-link", "0000:5e:00.0"),
    ("Confidential Compute GPUs Ready state: not-ready", "cc-not-ready", "not-ready"),
    (
        '{"level":"warn","msg":"fabric state is not healthy","reason":"GPU GPU-1a2b3c4d-0001: state=Not Supported"}',
        "fabric-state", "GPU-1a2b3c4d-0001",
    ),
    ("32766  Default  70           DEGRADED_BANDWIDTH adaptive_bandwidth 1024", "fabric-partition", "DEGRADED"),
    (
        "libibverbs: Warning: couldn't load driver 'libbnxt_re-rdmav34.so': cannot open",
        "verbs-no-provider", "libbnxt_re",
    ),
    (
        "libibverbs: Warning: no userspace device-specific driver found for /sys/class/infiniband_verbs/uverbs3",
        "verbs-no-provider", "uverbs3",
    ),
    ("Fatal error:  device '*': sys files not found (/sys/class/infiniband/*/ports)", "verbs-no-device", ""),
    ("Failed to open device", "verbs-not-passed", ""),
    (
        "ibpanic: [812] main: stat of IB device 'mlx5_11' failed: No such file or directory",
        "verbs-device-gone", "mlx5_11",
    ),
    (" Unable to create QP.", "perftest-queue", ""),
    ("cma event RDMA_CM_EVENT_ADDR_ERROR, error -19", "rdma-address", "ADDR_ERROR"),
    ("rdma_resolve_addr: No such device", "rdma-address", "No such device"),
    ("cma event RDMA_CM_EVENT_REJECTED, error 8", "rdma-refused", "REJECTED"),
    ("ibping: iberror: failed: can't resolve destination port 12", "mad-unanswered", ""),
    ("[17.2] [n4:81:0]   ib_md.c:11 UCX  DEBUG mlx5_2: cuda GPUDirect RDMA is disabled", "ucx-no-gdr", "mlx5_2"),
    (
        "-E- Cannot open Device: /dev/mst/mt4129_pciconf2. Operation not permitted. MFE_CMDIF_GO_BIT_BUSY",
        "firmware-tool", "pciconf2",
    ),
    (
        "E0102 gpumem_manager.cc:7] Number of GPUs detected in the PCI tree 6 is not equal to the actual "
        "number of GPUs reported by CUDA 8",
        "tcpx-gpus", "6 is not equal",
    ),
    ("gdr_open error: Is gdrdrv driver installed and loaded?", "gdrcopy-unloaded", ""),
    ('GDRCOPY library "libgdrapi.so" unable to open GDR driver, is gdrdrv.ko loaded?', "gdrcopy-unloaded", ""),
    ("file register error: GPUDirect Storage not supported on current file filename:/data/a", "gds-file", ""),
    ("W0102 context.cpp:5] No suitable GID found on rocep7s0/", "gid-none", "rocep7s0"),
    ("E0102 context.cpp:4] Failed to query GID 12 on rocep7s0/: No data available [61]", "gid-none", "rocep7s0"),
    (
        '2025/01/02 error creating new device: "missing RDMA device spec for device 0000:9a:00.0, RDMA device '
        '\\"umad\\" not found"',
        "plugin-no-umad", "umad",
    ),
    ('desc = failed: infiniBand SRI-OV CNI failed to configure VF "VF ib4 GUID is not valid"', "cni-no-guid", "ib4"),
    (
        'network: [ml/train-0:rail3]: error adding container to network "rail3": no VF of the pool is free',
        "cni-failed", "no VF of the pool is free",
    ),
    ("  lastSyncError: cannot change the e-switch mode", "sriov-sync", "cannot change"),
    ("Loading Mellanox MLX5_IB HCA driver:                       [FAILED]", "stack-failed", "MLX5_IB"),
    ("Loading HCA driver and Access Layer:                       [FAILED]", "stack-failed", ""),
    ("No OFED driver found for kernel 5.15.0-122-generic", "stack-modules", "5.15.0-122-generic"),
    ("modprobe: FATAL: Module ib_uverbs not found in directory /lib/modules/5.15.0", "module-missing", "ib_uverbs"),
    ("modprobe: FATAL: Module nvidia-peermem not found in directory /lib/modules/6.8.0-41-generic", "module-absent",
     "nvidia-peermem not found in directory /lib/modules/6.8.0-41-generic"),
    ("2024/03/11 08:12:40 Exiting.. can not change : incorrect RDMA subsystem network namespace", "rdma-netns", ""),
    ("From node2-ib (10.4.1.254) icmp_seq=1 Destination Host Unreachable", "no-answer", ""),
    (
        "PING node7-ib (10.4.1.7) 56(84) bytes of data.\nFrom 10.4.1.2 icmp_seq=1 Destination Host Unreachable",
        "no-answer", "node7-ib",
    ),
    ("Failed status transport retry counter exceeded (12) for wr_id 2", "verbs-retries", ""),
    ("  Failed status 10: wr_id 3 syndrom 0x88", "completion-memory", "status 10"),
    ("  Failed status 9: wr_id 0 syndrom 0x8a", "completion-request", "status 9"),
    (
        "[WARN n3 44 poll] CQE error, wr_id=7, status=2 (local QP operation error), opcode=1",
        "completion-local", "local QP",
    ),
    (
        "-E- PSID mismatch. The PSID on flash (DEL0000000004) differs from the PSID in the given image "
        "(MT_0000000838).",
        "firmware-psid", "DEL0000000004",
    ),
    ("Module mlx5_ib does not exist, skipping...      [FAILED]", "stack-modules", "mlx5_ib"),
    (
        "/src/ibrc.cpp:init:18: neither nv_peer_mem, or nvidia_peermem detected. Skipping transport.",
        "gdr-no-peermem", "",
    ),
    ("WARN: device efa_2 is not enumerated as an mlx5 device. Skipping...", "ibgda-failed", "efa_2"),
    ("/src/ibgda.cpp:18: NULL value cannot allocate mlx5dv_devx_uar", "ibgda-failed", ""),
    ("/src/transport.cpp:init:27: init failed for transport: IBGDA", "ibgda-failed", ""),
)  # fmt: skip
CALM: tuple[str, ...] = (  # of healthy machines, or of nothing that a person acts on
    "GPU 0 runs at x16, not x8",
    "If you see GPU 3 at x8 instead of x16, reseat it",
    "GPU 5 was at gen 1 instead of gen 4, and is fixed now",
    "Confidential Compute GPUs Ready state: ready",
    "32766  Default  72           HEALTHY            adaptive_bandwidth",
    "libibverbs: Warning: couldn't stat '/etc/libibverbs.d'.",
    "Failed status 5: wr_id 0 syndrom 0xf9",
    "libibverbs: Warning: couldn't load driver 'libvmw_pvrdma-rdmav34.so': cannot open shared object file",
    "nvidia/580.65.06, 6.8.0-45-generic, x86_64: installed",
    "# Out of bounds values : 0 OK",
    "-I- Links Check finished successfully",
    "RTNETLINK answers: File exists",
    "10 packets transmitted, 10 received, 0% packet loss, time 9200ms",
    "3 packets transmitted, 3 received, 0.00% packet loss",
    "I0303 04:05:06.000000 1 main.go:317] Retrieving plugins.",
    'time="2026-03-03T04:05:06Z" level=info msg="all devices are bound to vfio-pci"',
    "all 8 GPU(s) were checked, no nvlink issue found",
    "nvlink threshold satisfied: require >=8 GPUs with all links active; got 8",
    "nvidia gpu count matching thresholds (8)",
    "8 devices support remapped rows and found no issue",
    "ibcore successfully loaded peermem module",
    "Detected 8 GPUs for GPU nodes",
    "SUBNET UP",
    "rasdaemon[900]: mc_event: 2026-03-03 04:05:06 +0000 1 Corrected error: memory read error on DIMM_A3",
    "rasdaemon[900]: aer_event: 2026-03-03 04:05:06 +0000 0000:3b:00.0 Corrected, Receiver Error",
    "\tCorrected on DIMM Label(s): 'CPU_SrcID#0_MC#1_Chan#0_DIMM#0' location: 1:0:0:-1 errors: 2",
    "\t3 Corrected errors: Bad TLP",
    "2026-03-03 04:05:06.123 [1511] [329] INFO [Fabric_Topology] Link is up: (leaf3:12)",
    "[2026-03-03T04:05:06.123] [812.0] done with job",
    "[2026-03-03T04:05:06.123] _node_config_validate: gres/gpu: count 8 for node n7",
    "The mtu of both ends is 9000, and our RDMA is slow: what can we do?",
    "DCGM initialized",
    "gdr_open succeeded",
    "mlx5: 4 queue pairs created",
    "Successfully ran diagnostic for group.",
    "GPU 3 passed the peer-to-peer test",
    "  Failed status 5: wr_id 0 syndrom 0xf9",
    '  lastSyncError: ""',
    "Port number 1 state is Active",
    "cma event RDMA_CM_EVENT_ESTABLISHED, error 0",
    "We had 'No IB devices found' before the update.",
    "[17.2] [n4:81:0]   ib_md.c:11 UCX  DEBUG mlx5_2: cuda GPUDirect RDMA is enabled",
    "libibverbs: Warning: couldn't load driver 'libvmw_pvrdma-rdmav34.so': cannot open",
    "Loading Mellanox MLX5 HCA driver:                          [  OK  ]",
    "modprobe: FATAL: Module floppy not found in directory /lib/modules/5.15.0",
)
