"""The hosts of a job, by their names or addresses in its logs, as reports with what a cause is joined with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import Pending, identifiers, lookup, quote, table_query
from agent.fleet.engines.schema import HISTORY
from agent.fleet.hostlist import AmbiguousName, NodeNames
from agent.fleet.stored_rows import StoredRow, build_named, build_part
from agent.fleet.table import TEXT
from agent.model.finding import Finding, Silenced, Summary
from agent.model.gpu import Fabric, Gpu
from agent.model.labels import group_by_key
from agent.model.nic import FabricNeighbor, Gid, Neighbor, Netdev, Nic, Port
from agent.model.node import Event, Node, Service, Software
from agent.model.report import Generator, Report, Source
from agent.model.topology import Topology

Rows = dict[str, list[StoredRow]]
COUNTERS = ("link_downed", "symbol_error", "out_of_sequence", "local_ack_timeout_err")


def make_report(name: str, rows: Rows, looked_at: datetime | None) -> Report:
    """What a cause is joined with: parts, their states, findings."""
    ports: defaultdict[str, list[Port]] = defaultdict(list)
    counters = {(row["nic"], row["port"]): row for row in rows.get("port_counter", ())}
    addresses = group_by_key((row["netdev"], str(row["address"]).partition("/")[0]) for row in rows.get("address", ()))
    for row in rows.get("port", ()):
        counted = counters.get((row["nic"], row["port"]), {})
        switch, number = row["neighbor_name"], row["neighbor_port"] or 0
        ports[row["nic"]].append(
            build_part(
                Port,
                row,
                counters={key: counted[key] for key in COUNTERS if counted.get(key) is not None},
                gids=_make_gids(row["roce_gid_index"], addresses.get(row["netdev"], [])),
                neighbor=FabricNeighbor(name=switch, port=number, source="dataset") if switch else None,
            )
        )
    host: StoredRow = next(iter(rows.get("host", ())), dict.fromkeys(_COLUMNS["host"]))
    states = [text.partition("=") for text in str(host["services"] or "").split()]
    return Report(
        generated_at="",
        observed_at=_write_moment(looked_at),
        generator=Generator(name="fabricscope", version=""),
        source=Source(kind="dataset"),
        node=Node(hostname=name),
        software=Software(
            services=[Service(name=service, state=state) for service, _, state in states],
            limits=_make_limits(host["limits"], host["process_limits"]),
            shared_memory_mib=host["shared_memory_mib"],
        ),
        topology=Topology(
            gpus=[
                build_named(Gpu, row, pci=row["pci"] or row["id"], fabric=_make_fabric(row))
                for row in rows.get("gpu", ())
            ],
            nics=[build_named(Nic, row, pci=row["id"], ports=ports[row["id"]]) for row in rows.get("nic", ())],
            netdevs=[build_named(Netdev, row, neighbor=_make_neighbor(row)) for row in rows.get("netdev", ())],
        ),
        events=[_make_event(row) for row in rows.get("event", ())],
        findings=[_make_finding(row) for row in rows.get("finding", ())],
        summary=Summary(verdict="unknown", counts={}),
    )


def _make_fabric(row: StoredRow) -> Fabric | None:
    state, status = row["fabric_state"], row["fabric_status"]
    return Fabric(state=state, status=status) if state or status else None


def _make_neighbor(row: StoredRow) -> Neighbor | None:
    system, chassis, port = (row[f"neighbor_{name}"] for name in ("system", "chassis", "port"))
    return Neighbor(system=system, chassis=chassis, port=port) if system or chassis else None


def _make_limits(*texts: str | None) -> dict[str, str]:
    """As a report has them."""
    parts = [part.rpartition("=") for text in texts if text for part in text.split("; ")]
    return {f"memlock {who}": value for who, _, value in parts}


def _make_event(row: StoredRow) -> Event:
    moments = {"at": _write_moment(row["last_at"]), "first_at": _write_moment(row["first_at"])}
    return build_part(Event, row, times=(row["times"] or "").split(), **moments)


def _write_moment(moment: datetime | None) -> str | None:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ") if moment is not None else None


def _make_gids(index: int | None, addresses: list[str]) -> list[Gid]:
    """The GID that NCCL should use, as the dataset has its index: it is made of the interface's IPv4 address."""
    plain = next((address for address in addresses if "." in address and ":" not in address), None)
    if index is None or plain is None:
        return []
    return [Gid(index=index, gid=f"::ffff:{plain}", type="RoCE v2")]


def _make_finding(row: StoredRow) -> Finding:
    until, reason = row["silenced_until"], row["silenced_reason"] or ""
    return build_part(
        Finding,
        row,
        label=row["label"] or row["subject"],
        silenced=Silenced(until=until, reason=reason) if row["silenced"] else None,
        devices=(row["devices"] or "").split(),
    )


