"""Which command printed this text: for saved outputs whose file name reports nothing.

Each line of the table is a command and what its output holds; the first line that fits decides, so the
special is before the general.
"""

from __future__ import annotations

import re

from probes.gpu.nvml_enums import P2P_STATUSES
from probes.host import commands
from probes.kernel.sentence import KERNEL_DRIVERS
from probes.rdma.lost_heading import find_lost_heading
from probes.sources.given import is_log_of_job
from probes.text import lazy_pattern
from probes.tool_reports.facts import NO_ROW, NODE_HEADING, OWN_LINE
from probes.tool_reports.unread import has_labels

LOOK_CHARACTERS = 64 << 10

_ESCAPES = lazy_pattern(r"\x1b\[[0-9;]*m|\[[04]m")  # nvidia-smi underlines a heading; a form may lose the escape
_SMI, _NPU = "nvidia-smi", "npu-smi"
_GPU_LINE = r"^GPU \d+: "
_PCI_LINE = r"\A(?:[^\n]*\n){0,4}?(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7] [A-Z0-9][^\n]*: "
_PCI_ADDRESS_ALONE = (  # as a loop of a shell prints it above what it asked
    r"^[> \t]*(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7][ \t:]*\n"
    r"[> \t]*(?:ACS(?:Cap|Ctl)|Lnk(?:Cap|Sta|Ctl)2?|Dev(?:Cap|Sta|Ctl)2?|[UC]ESta):"
)
_HEX_LINE = r"^[0-9a-f]{2,3}: (?:[0-9a-f]{2} ){15}[0-9a-f]{2}"
_CAPABILITY = r"^[ \t]+Capabilities: "
_MATRIX_LINE = r"^[ \t]*(?:GPU|NIC|mlx5_)\d+[ \t][^\n]*\bX\b"
_P2P_LINE = rf"^[ \t]*GPU\d+(?:[ \t]+(?:X|{'|'.join(P2P_STATUSES.values())}))+[ \t]*$"
_P2P_HEADING = r"^[ \t]+GPU\d+(?:[ \t]+GPU\d+)*[ \t]*$"
_NO_NVLINK = r"(?i)^(?:NVML: Unable to|Device does not|Nvlink queries)\b[^\n]*\bnvlink\b|^Nvlink queries"
_SMI_SECTION = r"^[ \t]+(?:ECC Errors|Remapped Rows|PCI|Fabric|Clocks Event Reasons|(?:FB|BAR1) Memory Usage)[ \t]*$"
_SMI_LEAF = (  # lines that name themselves, below their GPU
    r"^[ \t]+(?:Link Width[ \t]*$|(?:HW (?:Thermal |Power Brake )?Slowdown|SW Thermal Slowdown|Persistence Mode|"
    r"Remapping Failure Occurred|SRAM Threshold Exceeded|GPU Recovery Action|Channel Repair Pending|"
    r"Pending Page Blacklist|Current Power Limit|[SD]RAM Uncorrectable[\w -]{0,12})[ \t]+: )"
)
_QUERIED = (  # a field of --query-gpu that states something; those of hl-smi have a bus_id of their own
    r"\A(?:[^\n]*\b(?:uuid|pci\.bus_id|pcie\.link\.\w+)\b|(?![^\n]*(?:, |^)(?:module_id|bus_id)\b)[^\n]*\b"
    r"(?:clocks_(?:event|throttle)_reasons\.\w+|ecc\.(?:mode|errors)\.\w+|mig\.mode\.\w+|c2c\.mode|remapped_rows\.\w+|retired_pages\.\w+|"
    r"gpu_recovery_action|fabric\.\w+|persistence_mode|vbios_version|temperature\.gpu|power\.limit|"
    r"clocks\.(?:current\.)?(?:sm|graphics))\b)"
)
_SMI_SENTENCE = (  # whole lines, which any command of it may print; in quotes, too
    r"^[^\w\n]{0,8}(?:Unable to determine the device handle for GPU ?\S|No devices were found[ \t.]*$"
    r"|Failed to initialize NVML: "
    r"|NVIDIA-SMI has failed because|NVIDIA-SMI couldn't (?:find|communicate))"
)
_CONTAINER_SENTENCE = (
    r"^[^\n]{0,400}?(?:nvidia-container-cli: |could not select device driver \"|unresolvable CDI devices "
    r"|unknown or invalid runtime name: nvidia|no runtime for \"nvidia\" is configured|Allocate failed due to "
    r"|If this is a GPU node, did you (?:set the docker|configure the NVIDIA)|nvml init failed: )"
)
_TEXT = ("lspci", "-D", "-nn", "-vvv")
_HEX = ("lspci", "-D", "-nn", "-xxxx")
_AMD_JSON = r"\A(?:\$ [^\n]*\n)?\s*[\[{][^}]{0,80}\"gpu\" ?: ?\d"
_AMD_NAMES = r"(?:GPU\d+|[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])[ \t]"
_ROCM_HEADING = r"^(?:Device|GPU) {1,8}\S[^\n]{0,200}GPU%[ \t]*$"
# Among the first lines one that the kernel wrote, as /dev/kmsg has it, or dmesg, journalctl or syslog print it
_KERNEL_LINE = (
    r"\A(?:[^\n]*\n){0,4}?(?:"
    r"(?:\d{1,7} ?)?[ \t]*\[[ +\d]{1,12}\.\d{3,6}\](?:\[ *[TC]\d+\])? (?!\[[\w.-]{1,64}:\d)"  # that of UCX has a host
    r"|<\d+>\[|\d+,\d+,\d+,-;|kern +:\w+ *: "
    r"|\[\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}\] "
    r"|\[[^\W\d]{3,12}\.?[ \d]\d \d\d:\d\d\] "  # dmesg -H
    r"|\[?\d{4}-\d\d-\d\dT[\d:]{8},\d{6}(?:Z|[+-]\d\d:?\d\d)\]?:? "  # dmesg --time-format=iso
    r"|(?:[^\n]{0,80}?\bNVRM: )?Xid \(|(?:kernel: )?NVRM: [A-Z]|NVRM:? (?:GPU\d{1,4} )?_?[a-z]\w{2,80}: "
    r"|[\w.-]{1,64}: kern: +\w+: \["
    rf"|[ \t]*(?:kernel: )?(?:{KERNEL_DRIVERS}) [0-9a-f]{{4,8}}:[0-9a-f]{{2}}:[0-9a-f]{{2}}\.[0-7](?: \S{{1,40}})?: "
    r"|[ \t]{0,16}(?:<\d{1,3}>1 )?(?:\d{4}-\d\d-\d\dT\S+|[^\W\d]\w{2,11}\.? {1,2}\d{1,2} [\d:]{8}) (?:\S+ )?"
    r"kernel(?:: | - \S{1,32} [-\[]))"
)

