"""The hosts of a job, by their names or addresses in its logs, as reports with what a cause is joined with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import lookup, quote, table_query
from agent.fleet.engines.schema import HISTORY
from agent.fleet.hostlist import AmbiguousName, NodeNames
from agent.fleet.table import TEXT
from agent.model.finding import Finding, Silenced, Summary
from agent.model.gpu import Fabric, Gpu
from agent.model.nic import FabricNeighbor, Gid, Neighbor, Netdev, Nic, Port
from agent.model.node import Event, Node, Service, Software
from agent.model.report import Generator, Report, Source
from agent.model.topology import Topology

Rows = dict[str, list[tuple[Any, ...]]]
COUNTERS = ("link_downed", "symbol_error", "out_of_sequence", "local_ack_timeout_err")


def make_report(name: str, rows: Rows, looked_at: datetime | None) -> Report:
    """What a cause is joined with: parts, their states, findings."""
    host = next(iter(rows.get("host", [])), (name, *(None,) * 5))
    ports: dict[str, list[Port]] = defaultdict(list)
    counters = {(row[0], row[1]): dict(zip(COUNTERS, row[2:], strict=True)) for row in rows.get("port_counter", [])}
    addresses: dict[str, list[str]] = defaultdict(list)
    for netdev, address in rows.get("address", []):
        addresses[netdev].append(str(address).partition("/")[0])
    for nic, port, layer, state, phys, rate, lid, mtu, gid, netdev, switch, switch_port in rows.get("port", []):
        counted = {key: value for key, value in counters.get((nic, port), {}).items() if value is not None}
        ports[nic].append(
            Port(
                port=port,
                link_layer=layer,
                state=state,
                phys_state=phys,
                rate_gbit_s=rate,
                lid=lid,
                active_mtu=mtu,
                counters=counted,
                gids=_make_gids(gid, addresses.get(netdev, [])),
                neighbor=FabricNeighbor(name=switch, port=switch_port or 0, source="dataset") if switch else None,
            )
        )
    nics = [
        Nic(
            id=number,
            label=label or number,
            pci=number,
            role=role or "unknown",
            rdma_device=device,
            driver=driver,
            ports=ports[number],
        )
        for number, label, role, device, driver in sorted(rows.get("nic", []), key=str)
    ]
    gpus = [
        Gpu(
            id=number,
            label=label or number,
            index=index,
            uuid=uuid,
            name=model,
            vendor=vendor,
            pci=pci or number,
            fabric=Fabric(state=state, status=status) if state or status else None,
            recovery_action=action,
            pstate=pstate,
        )
        for number, label, index, uuid, model, vendor, pci, state, status, action, pstate in sorted(
            rows.get("gpu", []), key=str
        )
    ]
    netdevs = [
        Netdev(
            id=number,
            label=label or number,
            nic=nic,
            operstate=state,
            mtu=mtu,
            neighbor=Neighbor(system=system, chassis=chassis, port=port) if system or chassis else None,
        )
        for number, label, nic, state, mtu, system, chassis, port in sorted(rows.get("netdev", []), key=str)
    ]
    _, services, _, memory, *limits = host
    states = [text.partition("=") for text in str(services or "").split()]
    return Report(
        generated_at="",
        observed_at=looked_at.strftime("%Y-%m-%dT%H:%M:%SZ") if looked_at else None,
        generator=Generator(name="fabricscope", version=""),
        source=Source(kind="dataset"),
        node=Node(hostname=name),
        software=Software(
            services=[Service(name=service, state=state) for service, _, state in states],
            limits=_make_limits(*limits),
            shared_memory_mib=memory,
        ),
        topology=Topology(gpus=gpus, nics=nics, netdevs=netdevs),
        events=[_make_event(row) for row in rows.get("event", [])],
        findings=[_make_finding(row) for row in sorted(rows.get("finding", []), key=str)],
        summary=Summary(verdict="unknown", counts={}),
    )


def _make_limits(*texts: str | None) -> dict[str, str]:
    """As a report has them."""
    parts = [part.rpartition("=") for text in texts if text for part in text.split("; ")]
    return {f"memlock {who}": value for who, _, value in parts}


def _make_event(row: tuple[Any, ...]) -> Event:
    kind, subject, code, text, source, count, first, last, logged, boot, times = row
    return Event(
        kind=kind,
        text=text or "",
        source=source or "",
        at=_write_moment(last),
        subject=subject,
        code=code,
        count=count,
        first_at=_write_moment(first),
        boot=boot,
        logged=logged,
        times=(times or "").split(),
    )


def _write_moment(moment: datetime | None) -> str | None:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ") if moment is not None else None


def _make_gids(index: int | None, addresses: list[str]) -> list[Gid]:
    """The GID that NCCL should use, as the dataset has its index: it is made of the interface's IPv4 address."""
    plain = next((address for address in addresses if "." in address and ":" not in address), None)
    if index is None or plain is None:
        return []
    return [Gid(index=index, gid=f"::ffff:{plain}", type="RoCE v2")]


def _make_finding(row: tuple[Any, ...]) -> Finding:
    (
        rule,
        severity,
        subject,
        label,
        summary,
        impact,
        remedy,
        confidence,
        fingerprint,
        devices,
        silenced,
        reason,
        until,
    ) = row
    return Finding(
        rule=rule,
        severity=severity,
        subject=subject,
        label=label or subject,
        summary=summary or "",
        impact=impact or "",
        remedy=remedy or "",
        confidence=confidence or "high",
        fingerprint=fingerprint,
        silenced=Silenced(until=until, reason=reason or "") if silenced else None,
        devices=(devices or "").split(),
    )


