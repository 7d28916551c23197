"""Saved outputs of commands: which file is which command's, by its name or by what it holds.

Names are those of sos: each run of characters outside [A-Za-z0-9_./-] is one "_", then "/" is "."; a suffix such as
.txt may follow.

Which command printed this text: for saved outputs whose file name says nothing.

Each line of the table is a command and what all stands in its output; the first line that fits decides, so the
special stands before the general.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, Protocol

from probes.host.commands import COMMANDS, NVIDIA_SMI_SAVED, OF_INTERFACE, OF_NPU, SAVED
from probes.host.files import Files, is_file
from probes.host.interface import FILTERED, OUTPUT_LIMIT_BYTES, Absent, Completed, Failed, ReadError
from probes.text import decode_saved, lazy_pattern

if TYPE_CHECKING:
    from probes.sources.pasted import Piece

LOOK_CHARACTERS = 64 << 10
PASTED_CHARACTERS = 2 << 20  # a longer text is one output
_SPLIT_CHARACTERS = 8 << 20  # of all files together, 0.2 s each MiB

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
    ((("lldpctl",),), (r"^Interface: +[^,\s]{1,64}, via: ", r"^[ \t]*(?:ChassisID|PortID): ")),
    ((("ip", "-d", "link"),), (r"^\d{1,6}: \S{1,60}: <[A-Z0-9_,-]*> mtu \d", r"^[ \t]+link/[^\n]*\bpromiscuity \d")),
    (
        (("cxl", "list", "-v"),),
        (
            r"\A(?:[#$] [^\n]*\n)?\s*[\[{]",
            r"^\s*\"(?:memdev|bus|port|endpoint|region)\" ?: ?\"(?:mem|root|port|endpoint|region)\d",
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
    ((("neuron-ls", "--json-output"),), (r"\A(?:\$ [^\n]*\n)?\s*\[\s*\{", r"^\s*\"neuron_device\" ?: ?\d")),
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
        if all(re.search(pattern, start, re.MULTILINE) for pattern in patterns):
            return commands
    return ()


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


FILES_LIMIT = 1000  # of one folder that are looked into
SUFFIXES = (".txt", ".xml", ".log", ".out", ".json")
LSPCI_EXTRAS = frozenset("Dnkbvx")  # options of lspci that only add to what it prints
LONG_OPTIONS = {  # of nvidia-smi
    "--query": "-q",
    "--xml-format": "-x",
    "--list-gpus": "-L",
    "--matrix": "-m",
    "--status": "-s",
    "--errorcounters": "-e",
    "--capabilities": "-c",
    "--remotelinkinfo": "-R",
}


class Outputs(Protocol):
    """Saved outputs of any kind of source."""

    def completed(self, argv: tuple[str, ...]) -> Completed:
        """See Host.run."""

    def holds(self, argv: tuple[str, ...]) -> bool:
        """See Host.has_output."""

    def arguments(self, argv: tuple[str, ...]) -> list[str]:
        """See Host.saved_arguments."""


class SavedOutputs:
    """The outputs that a folder (or a single file) holds, by their commands. `named`: where they lie, by the names
    that sos would give them; without it, every file at the top is looked at."""

    def __init__(self, files: Files, named: Mapping[str, str] | None = None) -> None:
        self._files = files
        self._is_copied = named is None  # by a person, maybe with the prompt
        self._paths = {name: f"/{name}" for name in _file_names(files)} if named is None else named
        names = list(self._paths)
        self._names: dict[tuple[str, ...], str | None] = {}
        taken: set[str] = set()
        for argv in COMMANDS + SAVED if names else ():
            name = best_name(argv, names)
            if name is not None:
                self._names[argv] = name
                taken.add(name)
        self.unread: list[str] = []  # which outputs in a text of several are not used, and why
        self._pieces: dict[str, _Piece] = {}
        self._left, self._unsplit = _SPLIT_CHARACTERS, 0
        for name in names if named is None else ():
            if name not in taken and not _is_of_device(_stem(name)):
                self._look_into(name)
        if self._unsplit:
            self.unread.append(
                f"{self._unsplit} files count as one output each: there is too much text here to look for more"
            )
        for argv in COMMANDS + SAVED if self._pieces else ():
            if argv not in self._names and (name := best_name(argv, list(self._pieces))):
                self._names[argv] = name

    @property
    def commands(self) -> list[tuple[str, ...]]:
        """What there is an output of."""
        of_interfaces = {(*argv, name) for argv in _OF_DEVICES for name in self.arguments(argv)}
        return sorted(of_interfaces | {argv for argv, name in self._names.items() if name is not None})

    def arguments(self, argv: tuple[str, ...]) -> list[str]:
        """See Host.saved_arguments."""
        wanted, _ = _parts(saved_name(argv))
        arguments = set()
        for name in (*self._paths, *self._pieces):
            if _is_about_one(_stem(name), argv):
                arguments.add("_".join(_parts(_stem(name))[0][len(wanted) :]))
        return sorted(arguments)

    def name_of(self, argv: tuple[str, ...]) -> str | None:
        """Which output serves where this command's is wanted."""
        if argv not in self._names:
            self._names[argv] = best_name(argv, list(self._paths)) or best_name(argv, list(self._pieces))
        return self._names[argv]

    def completed(self, argv: tuple[str, ...]) -> Completed:
        """The saved output, as if the command had ended well: how it ended is not saved. Raises ReadError."""
        name = self.name_of(argv)
        if name is None:
            raise Absent(f"{' '.join(argv)}: no saved output")
        if piece := self._pieces.get(name):
            return Completed(argv, 0, piece.text, f"{FILTERED}{piece.filtered}" if piece.filtered else "", 0.0)
        content = self._files.read(self._paths[name], OUTPUT_LIMIT_BYTES)
        if len(content) == OUTPUT_LIMIT_BYTES:
            raise Failed(f"{name}: longer than {OUTPUT_LIMIT_BYTES >> 20} MiB", "EFBIG")
        text = decode_saved(content)
        if self._is_copied and argv[0] != _HCCN and len(text) <= PASTED_CHARACTERS:
            from probes.sources.pasted import read_saved  # lazy: what a program saved has nothing around it

            text, is_part = read_saved(text, argv[0])
            if is_part and not saved_name(argv).startswith(_IN_PARTS):
                raise Failed(f"{name}: is a part of what the command printed; save the whole")
            return Completed(argv, 0, text, f"{FILTERED}{' '.join(argv)} | ..." if is_part else "", 0.0)
        return Completed(argv, 0, text, "", 0.0)

    def holds(self, argv: tuple[str, ...]) -> bool:
        """Whether there is a saved output."""
        return self.name_of(argv) is not None

    def _start(self, name: str, limit: int = LOOK_CHARACTERS) -> tuple[str, bool]:
        """Its text, and whether it may go on."""
        try:
            content = self._files.read(self._paths[name], limit)
        except ReadError:
            return "", False
        return decode_saved(content), len(content) >= limit

    def _split(self, name: str, start: str, cut: bool, known: bool) -> tuple[dict[str, _Piece], list[str]]:
        """The outputs in a file. `known`: its begin is an output, so that more of them may stand beyond the cut."""
        if self._left <= 0:
            self._unsplit += 1
            return {}, []
        self._left -= len(start)
        pieces, unread = _named_pieces(start)
        if not cut:
            return pieces, unread
        if not (known or pieces):
            return {}, []
        text, cut = self._start(name, PASTED_CHARACTERS)
        self._left -= len(text)
        return ({}, []) if cut else _named_pieces(text)

    def _look_into(self, name: str) -> None:
        """Take a file whose name states nothing: as one output, or as the outputs that somebody pasted into it."""
        start, cut = self._start(name)
        whole = identify_command(start)
        pieces, unread = self._split(name, start, cut, bool(whole))
        shown = any(piece.filtered or piece.marked for piece in pieces.values())
        if whole and len(pieces) < 2 and not unread and not shown:
            for argv in whole:
                self._names.setdefault(argv, name)
            return
        for piece_name, piece in pieces.items():
            self._pieces.setdefault(piece_name, piece)
        self.unread += [f"{name}, {text}" for text in unread]


