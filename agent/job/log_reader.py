"""Reads the logs of a job, line by line, each kind of line once.

Most lines of a long log say nothing new: a line without its digits is looked up in a table of lines that were seen,
and only what may mean something is taken apart.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache

from agent.job.catalogue import FailureRow, Pattern, find_patterns, find_tokens, load_words
from agent.job.evidence import Evidence, ExitRow, LinkError, Tail, WatchdogState
from agent.job.lines import LogLine, Prefixes, find_time, split_line
from agent.job.measured_tables import read_tables
from agent.model.job_answer import JobFile

_DIGITS = b"0123456789"
_MOST_KINDS = 50_000  # of lines that are remembered
_MOST_TABLE_LINES = 60_000
_SAMPLE_LINES = 400

_BANNER = re.compile(r"(?P<library>NCCL|RCCL) version ?:? ?(?P<version>\d{1,2}\.\d{1,3}(?:\.\d{1,4})?)")
_SET = re.compile(r"(?P<name>(?:NCCL|RCCL)_[A-Z0-9_]{1,60}) set (?:by (?:environment|user) )?to (?P<value>.{0,400})")
_HCCL_SET = re.compile(
    r"\[HCCL_ENV\] ?(?P<name>HC\w{1,60}) set by (?P<how>default|environment) to \[(?P<value>[^\]]{0,200})\]"
)
_GIVEN = re.compile(
    r"(?:(?<=\s)|(?<=^)|(?<=[\"';]))(?P<name>(?:TORCH_NCCL|NCCL|RCCL|HCCL|UCX|FI|HSA)_[A-Z][A-Z0-9_]{0,60})="
    r"(?P<value>\"[^\"]{0,300}\"|'[^']{0,300}'|[^\s\"';]{0,300})"
)
_NAME_LINE = re.compile(r"-? ?name: [\"']?(?P<name>(?:TORCH_NCCL|NCCL|RCCL|HCCL|UCX|FI)_[A-Z0-9_]{1,60})[\"']?$")
_VALUE_LINE = re.compile(r"value: [\"']?(?P<value>[^\"']{0,300})[\"']?$")
_TLS = re.compile(
    r"\|\s{0,8}(?P<peer>[\d.a-fA-F:]{3,45})\((?P<peer_rank>\d{1,7})\)\s{0,8}\|[^|]{0,30}\|\s{0,8}(?P<own>[\d.a-fA-F:]{3,45})"
    r"\((?P<own_rank>\d{1,7})\)\s{0,8}\|[^|]{0,30}\|[^|]{0,30}\|[^|]{0,30}\|\s{0,8}(?P<tls>\w{1,20})"
)
_KEY_INFO = re.compile(
    r"\[LocalRank Key Info\]userRank\[(?P<rank>\d{1,7})\] hostIp\[(?P<host>[^\]]{1,60})\] "
    r"devicePhyId\[(?P<device>\d{1,4})\]"
    r" server\[[^\]]{0,80}\] deviceIp\[(?P<address>[^\]]{0,60})\]"
)
_ROOT_INFO = re.compile(r"Inner:ranks\[(?P<ranks>\d{1,7})\], rank\[(?P<rank>\d{1,7})\]")
_PLOG = re.compile(
    r"\[(?P<level>ERROR|WARNING|INFO|EVENT|DEBUG)\] ?(?:HCCL|HCCP|ROCE|RUNTIME|TDT|DRV)\((?P<pid>\d{1,9}),"
)
_LAUNCHED = re.compile(r"\bhost[ =:]{1,2}(?P<host>[A-Za-z][\w.-]{0,63}),? local[ _]rank[ =:]{1,2}(?P<local>\d{1,4})")
_TABLE_FIELD = re.compile(r"\s{1,8}(?P<name>host|rank|exitcode|time|traceback) {1,12}: (?P<value>.{0,200})")
_FIELD_RANK = re.compile(r"(\d{1,7}) \(local_rank: (\d{1,5})\)")
_FIELD_EXIT = re.compile(r"(-?\d{1,4}) \(pid: (\d{1,9})\)")
_ERROR = re.compile(
    r"\b(?:error|fatal|exception|traceback|aborted|abort|killed|panic|core dumped|segfault|failure|failed)\b",
    re.IGNORECASE,
)
_FRAME = re.compile(r"  File \"|frame #\d|#\d{1,3} ")

# Words by which lines matter besides the failures; without digits
_FRAMEWORKS = {
    b"torch": "PyTorch",
    b"ProcessGroup": "PyTorch",
    b"deepspeed": "DeepSpeed",
    b"DeepSpeed": "DeepSpeed",
    b"megatron": "Megatron-LM",
    b"nThread ": "nccl-tests",
    b"jaxlib": "JAX",
    b"tensorflow": "TensorFlow",
    b"mindspore": "MindSpore",
    b"vllm": "vLLM",
    b"lightning": "Lightning",
    b"horovod": "Horovod",
}
_PROGRESS = (b"iteration", b"Iteration", b"it/s", b"step ", b"Step ", b"step:", b"step=", b"epoch", b"Epoch", b"loss")
_WELL = (
    b"Out of bounds values",
    b"Avg bus bandwidth",
    b"raining complete",
    b"raining finished",
    b"raining done",
    b"ob completed",
    b"exited with exit code",
    b"Destroy COMPLETE",
    b"Finished training",
    b"exit code",
)
_WELL_FORM = re.compile(
    r"# Out of bounds values : 0 OK|# Avg bus bandwidth|[Tt]raining (?:is )?(?:complete|finished|done)|[Jj]ob completed"
    r"(?: successfully)?|exit(?:ed)? (?:with )?(?:exit )?code:? 0\b|Destroy COMPLETE|Finished training"
)
_TABLE_WORDS = (
    b" float",
    b" half",
    b" double",
    b" bfloat",
    b" int",
    b" uint",
    b" fp",
    b"Rank ",
    b"#bytes",
    b"Device ",
    b"Running ",
    b"SUM ",
    b"redop",
    b"algbw",
    b"nThread",
)
_SETTING_WORDS = (b"NCCL_", b"RCCL_", b"HCCL_", b"UCX_", b" FI_", b"HSA_", b"value:")
_ERROR_WORDS = (
    b"rror",
    b"ERROR",
    b"FATAL",
    b"atal",
    b"xception",
    b"raceback",
    b"bort",
    b"illed",
    b"anic",
    b"ailed",
    b"ailure",
)
# What is looked for within tokens: settings, names of errors, and the words of rows that are so
_ANYWHERE_WORDS = (
    "CCL_",
    "UCX_",
    " FI_",
    "HSA_",
    "Error",
    "Exception",
    "error",
    "ERROR",
    "ailed",
    "ailure",
    "nvmlInit",
    "nvmlDevice",
    "nvmlShutdown",
    "NCCL",
    "ProcessGroup",
    "torch",
    "it/s",
    "HCCL",
    "HCCP",
)


class _Kind:
    """What a kind of line may mean."""

    __slots__ = ("count", "info", "likely", "patterns", "plain", "readers")

    def __init__(
        self, patterns: tuple[Pattern, ...], readers: tuple[Callable[[LogReader, LogLine], None], ...], info: bool
    ) -> None:
        self.patterns, self.readers = patterns, readers
        self.info = info  # only a message of NCCL at level INFO
        self.plain = not info and not patterns and set(readers) <= _COUNTED  # after a while only its number matters
        self.likely = _UNREAD  # the reader of NCCL's facts that takes it
        self.count = 0


_UNREAD, _NO_READER = -2, -1
_FULLY_READ = 3000  # lines of a plain kind
_MOST_MESSAGES = 200_000  # that are remembered, to read equal ones once


class LogReader:
    """Reads text files into the evidence."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self._kinds: dict[bytes, _Kind | None] = {}
        self._messages: set[bytes] = set()
        self._heads: set[bytes] = set()
        self._name: LogLine | None = None  # "name: NCCL_X" of the line before
        self._table: dict[str, str] = {}  # fields of a launcher's table of failures
        self._table_host: str | None = None
        self.found: set[str] = set()  # what the file that is read has: nccl, torch, hccl, table, kernel, launcher

    def read_file(self, name: str, lines: Iterable[bytes]) -> JobFile:
        """One file, or stdin."""
        evidence = self.evidence
        file = len(evidence.names)
        evidence.names.append(name)
        self.found = set()
        self._table, self._table_host, self._name = {}, None, None
        source = iter(lines)
        sample = [line for line, _ in zip(source, range(_SAMPLE_LINES), strict=False)]
        prefixes = Prefixes(line[:400].decode("utf-8", "replace") for line in sample)
        number, last, last_number, kinds = 0, b"", 0, self._kinds
        for number, raw in enumerate(_chain(sample, source), 1):
            key = raw.translate(None, _DIGITS)
            kind = kinds.get(key)
            if kind is None and key not in kinds:
                kind = self._add_kind(key, raw)
            if kind is not None:
                if kind.info:
                    self._read_plain_info(raw, kind, file)
                    continue
                if kind.plain:
                    kind.count += 1
                    if kind.count > _FULLY_READ:
                        evidence.progress += 1
                        last, last_number = raw, number
                        continue
                self._read_line(raw, number, file, kind, prefixes)
            if key != b"\n":
                last, last_number = raw, number
        self._end_table()
        if not self.found and evidence.table_lines.get(file) and read_tables(evidence.table_lines[file][:5000]).rows:
            self.found.add("table")
        if last:
            text = last.decode("utf-8", "replace").strip()
            evidence.tails[file] = Tail(text[:400], last_number, last.endswith((b"\n", b"\r")) or last_number != number)
            evidence.note_time(find_time(text))
        return JobFile(name=name, read_as=_name_kind(self.found), lines=number)

    def _add_kind(self, key: bytes, raw: bytes) -> _Kind | None:
        """What lines like this one may mean."""
        if len(self._kinds) >= _MOST_KINDS:
            self._kinds.clear()
        tokens = set(find_tokens(raw))
        if tokens.isdisjoint(_known_tokens()) and not _is_anywhere(raw) and key.strip(b" .\t\r\n"):
            self._kinds[key] = None
            return None
        patterns = tuple(sorted(find_patterns(raw, tokens), key=lambda pattern: pattern.row.id == "cuda-error"))
        if b"NCCL INFO " in raw:  # what is normal there needs no second look
            patterns = tuple(pattern for pattern in patterns if "noise" not in (pattern.row.role, pattern.row.info))
        readers = [reader for words, reader in _READERS if any(word in raw for word in words)]
        if not key.strip(b" .\t\r\n") and key.strip():
            readers.append(_read_table_line)
        info = raw.count(b"NCCL INFO ") == 1 and not patterns and readers == [_read_info] and b"\r" not in raw
        kind = _Kind(patterns, tuple(readers), info) if patterns or readers else None
        self._kinds[key] = kind
        return kind

    def _read_line(self, raw: bytes, number: int, file: int, kind: _Kind, prefixes: Prefixes) -> None:
        evidence = self.evidence
        for line in split_line(raw, number, file, prefixes):
            if line.at is not None:
                evidence.note_time(line.at)
            if line.host is not None:
                evidence.ranks.file_hosts[file].setdefault(line.host)
                if line.pid is not None:
                    evidence.ranks.process(line.host, line.pid)
            if line.rank is not None:
                evidence.ranks.seen.add(line.rank)
                evidence.ranks.torch_files.setdefault(line.rank, file)
            for reader in kind.readers:
                reader(self, line)
            if kind.patterns and self._match(kind.patterns, line):
                if evidence.last_errors.get(file) is line:
                    del evidence.last_errors[file]  # it is explained
            elif line.level == "WARN":
                self._add_unexplained(line, "NCCL warns of it")

    def _read_plain_info(self, raw: bytes, kind: _Kind, file: int) -> None:
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
                ranks.process(host, pid)
            if len(self._heads) < _MOST_MESSAGES:
                self._heads.add(head)
        self.found.add("nccl")
        if known:
            self.evidence.nccl.lines += 1
            return
        text = message.decode("utf-8", "replace").strip()
        tied = ranks.read_info(text, host, pid)
        number = self.evidence.nccl.read_text(text, kind.likely)
        if number < 0 and not tied:
            kind.likely = _NO_READER
        elif number >= 0:
            kind.likely = number
        if number != 0 and len(self._messages) < _MOST_MESSAGES:  # channels are counted
            self._messages.add(raw if message.startswith(_OF_PROCESS) else message)

    def _match(self, patterns: tuple[Pattern, ...], line: LogLine) -> bool:
        """The rows that a line is for; a warning that is for none is kept as it is."""
        matched: set[str] = set()
        for pattern in patterns:
            row = pattern.row
            if row.id == "cuda-error" and any(other.startswith("nvls-") for other in matched):
                continue  # the same line, with more in it
            text = (
                f"{line.place} NCCL {line.level} {line.text}"
                if row.id == "nvls-cuda-error" and line.place
                else line.text
            )
            match = pattern.search(text)
            if match is None:
                continue
            matched.add(row.id)
            groups = {name: value.strip() for name, value in match.groupdict().items() if value is not None}
            role = row.info if row.info is not None and line.level == "INFO" else row.role
            self._add_state(row, groups, line)
            telling = tuple(groups[name].partition("<")[0] for name in _TELLING if name in groups)
            key = (
                (line.text.translate(_NO_DIGITS)[:300], telling)
                if row.role not in ("hang", "fact")
                else groups.get("seq")
            )
            self.evidence.add_event(row, role, groups, line, key)
        if not matched and line.level == "WARN":
            self._add_unexplained(line, "NCCL warns of it")
        return bool(matched)

    def _add_state(self, row: FailureRow, groups: dict[str, str], line: LogLine) -> None:
        if row.id.startswith("watchdog-") or row.id == "heartbeat-stuck":
            self.found.add("torch")
            rank = line.rank if line.rank is not None else _number(groups.get("rank"), groups.get("member"))
            if rank is None:
                return
            group = groups.get("name") or groups.get("group") or ""
            waits = int(groups["seq"]) if "seq" in groups else None
            enqueued = int(groups.get("enqueued", -2))
            state = WatchdogState(
                rank, group, enqueued, int(groups.get("completed", -2)), waits, groups.get("op"), line
            )
            if len(self.evidence.watchdog) < 100_000:
                self.evidence.watchdog.append(state)
        elif row.id in ("xid", "oom-kill"):
            self.found.add("kernel")

    def _add_unexplained(self, line: LogLine, why: str) -> None:
        evidence = self.evidence
        key = (line.host, line.pid, line.rank, line.text.translate(_NO_DIGITS)[:200])
        if key not in evidence.unexplained and len(evidence.unexplained) < 2000:
            from agent.job.evidence import LineEvent

            evidence.unexplained[key] = LineEvent(_UNEXPLAINED, "error", {"why": why}, line)

    def _end_table(self) -> None:
        """The row of a launcher's table that is complete."""
        table, self._table = self._table, {}
        exit_code = _FIELD_EXIT.match(table.get("exitcode", ""))
        if exit_code is None or self._name_of_table is None:
            return
        rank = _FIELD_RANK.match(table.get("rank", ""))
        host = table.get("host", "").strip().partition(".")[0] or None
        self.evidence.exits.append(
            ExitRow(int(rank[1]) if rank else None, host, int(exit_code[1]), int(exit_code[2]), self._name_of_table)
        )
        if rank is not None and host:
            self.evidence.ranks.host_of.setdefault(int(rank[1]), host)

    _name_of_table: LogLine | None = None