# A line that systemd, the journal or a service of a GPU node wrote, in one of their forms
_SERVICES = (
    r"nv-fabricmanager|nvidia-fabricmanager|nvlsm|nvidia-imex|nvidia-persistenced|nv-hostengine|nvidia-dcgm|"
    r"nvidia-vgpu-mgr|nvidia-vgpud|nvidia-gridd|"
    r"opensmd?|OpenSM|openibd|rshim|irqbalance|systemd-coredump"
)
SERVICE_LINES = (
    rf"[ \t]*(?:\d{{4}}-\d\d-\d\d\S{{8,24}}|[^\W_]{{2,12}}\.? {{1,2}}\d{{1,2}} [\d:]{{8}}) \S{{1,255}} "
    rf"(?:(?:{_SERVICES})[\w.-]{{0,16}}(?:\[\d{{1,10}}\])?: "
    rf"|systemd\[1\]: [^\n]{{0,80}}?\b(?:(?:{_SERVICES})\b|NVIDIA (?:fabric|Pers|IMEX|vGPU)))",
    r"\[\w{3} \d\d \d{4} [\d:]{8}\] \[(?:INFO|ERROR|WARNING|CRITICAL|NOTICE)\] ",  # fabric manager, IMEX
    r"\w{3} \d\d [\d:]{8} \d{6} \[[0-9A-Fa-f]{8}\] 0x[0-9a-f]{2} -> ",  # opensm, nvlsm
    r"[\d-]{10} [\d:]{8}\.\d{3} +(?:ERROR|WARN|INFO|DEBUG) +\[\d{1,10}:\d{1,10}\] ",  # DCGM
    r"(?:[\w.:-]{7,64}: )?(?:nvlsm: )?(?:ibwarn: \[\d{1,10}\] )?umad_init: can't read ABI version",
    r"(?:[^\n]{0,200}(?:\b802\b[^\n]{0,60}|[:=(\"'`] ?))?system not yet initialized\b",
    rf"(?:[^\w\s] )?(?:{_SERVICES})\.service(?: - [^\n]{{0,120}})?$",
    rf"Unit (?:{_SERVICES})\.service could not be found",
    rf"Job for (?:{_SERVICES})\.service failed because ",  # systemctl start
    r"[^\n]{0,80}?\bfabric manager config file item:? ?[A-Z_]{2,60} has an invalid value",
)
_SERVICE_LINE = "|".join(f"^{line}" for line in SERVICE_LINES)
_NO_JOB = r"\A(?![\s\S]{0,60000}?(?:NCCL (?:INFO|WARN)|\[rank\d|torchrun|torch\.distributed))"  # its log has a command

_BMC_DATE = r" {0,3}(?:\d\d/\d\d/\d{2,4} {0,3}\| {0,3}[\d:]{8}[^|\n]{0,12}|Pre-Init *\|[^|\n]{0,24})"


def _row(command: str | tuple[str, ...], *patterns: str) -> tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]:
    """The row of one command."""
    return (tuple(command.split()) if isinstance(command, str) else command,), patterns