class _Piece(NamedTuple):
    """An output that stands in a longer text."""

    text: str
    filtered: str | None  # the command with its filter: it is a part of what it printed
    marked: bool = False


_LOG, _HCCN = "dmesg", "hccn_tool"  # of which several parts are one output
_RDMA = ("ibstat", "ibv_dev", "rdma_link", "ibdev2netdev", "show_gids")  # of one device, or of all
_IN_PARTS = (_LOG, _HCCN, "lspci", "ethtool", "mlnx_qos", *_RDMA)  # a part of it is a part of the facts, nothing else
_OF_DEVICES = OF_INTERFACE + OF_NPU


def _named_pieces(text: str) -> tuple[dict[str, _Piece], list[str]]:
    """The outputs in a text by the names of their commands, and which are not used and why."""
    from probes.sources.pasted import split_pasted  # lazy: few sources hold a text that nobody named

    found: dict[str, _Piece] = {}
    unread: list[str] = []
    first_host: str | None = None
    for piece in split_pasted(text):
        name = _name_of_piece(piece)
        if name and name.startswith("lspci"):
            name = next((one for one in found if one.startswith("lspci")), name)  # of one device, and of the next one
        shown = f"line {piece.line}: {' '.join(piece.words) or 'an output'}"
        first_host = first_host or (piece.host if name else None)
        content = f"$ {' '.join(piece.words)}\n{piece.text}" if name == _HCCN else piece.text
        if name is None:
            if why := find_missing_name(piece.text) or ("this output is not known" if piece.words else None):
                unread.append(f"{shown}: {why}")
        elif piece.host not in (None, first_host):
            unread.append(f"{shown}: is of {piece.host}, and a source is one host: here {first_host}")
        elif piece.filtered and not name.startswith(_IN_PARTS):
            unread.append(f"{shown}: is a part of what the command printed; save the whole")
        elif name not in found:
            part = f"{' '.join(piece.words)} | ..." if piece.filtered else None
            found[name] = _Piece(content, part, piece.marked)
        elif name in (_LOG, _HCCN) or name.startswith("lspci") or (found[name].filtered and name.startswith(_RDMA)):
            between = "\n\n" if name.startswith("lspci") else "" if found[name].text.endswith("\n") else "\n"
            before = found[name].text.rstrip() if name.startswith("lspci") else found[name].text
            found[name] = found[name]._replace(text=before + between + content)
        elif found[name].text.strip() != piece.text.strip():
            unread.append(f"{shown}: an earlier one is used")
    return found, unread


