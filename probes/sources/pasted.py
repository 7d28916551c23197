"""A text that someone pasted together, such as an issue: the outputs of commands in it, one by one.

What begins an output: a fence of Markdown, a prompt with a command, the line of a command alone, a command in
backticks, and the heading of another tool's output. A text of one output has no such parts, and stays whole.
"""

import re
import textwrap
from collections.abc import Iterator

from probes.kernel.sentence import KERNEL_DRIVERS
from probes.named_tuple import NamedTuple
from probes.sources.file_commands import (
    FileCommand,
    find_file_command,
    is_device_name,
    list_loop_values,
    show_files,
    substitute,
)
from probes.sources.host_lines import list_quoted_lines, split_hosts
from probes.sources.identify import SERVICE_LINES, find_missing_name, identify_command
from probes.sources.unwrap import join_wrapped, squeeze, unwrap
from probes.text import PatternChoice, lazy_pattern

PIECES_LIMIT = 200
LINE_CHARACTERS = 600  # a longer line begins nothing
_LOOKED_AT = 60  # lines with numbers before them
_SPLIT_WORDS = 12  # of a command: more are not looked at

_PERFTEST = (
    *(f"ib_{verb}_{what}" for verb in ("write", "read", "send", "atomic") for what in ("bw", "lat")),
    *("ibv_rc_pingpong", "ibv_ud_pingpong"),
)
_TOOLS = (
    rf"{'|'.join(_PERFTEST)}|"
    r"nvidia-smi|lspci|ibstatus|ibstat|ibv_devinfo|ibv_devices|ibdev2netdev|show_gids|rdma|mlnx_qos|dcb|ethtool|dmesg|"
    r"journalctl|lsmod|ip|amd-smi|rocm-smi|rocminfo|hl-smi|npu-smi|hccn_tool|neuron-ls|cxl|iblinkinfo|ibnetdiscover|dmidecode|"
    r"lldpctl|lldpcli|uname|systemctl|dcgmi|ibqueryerrors|perfquery|smpquery|ibportstate|ibdiagnet|kubectl|docker|ulimit|mlxlink|cma_roce_mode|"
    r"scontrol|sinfo|nvidia-imex-ctl|modprobe|sminfo|devlink|ipmitool|ipmi-sel|racadm|"
    r"manage_network_ifs\.sh|ifconfig|nicctl|"
    r"nv(?=[ \t]+show[ \t]+interface[ \t])"
)
_OPTION = r"-[\w-]{1,40}(?:=\S{1,40})?|[\d.]{1,8}[smh]?|[A-Z_]{1,40}=\S{0,80}"
_RUN_BY = rf"(?:(?:sudo|watch|time|timeout|nice|stdbuf|env|command)(?:[ \t]+(?:{_OPTION}))*[ \t]+)*"
_IN_JOB = r"(?:(?:srun(?:[ \t]+-\S{1,60}|[ \t]+[\w.\[\]][\w.\[\]-]{0,39}){0,8}[ \t]+)?(?:ba)?sh[ \t]+-l?c[ \t]+)?"
_LOOP = (
    r"(?:for[ \t]+\w{1,20}[ \t]+in[ \t]+[^;\n]{1,300};[ \t]*do[ \t]+"
    r"(?:(?:echo|printf)[^;\n]{0,80};[ \t]*)?)?"
)
_WAIT = r"(?:sleep[ \t]+(?P<wait>[0-9]{1,5})[ \t]*(?:;|&&)[ \t]*)?"
_COMMAND = (
    rf"(?P<line>{_LOOP}{_WAIT}(?:[A-Z_]{{1,40}}=\S{{0,80}}[ \t]+)?{_RUN_BY}{_IN_JOB}[\"']?"
    rf"(?:[\w.~-]*/[\w./~-]*)?(?P<tool>{_TOOLS})"
    r"(?P<rest>(?:[ \t][^\n`]{0,300})?))"
)
_HOST = r"[\w-]{1,40}@(?P<host>[\w.-]{1,64})"
_MARGIN = r"[ \t>]{0,40}(?:[$] )?(?:\([\w.-]{1,40}\) ?)?"  # with the name of a virtual environment
_AT_HOST = (  # with the user, or as SUSE and Cray have it: "nid7:~ #"
    rf"(?:\[?{_HOST}(?:[: ][^\n$#%]{{0,100}}?)?\]?|(?P<machine>[a-zA-Z][\w.-]{{0,63}}):[~/][^\n$#%]{{0,100}}?)"
)
_PROMPT = lazy_pattern(
    rf"{_MARGIN}(?:{_AT_HOST}|bash-[\d.]+|(?P<bare>[a-z][\w.-]{{0,40}}(?:\d|-[a-z]))(?=[$#]| \$))?"
    rf"[ \t]{{0,8}}[$#%❯➜ᐅ][ \t]*(?:~[ \t]+)?{_COMMAND}[ \t]*"
)
_OTHER_PROMPT = lazy_pattern(
    rf"{_MARGIN}{_AT_HOST}[$#%](?: ?\S|[ ]?$)|[ \t>]{{0,40}}\$ [a-z./][\w./-]{{1,80}}(?: \S|$)"
)
_MOVED = lazy_pattern(  # a command after which a prompt without a name is of another host; of none that is known
    r"[$#%] ?(?:(?:ssh|mosh|rsh)(?:[ \t]+-[46AaCfKkqTtvXxY]{1,9}|[ \t]+-[bcFilopW][ \t]*\S{1,80}){0,6}[ \t]+"
    r"(?:[\w-]{1,40}@)?(?P<to>[\w-]{1,64})[\w.-]{0,190}|exit|logout)[ \t]*$"
)
_WATCH = lazy_pattern(rf"Every [\d.]{{1,8}}s: {_COMMAND}")
_ALONE = lazy_pattern(rf"[ \t>]{{0,40}}{_COMMAND}[ \t]*")
_WORDS_ALONE = lazy_pattern(
    r"(?:[ \t]+(?:-{1,2}[\w-]+(?:[ =][\w.,:/][\w.,:/-]*)?|topo|nvlink|link|show|info|metric|static))*[ \t]*"
    r"(?:\|[ \t]*(?:sudo[ \t]+)?(?:[ef]?grep|head|tail|column|sort|less|more|cat|awk|sed|cut|tee|uniq)\b[^\n]{0,200})?"
)
_TICKED = lazy_pattern(rf"[^\n`]{{0,200}}`{_COMMAND}`[^\n`]{{0,80}}")
_IN_PROSE = lazy_pattern(  # of the tools whose output does not state its device
    rf"[^\n`]{{0,200}}?\b{_COMMAND}[ \t]+(?:gives?|shows?|prints?|returns?|reports?)(?: me| us)?:?[ \t]*"
)
_FENCE = lazy_pattern(r"[ \t>]{0,40}(?:`{3,}|~{3,})[^`\n]{0,40}")
_TOPO_HEADING = lazy_pattern(r"([^\n]{0,80}?\btopo -(?:m|-matrix))(?=[ \t]+GPU0[ \t])")

