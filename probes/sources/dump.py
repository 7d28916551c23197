"""Saved outputs of commands: which file is which command's, by its name or by what it holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from probes.compression import DamagedData, decompress
from probes.host import commands
from probes.host.files import TOP_FILES_LIMIT, Files, is_directory, list_top_files
from probes.host.interface import (
    FILTERED,
    LOG_LIMIT_BYTES,
    OUTPUT_LIMIT_BYTES,
    Absent,
    BadSource,
    Completed,
    Failed,
    ReadError,
)
from probes.kernel.log_files import is_further_log, is_packed, is_rotated
from probes.named_tuple import NamedTuple
from probes.sources.given import (
    JOB,
    GivenFile,
    cut_early_end,
    describe_command,
    drop_cut_number,
    end_pasted_line,
    find_early_end,
    find_job_line,
    is_log,
    is_log_of_job,
)
from probes.sources.identify import LOOK_CHARACTERS, UNNAMED, find_missing_name, identify_by_words, identify_command
from probes.sources.output_names import (
    OF_DEVICES,
    best_name,
    file_stem,
    find_device,
    find_device_command,
    find_path,
    group_by_prefix,
    is_of_device,
    saved_name,
)
from probes.sources.pieces import IN_PARTS, LOG, NAMED_LOGS, OutputPiece, UnusedOutput, join_files, name_pieces
from probes.text import decode_saved
from probes.tool_reports.unread import FEWEST

REPORT = b'"fabricscope.report/'
_SCHEMA_BYTES = 4096  # of a report, in which its schema stands
PASTED_CHARACTERS = 2 << 20  # a longer text is one output
_SPLIT_CHARACTERS = 8 << 20  # of all files together, 0.2 s each MiB

_PROMPT_LINES = 3  # before an output: a fence and a prompt
HOSTS_SHOWN = 8  # of a folder of several
LINES_OF = ", lines of "  # before the host in the name of its part of a log
_OF_MACHINE = frozenset((  # at the top of a machine, where probes look
    ".dockerenv", ".singularity.d", "dev", "etc", "home", "lib", "lib64", "opt", "proc", "root", "run", "sys", "tmp",
    "usr", "var",
))  # fmt: skip


(SYSFS,) = commands.SYSFS_SAVED
# What outputs are read as of which nothing else is known
_OF_LINES = (("error", "of", "program"), commands.DEVICE_LABELS, commands.STATED)
_IN_DOCUMENTS = (  # of HTML, of a table of metrics, of a string with lines in it
    b"</", b"<br", b"&lt;", b"&gt;", b"&quot;", b"&#", b"__name__", b'{"', b"\\n", b"{\n", b"[\n",
)  # fmt: skip
KERNEL_LOGS = frozenset(commands.KERNEL_LOG + commands.KERNEL_LOG_SAVED + commands.KERNEL_LOG_EARLIER)
_KEPT_LIMIT_BYTES = 64 << 20  # of the lines of a kernel log that are read


def may_be_document(content: bytes) -> bool:
    """Whether it can be a text of another program in which outputs are: JSON, HTML, a table of metrics."""
    start = content[:LOOK_CHARACTERS]
    return start.lstrip()[:1] in (b"{", b"[", b'"') or any(mark in start for mark in _IN_DOCUMENTS)


def is_long_log(argv: tuple[str, ...]) -> bool:
    """Whether it is a log, which may be longer than other outputs."""
    return argv in KERNEL_LOGS or is_of_service(argv) or argv[:1] == commands.ROTATED_LOG


def is_of_service(argv: tuple[str, ...]) -> bool:
    """Whether it is the log of one service."""
    return argv[:1] == commands.SERVICE_LOG or argv[:-1] in commands.OF_SERVICE


def read_long_log(files: Files, path: str, argv: tuple[str, ...]) -> bytes:
    """What is read of a log that is longer than other outputs may be. Raises Failed."""
    from probes.services.logs import shorten_mixed, shorten_own  # lazy: a rare one

    shorten = shorten_own if is_of_service(argv) else shorten_mixed
    content = files.read(path, LOG_LIMIT_BYTES)
    kept = shorten(content) if len(content) < LOG_LIMIT_BYTES else content
    if len(kept) <= _KEPT_LIMIT_BYTES:
        return kept
    if kept is content:
        raise Failed(f"{path}: longer than {LOG_LIMIT_BYTES >> 20} MiB: give a part of it, such as its end", "EFBIG")
    read, most = len(kept) >> 20, _KEPT_LIMIT_BYTES >> 20
    why = f"{read} MiB of its lines are about devices, and {most} MiB are read: give a part of it, such as its end"
    raise Failed(f"{path}: {why}", "EFBIG")


class SavedOutputs:
    """The outputs that a folder (or a single file) holds, by their commands. `named`: where they lie, by the names
    that sos would give them; without it, every file at the top is looked at."""

    def __init__(self, files: Files, named: Mapping[str, str] | None = None, prefix: str = "") -> None:
        self._files = files
        self._is_copied = named is None  # by a person, maybe with the prompt
        self._prefix = prefix  # of the names of files; those without it are left out
        if named is None:
            named = {name.removeprefix(prefix): f"/{name}" for name in list_top_files(files) if name.startswith(prefix)}
        self._paths = named
        names = list(self._paths)
        self._names: dict[tuple[str, ...], str | None] = {}
        self._contents: dict[str, tuple[tuple[str, ...], ...]] = {}  # of files whose name states nothing
        self._answered: set[str] = set()  # outputs that a probe asked for
        self._alone_read: dict[str, OutputPart] = {}  # by the name that is shown
        self._not_whole: dict[str, str] = {}  # by name
        self._long_logs: dict[tuple[str, bool], bytes] = {}  # the lines that are read, by path and whether of a service
        self._documents: dict[str, bytes | None] = {}  # the texts in them, by name
        self._bare_texts: dict[tuple[str, str], tuple[str, bool]] = {}  # by name and tool, without what is around them
        self.cut_commands: dict[str, str] = {}  # the same by command
        taken: set[str] = set()
        for argv in commands.KNOWN if names else ():
            if (name := best_name(argv, names)) is None:
                continue
            if argv in commands.NVIDIA_SMI_TABLE and self._is_copied and not self._is_of(argv, name):
                self._names[argv] = None
            elif argv not in commands.OF_INTERFACE and not self._is_of_several_hosts(name):  # their text states it
                self._names[argv] = name
                taken.add(name)
        self.unread: list[str] = []  # which outputs in a text of several are not used, and why
        self._pieces: dict[str, OutputPiece] = {}
        self._unused: list[UnusedOutput] = []  # in texts of several
        self._joined: dict[str, str] = {}  # files whose output was added to that of an earlier one: what they are
        self._texts: set[str] = set()  # files that were looked through for outputs
        self._left, self._unsplit = _SPLIT_CHARACTERS, 0
        for name in names if self._is_copied else ():
            if name not in taken and not is_of_device(name) and not self.is_report(name):
                self._look_into(name)
        self._join_devices()
        self._drop_unnamed()
        if self._unsplit:
            self.unread.append(
                f"{self._unsplit} files count as one output each: there is too much text here to look for more"
            )
        for argv in commands.KNOWN if self._pieces else ():
            if argv not in self._names and (name := best_name(argv, list(self._pieces))):
                self._names[argv] = name

    def _join_devices(self) -> None:
        """Files with the output of one command, each of another device, are one output."""
        for argv, used in list(self._names.items()):
            rivals = [name for name, read_as in self._contents.items() if argv in read_as and name != used]
            if used is None or used in self._pieces or not rivals:
                continue
            joined = OutputPiece(self._start(used, PASTED_CHARACTERS)[0], None, place=f"{used}, line 1")
            for name in rivals:
                other = OutputPiece(self._start(name, PASTED_CHARACTERS)[0], None)
                if whole := join_files(joined, other, saved_name(argv)):
                    self._pieces[used] = joined = whole
                    self._joined[name] = describe_command(argv)
                    self._contents.pop(name)
            if used in self._pieces:
                self._contents.pop(used, None)
                self._texts |= {used, *self._joined}

    def _drop_unnamed(self) -> None:
        """Leave out what does not state its interface where other outputs name interfaces: it may be of any of them."""
        names = {name for argv in commands.OF_INTERFACE for name in self.arguments(argv)}
        for name in [name for name in self._pieces if names != {UNNAMED} and name.endswith(f"_{UNNAMED}")]:
            piece = self._pieces.pop(name)
            command, saved_as = " ".join(name.split("_")[:-1]), name.replace(UNNAMED, "ens1f0")
            why = f"is an output of {command} that does not state its interface; save it as {saved_as}.txt"
            unused = UnusedOutput(piece.place, command, why)
            self._unused.append(unused)
            self.unread.append(str(unused))

    @property
    def may_be_of_several(self) -> bool:
        """Whether there is more than one output, or a log, which may have been collected of several hosts."""
        outputs = len(self._pieces) + sum(unused.piece is not None for unused in self._unused)
        return len(self._paths) > 1 or outputs > 1 or any(map(is_log, self._list_read()))

    @property
    def has_tree(self) -> bool:
        """Whether there are files of the machine, too, where probes look for them."""
        try:
            return self.holds(SYSFS) or bool(_OF_MACHINE.intersection(self._files.listdir("/")))
        except ReadError:
            return True

    @property
    def shown_files(self) -> Files:
        """The files of a source of nothing but outputs: those of /sys whose contents it shows."""
        from probes.sources.memory import MemoryFiles
        from probes.sources.sysfs_lines import read_shown_files

        return read_shown_files(self.completed(SYSFS).stdout) if self.holds(SYSFS) else MemoryFiles()

    def _list_read(self) -> list[str]:
        return [read_as for name in (*self._paths, *self._pieces) if (read_as := self._read_as(name))]

    def add_read(self, part: OutputPart) -> None:
        """An output that was read alone."""
        self._alone_read[part.name.partition(LINES_OF)[0]] = part

    def refuse_prefixes(self, path: str, names: Iterable[str]) -> None:
        """Raises BadSource where the names begin with what each host's files begin with."""
        groups = [prefix for prefix in group_by_prefix(names) if prefix]
        if len(groups) > 1 and not self._prefix:
            raise refuse_several(path, groups, glob=True)

    def find_unusable(self) -> str | None:
        """The first known output in a longer text that is not used, and why."""
        known = [str(unused) for unused in self._unused if unused.is_known]
        return next(iter(known + self.unread[len(self._unused) :]), None)

    @property
    def is_text(self) -> bool:
        """Whether all outputs are in one text of several, or with prose around them."""
        places = [piece.place for piece in self._pieces.values()] + [unused.place for unused in self._unused]
        first = min((int(place.rpartition(" ")[2]) for place in places), default=0)
        return bool(self._pieces) and set(self._paths) <= self._texts and (len(places) > 1 or first > _PROMPT_LINES)

    @property
    def commands(self) -> list[tuple[str, ...]]:
        """What there is an output of."""
        of_devices = {argv: self.arguments(argv) for argv in (*OF_DEVICES, *NAMED_LOGS)}
        for argv in commands.LABELLED_OF_INTERFACES:
            if argv not in commands.OF_INTERFACE and len(of_devices[argv]) < FEWEST:  # with what would it be compared?
                del of_devices[argv]
        named = {(*argv, name) for argv, names in of_devices.items() for name in names}
        return sorted(named | {argv for argv, name in self._names.items() if name is not None})

    def arguments(self, argv: tuple[str, ...]) -> list[str]:
        """See Host.saved_arguments."""
        if argv == commands.UNUSED_LOG:
            return sorted(self._list_unused_logs())
        if argv in NAMED_LOGS:
            named = [name for name, read_as in self._contents.items() if argv in read_as]
            return sorted(named + [name for name in self._pieces if name == argv[0]])
        return sorted({device for name in (*self._paths, *self._pieces) if (device := find_device(argv, name))})

    def _list_unused_logs(self) -> Iterator[str]:
        """Files with a kernel log, and places in a text, for which another one stands."""
        used = {self.name_of(argv) for argv in KERNEL_LOGS}
        for name in self._paths:
            is_log = (LOG,) in self._contents.get(name, ()) or any(best_name(argv, [name]) for argv in KERNEL_LOGS)
            if is_log and name not in used:
                yield name
        yield from (unused.place for unused in self._unused if unused.name == LOG)

    def name_of(self, argv: tuple[str, ...]) -> str | None:
        """Which output serves where this command's is wanted."""
        if argv[:-1] in NAMED_LOGS:
            return argv[-1]
        if argv not in self._names:
            self._names[argv] = best_name(argv, list(self._paths)) or best_name(argv, list(self._pieces))
        return self._names[argv]

    def completed(self, argv: tuple[str, ...]) -> Completed:
        """The saved output, as if the command had ended well: how it ended is not saved. Raises ReadError."""
        name = self.name_of(argv)
        if name is None:
            raise Absent(f"{' '.join(argv)}: no saved output")
        self._answered.add(name)
        if piece := self._pieces.get(name):
            text, why = self._cut_end(name, argv, piece.text)
            part = piece.filtered or why
            return Completed(argv, 0, text, f"{FILTERED}{part}" if part else "", 0.0)
        content = self._read(name, OUTPUT_LIMIT_BYTES)
        if len(content) == OUTPUT_LIMIT_BYTES and is_long_log(argv) and not is_packed(name):
            content = self._read_long(name, argv)
        if len(content) == OUTPUT_LIMIT_BYTES:
            raise Failed(f"{name}: longer than {OUTPUT_LIMIT_BYTES >> 20} MiB", "EFBIG")
        text = decode_saved(content)
        if self._is_copied and len(text) <= PASTED_CHARACTERS:
            text, is_part = self._bare(name, text, argv[0])
            if is_part and not saved_name(argv).startswith(IN_PARTS):
                raise Failed(f"{name}: is a part of what the command printed; save the whole")
            text, part = self._cut_end(name, argv, text)
            part = f"it is the output of `{' '.join(argv)} | ...`" if is_part else part
            return Completed(argv, 0, text, f"{FILTERED}{part}" if part else "", 0.0)
        return Completed(argv, 0, text, "", 0.0)

    def _read_long(self, name: str, argv: tuple[str, ...]) -> bytes:
        """See read_long_log; several probes read one log."""
        path = self._paths[name]
        key = path, is_of_service(argv)
        if key not in self._long_logs:
            self._long_logs[key] = read_long_log(self._files, path, argv)
        return self._long_logs[key]

    def _bare(self, name: str, text: str, tool: str) -> tuple[str, bool]:
        """See read_saved; several probes read one output."""
        if (name, tool) not in self._bare_texts:
            from probes.sources.pasted import read_saved  # lazy: what a program saved has nothing around it

            self._bare_texts[name, tool] = read_saved(text, tool)
        return self._bare_texts[name, tool]

    def _cut_end(self, name: str, argv: tuple[str, ...], text: str) -> tuple[str, str | None]:
        """An output without the error that it ends with, and why it is not whole: kept for `list_files`. A log has no
        end, and a sentence of a tool is the error."""
        if is_log(argv[0]) or argv[0] in ("error", commands.STATED[0]):
            return text, None
        text, why = cut_early_end(text)
        if name in self._pieces or name in self._contents:  # its last line counts, and whether more follow is open
            text = end_pasted_line(text)
        if why is not None:
            text = drop_cut_number(text)
            self._not_whole[name] = self.cut_commands[" ".join(argv)] = why
        return text, why

    def holds(self, argv: tuple[str, ...]) -> bool:
        """Whether there is a saved output."""
        return self.name_of(argv) is not None

    def list_files(self) -> list[GivenFile]:
        """Every file that was given, those that are not read first; of a text of several its outputs. Complete once
        the probes have run."""
        pieces = [self._account(piece.place, name) for name, piece in self._pieces.items()]
        pieces += [GivenFile(one.place, None, f"{one.words}: {one.why}", one.read_by) for one in self._unused]
        texts = {piece.place.rpartition(", line ")[0] for piece in self._pieces.values()}
        texts |= {unused.place.rpartition(", line ")[0] for unused in self._unused}
        files = [self._account(self._shown(name), name) for name in self._paths if name not in (*texts, *self._joined)]
        files += [GivenFile(self._shown(name), read_as) for name, read_as in self._joined.items()]
        files += [GivenFile(name, None, why) for name, why in self._list_others()]
        rows = [self._account_alone(file) for file in files + pieces]
        return sorted(rows, key=lambda file: (file.read_as is not None, _in_lines(file.name)))

    def _account_alone(self, file: GivenFile) -> GivenFile:
        part = self._alone_read.get(file.name)
        return GivenFile(file.name, part.read_as, find_early_end(part.text)) if part else file

    def _list_others(self) -> list[tuple[str, str]]:
        """What lies beside the files that are looked into, and why it is not."""
        try:
            names = self._files.listdir("/")
        except ReadError:
            return []
        others = [name for name in names if name.startswith(self._prefix) and f"/{name}" not in self._paths.values()]
        return [(name, self._why_left_out(name)) for name in others]

    def _why_left_out(self, name: str) -> str:
        if is_directory(self._files, f"/{name}"):
            inner = self._files.below(f"/{name}")
            holds = inner is not None and any(best_name(argv, list_top_files(inner)) for argv in commands.KNOWN)
            return "is a folder of outputs, a source of its own" if holds else "is a folder"
        try:
            self._files.read(f"/{name}", 1)
        except Absent:
            return "is a link to no file of this folder"
        except ReadError as error:
            return str(error).removeprefix(f"/{name}: ")
        return f"only {TOP_FILES_LIMIT} files are looked into"

    def _account(self, shown: str, name: str) -> GivenFile:
        """What became of one output."""
        read_as = self._read_as(name)
        if read_as is None:
            return GivenFile(shown, None, *self._why_unknown(name))
        users = [argv for argv, used in self._names.items() if used == name]
        if name in self._answered or name in self._pieces or (users and is_of_device(name)):
            return GivenFile(shown, read_as, self._not_whole.get(name))
        rival = next(
            (used for argv in commands.KNOWN if best_name(argv, [name]) and (used := self._names.get(argv))),
            None,
        )
        rival = rival or next((used for argv in self._contents.get(name, ()) if (used := self._names.get(argv))), None)
        if rival is not None and rival != name:
            return GivenFile(shown, None, f"{read_as}: {rival} is used")
        return GivenFile(shown, read_as, "nothing of this run needs it")

    def _read_as(self, name: str) -> str | None:
        """The command whose output this is; None where that is not known."""
        if name in self._contents:
            return describe_command(self._contents[name][0])
        of_device = next((argv for argv in OF_DEVICES if find_device(argv, name)), None)
        if of_device in commands.OF_INTERFACE:
            return f"{' '.join(of_device)} {find_device(of_device, name)}"
        argv = next((argv for argv in commands.KNOWN if best_name(argv, [name])), None)
        if name.startswith(commands.SERVICE_LOG[0]):
            return describe_command(commands.SERVICE_LOG)
        if of_device or (argv is None and name in self._pieces):
            return file_stem(name).replace("_", " ")
        return describe_command(argv) if argv else None

    def _why_unknown(self, name: str) -> tuple[str, str | None]:
        """Why a file is not read, and the other command that reads it."""
        if self.is_report(name):
            return "is a finished report of fabricscope", None
        start, _ = self._start(name)
        if not start.strip():
            return "is empty" if name in self._paths else "is not known", None
        if is_log_of_job(start):
            return "is the log of a job, which `fabricscope job` reads", JOB
        return find_missing_name(start) or "is not recognized as the output of a command", None

    def list_parts(self) -> list[OutputPart]:
        """Every output by itself, also those of which another one is used."""
        rows = [(piece.place, name, piece, True) for name, piece in self._pieces.items()]
        rows += [(u.place, u.name, u.piece, False) for u in self._unused if u.name and u.piece]
        parts = [self._part(place, name, piece, is_used) for place, name, piece, is_used in rows]
        for name in self._paths:
            if name not in self._texts or name in self._contents:
                parts += self._file_part(name)
        return parts

    def _part(self, place: str, name: str, piece: OutputPiece, is_used: bool) -> OutputPart:
        alone = self._alone()
        alone._pieces[name] = piece
        read_as = alone._read_as(name) or name
        return OutputPart(place, read_as, piece.host, piece.text, alone, is_used, piece.waited, piece.filtered is None)

    def _file_part(self, name: str) -> list[OutputPart]:
        read_as = self._read_as(name)
        if read_as is None:
            return []
        alone = self._alone()
        alone._paths = {name: self._paths[name]}
        if name in self._contents:
            alone._contents[name] = self._contents[name]
            alone._names = dict.fromkeys(self._contents[name], name)
        from probes.sources.pasted import find_prompt_host

        text, _ = self._start(name, OUTPUT_LIMIT_BYTES)
        is_used = is_of_device(name) or name in self._names.values()
        return [OutputPart(self._shown(name), read_as, find_prompt_host(text), text, alone, is_used)]

    def with_text(self, text: str) -> SavedOutputs:
        """The same single output with another text."""
        (name,) = [*self._pieces, *map(file_stem, self._paths)]
        alone = self._alone()
        alone._pieces[name] = OutputPiece(text, None)
        alone._names = dict.fromkeys(chain.from_iterable(self._contents.values()), name)  # of a file of any name
        return alone

    def _shown(self, name: str) -> str:
        """The name of a file as it was given."""
        return f"{self._prefix}{name}"

    def _alone(self) -> SavedOutputs:
        """The same source without any output."""
        alone = SavedOutputs(self._files, {})
        alone._is_copied = self._is_copied
        alone._long_logs = self._long_logs
        return alone

    def list_names(self) -> list[str]:
        """The files that are looked into."""
        return list(self._paths)

    def is_report(self, name: str) -> bool:
        """Whether a file is a finished report, whose sentences are no outputs."""
        try:
            return name in self._paths and REPORT in self._files.read(self._paths[name], _SCHEMA_BYTES)
        except ReadError:
            return False

    def look_at(self, name: str) -> str:
        """The begin of a file."""
        return self._start(name)[0]

    def _start(self, name: str, limit: int = LOOK_CHARACTERS) -> tuple[str, bool]:
        """Its text, and whether it may go on."""
        try:
            content = self._read(name, limit) if name in self._paths else b""
        except ReadError:
            return "", False
        return decode_saved(content), len(content) >= limit

    def _read(self, name: str, limit: int) -> bytes:
        """The first bytes of a file, of a compressed log or a document those of its text. Raises ReadError."""
        if not is_packed(name):
            content = self._files.read(self._paths[name], limit)
            text = self._extract(name, content, limit) if self._is_copied else None
            content = content if text is None else text[:limit]
            return self._leave_out_examples(content) if self._is_copied else content
        content = self._files.read(self._paths[name], LOG_LIMIT_BYTES)
        try:
            return decompress(content, limit)
        except DamagedData:
            raise Failed(f"{name}: is damaged or cut short") from None

    def _extract(self, name: str, content: bytes, limit: int) -> bytes | None:
        """The texts in a file that is a document of another program; None where it is none. Raises ReadError."""
        if name not in self._documents:
            self._documents[name] = None
            if may_be_document(content):
                from probes.sources.documents import extract_text  # lazy: few sources hold one

                whole = self._files.read(self._paths[name], OUTPUT_LIMIT_BYTES) if len(content) == limit else content
                text = extract_text(decode_saved(whole), lambda text: bool(identify_command(text)))
                self._documents[name] = text.encode() if text else None
        return self._documents[name]

    def _leave_out_examples(self, content: bytes) -> bytes:
        """Without the lines of a kernel log that a text shows as an example."""
        from probes.sources.examples import blank_examples, may_hold_examples  # lazy: few sources hold prose

        if len(content) > PASTED_CHARACTERS or not may_hold_examples(content):
            return content
        text = decode_saved(content)
        blanked = blank_examples(text)
        return content if blanked == text else blanked.encode()

    def _split(
        self, name: str, start: str, cut: bool, known: bool
    ) -> tuple[dict[str, OutputPiece], list[UnusedOutput]]:
        """The outputs in a file. `known`: its begin is an output, so that more of them may stand beyond the cut."""
        if self._left <= 0:
            self._unsplit += 1
            return {}, []
        self._left -= len(start)
        pieces, unread = name_pieces(name, start)
        if not cut:
            return pieces, unread
        if not (known or pieces):
            return {}, []
        text, cut = self._start(name, PASTED_CHARACTERS)
        self._left -= len(text)
        return ({}, []) if cut else name_pieces(name, text)

    def _is_of(self, argv: tuple[str, ...], name: str) -> bool:
        """Whether a file holds what its name promises, as far as that is known."""
        return identify_command(self._start(name)[0]) in ((), (argv,))

    def _is_of_several_hosts(self, name: str) -> bool:
        """Whether a parallel shell wrote a file, whose name is the command's for all of its hosts."""
        from probes.sources.host_lines import find_hosts

        return self._is_copied and bool(find_hosts(self._start(name)[0]))

    @property
    def _has_kernel_log(self) -> bool:
        return any(name is not None and argv in KERNEL_LOGS for argv, name in self._names.items())

    def _look_into(self, name: str) -> None:
        """Take a file whose name states nothing: as one output, or as the outputs that someone pasted into it."""
        from probes.sources.pasted import holds_output  # lazy: few sources hold a text that no one named
        from probes.sources.unwrap import unwrap

        start, cut = self._start(name)
        unwrapped = unwrap(start, holds_output)
        whole = identify_command(unwrapped, by_words=False)
        path = find_path(name) if whole in ((), (SYSFS,)) else None
        own = start if whole == (commands.OWN_REPORT,) else ""
        if own:
            from probes.tool_reports.own_report import leave_out_own  # lazy: few sources hold such a text

            start = leave_out_own(start)
        command = f"cat {path}" if path else find_device_command(name)
        pieces, unread = self._split(name, f"$ {command}\n{start}" if command else start, cut, bool(whole))
        if command and not path and pieces:
            whole = ()  # the text alone does not name the device
        if own and pieces:
            pieces[saved_name(commands.OWN_REPORT)] = OutputPiece(own, None, place=f"{name}, line 1")
        if self._documents.get(name) is not None:
            pieces.pop(saved_name(commands.REPEATED), None)  # a list of values is the document's own
        if not whole and not pieces and (whole := identify_by_words(unwrapped)):
            unread = [output for output in unread if output.is_known]
        is_of_lines = not pieces and whole and whole[0] in _OF_LINES
        shown = any(piece.filtered or piece.marked for piece in pieces.values())
        # Of several hosts, each with an output of its own, or of several sides
        is_compared = not {saved_name(commands.ENDS), saved_name(commands.PART_LINES)}.isdisjoint(pieces) or (
            whole != (commands.SHEET,) and saved_name(commands.SHEET) in pieces
        )
        if whole and len(pieces) < 2 and (is_of_lines or not unread) and not shown and not is_compared:
            if whole == ((LOG,),) and (is_rotated(name) or (is_further_log(name) and self._has_kernel_log)):
                whole = (commands.ROTATED_LOG,)
            self._contents[name] = whole
            for argv in whole if whole[0] not in NAMED_LOGS else ():
                self._names.setdefault(argv, name)
            return
        for piece_name, piece in pieces.items():
            used = self._pieces.setdefault(piece_name, piece)
            if used is not piece and path and piece_name == saved_name(SYSFS):  # a fact of its own
                self._pieces[piece_name] = used._replace(text=f"{used.text}\n{piece.text}")
                self._joined[name] = describe_command(SYSFS)
            elif used is not piece and (joined := join_files(used, piece, piece_name)):
                self._pieces[piece_name] = joined
                self._joined[name] = piece_name.replace("_", " ")
            elif used is not piece:
                why = f"{used.place} is used"
                unread.append(UnusedOutput(piece.place, piece_name.replace("_", " "), why, piece_name, piece))
        if pieces and (line := find_job_line(start, [piece.text for piece in pieces.values()])) is not None:
            words, why = "lines of a job's log", "`fabricscope job` reads them"
            unread.append(UnusedOutput(f"{name}, line {line}", words, why, read_by=JOB))
        self._texts.add(name)
        self._unused += unread
        self.unread += map(str, unread)


