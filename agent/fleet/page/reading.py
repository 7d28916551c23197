"""Rows of a dataset, folded by the engine into one text a node where there are many: few of these texts differ.

Cells are joined by US, rows by RS; neither is let through from a value. "" is not known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from operator import itemgetter
from random import SystemRandom
from typing import Any, NamedTuple

from agent.fleet.cluster.graph import natural
from agent.fleet.engines import schema
from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import LookupQuery, Query, Row, lookup, query, quote, statement, table_query
from agent.fleet.table import INT, TEXT
from agent.fleet.tables import digest_column

US, RS = "\x1f", "\x1e"
MOST_KINDS = 5_000  # of nodes: beyond, the engine distinguishes them
RULES = 1_000  # the most frequent ones
FACTOR_BITS = 48  # times 5 for the state and RULES is less than 63
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


def _format_raw(cells: Sequence[tuple[str, str]], table: str) -> str:
    """The cells of one table in the same way, as they are: to be compared, not to be shown."""
    mine = (f"coalesce(CAST({quote(name)} AS VARCHAR), '')" for where, name in cells if where == table)
    return f"concat_ws(chr(31), {', '.join(mine)})"


_NODE = {"node": TEXT}
_LINKS = statement("page", "links")
_NUMBERED = statement("page", "numbered", told="told")
GPU_KINDS = query("page", "gpu_kinds", links=_LINKS, numbered=_NUMBERED, cells=_format_raw(_GPU_CELLS, "gpu"))
GPUS = lookup(_NODE, "page", "gpus", links=_LINKS, cells=_format_cells(_GPU_CELLS))
RAIL_KINDS = query(
    "page",
    "rail_kinds",
    links=_LINKS,
    numbered=_NUMBERED,
    numbered_port=statement("page", "numbered", told="told_port"),
    nic_cells=_format_raw(_RAIL_CELLS, "nic"),
    port_cells=_format_raw(_RAIL_CELLS, "port"),
)
RAILS = lookup(_NODE, "page", "rails", links=_LINKS, cells=_format_cells(_RAIL_CELLS))
UNJUDGED_KINDS = query("page", "unjudged_kinds")
UNJUDGED = lookup(
    _NODE,
    "page",
    "unjudged",
    cells=f"{_format_cell('judged.rule', True)} || chr(31) || {_format_cell('judged.reason', True)}",
)
FINDINGS = query(
    "page",
    "findings",
    place=" || chr(31) || ".join(_format_cell(name, True) for name in ("node", "subject", "devices")),
)


class NodeDigests:
    """Digests of all nodes' rows (agent/fleet/tables.py); none where an earlier version ingested some of them."""

    def __init__(self, tables: Tables) -> None:
        rows = tables.rows(DIGESTS)
        self._rows = sorted(rows) if all(None not in row for row in rows) else []

    def alike(self, *names: str) -> Texts | None:
        """Nodes with the same digests of these tables together; None: not known, or there are too many kinds."""
        places: dict[Row, int] = {}
        chosen = itemgetter(*(_DIGESTED.index(name) + 1 for name in names))
        of = {row[0]: places.setdefault(chosen(row), len(places)) for row in self._rows}
        return Texts(list(places), of) if of and len(places) <= MOST_KINDS else None


_DIGESTED = ("gpu", "nic", "port", "link", "check")
DIGESTS = table_query("host", ("node", *map(digest_column, _DIGESTED)))


def read_gpus(tables: Tables, digests: NodeDigests) -> Texts:
    """Rows of cells `GPU`."""
    return _read_texts(tables, digests.alike("gpu", "link"), GPU_KINDS, GPUS)


def read_rails(tables: Tables, digests: NodeDigests) -> Texts:
    """Rows of cells `RAIL`: one for each port of a rail."""
    return _read_texts(tables, digests.alike("nic", "port", "link"), RAIL_KINDS, RAILS)


