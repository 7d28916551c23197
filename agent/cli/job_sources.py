"""Other files in a job's folder (dmesg, ibstat): scanned as saved outputs of the host whose folder they are in."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.job.evidence import Evidence
    from agent.job.files import OtherFile
    from agent.job.join.context import HostReport

_FILE_BYTES, _ALL_BYTES, _MOST_FILES = 16 << 20, 256 << 20, 2000
_SECONDS = 60.0


def scan_saved(files: list[OtherFile], evidence: Evidence, has_reports: bool, until: float) -> list[HostReport]:
    """A report for each host, of the files that are known outputs; files that are none stay as they are.

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
        by_host[evidence.ranks.find_named_host(other.name) or ""][os.path.basename(other.name)] = content
    reports = []
    for host, contents in sorted(by_host.items()):
        seconds = min(until - time.monotonic(), _SECONDS)
        if seconds <= 0:
            _note_late(contents, evidence)
            continue
        report = _scan(host, contents, evidence, seconds)
        if report is not None:
            reports.append(report)
    return reports


def _note_late(contents: dict[str, bytes], evidence: Evidence) -> None:
    """Files that are no log and were not tried as outputs of commands."""
    for file in list(evidence.files):
        if os.path.basename(file.name) in contents and file.read_as is None:
            evidence.note_unread(file.name, "not read: the time limit was reached")


def _read(other: OtherFile) -> bytes | None:
    from agent.job.files import open_given

    try:
        with open_given(other.path, other.is_found) as file:
            content = file.read(_FILE_BYTES + 1)
    except OSError:
        return None
    return content if len(content) <= _FILE_BYTES else None


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
    read = {str(row.name).partition(", line ")[0] for row in outputs.list_files() if row.read_as is not None}
    for number, file in enumerate(evidence.files):
        if os.path.basename(file.name) in read and file.read_as in (None, "log"):
            evidence.files[number] = JobFile(name=file.name, read_as="saved output", lines=file.lines)
    return HostReport(report, f"saved outputs{f' of {host}' if host else ''}", guessed=True)
