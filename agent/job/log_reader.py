"""Reads the logs of a job, line by line, each kind of line once.

Most lines of a long log show nothing new: a line without its digits is looked up in a table of lines that were seen,
and only what may mean something is taken apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from agent.job.catalogue import ENDING, FAILING, FailureRow, Pattern
from agent.job.dumps.ras import JsonSnapshotReader
from agent.job.error_lines import counts_none
from agent.job.evidence import ASKED, Evidence, FileState, LineEvent, Tail, WatchdogState
from agent.job.line_forms import MOST_OF_A_KIND
from agent.job.line_kinds import Kind, make_kind
from agent.job.line_readers import read_last_words, read_progress
from agent.job.lines import LINE_LIMIT, WHOLE, LogLine, Part, Prefixes, find_time, split_line
from agent.job.measured_tables import read_tables
from agent.job.process_lines import place_in_stack
from agent.job.streams import read_sample
from agent.model.job_answer import JobFile
from agent.model.node import shorten_host
from probes.prose import is_denied
from probes.text import lazy_pattern

_DIGITS = b"0123456789"
_MOST_KINDS = 50_000  # of lines that are remembered
_SAMPLE_LINES = 400
_HEADING_BYTES = 160
_NO_READER = -1
_FULLY_READ = 3000  # lines of a plain kind
_MESSAGE_LINES = 2  # below a heading
_MOST_FRAMES = 100  # lines of a traceback
_MOST_MESSAGES = 200_000  # that are remembered, to read equal ones once


class LogReader:
    """Reads text files into the evidence."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self._kinds: dict[bytes, Kind] = {}
        self._messages: set[bytes] = set()
        self._heads: set[bytes] = set()
        self._state = FileState(evidence, "")

    def read_file(self, name: str, lines: Iterable[bytes], part: Part = WHOLE) -> JobFile:
        """One file or stdin, or the lines of it that are of one job."""
        evidence = self.evidence
        file = len(evidence.names)
        evidence.names.append(name)
        self._heads.clear()
        state = self._state = FileState(evidence, name)
        sample, source = read_sample(iter(lines), _SAMPLE_LINES)
        prefixes = Prefixes(line[:400].decode("utf-8", "replace") for line in sample)
        if prefixes.are_of_ranks:
            state.found.add("other")
            evidence.rank_logs.add(name)
        for origin, form in (("kernel", _KERNEL), ("service", _SERVICE)):
            if sum(form.match(line[:200]) is not None for line in sample) * 4 > len(sample):  # messages have more lines
                state.found.add(origin)
        dated = (moment for line in sample[part.first - 1 :] if (moment := find_time(line.decode("utf-8", "replace"))))
        evidence.note_time(next(dated, None), file)
        number, last, last_number, kinds, forms = 0, b"", 0, self._kinds, evidence.forms
        for number, raw in enumerate(chain(sample, source), 1):
            if not part.first <= number <= part.last:
                continue
            before = state.snapshot
            if before is not None and self._read_snapshot(state, raw, number, prefixes):
                last, last_number = raw, number
                continue
            if state.open_error is not None and raw.strip():
                self._end_error(state, raw, number, file)
            if state.threads.is_open:
                state.threads.read_frame(prefixes.strip(raw[:LINE_LIMIT].decode("utf-8", "replace").rstrip())[0])
            key = raw.translate(None, _DIGITS)
            kind = kinds.get(key)
            if kind is None:
                kind = self._add_kind(key, raw)
            if kind.file != file:
                kind.file, kind.forms = file, 0
            if kind.is_formed and kind.forms < MOST_OF_A_KIND:
                kind.forms += 1
                forms.add(raw, number, file, prefixes, kind.forms)
            if kind.is_heading:
                title = prefixes.strip(raw.decode("utf-8", "replace").rstrip())[0]
                evidence.rank_values.note_heading(title, file, number)
            if kind.is_read:
                if kind.pace is not None:
                    state.last_step = raw
                    evidence.pace.add(file, number, raw, kind.pace)
                if kind.info:
                    self._read_plain_info(raw, kind, file, number)
                    last, last_number = raw, number
                    continue
                if kind.plain:
                    kind.count += 1
                    if kind.count > _FULLY_READ:
                        evidence.progress += 1
                        if read_progress in kind.readers:
                            evidence.last_steps[file].append(number)
                        last, last_number = raw, number
                        continue
                self._read_line(raw, number, file, kind, prefixes)
                if state.snapshot is not before:
                    self._read_snapshot(state, raw, number, prefixes)  # its first line
            state.recent.append(raw)
            if key != b"\n":
                last, last_number = raw, number
            elif state.asks_exit is not None:
                self._read_exit(state, raw)
        state.end_table()
        self._end_snapshot(state)
        if state.prompt_host is not None and not evidence.ranks.file_hosts.get(file):
            evidence.ranks.file_hosts[file][state.prompt_host] = None
        if not state.found and evidence.table_lines.get(file) and read_tables(evidence.table_lines[file][:5000]).rows:
            state.found.add("table")
        if last:
            text = last.decode("utf-8", "replace").strip()
            whole = last.endswith((b"\n", b"\r")) or last_number != number
            evidence.tails[file] = Tail(text[:400], last_number, whole)
            evidence.note_time(find_time(text), file)
            if evidence.last_steps.get(file) or state.last_step:
                read_last_words(state, LogLine(prefixes.strip(text)[0], text, last_number, file))
        reason = "RAS: a snapshot is damaged or cut" if state.damaged_snapshots else None
        return JobFile(name=name, read_as=_name_kind(state.found), lines=number, reason=reason)

    def _end_error(self, state: FileState, raw: bytes, number: int, file: int) -> None:
        """The line below an error that ends with a colon: its message."""
        errors, opened = self.evidence.errors[file], state.open_error or 0
        state.open_error = None
        message = raw[:LINE_LIMIT].decode("utf-8", "replace").strip()
        is_near = bool(errors) and errors[-1].number == opened and number - opened <= _MESSAGE_LINES
        if is_near and message[0].isalpha() and not message.endswith(":"):
            text = f"{errors[-1].text.rstrip()} {message}"
            errors[-1] = errors[-1]._replace(text=text, whole=text, number=number)

    def _read_exit(self, state: FileState, raw: bytes) -> None:
        """The answer of `echo $?`: a regular end where it is 0."""
        line = state.asks_exit
        if line is not None and raw.strip():
            state.asks_exit = None
            if raw.strip() == b"0":
                state.found.add("other")
                self.evidence.ended_well[ASKED] = line
                self.evidence.note_end(line)

    def _read_snapshot(self, state: FileState, raw: bytes, number: int, prefixes: Prefixes) -> bool:
        """Whether a line is of the snapshot of RAS that began above it; records of NCCL may be between its lines."""
        reader = state.snapshot
        if reader is None or b" NCCL INFO " in raw or b" NCCL WARN " in raw:
            return False
        whole = isinstance(reader, JsonSnapshotReader)
        text = prefixes.strip((raw if whole else raw[:LINE_LIMIT]).decode("utf-8", "replace").rstrip("\r\n"))[0]
        own = reader.read_line(text, number)
        if reader.ended:
            self._end_snapshot(state)
        return own

    def _end_snapshot(self, state: FileState) -> None:
        reader, state.snapshot = state.snapshot, None
        if isinstance(reader, JsonSnapshotReader):
            if reader.snapshot is None:
                state.damaged_snapshots += 1
            else:
                self.evidence.snapshots.append(reader.snapshot)

    def _add_kind(self, key: bytes, raw: bytes) -> Kind:
        """What lines like this one may mean."""
        if len(self._kinds) >= _MOST_KINDS:
            self._kinds.clear()
        kind = self._kinds[key] = make_kind(key, raw)
        kind.is_heading = len(raw) < _HEADING_BYTES and key.endswith((b":\n", b":\r\n"))
        return kind

    def _read_line(self, raw: bytes, number: int, file: int, kind: Kind, prefixes: Prefixes) -> None:
        evidence = self.evidence
        for place, record in enumerate(split_line(raw, number, file, prefixes)):
            line = self._cut_host(record) if place else record
            if line.at is not None:
                evidence.note_time(line.at, file)
            if line.host is not None:
                evidence.ranks.file_hosts[file].setdefault(line.host)
                if line.pid is not None:
                    evidence.ranks.process(line.host, line.pid).first_lines.setdefault(file, number)
            if line.rank is not None:
                evidence.ranks.seen.add(line.rank)
                evidence.ranks.torch_files.setdefault(line.rank, file)
                evidence.ranks.rank_files[line.rank].setdefault(file)
                if line.device is not None:
                    evidence.ranks.local_of.setdefault(line.rank, line.device)
                if line.pid is not None and line.host is None:
                    evidence.ranks.pids.setdefault((file, line.pid), line.rank)
            for reader in kind.readers:
                reader(self._state, line)
            if kind.patterns and self._match(kind.patterns, place_in_stack(self._state, line)):
                if evidence.errors[file][-1:] == [line]:
                    evidence.errors[file].pop()  # it is explained
                if evidence.last_words.get(file) == line:
                    del evidence.last_words[file]
            elif line.level == "WARN":
                self._add_unexplained(line, "NCCL warns of it")

    def _cut_host(self, line: LogLine) -> LogLine:
        """A record that another one of its line precedes, without the end of that one's text in its host's name."""
        host = line.host
        if host is None or (host, line.pid) in self.evidence.ranks.processes:
            return line
        known = [name for name, pid in self.evidence.ranks.processes if pid == line.pid and host.endswith(name)]
        return line._replace(host=max(known, key=len)) if known else line

    def _read_plain_info(self, raw: bytes, kind: Kind, file: int, number: int) -> None:
        """A line of NCCL at level INFO of one rank, which is most of many logs."""
        head, _, message = raw.partition(b"NCCL INFO ")
        ranks = self.evidence.ranks
        host, pid = None, None
        known = kind.likely == _NO_READER or message in self._messages or raw in self._messages
        if head not in self._heads or not known:
            words = head.rpartition(b" [")[0].rpartition(b" ")[2].split(b":")
            if len(words) >= 3 and words[-1].isdigit() and words[-2].isdigit():
                host, pid = words[-3].decode("utf-8", "replace").partition(".")[0][:64], int(words[-2][:9])
                ranks.file_hosts[file].setdefault(host)
                ranks.process(host, pid).first_lines.setdefault(file, number)
            if len(self._heads) < _MOST_MESSAGES:
                self._heads.add(head)
        self._state.found.add("nccl")
        if known:
            self.evidence.nccl.lines += 1
            return
        text = message.decode("utf-8", "replace").strip()
        tied = ranks.read_info(text, host, pid)
        taken = self.evidence.nccl.read_text(text, kind.likely)
        if taken < 0 and not tied:
            kind.likely = _NO_READER
        elif taken >= 0:
            kind.likely = taken
        if taken != 0 and len(self._messages) < _MOST_MESSAGES:  # channels are counted
            self._messages.add(raw if message.startswith(_OF_PROCESS) else message)

    def _match(self, patterns: tuple[Pattern, ...], line: LogLine) -> bool:
        """The rows that a line is for; whether one of them explains it."""
        matched: set[str] = set()
        known = False  # by a row that has more of it than that a program warns
        explained = False  # by a row that has more of the line than the name of an exception
        for pattern in patterns:
            row = pattern.row
            if row.id.startswith("cuda-error") and any(other.startswith(_MORE_OF_CUDA) for other in matched):
                continue  # the same line, with more in it
            if row.id == "crash" and not matched.isdisjoint(_EXITS):
                continue  # the launcher's line has the rank, too
            if row.plain and (explained or (matched and row.role != "exception")):
                continue
            text = f"{line.place} NCCL {line.level} {line.text}" if row.placed and line.place else line.text
            match = pattern.search(text)
            if match is None or is_denied(line.whole, line.whole.find(match[0])):
                continue
            if row.role in FAILING and counts_none(text[match.start() :]):
                continue
            matched.add(row.id)
            known |= not (row.plain and row.role == "note")
            if row.role == "noise" or (row.role in FAILING and not row.plain):
                self.evidence.drop_sign(line)
            if row.role not in ("noise", "fact"):
                self._state.found.add("other")
            groups = {
                name.partition("__")[0]: value.strip() for name, value in match.groupdict().items() if value is not None
            }
            role = row.info if row.info is not None and line.level == "INFO" else row.role
            if role == "exception" and self._state.ignores is not None:
                explained = line.number - self._state.ignores < _MOST_FRAMES
                role = "note" if explained else role
                errors = self.evidence.errors[line.file]
                while explained and errors and errors[-1].number >= self._state.ignores:
                    errors.pop()  # its traceback
                self._state.ignores = None
            self._add_state(row, groups, line)
            telling = tuple(groups[name].partition("<")[0] for name in _TELLING if name in groups)
            key = (
                (line.text.translate(_NO_DIGITS)[:300], telling)
                if row.role not in ("hang", "fact")
                else tuple(map(groups.get, ("seq", "number", "hosts", "bus")))
            )
            self.evidence.add_event(row, role, groups, line, key)
            explained = explained or role in FAILING
            if role in ENDING:
                self.evidence.note_end(line)
        return known

    def _add_state(self, row: FailureRow, groups: dict[str, str], line: LogLine) -> None:
        if row.id.startswith("watchdog-") or row.id == "heartbeat-stuck":
            self._state.found.add("torch")
            rank = line.rank if line.rank is not None else _number(groups.get("rank"), groups.get("member"))
            if rank is None:
                return
            group = groups.get("name") or groups.get("group") or ""
            waits = int(groups["seq"]) if "seq" in groups else None
            enqueued = int(groups.get("enqueued", -2))
            state = WatchdogState(
                rank, group, enqueued, int(groups.get("completed", -2)), waits, groups.get("op"), line,
                _number(groups.get("numel")), _number(groups.get("limit")),
            )  # fmt: skip
            if len(self.evidence.watchdog) < 100_000:
                self.evidence.watchdog.append(state)
        elif row.id == "mpi-exit" and "pid" in groups:
            process = self.evidence.ranks.process(shorten_host(groups["hosts"]), int(groups["pid"]))
            process.rank = process.rank if process.rank is not None else int(groups["task"])
        elif row.id == "gaudi-acquire-failed":
            self.evidence.library = self.evidence.library or ("HCL", None)
        elif row.id.startswith("store-barrier-"):
            self._state.found.add("torch")
        elif row.id in ("xid", "oom-kill"):
            self._state.found.add("kernel")

    def _add_unexplained(self, line: LogLine, why: str) -> None:
        evidence = self.evidence
        key = (line.host, line.pid, line.rank, line.text.translate(_NO_DIGITS)[:200])
        if key not in evidence.unexplained and len(evidence.unexplained) < 2000:
            evidence.unexplained[key] = LineEvent(_UNEXPLAINED, "error", {"why": why}, line)


