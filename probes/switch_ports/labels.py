"""Lines of labels and values, as switches print them below the name of a port.

`CRC:  129300,   Giants:  0`, `7713 CRC  0 no buffer`, `FEC Uncorrected Errors   2291`, `SymbolErrors:.....12`,
`|      Shutdown|     12|`, `12.    CRC = 7`.
"""

from __future__ import annotations

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
    r"(?:\"(?P<text>[^\"]{1,120})\"|(?P<value>[\w.+-]{1,40})\b).*"
)
_DOTTED = lazy_pattern(r"[ \t]*(?P<label>[A-Za-z][\w -]{2,60}?):?\.{3,60} ?(?P<value>\S.{0,80}?)[ \t]*")


def list_pairs(line: str) -> Iterator[tuple[str, str]]:
    """Labels and values of a line.

    >>> list(list_pairs("    CRC:                  129300,   Giants:                0"))
    [('CRC', '129300'), ('Giants', '0')]
    >>> list(list_pairs("    0 runts  0 giants  7713 CRC  0 no buffer"))[2]
    ('CRC', '7713')
    >>> list(list_pairs("    FEC Uncorrected Errors               2291"))
    [('FEC Uncorrected Errors', '2291')]
    """
    line = line[:LONGEST_LINE]
    if dotted := _DOTTED.fullmatch(line):
        yield dotted["label"], dotted["value"]
        return
    labelled = [(match["label"], match["value"]) for match in _LABELLED.finditer(line)]
    yield from labelled
    counted = [(match["label"], match["value"]) for match in _COUNTED.finditer(line)]
    yield from counted
    if not labelled and not counted and (spaced := _SPACED.fullmatch(line)):
        yield spaced["label"], spaced["text"] or spaced["value"]
