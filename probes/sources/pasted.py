"""A text that somebody pasted together, such as an issue: the outputs of commands in it, one by one.

What begins an output: a fence of Markdown, a prompt with a command, the line of a command alone, a command in
backticks, and the heading of another tool's output. A text of one output has no such parts, and stays whole.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from typing import NamedTuple

from probes.text import lazy_pattern

PIECES_LIMIT = 200
LINE_CHARACTERS = 600  # a longer line begins nothing
_SPLIT_WORDS = 12  # of a command: more are not looked at

_TOOLS = (
    r"nvidia-smi|lspci|ibstatus|ibstat|ibv_devinfo|ibv_devices|ibdev2netdev|show_gids|rdma|mlnx_qos|dcb|ethtool|dmesg|"
    r"journalctl|lsmod|ip|amd-smi|rocm-smi|hl-smi|npu-smi|hccn_tool|neuron-ls|cxl|iblinkinfo|ibnetdiscover|dmidecode|"
    r"lldpctl|lldpcli|uname"
)
_COMMAND = rf"(?:sudo +)?(?:[\w.~-]*/[\w./~-]*)?(?P<tool>{_TOOLS})(?P<rest>(?:[ \t][^\n`]{{0,300}})?)"
_HOST = r"[\w-]{1,40}@(?P<host>[\w.-]{1,64})"
_MARGIN = r"[ \t>]{0,40}(?:[$] )?(?:\([\w.-]{1,40}\) ?)?"  # with the name of a virtual environment
_AT_HOST = rf"\[?{_HOST}(?:[: ][^\n$#%]{{0,100}}?)?\]?"
_PROMPT = lazy_pattern(rf"{_MARGIN}(?:{_AT_HOST}|bash-[\d.]+)?[ \t]{{0,8}}[$#%❯➜ᐅ][ \t]*(?:~[ \t]+)?{_COMMAND}[ \t]*")
_OTHER_PROMPT = lazy_pattern(rf"{_MARGIN}{_AT_HOST}[$#%] ?\S")
_ALONE = lazy_pattern(rf"[ \t>]{{0,40}}{_COMMAND}[ \t]*")
_WORDS_ALONE = lazy_pattern(
    r"(?:[ \t]+(?:-{1,2}[\w-]+(?:[ =][\w.,:/][\w.,:/-]*)?|topo|nvlink|link|show|info|metric|static))*[ \t]*"
)
_TICKED = lazy_pattern(rf"[^\n`]{{0,200}}`{_COMMAND}`[^\n`]{{0,80}}")
_FENCE = lazy_pattern(r"[ \t>]{0,40}(?:`{3,}|~{3,})[^`\n]{0,40}")
_TOPO_HEADING = lazy_pattern(r"([^\n]{0,80}?\btopo -(?:m|-matrix))(?=[ \t]+GPU0[ \t])")

_DATE = r"\d{4}-\d\d-\d\d[T ][\d:]{8}"
OPENERS = (  # kind, the first line of such an output, whether each such line begins another one
    ("ibstatus", r"[ \t]{0,40}Infiniband device '", False),
    ("ibstat", r"[ \t]{0,40}CA '[^'\n]{1,64}'", False),
    ("ibv_devinfo", r"[ \t]{0,40}hca_id:", False),
    ("show_gids", r"[ \t]{0,40}DEV[ \t]+PORT[ \t]+INDEX[ \t]+GID", True),
    ("nvidia-smi -q", r"=+NVSMI LOG=+", True),
    (
        "matrix",
        r"[ \t]{0,40}(?:[^\n]{0,80}\btopo -(?:m|-matrix)[ \t]+)?GPU0[ \t]+(?:GPU1|NIC0|mlx5_\d+|CPU Affinity)\b",
        True,
    ),
    ("nvlink", r"[ \t]{0,40}GPU \d{1,3}: [^\n]{1,100}\(UUID", False),
    ("ethtool", r"[ \t]{0,40}Settings for (?P<interface>[\w.@-]{1,32}):", True),
    ("ethtool -S", r"[ \t]{0,40}NIC statistics:", True),
    ("mlnx_qos", r"[ \t]{0,40}(?:DCBX mode|Priority trust state): ", False),
    ("rdma link", r"(?:link |\d{1,4}/\d{1,3}: )\S{1,64}/\d{1,3}:? [^\n]{0,400}\bstate [A-Z]", False),
    ("ibdev2netdev", r"[ \t]{0,40}\S{1,64} port \d{1,3} (?:\([^\n]{0,80}\) )?==> \S{1,64} \(", False),
    ("lsmod", r"[ \t]{0,40}Module +Size +Used by", True),
    ("npu-smi", r"\| npu-smi ", True),
    ("hl-smi", r"\| HL-SMI Version: ", True),
    ("rocm-smi", r"=+ ROCm System Management Interface =+", True),
    ("amd-smi", r"[A-Z ]{3,40} TABLE:", False),
    ("lspci", r"(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7] [A-Z0-9][^\n]{2,80}: ", False),
    ("ip", r"\d{1,4}: [\w.@-]{1,64}: <[A-Z,_-]{2,200}> ", False),
    (
        "kernel",
        r"[ \t>]{0,40}(?:\[ {0,8}\+?\d{1,9}\.\d{6}\] ?|\[\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}\] "
        r"|(?:kernel: )?(?:NVRM: |(?:pcieport|mlx5_core|nvidia|amdgpu) [0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]: )"
        rf"|(?:{_DATE}\S{{0,16}}|\w{{3,12}}\.? {{1,2}}\d{{1,2}} [\d:]{{8}}) \S{{1,255}} kernel: "
        r"|kern +:\w+ *: |[\w.]{7,64}: kern: |[^\n]{1,80}?\bNVRM: Xid \()",
        False,
    ),
)  # fmt: skip
_OPENER = lazy_pattern("|".join(rf"(?P<k{number}>{pattern})" for number, (_, pattern, _) in enumerate(OPENERS)))


class Piece(NamedTuple):
    """One output in the text."""

    line: int  # where it begins, from 1
    words: tuple[str, ...]  # of the command, where the text shows it
    filtered: bool  # by a pipe, or asked about one device
    host: str | None  # by the prompt
    text: str


def split_pasted(text: str) -> list[Piece]:
    """Every part of the text that something begins, in order; empty ones are left out.

    >>> [(p.line, p.words, p.host, p.text) for p in split_pasted("[root@n7 ~]# ibstat\\nCA 'mlx5_0'\\n")]
    [(1, ('ibstat',), 'n7', "CA 'mlx5_0'\\n")]
    >>> [(p.words, p.filtered) for p in split_pasted("$ lspci | grep -i nvidia\\n19:00.0 3D controller: x\\n")]
    [(('lspci',), True)]
    """
    pieces: list[Piece] = []
    for piece in _split(text):
        if piece.text.strip():
            pieces.append(piece._replace(text=_unquoted(piece.text)))
        if len(pieces) == PIECES_LIMIT:
            break
    return pieces


class _Open(NamedTuple):
    """The part that is being read."""

    line: int
    words: tuple[str, ...]
    filtered: bool
    host: str | None
    kind: str | None


def _split(text: str) -> Iterator[Piece]:
    current, lines = _Open(1, (), False, None, None), list[str]()
    host: str | None = None
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        bare = line.rstrip("\r\n") if len(line) < LINE_CHARACTERS else ""
        begun = _begin(number, bare, host)
        if begun is not None:
            fence = not begun.words and begun.kind is None and not any(part.strip() for part in lines)
            if fence and current.words:  # a command in backticks, and the fence below it
                continue
            yield _piece(current, lines)
            current, lines, host = begun, [], begun.host
            continue
        opened = _OPENER.match(bare)
        if opened is not None:
            kind, _, always = OPENERS[int((opened.lastgroup or "k0")[1:])]
            of_command = current.kind is None and bool(current.words)  # its first lines may be of any kind
            if (always or kind != current.kind) and not of_command and any(part.strip() for part in lines):
                yield _piece(current, lines)
                current, lines = _Open(number, (), False, host, kind), []
            current = current._replace(kind=kind)
            if kind == "ethtool" and not current.words:
                current = current._replace(words=("ethtool", opened["interface"]))
        heading = _TOPO_HEADING.match(line)
        lines.append(" " * len(heading[1]) + line[heading.end() :] if heading else line)
    yield _piece(current, lines)


def _piece(current: _Open, lines: list[str]) -> Piece:
    return Piece(current.line, current.words, current.filtered, current.host, "".join(lines))


def _begin(number: int, line: str, host: str | None) -> _Open | None:
    """The part that a prompt, a command or a fence begins; None for any other line."""
    if _TOPO_HEADING.match(line):
        return None
    if prompt := _PROMPT.fullmatch(line):
        return _of_command(number, prompt["tool"], prompt["rest"], prompt["host"] or host)
    if other := _OTHER_PROMPT.match(line):
        return _Open(number, (), False, other["host"], None)
    if _FENCE.fullmatch(line):
        return _Open(number, (), False, host, None)
    if (alone := _ALONE.fullmatch(line)) and _WORDS_ALONE.fullmatch(alone["rest"]):
        return _of_command(number, alone["tool"], alone["rest"], host)
    if ticked := _TICKED.fullmatch(line):
        return _of_command(number, ticked["tool"], ticked["rest"], host)
    return None


_SELECTORS = {
    "lspci": ("-s", "-d"),
    "ibv_devinfo": ("-d", "-i"),
    "nvidia-smi": ("-i",),
    "lsmod": (),
}


def _of_command(number: int, tool: str, rest: str, host: str | None) -> _Open:
    """A command as its words, without redirections; what a pipe passes on is not its whole output."""
    rest = re.sub(r"[ \t]#[^\n]{0,300}$|\d?>{1,2}&?[ \t]{0,8}\S{1,200}", "", rest)
    command, pipe, after = re.split(r"[;&]", rest, maxsplit=1)[0].partition("|")
    words = tuple(command.split()[:_SPLIT_WORDS])
    selected = any(word.startswith(_SELECTORS.get(tool, ())) for word in words) if _SELECTORS.get(tool) else False
    filtered = bool(pipe) and after.split()[:1] not in (["cat"], ["tee"], ["less"], ["more"])
    return _Open(number, (tool, *words), filtered or selected, host, None)


def _unquoted(text: str) -> str:
    """Without the marks of a quotation, the margin that all lines have, and empty lines at its begin."""
    lines = re.sub(r"\A(?:[ \t]*\r?\n)+", "", text).splitlines(keepends=True)
    if all(line.startswith(">") or not line.strip() for line in lines):
        lines = [re.sub(r"\A> ?", "", line) for line in lines]
    return textwrap.dedent("".join(lines))
