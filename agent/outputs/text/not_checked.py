"""The "Could not check" section: which rules could not run, by reason, and how to change that."""

from __future__ import annotations

from agent.model.labels import group_names
from agent.model.report import ProbeRun, Report
from agent.outputs.names import DisplayNames
from agent.outputs.text.lines import BLANK, Line, wrap_paragraph
from agent.outputs.verdict import classify_check

COMMANDS = {  # what to add to a folder of outputs, by the probe that found nothing
    "nvidia_smi": "nvidia-smi -q, nvidia-smi nvlink -s, nvidia-smi topo -m",
    "lspci": "lspci -vvv (as root)",
    "rdma_tools": "ibstat, ibv_devinfo -v, show_gids",
    "lsmod": "lsmod",
}
NAMED_RULES = 5
NAMED_SUBJECTS = 10  # subjects, or ranges of them, per line


def render_not_checked(report: Report, width: int) -> list[Line]:
    """Rules by the reason for unknown, then incomplete probes, then suggestions."""
    lines: list[Line] = []
    for reason, rules in group_by_reason(report).items():
        lines += wrap_paragraph(rules, width, indent="      ", first="  ? ")
        lines += wrap_paragraph(reason, width, indent="      ")
    lines += _render_probes(report, width)
    steps = suggest_steps(report)
    if lines and steps:
        lines += [BLANK, *wrap_paragraph(f"To check more: {'; '.join(steps)}.", width)]
    return lines


def count_not_checked(report: Report, width: int) -> list[Line]:
    """One line on what could not be checked, but for what only needs a second sample."""
    outcomes = [(check, classify_check(check, report)) for check in report.checks]
    missing = [check.rule for check, outcome in outcomes if outcome in ("could not run", "baseline", "in part")]
    if not missing:
        return []
    named = f"{', '.join(missing[:2])} and {len(missing) - 2} more" if len(missing) > 3 else ", ".join(missing)
    return wrap_paragraph(f"Could not check: {named} (--verbose lists why)", width, indent="  ", first="", style="dim")


def group_by_reason(report: Report) -> dict[str, str]:
    """Reason -> rules and subjects that are unknown; rules of the same subjects together."""
    names = DisplayNames(report)
    rules_by_reason: dict[str, dict[str, list[str]]] = {}
    for check in report.checks:
        if not check.unknown and check.state != "unknown":
            continue
        subjects: dict[str, list[str]] = {}
        for subject in check.unknown_subjects:
            subjects.setdefault(subject.reason, []).append(names.subject(subject.subject))
        for reason, which in (subjects or {check.reason or "no reason given": []}).items():
            subject_names = "" if which in ([], ["node"]) else _shorten_names(group_names(which))
            rules_by_reason.setdefault(_simplify_reason(reason), {}).setdefault(subject_names, []).append(check.rule)
    return {
        reason: "; ".join(_shorten_rules(rules) + (f": {group}" if group else "") for group, rules in groups.items())
        for reason, groups in rules_by_reason.items()
    }


def _shorten_rules(names: list[str]) -> str:
    """The names of rules; a long list by its first ones."""
    more = len(names) - NAMED_RULES
    return ", ".join(names) if more < 2 else f"{', '.join(names[:NAMED_RULES])} and {more} more"


def _shorten_names(names: list[str]) -> str:
    more = len(names) - NAMED_SUBJECTS
    return ", ".join(names[:NAMED_SUBJECTS]) + (f" and {more} more" if more > 0 else "")


def _simplify_reason(reason: str) -> str:
    """Drop the second colon of `nvml: absent: why`."""
    for status in ("absent", "denied", "failed", "skipped"):
        reason = reason.replace(f": {status}: ", f" {status}: ")
    return reason.replace(": timed_out: ", " timed out: ")


def _render_probes(report: Report, width: int) -> list[Line]:
    """On a recorded source all absent probes share one line: no source contains everything."""
    lines: list[Line] = []
    kind = report.source.kind
    recorded = kind != "live"
    absent = [run.name for run in report.probes if run.status == "absent"] if recorded else []
    for run in report.probes:
        if run.status in ("partial", "denied", "timed_out", "failed") or (run.status == "absent" and not recorded):
            status = "" if run.status == "partial" else f" {run.status.replace('_', ' ')}"
            text = f"probe {run.name}{status}: {run.reason or 'no reason given'}"
            lines += wrap_paragraph(text, width, indent="    ", first="  - ", style="dim")
    if absent:
        text = f"{', '.join(absent)}: not in {'these outputs' if kind == 'dump' else f'this {kind}'}"
        lines += wrap_paragraph(text, width, indent="    ", first="  - ", style="dim")
    return lines


def suggest_steps(report: Report) -> list[str]:
    """Steps that would make more rules run."""
    as_root = "scan as root" if report.source.kind == "live" else "take the evidence as root"
    steps = [as_root] if any(lacks_privilege(run) for run in report.probes) else []
    late = [run.name for run in report.probes if run.status == "timed_out"]
    if late:
        steps.append(f"give {', '.join(late)} more time (--timeout), or find out why the driver hangs")
    skipped = [run.name for run in report.probes if run.reason_code == "left-out"]
    if skipped:
        steps.append(f"run without --only and --skip ({', '.join(skipped)})")
    if report.source.kind == "dump" and any(check.unknown for check in report.checks):
        missing = [COMMANDS[run.name] for run in report.probes if run.status == "absent" and run.name in COMMANDS]
        steps += [f"also save {'; '.join(missing)}"] if missing else []
    return steps


def lacks_privilege(run: ProbeRun) -> bool:
    """Whether a probe would read more as root."""
    return run.status == "denied" or run.reason_code == "needs-root"
