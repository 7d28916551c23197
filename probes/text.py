"""What parsers of texts share: their one error, patterns, and the colours that they take off."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, AnyStr, TypeVar, cast

_Row = TypeVar("_Row")


class LazyPattern:
    """A pattern that is compiled when a text first has what it requires. Its methods are then its own."""

    def __init__(self, pattern: Any, flags: int) -> None:
        self.arguments = pattern, flags
        self._required: Any = None  # () where no plain text is in all that fits

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._compile(name)

    def search(self, text: Any, *span: int) -> Any:
        """As re.Pattern.search."""
        return self._compile("search")(text, *span) if self._may_fit(text) else None

    def match(self, text: Any, *span: int) -> Any:
        """As re.Pattern.match."""
        return self._compile("match")(text, *span) if self._may_fit(text) else None

    def fullmatch(self, text: Any, *span: int) -> Any:
        """As re.Pattern.fullmatch."""
        return self._compile("fullmatch")(text, *span) if self._may_fit(text) else None

    def findall(self, text: Any) -> list[Any]:
        """As re.Pattern.findall."""
        found: list[Any] = self._compile("findall")(text) if self._may_fit(text) else []
        return found

    def finditer(self, text: Any) -> Iterator[Any]:
        """As re.Pattern.finditer."""
        return iter(self._compile("finditer")(text) if self._may_fit(text) else ())

    def sub(self, replacement: Any, text: Any, count: int = 0) -> Any:
        """As re.Pattern.sub."""
        return self._compile("sub")(replacement, text, count) if self._may_fit(text) else text

    def _may_fit(self, text: Any) -> bool:
        if self._required is None:
            pattern, flags = self.arguments
            is_plain = isinstance(pattern, str) and not flags & (re.IGNORECASE | re.VERBOSE)
            self._required = find_required(pattern) if is_plain else ()
        return not self._required or any(plain in text for plain in self._required)

    def _compile(self, name: str) -> Any:
        value = getattr(re.compile(*self.arguments), name)
        setattr(self, name, value)
        return value


class PatternChoice:
    """Patterns as one, of which the first that fits counts. Those are compiled that a text may fit: some tables of
    patterns take 5 ms."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._waiting = dict(enumerate(patterns))
        self.arguments = "|".join(self._waiting.values()), 0
        self._required: dict[int, tuple[str, ...]] = {}
        self._chosen: dict[int, str] = {}
        self._compiled = re.compile("(?!)")

    def choose(self, text: str) -> Callable[[str], re.Match[str] | None]:
        """What matches each line of this text as all of them would."""
        if not self._required:
            self._required = {number: find_required(pattern) for number, pattern in self._waiting.items()}
        more = [
            number
            for number in self._waiting
            if not (required := self._required[number]) or any(plain in text for plain in required)
        ]
        if more:
            self._chosen.update({number: self._waiting.pop(number) for number in more})
            self._compiled = re.compile("|".join(self._chosen[number] for number in sorted(self._chosen)))
        return self._compiled.match


class _Group:
    """A group of a pattern that is being read: what its branches require, and what the last one does so far."""

    def __init__(self, opening: str) -> None:
        self.is_assertion = "=" in opening or "!" in opening
        self.branches: list[tuple[str, ...]] = []
        self.choices: list[tuple[str, ...]] = []  # one text of each is in what fits
        self.run = ""

    def end_run(self) -> None:
        if self.run:
            self.choices.append((self.run,))
        self.run = ""

    def end_branch(self) -> None:
        self.end_run()
        self.branches.append(max(self.choices, key=lambda choice: min(map(len, choice)), default=()))
        self.choices = []

    def close(self) -> tuple[str, ...]:
        """One of these texts is in whatever fits the group; none where a branch requires none."""
        self.end_branch()
        is_certain = all(self.branches) and not self.is_assertion
        return tuple(plain for branch in self.branches for plain in branch) if is_certain else ()


_SPECIAL = frozenset("][\\(|)?*+{.^$")
_LONG_ESCAPES = {"x": 4, "u": 6}  # characters of \xff and \u00ff; others have two


def split_pattern(pattern: str) -> Iterator[str]:
    r"""The pieces of a pattern: plain text, an escape, a set, what opens a group, a repeat, any other character.

    By hand: a pattern for it takes longer to compile than all patterns that a live scan looks into.

    >>> list(split_pattern(r"ab(?P<x>\d{1,2}|[^]\]])?\.$"))
    ['ab', '(?P<x>', '\\d', '{1,2}', '|', '[^]\\]]', ')', '?', '\\.', '$']
    """
    start, size = 0, len(pattern)
    while start < size:
        end, first = start + 1, pattern[start]
        if first not in _SPECIAL:
            while end < size and pattern[end] not in _SPECIAL:
                end += 1
        elif first == "\\":
            end = start + _LONG_ESCAPES.get(pattern[end], 2)
        elif first == "[":
            end += pattern.startswith("^", end)
            end += pattern.startswith("]", end)
            while pattern[end] != "]":
                end += 2 if pattern[end] == "\\" else 1
            end += 1
        elif first == "{":
            numbers = pattern[end:].partition("}")[0]
            end += len(numbers) + 1 if numbers.replace(",", "", 1).isdecimal() else 0
        elif first == "(" and pattern.startswith("?", end):
            while pattern[end] not in ":>=!)":
                end += 1
            end += pattern[end] != ")"  # of flags for the whole pattern the bracket closes the group
        yield pattern[start:end]
        start = end