MARKS: tuple[tuple[tuple[tuple[str, ...], ...], tuple[str, ...]], ...] = (
    _row(commands.OWN_REPORT, OWN_LINE),
    _row("nvidia-smi -q -x", r"^<nvidia_smi_log>"),
    _row("nvidia-smi -q", r"^=+NVSMI LOG=+"),
    _row("nvidia-smi -q", r"^[ \t]*GPU [0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[01][0-9A-Fa-f]\.0[ \t]*$", _SMI_SECTION),
    _row("nvidia-smi -q", r"^[ \t]*GPU [0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[01][0-9A-Fa-f]\.0[ \t]*$", _SMI_LEAF),
    _row(
        commands.GPU_LINES,
        r"\A(?![\s\S]*^GPU [0-9A-Fa-f]{4,8}:)",
        r"^[ \t]*(?:Remapping Failure Occurred[ \t]*: (?:Yes|No)|Pending[ \t]*: (?:Yes|No)|"
        r"State[ \t]*: In Progress|"
        r"State[ \t]*: N/A|"
        r"State[ \t]*: Completed[ \t]*\n[ \t]*Status[ \t]*: (?!Success|N/A)[A-Z]\w+|"
        r"SRAM Threshold Exceeded[ \t]*: Yes|[SD]RAM Uncorrectable[\w -]{0,12}: [1-9]|"
        r"GPU Recovery Action[ \t]*: [A-Z]\w*|Link Width[ \t]*\n[ \t]*Max[ \t]*: \d{1,2}x|"
        r"HW (?:Thermal |Power Brake )?Slowdown[ \t]*: (?:Not )?Active)\b",
        r"^[ \t]*(?:GPU Recovery Action[ \t]*: [^\n]{1,40}|Link Width|"
        r"HW (?:Thermal |Power Brake )?Slowdown[ \t]*: [\w ]{6,12}|Remapped Rows|"
        r"Remapping Failure Occurred[ \t]*: \w+|Fabric|ECC Errors|Volatile|"
        r"SRAM Threshold Exceeded[ \t]*: Yes)[ \t]*$",
    ),
    _row(
        commands.GPU_LINES,
        r"\A(?![\s\S]*<nvidia_smi_log>)",
        r"^[ \t]*<(?:clocks_(?:event|throttle)_reason_hw_\w{4,30}|remapped_row_(?:failure|pending))>",
    ),
    _row("hl-smi -Q", r"\A(?:[\w.]{1,60}, ?){0,30}?(?:module_id|bus_id)[ ,]", r"\A[^\n]{0,800}\becc\.errors\.\w"),
    _row("nvidia-smi --query-gpu", r"\A[a-z_.]+(?: \[[\w/%]+\])?, ", _QUERIED),
    _row("nvidia-smi", r"^\|[ \t]*NVIDIA-SMI[ \t]", r"^\|[^|\n]{1,80}\|[ \t]*[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[01]"),
    _row("nvidia-smi topo -p2p r", _P2P_LINE, _P2P_HEADING),
    _row(
        "nvidia-smi topo -m",
        r"^[ \t]*GPU\d+[ \t]",
        _MATRIX_LINE,
        r"^(?:[ \t]+GPU\d+\b|GPU0[ \t]+(?:GPU1|NIC0|mlx5_\d+|CPU Affinity)\b)",
    ),
    _row(
        "nvidia-smi nvlink -e",
        _GPU_LINE,
        r"^[ \t]+Link \d+: (?:Replay|Recovery|CRC|[RT]x|Link recovery|Effective|Symbol) ",
    ),
    _row("nvidia-smi nvlink -R", _GPU_LINE, r"^[ \t]+Link \d+: Remote Device "),
    _row("nvidia-smi nvlink -c", _GPU_LINE, r"^[ \t]+Link \d+, [^\n]*: (?:true|false)"),
    _row("nvidia-smi nvlink -s", _GPU_LINE, r"^[ \t]+Link \d+: (?:[\d.]+ GB/s|<inactive>)"),
    _row("nvidia-smi nvlink -s", _GPU_LINE, _NO_NVLINK),
    _row(commands.DMON, r"^# ?(?:(?:Date +)?Time +)?gpu +(?:pid|pwr|sm|mclk|pviol|fb|sbecc|rxpci|[a-z]\w*temp)\b"),
    _row(commands.DCGM_SAMPLES, r"^# ?Entity +[A-Z0-9]{2,8}\b[^\n]{0,200}$", r"^GPU \d{1,3} {2,40}[\d.N]"),
    _row(commands.IMEX_NODES, r"^Node #\d{1,4} +[*-] +\S+ +[*-]"),
    ((commands.STATED, (_SMI, "-L")), (rf"{_GPU_LINE}[^\n]*\(UUID: GPU-", r"^[\d.]{1,5}%  proc'd: ")),
    ((commands.C2C_LINKS, (_SMI, "-L")), (_GPU_LINE, r"^[ \t]+C2C Link \d+: (?:[\d.]+ GB/s|<?inactive>?)")),
    _row("nvidia-smi -L", rf"{_GPU_LINE}[^\n]*\(UUID: GPU-"),
    ((_TEXT, _HEX), (_PCI_LINE, _HEX_LINE, _CAPABILITY)),
    _row(_HEX, _PCI_LINE, _HEX_LINE),
    _row(_TEXT, _PCI_LINE),
    _row(_TEXT, _PCI_ADDRESS_ALONE),
    _row(
        commands.PCI_LINES,
        r"^[ \t]*(?:ACSCtl:[^\n]{0,120}ReqRedir[+-]|LnkSta:[^\n]{0,80}\(downgraded\))",
        r"\A(?![\s\S]*^[> \t]*(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7](?: [A-Z0-9]|[ \t]*$))",
    ),
    _row("ibstatus", r"^Infiniband device '[^'\n]+' port \d+ status:"),
    _row("ibstat", r"^CA '[^'\n]+'", r"^[ \t]*(?:CA type|State|Physical state|Rate):"),
    _row("ibv_devinfo -v", r"^hca_id:[ \t]"),
    _row("ibv_devices", r"\A[ \t]*device[ \t]+node GUID"),
    _row("rdma link", r"^(?:link |\d+/\d+: )\S+/\d+:? [^\n]*\bstate [A-Z]"),
    _row("ibdev2netdev", r"^(?:\S+ )?\S+ (?:\([^\n]{0,200})? *port +\d+ +(?:\([^\n]*\) )?==> +\S+ +\("),
    _row("show_gids", r"^DEV[ \t]+PORT[ \t]+INDEX[ \t]+GID"),
    _row("ibdiagnet2.db_csv", r"^START_(?:NODES|INDEX_TABLE|DB_CSV)\b"),
    _row("ibdiagnet2.net_dump", r"^ *# *: *IB# *:", r": *Neighbor Guid *:"),
    _row(
        "ibqueryerrors",
        r"^(?:Errors|Data Counters) for (?:0x[0-9a-f]{1,16} )?\"",
        r"^ +GUID 0x[0-9a-f]{1,16} port (?:\d|ALL)",
    ),
    _row("ibqueryerrors", r"^[> \t]*GUID 0x[0-9a-f]{1,16} port \d{1,3}: {0,2}\[\w"),  # without the line above it
    _row("ibqueryerrors", r"^## Summary: \d+ nodes checked, \d+ bad nodes found"),
    _row("perfquery", r"^# Port info: ", r"^LinkState:\.+[A-Z]"),
    _row("perfquery", r"^# Port (?:extended )?counters: Lid \d", r"^PortSelect:\.+\d"),
    _row("ibdiagnet", r"^-[EWI]- [^\n]*(?:increased during the run|Unexpected actual link (?:speed|width) )"),
    _row("ibdiagnet", r"^-W- (?:lid=0x[0-9a-f]{1,8} guid=0x|link with (?:LOG|PHY|SPD|WID)=)"),
    _row("ibdiagnet", r"^-[EWI]- [A-Z][\w ./-]{3,60}? finished (?:successfully|with errors)"),
    _row("iblinkinfo", r"==\( {0,20}\S", r"\)==> "),
    _row("ibnetdiscover", r'^(?:Switch|Ca|Rt)\s+\d{1,3}\s+"[SHR]-[0-9a-f]{16}"'),
    _row("ibnetdiscover -p", r"^(?:CA|SW|RT) {1,5}\d{1,5} {1,2}\d{1,3} 0x[0-9a-f]{16} "),
    _row("lldpctl -f json", r"\A\s*\{\s*\"lldp\":"),
    _row("lldpctl -f keyvalue", r"^lldp\.\S{1,64}\.via="),
    _row("lldpctl -f xml", r"\A\s*(?:<\?xml[^>]{0,80}>\s*)?<lldp\b"),
    _row(
        "lldpctl",
        r"\A(?![\s\S]*^Interface: +Ethernet\d)",  # so are ports of SONiC called: a switch
        r"^Interface: +[^,\s]{1,64}, via: ",
        r"^[ \t]*(?:ChassisID|PortID): ",
    ),
    _row("ip -d link", r"^\d{1,6}: \S{1,60}: <[A-Z0-9_,-]*> mtu \d", r"^[ \t]+link/[^\n]*\bpromiscuity \d"),
    _row(
        "ifconfig",
        r"^[\w.-]{1,40}(?:: flags=\d+<[A-Z,]*> +mtu \d| +Link encap:\w)",
        r"^[ \t]+[RT]X (?:packets|errors)[ :]\d",
    ),
    _row("ifconfig", r"^[> \t]*RX packets:\d{1,20} errors:\d{1,20} dropped:\d|^[> \t]*RX errors \d{1,20} +dropped \d"),
    _row("ip link", r"^\d{1,6}: \S{1,60}: <[A-Z0-9_,-]*> mtu \d", r"^[ \t]+link/(?:ether|infiniband|loopback)\b"),
    _row(
        "ip link",
        r"^\S{1,60} {1,40}(?:UP|DOWN|UNKNOWN|DORMANT|LOWERLAYERDOWN) {1,40}(?:[0-9a-f]{2}:){5,19}[0-9a-f]{2} "
        r"<[A-Z0-9_,-]{2,200}>[ \t]*$",
    ),
    _row(
        "ip link",
        r"^\S{1,60} {1,40}(?:UP|DOWN|UNKNOWN|DORMANT|LOWERLAYERDOWN) {1,40}"
        r"(?:\d{1,3}\.){3}\d{1,3}/\d{1,2}(?: [^\n]{0,400})?$",
    ),
    _row(
        "cxl list -v",
        r"\A(?:[#$] [^\n]*\n)?\s*[\[{]",
        r"^[ \t]*\"(?:memdev|bus|port|endpoint|region)\" ?: ?\"(?:mem|root|port|endpoint|region)\d",
    ),
    _row(
        "rocm-smi --showrasinfo",
        r"^=+ ROCm System Management Interface =+",
        r"^GPU ?\[\d+\]\s*:[^\n]*\bRAS INFO",
        r"^ +Block +Status ",
    ),
    _row("rocm-smi --showretiredpages", r"^=+ ROCm System Management Interface =+", r"^=+ Pages Info =+"),
    _row(commands.ROCM_XGMI, r"^GPU ?\[\d{1,4}\]\s{0,16}: XGMI Error count: \d"),
    _row(commands.ROCM_SHORT, _ROCM_HEADING, r"^[ \t]*\d{1,3}[ \t]+[^\n=]{10,200}$"),
    _row(commands.ROCM_SHORT, _ROCM_HEADING, NO_ROW),
    _row("rocm-smi --showtopo --json", r"\A\s*\{\s*\"(?:system|card\d+)\":"),
    _row("rocm-smi --showtopo", r"^=+ ROCm System Management Interface =+", rf"^{_AMD_NAMES}"),
    _row("rocm-smi --showtopo", r"^=+ (?:Link Type|Weight) between two GPUs =+", r"^GPU0 +\S"),
    _row("amd-smi topology --json", _AMD_JSON, r"\"(?:links|link_type|weight)\" ?: ?[\[{]"),
    _row("amd-smi static --json", _AMD_JSON, r"\"(?:asic|vram|board)\" ?: ?\{"),
    _row("amd-smi metric --json", _AMD_JSON, r"\"(?:ecc|ecc_blocks|mem_usage)\" ?: ?\{"),
    _row("amd-smi list --json", _AMD_JSON, r"\"kfd_id\" ?:"),
    _row("amd-smi partition --json", r"\A\s*[\[{]", r"\"accelerator_(?:type|profile_index)\" ?:"),
    _row("amd-smi bad-pages --json", _AMD_JSON, r"\"(?:retired|un_res)\" ?:"),
    _row("amd-smi bad-pages", r"^GPU: \d+\s*$", r"^ +(?:RETIRED|UN_RES):"),
    _row("amd-smi topology", r"^[A-Z ]+ TABLE:", rf"^ +{_AMD_NAMES}"),
    _row("amd-smi xgmi", r"^LINK METRIC TABLE:"),
    _row(commands.AMD_LINKS, r"^[ \t]*(?:XGMI LINK STATUS:|GPU:\d{1,3}[ \t]*\n)", r"^[ \t]*\* U:Up D:Down X:Disabled"),
    _row(commands.AMD_LINKS, r"^XGMI LINK STATUS:", r"^GPU\d{1,3} +\S{10,16}(?: +[UDX]){2,16}[ \t]*$"),
    _row("amd-smi static", r"^GPU: \d+\s*$", r"^ +(?:ASIC|BUS):\s*$"),
    _row("amd-smi metric", r"^GPU: \d+\s*$", r"^ +(?:ECC|ECC_BLOCKS|USAGE|MEM_USAGE|PCIE):\s*$"),
    _row("amd-smi list", r"^GPU: \d+\s*$", r"^ +KFD_ID: "),
    _row("amd-smi monitor", r"^[ \t]{0,20}GPU [^\n]{0,300}\bGFX_CL(?:OC)?K\b", r"^ +\d{1,3} [^\n]{0,200}\bMHz\b"),
    _row("amd-smi monitor", r"^ {0,20}GPU [^\n]{0,300}\bSINGLE_ECC {2}DOUBLE_ECC\b"),
    _row("amd-smi", r"^\| AMD-SMI ", r"^\| BDF "),
    _row("hl-smi", r"^\| HL-SMI Version: ", r"^\|\s+\d+\s+HL-\S+\s"),
    _row("dcgmi health -c", r"(?:^\|? ?|\")Health Monitor Report", r"Overall Health"),
    _row("dcgmi health -c", r"^\| Overall Health +\| (?:Healthy|Warning|Failure) "),
    _row("dcgmi nvlink --link-status", r"NvLink Link Status", r"^[ \t]*gpuId \d{1,4}:"),
    _row("dcgmi diag -r", r"^\| Diagnostic +\| Result "),
    _row("dcgmi diag -r", r"^[|+]-{3,8} {1,4}(?:Deployment|Integration|Hardware|Stress) {1,4}-{3,16}\+-"),
    _row("dcgmi diag -r -j", r"\"DCGM (?:GPU )?Diagnostic\" ?:", r"\"test_categories\" ?:"),
    _row("neuron-ls --json-output", r"\A(?:\$ [^\n]*\n)?\s*\[\s*\{", r"^[ \t]*\"neuron_device\" ?: ?\d"),
    _row(
        "neuron-ls --output-format json",
        r"\A(?:\$ [^\n]*\n)?\s*\{",
        r"^[ \t]*\"neuron_device\" ?: ?\d",
        r"^[ \t]*\"bdf\" ?: ?\"",
    ),
    _row("neuron-ls", r"^\| NEURON \|", r"^\| DEVICE \|", r"^\| \d+ +\|"),
    _row("npu-smi info -t topo", r"^[ \t]*(?:NPU|Phy-ID)\d+[ \t][^\n]*\bX\b"),
    _row("npu-smi info", r"^\| npu-smi ", r"^\|[^\n]*\| *[0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7] *\|"),
    _row("hccn_tool", r"^[^\n]{0,80}?\bhccn_tool +(?:-g +)?-i +(?:\d|\$)"),
    _row("hccl.json", r"\A\s*\{", r"\"(?:server_list|group_list)\"\s*:", r"\"rank_id\"|\"device_ip\""),
    _row("hccn.conf", r"\A(?:[ \t#][^\n]*\n)*address_\d{1,2}=\d"),
    _row("mlxlink", r"^[> \t]*Operational Info[ \t]*$", r"^[> \t]*State +: "),
    _row("mlxlink", r"\"Operational Info\" ?: ?\{", r"\"State\" ?: ?\""),
    _row(
        "mlxlink",
        r"\A\s{0,8}\{\s{0,8}\"result\" ?: ?\{\s{0,8}\"output\" ?: ?\{\s{0,12}"
        r"\"(?:Histogram of FEC Errors|Module Info|Operational Info)\" ?: ?\{",
    ),
    _row(
        "manage_network_ifs.sh",
        r"^[ \t]*(?:accel|hl)\d{1,3}:?[ \t]*$",
        r"(?i)^[ \t]*(?:\d{1,3} ports? (?:up|down)\b|port +\d{1,3}:?\s+(?:up|down)\b|no interfaces were detected)",
    ),
    _row("manage_network_ifs.sh", r"^[ \t]*port 0:\s+(?:UP|DOWN)[ \t]*$", r"^[ \t]*port 1:\s+(?:UP|DOWN)[ \t]*$"),
    _row(commands.NPU_HEALTH, r"^[ \t]*Health(?: Status)? +: [A-Z]", r"^[ \t]*Error Code +: \w"),
    _row(commands.NIC_PORTS, r"^[ \t]*(?:Operational status +:|LINK_STATE:) (?:UP|DOWN|up|down)\b"),
    _row(commands.CXI_PORTS, r"^[ \t]*Device: cxi\d", r"^[ \t]+Link state: \w"),
    _row(commands.CMA_MODE, r"^(?:IB/)?RoCE v[12][ \t\r]*$"),
    _row(commands.FLINT, r"^[ \t]*FW Version:[ \t]+\d", r"^[ \t]*FW Version\(Running\):[ \t]+\d"),
    _row(commands.OPA_PORTS, r"^(?:hfi\d_\d{1,2}:\d\b|[a-z]\w{1,30}:\d[ \t]+PortGID:0x)", r"^[ \t]+PortState: +\w"),
    _row(
        commands.UFM_EVENTS,
        r"^(?:[^\n]{0,120} - )?[ \t]*\d{4}-\d\d-\d\d [\d:.]{8,15} (?:\[[\w-]{1,12}\] ){1,3}"
        r"(?:INFO|WARNING|MINOR|CRITICAL) \[[^\]\n]{2,40}\] (?:\w{2,20} )?\[[^\]\n]{2,160}\]"
        r"(?: \[dev_id: \w{1,20}\])? ?: ",
    ),
    _row(commands.GDS_CHECK, r"^ *(?:GDS release version|nvidia_fs version) *: ", r"^ *NVMe +: (?:Uns|S)upported"),
    _row(commands.GDS_CHECK, r"^ *DRIVER CONFIGURATION: *$", r"^ *\**NVMe +: (?:Uns|S)upported"),
    _row(
        commands.ROUTES,
        r"^[ \t]*(?:default via|(?:\d{1,3}\.){3}\d{1,3}/\d{1,2} dev) \S",
        r"^[^\n]{8,80} (?:proto|scope|metric|src) \w",
    ),
    _row(commands.MLXCONFIG, r"^[ \t]*Configurations:[^\n]* Current\b", r"^[ \t*]*[A-Z][A-Z0-9_]{2,60}[ \t]+\S"),
    _row(
        commands.MLXCONFIG,
        r"^[ \t]*Configurations:[^\n]*\n(?:[^\n]*\n)*?[ \t]*Configurations:",
        r"^[ \t*]*[A-Z][A-Z0-9_]{2,60}[ \t]+\S",
    ),
    _row(commands.BONDING, r"^Slave Interface: \S", r"^MII Status: "),
    _row(
        commands.NIC_REPORTERS,
        r"^[ \t]*(?:pci|auxiliary)/\S{5,60}:$",
        r"^[ \t]+reporter \w",
        r"^[ \t]+state (?:healthy|error)\b",
    ),
    _row(commands.BMC_LOG[0], rf"^[ \t]*[0-9a-f]{{1,8}} {{0,3}}\|{_BMC_DATE} {{0,3}}\|[^|\n]{{2,80}}\|"),
    _row(commands.BMC_LOG[2], r"^ID +\| Date +\| Time +\| Name +\| Type +\| "),
    _row(
        commands.BMC_LOG[3],
        r"^(?:Record: +\d|SeqNumber += \d)",
        r"^Severity *[:=] +\w",
        r"^(?:Description|Message) *[:=] ",
    ),
    _row(commands.BMC_RECORDS, r"\"@odata\.type\" ?: ?\"#LogEntry", r"\"Message\" ?: ?\""),
    _row(
        commands.BMC_RECORDS,
        r"\"@odata\.id\" ?: ?\"[^\"\n]{1,200}/Entries",
        r"\"Severity\" ?: ?\"",
        r"\"Message\" ?: ?\"",
    ),
    _row(commands.BMC_RECORDS, r"^[^\n]{0,60}\bFQXS[A-Z]{2}\w{4,8}\b"),
    _row(commands.BMC_RECORDS, r"^[ \t]*severity=[A-Z]\w+[ \t\r]*$", r"^[ \t]*description=\w"),
    _row(commands.BMC_RECORDS, r"<EVENT SEVERITY=\"[A-Z][^\n]{20,600}\bDESCRIPTION=\""),
    _row(commands.BMC_RECORDS, r"\bSEL Entry: FRU: \d{1,3}, Record: |^IPMI Status: (?:Critical|Warning) \["),
    _row(
        commands.BMC_RECORDS,
        r"^[^|\n]{0,60}\d{4}[/-]\d\d[/-]\d\d[ T][\d:]{8}[^|\n]{4,300}"
        r"\b(?:Dea|A)ssert(?:ed|ion)[\"\t\r ]{0,8}$",
    ),
    _row(
        commands.BMC_SENSORS[0],
        r"^\S[^|\n]{0,40}\|[^|\n]{1,40}\|(?:[^|\n]{1,40}\|)? *(?:ok|[lu]?(?:nc|cr|nr)|ns)(?: *\||[ \t]*$)",
    ),
    _row(commands.BMC_SENSORS[0], r"^ID +\| Name +\| Type +\|(?: State +\|)? Reading +\| Units"),
    _row(
        commands.BMC_SENSORS[0],
        r"^\d{1,5} {1,8}\| [^|\n]{2,40}\| [A-Z][\w /]{2,40}\|(?:[^|\n]{2,40}\|){2,3} '[^'|\n]{2,80}'$",
    ),
    _row(commands.BMC_SENSORS[0], r"^[A-Z][\w ]{1,24}? *\| *0x[0-9a-f]{1,4} *\| discrete *\| 0x[0-9a-f]{4} *\|"),
    _row(commands.BMC_SENSORS[0], r"^Main Power Fault +: (?:true|false)[ \t]*$"),
    _row(
        commands.REDFISH,
        r"\"@odata\.(?:id|type)\" ?: ?\"",
        r"\"(?:Health|LinkStatus|LanesInUse|FatalErrorCount)\" ?: ?",
    ),
    _row(commands.REDFISH, r"\"(?:LanesInUse|HealthRollup|MaxPCIeType)\" ?: ?"),  # as jq leaves it
    _row(commands.ALERTS, r"^(?:ALERTS\{[^\n]{0,2000}\balertname=|[ \t*]{0,8}\[FIRING:\d{1,4}\] \S)"),
    _row(
        commands.AMD_METRICS,
        r"^(?:(?:amd_)?gpu_health|[a-z]\w{0,60}(?:ecc|ras)\w{0,60}corr\w{0,60}"
        r"|[a-z]\w{0,60}(?:nvlink|gpu|xgmi|infiniband)\w{0,40}_(?:enabled|up|active|healthy))\{[^\n]{0,1600}"
        r"\b(?:gpu_id=\"\d|gpu=\"\d|card=\"\d|(?i:uuid)=\"[0-9a-fG])",
    ),
    _row(commands.AMD_METRICS, r"^(?!DCGM_)\w{0,40}pcie_(?:max_)?link_width\w{0,20}\{[^\n]{0,1600}\} \d"),
    _row(commands.DCGM_METRICS, r"^DCGM_(?:FI|EXP)_[A-Z_]{4,60}\{[^\n]*gpu=\"\d"),
    _row(
        commands.DCGM_METRICS,
        r"^[ \t`|>*-]{0,20}DCGM_(?:FI|EXP)_[A-Z_]{0,20}XID_ERRORS[A-Z_]{0,20}\{[^}\n]{0,1600}"
        r"\b(?:xid|err_code)=\"\d",
    ),
    _row(commands.SLURM_NODE, r"^[ \t]*NodeName=\S{1,200} ", r"\bCPUAlloc=\d|\bReason=\S", r"\bState=[A-Z]"),
    _row(
        commands.SLURM_LOG,
        r"^(?:\[[\dT:.-]{19,30}\] |[^\n]{0,80}\bslurmctld(?:\[\d{1,10}\])?: )"
        r"(?:update_node: node \S{1,80} reason set to: |error: Nodes \S{1,200} not responding, setting DOWN"
        r"|error: Setting node \S{1,80} state to INVAL with reason:)",
    ),
    _row(commands.SLURM_LOG, r"^[^\n]{0,120}?(?:can't stat|Waiting for) gres\.conf file /dev/"),
    _row(commands.SLURM_LOG, r"^[^\n]{0,200}?(?:/node-mark-offline \S|\bnhc(?:\[\d{1,10}\])?: +Health check failed:)"),
    _row(
        commands.SLURM_HELD,
        r"^(?:[A-Z_:() ]{0,160} )?NODELIST\b[A-Z_:() ]{0,160}$",
        r"^[A-Z_:() ]{0,200}\b(?:REASON|STATE)\b[A-Z_:() ]{0,200}$",
    ),
    _row("kubectl describe node", r"^Name: +\S", r"^Conditions:", r"^Capacity:", r"^Allocatable:"),
    _row("kubectl describe node", r"^Conditions:", r"^ +Type +Status +LastHeartbeatTime "),
    _row("kubectl describe node", r"^Capacity:[ \t]*$", r"^Allocatable:[ \t]*$"),
    _row(
        "kubectl describe node",
        r"^[ \t]*[A-Z]\w{2,80} +(?:True|False|Unknown) +[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} [^\n]{60,600}$",
    ),
    _row(
        "kubectl describe node",
        r"\A\s*[\[{]",
        r"\"lastHeartbeatTime\" ?: ?\"",
        r"\"status\" ?: ?\"(?:True|False|Unknown)\"",
    ),
    _row(
        "kubectl get node",
        r"^[ \t]*\"?allocatable\"?: ?\{?$",
        r"^[ \t]*\"?capacity\"?: ?\{?$",
        r"^[ \t]*\"?[\w.-]{3,60}/[\w.-]{2,60}\"?: ",
    ),
    _row(
        "kubectl get node",
        r"\.status\.(?:capacity|allocatable)\b",
        r"^[ \t]*\"[\w.-]{3,60}/[\w.-]{2,60}\": ?\"\d{1,9}\",?[ \t]*$",
    ),
    _row("kubectl get node", NODE_HEADING, r"^[> \t]*\S+ +(?:(?:Not)?Ready|Unknown)\b"),
    _row("kubectl describe pod", r"^Name: +\S", r"^Namespace: +\S", r"^(?:Init )?Containers:"),
    _row("kubectl get events", r"\A(?:NAMESPACE +)?LAST SEEN +TYPE +REASON +OBJECT "),
    _row("lsmod", r"\A(?:Module +Size +Used by|\w+ +\d+ +\d+(?: [\w,\[\]-]*)?)$"),
    _row(
        "sysfs files",
        r"^[> \t]*(?:==> )?/(?:sys/(?:class|bus|module|devices|kernel)|proc|etc/(?:modprobe\.d|nccl))"
        r"(?:/[\w.:@+-]{1,64}){1,12}(?:(?<=[\w+-]):(?![0-9a-f]{2}:[0-9a-f]{2}\.)| <==$)",
    ),
    _row(
        commands.DMI_MEMORY[0],
        r"^[ \t]*Memory Device[ \t]*$",
        r"^[ \t]+(?:Configured (?:Memory|Clock) Speed|Locator|Form Factor): ",
    ),
    _row(commands.NVSM_HEALTH, r"^[ \t]*\S[^\n]{2,100}\.{3,100} ?(?:Healthy|UnHealthy)[ \t]*$"),
    _row(
        commands.MEASURED,
        r"(?i)^[^\n]{0,80}(?:\bbandwidth\b|\b[GM]B/s)[^\n]{0,40}$",
        r"^[ \t]{0,12}(?:(?:\w{1,8}[\\/]D|(?i:gpus?|dev(?:ice)?|npu))?[ \t]{1,16}0[ \t]{1,12}1[ \t]{1,12}2\b"
        r"|\w{1,8}\\D[ \t]{1,16}0[ \t]{1,12}1\b)"
        r"[\d \t]{0,400}$",
    ),
    _row(commands.MEASURED, r"^[ \t]*(?:Host to Device|Device to Host) Bandwidth, \d{1,3} Device\(s\)"),
    _row(
        commands.MEASURED,
        r"^[> \t]*(?:Device=\d{1,3} CAN(?:NOT)? Access Peer Device=\d|P2P Connectivity Matrix[ \t]*$)",
    ),
    _row("sysfs files", r"^[> \t]*node \d{1,4} cpus:[ \d,-]*$", r"^[> \t]*node \d{1,4} size: \d{1,9} MB"),
    _row("sysfs files", r"^[> \t]*NUMA node0 CPU\(s\): +\d"),
    _row("sysfs files", r'^node_infiniband_\w{3,60}\{device="[^"]'),
    _row("node_exporter", r'^node_network_(?:receive_errs|carrier_(?:down_)?changes)_total\{[^}]{0,200}device="'),
    _row("sysfs files", r'\{"ifindex": ?\d+, ?"ifname": ?"[^"]+", ?"port": ?\d+, ?"\w+": ?\d'),
    _row(
        "sysfs files",
        r"^[> \t]*(?:link |\d{1,4}/\d{1,3}: ?)[\w.-]{1,64}/\d{1,3}:?\s{1,12}"
        r"(?:[a-z]\w{2,60} \d{1,20}\s{0,12}){0,80}"  # with -p each in a line of its own
        r"(?:packet_seq_err|local_ack_timeout_err|rx_write_requests|seq_err_naks_rcvd|to_retransmits"
        r"|retrans_timeout_events) \d",
    ),
    _row(
        "sysfs files",
        r"^[^\n]{0,200}/sys/class/infiniband/[\w.-]{1,64}/ports/\d{1,3}/(?:hw_)?counters\b",
        r"^[> \t]*[a-z]\w{2,50}(?: +| ?: ?|\t+| ?= ?)\d{1,20}[ \t]*$",
    ),
    _row("ulimit -a", r"^(?:max locked memory +|-l: locked-in-memory size +)\(k(?:ilo)?bytes"),
    _row("dmesg", _KERNEL_LINE),
    _row(
        commands.INTERFACE_LOG,
        r"systemd-networkd(?:\[\d{1,10}\])?: \S{2,15}: (?:Lost carrier|(?:Could not|Failed to) \w)"
        r"|\bdevice \(\S{2,15}\): (?:carrier: link lost|state change: \w{4,20} -> unavailable \(reason 'carrier-)"
        r"|dhcpcd(?:\[\d{1,10}\])?: \S{2,15}: carrier lost\b",
        _NO_JOB,
    ),
    _row(
        commands.QDISC,
        r"^[> \t]*qdisc \S{2,20} [0-9a-f]{0,8}: ",
        r"^[> \t]*Sent \d{1,20} bytes \d{1,20} pkt \(dropped ",
    ),
    _row(commands.SERVICE_LOG, _SERVICE_LINE, _NO_JOB),
    _row("nvidia-smi", _SMI_SENTENCE),
    _row(
        "kubectl logs",
        r"^[^\n]{0,200}?(?:XidCriticalError: Xid=|' device marked unhealthy: |creating empty resource server for )",
    ),
    _row(
        commands.LDD,
        r"^[> \t]*lib[\w.+-]{1,60}\.so[\w.]{0,16} => (?:not found|/[^\n]{2,200} \(0x[0-9a-f]{8,16}\))[ \t\r]*$",
    ),
    _row("docker run", _CONTAINER_SENTENCE),
)


