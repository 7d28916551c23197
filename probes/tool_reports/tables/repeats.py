"""Parts that a text has one after the other in one form, whatever program or person wrote it: each with its lines.

A part is a line, or a line with its name and the lines below it up to the next name. Nothing of the form is known but
that it comes again: words before a name that differs in its digits alone, at the same place of each line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set

from probes.named_tuple import NamedTuple
from probes.text import lazy_pattern
from probes.tool_reports.tables.entries import ADDRESS, FEWEST, FEWEST_STRICT, FoundTable

_MOST_LINES, _LONGEST, _MOST_PARTS, _MOST_BELOW, _MOST_BEFORE = 800, 240, 128, 40, 6
_EDGE = lazy_pattern(r"[|+*•#>-]{1,12}(?=\s)|(?<=\s)[|+]{1,4}(?=\s|$)")
_RULE = lazy_pattern(r"[\W_]*")  # a line of no letters: it divides
_NUMBER = lazy_pattern(r"[0-9a-fA-F]+")
_BARE = lazy_pattern(r"[#\[(]?\d{1,4}[\]):,.]*")  # a name only with the word before it
_LARGE, _OF_LARGE = lazy_pattern(r"[#\[(]?\d{5,8}[\]):,.]*"), lazy_pattern(r"(?i)pid|tid|process|job|lid|port")
_LONE = lazy_pattern(r"(?:\d{1,4}[.:,)/-]?){1,4}|\d{4}-\d\d.*|\[[\d:.,+TZ-]*\]?:?|.*\d:\d\d.*")  # no name
_INNER = lazy_pattern(r"[\]\[<>]")
_KIND = lazy_pattern(r"[A-Za-z][\w./-]{1,30}")
_LABELLED = lazy_pattern(
    r"(?P<label>[A-Za-z][^:=]{0,60}?(?:: \d)?)[ \t]{0,40}[:=][ \t]{0,8}\(?(?P<value>[^:=]{1,80}?)\)?"
)
_QUOTES = "[](){}<>:,;$#'\""


class _Head(NamedTuple):
    """Where a line has the name of a part: the form of all that is up to it, the name, the rest of the line."""

    form: str
    name: str
    rest: str


def split_repeats(lines: Sequence[str], fewest: int = FEWEST) -> list[tuple[str, Sequence[str]]]:
    r"""The parts that most lines belong to, each with its name and what is behind and below it; as many, or none.

    >>> split_repeats([f"port {n}\n  mtu {9000 + n}" for n in range(2)])
    []
    >>> text = "".join(f"Interface Eth1/{n}\n  mtu 9216\n  mode on\n" for n in range(4))
    >>> split_repeats(text.splitlines())[3]
    ('Eth1/3', ['mtu 9216', 'mode on'])
    >>> split_repeats([f"[rank{n}] nccl 2.{n % 2}" for n in range(4)])[2]
    ('rank2', ['nccl 2.0'])
    >>> split_repeats([f"n1 {n}b:00.0 link ok" for n in range(4)])[2]
    ('2b:00.0', ['n1 link ok'])
    """
    heads = [(line, _read_head(line)) for line in _list_plain(lines)]
    names = Counter(head.name for _, head in heads if head)
    if (common := {name for name, times in names.items() if times >= fewest}) and len(names) <= len(common) + 1:
        heads = [(line, _read_head(line, common)) for line, _ in heads]  # of one host
    places: dict[str, list[int]] = {}
    for at, (_, head) in enumerate(heads):
        if head is not None:
            places.setdefault(head.form, []).append(at)
    best: list[tuple[str, Sequence[str]]] = []
    most = 0
    for at_lines in places.values():
        if fewest <= len(at_lines) <= _MOST_PARTS:
            parts = _cut(heads, at_lines, fewest)
            covered = sum(1 + len(own) for _, own in parts)
            if len(parts) >= fewest and covered > most and 2 * covered > len(heads):
                best, most = parts, covered
    return best


def tabulate_parts(lines: Sequence[str]) -> FoundTable | None:
    """A row for each part with a block of its own, and a column for each label in it.

    >>> table = tabulate_parts([line for n in range(3) for line in (f"GPU {n}", f" replays: {n}", " Rollovers : 0")])
    >>> table.names, table.rows[2][0]
    (('', 'replays', 'Rollovers'), ('GPU 2', '2', '0'))
    """
    rows = [(name, _read_labels(name, own)) for name, own in split_repeats(lines, FEWEST_STRICT)]
    names = tuple(dict.fromkeys(label for _, values in rows for label in values))
    if not 0 < len(names) <= _MOST_BELOW or any(values.keys() != rows[0][1].keys() for _, values in rows):
        return None
    cells = tuple(((name, *own.values()), f"{name}: {_describe(own)}") for name, own in rows)
    return FoundTable(("", *names), cells, is_record=True)


def _describe(values: Mapping[str, str]) -> str:
    return ", ".join(f"{label} {value}" for label, value in values.items())


def _read_labels(name: str, lines: Sequence[str]) -> dict[str, str]:
    """Labels and values, of which each line may begin with the name of the part."""
    bare = (line.removeprefix(name).lstrip("]): \t") for line in lines)
    return {match["label"]: match["value"] for match in map(_LABELLED.fullmatch, bare) if match}


def _list_plain(lines: Sequence[str]) -> list[str]:
    """Lines without what only draws a table."""
    plain = (_EDGE.sub(" ", line).strip() for line in lines[:_MOST_LINES] if len(line) <= _LONGEST)
    return [line for line in plain if not _RULE.fullmatch(line)]


def _read_head(line: str, common: Set[str] = frozenset()) -> _Head | None:
    words = line.split()
    for at, word in enumerate(words[:_MOST_BEFORE]):
        word = word.removesuffix("'s")
        bare, kind = word.strip(_QUOTES), words[at - 1].strip(_QUOTES) if at else ""
        if bare in common:
            continue
        is_large = _LARGE.fullmatch(word) and _OF_LARGE.fullmatch(kind)
        if is_large or (_BARE.fullmatch(word) and _KIND.fullmatch(kind)):
            bare = f"{kind} {bare}"
        elif not any(map(str.isdigit, bare)) or (_LONE.fullmatch(word) and not ADDRESS.fullmatch(bare)):
            continue
        elif _INNER.search(bare):  # [1,16]<stdout>
            bare = word[1:].partition('"')[0] if word[0] == '"' else word.rstrip(":")
        name, _, value = bare.partition("=")
        if not any(map(str.isdigit, name)):  # rank=0
            name, value = f"{name} {value}", ""
        before = words[:at] if any(map(str.isdigit, "".join(words[:at]))) else []
        rest = [*before, *([value] if value else []), *words[at + 1 :]]
        return _Head(" ".join(map(_form, [*words[:at], word.partition("=")[0]])), name, " ".join(rest))
    return None


def _form(word: str) -> str:
    return str(_NUMBER.sub(lambda match: "0" if any(map(str.isdigit, match[0])) else match[0], ADDRESS.sub("@", word)))


def _is_same(heads: Sequence[tuple[str, _Head | None]], at: int, before: int | None) -> bool:
    """Whether a line begins with the name of the line that had one before it: it is of the same part."""
    head, other = heads[at][1], heads[before][1] if before is not None else None
    return head is not None and other is not None and head.name == other.name


def _cut(
    heads: Sequence[tuple[str, _Head | None]], places: Sequence[int], fewest: int
) -> list[tuple[str, Sequence[str]]]:
    """The parts that begin at these lines, of those that have as many lines as most."""
    places = [at for at, before in zip(places, (None, *places), strict=False) if not _is_same(heads, at, before)]
    if len(places) < fewest:
        return []
    ends = [*places[1:], len(heads)]
    sizes = Counter(end - at for at, end in zip(places[:-1], ends[:-1], strict=True))
    size, times = sizes.most_common(1)[0]
    if size > _MOST_BELOW or 2 * times <= len(places) - 1:
        return []
    parts: dict[str, Sequence[str]] = {}
    for at, end in zip(places, ends, strict=True):
        head = heads[at][1]
        if head is None or (end - at < size) or (end - at != size and end != len(heads)):
            continue
        if head.name in parts:
            return []
        below = [line for line, _ in heads[at + 1 : at + size]]
        parts[head.name] = [*([head.rest] if head.rest else []), *below]
    return list(parts.items())