_DATE = r"\d{4}-\d\d-\d\d[T ][\d:]{8}"
OPENERS = (  # kind, the first line of such an output, whether each such line begins another one
    ("ibstatus", r"[ \t]{0,40}Infiniband device '", False),
    ("ibstat", r"[ \t]{0,40}CA '[^'\n]{1,64}'", False),
    ("ibv_devinfo", r"[ \t]{0,40}hca_id:", False),
    ("show_gids", r"[ \t]{0,40}DEV[ \t]+PORT[ \t]+INDEX[ \t]+GID", True),
    ("nvidia-smi -q", r"=+NVSMI LOG=+", True),
    ("nvidia-smi -q", r"[ \t]{0,40}GPU [0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[01][0-9A-Fa-f]\.0$", False),
    ("nvidia-smi", r"[ \t]{0,40}\|[ \t]{0,4}NVIDIA-SMI[ \t]", False),
    (
        "nvidia-smi --query-gpu",
        r"[ \t]{0,40}(?:index|name|uuid|gpu_uuid|pci\.bus_id|timestamp)"
        r"(?:, [a-z_][a-z_.]{1,60}(?: \[[\w/%]{1,8}\])?){1,60}$",
        True,
    ),
    (
        "matrix",
        r"[ \t]{0,40}(?:[^\n]{0,80}\btopo -(?:m|-matrix)[ \t]+)?GPU0[ \t]+(?:GPU1|NIC0|mlx5_\d+|CPU Affinity)\b",
        True,
    ),
    ("nvlink", r"[ \t]{0,40}GPU \d{1,3}: [^\n]{1,100}\(UUID", False),
    (
        "ethtool",
        r"[ \t]{0,40}(?P<about>Settings|Pause parameters|FEC parameters) for (?P<interface>[\w.@-]{1,32}):",
        True,
    ),
    ("ethtool -i", r"[ \t]{0,40}driver: [\w-]{1,40}$", True),
    ("lldpctl", r"lldp\.[\w.:-]{1,40}\.via=|LLDP neighbors:|[ \t]{0,40}<lldp\b", False),
    ("ethtool -S", r"[ \t]{0,40}NIC statistics:", True),
    ("mlnx_qos", r"[ \t]{0,40}(?:DCBX mode|Priority trust state): ", False),
    ("rdma link", r"(?:link |\d{1,4}/\d{1,3}: )\S{1,64}/\d{1,3}:? [^\n]{0,400}\bstate [A-Z]", False),
    (
        "ibdev2netdev",
        r"[ \t]{0,40}(?:[0-9a-f:.]{7,16} )?\S{1,64} {1,40}(?:\([^\n]{0,200})?port {1,8}\d{1,3} {1,8}"
        r"(?:\([^\n]{0,80}\) )?==> {1,8}\S{1,64} {1,40}\(",
        False,
    ),
    ("lsmod", r"[ \t]{0,40}Module +Size +Used by", True),
    ("npu-smi", r"\| npu-smi ", True),
    ("hl-smi", r"\| HL-SMI Version: ", True),
    ("rocm-smi", r"=+ ROCm System Management Interface =+", True),
    ("amd-smi", r"[A-Z ]{3,40} TABLE:", False),
    ("lspci", r"(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7] [A-Z0-9][^\n]{2,80}: ", False),
    (
        "dcgmi",
        r"\| Diagnostic {1,40}\| Result |\|? ?Health Monitor Report|\|[ \t]{1,8}NvLink Link Status "
        r"|\| Overall Health ",
        False,
    ),
    ("ibqueryerrors", r'Errors for (?:0x[0-9a-f]{1,16} )?"', False),
    ("perfquery", r"# Port (?:extended )?counters: Lid \d", False),
    ("ip", r"\d{1,4}: [\w.@-]{1,64}: <[A-Z,_-]{2,200}> ", False),
    ("kubectl", r"(?:NAMESPACE +)?LAST SEEN +TYPE +REASON ", True),
    ("service", r"[ \t>]{0,40}(?:" + "|".join(SERVICE_LINES) + ")", False),
    (
        "kernel",
        rf"[ \t>]{{0,40}}(?:\[?{_DATE},\d{{6}}(?:Z|[+-]\d\d:?\d\d)\]?:? |"
        r"\[ {0,8}\+?\d{1,9}\.\d{6}\] ?|\[\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}\] "
        rf"|(?:kernel: )?(?:NVRM: |(?:{KERNEL_DRIVERS}) [0-9a-f]{{4,8}}:[0-9a-f]{{2}}:[0-9a-f]{{2}}\.[0-7]"
        r"(?: \S{1,40})?: )"
        rf"|(?:<\d{{1,3}}>1 )?(?:{_DATE}\S{{0,16}}|\w{{3,12}}\.? {{1,2}}\d{{1,2}} [\d:]{{8}}) \S{{1,255}} "
        r"kernel(?::| - \S{1,32} -) "
        r"|kern +:\w+ *: |[\w.]{7,64}: kern: |[^\n]{1,80}?\bNVRM: Xid \()",
        False,
    ),
)  # fmt: skip
_OPENER = PatternChoice(rf"(?P<k{number}>{pattern})" for number, (_, pattern, _) in enumerate(OPENERS))


