"""Lines of labels and values, as switches print them below the name of a port.

`CRC:  129300,   Giants:  0`, `7713 CRC  0 no buffer`, `FEC Uncorrected Errors   2291`, `SymbolErrors:.....12`,
`|      Shutdown|     12|`, `12.    CRC = 7`, `In_Bytes   9281   In_CRC_ERROR   7`,
`undersize 0 CRC 7`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from probes.switch_ports.names import LONGEST_LINE
from probes.text import lazy_pattern

_COUNTED = lazy_pattern(
    r"(?<![\w.:/-])(?P<value>\d{1,3}(?:,\d{3}){1,6}|\d{1,20}) {1,4}(?P<label>[A-Za-z][A-Za-z_-]*(?: [A-Za-z_-]+){0,5}?)"
    r"(?=[ \t]*[,;]|[ \t]{2,}|[ \t]*$| \d)"
)
_LABELLED = lazy_pattern(
    r"(?P<label>[A-Za-z][\w()/%-]*(?: {1,2}[\w()/%-]+){0,6}?)[ \t]*[:|=][ \t]*(?P<value>[^\s,:|=][^,|]{0,120}?)"
    r"(?=[ \t]*[,|]|[ \t]{2,}[A-Za-z(]|[ \t]*$)"
)
_SPACED = lazy_pattern(
    r"[ \t]*(?P<label>[A-Za-z][\w()/-]*(?: [\w()/-]+){0,6}?)[ \t]{2,80}"
    r"(?:\"(?P<text>[^\"]{1,120})\"|(?P<value>[\w.+-]{1,40}(?: [\w.+-]{1,40}){0,6})\b).*"
)
_GAP = re.compile(r"[ \t]{2,}")
_LABEL = lazy_pattern(r"[A-Za-z][\w()/ -]{1,60}")
_COUNT = lazy_pattern(r"\d{1,3}(?:,\d{3}){1,6}|\d{1,20}")
_TWO_PAIRS = 4
_LABEL_FIRST = lazy_pattern(r"[ \t]*(?:[A-Za-z][A-Za-z-]*(?: [A-Za-z-]+){0,3} \d{1,20}(?: |[ \t]*$)){1,8}")
_LABEL_COUNT = lazy_pattern(r"(?P<label>[A-Za-z][A-Za-z -]*[A-Za-z]) (?P<value>\d{1,20})")
_DOTTED = lazy_pattern(r"[ \t]*(?P<label>[A-Za-z][\w -]{2,60}?):?\.{3,60} ?(?P<value>\S.{0,80}?)[ \t]*")


def list_pairs(line: str) -> Iterator[tuple[str, str]]:
    """Labels and values of a line.

    >>> list(list_pairs("    CRC:                  129300,   Giants:                0"))
    [('CRC', '129300'), ('Giants', '0')]
    >>> list(list_pairs("    0 runts  0 giants  7713 CRC  0 no buffer"))[2]
    ('CRC', '7713')
    >>> list(list_pairs("    FEC Uncorrected Errors               2291"))
    [('FEC Uncorrected Errors', '2291')]
    >>> list(list_pairs("  In_Unicasts       37908088321          In_CRC_ERROR       12"))
    [('In_Unicasts', '37908088321'), ('In_CRC_ERROR', '12')]
    >>> list(list_pairs("      undersize 0 CRC 21877 input discard 0"))
    [('undersize', '0'), ('CRC', '21877'), ('input discard', '0')]
    """
    line = line[:LONGEST_LINE]
    if dotted := _DOTTED.fullmatch(line):
        yield dotted["label"], dotted["value"]
        return
    cells = _GAP.split(line.strip())
    is_of_pairs = len(cells) >= _TWO_PAIRS and len(cells) % 2 == 0
    if is_of_pairs and all(map(_LABEL.fullmatch, cells[::2])) and all(map(_COUNT.fullmatch, cells[1::2])):
        yield from zip(cells[::2], cells[1::2], strict=True)
        return
    if _LABEL_FIRST.fullmatch(line):
        yield from ((match["label"], match["value"]) for match in _LABEL_COUNT.finditer(line))
        return
    labelled = [(match["label"], match["value"]) for match in _LABELLED.finditer(line)]
    yield from labelled
    counted = [(match["label"], match["value"]) for match in _COUNTED.finditer(line)]
    yield from counted
    if not labelled and not counted and (spaced := _SPACED.fullmatch(line)):
        yield spaced["label"], spaced["text"] or spaced["value"]
