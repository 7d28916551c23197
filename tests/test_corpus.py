"""Real machines, whole: every tree and every saved output of the corpus is scanned, and nothing of it breaks us.

What each of them must say in detail stands in the tests of its probe; here it is the pipeline that is held.
"""

from __future__ import annotations

import functools
import json
import tarfile
from pathlib import Path

import jsonschema
import msgspec
import pytest

from agent.config import Configuration
from agent.diagnose import ScanPlan, diagnose, evaluate_report
from agent.model.report import REPORT_LIMIT_BYTES, Report
from agent.model.schema import schema_text
from agent.reports import encode_report
from probes.host.interface import BadSource, Host
from probes.sources.open_source import open_source
from tests.conftest import CORPUS
from tests.machines import still

TREES = sorted(path.name for path in (CORPUS / "trees").glob("*.tar.xz"))
TEXTS = sorted(
    str(path.relative_to(CORPUS))
    for folder in ("text", "blocks", "lspci", "nvidia-smi")
    for path in (CORPUS / folder).rglob("*")
    if path.is_file() and path.name != "INDEX.tsv"
)
OURS = (  # folders of outputs that some probe of ours reads: each file of them is recognized, but for NOT_OURS
    "blocks/ib", "blocks/nvidia-smi-topo", "blocks/nvlink-s", "blocks/rdma-link", "lspci", "nvidia-smi",
    "text/dmesg", "text/ib-ibdev2netdev", "text/ib-ibstat", "text/ib-ibstatus", "text/ib-ibv_dev", "text/ib-show_gids",
    "text/lldp", "text/lsmod", "text/lspci", "text/nvidia-smi", "text/rdma-link",
)  # fmt: skip
NOT_OURS = {
    "text/lspci/acsctl-grep-all-off.txt",  # lines cut out of an lspci -vvv: no function is named
    "text/lspci/lnk-4x-mi50-x8-gen1.txt",  # likewise
    "text/lspci/lnk-4x-mi50-x8-gen4.txt",  # likewise
    "text/lspci/tv-asus-esc8000a-e12.txt",  # lspci -tv: a drawing
    "text/lspci/tvnn-dell-2s-broadwell.txt",  # likewise
    "text/nvidia-smi-nvlink/dcgmi-nvlink-s-8h100.txt",  # dcgmi, not nvidia-smi
    "text/nvidia-smi-q/a100-remap-pending-excerpt.txt",  # an excerpt without its head
    "text/nvidia-smi-topo-m/win-591-error-option-m.txt",  # an error text of Windows
}
NOT_A_HOST = {"gpud-infiniband-h100.tar.xz"}  # a class folder without its sys/: no source kind of ours


@functools.cache
def validator() -> jsonschema.Draft202012Validator:
    """Of the schema as it is now."""
    return jsonschema.Draft202012Validator(json.loads(schema_text()))


def opened(place: str) -> Host | None:
    """The host that a file holds; None where it is refused, in one line that names it."""
    try:
        return open_source(place, None)
    except BadSource as why:
        refused = str(why)
    assert refused.startswith(place)
    assert 1 == len(refused.splitlines())
    return None


def check(report: Report) -> None:
    """Valid, small, and the same when it is judged again."""
    data = encode_report(report)
    again = evaluate_report(msgspec.json.decode(data, type=Report), Configuration())
    assert [] == [error.message for error in validator().iter_errors(json.loads(data))]
    assert len(data) < REPORT_LIMIT_BYTES
    assert encode_report(still(report)) == encode_report(still(again))
    for keys in keys_of(report):
        assert len(set(keys)) == len(keys)


def keys_of(report: Report) -> list[list[object]]:
    """What must be there once each: a fleet takes no report where it is not."""
    topology = report.topology
    alike = (topology.pci, topology.gpus, topology.nics, topology.netdevs)
    links: list[list[object]] = [[link.link for link in gpu.links] for gpu in topology.gpus]
    ports: list[list[object]] = [[port.port for port in nic.ports] for nic in topology.nics]
    return [
        *([row.id for row in rows] for rows in alike),
        [(path.a, path.b) for path in topology.paths],
        [probe.name for probe in report.probes],
        [check.rule for check in report.checks],
        *links,
        *ports,
    ]


@pytest.mark.parametrize("tree", TREES)
def test_every_tree_is_scanned_packed_and_unpacked_alike(tree: str, corpus: Path, tmp_path: Path) -> None:
    """The archive read in memory and the folder that it unpacks to are the same machine."""
    packed = corpus / "trees" / tree
    if tree in NOT_A_HOST:
        with pytest.raises(BadSource):
            open_source(str(packed), None)
        return
    report, _ = diagnose(open_source(str(packed), None), ScanPlan())
    with tarfile.open(packed) as archive:
        # "data" would refuse links that are absolute in the other host; Python before 3.11.4 has no filters
        archive.extraction_filter = getattr(tarfile, "tar_filter", None)
        archive.extractall(tmp_path)
    unpacked, _ = diagnose(open_source(str(tmp_path), None), ScanPlan())

    check(report)
    assert encode_report(still(report)) == encode_report(still(unpacked))


@pytest.mark.parametrize("text", TEXTS)
def test_every_saved_output_is_scanned_or_refused_in_one_line(text: str, corpus: Path) -> None:
    """A single file is recognized by what it holds; one that holds nothing of ours is refused, never a traceback."""
    host = opened(str(corpus / text))
    if host is None:
        assert text in NOT_OURS or not text.startswith(OURS)
        return
    report, _ = diagnose(host, ScanPlan())
    check(report)
    assert [] == [run.reason for run in report.probes if run.status == "failed" and "Error at" in (run.reason or "")]
