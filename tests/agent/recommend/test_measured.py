"""Logs of jobs, and what others published: measured figures beside those of the prediction."""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path

import pytest

from agent.cli.main import run
from agent.job.measured_tables import read_tables
from agent.model.recommend_answers import JudgedMeasurement
from agent.outputs.text.lines import to_plain_text
from agent.outputs.text.recommend_answers import render_measured
from agent.platforms.profiles import load_profile
from agent.recommend.answer import Question, answer_profile, answer_report
from agent.recommend.constants import NEWEST
from agent.recommend.judge import judge_table
from agent.recommend.machine import assume_node, read_node
from agent.recommend.overheads import FITTED
from agent.recommend.predict import HEALTHY, predict
from bench.prediction import (
    BETWEEN,
    LARGE,
    MARK,
    Outcome,
    evaluate,
    fit_overheads,
    format_overheads,
    main,
    median_error,
    share_of,
    summarize,
)
from bench.prediction import (
    read_tables as read_published,
)
from tests.machines import scan_machine

H100 = "8xh100-sxm-2s-8xcx7-ib-4nvsw"
RANKS = "".join(
    f"#  Rank {rank:2} Group 0 Pid 1 on node{rank // 8} device {rank % 8} [0000:19:00] H100\n" for rank in range(16)
)
ROW = "  1073741824  268435456  float  {operation}  -1  4300.0  {algorithm}  {bus}  0  4300.0  {algorithm}  {bus}  0\n"
PERFTEST = """\
 Device         : {device}
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      5000             392.00             {rate}             0.75
"""
COPIES = """\
Running device_to_device_memcpy_read_ce.
memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)
          0         1         2
0      0.00    {first}    396.36
1    396.14      0.00    396.10
2    396.14    396.20      0.00

SUM device_to_device_memcpy_read_ce 1
Running host_to_device_memcpy_ce.
memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)
          0         1         2
0     55.10     55.20     {host}

SUM host_to_device_memcpy_ce 1
"""


def judge(
    text: str, fault: str | None = None, collective: str | None = None, nodes: int | None = None
) -> list[JudgedMeasurement]:
    """Every figure of a text against a machine."""
    report = scan_machine(H100, fault)
    answer = answer_report(report, Question())
    table = read_tables(text.splitlines())
    judged = judge_table(table, read_node(report), answer, NEWEST, (collective, nodes))
    assert judged.rows
    assert "Measured, and expected" in to_plain_text(render_measured(judged, 90))
    return judged.rows


@pytest.mark.parametrize(
    ("bus", "algorithm", "operation", "verdict", "reason"),
    [
        (455.0, 242.7, "sum", "good", ""),
        (216.0, 115.2, "sum", "low", "GPUDirect RDMA"),
        (853.0, 455.0, "sum", "above", "on two nodes a tree"),
        (0.0, 0.0, "sum", "not-judged", "without MPI=1"),
        (360.0, 384.0, "none", "good", ""),
    ],
)
def test_collectives_between_nodes(bus: float, algorithm: float, operation: str, verdict: str, reason: str) -> None:
    """Two nodes by the ranks that the table lists."""
    (row,) = judge(RANKS + ROW.format(bus=bus, algorithm=algorithm, operation=operation))

    assert verdict == row.verdict
    assert ("all_reduce" if operation == "sum" else "all_gather") == row.measured.what
    assert reason in " ".join(row.reasons)


def test_what_is_as_bad_as_the_machine_is_says_so() -> None:
    """Half of it is right for a machine with a narrow link, and what its repair gives is stated."""
    (row,) = judge(RANKS + ROW.format(bus=180.0, algorithm=192.0, operation="none"), "gpu-width-x8")

    assert ("good", True) == (row.verdict, "after the repairs" in row.reasons[0])


def test_rings_inside_a_node_and_parts_of_a_node() -> None:
    """NVLS that is off is named; a number of ranks that is no whole node is not judged."""
    (low,) = judge(ROW.format(bus=367.0, algorithm=209.7, operation="sum"))
    (part,) = judge(ROW.format(bus=300.0, algorithm=200.0, operation="sum"))

    assert ("low", "NVLS is not in use: this is what rings reach") == (low.verdict, low.reasons[0])
    assert ("not-judged", "4 ranks are no whole nodes of 8 GPUs") == (part.verdict, part.reasons[0])


