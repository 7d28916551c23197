"""Labels for node-feature-discovery: `fabricscope export nfd -o FILE`, FILE in its folder features.d.

Contract: NFD source/local/local.go, docs/usage/customization-guide.md: lines of `name=value`, "# +expiry-time" before
them; a file over 65,536 bytes is ignored. Labels are those of Kubernetes: 63 characters of [A-Za-z0-9._-], the first
and last a letter or digit. Labels expire `EXPIRY` after the node was observed, so those of a dead agent disappear.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta

from agent.model.report import Report
from agent.outputs.formatting import nvlink_domain, observation_time
from agent.outputs.text.gpudirect import WORST_FIRST

NAMESPACE = "fabricscope.feature.node.kubernetes.io"  # a namespace that NFD lets anyone use
EXPIRY = timedelta(hours=3)  # three hourly scans
LABEL_LIMIT = 63


def export(report: Report) -> str:
    """The feature file; unknown values have no label."""
    lines = ["# fabricscope: how this node is wired, and what is wrong with it"]
    seen = observation_time(report)
    if seen is not None:
        lines.append(f"# +expiry-time={(seen + EXPIRY).strftime('%Y-%m-%dT%H:%M:%SZ')}")
    for name, value in _list_labels(report):
        fit = to_label_value(str(value)) if value is not None else ""
        if fit:
            lines.append(f"{NAMESPACE}/{name}={fit}")
    return "\n".join(lines) + "\n"


def to_label_value(text: str) -> str:
    """Convert a text to a label value; "" if nothing valid is left.

    >>> to_label_value("NVIDIA H100 80GB HBM3"), to_label_value("--"), len(to_label_value("x" * 99))
    ('NVIDIA-H100-80GB-HBM3', '', 63)
    """
    fit = re.sub(r"[^A-Za-z0-9._-]+", "-", text)
    return re.sub(r"^[^A-Za-z0-9]+|[^A-Za-z0-9]+$", "", fit[:LABEL_LIMIT].lstrip("-._"))


def _list_labels(report: Report) -> Iterator[tuple[str, object]]:
    yield "verdict", report.summary.verdict
    for severity in ("warning", "error", "critical"):
        yield f"findings-{severity}", report.summary.counts.get(severity)
    yield "profile", report.platform.profile
    yield from _gpu_labels(report)
    yield from _rail_labels(report)


def _gpu_labels(report: Report) -> Iterator[tuple[str, object]]:
    gpus = report.topology.gpus
    bus = next((run.status for run in report.probes if run.name == "pci"), None)
    yield "gpu-count", len(gpus) if gpus or bus == "ok" else None
    yield "gpu-model", _common_value([gpu.name for gpu in gpus])
    yield "gpu-driver", report.software.driver.version
    if gpus and all(gpu.links_known for gpu in gpus):
        yield "nvlinks-per-gpu", min(sum(link.state == "active" for link in gpu.links) for gpu in gpus)
    yield "nvlink-domain", nvlink_domain(report)


def _rail_labels(report: Report) -> Iterator[tuple[str, object]]:
    rails = [nic for nic in report.topology.host_nics if nic.role == "rail"]
    ports = [port for nic in rails for port in nic.ports]
    if rails:
        yield "rail-count", len(rails)
    rate = _common_value([port.rate_gbit_s for port in ports])
    yield "rail-gbit-s", f"{rate:g}" if isinstance(rate, float) else None
    yield "rail-link-layer", _common_value([port.link_layer for port in ports])
    verdicts = {row.verdict for row in report.gpudirect}
    yield "gpudirect", next((verdict for verdict in WORST_FIRST if verdict in verdicts), None)


def _common_value(values: list[str | None] | list[float | None]) -> object:
    """The common value of all; None if they differ or one is unknown."""
    return values[0] if values and len(set(values)) == 1 else None
