"""The textfile: promtool and Prometheus's rules; what is not known has no series; the number of series is bounded."""

from __future__ import annotations

import re
import shutil
import subprocess

import msgspec
import pytest

from agent.model.finding import Finding
from agent.model.report import Report
from agent.outputs.export.prometheus import FINDINGS_LIMIT, export
from tests.agent.outputs.export.given import H100, MACHINES, bare, hostile, with_gpu, with_topology
from tests.machines import scan_machine

PROMTOOL = shutil.which("promtool")
LINE = re.compile(
    r'fabricscope_[a-z0-9_]+(\{[a-z_]+="(?:[^"\\\n]|\\["\\n])*"(,[a-z_]+="(?:[^"\\\n]|\\["\\n])*")*\})? -?[0-9.e+-]+'
)
REPORTS = [*MACHINES, ("hostile", None), ("evil ids", None), ("nothing", None)]


def given(host: str, fault: str | None) -> Report:
    """A machine, or a report made worse."""
    report = scan_machine(H100 if host in ("hostile", "evil ids", "nothing") else host, fault)
    if host == "nothing":
        return bare(report)
    return hostile(report, host == "hostile") if host in ("hostile", "evil ids") else report


def series(text: str, name: str) -> dict[str, str]:
    """Labels -> value of one metric."""
    samples = re.findall(rf"^fabricscope_{name}(\{{.*\}})? (.*)$", text, re.MULTILINE)
    return dict(samples)


@pytest.mark.parametrize(("host", "fault"), REPORTS)
def test_every_line_is_of_the_format(host: str, fault: str | None) -> None:
    """Samples, HELP and TYPE once a family, no timestamp, no series twice."""
    lines = export(given(host, fault)).splitlines()
    samples = [line for line in lines if not line.startswith("# ")]
    kinds = [line.split(" ")[2] for line in lines if line.startswith("# TYPE ")]

    assert [] == [sample for sample in samples if not LINE.fullmatch(sample)]
    assert len(samples) == len({sample.rpartition(" ")[0] for sample in samples})
    assert len(kinds) == len(set(kinds))
    assert {sample.partition("{")[0].partition(" ")[0] for sample in samples} == set(kinds)


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed (Debian: prometheus)")
@pytest.mark.parametrize(("host", "fault"), REPORTS)
def test_promtool_has_nothing_to_say(host: str, fault: str | None, real_commands: None) -> None:
    """`promtool check metrics` parses and lints: neither an error nor a remark."""
    done = subprocess.run(
        [str(PROMTOOL), "check", "metrics"], input=export(given(host, fault)).encode(), capture_output=True, timeout=30
    )

    assert (0, b"", b"") == (done.returncode, done.stdout, done.stderr)


def test_a_fault_is_a_series():
    """Rule, severity, subject and label of a finding."""
    output = series(export(scan_machine("", "gpu-width-x8")), "finding")

    assert any('rule="pcie-width-downgraded",severity="error",subject="pci:' in labels for labels in output)


def test_findings_are_bounded_and_counted():
    """A thousand findings give FINDINGS_LIMIT series; the count tells them all."""
    report = scan_machine(H100)
    many = [
        Finding(
            rule="r",
            severity="error",
            subject=f"pci:{n}",
            label="",
            summary="",
            impact="",
            remedy="",
            fingerprint="",
        )
        for n in range(1000)
    ]
    summary = msgspec.structs.replace(report.summary, counts={"error": 1000})
    text = export(msgspec.structs.replace(report, findings=many, summary=summary))

    assert FINDINGS_LIMIT == len(series(text, "finding"))
    assert "1000" == series(text, "findings")['{severity="error"}']


def test_a_gpu_whose_links_are_not_known_has_no_count():
    """Unknown is no series, never 0."""
    known = series(export(scan_machine(H100)), "gpu_nvlinks")
    unknown = series(export(with_gpu(scan_machine(H100), links_known=False, links=[])), "gpu_nvlinks")

    assert 8 * 4 == len(known)
    assert 7 * 4 == len(unknown)
    assert not [labels for labels in unknown if '"GPU0"' in labels]


def test_an_idle_link_has_no_speed():
    """2.5 GT/s of a sleeping GPU would be taken for a fault."""
    assert {} == series(export(scan_machine("2xa10-2xt4-1s-idle")), "pci_link_transfers_per_second")
    assert "32000000000" in series(export(scan_machine(H100)), "pci_link_transfers_per_second").values()


def test_a_port_has_its_rate_in_bytes():
    """400 Gb/s are 50 GB/s; a port that is down has no rate, and is 0 as active; one of no known state is not there."""
    report = scan_machine("", "ib-port-down")
    text = export(report)
    nic = report.topology.nics[0]
    unread = msgspec.structs.replace(nic, ports=[msgspec.structs.replace(nic.ports[0], state=None, rate_gbit_s=None)])

    assert {"0", "1"} == set(series(text, "rdma_port_active").values())
    assert "50000000000" in series(text, "rdma_port_rate_bytes_per_second").values()
    assert len(series(text, "rdma_port_active")) == len(series(text, "rdma_port_rate_bytes_per_second")) + 1
    fewer = export(with_topology(report, nics=[unread, *report.topology.nics[1:]]))
    assert len(series(text, "rdma_port_active")) - 1 == len(series(fewer, "rdma_port_active"))


def test_a_probe_that_did_not_run_has_no_series():
    """Skipped is neither success nor failure; denied is none."""
    report = scan_machine(H100)
    first, second, *others = report.probes
    changed = [
        msgspec.structs.replace(first, status="skipped"),
        msgspec.structs.replace(second, status="denied"),
        *others,
    ]
    output = series(export(msgspec.structs.replace(report, probes=changed)), "probe_success")

    assert f'{{probe="{first.name}"}}' not in output
    assert "0" == output[f'{{probe="{second.name}"}}']


def test_the_time_is_that_of_the_observation():
    """Of an old capture: when the host was so, not when it was read."""
    seen = msgspec.structs.replace(
        scan_machine(H100), observed_at="2026-01-02T03:04:05Z", generated_at="2026-09-09T00:00:00Z"
    )

    assert {"": "1767323045"} == series(export(seen), "last_success_timestamp_seconds")
    assert {} == series(export(scan_machine(H100)), "last_success_timestamp_seconds")
