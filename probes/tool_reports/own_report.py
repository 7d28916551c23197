"""What fabricscope printed before: the screen of a scan, the lines of `check`, or a piece of the JSON report.

Its commands and steps name outputs of other tools: what else is in the text is read without its lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress

from probes.text import lazy_pattern
from probes.tool_reports.facts import OWN_LINE, OWN_RULE, ToolReport

_SECTIONS = (  # of a screen
    "Host\n", "Read: ", "Not read: ", "Save next (", "Next: ", "UNKNOWN  ", "OK  ", "Topology\n", "NUMA ", "├", "└",
    "│", "GPU to ", "GPUDirect RDMA\n", "Could not check: ",
)  # fmt: skip
_SEVERITIES = {"critical": "critical", "error": "error", "warning": "warning", "note": "note", "info": "note"}
_WORDS = "CRITICAL|ERROR|WARNING|NOTE"
_OWN = lazy_pattern(OWN_LINE, re.MULTILINE)
_HEADLINE = lazy_pattern(rf"[> \t]{{0,8}}(?P<severity>{_WORDS})  (?P<text>\S.{{0,400}})")
_COUNTED = lazy_pattern(r"\d{1,4} (?:critical|errors?|warnings?|notes?)\b.{0,200}")  # the verdict above all findings
_CHECKED = lazy_pattern(rf"[> \t]{{0,8}}(?P<severity>{_WORDS}) (?P<rule>{OWN_RULE}) (?P<text>\S.{{0,400}})")
_RULE_ROW = lazy_pattern(rf"[> \t]{{0,8}}(?:rule {{6}}|Next: \S{{0,80}}fabricscope explain )(?P<rule>{OWN_RULE})\b")
_MORE = lazy_pattern(r"[> \t]{0,8} {7}(?P<text>\S.{0,200})")
_TEXT = r'"(?:[^"\\\n]|\\.){0,400}"'
_ENTRY = lazy_pattern(
    rf'"rule": ?"(?P<rule>{OWN_RULE})",\s{{0,40}}"severity": ?"(?P<severity>[a-z]{{4,8}})",\s{{0,40}}'
    rf'"subject": ?{_TEXT},\s{{0,40}}"label": ?(?P<label>{_TEXT}),\s{{0,40}}"summary": ?(?P<summary>{_TEXT})'
)


def leave_out_own(text: str) -> str:
    """The text with an empty line for each of its own: from a verdict or a finding on all that is indented.

    >>> leave_out_own("ERROR  GPU2: slow\\n  confirm   ibstat\\n$ ibstat\\n")
    '\\n\\n$ ibstat\\n'
    """
    if _ENTRY.search(text):
        return ""
    lines, is_within = [], False
    for line in text.splitlines(keepends=True):
        bare = line.lstrip("> \t")
        starts = _HEADLINE.match(line) or _CHECKED.match(line) or _OWN.match(line) or bare.startswith(_SECTIONS)
        is_within = bool(starts) or (is_within and (not bare.strip() or line.lstrip(">")[:2].isspace()))
        lines.append("\n" if is_within else line)
    return "".join(lines)


def list_own_findings(text: str) -> list[ToolReport]:
    """Each finding, with its part and rule; of a text that was cut those whose first line is there.

    >>> lines = "ERROR  GPU2: PCIe link is x8; both ends\\n       support x16\\n  rule      pcie-width-downgraded\\n"
    >>> [(report.code, report.subject, report.detail) for report in list_own_findings(lines)]
    [('own-error', 'GPU2', (('what', 'PCIe link is x8; both ends support x16'), ('rule', 'pcie-width-downgraded')))]
    """
    found = [*_list_lines(text), *_list_entries(text)]
    return list(dict.fromkeys(found))


def _list_lines(text: str) -> Iterator[ToolReport]:
    found: list[list[str]] = []  # each severity, text and rule
    headed: list[str] = []  # the last one that has a headline; its rule is below it
    goes_on = False
    for line in text.splitlines():
        bare = line.rstrip()
        headline = _HEADLINE.fullmatch(bare)
        if checked := _CHECKED.fullmatch(bare):
            found.append([checked["severity"], checked["text"], checked["rule"]])
        elif headline and not _COUNTED.fullmatch(headline["text"]):
            headed, goes_on = [headline["severity"], headline["text"], ""], True
            found.append(headed)
        elif goes_on and (more := _MORE.fullmatch(bare)):
            headed[1] += f" {more['text']}"
        else:
            goes_on = False
            if headed and (row := _RULE_ROW.match(line)):
                headed[2] = row["rule"]
    yield from (_report(*row) for row in found)


def _list_entries(text: str) -> Iterator[ToolReport]:
    for entry in _ENTRY.finditer(text):
        if entry["severity"] in _SEVERITIES:
            with suppress(ValueError):  # an escape that was cut or damaged
                label, summary = (json.loads(entry[name], strict=False) for name in ("label", "summary"))
                yield _report(entry["severity"], f"{label}: {summary}", entry["rule"])


def _report(severity: str, stated: str, rule: str) -> ToolReport:
    """A summary has the part before its first colon; that of a host has none."""
    part, colon, what = stated.partition(": ")
    of_part = bool(colon) and len(part) <= 60
    subject = part if of_part and part != "node" else None
    detail = (("what", what if of_part else stated), *((("rule", rule),) if rule else ()))
    return ToolReport(f"own-{_SEVERITIES[severity.lower()]}", subject, f"{severity.upper()} {stated}", detail)