_SMI_SENTENCES = lazy_pattern(_SMI_SENTENCE, re.MULTILINE)


def is_sentence_of_smi(text: str) -> bool:
    """Whether nvidia-smi printed that it cannot work, which is whole whatever its options.

    >>> is_sentence_of_smi("No devices were found\\n"), is_sentence_of_smi("GPU 00000000:1B:00.0\\n")
    (True, False)
    """
    return _SMI_SENTENCES.search(text[:LOOK_CHARACTERS]) is not None


def identify_command(text: str, by_words: bool = True) -> tuple[tuple[str, ...], ...]:
    """The commands whose output this is; empty where nothing is known of it. Looks at the first LOOK_CHARACTERS.
    `by_words`: of a text that is no known output a line counts that states a failure of a part.

    >>> identify_command("CA 'mlx5_0'\\n\\tCA type: MT4129\\n\\tNumber of ports: 1\\n")
    (('ibstat',),)
    >>> identify_command("Dear all,")
    ()
    """
    start = _look_at(text)
    return _identify(start) or (_identify_by_words(start) if by_words else ())


def identify_by_words(text: str) -> tuple[tuple[str, ...], ...]:
    """As `identify_command` does by words, of a text of which it found nothing else.

    >>> identify_by_words("swp17 lost its carrier twice")
    (('error', 'of', 'program'),)
    """
    return _identify_by_words(_look_at(text))


