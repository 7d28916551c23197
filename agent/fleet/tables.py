"""The tables of a dataset: its interface, `fabricscope.dataset/1`, as `tables.md` beside this module states it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from agent.fleet.table import BOOL as BOOL
from agent.fleet.table import CLASS as CLASS
from agent.fleet.table import FLOAT as FLOAT
from agent.fleet.table import INT as INT
from agent.fleet.table import TEXT as TEXT
from agent.fleet.table import TIME as TIME
from agent.fleet.table import Column as Column
from agent.fleet.table import Table as Table
from agent.fleet.table import columns_of
from agent.model.pci import PciFunction

FORMAT = "fabricscope.dataset/1"
LONGEST_SECONDS = 1e9  # that a probe can have taken: thirty years
PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tables.md")
NODE = Column("node", TEXT, "the host")
FROM_MODEL = {"pci": columns_of(PciFunction, after={"power_state": "serial"})}


def _read_tables() -> Iterator[Table]:
    """In the order of the page."""
    with open(PAGE, encoding="utf-8") as file:
        parts = file.read().split("\n## ")[1:]
    for name, about, rows in (part.split("\n\n", 2) for part in parts):
        about, _, key = about.partition(" Key: ")
        own = FROM_MODEL.get(name) or tuple(map(_parse_row, rows.strip().split("\n")[2:]))
        keys = re.findall(r"`(\w+)`", key)[1:]
        yield Table(name, about, tuple(keys), (NODE, *own), history="No history" not in key)


def _parse_row(line: str) -> Column:
    """A row of the page: a name in italics moves by itself."""
    name, kind, about = line[2:-2].split(" | ", 2)
    column = Column(name[1:-1], kind, about.replace("\\|", "|"), volatile=name[0] == "*")
    return CLASS if column == CLASS else column


_ALL = {table.name: table for table in _read_tables()}
HOST, PCI, LINK, GPU, NVLINK, NIC, PORT, NETDEV, CHECK, PROBE, COUNTER, PORT_COUNTER, EVENT, RATE = (
    _ALL[name]
    for name in (
        *("host", "pci", "link", "gpu", "nvlink", "nic", "port", "netdev", "check", "probe"),
        *("counter", "port_counter", "event", "rate"),
    )
)
SWITCH, SWITCH_PORT, HOP, CHANGE, SIGHTING = (
    _ALL[name] for name in ("switch", "switch_port", "hop", "change", "sighting")
)
PORT_COUNTERS = tuple(column.name for column in PORT_COUNTER.own[4:])
TABLES = {name: table for name, table in _ALL.items() if table not in (CHANGE, SIGHTING)}
HISTORY = {name: table for name, table in _ALL.items() if table.history}
MOMENT = Column("observed_at", TIME)  # of a row of history: since then the rows of this node have been so
# Nodes whose rows of a table are equal as far as questions compare them: a digest of these is a column of table host,
# and one node of each digest is read in place of all. A column that a question compares by digest must be listed here;
# a digest that an earlier version wrote from other columns only makes nodes differ that are alike.
COMPARED: dict[str, tuple[str, ...]] = {
    "pci": (
        *("id", "class", "physical_function", "acs"),
        *("max_payload_bytes", "max_read_request_bytes", "relaxed_ordering"),
    ),
    "link": ("id", "kind", "bandwidth_gbyte_s", "quality", "conclusive_speed_gt_s", "conclusive_width"),
    "gpu": (
        *("id", "label", "name", "pci", "numa_node", "vbios", "memory_mib", "bar1_mib", "mig", "driver_state"),
        *("nvlinks", "nvlinks_active", "fabric_state", "fabric_status", "clique", "cluster_uuid", "recovery_action"),
    ),
    "nic": ("id", "label", "rail", "role", "model", "board_id", "firmware", "driver", "numa_node", "state"),
    "port": (
        *("nic", "label", "port", "rail", "link_layer", "state", "phys_state", "rate_gbit_s", "width", "speed"),
        *("active_mtu", "gid_types", "roce_gid_index"),
    ),
    "netdev": (
        *("id", "label", "nic", "rail", "speed_gbit_s", "mtu", "fec", "pause_rx", "pause_tx", "trust", "pfc"),
        *("dscp_prio", "prio_tc", "tc_bandwidth", "ecn", "cnp_dscp", "cnp_priority"),
    ),
    "check": ("rule", "state", "reason"),
}


def history_columns(table: Table) -> tuple[Column, ...]:
    """Columns of a table in history: the moment is after the node, where the table has none of its own."""
    if any(column.name == MOMENT.name for column in table.columns):
        return table.columns
    return (table.columns[0], MOMENT, *table.columns[1:])


def digest_column(table: str) -> str:
    """The column of table host that has the digests of a table's rows."""
    return f"{table}_digest"
