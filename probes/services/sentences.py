"""What the services of a GPU node write of a fault into their logs and the journal: one row per sentence, with its
source.

The rows are of the same shape as those of the kernel log (`probes/kernel/sentences.py`); `docs/log-sentences.md` is
made of both. Of programs whose source is closed the source is a public thread that quotes the sentence ("thread:").
"""

from __future__ import annotations

from collections.abc import Mapping

from probes.kernel.sentence import BDF, TOOLS, Sentence
from probes.text import lazy_pattern

SERVICE = "service"
MANAGER, IMEX, SUBNET_MANAGER = "nvidia-fabricmanager", "nvidia-imex", "opensm"
COREDUMP = "systemd-coredump"
PERSISTENCED, DCGM, OPENIBD, RSHIM = "nvidia-persistenced", "nvidia-dcgm", "openibd", "rshim"
VGPU = "nvidia-vgpu-mgr"

# The name of a program in the journal -> its service
PROGRAMS: Mapping[str, str] = {
    "nv-fabricmanager": MANAGER,
    "nvidia-fabricmanager": MANAGER,
    "nvidia-fabricmanager-start.sh": MANAGER,
    "nvlsm": MANAGER,
    "nvidia-imex": IMEX,
    "nvidia-persistenced": PERSISTENCED,
    "nv-hostengine": DCGM,
    "nvidia-vgpu-mgr": VGPU,
    "nvidia-vgpud": VGPU,
    "nvidia-gridd": "nvidia-gridd",
    "opensm": SUBNET_MANAGER,
    "OpenSM": SUBNET_MANAGER,
    "openibd": OPENIBD,
    "mlnx_interface_mgr.sh": OPENIBD,
    "rshim": RSHIM,
    "systemd-coredump": COREDUMP,
}
# Units, and how systemd describes them where it leaves the name of the unit out (before version 250)
UNITS: Mapping[str, str] = {
    "nvidia-fabricmanager": MANAGER,
    "nvidia-imex": IMEX,
    "nvidia-persistenced": PERSISTENCED,
    "nvidia-dcgm": DCGM,
    "dcgm": DCGM,
    "nvidia-vgpu-mgr": VGPU,
    "nvidia-vgpud": VGPU,
    "nvidia-gridd": "nvidia-gridd",
    "opensm": SUBNET_MANAGER,
    "opensmd": "opensmd",
    "openibd": OPENIBD,
    "rshim": RSHIM,
    "irqbalance": "irqbalance",
    "NVIDIA fabric manager service": MANAGER,
    "NVIDIA IMEX service": IMEX,
    "NVIDIA Persistence Daemon": PERSISTENCED,
    "NVIDIA DCGM service": DCGM,
    "NVIDIA vGPU Manager Daemon": VGPU,
    "NVIDIA vGPU Daemon": VGPU,
    "NVIDIA Grid Daemon": "nvidia-gridd",
    "openibd - configure Mellanox devices": OPENIBD,
    "rshim driver for BlueField SoC": RSHIM,
    "irqbalance daemon": "irqbalance",
}
LOG_FILES = ("fabricmanager.log", "nvlsm.log", "nvidia-imex.log", "opensm.log", "nv-hostengine.log")  # in /var/log
BEGUN = ("-- Reboot --", "-- Boot ", "Linux version ", "is running with the following configuration options")
NEEDLES = (
    BEGUN[:3]
    + tuple(f" {program}[" for program in PROGRAMS)
    + tuple(needle for name in UNITS for needle in ((f" {name}.",) if " " in name else (f" {name}.service",)))
)  # one of which every line of a service in a log of many programs has

_GPUD = "thread: leptonai/gpud components/accelerator/nvidia/fabric-manager"
_PERSISTENCED_C = "nvidia-persistenced 595.71.05 nvidia-persistenced.c"
_VGPU = "NVIDIA virtual GPU software, release notes (logs of the vGPU manager)"
_OPENSM, _RSHIM_C = "opensm 3.3.24", "rshim-user-space 2.8.2 src"
_SWITCH = rf"on fid \d{{1,5}} on NVSwitch pci bus id {BDF}(?:.{{0,60}}? port (?P<port>\d{{1,4}}))?"


