"""Rows without a heading, as tables: lines that begin alike, keys with a number in them, lists in one line.

A column is named by the words that all rows have before its values, by a unit after them, or by the line above. What
its cells mean is a matter of `cells.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from probes.text import lazy_pattern
from probes.tool_reports.sentences.values import normalize
from probes.tool_reports.tables.entries import CALM, FEWEST_STRICT, TROUBLE_WORD, FoundTable, read_number, shape
from probes.tool_reports.tables.quantities import HIGH, find_quantity

_LONGEST, _LONGEST_LIST, _MOST_LINES, _MOST_ROWS, _MOST_WORDS = 240, 1200, 2000, 500, 40
_MARGIN = lazy_pattern(r"[ \t>*•#|+-]{0,12}(?:\[[A-Za-z][\w -]{1,24}\][ \t]{1,4})?")
_PIECES = lazy_pattern(r"[\s|;]+|,(?=\S)(?!(?:down|offline|drain\w{0,3}|stale|unknown)\b)")
_JOINED = lazy_pattern(r"(?<=\w)=(?=\S)")
_COMMA = lazy_pattern(r",(?=\s)")
_HEADING = lazy_pattern(r"[ \t]*[|,;][ \t]*|[ \t]+")
_NAME = lazy_pattern(r"[A-Za-z][\w./%()\[\]-]{0,40}")  # of a column
_EMPTY = frozenset((":", "=", "–", "—", "..", "...", "->", "=>", "-->", "<->", "<-->", "<=>"))  # before a value
_COUNTED = lazy_pattern(r"#?(?:\d{1,4}|[A-Z]\d{0,2}):?")
_NAMED = lazy_pattern(
    r"(?=.{0,40}\d)[A-Za-z][\w./:>-]{0,40}(?: #?[A-Z]?\d{1,4})?[:=]?|\d{1,4}:?|[0-9a-f:]{2,12}\.[0-7]|/[\w./-]{1,60}"
)
_LEADING = lazy_pattern(r"\d{4}-\d\d-\d\d\S{0,30}|\d\d:\d\d:\d\d\S{0,12}|INFO|NOTICE|DEBUG|[a-z]{2,8}:?")  # of a log
_MOST_LEADING = 5
_LETTERED = lazy_pattern(r"[A-Za-z]{2,20}[-_ ][A-Za-z][:=]?")  # node-a
_LABEL = lazy_pattern(r"[A-Za-z%][\w./%()°-]{0,40}[:=]?")
_UNIT = lazy_pattern(
    r"(?:[KMGT]i?)?(?:B|b|bit)(?:/s(?:ec)?|ps)|[KMGT]?FLOPS|TF(?:lop/s|lops)?|°?C|[mk]?[WVA]|[KMG]?Hz|RPM|rpm|lpm|l/min"
    r"|bar|kPa|dBm?|[mnuµ]?s(?:ec)?|%|[KMGT]i?B|tokens/s|samples/s|ppm"
)
_OF_JSON = lazy_pattern(r'[ \t{]{0,40}"(?P<key>[\w .:/-]{1,60})" ?: ?"?(?P<value>[\w.+-]{1,40})"?[ \t,}\]]{0,8}')
_SAMPLE = lazy_pattern(
    r"(?P<key>[A-Za-z_][\w:]{1,80})\{(?P<labels>[^{}\n]{3,300})\}[ \t]{1,4}(?P<value>[\d.eE+-]{1,24})\b"
)
_LABELS = lazy_pattern(r'(?P<key>[a-zA-Z_]\w{0,40})="(?P<value>[^"\n]{0,80})"')
_KEYED = lazy_pattern(
    r"(?<![\w./:-])(?P<key>[A-Za-z][\w.-]{0,60}\d[\w.-]{0,40})(?:=|:(?=\d[\d.]{0,24}\|))"
    r"(?P<value>[-+]?\d[\w.+%/-]{0,24}|[A-Z][A-Z_]{1,30})(?=\|[a-z]{1,2}\b|[\s,;}\]]|$)"
)
_PAIR = lazy_pattern(r"([A-Za-z][\w.]{1,30}) ?(?:<?-{1,2}>?|<?=>|:|/|~) ?([A-Za-z][\w.]{1,30})")
_FEWEST_PAIRED, _MOST_PAIRS, _ALIKE = 4, 0.8, 0.8  # parts; of all pairs; the best of each part
_LISTED = lazy_pattern(  # several in one line
    r"(?<![\w./:-])(?P<key>(?:[Rr]ank|GPU|gpu|link|lane|port|card) \d{1,4}|[A-Za-z][\w.-]{0,30}\d)"
    r"(?: ?: ?)(?P<value>\d[\w.+%/-]{0,24})(?=[\s,;}\]]|$)"
    r"|(?<![\w./:=-])(?P<name>[A-Za-z][\w.-]{0,30}\d[a-z]?) (?P<number>\d[\w.+%/-]{0,24})(?=,|$| [A-Za-z])"
)
_PIECES_OF_KEY = lazy_pattern(r"(?<!mlx[45])(?<!_re)[._ -]+")  # "mlx5_0" is one
_LIST = lazy_pattern(
    r"(?P<label>[^:=\n]{4,80}?)[ \t]{0,8}[:=][ \t]{0,8}\[?"
    r"(?P<values>-?\d{1,7}(?:\.\d{1,4})?(?:[ ,\t]{1,3}-?\d{1,7}(?:\.\d{1,4})?){3,71})\]?[ \t]{0,8}"
    r"(?:\[-?[\d.]{1,12}\.\.-?[\d.]{1,12}\][ \t]{0,8})?"  # the limits
)


def read_rows(text: str) -> Iterator[FoundTable]:
    r"""Each with three rows or more.

    >>> [table] = read_rows("burn\n gpu0 temp 61 C 26.3 GB/s\n gpu1 temp 60 C 26.1 GB/s\n gpu2 temp 61 C 9.3 GB/s\n")
    >>> table.names, [cells for cells, _ in table.rows][2], table.title
    (('', 'temp C', 'GB/s'), ('gpu2', '61', '9.3'), 'burn')
    >>> [table] = read_rows("".join(f"gpu_{n}_clock_mhz={1980 - n}\n" for n in range(3)))
    >>> table.names, table.rows[1]
    (('', 'clock mhz'), (('gpu 1', '1979'), 'gpu_1_clock_mhz=1979'))
    """
    lines = [line for line in islice(text.splitlines(), _MOST_LINES) if len(line) <= _LONGEST_LIST]
    of_keys = list(_read_keys(lines))
    lines = [line for line in lines if len(line) <= _LONGEST]
    yield from of_keys
    read = {line for table in of_keys for _, line in table.rows}
    group: list[tuple[Sequence[str], str]] = []
    title, above = "", ""
    for line in [*lines, ""]:
        words = _split(line) if line not in read else []
        is_named = len(words) > 1 and (_NAMED.fullmatch(words[0]) or _LETTERED.fullmatch(words[0])) is not None
        if group and not (is_named and shape(words[0]) == shape(group[0][0][0])):
            if table := _tabulate(group, above):
                yield table
            group, title = [], group[0][1].strip() if len(group) == 1 else ""
        if not is_named:
            title = line.strip() or title
            continue
        above = above if group else title
        group.append((words, line))


def _split(line: str) -> list[str]:
    """The words of a row, the first of which is its name."""
    pair = _OF_JSON.fullmatch(line)
    bare = f"{pair['key']} {pair['value']}" if pair else line[match.end() :] if (match := _MARGIN.match(line)) else line
    words = [
        word.strip("()[]{}\"'") for word in _PIECES.split(_JOINED.sub("= ", _COMMA.sub(" ,", bare)).strip(" \t|*`"))
    ]
    words = [word for word in words if word and word not in _EMPTY][:_MOST_WORDS]
    begin = next((at for at, word in enumerate(words[:_MOST_LEADING]) if not _LEADING.fullmatch(word)), 0)
    if begin and _NAMED.fullmatch(words[begin]) and not words[begin][0].isdecimal():
        words = words[begin:]
    if len(words) > 2 and words[0].isalpha() and _COUNTED.fullmatch(words[1]):  # "Link 3:"
        words[:2] = [f"{words[0]} {words[1]}"]
    return words


def _tabulate(group: Sequence[tuple[Sequence[str], str]], title: str) -> FoundTable | None:
    """Rows as a table: of words that all rows have, those before a value name it, and a unit behind it does, too."""
    names = [words[0].rstrip(":=") for words, _ in group]
    if len(group) < FEWEST_STRICT:
        return None
    columns: list[tuple[str, tuple[str, ...]]] = [("", tuple(names))]
    label: list[str] = []
    for at in range(1, min(len(words) for words, _ in group)):
        cells = tuple(words[at] for words, _ in group)
        is_constant = len(set(cells)) == 1
        before = columns[-1][1] if len(columns) > 1 and not label else ()
        if is_constant and cells[0] == ",":
            label = []
        elif is_constant and _UNIT.fullmatch(cells[0]) and any(map(read_number, before)):
            columns[-1] = (f"{columns[-1][0]} {cells[0]}".strip(), before)
        elif is_constant and _LABEL.fullmatch(cells[0]) and not _is_state(cells[0]):
            label.append(cells[0].rstrip(":="))
        elif is_constant and _is_state(cells[0]) and not label:
            continue
        else:
            columns.append((" ".join(label), cells))
            label = []
    if len(columns) < 2:
        return None
    heading = _HEADING.split(title.strip(" |"))
    if len(columns) == len(heading) == 2 and not columns[1][0] and all(map(_NAME.fullmatch, heading)):
        columns = [(name, cells) for name, (_, cells) in zip(heading, columns, strict=True)]
    rows = tuple(zip(zip(*(cells for _, cells in columns), strict=True), (line for _, line in group), strict=True))
    table = FoundTable(tuple(name for name, _ in columns), rows[:_MOST_ROWS], title=title)
    return fold_pairs(table) or (table if len(set(names)) == len(names) else None)


def fold_pairs(table: FoundTable) -> FoundTable | None:
    """Of rows about pairs, nearly each of which is there, a row for each part with the best of its pairs: a part that
    is bad with all others is itself bad. Where all parts are alike, the pairs. None where rows are not about pairs.

    >>> pairs = ("n1", "n2", "24"), ("n1", "n3", "24"), ("n1", "n4", "12"), ("n2", "n3", "24"), ("n2", "n4", "12")
    >>> found = fold_pairs(FoundTable(("", "", "GB/s"), tuple((cells, "") for cells in (*pairs, ("n3", "n4", "12")))))
    >>> [cells for cells, _ in found.rows]
    [('n1', '24'), ('n2', '24'), ('n3', '24'), ('n4', '12')]
    """
    first = table.rows[0][0]
    joined = _PAIR.fullmatch(first[0])
    begin = 1 if joined else 2
    numbers = [at for at in range(begin, len(first)) if read_number(first[at])]
    best: dict[str, tuple[float, str, str]] = {}
    pairs: dict[frozenset[str], tuple[str, str, str]] = {}
    for cells, line in table.rows if len(numbers) == 1 else ():
        match = _PAIR.fullmatch(cells[0]) if joined else None
        ends = match.group(1, 2) if match else cells[:2]
        own = read_number(cells[numbers[0]])
        if len({shape(end) for end in ends}) > 1 or not any(map(str.isdigit, ends[0])) or own is None:
            return None
        quantity = find_quantity(normalize(table.names[numbers[0]]), own[1], table.title)
        if quantity is None or quantity.is_count or ends[0].isdecimal() or not ends[0][0].isalpha():
            return None
        for end in ends if ends[0] != ends[1] else ():
            value = -own[0] if quantity.bad == HIGH else own[0]
            best[end] = max(best.get(end, (value, "", line)), (value, cells[numbers[0]], line))
        pairs.setdefault(frozenset(ends), (" ".join(ends), cells[numbers[0]], line))
    whole = len(best) * (len(best) - 1) / 2
    if len(best) < _FEWEST_PAIRED or sum(len(pair) > 1 for pair in pairs) < _MOST_PAIRS * whole:
        return None
    least, *_, most = sorted(abs(value) for value, _, _ in best.values())
    found = pairs.values() if least >= _ALIKE * most else ((name, *own[1:]) for name, own in sorted(best.items()))
    rows = tuple(((name, cell), line) for name, cell, line in found)
    return FoundTable(("", table.names[numbers[0]]), rows[:_MOST_ROWS], title=table.title)


def _is_state(word: str) -> bool:
    return CALM.fullmatch(word) is not None or TROUBLE_WORD.fullmatch(word) is not None


def _read_keys(lines: Sequence[str]) -> Iterator[FoundTable]:
    """Samples whose labels or keys name a part, in a line each or in one line, and lists of numbers."""
    tables: dict[tuple[str, str], dict[str, dict[str, tuple[str, str]]]] = {}
    above = ""
    for line in lines:
        if listed := _LIST.fullmatch(line.strip()):
            label = listed["label"].strip()
            entries = enumerate(re.split(r"[ ,\t]+", listed["values"]))
            yield FoundTable(
                ("", ""), tuple(((f"{label}, number {at}", cell), line) for at, cell in entries), title=label
            )
            continue
        samples = list(_list_samples(line))
        above = above if samples else line
        for title, row, column, value in samples:
            tables.setdefault((shape(row), title or above), {}).setdefault(row, {}).setdefault(column, (value, line))
    for (_, title), found in tables.items():
        columns = list(dict.fromkeys(column for samples in found.values() for column in samples))
        if len(found) >= FEWEST_STRICT and len(columns) < _MOST_WORDS:
            rows = [
                ((name, *(samples.get(column, ("", ""))[0] for column in columns)), next(iter(samples.values()))[1])
                for name, samples in found.items()
            ]
            yield FoundTable(("", *columns), tuple(rows[:_MOST_ROWS]), title=title)


def _list_samples(line: str) -> Iterator[tuple[str, str, str, str]]:
    """Of each: what is before the first one, the part, the quantity, the value."""
    if match := _SAMPLE.match(line.strip()):
        labels = ((pair["key"], pair["value"]) for pair in _LABELS.finditer(match["labels"]))
        name = " ".join(f"{key} {value}" if value.isdecimal() else value for key, value in labels)
        yield "", name, match["key"].removesuffix("_total").replace("_", " "), match["value"]
        return
    found = list(_KEYED.finditer(line))
    if len(several := list(_LISTED.finditer(line))) >= FEWEST_STRICT:
        found = several
    title = line[: found[0].start()].strip(" \t:=") if len(found) > 1 else ""
    for match in found:
        key, value = match.group(1, 2) if match[1] else match.group(3, 4)
        pieces = _PIECES_OF_KEY.split(key.strip("._-"))
        at = next(at for at, piece in enumerate(pieces) if any(map(str.isdecimal, piece)))
        begin = at - 1 if at and pieces[at].isdecimal() else at  # "gpu_2"
        yield title, " ".join(pieces[begin : at + 1]), " ".join(pieces[:begin] + pieces[at + 1 :]), value.rstrip(".")
