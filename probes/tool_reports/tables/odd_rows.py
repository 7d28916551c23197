"""Rows of one shape, of which one has another value than all others: in outputs that no reader has.

A row begins with a name that differs from row to row in numbers alone: a rail, a port, a GPU, a host. Compared are
rates, widths, versions and states, which are alike on parts that are used alike, and numbers of what is measured where
the heading, the unit or the key names it. What it means is a matter of rules.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

from probes.named_tuple import NamedTuple
from probes.text import lazy_pattern
from probes.tool_reports.tables.entries import (
    FEWEST,
    IN_USE,
    NOT_USED,
    SHARE,
    WELL,
    is_complete,
    is_incomplete,
    list_far,
)

_LONGEST, _MOST_LINES = 240, 2000
_PIECES = lazy_pattern(r"[\s|,;]+")
_COUNTED = lazy_pattern(r"#?\d{1,4}:?")
_NAMED = lazy_pattern(r"(?=.{0,40}\d)[A-Za-z][\w./:-]{0,40}(?: #?\d{1,4})?[:=]?|\d{1,4}:?|[0-9a-f:]{2,12}\.[0-7]")
_ALIKE = lazy_pattern(  # rates, widths, versions
    r"(?i)\d{2,3}(?:\.\d)?(?:G|Gb|Gbps|Gb/s|Gbit/s|GbE|Gb/sec|GT/s|GT)|x\d{1,2}|v?\d{1,4}(?:\.\d{1,6}){2,4}"
    r"|(?:[SDFQEHNX]DR\d{0,3})"
)
_WORD = lazy_pattern(r"[A-Za-z_]{3,20}")
_STATE_LABELS = {"state", "state:", "status", "status:", "health", "health:"}
_CALM = lazy_pattern(rf"(?i){WELL}|{IN_USE}")
_NOT_CALM = lazy_pattern(rf"(?i)low|slow|none|-|{NOT_USED}")
_NUMBER = lazy_pattern(r"(?P<number>\d{1,7}(?:\.\d{1,4})?)(?P<unit>W|°C|V|A|RPM|rpm|[GT]B/s|Gb/s)?")
_UNITS = lazy_pattern(r"W|°C|V|A|RPM|rpm|[GT]B/s|Gb/s")
_OF_JSON = lazy_pattern(r'[ \t{]{0,40}"(?P<key>[\w .:/-]{1,60})" ?: ?"?(?P<value>[\w.-]{1,40})"?[ \t,}\]]{0,8}')
_SERIES = lazy_pattern(r"(?P<key>[A-Za-z][\w.-]{0,40}\d[\w.-]{0,20})[=:] ?(?P<value>\d{1,7}(?:\.\d{1,4})?)")
_LIST = lazy_pattern(
    r"(?P<label>[^:=\n]{4,80}?)[ \t]{0,8}[:=][ \t]{0,8}\[?"
    r"(?P<values>\d{1,7}(?:\.\d{1,4})?(?:[ ,\t]{1,3}\d{1,7}(?:\.\d{1,4})?){3,71})\]?[ \t]{0,8}"
)
_OF_SPEED = lazy_pattern(
    r"(?i)\b(?:\w{0,20}busbw|algbw|bw|bandwidth|throughput|G[bB](?:ps|/s)|GiB/s|tflops|tokens/s|samples/s)\b"
)
_OF_WAIT = lazy_pattern(
    r"(?i)\b(?:latency|lat|step time|iter(?:ation)? time|elapsed|temps?|temperatures?|(?:core|hbm|die) c)\b"
)
_OF_HEAT = lazy_pattern(r"(?i)\btemp|°C|\b(?:core|hbm|die) c\b")
_HOT = 85  # degrees Celsius; below it a part is only busier than others


class OddRow(NamedTuple):
    """A row, or an entry of a list, that is not as its neighbours: its name, what it has, what they have, its line."""

    name: str
    what: str
    line: str


def list_odd_rows(text: str) -> list[OddRow]:
    """Each in the order of its line.

    >>> rows = "".join(f"rail{n} mlx5_{n} {'200G' if n == 2 else '400G'}\\n" for n in range(5))
    >>> [row[:2] for row in list_odd_rows(rows)]
    [('rail2', '200G, the others 400G')]
    >>> [row[:2] for row in list_odd_rows("busbw GB/s by node: n1=371 n2=370 n3=118 n4=372")]
    [('n3', '118, the others 370.5')]
    >>> list_odd_rows("used MiB: n1=371 n2=370 n3=118 n4=372"), list_odd_rows(rows.replace("200G", "400G"))
    ([], [])
    """
    found: list[OddRow] = []
    group: list[tuple[str, Sequence[str], str]] = []
    title = ""
    for line in [*islice(text.splitlines(), _MOST_LINES), ""]:
        if len(line) > _LONGEST:
            continue
        found += _list_odd_entries(line)
        pair = _OF_JSON.fullmatch(line)
        words = [pair["key"], pair["value"]] if pair else [word for word in _PIECES.split(line.strip(" \t|*-")) if word]
        if len(words) > 2 and words[0].isalpha() and _COUNTED.fullmatch(words[1]):  # "Link 3:"
            words[:2] = [f"{words[0]} {words[1]}"]
        named = len(words) > 1 and _NAMED.fullmatch(words[0]) is not None
        if group and not (named and _shape(words[0]) == _shape(group[0][1][0])):
            found += _compare(group, title)
            group = []
        if not named:
            title = line
        else:
            group.append((words[0].rstrip(":="), words, line))
    return list(dict.fromkeys(found))


def _shape(word: str) -> str:
    return re.sub(r"\d+", "0", word)


def _compare(group: Sequence[tuple[str, Sequence[str], str]], title: str) -> Iterator[OddRow]:
    if len(group) < FEWEST or len({name for name, _, _ in group}) < len(group):
        return
    for at in range(1, min(len(words) for _, words, _ in group)):
        column = [words[at] for _, words, _ in group]
        amounts = [match for value in column if (match := _NUMBER.fullmatch(value))]
        if len(amounts) == len(column):
            after = {words[at + 1] if at + 1 < len(words) else "" for _, words, _ in group}
            label = f"{title} {amounts[0]['unit'] or (after.pop() if len(after) == 1 else '')}".replace("_", " ")
            has_unit = _UNITS.fullmatch(label.rpartition(" ")[2]) is not None
            for place, most in _list_far_amounts([float(match["number"]) for match in amounts], label, has_unit):
                name, _, line = group[place]
                yield OddRow(name, f"{column[place]}, the others {most:g}", " ".join(line.split()))
            continue
        usual, times = Counter(column).most_common(1)[0]
        odd = len(column) - times
        if not 0 < odd <= len(column) / SHARE:
            continue
        for (name, _, line), value in zip(group, column, strict=True):
            is_state = _WORD.fullmatch(value) and {words[at - 1].lower() for _, words, _ in group} <= _STATE_LABELS
            if value != usual and (is_state or _is_other(value, usual)):
                yield OddRow(name, f"{value}, the others {usual}", " ".join(line.split()))


def _list_far_amounts(numbers: Sequence[float], label: str, has_unit: bool = False) -> Iterator[tuple[int, float]]:
    """Of numbers whose heading or unit tells what is bad: less, or more; of a unit alone both are."""
    is_speed, is_wait = _OF_SPEED.search(label) is not None, _OF_WAIT.search(label) is not None
    if is_speed != is_wait or has_unit:
        for place, most in list_far(numbers, is_speed or has_unit, is_wait or has_unit):
            if not _OF_HEAT.search(label) or not most < numbers[place] < _HOT:
                yield place, most


def _is_other(value: str, usual: str) -> bool:
    if is_complete(usual):
        return is_incomplete(value)
    if _ALIKE.fullmatch(usual):
        return _ALIKE.fullmatch(value) is not None or _NOT_CALM.fullmatch(value) is not None
    return _CALM.fullmatch(usual) is not None and _NOT_CALM.fullmatch(value) is not None


def _list_odd_entries(line: str) -> Iterator[OddRow]:
    """Of numbers that one line states of several parts."""
    series = [(match["key"], float(match["value"])) for match in _SERIES.finditer(line)]
    label = line.replace("_", " ")
    if len(series) < FEWEST or len({_shape(key) for key, _ in series}) > 1:
        if not (match := _LIST.fullmatch(line)):
            return
        label = match["label"].replace("_", " ")
        entries = re.split(r"[ ,\t]+", match["values"])
        series = [(f"{label.strip()}, number {at}", float(number)) for at, number in enumerate(entries)]
    for at, usual in _list_far_amounts([value for _, value in series], label):
        name, value = series[at]
        yield OddRow(name, f"{value:g}, the others {usual:g}", " ".join(line.split()))
