"""The "Could not check" section: which rules could not run, by reason, and how to change that."""

from __future__ import annotations

import re
from collections.abc import Iterable

from agent.model.counters import LINK, NETDEV, PORT, list_counted
from agent.model.labels import group_by_key, group_names, name_first
from agent.model.reasons import needs_sample
from agent.model.report import ProbeRun, Report
from agent.outputs.names import DisplayNames
from agent.outputs.text.lines import BLANK, Line, wrap_paragraph
from agent.outputs.verdict import SAVED_KINDS, classify_check

NAMED_RULES = 5
COMMANDS_NAMED = 6  # to save next; the first screen shows NEXT_COMMANDS
NEXT_COMMANDS = 3
READ = "Read"  # the row of what was read
NAMED_SUBJECTS = 10  # subjects, or ranges of them, per line

_ABSENT = re.compile(r"((?:[^;]{1,200}: )?)([a-z_]{1,32}): absent: .{1,800}")  # a part of a reason
_NEXT_PROBE = re.compile(r"; (?=[a-z_]{1,32}: [a-z_]{1,16}: )")
_UNREAD = ("failed", "timed_out", "denied")  # of an output that is there, so that its reason is of use

_MAKERS = {  # a tool, and whose accelerators it lists
    "nvidia-smi": "NVIDIA",
    "amd-smi": "AMD",
    "rocm-smi": "AMD",
    "npu-smi": "Huawei",
    "hccn_tool": "Huawei",
    "hl-smi": "Intel Habana",
    "neuron-ls": "Amazon",
}
_COUNTED_BY = (  # the begin of a source, the counters in it, and the command that prints them where that is another
    ("ethtool -S ", NETDEV, None),
    ("nvidia-smi nvlink -e", LINK, None),
    ("hccn_tool", PORT, "hccn_tool -i {npu} -stat -g"),
    ("/sys/class/infiniband", PORT, "grep . /sys/class/infiniband/*/ports/*/*counters/*"),
)
_UNNAMED = (" ethX", " INTERFACE")  # of an output that does not state it: its reader's word, and a person's
_LISTS = {  # a maker, and the command that lists its accelerators: what is of another maker is settled by it
    "AMD": "amd-smi static --json",
    "Huawei": "npu-smi info",
    "Intel Habana": "hl-smi",
    "Amazon": "neuron-ls",
}
_DRIVERS = {"NVRM": "NVIDIA", "nvidia": "NVIDIA", "amdgpu": "AMD", "habanalabs": "Intel Habana", "neuron": "Amazon"}


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
    outcomes = [(check, classify_check(check)) for check in report.checks]
    missing = [check.rule for check, outcome in outcomes if outcome in ("could not run", "baseline", "in part")]
    if not missing:
        return []
    text = f"Could not check: {name_first(missing, 2, spare=1)} (--verbose lists why)"
    return wrap_paragraph(text, width, indent="  ", first="", style="dim")


def group_by_reason(report: Report) -> dict[str, str]:
    """Reason -> rules and subjects that are unknown; rules of the same subjects together."""
    names = DisplayNames(report)
    rules_by_reason: dict[str, dict[str, list[str]]] = {}
    for check in report.checks:
        if not check.unknown and check.state != "unknown":
            continue
        subjects = group_by_key((row.reason, names.subject(row.subject)) for row in check.unknown_subjects)
        for reason, which in (subjects or {check.reason or "no reason given": []}).items():
            subject_names = "" if which in ([], ["node"]) else name_first(group_names(which), NAMED_SUBJECTS)
            simple = simplify_reason(reason, report)
            rules_by_reason.setdefault(simple, {}).setdefault(subject_names, []).append(check.rule)
    return {
        reason: "; ".join(
            name_first(rules, NAMED_RULES, spare=1) + (f": {group}" if group else "") for group, rules in groups.items()
        )
        for reason, groups in rules_by_reason.items()
    }


