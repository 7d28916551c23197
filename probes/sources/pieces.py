"""Outputs in a longer text: which command's each is, which are used, and which parts of one belong together."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from probes.host import commands
from probes.named_tuple import NamedTuple
from probes.rdma.lost_heading import restore_heading
from probes.sources.file_commands import show_files
from probes.sources.given import is_log_of_job
from probes.sources.host_lines import find_hosts
from probes.sources.identify import (
    find_missing_name,
    identify_by_words,
    identify_command,
    identify_unnamed,
    is_sentence_of_smi,
)
from probes.sources.output_names import best_name, is_of_device, saved_name
from probes.text import ParseError, lazy_pattern
from probes.tool_reports.unread import has_labels

if TYPE_CHECKING:
    from probes.sources.pasted import Piece


class OutputPiece(NamedTuple):
    """An output that is in a longer text."""

    text: str
    filtered: str | None  # why it is a part of what its command printed
    marked: bool = False
    host: str | None = None  # by the prompt
    place: str = ""  # "issue.md, line 12"
    waited: int | None = None  # seconds since the command before it


class UnusedOutput(NamedTuple):
    """An output in a longer text that is not used; of one that is known the name and the text."""

    place: str
    words: str
    why: str
    name: str | None = None
    piece: OutputPiece | None = None
    is_known: bool = True
    read_by: str | None = None  # see GivenFile

    def __str__(self) -> str:
        return f"{self.place}: {self.words}: {self.why}"


_ERROR, _STATED = "error_of_", saved_name(commands.STATED)
_SERVICE_LOG = commands.SERVICE_LOG[0]
_GAUDI_PORTS, _SWITCH = commands.GAUDI_PORTS[0], "_".join(commands.SWITCH_PORTS)
_WITH_DEVICE = (commands.MLXLINK[0], commands.CMA_MODE[0], "error_of_ib_write_bw")  # whose command names the device
_OF_PORTS = "perfquery"  # and smpquery, ibportstate: each output is of another port
_NVUE = "nv"  # its command alone states the port
_IP_LINK = "ip_link"
_NPU_HEALTH = saved_name(commands.NPU_HEALTH)
_KUBE_TABLE = saved_name(commands.KUBE_NODE[1])
_NODES = (("node",), ("nodes",), ("no",))
_DEVICE_LINE = lazy_pattern(  # of ibstat, ibv_devinfo, rdma link
    r"(?m)^(?:CA '[\w.-]{1,64}'|hca_id:[ \t]{0,8}[\w.-]{1,64}|link [\w.-]{1,64}/\d{1,3}(?= ))"
)
_COMMAND_LINE = lazy_pattern(r"(?m)^\$ [^\n]{1,400}$")
_DEVICE_PORT = lazy_pattern(r"[a-z][\w.-]{1,63}/\d{1,3}")
_UNREAD_FILE = lazy_pattern(r" /(?:proc/(?:mdstat|fs/|spl/)|etc/(?:slurm|ceph|beegfs)/)")  # by its words alone
_SENSORS = "ipmitool"  # each output is of other sensors
_REMOTE = lazy_pattern(r" -H ?\S")
_STATED_COLUMNS = lazy_pattern(r"\b(?:jsonpath|custom-columns)=")
# Of these a second output is a second sample
_COUNTERS = lazy_pattern(r"^rdma (?:-\w+ )*statistic | -(?:stat|pfc_stat) |counters\b|/statistics/")
_BY_CONTENT = frozenset(  # whatever the command before it
    (commands.BONDING, commands.SWITCH_PORTS, commands.NPU_HEALTH, commands.NIC_PORTS, commands.CXI_PORTS,
     commands.SLURM_LOG)
)  # fmt: skip
_SINFO = saved_name(commands.SLURM_HELD)  # its table of states, and that of reasons
LOG, _HCCN, _SYSFS = "dmesg", "hccn_tool", "sysfs_files"  # of which several parts are one output
_QUERY = "nvidia-smi_-q"  # each has a date: the reader chooses
_JOINED = (LOG, _HCCN, _SYSFS, *_WITH_DEVICE, _SERVICE_LOG, _QUERY, _SWITCH)
_OF_PARTS = (*_JOINED, _SINFO)  # whose parts are read as one output
_RDMA = ("ibstat", "ibv_dev", "rdma_link", "ibdev2netdev", "show_gids")
_OF_ONE = (*_RDMA, "nvidia-smi_nvlink")  # of one device, or of all
_FAULTS = (  # each line stands for itself
    "ibqueryerrors", "iblinkinfo", "perfquery", "ibdiagnet", "kubectl", "docker", "ipmitool", "ipmi-sel", "racadm",
    "scontrol", "sinfo", "ibnetdiscover", "sentences_of_tools", "nvidia-smi_dmon", "nvidia-imex-ctl", "ulimit",
)  # fmt: skip
_FILTERED = (
    "lspci", "ethtool", "mlnx_qos", "journalctl", "systemctl", _IP_LINK, "lspci_grep", "nvidia-smi_grep", "lsmod",
)  # fmt: skip
IN_PARTS = (*_JOINED, *_FILTERED, *_OF_ONE, *_FAULTS)  # a part of it is a part of the facts, nothing else
NAMED_LOGS = (commands.SERVICE_LOG, commands.ROTATED_LOG)  # of which a source may have several, by their files' names


def name_pieces(file: str, text: str) -> tuple[dict[str, OutputPiece], list[UnusedOutput]]:
    """The outputs in a text by the names of their commands, and which are not used and why."""
    from probes.sources.pasted import split_pasted, with_command  # lazy: few sources hold a text that no one named

    found: dict[str, OutputPiece] = {}
    unread: list[UnusedOutput] = []
    first_host: str | None = None
    unnamed: list[OutputPiece] = []
    asked: set[tuple[str, ...]] = set()  # whose outputs are used
    for piece in split_pasted(text):
        name = _name_of_piece(piece)
        if name and name.startswith("lspci"):
            name = next((one for one in found if one.startswith("lspci")), name)  # of one device, and of the next one
        shown = f"{file}, line {piece.line}", " ".join(piece.words) or "an output"
        first_host = first_host or (piece.host if name else None)
        content = (
            f"$ {' '.join(piece.words)}\n{piece.text}"
            if name in (_NPU_HEALTH, _KUBE_TABLE)
            else with_command(piece)
            if name in (_HCCN, _SYSFS, *_WITH_DEVICE, _SWITCH)
            else piece.text
        )
        is_part = piece.filtered and not is_sentence_of_smi(piece.text)
        part = f"it is the output of `{' '.join(piece.words)} | ...`" if is_part else None
        here = OutputPiece(content, part, piece.marked, piece.host, shown[0], piece.waited)
        if name is None:
            unnamed.append(here)
            if why := find_missing_name(piece.text):
                unread.append(UnusedOutput(*shown, why))
            elif piece.words:
                unread.append(UnusedOutput(*shown, "this output is not known", is_known=False))
        elif is_part and not name.startswith(IN_PARTS):
            unread.append(UnusedOutput(*shown, "is a part of what the command printed; save the whole"))
        elif piece.host not in (None, first_host):
            why = f"is of {piece.host}, and a source is one host: here {first_host}"
            _add_other(unread, UnusedOutput(*shown, why, name, here))
        elif name not in found:
            found[name] = here
            asked.add(piece.words)
        elif _is_of_another_time(name, piece, asked, found[name].text):
            unread.append(UnusedOutput(*shown, "an earlier one is used", name, here))
        elif (
            name in _OF_PARTS
            or name.startswith("lspci")
            or (name.startswith(_SENSORS) and piece.words not in asked and not _REMOTE.search(shown[1]))
            or restore_heading(name.partition("_-")[0], found[name].text)
            != found[name].text  # the excerpt's first device
            or (
                ((found[name].filtered and name.startswith(_OF_ONE)) or name == _OF_PORTS)
                and not (piece.words and piece.words in asked)
            )
        ):
            asked.add(piece.words)
            between = "\n\n" if name.startswith("lspci") else "" if found[name].text.endswith("\n") else "\n"
            before = found[name].text.rstrip() if name.startswith("lspci") else found[name].text
            found[name] = found[name]._replace(text=before + between + content)
        elif piece.waited is not None or found[name].text.strip() != piece.text.strip():
            unread.append(UnusedOutput(*shown, "an earlier one is used", name, here))
    if labels := _join_labels(unnamed):
        found |= labels
        unread = [output for output in unread if output.place not in {piece.place for piece in unnamed}]
    for name, lines in list(_list_sentences(text, found, unnamed)):
        place = f"{file}, line {text.count(chr(10), 0, text.find(lines[0])) + 1}"
        found[name] = OutputPiece("\n".join(lines) + "\n", None, place=place)
    if saved_name(commands.SHEET) not in found and (compared := _compare_parts(file, text, found, unread)):
        found |= compared
        unread = [output for output in unread if output.is_known]
    if _MASTER in text:  # the one on standby was asked as well
        found = {name: piece for name, piece in found.items() if _STANDBY not in piece.text or _MASTER in piece.text}
    found |= _compare_sides(file, text)
    return (found | _find_settings(file, text) if found else found), unread


_MASTER, _STANDBY = "SMINFO_MASTER", "SMINFO_STANDBY"


def _add_other(unread: list[UnusedOutput], output: UnusedOutput) -> None:
    """An output of another host: a further part of one that is there already, as a loop prints them, belongs to it."""
    is_part = output.name in _OF_PARTS and not _COUNTERS.search(output.words)
    for at, other in enumerate(unread if is_part else ()):
        if other.piece and output.piece and (other.name, other.piece.host) == (output.name, output.piece.host):
            joined = f"{other.piece.text.rstrip()}\n{output.piece.text}"
            unread[at] = other._replace(piece=other.piece._replace(text=joined))
            return
    unread.append(output)


_READ_IN_PART = (
    "nvidia-smi_",
    "lspci_",
    _SYSFS,
    *map(saved_name, (*commands.FILTERED_SAVED, commands.CMA_MODE, commands.MLXCONFIG)),
)  # few of the lines
_ANY_FORM = (commands.DEVICE_LABELS, *commands.IB_FABRIC_SAVED)  # of which no reader has what the lines mean
_OF_ANY_FORM = frozenset(map(saved_name, _ANY_FORM))


def _compare_parts(
    file: str, text: str, found: Mapping[str, OutputPiece], unread: Sequence[UnusedOutput]
) -> dict[str, OutputPiece]:
    """The values of several hosts, or of what a loop goes over, as a table, where one of them has another than most;
    of lines that a reader has of each of them, none of a loop."""
    from probes.sources.host_table import tabulate_hosts, tabulate_loop  # lazy, as are the judges of what these find
    from probes.tool_reports.probe import READERS

    is_free = found.keys() <= _OF_ANY_FORM and frozenset(_ANY_FORM).issuperset(identify_command(text))
    ways = (
        (commands.SHEET, partial(tabulate_hosts, text, not found)),
        (commands.LOOP, partial(tabulate_loop, text, not found, partial(_list_read_lines, found, unread))),
        (commands.PART_LINES, partial(tabulate_loop, text, is_free, of_any_form=is_free)),
    )
    for command, tabulate in ways if found or is_free else ways[:2]:
        table = tabulate()
        list_faults = next(list_faults for argvs, list_faults in READERS if command in argvs)
        with suppress(ParseError):
            if table and list_faults(table):
                return {saved_name(command): OutputPiece(table, None, place=f"{file}, line 1")}
    return {}


def _compare_sides(file: str, text: str) -> dict[str, OutputPiece]:
    """The text itself, where two sides of a link or of a setting state different values."""
    from probes.sources.host_table import may_have_sides  # lazy, as above

    if not may_have_sides(text):
        return {}
    from probes.tool_reports.ends.agree import list_disagreements

    with suppress(ParseError):
        if list_disagreements(text):
            return {saved_name(commands.ENDS): OutputPiece(text, None, place=f"{file}, line 1")}
    return {}


def _list_read_lines(found: Mapping[str, OutputPiece], unread: Sequence[UnusedOutput]) -> frozenset[str]:
    """The lines of outputs of which there are several of one kind, each of another device or host."""
    pieces = [*found.items(), *((output.name or "", output.piece) for output in unread if output.piece)]
    kinds = [name.rpartition("_")[0] or name for name, _ in pieces]  # without the device at its end
    several = {kind for kind, count in Counter(kinds).items() if count > 1}
    return frozenset(
        line.strip()
        for kind, (name, piece) in zip(kinds, pieces, strict=True)
        if kind in several and not name.startswith(_READ_IN_PART)
        for line in piece.text.splitlines()
    )


_NAME_BEFORE = 12  # characters; a shorter line is no sentence


def _list_sentences(
    text: str, found: Mapping[str, OutputPiece], unnamed: Sequence[OutputPiece]
) -> Iterator[tuple[str, list[str]]]:
    """Lines of tools that state faults beside other outputs, or behind a prompt: what is in an output that is read for
    its faults counts there alone."""
    from probes.tool_reports.sentences.stated import IBPING, find_tool_errors, list_stated_lines
    from probes.tool_reports.sentences.table import UNKNOWN  # lazy: few sources hold a text of several outputs
    from probes.tool_reports.sentences.unexplained import list_logged

    names = {LOG, *map(saved_name, (*commands.TOOL_REPORTS_SAVED, *commands.NVIDIA_SMI_TABLE))}
    read = [piece.text for name, piece in found.items() if name in names]
    is_alone = not any(name.startswith(_ERROR) for name in found) and not is_log_of_job(text)
    errors = [
        match.string
        for row, match in (find_tool_errors(text) if is_alone else ())
        if row not in UNKNOWN or not any(match.string in output for output in read)
    ]
    if is_alone and found:
        others = [piece for name, piece in found.items() if name not in (*names, _SERVICE_LOG, _STATED)]
        errors += [line for piece in (*unnamed, *others) for line in list_logged(piece.text) if line not in errors]
    if errors:
        named = [line for line in text.splitlines() if IBPING in line][:1]  # whose sentences ping prints, too
        yield f"{_ERROR}text", [*named, *errors]
    own = {line for output in read for line in output.splitlines() if len(line) > _NAME_BEFORE}
    lines = [
        line
        for line in list_stated_lines(text)
        if not any(line in output for output in read) and not any(line.endswith(f" {end}") for end in own)
    ]  # behind a date or the name of a host
    if lines and _STATED not in found:
        yield _STATED, lines


def _join_labels(unnamed: Sequence[OutputPiece]) -> dict[str, OutputPiece]:
    """Outputs that are not known, where they are of several devices together: one command for each."""
    joined = "\n".join(piece.text for piece in unnamed)
    return {saved_name(commands.DEVICE_LABELS): unnamed[0]._replace(text=joined)} if has_labels(joined) else {}


_PCI_HEAD = lazy_pattern(r"(?:[0-9a-f]{4,8}:)?(?P<function>[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) ")


def _list_links(text: str) -> dict[str, str]:
    """What an output of lspci states of the link of each function."""
    links: dict[str, str] = {}
    function = ""
    for line in text.splitlines():
        if head := _PCI_HEAD.match(line.lstrip("> ")):
            function = head["function"]
        elif "LnkSta:" in line:
            links.setdefault(function, line.strip("> \t"))
    return links


def join_files(used: OutputPiece, other: OutputPiece, name: str) -> OutputPiece | None:
    """The parts of one output that two files hold; None where it is none in parts, or where a command or a device is in
    both: then they are of several hosts, or of several times."""
    begins = _COMMAND_LINE if name in (_HCCN, *_WITH_DEVICE) else _DEVICE_LINE if name.startswith(_RDMA) else None
    if begins is None or used.host != other.host:
        return None
    first, second = (set(begins.findall(piece.text)) for piece in (used, other))
    if not (first and second) or first & second:
        return None
    return used._replace(text=f"{used.text.rstrip()}\n{other.text}")


def _is_of_another_time(name: str, piece: "Piece", asked: set[tuple[str, ...]], before: str) -> bool:
    """Whether it is no further part of the output above it: its command was run again, where counters count, or it
    states another link of a function of lspci."""
    if name.startswith("lspci") and "LnkSta:" in piece.text:
        links = _list_links(before)
        return any(links.get(function, link) != link for function, link in _list_links(piece.text).items())
    is_again = name in (_SYSFS, _HCCN) and piece.words in asked
    return is_again and _COUNTERS.search(" ".join(piece.words)) is not None


def _find_settings(file: str, text: str) -> dict[str, OutputPiece]:
    """What NCCL states of its settings, or the command of a job gives it, beside outputs of the host that it ran on."""
    if "NCCL_" not in text:
        return {}
    from probes.nccl.jobs import list_setting_lines  # lazy, as above

    lines = list_setting_lines(text)
    if not lines:
        return {}
    line = text.count("\n", 0, text.find(lines[0])) + 1
    return {
        saved_name(commands.NCCL_SETTINGS): OutputPiece("\n".join(lines) + "\n", None, place=f"{file}, line {line}")
    }


def _name_of_piece(piece: "Piece") -> str | None:
    """The name under which a folder would hold this output; None where it is none that is known.

    >>> from probes.sources.pasted import Piece
    >>> _name_of_piece(Piece(1, ("ethtool", "-S", "ens1f0np0"), False, None, "NIC statistics:\\n"))
    'ethtool_-S_ens1f0np0'
    >>> _name_of_piece(Piece(1, (), False, None, "CA 'mlx5_0'\\n\\tCA type: MT4129\\n"))
    'ibstat'
    """
    from probes.sources.pasted import with_command  # lazy, as above

    text = with_command(piece) if piece.words[:1] == (_NVUE,) else piece.text
    of_content = identify_command(text, by_words=False)
    is_unread = piece.files is not None and _UNREAD_FILE.search(" ".join(piece.words)) is not None
    if piece.files is not None and not is_unread and not (of_content and of_content[0] in _BY_CONTENT):
        is_of_one = not find_hosts(piece.text) and show_files(piece.files, piece.text).strip()
        return _SYSFS if is_of_one else None
    if of_content == (commands.REPEATED,) and not piece.marked:
        return None  # a list of values in a longer text
    if of_content in ((commands.PCI_LINES,), (commands.GPU_LINES,)):
        return saved_name(of_content[0])
    if (
        piece.words[:2] == ("kubectl", "get")
        and piece.words[2:3] in _NODES
        and any(map(_STATED_COLUMNS.search, piece.words))
    ):
        return _KUBE_TABLE
    if piece.words and piece.words[-1] not in _PROSE:
        shown = saved_name(piece.words)
        tool = piece.words[0]
        if of_content and of_content[0] in _BY_CONTENT:
            return saved_name(of_content[0])
        if tool == _HCCN:
            return _HCCN
        if tool == "rdma" and "statistic" in piece.words and _DEVICE_PORT.fullmatch(piece.words[-1]):
            return _SYSFS
        if tool in (*_WITH_DEVICE, _GAUDI_PORTS) and of_content == ((tool,),):
            return tool
        if of_content == ((LOG,),):
            return LOG  # whatever its options
        if is_of_device(shown):
            return None if any("$" in word for word in piece.words) else shown
        if of_content and of_content[0][0] == tool == "ip":
            return _IP_LINK if piece.filtered else saved_name(of_content[0])  # with -d it would be a list of all
        if (tool,) in commands.NVIDIA_SMI_TABLE and shown == tool and of_content:
            return saved_name(of_content[0])
        is_own = any(argv[0] == tool for argv in of_content) or (tool in _BARE and _BARE[tool].match(piece.text))
        if is_own and any(best_name(argv, [shown]) for argv in commands.KNOWN):
            return shown
    of_content = of_content or tuple(filter(None, (identify_unnamed(piece.text),)))
    if not of_content and piece.marked and not any(argv[0] in piece.words[:1] for argv in commands.KNOWN):
        of_content = identify_by_words(text)
    return saved_name(of_content[0]) if of_content else None


_BARE = {  # outputs that their command alone identifies
    "ip": lazy_pattern(r"\A\s*[0-9]{1,6}: \S{1,60}: <[A-Z0-9_,-]*> mtu [0-9]"),  # by itself it may be without -d
    "ulimit": lazy_pattern(r"\A\s*(?:unlimited|[0-9]{1,15})\s*\Z"),
}
_PROSE = ("output", "outputs", "shows", "says", "result", "results")
