"""Reasons are codes: every code can be made, and nothing decides by a reason's text."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from string import Formatter

import pytest

from agent.model.reasons import _TEXTS, CODES, Reason, Settle, list_commands, list_reasons, quote_source
from agent.rules.catalogue import every_rule
from tests.conftest import ROOT
from tests.machines import HOSTS, scan_machine

_TEXT_METHODS = ("startswith", "endswith", "find", "index", "partition", "split", "removeprefix", "removesuffix")
_MATCHERS = ("match", "search", "fullmatch", "findall")
PRODUCT = sorted(path for room in ("agent", "probes") for path in (ROOT / room).rglob("*.py"))
# Errors of a room's own calls (a host's refusal, HTTP, TLS), named and renamed where they are raised,
# and the codes themselves, which know the text of reports that are older than they
OWN = {
    "agent/model/reasons.py",
    "agent/netbox/client.py", "agent/receive/listening.py",
    "agent/ship/http_target.py", "agent/ship/run.py",
    "probes/host/interface.py", "probes/host/recording.py", "probes/kernel/events.py",
}  # fmt: skip


def is_reason(node: ast.AST) -> bool:
    """`x.reason`, `x.links_reason`, `x.missing`, and each of these `or` something."""
    if isinstance(node, ast.BoolOp):
        return any(is_reason(value) for value in node.values)
    return isinstance(node, ast.Attribute) and (node.attr == "reason" or node.attr.endswith("_reason"))


def decisions(tree: ast.AST) -> Iterator[int]:
    """Lines in which the text of a reason is compared, searched or taken apart."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            operators = [op for op in node.ops if not isinstance(op, ast.Is | ast.IsNot)]
            if operators and any(is_reason(part) for part in (node.left, *node.comparators)):
                yield node.lineno
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            method = node.func.attr
            if method in _TEXT_METHODS and is_reason(node.func.value):
                yield node.lineno
            if method in _MATCHERS and any(is_reason(argument) for argument in node.args):
                yield node.lineno


def test_nothing_decides_by_the_text_of_a_reason() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in PRODUCT
        if str(path.relative_to(ROOT)) not in OWN
        for line in decisions(ast.parse(path.read_text()))
    ]

    assert [] == found


@pytest.mark.parametrize(
    "line",
    [
        'if run.reason == "gone": pass',
        'cut = "may be cut" in (run.reason or "")',
        'run.reason.startswith("EIO")',
        '(netdev.module_reason or "").startswith("EIO")',
        "PATTERN.search(silent.reason)",
    ],
)
def test_a_decision_by_text_is_found(line: str) -> None:
    assert list(decisions(ast.parse(line)))


@pytest.mark.parametrize("line", ["run.reason is None", "silent.reason is NO_LINK", "text = run.reason or ''"])
def test_asking_whether_there_is_a_reason_is_no_decision_by_text(line: str) -> None:
    assert not list(decisions(ast.parse(line)))


@pytest.mark.parametrize("code", CODES)
def test_a_reason_of_every_code_has_a_text(code: str) -> None:
    names = [name for _, name, _, _ in Formatter().parse(_TEXTS.get(code, "{detail}")) if name]
    why = Reason(code, **{name: f"<{name}>" for name in names})  # type: ignore[arg-type]

    assert all(f"<{name}>" in why for name in names)
    assert why
    assert why.code == code


def test_a_reason_behind_its_question_keeps_what_would_settle_it() -> None:
    why = Reason("output-missing", command="ibstat")

    asked = why.prefixed("whether a port is up: ")
    assert "whether a port is up: no output of ibstat" == asked
    assert ("output-missing", (Settle("command", "ibstat"),)) == (asked.code, asked.settles)


def test_what_a_source_states_is_a_reason_only_where_it_states_one() -> None:
    assert quote_source(None) is None
    assert quote_source("GPU is lost") == "GPU is lost"


def test_each_reason_is_listed_once() -> None:
    rows = list_reasons(
        [Reason("not-read", fact="its state"), Reason("not-read", fact="its state"), Reason("disabled")]
    )

    assert ["disabled", "not-read"] == [row.code for row in rows]
    assert "its state could not be read" == rows[1].text


@pytest.mark.parametrize("host", HOSTS)
def test_a_report_lists_every_reason_that_its_checks_give(host: str) -> None:
    report = scan_machine(host)
    given = {(subject.reason_code, subject.reason) for check in report.checks for subject in check.unknown_subjects}
    given |= {(check.reason_code, check.reason) for check in report.checks if check.reason}

    assert given == {(row.code, row.text) for row in report.reasons}
    assert all(row.code in CODES for row in report.reasons)


def test_every_subject_that_a_rule_needs_has_commands_or_lies_in_files_alone() -> None:
    """What to save next is known for every need but these: files of a host, and outputs that only show a fault."""
    in_files = {"numa", "limits", "kernel", "nccl", "modules_sysfs", "tool_reports"}
    needs = {part for rule in every_rule() for need in rule.needs for part in need.split("|")}

    assert in_files == {need for need in needs if not list_commands(need, None)}


def test_every_code_is_documented() -> None:
    page = (ROOT / "docs" / "report.md").read_text()

    assert [] == [code for code in CODES if f"`{code}`" not in page]