_COMMANDS_KEPT = ("hccn_tool", "mlxlink", "cma_roce_mode", "nv", *_PERFTEST)  # which name the device
_WITHIN = {
    "kubectl": ("kernel",),
    "rocm-smi": ("matrix",),
    "amd-smi": ("matrix", "rocm-smi"),
}  # openers that such an output has in it
_OPTIONS = {"Settings": (), "Pause parameters": ("-a",), "FEC parameters": ("--show-fec",)}  # of ethtool


class Piece(NamedTuple):
    """One output in the text."""

    line: int  # where it begins, from 1
    words: tuple[str, ...]  # of the command, where the text shows it
    filtered: bool  # by a pipe, or asked about one device
    host: str | None  # by the prompt
    text: str
    marked: bool = False  # a prompt, a command or a fence begins it
    files: FileCommand | None = None  # of which files it is, where the command prints some
    waited: int | None = None  # seconds since the command before it, where `sleep` states them


def split_pasted(text: str) -> list[Piece]:
    """Every part of the text that something begins, in order; empty ones are left out.

    >>> [(p.line, p.words, p.host, p.text) for p in split_pasted("[root@n7 ~]# ibstat\\nCA 'mlx5_0'\\n")]
    [(1, ('ibstat',), 'n7', "CA 'mlx5_0'\\n")]
    >>> [(p.words, p.filtered) for p in split_pasted("$ lspci | grep -i nvidia\\n19:00.0 3D controller: x\\n")]
    [(('lspci',), True)]
    >>> loop = "# for i in 4 5; do hccn_tool -i $i -link -g; done\\n"
    >>> [p.words[2] + p.text for p in split_pasted(loop + "link:U\\nlink:D\\n")]
    ['4link:U\\n', '5link:D\\n']
    """
    if (squeezed := squeeze(text)) != text:
        return [piece._replace(line=2 * piece.line - 1) for piece in split_pasted(squeezed)]
    bare = unwrap(text, holds_output)
    parts = split_hosts(bare, holds_output)
    if not parts:
        return _split_of_one(bare)
    return [
        piece._replace(line=part.numbers[piece.line - 1], host=part.host, marked=True)
        for part in parts
        for piece in _split_of_one(part.text)
    ][:PIECES_LIMIT]


