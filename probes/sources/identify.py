"""Which command printed this text: for saved outputs whose file name says nothing.

Each line of the table is a command and what all stands in its output; the first line that fits decides, so the
special stands before the general.
"""

from __future__ import annotations

import re

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
_TEXT = ("lspci", "-D", "-nn", "-vvv")
_HEX = ("lspci", "-D", "-nn", "-xxxx")
_AMD_JSON = r"\A(?:\$ [^\n]*\n)?\s*[\[{][^}]{0,80}\"gpu\" ?: ?\d"
_AMD_NAMES = r"(?:GPU\d+|[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])[ \t]"
# Among the first lines one that the kernel wrote, as /dev/kmsg has it, or dmesg, journalctl or syslog print it
_KERNEL_LINE = (
    r"\A(?:[^\n]*\n){0,4}?(?:"
    r"(?:\d{1,7} ?)?[ \t]*\[[ +\d]{1,12}\.\d{6}\](?:\[ *[TC]\d+\])? |<\d+>\[|\d+,\d+,\d+,-;|kern +:\w+ *: "
    r"|\[\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}\] "
    r"|[^\n]{0,80}?\bNVRM: Xid \(|[\w.-]{1,64}: kern: +\w+: \["
    r"|(?:kernel: )?(?:pcieport|mlx5_core|nvidia|amdgpu) [0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]: "
    r"|(?:\d{4}-\d\d-\d\dT\S+|[^\W\d]\w{2,11}\.? {1,2}\d{1,2} [\d:]{8}) \S+ kernel: )"
)

