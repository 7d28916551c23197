"""The desired objects of one report."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agent.model.nic import Netdev, Nic, Port
from agent.model.report import Report
from agent.outputs.inventory.fit import DESCRIPTION, NAME, SERIAL, Names, fit, mac, wwn
from agent.outputs.inventory.modules import Card, modules
from agent.outputs.inventory.objects import Cable, Desired, Finding, Interface
from agent.outputs.inventory.port_type import OTHER, port_type

_READ = ("ok", "absent")


def desired(report: Report) -> Desired:
    """What an inventory should hold of this node. A pure function."""
    found, cards = modules(report.topology)
    ports, cables = _ports(cards, report.topology.netdevs)
    read = {run.name: run.status in _READ for run in report.probes}
    return Desired(
        name=fit(report.node.hostname, NAME),
        serial=fit(report.node.serial, SERIAL),
        machine_id=fit(report.node.machine_id, NAME),
        observed_at=report.observed_at,
        verdict=fit(report.summary.verdict, NAME) or "unknown",
        modules_known=read.get("pci", False) or (read.get("lspci", False) and bool(report.topology.pci)),
        interfaces_known=read.get("netdev", False) and read.get("rdma", False),
        modules=found,
        interfaces=ports,
        cables=cables,
        findings=_findings(report),
        not_judged=[rule for rule in (fit(each, NAME) for each in report.summary.unknown_rules) if rule],
    )


def _ports(cards: Sequence[Card], netdevs: Sequence[Netdev]) -> tuple[list[Interface], list[Cable]]:
    names, found, cables = Names(), [], []
    for card in cards:
        for nic in card.nics:
            for port, netdev in _of(nic, netdevs):
                made = _interface(card, nic, port, netdev, names)
                found.append(made)
                if netdev and netdev.neighbor and netdev.neighbor.system:
                    far = netdev.neighbor
                    told = [fit(each, NAME) for each in (far.port, far.port_description)]
                    switch = fit(far.system, NAME)
                    ends = list(dict.fromkeys(each for each in told if each))
                    if switch and ends:
                        cables.append(Cable(interface=made.name, device=switch, ports=ends))
    return found, cables


def _of(nic: Nic, netdevs: Sequence[Netdev]) -> list[tuple[Port | None, Netdev | None]]:
    """A NIC's ports, each with its interface; interfaces alone where it has no RDMA device."""
    own = {row.label: row for row in netdevs if row.nic == nic.id and row.pci and row.vlan is None}
    if nic.ports:
        return [(port, next((own[name] for name in port.netdevs if name in own), None)) for port in nic.ports]
    return [(None, row) for row in own.values() if row.id.startswith(row.pci or " ")]


def _interface(card: Card, nic: Nic, port: Port | None, netdev: Netdev | None, names: Names) -> Interface:
    device = nic.rdma_device or nic.label
    name = netdev.label if netdev else f"{device}/{port.port}" if port and len(nic.ports) > 1 else device
    infiniband = port is not None and port.link_layer == "InfiniBand"
    kind = port_type(nic, port, netdev)
    most = netdev.max_speed_gbit_s if netdev and not infiniband else None
    return Interface(
        name=names.own(name, nic.id),
        bay=card.bay,
        type=kind,
        certain=kind != OTHER,
        speed_kbit_s=round(most * 1e6) if most else None,
        mac=mac(netdev.mac)
        if netdev and not netdev.master and not infiniband
        else None,  # a bond lends its members one
        wwn=wwn(port.port_guid) if port and infiniband else None,
    )


def _findings(report: Report) -> list[Finding]:
    found: dict[str, Finding] = {}
    for each in report.findings:
        made = Finding(
            fingerprint=re.sub(r"[^0-9A-Za-z]", "?", each.fingerprint)[:NAME] or "?",  # a journal is read by it
            severity=fit(each.severity, NAME) or "?",
            rule=fit(each.rule, DESCRIPTION) or "?",
            label=fit(each.label, DESCRIPTION) or "?",
            summary=fit(each.summary, DESCRIPTION) or "?",
        )
        found.setdefault(made.fingerprint, made)
    return list(found.values())
