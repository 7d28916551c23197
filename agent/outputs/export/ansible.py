"""A local fact for Ansible: `fabricscope export ansible -o /etc/ansible/facts.d/fabricscope.fact`, then
`ansible_local.fabricscope`.

Contract: ansible lib/ansible/module_utils/facts/system/local.py: JSON in a file that is not executable (one that is
would be run). A summary, as facts are sent with every play; unknown is null.
"""

from __future__ import annotations

import msgspec

from agent.model.finding import SEVERITIES
from agent.model.report import Report
from agent.outputs.formatting import clean_line, nvlink_domain

FINDINGS_LIMIT = 50


def export(report: Report) -> str:
    """The content of the fact file."""
    return msgspec.json.format(msgspec.json.encode(_limit_texts(_collect_facts(report))), indent=2).decode() + "\n"


def _limit_texts(value: object) -> object:
    """Limit every text to one line of bounded length."""
    if isinstance(value, dict):
        return {name: _limit_texts(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_limit_texts(item) for item in value]
    return clean_line(value) if isinstance(value, str) else value


def _collect_facts(report: Report) -> dict[str, object]:
    return {
        "version": report.generator.version,
        "seen_at": report.observed_at or report.generated_at or None,
        "verdict": report.summary.verdict,
        "findings_count": {severity: report.summary.counts.get(severity, 0) for severity in SEVERITIES},
        "findings": [
            {"rule": f.rule, "severity": f.severity, "label": f.label, "summary": f.summary}
            for f in report.open_findings[:FINDINGS_LIMIT]
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
                "nvlinks_active": sum(link.state == "active" for link in gpu.links) if gpu.links_known else None,
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
            for nic in report.topology.host_nics
            if nic.role == "rail"
        ],
    }