_KUBERNETES = lazy_pattern(r"^Conditions:|^(?:NAMESPACE +)?LAST SEEN +TYPE +REASON ", re.MULTILINE)


def _split_of_one(text: str) -> list[Piece]:
    pieces: list[Piece] = []
    for part, lines in _split(text):
        content = join_wrapped(_dedent("".join(lines)))
        if content.strip():
            pieces += [_with_head(piece, pieces) for piece in _expand_loop(part, content)]
            if _KUBERNETES.search(content):
                pieces += [
                    Piece(part.line + first, ("dmesg",), False, node, lines, True)
                    for node, (first, lines) in list_quoted_lines(content).items()
                ]
        if len(pieces) >= PIECES_LIMIT:
            break
    return pieces[:PIECES_LIMIT]


_PCI_HEAD = r"(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
_SELECTED = lazy_pattern(rf"-s ?({_PCI_HEAD})")
_HEADED = lazy_pattern(rf"^[> \t]{{0,40}}{_PCI_HEAD}\b", re.MULTILINE)


_FIELDS = lazy_pattern(r"^(?:nvidia|hl)-smi [^\n]{0,400}?(?:--query-gpu=|--query-aip[ =]|-Q[ =]?)([a-z][\w.,]{1,2000})")
_DEVICE_HEADS = {  # the first lines of a device that is asked about, which a filter takes away
    "ibstat": (r"CA '", "CA '{device}'\n\tPort 1:\n"),
    "ibstatus": (r"Infiniband device '", "Infiniband device '{device}' port 1 status:\n"),
    "ibv_devinfo": (r"hca_id:", "hca_id:\t{device}\n\tphys_port_cnt: 1\n\t\tport: 1\n"),
}


