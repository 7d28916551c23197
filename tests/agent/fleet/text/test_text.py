"""Answers as text."""

from __future__ import annotations

import io
import re

import pytest

from agent.fleet.cluster.cabling_plan import Cables
from agent.fleet.cluster.text import render_cables_page
from agent.fleet.hostlist import fold
from agent.fleet.questions.deviations import NoMajority, Outlier
from agent.fleet.questions.drift import Drift, DriftChange
from agent.fleet.questions.duplicates import Duplicate, Duplicates, Holder
from agent.fleet.questions.findings import FindingGroup, Findings, Share
from agent.fleet.questions.multisets import ABSENT
from agent.fleet.questions.outliers import Outliers
from agent.fleet.questions.summary import ClassLine, FleetSummary, RuleCoverage, Worst
from agent.fleet.text import drift, duplicates, findings, outliers, summary, tables
from agent.fleet.text.outliers import describe_outlier
from agent.model.reasons import NO_EARLIER_RUN
from agent.outputs.text.lines import to_plain_text

# Answers fit the terminal, at any width, and say who, what, what is usual, of how many.


MANY = fold(f"gpu{n:05}" for n in range(0, 60_000, 7))
CLASS = "Supermicro SYS-821GE-TNHR, 8x H200 SXM, 16x MT_0000000834"
ODD = Outlier(
    attribute="nic-firmware",
    what="NIC firmware",
    hardware_class=CLASS,
    places=["MT_0000000834"],
    value="28.39.1002",
    usual="28.43.2026",
    usual_count=99_000,
    of=100_000,
    one="NIC",
    hosts=MANY,
    nodes=8572,
    things=8572,
    also=["x y, usually z"],
)
ANSWERS = {
    "outliers": (
        outliers,
        Outliers(
            outliers=[ODD],
            mixed=[
                NoMajority(
                    attribute="driver", what="GPU driver", hardware_class=CLASS, one="node", values=[("1", 5)], of=9
                )
            ],
            compared_nodes=100_000,
            classes={CLASS: 100_000},
            too_few={"one": 1},
        ),
    ),
    "summary": (
        summary,
        FleetSummary(
            nodes=60_000,
            newest="2026-01-15T09:14:57Z",
            oldest="2026-01-06T08:03:32Z",
            stale_after_seconds=5400,
            verdicts={"critical": 3, "ok": 59_000},
            stale=8572,
            stale_hosts=MANY,
            classes=[ClassLine(hardware_class=CLASS * 3, nodes=60_000, verdicts={"ok": 5}, stale=1)],
            coverage=[
                RuleCoverage(rule="a-rule", passed=1, unknown=59_999, reasons=[("no reason " * 30, 7)], missing=2)
            ],
            worst=[
                Worst(node="gpu1", hardware_class=CLASS, verdict="critical", critical=1, error=0, warning=2, stale=True)
            ],
            more_worst=2,
        ),
    ),
    "findings": (
        findings,
        Findings(
            findings=[
                FindingGroup(
                    rule="a-rule",
                    severity="error",
                    of_class=False,
                    nodes=8572,
                    findings=9000,
                    hosts=MANY,
                    classes=[Share(hardware_class=CLASS, nodes=8572, of=60_000)] * 9,
                    summary="s " * 99,
                    remedy="r " * 99,
                ),
                FindingGroup(
                    rule="b-rule",
                    severity="info",
                    of_class=True,
                    nodes=9,
                    findings=9,
                    classes=[Share(hardware_class=CLASS, nodes=9, of=10, without="gpu7")],
                ),
            ],
            nodes=60_000,
        ),
    ),
    "duplicates": (
        duplicates,
        Duplicates(
            duplicates=[
                Duplicate(kind="machine-id", value="beef", hosts=MANY, nodes=8572, note="cloned"),
                Duplicate(
                    kind="LID", value="7", hosts="a,b", nodes=2, holders=[Holder("a", "mlx5_0"), Holder("b", None)]
                ),
            ],
            not_judged=["LIDs: several subnets"],
        ),
    ),
    "drift": (
        drift,
        Drift(
            since="2026-01-15T08:00:00Z",
            newest="2026-01-15T09:00:00Z",
            added=MANY,
            added_nodes=8572,
            replaced="gpu7",
            changes=[
                DriftChange(
                    subject="host",
                    what="driver",
                    old="1",
                    new="2",
                    hosts=MANY,
                    nodes=8572,
                    things=8572,
                    first="a",
                    last="b",
                ),
                DriftChange(
                    subject="GPU", what="gone", hosts="gpu7", nodes=1, things=1, labels=["GPU3"], first="a", last="a"
                ),
                DriftChange(subject="GPU", what="uuid", hosts="gpu8", nodes=1, things=2, first="a", last="a"),
                DriftChange(
                    subject="finding",
                    what="new",
                    hosts="gpu8",
                    nodes=1,
                    things=2,
                    labels=["a-rule"],
                    first="a",
                    last="a",
                ),
            ],
            compared_nodes=5,
        ),
    ),
}


