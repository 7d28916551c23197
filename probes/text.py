"""What parsers of texts share: their one error, patterns, and the colours that they take off."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, AnyStr, TypeVar, cast

_NOT_PLAIN = int(re.IGNORECASE | re.VERBOSE)  # a number: `&` of an enumeration is a call for each pattern
_Row = TypeVar("_Row")
_Found = TypeVar("_Found")


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
            is_plain = isinstance(pattern, str) and not flags & _NOT_PLAIN
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


_SPECIAL = frozenset("][\\(|)?*+{.^$")
_REPEATS = frozenset("?*{")
# Plain text, an escape, a set, a repeat, what opens a group, any other character
_PIECE = r"[^][\\(|)?*+{.^$]+|\\(?:x..|u....|.)|\[\^?\]?(?:[^]\\]|\\.)*\]|\{\d*,?\d*\}|\(\?[^:>=!)]*[:>=!]?|."


@cache
def _pieces() -> Callable[[str], list[str]]:
    return re.compile(_PIECE, re.DOTALL).findall


def find_required(pattern: str) -> tuple[str, ...]:
    """Plain texts of which one is in whatever fits a pattern; none where that is not certain.

    >>> find_required(r"^[ \\t]*Link \\d+: (?:Replay|CRC) "), find_required("ab?c|(?:de|f+)g"), find_required("(?i)ab")
    (('Link ',), ('a', 'de', 'f'), ())
    """
    for opening in pattern.split("(?")[1:]:  # upper case, blanks that count for nothing, a reference, a condition
        if opening.lstrip("aLmsu").startswith(("i", "x")) or opening.startswith(("P=", "(", "#", ">")):
            return ()
    # Of the group that is being read: what each branch before requires, the longest that the last one does, plain text
    # that goes on; and the same of those around it
    branches, longest, run, is_assertion = list[_Required](), _NOTHING, "", False
    around = list[tuple[list[_Required], _Required, bool]]()
    before: _Required | None = None  # the longest without the group that ended just now
    for piece in _pieces()(pattern):
        first = piece[0]
        if first not in _SPECIAL:
            run += piece
            before = None
            continue
        if first == "\\" and len(piece) == 2 and not (piece[1].isalnum() or piece[1] in "_ \t\n"):
            run += piece[1]
            before = None
            continue
        if first in _REPEATS and piece != "{":  # what it repeats may be missing
            if before is not None:
                longest = before
            run = run[:-1]
        if len(run) > longest[0]:
            longest = len(run), (run,)
        run, before = "", None
        if first == "|":
            branches.append(longest)
            longest = _NOTHING
        elif first == "(":
            around.append((branches, longest, is_assertion))
            branches, longest, is_assertion = [], _NOTHING, "=" in piece or "!" in piece
        elif first == ")":
            required = _NOTHING if is_assertion else _join_branches([*branches, longest])
            branches, before, is_assertion = around.pop()
            longest = required if required[0] > before[0] else before
    if len(run) > longest[0]:
        longest = len(run), (run,)
    return _join_branches([*branches, longest])[1]


_Required = tuple[int, tuple[str, ...]]  # the length of the shortest, and the texts
_NOTHING: _Required = (0, ())


def _join_branches(branches: list[_Required]) -> _Required:
    """What is required by a group of these; nothing where one of them requires nothing."""
    shortest = min(branches)[0]
    return (shortest, tuple(plain for _, texts in branches for plain in texts)) if shortest else _NOTHING


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
PCI_ADDRESS_PARTS = r"([0-9a-f]{4,8}):([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])"
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
# Names of parts, as any tool, driver or program writes them; without groups, to stand within the patterns of readers
RDMA_DEVICE = (
    r"(?:mlx[45]_(?:[a-z]{1,8}_?)?\d{1,4}|bnxt_re(?:_bond)?\d{1,3}|(?:irdma|qedr|rxe|siw|cxi)\d{1,3}"
    r"|(?:efa|erdma|hns|mana|ionic|hfi1)_\d{1,3}|(?:roce[op]|rdmap|ibp)\d\w{1,16})"
)
INTERFACE = r"(?:ib\d{1,2}|ibs\d\w{0,8}|en[ops]\d\w{1,16}|enP\d\w{2,16}|(?:eth|bond|hsn)\d{1,3}|roce\d{1,2})"
SWITCH_PORT = (
    r"(?:(?:[Ee]thernet-?|Eth|swp|HundredGigE|FourHundredGigE|\d{2,3}GE)\d[\d/s]{0,10}(?::\d{1,2})?"
    r"|(?:xe|et)-\d{1,2}/\d{1,2}/\d{1,3}|[Pp]ort[ -]?[Cc]hannel ?\d{1,4})"
)


MOST_CHARACTERS = 4 << 20  # of what a tool prints


class ParseError(ValueError):
    """The text is not what this parser reads; the message states what was expected and what was found."""


def require(found: _Found | None, why: str) -> _Found:
    """What a text must have, as it is. Raises ParseError with the reason where it is nothing, or not so.

    >>> require(["GPU 0"], "no GPU")
    ['GPU 0']
    """
    if not found:
        raise ParseError(why)
    return found


def check_length(text: str, most: int = MOST_CHARACTERS) -> str:
    """The text itself. Raises ParseError for one of more than `most` characters: its tool prints no such text."""
    if len(text) > most:
        raise ParseError(f"longer than {most} characters")
    return text


LONGEST_LINE = 1000  # characters; what tools print about one part is shorter


def short_lines(text: str, longest: int = LONGEST_LINE, most: int = MOST_CHARACTERS) -> list[str]:
    """Its lines that are shorter than `longest`: patterns are tried on no other. Raises ParseError.

    >>> short_lines("up\\n" + "x" * 9, longest=4)
    ['up']
    """
    return [line for line in check_length(text, most).splitlines() if len(line) < longest]


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
    return re.fullmatch(PCI_ADDRESS_PARTS, name) is not None


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
