"""Which device, link and port has a finding, and how grave: only these are marked in the picture and the table."""

from __future__ import annotations

from agent.model.finding import SEVERITIES, Finding
from agent.model.report import Report

MARKED = ("warning", "error", "critical")  # a note marks nothing
NVLINK_RULES = ("nvlink-", "fabric-", "c2c-")


class Severities:
    """The worst finding by device (also a note), and by link, port and NVLinks (from warning on)."""

    def __init__(self, report: Report) -> None:
        self.devices: dict[str, str] = {}
        self.links: dict[str, str] = {}  # of the device or switch below the PCIe link
        self.ports: dict[str, str] = {}  # "NIC/1"; "NIC": of any of its ports
        self.nvlinks: dict[str, str] = {}  # of GPUs
        self.findings: dict[str, list[Finding]] = {}  # by device
        topology = report.topology
        self._interfaces = {netdev.id: netdev.nic or netdev.id for netdev in topology.netdevs}
        self._devices = {nic.pci: nic.id for nic in topology.nics if nic.pci}
        self._devices |= {gpu.pci: gpu.id for gpu in topology.gpus if gpu.pci}
        for finding in report.open_findings:
            for part in finding.subject.partition(":")[2].split("+"):
                self._add(finding, finding.subject.partition(":")[0], part)

    def _add(self, finding: Finding, kind: str, part: str) -> None:
        device, _, number = part.partition("/")
        device = self._interfaces.get(part, device) if kind == "netdev" else device
        device = self._devices.get(device, device)
        _keep_worst(self.devices, device, finding.severity)
        self.findings.setdefault(device, []).append(finding)
        if finding.severity not in MARKED:
            return
        if kind in ("port", "netdev"):
            _keep_worst(self.ports, f"{device}/{number}" if kind == "port" else device, finding.severity)
        elif kind == "link" or finding.rule.startswith(NVLINK_RULES):
            _keep_worst(self.nvlinks, device, finding.severity)
        elif finding.rule.startswith(("pcie-", "profile-")):
            _keep_worst(self.links, device, finding.severity)


def severity_by_box(report: Report) -> dict[str, str]:
    """Key of a box -> severity of its worst finding, or of one on a part of it."""
    return Severities(report).devices


def _keep_worst(severities: dict[str, str], key: str, severity: str) -> None:
    if _rank(severity) > _rank(severities.get(key)):
        severities[key] = severity


def _rank(severity: str | None) -> int:
    return SEVERITIES.index(severity) if severity in SEVERITIES else -1