def _row(code: str, module: str, needle: str, pattern: str, source: str) -> Sentence:
    return Sentence(SERVICE, code, module, needle, lazy_pattern(pattern), source)


def _opensm(code: str, needle: str, pattern: str) -> Sentence:
    """Codes of opensm are not unique (those of its performance manager repeat others): the words count, too."""
    return _row(code, SUBNET_MANAGER, needle, pattern, "opensm 5")


SERVICE_SENTENCES: tuple[Sentence, ...] = (
    _row("fm-version", MANAGER, "driver interface version",
         r"fabric manager NVIDIA GPU driver interface version (?P<version>\d[\d.]{1,20}) (?:don|doesn)['’]t match with "
         r"driver version (?P<driver>\d[\d.]{1,20}\d)", "thread: NVIDIA/gpu-operator#544"),
    _row("fm-config", MANAGER, "config file item",
         r"fabric manager config file item:? ?(?P<item>[A-Z_]{2,60}) has an invalid value",
         "thread: siderolabs/extensions#511"),
    _row("no-umad", MANAGER, "ib_umad", r"[Kk]ernel module \"?ib_umad\"? has not been loaded",
         "thread: spectrocloud/CanvOS#700"),
    _row("umad-missing", SUBNET_MANAGER, "ib_umad",  # any program of InfiniBand prints it
         r"can't read ABI version from /sys/class/infiniband_mad.{0,120}is ib_umad module loaded",
         "rdma-core libibumad/umad.c"),
    _row("no-umad", SUBNET_MANAGER, "opening UMAD", r"ERR 5415: Error opening UMAD",
         f"{_OPENSM} libvendor/osm_vendor_ibumad.c"),
    _row("fm-no-switch", MANAGER, "NV_WARN_NOTHING_TO_DO",
         r"query NVSwitch device information from NVSwitch driver failed.{0,80}NV_WARN_NOTHING_TO_DO",
         "thread: NVIDIA/gpu-operator#610"),
    _row("fm-topology", MANAGER, "any supported system topology",
         r"number of NVSwitches don't match with any supported system topology", _GPUD),
    _row("switch-fatal", MANAGER, "NVSwitch fatal error",
         r"detected NVSwitch fatal error (?P<sxid>\d{1,6}) " + _SWITCH, _GPUD),
    _row("switch-error", MANAGER, "NVSwitch non-fatal error",
         r"detected NVSwitch non-fatal error (?P<sxid>\d{1,6}) " + _SWITCH, _GPUD),
    _row("multicast", MANAGER, "in the multicast team",
         r"failed to find the GPU handle \d{1,20} in the multicast team request", "thread: NVIDIA/nccl#1043"),
    _row("pre-nvl5", MANAGER, "Detected Pre-NVL5", r"Detected Pre-NVL5 system", "thread: NVIDIA/nvtrust#128"),
    _row("imex-memory", IMEX, "memory reference", r"Failed to (?:allocate|get new) memory reference",
         "thread: kubernetes-sigs/dra-driver-nvidia-gpu#948"),
    _row("imex-address", IMEX, "No matching network interface",
         r"No matching network interface found for any IP addresses in the node configuration file",
         "thread: kubernetes-sigs/dra-driver-nvidia-gpu#298"),
    _row("sm-second", SUBNET_MANAGER, "another instance of OpenSM",
         r"Perhaps another instance of OpenSM is already running", f"{_OPENSM} opensm/main.c"),
    _row("sm-no-ports", SUBNET_MANAGER, "No local ports", r"No local ports detected!", f"{_OPENSM} opensm/main.c"),
    _row("sm-port-down", SUBNET_MANAGER, "SM port is down", r"\bSM port is down\b",
         f"{_OPENSM} opensm/osm_state_mgr.c"),
    _row("sm-errors", SUBNET_MANAGER, "rrors during initialization", r"\bErrors during initialization\b",
         f"{_OPENSM} opensm/osm_state_mgr.c"),
    _row("sm-key", SUBNET_MANAGER, "non-matching sm_key", r"Found remote SM \(.{1,120}\) with non-matching sm_key",
         f"{_OPENSM} opensm/osm_sminfo_rcv.c"),
    _row("sm-duplicate-guid", SUBNET_MANAGER, "Found duplicated node", r"Found duplicated node\b",
         f"{_OPENSM} opensm/osm_node_info_rcv.c"),
    _row("sm-duplicate-guid", SUBNET_MANAGER, "duplicated guids", r"FATAL: duplicated guids or 12x lane reversal",
         f"{_OPENSM} opensm/osm_node_info_rcv.c"),
    _row("sm-duplicate-guid", SUBNET_MANAGER, "Duplicate Port GUID", r"ERR 0D15: Duplicate Port GUID 0x",
         f"{_OPENSM} opensm/osm_node_info_rcv.c"),
    _row("sm-port-closed", SUBNET_MANAGER, "Unable to open port", r"ERR 5424: Unable to open port 0x",
         f"{_OPENSM} libvendor/osm_vendor_ibumad.c"),
    _row("sm-port-unknown", SUBNET_MANAGER, " is unknown",
         r"ERR 33\d\d: SM port with GUID:(?P<guid>(?:0x)?[0-9a-f]{4,16}) (?:\(.{1,80}\) )?is unknown",
         f"{_OPENSM} opensm/osm_state_mgr.c"),
    _row("sm-routing", SUBNET_MANAGER, "Failed to setup routing engine",
         r"Failed to setup routing engine '(?P<item>[\w-]{1,40})'", f"{_OPENSM} opensm/osm_opensm.c"),
    _row("sm-routing", SUBNET_MANAGER, "falling back to default routing",
         r"(?:Fabric topology is not fat-tree|Failed reading guid files) - falling back to default routing",
         f"{_OPENSM} opensm/osm_ucast_ftree.c"),
    _row("sm-port-removed", SUBNET_MANAGER, "Removed port with GUID",
         r"Removed port with GUID:(?P<guid>0x[0-9a-f]{4,16}) LID range \[\d{1,5}, ?\d{1,5}\] of node:"
         r"(?P<node>\S[^\n]{0,64})",
         f"{_OPENSM} opensm/osm_drop_mgr.c"),
    _row("sm-link-lost", SUBNET_MANAGER, "changed state from",
         r"Switch 0x[0-9a-f]{8,16} (?P<what>\S[^\n]{0,80}? port ?\d{1,3} ?\([^)\n]{1,80}\)) changed state from "
         r"(?:ACTIVE|ARMED) to DOWN", f"{_OPENSM} opensm/osm_port_info_rcv.c"),
    _row("sm-bad-key", SUBNET_MANAGER, "_Key:0x", r"(?P<item>Bad [PQ]_Key:0x[0-9a-f]{1,8})[^\n]{0,20}? from ",
         f"{_OPENSM} opensm/osm_trap_rcv.c"),
    _row("sm-partition-full", SUBNET_MANAGER, "Pkey table is full",
         r"ERR 0512: Failed to set PKey 0x[0-9a-f]{1,4} because Pkey table is full",
         f"{_OPENSM} opensm/osm_pkey_mgr.c"),
    _row("numa-memory", PERSISTENCED, "NUMA: ",
         r"NUMA: (?:Failed to (?:probe memory address|change the state of|set NUMA status)|Changing node\d{1,5} state "
         r"to \w{1,20} failed)", "nvidia-persistenced 595.71.05 nvidia-numa.c"),
    _row("no-devices", PERSISTENCED, "NVIDIA devices",
         r"Failed to query NVIDIA devices\. Please ensure|\bUnable to find any NVIDIA devices", _PERSISTENCED_C),
    _row("library-missing", PERSISTENCED, "libnvidia-cfg", r"Failed to open libnvidia-cfg\.so\S{0,20}: ",
         _PERSISTENCED_C),
    _row("nvml-failed", DCGM, "initialize NVML",
         r"(?:Cannot initialize the hostengine: )?Error: Failed to initialize NVML", "thread: NVIDIA/dcgm-exporter#27"),
    _row("dcgm-failed", DCGM, "start DCGM Server", r"Failed to start DCGM Server(?:: (?P<error>-?\d{1,5}))?",
         "DCGM 4 hostengine/src/main.cpp"),
    _row("dcgm-failed", DCGM, "engine", r"Error: DCGM (?:engine failed to initialize|failed to start embedded engine)",
         "DCGM 4 hostengine/src/main.cpp"),
    _row("dcgm-second", DCGM, "already running with pid", r"Host engine already running with pid \d",
         "DCGM 4 hostengine/src/main.cpp"),
    _row("ofed-load", OPENIBD, "Failed loading kernel module",
         r"Failed loading kernel module (?P<module>\w{1,40}):",
         "openibd of MLNX_OFED 24 (public logs of its container)"),
    _row("ofed-modules", OPENIBD, "belong to kernel",
         r"Module (?P<module>\w{1,40}) belong to kernel which is not a part of MLNX",
         "MLNX_EN 5.8 documentation, installation related issues"),
    _row("rshim-lockdown", RSHIM, "kernel lock-down", r"Need to enable IOMMU/VFIO for kernel lock-down",
         f"{_RSHIM_C}/rshim_pcie.c"),
    _row("rshim-unreadable", RSHIM, "read from rshim", r"\brshim\d{1,3} unable to read from rshim",
         f"{_RSHIM_C}/rshim.c"),
    _row("rshim-unreadable", RSHIM, "map RShim registers", r"\brshim\d{1,3} failed to map RShim registers",
         f"{_RSHIM_C}/rshim_pcie.c"),
    _row("rshim-taken", RSHIM, "another backend", r"\banother backend already attached", f"{_RSHIM_C}/rshim.c"),
    _row("vgpu-versions", VGPU, "Guest/Host drivers", r"Incompatible Guest/Host drivers: (?P<what>[^\n]{4,100})",
         _VGPU),
    _row("vgpu-no-driver", VGPU, "initialize RM client", r"Failed to initialize RM client: (?P<error>0x[0-9a-f]{1,8})",
         "thread: mrzenc/vgpu4nixos#4"),
    _row("vgpu-not-started", VGPU, "init_device_instance failed",
         r": init_device_instance failed(?: for inst \d{1,4} with error \d{1,4} \((?P<what>[^\n)>]{4,80}))?",
         "thread: mbilker/vgpu_unlock-rs#5"),
    _row("vgpu-not-started", VGPU, "nitialization: ", r"Initialization: (?P<what>\w{2,40}) failed", _VGPU),
    _row("vgpu-not-started", VGPU, "failed to start", r"(?:vGPU|plugin) failed to start\b", _VGPU),
    _row("vgpu-unlicensed", "nvidia-gridd", "license",
         r"(?i:failed to (?:acquire|renew|borrow) licen[cs]e|license (?:acquisition|renewal) failed)",
         "NVIDIA virtual GPU software, client licensing user guide"),
    _row("vgpu-unlicensed", VGPU, "license state", r"vGPU license state: Unlicensed \(Restricted\)", _VGPU),
    _row("crashed", COREDUMP, " of user ",
         rf"Process \d{{1,10}} \((?P<task>{TOOLS})\) of user \d{{1,10}} (?:dumped core|terminated abnormally)",
         "systemd coredump/coredump.c"),
    _row("cuda-802", "CUDA", "system not yet initialized",
         r"\b802\b.{0,60}system not yet initialized|system not yet initialized.{0,60}\b802\b"
         r"|(?:^|[:=(\"'`] ?)system not yet initialized\b",
         "CUDA 13 driver_types.h (cudaErrorSystemNotReady)"),
    _opensm("sm-lids-out", "RAN OUT OF LIDS", r"ERR 0307: OPENSM RAN OUT OF LIDS"),
    _opensm(
        "sm-files", "ERR 61",
        r"ERR 61(?:0[178]|1[0-2]): (?P<what>Failed to \w{2,10} the db \w{2,9}|\w{4,6}\(\) failed)",
    ),
    _opensm(
        "sm-files", "ERR 4C0",
        r"ERR 4C0[189A-C]: (?P<what>cannot (?:open file|change access)|\w{4,6}\(\) failed|Failed to rename)",
    ),
    _opensm(
        "sm-noisy-port", "noisy physical port",
        r"(?:Disabling|ERR 3811: Failed to disable) noisy physical port 0x[0-9a-f]{4,16}: lid (?P<lid>\d{1,5}), "
        r"num (?P<port>\d{1,3})",
    ),
    _opensm(
        "sm-noisy-port", "unhealthy physical port",
        r"Marking unhealthy physical port by lid:(?P<lid>\d{1,5}) num:(?P<port>\d{1,3})",
    ),
    _opensm(
        "sm-link-trap", "Received Generic Notice",
        r"Received Generic Notice type:\d{1,3} num:(?:129|130|131) \((?P<what>[^)]{3,60})\).{0,80} from "
        r"LID:(?P<lid>\d{1,5})",
    ),
    _opensm(
        "sm-prefix", "match configured prefix",
        r"ERR 1B4[01]: PortGID subnet prefix (?P<what>0x[0-9a-f]{4,16}) does not match configured prefix",
    ),
    _opensm("sm-key", "our local sm_key", r"ERR 2F18: Got SM .{1,80} that doesn't match our local sm_key"),
    _opensm("sm-key", "authentication failure", r"ERR 2F1[AB]: SMInfo\([GS]ET\) sender .{1,80} authentication failure"),
    _opensm("sm-duplicate-guid", "uplicate ", r"ERR 0D1(?:3|9|C): .{0,120}[Dd]uplicate (?:alias )?port GUID"),
    _opensm("sm-port-closed", "umad_", r"ERR 54(?:16|20|2A|2B|2C): umad_\w{1,24}(?:\(\))? failed"),
    _opensm("sm-port-closed", "requested CA guid", r"ERR 5422: Unable to find requested CA guid"),
    _opensm("sm-port-closed", "IS_SM capmask", r"ERR 5431: setting IS_SM capmask: cannot open file"),
    _opensm("sm-routing", "Not enough VLs", r"ERR AD25: Not enough VLs available"),
    _opensm("sm-routing", "UPDN algorithm", r"disabling UPDN algorithm, no root nodes were found"),
    _opensm(
        "sm-routing", "torus",
        r"ERR 4E(?:48: Too few data VLs|57: build_torus finished with errors|1A: missing fabric)",
    ),
    _opensm("sm-tables", "forwarding table block", r"ERR 0402: Setting forwarding table block \d{1,5} failed"),
    _opensm("sm-tables", "MFT block", r"ERR 0802: Setting MFT block failed"),
    _opensm("sm-tables", "is not up to date", r"ERR 331D: LFT of switch .{1,100} is not up to date"),
    _opensm("sm-group-refused", "ERR 1B", r"ERR 1B(?:1[0-3]|26|3[0-6]): "),
    _opensm(
        "sm-no-answer", "end completed with error",
        r"ERR 54(?:09|10|11): .{0,8}[Ss]end completed with error.{0,160}?(?:\bLID (?P<lid>\d{1,5}))?$",
    ),
    _opensm("sm-no-answer", "MAD completed in error", r"ERR 3113: MAD completed in error \(IB_TIMEOUT\)"),
    _opensm("sm-no-answer", "Timeout while getting attribute", r"ERR 3120: Timeout while getting attribute"),
)  # fmt: skip

# Sentences that end what others stated: the fault is over
RECOVERED: tuple[tuple[str, frozenset[str]], ...] = (
    ("SM port is up", frozenset({"sm-port-down"})),
    ("SUBNET UP", frozenset({"sm-port-down", "sm-errors", "no-umad", "sm-no-answer", "sm-tables"})),
    ("Successfully configured all the available NVSwitches", frozenset({"fm-no-switch", "fm-topology", "fm-version"})),
)
# What a line has that is read of the log of one service
OWN_NEEDLES = (
    *BEGUN,
    *(row.needle for row in SERVICE_SENTENCES),
    *(needle for needle, _ in RECOVERED),
    " systemd[1]: ",
    ".service",
    "Active: ",
    "[ERROR]",
    "[CRITICAL]",
    " ERROR ",
    ": ERR ",
)
