"""Which command printed this text: for saved outputs whose file name says nothing.

Each line of the table is a command and what all stands in its output; the first line that fits decides, so the
special stands before the general.
"""

from __future__ import annotations

import re

from probes.host.commands import GPU_LINES, PCI_LINES, SERVICE_LOG
from probes.text import lazy_pattern

LOOK_CHARACTERS = 64 << 10

_ESCAPES = lazy_pattern(r"\x1b\[[0-9;]*m|\[[04]m")  # nvidia-smi underlines a heading; a form may lose the escape
_SMI, _NPU = "nvidia-smi", "npu-smi"
_GPU_LINE = r"^GPU \d+: "
_PCI_LINE = r"\A(?:[^\n]*\n){0,4}?(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7] [A-Z0-9][^\n]*: "
_HEX_LINE = r"^[0-9a-f]{2,3}: (?:[0-9a-f]{2} ){15}[0-9a-f]{2}"
_CAPABILITY = r"^[ \t]+Capabilities: "
_MATRIX_LINE = r"^[ \t]*(?:GPU|NIC|mlx5_)\d+[ \t][^\n]*\bX\b"
_P2P_LINE = r"^[ \t]*GPU\d+(?:[ \t]+(?:X|OK|CNS|GNS|TNS|NS|DR|U))+[ \t]*$"
_P2P_HEADING = r"^[ \t]+GPU\d+(?:[ \t]+GPU\d+)*[ \t]*$"
_NO_NVLINK = r"(?i)^(?:NVML: Unable to|Device does not|Nvlink queries)\b[^\n]*\bnvlink\b|^Nvlink queries"
_SMI_SENTENCE = (  # whole lines, which any command of it may print
    r"^(?:Unable to determine the device handle for GPU ?\S|No devices were found[ \t.]*$|Failed to initialize NVML: "
    r"|NVIDIA-SMI has failed because|NVIDIA-SMI couldn't (?:find|communicate))"
)
_CONTAINER_SENTENCE = (
    r"^[^\n]{0,400}?(?:nvidia-container-cli: |could not select device driver \"|unresolvable CDI devices "
    r"|unknown or invalid runtime name: nvidia|no runtime for \"nvidia\" is configured|Allocate failed due to )"
)
_TEXT = ("lspci", "-D", "-nn", "-vvv")
_HEX = ("lspci", "-D", "-nn", "-xxxx")
_AMD_JSON = r"\A(?:\$ [^\n]*\n)?\s*[\[{][^}]{0,80}\"gpu\" ?: ?\d"
_AMD_NAMES = r"(?:GPU\d+|[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])[ \t]"
# Among the first lines one that the kernel wrote, as /dev/kmsg has it, or dmesg, journalctl or syslog print it
_KERNEL_LINE = (
    r"\A(?:[^\n]*\n){0,4}?(?:"
    r"(?:\d{1,7} ?)?[ \t]*\[[ +\d]{1,12}\.\d{6}\](?:\[ *[TC]\d+\])? |<\d+>\[|\d+,\d+,\d+,-;|kern +:\w+ *: "
    r"|\[\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}\] "
    r"|[^\n]{0,80}?\bNVRM: Xid \(|(?:kernel: )?NVRM: [A-Z]|[\w.-]{1,64}: kern: +\w+: \["
    r"|(?:kernel: )?(?:pcieport|mlx5_core|nvidia|amdgpu) [0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]: "
    r"|(?:\d{4}-\d\d-\d\dT\S+|[^\W\d]\w{2,11}\.? {1,2}\d{1,2} [\d:]{8}) \S+ kernel: )"
)