def _with_head(piece: Piece, before: list[Piece]) -> Piece:
    """Lines of one device below its own line, which a filter took away: the command states its name; of a PCI function
    an output before it may have the line. A table without its heading: the command states the fields."""
    tool = piece.words[0] if piece.words and piece.filtered else ""
    if any("noheader" in word for word in piece.words):
        fields = _FIELDS.search(" ".join(piece.words))
        return piece._replace(text=f"{', '.join(fields[1].split(','))}\n{piece.text}") if fields else piece
    devices = [word for word in piece.words[1:] if not word.startswith("-")]
    if tool in _DEVICE_HEADS and len(devices) == 1 and not re.search(_DEVICE_HEADS[tool][0], piece.text):
        head = _DEVICE_HEADS[tool][1].format(device=devices[0])
        return piece._replace(text=head + textwrap.indent(_dedent(piece.text), "\t\t"))
    selected = _SELECTED.search(" ".join(piece.words)) if piece.words[:1] == ("lspci",) else None
    if selected is None or not piece.filtered or _HEADED.search(piece.text) or not find_missing_name(piece.text):
        return piece
    address = selected[1]
    lines = (line for other in before for line in other.text.splitlines() if len(line) < LINE_CHARACTERS)
    head = next((line.strip() for line in lines if line.strip().startswith(f"{address} ")), f"{address} Device: ?")
    return piece._replace(text=f"{head}\n{textwrap.indent(piece.text, chr(9))}")


def read_saved(text: str, tool: str) -> tuple[str, bool]:
    """A saved output of one command without what was copied with it, and whether it is only a part of the output.

    >>> read_saved("[root@n7 ~]# ibstat\\nCA 'mlx5_0'\\n[root@n7 ~]# exit\\n", "ibstat")
    ("CA 'mlx5_0'\\n", False)
    """
    bare = unwrap(squeeze(text), holds_output)
    first = bare.lstrip("\r\n")[:LINE_CHARACTERS].partition("\n")[0].rstrip("\r")
    looped = tool in _COMMANDS_KEPT and _LOOP_VALUES.search(bare)
    if _PROMPT.fullmatch(first) or _WATCH.match(first) or _FENCE.fullmatch(first) or looped:
        pieces = [piece for piece in split_pasted(bare) if not piece.words or piece.words[0] == tool]
        if pieces:
            return "".join(map(with_command, pieces)), any(piece.filtered for piece in pieces)
    return join_wrapped(bare), False


def find_prompt_host(text: str) -> str | None:
    """The host that the prompt of an output's first lines shows.

    >>> find_prompt_host("[root@n7 ~]# ibstat\\nCA 'mlx5_0'\\n"), find_prompt_host("CA 'mlx5_0'\\n")
    ('n7', None)
    """
    for line in text[:LINE_CHARACTERS].splitlines()[:3]:
        if (match := _PROMPT.fullmatch(line) or _OTHER_PROMPT.match(line)) and (host := _host_of(match)):
            return host
    return None


def _host_of(prompt: re.Match[str]) -> str | None:
    """The host that a prompt names, in any of its forms."""
    groups = prompt.groupdict()
    return next((groups[form] for form in ("host", "machine", "bare") if groups.get(form)), None)


def find_silent_command(text: str) -> str | None:
    """The last command of a text of prompts alone: nothing was printed below any.

    >>> find_silent_command("n7$ ls\\n[root@n7 ~]# dmesg | grep -i xid\\n[root@n7 ~]# \\n")
    >>> find_silent_command("[root@n7 ~]# dmesg | grep -i xid\\n[root@n7 ~]# \\n")
    'dmesg | grep -i xid'
    """
    lines = [line for line in text[:LINE_CHARACTERS].splitlines() if line.strip()]
    prompts = [_PROMPT.fullmatch(line) for line in lines]
    is_bare = (_OTHER_PROMPT.match(line) or line.strip() in _BARE_PROMPTS for line in lines)
    if not all(prompt or bare for prompt, bare in zip(prompts, is_bare, strict=True)):
        return None
    return next((prompt["line"].strip() for prompt in reversed(prompts) if prompt), None)


