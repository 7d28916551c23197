"""Error counters of a port that a text states of several moments: whether they grew between these.

The moment stands before the counter or in a line above it. What a counter is called is that of `sentences/values.py`.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from itertools import islice

from probes.named_tuple import NamedTuple
from probes.text import check_length, lazy_pattern, require
from probes.tool_reports.facts import ToolReport, state_fault
from probes.tool_reports.sentences.parts import find_part
from probes.tool_reports.sentences.values import COUNT, judge

_LONGEST, _MOST_LINES = 240, 2000
_TIME = (
    r"(?i:t ?[=+]? ?\d{1,6}(?: ?(?:s|min|h))?|\d{1,2}:\d\d(?::\d\d(?:\.\d{1,6})?)?|\d{4}-\d\d-\d\d[T ][\d:.+Z-]{5,24}"
    r"|before|after|now|then|again|(?:first|second|sample|run|read)(?: ?#?\d{1,3})?"
    r"|(?:after |\+ ?)?(?:an?|\d{1,4}) ?(?:s|sec(?:ond)?s?|min(?:ute)?s?|h(?:our)?s?|days?)(?: (?:later|after))?)"
)
_MOMENT = lazy_pattern(rf"[ \t\[(>*#-]{{0,20}}(?P<moment>{_TIME})(?!\w)[ \t\]):,-]{{0,8}}(?P<rest>.*)")
_COUNTER = lazy_pattern(
    r"(?:.{0,60}[\s:/])??"
    r"(?P<name>(?=[\w. -]{0,40}(?i:[rt]x|port|link|symbol|crc|fec|rcv|xmit|packet|phy|retrans|discard|fcs|codeword"
    r"|_cw\b))[A-Za-z][\w.-]{2,60}(?: [a-z]{3,12}){0,3})[ \t]{0,20}[:= ][ \t]{0,20}"
    r"(?P<count>\d{1,20})(?:@[\d.]{1,24})?[ \t;,]{0,8}"
)

_KEYED = lazy_pattern(r"(?<![\w./])(?P<name>[A-Za-z][\w.-]{2,60})(?:=|: {0,4})(?P<count>\d{1,20})(?=[\s,;)]|$)")

_NAMED = lazy_pattern(r"(?P<name>[A-Za-z][\w./-]{0,40}\d)[ \t:,]{1,8}$")
_OF_TRANSPORT = lazy_pattern(
    r"(?i)out_of_(?:sequence|order)|timeout_err|retry_(?:exc|cnt)"
)  # which grows where packets are lost


class _MomentCount(NamedTuple):
    """A count, and the moment and line that it is of."""

    moment: str
    number: int
    line: str


def list_growing(text: str) -> list[ToolReport]:
    """Counters of errors that are greater at the last moment than at the first. Raises ParseError where the text states
    none of several moments.

    >>> text = "13:00 mlx5_2 symbol_error: 12\\n13:05 mlx5_2 symbol_error: {}\\n"
    >>> [(report.subject, report.detail) for report in list_growing(text.format(90))]
    [('mlx5_2', (('what', 'symbol_error from 12 (13:00) to 90 (13:05)'),))]
    >>> list_growing(text.format(12))
    []
    >>> text = "09:0{0} eth1 rx_crc_errors=0 rx_fcs_errors=2 eth2 rx_crc_errors=9{0}\\n"
    >>> [(report.subject, report.detail) for report in list_growing(text.format(1) + text.format(2))]
    [('eth2', (('what', 'rx_crc_errors from 91 (09:01) to 92 (09:02)'),))]
    """
    series = require(_list_series(check_length(text)), "no counter of several moments")
    reports = []
    for (part, name), rows in series.items():
        first, last = rows[0], rows[-1]
        if last.number > first.number:
            what = f"{name} from {first.number} ({first.moment}) to {last.number} ({last.moment})"
            reports.append(state_fault("counter-grows", part, what, last.line))
    return reports


def has_series(text: str) -> bool:
    """Whether a text states a counter of errors of several moments."""
    return bool(_list_series(text))


@lru_cache(maxsize=2)  # by which a text is recognized, and then read
def _list_series(text: str) -> dict[tuple[str | None, str], list[_MomentCount]]:
    series: dict[tuple[str | None, str], list[_MomentCount]] = defaultdict(list)
    moment, part = "", None
    for line in islice(text.splitlines(), _MOST_LINES):
        if len(line) > _LONGEST:
            continue
        match = _MOMENT.fullmatch(line.strip())
        moment = match["moment"] if match else moment
        bare = match["rest"] if match else line.strip()
        part = find_part(bare) or part
        alone = _COUNTER.fullmatch(bare) if moment else None
        keyed = list(_KEYED.finditer(bare)) if moment else []
        end = 0
        for counter in keyed if len(keyed) > 1 else [alone] if alone else []:
            before = bare[end : counter.start()]  # several parts in one line
            named = _NAMED.search(before) if len(keyed) > 1 else None
            part = find_part(before) or (named["name"] if named else part)
            end = counter.end()
            judged = judge(counter["name"], "1")
            if (judged and judged[0] == COUNT) or _OF_TRANSPORT.search(counter["name"]):
                series[part, counter["name"]].append(_MomentCount(moment, int(counter["count"]), line))
    return {key: rows for key, rows in series.items() if len({row.moment for row in rows}) == len(rows) > 1}
