"""Tables with a heading that no reader has: cells that state trouble by the name of their column, a row that has not
what its own row expects, and one row that is not as all others.

What the words and columns mean is that of `values.py`; a table tells in addition what is usual.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from statistics import median

from probes.text import lazy_pattern
from probes.tool_reports.sentences.parts import find_part
from probes.tool_reports.sentences.values import BELOW, COUNT, StatedValue, is_of_field, judge, list_values, normalize
from probes.tool_reports.tables.entries import (
    CURRENT,
    FEWEST,
    IN_USE,
    MOST,
    SHARE,
    WELL,
    is_below,
    is_complete,
    is_incomplete,
    list_far,
    read_number,
)
from probes.tool_reports.tables.forms import FoundTable, read_tables
from probes.tool_reports.tables.odd_rows import list_odd_rows

ODD = "value-odd"
_SHOWN, _SAID = 60, 4
_HOT = 80  # degrees Celsius; below it a part is only busier than others
_LIGHT = 1.05  # to the power of dBm: 6 dB below the others are far
_NO_CELL = ("-", "--", "—", "n/a", "na", "none", "")  # of what is not there
_WORD = lazy_pattern(r"[A-Za-z][A-Za-z_*-]{1,20}")
_MOST = lazy_pattern(rf"\b(?:{MOST}|total)\b")
_UPPER = lazy_pattern(r"\b(?:up(?:per)?|hi(?:gh)?|max) (?:crit\w{0,4}|limit|nr|cr|alarm|fatal)\b")
_LOWER = lazy_pattern(r"\b(?:lo(?:w(?:er)?)?|min) (?:crit\w{0,4}|limit|nr|cr|alarm|fatal)\b|\bmin(?:imum)?\b")
_HAS = lazy_pattern(rf"\b(?:{CURRENT}|up)\b")
_READ = lazy_pattern(r"\b(?:reading|value|current|actual|now|measured)\b")
_VARIES = lazy_pattern(  # of idle parts
    r"\b(?:gen|speed|clocks?|power|temp\w{0,10}|mem\w{0,3}|usage|used?|size|fan|watts|mhz)\b"
)
_UNIT = lazy_pattern(r"\([A-Za-z]{1,6}\)")
_OF_STATE = lazy_pattern(r"\b(?:state|status|health|breaker|link|phys\w{0,10}|carrier|oper\w{0,10})\b")
_USUAL_STATES = lazy_pattern(
    rf"(?i){WELL}|{IN_USE}|mix\w{{0,2}}|running|complet\w{{1,3}}|succeeded|established|full|closed|present|enabled"
)
_OF_WAIT = lazy_pattern(r"\b(?:s|ms|us|ns|sec(?:onds)?|lat|latency|rtt|elapsed|ber)\b")
_OF_RATE = lazy_pattern(r"\b(?:[mg]i?b(?:it)?(?:ps| ?/ ?s)?|\w{0,12}bw|bandwidth|throughput|t?flops|rpm|flow)\b")
_OF_HEAT = lazy_pattern(r"\btemp|°c|\bc$|celsius")
_OF_QUANTITY = lazy_pattern(  # that is alike on parts that do the same
    r"\b(?:volts?|v|[vip](?:in|out)|amps?|ma|watts?|w|power|rpm|temp\w{0,10}|c|[mg]?hz|speed|flow|lpm|pressure|bar|dbm"
    r"|celsius|spannung|strom|leistung)\b|°c"
)
_BY_USE = lazy_pattern(  # what differs with the jobs that run
    r"\b(?:mem(?:ory)?|used?|usage|util\w{0,8}|load|size|free|capacity|pods?|jobs?|users?|pid|uptime|age|id|index|i?ops"
    r"|ops|flows?|seq\w{0,6}|guid|lid|serial|port|vlan|as|rank|gpu|slot|lane|step|iter\w{0,6}|epoch|loss|bytes"
    r"|packets|pkts"
    r"|msg\w{0,6}|count|total|bus|address|minor|irq|version|weight|priority|at|date|day|since|last|requests?|queued?"
    r"|running|waiting|ok|changed|skipped|passed|failed|kwh?|energy)\b"
)
_OVER = lazy_pattern(r"(?i)\b(?:resolution|resolved|closed|fixed|ticket|before|after)\b")  # a heading of what is over


def list_table_values(text: str) -> list[StatedValue]:
    r"""What cells state, each in the order of its table.

    >>> text = "gpu  expected  active\n0    18        18\n1    18        16\n2    18        18\n"
    >>> [(value.code, value.what) for value in list_table_values(text)]
    [('value-below', 'gpu 1: active 16, expected 18')]
    >>> text = "phase volts breaker\nL1 239 closed\nL2 238 tripped\nL3 240 closed\nL4 238 closed\n"
    >>> [(value.code, value.what) for value in list_table_values(text)]
    [('value-state', 'phase L2: breaker tripped')]
    >>> list_table_values(text.replace("tripped", "closed"))
    []
    """
    if not is_of_field(text):
        return []
    values = (value for table in read_tables(text) for value in _judge_table(table))
    return list({(value.line, value.what): value for value in values}.values())


@lru_cache(maxsize=2)  # by which a text is recognized, and then read
def list_all_values(text: str) -> tuple[StatedValue, ...]:
    """Those of tables, then of lines that no table has, then of rows without a heading that are not as all others.

    >>> [value.what for value in list_all_values("port 4 state: FAILED\\n")]
    ['port 4 state: FAILED']
    """
    values = list_table_values(text)
    for more in (list_values, _list_odd_rows):
        known = {value.line for value in values}
        values += [value for value in more(text) if value.line not in known]
    return tuple(values)


def _list_odd_rows(text: str) -> list[StatedValue]:
    rows = list_odd_rows(text)
    return [StatedValue(ODD, find_part(row.name), f"{row.name}: {row.what}", row.line, False) for row in rows]


def _judge_table(table: FoundTable) -> Iterator[StatedValue]:
    if any(_OVER.search(name) for name in table.names):
        return
    names = [_name_row(table, cells) for cells, _ in table.rows]
    far: dict[int, list[str]] = {}
    is_matrix = len({cells[0] for cells, _ in table.rows} & set(table.names)) > 1
    for at, column in enumerate(table.names):
        cells = [cells[at] for cells, _ in table.rows]
        judged = [judge(column, cell) for cell in cells] if column and not table.is_record else []
        counted = sum(row is not None and row[0] == COUNT for row in judged)
        for name, (_, line), cell, row in zip(names, table.rows, cells, judged, strict=False):
            if row and (row[0] != COUNT or 3 * counted <= len(cells)):
                yield _build(row[0], name, f"{column} {cell}", line, row[2])
        for number, says in _find_odd(column, cells, is_matrix) if column and not any(judged) else ():
            far.setdefault(number, []).append(says)
    absent = [sum(cell.lower() in _NO_CELL for cell in entries) for entries, _ in table.rows]
    for number, (_, line) in enumerate(table.rows):
        if number in far and absent[number] <= median(absent):
            yield _build(ODD, names[number], "; ".join(far[number][:_SAID]), line)
    yield from _compare_columns(table, names)


def _build(code: str, name: str, what: str, line: str, is_down: bool = False) -> StatedValue:
    shown = " ".join(line.split())
    return StatedValue(code, find_part(name) or find_part(line), f"{name}: {what}"[:160], shown, is_down)


def _name_row(table: FoundTable, cells: Sequence[str]) -> str:
    """By the first cells, as many as tell the rows apart; a number with the name of its column."""
    begin = 1 if len({row[0] for row, _ in table.rows}) == 1 else 0
    for end in range(begin + 1, begin + 4):
        if len({row[begin:end] for row, _ in table.rows}) == len(table.rows):
            break
    parts = zip(table.names[begin:end], cells[begin:end], strict=False)
    return " ".join(f"{name} {cell}".strip() if len(cell) < 4 else cell for name, cell in parts)[:_SHOWN]


def _find_odd(column: str, cells: Sequence[str], is_matrix: bool) -> Iterator[tuple[int, str]]:
    """Rows that are not as all others in a column, with what these have."""
    words = normalize(column.replace("dBm", "dbm"))
    if len(cells) < FEWEST:
        return
    usual, times = Counter(cells).most_common(1)[0]
    of_all, is_few = usual[:1] != "0" and is_complete(usual), 0 < len(cells) - times <= len(cells) / SHARE
    if is_few and usual.lower() not in _NO_CELL and (_OF_STATE.search(words) or of_all):
        for at, cell in enumerate(cells):
            if cell != usual and (is_incomplete(cell) if of_all else _is_other_state(cell, usual)):
                yield at, f"{column} {cell}, the others {usual}"
        return
    numbers = {at: number for at, cell in enumerate(cells) if (number := read_number(cell))}
    missing = sum(cell.lower() in _NO_CELL for cell in cells)
    if _BY_USE.search(words) or missing > 1 or len(numbers) + missing < len(cells) or len(numbers) < FEWEST:
        return
    is_wait, is_rate = _OF_WAIT.search(words) is not None, _OF_RATE.search(words) is not None
    is_compared = is_matrix or is_wait or is_rate or _OF_QUANTITY.search(words) is not None
    if not is_compared or len({unit for _, unit in numbers.values()}) > 1:
        return
    places, values = list(numbers), [number for number, _ in numbers.values()]
    is_light = "dbm" in words
    if is_light:  # of light a ratio is a difference
        values = [_LIGHT**number for number in values]
    for at, most in list_far(values, not is_wait, not is_rate):
        if most and (not _OF_HEAT.search(words) or not most < values[at] < _HOT):
            shown = f"{column} {cells[places[at]]}"
            yield places[at], shown if is_light else f"{shown}, the others {most:g}"


def _is_other_state(cell: str, usual: str) -> bool:
    is_word = _WORD.fullmatch(usual) is not None
    return _WORD.fullmatch(cell) is not None and not (is_word and _USUAL_STATES.fullmatch(cell))


def _compare_columns(table: FoundTable, names: Sequence[str]) -> Iterator[StatedValue]:
    """Cells beyond the bound, or below the expected value, that another column of their row states."""
    words = [normalize(name) for name in table.names]
    for bound, column in enumerate(words):
        is_upper, is_lower = _UPPER.search(column) is not None, _LOWER.search(column) is not None
        is_most = not is_upper and _MOST.search(column) is not None and not _VARIES.search(column)
        own = _READ if is_upper or is_lower else _HAS
        if not (is_upper or is_lower or is_most):
            continue
        unit = _UNIT.search(table.names[bound])
        pairs = [
            at for at, other in enumerate(words) if at != bound and own.search(other) and not _VARIES.search(other)
        ]
        pairs = pairs or [at for at, name in enumerate(table.names) if unit and at != bound and unit[0] in name]
        for (cells, line), name in zip(table.rows, names, strict=True) if len(pairs) == 1 else ():
            value, limit = cells[pairs[0]], cells[bound]
            if is_below(limit, value) if is_upper else is_below(value, limit):
                what = f"{table.names[pairs[0]]} {value}, {table.names[bound]} {limit}"
                yield _build(BELOW, name, what, line)
