"""The files that `job` is given: found, and read within the time limit."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent.cli.errors import CliError

if TYPE_CHECKING:
    from agent.job.evidence import Evidence
    from agent.job.files import FileReader, Given, ReadLimit
    from agent.job.lines import Part

SECONDS, BYTES_PER_SECOND = 30.0, 4 << 20  # of the time limit where none is given


def choose_limit(files: Sequence[Given], seconds: float | None) -> float:
    """The time limit in seconds; without one of the user's it grows with the files."""
    return seconds if seconds is not None else SECONDS + sum(file.size for file in files) / BYTES_PER_SECOND


def list_inputs(paths: list[str], folder: str) -> list[Given]:
    """All files of the paths; stdin is copied into the folder, as it may be read twice. Raises CliError."""
    from agent.job.files import Given, UnreadableError, list_files

    try:
        files = list_files([path for path in paths if path != "-"])
    except UnreadableError as error:
        raise CliError(str(error)) from error
    files.sort(key=lambda file: "host" not in os.path.basename(file.name).lower())  # lists of hosts: ranks name none
    if "-" in paths:
        import shutil

        path = os.path.join(folder, "stdin")
        with open(path, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        files.append(Given(path, "stdin", os.path.getsize(path)))
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

    progress = ReadProgress(sum(file.size for file in files), quiet)
    reader = FileReader(Evidence(), progress.add, limit)
    for file in files:
        part = parts.get(file.name, WHOLE) if parts is not None else WHOLE
        if part is not None:
            reader.read(file, part)
    progress.end()
    return reader


class ReadProgress:
    """How much is read, on a terminal and only where it takes time."""

    def __init__(self, total: int, quiet: bool) -> None:
        self._total, self._done = max(1, total), 0
        self._shown = not quiet and total > 64 << 20 and sys.stderr.isatty()

    def add(self, size: int) -> None:
        """Bytes of a file that is read."""
        self._done += size
        if self._shown:
            share = min(1.0, self._done / self._total)
            bar = "#" * int(30 * share)
            print(f"\rreading [{bar:30}] {share * 100:3.0f}%", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Remove the bar."""
        if self._shown:
            print("\r" + " " * 48 + "\r", end="", file=sys.stderr, flush=True)
