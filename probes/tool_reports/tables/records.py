"""Records of hosts or devices that a text has one after the other, as a table with a row for each.

JSON (a list, an object by name, a line for each), blocks of labels and values that begin alike (CSM, YAML), a name
above indented values (`pbsnodes`), lines of `key=value`. What a value means is not judged here.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from probes.cut_json import load_json
from probes.text import ParseError, lazy_pattern, short_lines

_LIMIT_VALUE, _MOST_FIELDS, _MOST_RECORDS = 80, 40, 2000
_FEWEST, _DEEPEST = 3, 3
_NAME = "host"  # the column of a name without a label
_BELOW = "entry"  # the same of what is not at the top
_FIELD = lazy_pattern(
    r"[ \t>]{0,16}(?:- )?[\"']?(?P<label>[A-Za-z][\w .()/-]{0,40}?)[\"']?[ \t]{0,20}[:=][ \t]{1,20}(?P<value>\S.*)"
)
_NAME_LINE = lazy_pattern(r"(?P<name>[A-Za-z][\w.-]{1,62}):?[ \t]*")
_PAIR = lazy_pattern(
    r"(?P<label>[A-Za-z_][\w.]{0,40})=(?P<value>\"[^\"\n]{0,80}\"|[^\s,;]{1,80})"
    r"|<(?P<element>[A-Za-z][\w.-]{0,40})>(?P<text>[^<>\n]{1,80})</"  # of XML
)
_NUMBERED = lazy_pattern(r"(?i)(?:record|item|entry|row)[_-]?\d{1,6}")  # no name
_HEADS = lazy_pattern(r"(?i)(?:gpu|npu|hpu|card|device|node|host|hca_id|nic|port|slot)(?: (?:id|index))?")
_LEAST_SHARE = 0.6  # of the fields that most records have


def list_record_tables(text: str) -> Iterator[tuple[list[str], list[list[str]]]]:
    """Headings and rows of each form in which a text has records.

    >>> list(list_record_tables("n: a\\nup: 1\\n---\\nn: b\\nup: 1\\n---\\nn: c\\nup: 0\\n"))
    [(['n', 'up'], [['a', '1'], ['b', '1'], ['c', '0']])]
    >>> list(list_record_tables('{"host": "a", "gpus": 8}\\n{"host": "b", "gpus": 8}\\n{"host": "c", "gpus": 7}\\n'))
    [(['host', 'gpus'], [['a', '8'], ['b', '8'], ['c', '7']])]
    >>> list(list_record_tables("n1\\n    state = free\\nn2\\n    state = down\\nn3\\n    state = free\\n"))
    [(['host', 'state'], [['n1', 'free'], ['n2', 'down'], ['n3', 'free']])]
    """
    try:
        lines = short_lines(text)
    except ParseError:
        return
    for read in (_read_json, _read_below_names, _read_blocks, _read_pairs):
        records = read(text, lines)[:_MOST_RECORDS]
        if table := _tabulate(records):
            yield table
            return


def _tabulate(records: Sequence[dict[str, str]]) -> tuple[list[str], list[list[str]]] | None:
    """The table of records that have most fields alike."""
    names = list(dict.fromkeys(name for record in records for name in record))[:_MOST_FIELDS]
    names.sort(key=lambda name: _HEADS.fullmatch(name) is None)  # what names the record comes first
    usual = [name for name in names if 2 * sum(name in record for record in records) > len(records)]
    alike = [record for record in records if sum(name in record for name in usual) >= _LEAST_SHARE * len(usual)]
    if len(alike) < _FEWEST or len(usual) < 2:
        return None
    return names, [[record.get(name, "") for name in names] for record in alike]


def _read_json(text: str, lines: Sequence[str]) -> list[dict[str, str]]:
    start = min((at for at in (text.find("["), text.find("{")) if at >= 0), default=-1)
    if start < 0 or text[:start].count("\n") > 2:
        return []
    try:
        document, _ = load_json(text[start:])
    except ParseError:
        return []
    if isinstance(document, dict):
        several = [row for line in lines if (row := _load_line(line)) is not None]
        document = several if len(several) >= _FEWEST else _find_rows(document, "", 0)
    return [_flatten(row) for row in document if isinstance(row, dict)] if isinstance(document, list) else []


def _load_line(line: str) -> dict[str, Any] | None:
    try:
        row = json.loads(line) if line.startswith("{") else None
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _find_rows(document: dict[str, Any], key: str, depth: int) -> list[Any]:
    """The first list of objects, objects by name, or numbers by names that differ in their digits alone."""
    named = [(name, value) for name, value in document.items() if isinstance(value, dict)]
    if len(named) >= _FEWEST and not any(_is_nested(value) for _, value in named):
        return [{_BELOW if depth else _NAME: name, **value} for name, value in named]
    numbers = [(name, value) for name, value in document.items() if isinstance(value, int | float)]
    shapes = {re.sub(r"\d+", "0", name) for name, _ in numbers}
    if len(numbers) >= _FEWEST and len(shapes) == 1 and any(map(str.isdigit, numbers[0][0])):
        return [{_BELOW: name, key or "value": value} for name, value in numbers]
    below = ((name, value) for name, value in document.items() if depth < _DEEPEST)
    for name, value in below:
        if _is_list(value):
            return list(value)
        if isinstance(value, dict) and (rows := _find_rows(value, name, depth + 1)):
            return rows
    return []


def _is_nested(value: dict[str, Any]) -> bool:
    below = (inner for inner in value.values() if isinstance(inner, dict))
    return any(isinstance(lowest, dict) for inner in below for lowest in inner.values())


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and len(value) >= _FEWEST and all(isinstance(row, dict) for row in value)


def _flatten(row: dict[str, Any]) -> dict[str, str]:
    """Numbers and texts of an object, and of those in it by both names."""
    flat: dict[str, str] = {}
    for name, value in row.items():
        inner = value.items() if isinstance(value, dict) else ((None, value),)
        for below, own in inner:
            if isinstance(own, str | int | float):
                flat[f"{name} {below}" if below else str(name)] = str(own)[:_LIMIT_VALUE]
    return flat


def _read_below_names(text: str, lines: Sequence[str]) -> list[dict[str, str]]:
    """Fields with a margin below a name without one."""
    records: list[dict[str, str]] = []
    for at, line in enumerate(lines[:-1]):
        if (match := _NAME_LINE.fullmatch(line)) and lines[at + 1].startswith((" ", "\t")):
            records.append({} if _NUMBERED.fullmatch(match["name"]) else {_NAME: match["name"]})
        elif records and line.startswith((" ", "\t")):
            _add(records[-1], line)
    if lines and records and lines[-1].startswith((" ", "\t")):
        _add(records[-1], lines[-1])
    return [record for record in records if len(record) > 1]


def _add(record: dict[str, str], line: str) -> None:
    if field := _FIELD.fullmatch(line):
        record.setdefault(field["label"].strip(), field["value"].strip(" \t,\"'")[:_LIMIT_VALUE])


def _read_blocks(text: str, lines: Sequence[str]) -> list[dict[str, str]]:
    """Fields one below the other; the first one that comes again begins the next record."""
    fields = [match for line in lines if (match := _FIELD.fullmatch(line))]
    labels = [match["label"].strip() for match in fields]
    times = Counter(labels)
    several = [label for label in times if times[label] >= _FEWEST]
    first = next((label for label in several if _HEADS.fullmatch(label)), next(iter(several), None))
    records: list[dict[str, str]] = []
    for label, field in zip(labels, fields, strict=True):
        is_cut = not records and label in several and first is not None and _HEADS.fullmatch(first) is not None
        if label == first or is_cut:  # the first one without its name
            records.append({})
        if records:
            records[-1].setdefault(label, field["value"].strip(" \t,\"'")[:_LIMIT_VALUE])
    return records


def _read_pairs(text: str, lines: Sequence[str]) -> list[dict[str, str]]:
    """Lines of `key=value`."""
    rows = (
        [(match["label"] or match["element"], (match["value"] or match["text"]).strip('"')) for match in matches]
        for matches in map(_PAIR.finditer, lines)
    )
    return [dict(row) for row in rows if len(row) > 1]
