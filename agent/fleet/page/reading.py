"""Rows of a dataset, folded by the engine into one text a node where there are many: few of these texts differ.

Cells are joined by US, rows by RS; neither is let through from a value. "" is not known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from agent.fleet.engines import schema
from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import LookupQuery, Row, lookup, query, quote, statement, table_query
from agent.fleet.table import TEXT
from agent.fleet.tables import digest_column
from agent.model.labels import natural

US, RS = "\x1f", "\x1e"
RULES = 1_000  # the most frequent ones
HOST = (
    "node", "observed_at", "hostname", "serial", "chassis_serial", "hardware_class", "profile", "bios", "kernel", "os",
    "driver", "cuda", "rdma_stack_version", "nccl", "settings", "generator", "verdict", "received_at",
)  # fmt: skip
GPU = (
    "id", "label", "name", "vbios", "memory_mib", "mig", "driver_state", "nvlinks", "nvlinks_active", "fabric_state",
    "recovery_action", "speed", "width", "bandwidth", "uuid_of_domain", "clique",
)  # fmt: skip
RAIL = (
    "id", "rail", "label", "port", "model", "firmware", "nic_state", "link_layer", "state", "rate",
    "speed", "width", "bandwidth", "mtu",
)  # fmt: skip


class Texts(NamedTuple):
    """A text a node, each different one once: `of` is node -> place in `all`."""

    all: list[Any]
    of: dict[str, int]


def read_hosts(tables: Tables) -> dict[str, list[Any]]:
    """Columns `HOST` of every node, in the order of their names."""
    rows = tables.many_rows(table_query("host", HOST))
    rows.sort(key=lambda row: (natural(row[0]), row[0]))
    columns = map(list, zip(*rows, strict=True)) if rows else ([] for _ in HOST)
    columns_of: dict[str, list[Any]] = dict(zip(HOST, columns, strict=True))
    times = zip(columns_of["received_at"], columns_of["observed_at"], strict=True)
    columns_of["received_at"] = [arrived or seen for arrived, seen in times]  # earlier versions have no time of arrival
    return columns_of


_WIDE = {"speed": "conclusive_speed_gt_s", "width": "conclusive_width", "bandwidth": "bandwidth_gbyte_s"}
_GPU_CELLS = [
    *(("gpu", name) for name in GPU[:11]),
    *(("wide", _WIDE[name]) for name in GPU[11:14]),
    ("gpu", "cluster_uuid"), ("gpu", "clique"),
]  # fmt: skip
_RAIL_CELLS = [
    ("nic", "id"), ("nic", "rail"), ("nic", "label"), ("port", "port"), ("nic", "model"), ("nic", "firmware"),
    ("nic", "state"), ("port", "link_layer"), ("port", "state"), ("port", "rate_gbit_s"),
    *(("wide", _WIDE[name]) for name in RAIL[10:13]),
    ("port", "active_mtu"),
]  # fmt: skip


def _format_cells(cells: Sequence[tuple[str, str]]) -> str:
    """An expression that joins cells; of text no letter that joins is left."""
    types = {(table, column.name): column.type for table in ("gpu", "nic", "port") for column in schema.columns(table)}
    sql_cells = (_format_cell(quote(name, table), types.get((table, name)) == TEXT) for table, name in cells)
    return " || chr(31) || ".join(sql_cells)


def _format_cell(column: str, text: bool) -> str:
    if text:
        return f"replace(replace(coalesce({column}, ''), chr(31), '?'), chr(30), '?')"
    return f"coalesce(CAST({column} AS VARCHAR), '')"


_NODE = {"node": TEXT}
_LINKS = statement("page", "links")
GPUS = lookup(_NODE, "page", "gpus", links=_LINKS, cells=_format_cells(_GPU_CELLS))
RAILS = lookup(_NODE, "page", "rails", links=_LINKS, cells=_format_cells(_RAIL_CELLS))
UNJUDGED, JUDGED = (
    lookup(
        _NODE,
        "page",
        "checks",
        cells=f"{_format_cell('judged.rule', True)} || chr(31) || {_format_cell(f'judged.{column}', True)}",
        which=which,
    )
    for column, which in (("reason", "judged.state = 'unknown'"), ("state", "TRUE"))
)
FINDINGS = query(
    "page",
    "findings",
    place=" || chr(31) || ".join(_format_cell(name, True) for name in ("node", "subject", "devices")),
)


class NodeDigests:
    """Digests of all nodes' rows (agent/fleet/tables.py)."""

    def __init__(self, tables: Tables) -> None:
        self._rows = sorted(tables.rows(DIGESTS), key=lambda row: str(row[0]))

    def alike(self, *names: str) -> Texts:
        """Nodes with the same digests of these tables together; one without a digest is alone."""
        places: dict[Row, int] = {}
        of: dict[str, int] = {}
        for row in self._rows:
            key = tuple(row[_DIGESTED.index(name) + 1] for name in names)
            of[row[0]] = places.setdefault((row[0],) if None in key else key, len(places))
        return Texts(list(places), of)