# A line that systemd, the journal or a service of a GPU node wrote, in one of their forms
_SERVICES = (
    r"nv-fabricmanager|nvidia-fabricmanager|nvlsm|nvidia-imex|nvidia-persistenced|nv-hostengine|nvidia-dcgm|"
    r"opensmd?|OpenSM|openibd|rshim|irqbalance"
)
SERVICE_LINES = (
    rf"[ \t]*(?:\d{{4}}-\d\d-\d\d\S{{8,24}}|[^\W_]{{2,12}}\.? {{1,2}}\d{{1,2}} [\d:]{{8}}) \S{{1,255}} "
    rf"(?:(?:{_SERVICES})[\w.-]{{0,16}}(?:\[\d{{1,10}}\])?: "
    rf"|systemd\[1\]: [^\n]{{0,80}}?\b(?:(?:{_SERVICES})\b|NVIDIA (?:fabric|Pers|IMEX)))",
    r"\[\w{3} \d\d \d{4} [\d:]{8}\] \[(?:INFO|ERROR|WARNING|CRITICAL|NOTICE)\] ",  # fabric manager, IMEX
    r"\w{3} \d\d [\d:]{8} \d{6} \[[0-9A-Fa-f]{8}\] 0x[0-9a-f]{2} -> ",  # opensm, nvlsm
    r"[\d-]{10} [\d:]{8}\.\d{3} +(?:ERROR|WARN|INFO|DEBUG) +\[\d{1,10}:\d{1,10}\] ",  # DCGM
    r"(?:[\w.:-]{7,64}: )?(?:nvlsm: )?(?:ibwarn: \[\d{1,10}\] )?umad_init: can't read ABI version",
    r"(?:[^\n]{0,200}\b802\b[^\n]{0,60})?system not yet initialized(?:[^\n]{0,60}\b802\b)?",
    rf"(?:[^\w\s] )?(?:{_SERVICES})\.service(?: - [^\n]{{0,120}})?$",
    rf"Unit (?:{_SERVICES})\.service could not be found",
    rf"Job for (?:{_SERVICES})\.service failed because ",  # systemctl start
    r"[^\n]{0,80}?\bfabric manager config file item:? ?[A-Z_]{2,60} has an invalid value",
)
_SERVICE_LINE = "|".join(f"^{line}" for line in SERVICE_LINES)
_NO_JOB = r"\A(?![\s\S]{0,60000}?(?:NCCL (?:INFO|WARN)|\[rank\d|torchrun|torch\.distributed))"  # its log has a command

