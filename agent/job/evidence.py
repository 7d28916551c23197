"""What the readers collect of a job, before anything is concluded from it."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from typing import Any, NamedTuple

from agent.job.catalogue import FailureRow
from agent.job.dumps.cpu_masks import CpuMask
from agent.job.dumps.flight_recorder import Dumps
from agent.job.dumps.inspector import Inspector
from agent.job.dumps.inspector_metrics import InspectorMetrics
from agent.job.dumps.ras import JsonSnapshotReader, Snapshot, SnapshotReader
from agent.job.dumps.stacks import Stack, StackReader
from agent.job.line_forms import LineForms, LineWriter
from agent.job.lines import LogLine, Moment
from agent.job.measured_tables import TableHead
from agent.job.nccl_log import NcclLogReader
from agent.job.pace import Pace
from agent.job.rank_values import RankValues
from agent.job.ranks import RankMap
from agent.model.job_answer import JobFile
from probes.text import lazy_pattern

MOST_EVENTS = 100_000
MANY_STEPS = 30  # lines of steps after an error that a job outlived
_MOST_ERRORS = 64  # of a file that no row explains; the last of them is the last of the file
ASKED = "echo $?"  # a regular end of some command, of which the job may have been
LAST_WORDS = "the last line"  # a regular end by the last line of a log with steps
STATES = "state of the job"  # a regular end by a list of jobs
_MOST_SIGNS, _FORM = 1000, 120  # characters
_ABOVE = 64  # lines above a measured table that may name its hosts
_NO_DIGITS = str.maketrans("", "", "0123456789")
_OF_HOSTS = ("kernel log", "log of a service", "saved output")


class LineEvent:
    """Lines of one kind that one process wrote: the first of them, and how many there are."""

    __slots__ = ("count", "groups", "last", "line", "role", "row")

    def __init__(self, row: FailureRow, role: str, groups: dict[str, str], line: LogLine) -> None:
        self.row, self.role, self.groups, self.line = row, role, groups, line
        self.count, self.last = 1, line.number


class Tail(NamedTuple):
    """How a file ends."""

    line: str
    number: int
    whole: bool  # the last line is not cut


class LinkError(NamedTuple):
    """One row of HCCL's table of links that were not established."""

    rank: int
    peer: int
    tls: str | None
    line: LogLine


class WatchdogState(NamedTuple):
    """Where a rank is, by the watchdog of PyTorch."""

    rank: int
    group: str
    enqueued: int
    completed: int
    waits: int | None  # the sequence number that it waited for until its time-out
    operation: str | None
    line: LogLine
    size: int | None = None  # elements that it gives to the collective
    limit_milliseconds: int | None = None  # its time-out


class ExitRow(NamedTuple):
    """One row of a launcher's table of processes that ended."""

    rank: int | None
    host: str | None
    code: int | None  # None: its line is cut off
    pid: int | None
    line: LogLine
    is_first: bool = False  # by the launcher


