"""Results of checks of any tool that tests nodes: a table with a column of verdicts, or a line per check.

Health scripts of sites, `xpu-smi diag`, RVS, AGFHC and preflight tests of clusters print nothing else in common: a cell
that is a verdict, beside a name and a message. Only a text about the health of nodes counts, and of that only what
failed and names a part: tests of programs have the same words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from probes.text import lazy_pattern, require, short_lines
from probes.tool_reports.facts import ToolReport, state_fault
from probes.tool_reports.sentences.parts import DEVICES, find_part
from probes.tool_reports.tables.measured_lines import list_slow_lines

_LIMIT_TEXT = 200
_ABOUT_NODES = lazy_pattern(
    r"(?i)\b(?:(?:node|system|cluster|gpu|fabric)[ -]?(?:health|check|level|smoke|validation)|"
    r"health[ -_]?(?:check|report|monitor)|smoke test|pre-?flight|burn-?in|acceptance|qualification|hl[_ ]qual|rvs|"
    r"agfhc|xpu-smi)|\[RESULT\] \[|\| {0,40}Result: (?:Pass|Fail)\b"
)
_PARTS = lazy_pattern(
    r"(?i)gpu|\brvs|\bnpu|\bxpu|hbm|vram|pci ?e|xgmi|nvlink|\bnics?\b|rdma|roce|infiniband|\bib\b|\bib_|\bmlx5|[nr]ccl|"
    r"\bhccl|\becc\b|xe ?link|hccs|computation|memory bandwidth|\bdevice \d|"
    r"\bfan\w?\d|\bps(?:u ?)?\d|power suppl|transceiver"
)
_CELLS = lazy_pattern(r"[ \t>]{0,8}[|│┃](?P<cells>[^\n]{3,900})[|│┃][ \t]{0,8}")
_VERDICT = lazy_pattern(r"(?:\W{0,3}|Result: ?)(?P<verdict>(?i:pass(?:ed)?|fail(?:ed|ure)?|ok|error))\W{0,3}")
_FRONT = lazy_pattern(
    r"[ \t>]{0,8}\[ ?(?P<verdict>(?i:pass(?:ed)?|fail(?:ed|ure)?|ok|error)) ?\][ \t:-]{1,4}(?P<what>\S.*)"
)
_END = ("pass", "passed", "fail", "failed", "failure")
_OF_RVS = lazy_pattern(  # which tests GPUs, and names them by numbers of its own
    r"\[RESULT\] \[ {0,4}[\d.]{1,20}\] (?P<what>\S.{0,200}?)"
    r"(?:(?: ::)? (?:pass|met) ?: ?(?P<truth>TRUE|FALSE)\b| (?P<last>TRUE|FALSE|true|false)[ \t]{0,8}$)"
)
_FIELD = lazy_pattern(
    r"[ \t>-]{0,16}(?P<label>[A-Za-z][\w ]{1,24}?) ?[:=][ \t]{0,40}(?P<value>\S[^\n]{0,200}?)[ \t]{0,200}"
)
_OF_RESULT, _OF_WHY = ("result", "status", "verdict", "outcome"), ("reason", "message", "error", "details")
_OF_PART = ("device", "gpu", "npu", "card", "nic", "port", "link", "test", "test name", "check", "name", "action")
_OF_HOST = ("host", "hostname", "node", "node name")
_MESSAGE = lazy_pattern(r"(?:Message: ?)?(?P<message>(?!Message:)\S.*)")
_DEVICE_ID = lazy_pattern(r" {0,40}Device ID {0,40}\| {0,40}(?P<number>\d{1,3}) {0,80}")  # of xpu-smi diag
_PASSED = lazy_pattern(r"(?i)(?:\w{2,8} \d{1,3} ?: ?)?pass(?:ed)?\b")
_NO_NAME = lazy_pattern(r"[\d.: s%-]{0,20}")  # a number, a duration, a rule


def is_of_checks(text: str) -> bool:
    """Whether a text is about the health of nodes, and has verdicts."""
    return _ABOUT_NODES.search(text) is not None and next(_list_results(text), None) is not None


def list_failed_results(text: str) -> list[ToolReport]:
    """What failed, with the host or part that its row names. Raises ParseError where the text has no verdict.

    >>> rows = "node health check\\n| Host | Result | Why |\\n| n1 | PASS | |\\n| n2 | FAIL | GPU 3: ECC |\\n"
    >>> [(report.subject, report.detail) for report in list_failed_results(rows)]
    [('n2', (('what', 'GPU 3: ECC'),))]
    """
    results = list(_list_results(text))
    require(results and _ABOUT_NODES.search(text), "no verdict of a check of a node")
    reports = []
    for failed, subject, what in results:
        if failed and _PARTS.search(what):
            shown = " ".join(what.split())[:_LIMIT_TEXT]
            subject = subject or find_part(what, DEVICES)
            reports.append(state_fault("check-failed", subject, shown, f"{subject or 'FAIL'}: {shown}"))
    return [*reports, *list_slow_lines(text)]


def _list_results(text: str) -> Iterator[tuple[bool, str | None, str]]:
    """Of each check: whether it failed, the host of its row, and its name with what it reports."""
    heading: list[str] = []
    fields: dict[str, str] = {}  # of a block of labels and values, whose last label is its result
    last: tuple[bool, str | None, str] | None = None  # whose message the next rows continue
    number = ""  # of the device that a row above states
    for line in short_lines(text):
        row = _CELLS.fullmatch(line)
        if row is None:
            field = _FIELD.fullmatch(line)
            label = field["label"].lower() if field else ""
            if field and last and label in _OF_WHY:
                last = (last[0], last[1], f"{last[2]}: {field['value']}")
                continue
            if last:
                yield last
                last = None
            if field and label in _OF_RESULT and fields and _VERDICT.fullmatch(field["value"]):
                host = next((fields[name] for name in _OF_HOST if name in fields), None)
                what = " ".join(fields[name] for name in fields if name not in _OF_HOST)
                last = (_is_failure(field["value"]), host, what)
                fields = {name: value for name, value in fields.items() if name in _OF_HOST}
            elif field and label in (*_OF_PART, *_OF_HOST):
                fields[label] = field["value"]
            elif result := _read_line(line):
                yield result
            continue
        cells = [cell.strip(" \t*`") for cell in re.split(r"[|│┃]", row["cells"])]
        if any(_VERDICT.fullmatch(cell) for cell in cells):
            if last:
                yield last
            failed, subject, what = _read_row(heading, cells)
            last = (failed, subject or (f"device {number}" if number else None), what)
        elif last and not cells[0] and len(cells) == 2:
            message = _MESSAGE.fullmatch(cells[1])
            if message and not _PASSED.match(message["message"]):
                joint = ":" if cells[1].startswith("Message:") or ":" not in last[2] else ""  # "": it goes on
                last = (last[0], last[1], f"{last[2]}{joint} {message['message']}")
        elif device := _DEVICE_ID.fullmatch(row["cells"]):
            number = device["number"]
        elif not all(_NO_NAME.fullmatch(cell) for cell in cells):
            heading = heading or cells
    if last:
        yield last


def _read_line(line: str) -> tuple[bool, str | None, str] | None:
    """A verdict in front of a check, or behind it: after dots, a colon, or two blanks.

    >>> _read_line("PCIe bandwidth GPU 3 ...... FAIL"), _read_line("[PASS] ecc"), _read_line("these will fail")
    ((True, None, 'PCIe bandwidth GPU 3'), (False, None, 'ecc'), None)
    """
    if match := _FRONT.fullmatch(line):
        return _is_failure(match["verdict"]), None, match["what"]
    if match := _OF_RVS.search(line):
        return (match["truth"] or match["last"].upper()) == "FALSE", None, f"RVS {match['what']}"
    start = line.rstrip(" \t]")
    check, blank, verdict = start.rpartition(" ")
    verdict = verdict.lstrip("[.")
    before = check.rstrip(" \t[")
    is_apart = (
        start.endswith(f"..{verdict}") or before.endswith((":", "..")) or len(before) + 1 < len(check) + len(blank)
    )
    if verdict.lower() not in _END or not before or not is_apart:
        return None
    return _is_failure(verdict), None, before.rstrip(" .:").lstrip(" \t>")


def _read_row(heading: Sequence[str], cells: Sequence[str]) -> tuple[bool, str | None, str]:
    """A row: the column that is named for a host names the subject, the others say what was checked."""
    verdicts = [match["verdict"] for cell in cells if (match := _VERDICT.fullmatch(cell))]
    names = [name.lower() for name in heading] if len(heading) == len(cells) else [""] * len(cells)
    hosts = [cell for name, cell in zip(names, cells, strict=True) if name in _OF_HOST]
    subject = next((host for host in hosts if host and not _NO_NAME.fullmatch(host)), None)
    rest = [
        cell for cell in cells if cell not in hosts and not _NO_NAME.fullmatch(cell) and not _VERDICT.fullmatch(cell)
    ]
    return any(map(_is_failure, verdicts)), subject, " ".join(rest)


def _is_failure(verdict: str) -> bool:
    return verdict.strip("[ ]").lower().startswith(("fail", "error"))