MARKS: tuple[tuple[tuple[tuple[str, ...], ...], tuple[str, ...]], ...] = (
    (((_SMI, "-q", "-x"),), (r"^<nvidia_smi_log>",)),
    (((_SMI, "-q"),), (r"^=+NVSMI LOG=+",)),
    (
        (GPU_LINES,),
        (
            r"\A(?![\s\S]*^GPU [0-9A-Fa-f]{4,8}:)",
            r"^[ \t]*(?:Remapping Failure Occurred[ \t]*: Yes|Pending[ \t]*: Yes|State[ \t]*: In Progress)\b",
            r"^[ \t]*(?:Remapped Rows|Remapping Failure Occurred[ \t]*: \w+|Fabric)[ \t]*$",
        ),
    ),
    (((_SMI, "--query-gpu"),), (r"\A[a-z_.]+(?: \[[\w/%]+\])?, ", r"\A[^\n]*\b(?:uuid|pci\.bus_id|pcie\.link\.\w+)\b")),
    (((_SMI,),), (r"^\|[ \t]*NVIDIA-SMI[ \t]", r"^\|[^|\n]{1,80}\|[ \t]*[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[01]")),
    (((_SMI, "topo", "-p2p", "r"),), (_P2P_LINE, _P2P_HEADING)),
    (
        ((_SMI, "topo", "-m"),),
        (r"^[ \t]*GPU\d+[ \t]", _MATRIX_LINE, r"^(?:[ \t]+GPU\d+\b|GPU0[ \t]+(?:GPU1|NIC0|mlx5_\d+|CPU Affinity)\b)"),
    ),
    (((_SMI, "nvlink", "-e"),), (_GPU_LINE, r"^[ \t]+Link \d+: (?:Replay|Recovery|CRC) ")),
    (((_SMI, "nvlink", "-R"),), (_GPU_LINE, r"^[ \t]+Link \d+: Remote Device ")),
    (((_SMI, "nvlink", "-c"),), (_GPU_LINE, r"^[ \t]+Link \d+, [^\n]*: (?:true|false)")),
    (((_SMI, "nvlink", "-s"),), (_GPU_LINE, r"^[ \t]+Link \d+: (?:[\d.]+ GB/s|<inactive>)")),
    (((_SMI, "nvlink", "-s"),), (_GPU_LINE, _NO_NVLINK)),
    (((_SMI, "-L"),), (rf"{_GPU_LINE}[^\n]*\(UUID: GPU-",)),
    ((_TEXT, _HEX), (_PCI_LINE, _HEX_LINE, _CAPABILITY)),
    ((_HEX,), (_PCI_LINE, _HEX_LINE)),
    ((_TEXT,), (_PCI_LINE,)),
    (
        (PCI_LINES,),
        (
            r"^[ \t]*(?:ACSCtl:[^\n]{0,120}ReqRedir\+|LnkSta:[^\n]{0,80}\(downgraded\))",
            r"\A(?![\s\S]*^[> \t]*(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7](?: [A-Z0-9]|[ \t]*$))",
        ),
    ),
    ((("ibstatus",),), (r"^Infiniband device '[^'\n]+' port \d+ status:",)),
    ((("ibstat",),), (r"^CA '[^'\n]+'", r"^[ \t]*CA type:")),
    ((("ibv_devinfo", "-v"),), (r"^hca_id:[ \t]",)),
    ((("ibv_devices",),), (r"\A[ \t]*device[ \t]+node GUID",)),
    ((("rdma", "link"),), (r"^(?:link |\d+/\d+: )\S+/\d+:? [^\n]*\bstate [A-Z]",)),
    ((("ibdev2netdev",),), (r"^(?:\S+ )?\S+ +port +\d+ +(?:\([^\n]*\) )?==> +\S+ +\(",)),
    ((("show_gids",),), (r"^DEV[ \t]+PORT[ \t]+INDEX[ \t]+GID",)),
    ((("ibdiagnet2.db_csv",),), (r"^START_(?:NODES|INDEX_TABLE|DB_CSV)\b",)),
    ((("ibdiagnet2.net_dump",),), (r"^ *# *: *IB# *:", r": *Neighbor Guid *:")),
    (
        (("ibqueryerrors",),),
        (r"^(?:Errors|Data Counters) for (?:0x[0-9a-f]{1,16} )?\"", r"^ +GUID 0x[0-9a-f]{1,16} port (?:\d|ALL)"),
    ),
    ((("ibqueryerrors",),), (r"^## Summary: \d+ nodes checked, \d+ bad nodes found",)),
    ((("perfquery",),), (r"^# Port (?:extended )?counters: Lid \d", r"^PortSelect:\.+\d")),
    ((("ibdiagnet",),), (r"^-[EWI]- [^\n]*(?:increased during the run|Unexpected actual link (?:speed|width) )",)),
    ((("iblinkinfo",),), (r"==\( {0,20}\S", r"\)==> ")),
    ((("ibnetdiscover",),), (r'^(?:Switch|Ca|Rt)\s+\d{1,3}\s+"[SHR]-[0-9a-f]{16}"',)),
    ((("ibnetdiscover", "-p"),), (r"^(?:CA|SW|RT) {1,5}\d{1,5} {1,2}\d{1,3} 0x[0-9a-f]{16} ",)),
    ((("lldpctl", "-f", "json"),), (r"\A\s*\{\s*\"lldp\":",)),
    ((("lldpctl", "-f", "keyvalue"),), (r"^lldp\.\S{1,64}\.via=",)),
    ((("lldpctl", "-f", "xml"),), (r"\A\s*(?:<\?xml[^>]{0,80}>\s*)?<lldp\b",)),
    (
        (("lldpctl",),),
        (
            r"\A(?![\s\S]*^Interface: +Ethernet\d)",  # so are ports of SONiC called: a switch
            r"^Interface: +[^,\s]{1,64}, via: ",
            r"^[ \t]*(?:ChassisID|PortID): ",
        ),
    ),
    ((("ip", "-d", "link"),), (r"^\d{1,6}: \S{1,60}: <[A-Z0-9_,-]*> mtu \d", r"^[ \t]+link/[^\n]*\bpromiscuity \d")),
    (
        (("cxl", "list", "-v"),),
        (
            r"\A(?:[#$] [^\n]*\n)?\s*[\[{]",
            r"^[ \t]*\"(?:memdev|bus|port|endpoint|region)\" ?: ?\"(?:mem|root|port|endpoint|region)\d",
        ),
    ),
    (
        (("rocm-smi", "--showrasinfo"),),
        (r"^=+ ROCm System Management Interface =+", r"^GPU ?\[\d+\]\s*:[^\n]*\bRAS INFO", r"^ +Block +Status "),
    ),
    (
        (("rocm-smi", "--showretiredpages"),),
        (r"^=+ ROCm System Management Interface =+", r"^=+ Pages Info =+"),
    ),
    ((("rocm-smi", "--showtopo", "--json"),), (r"\A\s*\{\s*\"(?:system|card\d+)\":",)),
    ((("rocm-smi", "--showtopo"),), (r"^=+ ROCm System Management Interface =+", rf"^{_AMD_NAMES}")),
    ((("amd-smi", "topology", "--json"),), (_AMD_JSON, r"\"(?:links|link_type|weight)\" ?: ?[\[{]")),
    ((("amd-smi", "static", "--json"),), (_AMD_JSON, r"\"(?:asic|vram|board)\" ?: ?\{")),
    ((("amd-smi", "metric", "--json"),), (_AMD_JSON, r"\"(?:ecc|ecc_blocks|mem_usage)\" ?: ?\{")),
    ((("amd-smi", "list", "--json"),), (_AMD_JSON, r"\"kfd_id\" ?:")),
    ((("amd-smi", "partition", "--json"),), (r"\A\s*[\[{]", r"\"accelerator_(?:type|profile_index)\" ?:")),
    ((("amd-smi", "bad-pages", "--json"),), (_AMD_JSON, r"\"(?:retired|un_res)\" ?:")),
    ((("amd-smi", "bad-pages"),), (r"^GPU: \d+\s*$", r"^ +(?:RETIRED|UN_RES):")),
    ((("amd-smi", "topology"),), (r"^[A-Z ]+ TABLE:", rf"^ +{_AMD_NAMES}")),
    ((("amd-smi", "xgmi"),), (r"^LINK METRIC TABLE:",)),
    ((("amd-smi", "static"),), (r"^GPU: \d+\s*$", r"^ +ASIC:\s*$")),
    ((("amd-smi", "metric"),), (r"^GPU: \d+\s*$", r"^ +(?:ECC|ECC_BLOCKS|USAGE|MEM_USAGE):\s*$")),
    ((("amd-smi", "list"),), (r"^GPU: \d+\s*$", r"^ +KFD_ID: ")),
    ((("amd-smi",),), (r"^\| AMD-SMI ", r"^\| BDF ")),
    ((("hl-smi",),), (r"^\| HL-SMI Version: ", r"^\|\s+\d+\s+HL-\S+\s")),
    ((("dcgmi", "health", "-c"),), (r"(?:^\|? ?|\")Health Monitor Report", r"Overall Health")),
    ((("dcgmi", "health", "-c"),), (r"^\| Overall Health +\| (?:Healthy|Warning|Failure) ",)),
    ((("dcgmi", "nvlink", "--link-status"),), (r"NvLink Link Status", r"^[ \t]*gpuId \d{1,4}:")),
    ((("dcgmi", "diag", "-r"),), (r"^\| Diagnostic +\| Result ",)),
    ((("dcgmi", "diag", "-r"),), (r"^[|+]-{3,8} {1,4}(?:Deployment|Integration|Hardware|Stress) {1,4}-{3,16}\+-",)),
    ((("dcgmi", "diag", "-r", "-j"),), (r"\"DCGM (?:GPU )?Diagnostic\" ?:", r"\"test_categories\" ?:")),
    ((("neuron-ls", "--json-output"),), (r"\A(?:\$ [^\n]*\n)?\s*\[\s*\{", r"^[ \t]*\"neuron_device\" ?: ?\d")),
    (
        (("neuron-ls", "--output-format", "json"),),
        (r"\A(?:\$ [^\n]*\n)?\s*\{", r"^[ \t]*\"neuron_device\" ?: ?\d", r"^[ \t]*\"bdf\" ?: ?\""),
    ),
    ((("neuron-ls",),), (r"^\| NEURON \|", r"^\| DEVICE \|", r"^\| \d+ +\|")),
    (((_NPU, "info", "-t", "topo"),), (r"^[ \t]*(?:NPU|Phy-ID)\d+[ \t][^\n]*\bX\b",)),
    (((_NPU, "info"),), (r"^\| npu-smi ", r"^\|[^\n]*\| *[0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7] *\|")),
    ((("hccn_tool",),), (r"^[^\n]{0,80}?\bhccn_tool +(?:-g +)?-i +(?:\d|\$)",)),
    ((("hccl.json",),), (r"\A\s*\{", r"\"(?:server_list|group_list)\"\s*:", r"\"rank_id\"|\"device_ip\"")),
    ((("hccn.conf",),), (r"\A(?:[ \t#][^\n]*\n)*address_\d{1,2}=\d",)),
    ((("kubectl", "describe", "node"),), (r"^Name: +\S", r"^Conditions:", r"^Capacity:", r"^Allocatable:")),
    (
        (("kubectl", "get", "node"),),
        (
            r"^[ \t]*\"?allocatable\"?: ?\{?$",
            r"^[ \t]*\"?capacity\"?: ?\{?$",
            r"^[ \t]*\"?[\w.-]{3,60}/[\w.-]{2,60}\"?: ",
        ),
    ),
    ((("kubectl", "describe", "pod"),), (r"^Name: +\S", r"^Namespace: +\S", r"^(?:Init )?Containers:")),
    ((("kubectl", "get", "events"),), (r"\A(?:NAMESPACE +)?LAST SEEN +TYPE +REASON +OBJECT ",)),
    ((("lsmod",),), (r"\A(?:Module +Size +Used by|\w+ +\d+ +\d+(?: [\w,\[\]-]*)?)$",)),
    ((("ulimit", "-a"),), (r"^(?:max locked memory +|-l: locked-in-memory size +)\(k(?:ilo)?bytes",)),
    ((("dmesg",),), (_KERNEL_LINE,)),
    ((SERVICE_LOG,), (_SERVICE_LINE, _NO_JOB)),
    (((_SMI,),), (_SMI_SENTENCE,)),
    ((("kubectl", "logs"),), (r"^[^\n]{0,200}?(?:XidCriticalError: Xid=|' device marked unhealthy: )",)),
    ((("rocm-smi",),), (r"^[^\n]{0,80}\(amdgpu not found in modules\)",)),
    ((("rocminfo",),), (r"^[^\n]{0,40}ROCk module is NOT loaded",)),
    (((_NPU,),), (r"^[^\n]{0,40}dcmi module initialize failed",)),
    ((("docker", "run"),), (_CONTAINER_SENTENCE,)),
)  # fmt: skip


