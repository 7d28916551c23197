"""What `job` is given: files, outputs of commands among them, within the time limit; reports of a dataset."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from agent.cli.errors import ErrorTranslation, print_warning
from agent.cli.output import ProgressLine
from agent.cli.stdin import STDIN, copy_stdin_until, notice_pipe
from probes.text import lazy_pattern

if TYPE_CHECKING:
    from agent.job.evidence import Evidence
    from agent.job.files import FileReader, Given, OtherFile, ReadLimit
    from agent.job.join.context import HostReport
    from agent.job.lines import Part


SECONDS, BYTES_PER_SECOND = 30.0, 4 << 20  # of the time limit where none is given
# Of outputs of commands: dmesg, ibstat
_FILE_BYTES, _ALL_BYTES, _MOST_FILES = 16 << 20, 256 << 20, 2000
_SCAN_SECONDS = 60.0
_MOST_COMMANDS = 12  # of one paste
_PROMPT = lazy_pattern(rb"[^:\n]{0,80}[$#] |[^ \n]{1,80}@[^ \n]{1,120}[$#] ")  # no name of a host before it


def choose_limit(files: Sequence[Given], seconds: float | None) -> float:
    """The time limit in seconds; without one of the user's it grows with the files."""
    return seconds if seconds is not None else SECONDS + sum(file.size for file in files) / BYTES_PER_SECOND


def list_inputs(paths: list[str], folder: str, seconds: float | None = None) -> list[Given]:
    """All files of the paths; stdin is copied into the folder, as it may be read twice, to its end or for half of these
    seconds. Raises CliError."""
    from agent.job.files import Given, UnreadableError, list_files

    with ErrorTranslation(UnreadableError):
        files = list_files([path for path in paths if path != STDIN])
    files.sort(key=lambda file: "host" not in os.path.basename(file.name).lower())  # lists of hosts: ranks name none
    if STDIN in paths:
        path, is_cut = copy_stdin_until(folder, None if seconds is None else time.monotonic() + seconds / 2)
        files.append(Given(path, "stdin", os.path.getsize(path), is_cut=is_cut))
    return files


def end_parts(parts: dict[str, Part | None], first: Evidence) -> dict[str, Part | None]:
    """The parts of a job, none beyond what was read when the jobs were distinguished."""
    if first.limit_seconds is None:
        return parts
    read = {file.name: file.lines or 0 for file in first.files if file.reason}
    return {
        name: part and part._replace(last=min(part.last, read.get(name, part.last))) for name, part in parts.items()
    }


def read_inputs(
    files: Sequence[Given], quiet: bool, limit: ReadLimit, parts: dict[str, Part | None] | None = None
) -> FileReader:
    """All files, with progress on a terminal; of logs only the parts of one job, where parts are given."""
    from agent.job.evidence import Evidence
    from agent.job.files import FileReader
    from agent.job.lines import WHOLE

    total, done = sum(file.size for file in files), 0
    with ProgressLine(not quiet and total > 64 << 20) as line:

        def add(size: int) -> None:
            nonlocal done
            done += size
            share = min(1.0, done / max(1, total))
            line.show(f"reading [{'#' * int(30 * share):30}] {share * 100:3.0f}%")

        reader = FileReader(Evidence(), add, limit)
        for file in files:
            part = parts.get(file.name, WHOLE) if parts is not None else WHOLE
            if part is not None:
                with notice_pipe(None if file.is_found else file.path):
                    reader.read(file, part)
    return reader


def scan_saved(files: list[OtherFile], evidence: Evidence, until: float) -> list[HostReport]:
    """A report for each host, whose folder they are in, of the files that are known outputs; others stay as they are.

    Hosts whose turn does not come before `until` (time.monotonic()) have none.
    """
    by_host: dict[str, dict[str, bytes]] = defaultdict(dict)
    size = 0
    for other in files[:_MOST_FILES]:
        content = _read(other)
        if content is None or not content.strip():
            continue
        size += len(content)
        if size > _ALL_BYTES:
            break
        pieces = _split_paste(other.name, content, evidence)
        by_host[evidence.ranks.find_named_host(other.name) or ""] |= pieces
    reports = []
    for host, contents in sorted(by_host.items()):
        seconds = min(until - time.monotonic(), _SCAN_SECONDS)
        if seconds <= 0:
            for file in list(evidence.files):  # no logs, and not tried as outputs of commands
                if os.path.basename(file.name) in contents and file.read_as is None:
                    evidence.note_unread(file.name, "not read: the time limit was reached")
            continue
        report = _scan(host, contents, evidence, seconds)
        if report is not None:
            reports.append(report)
    return reports


