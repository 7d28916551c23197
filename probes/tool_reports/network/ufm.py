"""Events of UFM: links that came and went, and thresholds of ports, cables and modules. Source: UFM user manual, event
log and its public outputs.
"""

from __future__ import annotations

from probes.text import lazy_pattern, require, short_lines
from probes.tool_reports.facts import ToolReport, state_fault

_SEVERAL = 2
_EVENT = lazy_pattern(  # behind what syslog adds; some releases name the kind of object, and its device
    r"(?:.{0,120} - )?[ \t]*\d{4}-\d\d-\d\d [\d:.]{8,15} (?:\[[\w-]{1,12}\] ){1,3}"
    r"(?P<severity>INFO|WARNING|MINOR|CRITICAL) \[(?P<kind>[^\]]{2,40})\] (?:\w{2,20} )?\[(?P<object>[^\]]{2,160})\]"
    r"(?: \[dev_id: \w{1,20}\])? ?: ?(?P<text>.*)"
)
_SITE = lazy_pattern(r"\A[\w-]{1,40}(?:\(\d{1,5}\))? / (?=\w+: )")  # before the name of a switch or computer
_OF_PORT = " / "  # between a device and its port, in the name of an object
_LINK = lazy_pattern(r"(?i)link (?:went |is )(?P<state>down|up)\b(?:[ :]{1,3}(?P<ends>\(.{3,200}\)))?")
_OF_LINK = lazy_pattern(
    r"(?i)\b(?:symbol error|link error|link[- ]downed|port receive errors|remote physical|local link integrity|"
    r"(?:effective |raw |symbol )?ber\b|module|cable|temperature|unhealthy|isolated|non-?optimal)"
)


def list_ufm_events(text: str) -> list[ToolReport]:
    """One fault per link or object: several losses of a link, one without its return, a threshold. Raises ParseError.

    >>> row = "2026-02-03 04:05:06.123 [71] [110] WARNING [Port] [Computer: n7 Port 1] : Symbol Error rate exceeded\\n"
    >>> [(report.code, report.subject) for report in list_ufm_events(row)]
    [('ufm-threshold', 'Computer n7 Port 1')]
    """
    ends: dict[str, str] = {}  # of the link of a port: a later event can name them in other words
    losses: dict[str, list[str]] = {}
    is_down: dict[str, bool] = {}
    thresholds: dict[str, ToolReport] = {}
    is_known = False
    for line in short_lines(text):
        event = _EVENT.fullmatch(line.rstrip())
        if event is None:
            continue
        is_known = True
        if link := _LINK.search(event["text"]):
            name = _name(link["ends"] or event["object"])
            name = ends.setdefault(event["object"], name) if _OF_PORT in event["object"] else name
            is_down[name] = link["state"].lower() == "down"
            losses.setdefault(name, []).extend([line] if is_down[name] else [])
        elif event["severity"] != "INFO" and _OF_LINK.search(event["text"]):
            thresholds.setdefault(
                event["object"], state_fault("ufm-threshold", _name(event["object"]), event["text"][:120], line)
            )
    require(is_known, "no event of UFM")
    reports = [
        state_fault("ufm-link-flaps", name, f"{len(lines)} times", lines[-1])
        for name, lines in losses.items()
        if len(lines) >= _SEVERAL
    ]
    reports += [
        state_fault("ufm-link-down", name, "", lines[-1])
        for name, lines in losses.items()
        if is_down[name] and len(lines) < _SEVERAL
    ]
    return [*reports, *thresholds.values()]


def _name(words: str) -> str:
    """The name of an object or of both ends of a link, without the site and the marks around it."""
    return " ".join(_SITE.sub("", words).translate({ord(mark): " " for mark in "():"}).split())
