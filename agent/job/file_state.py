"""What is known while one log is read."""

from __future__ import annotations

import re

from agent.job.dumps.ras import JsonSnapshotReader, SnapshotReader
from agent.job.evidence import Evidence, ExitRow
from agent.job.lines import LogLine

_FIELD_RANK = re.compile(r"(\d{1,7}) \(local_rank: (\d{1,5})\)")
_FIELD_EXIT = re.compile(r"(-?\d{1,4}) \(pid: (\d{1,9})\)")


class FileState:
    """What is known while one file is read."""

    def __init__(self, evidence: Evidence, name: str) -> None:
        self.evidence, self.name = evidence, name
        self.found: set[str] = set()  # what the file has: nccl, torch, hccl, table, kernel, launcher, ras
        self.setting: LogLine | None = None  # "name: NCCL_X" of the line before
        self.table: dict[str, str] = {}  # fields of a launcher's table of failures
        self.table_line: LogLine | None = None
        self.snapshot: SnapshotReader | JsonSnapshotReader | None = None  # of RAS, which is being read
        self.damaged_snapshots = 0
        self.ras_version: str | None = None

    def end_table(self) -> None:
        """Keep the row of a launcher's table that is complete."""
        table, self.table = self.table, {}
        exit_code = _FIELD_EXIT.match(table.get("exitcode", ""))
        if exit_code is None or self.table_line is None:
            return
        rank = _FIELD_RANK.match(table.get("rank", ""))
        host = table.get("host", "").strip().partition(".")[0] or None
        self.evidence.exits.append(
            ExitRow(int(rank[1]) if rank else None, host, int(exit_code[1]), int(exit_code[2]), self.table_line)
        )
        if rank is not None and host:
            self.evidence.ranks.host_of.setdefault(int(rank[1]), host)
