"""What a dataset keeps of each node to take its next reports in: of its newest one the time, digests and counters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import pyarrow as pa

from agent.fleet.columns import TYPES
from agent.fleet.dataset import File
from agent.fleet.ingest.boots import BootTime
from agent.fleet.ingest.history import Sighting, read_batches
from agent.fleet.ingest.windows import EarlierSample
from agent.fleet.rows.counters import CounterDigests
from agent.fleet.store import Store
from agent.fleet.tables import FLOAT, INT, TABLES, TEXT, TIME

KEPT = tuple(name for name, table in TABLES.items() if table.history)
STATE_SCHEMA = pa.schema(
    [("node", TYPES[TEXT]), ("observed_at", TYPES[TIME]), ("generated_at", TYPES[TIME]), ("report", TYPES[TEXT])]
    + [(name, pa.string()) for name in KEPT]
    + [("boot_id", TYPES[TEXT]), ("uptime_seconds", TYPES[FLOAT])]
    + [("shape", TYPES[INT]), ("standing", TYPES[INT])]
)


class State(msgspec.Struct):
    """The newest report of a node."""

    sighting: Sighting
    digests: dict[str, str]
    boot_id: str | None = None
    uptime_seconds: float | None = None
    shape: int | None = None  # of its counters
    standing: int | None = None

    @property
    def sample(self) -> EarlierSample | None:
        """None: nothing can be compared with it."""
        if self.boot_time is None or self.shape is None or self.standing is None:
            return None
        return EarlierSample(self.boot_time, CounterDigests(self.shape, self.standing, False))

    @property
    def boot_time(self) -> BootTime | None:
        """None: it does not have boot id and uptime."""
        if self.boot_id is None or self.uptime_seconds is None:
            return None
        return BootTime(self.boot_id, self.uptime_seconds, self.sighting.observed)


def read_states(files: Iterable[File], store: Store, is_own: Callable[[str], bool]) -> dict[str, State]:
    """The nodes of files that the caller has to do with. Raises OSError."""
    states = {}
    for file in files:
        for batch in read_batches(store, file, STATE_SCHEMA):
            times = {name: batch[name].cast(pa.int64()) for name in ("observed_at", "generated_at")}
            for row in pa.table({name: times.get(name, batch[name]) for name in batch.column_names}).to_pylist():
                node = row.pop("node")
                if is_own(node):
                    sighting = Sighting(row.pop("observed_at"), row.pop("generated_at"), row.pop("report"))
                    boot_id, uptime = row.pop("boot_id"), row.pop("uptime_seconds")
                    shape, standing = row.pop("shape"), row.pop("standing")
                    digests = {name: digest or "" for name, digest in row.items()}
                    states[node] = State(sighting, digests, boot_id, uptime, shape, standing)
    return states


def state_rows(state: dict[str, State]) -> Any:
    """The table of all of them."""
    nodes = sorted(state)
    rows = [state[node] for node in nodes]
    columns = [
        pa.array(nodes, pa.string()),
        pa.array([row.sighting.observed for row in rows], pa.int64()).cast(TYPES[TIME]),
        pa.array([row.sighting.generated for row in rows], pa.int64()).cast(TYPES[TIME]),
        pa.array([row.sighting.report for row in rows], pa.string()),
        *(pa.array([row.digests.get(name, "") for row in rows], pa.string()) for name in KEPT),
        pa.array([row.boot_id for row in rows], pa.string()),
        pa.array([row.uptime_seconds for row in rows], pa.float64()),
        pa.array([row.shape for row in rows], pa.int64()),
        pa.array([row.standing for row in rows], pa.int64()),
    ]
    return pa.table(columns, schema=STATE_SCHEMA)