class OutputPart(NamedTuple):
    """One output by itself, as a source that holds nothing else."""

    name: str
    read_as: str
    prompt_host: str | None  # a hint: a prompt shows the name of a container or an alias, too
    text: str
    outputs: SavedOutputs
    is_used: bool = True  # False: another output of its command serves
    waited: int | None = None  # seconds since the command before it
    is_whole: bool = True  # False: a filter or an option left a part of the list
    log_host: str | None = None  # the one that wrote all lines of it

    @property
    def is_log(self) -> bool:
        """Whether it is the kernel's log."""
        return is_log(self.read_as)

    @property
    def is_about_one_device(self) -> bool:
        """Whether it states nothing of its host but the name of an interface."""
        return self.read_as.startswith(("ethtool ", "mlnx_qos ", "dcb ")) and not self.read_as.startswith("ethtool -i")

    def is_again(self, first: OutputPart) -> bool:
        """Whether its command was run once more behind that output in one text: at one prompt, or after a wait."""
        (file, line), (file_before, line_before) = _in_lines(self.name), _in_lines(first.name)
        is_behind = self.read_as == first.read_as and file == file_before and line > line_before > 0
        same_host = self.prompt_host == first.prompt_host
        return is_behind and same_host and (self.prompt_host is not None or self.waited is not None)

    def of_host(self, host: str, text: str) -> OutputPart:
        """The same with the part of its text that a host wrote."""
        name = f"{self.name}{LINES_OF}{host}"
        return self._replace(name=name, log_host=host, text=text, outputs=self.outputs.with_text(text))


def refuse_several(path: str, names: Iterable[str], glob: bool = False) -> BadSource:
    """The error for a source of several hosts, with how to scan each. `names`: of folders, or prefixes of files."""
    names = sorted(names)
    from shlex import quote  # lazy: it compiles a pattern

    places = [quote(f"{path.rstrip('/')}/{name}{'*' if glob else ''}") for name in names]
    scans = "; ".join(f"`fabricscope scan --source {place}`" for place in places[:HOSTS_SHOWN])
    shown = ", ".join(name.rstrip("-_.") for name in names[:HOSTS_SHOWN])
    more = f" and {len(names) - HOSTS_SHOWN} more" if len(names) > HOSTS_SHOWN else ""
    return BadSource(f"{path}: holds outputs of {len(names)} hosts: {shown}{more}", f"scan each: {scans}")


def _in_lines(place: str) -> tuple[str, int]:
    """The sort key of a file, or of an output in a text."""
    file, _, line = place.rpartition(", line ")
    return (file, int(line)) if file and line.isdecimal() else (place, 0)
