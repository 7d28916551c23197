"""Faults that all subjects have alike are told once, and only then; lists that people can read."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from agent.model.finding import Evidence
from agent.rules.node_wide import aggregate_node_wide
from agent.rules.rule import Fail, NotApplicable, Pass, Result, Unknown
from agent.rules.wording import format_ranges

ROW = Evidence(what="setting", value="off", source="/etc/x.conf")
A = Fail(
    subject="gpu:a",
    label="GPU0",
    summary="is off",
    impact="half",
    remedy="Switch it on.",
    evidence=(ROW,),
    severity="warning",
    ids=frozenset({"a"}),
)
B = replace(A, subject="gpu:b", label="GPU1", ids=frozenset({"b"}))


def fold(*answers: Result) -> list[Result]:
    """The answers after folding."""
    return list(aggregate_node_wide(answers, "all are off"))


def test_all_with_the_same_fault_are_one_finding() -> None:
    """Of the node, with the places of all, and each row of evidence once."""
    (one,) = fold(A, B)

    assert isinstance(one, Fail)
    assert ("node", "node", "all are off: GPU0, GPU1") == (one.subject, one.label, one.summary)
    assert (ROW,) == one.evidence
    assert {"a", "b"} == one.ids


def test_one_finding_explains_what_each_would() -> None:
    """The places of those that name nothing else, and what the others name."""
    (one,) = fold(A, replace(B, explains_ids=frozenset({"c"})))

    assert isinstance(one, Fail)
    assert ({"a", "b"}, {"a", "c"}) == (one.ids, one.explains_ids)


def test_those_that_were_not_judged_do_not_count() -> None:
    """They are told first, as they are."""
    silent = [Unknown("gpu:c", "not read"), NotApplicable("gpu:d", "asleep")]

    result = fold(A, *silent, B)

    assert silent == result[:2]
    assert ["node"] == [item.subject for item in result[2:]]


def test_one_alone_keeps_its_name() -> None:
    """A finding of one subject is of that subject."""
    assert [A] == fold(A)


def test_one_that_passes_keeps_them_apart() -> None:
    """What is wrong is then not how the node is set."""
    assert [Pass("gpu:c"), A, B] == fold(A, Pass("gpu:c"), B)


def test_another_severity_keeps_them_apart() -> None:
    """One finding would tell the severity of the first for both."""
    worse = replace(B, severity="error")

    assert [A, worse] == fold(A, worse)


def test_another_cause_keeps_them_apart() -> None:
    """The remedy of the first would not mend the other."""
    other = replace(B, cause="driver")

    assert [A, other] == fold(A, other)


def test_nothing_is_nothing() -> None:
    """No subject, no finding."""
    assert [] == fold()


@pytest.mark.parametrize(
    ("numbers", "words"), [([], "none"), ([7], "7"), ([0, 1], "0-1"), ([0, 2], "0, 2"), ([3, 0, 1, 5, 2], "0-3, 5")]
)
def test_numbers_as_people_write_them(numbers: list[int], words: str) -> None:
    """Neighbours as a range, a number alone as it is, whatever the order."""
    assert words == format_ranges(numbers)