_BARE_PROMPTS = ("$", "#", "%", ">")


def with_command(piece: Piece) -> str:
    """Its text, below the command where that states which device the text is about."""
    if piece.files is not None:
        return show_files(piece.files, piece.text)
    kept = piece.words and (piece.words[0] in _COMMANDS_KEPT or "statistic" in piece.words)
    return f"$ {' '.join(piece.words)}\n{piece.text}" if kept else piece.text


def holds_output(lines: list[str]) -> bool:
    """Whether a known output is in these lines, or a command at its prompt."""
    short = [bare for line in lines[:_LOOKED_AT] if len(bare := line.rstrip("\r\n")) < LINE_CHARACTERS]
    opens = _OPENER.choose("".join(short))
    patterns = (_PROMPT.fullmatch, _OTHER_PROMPT.match, opens, _WATCH.match, find_file_command)
    if any(fits(line) for line in short for fits in patterns):
        return True
    return bool(identify_command("".join(lines[:_LOOKED_AT]), by_words=False))


class _Open(NamedTuple):
    """The part that is being read."""

    line: int
    marked: bool = False
    words: tuple[str, ...] = ()
    filtered: bool = False
    host: str | None = None
    kind: str | None = None
    most_lines: int | None = None  # that `head` or `tail` passes on
    loop: tuple[str, tuple[str, ...]] | None = None  # its variable, and the values that the command states
    files: FileCommand | None = None
    waited: int | None = None
    is_named: bool = False  # `echo` of the loop prints each value


_WORD = lazy_pattern(r"\w")  # a line of a frame has none, and is above the first line of an output


def _split(text: str) -> Iterator[tuple[_Open, list[str]]]:
    current, lines = _Open(1), list[str]()
    host: str | None = None
    opens = _OPENER.choose(text)
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        if line.isspace():
            lines.append(line)
            continue
        bare = line.rstrip("\r\n") if len(line) < LINE_CHARACTERS else ""
        begun = _begin(number, bare, host)
        if begun is not None:
            fence = not begun.words and begun.kind is None and not any(part.strip() for part in lines)
            if fence and current.words:  # a command in backticks, and the fence below it
                continue
            yield current, lines
            current, lines, host = begun, [], begun.host
            continue
        opened = opens(bare)
        if opened is not None:
            kind, _, always = OPENERS[int((opened.lastgroup or "k0")[1:])]
            interface = opened.groupdict().get("interface")
            tool = current.kind or (current.words[0] if current.words else "")
            is_begun = current.kind is None and bool(current.words)  # its first lines may be of any kind
            of_loop = current.loop is not None and kind.startswith(current.words[0]) and not interface
            if kind in _WITHIN.get(tool, ()) or of_loop:
                kind = tool
            elif (always or kind != current.kind) and not is_begun and any(map(_WORD.search, lines)):
                yield current, lines
                current, lines = _Open(number, host=host), []
            current = current._replace(kind=kind)
            # Of a variable of the shell the text does not state the value
            if interface and (not current.words or any("$" in word for word in current.words)):
                current = current._replace(words=("ethtool", *_OPTIONS[opened["about"]], interface), loop=None)
        heading = _TOPO_HEADING.match(line)
        lines.append(" " * len(heading[1]) + line[heading.end() :] if heading else line)
    yield current, lines


