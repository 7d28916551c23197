"""nvidia-bug-report.log(.gz): the sections of one long text, as the files and command outputs that they are.

A file's section begins with "*** PATH" and "*** ls: ...", a command's with its command line; one section can hold
several commands. Files below /sys are left out: the script keeps those of NVIDIA's functions only, which would pass
for the machine. Layout: nvidia-bug-report.sh of drivers 390 to 580.

A log cut at its rules (lines of 44 underscores), streamed: of each section as much as someone wants of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from probes.host.commands import KNOWN
from probes.host.interface import OUTPUT_LIMIT_BYTES
from probes.named_tuple import NamedTuple
from probes.services.sentences import LOG_FILES
from probes.sources.decompress import DecompressedStream
from probes.sources.dump import SavedOutputs
from probes.sources.memory import MemoryFiles, SpecialNode
from probes.sources.output_names import saved_name
from probes.sources.tree import BundleHost, parse_date_output
from probes.text import lazy_pattern

HEAD_BYTES = 4096  # of every section: enough to see what it is
SECTIONS_LIMIT = 200_000
CHUNK_BYTES = 1 << 20
RULE = b"\n" + b"_" * 44 + b"\n"


class LogSection(NamedTuple):
    """What is between two rules. `cut`: it goes on behind `text`."""

    text: bytes
    cut: bool


def sections(stream: DecompressedStream, is_wanted: Callable[[bytes], bool]) -> Iterator[LogSection]:
    """Every section in order; whole (up to OUTPUT_LIMIT_BYTES) where its head is wanted, else only its head.
    Raises BadSource."""
    ahead = b"\n"
    count, section = 0, _Open(is_wanted)
    while chunk := _chunk(stream):
        ahead += chunk
        start = 0
        while (at := ahead.find(RULE, start)) >= 0:
            section.add(ahead[start : at + 1])
            yield section.closed()
            count, section = count + 1, _Open(is_wanted)
            if count > SECTIONS_LIMIT:
                raise stream.bad(f"is refused: it holds more than {SECTIONS_LIMIT:,} sections")
            start = at + len(RULE) - 1  # its last byte may begin the next rule
        rest = max(start, len(ahead) - len(RULE))
        section.add(ahead[start:rest])
        ahead = ahead[rest:]
    section.add(ahead)
    yield section.closed()


class _Open:
    def __init__(self, is_wanted: Callable[[bytes], bool]) -> None:
        self._is_wanted = is_wanted
        self._limit: int | None = None
        self._data = bytearray()
        self._cut = False

    def add(self, part: bytes) -> None:
        if self._limit is None:
            self._data += part
            if len(self._data) < HEAD_BYTES:
                return
            self._limit = OUTPUT_LIMIT_BYTES if self._is_wanted(bytes(self._data[:HEAD_BYTES])) else HEAD_BYTES
        elif len(self._data) < self._limit:
            self._data += part
        elif part:
            self._cut = True
        if len(self._data) > self._limit:
            del self._data[self._limit :]
            self._cut = True

    def closed(self) -> LogSection:
        return LogSection(bytes(self._data), self._cut)


def _chunk(stream: DecompressedStream) -> bytes:
    """With the line ends of Unix: logs come back from Windows."""
    chunk = stream.read(CHUNK_BYTES)
    if chunk.endswith(b"\r"):
        chunk += stream.read(1)
    return chunk.replace(b"\r\n", b"\n")


INFLATED_LIMIT_BYTES = 4 << 30  # of logs that real servers made, some are hundreds of megabytes
KEPT_LIMIT_BYTES = 96 << 20
START = b"Start of NVIDIA bug report log file"
END = b"End of NVIDIA bug report log file"
CONTAINER_ROOT = "/.bottlerocket/rootfs"

_TOOLS = {argv[0] for argv in KNOWN} | {"dmesg"}
_FILE = lazy_pattern(rb"\*\*\* (/[^\n]{1,1000}?)( does not exist| is not readable)?\n")
_LISTED = lazy_pattern(rb"\*\*\* ls: ([^\n]*)\n")
_MADE = lazy_pattern(rb" ([+-]\d{4}) (/.*)")
_KEPT = lazy_pattern(rf"/(?:proc|etc)/(?!.*\.\.)[ -~]*|/var/log/(?:{'|'.join(map(re.escape, LOG_FILES))})")
_TOOL = rb"(?:/[\w./-]{0,100}/)?(?:nvidia-smi|lspci|dmidecode|ib[a-z_]+)(?: [^\n]{0,200})?"
_COMMAND = lazy_pattern(rb"(?:\A|(?<=\n\n))(?:(" + _TOOL + rb")|(dmesg):|(Running InfiniBand commands)[^\n]*)(?=\n\n)")
_DUMPED = b"PCI devices configuration space dump using sysfs\n"
_SCANNED = b"Scanning kernel log files for NVIDIA kernel messages:\n"
_LOG_NAME = lazy_pattern(rb"^  (/var/log/[\w.-]{1,80}|journalctl -b -[0-9]):\n", re.MULTILINE)
_SKIPPED = lazy_pattern(rb"Skipping:? ([\w-]+)([^\n]{0,200})(?:\n([^\n]{1,200}))?")
_FIELD = lazy_pattern(rb"^(Date|uname): ([^\n]{1,400})$", re.MULTILINE)


def bug_report_host(path: str) -> BundleHost | None:
    """The machine of a bug report; None where the file is none. Raises BadSource."""
    with DecompressedStream(path, INFLATED_LIMIT_BYTES) as stream:
        if START not in stream.peek(HEAD_BYTES):
            return None
        log = _Log(stream)
        for section in sections(stream, _is_wanted):
            log.add(section)
    return log.host(path)


def _is_wanted(head: bytes) -> bool:
    head = head.lstrip(b"\n")
    named = _FILE.match(head)
    if named is not None:
        return _kept_path(named[1]) is not None
    return head.startswith((START, _DUMPED, _SCANNED)) or _COMMAND.match(head) is not None


class _Log:
    """What the sections reported. The last one counts once it is known that the log goes on, or ends as it should."""

    def __init__(self, stream: DecompressedStream) -> None:
        self._stream = stream
        self._files = MemoryFiles()
        self._outputs: dict[str, bytes] = {}
        self._notes: dict[str, str] = {}
        self._date = ""
        self._zone: str | None = None
        self._kept = 0
        self._last: LogSection | None = None

    def add(self, section: LogSection) -> None:
        """The next section."""
        if self._last is not None:
            self._take(self._last)
        self._last = section

    def host(self, path: str) -> BundleHost:
        """The machine, as far as the log goes."""
        ended = self._last is not None and self._last.text.lstrip(b"\n").startswith(END)
        filtered = self._outputs.pop("filtered", None)
        if filtered is not None and not any("x" in name for name in self._outputs if name.startswith("lspci_")):
            self._outputs["lspci_-xxx"] = filtered  # only with -nn beside it are these all of the machine
        store = MemoryFiles()
        for name, text in self._outputs.items():
            store.add(f"/{name}", text)
        return BundleHost(
            "bug-report",
            path,
            self._files,
            SavedOutputs(store, {name: f"/{name}" for name in self._outputs}),
            noun="bug report" if ended else "bug report, which ends early,",
            observed_at=parse_date_output(self._date, self._zone),
            notes=self._notes,
        )

    def _take(self, section: LogSection) -> None:
        text = section.text.lstrip(b"\n")
        named = _FILE.match(text)
        if named is not None:
            self._take_file(section, named[1], named[2], text[named.end() :])
        elif text.startswith(START):
            self._take_start(text)
        elif text.startswith(_DUMPED):
            self._keep("lspci_-xxxx", text[len(_DUMPED) :])
        elif text.startswith(_SCANNED):
            self._take_logs(section, text)
        elif (skipped := _SKIPPED.match(text)) is not None:
            self._notes.setdefault(_text(skipped[1]), " ".join(_text(skipped[0]).split()))
        else:
            self._take_commands(section, text)

    def _take_file(self, section: LogSection, name: bytes, why_not: bytes | None, text: bytes) -> None:
        listed = _LISTED.match(text)
        if listed is not None:
            text = text[listed.end() :]
            match = _MADE.search(listed[1])
            if match is not None and match[2].startswith(b"/proc/"):  # made the moment it is read
                self._zone = self._zone or _text(match[1])
        path = _kept_path(name)
        if path is None or why_not == b" does not exist" or self._files.find(path) is not None:
            return
        try:
            if why_not is not None or section.cut:
                self._files.add(path, SpecialNode("a file that the bug report has not whole"))
            else:
                self._files.add(path, self._count(text.removesuffix(b"\n")))
        except ValueError:
            raise self._stream.bad(f"is damaged: it has {path[:120]!a} as a file and as a folder") from None

    def _take_logs(self, section: LogSection, text: bytes) -> None:
        """Lines of the NVIDIA driver in logs of this boot and of earlier ones."""
        matches = list(_LOG_NAME.finditer(text))
        for at, match in enumerate(matches):
            last = at + 1 == len(matches)
            log = text[match.end() : len(text) if last else matches[at + 1].start()].strip(b"\n") + b"\n"
            name = _text(match[1])
            if not name.startswith("/"):
                self._keep(saved_name(tuple(name.split())), log)
            elif self._files.find(name) is None:
                cut = last and section.cut
                self._files.add(
                    name, SpecialNode("a log that the bug report has not whole") if cut else self._count(log)
                )

    def _take_start(self, text: bytes) -> None:
        fields = {field[1]: _text(field[2]) for field in _FIELD.finditer(text)}
        self._date = fields.get(b"Date", "")
        if fields.get(b"uname"):
            self._keep("uname_-a", fields[b"uname"].encode())

    def _take_commands(self, section: LogSection, text: bytes) -> None:
        matches = list(_COMMAND.finditer(text))
        for at, command in enumerate(matches):
            last = at + 1 == len(matches)
            if last and section.cut:
                break
            output = text[command.end() + 2 : len(text) if last else matches[at + 1].start()]
            words = _text(command[1] or command[2] or b"").replace('"', "").split()
            if not words or (tool := words[0].rpartition("/")[2]) not in _TOOLS:
                continue
            name = saved_name((tool, *words[1:]))
            if tool == "lspci" and "-d" in words:
                self._outputs["filtered"] = self._outputs.get("filtered", b"") + self._count(output)
            else:
                self._keep(name, output.removesuffix(b"\n"))

    def _keep(self, name: str, output: bytes) -> None:
        if name and name not in self._outputs:
            self._outputs[name] = self._count(output)

    def _count(self, content: bytes) -> bytes:
        self._kept += len(content)
        if self._kept > KEPT_LIMIT_BYTES:
            raise self._stream.bad(f"is refused: it holds more than {KEPT_LIMIT_BYTES >> 20} MiB of what is asked for")
        return content


def _kept_path(name: bytes) -> str | None:
    path = _text(name).removeprefix(CONTAINER_ROOT)
    return path if _KEPT.fullmatch(path) else None


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
