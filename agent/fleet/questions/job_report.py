"""The rows that a dataset has of one host, as a report with what a cause of a job is joined with."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from typing import Any

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
