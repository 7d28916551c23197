"""Every command that a live host may be asked to run: whole argument vectors, nothing composed at run time.

All only read. A test holds this list; `LiveHost.run` refuses anything else.
"""

from __future__ import annotations

NVIDIA_SMI = (
    ("nvidia-smi", "-q", "-x"),
    ("nvidia-smi", "-q"),
    ("nvidia-smi", "-L"),
    ("nvidia-smi", "topo", "-m"),
    ("nvidia-smi", "topo", "-p2p", "r"),
    ("nvidia-smi", "topo", "-p2p", "w"),
    ("nvidia-smi", "topo", "-p2p", "n"),
    ("nvidia-smi", "nvlink", "-s"),
    ("nvidia-smi", "nvlink", "-e"),
    ("nvidia-smi", "nvlink", "-c"),
    ("nvidia-smi", "nvlink", "-R"),
)
PCI = (
    ("lspci", "-D", "-nn", "-vvv"),
    ("lspci", "-D", "-nn", "-xxxx"),
)
RDMA = (
    ("ibstat",),
    ("ibstatus",),
    ("ibv_devinfo", "-v"),
    ("rdma", "link"),
    ("ibdev2netdev",),
    ("show_gids",),
)
SYSTEM = (("lsmod",),)
LLDP = (("lldpctl", "-f", "json"),)  # what lldpd heard; nothing is sent
FABRIC = (
    ("nv-fabricmanager", "--version"),
    ("nvidia-imex-ctl", "-q"),  # the state of the local daemon, no other node is asked
)
KERNEL_LOG = (("journalctl", "-k", "-b", "-q", "--no-pager", "-o", "short-iso-precise"),)
# Of this boot and bounded; asked only where one of them is installed
JOURNAL_UNITS = (
    "nvidia-fabricmanager",
    "nvidia-imex",
    "nvidia-persistenced",
    "nvidia-dcgm",
    "opensm",
    "opensmd",
    "openibd",
    "rshim",
)
_UNIT_OPTIONS = tuple(word for unit in JOURNAL_UNITS for word in ("-u", unit))
SERVICE_JOURNAL = (("journalctl", "-b", "-q", "--no-pager", "-o", "short-iso-precise", "-n", "2000", *_UNIT_OPTIONS),)
BOUND_SECONDS = {SERVICE_JOURNAL[0]: 3.0}  # of commands that must end before their probe does

NEURON = (("neuron-ls", "--json-output"),)
AMD_LIBRARY = (("amdsmi",),)  # no program: what the Python library of this name states, as JSON

COMMANDS: tuple[tuple[str, ...], ...] = (
    NVIDIA_SMI + PCI + RDMA + SYSTEM + FABRIC + KERNEL_LOG + SERVICE_JOURNAL + LLDP + NEURON + AMD_LIBRARY
)

# Libraries of these tools ask over netlink, for which the kernel loads ib_core or ib_uverbs where they are not loaded.
CLASSES = {
    "ibstat": "/sys/class/infiniband",
    "ibstatus": "/sys/class/infiniband",
    "ibv_devinfo": "/sys/class/infiniband_verbs",
    "rdma": "/sys/class/infiniband",
    "ibdev2netdev": "/sys/class/infiniband",
    "show_gids": "/sys/class/infiniband",
}