_COLUMNS = {
    "host": ("hostname", "services", "gpus", "shared_memory_mib", "limits", "process_limits"),
    "gpu": (
        "id",
        "label",
        "index",
        "uuid",
        "name",
        "vendor",
        "pci",
        "fabric_state",
        "fabric_status",
        "recovery_action",
        "pstate",
    ),
    "nic": ("id", "label", "role", "rdma_device", "driver"),
    "port": (
        "nic",
        "port",
        "link_layer",
        "state",
        "phys_state",
        "rate_gbit_s",
        "lid",
        "active_mtu",
        "roce_gid_index",
        "netdev",
        "neighbor_name",
        "neighbor_port",
    ),
    "netdev": ("id", "label", "nic", "operstate", "mtu", "neighbor_system", "neighbor_chassis", "neighbor_port"),
    "finding": (
        "rule",
        "severity",
        "subject",
        "label",
        "summary",
        "impact",
        "remedy",
        "confidence",
        "fingerprint",
        "devices",
        "silenced",
        "silenced_reason",
        "silenced_until",
    ),
}
_EVENT = (
    *("kind", "subject", "code", "text", "source", "count"),
    *("first_at", "last_at", "logged", "boot", "times"),
)
_LAST = _EVENT.index("last_at")
_NEAR = timedelta(days=1)  # clocks of logs may be of another zone
_KEYS = {"node": TEXT}


def _list_columns(columns: Iterable[str]) -> str:
    return ", ".join(f"thing.{quote(column)}" for column in columns)


_NOW = {
    table: lookup(_KEYS, "job_hosts", "now", columns=_list_columns(columns), table=quote(table))
    for table, columns in _COLUMNS.items()
}
_THEN = {
    table: lookup(_KEYS, "job_hosts", "then", columns=_list_columns(columns), history=quote(HISTORY + table))
    for table, columns in _COLUMNS.items()
}
_COUNTED = lookup(
    _KEYS, "job_hosts", "now", columns=_list_columns(("nic", "port", *COUNTERS)), table=quote("port_counter")
)
_ADDRESSES = lookup(_KEYS, "job_hosts", "now", columns=_list_columns(("netdev", "address")), table=quote("address"))
_LOOKED_AT = lookup(_KEYS, "job_hosts", "looked_at")
_EVENTS_NOW = lookup(_KEYS, "job_hosts", "now", columns=_list_columns(_EVENT), table=quote("event"))
_EVENTS_NEAR = lookup(_KEYS, "job_hosts", "events_near", columns=_list_columns(_EVENT))


def read_hosts(
    tables: Tables, names: Iterable[str], moment: datetime | None
) -> tuple[list[tuple[Report, str]], list[str]]:
    """Reports of the hosts of these names, each with the name of the job; and why others have none."""
    nodes, problems = _find_nodes(tables, list(names))
    if not nodes:
        return [], problems
    values = [(node,) for node in nodes]
    then: dict[str, Rows] = defaultdict(lambda: defaultdict(list))
    now: dict[str, Rows] = defaultdict(lambda: defaultdict(list))
    pending = {}
    for table in _COLUMNS:
        pending[table, False] = tables.submit_by_keys(_NOW[table], values)
        if moment is not None:
            pending[table, True] = tables.submit_by_keys(_THEN[table].bind(table=table, moment=moment), values)
    counters = tables.submit_by_keys(_COUNTED, values)
    addresses = tables.submit_by_keys(_ADDRESSES, values)
    events = tables.submit_by_keys(_EVENTS_NOW, values)
    looked = tables.submit_by_keys(_LOOKED_AT.bind(moment=moment), values) if moment is not None else None
    near = tables.submit_by_keys(_EVENTS_NEAR.bind(**_surround(moment)), values) if moment is not None else None
    for (table, earlier), rows in pending.items():
        for node, *row in rows():
            (then if earlier else now)[node][table].append(tuple(row))
    for node, *row in counters():
        now[node]["port_counter"].append(tuple(row))
    for node, *row in addresses():
        now[node]["address"].append(tuple(row))
    for node, *row in events():
        now[node]["event"].append(tuple(row))
    for node, *row in near() if near is not None else ():
        then[node]["event"].append(tuple(row))
    looks: dict[str, datetime] = dict(looked()) if looked is not None else {}
    reports = []
    for node, name in sorted(nodes.items()):
        kept = {table: now[node][table] for table in ("port_counter", "address")}
        rows_of = {**then[node], **kept} if node in looks else now[node]
        rows_of["event"] = _list_events(rows_of.get("event", []), now[node]["event"])
        reports.append((make_report(name, rows_of, looks.get(node)), name))
        if moment is not None and node not in looks:
            problems.append(f"{name}: the dataset has no report of that time; the newest is used")
    return reports, problems


def _surround(moment: datetime) -> dict[str, datetime]:
    return {"moment": max(moment, datetime.min + _NEAR) - _NEAR, "until": min(moment, datetime.max - _NEAR) + _NEAR}  # noqa: DTZ901


def _list_events(near: list[tuple[Any, ...]], newest: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Events about the moment, those without a date as the newest report has them."""
    lines = [*near, *(row for row in newest if row[_LAST] is None)]
    by_key = {(*row[:3], row[_LAST], row[_LAST + 1]): row for row in sorted(lines, key=lambda row: row[5] or 0)}
    return sorted(by_key.values(), key=lambda row: (str(row[_LAST]), *map(str, row)))


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
