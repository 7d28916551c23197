"""Which command printed this text: for saved outputs whose file name says nothing.

Each line of the table is a command and what all stands in its output; the first line that fits decides, so the
special stands before the general.
"""

from __future__ import annotations

import re

LOOK_CHARACTERS = 64 << 10

_ESCAPES = re.compile(r"\x1b\[[0-9;]*m|\[[04]m")  # nvidia-smi underlines a heading; a form may lose the escape
_SMI = "nvidia-smi"
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
# Among the first lines one that the kernel wrote, as /dev/kmsg has it, or dmesg, journalctl or syslog print it
_KERNEL_LINE = (
    r"\A(?:[^\n]*\n){0,4}?(?:"
    r"(?:\d{1,7} ?)?[ \t]*\[[ \d]{1,12}\.\d{6}\](?:\[ *[TC]\d+\])? |<\d+>\[|\d+,\d+,\d+,-;|kern +:\w+ *: "
    r"|\[\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}\] |(?:kernel: )?NVRM: Xid \("
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
    ((("lsmod",),), (r"\A(?:Module +Size +Used by|\w+ +\d+ +\d+(?: [\w,\[\]-]*)?)$",)),
    ((("dmesg",),), (_KERNEL_LINE,)),
)  # fmt: skip


def held_by(text: str) -> tuple[tuple[str, ...], ...]:
    """The commands whose output this is; empty where nothing is known of it. Looks at the first LOOK_CHARACTERS.

    >>> held_by("CA 'mlx5_0'\\n\\tCA type: MT4129\\n\\tNumber of ports: 1\\n")
    (('ibstat',),)
    >>> held_by("Dear all,")
    ()
    """
    start = _ESCAPES.sub("", text[:LOOK_CHARACTERS]).replace("\r\n", "\n")
    for commands, patterns in MARKS:
        if all(re.search(pattern, start, re.MULTILINE) for pattern in patterns):
            return commands
    return ()