def _look_at(text: str) -> str:
    return _ESCAPES.sub("", text[:LOOK_CHARACTERS]).replace("\r\n", "\n")


def _identify(start: str) -> tuple[tuple[str, ...], ...]:
    for argvs, patterns in MARKS:
        if all(_PATTERNS[pattern].search(start) for pattern in patterns):
            return argvs
    if tool := find_lost_heading(start):
        return (tool,)
    from probes.tool_reports.pods import (
        POD_ROW,
    )  # lazy, as are the others: few sources have a text that fits none of MARKS
    from probes.tool_reports.sentences.stated import find_tool_errors, is_stated

    if POD_ROW.search(start):
        return (commands.PODS,)
    if is_stated(start):
        return (commands.STATED,)
    if not _PATTERNS[_NO_JOB].search(start):
        return ()
    from probes.tool_reports.checks import is_of_checks

    if is_of_checks(start):
        return (commands.CHECKS,)
    from probes.tool_reports.counted import has_counts
    from probes.tool_reports.network.moments import has_series

    if has_series(start):
        return (commands.COUNTERS,)
    counted = (commands.COUNTS,) if has_counts(start) else ()
    if labelled := (*counted, *((commands.DEVICE_LABELS,) if has_labels(start) else ())):
        return labelled
    from probes.tool_reports.network.switch_ports import is_of_switch

    if is_of_switch(start):
        return (commands.SWITCH_PORTS,)
    from probes.sources.excerpts import find_excerpt
    from probes.tool_reports.tables.sheets import is_sheet

    excerpt = find_excerpt(start)
    if is_sheet(start):
        return (excerpt or commands.SHEET,)
    if errors := find_tool_errors(start):
        return (("error", "of", errors[0][0].tool or "program"),)
    if _OF_LOG.search(start):
        from probes.kernel.log_lines import has_kernel_line

        if has_kernel_line(start):
            return (("dmesg",),)
    from probes.services.sentences import SERVICE_SENTENCES

    if any(row.needle in start and row.pattern.search(start) for row in SERVICE_SENTENCES):
        return (commands.SERVICE_LOG,)
    return (excerpt,) if excerpt else ()