def _split_paste(name: str, content: bytes, evidence: Evidence) -> dict[str, bytes]:
    """A file, or what is above its first command of a shell and what each command printed: what several hosts printed
    for one is compared only where nothing else is beside it. Lines keep their numbers."""
    base = os.path.basename(name)
    lines = content.splitlines(keepends=True)
    numbers = evidence.prompts.get(evidence.names.index(name), ()) if name in evidence.names else ()
    prompts = [number for number in numbers if number <= len(lines) and _PROMPT.match(lines[number - 1])]
    if not 0 < len(prompts) <= _MOST_COMMANDS:
        return {base: content}
    ends = [*(number - 1 for number in prompts[1:]), len(lines)]
    pieces = {
        f"{base}, line {number}": b"\n" * (number - 1) + b"".join(lines[number - 1 : end])
        for number, end in zip(prompts, ends, strict=True)
    }
    return {base: b"".join(lines[: prompts[0] - 1]), **pieces} if prompts[0] > 1 else pieces


def _read(other: OtherFile) -> bytes | None:
    from agent.job.files import open_given

    try:
        with open_given(other.path, other.is_found) as file:
            content = file.read(_FILE_BYTES + 1)
    except OSError:
        return None
    return content if len(content) <= _FILE_BYTES else None


_OF_JOBS_TOO = ("error of program", "sentences of tools")  # what a job's log may hold as well
_OF_A_COMMAND = ", line "  # in the place of what one printed


def _scan(host: str, contents: dict[str, bytes], evidence: Evidence, seconds: float) -> HostReport | None:
    from agent.cli.request import ReportRequest  # noqa: F401  # its imports are those of a scan
    from agent.config import Configuration
    from agent.diagnose import ScanPlan, diagnose
    from agent.job.join.context import HostReport
    from agent.model.job_answer import JobFile
    from probes.host.interface import BadSource
    from probes.sources.dump import SavedOutputs
    from probes.sources.memory import MemoryFiles
    from probes.sources.tree import TreeHost

    outputs = SavedOutputs(MemoryFiles(dict(contents)))
    if not outputs.commands:
        return None
    try:
        report, _ = diagnose(
            TreeHost("dump", host or "saved outputs", MemoryFiles(), outputs, tuple(outputs.unread)),
            ScanPlan(timeout_seconds=seconds, configuration=Configuration()),
        )
    except BadSource:
        return None
    if host and report.node.hostname is None:
        import msgspec

        report = msgspec.structs.replace(report, node=msgspec.structs.replace(report.node, hostname=host))
    read = {
        str(row.name).partition(", line ")[0]
        for row in outputs.list_files()
        if row.read_as not in (None, *_OF_JOBS_TOO)
    }
    is_job = any(file.read_as for file in evidence.files if os.path.basename(file.name) in contents)
    is_grave = any(
        finding.severity != "info" or not is_job or any(_OF_A_COMMAND in (row.source or "") for row in finding.evidence)
        for finding in report.findings
    )
    if not (is_grave or report.topology.gpus or report.topology.nics):
        return None  # nothing of a host, as in most logs
    for number, file in enumerate(evidence.files):
        is_unclear = file.read_as in (None, "log") and file.name not in evidence.rank_logs
        if os.path.basename(file.name) in read and is_unclear:
            evidence.files[number] = JobFile(name=file.name, read_as="saved output", lines=file.lines)
    return HostReport(report, f"saved outputs{f' of {host}' if host else ''}", guessed=True)


def read_dataset(dataset: str, evidence: Evidence, at: str | None) -> list[HostReport]:
    """A report of each host of the job that the dataset has. Raises CliError."""
    from agent.cli.fleet.open_tables import open_engine
    from agent.fleet.questions.job_hosts import read_hosts
    from agent.job.join.context import HostReport

    names = list_hosts(evidence)
    moment = parse_moment(at) if at is not None else assume_moment(evidence)
    with open_engine(dataset, None) as engine:
        reports, problems = read_hosts(engine, names, moment)
    for problem in problems[:5]:
        print_warning(problem)
    return [HostReport(report, f"dataset ({name})") for report, name in reports]


def list_hosts(evidence: Evidence) -> list[str]:
    """All hosts that the files name."""
    named = dict.fromkeys(evidence.ranks.hosts())
    for hosts in evidence.ranks.file_hosts.values():
        named |= hosts
    for snapshot in evidence.snapshots:
        named |= {row.node: None for rows in snapshot.listed.values() for row in rows}
        named |= {row.node: None for row in (*snapshot.dead, *snapshot.unanswered)}
    if evidence.metrics is not None:
        named |= {host: None for host, _ in evidence.metrics.files}
    if evidence.inspector is not None:
        named |= {host: None for members in evidence.inspector.members.values() for host, _ in members.values()}
    return list(named)


def parse_moment(at: str) -> datetime:
    """UTC without a zone, as tables have it."""
    moment = datetime.fromisoformat(at.replace("Z", "+00:00"))
    return moment.astimezone(timezone.utc).replace(tzinfo=None) if moment.tzinfo else moment


def assume_moment(evidence: Evidence) -> datetime | None:
    """The log's last time, taken as UTC, which is stated; none where no line has a date with a year."""
    last = evidence.last_at
    if last is None:
        return None
    year = last.year or evidence.year
    if year is None:
        print_warning("the log's times have no year: --at TIME chooses the state of the dataset; its newest is used")
        return None
    print_warning(f"the state of the dataset at {last.format(year)}, taken as UTC: --at chooses another")
    return datetime.fromisoformat(last.format(year))
