"""What a loop, or a shell for several hosts, printed of each: lines in which one of them has another word than all
others.

A command that is run for each of several parts compares them, so settings and versions count, too, which are compared
in no other table. A word that is the name or number of the part itself is the same word in all lines.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from probes.named_tuple import NamedTuple
from probes.text import INTERFACE, RDMA_DEVICE, check_length, lazy_pattern, require
from probes.tool_reports.facts import ToolReport, state_fault
from probes.tool_reports.sentences.unexplained import states_failure
from probes.tool_reports.sentences.values import normalize
from probes.tool_reports.tables.entries import FEWEST, IN_USE, NOT_USED, SHARE, TROUBLE, WELL, read_number, shape
from probes.tool_reports.tables.quantities import find_quantity, is_by_use, is_less

_WORDS = lazy_pattern(r"[^\s=:,;|()\[\]{}<>\"']+")
_STATED = lazy_pattern(rf"(?i){WELL}|{IN_USE}|{NOT_USED}|{TROUBLE}|on|auto|enabled?|true|false")
_OF_NOW = lazy_pattern(r"P\d{1,2}|(?:\d{1,5}[smhdwy])+")  # by the load of a GPU; an age
_SHORT_NUMBER = lazy_pattern(r"\d{1,4}")
_INDEXED = lazy_pattern(r"[A-Za-z][A-Za-z_.-]*\{\}[A-Za-z_./:{}-]*")  # a name with a number in it
_RAILS = (4, 8, 16)  # of a board
_NIC = lazy_pattern(rf"{RDMA_DEVICE}|{INTERFACE}")
_RATE = lazy_pattern(r"(?:[\w.-]{1,20}: ?|[A-Za-z ]{1,20}:? ?)?\d{1,7} ?[GM]b(?:/s(?:ec)?|ps)?(?: \(\dX \w{2,4}\))?")
_OWN = "{}"  # in place of the part's own name
_FAR = 1.5  # numbers that are nearer are no other setting
_MOST_WORDS = 60  # of a line
_MOST_NUMBERS = 3  # in a line
_OF_LOAD = frozenset(("W", "MiB", "GiB", "C", "%", "MHz"))  # units
_SHOWN, _SAID = 90, 3
_SHORT, _MOST_CUT = 50, 6  # characters; words
_PASSING = lazy_pattern(  # what differs by the time, the use and the load of each, by the words before it
    r"(?i)\b(?:up ?time|load|average|days?|date|time|age|since|pid|pids?|temp\w*|fan|power|draw|util\w*|idle|used|free"
    r"|avail\w*|cached?|stratum|processes|tasks|jobs?|[rt]x|packets|octets|traffic|clocks?|hostname|serial|mhz|energy|length)\b"
)
_OF_MOMENT = lazy_pattern(
    r"(?i)\bload average\b|\b\d{1,2}:\d\d:\d\d\b.{0,40}\b20\d\d\b|\bping\b|\bicmp_seq"
)  # a whole line
_OF_USE = lazy_pattern(r"(?i)\bpts/|\btty|\busers?\b|python|\.(?:py|sh)\b|/(?:home|bin|tmp)/|\bwarning\b")
_COUNTED_LINE = lazy_pattern(r"\d{1,4} \S")  # of uniq -c
_CORES = lazy_pattern(r"\d{1,4}(?:-\d{1,4})?")
_OF_CORES = lazy_pattern(r"(?i)\b(?:affinity|cpus?|cores?|cpus_allowed(?:_list)?|mask)\b")
_OF_CHOICE = lazy_pattern(r"\b(?:priority|prio|index|class|queue|tc|dscp|cos|vlan|numa|node|socket|rank|gid)$")
_OF_SETTING = lazy_pattern(r"\b(?:partition\w*|mode|profile|policy|type)$")  # of memory, too
_SET = lazy_pattern(r"(?i)[a-z][\w.-]*(?:[:=]| )[ \t]*\S.*|[a-z]+_[a-z_]+")  # a setting, or the name of a module
_CLOCK = lazy_pattern(r"\d{1,2}|\d{4}-\d\d-\d\d\S{0,30}|(?i:mon|tue|wed|thu|fri|sat|sun|jan|feb|mar|apr|may|jun|jul"
                      r"|aug|sep|oct|nov|dec|utc|cet|am|pm)")  # fmt: skip


class _Part(NamedTuple):
    """What was printed of one part."""

    name: str
    lines: Sequence[str]


def list_loop_faults(text: str, counts: Callable[[str, str], bool] | None = None) -> list[ToolReport]:
    r"""Parts with a word that all others have otherwise; `text` has a line for each, its name and its lines separated
    by tabs. `counts`: whether a line and the word in it that others have otherwise do. Raises ParseError where it has
    fewer than four.

    >>> rows = [f"n{n}\tMaxReadReq {512 if n == 2 else 4096} bytes\n" for n in range(4)]
    >>> [(report.subject, report.detail[0][1]) for report in list_loop_faults("".join(rows))]
    [('n2', 'MaxReadReq 512 bytes (n0: MaxReadReq 4096 bytes)')]
    >>> list_loop_faults("".join(f"rail{n}\tleaf-{n} port 12 temp {60 + n}\n" for n in range(4)))
    []
    """
    parts = [
        _Part(cells[0], cells[1:]) for line in check_length(text).splitlines() if len(cells := line.split("\t")) > 1
    ]
    require(len(parts) >= FEWEST, "no output of a loop over four parts or more")
    odd = dict(_list_lines_missing(parts))
    count, times = Counter(len(part.lines) for part in parts).most_common(1)[0]
    count = count if 2 * times > len(parts) else max(len(part.lines) for part in parts)
    whole = [(number, part) for number, part in enumerate(parts) if len(part.lines) == count]
    for number, part in enumerate(parts):
        like = f"{whole[0][1].name}: {whole[0][1].lines[0]}"
        fails = [
            f"{line} ({like})"
            for line in (part.lines if len(part.lines) > count else ())
            if states_failure(line) or (_COUNTED_LINE.match(line) and line not in whole[0][1].lines)
        ]
        odd |= {number: fails} if fails else {}
    for lines in zip(*(part.lines for _, part in whole), strict=True):
        for place, usual in _list_odd([part.name for _, part in whole], lines, counts):
            (number, part), (_, other) = whole[place], whole[usual]
            if counts and len(part.lines) > 1 and not _begin_alike(part.name, lines[place], other.name, lines[usual]):
                continue  # a block of unknown form has other lines here
            own, usual_line = _cut(part.name, lines[place], other.name, lines[usual])
            odd.setdefault(number, []).append(f"{own} ({other.name}: {usual_line})")
    peers = [part for number, part in enumerate(parts) if number not in odd]
    if odd.keys() <= {0, len(parts) - 1} and _is_beside_rails([parts[number] for number in odd], peers):
        return []
    odd = {number: said for number, said in odd.items() if not _is_no_peer(parts[number], peers)}
    return [
        state_fault("loop-odd", parts[number].name, "; ".join(said[:_SAID])[: 3 * _SHOWN], said[0])
        for number, said in sorted(odd.items())
        if len(odd) <= (1 if counts else max(1, len(parts) // SHARE))
    ]


def _is_stated(line: str, word: str) -> bool:
    """Whether it is a number or a version, a word of a state, or the value of a label: others may be a person's words.

    >>> _is_stated("technician Bob", "Bob"), _is_stated("trust: pcp", "pcp"), _is_stated("pfc auto", "auto")
    (False, True, True)
    """
    if _OF_NOW.fullmatch(word):
        return False
    at = line.find(word)
    is_value = line[:at].rstrip().endswith((":", "=")) or line[at + len(word) :][:1] == "("  # "ETH(2)"
    return bool(any(map(str.isdigit, word)) or _STATED.fullmatch(word) or is_value)


def _begin_alike(name: str, line: str, usual_name: str, usual: str) -> bool:
    first, other = line.split(" ")[0], usual.split(" ")[0]
    return shape(first) == shape(other) or _are_alike(name, first, usual_name, other)


def _are_alike(name: str, word: str, usual_name: str, usual: str) -> bool:
    """Whether two words are the same one, but for what is of the part that each is of."""
    return not _list_forms(word, name).keys().isdisjoint(_list_forms(usual, usual_name))


def _cut(name: str, line: str, usual_name: str, usual: str) -> tuple[str, str]:
    """Two long lines without what both have alike, but for the word before it.

    >>> line = "torch 2.3.1 nccl {} cuda 12.1 device NVIDIA H100 80GB HBM3 with 4 NICs"
    >>> _cut("rank5", line.format("2.18.3"), "rank0", line.format("2.20.5"))
    ('nccl 2.18.3', 'nccl 2.20.5')
    """
    words, others = line.split(), usual.split()
    if len(line) < _SHORT or len(words) != len(others):
        return line, usual
    pairs = enumerate(zip(words, others, strict=True))
    at = [place for place, (one, other) in pairs if not _are_alike(name, one, usual_name, other)]
    if not at or at[-1] - at[0] > _MOST_CUT:
        return line, usual
    first = at[0] if "=" in words[at[0]] else max(0, at[0] - 1)
    return " ".join(words[first : at[-1] + 1]), " ".join(others[first : at[-1] + 1])


def _is_no_peer(part: _Part, peers: Sequence[_Part]) -> bool:
    """Whether it is for something else: where all others have a word of one form with their number, it has another.

    >>> rails = [_Part(f"eth{n}", [f"400Gb/s rail{n}"]) for n in range(1, 4)]
    >>> _is_no_peer(_Part("eth0", ["1Gb/s management"]), rails), _is_no_peer(_Part("eth0", ["200Gb/s rail0"]), rails)
    (True, False)
    """
    for lines in zip(part.lines, *(peer.lines for peer in peers), strict=False):
        own, *others = [[re.sub(r"\d+", _OWN, word) for word in _WORDS.findall(line)] for line in lines]
        for place, form in enumerate(others[0] if others else ()):
            if _INDEXED.fullmatch(form) and all(form in other[place : place + 1] for other in others):
                at = {other[place] for other in (_WORDS.findall(line) for line in lines[1:])}
                if len(at) > 1 and own[place : place + 1] != [form]:
                    return True
    return False


def _is_beside_rails(odd: Sequence[_Part], peers: Sequence[_Part]) -> bool:
    """Whether a NIC of another rate stands before or after as many as a board has rails: those of the front end are
    numbered so."""
    parts = [*odd, *peers]
    are_nics = all(_NIC.fullmatch(part.name) for part in parts) and len(peers) in _RAILS
    return are_nics and all(len(part.lines) == 1 and _RATE.fullmatch(part.lines[0]) for part in parts)


def list_weak_faults(text: str) -> list[ToolReport]:
    """The same of lines that other readers have, where these state no fault. Raises ParseError."""
    return [report._replace(code="row-odd") for report in list_loop_faults(text, _is_stated)]


def _list_lines_missing(parts: Sequence[_Part]) -> Iterator[tuple[int, list[str]]]:
    """The one part without lines that all others have alike.

    >>> parts = [_Part(f"n{n}", ["speed 400g", *(["mtu 9214"] if n != 2 else [])]) for n in range(4)]
    >>> list(_list_lines_missing(parts))
    [(2, ['without "mtu 9214"'])]
    """
    lines = [[_replace_in(line, part.name) for line in part.lines if line] for part in parts]
    fewest = min(map(len, lines))
    short = [at for at, own in enumerate(lines) if len(own) == fewest]
    others = [own for at, own in enumerate(lines) if at not in short]
    if len(short) != 1 or len(set(map(len, others))) > 1:
        return
    own = lines[short[0]]
    labels = [{line.split(" ")[0] for line in other} for other in others]
    of_all = [line for line in others[0] if all(line.split(" ")[0] in other for other in labels)]
    present = {line.split(" ")[0] for line in own}
    absent = [line for line in of_all if line.split(" ")[0] not in present]
    missing = [line for line in absent if _SET.fullmatch(line) and not _is_of_moment(line)]
    if missing and len(own) + len(missing) == len(others[0]):
        yield short[0], [f'without "{line}"' for line in missing]


def _is_of_moment(line: str) -> bool:
    return any(pattern.search(line) for pattern in (_OF_USE, _PASSING, _OF_MOMENT))


def _replace_in(line: str, name: str) -> str:
    return " ".join(_replace(word, name) for word in line.split())


def _list_odd(
    names: Sequence[str], lines: Sequence[str], counts: Callable[[str, str], bool] | None
) -> Iterator[tuple[int, int]]:
    """Lines in which a word is not that of all others, and a line that is as most."""
    if len(lines) < FEWEST or _OF_MOMENT.search(lines[0]):
        return
    words = [_WORDS.findall(line) for line in lines]
    same, times = Counter(map(tuple, words)).most_common(1)[0]
    alone = next((at for at, own in enumerate(words) if tuple(own) != same), 0)
    usual = words.index(list(same))
    is_other = states_failure(lines[alone]) or _is_without_setting(words[alone], words[usual])
    if same and times == len(lines) - 1 and len(words[alone]) != len(words[usual]) and is_other:
        yield alone, usual
    if len(set(map(len, words))) > 1 or len(words[0]) > _MOST_WORDS:
        return
    odd: set[int] = set()
    for place, cells in enumerate(zip(*words, strict=True)):
        column: Sequence[str] = cells
        if all(map(_CORES.fullmatch, column)) and _OF_CORES.search(" ".join(words[0][:place])):
            column = tuple(f"{_count_cores(word)} cores" for word in column)
        is_row = sum(read_number(word) is not None for word in words[0]) > _MOST_NUMBERS
        column = column if is_row else _count_from_own(column, names)
        forms = [_list_forms(word, name) for word, name in zip(column, names, strict=True)]
        common, times = Counter(form for of_one in forms for form in of_one).most_common(1)[0]
        others = [at for at, of_one in enumerate(forms) if common not in of_one]
        if not others or times < FEWEST - 1 or len(others) > max(1, len(lines) // SHARE):
            continue
        label = normalize(" ".join(_list_label(words[others[0]][:place])))
        is_row = sum(read_number(word) is not None for word in words[others[0]]) > _MOST_NUMBERS
        if column[0].endswith(" cores"):
            others = [at for at in others if int(column[at].split()[0]) < int(common.split()[0])]  # a launcher has all
        odd.update(
            at
            for at in others
            if _is_other(label, column[at], common, words[at][place + 1 :][:1], is_row)
            and (counts is None or counts(lines[at], column[at]))
        )
    like = next((at for at in range(len(lines)) if at not in odd), None)
    if like is not None:
        yield from ((at, like) for at in sorted(odd))


def _is_without_setting(words: Sequence[str], usual: Sequence[str]) -> bool:
    """Whether a line is the usual one but for a setting and its value.

    >>> _is_without_setting(["map", "a"], ["map", "a", "wred", "b"]), _is_without_setting(["up"], ["up", "10.0.0.1"])
    (True, False)
    """
    less = len(usual) - len(words)
    at = next((at for at, pair in enumerate(zip(words, usual, strict=False)) if pair[0] != pair[1]), len(words))
    missing = usual[at : at + less]
    return len(missing) > 1 and missing[0].replace("_", "").isalpha() and words[at:] == usual[at + less :]


def _list_label(before: Sequence[str]) -> Sequence[str]:
    """The words that name a value: up to three, behind the value before it.

    >>> _list_label(["local_rank", "4", "pid", "41224", "CUDA_VISIBLE_DEVICES"])
    ['CUDA_VISIBLE_DEVICES']
    """
    begin = next((at for at in range(len(before), 0, -1) if before[at - 1].isdecimal()), 0)
    return before[max(begin, len(before) - 3) :]


def _count_from_own(words: Sequence[str], names: Sequence[str]) -> Sequence[str]:
    """Numbers that run with those of the parts, but for one, as their distance to the part's own.

    >>> _count_from_own(["0", "1", "1", "3"], ["h1", "h2", "h3", "h4"]), _count_from_own(["4", "9"], ["h1", "h2"])
    (['own -1', 'own -1', 'own -2', 'own -1'], ['4', '9'])
    """
    own = [re.search(r"(\d{1,6})\D{0,20}$", name) for name in names]
    if not all(own) or not all(map(_SHORT_NUMBER.fullmatch, words)) or len(set(words)) < len(words) - 1:
        return words
    far = [int(word) - int(number[1]) for word, number in zip(words, own, strict=True) if number]
    _, times = Counter(far).most_common(1)[0]
    return [f"own {distance:+d}" for distance in far] if times == len(words) - 1 >= FEWEST - 1 else words


def _list_forms(word: str, name: str) -> dict[str, None]:
    """A word as it is, without what is of the part alone, and without the last or the first of that.

    >>> list(_list_forms("mlx5_5", "rank 5"))
    ['mlx5_5', 'mlx{}_{}', 'mlx5_{}', 'mlx{}_5']
    """
    replaced = _replace(word, name)
    own = re.search(r"(\d{1,6})\D{0,20}$", name)
    number = rf"(?<!\d)0{{0,3}}{int(own[1])}(?!\d)" if own else None
    ends = (re.sub(rf"{number}(?=\D{{0,20}}$)", _OWN, word), re.sub(number, _OWN, word, count=1)) if number else ()
    return dict.fromkeys((word, replaced, *ends))


def _count_cores(word: str) -> int:
    first, _, last = word.partition("-")
    return int(last or first) - int(first) + 1


def _replace(word: str, name: str) -> str:
    """A word without what is of the part alone: its name, or the last number of it.

    >>> _replace("lldp.rail3.chassis", "3"), _replace("leaf-rail4", "rail4"), _replace("Ethernet13", "3")
    ('lldp.rail{}.chassis', 'leaf-{}', 'Ethernet13')
    """
    replaced = re.sub(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![0-9])", _OWN, word)
    if replaced == word and (number := re.search(r"(\d{1,6})\D{0,20}$", name)):
        replaced = re.sub(rf"(?<!\d)0{{0,3}}{int(number[1])}(?!\d)", _OWN, word)
    return replaced


def _is_other(label: str, value: str, usual: str, after: Sequence[str], is_row: bool) -> bool:
    """Whether a word is another setting, version, state or count than the usual one, and no other load or time.
    `is_row`: it is one of many numbers in its line, which have no names there."""
    if (
        (is_by_use(label) and not _OF_SETTING.search(label))
        or _PASSING.search(label)
        or (_CLOCK.fullmatch(value) and _CLOCK.fullmatch(usual) and not label)
    ):
        return False
    own, others = read_number(value), read_number(usual)
    if own is None or others is None:
        return True
    if is_row:
        return False
    (number, unit), (most, unit_of_most) = own, others
    unit = unit or " ".join(after)
    if own[1] != unit_of_most:
        return True
    if _OF_CHOICE.search(label) and not own[1]:
        return True  # the next number is another choice
    if unit in _OF_LOAD or (unit == "GT/s" and number > most):
        return False  # idle devices slow their links
    quantity = find_quantity(label, unit.lower(), "")
    if most == 0:
        return quantity is not None and quantity.is_count and number >= quantity.least
    if quantity and quantity.is_count:
        return number > 2 * most and number - most >= quantity.least
    return is_less(label, "", number, most) or max(number, most) >= _FAR * min(number, most)