def simplify_reason(reason: str, report: Report) -> str:
    """Drop the second colon of `nvml: absent: why`; why saved outputs do not hold something is of no use."""
    if report.source.kind in SAVED_KINDS:
        absent = [_ABSENT.fullmatch(part) for part in _NEXT_PROBE.split(reason)]
        leads = [match[1] for match in absent if match]
        if len(leads) == len(absent) and not any(leads[1:]):  # what leads to the probes is of all of them
            return f"{leads[0]}not in these outputs: {', '.join(match[2] for match in absent if match)}"
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
    commands = [command for command, _ in list_commands_to_save(report)]
    return [*steps, f"also save {'; '.join(commands)}"] if commands else steps


def render_fragment(report: Report, width: int) -> list[Line]:
    """The rows of `list_fragment_rows`, a paragraph each."""
    return [
        line
        for name, text in list_fragment_rows(report)
        for line in wrap_paragraph(f"{name}: {text}", width, indent="  ", first="", style="dim" if name == READ else "")
    ]


def list_fragment_rows(report: Report) -> list[tuple[str, str]]:
    """Of saved outputs that leave checks open: what was read, and what to save next, most useful first."""
    commands = list_commands_to_save(report)
    if not commands:
        return []
    read = dict.fromkeys(source for run in report.probes if run.status in ("ok", "partial") for source in run.sources)
    rows = [(READ, name_first(list(read), NAMED_SUBJECTS) or "nothing")]
    unread = [f"{run.name}: {run.reason}" for run in report.probes if run.reason and run.status in _UNREAD]
    if unread:
        rows.append(("Not read", name_first(unread, NAMED_RULES)))
    best = ", ".join(f"{command} ({rules})" for command, rules in commands[:NEXT_COMMANDS])
    rows.append(("Save next (checks that it settles)", best.replace("`", "")))
    command = _find_counting_command(report, read)
    if command and report.counters_window is None and any(map(needs_sample, report.checks)):
        rows.append(("To see what grows, save this with its prompt", f"{command}; sleep 60; {command}"))
    return rows


def _find_counting_command(report: Report, read: Iterable[str]) -> str | None:
    """What a person types to read the counters of this source once more; None where it has none."""
    subjects = [item.subject for item in list_counted(report.topology) if item.counters]
    for source in read:
        for begin, kind, command in _COUNTED_BY:
            counted = next((subject for subject in subjects if subject.startswith(f"{kind}:")), None)
            if counted and source.startswith(begin):
                return (
                    command.format(npu="".join(re.findall(r"\d+", counted)[:1]))
                    if command
                    else source.replace(*_UNNAMED)
                )
    return None


def list_commands_to_save(report: Report) -> list[tuple[str, int]]:
    """Commands whose outputs would settle checks that could not run, and how many checks; the most useful first.

    Of saved outputs only: other sources are whole, or are taken again.
    """
    if report.source.kind not in SAVED_KINDS:
        return []
    read = {source for run in report.probes for source in run.sources}
    makers = _find_makers(report)
    commands = {
        (row.code, row.text): [way.what for way in row.settles if way.kind == "command"] for row in report.reasons
    }
    open_rules: dict[str, set[str]] = {}
    for check in report.checks:
        for subject in check.unknown_subjects:
            for command in commands.get((subject.reason_code or "", subject.reason), ()):
                maker = _MAKERS.get(command.partition(" ")[0])
                if maker and len(makers) == 1 and maker not in makers:
                    command = _LISTS.get(next(iter(makers)), command)
                if command not in read and "DEVICE" not in command:
                    open_rules.setdefault(command, set()).add(check.rule)
    ranked: list[tuple[str, int]] = []
    while open_rules and len(ranked) < COMMANDS_NAMED:
        best = max(open_rules, key=lambda command: len(open_rules[command]))
        settled = open_rules.pop(best)
        if not settled:
            break
        ranked.append((best, len(settled)))
        open_rules = {command: rules - settled for command, rules in open_rules.items()}
    return ranked


def _find_makers(report: Report) -> set[str]:
    """The makers of the accelerators that the source lists, or whose drivers its log quotes."""
    listed = {gpu.vendor for gpu in report.topology.gpus if gpu.vendor}
    quoted = {maker for event in report.events for word, maker in _DRIVERS.items() if event.text.startswith(word)}
    return listed or quoted


def lacks_privilege(run: ProbeRun) -> bool:
    """Whether a probe would read more as root."""
    return run.status == "denied" or run.reason_code == "needs-root"