# Never run by us; their outputs are read where a recorded source holds them.
NVIDIA_SMI_SAVED = (("nvidia-smi", "--query-gpu"),)  # any --query-gpu=... with any format
NVIDIA_SMI_TABLE = (("nvidia-smi",),)  # without options: known by what it holds, as people give that name to others
IBV_DEVICES = ("ibv_devices",)
RDMA_SAVED = (("ibv_devinfo",), ("rdma", "link", "show"), ("ibdev2netdev", "-v"), IBV_DEVICES)
RDMA_GUIDS = (
    ("ibv_devices",),
    ("ibstat",),
    ("ibv_devinfo",),
    ("ibv_devinfo", "-v"),
)  # which state a GUID of each device
SYSFS_SAVED = (("sysfs", "files"),)  # no program: files of /sys as grep, head, tail and cat print them
LIMITS_SAVED = (("ulimit", "-a"), ("ulimit", "-l"), ("ulimit", "-Ha"), ("ulimit", "-Sa"))
SHOW_GIDS = ("show_gids",)
IP_LINK_SAVED = (("ip", "-s", "-d", "link"), ("ip", "-d", "link"), ("ip", "link"))  # with addresses, too
SYSTEM_SAVED = (
    ("uname", "-a"),
    ("dmidecode",),
    *IP_LINK_SAVED,
    ("ifconfig",),
    ("node_exporter",),  # of its metrics those of interfaces
)

KERNEL_LOG_SAVED = (
    ("dmesg",),
    ("dmesg", "-T"),
    ("journalctl", "-k", "-b"),
    ("journalctl", "-b"),
    ("journalctl", "-b", "-0"),
    ("journalctl", "--no-pager", "--catalog", "--boot"),
    ("journalctl", "--no-pager", "--boot"),
)

# Of earlier boots, by the number that journalctl gives them
KERNEL_LOG_EARLIER = tuple(
    (*command, f"-{boot}")
    for boot in (1, 2)
    for command in (("journalctl", "-k", "-b"), ("journalctl", "-b"), ("journalctl", "--no-pager", "--boot"))
)

# Of services: the unit follows. A log file, or a journal whose unit no name states, is recognized by what it holds;
# then its name follows SERVICE_LOG, and that of a log that logrotate put aside ROTATED_LOG
OF_SERVICE = (
    ("systemctl", "status"),
    *(("journalctl", *option, unit) for option in ((), ("--no-pager",)) for unit in ("-u", "--unit")),
    ("journalctl", "-xeu"),
)
SERVICE_LOG, ROTATED_LOG = ("service-log",), ("rotated-log",)
UNUSED_LOG = ("unused-log",)  # what follows it: files with a further kernel log, which may be of another host
SERVICE_SAVED = (("systemctl", "status", "--all"),)

LLDP_SAVED = (
    ("lldpctl", "-f", "json0"),
    ("lldpcli", "show", "neighbors", "-f", "json"),
    *(("lldpctl", "-f", form) for form in ("keyvalue", "xml")),
    ("lldpctl",),
    ("lldpcli", "show", "neighbors"),
    ("lldpcli", "show", "neighbors", "details"),
)
# Of any interface, whose name follows: read by name where the source shows the interface
ETHTOOL_SAVED = tuple(("ethtool", *option) for option in ((), ("-i",), ("-a",), ("--show-fec",), ("-S",), ("-m",)))
ETHTOOL_COUNTERS, ETHTOOL_SETTINGS, ETHTOOL_FEC = ("ethtool", "-S"), ("ethtool",), ("ethtool", "--show-fec")
NVLINK_ERRORS = ("nvidia-smi", "nvlink", "-e")
DCB_OBJECTS = ("pfc", "ets", "app", "buffer", "dcbx", "apptrust")
DCB_SAVED = (
    ("mlnx_qos", "-i"),
    *(("dcb", *option, about, "show", "dev") for option in ((), ("-j",)) for about in DCB_OBJECTS),
)
OF_INTERFACE = ETHTOOL_SAVED + DCB_SAVED
RDMA_SYSTEM_SAVED = (("rdma", "system"), ("rdma", "system", "show"), ("rdma", "dev"), ("rdma", "dev", "show"))
# Of a whole fabric, most trusted first; each rail's too (-C DEVICE -P PORT): asked by name in probes/fabric/probe.py
IB_LINKS = (("iblinkinfo",), ("iblinkinfo", "-l"))
IB_NODES = (("ibnetdiscover",),)
IB_FABRIC_SAVED = (
    *IB_NODES,
    *IB_LINKS,
    ("ibnetdiscover", "-p"),
    ("ibdiagnet2.db_csv",),  # files of ibdiagnet's, by their names
    ("ibdiagnet2.net_dump",),
)

