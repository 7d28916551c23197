"""Instances of AWS with NVIDIA GPUs and EFA: healthy, all EFA are rails, and what is missing is counted.

Addresses and ports are those that hwloc shows of a p5.48xlarge and a p4d.24xlarge (public topologies of NIXL).
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest

from agent.config import Configuration
from agent.diagnose import ScanPlan, diagnose, evaluate_report
from agent.model.report import Report
from fixtures.build import capture_machine, host_in_memory
from fixtures.loader import merge_tables
from fixtures.machine import parse_machine

_NODES = [
    {"id": 0, "socket": 0, "cpus": "0-47", "memory_gib": 1000, "distances": [10, 32]},
    {"id": 1, "socket": 1, "cpus": "48-95", "memory_gib": 1000, "distances": [32, 10]},
]


def build_p5() -> list[str]:
    """Eight emulated switches, each with four EFA and a GPU."""
    lines = []
    for number, bus in enumerate(range(0x44, 0xBC, 0x11)):
        lines += [
            f"host 0000:{bus:02x} node={number // 4}",
            f"  {bus:02x}:00.0 nitro-root",
            f"    {bus + 1:02x}:00.0 nitro-up",
        ]
        for port in range(5):
            part = "h100-sxm" if port == 4 else "efa-gen4"
            lines += [f"      {bus + 2:02x}:01.{port} nitro-down", f"        {bus + 11 + port:02x}:00.0 {part}"]
    return lines


def build_p4d() -> list[str]:
    """Four root buses without a port, each with one EFA and two GPUs."""
    lines = []
    for number, bus in enumerate(("10", "20", "90", "a0")):
        lines += [f"host 0000:{bus} node={number // 2}", f"  {bus}:00.0 ena" if number == 0 else ""]
        lines += [f"  {bus}:1b.0 efa-p4", f"  {bus}:1c.0 a100-sxm4-40", f"  {bus}:1d.0 a100-sxm4-40"]
    return lines


_LINES = {"p5.48xlarge": build_p5(), "p4d.24xlarge": build_p4d()}


def scan(product: str, **overlay: Any) -> Report:
    """The report of an instance."""
    table: dict[str, Any] = {
        "about": product,
        "numa": _NODES,
        "system": {
            "vendor": "Amazon EC2",
            "product": product,
            "hostname": "gpu-01",
            "kernel": "6.8.0-1021-aws",
            "os": "Ubuntu 22.04.5 LTS",
            "hypervisor": "kvm",
        },
        "cpu": {"vendor": "AuthenticAMD", "family": 25, "model": 1, "name": "AMD EPYC 7R13", "sockets": 2},
        "nvlink": {"wiring": "hidden"},
        "software": {
            "driver": "570.124.06",
            "cuda": 12080,
            "modules": ["nvidia", "nvidia_uvm", "efa", "ib_core", "ib_uverbs"],
            "services": {"nvidia-fabricmanager": "active", "nvidia-persistenced": "active"},
        },
        "pci": {"tree": "\n".join(["host 0000:00 node=0", "  00:01.0 qemu-host-bridge", *_LINES[product]])},
    }
    capture = capture_machine(parse_machine(merge_tables(table, overlay), product))
    return diagnose(host_in_memory(capture, product), ScanPlan())[0]


@pytest.mark.parametrize(
    ("product", "rails", "paths"),
    [
        ("p5.48xlarge", 32, {"PIX": 32, "NODE": 96, "SYS": 128, "NV18": 28}),
        ("p4d.24xlarge", 4, {"PHB": 8, "NODE": 8, "SYS": 16, "NV12": 28}),
    ],
)
def test_a_healthy_instance_is_ok(product: str, rails: int, paths: dict[str, int]) -> None:
    """No finding; every EFA is a rail, the nearest of each GPU by the tree; GPUDirect is unknown, with the reason."""
    report = scan(product)

    assert ("ok", []) == (report.summary.verdict, report.findings)
    assert (product, "exact") == (report.platform.profile, report.platform.confidence)
    assert {"rail": rails} == Counter(nic.role for nic in report.topology.nics if nic.driver == "efa")
    assert paths == Counter(path.kind for path in report.topology.paths)
    assert {("unknown", ("efa has its own path to GPU memory, through libfabric: not judged",))} == {
        (row.verdict, tuple(row.causes)) for row in report.gpudirect
    }


@pytest.mark.parametrize(
    ("product", "gone", "finding"),
    [
        ("p5.48xlarge", ["0000:4f:00.0"], ("device-count-low", "error", "31 NICs of the rails' model, 32 expected")),
        ("p5.48xlarge", ["0000:53:00.0"], ("device-count-low", "critical", "7 GPUs on the PCI bus, 8 expected")),
        (
            "p4d.24xlarge",
            ["0000:20:1b.0", "0000:90:1b.0", "0000:a0:1b.0"],
            ("device-count-low", "error", "1 NIC of the rails' model, 4 expected"),
        ),
    ],
)
def test_what_is_missing_is_counted(product: str, gone: list[str], finding: tuple[str, str, str]) -> None:
    """By the type of the instance."""
    report = scan(product, pci={"remove": gone})

    assert [finding] == [(f.rule, f.severity, f.summary) for f in report.findings]


def test_an_efa_that_alone_sends_again_is_found() -> None:
    """In a guest the counts of ports are compared, and no setting."""
    report = scan("p5.48xlarge")

    def find(**counters: int) -> list[tuple[str, str, str]]:
        """With these counts on the sixth EFA; the others have none of the first kind."""
        rails = [nic for nic in report.topology.nics if nic.role == "rail"]
        nics = [
            msgspec.structs.replace(
                nic,
                ports=[
                    msgspec.structs.replace(
                        port, hw_counters=counters if nic is rails[5] else dict.fromkeys(counters, 0)
                    )
                    for port in nic.ports
                ],
            )
            for nic in report.topology.nics
        ]
        changed = msgspec.structs.replace(report, topology=msgspec.structs.replace(report.topology, nics=nics))
        findings = evaluate_report(changed, Configuration()).findings
        return [(finding.rule, finding.severity, finding.summary.partition(" since")[0]) for finding in findings]

    found = [("counter-outlier", "warning", "5000 retransmission timeouts")]
    assert found == find(retrans_timeout_events=5000, tx_pkts=0, rx_pkts=0)
    assert [] == find(retrans_timeout_events=99)
    assert [] == find(retrans_timeout_events=5000, tx_pkts=9_000_000)
    assert [] == find(rx_drops=5000)
