"""JUnit: the elements and attributes that readers take, counts that agree, nothing unknown that passes."""

from __future__ import annotations

from xml.etree import ElementTree

import msgspec
import pytest

from agent.model.finding import Check, UnknownSubject
from agent.model.report import ProbeRun, Report
from agent.outputs.export.junit import export
from tests.agent.outputs.export.given import H100, MACHINES, hostile
from tests.machines import scan_machine

# Of junit-10.xsd of the Jenkins xUnit plugin, what we write: element -> (children, required and optional attributes)
SCHEMA = {
    "testsuites": ({"testsuite"}, set(), {"name"}),
    "testsuite": ({"testcase"}, {"name", "tests", "failures", "errors"}, {"skipped", "hostname", "timestamp"}),
    "testcase": ({"failure", "error", "skipped", "system-out"}, {"name"}, {"classname", "time"}),
    "failure": (set(), set(), {"type", "message"}),
    "error": (set(), set(), {"type", "message"}),
    "skipped": (set(), set(), {"type", "message"}),
    "system-out": (set(), set(), set()),
}


def cases(report: Report, suite: str) -> dict[str, list[tuple[str, str]]]:
    """Name of a case -> its elements with their messages or texts."""
    root = ElementTree.fromstring(export(report))
    (element,) = [element for element in root if element.get("name") == f"fabricscope.{suite}"]
    return {case.get("name", ""): [(e.tag, e.get("message") or e.text or "") for e in case] for case in element}


@pytest.mark.parametrize(("host", "fault"), [*MACHINES, ("hostile", None), ("evil ids", None)])
def test_the_file_is_of_the_schema_and_counts_agree(host: str, fault: str | None) -> None:
    """Every rule and every probe is a case; counts are those of the cases."""
    bad = host in ("hostile", "evil ids")
    report = scan_machine(H100 if bad else host, fault)
    root = ElementTree.fromstring(export(hostile(report, host == "hostile") if bad else report))

    for element in root.iter():
        children, required, optional = SCHEMA[element.tag]
        assert {child.tag for child in element} <= children
        assert required <= set(element.keys()) <= required | optional
    for suite in root:
        for kind, plural in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
            assert int(suite.get(plural, "")) == len(suite.findall(f"testcase/{kind}"))
    assert [len(report.checks), len(report.probes)] == [len(suite) for suite in root]


@pytest.mark.parametrize(("host", "fault"), MACHINES)
def test_what_was_not_judged_does_not_pass(host: str, fault: str | None) -> None:
    """A case without failure, error or skipped is a rule that passed, or found what is only worth knowing."""
    report = scan_machine(host, fault)
    output = cases(report, "rules")
    serious = {f.rule for f in report.findings if f.severity != "info"}
    passed = {name for name, children in output.items() if not {kind for kind, _ in children} - {"system-out"}}
    infos = {f.rule for f in report.findings} - serious

    assert serious == {name for name, children in output.items() if children and children[0][0] == "failure"}
    assert passed == {c.rule for c in report.checks if c.state == "pass"} | infos


def test_a_fault_tells_its_evidence():
    """Message: what and where. Text: part, evidence, impact, fix."""
    root = ElementTree.fromstring(export(scan_machine("", "gpu-width-x8")))
    (failure,) = root.iter("failure")

    assert ("error", "GPU2: PCIe link is x8; both ends support x16") == (
        failure.get("type"),
        failure.get("message"),
    )
    assert "current_link_width" in (failure.text or "")
    assert "fix: 1. Compare the firmware" in (failure.text or "")


def with_check(**fields: object) -> Report:
    """A report with one rule."""
    check = msgspec.convert({"rule": "r", "state": "pass", **fields}, Check)
    return msgspec.structs.replace(scan_machine("cpu-only-2s"), checks=[check], findings=[])


@pytest.mark.parametrize("state", ["unknown", "not_applicable", "disabled"])
def test_unknown_and_its_kin_are_skipped_with_the_reason(state: str) -> None:
    """The rule's reason, else that of its subjects."""
    case_by_name = cases(with_check(state=state, reason="no data"), "rules")["r"]
    subject = UnknownSubject(subject="gpu:0", reason="denied")
    of_subject = cases(with_check(state=state, unknown_subjects=[msgspec.to_builtins(subject)]), "rules")["r"]

    assert [("skipped", f"{state.replace('_', ' ')}: no data")] == case_by_name
    assert [("skipped", f"{state.replace('_', ' ')}: gpu:0: denied")] == of_subject


def test_a_consequence_names_its_cause():
    """A rule that failed without a finding of its own was absorbed."""
    report = scan_machine("", "gpu-width-x8")
    (fault,) = [f for f in report.findings if f.severity == "error"]
    cause = msgspec.structs.replace(fault, absorbs=["other-rule pair:x+y"])
    checks = [*report.checks, Check(rule="other-rule", state="fail", failed=1)]
    case_by_name = cases(msgspec.structs.replace(report, findings=[cause], checks=checks), "rules")["other-rule"]

    assert [("skipped", "explained by pcie-width-downgraded")] == case_by_name


@pytest.mark.parametrize(
    ("status", "kind"),
    [("failed", "error"), ("timed_out", "error"), ("absent", "skipped"), ("denied", "skipped"), ("skipped", "skipped")],
)
def test_probes_that_gave_nothing(status: str, kind: str) -> None:
    """Failed and timed out are errors of the run; the others had nothing to read."""
    run = ProbeRun(name="nvml", status=status, reason="why")
    ((result, message),) = cases(msgspec.structs.replace(scan_machine("cpu-only-2s"), probes=[run]), "probes")["nvml"]

    assert kind == result
    assert message.endswith("why")


def test_a_partial_probe_passes_and_says_what_is_missing():
    """What it read counts; the gap is told."""
    run = ProbeRun(name="nvml", status="partial", reason="no NVLinks")
    case_by_name = cases(msgspec.structs.replace(scan_machine("cpu-only-2s"), probes=[run]), "probes")["nvml"]

    assert [("system-out", "partial: no NVLinks")] == case_by_name