def find_required(pattern: str) -> tuple[str, ...]:
    """Plain texts of which one is in whatever fits a pattern; none where that is not certain.

    >>> find_required(r"^[ \\t]*Link \\d+: (?:Replay|CRC) "), find_required("ab?c|(?:de|f+)g"), find_required("(?i)ab")
    (('Link ',), ('a', 'de', 'f'), ())
    """
    for opening in pattern.split("(?")[1:]:  # upper case, blanks that count for nothing, a reference, a condition
        if opening.lstrip("aLmsu").startswith(("i", "x")) or opening.startswith(("P=", "(", "#", ">")):
            return ()
    open_groups, group, closed = list[_Group](), _Group(""), tuple[str, ...]()
    for piece in split_pattern(pattern):
        first = piece[0]
        if first in "?*" or (first == "{" and len(piece) > 1):  # what it repeats may be missing
            group.run = group.run[:-1]
            if closed:
                group.choices.pop()
        closed = ()
        if first not in _SPECIAL:
            group.run += piece
        elif first == "\\" and len(piece) == 2 and not (piece[1].isalnum() or piece[1] in "_ \t\n"):
            group.run += piece[1]
        else:
            group.end_run()
            if first == "|":
                group.end_branch()
            elif first == ")":
                closed = group.close()
                group = open_groups.pop()
                group.choices += [closed] if closed else []
            elif first == "(":
                open_groups.append(group)
                group = _Group(piece)
    return group.close()


def find_median(values: Iterable[float]) -> float:
    """The middle of numbers of a text, of which there is at least one; `statistics` costs each scan 4 ms to import.

    >>> find_median([3, 1, 2]), find_median([4.0, 1.0])
    (2, 2.5)
    """
    ranked = sorted(values)
    half = len(ranked) // 2
    return ranked[half] if len(ranked) % 2 else (ranked[half - 1] + ranked[half]) / 2


