"""JUnit XML for CI systems: a testcase a rule, a testcase a probe.

Contract: the schema of the Jenkins xUnit plugin (junit-10.xsd), which GitLab's and GitHub's readers take as well.
Rules: a finding of warning and above is a failure; one of info is told and passes; a fault that another rule's finding
explains, and what is unknown, not applicable or disabled, is skipped with the reason. Probes: failed and timed out are
errors, absent, denied and skipped are skipped.
"""

from __future__ import annotations

from agent.model.finding import Check, Finding
from agent.model.report import ProbeRun, Report
from agent.outputs.export.markup import Element, element, written
from agent.outputs.formatting import line

NAME = "fabricscope"
SUBJECTS_SHOWN = 20
_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'


def export(report: Report) -> str:
    """The whole file."""
    suites = [
        _suite("rules", report, [_rule(report, check) for check in report.checks]),
        _suite("probes", report, [_probe(run) for run in report.probes]),
    ]
    root = element("testsuites", {"name": NAME})
    root.children.extend(suites)
    return _DECLARATION + written(root)


def _suite(name: str, report: Report, cases: list[Element]) -> Element:
    counted = {"tests": str(len(cases))}
    for kind, plural in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        counted[plural] = str(sum(any(_is(child, kind) for child in case.children) for case in cases))
    host = {"hostname": line(report.node.hostname)} if report.node.hostname else {}
    stamp = {"timestamp": line(report.generated_at.rstrip("Z"))} if report.generated_at else {}
    suite = element("testsuite", {"name": f"{NAME}.{name}", **counted, **host, **stamp})
    suite.children.extend(cases)
    return suite


def _is(child: object, kind: str) -> bool:
    return isinstance(child, Element) and child.tag == kind


def _rule(report: Report, check: Check) -> Element:
    case = element("testcase", {"classname": f"{NAME}.rules", "name": line(check.rule)})
    own = [finding for finding in report.findings if finding.rule == check.rule]
    faults = [finding for finding in own if finding.severity != "info"]
    if faults:
        said = {"message": line(f"{faults[0].label}: {faults[0].summary}"), "type": line(faults[0].severity)}
        case.children.append(element("failure", said, "\n".join(_told(finding) for finding in faults)))
    elif check.state == "fail" and not own:
        case.children.append(element("skipped", {"message": _explained(report, check.rule)}))
    elif check.state in ("unknown", "not_applicable", "disabled"):
        word = check.state.replace("_", " ")
        case.children.append(element("skipped", {"message": line(f"{word}: {_why(check)}")}))
    if own and not faults:
        case.children.append(element("system-out", text="\n".join(_told(finding) for finding in own)))
    return case


def _told(finding: Finding) -> str:
    lines = [f"{finding.severity.upper()} {finding.label}: {finding.summary}"]
    lines += [f"  {each.what}: {each.value} ({each.source})" for each in finding.evidence]
    lines += [f"  impact: {finding.impact}", f"  remedy: {finding.remedy}"]
    return "\n".join(line(each, 1000) for each in lines)


def _explained(report: Report, rule: str) -> str:
    causes = sorted({f.rule for f in report.findings if any(each.split(" ")[0] == rule for each in f.absorbs)})
    return line(f"explained by {', '.join(causes)}") if causes else "failed without a finding of its own"


def _why(check: Check) -> str:
    """The reason of the rule, or of the first subjects that have one."""
    if check.reason:
        return check.reason
    reasons = dict.fromkeys(f"{each.subject}: {each.reason}" for each in check.unknown_subjects[:SUBJECTS_SHOWN])
    return "; ".join(reasons) or "no reason given"


def _probe(run: ProbeRun) -> Element:
    time = f"{run.duration_seconds:.3f}"
    case = element("testcase", {"classname": f"{NAME}.probes", "name": line(run.name), "time": time})
    reason = line(run.reason or "no reason given", 1000)
    if run.status in ("failed", "timed_out"):
        case.children.append(element("error", {"message": reason, "type": run.status}))
    elif run.status in ("absent", "denied", "skipped"):
        case.children.append(element("skipped", {"message": f"{run.status}: {reason}"}))
    elif run.reason:
        case.children.append(element("system-out", text=f"{run.status}: {reason}"))
    return case