def test_copies_by_the_links_and_by_their_siblings() -> None:
    """One pair below the others is low."""
    good = judge(COPIES.format(first=396.2, host=55.0))
    low = judge(COPIES.format(first=296.2, host=25.0))

    assert {"good"} == {row.verdict for row in good}
    assert ["device_to_device_memcpy_read_ce GPU0 GPU1", "host_to_device_memcpy_ce GPU2"] == [
        row.measured.what for row in low if row.verdict == "low"
    ]


def test_rdma_by_the_rate_of_the_rail() -> None:
    """Gb/s and MB/s; a device that is no rail has no rate."""
    rail = read_node(scan_machine(H100)).rails[0].label

    assert ["good", "low", "above"] == [
        judge(PERFTEST.format(device=rail, rate=rate))[0].verdict for rate in (391.5, 290.0, 600.0)
    ]
    (row,) = judge(PERFTEST.format(device=rail, rate=48900.0).replace("Gb/sec", "MB/sec"))
    assert ("good", 48.9) == (row.verdict, row.measured.gbyte_s)


def test_public_tables(corpus: Path) -> None:
    """Tables of healthy machines are good from 32 MB on."""
    profile = load_profile("dgx-h100")
    node, answer = assume_node(profile, None), answer_profile(profile, None, Question())
    text = (corpus / "measured" / "logs" / "dgx-h100-1n-allreduce.txt").read_text()
    judged = judge_table(read_tables(text.splitlines()), node, answer, NEWEST, (None, None))

    assert {"good"} == {row.verdict for row in judged.rows}
    assert 12 == len(judged.rows)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """JSON and text against a platform; a file without rows is one line and exit 2."""
    table, empty = tmp_path / "table", tmp_path / "empty"
    table.write_text(ROW.format(bus=470.0, algorithm=268.6, operation="sum"))
    empty.write_text("size\n")

    assert 0 == run(["recommend", "--profile", "dgx-h100", "--measured", str(table), "--format", "json"])
    answer = json.loads(capsys.readouterr().out)
    assert ("fabricscope.measured/1", "good") == (answer["schema"], answer["verdict"])
    assert 0 == run(["recommend", "--profile", "dgx-h100", "--measured", str(table)])
    assert "good" in capsys.readouterr().out
    for wrong in ([str(empty)], [str(table), "--format", "conf"], [str(table), "--size", "1G"]):
        assert 2 == run(["recommend", "--profile", "dgx-h100", "--measured", *wrong])
        assert capsys.readouterr().err.startswith("error: ")


# Predictions against published tables, each by a fit that has not seen its source.


OWN = Path("bench/measured.tsv")
RINGS = ("all_reduce", "all_gather")
PAGE = Path("docs/prediction.md")


@pytest.fixture
def tables(corpus: Path) -> tuple[Path, ...]:
    """Those of the corpus, and those found since."""
    return corpus / "measured" / "collectives.tsv", OWN


@pytest.fixture
def outcomes(tables: tuple[Path, ...]) -> tuple[Outcome, ...]:
    """Every modelled row."""
    return evaluate_once(tables)


@cache
def evaluate_once(tables: tuple[Path, ...]) -> tuple[Outcome, ...]:
    """For all tests of this module."""
    return tuple(outcome for outcome in evaluate(read_published(tables)) if outcome.predicted is not None)


def test_large_messages_between_nodes(outcomes: tuple[Outcome, ...]) -> None:
    """1 GB and more on 2 to 16 nodes: median error 5%, nine of ten within 10%, ranges of a quarter that hold."""
    rows = [
        outcome
        for outcome in outcomes
        if outcome.row.kind == BETWEEN
        and outcome.row.request.size >= LARGE
        and outcome.row.request.nodes <= 16
        and outcome.row.request.collective in RINGS
    ]

    assert len(rows) > 75
    assert median_error(rows) <= 0.05
    assert share_of(rows, lambda outcome: abs(outcome.error) <= 0.1) >= 0.9
    assert share_of(rows, lambda outcome: outcome.inside) >= 0.8
    assert max(outcome.width for outcome in rows) <= 0.25


