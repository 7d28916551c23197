"""`dcgmi health -c` and `dcgmi diag`, as tables and as JSON: which GPU does not pass, and why; `dcgmi nvlink`; `nvsm
show health` of a DGX (its user guide).

Source: NVIDIA/DCGM, dcgmi/Health.cpp and Diag.cpp, nvvs/include/NvvsJsonStrings.h. Tables break a message at the width
of their second column; the table of R3 and earlier lists the GPUs of a result, the one of R4 has a line for each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from probes.cut_json import load_first
from probes.gpu.facts import normal_address
from probes.text import ParseError, check_length, lazy_pattern, require, short_lines
from probes.tool_reports.alerts import list_narrow_links
from probes.tool_reports.facts import ToolReport, state_fault

_LIMIT_LINE = 400
_ROW = lazy_pattern(r"[ \t]*\| ?(?P<label>[^|]{1,80})\|(?P<value>[^|]{0,200})\|[ \t]*")
_STATES = {"Warning": "dcgm-health-warning", "Failure": "dcgm-health-failure"}
_ENTITY = lazy_pattern(r"(?:-> )?(?P<kind>GPU|NvSwitch|Switch|CPU)?(?: ID)?:? ?(?P<number>\d{1,4})")
_RESULT = lazy_pattern(r"(?P<result>Pass|Fail|Skip|Warn)\b(?: - (?P<about>All|GPUs?: [\d, ]{1,200}))?")
_OF_GPU = lazy_pattern(r"(?P<kind>GPU|NvSwitch|CPU) ?(?P<number>\d{1,4}): (?P<result>Pass|Fail|Skip|Warn)\b.*")
_WARNED = lazy_pattern(r"(?:Warning|Error)(?:: GPU ?(?P<number>\d{1,4}))?")
_GPU_IN_TEXT = lazy_pattern(r"GPU (\d{1,4})\b")
_LIMIT_METRIC = 2000
_METRIC = lazy_pattern(
    r"(?P<name>DCGM_(?:FI|EXP)_[A-Z0-9_]{2,80})\{(?P<labels>[^}\n]{0,1600})\} {1,4}"
    r"(?:=> )?(?P<value>\d{1,20}(?:\.\d{1,12})?(?:e[+-]?\d{1,2})?)(?: \d{1,16})?"
)
_OF_HOST_LABEL = lazy_pattern(r"\b(?:Hostname|hostname|node|instance)=\"(?P<host>[\w.-]{1,64})")
_OF_GPU_LABEL = lazy_pattern(r"\bgpu=\"(?P<gpu>\d{1,4})\"")  # labels have any order
_METRICS = {  # dcgm-exporter etc/*.csv
    "DCGM_FI_DEV_XID_ERRORS": "metric-xid",
    "DCGM_EXP_XID_ERRORS_COUNT": "metric-xid",  # the number is in a label, and the value how often it came
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": "metric-ecc",
    "DCGM_FI_DEV_ROW_REMAP_FAILURE": "metric-remap-failed",
    "DCGM_FI_DEV_ROW_REMAP_PENDING": "metric-remap-pending",
}
_CLOCKS = ("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "DCGM_FI_DEV_CLOCKS_EVENT_REASONS")
_SLOWDOWNS = (  # nvml.h
    (0x40, "HW thermal slowdown"),
    (0x80, "HW power brake"),
    (0x08, "HW slowdown"),
    (0x20, "SW thermal slowdown"),
)
_XID_SERIES = lazy_pattern(  # with the number in a label, so that it needs no value, as tables of monitoring show it
    r"[ \t`|>*-]{0,20}DCGM_(?:FI|EXP)_[A-Z_]{0,20}XID_ERRORS[A-Z_]{0,20}\{(?P<labels>[^}\n]{0,1600})\}"
    r"[ \t`|]{0,8}(?:=> )?(?P<value>\d{1,12}(?:\.\d{1,3})?(?:e[+-]?\d\d)?)?(?: @?\[?[\d.]{4,20}\]?)?[ \t`|]{0,8}"
)
_LABELLED_XID = lazy_pattern(r"\b(?:xid|err_code)=\"(\d{1,4})\"")
_FLAGS = frozenset({"metric-remap-failed", "metric-remap-pending"})
_BLANK = 0x7FFFFFF0  # dcgm_structs.h
_SECTION = lazy_pattern(r"^[|+]-{3,8} {1,4}(?:Deployment|Integration|Hardware|Stress) {1,4}-{3,16}\+-", re.MULTILINE)
_LINKS_OF = lazy_pattern(r"[ \t]{0,16}(?P<kind>gpuId|physicalId|nvSwitchId) (?P<number>\d{1,4}):[ \t]{0,16}")
_LINK_STATES = lazy_pattern(r"[ \t]{0,40}[UDX_](?: [UDX_]){0,143}[ \t]{0,16}")
_CAUSES = ("dcgm-link", "dcgm-memory", "dcgm-memory-pending", "dcgm-pcie", "dcgm-hot")
_HEAD = "Diagnostic"  # and a test
_METADATA = ("DCGM Version", "Driver Version Detected", "GPU Device IDs Detected", "Diagnostic", "Number of")


_CHECK = lazy_pattern(r"[ \t]*(?P<check>\S.{2,120}?)[ \t]?\.{3,120} ?(?P<state>Healthy|UnHealthy|Unknown)[ \t]*")
_ADDRESS = lazy_pattern(r"\[([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])\]")


def list_failed_checks(text: str) -> list[ToolReport]:
    """The checks of `nvsm show health` that are UnHealthy, with the PCI address where it names one. Raises ParseError.

    >>> text = "Number of CPU cores [224]......... Healthy\\nGPU link width [0000:1b:00.0][x8]..... UnHealthy\\n"
    >>> [(report.subject, report.detail) for report in list_failed_checks(text)]
    [('0000:1b:00.0', (('what', 'GPU link width'),))]
    """
    checks = [match for line in short_lines(text) if (match := _CHECK.fullmatch(line))]
    require(checks, "no check of nvsm")
    reports = []
    for match in checks:
        if match["state"] == "UnHealthy":
            address = _ADDRESS.search(match["check"])
            what = match["check"].partition(" [")[0]
            detail = (("what", what),)
            reports.append(
                ToolReport("nvsm-unhealthy", address and normal_address(address[1]), match[0].strip(), detail)
            )
    return reports


def parse_health(text: str) -> list[ToolReport]:
    """The incidents of `dcgmi health -c`, one per system of a GPU. Raises ParseError.

    >>> table = "| Overall Health | Failure |\\n| GPU | |\\n| -> 3 | Failure |\\n|    -> Errors | |\\n"
    >>> parse_health(table + "|       -> Memory system | Failure |\\n| | DBE in GPU 3 |\\n")[0].subject
    'NVIDIA 3'
    """
    check_length(text)
    if text.lstrip()[:1] == "{":
        return _list_incidents(load_first(text))
    reports: list[ToolReport] = []
    subject: str | None = None
    kind, seen = "GPU", False
    for label, value in _rows(text):
        seen = seen or "Overall Health" in f"{label}{value}"
        name = label.removeprefix("-> ")
        if name in ("GPU", "NvSwitch", "CPU", "Switch"):
            kind = name
        elif (entity := _ENTITY.fullmatch(label)) and value in ("Healthy", *_STATES):
            subject = _name(entity["kind"] or kind, entity["number"])
            reports += [ToolReport(_STATES[value], subject, f"{subject}: {value}")] if value in _STATES else []
        elif subject and value in _STATES:
            reports = _without_headline(reports, subject)
            reports.append(state_fault(_STATES[value], subject, name, f"{name}: {value}"))
        elif reports and not label and value:
            reports[-1] = _go_on(reports[-1], value)
    if not seen and subject is None:  # an excerpt has lines of GPUs alone
        raise ParseError("no line of the overall health, nor of a GPU, in the output of dcgmi health")
    return reports


def _without_headline(reports: list[ToolReport], subject: str) -> list[ToolReport]:
    """A GPU's own line counts only where no system of it is named."""
    return [report for report in reports if report.subject != subject or report.detail or ": " not in report.text
            or report.text.partition(": ")[0] != subject]  # fmt: skip


