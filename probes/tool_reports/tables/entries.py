"""What a cell, or a value beside its label, is: a number with its unit, one of several, a state; which numbers are far.

The words are those of every form of text, so that a state is the same one in a table, a record and a line.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from probes.named_tuple import NamedTuple
from probes.text import find_median, lazy_pattern

FEWEST, FEWEST_STRICT = 4, 3  # rows: of fewer none is the odd one; of three only where the others are as good as equal
SHARE = 4  # a value is usual where at most one row in so many has another
_SLOW, _HIGH, _SPREAD = 0.75, 1.4, 0.15  # of the median; how far the others may be from it
_FAR = 10  # times the next longest, where the others differ
_STRICT_SLOW, _STRICT_HIGH, _STRICT_SPREAD = 0.6, 2, 0.05  # of three rows

WELL = r"ok|good|up|pass(?:ed)?|healthy|active|yes|normal|ready"
IN_USE = r"linkup|online|live|idle|alloc\w{0,6}|connected"
DOWN = r"down|inactive|polling|init(?:ializ(?:e|ing|ed))?|no[ -]?link"
NOT_USED = rf"{DOWN}|no|off|disabled|offline|missing|absent"
TROUBLE = r"fail(?:ed|ure)?|error|err|degraded|unhealthy|critical|lost|faulty|bad|nok|not[ _-](?:ok|ready)|unreachable"
EXPECTED = r"expect(?:ed)?|want(?:ed)?|target|nominal|required|should(?: be)?|spec"
MOST = rf"{EXPECTED}|max(?:imum)?|capab(?:le|ility)|supported"
CURRENT = r"active|actual|cur(?:rent)?|found|present|measured|negotiated"

ADDRESS = lazy_pattern(r"(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]")
_THOUSANDS = lazy_pattern(r"[-+]?\d{1,3}(?:(?:[ ,_]\d{3}){1,5}|(?:\.\d{3}){2,5})(?![\d.,])")
_VALUE = lazy_pattern(
    r"[xX]?(?P<number>[-+]?\d{1,15}(?:[.,]\d{1,9})?(?:[eE][-+]?\d{1,3})?) ?(?P<unit>[A-Za-z%°/²³]{0,10}\d?)"
    r"(?: \([\w ]{1,12}\))?"
)
_PREFIXES = "KMGT"
_PREFIXED = lazy_pattern(r"[kKMGT]i?(?:[bB](?:it|its)?|T|FLOPS)(?:/s|/sec|ps)?|[MGT]Hz")
_RATIO = lazy_pattern(
    r"x?(?P<value>\d{1,5}) ?(?:/|of|out of) ?x?(?P<whole>\d{1,5})(?: (?:up|ready|online|active|ok|healthy))?"
)
WELL_WORD = lazy_pattern(rf"(?i){WELL}")
CALM = lazy_pattern(rf"(?i){WELL}|{IN_USE}")
TROUBLE_WORD = lazy_pattern(rf"(?i)(?:{TROUBLE}|time-?out|timed out|never|hung)!?:?")


class FoundTable(NamedTuple):
    """The names of its columns, and its rows with the line that each begins in; the line above them."""

    names: tuple[str, ...]
    rows: tuple[tuple[tuple[str, ...], str], ...]
    is_record: bool = False  # whose cells stand beside their label
    title: str = ""


def read_number(cell: str) -> tuple[float, str] | None:
    """A number and its unit, with separators of thousands or a decimal comma; of a width without its "x".

    >>> read_number("11 240"), read_number("22,8 °C"), read_number("1,048,576 B"), read_number("y")
    ((11240.0, ''), (22.8, '°C'), (1048576.0, 'B'), None)
    >>> read_number("x16"), read_number("4X"), read_number("8.0 GT/s (ok)")
    ((16.0, ''), (4.0, ''), (8.0, 'GT/s'))
    """
    bare = cell.strip().strip("'\"")
    if match := _THOUSANDS.match(bare):
        bare = re.sub(r"[ ,_.]", "", match[0]) + bare[match.end() :]
    if not (match := _VALUE.fullmatch(bare)):
        return None
    return float(match["number"].replace(",", ".")), match["unit"].strip("xX")


def align_units(numbers: Sequence[tuple[float, str]]) -> list[tuple[float, str]]:
    """Numbers whose units differ in their prefix alone in one unit; the same where they differ in more, or not at all.

    >>> align_units([(11.0, "GiB/s"), (512.0, "MiB/s")]), align_units([(1.0, "GB/s"), (8.0, "Gb/s")])
    ([(11.0, 'GiB/s'), (0.5, 'GiB/s')], [(1.0, 'GB/s'), (8.0, 'Gb/s')])
    """
    units = {unit for _, unit in numbers}
    if len(units) < 2 or len({unit[1:] for unit in units}) > 1 or not all(map(_PREFIXED.fullmatch, units)):
        return list(numbers)
    largest, base = max(units, key=lambda unit: _PREFIXES.index(unit[0].upper())), 1024 if "i" in min(units) else 1000
    place = _PREFIXES.index(largest[0].upper())
    return [(number * base ** (_PREFIXES.index(unit[0].upper()) - place), largest) for number, unit in numbers]


def is_below(cell: str, other: str, share: float = 1.0) -> bool:
    """Whether both are numbers of one unit, of which the first is less than that share of the other.

    >>> is_below("x8", "x16"), is_below("448 GB/s", "450 GB/s", 0.9), is_below("8 GT/s", "16 GB/s")
    (True, False, False)
    """
    number, most = read_number(cell), read_number(other)
    return number is not None and most is not None and number[1] == most[1] and number[0] < share * most[0]


def is_complete(cell: str) -> bool:
    """Whether a cell states that all of several are there.

    >>> is_complete("8/8"), is_complete("7 / 8")
    (True, False)
    """
    match = _RATIO.fullmatch(cell)
    return match is not None and int(match["value"]) == int(match["whole"])


def is_incomplete(cell: str) -> bool:
    """Whether a cell states that fewer are there.

    >>> is_incomplete("7/8 up"), is_incomplete("x8 of x16"), is_incomplete("8")
    (True, True, False)
    """
    match = _RATIO.fullmatch(cell)
    return match is not None and int(match["value"]) < int(match["whole"])


def list_unpaired(first: Sequence[str], second: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Of two columns that have one another's values in pairs the one row whose pair is another one, and what the
    second column has in the others.

    >>> list(list_unpaired(["0", "1", "1", "1"], ["0-47", "48-95", "0-47", "48-95"]))
    [(2, '48-95')]
    >>> list(list_unpaired(["0", "0", "1", "1"], ["0-47", "48-95", "0-47", "48-95"]))
    []
    """
    pairs = Counter(zip(first, second, strict=True))
    usual: dict[str, str] = {}
    for (one, cell), _ in pairs.most_common():
        if one not in usual and cell not in usual.values():
            usual[one] = cell
    odd = [at for at, (one, cell) in enumerate(zip(first, second, strict=True)) if usual.get(one, "") != cell]
    if len(odd) == 1 < len(usual) and {first[odd[0]]} < set(usual) and second[odd[0]] in usual.values():
        own, other = usual[first[odd[0]]], next(one for one, cell in usual.items() if cell == second[odd[0]])
        if max(pairs[first[odd[0]], own], pairs[other, usual[other]]) > 1:
            yield odd[0], own


