"""The ports that a text of a switch is about, and what it states of each: of tables, of lines below a port, of both."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from probes.named_tuple import NamedTuple
from probes.switch_ports import vocabulary as words
from probes.switch_ports.columns import Columns, find_columns, is_rule, read_cells, simplify
from probes.switch_ports.labels import list_pairs
from probes.switch_ports.names import LONGEST_LINE, find_command, find_head, find_port_of_command, find_row, is_port
from probes.text import lazy_pattern

_LINES_ABOVE = 8  # a row: names and dashes
_MOST_FACTS, _MOST_VALUES = 20_000, 100_000
_RECEIVING = lazy_pattern(r"[ \t]*(?:rx|in|inputs?|received?|inbound|ingress)\b", re.IGNORECASE)
_SENDING = lazy_pattern(r"[ \t]*(?:tx|out|outputs?|transmit(?:ted)?|sent|outbound|egress|queued)\b", re.IGNORECASE)
_HEAD_STATE = lazy_pattern(
    r"(?P<admin>[Aa]dministratively (?:DOWN|[Dd]own)|is disabled\b)|(?:is|link is|state ?:?|, ) ?(?P<state>UP|[Uu]p"
    r"|DOWN|[Dd]own|ERROR DOWN|err\w*-?[dD]isabled)\b"
)
_PROTOCOL = lazy_pattern(r"(?i), line protocol is (?P<state>up|down)\b(?! ?\(monitoring)")  # that of the link, here
_FLAGS = lazy_pattern(r"[ \t]*<(?P<flags>UP(?:,[A-Z]{2,16}){1,8})>[ \t]*")  # of the interface below its name
_ADMIN_IS = lazy_pattern(r"(?i)\badmin(?:istrative)? state is (?P<state>up|down|disabled)\b")
_LINK_IS = lazy_pattern(r"[ \t]+[Ll]ink is (?P<state>UP|[Uu]p|DOWN|[Dd]own)\b(?P<rest>.*)")  # below the name


class PortFact(NamedTuple):
    """One fact of one port: what it is (`vocabulary`), as which it is printed, and the line."""

    port: str
    fact: str
    label: str
    value: str
    line: str


def list_port_facts(text: str) -> list[PortFact]:
    """Every fact of a port that is known by the name of its column or label.

    >>> rows = "Port      FCS-Err  Rcv-Err\\n--------  -------  -------\\nEth1/14     42117    42117\\n"
    >>> [fact[:4] for fact in list_port_facts(rows)]
    [('Eth1/14', 'damaged', 'FCS-Err', '42117'), ('Eth1/14', 'damaged_total', 'Rcv-Err', '42117')]
    >>> [fact[:4] for fact in list_port_facts("100GE1/0/3 current state : UP\\n  CRC:   129,  Giants:   0\\n")]
    [('100GE1/0/3', 'state', 'state', 'UP'), ('100GE1/0/3', 'damaged', 'CRC', '129')]
    """
    start = text.lstrip()[:1]
    if start in ("{", "[") and (document := _load(text)) is not None:
        return list(islice(_list_of_document(document), _MOST_FACTS))
    facts: list[PortFact] = []
    lines = text.expandtabs().splitlines()
    columns: Columns | None = None
    first_row = -1  # of the table that is read
    begin = 0  # of the lines in which the names of a table stand
    port, receives = "", None  # type: str, bool | None
    for number, line in enumerate(lines):
        if len(line) > LONGEST_LINE or len(facts) > _MOST_FACTS or not line.strip():
            continue
        if command := find_command(line):
            port, columns, receives = find_port_of_command(command) or "", None, None
        elif head := find_head(line):
            port, columns, receives = head[0], None, None
            facts += _read_head(port, head[1], line) if port else ()
        elif row := find_row(line):
            if first_row != number - 1 or columns is None:
                above = lines[max(0, number - _LINES_ABOVE) : number]
                named = _find_columns(lines[max(begin, number - _LINES_ABOVE) : number])  # not those of a table before
                columns = named or _find_columns([other for other in above if find_row(other) is None]) or columns
            first_row, begin = number, number + 1
            if columns is not None:
                facts += _read_row(row[0], columns, line)
        elif port and not is_rule(line):
            receives = True if _RECEIVING.match(line) else False if _SENDING.match(line) else receives
            facts += _read_pairs(port, line, receives)
            if flags := _FLAGS.fullmatch(line):
                state = "up" if "RUNNING" in flags["flags"] else "down"
                facts.append(PortFact(port, words.STATE, words.STATE, state, line.strip()))
            if admin := _ADMIN_IS.search(line):
                state = "up" if admin["state"].lower() == "up" else "down"
                facts.append(PortFact(port, words.ADMIN, words.ADMIN, state, line.strip()))
            if link := _LINK_IS.fullmatch(line):
                facts += _read_head(port, f" is {link['state']}{link['rest']}", line)
    return facts


def _load(text: str) -> Any:
    """The document; None where the text is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _list_of_document(document: Any) -> Iterator[PortFact]:
    """Facts of JSON: of an object below the name of a port, or that has it in a field.

    >>> list(_list_of_document({"Ethernet7/1": {"fcsErrors": 88}}))[0][:4]
    ('Ethernet7/1', 'damaged', 'fcsErrors', '88')
    >>> list(_list_of_document([{"interface": "Ethernet1/3", "eth_crc": "5"}]))[0][:4]
    ('Ethernet1/3', 'damaged', 'eth_crc', '5')
    """
    stack: list[tuple[str, Any]] = [("", document)]
    looked_at = 0
    while stack and looked_at < _MOST_VALUES:
        port, value = stack.pop()
        looked_at += 1
        if isinstance(value, list):
            stack += [(port, inner) for inner in reversed(value)]
        elif isinstance(value, dict):
            named = (str(value[name]) for name in value if simplify(name) in words.PORT_FIELDS)
            port = next((name for name in named if is_port(name)), port)
            for label, inner in value.items():
                if isinstance(inner, dict | list):
                    stack.append((label if is_port(label) else port, inner))
                elif port and (fact := words.find_meaning(simplify(label))):
                    yield PortFact(port, fact, label, str(inner), f"{port}: {label} {inner}"[:LONGEST_LINE])


