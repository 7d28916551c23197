"""What is said above info of every file of the corpus: tests/corpus_expected.tsv, a line a file, judged by hand.

`as` is the name that the file has in a folder of saved outputs ("-": the file as it is, which is opened by what it
holds). Where the name is of an interface, a listing stands beside it that knows the interface. A `file` that ends in
"/" stands for every file below that folder.
`expected` is every finding above info, "unknown RULE" for a fault that is in the file and that it alone cannot prove
(the remark says why), "none", or "refused" where the file is no evidence of ours.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

import pytest

from agent.diagnose import ScanPlan, diagnose
from agent.model.report import Report
from agent.rules.catalogue import every_rule
from probes.host.interface import BadSource
from probes.sources.open_source import open_source
from tests.conftest import CORPUS

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
    return [
        Row(file, saved_as, expected.split(", "), remark)
        for name, saved_as, expected, remark in lines[1:]
        for file in (_files(CORPUS / name) if name.endswith("/") else [name])
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


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.file)
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
    assert set(_files(corpus)) - {"README.md"} == {row.file for row in rows()}


def test_rules_of_the_table_are_rules() -> None:
    """Findings that are expected, and what is said of them."""
    named = {item.split()[1] for row in rows() for item in row.expected if " " in item}

    assert set() == named - {rule.name for rule in every_rule()}
    assert [] == [row.file for row in rows() if row.expected not in (["none"], ["refused"]) and not row.remark]
