"""Tables with a heading that no reader has: cells that state trouble by the name of their column, a row that has not
what its own row expects, and one row that is not as all others.

What the words and columns mean is that of `values.py`; a table tells in addition what is usual.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations

from probes.text import find_median, lazy_pattern
from probes.tool_reports.facts import ToolReport, state_fault
from probes.tool_reports.sentences.parts import find_part
from probes.tool_reports.sentences.values import BELOW, COUNT, StatedValue, is_of_field, judge, list_values, normalize
from probes.tool_reports.tables.entries import (
    CALM,
    CURRENT,
    FEWEST,
    FEWEST_STRICT,
    IN_USE,
    MOST,
    NOT_USED,
    SHARE,
    TROUBLE_WORD,
    WELL,
    WELL_WORD,
    FoundTable,
    align_units,
    is_below,
    is_complete,
    is_incomplete,
    list_far,
    list_unpaired,
    read_number,
    shape,
)
from probes.tool_reports.tables.forms import read_tables
from probes.tool_reports.tables.quantities import (
    ANY,
    HIGH,
    LOW,
    Quantity,
    find_quantity,
    is_by_use,
    is_less,
    is_place,
    is_sweep,
)

ODD = "value-odd"
_OTHER_NUMBER = lazy_pattern(r"\bthe others -?[vx]?\d")
_SHOWN, _SAID = 60, 4
_MOST_DECIBELS = 100
_LIGHT = 1.05  # to the power of dB: 6 dB below the others are far
_FAR_COUNTED, _FAR_RATIO = 10, 100  # of counts that others have less of, and of rates of errors
_NO_CELL = ("-", "--", "—", "n/a", "na", "none", "")  # of what is not there
_WORD = lazy_pattern(r"[A-Za-z][A-Za-z_*-]{1,20}")
_MOST = lazy_pattern(rf"\b(?:{MOST}|total|cap)\b")
_UPPER = lazy_pattern(r"\b(?:up(?:per)?|hi(?:gh)?|max) (?:crit\w{0,4}|limit|nr|cr|alarm|fatal)\b")
_LOWER = lazy_pattern(r"\b(?:lo(?:w(?:er)?)?|min) (?:crit\w{0,4}|limit|nr|cr|alarm|fatal)\b|\bmin(?:imum)?\b")
_HAS = lazy_pattern(rf"\b(?:{CURRENT}|up|seen|sta)\b")
_READ = lazy_pattern(r"\b(?:reading|value|current|actual|now|measured)\b")
_VARIES = lazy_pattern(  # of idle parts
    r"\b(?:gen|speed|clocks?|power|temp\w{0,10}|mem\w{0,3}|usage|used?|size|fan|watts|mhz)\b"
)
_UNIT = lazy_pattern(r"\([A-Za-z]{1,6}\)")
_OF_STATE = lazy_pattern(
    r"\b(?:state|status|health|breaker|link|phys\w{0,10}|carrier|oper\w{0,10}|result|verdict|outcome)\b"
)
_USUAL_STATES = lazy_pattern(
    rf"(?i){WELL}|{IN_USE}|mix\w{{0,2}}|running|complet\w{{1,3}}|succeeded|established|full|closed|present|enabled|loaded"
    r"|mounted|attached|bound|running|trained|synced"
)
_DENIED = lazy_pattern(r"(?i)^(?:not[ _-]?|un|dis|in)(?=\w)")
_NOT_CALM = lazy_pattern(rf"(?i)low|slow|none|-|(?:re)?connecting|{NOT_USED}")
_ALIKE = lazy_pattern(  # rates, widths, versions
    r"(?i)\d{2,3}(?:\.\d)?(?:G|Gb|Gbps|Gb/s|Gbit/s|GbE|Gb/sec|GT/s|GT)|x\d{1,2}|v?\d{1,4}(?:\.[0-9a-f]{1,6}){2,4}"
    r"|(?:[SDFQEHNX]DR\d{0,3})|\d{1,3}(?:\.\d{1,4}){1,3}-[\w.-]{1,20}"
)
_WIDTH = lazy_pattern(r"x\d{1,2}|\d{1,3}(?:\.\d)?(?:G|Gb|Gbps|Gb/s|Gbit/s|GbE|Gb/sec|GT/s|GT)")
_UNIT_OF_ALL = lazy_pattern(  # at the end of the line above, or in brackets
    r"(?:[(\[]|[,;:] |(?:bandwidth|bw|latency) )"
    r"(?:[mun]?s|[KMGT]i?[bB](?:it)?(?:/s|ps)|dBm?|°?C|[KMGT]?FLOPS|MHz|[AVW])"
    r"(?:[)\]]|$)"
)
_OF_LIGHT = lazy_pattern(r"\b[rt]x ?\d?\b")
_OF_BEING = lazy_pattern(r"\b(?:up|in|online|alive|ready|healthy|present|reachable|connected|mounted|loaded|synced)$")
_ON = lazy_pattern(r"(?i)(?:\d{1,2}:)?(?:on|enabled|true)")  # of a priority, as `dcb` has them
_OFF = lazy_pattern(r"(?i)(?:\d{1,2}:)?(?:off|disabled|false)")
_NOT_RUN = lazy_pattern(
    r"(?i)skip(?:ped)?|n/?a|none|unknown|pending|queued|warn(?:ing)?|info|planned|starting|not[ _-]run"
)
_SCHEDULED = lazy_pattern(  # states of nodes, as PBS and LSF name them
    r"(?i)free|job-(?:busy|exclusive|sharing)|closed(?:_[a-z]{3,8})?|resv-exclusive|busy|mixed|ok"
)
_NOT_SCHEDULED = lazy_pattern(
    r"(?i)(?:[a-z-]{2,20},){0,4}(?:down|offline|unavail|unreach|stale|state-unknown)(?:,[a-z-]{2,20}){0,4}"
)
_OF_ADMIN = lazy_pattern(r"\b(?:admin|optional|required|default)\b")
_OF_ALARM = lazy_pattern(r"\b(?:alarms?|faults?|failures?|warnings?|issues?|throttl\w{0,4})$")
_OF_EQUAL = lazy_pattern(  # versions and settings that parts of one kind have alike
    r"\b(?:pfc|trust|governor|iommu|aspm|acs|mig(?! dev)|ecc mode|persistence|compute mode"
    r"|bios|bmc|cpld|vbios|f/?w|firmware|driver|kernel|ofed|nccl|cuda)\b"
    r"(?! (?:state|date))"
)
_OF_KIND = lazy_pattern(r"\b(?:model|type|role|kind|zone|class|tier|product|sku|partition|pool|name|layer)\b")
_OF_ROLE = lazy_pattern(
    r"(?i)unused|spare|reserved|mgmt|management|login|standby|uplink|spine|unassigned|empty|idle|storage|oob"
)
_OF_PART = lazy_pattern(r"(?i)\b(?P<kind>gpu|npu|hpu|rail|port|slot|lane|nvswitch|link|rank|fan)s?\b")
_PART_NUMBER = lazy_pattern(r"(?i)(?:gpu|npu|hpu)_(?:id|index|idx)")
_OVER = lazy_pattern(  # a heading of what is over, is planned, or is no state of a part
    r"(?i)\b(?:resolution|resolved|closed|fixed|ticket|before|after|for|meaning|part(?: no)?|alerts?|rule|price\w{0,4}"
    r"|job ?id|user|severity)\b"
)


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
    return _list_values_of(_read_tables(text))


def list_odd_numbers(text: str) -> Iterator[ToolReport]:
    r"""Rows of a known output of which one has another number or version than the others.

    >>> ports = "".join(f"hca_id: mlx5_{n}\n fw_ver: 28.4{n // 3}.1000\n" for n in range(4))
    >>> [report[:2] for report in list_odd_numbers(ports)]
    [('row-odd', 'mlx5_3')]
    """
    for value in list_table_values(text):
        if value.code == ODD and _OTHER_NUMBER.search(value.what):
            yield state_fault("row-odd", value.part, value.what, value.line)


def _read_tables(text: str) -> list[FoundTable]:
    """Those of a text that is about parts of a server, and those whose rows have numbered names of one form."""
    is_about_parts = is_of_field(text)
    return [table for table in read_tables(text) if is_about_parts or _is_of_peers(table)]


def _is_of_peers(table: FoundTable) -> bool:
    names = [cells[0] for cells, _ in table.rows]
    return len({shape(name) for name in names}) == 1 and names[0][:1].isalpha() and any(map(str.isdigit, names[0]))


@lru_cache(maxsize=2)  # by which a text is recognized, and then read
def list_all_values(text: str) -> tuple[StatedValue, ...]:
    """Those of tables, then of lines that no table has.

    >>> [value.what for value in list_all_values("port 4 state: FAILED\\n")]
    ['port 4 state: FAILED']
    """
    tables = _read_tables(text)
    values = _list_values_of(tables)
    judged = {" ".join(line.split()) for table in tables if all(table.names) for _, line in table.rows}
    judged.update(" ".join(table.names) for table in tables)
    judged.update(value.line for value in values)
    return (*values, *(value for value in list_values(text) if value.line not in judged))


def _list_values_of(tables: Sequence[FoundTable]) -> list[StatedValue]:
    values = (value for table in tables for value in _judge_table(table))
    return list({(value.line, value.what): value for value in values}.values())


def _judge_table(table: FoundTable) -> Iterator[StatedValue]:
    if any(_OVER.search(name) for name in table.names):
        return
    names = [_name_row(table, cells) for cells, _ in table.rows]
    far: dict[int, list[str]] = {}
    if _is_matrix(table):  # a part with itself is no pair
        table = table._replace(rows=tuple(
            (tuple(_NO_CELL[0] if at and name == cells[0] else cell for at, (name, cell) in enumerate(
                zip(table.names, cells, strict=True))), line) for cells, line in table.rows))  # fmt: skip
    columns = [[cells[at] for cells, _ in table.rows] for at in range(len(table.names))]
    words = map(normalize, table.names)
    without = {number for pair in zip(words, columns, strict=True) for number, _ in _list_uncounted(*pair)}
    of_other_kind = _list_other_kinds(table, without)
    for at, (column, cells) in enumerate(zip(table.names, columns, strict=True)):
        judged = [judge(column, cell) for cell in cells] if column and not table.is_record else []
        counted = sum(row is not None and row[0] == COUNT for row in judged)
        for number, (name, (_, line), cell, row) in enumerate(zip(names, table.rows, cells, judged, strict=False)):
            if row and (row[0] != COUNT or 3 * counted <= len(cells)) and not (row[2] and number in of_other_kind):
                yield _build(row[0], name, f"{column} {cell}", line, row[2])
        for number, says in _find_odd(table, at, cells) if at and not any(judged) else ():
            if number not in of_other_kind:
                far.setdefault(number, []).append(f"{column} {says}".strip())
    for first, second in combinations([at for at, name in enumerate(table.names) if is_place(normalize(name))], 2):
        for number, usual in list_unpaired(columns[first], columns[second]):
            own = f"{table.names[first]} {columns[first][number]}"
            far.setdefault(number, []).append(f"{own}: {table.names[second]} {columns[second][number]}, others {usual}")
    for number, says in _list_far_of_matrix(table):
        far.setdefault(number, []).append(says)
    troubled = {number for cells in columns[1:] for number, _ in _list_troubled(cells)}
    absent = [sum(cell.lower() in _NO_CELL for cell in entries) for entries, _ in table.rows]
    for number, (_, line) in enumerate(table.rows):
        if number in far and (number in troubled or absent[number] <= find_median(absent)):
            more = f"; {len(far[number]) - _SAID} more" if len(far[number]) > _SAID else ""
            yield _build(ODD, names[number], "; ".join(far[number][:_SAID]) + more, line)
    yield from _compare_columns(table, names)


def _list_other_kinds(table: FoundTable, without: set[int]) -> set[int]:
    """Rows of another model or role than the others, without work, or with a name of another form. `without`: rows that
    have a state alone: those have no name of their peer either."""
    forms = [shape(cells[0]) for cells, _ in table.rows]
    usual, times = Counter(forms).most_common(1)[0]
    others = set[int]()
    if times > 1 and 3 * times >= 2 * len(forms):
        others.update(number for number, form in enumerate(forms) if form != usual and number not in without)
    if not table.names[0]:  # without a heading: a word may be in no cell
        of_role = {n for n, (_, line) in enumerate(table.rows) if any(map(_OF_ROLE.fullmatch, line.split()[1:]))}
        others |= of_role if 2 * len(of_role) < len(table.rows) else set()
    for at, column in enumerate(table.names[1:], 1):
        cells = [cells[at] for cells, _ in table.rows]
        usual, times = Counter(cells).most_common(1)[0]
        words = normalize(column)
        is_state = _OF_STATE.search(words) is not None and read_number(usual) is not None
        is_of_kind = times > 1 and _OF_KIND.search(words) is not None
        for number, cell in enumerate(cells):
            if cell != usual and (is_of_kind or (not is_state and _OF_ROLE.fullmatch(cell))):
                others.add(number)
    return others


def _build(code: str, name: str, what: str, line: str, is_down: bool = False) -> StatedValue:
    shown = " ".join(line.split())
    return StatedValue(code, find_part(name) or find_part(line), f"{name}: {what}"[:160], shown, is_down)


def _name_row(table: FoundTable, cells: Sequence[str]) -> str:
    """By the first cells, as many as tell the rows apart; a number with the name of its column."""
    for at, name in enumerate(table.names[:3]):
        if _PART_NUMBER.fullmatch(name) and len({row[at] for row, _ in table.rows}) == len(table.rows):
            return f"{name.partition('_')[0].upper()} {cells[at]}"[:_SHOWN]
    begin = 1 if len({row[0] for row, _ in table.rows}) == 1 else 0
    for end in range(begin + 1, begin + 4):
        if len({row[begin:end] for row, _ in table.rows}) == len(table.rows):
            break
    if end == 1 and cells[0].isdecimal() and not table.names[0] and (kind := _OF_PART.search(table.title)):
        return f"{kind['kind'].upper() if len(kind['kind']) < 4 else kind['kind']} {cells[0]}"
    parts = zip(table.names[begin:end], cells[begin:end], strict=False)
    return " ".join(f"{name} {cell}".strip() if len(cell) < 4 else cell for name, cell in parts)[:_SHOWN]


def _find_odd(table: FoundTable, at: int, cells: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Rows that are not as all others in a column, with what these have."""
    words = normalize(table.names[at].replace("dBm", "dbm"))
    yield from _list_troubled(cells)
    usual, times = Counter(cells).most_common(1)[0]
    of_all = usual[:1] != "0" and is_complete(usual)
    of_state = len(cells) >= FEWEST and not read_number(usual) and _OF_STATE.search(words) is not None
    is_equal = _OF_EQUAL.search(words) is not None
    few = max(len(cells) // SHARE, of_all and len(cells) == FEWEST_STRICT)
    if usual.lower() not in _NO_CELL and not _OF_ADMIN.search(words) and 0 < len(cells) - times <= few:
        for number, cell in enumerate(cells):
            if cell == usual or TROUBLE_WORD.fullmatch(cell):
                continue
            if is_equal or (is_incomplete(cell) if of_all else _is_other(cell, usual, words, of_state)):
                yield number, f"{cell}, the others {usual}"
        if of_all or of_state or is_equal or _ALIKE.fullmatch(usual):
            return
    yield from _list_absent(words, cells)
    yield from _list_uncounted(words, cells)
    yield from _list_alarms(words, cells)
    yield from _list_far_numbers(table, at, words, cells)


def _list_far_numbers(table: FoundTable, at: int, words: str, cells: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Numbers of a known quantity, or of parts, that are far from those of the others."""
    numbers = {number: value for number, cell in enumerate(cells) if (value := read_number(cell))}
    numbers = dict(zip(numbers, align_units(list(numbers.values())), strict=True))
    missing = sum(cell.lower() in _NO_CELL for cell in cells)
    units = {unit for _, unit in numbers.values()}
    if missing > 1 or len(numbers) + missing < len(cells) or len(numbers) < FEWEST_STRICT or len(units) > 1:
        return
    if is_sweep(table.names[0], [cells[0] for cells, _ in table.rows]):
        return
    values = [value for value, _ in numbers.values()]
    title = table.title if not words or _is_alone(table, at) or _UNIT_OF_ALL.search(table.title) else ""
    quantity = find_quantity(words, min(units), title)
    if quantity is None and _OF_LIGHT.search(words) and max(values) < 0:
        quantity = find_quantity("dbm", "", "")
    if not (quantity and quantity.is_of_load):
        less = list(_list_less((f"{words} {min(units)}".strip(), normalize(title)), cells, values))
        yield from less
        if less:
            return
    for number, most in _list_far_of(quantity, values) if quantity else ():
        place = list(numbers)[number]
        if not (quantity and quantity.is_of_load and _is_explained_by_load(table, place)):
            own, unit = read_number(cells[place]), min(units)
            usual = f"{most:g}" if own and own[1] == unit else f"{most:.3g} {unit}"
            yield place, cells[place] if quantity and quantity.is_light else f"{cells[place]}, the others {usual}"


def _list_alarms(words: str, cells: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Rows with words in a column of alarms, in which most have none."""
    calm = (*_NO_CELL, "ok", "no", "clear")
    stated = [number for number, cell in enumerate(cells) if cell.lower() not in calm and not read_number(cell)]
    if _OF_ALARM.search(words) and 3 * len(stated) <= len(cells):
        yield from ((number, cells[number]) for number in stated)


def _list_absent(words: str, cells: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Rows that are not there, in a column of whether they are, and all others are."""
    absent = [number for number, cell in enumerate(cells) if cell.lower() in ("0", "no", "false", "n")]
    here = sum(cell.lower() in ("1", "yes", "true", "y") for cell in cells)
    if _OF_BEING.search(words) and absent and here + len(absent) == len(cells) and len(absent) <= here / 2:
        yield from ((number, f"{cells[number]}, not as the others") for number in absent)


def _list_uncounted(words: str, cells: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Rows with the name of a state where the others have the number that stands for a good one: sessions of BGP."""
    stated = [number for number, cell in enumerate(cells) if _WORD.fullmatch(cell) and cell.lower() not in _NO_CELL]
    counted = sum(read_number(cell) is not None for cell in cells)
    if _OF_STATE.search(words) and counted + len(stated) == len(cells) and 2 * len(stated) < counted + 1:
        yield from ((number, f"{cells[number]}, the others a number") for number in stated)


def _list_less(label: tuple[str, str], cells: Sequence[str], values: Sequence[float]) -> Iterator[tuple[int, str]]:
    """The row that has less of what all others have alike."""
    usual, times = Counter(values).most_common(1)[0]
    if usual > 1 and FEWEST <= len(values) == len(cells) == times + 1:
        less = (at for at, value in enumerate(values) if is_less(*label, value, usual))
        yield from ((at, f"{cells[at]}, the others {usual:g}") for at in less)


def _is_alone(table: FoundTable, at: int) -> bool:
    """Whether a column is the only one with numbers, so that the line above the table is about it."""
    return not any(read_number(cell) for cells, _ in table.rows for cell in (*cells[1:at], *cells[at + 1 :]))


def _list_troubled(cells: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Words of trouble where the others are well, or have a number."""
    is_of_scheduler = any(map(_SCHEDULED.fullmatch, cells))
    troubled = [
        number
        for number, cell in enumerate(cells)
        if TROUBLE_WORD.match(cell) or (is_of_scheduler and _NOT_SCHEDULED.fullmatch(cell))
    ]
    calm = sum(
        CALM.fullmatch(cell) is not None
        or read_number(cell) is not None
        or (is_of_scheduler and _SCHEDULED.fullmatch(cell) is not None)
        for cell in cells
    )
    if troubled and calm > len(troubled) and calm + len(troubled) == len(cells):
        yield from ((number, f"{cells[number]}, not as the others") for number in troubled)


def _list_far_of(quantity: Quantity, values: Sequence[float]) -> Iterator[tuple[int, float]]:
    """Which numbers of a quantity are far from the others, in the way that is bad for it."""
    if quantity.is_light and max(map(abs, values)) > _MOST_DECIBELS:
        return
    if quantity.is_light:  # of light a ratio is a difference
        values = [_LIGHT**value for value in values]
    if quantity.is_count:
        most, second = sorted(map(abs, values))[-1:-3:-1]
        is_far = most > _FAR_RATIO * second if quantity.is_share else most >= quantity.least
        if is_far and most > _FAR_COUNTED * second:
            yield (
                [abs(value) for value in values].index(most),
                find_median(value for value in values if abs(value) != most),
            )
        return
    for number, usual in list_far(values, quantity.bad in (LOW, ANY), quantity.bad in (HIGH, ANY)):
        if usual and (quantity.bad != HIGH or values[number] >= quantity.least):
            yield number, usual


def _is_explained_by_load(table: FoundTable, number: int) -> bool:
    """Whether the use of a row differs from that of the others, too."""
    for at, column in enumerate(table.names[1:], 1):
        cells = [cells[at] for cells, _ in table.rows]
        if not is_by_use(normalize(column)):
            continue
        values = [value[0] for cell in cells if (value := read_number(cell))]
        own = read_number(cells[number])
        if own is None or len(values) < len(cells):
            return cells.count(cells[number]) < max(Counter(cells).values())
        return abs(own[0] - find_median(values)) > max(5, 0.2 * find_median(values))
    return False


def _is_matrix(table: FoundTable) -> bool:
    """Whether rows and columns are of the same parts."""
    return len({cells[0] for cells, _ in table.rows} & set(table.names)) >= FEWEST_STRICT


def _list_far_of_matrix(table: FoundTable) -> Iterator[tuple[int, str]]:
    """The row of a matrix whose cells are far from those of most others, or other words."""
    if not _is_matrix(table):
        return
    cells_of = [
        [cell for name, cell in zip(table.names[1:], cells[1:], strict=True) if name != cells[0]]
        for cells, _ in table.rows
    ]
    usual, times = Counter(Counter(cells).most_common(1)[0][0] for cells in cells_of).most_common(1)[0]
    quantity = find_quantity("", "", table.title)
    rows = [[value[0] for cell in cells if (value := read_number(cell))] for cells in cells_of]
    if quantity and all(rows):
        for number, most in _list_far_of(quantity, [find_median(row) for row in rows]):
            yield number, f"{find_median(rows[number]):g}, the others {most:g}"
    elif usual.lower() in ("1", "ok", "yes", "pass") and FEWEST <= len(rows) == times + 1:
        number = next(at for at, cells in enumerate(cells_of) if Counter(cells).most_common(1)[0][0] != usual)
        yield number, f"{Counter(cells_of[number]).most_common(1)[0][0]}, the others {usual}"


def _is_other(value: str, usual: str, words: str, of_state: bool) -> bool:
    if of_state and _is_other_state(value, usual):
        return True
    if usual.lower() in ("yes", "true") and words:
        return False  # what a part is set to, or has
    if _WIDTH.fullmatch(usual) and _WIDTH.fullmatch(value):
        return is_below(value, usual)
    if _ALIKE.fullmatch(usual):
        return _ALIKE.fullmatch(value) is not None or _NOT_CALM.fullmatch(value) is not None
    if _ON.fullmatch(usual):
        return _OFF.fullmatch(value) is not None
    if _USUAL_STATES.fullmatch(usual) and (_NOT_CALM.fullmatch(value) or _DENIED.sub("", value) == usual.lower()):
        return True
    return WELL_WORD.fullmatch(usual) is not None and _is_other_state(value, usual)


def _is_other_state(cell: str, usual: str) -> bool:
    is_word = _WORD.fullmatch(usual) is not None
    return _WORD.fullmatch(cell) is not None and not (
        (is_word and _USUAL_STATES.fullmatch(cell)) or _NOT_RUN.fullmatch(cell)
    )


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
        if len(pairs) != 1:
            continue
        alike = sum(cells[pairs[0]] == cells[bound] for cells, _ in table.rows)
        is_of_words = is_most and alike >= max(2, 0.6 * len(table.rows))
        for (cells, line), name in zip(table.rows, names, strict=True):
            value, limit = cells[pairs[0]], cells[bound]
            if is_of_words and value != limit and not (read_number(value) and read_number(limit)):
                yield _build(BELOW, name, f"{table.names[pairs[0]]} {value}, {table.names[bound]} {limit}", line)
            elif is_below(limit, value) if is_upper else is_below(value, limit):
                what = f"{table.names[pairs[0]]} {value}, {table.names[bound]} {limit}"
                yield _build(BELOW, name, what, line)