def _identify_by_words(start: str) -> tuple[tuple[str, ...], ...]:
    if not _PATTERNS[_NO_JOB].search(start) or is_log_of_job(start):
        return ()
    from probes.tool_reports.sentences.unexplained import find_unexplained  # lazy, as above
    from probes.tool_reports.tables.sheets import has_records

    if has_records(start):
        return (commands.SHEET,)
    return (("error", "of", "program"),) if find_unexplained(start) else ()


# What a line of a kernel log begins with, in any of its forms: seconds, a date, the host
_OF_LOG = lazy_pattern(
    r"^[^\n]{0,120}?(?:\[[ +\d]{1,12}\.\d{1,9}\]|\d\d:\d\d:\d\d|\bkernel: |blocked for more|EDAC MC|Xid \(PCI:|NVRM: "
    r"|\[drm:\w|Hardware Error\]|soft lockup|Kernel panic|NULL pointer|self-detected|emory failure: |memory: Kill"
    rf"|pcieport |\b(?:{KERNEL_DRIVERS}) [0-9a-f]{{4,8}}:[0-9a-f]{{2}}:)",
    re.MULTILINE,
)


_PATTERNS = {pattern: lazy_pattern(pattern, re.MULTILINE) for _, patterns in MARKS for pattern in patterns}


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
        r"^[ \t]*NPU ID[ \t]*: \d[^\n]{0,20}\n[ \t]*(?:Chip Count|Product Name|Slot ID)\b",
        "is an output of npu-smi that states no fault; save `npu-smi info` and `npu-smi info -t health -i 0`",
    ),
    (
        r"^(?:ipaddr|net health status|link status|PFC configuration|link up count|packet statistics) *:",
        "is an output of hccn_tool that does not state its NPU; save it as hccn_tool_-i_0_-link_-g.txt",
    ),
    (
        r"\A(?:[^\n]*\n)?[ \t]*(?:ACS(?:Cap|Ctl)|LnkSta|LnkCap|DevSta|UESta):[ \t]",
        "has lines of lspci -vvv that do not state their device; save the output without grep",
    ),
    (
        r"^ ?[-+\\| ]{1,3}\[[0-9a-f]{4}:[0-9a-f]{2}(?:-[0-9a-f]{2})?\]",
        "is the tree of lspci, which states neither links nor drivers; save `lspci -vvv` as root",
    ),
    (
        r"^Device #\d{1,3}:\s{0,80}$|^Configurations: {4,80}"
        r"|^ +(?:LINK_TYPE_P\d|ADVANCED_PCI_SETTINGS|SRIOV_EN) {4,60}\S",
        "is the configuration of a NIC's firmware, which is compared with that of at least three others, and read for "
        "nothing else; save `ibstat` and `lspci -vvv`",
    ),
    (
        r"^\[\d{1,3}\] [^\n|]{3,60}\| {1,3}\d{1,3}(?:'|°)C,",
        "is what gpustat prints, which no check reads; save `nvidia-smi -q`",
    ),
    (
        r"^\d{1,3} GPUs? found\.|^\| GPU ID \| Device Information ",
        "is the list of dcgmi, which states names and addresses; save `nvidia-smi -q`",
    ),
    (
        r"^[ \t]*CUDA Device Query \(Runtime API\) version|^Detected \d{1,3} CUDA Capable device"
        r"|^(?:> )?Peer access from [^\n]{3,120} -> [^\n]{3,120} : (?:Yes|No)",
        "is what a sample of CUDA lists, which no check reads; save `nvidia-smi -q` and `nvidia-smi topo -p2p r`",
    ),
    (
        r"^sminfo: sm lid \d{1,5} sm guid [^\n]{1,120} SMINFO_MASTER|^MST modules:|^netns (?:shared|exclusive)\b"
        r"|^[> \t]*\d{1,3}: [\w.-]{2,40}: (?:pd \d{1,6} cq |node_type \w{2,12} fw )"
        r"|^---[^\n]{1,100} ibping statistics ---|^provider: \w[^\n]{0,40}\n +fabric: ",
        "is an output of a tool for RDMA that states no fault; save `ibstat` or `rdma link`, `ibqueryerrors` and "
        "`lspci -vvv`",
    ),
    (
        r"^XPU Topology:|^\| Device ID \| Device Information +\|\n(?s:.){0,400}Intel\(R\)|^\| (?:MTHREADS|IX-SMI) "
        r"|\bMETAX\.B[0-9a-f]{2,8}\.|^TPU Chips$",
        "is of accelerators that no check covers: those of NVIDIA, AMD, Huawei, Intel Gaudi and Amazon are; save "
        "`lspci -vvv` and `ibstat`, which are read whatever the accelerator is",
    ),
    (  # in any language
        r"^[> \t]*-?(?:bash|sh|zsh|dash|ash|ksh|sudo|env): (?:line \d{1,5}: |\d{1,5}: )?[\w./+-]{2,60}: [^\n]{3,80}$",
        "has the error of a shell in place of an output: the command is not installed, is not in PATH, or may not be "
        "run; install it, or run it as root, and save what it prints",
    ),
    (
        r"^[> \t]*(?:dmesg: read kernel buffer failed|sudo: (?:a password is required|a terminal is required)\b)",
        "has an error in place of an output: only root may read that; run the command with sudo, and save what it "
        "prints",
    ),
    (r"\A\s*\{(?s:.){0,400}\"rank_list\"\s*:", "is a rank table of version 2.0, which names no server"),
)

