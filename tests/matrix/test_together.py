"""Two causes on one machine, and one cause on most of its devices: nothing is hidden or excused."""

from __future__ import annotations

import itertools
import random
import re
from zlib import crc32

import pytest

from agent.diagnose import evaluate_report
from agent.rules import catalogue
from tests.conftest import IN_FULL, sample_of
from tests.matrix import measure, spread
from tests.matrix.cases import causes, pairs
from tests.matrix.together import Collision, laid_over, merge, read_listed, together

SAMPLED = ("8xh100-sxm-2s-8xcx7-ib-4nvsw", "8xh200-sxm-2s-16xcx7-roce-4nvsw", "4xgb200-tray-2xgrace-4xcx7-ib")
TRIPLES = 40 if IN_FULL else 10
EVERY = 10 if IN_FULL else 20  # of the causes of these machines, one of so many is laid with all others of the sample


@pytest.mark.parametrize("shape", SAMPLED)
def test_no_cause_hides_another(shape: str) -> None:
    """Of two, and of a few times three, all are named, or explained, or listed with a reason."""
    chosen = {name for name in causes() if crc32(name.encode()) % EVERY == 0}
    laid, unlisted = measure.measure((shape, *names) for names in together(shape) if chosen.issuperset(names))

    assert [] == unlisted
    assert laid["named"] > laid["laid"] > 3000 / EVERY**2
    here = [name for name, where in pairs() if where == shape and name in chosen]
    triples = list(itertools.combinations(here, 3))
    laid, unlisted = measure.measure((shape, *names) for names in random.Random(shape).sample(triples, TRIPLES))

    assert [] == unlisted
    assert laid["named"] > laid["laid"] > TRIPLES / 2


H100, A2 = SAMPLED[0], "8x910b-4s-atlas-a2"


@pytest.mark.parametrize(
    ("shape", "names", "findings"),
    [
        pytest.param(
            H100,
            ("pcie/rail-strapped-to-gen4", "nvlink/registration-failed", "infiniband_runtime/link-recovers"),
            [("fabric-incomplete", None), ("pcie-nic-starved", 47), ("ib-symbol-errors", None)],
            id="a slot costs, and what else is wrong with its NIC and its GPU does not cost that",
        ),
        pytest.param(
            H100,
            ("infiniband_runtime/cable-is-bad", "infiniband/two-lanes-of-four", "pcie/gpu-at-x8"),
            [("pcie-width-downgraded", 50), ("ib-rate-degraded", 47), ("ib-symbol-errors", None)],
            id="errors of a port that is slow as well; what costs more comes first",
        ),
        pytest.param(
            A2,
            ("ascend/hccs-pair-down", "ascend/heartbeat-lost"),
            [("npu-heartbeat-lost", None), ("hccs-link-down", 14)],
            id="an NPU before a link, though only the link has a figure",
        ),
    ],
)
def test_the_worst_is_first_and_each_costs_its_own(
    shape: str, names: tuple[str, ...], findings: list[tuple[str, int | None]]
) -> None:
    """Findings above info, in the order of the report, with the percent that each costs."""
    judged = evaluate_report(*laid_over(shape, *names)).findings
    seen = [(f.rule, f.cost and round(f.cost.percent)) for f in judged if f.severity != "info"]

    assert findings == seen


def test_figures_of_the_page_are_of_these_causes() -> None:
    """`make pairs` is due when a tenth of the pairs is new; a pair that hides a finding never reaches the page."""
    page = measure.PAGE.read_text().partition("## Two causes at once")[2]
    drawn_from = re.search(r"of ([\d,]+) pairs", page)
    rows = re.findall(r"^\| (\w[^|]*) \| ([\d,]+) \| ([\d,]+) \|$", page, re.MULTILINE)
    figures = {what: tuple(int(number.replace(",", "")) for number in numbers) for what, *numbers in rows}
    now = len(measure.every_pair())

    assert drawn_from
    assert abs(int(drawn_from[1].replace(",", "")) - now) < now / 10
    assert len(figures) == 7
    assert min(figures["laid, drawn at random"]) >= 5000
    assert figures["findings that are hidden, and no reason is listed"] == (0, 0)


def test_every_listed_consequence_has_a_reason() -> None:
    """And names rules and causes that exist, one by one: a row without them lists nothing, a pattern too much."""
    rows = read_listed()
    rules = catalogue.names()
    hidden = {name for row in rows["rows"] for name in row["hidden"]}
    beside = {name for row in rows["rows"] for name in row["beside"]}

    assert hidden | {name for row in rows["spread"] for name in row.get("instead", ())} <= rules
    assert beside <= rules | causes().keys()
    assert {name for row in rows["spread"] for name in row["causes"]} <= causes().keys()
    assert all(row["hidden"] and row["beside"] and row["why"].endswith(".") for row in rows["rows"])
    assert all(row["shares"] and row["causes"] and row["why"].endswith(".") for row in rows["spread"])


@pytest.mark.parametrize(("one", "other"), [({"a": 1}, {"a": 2}), ([1], [2, 3])])
def test_causes_of_one_fact_collide(one: object, other: object) -> None:
    """Two values of one fact are no machine."""
    base: object = {"a": 0} if isinstance(one, dict) else [0]
    with pytest.raises(Collision):
        merge(base, one, other, "")
    assert {"a": 1, "b": [1, 2]} == merge({"a": 0, "b": []}, {"a": 1, "b": [1]}, {"a": 0, "b": [2]}, "")


def _sampled_spreads() -> list[tuple[str, str, str]]:
    return [row for row in spread.spreads() if row[1] in SAMPLED and crc32(row[0].encode()) % EVERY == 0]


@pytest.mark.parametrize(("name", "shape", "share"), sample_of(_sampled_spreads()))
def test_a_majority_excuses_nothing(name: str, shape: str, share: str) -> None:
    """On half of the devices, on all but one and on all, a cause is named as it is on one, or explained, or listed."""
    try:
        laid = spread.lay_on(name, shape, share)
    except Collision:
        return  # one fact of the whole machine: it cannot be on two
    assert spread.is_listed(name, share, laid.rules) or not [m for m in laid.missing if m.rule not in laid.rules]
