"""RCCL's own topology models: read by us they have the pairs of GPUs and the places of NICs that are in the file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from agent.diagnose import ScanPlan, diagnose
from agent.platforms.profiles import load_profile
from probes.sources.open_source import open_source
from tests.conftest import CORPUS

TWICE = {"topo_4p4h.xml", "topo_8p1h_1.xml"}  # one function in two places: refused
MODELS = sorted((CORPUS / "accelerators" / "amd").glob("rccl-topo_*.xml")) + sorted(
    path
    for path in (CORPUS / "nccl-topo" / "rccl").glob("*.xml")
    if path.name not in TWICE and "<xgmi" in path.read_text(errors="replace")
)
PROFILES = {"rccl-topo_8p_942.xml": "mi300x-8", "rccl-topo_4p_942.xml": "mi300a-4", "rccl-topo_8p_950.xml": "mi350x-8"}
NEAREST = ("PIX", "PXB", "PHB", "NODE", "SYS")


def places(path: Path) -> tuple[set[tuple[str, str]], dict[str, list[str]], dict[str, list[str]]]:
    """Of the file alone: XGMI links by their ends; and the PCI functions above each GPU and NIC, from the root on."""
    links: set[tuple[str, str]] = set()
    gpus: dict[str, list[str]] = {}
    nics: dict[str, list[str]] = {}

    def walk(element: ElementTree.Element, above: list[str]) -> Iterator[None]:
        own = element.get("busid", "").lower() if element.tag == "pci" else ""
        if element.tag == "gpu":
            gpus[above[-1]] = above
            for link in element.findall("xgmi"):
                links.add((above[-1], link.get("target", "").lower()))
        if element.tag == "nic":
            nics[above[-1]] = above
        for child in element:
            yield from walk(child, [*above, own] if own else above)
        yield

    for cpu in ElementTree.parse(path).getroot():
        list(walk(cpu, [f"cpu {cpu.get('numaid')}"]))
    return links, gpus, nics


def shared(a: list[str], b: list[str]) -> int:
    """How many functions two devices have above them in common."""
    return next((depth for depth, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


@pytest.mark.parametrize("model", MODELS, ids=lambda path: path.name)
def test_a_model_gives_the_same_pairs_and_places(model: Path, corpus: Path) -> None:
    """Links by their ends, pairs in the matrix, and for each GPU the NICs that are nearest to it."""
    links, gpus, nics = places(model)
    report, _ = diagnose(open_source(str(model), None), ScanPlan())
    topology = report.topology
    joined = {(path.a, path.b) for path in topology.paths if path.kind == "XGMI"}

    assert set(gpus) == {gpu.id for gpu in topology.gpus}
    assert {(a, b) for a, b in links if a < b} == {(min(pair), max(pair)) for pair in joined}
    for gpu, above in gpus.items():
        ways = {path.b: path.pcie_kind for path in topology.paths if path.a == gpu and path.b in nics}
        if not ways or None in ways.values():
            continue
        best = min(NEAREST.index(kind or "") for kind in ways.values())
        deepest = max(shared(above, nics[nic]) for nic in ways)
        if deepest > 1:  # below one switch
            assert {nic for nic in ways if shared(above, nics[nic]) == deepest} >= {
                nic for nic, kind in ways.items() if NEAREST.index(kind or "") == best and best == 0
            }
            assert best <= 1
        else:
            assert best >= 2


@pytest.mark.parametrize(("model", "profile"), PROFILES.items())
def test_a_model_is_a_platform_of_ours(model: str, profile: str, corpus: Path) -> None:
    """It is recognized, and its GPUs are as many as the profile states."""
    report, _ = diagnose(open_source(str(corpus / "accelerators" / "amd" / model), None), ScanPlan())
    expected = load_profile(profile)

    assert profile == report.platform.profile
    assert expected.gpus is not None
    assert len(report.topology.gpus) == expected.gpus.value
    assert {
        f"{f.vendor or ''}:{f.device or ''}".replace("0x", "")
        for f in report.topology.pci
        if f.id in {g.id for g in report.topology.gpus}
    } <= {*expected.gpu_devices}
