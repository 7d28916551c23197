"""Real captures of the corpus: each is scanned without failure, and gives the findings of tests/corpus_expected.tsv.

Columns of that table: `as` is the name of the file in a folder of saved outputs ("-": the file itself, opened by its
content). If the name is an interface, a listing beside it contains the interface. A `file` that ends in "/" stands for
every file below that folder. `expected` is every finding above info, "unknown RULE" for a fault that is in the file but
cannot be proved from it alone (the remark says why), "none", or "refused" for a file that is no evidence.
"""

from __future__ import annotations

import csv
import functools
import json
import tarfile
from pathlib import Path
from typing import NamedTuple

import jsonschema_rs
import msgspec
import pytest

from agent.config import Configuration
from agent.diagnose import ScanPlan, diagnose, evaluate_report
from agent.model.report import REPORT_LIMIT_BYTES, Report, schema_text
from agent.reports import encode_report
from agent.rules.catalogue import every_rule
from probes.host.interface import BadSource, Host
from probes.sources.open_source import open_source
from tests.conftest import CORPUS, sample_of
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
    "text/lspci/lnk-4x-mi50-x8-gen1.txt",  # lines cut out of an lspci -vvv: no function is named
    "text/lspci/lnk-4x-mi50-x8-gen4.txt",  # likewise
    "text/lspci/tv-asus-esc8000a-e12.txt",  # lspci -tv: a drawing
    "text/lspci/tvnn-dell-2s-broadwell.txt",  # likewise
    "text/nvidia-smi-nvlink/dcgmi-nvlink-s-8h100.txt",  # dcgmi, not nvidia-smi
    "text/nvidia-smi-topo-m/win-591-error-option-m.txt",  # an error text of Windows
}
WITH_TRUTH = ("jobs/", "threads/", "bug-reports/")  # each case states what is wrong in a file of its own
NOT_A_HOST = {"gpud-infiniband-h100.tar.xz"}  # a class folder without its sys/: no source kind of ours


@functools.cache
def validator() -> jsonschema_rs.Draft202012Validator:
    """Of the schema as it is now."""
    return jsonschema_rs.Draft202012Validator(json.loads(schema_text()))


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


@pytest.mark.parametrize("tree", sample_of(TREES))
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


@pytest.mark.parametrize("text", sample_of(TEXTS))
def test_every_saved_output_is_scanned_or_refused_in_one_line(text: str, corpus: Path) -> None:
    """A single file is recognized by what it holds; one that holds nothing of ours is refused, never a traceback."""
    host = opened(str(corpus / text))
    if host is None:
        assert text in NOT_OURS or not text.startswith(OURS)
        return
    report, _ = diagnose(host, ScanPlan())
    check(report)
    assert [] == [run.reason for run in report.probes if run.status == "failed" and "Error at" in (run.reason or "")]


TABLE = Path(__file__).with_name("corpus_expected.tsv")
INDEXES = {"INDEX.tsv", "TREES.tsv"}
LINK = (
    "2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP mode DEFAULT group default qlen 1000\n"
    "    link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff promiscuity 0 parentbus pci parentdev 0000:1a:00.0 \n"
)
PORT = "link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev eth0\n"


class Row(NamedTuple):
    """A line of the table."""

    file: str
    saved_as: str
    expected: list[str]
    remark: str


def rows() -> list[Row]:
    """The table without its heading."""
    with TABLE.open(newline="") as file:
        lines = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    own = {name for name, *_ in lines}  # before the line of their folder
    return [
        Row(file, saved_as, expected.split(", "), remark)
        for name, saved_as, expected, remark in lines[1:]
        for file in ([one for one in _files(CORPUS / name) if one not in own] if name.endswith("/") else [name])
    ]