def _expand_loop(part: _Open, text: str) -> list[Piece]:
    """The outputs of a loop, each with the value that it is of, where they are as many as the values."""
    lines = text.splitlines(keepends=True)
    filtered = part.filtered and (part.most_lines is None or len(lines) >= part.most_lines)
    whole = Piece(part.line, part.words, filtered, part.host, text, part.marked, part.files, part.waited)
    if part.loop is None:
        return [whole]
    whole = whole._replace(waited=None)
    variable, values = part.loop
    varied = next((word for word in part.words if word != substitute(word, variable, "")), "")
    bare = [line.strip(_AROUND) for line in lines]
    if not values:  # only the machine has them: the lines that are a name
        values = tuple(line for line in bare if is_device_name(line))
        if not values or next(filter(None, bare)) != values[0]:
            return [whole]
        varied = f"${variable}"
    called = [substitute(varied, variable, value) for value in values]
    names = [number for number, line in enumerate(bare) if line and (line in values or line in called)]
    if [bare[at] for at in names] not in (list(values), called):
        names = _find_labels(lines, values)
    if part.is_named and not names and len(lines) == len(values) and all(map(_begins_with, lines, values)):
        lines = [line[len(value) :].lstrip(" :") for line, value in zip(lines, values, strict=True)]
    label = _label_of(next((line for line in lines if line.strip()), ""))
    starts = names or [number for number, line in enumerate(lines) if _label_of(line) == label]
    if len(starts) != len(values) == len(lines):
        starts = list(range(len(lines)))
    if len(starts) != len(values):
        return [whole]
    pieces: list[Piece] = []
    for value, first, after in zip(values, starts, [*starts[1:], len(lines)], strict=True):
        words = tuple(substitute(word, variable, value) for word in part.words)
        pieces.append(
            whole._replace(
                line=part.line + first,
                words=words,
                text="".join(lines[first + bool(names) : after]),
                waited=part.waited if pieces else None,
            )
        )
    return pieces


def _label_of(line: str) -> str:
    """What stands before the colon of a line, or before the number of one without it."""
    return line.partition(":")[0] if ":" in line else line.rstrip().rstrip("0123456789")


def _begins_with(line: str, value: str) -> bool:
    """Whether a line is the value of a loop, and more."""
    return line.startswith(value) and line[len(value) : len(value) + 1] in (" ", ":", "\t")


def _find_labels(lines: list[str], values: tuple[str, ...]) -> list[int]:
    """The lines that `echo` printed with each value behind the same words ("NPU 3"); none where one is missing."""
    found: list[int] = []
    for number, line in enumerate(lines):
        if len(found) < len(values) and _LABEL.fullmatch(line.strip()) and re.search(
            rf"(?<!\w){re.escape(values[len(found)])}\W{{0,8}}$", line.strip()
        ):  # fmt: skip
            found.append(number)
    return found if len(found) == len(values) else []


def _begin(number: int, line: str, host: str | None) -> _Open | None:
    """The part that a prompt, a command or a fence begins; None for any other line."""
    if _TOPO_HEADING.match(line):
        return None
    if files := find_file_command(line):
        slept = _SLEPT.search(files.command)
        if slept and not _is_same_command(files.command[: slept.start()], files.command[slept.end() :]):
            slept = None
        command = files.command[: slept.start()] if slept else files.command
        return _Open(
            number,
            True,
            tuple(command.split()[:_SPLIT_WORDS]),
            host=files.host or host,
            loop=(_NO_VARIABLE, _TWICE) if slept else None,
            files=files._replace(command=command),
            waited=int(slept[1]) if slept else None,
        )
    if prompt := _PROMPT.fullmatch(line):
        return _of_command(number, prompt, _host_of(prompt) or host)
    if watched := _WATCH.match(line):
        return _of_command(number, watched, host)
    if other := _OTHER_PROMPT.match(line):
        moved = _MOVED.search(line)
        return _Open(number, True, host=moved["to"] if moved else _host_of(other) or host)
    if _FENCE.fullmatch(line):
        return _Open(number, True, host=host)
    alone = _ALONE.fullmatch(line)
    if alone and (_WORDS_ALONE.fullmatch(alone["rest"]) or _LOOP_VALUES.match(alone["line"])):
        return _of_command(number, alone, host)
    if ticked := _TICKED.fullmatch(line):
        return _of_command(number, ticked, host)
    if any(tool in line for tool in _COMMANDS_KEPT[:-1]) and (told := _IN_PROSE.fullmatch(line)):
        return _of_command(number, told, host)
    return None


