"""Host lists as Slurm and ClusterShell write them, gpu[001-128,130], and nodes by the names that people call them.

Folded over every run of digits that varies: r[01-10]n[01-18] where each rack has the same nodes. Zeros in front of a
number are part of the name: n1 and n01 are two hosts. A letter of a name that a tool or a shell would take for more
than a letter is written as a URL has it: gpu%5B001-128%5D is one host, whose name has brackets. With --node-key
machine-id or serial nodes of a dataset are numbers, and lists of people and schedulers have host names.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from urllib.parse import unquote

from agent.model.node import shorten_host

LIMIT = 1_000_000  # names in one list: more is a mistake, or meant to hurt

_NUMBER = re.compile(r"(?<![0-9])([0-9]{1,15})(?![0-9])")  # a longer run is no number of a host
_RANGE = re.compile(r"([0-9]{1,15})(?:-([0-9]{1,15})(?:/([0-9]{1,9}))?)?")
_UNQUOTED = re.compile(r"[^\w.:/+-]")
_AN_OPTION = "-"  # what a name begins with that a tool takes for an option, and pdsh for a host to leave out
_ODD = frozenset("[]@!&^*?")  # what ClusterShell reads as something else than a name


class BadHostlist(ValueError):
    """What was given is no host list; the message states where."""


def is_plain(name: str) -> bool:
    """Whether a name is one in any tool's list of hosts, without quoting.

    >>> [is_plain(name) for name in ("gpu001.example", "gpu[001-128]", "east/gpu001", "gpu%41", "-gpu1")]
    [True, False, False, False, False]
    """
    return "/" not in name and not name.startswith(_AN_OPTION) and not _UNQUOTED.search(name)


def fold(names: Iterable[str], suffix: bool = True, quote: bool = True) -> str:
    """One line for many names, each named once; the order is that of their numbers.

    `suffix` false: names that end in text stay single, as Slurm takes no text after a bracket. `quote` false: names of
    switches, which are read by people and by no tool.
    """
    shapes: defaultdict[tuple[str, ...], set[tuple[str, ...]]] = defaultdict(set)
    for name in names:
        pieces = _NUMBER.split(name)  # text, number, text, .., text
        shapes[tuple(pieces[::2])].add(tuple(pieces[1::2]))
    return ",".join(
        "".join(text + number for text, number in zip(_quote(texts) if quote else texts, (*row, ""), strict=True))
        for texts in sorted(shapes)
        for row in (_sort_rows(shapes[texts]) if texts[-1] and not suffix else _rows(shapes[texts], texts[-1]))
    )


def _quote(texts: Sequence[str]) -> list[str]:
    """The texts between the numbers of a name."""
    quoted = [_UNQUOTED.sub(_quote_letter, text) for text in texts]
    if quoted[0].startswith(_AN_OPTION):
        quoted[0] = f"%2D{quoted[0][1:]}"
    return quoted


def _quote_letter(letter: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in letter[0].encode("utf-8", "replace"))


def unfold(text: str) -> list[str]:
    """The names of a list, in its order, each once. Raises BadHostlist."""
    names: dict[str, None] = {}
    for word in _words(text):
        room = LIMIT - len(names)
        for name in _names(word, room):
            names[name] = None
    return list(names)


def _sort_rows(rows: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    return sorted(rows, key=lambda row: [_order(_NUMBER.search(name)[0]) for name in row])  # type: ignore[index]  # all have


def _order(number: str) -> tuple[int, int]:
    return int(number), len(number)


def _rows(numbers: set[tuple[str, ...]], end: str) -> list[tuple[str, ...]]:
    """Rows of one number or bracket a place, the last place folded first. `end`: the text after the last place."""
    rows: Iterable[tuple[str, ...]] = numbers
    for place in reversed(range(len(next(iter(numbers))))):
        texts = {row[place] for row in rows}
        widths = {len(text) for text in texts if text[0] == "0" and len(text) > 1}
        same: dict[tuple[tuple[str, ...], tuple[str, ...], int], list[str]] = {}
        for row in rows:
            # one width in a bracket: older ClusterShell pads all of a bracket alike
            width = len(row[place]) if len(row[place]) in widths else 0
            same.setdefault((row[:place], row[place + 1 :], width), []).append(row[place])
        rows = [(*before, _bracket(values), *after) for (before, after, _), values in same.items()]
    return [row if end else _close_name(row) for row in _sort_rows(rows)]


def _close_name(row: tuple[str, ...]) -> tuple[str, ...]:
    """Slurm needs a bracket at the end of a name that has one."""
    return (*row[:-1], f"[{row[-1]}]") if "[" in "".join(row[:-1]) and "[" not in row[-1] else row


def _bracket(numbers: list[str]) -> str:
    """Texts of numbers as one text: "7", "[7-9,12]"."""
    if len(numbers) == 1:
        return numbers[0]
    parts: list[list[str]] = []
    last = -1
    for number, text in sorted((int(number), number) for number in numbers):
        if parts and number == last + 1:
            parts[-1][1:] = [text]
        else:
            parts.append([text])
        last = number
    return f"[{','.join('-'.join(part) for part in parts)}]"


def _words(text: str) -> Iterator[str]:
    """Split at commas and blanks that are in no bracket."""
    start, depth = 0, 0
    for at, letter in enumerate(text):
        if letter == "[":
            depth += 1
        elif letter == "]":
            depth -= 1
        if depth not in (0, 1):
            raise BadHostlist(f"brackets do not match at letter {at + 1} of {_short(text)}")
        if depth == 0 and (letter == "," or letter.isspace()):
            if text[start:at].strip():
                yield text[start:at].strip()
            start = at + 1
    if depth:
        raise BadHostlist(f"a bracket is not closed in {_short(text)}")
    if text[start:].strip():
        yield text[start:].strip()


def _names(word: str, room: int) -> Iterator[str]:
    texts, brackets = [], []
    rest = word
    while "[" in rest:
        before, _, rest = rest.partition("[")
        inside, _, rest = rest.partition("]")
        texts.append(before)
        brackets.append(_numbers(inside, word))
    texts.append(rest)
    for part in texts:
        if _ODD & set(part):
            raise BadHostlist(f"only names, commas and brackets are understood: {_short(word)}")
    texts = [unquote(part) if "%" in part else part for part in texts]
    size = 1
    for numbers in brackets:
        size *= len(numbers)
    if size > room:
        raise BadHostlist(f"more than {LIMIT} hosts: {_short(word)}")
    for chosen in product(*brackets):
        yield "".join(text + number for text, number in zip(texts, (*chosen, ""), strict=True))


def _numbers(inside: str, word: str) -> list[str]:
    numbers: list[str] = []
    for part in inside.split(","):
        matched = _RANGE.fullmatch(part.strip())
        if not matched:
            raise BadHostlist(f"{_short(part.strip()) or 'nothing'} is not a number or range in {_short(word)}")
        first, last, step = matched.groups()
        low, high = int(first), int(last or first)
        if high < low or step == "0" or (last and len(last) < len(first)):
            raise BadHostlist(f"{part.strip()} is not a rising range in {_short(word)}")
        if (high - low) // int(step or 1) >= LIMIT:
            raise BadHostlist(f"more than {LIMIT} hosts: {_short(word)}")
        numbers += [str(number).zfill(len(first)) for number in range(low, high + 1, int(step or 1))]
    return numbers


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


class AmbiguousName(ValueError):
    """Several nodes have that host name; the message lists them."""


class NodeNames:
    """What names stand for. `rows`: nodes and their host names."""

    def __init__(self, rows: Iterable[tuple[str, str | None]]) -> None:
        self._nodes: dict[str, set[str]] = defaultdict(set)  # the key of the dataset comes first
        self._hosts: dict[str, set[str]] = defaultdict(set)
        self._short_nodes: dict[str, set[str]] = defaultdict(set)
        self._short_hosts: dict[str, set[str]] = defaultdict(set)
        for node, hostname in rows:
            self._nodes[node].add(node)
            self._short_nodes[short_name(node)].add(node)
            if hostname:
                self._hosts[hostname].add(node)
                self._short_hosts[short_name(hostname)].add(node)

    def find(self, name: str) -> str | None:
        """The node of this name; none: there is no such. Raises AmbiguousName."""
        return _only(name, self._nodes.get(name) or self._hosts.get(name))

    def find_short(self, name: str) -> str | None:
        """The same, else the node of the name without a domain and a cluster's prefix. Raises AmbiguousName."""
        short = short_name(name)
        return self.find(name) or _only(name, self._short_nodes.get(short) or self._short_hosts.get(short))


def _only(name: str, nodes: set[str] | None) -> str | None:
    if nodes and len(nodes) > 1:
        raise AmbiguousName(f"{name!r:.80} is the name of {len(nodes):,} nodes: {fold(nodes)}")
    return next(iter(nodes)) if nodes else None


def short_name(name: str) -> str:
    """Without a cluster's prefix and a domain, in small letters; an address whole.

    >>> short_name("east/GPU001.site.org"), short_name("gpu001"), short_name("east/10.0.0.7")
    ('gpu001', 'gpu001', '10.0.0.7')
    """
    return shorten_host(name.rsplit("/", 1)[-1].lower())