def _list_incidents(document: Any) -> list[ToolReport]:
    reports = []
    body = _field(document, "body")
    for kind in ("GPU", "NvSwitch", "CPU"):
        for number, entity in _items(_field(body, kind, "children")):
            for system, incident in _items(_field(entity, "children", "Errors", "children")):
                code = _STATES.get(str(_field(incident, "value")))
                overflow = _field(incident, "overflow")
                words = " ".join(map(str, overflow[:20])) if isinstance(overflow, list) else ""
                if code and number.isdecimal():
                    text = f"{system}: {_field(incident, 'value')} {words}".strip()[:_LIMIT_LINE]
                    reports.append(state_fault(code, _name(kind, number), system[:80], text))
    require(isinstance(_field(body, "Overall Health"), dict), "no overall health in the JSON of dcgmi health")
    return reports


def parse_diag(text: str) -> list[ToolReport]:
    """The failed tests of `dcgmi diag`, one per test and GPU. Raises ParseError.

    >>> rows = "| Diagnostic | Result |\\n| GPU Memory | Pass - GPUs: 1 |\\n| | Fail - GPU: 0 |\\n| Warning | Hot |\\n"
    >>> [(report.subject, report.detail, report.text) for report in parse_diag(rows)]
    [('NVIDIA 0', (('what', 'GPU Memory'),), 'GPU Memory: Fail; Hot')]
    """
    check_length(text)
    begin = text.find("{")
    if "test_categories" in text and begin >= 0:
        return _list_failed_tests(load_first(text[begin:]))
    reports: list[ToolReport] = []
    test, seen = "", _SECTION.search(text) is not None  # of a table without its head
    failed: list[int] = []  # places in `reports` that a message belongs to
    for label, value in _rows(text):
        seen = seen or label == _HEAD
        warned = _WARNED.fullmatch(label)
        if label and not warned:
            is_test = _RESULT.match(value) if label == _HEAD else not label.startswith(_METADATA)
            test, failed = label if is_test else "", []
        result, of_gpu = _RESULT.match(value), _OF_GPU.fullmatch(value)
        if test and not warned and (result or of_gpu):
            seen = True  # an excerpt has lines of tests alone
            subjects = _list_failed(result, of_gpu)
            if of_gpu and subjects:  # R4: the line of the test is above those of its GPUs
                reports = [report for report in reports if report.subject is not None or report.detail[0][1] != test]
            failed = list(range(len(reports), len(reports) + len(subjects))) or failed * bool(of_gpu or not label)
            reports += [_failed_test(test, subject) for subject in subjects]
        elif label == "Error" and value and not failed:
            failed = [len(reports)]
            reports.append(state_fault("dcgm-diag-failure", _find_gpu(value), test or "Deployment", value))
        elif value and failed and (warned or not label):
            joint = "; " if warned else ""
            own = _name("GPU", warned["number"]) if warned and warned["number"] else None
            for at in failed if own is None else [at for at in failed if reports[at].subject == own]:
                reports[at] = _go_on(reports[at], value, joint)
    require(seen, "no heading of a diagnostic in the output of dcgmi diag")
    return [_find_cause(report) for report in reports]