# Groups of patterns whose numbers make a line another one
_TELLING = (
    "status",
    "number",
    "code",
    "peer",
    "nic",
    "port",
    "bus",
    "pid",
    "tasks",
    "task",
    "missing",
    "where",
    "first",
    "second",
)
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
    return next((int(text) for text in texts if text is not None and text.isdigit()), None)


def _chain(first: list[bytes], rest: Iterator[bytes]) -> Iterator[bytes]:
    yield from first
    yield from rest


def _name_kind(found: set[str]) -> str | None:
    names = {
        "hccl": "HCCL log",
        "nccl": "NCCL log",
        "torch": "PyTorch log",
        "table": "measured table",
        "launcher": "launcher log",
        "kernel": "kernel log",
        "other": "log",
    }
    kinds = [names[kind] for kind in names if kind in found and (kind != "other" or len(found) == 1)]
    return " and ".join(kinds[:2]) if kinds else None


def _read_info(reader: LogReader, line: LogLine) -> None:
    if line.level is None and line.host is None:
        return
    reader.found.add("nccl")
    if line.level == "INFO":
        reader.evidence.ranks.read_info(line.text, line.host, line.pid)
        reader.evidence.nccl.read_text(line.text)
    elif line.level == "WARN":
        reader.evidence.nccl.warnings.setdefault(line.text[:300])