@pytest.mark.parametrize("width", [64, 80, 200])
@pytest.mark.parametrize("name", ANSWERS)
def test_lines_fit(name, width):
    module, answer = ANSWERS[name]
    text = to_plain_text(module.page(answer, width))
    long = [line for line in text.splitlines() if len(line) > max(width, 76 if name == "summary" else 64)]
    assert long == []
    assert len(text) < 6000


def test_an_outlier_says_all():
    assert (
        outliers.sentence(
            Outlier(
                attribute="gpu-nvlinks-active",
                what="active NVLinks",
                hardware_class=CLASS,
                value="17",
                usual="18",
                usual_count=303,
                of=304,
                one="GPU",
                hosts="gpu[7-8]",
                nodes=2,
                things=2,
                labels=["GPU1"],
                by="1 fewer",
            )
        )
        == "gpu[7-8]: active NVLinks is 17 (1 fewer) on 2 GPUs (GPU1); usually 18 (303 of 304 GPUs, 99.6%)"
    )


def test_many_values_of_one_kind_on_the_same_nodes_are_one_line():
    """Three are three lines. Other nodes and other kinds have their own, also where their values lie between."""
    rows = [
        Duplicate(kind="GPU UUID", value=f"u{n}", hosts=hosts, nodes=2)
        for n, hosts in enumerate(["a,b", "c,d", "a,b", "a,b", "c,d", "a,b", "c,d"])
    ]
    text = to_plain_text(duplicates.page(Duplicates(duplicates=rows)))

    assert text.splitlines() == [
        "7 identifiers on more than one node or machine",
        "  GPU UUID, 4 values such as u0: a,b",
        "  GPU UUID u1: c,d",
        "  GPU UUID u4: c,d",
        "  GPU UUID u6: c,d",
    ]


def test_nodes_that_did_not_report_are_not_compared():
    """Nothing changed only where nodes have reported since."""
    stopped = to_plain_text(drift.page(Drift(since="x", newest="w", compared_nodes=5, silent="n[1-5]", silent_nodes=5)))
    some = to_plain_text(drift.page(Drift(since="x", newest="y", compared_nodes=5, silent="n[1-3]", silent_nodes=3)))

    assert "nothing is compared" in stopped
    assert "nothing changed" not in stopped
    assert some.startswith("2 nodes compared since x")
    assert "nothing changed" in some


def test_nothing_to_say():
    assert "no outliers" in to_plain_text(outliers.page(Outliers(compared_nodes=5, classes={"c": 5})))
    assert "no findings" in to_plain_text(findings.page(Findings(nodes=5)))
    assert "nothing changed" in to_plain_text(drift.page(Drift(since="x", compared_nodes=5)))
    assert "no nodes" in to_plain_text(summary.page(FleetSummary(nodes=0, stale_after_seconds=1)))
    assert "no duplicate identifiers" in to_plain_text(duplicates.page(Duplicates()))


def test_of_no_node_nothing_is_said_to_be_well():
    pages = (
        outliers.page(Outliers(compared_nodes=0, classes={})),
        findings.page(Findings(nodes=0)),
        drift.page(Drift(since="x")),
        render_cables_page(Cables(by="pattern", right=0, judged=0, of=0, wrong=[]), ["reports of 0 nodes"], 80),
    )
    for page in pages:
        assert "ok" not in {style for line in page for _, style in line}
        assert not re.search("no outliers|no findings|nothing changed|where they should be", to_plain_text(page))


def test_what_is_wrong_with_the_worst_nodes_is_named():
    """Three rules of each; what does not fit goes on below."""
    wrong = [f"rule-{n} mlx5_{n}/1 (enp{n}s0f0np0)" for n in range(5)]
    counts = {"stale": False, "critical": 0, "error": 1, "warning": 0}
    worst = [
        Worst(node=f"n{n}", verdict="error", hardware_class=CLASS, findings=wrong[:n], **counts) for n in (1, 3, 5)
    ]
    text = to_plain_text(summary.page(FleetSummary(nodes=3, stale_after_seconds=1, worst=worst), 80))
    rows = text.partition("Worst nodes\n")[2].partition("\n\n")[0].splitlines()[1:]

    assert "  n1    error    rule-0 mlx5_0/1 (enp0s0f0np0)" == rows[0]
    assert all(len(row) <= 80 for row in rows)
    assert [3, 3] == [sum(f"rule-{n}" in part for n in range(5)) for part in ("".join(rows[1:3]), "".join(rows[3:]))]
    assert rows[-1].endswith("and 2 rules more")