def _name_of_piece(piece: Piece) -> str | None:
    """The name under which a folder would hold this output; None where it is none that is known.

    >>> from probes.sources.pasted import Piece
    >>> _name_of_piece(Piece(1, ("ethtool", "-S", "ens1f0np0"), False, None, "NIC statistics:\\n"))
    'ethtool_-S_ens1f0np0'
    >>> _name_of_piece(Piece(1, (), False, None, "CA 'mlx5_0'\\n\\tCA type: MT4129\\n"))
    'ibstat'
    """
    of_content = identify_command(piece.text)
    if piece.words and piece.words[-1] not in _PROSE:
        shown = saved_name(piece.words)
        tool = piece.words[0]
        if tool == _HCCN:
            return _HCCN
        if of_content == ((_LOG,),):
            return _LOG  # whatever its options
        if _is_of_device(shown):
            return shown
        if any(argv[0] == tool for argv in of_content) and any(best_name(argv, [shown]) for argv in COMMANDS + SAVED):
            return shown
    return saved_name(of_content[0]) if of_content else None


_PROSE = ("output", "outputs", "shows", "says", "result", "results")


def _is_of_device(name: str) -> bool:
    """Whether it is the name of an output about one interface or NPU."""
    return any(_is_about_one(name, argv) for argv in _OF_DEVICES)