def lazy_pattern(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Like re.compile, for what few sources hold: a scan imports a hundred patterns, and uses a fifth of them."""
    return cast("re.Pattern[AnyStr]", LazyPattern(pattern, flags))


def lazy_rows(rows: Iterable[tuple[_Row, str]], flags: int = 0) -> tuple[tuple[_Row, re.Pattern[str]], ...]:
    """Rows that end with a pattern, which is compiled when it is first needed."""
    return tuple((row, lazy_pattern(pattern, flags)) for row, pattern in rows)


_BYTE_ORDER_MARKS = (  # the longer first: that of UTF-32 begins as that of UTF-16 does
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


# What pages, chats, mails and keyboards of other scripts write, and no tool prints: other blanks, marks without a width
# (of the direction, of a place to break), ends of lines, quotation marks, hyphens, full-width forms
_OF_PAGES = {
    **dict.fromkeys((0x00A0, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000), " "),
    **dict.fromkeys(
        (0x0000, 0x00AD, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x206A), 0xFEFF), None
    ),
    **dict.fromkeys((0x0085, 0x2028, 0x2029), "\n"),
    **dict.fromkeys((0x2018, 0x2019), "'"),
    **dict.fromkeys((0x201C, 0x201D), '"'),
    **dict.fromkeys((0x2010, 0x2011, 0x2013, 0x2212), "-"),
    **{full_width: chr(full_width - 0xFEE0) for full_width in range(0xFF01, 0xFF5F)},
    0xFF1A: ": ",  # with the blank that is a part of it
    0xFF0C: ", ",
}
_OF_PAGES_PATTERN = lazy_pattern(f"[{''.join(map(chr, _OF_PAGES))}]")
_LOOKED_AT = 512  # bytes, for the encoding


def to_plain_characters(text: str) -> str:
    """The text as the tools print it, without what a page or a keyboard made of some characters.

    >>> to_plain_characters("\u200fState:\u00a0\u200bDown"), to_plain_characters("State\uff1aDown, \uff14\uff10")
    ('State: Down', 'State: Down, 40')
    >>> to_plain_characters("CA \u2018mlx5_0\u2019")
    "CA 'mlx5_0'"
    """
    is_plain = text.isascii() and "\0" not in text
    return text if is_plain or not _OF_PAGES_PATTERN.search(text) else text.translate(_OF_PAGES)


def decode_saved(content: bytes) -> str:
    """Text that someone saved: UTF-8, or what its byte order mark or its zeros state (PowerShell and editors of Windows
    write UTF-16), with ends of lines of any system.

    >>> decode_saved(b"\\xff\\xfeG\\x00P\\x00U\\x00"), decode_saved(b"\\xef\\xbb\\xbfGPU"), decode_saved(b"G\\x00")
    ('GPU', 'GPU', 'G')
    >>> decode_saved(b"Port: 1\\rState: Down\\r"), decode_saved(b"Down\\r\\r\\n"), decode_saved(b"Up\\n\\x00\\x00")
    ('Port: 1\\nState: Down\\n', 'Down\\r\\n', 'Up\\n')
    """
    mark, encoding = next((row for row in _BYTE_ORDER_MARKS if content.startswith(row[0])), (b"", None))
    text = content[len(mark) :].decode(encoding or _find_encoding(content[:_LOOKED_AT]), "replace")
    if "\r" in text:
        text = text.replace("\r\r\n", "\r\n") if "\n" in text else text.replace("\r", "\n")  # of a terminal's log
    return to_plain_characters(text)


def _find_encoding(start: bytes) -> str:
    """UTF-16 has a zero beside each character of ASCII, on one side."""
    even, odd = start[::2].count(0), start[1::2].count(0)
    if (even and odd) or 4 * max(even, odd) <= len(start):
        return "utf-8"
    return "utf-16-le" if odd else "utf-16-be"


ESCAPES = lazy_pattern(r"\x1b\[[0-9;]{0,16}m")  # colours, as tools put them into a terminal's text


PCI_ADDRESS = r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"  # as the kernel prints it
_PCI_ADDRESS = lazy_pattern(PCI_ADDRESS)
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
# Names of parts, as any tool, driver or program writes them; without groups, to stand within the patterns of readers
RDMA_DEVICE = (
    r"(?:mlx[45]_(?:[a-z]{1,8}_?)?\d{1,4}|bnxt_re(?:_bond)?\d{1,3}|(?:irdma|qedr|rxe|siw|cxi)\d{1,3}"
    r"|(?:efa|erdma|hns|mana|ionic|hfi1)_\d{1,3}|(?:roce[op]|rdmap|ibp)\d\w{1,16})"
)
INTERFACE = r"(?:ib\d{1,2}|ibs\d\w{0,8}|en[ops]\d\w{1,16}|enP\d\w{2,16}|(?:eth|bond|hsn)\d{1,3}|roce\d{1,2})"
SWITCH_PORT = (
    r"(?:(?:Ethernet|Eth|swp|HundredGigE|FourHundredGigE|\d{2,3}GE)\d[\d/s]{0,10}(?::\d{1,2})?"
    r"|(?:xe|et)-\d{1,2}/\d{1,2}/\d{1,3}|[Pp]ort[ -]?[Cc]hannel ?\d{1,4})"
)


MOST_CHARACTERS = 4 << 20  # of what a tool prints


class ParseError(ValueError):
    """The text is not what this parser reads; the message states what was expected and what was found."""


def check_length(text: str, most: int = MOST_CHARACTERS) -> str:
    """The text itself. Raises ParseError for one of more than `most` characters: its tool prints no such text."""
    if len(text) > most:
        raise ParseError(f"longer than {most} characters")
    return text


def text_or_none(text: str) -> str | None:
    """A text as it is; an empty one is none."""
    return text or None


def first_line(text: str) -> str:
    """The first line that is not blank, up to 120 characters of it: it names a text of another kind in an error.

    >>> first_line("\\n  usage: tool\\n"), first_line("")
    ('usage: tool', 'nothing')
    """
    return next((line.strip() for line in text.splitlines() if line.strip()), "nothing")[:120]


def is_pci_address(name: str) -> bool:
    """Whether a name is a PCI function's, as the kernel prints it.

    >>> is_pci_address("0000:19:00.0"), is_pci_address("0000:19:00.0:pcie001")
    (True, False)
    """
    return _PCI_ADDRESS.fullmatch(name) is not None


def parse_digits(text: str | None, most: int) -> int | None:
    """A whole number of at most so many digits; None for anything else.

    >>> parse_digits("16", 2), parse_digits("160", 2), parse_digits("-1", 2), parse_digits("", 2), parse_digits(None, 2)
    (16, None, None, None, None)
    """
    return int(text) if text and text.isascii() and text.isdigit() and len(text) <= most else None


def natural(name: str) -> tuple[tuple[int, str], ...]:
    """A key that sorts numbers as numbers.

    >>> sorted(["ens10", "ens9", "bond0"], key=natural)
    ['bond0', 'ens9', 'ens10']
    """
    parts = re.findall(r"[0-9]{1,18}|[^0-9]+", name)
    key = [(int(part), "") if part.isascii() and part.isdigit() else (-1, part) for part in parts]
    return (*key, (-2, name))  # "ens01" and "ens1" differ
