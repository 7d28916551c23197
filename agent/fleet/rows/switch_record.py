"""What is stored of a switch, apart from how it is made: whoever reads reports alone need not import that."""

from __future__ import annotations

from datetime import datetime

import msgspec

from agent.fleet.rows.row_columns import Row


class SwitchRecord(msgspec.Struct, frozen=True):
    """What a dataset stores of one switch. `rows`: by table, in the order of its columns."""

    node: str
    observed_at: datetime
    hardware_class: str
    rows: dict[str, list[Row]]
    counters: list[tuple[str, dict[str, int]]]  # subject, counts