class Evidence:
    """All that the files of a job show."""

    def __init__(self) -> None:
        self.files: list[JobFile] = []
        self.limit_seconds: float | None = None  # the time limit, where files were not read, or not whole, for it
        self.names: list[str] = []  # of files, by number
        self.ranks = RankMap()
        self.nccl = NcclLogReader()
        self.forms = LineForms()
        self.library: tuple[str, str | None] | None = None

        self.framework: dict[str, int] = defaultdict(int)
        self.events: dict[Any, LineEvent] = {}
        self.unexplained: dict[Any, LineEvent] = {}  # warnings and errors that no row is for
        # by name, value and place
        self.settings: dict[str, dict[str, dict[str, LogLine]]] = defaultdict(lambda: defaultdict(dict))
        self.watchdog: list[WatchdogState] = []
        self.links: list[LinkError] = []
        self.exits: list[ExitRow] = []
        self.rank_logs: set[str] = set()  # files whose lines begin as only programs of several processes write them
        self.tails: dict[int, Tail] = {}
        self.errors: dict[int, list[LogLine]] = defaultdict(list)  # by file: lines that are called an error
        # forms of lines that show something unusual: who wrote them, and the first line of each
        self.signs: dict[str, dict[LineWriter, LogLine]] = {}
        self.last_words: dict[int, LogLine] = {}  # by file: the last line that states an end in other words
        self.prompts: dict[int, list[int]] = defaultdict(list)  # by file: lines of a shell, with a command
        self.table_lines: dict[int, list[str]] = defaultdict(list)
        self.table_heads: dict[int, list[TableHead]] = defaultdict(list)
        self.memlock: list[tuple[int | None, LogLine]] = []  # limits of locked memory, KiB; None: unlimited
        # by file: numbers of the last lines of steps
        self.last_steps: dict[int, deque[int]] = defaultdict(lambda: deque(maxlen=MANY_STEPS))
        self.serves = False  # requests are answered
        self.pace = Pace()
        self.rank_values = RankValues()
        self.progress = 0  # lines of steps, iterations, or rows of a table
        self.ended_well: dict[str, LogLine] = {}  # lines of a regular end
        self.end_lines: list[tuple[int, int]] = []  # file and number of lines that end a job, well or not
        self.file_times: dict[int, tuple[float, float]] = {}  # first and last time
        self.year: int | None = None
        self.first_at: Moment | None = None
        self.last_at: Moment | None = None
        self.dumps: Dumps | None = None  # of the flight recorder
        self.snapshots: list[Snapshot] = []  # of RAS
        self.stacks: list[Stack] = []  # of main threads
        self.cpu_masks: list[CpuMask] = []  # of ranks
        self.inspector: Inspector | None = None
        self.metrics: InspectorMetrics | None = None  # of the Inspector, for Prometheus

    def note_unread(self, name: str, reason: str) -> None:
        """A file is not what it seemed to be."""
        self.files = [JobFile(name=name, reason=reason) if file.name == name else file for file in self.files]

    def add_event(self, row: FailureRow, role: str, groups: dict[str, str], line: LogLine, key: object) -> None:
        """One line; equal ones of a process count once."""
        place = (row.id, line.host, line.pid, line.rank, line.task if line.pid is None else None, key)
        event = self.events.get(place)
        if event is not None:
            event.count += 1
            event.last = max(event.last, line.number) if line.file == event.line.file else event.last
        elif len(self.events) < MOST_EVENTS:
            self.events[place] = LineEvent(row, role, groups, line)

    def find_events(self, row: str) -> list[LineEvent]:
        """All of one row."""
        return [event for event in self.events.values() if event.row.id == row]

    def add_error(self, line: LogLine) -> None:
        """A line that is called an error; those before it that many steps came after are none of how the job ended."""
        errors, steps = self.errors[line.file], self.last_steps.get(line.file, ())
        if errors and sum(number > errors[-1].number for number in steps) > MANY_STEPS // 2:
            errors.clear()
        if len(errors) == _MOST_ERRORS:
            errors.pop()
        errors.append(line)

    def add_sign(self, line: LogLine) -> None:
        """A line that shows something unusual; of a form that a process writes the first."""
        form = line.text.translate(_NO_DIGITS)[:_FORM]
        if form in self.signs or len(self.signs) < _MOST_SIGNS:
            writers = self.signs.setdefault(form, {})
            if len(writers) < _MOST_SIGNS:
                writers.setdefault(LineWriter(line.rank, line.host, line.pid, line.task, line.file), line)

    def drop_sign(self, line: LogLine) -> None:
        """A row explains a line as none of a failure."""
        self.signs.pop(line.text.translate(_NO_DIGITS)[:_FORM], None)

    def find_end(self, file: int, number: int) -> int:
        """The last line after this one before a command of a shell, and what that prints."""
        after = next((prompt for prompt in self.prompts.get(file, ()) if prompt > number), None)
        return self.tails[file].number if after is None else after - 1

    def is_output(self, file: int) -> bool:
        """Whether a file is of a host, and not of the job."""
        name = self.names[file]
        return any(row.name == name and row.read_as in _OF_HOSTS for row in self.files)

    def note_end(self, line: LogLine) -> None:
        """A line of a regular end, or of a failure, of whatever job it is."""
        if len(self.end_lines) < MOST_EVENTS:
            self.end_lines.append((line.file, line.number))

    def note_time(self, moment: Moment | None, file: int) -> None:
        """The time of a line."""
        if moment is None:
            return
        first, last = self.file_times.get(file, (moment.seconds, moment.seconds))
        self.file_times[file] = min(first, moment.seconds), max(last, moment.seconds)
        self.year = max(self.year or 0, moment.year) if moment.year else self.year
        if self.first_at is None or moment.seconds < self.first_at.seconds:
            self.first_at = moment
        if self.last_at is None or moment.seconds > self.last_at.seconds:
            self.last_at = moment

    def rank_of(self, line: LogLine) -> int | None:
        """The rank that wrote a line."""
        if line.rank is not None:
            return line.rank
        host = line.host or self.ranks.find_process_host(line.pid)
        rank = self.ranks.rank_of(host, line.pid)
        if rank is None and line.pid is not None:
            rank = self.ranks.pids.get((line.file, line.pid))
        return rank if rank is not None else line.task

    def host_of(self, line: LogLine) -> str | None:
        """The host on which a line was written."""
        if line.host is not None:
            return line.host
        rank = self.rank_of(line)
        host = self.ranks.host(rank) if rank is not None else self.ranks.find_process_host(line.pid)
        if host is None:
            hosts = self.ranks.file_hosts.get(line.file, {})
            host = next(iter(hosts)) if len(hosts) == 1 else None
            if not hosts and line.file < len(self.names):
                host = self.ranks.find_named_host(self.names[line.file])
        if host is None and line.address is not None:
            host = self.ranks.find_host(line.address) or line.address
        return host


