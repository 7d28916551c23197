"""The desired inventory objects of one report: the node, its modules, interfaces, cables and findings.

The type of a port follows its capability and its cage, and is "other" where that is uncertain. Slugs:
netbox/dcim/choices.py, InterfaceTypeChoices, 4.6. A module identifies its cage only in part: a QSFP28 cable fits
QSFP56, QSFP112 and QSFP-DD cages too; so the form counts together with the maximum speed of the port.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from agent.model.nic import Netdev, Nic, Port
from agent.model.report import Report
from agent.outputs.inventory.modules import Card, build_modules
from agent.outputs.inventory.objects import (
    DESCRIPTION,
    NAME,
    SERIAL,
    DesiredNode,
    InventoryCable,
    InventoryFinding,
    InventoryInterface,
    UniqueNames,
    fit_text,
    format_mac,
    format_wwn,
)

OTHER = "other"

# Lane rate of the family's ports; variants of one family have fewer lanes (HDR100, NDR200), not slower ones
_INFINIBAND = {
    "Connect-IB": "fdr",
    "ConnectX-5": "edr",
    "ConnectX-5 Ex": "edr",
    "ConnectX-6": "hdr",
    "ConnectX-7": "ndr",
    "ConnectX-8": "xdr",
    "BlueField-2": "hdr",
    "BlueField-3": "ndr",
}
# Families with slower variants: certain only if a port shows that it is none of these
_INFINIBAND_AT_MOST = {"ConnectX-3": "fdr", "ConnectX-3 Pro": "fdr", "ConnectX-4": "edr", "BlueField": "edr"}

_SFP = {10.0: "10gbase-x-sfpp", 25.0: "25gbase-x-sfp28"}
_QSFP = {40.0: "40gbase-x-qsfpp", 100.0: "100gbase-x-qsfp28", 200.0: "200gbase-x-qsfp56"}
_ETHERNET = {
    "SFP": _SFP,
    "QSFP": _QSFP,
    "QSFP+": _QSFP,
    "QSFP28": _QSFP,
    "QSFP+ CMIS": _QSFP,
    "QSFP-DD": {200.0: "200gbase-x-qsfpdd", 400.0: "400gbase-x-qsfpdd", 800.0: "800gbase-x-qsfpdd"},
    "OSFP": {400.0: "400gbase-x-osfp", 800.0: "800gbase-x-osfp"},
}


def choose_port_type(nic: Nic, port: Port | None, netdev: Netdev | None) -> str:
    """The NetBox slug of a port's type."""
    if port is not None and port.link_layer == "InfiniBand":
        return _infiniband_type(nic.model, port.speed)
    form = netdev.module.identifier if netdev and netdev.module else None
    most = netdev.max_speed_gbit_s if netdev else None
    if form is None or most is None:
        return OTHER
    if form == "QSFP+ CMIS" and most == 400.0 and (nic.model or "").startswith(("ConnectX", "BlueField")):
        return "400gbase-x-qsfp112"  # of others, some have QSFP-DD cages, which take the same modules
    return _ETHERNET.get(form, {}).get(most, OTHER)


def _infiniband_type(model: str | None, speed: str | None) -> str:
    """
    >>> _infiniband_type("ConnectX-7", "HDR"), _infiniband_type("ConnectX-4", "EDR")
    ('infiniband-ndr', 'infiniband-edr')
    """
    family = _INFINIBAND.get(model or "")
    at_most = _INFINIBAND_AT_MOST.get(model or "")
    if family is None and at_most == (speed or "").lower():
        family = at_most
    return f"infiniband-{family}" if family else OTHER


_SUCCESSFUL = ("ok", "absent")


def build_desired(report: Report) -> DesiredNode:
    """The desired objects of this node. A pure function."""
    modules, cards = build_modules(report.topology)
    ports, cables = _build_interfaces(cards, report.topology.netdevs)
    read = {run.name: run.status in _SUCCESSFUL for run in report.probes}
    return DesiredNode(
        name=fit_text(report.node.hostname, NAME),
        serial=fit_text(report.node.serial, SERIAL),
        machine_id=fit_text(report.node.machine_id, NAME),
        observed_at=report.observed_at,
        verdict=fit_text(report.summary.verdict, NAME) or "unknown",
        modules_known=read.get("pci", False) or (read.get("lspci", False) and bool(report.topology.pci)),
        interfaces_known=read.get("netdev", False) and read.get("rdma", False),
        modules=modules,
        interfaces=ports,
        cables=cables,
        findings=_build_findings(report),
        not_judged=[rule for rule in (fit_text(rule, NAME) for rule in report.summary.unknown_rules) if rule],
    )


def _build_interfaces(
    cards: Sequence[Card], netdevs: Sequence[Netdev]
) -> tuple[list[InventoryInterface], list[InventoryCable]]:
    names, interfaces, cables = UniqueNames(), [], []
    for card in cards:
        for nic in card.nics:
            for port, netdev in _ports_of(nic, netdevs):
                interface = _build_interface(card, nic, port, netdev, names)
                interfaces.append(interface)
                if netdev and netdev.neighbor and netdev.neighbor.system:
                    far = netdev.neighbor
                    port_names = [fit_text(name, NAME) for name in (far.port, far.port_description)]
                    switch = fit_text(far.system, NAME)
                    ends = list(dict.fromkeys(name for name in port_names if name))
                    if switch and ends:
                        cables.append(InventoryCable(interface=interface.name, device=switch, ports=ends))
    return interfaces, cables


def _ports_of(nic: Nic, netdevs: Sequence[Netdev]) -> list[tuple[Port | None, Netdev | None]]:
    """A NIC's ports, each with its interface; interfaces alone if it has no RDMA device."""
    own = {row.label: row for row in netdevs if row.nic == nic.id and row.pci and row.vlan is None}
    if nic.ports:
        return [(port, next((own[name] for name in port.netdevs if name in own), None)) for port in nic.ports]
    return [(None, row) for row in own.values() if row.id.startswith(row.pci or " ")]


def _build_interface(
    card: Card, nic: Nic, port: Port | None, netdev: Netdev | None, names: UniqueNames
) -> InventoryInterface:
    device = nic.rdma_device or nic.label
    name = netdev.label if netdev else f"{device}/{port.port}" if port and len(nic.ports) > 1 else device
    infiniband = port is not None and port.link_layer == "InfiniBand"
    kind = choose_port_type(nic, port, netdev)
    most = netdev.max_speed_gbit_s if netdev and not infiniband else None
    return InventoryInterface(
        name=names.assign(name, nic.id),
        bay=card.bay,
        type=kind,
        certain=kind != OTHER,
        speed_kbit_s=round(most * 1e6) if most else None,
        mac=format_mac(netdev.mac)
        if netdev and not netdev.master and not infiniband
        else None,  # a bond lends its members one
        wwn=format_wwn(port.port_guid) if port and infiniband else None,
    )


def _build_findings(report: Report) -> list[InventoryFinding]:
    by_fingerprint: dict[str, InventoryFinding] = {}
    for finding in report.open_findings:
        row = InventoryFinding(
            fingerprint=re.sub(r"[^0-9A-Za-z]", "?", finding.fingerprint)[:NAME] or "?",  # the key of journal entries
            severity=fit_text(finding.severity, NAME) or "?",
            rule=fit_text(finding.rule, DESCRIPTION) or "?",
            label=fit_text(finding.label, DESCRIPTION) or "?",
            summary=fit_text(finding.summary, DESCRIPTION) or "?",
        )
        by_fingerprint.setdefault(row.fingerprint, row)
    return list(by_fingerprint.values())