def _read_banner(reader: LogReader, line: LogLine) -> None:
    match = _BANNER.search(line.text)
    if match is None:
        return
    reader.found.add("nccl")
    evidence = reader.evidence
    evidence.versions.setdefault(match["version"], line)
    if evidence.library is None or match["library"] == "RCCL":
        evidence.library = (match["library"], match["version"])
    if line.level is None:
        evidence.nccl.read_version(match["version"])


def _read_settings(reader: LogReader, line: LogLine) -> None:
    settings = reader.evidence.settings
    if reader._name is not None and (match := _VALUE_LINE.search(line.text.rstrip())) is not None:
        settings[reader._name.text][match["value"].strip()]["job definition"] = reader._name
    reader._name = None
    if (match := _SET.search(line.text)) is not None:
        rank = reader.evidence.ranks.rank_of(line.host, line.pid)
        place = f"{line.host or ''}:{line.pid or ''}" if rank is None else f"rank {rank}"
        places = settings[match["name"]][match["value"].strip().rstrip(".")]
        if len(places) < 10_000:
            places[place] = line
    elif (match := _HCCL_SET.search(line.text)) is not None:
        if match["how"] == "environment":
            settings[match["name"]][match["value"]][f"{line.host or ''}:{line.pid or ''}"] = line
    elif (match := _NAME_LINE.search(line.text.rstrip())) is not None:
        reader._name = line._replace(text=match["name"])
    else:
        for match in list(_GIVEN.finditer(line.text))[:64]:
            settings[match["name"]][match["value"].strip("\"'")]["launch command"] = line