_FIELD_RANK = lazy_pattern(r"(\d{1,7}) \(local_rank: (\d{1,5})\)")
_FIELD_EXIT = lazy_pattern(r"(-?\d{1,4}) \(pid: (\d{1,9})\)")


class FileState:
    """What is known while one file is read."""

    def __init__(self, evidence: Evidence, name: str) -> None:
        self.evidence, self.name = evidence, name
        self.found: set[str] = set()  # what the file has: nccl, torch, hccl, table, kernel, launcher, ras
        self.setting: LogLine | None = None  # "name: NCCL_X" of the line before
        self.table: dict[str, str] = {}  # fields of a launcher's table of failures
        self.table_line: LogLine | None = None
        self.is_first_failure = False  # the next row of that table is the first process that ended
        self.snapshot: SnapshotReader | JsonSnapshotReader | None = None  # of RAS, which is being read
        self.damaged_snapshots = 0
        self.ignores: int | None = None  # the line that announces an exception which is ignored
        self.place: re.Match[str] | None = None  # of a process that ended, in the box of Hydra
        self.job_states: dict[str, bool] = {}  # whether it ended well, by job
        self.prompt_host: str | None = None
        self.other_host: str | None = None  # whose output the last command printed: `ssh HOST ..`, `kubectl logs POD`
        self.open_error: int | None = None  # the line of an error that ends with a colon: the next one has the rest
        self.asks_exit: LogLine | None = None  # `echo $?`, whose answer is below it
        self.last_step = b""  # the last line that has the time or rate of a step
        self.recent: deque[bytes] = deque(maxlen=_ABOVE)  # lines before this one, since the last table
        self.threads = StackReader(evidence.stacks)
        self.stack: LogLine | None = None  # of MPICH: its first line, with the rank and host that it names

    def end_table(self) -> None:
        """Keep the row of a launcher's table that is complete."""
        table, self.table = self.table, {}
        exit_code = _FIELD_EXIT.match(table.get("exitcode", ""))
        rank = _FIELD_RANK.match(table.get("rank", ""))
        is_cut = exit_code is None and rank is not None and self.is_first_failure
        if (exit_code is None and not is_cut) or self.table_line is None:
            return
        host = table.get("host", "").strip().partition(".")[0] or None
        code, pid = (int(exit_code[1]), int(exit_code[2])) if exit_code else (None, None)
        row = ExitRow(int(rank[1]) if rank else None, host, code, pid, self.table_line, self.is_first_failure)
        self.evidence.exits.append(row)
        self.is_first_failure = False
        if rank is not None and host:
            self.evidence.ranks.host_of.setdefault(int(rank[1]), host)
            self.evidence.ranks.local_of.setdefault(int(rank[1]), int(rank[2]))
