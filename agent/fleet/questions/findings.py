"""Findings of all nodes, grouped: one rule on many nodes is one answer. What most of a class has is the class's."""

from __future__ import annotations

from typing import Any

import msgspec

from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import Row, key_types, lookup, query, statement
from agent.fleet.hostlist import fold
from agent.fleet.questions.baseline import CLASS, SIZES, sizes
from agent.fleet.questions.deviations import LABELS
from agent.fleet.questions.options import ORDINARY, Options, format_stamp, submit_stale_nodes
from agent.model.finding import SEVERITIES
from agent.model.labels import group_by_key

_WHOLE = 0.5  # share of a class from which on a finding is a matter of the class
_PARTS = 8  # physical parts that are named
_NAMED = 50  # nodes of such a class that are named as not having it


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """How many nodes of a class have it."""

    hardware_class: str
    nodes: int
    of: int
    without: str = ""  # of a finding of the whole class: the nodes without it, where these are few


class BandwidthLoss(msgspec.Struct, frozen=True, kw_only=True):
    """What faults cost together: bandwidth between nodes, by the model of recommend."""

    findings: int
    gpus: int  # all that were asked
    percent: float  # of the bandwidth between nodes of all these GPUs, each node by its worst fault
    rule: str  # of the one whose repair gives back most
    node: str
    label: str
    node_percent: float  # that a job with that node loses


