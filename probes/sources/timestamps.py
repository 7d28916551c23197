"""When a bundle was made: what `date` printed, as RFC 3339 in UTC; None where its zone is not said or not known."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_WORD = r"[A-Z][a-z]{2}"
_CLOCK = r"(?P<hour>\d{1,2}):(?P<minute>\d\d):(?P<second>\d\d)(?: (?P<half>[AP]M))?"
_ZONE = r"(?: (?P<zone>UTC|GMT|[+-]\d\d(?:\d\d)?|[A-Z]{3,5}))?"
_DAY = rf"{_WORD},? (?:({_WORD}) +(\d{{1,2}}),?|(\d{{1,2}}) ({_WORD}))"
_DATE = re.compile(rf"\s*{_DAY} {_CLOCK}{_ZONE} (?P<year>\d{{4}})\s*")
_YEAR_BEFORE = re.compile(rf"\s*{_DAY} (?P<year>\d{{4}}),? {_CLOCK}{_ZONE}\s*")
_OFFSET = re.compile(r"([+-])(\d\d)(\d\d)?")


def instant(text: str, offset: str | None = None) -> str | None:
    """The moment that a line of `date` names. `offset`: the zone ("-0300") where the line only has letters for it.

    >>> instant("Thu Oct 27 08:50:11 PM -03 2022"), instant("Sat Nov 21 00:53:57 UTC 2026")
    ('2022-10-27T23:50:11Z', '2026-11-21T00:53:57Z')
    >>> instant("Tue Oct 27 14:31:54 EDT 2009"), instant("Tue Oct 27 14:31:54 EDT 2009", "-0400")
    (None, '2009-10-27T18:31:54Z')
    """
    found = _DATE.fullmatch(text) or _YEAR_BEFORE.fullmatch(text)
    if found is None:
        return None
    zone, half = found["zone"] or "", found["half"]
    east = _east(zone if zone in ("UTC", "GMT") or _OFFSET.fullmatch(zone) else offset)
    if east is None:
        return None
    hour = int(found["hour"]) % 12 + (12 if half == "PM" else 0) if half else int(found["hour"])
    try:
        month, day = _MONTHS.index(found[1] or found[4]) + 1, int(found[2] or found[3])
        local = datetime(
            int(found["year"]), month, day, hour, int(found["minute"]), int(found["second"]), tzinfo=timezone(east)
        )
        return local.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError):
        return None


def _east(zone: str | None) -> timedelta | None:
    if zone in ("UTC", "GMT"):
        return timedelta(0)
    found = _OFFSET.fullmatch(zone or "")
    if found is None:
        return None
    size = timedelta(hours=int(found[2]), minutes=int(found[3] or 0))
    return -size if found[1] == "-" else size
