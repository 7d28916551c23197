"""A subject builds the answers about itself, and a rule judges one subject at a time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agent.model.reasons import Reason
from agent.rules.context import RuleContext
from agent.rules.node_wide import on_all
from agent.rules.rule import NODE, Fail, NamedSubject, NotApplicable, Pass, Result, Rule, Unknown, rule, split_subjects
from tests.agent.rules.build import server

A, B = (NamedSubject(f"gpu:{name}", name, frozenset({name})) for name in ("a", "b"))
HIDDEN = Unknown("gpu:c", Reason("not-read", fact="its state"))


@pytest.fixture(autouse=True)
def of_test(monkeypatch: pytest.MonkeyPatch) -> dict[str, Rule]:
    """The rules of a test, which have the page of an existing one."""
    rules: dict[str, Rule] = {}
    monkeypatch.setattr("agent.rules.rule.registered", rules)
    return rules


def subjects(context: RuleContext) -> Iterator[NamedSubject | Result]:
    """Two subjects, and an answer between them."""
    yield from (A, HIDDEN, B)


def test_an_answer_is_about_its_subject() -> None:
    assert Pass("gpu:a") == A.passes()
    assert Unknown("gpu:a", Reason("not-read", fact="its state")) == A.unknown("not-read", fact="its state")
    assert HIDDEN.reason is A.unknown(HIDDEN.reason).reason
    assert NotApplicable("gpu:a", Reason("guest", detail="a guest")) == A.not_applicable("guest", detail="a guest")
    assert HIDDEN.reason is A.not_applicable(HIDDEN.reason).reason


def test_a_fault_has_the_label_and_the_ids_of_its_subject_unless_others_are_given() -> None:
    fault = A.fail("is off", "half", severity="info")

    assert Fail("gpu:a", "a", "is off", "half", severity="info", ids=frozenset({"a"})) == fault
    assert ("b", frozenset()) == ((other := A.fail("is off", "half", label="b", ids=frozenset())).label, other.ids)


def test_every_field_of_a_fault_that_a_rule_states_is_handed_on() -> None:
    fields = {
        "label": "l", "summary": "s", "impact": "i", "remedy": "r", "values": (("A", "1"),), "evidence": (),
        "severity": "info", "confidence": "low", "cause": "c", "situation": "t", "ids": frozenset({"x"}),
        "explains_ids": frozenset({"y"}), "explains_parts": False,
        "parts": (A.fail("p", "q"),), "field": "netdev.mtu", "peers": frozenset({"z"}),
    }  # fmt: skip

    assert Fail(subject="gpu:a", **fields) == A.fail(**fields)  # type: ignore[arg-type]


def test_a_rule_judges_one_subject_at_a_time_and_keeps_answers_in_their_place() -> None:
    made = rule("probe-hung", each=subjects)(lambda about: about.passes())

    assert [A.passes(), HIDDEN, B.passes()] == list(made.check(server()))


def test_a_rule_gets_the_context_where_it_takes_it() -> None:
    context, seen = server(), []

    def judge(context: RuleContext, about: NamedSubject) -> Result:
        seen.append(context)
        return about.passes()

    assert 3 == len(list(rule("probe-hung", each=subjects)(judge).check(context)))
    assert [context, context] == seen


def test_the_same_fault_on_all_is_one_finding() -> None:
    made = rule("probe-hung", each=subjects, merge=on_all("all are off"))(lambda about: about.fail("is off", "half"))
    hidden, fault = made.check(server())

    assert HIDDEN == hidden
    assert isinstance(fault, Fail)
    assert ("node", "all are off: a, b") == (fault.subject, fault.summary)


def test_a_rule_about_the_node_returns_its_answer_or_all_of_them(of_test: dict[str, Rule]) -> None:
    assert [NODE.passes()] == list(rule("probe-hung")(lambda _: NODE.passes()).check(server()))
    of_test.clear()
    assert [A.passes(), B.passes()] == list(rule("probe-hung")(lambda _: [A.passes(), B.passes()]).check(server()))


def test_answers_are_separated_from_subjects() -> None:
    assert ([A, B], [HIDDEN]) == split_subjects(subjects(server()))