UNNAMED = "ethX"  # stands for the interface of an output that does not state it
_OF_INTERFACE = (  # outputs about one interface, which only their command names
    (
        "mlnx_qos -i",
        r"^[> \t]*(?:DCBX mode: |Priority trust state: |tc: \d ratelimit: "
        r"|(?:priority(?:[ \t]{2,9}[0-7]){8}|enabled(?:[ \t]{2,9}[01]){8})[ \t\r]*$)",
    ),
    (
        "ethtool -m",
        r"^[> \t]*(?:Identifier[ \t]*: 0x[0-9a-fA-F]{2} \(|Vendor (?:name|PN|SN|OUI)[ \t]*: "
        r"|[RrTt][Xx][ _][Pp]ower[\w ,()#]{0,20}: ?-?\d{1,2}\.\d{1,2} ?dBm"
        r"|(?:Laser (?:tx|rx|output|bias)|Module (?:temperature|voltage)|Rcvr signal|Receiver signal)[\w ,()]{2,50}: )",
    ),
    (
        "ethtool -i",
        r"^[> \t]*(?:driver: [\w-]{1,40}[ \t]*\r?\n[> \t]*version: |bus-info: [0-9a-f]{4}:"
        r"|supports-statistics: (?:yes|no))",
    ),
    (
        "ethtool -S",
        r"^NIC statistics:|\A(?![\s\S]{0,4000}?^(?:PFC configuration|packet statistics)\b)"  # of an NPU
        r"(?:[^\n]*\n){0,400}?(?:[> \t]*(?:port\.)?[rt]x_\w{0,40}"
        r"(?:packets|bytes|octets|discard|err|pause|phy|drop|crc|fcs|missed|buf)[\w.]{0,40}: "
        r"\d{1,20}[ \t]*(?:\r?\n|\Z)){2}",
    ),
    ("dcb pfc show dev", r"^[> \t]*(?:pfc-cap \d|prio-pfc 0:(?:on|off))\b"),
    ("dcb ets show dev", r"^[> \t]*(?:willing \w+ )?ets-cap \d|^[> \t]*prio-tc 0:\d"),
    ("dcb app show dev", r"^[> \t]*(?:dscp|pcp)-prio \S{1,8}:\d"),
    ("ethtool -a", r"^[> \t]*RX:[ \t]+(?:on|off)[ \t\r]*\n[> \t]*TX:[ \t]+(?:on|off)[ \t\r]*$"),
    ("ethtool --show-fec", r"^[> \t]*(?:(?:Supported/)?Configured FEC encodings?|Active FEC encodings?): "),
    (
        "ethtool",
        r"^[> \t]*(?:Speed: (?:\d{1,7}Mb/s|Unknown!)|Link detected: (?:yes|no)|Duplex: (?:Full|Half|Unknown)"
        r"|(?:Supported|Advertised) link modes: )",
    ),
)
_OF_INTERFACE_PATTERNS = tuple((command, lazy_pattern(pattern, re.MULTILINE)) for command, pattern in _OF_INTERFACE)


def identify_unnamed(text: str) -> tuple[str, ...] | None:
    """The command whose output about one interface this is, with UNNAMED for its name.

    >>> identify_unnamed("NIC statistics:\\n     rx_packets: 0\\n"), identify_unnamed("Dear all,")
    (('ethtool', '-S', 'ethX'), None)
    """
    start = text[:LOOK_CHARACTERS]
    command = next((command for command, pattern in _OF_INTERFACE_PATTERNS if pattern.search(start)), None)
    return (*command.split(), UNNAMED) if command else None


_USELESS_PATTERNS = tuple((lazy_pattern(pattern, re.MULTILINE), why) for pattern, why in _USELESS)


def find_missing_name(text: str) -> str | None:
    """Why a text that is an output of a known tool cannot be read by itself; None: it is not known to be one."""
    start = text[:LOOK_CHARACTERS]
    return next((why for pattern, why in _USELESS_PATTERNS if pattern.search(start)), None)
