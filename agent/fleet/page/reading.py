"""Rows of a dataset, folded by the engine into one text a node where there are many: few of these texts differ.

Cells are joined by US, rows by RS; neither is let through from a value. "" is not known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import ibis
from ibis.expr import types as ir

from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import Row

US, RS = "\x1f", "\x1e"
RULES = 1_000  # the most frequent ones; the catalogue has some 170
BITS, PACKED = 3, 20  # of a letter, and letters in a number
HOST = (
    "node", "observed_at", "hostname", "serial", "chassis_serial", "hardware_class", "profile", "bios", "kernel", "os",
    "driver", "cuda", "rdma_stack_version", "nccl", "settings", "generator", "verdict",
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

    all: list[str]
    of: dict[str, int]


def hosts(tables: Tables) -> list[dict[str, Any]]:
    """Columns `HOST` of every node."""
    rows = tables.rows(tables.latest("host").select(*HOST))
    return [dict(zip(HOST, row, strict=True)) for row in rows]


def gpus(tables: Tables) -> Texts:
    """Rows of cells `GPU`."""
    gpu, link = tables.latest("gpu"), _links(tables)
    rows = gpu.left_join(link, [gpu.node == link.link_node, gpu.pci == link.link_id])
    cells = [
        rows.id, rows.label, rows.name, rows.vbios, rows.memory_mib, rows.mig, rows.driver_state, rows.nvlinks,
        rows.nvlinks_active, rows.fabric_state, rows.recovery_action, rows.speed, rows.width, rows.bandwidth,
        rows.cluster_uuid, rows.clique,
    ]  # fmt: skip
    return _folded(tables, rows, cells)


def rails(tables: Tables) -> Texts:
    """Rows of cells `RAIL`: one for each port of a rail."""
    nic, port, link = tables.latest("nic"), tables.latest("port"), _links(tables)
    nic = nic.filter(nic.rail.notnull())
    ports = port.select(
        port_node=port.node, port_nic=port.nic, number=port.port, link_layer=port.link_layer, port_state=port.state,
        rate=port.rate_gbit_s, mtu=port.active_mtu,
    )  # fmt: skip
    rows = nic.left_join(ports, [nic.node == ports.port_node, nic.id == ports.port_nic])
    rows = rows.left_join(link, [rows.node == link.link_node, rows.id == link.link_id])
    cells = [
        rows.id, rows.rail, rows.label, rows.number, rows.model, rows.firmware, rows.state, rows.link_layer,
        rows.port_state, rows.rate, rows.speed, rows.width, rows.bandwidth, rows.mtu,
    ]  # fmt: skip
    return _folded(tables, rows, cells)


def letters(tables: Tables, states: Mapping[str, str]) -> tuple[list[str], Texts]:
    """The rules, sorted, and of every node a letter for each: blank where its report does not know the rule.

    Letters are packed into numbers by the engine: a text of its own for each of 100,000 nodes is slow to put in order.
    A node has a rule once, so that the sum of its bits is all of them; not every engine has another way to join bits.
    """
    check = tables.latest("check")
    frequent = check.group_by("rule").agg(reports=check.count())
    frequent = frequent.order_by([frequent.reports.desc(), frequent.rule]).limit(RULES).select("rule")
    rules = sorted(rule for (rule,) in tables.rows(frequent))
    numbered = frequent.mutate(place=ibis.row_number().over(order_by=frequent.rule))
    rows = check.inner_join(numbered, "rule")
    code = rows.state.cases(*((state, at) for at, state in enumerate(states, 1)), else_=0).cast("int64")
    shifted = code << (rows.place % PACKED * BITS).cast("int32")  # PostgreSQL shifts by no larger number
    parts = {
        f"part{at}": (rows.place // PACKED == at).ifelse(shifted, 0).cast("int64").sum()
        for at in range(-(-len(rules) // PACKED))
    }
    packed = tables.rows(rows.group_by("node").agg(**parts)) if parts else []
    alphabet = [" ", *states.values()]
    known: dict[tuple[int, ...], str] = {}
    told = []
    for node, *numbers in packed:
        key = tuple(numbers)
        if key not in known:
            known[key] = "".join(_unpacked(key, at, alphabet) for at in range(len(rules)))
        told.append((node, known[key]))
    return rules, _texts(told)


def unjudged(tables: Tables) -> Texts:
    """Rows of rule and reason of what could not be judged."""
    check = tables.latest("check")
    check = check.filter(check.state == "unknown")
    return _folded(tables, check, [check.rule, check.reason])


def first_looks(tables: Tables) -> list[datetime]:
    """When each node was first seen, as far back as the history goes."""
    change = tables.history("change")
    change = change.filter(change["table"] == "host")
    return [at for _, at in tables.rows(change.group_by("node").agg(first=change.observed_at.min())) if at]


def findings(tables: Tables, most: int) -> list[Row]:
    """(rule, severity, label, summary, impact, remedy, evidence, where) of what is said alike, the worst first.

    Then the most frequent. `where` holds rows of node and subject. Of the first `most` all texts are told, of the rest
    summary, impact, remedy and evidence are None.
    """
    finding = tables.latest("finding")
    parts = ("rule", "severity", "label", "summary", "impact", "remedy", "evidence")
    alike = finding.mutate(**{name: finding[name].fill_null("") for name in parts})
    told = alike.group_by(*parts).agg(where=_joined([alike.node, alike.subject]).group_concat(RS), count=alike.count())
    rank = told.severity.cases(("critical", 0), ("error", 1), ("warning", 2), else_=3)
    number = ibis.row_number().over(order_by=[rank, told["count"].desc(), *(told[name] for name in parts)])
    told = told.mutate(number=number)
    whole = {name: (told.number < most).ifelse(told[name], ibis.null("string")) for name in parts[3:]}
    chosen = told.mutate(**whole).select("number", *parts, "where")
    return [row[1:] for row in sorted(tables.rows(chosen), key=lambda row: int(row[0]))]


def errors(tables: Tables) -> tuple[dict[str, int], set[str]]:
    """Sum of error counters of each node that has some, and the nodes of which any counter was read."""
    counter = tables.latest("counter")
    name = counter.name.lower()
    bad = name.contains("err") | name.contains("discard") | name.contains("link_downed") | name.contains("recovery")
    rows = tables.rows(counter.group_by("node").agg(count=bad.ifelse(counter.value, 0).sum()))
    return {node: int(count or 0) for node, count in rows if count}, {node for node, _ in rows}


def cells(text: str) -> list[list[str]]:
    """The rows of a folded text."""
    return [row.split(US) for row in text.split(RS)] if text else []


def _unpacked(numbers: tuple[int, ...], place: int, alphabet: list[str]) -> str:
    part, at = divmod(place, PACKED)
    code = numbers[part] >> (at * BITS) & (1 << BITS) - 1
    return alphabet[code] if code < len(alphabet) else " "


def _links(tables: Tables) -> ir.Table:
    link = tables.latest("link")
    sure = link.quality == "conclusive"
    return link.select(
        link_node=link.node,
        link_id=link.id,
        speed=link.conclusive_speed_gt_s,
        width=link.conclusive_width,
        bandwidth=sure.ifelse(link.bandwidth_gbyte_s, ibis.null("float64")),
    )


def _folded(tables: Tables, rows: ir.Table, cells: Sequence[ir.Value]) -> Texts:
    """Rows of a node in the order of their text, so that the first cells say it."""
    return _texts(tables.rows(rows.group_by("node").agg(text=_joined(cells).collect().sort().join(RS))))


def _joined(cells: Sequence[ir.Value]) -> ir.StringValue:
    return ibis.literal(US).join([_cell(each) for each in cells])


def _cell(value: ir.Value) -> ir.StringValue:
    if isinstance(value, ir.StringValue):
        return value.fill_null("").replace(US, "?").replace(RS, "?")
    text: ir.StringValue = value.cast("string").fill_null("")
    return text


def _texts(rows: Sequence[Row]) -> Texts:
    places: dict[str, int] = {}
    of = {node: places.setdefault(text or "", len(places)) for node, text in sorted(rows, key=lambda row: str(row[0]))}
    return Texts(list(places), of)
