"""The verdict in words: title, sentence, and how many checks ran. The text, the page and `check` use the same."""

from __future__ import annotations

from collections import Counter

from agent.model.finding import SEVERITIES, Check
from agent.model.labels import name_first
from agent.model.report import Report

_OF_PROBES = "probe-hung"  # a check of our own reading: it passes whatever saved outputs hold
SAVED_KINDS = ("dump", "text")  # sources that may hold one output alone
_NAMED_RULES = 3  # rules named that keep the verdict from ok
_OUTCOMES = (
    ("could not run", ("could not run", "baseline")),
    ("need a second sample", ("second sample",)),
    ("not applicable", ("not applicable",)),
    ("disabled", ("disabled",)),
)


def verdict_title(report: Report) -> str:
    """The verdict for people: `OK`, `ERROR`, `NOTHING TO CHECK`."""
    return report.summary.verdict.replace("_", " ").upper()


def describe_verdict(report: Report) -> str:
    """The verdict in one sentence: findings by severity, why nothing is ok, or what is not here."""
    summary = report.summary
    silenced = f"{summary.silenced} silenced" if summary.silenced else ""
    counts = ", ".join(filter(None, (count_findings(summary.counts), silenced)))
    if summary.verdict == "nothing_to_check":
        return join_notes("no GPU, other accelerator or RDMA NIC on this host", counts)
    if summary.verdict == "unknown":
        return "; ".join(filter(None, (_describe_outputs(report), _why_unknown(report), counts)))
    return join_notes("no problems found", counts) if summary.verdict == "ok" else counts


def count_findings(counts: dict[str, int]) -> str:
    """The findings by severity, worst first; those of severity info are notes.

    >>> count_findings({"error": 1, "warning": 2, "info": 3}), count_findings({})
    ('1 error, 2 warnings, 3 notes', '')
    """
    words = {"critical": "critical", "error": "error", "warning": "warning", "info": "note"}
    parts = [(counts[severity], words[severity]) for severity in reversed(SEVERITIES) if counts.get(severity)]
    return ", ".join(f"{count} {word}" + ("s" if count > 1 and word != "critical" else "") for count, word in parts)


def join_notes(text: str, counts: str) -> str:
    """A sentence and the notes that go with it."""
    return f"{text}, {counts}" if counts else text


def count_checks(report: Report) -> str:
    """How many checks ran, and why the others did not: `70 checks ran; 36 need a second sample`."""
    counts = Counter(classify_check(check) for check in _list_checks(report))
    ran, in_part = counts["ran"] + counts["in part"], counts["in part"]
    parts = [f"{ran} {'check' if ran == 1 else 'checks'} ran" + (f" ({in_part} in part)" if in_part else "")]
    for text, outcomes in _OUTCOMES:
        count = sum(counts[outcome] for outcome in outcomes)
        parts += [f"{count} {text.replace('need', 'needs') if count == 1 else text}"] if count else []
    return "; ".join(parts)


def _list_checks(report: Report) -> list[Check]:
    """The checks of the host: of saved outputs without the one of our own reading."""
    return [check for check in report.checks if report.source.kind not in SAVED_KINDS or check.rule != _OF_PROBES]


def classify_check(check: Check) -> str:
    """What became of a check: ran, in part, second sample, baseline, could not run, not applicable, disabled."""
    if check.state in ("pass", "fail"):
        return "ran"
    if check.state != "unknown":
        return check.state.replace("_", " ")
    if check.passed:
        return "in part"
    codes = {subject.reason_code for subject in check.unknown_subjects} or {check.reason_code}
    if codes == {"no-second-sample"}:
        return "second sample"
    return "baseline" if codes == {"no-baseline"} else "could not run"


def explain_unread_devices(report: Report) -> str | None:
    """Why there may be devices that are not listed; short where outputs were given, and none of them lists devices."""
    lists = [run.status for run in report.probes if run.name in ("pci", "lspci")]
    if report.source.kind in SAVED_KINDS and lists and set(lists) == {"absent"}:
        return "no output lists PCI devices"
    return report.summary.devices_unread


def _describe_outputs(report: Report) -> str:
    """Of saved outputs without a finding: whether any check could look at them."""
    if report.source.kind not in SAVED_KINDS or report.source.hosts is not None or report.open_findings:
        return ""
    ran = sum(classify_check(check) in ("ran", "in part") for check in _list_checks(report))
    if not ran:
        return "no check can use these outputs"
    return f"only {f'{ran} checks' if ran > 1 else 'one check'} can use these outputs, and found no fault"


def _why_unknown(report: Report) -> str:
    if report.source.hosts is not None:
        return "the outputs are of several hosts or times, and each was checked alone"
    unread, topology = explain_unread_devices(report), report.topology
    if unread and not (topology.gpus or topology.host_nics):
        if report.source.kind in SAVED_KINDS:
            return f"GPUs and NICs of the host are not known: {unread}"
        return f"no GPU or RDMA NIC is listed, but there may be some: {unread}"
    essential = report.summary.unknown_essential
    rules = report.summary.unknown_rules[: essential or None]  # 0: a report of before schema_minor 6

    what = (
        "these checks" if not essential else "an essential check" if essential == 1 else f"{essential} essential checks"
    )
    return f"cannot say OK: {what} could not run: {name_first(rules, _NAMED_RULES, spare=1)}"