def shape(name: str) -> str:
    """What names of parts of one kind have alike.

    >>> shape("rail-12"), shape("node-a:")
    ('rail-0', 'node-0:')
    """
    if name.startswith("/") or ADDRESS.fullmatch(name):
        return "0"
    return re.sub(
        r"\b[0-9a-f]{4}[:_][0-9a-f]{2}[:_][0-9a-f]{2}[._][0-7]|(?<![A-Za-z])[A-Z]?\d+|\d+|(?<=[-_ ])[A-Za-z](?=:?$)",
        "0",
        name,
    )


def list_far(
    numbers: Sequence[float], is_low: bool = False, is_high: bool = False, spread: float = _SPREAD
) -> Iterator[tuple[int, float]]:
    """Which numbers are far from all others, below or above them, and what is usual. `spread`: how far the others may
    be from it.

    >>> list(list_far([371, 370, 118, 372], is_low=True)), list(list_far([0.6, 8211, 1.9, 0.5], is_high=True))
    ([(2, 370.5)], [(1, 0.6)])
    >>> list(list_far([371, 370, 118, 372], is_high=True)), list(list_far([412, 2210, 3.1, 90], is_low=True))
    ([], [])
    """
    usual, is_strict = find_median(numbers), len(numbers) == FEWEST_STRICT
    spread, slow, high_from = (_STRICT_SPREAD, _STRICT_SLOW, _STRICT_HIGH) if is_strict else (spread, _SLOW, _HIGH)
    apart = [at for at, number in enumerate(numbers) if abs(number - usual) > spread * abs(usual)]
    if 0 < len(apart) <= max(len(numbers) / SHARE, is_strict):
        low = {at for at in apart if is_low and numbers[at] < slow * usual}
        high = {at for at in apart if is_high and numbers[at] > high_from * usual > 0}
        yield from ((at, usual) for at in apart if at in low | high)
    elif is_high and len(apart) > 1:
        most, second = sorted(numbers)[-1:-3:-1]
        if most > _FAR * second > 0:
            yield numbers.index(most), find_median(number for number in numbers if number != most)
