"""What could not be judged, why, and what would make it so: by reason, not by rule."""

from __future__ import annotations

from agent.model.report import ProbeRun, Report
from agent.outputs.names import Names, ranged
from agent.outputs.text.lines import BLANK, Line, paragraph

PRIVILEGE = ("CAP_", "needs root", "Permission denied", "not permitted")
COMMANDS = {  # what to save into a folder of outputs, where a probe of it found nothing
    "nvidia_smi": "nvidia-smi -q, nvidia-smi nvlink -s, nvidia-smi topo -m",
    "lspci": "lspci -vvv (as root)",
    "rdma_tools": "ibstat, ibv_devinfo -v, show_gids",
    "lsmod": "lsmod",
}
RULES_NAMED = 5
NAMED = 10  # subjects, or ranges of them, that a line names


def not_judged(report: Report, width: int) -> list[Line]:
    """Rules by the reason that keeps them unknown, then what the probes lack, then what would help."""
    lines: list[Line] = []
    for reason, rules in by_reason(report).items():
        lines += paragraph(rules, width, indent="      ", first="  ? ")
        lines += paragraph(reason, width, indent="      ")
    lines += _probes(report, width)
    wanted = what_would_help(report)
    if lines and wanted:
        lines += [BLANK, *paragraph(f"To judge more: {'; '.join(wanted)}.", width)]
    return lines


def by_reason(report: Report) -> dict[str, str]:
    """Reason -> rules and subjects that it keeps unknown; rules of the same subjects together."""
    names = Names(report)
    found: dict[str, dict[str, list[str]]] = {}
    for check in report.checks:
        if not check.unknown and check.state != "unknown":
            continue
        subjects: dict[str, list[str]] = {}
        for each in check.unknown_subjects:
            subjects.setdefault(each.reason, []).append(names.subject(each.subject))
        for reason, which in (subjects or {check.reason or "no reason given": []}).items():
            told = "" if which in ([], ["node"]) else _some(ranged(which).split(", "))
            found.setdefault(_plain(reason), {}).setdefault(told, []).append(check.rule)
    return {
        reason: "; ".join(_rules(rules) + (f": {told}" if told else "") for told, rules in groups.items())
        for reason, groups in found.items()
    }


def _rules(names: list[str]) -> str:
    """Rules by name; a whole family that waits for one thing by its first ones."""
    more = len(names) - RULES_NAMED
    return ", ".join(names) if more < 2 else f"{', '.join(names[:RULES_NAMED])} and {more} more"


def _some(names: list[str]) -> str:
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")


def _plain(reason: str) -> str:
    """`nvml: absent: why` reads better without the second colon."""
    for status in ("absent", "denied", "failed", "skipped"):
        reason = reason.replace(f": {status}: ", f" {status}: ")
    return reason.replace(": timed_out: ", " timed out: ")


def _probes(report: Report, width: int) -> list[Line]:
    """On a recorded source what is absent is one line: nobody expects a saved output to hold everything."""
    lines: list[Line] = []
    kind = report.source.kind
    recorded = kind != "live"
    absent = [run.name for run in report.probes if run.status == "absent"] if recorded else []
    for run in report.probes:
        if run.status in ("partial", "denied", "timed_out", "failed") or (run.status == "absent" and not recorded):
            status = "" if run.status == "partial" else f" {run.status.replace('_', ' ')}"
            told = f"probe {run.name}{status}: {run.reason or 'no reason given'}"
            lines += paragraph(told, width, indent="    ", first="  - ", style="dim")
    if absent:
        told = f"nothing in {'these outputs' if kind == 'dump' else f'this {kind}'} for: {', '.join(absent)}"
        lines += paragraph(told, width, indent="    ", first="  - ", style="dim")
    return lines


def what_would_help(report: Report) -> list[str]:
    """What a person can do about it."""
    as_root = "scan as root" if report.source.kind == "live" else "take the evidence as root"
    wanted = [as_root] if any(_privilege(run) for run in report.probes) else []
    late = [run.name for run in report.probes if run.status == "timed_out"]
    if late:
        wanted.append(f"give {', '.join(late)} more time (--timeout), or see why the driver hangs")
    skipped = [run.name for run in report.probes if run.status == "skipped" and "--" in (run.reason or "")]
    if skipped:
        wanted.append(f"leave out no probe ({', '.join(skipped)})")
    if report.source.kind == "dump" and any(check.unknown for check in report.checks):
        missing = [COMMANDS[run.name] for run in report.probes if run.status == "absent" and run.name in COMMANDS]
        wanted += [f"save also {'; '.join(missing)}"] if missing else []
    return wanted


def _privilege(run: ProbeRun) -> bool:
    return run.status == "denied" or any(word in (run.reason or "") for word in PRIVILEGE)