CXL_SAVED = (("cxl", "list", "-v"),)
AMD_SMI_SAVED = tuple(
    ("amd-smi", *about, *form)
    for about in ((), ("list",), ("static",), ("metric",), ("topology",), ("xgmi",), ("xgmi", "-m"), ("partition",))
    for form in ((), ("--json",))
)
ROCM_SMI_SAVED = tuple(
    ("rocm-smi", about, *form)
    for about in ("--showtopo", "--showtopotype", "--showtopoweight", "--showbus")
    for form in ((), ("--json",))
)
HL_SMI_SAVED = (("hl-smi",),)
HL_SMI_QUERY = ("hl-smi", "-Q")  # with any fields, as a table of comma-separated values
# Of these no list of devices is made: what they state of faults alone is read
AMD_HEALTH_SAVED = (("amd-smi", "bad-pages"), ("amd-smi", "bad-pages", "--json"), ("amd-smi", "monitor"))
ROCM_XGMI = ("rocm-smi", "--showxgmierr")
ROCM_RAS_SAVED = (("rocm-smi", "--showrasinfo"), ("rocm-smi", "--showrasinfo", "all"))
ROCM_PAGES_SAVED = tuple(
    ("rocm-smi", about) for about in ("--showretiredpages", "--showpendingpages", "--showunreservablepages")
)
ROCM_SHORT = ("rocm-smi",)
DCGM_HEALTH = (("dcgmi", "health", "-c"), ("dcgmi", "health", "-c", "-j"))
DCGM_DIAG = (("dcgmi", "diag", "-r"), ("dcgmi", "diag", "-r", "-j"))
IB_ERRORS_SAVED = (("ibqueryerrors",), ("perfquery",), ("ibdiagnet",))
DCGM_LINKS = (("dcgmi", "nvlink", "--link-status"), ("dcgmi", "nvlink", "-s"))
ALERTS, REDFISH = ("amtool", "alert"), ("redfish",)  # any form of an alert; resources of a BMC
AMD_METRICS = ("amd-exporter", "metrics")
NIC_REPORTERS, DCGM_METRICS = ("devlink", "health", "show"), ("dcgm-exporter", "metrics")
NVSM_HEALTH = ("nvsm", "show", "health")
GDS_CHECK = ("gdscheck", "-p")
# Of a source that a person made: temperatures and memory modules, which a live host is not asked for
MACHINE_TEXTS = (("nvidia-smi", "-q"), ("dmidecode",))
DMI_MEMORY = tuple(("dmidecode", option, kind) for option in ("-t", "--type") for kind in ("memory", "17"))
MEASURED = ("nvbandwidth",)  # p2pBandwidthLatencyTest and bandwidthTest, too
DMON, IMEX_NODES = ("nvidia-smi", "dmon"), ("nvidia-imex-ctl", "-N")
DCGM_SAMPLES = ("dcgmi", "dmon")
C2C_LINKS, AMD_LINKS = ("nvidia-smi", "c2c", "-s"), ("amd-smi", "xgmi", "-l")
SLURM_NODE, SLURM_HELD, SLURM_LOG = ("scontrol", "show", "node"), ("sinfo", "-R"), ("slurmctld", "log")
KUBE_NODE = (("kubectl", "describe", "node"), ("kubectl", "get", "node"))
CONTAINER_SAVED = (
    ("kubectl", "describe", "pod"),
    ("kubectl", "get", "events"),
    ("kubectl", "logs"),
    ("docker", "run"),
)
BMC_RECORDS = ("bmc-log",)  # of any maker's BMC, in a form that no known command prints
BMC_LOG = (("ipmitool", "sel", "elist"), ("ipmitool", "sel", "list"), ("ipmi-sel",), ("racadm", "getsel"), BMC_RECORDS)
BMC_SENSORS = (("ipmitool", "sdr"), ("ipmitool", "sensor"))
# What a filter left of a long output, without the device: by its text alone
PCI_LINES, GPU_LINES = ("lspci", "|", "grep"), ("nvidia-smi", "|", "grep")
REPEATED = ("lines", "of", "several", "devices")  # without their names
LOOP = ("lines", "of", "a", "loop")  # of each part that it went over, or of each host
PART_LINES = ("lines", "of", "parts")  # the same with lines that other readers have, or of parts in any form
ENDS = ("facts", "of", "two", "sides")  # of both ends of a link, of what is set and what is in force
FILTERED_SAVED = (PCI_LINES, GPU_LINES, REPEATED)
NPU_HEALTH, NIC_PORTS, CXI_PORTS = ("npu-smi", "info", "-t", "health"), ("nicctl", "show", "port"), ("cxi_stat",)
BONDING, SWITCH_PORTS = ("bonding",), ("show", "interfaces")  # a file of /proc; of a switch, any such command
ROUTES, MLXCONFIG = ("ip", "route"), ("mlxconfig", "query")  # whatever the options
CMA_MODE = ("cma_roce_mode",)  # each below its command, which names the device
INTERFACE_LOG, QDISC = ("interface", "log"), ("tc", "-s", "qdisc")  # of networkd and others; whatever the options
OPA_PORTS, UFM_EVENTS, FLINT = ("opainfo",), ("UFM", "events"), ("flint", "q")
MLXLINK, GAUDI_PORTS = ("mlxlink",), ("manage_network_ifs.sh",)  # each below its command, which names the device
# What tools print where they find no device or no driver, whatever their options
TOOL_ERRORS_SAVED = tuple(
    ("error", "of", tool)
    for tool in (
        "rocm-smi", "rocminfo", "amd-smi", "npu-smi", "neuron-ls", "CUDA", "modprobe", "openibd", "mstflint", "ping",
        "ibv_devinfo", "ibstat", "ibstatus", "sminfo", "ibping", "rping", "ib_write_bw", "ibv_reg_mr", "fi_info",
        "ucx_info", "nvshmem", "gdrcopy", "gdsio", "mooncake", "rxdm", "kubelet", "ofed-driver", "rdma-shared-dp",
        "sharp", "verbs", "ip", "dcgmi", "nvidia-smi", "nvidia-installer", "hl-smi",
        "text", "program",  # one of these beside other outputs; a failure that none of them states
    )
)  # fmt: skip
LDD = ("ldd",)
CHECKS = ("health", "checks")  # results of checks of any tool: a table, or a line each
COUNTERS = ("counters", "of", "ports")  # of errors, of several moments, whatever tool prints them
COUNTS = ("counts", "of", "devices")  # of uncorrected errors, whatever tool prints them
OWN_REPORT = ("fabricscope", "scan")  # what it printed before
SHEET = ("table", "of", "devices")  # that people or scripts keep: a row per host or device
NCCL_SETTINGS = ("NCCL", "settings")  # which the library states in its log, wherever the lines stand
PODS, STATED = ("kubectl", "get", "pods"), ("sentences", "of", "tools")  # which are read wherever they stand
TOOL_REPORTS_SAVED = (
    AMD_HEALTH_SAVED
    + ROCM_RAS_SAVED
    + ROCM_PAGES_SAVED
    + DCGM_HEALTH
    + DCGM_DIAG
    + DCGM_LINKS
    + IB_ERRORS_SAVED
    + KUBE_NODE
    + (SLURM_NODE, SLURM_HELD, SLURM_LOG, ROCM_SHORT, NIC_REPORTERS, DCGM_METRICS, NVSM_HEALTH, MEASURED, GDS_CHECK)
    + CONTAINER_SAVED
    + FILTERED_SAVED
    + BMC_LOG
    + BMC_SENSORS
    + DMI_MEMORY
    + (MLXLINK, GAUDI_PORTS, HL_SMI_QUERY, ROCM_XGMI, BONDING, SWITCH_PORTS, NPU_HEALTH, NIC_PORTS, CXI_PORTS)
    + (ROUTES, MLXCONFIG, CMA_MODE, FLINT, OPA_PORTS, UFM_EVENTS, INTERFACE_LOG, QDISC)
    + TOOL_ERRORS_SAVED
    + (PODS, STATED, DMON, IMEX_NODES, ALERTS, REDFISH, AMD_METRICS, NCCL_SETTINGS, LDD, CHECKS, SHEET)
    + (LOOP, PART_LINES, ENDS)
    + (COUNTERS, COUNTS, OWN_REPORT, C2C_LINKS, AMD_LINKS, DCGM_SAMPLES)
)
NEURON_SAVED = (
    *NEURON,
    ("neuron-ls", "-j"),
    ("neuron-ls", "--output-format", "json"),
    ("neuron-ls",),
    ("neuron-ls", "--topology"),
)
AMD_SAVED = AMD_SMI_SAVED + ROCM_SMI_SAVED

