"""A local fact for Ansible: `fabricscope export ansible -o /etc/ansible/facts.d/fabricscope.fact`, then
`ansible_local.fabricscope`.

Contract: ansible lib/ansible/module_utils/facts/system/local.py: JSON in a file that is not executable (one that is
would be run). A summary, as facts travel with every play; unknown is null.
"""

from __future__ import annotations

import msgspec

from agent.model.finding import SEVERITIES
from agent.model.report import Report
from agent.outputs.export.domain import nvlink_domain
from agent.outputs.formatting import line

FINDINGS_LIMIT = 50


def export(report: Report) -> str:
    """The whole file."""
    return msgspec.json.format(msgspec.json.encode(_short(_facts(report))), indent=2).decode() + "\n"


def _short(value: object) -> object:
    """The same with every text on one line of bounded length."""
    if isinstance(value, dict):
        return {name: _short(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_short(each) for each in value]
    return line(value) if isinstance(value, str) else value


def _facts(report: Report) -> dict[str, object]:
    return {
        "version": report.generator.version,
        "seen_at": report.observed_at or report.generated_at or None,
        "verdict": report.summary.verdict,
        "findings_count": {each: report.summary.counts.get(each, 0) for each in SEVERITIES},
        "findings": [
            {"rule": f.rule, "severity": f.severity, "label": f.label, "summary": f.summary}
            for f in report.findings[:FINDINGS_LIMIT]
        ],
        "not_judged": list(report.summary.unknown_rules),
        "profile": report.platform.profile,
        "product": report.node.product,
        "driver": report.software.driver.version,
        "nvlink_domain": nvlink_domain(report),
        "gpus": [
            {
                "id": gpu.id,
                "label": gpu.label,
                "name": gpu.name,
                "numa_node": gpu.numa_node,
                "nvlinks_active": sum(each.state == "active" for each in gpu.links) if gpu.links_known else None,
            }
            for gpu in report.topology.gpus
        ],
        "rails": [
            {
                "id": nic.id,
                "label": nic.label,
                "numa_node": nic.numa_node,
                "firmware": nic.firmware,
                "ports": [
                    {"port": port.port, "state": port.state, "rate_gbit_s": port.rate_gbit_s} for port in nic.ports
                ],
            }
            for nic in report.topology.nics
            if nic.role == "rail"
        ],
    }