def _files(folder: Path) -> list[str]:
    """Files of the corpus below a folder, without indexes."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.name not in INDEXES)
    return [str(path.relative_to(CORPUS)) for path in paths]


def report_of(row: Row, folder: Path) -> Report | None:
    """What is said of the file; None where it is refused."""
    place = CORPUS / row.file
    if row.saved_as != "-":
        (folder / row.saved_as).write_bytes(place.read_bytes())
        if "eth0" in row.saved_as:
            (folder / "ip_-d_link.txt").write_text(LINK)
            (folder / "rdma_link.txt").write_text(PORT)
        place = folder
    try:
        return diagnose(open_source(str(place)), ScanPlan())[0]
    except BadSource:
        return None


@pytest.mark.parametrize("row", sample_of(rows()), ids=lambda row: row.file)
def test_what_is_said_of_it(row: Row, corpus: Path, tmp_path: Path) -> None:
    """No finding above info on what is healthy, and what is faulty is found, or unknown for a reason."""
    report = report_of(row, tmp_path)
    if report is None:
        assert ["refused"] == row.expected
        return
    findings = sorted(f"{finding.severity} {finding.rule}" for finding in report.findings if finding.severity != "info")
    reasons = {check.rule: [subject.reason for subject in check.unknown_subjects] for check in report.checks}
    due = {item.removeprefix("unknown ") for item in row.expected if item.startswith("unknown ")}

    assert (
        sorted(finding for finding in row.expected if finding != "none" and not finding.startswith("unknown "))
        == findings
    )
    assert set() == {rule for rule in due if not any(reasons[rule])}


def test_every_file_of_the_corpus_has_its_line(corpus: Path) -> None:
    """And no line is of a file that is not there."""
    files = {file for file in _files(corpus) if not file.startswith(WITH_TRUTH)}
    assert files - {"README.md"} == {row.file for row in rows()}


def test_rules_of_the_table_are_rules() -> None:
    """Findings that are expected, and what is said of them."""
    named = {item.split()[1] for row in rows() for item in row.expected if " " in item}

    assert set() == named - {rule.name for rule in every_rule()}
    assert [] == [row.file for row in rows() if row.expected not in (["none"], ["refused"]) and not row.remark]


def scan_source(path: Path) -> Report:
    """The report of one saved output."""
    return diagnose(open_source(str(path)), ScanPlan())[0]


def test_a_gpu_with_three_nics_on_its_switch_is_not_far_from_them(corpus: Path) -> None:
    """Which of the three is its rail is not in the matrix; that is no fault of GPU3."""
    report = scan_source(corpus / "text" / "nvidia-smi-topo-m" / "8gpu-h200-10nic-ansi.txt")

    assert [] == report.findings


@pytest.mark.parametrize(
    "name",
    [
        "lspci/vvv-cx7-gen5x16.txt",
        "lspci/vvv-cx7-gen4x8-downgraded-and-vf.txt",
        "lspci/vvv-nvswitch-22a3.txt",
        "nvidia-smi-nvlink/s-v100-gpu3-2inactive-excerpt.txt",
        "nvidia-smi-topo-m/8gpu-h100-dell-6nic-cpuset-affinity.txt",
    ],
)
def test_a_part_of_a_machine_is_never_ok(corpus: Path, name: str) -> None:
    """One device of lspci, one GPU's links, a matrix: what is not in it is not known to be well."""
    report = scan_source(corpus / "text" / name)

    assert "unknown" == report.summary.verdict


def test_two_dead_links_of_a_lone_v100_are_a_doubt(corpus: Path) -> None:
    """An SXM module by its name: its links are wired, and its siblings are not in the output: a note."""
    report = scan_source(corpus / "text" / "nvidia-smi-nvlink" / "s-v100-gpu3-2inactive-excerpt.txt")

    assert [("nvlink-inactive", "info")] == [(f.rule, f.severity) for f in report.findings]


def test_ports_that_answer_all_ones_are_told(corpus: Path) -> None:
    """Three ports of a switch, and nothing that says what hung below them."""
    report = scan_source(corpus / "text" / "lspci" / "vvv-rev-ff-fallen-off-bus.txt")

    assert {("pcie-device-gone", "warning")} == {(f.rule, f.severity) for f in report.findings}
    assert 3 == len(report.findings)


@pytest.mark.parametrize(
    ("name", "verdict"), [("cache_milan_good", "unknown"), ("learn_ib_intf_operstate_down", "warning")]
)
def test_functions_without_a_class_may_be_anything(corpus: Path, name: str, verdict: str) -> None:
    """Trees that were saved without `class` and `vendor` files."""
    assert verdict == scan_source(corpus / "trees" / f"gcm-{name}.tar.xz").summary.verdict