def read_letters(tables: Tables, states: Mapping[str, str], digests: NodeDigests) -> tuple[list[str], Texts]:
    """The rules, sorted, and of every node a letter for each: blank where its report does not have the rule.

    Without digests nodes are put together by a sum over their rules, each with a random factor: that two nodes whose
    states differ have the same sum is one chance of 2**FACTOR_BITS. Letters are then read of one node of each sum.
    """
    alike = digests.alike("check")
    if alike is None:
        rules = [rule for (rule,) in tables.rows(_RULES)]
        chance = SystemRandom()
        factors = [(rule, chance.getrandbits(FACTOR_BITS)) for rule in rules]
        alike = _read_texts_of(tables.fetch_by_keys(state_sums(states), factors))
        rows = tables.fetch_by_keys(STATES_OF, [(node,) for node in _list_first(alike)])
    else:
        rows = tables.fetch_by_keys(STATES_OF, [(node,) for node in _list_first(alike)])
        rules = _most_frequent(rows, alike)
    rules.sort()
    places = {rule: at for at, rule in enumerate(rules)}
    first = _list_first(alike)
    letters_of = {node: [" "] * len(rules) for node in first}
    for node, rule, state in rows:
        if rule in places:
            letters_of[node][places[rule]] = states.get(state, " ")
    return rules, _distinct(["".join(letters_of[node]) for node in first], alike.of)


def _most_frequent(rows: Sequence[Row], alike: Texts) -> list[str]:
    """As the query `rules` finds them. `rows`: node and rule of one node of each kind."""
    nodes, counts = Counter(alike.of.values()), Counter[str]()
    for node, rule, _ in rows:
        counts[rule] += nodes[alike.of[node]]
    return sorted(counts, key=lambda rule: (-counts[rule], rule))[:RULES]


_RULES = query("page", "rules").bind(most=RULES)


STATES_OF = lookup(_NODE, "page", "states")


def state_sums(states: Mapping[str, str]) -> LookupQuery:
    """Of each node the sum of its rules' factors, each times the number of the rule's state."""
    codes = " ".join(f"WHEN $state_{at} THEN {at}" for at in range(1, len(states) + 1))
    bound = {f"state_{at}": state for at, state in enumerate(states, 1)}
    return lookup({"rule": TEXT, "factor": INT}, "page", "state_sums", codes=codes).bind(**bound)


def read_unjudged(tables: Tables, digests: NodeDigests) -> Texts:
    """Rows of rule and reason of what could not be judged."""
    return _read_texts(tables, digests.alike("check"), UNJUDGED_KINDS, UNJUDGED)


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


def _read_texts(tables: Tables, alike: Texts | None, kinds: Query, texts: LookupQuery) -> Texts:
    """The text of one node of those that have the same rows, the first by name. `kinds`: where no digests are known."""
    alike = _read_texts_of(tables.many_rows(kinds)) if alike is None else alike
    first = _list_first(alike)
    text_of: dict[str, str] = dict(tables.fetch_by_keys(texts, [(node,) for node in first]))
    return _distinct([text_of.get(node) or "" for node in first], alike.of)


def _distinct(texts: Sequence[str], of: Mapping[str, int]) -> Texts:
    """Each different text once; without nodes that have none."""
    places: dict[str, int] = {}
    place_of = [places.setdefault(text, len(places)) if text else -1 for text in texts]
    return Texts(list(places), {node: place_of[place] for node, place in of.items() if place_of[place] >= 0})


def _list_first(texts: Texts) -> list[str]:
    """A node for each text."""
    first: dict[int, str] = {}
    for node, place in texts.of.items():
        first.setdefault(place, node)
    return [first[place] for place in range(len(texts.all))]


def _read_texts_of(rows: Sequence[Row]) -> Texts:
    places: dict[Any, int] = {}
    of = {node: places.setdefault(text or "", len(places)) for node, text in sorted(rows, key=lambda row: str(row[0]))}
    return Texts(list(places), of)