_COLUMNS = {
    "host": ("services", "shared_memory_mib", "limits", "process_limits"),
    "gpu": (
        *("id", "label", "index", "uuid", "name", "vendor", "pci"),
        *("fabric_state", "fabric_status", "recovery_action", "pstate"),
    ),
    "nic": ("id", "label", "role", "rdma_device", "driver"),
    "port": (
        *("nic", "port", "link_layer", "state", "phys_state", "rate_gbit_s", "lid", "active_mtu"),
        *("roce_gid_index", "netdev", "neighbor_name", "neighbor_port"),
    ),
    "netdev": ("id", "label", "nic", "operstate", "mtu", "neighbor_system", "neighbor_chassis", "neighbor_port"),
    "finding": (
        *("rule", "severity", "subject", "label", "summary", "impact", "remedy", "confidence", "fingerprint"),
        *("devices", "silenced", "silenced_reason", "silenced_until"),
    ),
}
_COLUMNS_NOW = {
    **_COLUMNS,
    "port_counter": ("nic", "port", *COUNTERS),
    "address": ("netdev", "address"),
    "event": (
        *("kind", "subject", "code", "text", "source", "count"),
        *("first_at", "last_at", "logged", "boot", "times"),
    ),
}
_SAME_EVENT = ("kind", "subject", "code", "last_at", "logged")
_NEAR = timedelta(days=1)  # clocks of logs may be of another zone
_KEYS = {"node": TEXT}


_NOW = {
    table: lookup(_KEYS, "job_hosts", "now", columns=identifiers(columns, "thing"), table=quote(table))
    for table, columns in _COLUMNS_NOW.items()
}
_THEN = {
    table: lookup(_KEYS, "job_hosts", "then", columns=identifiers(columns, "thing"), history=quote(HISTORY + table))
    for table, columns in _COLUMNS.items()
}
_LOOKED_AT = lookup(_KEYS, "job_hosts", "looked_at")
_EVENTS_NEAR = lookup(_KEYS, "job_hosts", "events_near", columns=identifiers(_COLUMNS_NOW["event"], "thing"))


def read_hosts(
    tables: Tables, names: Iterable[str], moment: datetime | None
) -> tuple[list[tuple[Report, str]], list[str]]:
    """Reports of the hosts of these names, each with the name of the job; and why others have none."""
    nodes, problems = _find_nodes(tables, list(names))
    if not nodes:
        return [], problems
    values = [(node,) for node in nodes]
    newest = {table: tables.submit_by_keys(query, values) for table, query in _NOW.items()}
    earlier: dict[str, Pending] = {}
    looks: dict[str, datetime] = {}
    if moment is not None:
        for table, query in _THEN.items():
            earlier[table] = tables.submit_by_keys(query.bind(table=table, moment=moment), values)
        earlier["event"] = tables.submit_by_keys(_EVENTS_NEAR.bind(**_surround(moment)), values)
        looks = dict(tables.fetch_by_keys(_LOOKED_AT.bind(moment=moment), values))
    now, then = _sort_by_node(newest), _sort_by_node(earlier)
    reports = []
    for node, name in sorted(nodes.items()):
        kept = {table: now[node][table] for table in ("port_counter", "address")}
        rows_of = {**then[node], **kept} if node in looks else now[node]
        rows_of["event"] = _list_events(rows_of.get("event", []), now[node]["event"])
        reports.append((make_report(name, rows_of, looks.get(node)), name))
        if moment is not None and node not in looks:
            problems.append(f"{name}: the dataset has no report of that time; the newest is used")
    return reports, problems


def _sort_by_node(begun: Mapping[str, Pending]) -> defaultdict[str, Rows]:
    """Rows of each node by table, in an order of their own. `begun`: of tables, node and columns."""
    rows_of: defaultdict[str, Rows] = defaultdict(lambda: defaultdict(list))
    for table, pending in begun.items():
        for node, *row in sorted(pending(), key=str):
            rows_of[node][table].append(dict(zip(_COLUMNS_NOW[table], row, strict=True)))
    return rows_of


def _surround(moment: datetime) -> dict[str, datetime]:
    return {"moment": max(moment, datetime.min + _NEAR) - _NEAR, "until": min(moment, datetime.max - _NEAR) + _NEAR}  # noqa: DTZ901


def _list_events(near: Iterable[StoredRow], newest: Iterable[StoredRow]) -> list[StoredRow]:
    """Events about the moment, those without a date as the newest report has them."""
    lines = [*near, *(row for row in newest if row["last_at"] is None)]
    by_key = {tuple(row[name] for name in _SAME_EVENT): row for row in sorted(lines, key=lambda row: row["count"] or 0)}
    return sorted(by_key.values(), key=lambda row: [str(value) for value in (row["last_at"], *row.values())])


def _find_nodes(tables: Tables, names: list[str]) -> tuple[dict[str, str], list[str]]:
    """Nodes of the dataset, and the names by which the job has them."""
    known = NodeNames((node, host) for node, host in tables.rows(table_query("host", ("node", "hostname"))))
    nodes: dict[str, str] = {}
    problems, addresses = [], []
    for name in names:
        try:
            node = known.find_short(name) if not _is_address(name) else None
        except AmbiguousName as error:
            problems.append(str(error))
            continue
        if node is not None:
            nodes.setdefault(node, name)
        else:
            addresses.append(name)
    if any(_is_address(name) for name in addresses):
        wanted = {name for name in addresses if _is_address(name)}
        for node, address in tables.many_rows(table_query("address", ("node", "address"))):
            plain = str(address).partition("/")[0]
            if plain in wanted:
                nodes.setdefault(node, plain)
    missing = [name for name in addresses if name not in nodes.values()]
    if missing:
        problems.append(f"the dataset has no report of {', '.join(missing[:3])}{', ..' if len(missing) > 3 else ''}")
    return nodes, problems


def _is_address(name: str) -> bool:
    return name.replace(".", "").isdigit() or ":" in name
