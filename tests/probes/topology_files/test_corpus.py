"""Real topologies of clouds and machines: every file gives a valid report, no false alarm, and the ways it states."""

from __future__ import annotations

import functools
from collections import Counter
from pathlib import Path

import pytest

from agent.diagnose import ScanPlan, diagnose
from agent.model.report import Report
from probes.host.interface import BadSource
from probes.sources.open_source import open_source
from tests.conftest import CORPUS
from tests.test_corpus import check

FILES = sorted(
    str(path.relative_to(CORPUS)) for folder in ("nccl-topo", "hwloc-xml") for path in (CORPUS / folder).rglob("*.xml")
)
REFUSED = {
    "nccl-topo/azhpc-images/ncv4-graph.xml": "is a NCCL graph",
    "nccl-topo/rccl/topo_4p4h.xml": "0000:c5:00.0 is in two places",
    "nccl-topo/rccl/topo_8p1h_1.xml": "0000:a1:00.0 is in two places",
}
# One of its four H100 has no NIC below its switch, where two others have the same ConnectX-7
LACKS_A_RAIL = "hwloc-xml/ipa20.xml"


@functools.cache
def report_of(name: str) -> Report:
    """The report of one file."""
    return diagnose(open_source(str(CORPUS / name)), ScanPlan())[0]


def near(name: str, kind: str = "PIX") -> list[tuple[int, int]]:
    """For every GPU, how many other GPUs and how many NICs are this near by PCIe; sorted."""
    topology = report_of(name).topology
    gpus = {gpu.id for gpu in topology.gpus}
    counts = {gpu: [0, 0] for gpu in gpus}
    for path in topology.paths:
        for one, other in ((path.a, path.b), (path.b, path.a)):
            if path.pcie_kind == kind and one in gpus:
                counts[one][other not in gpus] += 1
    return sorted((others, nics) for others, nics in counts.values())


@pytest.mark.parametrize("name", FILES)
def test_every_file_is_scanned_or_refused_in_one_line(name: str, corpus: Path) -> None:
    """Healthy machines and models of such: nothing above info is found, whatever the files leave out or make up."""
    if name in REFUSED:
        with pytest.raises(BadSource, match=REFUSED[name]):
            open_source(str(corpus / name))
        return
    report = report_of(name)

    check(report)
    assert name.partition("/")[0] == report.source.kind
    assert [] == [f.rule for f in report.findings if f.severity != "info" and name != LACKS_A_RAIL]
    assert [] == [run.reason for run in report.probes if run.status == "failed"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nccl-topo/aws-ofi-nccl/p5.48xl-topo.xml", [(0, 4)] * 8),  # four EFA below each GPU's switch
        ("hwloc-xml/p5.48xl-topo.xml", [(0, 4)] * 8),
        ("nccl-topo/aws-ofi-nccl/p4d-24xl-topo.xml", [(1, 1)] * 8),  # two GPUs and a NIC in each group
        ("nccl-topo/aws-ofi-nccl/p4de-24xl-topo.xml", [(1, 1)] * 8),
        ("nccl-topo/azhpc-images/ndv4-topo.xml", [(1, 2)] * 8),  # two GPUs and two NICs on each NUMA node
        ("nccl-topo/azhpc-images/ndv5-topo.xml", [(0, 1)] * 8),  # one to one
        ("nccl-topo/azhpc-images/ndv2-topo.xml", [(0, 0)] * 8),  # no switch is shown
        ("nccl-topo/ibm-cloud-docs/ibm-gx3d-h100-roce-0.xml", [(0, 1)] * 8),
        ("hwloc-xml/nvidiaDGX2.xml", [(1, 0)] * 16),  # pairs of GPUs; the file leaves NICs out
        ("hwloc-xml/p4d.24xl-topo.xml", [(0, 0)] * 8),  # the guest sees no switch ...
    ],
)
def test_what_shares_a_switch(name: str, expected: list[tuple[int, int]], corpus: Path) -> None:
    """As the comments of the files, or the makers' descriptions of the machines, say."""
    assert expected == near(name)


def test_a_guest_without_switches_meets_on_root_buses(corpus: Path) -> None:
    """... two GPUs and a NIC on each."""
    assert [(1, 1)] * 8 == near("hwloc-xml/p4d.24xl-topo.xml", "PHB")


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("nccl-topo/ibm-cloud-docs/ibm-gx3d-h100-roce-0.xml", {"NV18": 28}),
        ("nccl-topo/simai/topo_8A100_4CX6.xml", {"NV12": 28}),
        ("nccl-topo/rccl/topo_8p_940vm.xml", {"XGMI": 28}),
        ("hwloc-xml/eas-tioga.xml", {"XGMI": 28}),
        ("nccl-topo/azhpc-images/ncv4-topo.xml", {"SYS": 6}),  # its GPUs claim links to themselves
    ],
)
def test_what_joins_gpus(name: str, kinds: dict[str, int], corpus: Path) -> None:
    """Counted links, XGMI, or nothing but PCIe."""
    topology = report_of(name).topology
    gpus = {gpu.id for gpu in topology.gpus}

    assert kinds == Counter(path.kind for path in topology.paths if {path.a, path.b} <= gpus)


def test_links_of_a_cloud_s_file_are_not_believed(corpus: Path) -> None:
    """ "8 GT/s" for every A100 of p4d: no rule says that they are slow, and none that they are well."""
    report = report_of("nccl-topo/aws-ofi-nccl/p4d-24xl-topo.xml")
    checks = {check.rule: check for check in report.checks}

    assert {"untrusted", "unreadable"} >= {f.link.quality.state for f in report.topology.pci if f.link}
    assert [(0, 0)] * 2 == [
        (checks[rule].passed, checks[rule].failed) for rule in ("pcie-width-downgraded", "pcie-speed-downgraded")
    ]
    assert {"unknown"} == {gpu.driver_state for gpu in report.topology.gpus}


def test_gpus_of_a_file_are_not_those_of_a_driver(corpus: Path) -> None:
    """A job that used some GPUs says nothing of the others, and no file says that a GPU can be opened."""
    report = report_of("nccl-topo/ibm-cloud-docs/ibm-gx3d-h100-roce-0.xml")
    missing = next(check for check in report.checks if check.rule == "gpu-missing")

    assert (0, 0, 8) == (missing.passed, missing.failed, missing.unknown)
    assert "unknown" == report.summary.verdict


def test_a_real_dgx2_tells_its_numa_nodes_and_gpus(corpus: Path) -> None:
    """Format 3, with names by NVML."""
    report = report_of("hwloc-xml/nvidiaDGX2.xml")

    assert ["NVIDIA DGX-2H", 2] == [report.node.product, len(report.node.numa_nodes)]
    assert [0] * 8 + [1] * 8 == [gpu.numa_node for gpu in report.topology.gpus]
    assert {"Tesla V100-SXM3-32GB-H"} == {gpu.name for gpu in report.topology.gpus}
    assert [f"GPU{n}" for n in range(16)] == [gpu.label for gpu in report.topology.gpus]