MARKS: tuple[tuple[tuple[tuple[str, ...], ...], tuple[str, ...]], ...] = (
    (((_SMI, "-q", "-x"),), (r"^<nvidia_smi_log>",)),
    (((_SMI, "-q"),), (r"^=+NVSMI LOG=+",)),
    (((_SMI, "--query-gpu"),), (r"\A[a-z_.]+(?: \[[\w/%]+\])?, ", r"\A[^\n]*\b(?:uuid|pci\.bus_id|pcie\.link\.\w+)\b")),
    (((_SMI, "topo", "-p2p", "r"),), (_P2P_LINE, _P2P_HEADING)),
    (((_SMI, "topo", "-m"),), (r"^[ \t]*GPU\d+[ \t]", _MATRIX_LINE, r"^[ \t]+GPU\d+\b")),
    (((_SMI, "nvlink", "-e"),), (_GPU_LINE, r"^[ \t]+Link \d+: (?:Replay|Recovery|CRC) ")),
    (((_SMI, "nvlink", "-R"),), (_GPU_LINE, r"^[ \t]+Link \d+: Remote Device ")),
    (((_SMI, "nvlink", "-c"),), (_GPU_LINE, r"^[ \t]+Link \d+, [^\n]*: (?:true|false)")),
    (((_SMI, "nvlink", "-s"),), (_GPU_LINE, r"^[ \t]+Link \d+: (?:[\d.]+ GB/s|<inactive>)")),
    (((_SMI, "nvlink", "-s"),), (_GPU_LINE, _NO_NVLINK)),
    (((_SMI, "-L"),), (rf"{_GPU_LINE}[^\n]*\(UUID: GPU-",)),
    ((_TEXT, _HEX), (_PCI_LINE, _HEX_LINE, _CAPABILITY)),
    ((_HEX,), (_PCI_LINE, _HEX_LINE)),
    ((_TEXT,), (_PCI_LINE,)),
    ((("ibstatus",),), (r"^Infiniband device '[^'\n]+' port \d+ status:",)),
    ((("ibstat",),), (r"^CA '[^'\n]+'", r"^[ \t]*CA type:")),
    ((("ibv_devinfo", "-v"),), (r"^hca_id:[ \t]",)),
    ((("ibv_devices",),), (r"\A[ \t]*device[ \t]+node GUID",)),
    ((("rdma", "link"),), (r"^(?:link |\d+/\d+: )\S+/\d+:? [^\n]*\bstate [A-Z]",)),
    ((("ibdev2netdev",),), (r"^(?:\S+ )?\S+ port \d+ (?:\([^\n]*\) )?==> \S+ \(",)),
    ((("show_gids",),), (r"^DEV[ \t]+PORT[ \t]+INDEX[ \t]+GID",)),
    ((("ibdiagnet2.db_csv",),), (r"^START_(?:NODES|INDEX_TABLE|DB_CSV)\b",)),
    ((("ibdiagnet2.net_dump",),), (r"^ *# *: *IB# *:", r": *Neighbor Guid *:")),
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
    ((("rocm-smi", "--showtopo", "--json"),), (r"\A\s*\{\s*\"(?:system|card\d+)\":",)),
    ((("rocm-smi", "--showtopo"),), (r"^=+ ROCm System Management Interface =+", rf"^{_AMD_NAMES}")),
    ((("amd-smi", "topology", "--json"),), (_AMD_JSON, r"\"(?:links|link_type|weight)\" ?: ?[\[{]")),
    ((("amd-smi", "static", "--json"),), (_AMD_JSON, r"\"(?:asic|vram|board)\" ?: ?\{")),
    ((("amd-smi", "metric", "--json"),), (_AMD_JSON, r"\"(?:ecc_blocks|mem_usage)\" ?: ?\{")),
    ((("amd-smi", "list", "--json"),), (_AMD_JSON, r"\"kfd_id\" ?:")),
    ((("amd-smi", "partition", "--json"),), (r"\A\s*[\[{]", r"\"accelerator_(?:type|profile_index)\" ?:")),
    ((("amd-smi", "topology"),), (r"^[A-Z ]+ TABLE:", rf"^ +{_AMD_NAMES}")),
    ((("amd-smi", "xgmi"),), (r"^LINK METRIC TABLE:",)),
    ((("amd-smi", "static"),), (r"^GPU: \d+\s*$", r"^ +ASIC:\s*$")),
    ((("amd-smi", "metric"),), (r"^GPU: \d+\s*$", r"^ +(?:ECC_BLOCKS|USAGE|MEM_USAGE):\s*$")),
    ((("amd-smi", "list"),), (r"^GPU: \d+\s*$", r"^ +KFD_ID: ")),
    ((("amd-smi",),), (r"^\| AMD-SMI ", r"^\| BDF ")),
    ((("hl-smi",),), (r"^\| HL-SMI Version: ", r"^\|\s+\d+\s+HL-\S+\s")),
    ((("neuron-ls", "--json-output"),), (r"\A(?:\$ [^\n]*\n)?\s*\[\s*\{", r"^[ \t]*\"neuron_device\" ?: ?\d")),
    ((("neuron-ls",),), (r"^\| NEURON \|", r"^\| DEVICE \|", r"^\| \d+ +\|")),
    (((_NPU, "info", "-t", "topo"),), (r"^[ \t]*(?:NPU|Phy-ID)\d+[ \t][^\n]*\bX\b",)),
    (((_NPU, "info"),), (r"^\| npu-smi ", r"^\|[^\n]*\| *[0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7] *\|")),
    ((("hccn_tool",),), (r"^[^\n]{0,80}?\bhccn_tool +(?:-g +)?-i +(?:\d|\$)",)),
    ((("hccl.json",),), (r"\A\s*\{", r"\"(?:server_list|group_list)\"\s*:", r"\"rank_id\"|\"device_ip\"")),
    ((("hccn.conf",),), (r"\A(?:[ \t#][^\n]*\n)*address_\d{1,2}=\d",)),
    ((("lsmod",),), (r"\A(?:Module +Size +Used by|\w+ +\d+ +\d+(?: [\w,\[\]-]*)?)$",)),
    ((("dmesg",),), (_KERNEL_LINE,)),
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
    (r"^\| NVIDIA-SMI ", "is the table of nvidia-smi, which is not read; save the output of nvidia-smi -q"),
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
    (r"\A\s*\{(?s:.){0,400}\"rank_list\"\s*:", "is a rank table of version 2.0, which names no server"),
)


def find_missing_name(text: str) -> str | None:
    """Why a text that is an output of a known tool cannot be read by itself; None: it is not known to be one."""
    start = text[:LOOK_CHARACTERS]
    return next((why for pattern, why in _USELESS if re.search(pattern, start, re.MULTILINE)), None)
