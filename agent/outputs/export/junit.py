"""JUnit XML for CI systems: one testcase per rule and per probe.

Contract: the schema of the Jenkins xUnit plugin (junit-10.xsd), which GitLab's and GitHub's readers take as well.
Rules: a finding of warning and above is a failure; an info finding passes with output; a silenced one is skipped with
the reason; a fault that another rule's
finding explains, and unknown, not applicable or disabled rules, are skipped with the reason. Probes: failed and timed
out are errors; absent, denied and skipped are skipped.
"""

from __future__ import annotations

from agent.model.finding import Check, Finding, describe_silence
from agent.model.report import ProbeRun, Report
from agent.outputs.export.xml_writer import XmlElement, make_element, write_xml
from agent.outputs.formatting import clean_line
from agent.outputs.names import describe_location

NAME = "fabricscope"
SUBJECTS_SHOWN = 20
_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'


def export(report: Report) -> str:
    """The XML document."""
    suites = [
        _build_suite("rules", report, [_build_rule_case(report, check) for check in report.checks]),
        _build_suite("probes", report, [_build_probe_case(run) for run in report.probes]),
    ]
    return _DECLARATION + write_xml(make_element("testsuites", {"name": NAME}, children=suites))


def _build_suite(name: str, report: Report, cases: list[XmlElement]) -> XmlElement:
    counted = {"tests": str(len(cases))}
    for kind, plural in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        tags = [{child.tag for child in case.children if isinstance(child, XmlElement)} for case in cases]
        counted[plural] = str(sum(kind in of_case for of_case in tags))
    host = {"hostname": clean_line(report.node.hostname)} if report.node.hostname else {}
    stamp = {"timestamp": clean_line(report.generated_at.rstrip("Z"))} if report.generated_at else {}
    return make_element("testsuite", {"name": f"{NAME}.{name}", **counted, **host, **stamp}, children=cases)


def _build_rule_case(report: Report, check: Check) -> XmlElement:
    case = make_element("testcase", {"classname": f"{NAME}.rules", "name": clean_line(check.rule)})
    own = [finding for finding in report.findings if finding.rule == check.rule]
    faults = [finding for finding in own if finding.severity != "info" and not finding.silenced]
    silenced = [describe_silence(finding.silenced) for finding in own if finding.silenced]
    if faults:
        attributes = {
            "message": clean_line(f"{faults[0].label}: {faults[0].summary}"),
            "type": clean_line(faults[0].severity),
        }
        case.children.append(make_element("failure", attributes, "\n".join(_describe(finding) for finding in faults)))
    elif silenced:
        case.children.append(make_element("skipped", {"message": clean_line(silenced[0])}))
    elif check.state == "fail" and not own:
        case.children.append(make_element("skipped", {"message": _name_causes(report, check.rule)}))
    elif check.state in ("unknown", "not_applicable", "disabled"):
        word = check.state.replace("_", " ")
        case.children.append(make_element("skipped", {"message": clean_line(f"{word}: {_reason_of(check)}")}))
    if own and not faults:
        case.children.append(make_element("system-out", text="\n".join(_describe(finding) for finding in own)))
    return case


def _describe(finding: Finding) -> str:
    lines = [f"{finding.severity.upper()} {finding.label}: {finding.summary}"]
    lines += [f"  {describe_silence(finding.silenced)}"] if finding.silenced else []
    where = ", ".join(describe_location(finding.location))
    lines += [f"  part: {where}"] if where else []
    lines += [f"  {evidence.what}: {evidence.value} ({evidence.source})" for evidence in finding.evidence]
    lines += [f"  confirm: {command}" for command in finding.confirm or []]
    lines += [f"  impact: {finding.impact}", f"  fix: {finding.remedy}"]
    return "\n".join(clean_line(line, 1000) for line in lines)


def _name_causes(report: Report, rule: str) -> str:
    causes = sorted({f.rule for f in report.findings if any(absorbed.split(" ")[0] == rule for absorbed in f.absorbs)})
    return clean_line(f"explained by {', '.join(causes)}") if causes else "failed without a finding of its own"


def _reason_of(check: Check) -> str:
    """The reason of the rule, or those of the first subjects."""
    if check.reason:
        return check.reason
    reasons = dict.fromkeys(
        f"{subject.subject}: {subject.reason}" for subject in check.unknown_subjects[:SUBJECTS_SHOWN]
    )
    return "; ".join(reasons) or "no reason given"


def _build_probe_case(run: ProbeRun) -> XmlElement:
    time = f"{run.duration_seconds:.3f}"
    case = make_element("testcase", {"classname": f"{NAME}.probes", "name": clean_line(run.name), "time": time})
    reason = clean_line(run.reason or "no reason given", 1000)
    if run.status in ("failed", "timed_out"):
        case.children.append(make_element("error", {"message": reason, "type": run.status}))
    elif run.status in ("absent", "denied", "skipped"):
        case.children.append(make_element("skipped", {"message": f"{run.status}: {reason}"}))
    elif run.reason:
        case.children.append(make_element("system-out", text=f"{run.status}: {reason}"))
    return case