_SELECTORS = {
    "lspci": ("-s", "-d"),
    "ibv_devinfo": ("-d", "-i"),
    "nvidia-smi": ("-i",),
    "ip": ("dev",),
}
_OF_ALL = frozenset({"ibstat", "ibstatus", "show_gids", "ibdev2netdev", "rdma"})  # a word more is a device
_NO_DEVICE = ("-", "link", "show", "dev")


def _is_of_a_device(tool: str, words: tuple[str, ...]) -> bool:
    if tool in _OF_ALL:
        return any(not word.startswith(_NO_DEVICE) for word in words)
    return any(word.startswith(_SELECTORS[tool]) for word in words) if tool in _SELECTORS else False


_NO_WORDS = lazy_pattern(  # a comment, a redirection, the end of a loop, the host of watch
    r"[ \t]#[^\n]{0,300}$|\d?>{1,2}&?[ \t]{0,8}\S{1,200}|;[ \t]{0,8}done\b|[ \t]{2,40}\S{1,255}: \w{3} [^\n]{0,80}$"
)


def _of_command(number: int, match: re.Match[str], host: str | None) -> _Open:
    """A command as its words, without redirections; what a pipe passes on is not its whole output."""
    tool, rest = match["tool"], match["rest"]
    loop = _LOOP_VALUES.match(match["line"])
    slept = _SLEPT.search(rest)
    again = slept is not None and _is_same_command(f"{tool}{rest[: slept.start()]}", rest[slept.end() :])
    values = tuple(list_loop_values(loop["values"])) if loop else _TWICE if again else ()
    rest = _NO_WORDS.sub("", rest)
    command, pipe, after = re.split(r"[;&]", rest, maxsplit=1)[0].partition("|")
    words = tuple(command.rstrip(" '\"").split()[:_SPLIT_WORDS])
    selected = _is_of_a_device(tool, words)
    passed_on = after.split()
    ends = passed_on[:1] in (["head"], ["tail"])
    filtered = bool(pipe) and passed_on[:1] not in (["cat"], ["tee"], ["less"], ["more"])
    count = re.search(r"[0-9]{1,6}", " ".join(passed_on[1:])) if ends else None
    most = int(count[0]) if count else 10 if ends else None
    return _Open(
        number,
        True,
        (tool, *words),
        filtered or selected,
        host,
        most_lines=most if not selected and "|" not in after else None,
        loop=(loop["variable"] if loop else _NO_VARIABLE, values) if values or loop else None,
        waited=int(match["wait"]) if match["wait"] else int(slept[1]) if slept and values else None,
        is_named=loop is not None
        and _ECHO.search(match["line"], loop.end(), match.start("tool") - match.start("line")) is not None,
    )


_SLEPT = lazy_pattern(r"[ \t]*(?:;|&&)[ \t]*sleep[ \t]+([0-9]{1,5})[ \t]*(?:;|&&)?[ \t]*")
_CHANGED = lazy_pattern(r"^[ \t]*(?:(?:cd|echo|date)\b[^;&|]{0,200}(?:;|&&)[ \t]*){1,4}")
_NO_VARIABLE, _TWICE = "\0", ("\0first", "\0second")  # of a command that its line has twice: no text holds them


def _is_same_command(first: str, second: str) -> bool:
    """Whether a line has one command twice, also as the shell's `!!`; a filter behind it may be left out, and what
    changes the folder, or prints a line between the two."""
    own, other = (_CHANGED.sub("", words).partition("|")[0].split() for words in (first, second))
    return second.strip() == "!!" or own == other


_AROUND = " \t\r\n=-#*:"  # what people print around a name
_LABEL = lazy_pattern(r"[^:]{0,40}:?\W{0,8}")
_ECHO = lazy_pattern(r"\b(?:echo -n|printf)\b")
_LOOP_VALUES = lazy_pattern(r"for[ \t]+(?P<variable>\w{1,20})[ \t]+in[ \t]+(?P<values>[^;\n]{1,300});")


def _dedent(text: str) -> str:
    """Without the margin that all lines have, and empty lines at its begin."""
    return textwrap.dedent(re.sub(r"\A(?:[ \t]*\r?\n)+", "", text))