def identify_command(text: str) -> tuple[tuple[str, ...], ...]:
    """The commands whose output this is; empty where nothing is known of it. Looks at the first LOOK_CHARACTERS.

    >>> identify_command("CA 'mlx5_0'\\n\\tCA type: MT4129\\n\\tNumber of ports: 1\\n")
    (('ibstat',),)
    >>> identify_command("Dear all,")
    ()
    """
    start = _ESCAPES.sub("", text[:LOOK_CHARACTERS]).replace("\r\n", "\n")
    for commands, patterns in MARKS:
        if all(_compile(pattern).search(start) for pattern in patterns):
            return commands
    return ()


_COMPILED: dict[str, re.Pattern[str]] = {}  # a text is asked for each of its pieces: looking into it is all the cost


def _compile(pattern: str) -> re.Pattern[str]:
    compiled = _COMPILED.get(pattern)
    if compiled is None:
        compiled = _COMPILED[pattern] = re.compile(pattern, re.MULTILINE)
    return compiled


# What is recognized and of no use by itself, and why
_USELESS = (
    (r"^\|[ \t]*NVIDIA-SMI ", "is the heading of the table of nvidia-smi, without a GPU; save all of it"),
    (
        r"^[ \t]*hccs (?:lane mode|tx packets) *:",
        "does not state its NPU; save it as npu-smi_info_-t_hccs_-i_0_-c_0.txt",
    ),
    (
        r"^[ \t]*[TR]X Error Count *:",
        "does not state its NPU; save it as npu-smi_info_-t_sio-info_-i_0_-c_0.txt",
    ),
    (
        r"^(?:ipaddr|net health status|link status|PFC configuration|link up count|packet statistics) *:",
        "is an output of hccn_tool that does not state its NPU; save it as hccn_tool_-i_0_-link_-g.txt",
    ),
    (
        r"^driver: \S",
        "is an output of ethtool -i that does not state its interface; save it as ethtool_-i_ens1f0.txt",
    ),
    (
        r"^NIC statistics:",
        "is an output of ethtool -S that does not state its interface; save it as ethtool_-S_ens1f0.txt",
    ),
    (
        r"^(?:DCBX mode|Priority trust state): ",
        "is an output of mlnx_qos that does not state its interface; save it as mlnx_qos_-i_ens1f0.txt",
    ),
    (
        r"\A(?:[^\n]*\n)?[ \t]*(?:ACS(?:Cap|Ctl)|LnkSta|LnkCap|DevSta|UESta):[ \t]",
        "has lines of lspci -vvv that do not state their device; save the output without grep",
    ),
    (r"\A\s*\{(?s:.){0,400}\"rank_list\"\s*:", "is a rank table of version 2.0, which names no server"),
)


def find_missing_name(text: str) -> str | None:
    """Why a text that is an output of a known tool cannot be read by itself; None: it is not known to be one."""
    start = text[:LOOK_CHARACTERS]
    return next((why for pattern, why in _USELESS if re.search(pattern, start, re.MULTILINE)), None)