_KERNEL = lazy_pattern(
    rb"(?:<\d{1,3}>)?\[[ +<]{0,8}\d{1,9}\.\d{6}>?\] |\[\w{3} \w{3} [ \d]\d [\d:]{8} \d{4}\] |.{10,60} kernel: "
)
_SERVICE = lazy_pattern(
    rb".{10,60} (?:systemd|opensm|nvidia-[\w.-]{1,40}|nv-[\w.-]{1,40})(?:\[\d{1,8}\])?: |"
    rb"\[\w{3} \d\d \d{4} [\d:]{8}\] \[[A-Z]{4,8}\] \[tid \d{1,8}\]"
)
# Groups of patterns whose numbers make a line another one
_TELLING = (
    "status", "number", "code", "peer", "nic", "port", "bus", "pid", "hosts", "tasks", "task", "missing", "where",
    "first", "second",
)  # fmt: skip
_MORE_OF_CUDA = ("nvls-", "cuda-error", "cuda-init", "cuda-library-error")
_EXITS = ("task-exit", "mpi-exit", "spawn-exit")
_NO_DIGITS = str.maketrans("", "", "0123456789")
_UNEXPLAINED = FailureRow(
    id="unexplained",
    words=[],
    pattern="",
    role="error",
    confidence="low",
    summary="{who}: {text}",
    next=["the lines around it: fabricscope has no row for this line"],
    fires=[],
    silent=[],
)


def _number(*texts: str | None) -> int | None:
    return next((int(text) for text in texts if text is not None and text.isdecimal()), None)


def _name_kind(found: set[str]) -> str | None:
    names = {
        "hccl": "HCCL log",
        "nccl": "NCCL log",
        "torch": "PyTorch log",
        "table": "measured table",
        "ras": "RAS",
        "launcher": "launcher log",
        "kernel": "kernel log",
        "service": "log of a service",
        "other": "log",
    }
    kinds = [names[kind] for kind in names if kind in found and (kind != "other" or len(found) == 1)]
    return " and ".join(kinds[:2]) if kinds else None


# Messages whose meaning is that of the process that writes them
_OF_PROCESS = (b"Bootstrap", b"NET : Using", b"NET/IB : Using", b"NET/IB: Using", b"ncclComm", b"comm ")