# Of which labels that no fact has are compared among devices; any text that has them of several
DEVICE_LABELS = ("labels", "of", "devices")
LABELLED = (
    ("nvidia-smi", "-q"),
    ("nvidia-smi", "-q", "-x"),
    *NVIDIA_SMI_SAVED,
    PCI[0],
    ("ibv_devinfo", "-v"),
    ("ibv_devinfo",),
    ("ibstat",),
    ("amd-smi", "static"),
    ("amd-smi", "static", "--json"),
    HL_SMI_QUERY,
    CXI_PORTS,
    DEVICE_LABELS,
)
LABELLED_OF_INTERFACES = tuple(
    ("ethtool", option) for option in ("-i", "-a", "-k", "-c", "-g", "-l", "--show-priv-flags")
)

# Of Ascend NPUs; card and chip, or the number of the NPU, follow where an output is about one
NPU_INFO = ("npu-smi", "info")
NPU_TOPOLOGY = ("npu-smi", "info", "-t", "topo")
NPU_HCCS = ("npu-smi", "info", "-t", "hccs", "-i", "-c")
NPU_SIO = ("npu-smi", "info", "-t", "sio-info", "-i", "-c")
HCCN = ("hccn_tool",)  # many of its outputs one after the other, each below its command
_HCCN_OPTIONS = (
    "-ip",
    "-gateway",
    "-netdetect",
    "-link",
    "-speed",
    "-net_health",
    "-lldp",
    "-tls",
    "-fec",
    "-pfc",
    "-pfc_stat",
    "-link_stat",
    "-optical",
    "-stat",
)
HCCN_OF_NPU = tuple(("hccn_tool", "-i", option, "-g") for option in _HCCN_OPTIONS)
RANK_TABLE = ("hccl.json",)  # files, by their names
OF_NPU = (NPU_HCCS, NPU_SIO, *HCCN_OF_NPU)
NPU_SAVED = (NPU_INFO, NPU_TOPOLOGY)
HCCN_CONF = ("hccn.conf",)
HCCN_SAVED = (HCCN, HCCN_CONF, RANK_TABLE)

SAVED: tuple[tuple[str, ...], ...] = (
    NVIDIA_SMI_SAVED
    + NVIDIA_SMI_TABLE
    + RDMA_SAVED
    + SYSTEM_SAVED
    + SYSFS_SAVED
    + LIMITS_SAVED
    + KERNEL_LOG_SAVED
    + KERNEL_LOG_EARLIER
    + SERVICE_SAVED
    + LLDP_SAVED
    + ETHTOOL_SAVED
    + DCB_SAVED
    + RDMA_SYSTEM_SAVED
    + IB_FABRIC_SAVED
    + CXL_SAVED
    + AMD_SAVED
    + HL_SMI_SAVED
    + TOOL_REPORTS_SAVED
    + NEURON_SAVED
    + NPU_SAVED
    + HCCN_SAVED
    + (DEVICE_LABELS,)
)
KNOWN = COMMANDS + SAVED
SOS_FOLDER = "/sos_commands"  # where a sosreport has outputs of commands