def _read_hccl(reader: LogReader, line: LogLine) -> None:
    evidence = reader.evidence
    form = _PLOG.search(line.text)
    if form is None:
        return
    reader.found.add("hccl")
    evidence.library = evidence.library or ("HCCL", None)
    pid = int(form["pid"])
    if (match := _KEY_INFO.search(line.text)) is not None:
        rank, host = int(match["rank"]), match["host"]
        process = evidence.ranks.process(host, pid)
        process.rank, process.cuda, process.world = rank, int(match["device"]), evidence.ranks.world
        evidence.ranks.host_of[rank], evidence.ranks.local_of[rank] = host, int(match["device"])
        evidence.ranks.device_addresses[match["address"]] = rank
        evidence.ranks.seen.add(rank)
    elif (match := _ROOT_INFO.search(line.text)) is not None:
        evidence.ranks.world = max(evidence.ranks.world, int(match["ranks"]))
    elif (match := _TLS.search(line.text)) is not None:
        own, peer = int(match["own_rank"]), int(match["peer_rank"])
        if len(evidence.links) < 50_000:
            evidence.links.append(LinkError(own, peer, match["tls"].upper(), line))
        evidence.ranks.device_addresses.setdefault(match["own"], own)
        evidence.ranks.device_addresses.setdefault(match["peer"], peer)