def _find_cause(report: ToolReport) -> ToolReport:
    """A failed test by what its message states, where that has steps of its own: links, memory, temperature."""
    from probes.tool_reports.sentences.gpu import DCGM  # lazy: most tests pass

    for row in DCGM:
        if row.code in _CAUSES and (match := row.pattern.search(report.text)):
            stated = match.groupdict().get("what") or match[0]
            what = f"{dict(report.detail).get('what', 'a test')} of dcgmi diag: {' '.join(stated.split())}"
            return report._replace(code=row.code, detail=(("what", what[:_LIMIT_LINE]),))
    return report


def list_links_down(text: str) -> list[ToolReport]:
    """GPUs and NVSwitches with links that are down, of `dcgmi nvlink --link-status`. Raises ParseError.

    >>> [(report.code, report.subject, report.detail) for report in list_links_down("  gpuId 3:\\n    U U D U _ _\\n")]
    [('dcgm-link-down', 'NVIDIA 3', (('what', '1 of 4 NVLinks'),))]
    """
    reports: list[ToolReport] = []
    name = None
    for line in short_lines(text):
        if entity := _LINKS_OF.fullmatch(line):
            name = _name("GPU" if entity["kind"].startswith("gpu") else "NvSwitch", entity["number"])
        elif name and (links := _LINK_STATES.fullmatch(line)):
            states = links[0].split()
            down, there = states.count("D"), len(states) - states.count("_")
            code = "dcgm-link-down" if down < there else "dcgm-links-down"
            what = (("what", f"{down} of {there} NVLinks"),)
            reports += [ToolReport(code, name, f"{name}: {links[0].strip()}", what)] if down else []
            name = None
    require("gpuId" in text, "no GPU in the output of dcgmi nvlink")
    return reports