# Differences as sentences.


@pytest.mark.parametrize(
    ("attribute", "what", "value", "usual", "one", "sentence"),
    [
        ("driver", "GPU driver", "570.30", "570.124", "node",
         "GPU driver is 570.30; usually 570.124 (31 of 32 nodes, 97%)."),
        ("rail-mtu", "MTU of a rail", "1500", "4220", "rail", "MTU is 1500; usually 4220 (31 of 32 rails, 97%)."),
        ("rail-pfc", "PFC of a rail", "off", "priority 3", "rail",
         "PFC is off; usually priority 3 (31 of 32 rails, 97%)."),
        ("rail-pfc", "PFC of a rail", "priorities 3, 4", "off", "rail",
         "PFC is on for priorities 3, 4; usually off (31 of 32 rails, 97%)."),
        ("nic-state", "state of a NIC", "no_driver", "present", "NIC",
         "No driver is bound; usually a driver is bound (31 of 32 NICs, 97%)."),
        ("services", "services", "nvidia-fabricmanager=failed", "nvidia-fabricmanager=active", "node",
         "Service nvidia-fabricmanager is failed; usually active (31 of 32 nodes, 97%)."),
        ("cmdline", "kernel command line", ABSENT, "iommu=pt", "node",
         "Kernel command line has no iommu=pt; 31 of 32 nodes have it (97%)."),
        ("cmdline", "kernel command line", "iommu=pt", ABSENT, "node",
         "Kernel command line has iommu=pt; 31 of 32 nodes do not have this option (97%)."),
    ],
)  # fmt: skip
def test_a_difference_is_a_sentence(attribute: str, what: str, value: str, usual: str, one: str, sentence: str) -> None:
    """What it is, and what its peers have."""
    outlier = Outlier(
        attribute=attribute, what=what, hardware_class="H100", value=value, usual=usual, usual_count=31, of=32, one=one,
        hosts="gpu1", nodes=1, things=1,
    )  # fmt: skip

    assert sentence == describe_outlier(outlier)


def print_rows(rows: list[tuple[object, ...]], width: int | None) -> list[str]:
    out = io.BytesIO()
    tables.write(["node", "gpus", "summary"], [rows], "text", out, width)
    return out.getvalue().decode().splitlines()


def test_a_host_list_that_fits_its_column_is_in_one_piece() -> None:
    answer = Findings(
        findings=[
            FindingGroup(
                rule="a-rule", severity="error", of_class=False, nodes=3, findings=3, hosts="gpu[0079,0125,0431]"
            )
        ],
        nodes=60_000,
    )
    assert "a-rule  gpu[0079,0125,0431]" in to_plain_text(findings.page(answer, 80))


def test_what_the_fleet_shows_instead_of_a_baseline_is_named() -> None:
    answer = FleetSummary(
        nodes=9,
        newest="2026-01-15T09:14:57Z",
        oldest="2026-01-15T08:03:32Z",
        stale_after_seconds=5400,
        verdicts={"ok": 9},
        coverage=[RuleCoverage(rule="inventory-lost", passed=0, unknown=9, reasons=[(NO_EARLIER_RUN, 9)])],
    )
    assert "to keep one; fleet drift compares the reports of a node [inventory-lost]" in to_plain_text(
        summary.page(answer, 200)
    )


def test_a_table_uses_the_width() -> None:
    """Numbers end at one column; long texts are folded in theirs; what is wider yet is a block of lines per row."""
    rows: list[tuple[object, ...]] = [("gpu001", 8, "PCIe link is x8; both ends support x16"), ("gpu2", 16, None)]

    assert print_rows(rows, None)[2:] == [
        "gpu001     8  PCIe link is x8; both ends support x16", "gpu2      16", "(2 rows)"
    ]  # fmt: skip
    assert print_rows(rows, 80) == print_rows(rows, None)
    folded = print_rows(rows, 40)
    assert folded[2:] == [
        "gpu001     8  PCIe link is x8; both ends",
        "              support x16",
        "gpu2      16",
        "(2 rows)",
    ]
    assert 40 >= max(map(len, folded))
    assert print_rows(rows, 20) == [
        "row 1", "  node     gpu001", "  gpus     8", "  summary  PCIe link is x8; both ends support x16",
        "row 2", "  node     gpu2", "  gpus     16", "(2 rows)",
    ]  # fmt: skip
