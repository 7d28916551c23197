"""Health columns of nvidia-smi, npu-smi, hl-smi, rocm-smi and amd-smi.

Sources: hicann/driver npucli (Health: OK, Warning, Alarm, Critical, UNKNOWN); docs.habana.ai (Volatile Uncor-Events);
ROCm/rocm_smi_lib python_smi_tools/rocm_smi.py (showRasInfo, showRetiredPages); ROCm/amdsmi amdsmi_cli (UEC, ECC, bad
pages).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from probes.amd.smi_output import as_number, parse_smi
from probes.gpu.facts import normal_address
from probes.gpu.nvidia_smi_nvlink import parse_errors
from probes.gpu.nvidia_smi_table import list_unreadable
from probes.text import ParseError, check_length, lazy_pattern, require, short_lines
from probes.tool_reports.facts import NO_ROW, ToolReport, state_fault

_LIMIT_LINE = 300
_ADDRESS = r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[01][0-9A-Fa-f]\.[0-7]"
_NPU_PLACE = lazy_pattern(rf" *({_ADDRESS}) *")
_NPU_CARD = lazy_pattern(r"\bnpu-smi info\b[^\n]{0,40}? -i (\d{1,3})\b")
_NPU_ID = lazy_pattern(r"[ \t]*NPU ID {0,40}: (\d{1,3})[ \t]*$")
_NPU_FIELD = lazy_pattern(r"(?P<name>Health(?: Status)?|Error Code|Error Information) {0,40}: (?P<value>\S.{0,120})")
_NPU_STATES = {
    "warning": "npu-warning",
    "alarm": "npu-alarm",
    "critical": "npu-critical",
    "unknown": "npu-unknown",
}
_GAUDI = lazy_pattern(
    rf"\|\s+\d{{1,4}}\s+HL-\S+\s+\S+\s+\|\s+(?P<address>{_ADDRESS})\s[^|]*\|\s*(?P<count>\d{{1,12}})\s*\|"
)
_RAS_GPU = lazy_pattern(r"GPU ?\[(\d{1,4})\]\s{0,16}:")
_XGMI = lazy_pattern(
    r"GPU ?\[(?P<number>\d{1,4})\]\s{0,16}: XGMI Error count: (?P<count>\d{1,9})(?: \((?P<state>[\w ]{3,60})\))?"
)
_MONITORED = "SINGLE_ECC  DOUBLE_ECC"  # columns of `amd-smi monitor`: each count ends under the end of its name
_COUNT = lazy_pattern(r"[0-9]{1,18}")
_BOX = lazy_pattern(rf"\|\s*(?P<address>{_ADDRESS}) [^|]*\|[^|]*?°C\s+(?P<count>\d{{1,12}})\s[^|]*\|")
_PAGE_STATES = {"pending": "amd-pages-pending", "unreservable": "amd-pages-unreservable"}
_ERRORS_OF_LINKS = frozenset(  # without recoveries, which nvlink-recoveries-outlier compares
    {"replay", "crc", "malformed_packets", "buffer_overruns", "local_link_integrity"}
)
_MANY_ERRORS = 100  # of one link; a link that starts counts a few
_SHORT_ROW = lazy_pattern(r"[ \t]*(\d{1,3})[ \t]+(?=\S)(?![^\n]*==)")
_PARTITION = lazy_pattern(r"\b[CDQT]PX, *[1-9]")  # another than the first of a GPU has no sensors of its own
_NO_ROW = lazy_pattern(NO_ROW, re.MULTILINE)
_DEGREES = lazy_pattern(r"\d ?°?[cC](?:[ \t]|$)")
_NO_VALUE = lazy_pattern(r"(?:N/A|unknown)(?:[ \t,]|$)")
_CLOCK_HEADING = lazy_pattern(r"^[ \t]{0,20}GPU [^\n]{0,300}\bGFX_CL(?:OC)?K\b", re.MULTILINE)  # of `amd-smi monitor`
_LINK_GPU = lazy_pattern(r"GPU ?: ?(\d{1,3})")
_LINK_STATES = lazy_pattern(rf"(?:GPU\d{{1,3}} +(?P<address>{_ADDRESS}) +)?(?P<states>[UDX](?: +[UDX]){{1,15}})")
_NO_PAGES = ("no bad pages", "n/a", "not supported")


_OF_ONE_COLUMN: dict[tuple[str, ...], str] = {("fan",): "fan-unreadable", ("power",): "power-unreadable"}


def list_smi_errors(text: str) -> list[ToolReport]:
    """GPUs of the table of nvidia-smi of which a column is ERR!."""
    return [
        ToolReport(code, gpu.address, gpu.line)
        if (code := _OF_ONE_COLUMN.get(gpu.columns))
        else ToolReport("sensors-unreadable", gpu.address, gpu.line, (("columns", ", ".join(gpu.columns)),))
        for gpu in list_unreadable(text)
    ]


def list_link_errors(text: str) -> list[ToolReport]:
    """GPUs of `nvidia-smi nvlink -e` with links that counted many errors, and whether their other links counted none.
    Raises ParseError.

    >>> rows = "GPU 2: A100\\n Link 0: Replay Errors: 0\\n Link 1: Replay Errors: 771\\n"
    >>> [(report.code, report.subject, report.detail) for report in list_link_errors(rows)]
    [('nvlink-counted', 'NVIDIA 2', (('what', '771 on link 1'),))]
    """
    errors = {
        (gpu.index, link.link): link.errors for gpu in parse_errors(text).gpus for link in gpu.nvlinks if link.errors
    }
    counts = {
        place: sum(count for name, count in own.items() if name in _ERRORS_OF_LINKS) for place, own in errors.items()
    }
    many = {place: own["recoveries_failed"] for place, own in errors.items() if own.get("recoveries_failed")}
    many |= {place: count for place, count in counts.items() if count >= _MANY_ERRORS}
    without = sum(not count for count in counts.values())
    code = "nvlink-counted" if without >= len(many) else "nvlink-counted-everywhere"
    reports = []
    for index in dict.fromkeys(gpu for gpu, _ in many):
        links = ", ".join(f"{count} on link {link}" for (gpu, link), count in many.items() if gpu == index)
        subject = f"NVIDIA {index}" if index is not None else None
        reports.append(state_fault(code, subject, links[:_LIMIT_LINE], f"errors: {links}"[:_LIMIT_LINE]))
    return reports


def list_silent_rows(text: str) -> list[ToolReport]:
    """GPUs of the short table of `rocm-smi` whose sensors have no value, where those of others do; or that it has no
    row. Raises ParseError.

    >>> rows = "Device Node IDs GPU%\\n0 2 0x74a1, 7 41.0C 138.0W 0%\\n1 3 0x74a1, 9 N/A N/A unknown 0%\\n"
    >>> [(report.code, report.subject) for report in list_silent_rows(rows)]
    [('amd-silent', 'AMD 1')]
    """
    rows = [(row[1], line) for line in _lines(text) if (row := _SHORT_ROW.match(line)) and not _PARTITION.search(line)]
    if not rows:
        if _NO_ROW.search(text):
            return [state_fault("amd-no-gpu", None, "its table has no row", "rocm-smi")]
        raise ParseError("no row of a GPU")
    silent = [row for row in rows if not _DEGREES.search(row[1]) and _NO_VALUE.search(row[1])]
    if len(silent) == len(rows):
        return []  # a guest, or a card without sensors
    return [ToolReport("amd-silent", f"AMD {number}", " ".join(line.split())) for number, line in silent]


def list_npu_states(text: str) -> list[ToolReport]:
    """NPUs of `npu-smi info` whose Health is not OK.

    >>> row = "| 96  310P3 | Alarm | NA  62  0 / 0 |\\n| 0  3 | 0000:82:00.0 | 0  1850 / 21527 |\\n"
    >>> [(report.code, report.subject) for report in list_npu_states(row)]
    [('npu-alarm', '0000:82:00.0')]
    """
    reports: list[ToolReport] = []
    state, above = None, ""
    for line in _lines(text):
        if "Process id" in line:
            break
        cells = line.strip().strip("|").split("|") if line.lstrip().startswith("|") else []
        place = next((match for cell in cells if (match := _NPU_PLACE.fullmatch(cell))), None)
        if place is not None:
            if state:
                reports.append(ToolReport(state, normal_address(place[1]), above))
            state = None
        elif cells:
            words = {cell.strip().lower() for cell in cells[1:3]}
            state = next((code for word, code in _NPU_STATES.items() if word in words), None)
            above = " ".join(line.split())
    return reports


def list_npu_health(text: str) -> list[ToolReport]:
    """NPUs of `npu-smi info -t health`, each below its command, whose state is not OK. Raises ParseError.

    >>> text = "$ npu-smi info -t health -i 3 -c 0\\nHealth : Alarm\\nError Code : 81078603\\n"
    >>> [report[:2] + report.detail for report in list_npu_health(text)]
    [('npu-alarm', 'NPU 3', ('what', 'error code 81078603'))]
    """
    reports: list[ToolReport] = []
    card, state, known = "", None, False
    for line in _lines(text if text.endswith("\n") else f"{text}\n"):
        row = _NPU_FIELD.fullmatch(line.strip())
        if command := _NPU_CARD.search(line) or _NPU_ID.match(line):
            card, state = f"NPU {command[1]}", None
        elif row and row["name"].startswith("Health"):
            known, state = True, _NPU_STATES.get(row["value"].lower())
            if state:
                reports.append(ToolReport(state, card or "NPU", line.strip()))
        elif row and state and row["value"] not in ("NA", "0"):
            name = row["name"].lower()
            what = " ".join([*(value for _, value in reports[-1].detail), f"{name} {row['value']}"])
            reports[-1] = reports[-1]._replace(text=f"{reports[-1].text}, {line.strip()}", detail=(("what", what),))
    require(known, "no state of an NPU's health")
    return reports


def list_gaudi_errors(text: str) -> list[ToolReport]:
    """Cards of `hl-smi` with uncorrectable events."""
    rows = (match for line in _lines(text) if (match := _GAUDI.match(line.strip())) and int(match["count"]))
    return [
        ToolReport("gaudi-events", normal_address(row["address"]), " ".join(row[0].split()), _errors(int(row["count"])))
        for row in rows
    ]


def list_gaudi_counts(text: str) -> list[ToolReport]:
    """Cards of `hl-smi -Q ... -f csv` with uncorrectable errors, in fields of any order. Raises ParseError.

    >>> text = "index, bus_id, ecc.errors.uncorrected.aggregate.total\\n3, 0000:4d:00.0, 2\\n"
    >>> [report[:2] for report in list_gaudi_counts(text)]
    [('gaudi-events', '0000:4d:00.0')]
    """
    rows = [[cell.strip() for cell in line.split(",")] for line in _lines(text) if "," in line]
    names = [name.partition(" ")[0].lower() for name in rows[0]] if rows else []
    columns = [at for at, name in enumerate(names) if ".uncorrected" in name and "errors" in name]
    require(columns, "no column of uncorrected errors")
    place = next((names.index(name) for name in ("bus_id", "module_id", "index") if name in names), 0)
    reports = []
    for row in rows[1:]:
        count = max((int(row[at]) for at in columns if len(row) == len(names) and _COUNT.fullmatch(row[at])), default=0)
        if count:
            is_address = row[place].count(":") == 2
            subject = normal_address(row[place]) if is_address else f"Gaudi {row[place][:20]}"
            reports.append(ToolReport("gaudi-events", subject, ", ".join(row)[:200], _errors(count)))
    return reports


def list_ras_errors(text: str) -> list[ToolReport]:
    """GPUs of `rocm-smi --showrasinfo` with uncorrectable errors, one per block.

    >>> list_ras_errors("GPU[2]: \\tRAS INFO\\n  Block  Status  Correctable Error  Uncorrectable Error\\n"
    ...     "  UMC  ENABLED  0  4\\n")[0][:2]
    ('amd-uncorrectable', 'AMD 2')
    """
    return [
        ToolReport("amd-uncorrectable", gpu, " ".join(words), (("what", words[0][:40]), *_errors(int(words[-1]))))
        for gpu, words in _list_rows_of_gpus(text)
        if len(words) >= 4 and all(map(_COUNT.fullmatch, words[-2:])) and int(words[-1])
    ]


def _list_rows_of_gpus(text: str) -> Iterator[tuple[str, list[str]]]:
    """The words of each line below the one of `rocm-smi` that names a GPU."""
    gpu = ""
    for line in _lines(text):
        if heading := _RAS_GPU.match(line.strip()):
            gpu = f"AMD {int(heading[1])}"
        elif gpu:
            yield gpu, line.split()


def list_xgmi_errors(text: str) -> list[ToolReport]:
    """GPUs of `rocm-smi --showxgmierr` with errors since someone read them before. Raises ParseError.

    >>> [report[:2] for report in list_xgmi_errors("GPU[2]\\t: XGMI Error count: 2 (Multiple errors detected)\\n")]
    [('amd-xgmi-errors', 'AMD 2')]
    """
    rows = require([row for line in _lines(text) if (row := _XGMI.match(line.strip()))], "no count of XGMI errors")
    return [
        state_fault("amd-xgmi-errors", f"AMD {int(row['number'])}", row["state"], row[0])
        for row in rows
        if row["count"] != "0"
    ]


def list_amd_links(text: str) -> list[ToolReport]:
    """GPUs of `amd-smi xgmi -l` or `rdci link -s` with more XGMI links down than at least half of them: those that a
    board does not wire are down on all. Raises ParseError.

    >>> text = "GPU0 0000:05:00.0 U U D X\\nGPU1 0000:26:00.0 U D D X\\nGPU2 0000:46:00.0 X U U D\\n"
    >>> [(report.subject, report.detail) for report in list_amd_links(text)]
    [('0000:26:00.0', (('what', '2 down, 1 on the others'),))]
    """
    down: dict[str, int] = {}
    rows: dict[str, str] = {}
    number = ""
    for line in _lines(text):
        bare = line.strip()
        if gpu := _LINK_GPU.fullmatch(bare):
            number = gpu[1]
        elif row := _LINK_STATES.fullmatch(bare):
            subject = normal_address(row["address"]) if row["address"] else f"AMD {number}"
            if row["address"] or number:
                down[subject] = row["states"].split().count("D")
                rows[subject] = " ".join(bare.split())
    require(down, "no state of an XGMI link")
    usual = sorted(down.values())[(len(down) - 1) // 2]  # at least half have no more
    more = {gpu: f"{count} down, {usual or 'none'} on the others" for gpu, count in down.items() if count > usual}
    return [state_fault("amd-link-down", gpu, what, rows[gpu]) for gpu, what in more.items()]


def list_bad_pages(text: str) -> list[ToolReport]:
    """GPUs of `rocm-smi --showretiredpages` with pages that are not yet, or cannot be, out of use; reserved ones are.

    >>> [report[:2] for report in list_bad_pages("GPU[1]: ALL PAGES INFO\\n  0xf8b03000  0x1000  pending\\n")]
    [('amd-pages-pending', 'AMD 1')]
    """
    rows: dict[tuple[str, str], list[str]] = {}
    for gpu, words in _list_rows_of_gpus(text):
        if len(words) == 3 and words[0].startswith("0x") and words[2] in _PAGE_STATES:
            rows.setdefault((_PAGE_STATES[words[2]], gpu), []).append(" ".join(words))
    reports = (ToolReport(code, gpu, pages[0], (("pages", str(len(pages))),)) for (code, gpu), pages in rows.items())
    return list(reports)


def list_amd_errors(text: str) -> list[ToolReport]:
    """GPUs of an output of amd-smi (its table, monitor, metric, bad-pages) with uncorrectable errors or bad pages.

    Raises ParseError.
    """
    if _MONITORED in text or _CLOCK_HEADING.search(text):
        return list(_list_monitored(_lines(text)))
    boxes = [match for line in _lines(text) if (match := _BOX.match(line.strip()))]
    if boxes:
        return [
            ToolReport(
                "amd-uncorrectable", normal_address(b["address"]), " ".join(b[0].split()), _errors(int(b["count"]))
            )
            for b in boxes
            if int(b["count"])
        ]
    reports: list[ToolReport] = []
    for name, record in parse_smi(check_length(text)).gpus.items():
        subject = _find_address(record) or f"AMD {int(name[3:])}"
        reports += _list_of_record(subject, record)
    return reports


def _list_monitored(lines: list[str]) -> Iterator[ToolReport]:
    """GPUs of `amd-smi monitor` with uncorrectable errors.

    >>> table = ["GPU  POWER  SINGLE_ECC  DOUBLE_ECC", "  1  199 W           0           3"]
    >>> [report[:2] for report in _list_monitored(table)]
    [('amd-uncorrectable', 'AMD 1')]
    """
    end = 0
    for line in lines:
        words = line[:end].split()
        if line.lstrip().startswith("GPU ") and _MONITORED in line:
            end = line.index(_MONITORED) + len(_MONITORED)
        elif len(words) < 2 or line[end : end + 1].strip():
            continue
        elif _COUNT.fullmatch(words[0]) and _COUNT.fullmatch(words[-1]) and int(words[-1]):
            detail = _errors(int(words[-1]))
            yield ToolReport("amd-uncorrectable", f"AMD {int(words[0])}", " ".join(line.split())[:200], detail)


def _list_of_record(subject: str, record: Mapping[str, Any]) -> Iterator[ToolReport]:
    ecc = record.get("ecc")
    total = as_number(_lower(ecc).get("total_uncorrectable_count"))
    if total:
        yield ToolReport("amd-uncorrectable", subject, f"TOTAL_UNCORRECTABLE_COUNT: {total}", _errors(total))
    for key, code in (("pending", "amd-pages-pending"), ("un_res", "amd-pages-unreservable")):
        pages = record.get(key)
        count = len(pages) if isinstance(pages, list) else 1 if isinstance(pages, dict) and pages else 0
        if isinstance(pages, str) and pages.lower().startswith("0x"):
            count = 1
        if count and not str(pages).lower().startswith(_NO_PAGES):
            yield ToolReport(code, subject, f"{key.upper()}: {str(pages)[:120]}", (("pages", str(count)),))


def _errors(count: int) -> tuple[tuple[str, str], ...]:
    return (("errors", str(count)),)


def _lower(value: Any) -> dict[str, Any]:
    return {str(key).lower(): item for key, item in value.items()} if isinstance(value, dict) else {}


def _find_address(record: Mapping[str, Any]) -> str | None:
    bdf = record.get("bdf") or _lower(record.get("bus")).get("bdf")
    if isinstance(bdf, str) and re.fullmatch(_ADDRESS, bdf):
        return normal_address(bdf)
    return None


def _lines(text: str) -> list[str]:
    """Without a last line that is cut."""
    whole = text if text.endswith(("\n", "\r")) else text[: max(text.rfind("\n"), text.rfind("\r")) + 1]
    return short_lines(whole)
