"""Opens what `--source` and `--root` name: recognized by what it holds, never by its name."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING

from probes.host import commands
from probes.host.files import Files, is_directory, is_file, list_top_files
from probes.host.interface import OUTPUT_LIMIT_BYTES, BadSource, Host, JobLog, ReadError
from probes.text import ParseError, lazy_pattern

if TYPE_CHECKING:
    from probes.sources.dump import SavedOutputs
    from probes.topology_files.preparsed import FactsSource

__all__ = ["BadSource", "open_source"]

OF_A_FABRIC = "describes a whole InfiniBand fabric, not a single node; `fabricscope fleet topology` reads it"
OF_A_SWITCH = "holds outputs of a switch, not of a host, and no fault of its ports"
OF_A_SWITCH_UNJUDGED = "holds outputs of a switch, not of a host; no check judges"
OF_DEMO = "A recorded machine, not this host"  # above the screen of `demo`
_FOLDERS_LOOKED_INTO = 64
_HOSTS_SHOWN = 4
_OF_WHOLE_FABRIC = "vendid=0x"  # above each node of ibnetdiscover, and in no part that someone pastes for one link
_PAGE = lazy_pattern(r"\s{0,64}<!doctype html>[^\0]{0,4096}?<title>[^<]{0,1024}fabricscope</title>", re.IGNORECASE)
_MEASURED = lazy_pattern(r"^[# \t]{0,8}(?:#bytes +#iterations|size +count +(?:type|\(B\)))[^\n]{0,200}", re.MULTILINE)
_OF_PROGRAM = lazy_pattern(  # of Python
    r"^[ \t>]{0,20}(?:Traceback \(most recent call last\):|[A-Za-z][\w.]{2,100}(?:Error|Exception): \S)", re.MULTILINE
)
_UNKNOWN_FILE = "is not recognized: it is neither an archive nor the output of a command that fabricscope reads"
SOURCES = (
    "a source is a capture, a sosreport, an nvidia-bug-report.log, the sys/ tree of a machine, saved command outputs "
    "(nvidia-smi_topo_-m.txt, lspci_-vvv.txt, ibstat.txt), or one topology file of NCCL, hwloc or rdma_topo"
)

_EXCERPT = "an excerpt without the heading is read below its command, as a prompt shows it: `$ ibv_devinfo -v`"
_PARTS_SHOWN = 3
_FORMAT_BYTES = 4096  # of a manifest, in which its format stands
_NOTHING_READ = "is not recognized: it names parts of a host, and states nothing of them that fabricscope reads"
_FEW_LINES = 60  # of a text that may be an excerpt


def open_source(path: str | None, root: str | None = None) -> Host | FactsSource:
    """This host, this host seen through a folder, saved evidence, or a file that is already facts. Raises BadSource."""
    if root is not None:
        return _open_rooted(path, root)
    if path is None:
        from probes.host.live import LiveHost

        return LiveHost()
    if os.path.isdir(path):
        return _recognize(path, _folder(path))
    if path.endswith("*") and not os.path.exists(path) and os.path.isdir(os.path.dirname(path) or "."):
        return _with_prefix(path)
    from probes.sources.archive import load

    store = load(path)
    if store is None:
        return _bug_report(path) or _single_output(path)
    return _recognize(path, store)


def _open_rooted(path: str | None, root: str) -> Host:
    from probes.host.live import RootedHost

    if path is not None:
        raise BadSource(f"{path}: --source and --root exclude each other")
    if not os.path.isdir(root):
        raise BadSource(f"{root}: is not a folder that can be read")
    return RootedHost(root)


def _folder(path: str) -> Files:
    from probes.host.folder import FolderFiles

    files = FolderFiles(path)
    try:
        files.listdir("/")
    except ReadError as why:
        raise BadSource(f"{path}: cannot be read: {why}") from None
    return files


def _with_prefix(path: str) -> Host:
    """The saved outputs of one host in a folder of several: those whose names begin so ("DIR/n7-*")."""
    from probes.sources.dump import SavedOutputs

    folder, prefix = os.path.split(path[:-1])
    files = _folder(folder or ".")
    outputs = SavedOutputs(files, prefix=prefix)
    if not outputs.commands:
        raise BadSource(f"{path}: no file there with such a name is a saved output", SOURCES)
    return _dump(path, files, outputs)


def _refuse_several(path: str, store: Files) -> None:
    """Raises BadSource where a folder below is a source, or several are, each a host of its own."""
    from probes.sources.dump import SavedOutputs, refuse_several

    folders = []
    for name in store.listdir("/")[:_FOLDERS_LOOKED_INTO]:
        inner = store.below(f"/{name}")
        if inner is not None and (_is_whole_machine(inner) or SavedOutputs(inner).commands):
            folders.append(name)
    if len(folders) > 1:
        raise refuse_several(path, folders)
    if folders:
        place = _quote(f"{path.rstrip('/')}/{folders[0]}")
        raise BadSource(
            f"{path}: holds no source, but its folder {folders[0]} does", f"`fabricscope scan --source {place}`"
        )


def _is_whole_machine(store: Files) -> bool:
    return is_file(store, "/manifest.json") or any(
        is_directory(store, f"/{name}") for name in ("sys", commands.SOS_FOLDER[1:])
    )


def _recognize(path: str, store: Files) -> Host:
    """The host that a store holds, where need be in its one leading folder."""
    host = _host(path, store)
    if host is None:
        names = store.listdir("/")
        inner = store.below(f"/{names[0]}") if len(names) == 1 else None
        if inner is not None:
            host = _host(path, inner)
            place, store = os.path.join(path, names[0]), inner
        else:
            place = path
        if host is None:
            _refuse_several(place, store)
    if host is None:
        from probes.sources.dump import SavedOutputs
        from probes.sources.given import is_log_of_job

        outputs = SavedOutputs(store)
        if reports := [name for name in outputs.list_names() if outputs.is_report(name)]:
            raise _is_of_reports(path, place, store, reports)
        if any(is_log_of_job(outputs.look_at(name)) for name in outputs.list_names()):
            raise _is_of_job(path)
        raise BadSource(f"{path}: is not recognized: it holds no source", SOURCES)
    return host


def _quote(path: str) -> str:
    from shlex import quote  # lazy: it compiles a pattern, and only hints have a path

    return quote(path)


def _is_of_job(path: str, kind: str = "the log of a job, not evidence of a host") -> JobLog:
    return JobLog(f"{path}: is {kind}", f"`fabricscope job {_quote(path)}` reads it")


def _is_of_reports(path: str, folder: str, store: Files, names: list[str]) -> BadSource:
    from probes.host.folder import FolderFiles

    count = f"{len(names)} finished reports" if len(names) > 1 else "a finished report"
    one = _quote(os.path.join(folder, names[0]) if isinstance(store, FolderFiles) else names[0])
    hint = f"`fabricscope scan {one}` shows one; `fabricscope fleet ingest` takes a folder of them"
    return BadSource(f"{path}: holds {count}, and a source is one host", hint)


def _host(path: str, store: Files) -> Host | None:
    if is_file(store, "/manifest.json"):
        from probes.sources.capture import FORMAT, CaptureHost

        files = store.below("/files")
        if files is not None:
            return CaptureHost(path, store, files)
        if FORMAT.encode() in store.read("/manifest.json", _FORMAT_BYTES):
            raise BadSource(f"{path}: is a capture without its folder of files")
    elif "manifest.json" in store.listdir("/") and store.below("/files") is not None:
        raise BadSource(f"{path}: is a capture whose manifest.json is no file that can be read")
    if is_directory(store, commands.SOS_FOLDER):
        from probes.sources.sosreport import sos_host

        return sos_host(path, store)
    from probes.sources.tree import NoOutputs, TreeHost

    if is_directory(store, "/sys") and not list_top_files(store):
        return TreeHost("tree", path, store, NoOutputs())
    from probes.sources.dump import SavedOutputs, refuse_several
    from probes.sources.output_names import group_by_prefix

    outputs = SavedOutputs(store)
    if is_directory(store, "/sys"):
        return TreeHost("tree", path, store, outputs, tuple(outputs.unread))
    prefixes = {prefix: names for prefix, names in group_by_prefix(outputs.list_names()).items() if prefix}
    if len(prefixes) == 1 and len(outputs.list_names()) == len(*prefixes.values()):
        outputs = SavedOutputs(store, prefix=next(iter(prefixes)))
    elif len({name for names in prefixes.values() for name in names}) < sum(map(len, prefixes.values())):
        raise refuse_several(path, prefixes, glob=True)  # one command's output of each
    return _dump(path, store, outputs) if outputs.commands else None


def _dump(path: str, files: Files, outputs: SavedOutputs) -> Host:
    """A host of saved outputs. Raises BadSource where all that they report is a fabric or a switch: which node is
    it?"""
    from probes.sources.tree import TreeHost

    if _is_of_a_fabric(outputs):
        raise BadSource(f"{path}: {OF_A_FABRIC}")
    if _is_of_a_switch(outputs):
        raise _is_without_fault(path, outputs)
    shown = outputs.shown_files if outputs.holds(commands.SYSFS_SAVED[0]) else files
    return TreeHost("dump", path, shown, outputs, tuple(outputs.unread))


def _is_of_a_fabric(outputs: SavedOutputs) -> bool:
    """Whether they are about no host, and do not mark a link that could be faster: that is what such a list is saved
    for. Errors of the tool that lists them do not count."""
    if outputs.holds(commands.PART_LINES):
        return False
    lists = [argv for argv in outputs.commands if argv[0] != "error"]
    if not all(argv in commands.IB_FABRIC_SAVED for argv in lists) or (outputs.commands and not lists):
        return False
    from probes.tool_reports.network.port_errors import list_narrow_links, list_slow_links

    for argvs, list_faults in ((commands.IB_LINKS, list_slow_links), (commands.IB_NODES, list_narrow_links)):
        for argv in argvs if any(map(outputs.holds, argvs)) else ():
            with suppress(ParseError, ReadError):
                text = outputs.completed(argv).stdout
                if not (argv in commands.IB_NODES and _OF_WHOLE_FABRIC in text) and list_faults(text):
                    return False
    return True


def _is_of_a_switch(outputs: SavedOutputs) -> bool:
    """Whether they are about ports of a switch alone, and state no fault of one."""
    if set(outputs.commands) != {commands.SWITCH_PORTS}:
        return False
    from probes.tool_reports.network.switch_ports import list_switch_ports

    try:
        return not list_switch_ports(outputs.completed(commands.SWITCH_PORTS).stdout)
    except (ParseError, ReadError):
        return True


def _is_without_fault(path: str, outputs: SavedOutputs) -> BadSource:
    """A switch that states no fault of a port; what reads like one and is not judged is named."""
    from probes.tool_reports.network.switch_unjudged import list_unjudged

    with suppress(ParseError, ReadError):
        if unjudged := list_unjudged(outputs.completed(commands.SWITCH_PORTS).stdout):
            return BadSource(
                f"{path}: {OF_A_SWITCH_UNJUDGED}: {'; '.join(unjudged)}",
                "a port that should have a link: look at its cable and module; a count: read it again after some "
                "minutes, only one that grows is a fault of now",
            )
    return BadSource(f"{path}: {OF_A_SWITCH}")


def _bug_report(path: str) -> Host | None:
    from probes.sources.bug_report import bug_report_host

    return bug_report_host(path)


_BLOCK_BYTES = 512  # of zeros: a text of UTF-16 may begin with one


def _skip_filler(content: bytes) -> bytes:
    """Without what fills the begin of a log: zeros after a loss of power, and a line of a progress bar."""
    from probes.sources.identify import LOOK_CHARACTERS

    content = content.lstrip(b"\0") if content.startswith(bytes(_BLOCK_BYTES)) else content
    end = content.find(b"\n")
    is_filler = end > LOOK_CHARACTERS and content[:1] not in (b"{", b"[", b"<", b'"')
    return content[end + 1 :] if is_filler and content[end + 1 :].strip() else content


def _single_output(path: str) -> Host | FactsSource:
    """One file: a topology that some tool wrote, or a saved output, by its name or by what it holds."""
    from probes.fabric.files import LOOK_CHARACTERS, fabric_format
    from probes.host.folder import LiveFiles
    from probes.sources.dump import SavedOutputs, is_long_log, read_long_log
    from probes.sources.given import is_log_of_job
    from probes.sources.host_lines import find_hosts
    from probes.sources.identify import find_missing_name
    from probes.sources.memory import MemoryFiles
    from probes.sources.pasted import find_silent_command, holds_output
    from probes.sources.tree import TreeHost
    from probes.sources.unwrap import unwrap
    from probes.text import decode_saved
    from probes.topology_files.recognize import facts_source

    name = os.path.basename(path)
    try:
        content = LiveFiles().read(os.path.abspath(path), OUTPUT_LIMIT_BYTES)
    except ReadError as why:
        raise BadSource(f"{path}: cannot be read: {why}") from None
    content = _skip_filler(content)
    source = facts_source(path, content)
    if source is not None:
        return source
    if _PAGE.match(decode_saved(content[:LOOK_CHARACTERS])):  # its steps quote commands, as a prompt does
        raise BadSource(
            f"{path}: is a page for people, not a report",
            "a source is the JSON of the same scan: fabricscope scan --output report.json writes it",
        )
    outputs = SavedOutputs(MemoryFiles({name: content}))
    log = next((argv for argv in outputs.commands if is_long_log(argv)), None)
    if len(content) == OUTPUT_LIMIT_BYTES and log is not None:
        try:
            content = read_long_log(LiveFiles(), os.path.abspath(path), log)
        except ReadError as why:
            raise BadSource(f"{path}: cannot be read: {why}") from None
        outputs = SavedOutputs(MemoryFiles({name: content}))
    if OF_DEMO in decode_saved(content[:LOOK_CHARACTERS]) and {commands.OWN_REPORT, commands.STATED}.issuperset(
        outputs.commands
    ):
        raise BadSource(f"{path}: shows the machine of `fabricscope demo`, which is no host")
    if _is_of_a_switch(outputs):
        raise _is_without_fault(path, outputs)
    if _is_of_a_fabric(outputs):
        start = unwrap(decode_saved(content[:LOOK_CHARACTERS]), holds_output)
        if fabric_format(start):
            raise BadSource(f"{path}: {OF_A_FABRIC}")
        if outputs.is_report(name):
            raise BadSource(f"{path}: is a finished report of fabricscope", "--report takes one")
        if is_log_of_job(start):
            raise _is_of_job(path)
        if _MEASURED.search(start):
            raise _is_of_job(path, "a table of measured bandwidths")
        if hosts := find_hosts(start):
            is_before = f"{hosts[0]}: " in start
            cut = f"sed -n 's/^{hosts[0]}: //p' {_quote(path)} > {hosts[0]}.txt"
            how = cut if is_before else "save the lines below its name in a file of their own"
            shown = ", ".join(hosts[:_HOSTS_SHOWN])
            raise BadSource(
                f"{path}: holds lines of {len(hosts)} hosts ({shown}), and a source is one host",
                f"scan what one of them printed: {how}",
            )
        if _OF_PROGRAM.search(start):
            raise _is_of_job(path, "what a program printed when it failed, not evidence of a host")
        unusable = outputs.find_unusable()
        if command := find_silent_command(start):
            raise BadSource(
                f"{path}: holds a command that printed nothing (`{command}`), which states no fault",
                "an empty output has another cause, too: no rights, or another spelling; save what the command prints "
                "without its filter",
            )
        reason = find_missing_name(start) or (f"no output in it can be read: {unusable}" if unusable else None)
        if reason is None and content.strip() and content.count(b"\n") < _FEW_LINES:
            from probes.tool_reports.sentences.parts import list_all_parts

            parts = list_all_parts(start)[:_PARTS_SHOWN]
            raise BadSource(f"{path}: {_NOTHING_READ if parts else _UNKNOWN_FILE}", f"{_EXCERPT}; {SOURCES}", parts)
        reason = reason or ("it is empty" if not content.strip() else _UNKNOWN_FILE)
        raise BadSource(f"{path}: {reason}", SOURCES)
    kind = "text" if outputs.is_text else "dump"
    return TreeHost(kind, path, outputs.shown_files, outputs, tuple(outputs.unread))