def _is_about_one(name: str, argv: tuple[str, ...]) -> bool:
    """Whether it is the name of this command's output about one device."""
    wanted, options = _command_parts(argv)
    words, others = _parts(name)
    return words[: len(wanted)] == wanted and len(words) > len(wanted) and _same(options, others) is not None


@cache
def _command_parts(argv: tuple[str, ...]) -> tuple[list[str], list[str]]:
    return _parts(saved_name(argv))


def saved_name(argv: tuple[str, ...]) -> str:
    """The name that sos gives to a command's output.

    >>> saved_name(("nvidia-smi", "topo", "-m")), saved_name(("systemctl", "show", "--property=Id,Sub", "a.service"))
    ('nvidia-smi_topo_-m', 'systemctl_show_--property_Id_Sub_a.service')
    """
    line = re.sub(r"^/(?:usr/)?s?bin/", "", " ".join(argv))
    return re.sub(r"[^A-Za-z0-9_./-]+", "_", line).replace("/", ".").strip("._")


def best_name(argv: tuple[str, ...], names: list[str]) -> str | None:
    """The file that serves where this command's output is wanted. Options count as a set.

    >>> best_name(("lspci", "-D", "-nn", "-vvv"), ["lspci_-nnvvv", "lspci_-t", "lspci_-vv.txt"])
    'lspci_-nnvvv'
    >>> best_name(("nvidia-smi", "-L"), ["nvidia-smi_--list-gpus", "nvidia-smi"])
    'nvidia-smi_--list-gpus'
    >>> best_name(("nvidia-smi", "-q"), ["nvidia-smi_-q_-x.xml"])
    """
    if not names:
        return None
    wanted_words, wanted = _parts(saved_name(argv))
    ranked: list[tuple[int, str]] = []
    for name in names:
        if argv in NVIDIA_SMI_SAVED and name.startswith(saved_name(argv)):
            ranked.append((0, name))
        words, options = _parts(_stem(name))
        if words != wanted_words:
            continue
        rank = _lspci_rank(wanted, options) if argv[0] == "lspci" else _same(wanted, options)
        if rank is not None:
            ranked.append((-rank, name))
    return min(ranked)[1] if ranked else None


def _file_names(files: Files) -> list[str]:
    try:
        names = files.listdir("/")
    except ReadError:
        return []
    return [name for name in names[:FILES_LIMIT] if is_file(files, f"/{name}")]


def _stem(name: str) -> str:
    return next((name[: -len(suffix)] for suffix in SUFFIXES if name.endswith(suffix)), name)


def _parts(stem: str) -> tuple[list[str], list[str]]:
    tokens = [token for token in stem.split("_") if token]
    if tokens[:1] == ["nvidia-smi"]:
        tokens = [LONG_OPTIONS.get(token, token) for token in tokens]
    return [t for t in tokens if not t.startswith("-")], [t for t in tokens if t.startswith("-")]


def _same(wanted: list[str], options: list[str]) -> int | None:
    return 0 if set(wanted) == set(options) else None


def _lspci_rank(wanted: list[str], options: list[str]) -> int | None:
    """How much it tells; None where it does not print what is wanted. Without -v it still names the functions."""
    letters = "".join(options).replace("-", "")
    if not set(letters) <= LSPCI_EXTRAS or any(option.startswith("--") for option in options):
        return None
    kind = "x" if any("x" in option for option in wanted) else "v"
    if kind not in letters and (kind == "x" or letters.count("n") == 1):  # -n leaves the names of the classes out
        return None
    return letters.count(kind) * 8 + letters.count("n")