def _list_failed(result: re.Match[str] | None, of_gpu: re.Match[str] | None) -> list[str | None]:
    if of_gpu:
        return [_name(of_gpu["kind"], of_gpu["number"])] if of_gpu["result"] == "Fail" else []
    if result is None or result["result"] != "Fail":
        return []
    numbers = re.findall(r"\d{1,4}", result["about"] or "")
    return [_name("GPU", number) for number in numbers[:64]] or [None]


def _failed_test(test: str, subject: str | None) -> ToolReport:
    return state_fault("dcgm-diag-failure", subject, test, f"{test}: Fail")


def _list_failed_tests(document: Any) -> list[ToolReport]:
    reports = []
    for root in ("DCGM Diagnostic", "DCGM GPU Diagnostic"):
        for category in _rows_of(_field(document, root, "test_categories")):
            for test in _rows_of(_field(category, "tests")):
                name = str(_field(test, "name"))[:80]
                results = _rows_of(_field(test, "results"))
                failed = [result for result in results if str(_field(result, "status")).lower() == "fail"]
                reports += [_failed_test(name, _find_entity(row))._replace(text=_tell(name, row)) for row in failed]
    if not isinstance(_field(document, "DCGM Diagnostic") or _field(document, "DCGM GPU Diagnostic"), dict):
        raise ParseError("no diagnostic in the JSON of dcgmi diag")
    return reports


def list_metrics(text: str) -> list[ToolReport]:
    """Metrics of dcgm-exporter that state a fault of a GPU. Raises ParseError.

    >>> [(r.code, r.subject, r.detail) for r in list_metrics('DCGM_FI_DEV_XID_ERRORS{gpu="3",device="nvidia3"} 79\\n')]
    [('metric-xid', 'NVIDIA 3', (('xid', '79'),))]
    """
    reports: dict[tuple[object, ...], ToolReport] = {}
    known = False
    for line in short_lines(text, _LIMIT_METRIC):
        row = _METRIC.fullmatch(line.strip())
        gpu = _OF_GPU_LABEL.search(row["labels"]) if row else None
        if series := _XID_SERIES.fullmatch(line.strip()):
            known = True
            reports |= {(report.code, report.subject, report.detail): report for report in _read_series(series)}
            continue
        if row is None or gpu is None:
            continue
        known = True
        subject, shown = _name("GPU", gpu["gpu"]), f"{row['name']} of GPU {gpu['gpu']}"
        if row["name"] in _CLOCKS and (slowed := _name_slowdown(row, subject, shown)):
            reports.setdefault((slowed.code, slowed.subject), slowed)
        code = _METRICS.get(row["name"])
        if code is None or not (count := _read_count(row["value"])):
            continue
        detail = (("xid" if code == "metric-xid" else "errors", str(count)),) if code not in _FLAGS else ()
        reports.setdefault((code, subject, detail), ToolReport(code, subject, f"{shown}: {count}", detail))
    require(known, "no metric of a GPU")
    return [*reports.values(), *list_narrow_links(text)]