def _read_table_line(reader: LogReader, line: LogLine) -> None:
    evidence = reader.evidence
    if line.level is not None:
        return
    if evidence.ranks.read_table(line.text):
        reader.found.add("table")
    lines = evidence.table_lines[line.file]
    if len(lines) < _MOST_TABLE_LINES:
        lines.append(line.text)


def _read_well(reader: LogReader, line: LogLine) -> None:
    match = _WELL_FORM.search(line.text)
    if match is not None:
        reader.evidence.ended_well[match[0].lower()[:40]] = line


def _read_progress(reader: LogReader, line: LogLine) -> None:
    reader.evidence.progress += 1
    reader.found.add("other")


def _read_framework(reader: LogReader, line: LogLine) -> None:
    for word, name in _FRAMEWORKS.items():
        if word.decode() in line.whole:
            reader.evidence.framework[name] += 1
            reader.found.add("torch" if name == "PyTorch" else "other")


def _read_launched(reader: LogReader, line: LogLine) -> None:
    match = _LAUNCHED.search(line.text)
    if match is not None:
        reader.evidence.ranks.file_hosts[line.file].setdefault(match["host"].partition(".")[0])


def _read_failure_table(reader: LogReader, line: LogLine) -> None:
    """The table of torchrun: "host : ..", "rank : 3 (local_rank: 3)", "exitcode : -9 (pid: 4711)"."""
    match = _TABLE_FIELD.match(line.text)
    if match is None:
        return
    if match["name"] in reader._table:
        reader._end_table()
    reader._table[match["name"]] = match["value"]
    if match["name"] == "exitcode":
        reader._name_of_table = line
        reader.found.add("launcher")
        reader._end_table()