_DIGESTED = ("gpu", "nic", "port", "link", "check")
DIGESTS = table_query("host", ("node", *map(digest_column, _DIGESTED)))


def read_gpus(tables: Tables, digests: NodeDigests) -> Texts:
    """Rows of cells `GPU`."""
    return _read_texts(tables, digests.alike("gpu", "link"), GPUS)


def read_rails(tables: Tables, digests: NodeDigests) -> Texts:
    """Rows of cells `RAIL`: one for each port of a rail."""
    return _read_texts(tables, digests.alike("nic", "port", "link"), RAILS)


def read_letters(tables: Tables, states: Mapping[str, str], digests: NodeDigests) -> tuple[list[str], Texts]:
    """The most frequent rules, sorted, and of every node a letter for each: blank where its report does not have it."""
    judged = _read_texts(tables, digests.alike("check"), JUDGED)
    states_of = [dict(read_cells(text)) for text in judged.all]
    nodes, counts = Counter(judged.of.values()), Counter[str]()
    for place, state_of in enumerate(states_of):
        counts.update(dict.fromkeys(state_of, nodes[place]))
    rules = sorted(sorted(counts, key=lambda rule: (-counts[rule], rule))[:RULES])
    letters = ["".join(states.get(state_of.get(rule, ""), " ") for rule in rules) for state_of in states_of]
    return rules, _distinct(letters, judged.of)


def read_unjudged(tables: Tables, digests: NodeDigests) -> Texts:
    """Rows of rule and reason of what could not be judged."""
    return _read_texts(tables, digests.alike("check"), UNJUDGED)


_FIRST_LOOKS, _COUNTED = query("page", "first_looks"), query("page", "counted_nodes")
_ERROR_COUNTERS, _ERRORS = query("page", "error_counters"), lookup({"name": TEXT}, "page", "errors")


def read_first_reports(tables: Tables) -> list[datetime]:
    """When each node was first seen, as far back as the history goes."""
    return [at for _, at in tables.rows(_FIRST_LOOKS) if at]


def read_findings(tables: Tables, most: int) -> list[Row]:
    """(rule, severity, label, summary, impact, remedy, evidence, where) of what is reported alike, the worst first.

    Then the most frequent. `where` holds rows of node, subject and devices. Of the first `most` all texts are given, of
    the rest summary, impact, remedy and evidence are None.
    """
    return [row[1:] for row in sorted(tables.rows(FINDINGS.bind(most=most)), key=lambda row: int(row[0]))]


def read_errors(tables: Tables) -> tuple[dict[str, int], set[str]]:
    """Sum of error counters of each node that has some, and the nodes of which any counter was read."""
    rows = tables.fetch_by_keys(_ERRORS, tables.rows(_ERROR_COUNTERS))
    return {node: int(count) for node, count in rows if count}, {node for (node,) in tables.rows(_COUNTED)}


def read_cells(text: str) -> list[list[str]]:
    """The rows of a folded text."""
    return [row.split(US) for row in text.split(RS)] if text else []


def _read_texts(tables: Tables, alike: Texts, texts: LookupQuery) -> Texts:
    """The text of one node of those that are alike, the first by name."""
    first: dict[int, str] = {}
    for node, place in alike.of.items():
        first.setdefault(place, node)
    text_of: dict[str, str] = dict(tables.many_rows(texts.of((node,) for node in first.values()))) if first else {}
    return _distinct([text_of.get(first[place]) or "" for place in range(len(first))], alike.of)


def _distinct(texts: Sequence[str], of: Mapping[str, int]) -> Texts:
    """Each different text once; without nodes that have none."""
    places: dict[str, int] = {}
    place_of = [places.setdefault(text, len(places)) if text else -1 for text in texts]
    return Texts(list(places), {node: place_of[place] for node, place in of.items() if place_of[place] >= 0})