def _read_series(series: re.Match[str]) -> list[ToolReport]:
    """The Xid of a series: its value, or where a label has the number the label of one that came at least once."""
    labelled, gpu = _LABELLED_XID.search(series["labels"]), _OF_GPU_LABEL.search(series["labels"])
    value = int(float(series["value"])) if series["value"] else 1
    number = (int(labelled[1]) if value else 0) if labelled else value
    if not number or not (gpu or labelled) or not (labelled or series["value"]):
        return []
    host = _OF_HOST_LABEL.search(series["labels"])
    subject = _name("GPU", gpu["gpu"]) if gpu else host["host"] if host else None
    return [ToolReport("metric-xid", subject, series[0].strip()[:_LIMIT_LINE], (("xid", str(number)),))]


def _name_slowdown(row: re.Match[str], subject: str, shown: str) -> ToolReport | None:
    """Of the bits of a clock's limits those of heat and of hardware; idle clocks and power limits are usual."""
    bits = _read_count(row["value"])
    reason = next((name for bit, name in _SLOWDOWNS if bits & bit), None)
    if reason is None:
        return None
    return state_fault("metric-slowdown", subject, f"{reason} ({bits:#x})", f"{shown}: {bits}")


def _read_count(text: str) -> int:
    """0 for a value that is no count: DCGM states blanks as very large numbers."""
    value = float(text)
    return int(value) if 0 < value < _BLANK else 0


def _find_entity(result: Any) -> str | None:
    number = _field(result, "entity_id")
    if number is None:
        number = _field(result, "gpu_id") or _field(result, "gpu_ids")
    text = str(number) if number is not None else ""
    kind = str(_field(result, "entity_group") or "GPU")
    return _name(kind, text) if text.isascii() and text.isdecimal() and kind in ("GPU", "NvSwitch", "CPU") else None


def _tell(name: str, result: Any) -> str:
    warnings = _field(result, "warnings")
    rows = warnings if isinstance(warnings, list) else [warnings]
    words = [str(_field(row, "warning") if isinstance(row, dict) else row) for row in rows[:8] if row]
    return "; ".join([f"{name}: Fail", *words])[:_LIMIT_LINE]


def _name(kind: str, number: str) -> str:
    return f"NVIDIA {int(number[:6])}" if kind == "GPU" else f"{kind} {int(number[:6])}"


def _find_gpu(text: str) -> str | None:
    match = _GPU_IN_TEXT.search(text)
    return _name("GPU", match[1]) if match else None


def _go_on(report: ToolReport, words: str, joint: str = " ") -> ToolReport:
    return report._replace(text=f"{report.text}{joint}{words}"[:_LIMIT_LINE])


def _rows(text: str) -> Iterator[tuple[str, str]]:
    """The two columns of each line of the table."""
    for line in short_lines(text):
        if (row := _ROW.fullmatch(line)) and not row["label"].startswith("--"):
            yield row["label"].strip(), row["value"].strip()


def _field(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _items(value: Any) -> list[tuple[str, Any]]:
    return list(value.items()) if isinstance(value, Mapping) else []


def _rows_of(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