def test_middle_messages_between_nodes(outcomes: tuple[Outcome, ...]) -> None:
    """8 to 512 MB: median error 20%."""
    rows = [outcome for outcome in outcomes if outcome.row.kind == BETWEEN and outcome.row.request.size < LARGE]

    assert len(rows) > 95
    assert median_error(rows) <= 0.2


def test_ranges_hold(outcomes: tuple[Outcome, ...]) -> None:
    """For four of five rows, of all and of those between nodes."""
    between = [outcome for outcome in outcomes if outcome.row.kind == BETWEEN]

    assert share_of(outcomes, lambda outcome: outcome.inside) >= 0.8
    assert share_of(between, lambda outcome: outcome.inside) >= 0.8


def test_one_node(outcomes: tuple[Outcome, ...]) -> None:
    """Median error 2.0% at 1 GB and more, 6.4% at 8 to 512 MB; its constants were fitted on these tables."""
    one = [outcome for outcome in outcomes if outcome.row.kind == "nvs-1n" and outcome.row.request.collective in RINGS]
    large = [outcome for outcome in one if outcome.row.request.size >= LARGE]
    middle = [outcome for outcome in one if outcome.row.request.size < LARGE]

    assert median_error(large) <= 0.02
    assert share_of(large, lambda outcome: abs(outcome.error) <= 0.1) == 1
    assert median_error(middle) <= 0.064


def test_the_overheads_are_those_of_the_tables(tables: tuple[Path, ...]) -> None:
    """`--fit` prints what the module has."""
    assert format_overheads(fit_overheads(read_published(tables))) == format_overheads(FITTED)


def test_the_page_has_the_table(tables: tuple[Path, ...], tmp_path: Path) -> None:
    """`--write` changes nothing."""
    page = tmp_path / "prediction.md"
    page.write_text(PAGE.read_text(encoding="utf-8"), encoding="utf-8")

    assert 0 == main([*map(str, tables), "--write", str(page)])
    assert PAGE.read_text(encoding="utf-8") == page.read_text(encoding="utf-8")
    assert MARK in page.read_text(encoding="utf-8")


def test_tables_of_one_machine_that_contradict_each_other(outcomes: tuple[Outcome, ...]) -> None:
    """Two tables of p5.48xlarge differ by a factor of two: the range has the slower one's side, and it is assumed."""
    rows = [outcome.row for outcome in outcomes if outcome.row.machine == "p5.48xlarge H100"]
    results = {row.request.size >> 20: predict([row.node], row.request, HEALTHY) for row in rows}
    low, high = results[256].range_gbyte_s or (0, 0)

    assert {row.name for row in rows} == {"T004", "M01"}
    assert low < 167.2 < 342.8 < high
    assert results[256].known_by == "assumed"
    assert "networks differ" in (results[256].note or "")
    assert "networks differ" not in (results[16384].note or "")


def test_tables_of_the_repository() -> None:
    """Without the corpus: what was fitted on these tables fits them, and they can be evaluated alone."""
    rows = read_published([OWN])
    predicted = [predict([row.node], row.request, HEALTHY).busbw_gbyte_s or math.nan for row in rows]
    large = [
        abs(busbw / row.busbw - 1) for row, busbw in zip(rows, predicted, strict=True) if row.request.size >= LARGE
    ]

    assert sum(error <= 0.1 for error in large) >= 0.9 * len(large)
    assert "| nvs-Nn | all_gather | >= 1 GB |" in "\n".join(summarize(evaluate(rows)))


@pytest.mark.parametrize("arguments", [[], ["--write", "page"], ["a.tsv", "--other"], ["--fit"]])
def test_wrong_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """One line."""
    assert 2 == main(arguments)
    assert capsys.readouterr().err.startswith("usage: ")
