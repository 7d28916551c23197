"""Views beside the tables, for SQL that people write; no question reads them."""

from __future__ import annotations

from agent.fleet.engines.query import identifiers, statement
from agent.fleet.engines.schema import columns
from agent.fleet.network_tables import PORT_COUNTERS

ABOUT = {
    "rule_check": 'Table "check" by a name that is no reserved word.',
    "finding_episode": "From when to when each finding was there; ended is null while it is.",
    "finding_open": "The findings of each node's newest report, and when they began.",
    "node_setting": "One row per node and setting of NCCL and its like.",
    "node_service": "One row per node and service, with its state.",
    "node_day": "Every node and day (UTC) with a report: its reports, and its state by the last of them.",
    "port_day": "What the error counters of each RDMA port grew by on a day (UTC).",
}
_NO_ERRORS = ("port_rcv_data", "port_xmit_data")


def views(with_zone: bool = False) -> dict[str, str]:
    """The SELECT of each view, each after those that it reads. `with_zone`: times have one."""
    counters = [name for name in PORT_COUNTERS if name not in _NO_ERRORS]
    parts = {
        "counters": ", ".join(counters),
        "columns": identifiers(column.name for column in columns("check")),
        "day": statement("views", "day_with_zone" if with_zone else "day"),
        "grown": ", ".join(statement("views", "grown", counter=name) for name in counters),
    }
    return {name: statement("views", name, **parts) for name in ABOUT}
