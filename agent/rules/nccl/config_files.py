"""NCCL configuration files and topology files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from agent.model.finding import Evidence
from agent.model.node import NcclSetting
from agent.rules.applicability import shows_gpus
from agent.rules.context import RuleContext
from agent.rules.devices import one_level_lower
from agent.rules.nccl.hcas import severity_by_scope
from agent.rules.nccl.settings import EffectiveSetting, effective_settings, parse_number, source_unit, why_files_unread
from agent.rules.rule import NODE, Fail, Result, Unknown, rule
from agent.rules.wording import join_labels

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_NUMBER = r"-?(?:0[xX][0-9a-fA-F]+|[0-9]+)"
_LISTS = frozenset({"NCCL_IB_HCA", "NCCL_SOCKET_IFNAME"})  # where a second "=" asks for whole names
_TWICE, _MISSPELT = "set before", "is not a name of NCCL"
_NEAR_NAME = r"(?i)(?:nccl+|ncl+|ncc|nnccl|nncl|nlcc|ncccl)_"


@rule("gdr-nccl-conf-syntax", gate=shows_gpus)
def gdr_nccl_conf_syntax(context: RuleContext) -> Result | Iterable[Result]:
    wrong: dict[str, list[tuple[NcclSetting, str, bool]]] = {}
    for setting, why, harmless in _find_wrong_lines(context):
        wrong.setdefault(source_unit(setting.source), []).append((setting, why, harmless))
    unread = why_files_unread(context)
    faults = [_fail_conf_syntax(file, lines) for file, lines in sorted(wrong.items())]
    return faults or (NODE.unknown(unread) if unread else NODE.passes())


def _find_wrong_lines(context: RuleContext) -> Iterator[tuple[NcclSetting, str, bool]]:
    """Lines that do not do what they state: the line, why, and whether it has its effect all the same."""
    first: dict[tuple[str, str], NcclSetting] = {}
    for setting in context.software.nccl.settings:
        if setting.line is None:
            continue  # of an environment
        why, harmless = _check_line(setting)
        if why:
            yield setting, why, harmless
        earlier = first.setdefault((source_unit(setting.source), setting.key), setting)
        if earlier.value != setting.value:
            yield setting, f"{_TWICE} in line {earlier.source.rpartition(':')[2]}, which counts", False
    for line in context.software.nccl.not_settings:
        is_for_nccl = "NCCL" in line.value
        yield line, "no =, so it sets nothing", not is_for_nccl


def _check_line(setting: NcclSetting) -> tuple[str, bool]:
    key, value = setting.key, setting.value
    clean = _clean_value(value)
    if not re.fullmatch(_NAME, key):
        return f"sets {key!r}, which nothing reads", False
    if not key.startswith("NCCL_") and re.match(_NEAR_NAME, key):
        return f"{key} {_MISSPELT}", False
    if value.startswith("=") and key not in _LISTS:
        return "two =: the second is part of the value", False
    if key in _LISTS and clean == value and re.search(r"\s", value):
        return f"the value is {value!r}: a name in it begins or ends with a blank", False
    if clean == value:
        return "", False
    as_meant = bool(re.fullmatch(_NUMBER, clean)) and parse_number(value) == parse_number(clean)
    return f"the value is {value!r}, with everything in it", as_meant or key.startswith("NCCL_DEBUG")


def _clean_value(value: str) -> str:
    """What a person meant who writes quotes, blanks and remarks."""
    return re.sub(r"\s#.*\Z", "", value, flags=re.DOTALL).strip().strip("\"'")


def _fail_conf_syntax(file: str, lines: list[tuple[NcclSetting, str, bool]]) -> Fail:
    severity = "error" if lines[0][0].scope in ("system", "service") else one_level_lower("error")
    if all(harmless for _, _, harmless in lines):
        severity = "info"
    sorted_lines = sorted(lines, key=lambda line: line[2])
    setting, why, _ = sorted_lines[0]
    more = f"; {len(lines) - 1} more lines" if len(lines) > 1 else ""
    return NODE.fail(
        label=file,
        summary=f"{setting.source}: {why}{more}",
        impact=_impact(severity, why),
        remedy=_remedy(file, [reason for _, reason, _ in sorted_lines]),
        evidence=tuple(
            Evidence(reason, repr(line.line or line.value)[1:-1], line.source) for line, reason, _ in sorted_lines[:8]
        ),
        severity=severity,
        cause=file,
        ids=frozenset({file, *(line.source for line, _, _ in lines)}),
    )


def _impact(severity: str, worst: str) -> str:
    if severity == "info":
        return "the line has an effect only because its value is a number."
    if worst.startswith(_TWICE):
        return "The line has no effect: jobs run with the value of the earlier one."
    return "What these lines should set is not set: jobs run with NCCL's defaults."


def _remedy(file: str, reasons: list[str]) -> str:
    """What fixes each kind of mistake that is in the file."""
    twice = any(reason.startswith(_TWICE) for reason in reasons)
    misspelt = any(reason.endswith(_MISSPELT) for reason in reasons)
    shape = any(not reason.startswith(_TWICE) and not reason.endswith(_MISSPELT) for reason in reasons)
    steps = [f"in {file} write KEY=value, without blanks, quotes, export or a remark behind it"] if shape else []
    steps += [f"correct the name in {file}: NCCL's own begin with NCCL_"] if misspelt else []
    steps += [f"keep one line of each name in {file}"] if twice else []
    text = "; ".join(steps)
    return f"{text[0].upper()}{text[1:]}."


_HARMLESS = ("NCCL_DEBUG", "NCCL_COMM_ID", "NCCL_SOCKET_IFNAME")


@rule("gdr-nccl-conf-shadowed", gate=shows_gpus)
def gdr_nccl_conf_shadowed(context: RuleContext) -> Result:
    why = why_files_unread(context)
    if why:
        return NODE.unknown(why)
    shadowed = {key: rows for key in _set_variables(context) if (rows := _shadowing_rows(context, key))}
    if not shadowed:
        return NODE.passes()
    named_rows = [(key, row) for key, both in shadowed.items() for row in both]
    return NODE.fail(
        summary=f"/etc/nccl.conf sets {join_labels(list(shadowed))}, "
        f"and {shadowed[next(iter(shadowed))][0].unit} otherwise",
        impact="A change in /etc/nccl.conf has no effect on these jobs.",
        evidence=tuple(Evidence(key, row.value, row.source) for key, row in named_rows[:16]),
        cause="shadowed",
        ids=frozenset({row.source for _, row in named_rows} | {row.unit for _, row in named_rows}),
    )


def _set_variables(context: RuleContext) -> list[str]:
    mine = {setting.key for setting in context.software.nccl.settings if setting.scope == "system"}
    return sorted(key for key in mine if not key.startswith(_HARMLESS))


def _shadowing_rows(context: RuleContext, key: str) -> list[EffectiveSetting]:
    """Stronger values that differ from the system's, then the system's; empty: none differs."""
    rows = effective_settings(context, key)
    system = [row for row in rows if row.scope == "system"]
    system_values = {row.value for row in system[:1]}
    other = [row for row in rows if row.scope in ("job", "user") and row.value not in system_values]
    return other + system if other else []


_KEY = "NCCL_TOPO_FILE"
_GPU_CLASSES = ("0x0302", "0x0300")
_SURELY = 4  # of so many devices in the file one may be missing, and it is still the file of this machine


@rule("nccl-topo-file-stale", gate=shows_gpus)
def nccl_topo_file_stale(context: RuleContext) -> Result | Iterable[Result]:
    values = effective_settings(context, _KEY)
    if not values:
        why = why_files_unread(context)
        return NODE.unknown(why) if why else NODE.not_applicable("not-configured", detail=f"{_KEY} is not set")
    answers = [_judge_topo_file_stale(context, where) for where in values]
    faults = {answer.cause: answer for answer in reversed(answers) if isinstance(answer, Fail)}
    return faults.values() or next((answer for answer in answers if isinstance(answer, Unknown)), NODE.passes())


def _judge_topo_file_stale(context: RuleContext, where: EffectiveSetting) -> Result:
    nccl = context.software.nccl
    if where.value not in nccl.searched:
        return NODE.unknown(
            "container-hides", detail=f"{where.value}: not looked for (a container's, or no whole path)"
        )
    if where.value not in nccl.files:
        return _fail_topo_file_stale(where, "missing", f"{where.value} is not there", ())
    if where.value not in nccl.topology_devices:
        return NODE.unknown("not-shown", detail=f"{where.value}: not opened")
    if context.why_bus_unread:
        return NODE.unknown(context.why_bus_unread)
    devices_named = [row.split(" ", 1) for row in nccl.topology_devices[where.value] if " " in row]
    addresses = {address for _, address in devices_named}
    absent = sorted(addresses - context.functions.keys())
    gpus = [gpu for gpu in context.topology.gpus if gpu.pci and gpu.driver_state == "open"]
    left_out = [gpu for gpu in gpus if gpu.pci not in addresses]
    if not any(kind in _GPU_CLASSES for kind, _ in devices_named):
        left_out = []
    rows = tuple(Evidence("of no device here", address, where.value) for address in absent[:8])
    rows += tuple(Evidence(f"{gpu.label} is not in the file", gpu.pci or "", where.value) for gpu in left_out[:8])
    if not rows:
        return NODE.passes()
    lost = [row for row in devices_named if row[1] in absent and row[0] in _GPU_CLASSES]
    if lost and not left_out and len(absent) * _SURELY <= len(addresses):
        return _fail_gpu_absent(where, [address for _, address in lost], len(gpus), rows)
    both = [f"names {join_labels(absent)}, where nothing is"] if absent else []
    both += [f"leaves out {join_labels([gpu.label for gpu in left_out])}"] if left_out else []
    return _fail_topo_file_stale(where, "other", f"{where.value} {' and '.join(both)}", rows)


def _fail_gpu_absent(where: EffectiveSetting, lost: list[str], count: int, rows: tuple[Evidence, ...]) -> Fail:
    """The file is that of this machine: all that is here is in it, and nearly all of it is here."""
    some = f"{len(lost)} of {count + len(lost)} GPUs of {where.value} {'are' if len(lost) > 1 else 'is'}"
    return NODE.fail(
        summary=f"{some} not here: nothing is at {join_labels(lost)}; all others are as it has them",
        impact=f"Jobs that ask for {count + len(lost)} GPUs do not start, or run on fewer.",
        evidence=(where.evidence(_KEY), *rows),
        severity="error",
        cause="gpu-absent",
        ids=frozenset(lost),
    )


def _fail_topo_file_stale(where: EffectiveSetting, cause: str, what: str, rows: tuple[Evidence, ...]) -> Fail:
    return NODE.fail(
        summary=f"{_KEY} in {where.source}: {what}",
        impact="NCCL pairs GPUs with distant NICs and may not use GPUDirect RDMA: traffic between nodes is slower.",
        evidence=(where.evidence(_KEY), *rows),
        severity=severity_by_scope("warning", [where]),
        cause=cause,
    )
