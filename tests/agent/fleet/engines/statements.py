"""Every query that a question can ask, for tests."""

from __future__ import annotations

from datetime import datetime
from types import ModuleType
from typing import Any

from agent.fleet import episodes, expected
from agent.fleet.cluster.from_dataset import query_identity_rows
from agent.fleet.engines.query import WANTED, LookupQuery, Query
from agent.fleet.episodes import finding_changes, repeat, silences
from agent.fleet.page import from_dataset, reading
from agent.fleet.questions import (
    amounts,
    attributes,
    baseline,
    domains,
    drift,
    drift_rows,
    error_rates,
    findings,
    identities,
    in_common,
    job,
    job_hosts,
    kinds,
    multisets,
    options,
    outliers,
    peer_classes,
    summary,
)
from agent.fleet.table import BOOL, FLOAT, INT, TEXT, TIME

SINCE = datetime(2026, 1, 15, 8, 59, 59)  # noqa: DTZ001  # UTC without a zone is what is asked for
MODULES = (
    domains,
    error_rates,
    amounts,
    multisets,
    baseline,
    drift,
    findings,
    identities,
    in_common,
    job,
    job_hosts,
    kinds,
    identities,
    options,
    outliers,
    peer_classes,
    attributes,
    summary,
    drift_rows,
    from_dataset,
    reading,
    episodes,
    finding_changes,
    repeat,
    expected,
    silences,
)
VALUES = {TEXT: "x", INT: 1, FLOAT: 0.5, BOOL: True, TIME: SINCE}


def _in(name: str, value: Any) -> list[tuple[str, Query]]:
    if isinstance(value, LookupQuery):
        row = tuple(VALUES[kind] for kind in value.keys.values())
        known = {"moment": SINCE, "until": SINCE, "table": "port"}
        unbound = {key: known[key] for key in known if f"${key}" in value.query.sql}
        return [(name, value.bind(**unbound).of([row, (None,) * len(row)]))]
    if isinstance(value, Query):
        return [(name, value.bind(moment=SINCE) if "$moment" in value.sql else value)]
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (list, tuple)) else ()
    return [each for key, item in items for each in _in(f"{name}[{key}]", item)]


def statements() -> dict[str, Query]:
    """All that stand in modules, and those that are made when they are asked, by name."""
    found: dict[str, Query] = {}
    for module in MODULES:
        found.update(_of(module))
    for table in ("host", "port", "nic", "netdev", "gpu"):
        for beside_files in (False, True):
            found[f"cluster.{table}.{beside_files}"] = query_identity_rows(table, ("node",), beside_files)
    found = {name: query.bind(most=3) if "$most" in query.sql else query for name, query in found.items()}
    assert all(relation.name == WANTED for query in found.values() for relation in query.relations)
    return found


def _of(module: ModuleType) -> dict[str, Query]:
    name = module.__name__.rpartition(".")[2]
    return {
        key: query
        for attribute, value in vars(module).items()
        if not attribute.startswith("__")
        for key, query in _in(f"{name}.{attribute}", value)
    }
