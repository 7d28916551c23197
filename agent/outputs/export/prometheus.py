"""A file for node_exporter's textfile collector: `fabricscope export prometheus -o DIR/fabricscope.prom`.

Contract: node_exporter collector/textfile.go and prometheus.io/docs/instrumenting/exposition_formats, naming by
prometheus.io/docs/practices/naming. No timestamps (the collector skips a file that has one), no host label (the scrape
adds `instance`), one constant HELP text per family (two files that differ in it lose each other's series).
Series are bounded: device series by what a machine holds, finding series by `FINDINGS_LIMIT`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from agent.model.finding import SEVERITIES, VERDICTS, Finding
from agent.model.report import Report
from agent.outputs.formatting import clean_line, known_fields, observation_time

FINDINGS_LIMIT = 100  # the worst come first in a report
DEVICES_LIMIT = 512  # of a kind: 16 GPUs, tens of NICs; hundreds only with virtual functions
CHECK_STATES = ("pass", "fail", "unknown", "not_applicable", "disabled")
PATH_VERDICTS = ("ready", "degraded", "blocked", "unknown")
PROBE_VALUES = {"ok": 1, "absent": 1, "partial": 0, "denied": 0, "timed_out": 0, "failed": 0}  # skipped: no series
BYTES_PER_GBIT = 125_000_000


class Sample(NamedTuple):
    """One sample line: labels and value."""

    labels: Mapping[str, str]
    value: float


class Metric(NamedTuple):
    """One metric: name without the prefix, help, samples. All are gauges."""

    name: str
    help: str
    samples: Iterable[Sample]


def export(report: Report) -> str:
    """The metrics file."""
    families = [
        *_verdict_families(report),
        *_probe_families(report),
        *_gpu_families(report),
        *_link_families(report),
        *_port_families(report),
    ]
    return "".join(line for family in families for line in format_family(family))


def _verdict_families(report: Report) -> Iterator[Metric]:
    generator = report.generator
    yield Metric("build_info", "The version that judged.", [Sample({"version": generator.version}, 1)])
    node = known_fields(profile=report.platform.profile, product=report.node.product, source=report.source.kind)
    yield Metric("node_info", "What the node is recognized to be, and what was looked at.", [Sample(node, 1)])
    seen = observation_time(report)
    if seen is not None:
        help_text = "When the node was in this state, in seconds since 1970."
        yield Metric("last_success_timestamp_seconds", help_text, [Sample({}, seen.timestamp())])
    verdict = report.summary.verdict
    yield Metric(
        "verdict",
        "1 for the verdict of the node: its worst finding; unknown if an essential check could not run.",
        [Sample({"verdict": name}, name == verdict) for name in sorted(VERDICTS)],
    )
    counts = report.summary.counts
    yield Metric(
        "findings",
        "How many findings of each severity that are not silenced.",
        [Sample({"severity": severity}, counts.get(severity, 0)) for severity in SEVERITIES],
    )
    yield Metric(
        "finding",
        f"1 for each finding that is not silenced, the worst first, at most {FINDINGS_LIMIT}.",
        [Sample(_labels(finding) | _part(finding), 1) for finding in report.open_findings[:FINDINGS_LIMIT]],
    )
    silenced = [(finding, finding.silenced.until) for finding in report.findings if finding.silenced]
    yield Metric(
        "finding_silenced",
        f"1 for each finding that the configuration silences, at most {FINDINGS_LIMIT}; until: the last day.",
        [Sample(_labels(finding) | {"until": until or ""}, 1) for finding, until in silenced[:FINDINGS_LIMIT]],
    )
    states = [check.state for check in report.checks]
    yield Metric(
        "rules", "How many rules ended in each state.", [Sample({"state": s}, states.count(s)) for s in CHECK_STATES]
    )
    yield Metric(
        "rule_not_judged",
        "1 for each rule that could not be judged of something that is here.",
        [Sample({"rule": rule}, 1) for rule in report.summary.unknown_rules],
    )
    if report.gpudirect:
        paths = [row.verdict for row in report.gpudirect]
        help_text = (
            "How many pairs of a GPU and a rail NIC are ready for GPUDirect RDMA, degraded, blocked or not known."
        )
        yield Metric("gpudirect_pairs", help_text, [Sample({"verdict": v}, paths.count(v)) for v in PATH_VERDICTS])


def _labels(finding: Finding) -> dict[str, str]:
    return {name: getattr(finding, name) for name in ("rule", "severity", "subject", "label")}


def _part(finding: Finding) -> dict[str, str]:
    """The physical part, where it is known."""
    location = finding.location
    return {"part": location.part, "serial": location.serial or ""} if location else {}


def _probe_families(report: Report) -> Iterator[Metric]:
    ran = [run for run in report.probes if run.status in PROBE_VALUES]
    yield Metric(
        "probe_success",
        "0 where a probe was denied, failed, ran out of time or read a part; 1 also where there is nothing to read.",
        [Sample({"probe": run.name}, PROBE_VALUES[run.status]) for run in ran],
    )
    yield Metric(
        "probe_duration_seconds",
        "How long a probe took.",
        [Sample({"probe": run.name}, run.duration_seconds) for run in ran],
    )


def _gpu_families(report: Report) -> Iterator[Metric]:
    gpus = report.topology.gpus[:DEVICES_LIMIT]
    yield Metric(
        "gpu_info",
        "One accelerator: of the bus, of the driver, or of both.",
        [
            Sample(
                {
                    "device": g.id,
                    "gpu": g.label,
                    **known_fields(model=g.name, uuid=g.uuid),
                    "driver_state": g.driver_state,
                },
                1,
            )
            for g in gpus
        ],
    )
    yield Metric(
        "gpu_nvlinks",
        "How many links of a GPU are in a state. A GPU whose links could not be read has no series.",
        [
            Sample({"device": g.id, "gpu": g.label, "state": state}, sum(link.state == state for link in g.links))
            for g in gpus
            if g.links_known
            for state in ("active", "inactive", "sleep", "unknown")
        ],
    )


_LINK_METRICS = (  # name, help, field of the link, factor to the unit of the name
    (
        "pci_link_transfers_per_second",
        "Transfers per second and lane at which the PCIe link runs.",
        "speed_gt_s",
        1_000_000_000,
    ),
    (
        "pci_link_max_transfers_per_second",
        "Transfers per second and lane that the device can do.",
        "max_speed_gt_s",
        1_000_000_000,
    ),
    ("pci_link_lanes", "Lanes that the PCIe link has.", "width", 1),
    ("pci_link_max_lanes", "Lanes that the device can have.", "max_width", 1),
)


def _link_families(report: Report) -> Iterator[Metric]:
    """Conclusive PCIe links of GPUs and NICs: an idle GPU's speed would look like a fault."""
    topology = report.topology
    labels = {n.pci: n.label for n in topology.host_nics[:DEVICES_LIMIT] if n.pci}
    labels |= {g.pci: g.label for g in topology.gpus[:DEVICES_LIMIT] if g.pci}
    conclusive = [f for f in topology.pci if f.id in labels and f.link and f.link.quality.state == "conclusive"]
    for name, help_text, field, factor in _LINK_METRICS:
        values = [({"device": f.id, "label": labels[f.id]}, getattr(f.link, field)) for f in conclusive]
        yield Metric(name, help_text, [Sample(device, value * factor) for device, value in values if value is not None])


