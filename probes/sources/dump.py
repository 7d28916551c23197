"""Saved outputs of commands: which file is which command's, by its name or by what it holds.

Names are those of sos: each run of characters outside [A-Za-z0-9_./-] is one "_", then "/" is "."; a suffix such as
.txt may follow.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, Protocol

from probes.host.commands import (
    COMMANDS,
    KERNEL_LOG,
    KERNEL_LOG_EARLIER,
    KERNEL_LOG_SAVED,
    NVIDIA_SMI_SAVED,
    OF_INTERFACE,
    OF_NPU,
    SAVED,
)
from probes.host.files import Files, is_file
from probes.host.interface import FILTERED, LOG_LIMIT_BYTES, OUTPUT_LIMIT_BYTES, Absent, Completed, Failed, ReadError
from probes.sources.identify import LOOK_CHARACTERS, find_missing_name, identify_command
from probes.text import decode_saved, lazy_pattern

if TYPE_CHECKING:
    from probes.sources.pasted import Piece

PASTED_CHARACTERS = 2 << 20  # a longer text is one output
_SPLIT_CHARACTERS = 8 << 20  # of all files together, 0.2 s each MiB

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


KERNEL_LOGS = frozenset(KERNEL_LOG + KERNEL_LOG_SAVED + KERNEL_LOG_EARLIER)
_KEPT_LIMIT_BYTES = 64 << 20  # of the lines of a kernel log that are read


def read_long_log(files: Files, path: str) -> bytes:
    """What is read of a kernel log that is longer than other outputs may be. Raises Failed."""
    from probes.kernel.log_events import keep_read_lines  # lazy: a rare one

    content = files.read(path, LOG_LIMIT_BYTES)
    kept = keep_read_lines(content) if len(content) < LOG_LIMIT_BYTES else content
    if len(kept) > _KEPT_LIMIT_BYTES:
        raise Failed(f"{path}: longer than {LOG_LIMIT_BYTES >> 20} MiB", "EFBIG")
    return kept


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
        if len(content) == OUTPUT_LIMIT_BYTES and argv in KERNEL_LOGS:
            content = read_long_log(self._files, self._paths[name])
        if len(content) == OUTPUT_LIMIT_BYTES:
            raise Failed(f"{name}: longer than {OUTPUT_LIMIT_BYTES >> 20} MiB", "EFBIG")
        text = decode_saved(content)
        if self._is_copied and len(text) <= PASTED_CHARACTERS:
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
        from probes.sources.pasted import holds_output  # lazy: few sources hold a text that nobody named
        from probes.sources.unwrap import unwrap

        start, cut = self._start(name)
        whole = identify_command(unwrap(start, holds_output))
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
    from probes.sources.pasted import split_pasted, with_command  # lazy: few sources hold a text that nobody named

    found: dict[str, _Piece] = {}
    unread: list[str] = []
    first_host: str | None = None
    for piece in split_pasted(text):
        name = _name_of_piece(piece)
        if name and name.startswith("lspci"):
            name = next((one for one in found if one.startswith("lspci")), name)  # of one device, and of the next one
        shown = f"line {piece.line}: {' '.join(piece.words) or 'an output'}"
        first_host = first_host or (piece.host if name else None)
        content = with_command(piece) if name == _HCCN else piece.text
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
            return None if any("$" in word for word in piece.words) else shown
        is_own = any(argv[0] == tool for argv in of_content) or (tool == "ip" and _IP_LINK.match(piece.text))
        if is_own and any(best_name(argv, [shown]) for argv in COMMANDS + SAVED):
            return shown
    return saved_name(of_content[0]) if of_content else None


_IP_LINK = lazy_pattern(r"\s*[0-9]{1,6}: \S{1,60}: <[A-Z0-9_,-]*> mtu [0-9]")  # by itself it may be without -d
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
