"""Faults that sentences state: the reader of `table.py`, and what is in a text that no sentence explains."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice

from probes.cut_json import list_whole_objects
from probes.gpu.facts import find_address
from probes.prose import is_denied
from probes.text import ParseError, check_length, find_required, lazy_pattern
from probes.tool_reports.facts import ToolReport, state_fault
from probes.tool_reports.sentences.compared import find_claims, list_compared
from probes.tool_reports.sentences.parts import DEVICES, find_part
from probes.tool_reports.sentences.sentence import ToolSentence
from probes.tool_reports.sentences.table import ANYWHERE, IN_PLACE, UNKNOWN
from probes.tool_reports.sentences.unexplained import CODE, list_unexplained
from probes.tool_reports.sentences.verbs import FLUSHED

MOST_REPORTS = 64
_LIMIT_LINE = 4000
_BEFORE, _LIMIT_TEXT = 120, 400  # of a line that is shown
_MOST_LINES = 64  # with a sentence in place of an output that are looked at
_LIMIT_FOLDED = 20_000
_FOLDED = lazy_pattern(r"(?<=[a-z;,:])[ \t]*\n[ \t]{1,40}(?=[a-z])")  # a line that goes on in the next
_HOT = 90  # degrees Celsius; most GPUs slow down between 83 and 92

_BURN = lazy_pattern(r"proc'd: [^\n]{0,1600}?\btemps: (?P<temperatures>\d{1,3} C(?: - (?:\d{1,3}|--) C){0,63})")
_PROGRESS = lazy_pattern(r"^[\d.]{1,5}%  proc'd: ", re.MULTILINE)  # of gpu-burn
_PINGED = lazy_pattern(r"^PING (?P<what>[\w.:-]{2,80})", re.MULTILINE)  # the line of the error names who states it
_PING_SIZE, _USUAL_PACKET = lazy_pattern(r"(?m)^PING ([\w.:-]{2,80}) [^\n]{0,80}?\d{1,5}\((\d{2,5})\) bytes"), 1500
IBPING, _OF_PING = " ibping statistics ---", ("no-answer", "answers-lost")  # prints the sentences of ping
_IBPING_TOOL = "ibping"
_IBPINGED = lazy_pattern(r"^--- (?P<what>[\w.()-]{0,64} {0,2}\(Lid \d{1,5}\)) ibping statistics ---", re.MULTILINE)
_OF_HEALTH = "dcgm-"
_EMPTY_GID = lazy_pattern(r"^[ \t]{0,8}GID: (?:00:){15}00[ \t\r]*$", re.MULTILINE)
_OF_PERFTEST = ("perftest-", "verbs-retries", "gid-none", "completion-")
_OF_VERBS = (*_OF_PERFTEST, "rdma-")
_ASKED = lazy_pattern(
    r"\b(?:ib|ibv|raw_ethernet)_\w{3,16}\b[^\n]{0,200}? (?:-d|--ib-dev)[ =]?(?P<device>[a-z]\w{2,30})\b"
)
_ENTITY = lazy_pattern(  # of a record of a health check: the part has fields of its own
    r"\"entityType\" ?: ?\"(?:PCI\" ?, ?\"entityValue\" ?: ?\"(?P<bdf>[0-9a-fA-F]{4,8}(?::[0-9a-fA-F]{2}){2}\.[0-7])"
    r"|GPU\" ?, ?\"entityValue\" ?: ?\"(?P<gpu>\d{1,3}))\"|\bGPU:(?P<number>\d{1,3})\b"
)
_RECORD, _OF_JSON = '"entitiesImpacted"', ("{", "}", "[", "]", '"')  # of a record, and how its lines begin
_OF_KERNEL = "NVRM: Xid ("  # a line that a plugin quotes, and that has its own reader
_STANDBY, _MASTER = "SMINFO_STANDBY", "SMINFO_MASTER"
_EXPLAINED = {  # a consequence, or the same without the cause, and what explains it
    "guest-power-on": ("guest-window",),
    "kube-marked": ("kube-xid",),
    "verbs-no-device": ("verbs-abi", "verbs-no-provider"),
    "mad-unanswered": ("mad-no-port",),
    "perftest-memory": ("memory-not-locked",),
    "perftest-queue": ("memory-not-locked",),
    FLUSHED: ("verbs-retries", "perftest-not-ready", "completion-memory", "completion-request"),
    "umad-closed": ("mad-no-port",),
}


def list_stated(text: str, is_log: bool = False) -> list[ToolReport]:
    """Every fault that a line states wherever it stands, each once; in a log nobody compares values. Raises ParseError
    for a text that is too long.

    >>> line = '{"msg":"vfio 0000:41:00.0: group 27 is not viable"}'
    >>> [(report.code, report.subject, report.detail) for report in list_stated(line)]
    [('guest-group', '0000:41:00.0', (('what', 'group 27'),))]
    """
    matches: dict[int, tuple[str, re.Match[str]]] = {}  # by the place of their line
    for row, start, match in _find_whole(check_length(text)):
        if _OF_KERNEL not in match.string:
            matches.setdefault(start, (row.code, match))
    reports: dict[tuple[object, ...], ToolReport] = {}
    for _, (code, match) in sorted(matches.items()):
        report = _build_report(code, match)
        reports.setdefault((report.code, report.subject, report.detail), report)
    shown = [report for report in reports.values() if not any(_explains(one, report) for one in reports.values())]
    compared = [] if is_log else [row for row in dict.fromkeys(list_compared(text)) if not any(
        report.text in row.text or row.text in report.text for report in shown)]  # fmt: skip
    return [*shown, *compared, *_list_hot(text)][:MOST_REPORTS]


def _explains(cause: ToolReport, report: ToolReport) -> bool:
    """Whether a report is what another leads to, of the same device where it names one."""
    device = dict(report.detail).get("device")
    return cause.code in _EXPLAINED.get(report.code, ()) and device in (None, dict(cause.detail).get("device"))


def is_stated(text: str) -> bool:
    """Whether a text has such a fault, a value below the expected one, or a line of gpu-burn with temperatures."""
    found = next(_find_whole(text), None) or _PROGRESS.search(text) or next(list_compared(text), None)
    return found is not None


def list_tool_errors(text: str, logged: bool = False) -> list[ToolReport]:
    """The error of a tool that printed nothing else. `logged`: see list_unexplained. Raises ParseError.

    >>> list_tool_errors("ERROR:root:Driver not initialized (amdgpu not found in modules)")[0].code
    'amd-no-driver'
    """
    if errors := find_tool_errors(check_length(text)):
        asked = {"no-answer": _PINGED.search(text), "mad-unanswered": _IBPINGED.search(text)}
        named = [None if match.groupdict().get("what") else asked.get(row.code) for row, match in errors]
        reports = [_build_report(row.code, match, name) for (row, match), name in zip(errors, named, strict=True)]
        reports = [report._replace(subject=report.subject or _find_asked(text, report.code)) for report in reports]
        if (sizes := _PING_SIZE.findall(text)) and all(int(size) > _USUAL_PACKET for _, size in sizes):
            lost = f"packets of {sizes[0][1]} bytes get no answer"
            reports = [state_fault("mtu", sizes[0][0], lost, report.text) if report.code == "no-answer" else report
                       for report in reports]  # fmt: skip
        reports += _list_other_parts(text, errors, reports)
        known = {report.subject for report in reports} | {None}
        others = _list_beside(text, (match.string for _, match in errors), logged)
        return [*reports, *(other for other in others if other.subject not in known)][:MOST_REPORTS]
    if reports := list_unexplained(text, logged):
        return reports
    raise ParseError("no sentence of a tool that found nothing")


def _find_asked(text: str, code: str) -> str | None:
    """The device that the command of perftest names, where it is one.

    >>> _find_asked("$ ib_send_bw -d mlx5_3 n8\\n Port number 1 state is Down\\n", "perftest-port")
    'mlx5_3'
    """
    devices = {match["device"] for match in _ASKED.finditer(text)} if code.startswith(_OF_PERFTEST) else set()
    return devices.pop() if len(devices) == 1 else None


def _list_other_parts(
    text: str, errors: Iterable[tuple[ToolSentence, re.Match[str]]], reports: Iterable[ToolReport]
) -> Iterator[ToolReport]:
    """The same sentences about further devices."""
    known = {report.subject for report in reports}
    for row in {row.form: row for row, match in errors if match.groupdict().get("bdf")}.values():
        for _, _, match in _find_sentences(text, (row,), _MOST_LINES):
            report = _build_report(row.code, match)
            if report.subject not in known:
                known.add(report.subject)
                yield report


def list_unexplained_beside(text: str) -> list[ToolReport]:
    """What programs wrote as an error beside the sentences that are known."""
    return _list_beside(text, [*list_stated_lines(text), *(match.string for _, match in find_tool_errors(text))])


def _list_beside(text: str, known: Iterable[str], logged: bool = True) -> list[ToolReport]:
    """What is unexplained in a text, without the lines that are known."""
    explained = {" ".join(line.split()) for line in known}
    return [report for report in list_unexplained(text, logged) if report.text not in explained]


def list_stated_lines(text: str) -> list[str]:
    """The lines of a text with such a fault, in their order."""
    lines = {start: match.string for _, start, match in _find_sentences(text, ANYWHERE)}
    claims = [line for _, _, of_owners in find_claims(text) for line in of_owners.values()]
    return [*(lines[start] for start in sorted(lines)), *claims]


def find_tool_errors(text: str) -> list[tuple[ToolSentence, re.Match[str]]]:
    r"""Of each tool the first sentence in place of its output that a text has, and where it is in its line; a line that
    no row explains only where there is no other.

    >>> [(row.code, match["what"]) for row, match in find_tool_errors("root@n1:~# Port number 1 state is Down\n")]
    [('perftest-port', 'Down')]
    >>> lines = " GID: 00{}\nFailed to modify QP 322 to RTR\n".format(":00" * 15)
    >>> [row.code for row, _ in find_tool_errors(lines)]
    ['perftest-gid']
    """
    errors: dict[str | None, tuple[ToolSentence, re.Match[str]]] = {}
    is_ibping = IBPING in text
    for row in IN_PLACE:
        if row.tool not in errors and (found := next(_find_sentences(text, (row,), _MOST_LINES), None)):
            if _STANDBY in found[2].string and _MASTER in text:
                continue  # both were asked, and one is the master
            named = row
            if is_ibping and row.code in _OF_PING:
                named = row._replace(code="mad-unanswered", tool=_IBPING_TOOL)
            elif row.code == "perftest-route" and _EMPTY_GID.search(text):
                named = row._replace(code="perftest-gid")
            errors.setdefault(named.tool, (named, found[2]))
    codes = {row.code for row, _ in errors.values()}
    causes = [error for error in errors.values() if codes.isdisjoint(_EXPLAINED.get(error[0].code, ()))]
    known = [error for error in causes if error[0] not in UNKNOWN]
    return list({row.code: (row, match) for row, match in reversed(known or causes)}.values())[::-1]


@cache
def list_needles(row: ToolSentence) -> tuple[str, ...]:
    """Plain texts, of which one is in each line that a sentence fits."""
    return find_required(row.form)


def _find_sentences(
    text: str, rows: Iterable[ToolSentence], most: int | None = None
) -> Iterator[tuple[ToolSentence, int, re.Match[str]]]:
    """Where each sentence stands, row by row, with the place of its line; of so many lines with each of its needles."""
    for row in rows:
        for needle in list_needles(row):
            for start, line in islice(_find_lines(text, needle), most):
                if (match := row.pattern.search(line)) and not is_denied(line, match.start()):
                    yield row, start, match


def _find_whole(text: str) -> Iterator[tuple[ToolSentence, int, re.Match[str]]]:
    """Sentences of the table; in a text without any those that a person or a page broke into lines with a margin."""
    text = _join_records(text) if _RECORD in text else text
    found = next(_find_sentences(text, ANYWHERE), None)
    if found is None and len(text) < _LIMIT_FOLDED and _FOLDED.search(text):
        text = _FOLDED.sub(" ", text)
    yield from _find_sentences(text, ANYWHERE)


def _join_records(text: str) -> str:
    """The text with each record of a health check on one line, without those that state that all is well.

    >>> _join_records('{\\n "entitiesImpacted": [],\\n "message": "link 7 is down"\\n}\\n')
    '{"entitiesImpacted": [], "message": "link 7 is down"}'
    """
    records = list(list_whole_objects(text, lambda row: "entitiesImpacted" in row))
    rest = [line for line in text.splitlines() if not line.lstrip().startswith(_OF_JSON)]
    lines = [json.dumps(row, ensure_ascii=False) for row in records if row.get("isHealthy") is not True]
    return "\n".join([*lines, *rest]) if records else text


def _find_lines(text: str, needle: str) -> Iterator[tuple[int, str]]:
    """Lines with a text that are not too long, each with its place."""
    at = text.find(needle)
    while at >= 0:
        start, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
        end = end if end >= 0 else len(text)
        if end - start < _LIMIT_LINE:
            yield start, text[start:end].rstrip("\r")
        at = text.find(needle, end)


def _build_report(code: str, match: re.Match[str], named: re.Match[str] | None = None) -> ToolReport:
    groups = {name: value.replace("'", "").strip() for name, value in (named or match).groupdict().items() if value}
    bdf, gpu, part = (groups.pop(name, None) for name in ("bdf", "gpu", "part"))
    if not (bdf or gpu or part) and code.startswith(_OF_HEALTH) and (entity := _ENTITY.search(match.string)):
        bdf, gpu = entity["bdf"], entity["gpu"] or entity["number"]
    if (what := groups.get("what")) and f"DCGM_FR_{what}" in match.string:
        groups["what"] = what.replace("_", " ").lower()
        part = part or (find_part(match.string, DEVICES) if gpu is None else None)
    elif code == "kube-event":
        part = find_part(groups["what"], DEVICES)
    elif code == CODE:
        part = find_part(match.string)
    elif code.startswith(_OF_VERBS):
        part = find_part(match.string, DEVICES)
    subject = find_address(bdf if "." in bdf else f"{bdf}.0") if bdf else f"NVIDIA {int(gpu)}" if gpu else part
    start = max(match.start() - _BEFORE, 0)
    return ToolReport(code, subject, " ".join(match.string[start : start + _LIMIT_TEXT].split()), tuple(groups.items()))


def _list_hot(text: str) -> Iterator[ToolReport]:
    """GPUs that are hot in the last line of progress of gpu-burn, which has one value for each."""
    at = text.rfind("proc'd: ")
    match = _BURN.match(text, at) if at >= 0 else None
    for gpu, value in enumerate(match["temperatures"].split(" - ") if match else ()):
        degrees = value.partition(" ")[0]
        if degrees.isdecimal() and int(degrees) >= _HOT:
            yield state_fault("burn-hot", f"NVIDIA {gpu}", f"{degrees} °C", f"temps of GPU {gpu}: {value}")