def _port_families(report: Report) -> Iterator[Metric]:
    ports = [
        ({"device": nic.id, "label": nic.label, "port": str(port.port), "role": nic.role}, port)
        for nic in report.topology.host_nics[:DEVICES_LIMIT]
        for port in nic.ports
    ]
    yield Metric(
        "rdma_port_active",
        "1 where an RDMA port is active, 0 in any other state.",
        [Sample(labels, port.state == "ACTIVE") for labels, port in ports if port.state is not None],
    )
    yield Metric(
        "rdma_port_rate_bytes_per_second",
        "What an active RDMA port carries in one direction.",
        [
            Sample(labels, port.rate_gbit_s * BYTES_PER_GBIT)
            for labels, port in ports
            if port.rate_gbit_s is not None and port.state == "ACTIVE"
        ],
    )


def format_family(family: Metric) -> Iterator[str]:
    """HELP, TYPE and samples; nothing for an empty metric. Two samples with equal labels would void the file."""
    samples = {_format_labels(sample.labels): sample.value for sample in family.samples}
    if not samples:
        return
    name = f"fabricscope_{family.name}"
    yield f"# HELP {name} {family.help}\n# TYPE {name} gauge\n"
    for labels, value in samples.items():
        yield f"{name}{labels} {_format_number(value)}\n"


def _format_labels(labels: Mapping[str, str]) -> str:
    pairs = ",".join(f'{name}="{_escape(value)}"' for name, value in labels.items())
    return f"{{{pairs}}}" if pairs else ""


def _escape(value: str) -> str:
    r"""
    >>> _escape('a"b\\c')
    'a\\"b\\\\c'
    """
    return clean_line(value).replace("\\", "\\\\").replace('"', '\\"')


def _format_number(value: float) -> str:
    """
    >>> _format_number(1), _format_number(True), _format_number(50e9), _format_number(0.125)
    ('1', '1', '50000000000', '0.125')
    """
    return str(int(value)) if float(value).is_integer() else repr(float(value))
