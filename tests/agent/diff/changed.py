"""Reports of fixture machines with something done to them that no fault overlay can do."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from agent.model.report import Report
from agent.reports import encode_report

HGX = "8xh100-sxm-2s-8xcx7-ib-4nvsw"
ROCE = "8xh200-sxm-2s-16xcx7-roce-4nvsw"
PCIE = "8xl40s-pcie-2s-2xcx7-roce"


def changed(report: Report, **fields: Any) -> Report:
    """The report with other fields: `node__kernel="6.9"` goes one level down."""
    for name, value in fields.items():
        first, _, rest = name.partition("__")
        if rest:
            value = msgspec.structs.replace(getattr(report, first), **{rest: value})
        report = msgspec.structs.replace(report, **{first: value})
    return report


def rows(report: Report, table: str, change: Callable[[Any], Any]) -> Report:
    """The report with each row of a table replaced by what `change` makes of it; None drops the row."""
    result = [change(row) for row in getattr(report.topology, table)]
    return changed(report, **{f"topology__{table}": [row for row in result if row is not None]})


def renamed(report: Report, names: Mapping[str, str]) -> Report:
    """The report with these words replaced wherever they stand, all at once."""
    words = re.compile("|".join(re.escape(name) for name in sorted(names, key=len, reverse=True)))
    return msgspec.json.decode(words.sub(lambda found: names[found[0]], encode_report(report).decode()), type=Report)


def renumbered(report: Report, by: int) -> Report:
    """The report with every bus number but those of root buses higher by `by`: as after a new bridge at boot."""
    roots = {row.root_bus for row in report.topology.pci}
    buses = {row.id[:7] for row in report.topology.pci} - roots
    return renamed(report, {f"{bus}:": f"{bus[:5]}{(int(bus[5:], 16) + by) % 256:02x}:" for bus in buses})


def shuffled(report: Report, order: Callable[[list[Any]], Any]) -> Report:
    """The report with all tables in another order."""
    for table in ("pci", "gpus", "nics", "netdevs", "paths"):
        mixed = list(getattr(report.topology, table))
        order(mixed)
        report = changed(report, **{f"topology__{table}": mixed})
    return report