class FindingGroup(msgspec.Struct, frozen=True, kw_only=True):
    """One rule on many nodes."""

    rule: str
    severity: str
    of_class: bool  # most nodes of each of these classes have it
    nodes: int
    findings: int
    hosts: str = ""  # folded; empty for a matter of the class
    stale: str = ""  # those of them without a recent report, folded
    labels: list[str] = []  # of the subjects; empty: too many
    parts: list[str] = []  # "gpu0267 GPU4: SXM module 5, serial 1654"; empty: too many, or not known
    classes: list[Share] = []
    summary: str | None = None  # of one of them
    remedy: str | None = None
    cost_percent: float | None = None  # bus bandwidth that the worst of them costs a job with its node
    cost_nodes: int | None = None  # 1: inside a node; more: of jobs on several nodes
    by_fleet: int = 0  # of the findings: made by the fleet from two reports, not by the node
    first_seen: str | None = None  # since when the oldest of them is there, RFC 3339


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `fleet findings`, the worst first."""

    findings: list[FindingGroup] = []
    nodes: int = 0  # all that were asked
    switches: int = 0  # likewise
    lost: BandwidthLoss | None = None


class _Group(msgspec.Struct):
    hosts: set[str]
    labels: set[str]
    parts: set[str]
    findings: int = 0


def find_findings(tables: Tables, options: Options = ORDINARY) -> Findings:
    """All findings of the latest reports, grouped by rule and severity."""
    of = sizes(tables.submit(SIZES))
    whole: dict[tuple[str, str], list[Any]] = {}
    single: dict[tuple[str, str], list[Any]] = {}
    for row in tables.rows(COUNTS):
        rule, severity, name, nodes = row[:4]
        size = of.get(name, 0)
        target = whole if size >= options.fewest and nodes > _WHOLE * size else single
        target.setdefault((rule, severity), []).append(row)
    lacking = _find_lacking(tables, whole, of)
    begun = submit_stale_nodes(tables, options)
    hosts, stale = _find_hosts(tables, single), {node for (node,) in begun()}
    groups = [_make_group(rows, of, lacking, **_count_class(rows)) for rows in whole.values()]
    groups += [_make_group(rows, of, {}, **_describe_nodes(hosts[key], stale)) for key, rows in single.items()]
    seen = {(rule, severity): format_stamp(began) for rule, severity, began in tables.rows(FIRST_SEEN)}
    dated = [msgspec.structs.replace(group, first_seen=seen.get((group.rule, group.severity))) for group in groups]
    switches = tables.rows(SWITCHES)[0][0]
    return Findings(
        findings=sorted(dated, key=_rank),
        nodes=sum(of.values()) - switches,
        switches=switches,
        lost=_make_bandwidth_loss(tables),
    )


def _make_bandwidth_loss(tables: Tables) -> BandwidthLoss | None:
    """Of each node its worst fault, and the worst of all."""
    rows = sorted(tables.rows(COSTS), key=lambda row: (-row[3], row[0], row[1], str(row[2])))
    if not rows:
        return None
    worst: dict[str, float] = {}
    for node, _, _, percent, gpus in rows:
        worst.setdefault(node, percent * (gpus or 0))
    total = tables.rows(GPUS)[0][0] or 0
    node, rule, label, percent, _ = rows[0]
    return BandwidthLoss(
        findings=len(rows),
        gpus=total,
        percent=round(sum(worst.values()) / max(1, total), 3),
        rule=rule,
        node=node,
        label=label or "node",
        node_percent=percent,
    )


_GROUP = key_types("finding", ("rule", "severity", CLASS))
COUNTS = query("findings", "counts")
SWITCHES = query("fleet", "switches")
COSTS, GPUS = query("findings", "costs"), query("findings", "gpus")
FIRST_SEEN = query("findings", "first_seen", episode=statement("views", "finding_episode"))
NODES = lookup(_GROUP, "findings", "nodes")
WITHOUT = lookup(_GROUP, "findings", "nodes_without")


def _find_lacking(tables: Tables, whole: dict[tuple[str, str], list[Any]], of: dict[str, int]) -> dict[Row, list[str]]:
    """Rule, severity and class -> nodes of the class that do not have it, where these are few."""
    few = [row[:3] for rows in whole.values() for row in rows if 0 < of[row[2]] - row[3] <= _NAMED]
    return group_by_key((tuple(key), node) for *key, node in tables.fetch_by_keys(WITHOUT, few))


def _make_group(rows: list[Any], of: dict[str, int], lacking: dict[Row, list[str]], **own: Any) -> FindingGroup:
    """`own`: what differs between a matter of a class and one of some nodes."""
    percent, nodes = max(((row[7], row[8]) for row in rows if row[7] is not None), default=(None, None))
    shares = [
        Share(
            hardware_class=name or "(not known)", nodes=count, of=of.get(name, count),
            without=fold(lacking.get((rule, severity, name), ())),
        )
        for rule, severity, name, count, *_ in sorted(rows, key=lambda row: (-row[3], str(row[2])))
    ]  # fmt: skip
    return FindingGroup(
        rule=rows[0][0],
        severity=rows[0][1],
        classes=shares,
        summary=min((row[5] for row in rows if row[5]), default=None),
        remedy=min((row[6] for row in rows if row[6]), default=None),
        cost_percent=percent,  # of the worst
        cost_nodes=nodes,
        by_fleet=sum(row[9] for row in rows),
        **own,
    )


def _count_class(rows: list[Any]) -> dict[str, Any]:
    return {"of_class": True, "nodes": sum(row[3] for row in rows), "findings": sum(row[4] for row in rows)}


def _describe_nodes(group: _Group, stale: set[str]) -> dict[str, Any]:
    return {
        "of_class": False,
        "nodes": len(group.hosts),
        "findings": group.findings,
        "hosts": fold(group.hosts),
        "stale": fold(group.hosts & stale),
        "labels": sorted(group.labels) if len(group.labels) <= LABELS else [],
        "parts": sorted(group.parts) if len(group.parts) <= _PARTS else [],
    }


def _find_hosts(tables: Tables, single: dict[tuple[str, str], list[Any]]) -> dict[tuple[str, str], _Group]:
    """Who has what is no matter of a class."""
    groups = {key: _Group(set(), set(), set()) for key in single}
    keys = [(rule, severity, row[2]) for (rule, severity), rows in sorted(single.items()) for row in rows]
    for rule, severity, node, label, part, serial in tables.fetch_by_keys(NODES, keys):
        group = groups[rule, severity]
        group.hosts.add(node)
        group.findings += 1
        if label:
            group.labels.add(label)
        if part and part != "node":
            name = " ".join(filter(None, (node, label)))
            group.parts.add(f"{name}: {part}" + (f", serial {serial}" if serial else ""))
    return groups


def _rank(group: FindingGroup) -> tuple[int, bool, float, int, str]:
    """The worst severity first; of one severity what costs most."""
    worst = SEVERITIES.index(group.severity) if group.severity in SEVERITIES else len(SEVERITIES)
    return -worst, group.of_class, -(group.cost_percent or 0.0), -group.nodes, group.rule