def _find_columns(above: Sequence[str]) -> Columns | None:
    """Those of a table of ports."""
    columns = find_columns(above, _is_known)
    return columns if columns and not words.PORT_COLUMNS.isdisjoint(columns.names) else None


def _is_known(name: str) -> bool:
    return name in words.PORT_COLUMNS or words.find_meaning(name) is not None


def _read_head(port: str, rest: str, line: str) -> Iterator[PortFact]:
    if match := _HEAD_STATE.search(rest):
        protocol = _PROTOCOL.search(rest)
        fact = words.ADMIN if match["admin"] else words.STATE
        state = "down" if protocol and protocol["state"].lower() == "down" else match["state"]
        yield PortFact(port, fact, fact, "down" if match["admin"] else state, line.strip())


def _read_row(port: str, columns: Columns, line: str) -> Iterator[PortFact]:
    cells = read_cells(columns, line.replace(port, port.replace(" ", "_"), 1))  # as one word
    queue = next((f" {cell}" for name, _, cell in cells if name in words.QUEUE_COLUMNS), "")
    for name, printed, cell in cells[1:]:
        if fact := words.find_meaning(name):
            printed = f"{columns.printed[0]} {printed}" if fact == words.PAUSES else printed  # may state the way
            yield PortFact(f"{port}{queue}", fact, printed, cell, " ".join(line.split()))


def _read_pairs(port: str, line: str, receives: bool | None) -> Iterator[PortFact]:
    for label, value in list_pairs(line):
        if fact := words.find_meaning(simplify(label), receives):
            yield PortFact(port, fact, label, value, " ".join(line.split()))