def _read_error(reader: LogReader, line: LogLine) -> None:
    """A line that is called an error, of a library that no row is for."""
    if line.level is not None or not _ERROR.search(line.text[:300]) or _FRAME.match(line.text):
        return
    reader.found.add("other")
    reader.evidence.last_errors[line.file] = line


_TOKENS = frozenset(
    b"version float half double bfloat int uint fp Rank bytes Device Running SUM redop algbw nThread bounds bandwidth "
    b"raining Training training Job job code COMPLETE Finished iteration Iteration step Step epoch Epoch loss "
    b"deepspeed "
    b"DeepSpeed megatron jaxlib tensorflow mindspore vllm lightning horovod local_rank local host rank exitcode value "
    b"RUNTIME ROCE INFO WARN fatal FATAL Fatal Traceback aborted Aborted Killed killed panic".split()
)


@cache
def _known_tokens() -> frozenset[bytes]:
    """Tokens without which a line means nothing."""
    return _TOKENS | load_words().by_token.keys()


def _is_anywhere(raw: bytes) -> bool:
    return any(word in raw for word in _ANYWHERE_BYTES)


_ANYWHERE_BYTES = tuple(word.encode() for word in _ANYWHERE_WORDS)
_COUNTED = frozenset((_read_progress, _read_error, _read_framework))
# Messages whose meaning is that of the process that writes them
_OF_PROCESS = (b"Bootstrap", b"NET/IB : Using", b"NET/IB: Using", b"ncclComm", b"comm ")
_READERS: tuple[tuple[tuple[bytes, ...], Callable[[LogReader, LogLine], None]], ...] = (
    ((b"NCCL INFO", b"NCCL WARN", b"] INFO ", b"] WARN "), _read_info),
    ((b"CCL version",), _read_banner),
    (_SETTING_WORDS, _read_settings),
    ((b"HCCL(", b"HCCP(", b"RUNTIME(", b"ROCE("), _read_hccl),
    (_TABLE_WORDS, _read_table_line),
    (_WELL, _read_well),
    (_PROGRESS, _read_progress),
    (tuple(_FRAMEWORKS), _read_framework),
    ((b"local rank", b"local_rank"), _read_launched),
    ((b"  host ", b"  rank ", b"  exitcode"), _read_failure_table),
    (_ERROR_WORDS, _read_error),
)
