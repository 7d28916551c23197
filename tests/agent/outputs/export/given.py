"""Reports that every form is tried with: all fixture machines, faults, one with nothing in it, hostile ones."""

from __future__ import annotations

from typing import Any

import msgspec

from agent.model.report import Report
from tests.machines import HOSTS, SOME_FAULTS, scan_machine

H100 = "8xh100-sxm-2s-8xcx7-ib-4nvsw"
MACHINES = [(host, None) for host in HOSTS] + [("", fault) for fault in SOME_FAULTS]
EVIL = "a\"b\\c\n</gpu>&amp;\x1b[31m -->\x00 é 💥 {} = # 'x' " + "z" * 2000
NOT_EVIL = {"schema", "kind", "status", "state", "severity", "verdict", "role", "driver_state", "protocol", "quality"}
IDENTITIES = {"id", "pci", "parent", "gpu", "nic", "subject", "a", "b", "hops", "rule", "name", "target"}


def hostile(report: Report, names_only: bool) -> Report:
    """The report with EVIL for every text; `names_only`: for what people and firmware choose, ids stay."""
    remaining = NOT_EVIL | IDENTITIES if names_only else NOT_EVIL

    def evil(value: Any, key: str) -> Any:
        if isinstance(value, dict):
            return {name: evil(item, name) for name, item in value.items()}
        if isinstance(value, list):
            return [evil(item, key) for item in value]
        return EVIL if isinstance(value, str) and key not in remaining else value

    result = evil(msgspec.to_builtins(report), "")
    if names_only:
        for row in result["topology"]["gpus"] + result["topology"]["nics"]:
            row["name"] = row["model"] = EVIL
    return msgspec.convert(result, Report)


def bare(report: Report) -> Report:
    """The same host, of which nothing could be read."""
    return msgspec.structs.replace(
        scan_machine("cpu-only-2s"),
        node=type(report.node)(),
        topology=type(report.topology)(),
        probes=[],
        checks=[],
        findings=[],
        gpudirect=[],
    )


def with_gpu(report: Report, **changes: Any) -> Report:
    """The report with its first GPU changed."""
    first, *others = report.topology.gpus
    gpus = [msgspec.structs.replace(first, **changes), *others]
    return with_topology(report, gpus=gpus)


def with_topology(report: Report, **changes: Any) -> Report:
    """The report with rows of its topology changed."""
    return msgspec.structs.replace(report, topology=msgspec.structs.replace(report.topology, **changes))
