"""What a finding costs: the same prediction for a machine that has this one fault, and for a healthy one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from agent.model.finding import Cost, Finding, worst_first
from agent.model.prediction import Prediction, Repair
from agent.model.report import Report
from agent.recommend.constants import Version
from agent.recommend.machine import NodeFacts, read_node
from agent.recommend.predict import AS_IS, HEALTHY, Request, predict, version_of
from agent.recommend.rails import RailFacts, heal_rail
from agent.recommend.tuning import ALL_REDUCE

SIZE = 1 << 30  # bytes
_NODES = (1, 4)  # one node, and a job whose rings cross the network
_LEAST_PERCENT = 0.5
_LINKS, _NETWORK, _WIRE = "links", "network", "wire"  # between GPUs; of a NIC's port; PCIe between GPU and NIC
# Rules of faults that show in a layer's bandwidth; others on the same port or GPU do not cost what these cost
_LAYERS = {
    _LINKS: {
        "hccs-link-down", "nvlink-asymmetric", "nvlink-bandwidth-mode-reduced", "nvlink-disabled", "nvlink-inactive",
        "nvlink-speed-low", "xgmi-link-down",
    },
    _NETWORK: {
        "ib-no-sm", "ib-port-down", "ib-rate-degraded", "ib-rate-mixed", "nic-firmware-dead", "pci-driver-missing",
        "port-module-fault", "rdma-device-missing", "roce-link-down", "roce-netdev-missing", "roce-speed-degraded",
    },
    _WIRE: {
        "pcie-nic-starved", "pcie-path-bottleneck", "pcie-slot-limits-card", "pcie-slower-than-siblings",
        "pcie-speed-downgraded", "pcie-width-downgraded",
    },
}  # fmt: skip
_ANY_LAYER = ("profile-differs", "inventory-lost", "device-count-low")


def find_repairs(report: Report, node: NodeFacts, version: Version) -> list[Repair]:
    """Every finding whose cost the model computes, the one that gives back most first."""
    repairs = [repair for finding in report.findings for repair in _repairs_of(finding, report, node, version)]
    return sorted(repairs, key=lambda repair: (-repair.percent, repair.rule, repair.device))


def find_costs(report: Report) -> dict[str, Repair]:
    """The cost of each finding, by its fingerprint; those that the model has no figure for are left out."""
    node = read_node(report)
    if node.missing or not node.gpus:
        return {}
    version = version_of(None, [node])
    costs = {}
    for finding in report.findings:
        for repair in _repairs_of(finding, report, node, version):
            costs[finding.fingerprint] = repair
    return costs


def add_costs(report: Report) -> Report:
    """The report with the cost of each finding above info that the model has a figure for, worst first."""
    costs = find_costs(report)
    if not costs:
        return report
    findings = [
        msgspec.structs.replace(finding, cost=_cost(costs[finding.fingerprint]))
        if finding.fingerprint in costs and (finding.severity != "info" or finding.rule in SETTING_RULES)
        else finding
        for finding in report.findings
    ]
    return msgspec.structs.replace(report, findings=sorted(findings, key=worst_first))


def _cost(repair: Repair) -> Cost:
    return Cost(
        collective=repair.collective,
        nodes=repair.nodes,
        gbyte_s=repair.gain_gbyte_s,
        percent=repair.percent,
        known_by=repair.known_by,
    )


class _Loss(NamedTuple):
    """What a setting costs by a public measurement: of how many nodes, and the share that is lost."""

    nodes: int
    share: float


_COPIED = _Loss(4, 1 - 72 / 216)  # GPUDirect off, 16 H100, RoCE: nccl#2409
_RINGS = _Loss(1, 1 - 367 / 482)  # in place of NVLS, H200; B200: 682 of 838 GB/s
SETTING_RULES = ("gdr-disabled-by-env",)
_SETTINGS = {"NCCL_NET_GDR_LEVEL": _COPIED, "NCCL_DMABUF_ENABLE": _COPIED, "NCCL_NVLS_ENABLE": _RINGS}


def _setting_cost(finding: Finding, node: NodeFacts, version: Version) -> Repair | None:
    """Of a finding about settings, whose evidence names them: the one that costs most."""
    if finding.rule not in SETTING_RULES:
        return None
    known = [
        (loss, line.what)
        for line in finding.evidence
        if (loss := _SETTINGS.get(line.what)) and (loss.nodes == 1 or node.rails)
    ]
    if not known:
        return None
    loss, setting = max(known, key=lambda entry: entry[0].share)
    healthy = predict([node], Request(ALL_REDUCE, SIZE, loss.nodes, version), HEALTHY).busbw_gbyte_s
    if not healthy:
        return None
    return Repair(
        rule=finding.rule, device=setting, collective=ALL_REDUCE, nodes=loss.nodes,
        gain_gbyte_s=round(healthy * loss.share, 1), percent=round(100 * loss.share, 1), known_by="measured",
    )  # fmt: skip


def _repairs_of(finding: Finding, report: Report, node: NodeFacts, version: Version) -> Iterator[Repair]:
    measured = _setting_cost(finding, node, version)
    if measured is not None:
        yield measured
        return
    devices, faulty = set(_devices(finding, report)), isolate(node, finding, report)
    rows = [_compare(faulty, node, Request(ALL_REDUCE, SIZE, nodes, version)) for nodes in _NODES]
    known = [(lost, row, before) for lost, row, before in rows if lost >= _LEAST_PERCENT]
    if not known:
        return
    lost, row, before = max(known, key=lambda entry: entry[0])
    yield Repair(
        rule=finding.rule,
        device=finding.label,
        collective=row.collective,
        nodes=row.nodes,
        gain_gbyte_s=round(before - (row.busbw_gbyte_s or 0.0), 1),
        percent=round(lost, 1),
        known_by=row.known_by,
        until=_until(node, devices, row, version, before),
    )


def _compare(faulty: NodeFacts, node: NodeFacts, request: Request) -> tuple[float, Prediction, float]:
    """Percent lost, the row with the fault, and the healthy GB/s."""
    row = predict([faulty], request, AS_IS)
    healthy = predict([node], request, HEALTHY).busbw_gbyte_s
    if row.busbw_gbyte_s is None or not healthy:
        return 0.0, row, healthy or 0.0
    return 100 * (1 - row.busbw_gbyte_s / healthy), row, healthy


def isolate(node: NodeFacts, finding: Finding, report: Report) -> NodeFacts:
    """The node with the one fault that a finding is about; every other part, and every other layer, as it should be."""
    devices, layers = set(_devices(finding, report)), _layers(finding)
    names = {f"{finding.rule} {finding.subject}", *finding.absorbs}
    linked = devices if _LINKS in layers else set()
    return node._replace(
        rails=tuple(_isolate_rail(rail, layers if _concerns(rail, devices) else set(), names) for rail in node.rails),
        links=tuple(
            have if label in linked else node.healthy_links for label, have in zip(node.gpus, node.links, strict=False)
        ),
        weakest_gpu=node.weakest_gpu if node.weakest_gpu in linked else None,
    )


def _layers(finding: Finding) -> set[str]:
    """What a finding and those that it explains are about; that of no layer costs no bandwidth that is modelled."""
    if finding.rule in _ANY_LAYER:
        return {_LINKS, _NETWORK, _WIRE}
    rules = [finding.rule, *(line.partition(" ")[0] for line in finding.absorbs)]
    return {layer for rule in rules for layer, names in _LAYERS.items() if rule in names}


def _isolate_rail(rail: RailFacts, layers: set[str], names: set[str]) -> RailFacts:
    healthy = heal_rail(rail)
    wire = rail if _WIRE in layers else healthy
    return healthy._replace(
        network_gbyte_s=rail.network_gbyte_s if _NETWORK in layers else healthy.network_gbyte_s,
        plan_gbyte_s=wire.plan_gbyte_s,
        wire_gbyte_s=wire.wire_gbyte_s,
        direct=not (names & rail.copied_by),
    )


def _until(node: NodeFacts, devices: set[str], row: Prediction, version: Version, healthy: float) -> str | None:
    """What loses least until the repair: a job without the node, or without the rail on every node."""
    if row.nodes == 1:
        return None
    dropped = [rail for rail in node.rails if _concerns(rail, devices)]
    rest = node._replace(rails=tuple(heal_rail(rail) for rail in node.rails if rail not in dropped))
    without = predict([rest], Request(row.collective, row.size_bytes, row.nodes, version), HEALTHY).busbw_gbyte_s
    text = "leave this node out of jobs on several nodes"
    if dropped and rest.rails and without and without > (row.busbw_gbyte_s or 0):
        names = ", ".join(rail.label for rail in dropped)
        text += f"; or take {names} out of NCCL_IB_HCA on every node of the job: {without:.0f} of {healthy:.0f} GB/s"
    return text


def _concerns(rail: RailFacts, devices: set[str]) -> bool:
    return bool(devices & {rail.label, rail.pci or "", *rail.functions})


def _devices(finding: Finding, report: Report) -> Iterator[str]:
    """Ids and labels of the devices that a finding and what it explains are about."""
    ids = finding.list_concerned()
    yield from ids
    yield from _labels(ids, [(gpu.id, gpu.pci, gpu.label) for gpu in report.topology.gpus])
    yield from _labels(ids, [(nic.id, nic.pci, nic.rdma_device or nic.label) for nic in report.topology.host_nics])
    netdevs = {netdev.nic or netdev.pci or "" for netdev in report.topology.netdevs if netdev.id in ids}
    yield from _labels(netdevs, [(nic.id, nic.pci, nic.rdma_device or nic.label) for nic in report.topology.host_nics])


def _labels(ids: set[str], rows: Iterable[tuple[str, str | None, str]]) -> Iterator[str]:
    for name, pci, label in rows:
        if name in ids or pci in ids:
            yield from (name, pci or name, label)
