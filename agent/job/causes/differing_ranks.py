"""What one process, or all of one host, prints otherwise than its peers: the suspect that no table of failures has.

A form is compared over the processes that print it: a value that all but a few share, a form that a few print in place
of one that all others print, a form that a few never came to, a time that is longer on one. Processes differ by nature,
too: the first and the last rank, the first of each host, stages of a pipeline. Such sets are left out.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from itertools import chain, pairwise
from typing import NamedTuple

from agent.job.candidate import PossibleCause, find_hosts, name_ranks
from agent.job.evidence import Evidence
from agent.job.line_forms import SLOT, FormLine, LineForm, LineWriter
from agent.model.labels import natural
from probes.text import find_median, lazy_pattern

_LEAST = 4  # processes, below which no majority is one
_FEW = 8  # one of so many may differ
_SETS = 3  # sets of processes that differ; with more of them it is usual to differ
_MANY = 200  # of them, before it is looked at whether they do the same work
_SHARED = 0.5  # of the forms that all others print, so that a process is one of them
_SAMPLES = 4
_STEADY, _SLOW = 1.1, 1.5  # times the middle
_CLOSE = 0.2
_ALIKE = 0.6  # of the words of two forms
_TIMED = lazy_pattern(
    r"^\s{0,2}(?:[mun]?s\b|sec|min|hours?|it/s|tok\w*/s|samples/s|[TG]FLOP|[GM]i?B)|"
    r"(?:time|took|elapsed|latency|duration|throughput|speed|in|after)\W{0,12}(?:\([mun]?s\))?\W{0,4}$"
)
_VERSION = lazy_pattern(r"\b\d{1,4}\.\d{1,4}\.\d{1,6}\b(?!\.)")
_BEHIND, _BEFORE = 12, 40  # characters beside a value
_WORRYING = lazy_pattern(
    r"warn|slow|set by environment|time[ -]?out|fall(?:s|ing)? ?back|disabl|unavailable|"
    r"\bnot (?:available|supported|found)|cannot|could not|unable|missing|degrad|mismatch",
    re.IGNORECASE,
)
_MOST_OWN = 20  # forms of one set
_AROUND = 3  # words beside what differs
_BESIDE = 4  # of them beside a value
_SHOWN = 160  # characters of a message
_OF_THE_RING = lazy_pattern(r"(?:Trees?|Ring) |(?:Channel|Ring) \0(?:/\0)? : \0(?: \0)*$")

_Member = int | str  # a rank, or a process or file by name
_Rows = dict[_Member, list[tuple[str, ...]]]
_Row = tuple[LineForm, _Rows, dict[_Member, FormLine]]  # a form, its values and its first line, by member


class RankDifference(NamedTuple):
    """One thing in which processes differ from the others."""

    members: frozenset[_Member]
    strength: int  # the lower the stronger
    own: tuple[str, FormLine | None]  # what they print, and where
    usual: tuple[str, FormLine | None]
    nccl: bool
    values: tuple[str, str] | None = None  # of one form: what is around the value, of both


class _Peers:
    """Processes of one kind, and their forms."""

    def __init__(self, evidence: Evidence, names: dict[LineWriter, _Member]) -> None:
        self.forms: list[_Row] = []
        lines: Counter[_Member] = Counter()
        for writer, name in names.items():
            lines[name] += evidence.forms.lines[writer]
        enough = 0.2 * find_median(lines.values()) if lines else 0
        self.members = frozenset(name for name, count in lines.items() if count >= enough)
        for form in evidence.forms.forms.values():
            rows: _Rows = defaultdict(list)
            first: dict[_Member, FormLine] = {}
            for writer, values in form.rows.items():
                member = names.get(writer)
                if member is not None and member in self.members:
                    rows[member] += values
                    first.setdefault(member, form.first[writer])
            if rows:
                self.forms.append((form, dict(rows), first))
        self._hosts: dict[str, set[_Member]] = defaultdict(set)
        for name in self.members:
            host = evidence.ranks.host(name) if isinstance(name, int) else None
            if host is not None:
                self._hosts[host].add(name)
        self._ordered = sorted(self.members, key=lambda name: natural(str(name)))
        self.by_word: dict[str, list[_Row]] = defaultdict(list)  # forms that most print, by their first word
        for row in self.forms:
            if len(row[1]) >= max(_LEAST - 1, 0.5 * len(self.members)):
                self.by_word[row[0].text.partition(" ")[0]].append(row)

    def are_few(self, members: Collection[_Member]) -> bool:
        """Whether so many may be the odd ones: one of eight, or one host of several."""
        count = len(self.members)
        if not members or count < _LEAST:
            return False
        return len(members) <= max(1, count // _FEW) or self.is_host(members)

    def is_host(self, members: Collection[_Member]) -> bool:
        """Whether they are all processes of one host of three and more."""
        return len(self._hosts) > 2 and any(set(members) == of_host for of_host in self._hosts.values())

    def are_of_a_role(self, members: Collection[_Member], nccl: bool) -> bool:
        """Whether a job gives them another part: first and last ones, the same number on each host."""
        places = [self._ordered.index(name) for name in members]
        count = len(self._ordered)
        ends = {0, count - 1} & set(places)
        if ends and not nccl:
            return True
        if len(places) < 2 or count % len(places):
            return False
        step = count // len(places)
        return len({place % step for place in places}) == 1 and not self.is_host(members)


def find_differences(evidence: Evidence) -> list[RankDifference]:
    """All of them, the strongest first; of each kind of process none where many differ."""
    kinds: dict[str, dict[LineWriter, _Member]] = defaultdict(dict)
    for writer in evidence.forms.lines:
        rank = writer.rank if writer.rank is not None else evidence.ranks.rank_of(writer.host, writer.pid)
        rank = rank if rank is not None else writer.task
        if rank is not None:
            kinds["rank"][writer] = rank
        elif writer.host is not None and writer.pid is None:
            kinds["host"][writer] = writer.host
        elif writer.file is not None:
            kinds["file"][writer] = evidence.names[writer.file]
        elif writer.host is not None:
            kinds["process"][writer] = f"process {writer.pid} on {writer.host}"
    differences: list[RankDifference] = []
    for names in kinds.values():
        peers = _Peers(evidence, names)
        if len(peers.members) < _LEAST:
            continue
        by_members: dict[frozenset[_Member], list[RankDifference]] = defaultdict(list)
        for difference in chain(_compare_values(peers), _compare_forms(peers), _compare_times(peers)):
            by_members[difference.members].append(difference)
        if len(by_members) > _MANY:
            continue
        found = [rows for members, rows in by_members.items() if _is_one_of_them(peers, members)]
        if len(found) <= _SETS:
            differences += chain.from_iterable(found)
    return sorted(differences, key=lambda one: (one.strength, not one.nccl, one.own[0]))


def _is_one_of_them(peers: _Peers, members: frozenset[_Member]) -> bool:
    """Whether these print most of what all others print: they do the same work."""
    common = [rows.keys() for _, rows, _ in peers.forms if len(rows.keys() - members) == len(peers.members - members)]
    shared = sum(members <= names for names in common)
    return shared >= max(1, _SHARED * len(common))


def _compare_values(peers: _Peers) -> Iterator[RankDifference]:
    """A value that all but a few share."""
    for form, rows, first in peers.forms:
        if len(rows) < max(_LEAST, 0.75 * len(peers.members)) or _OF_THE_RING.match(form.text):
            continue
        texts = form.text.split(SLOT)
        nccl = next(iter(first.values())).nccl
        for slot, (before, behind) in enumerate(pairwise(texts)):
            values = {name: found.pop() for name, row in rows.items() if len(found := {v[slot] for v in row}) == 1}
            counts = Counter(values.values())
            usual, most = counts.most_common(1)[0] if counts else ("", 0)
            odd = frozenset(name for name, value in values.items() if value != usual)
            if len(values) < len(rows) or len(counts) > _SETS or most < 3 or not peers.are_few(odd):
                continue
            own = min(values[name] for name in odd)
            is_version = min(own.count("."), usual.count(".")) > 1  # which no role of a process has of its own
            if not is_version and (
                peers.are_of_a_role(odd, nccl) or (not nccl and _is_close(own, usual, before, behind))
            ):
                continue
            yield _write((form, rows, first), odd, slot, 0)


def _is_close(own: str, usual: str, before: str, behind: str) -> bool:
    """Whether two numbers are measured ones that differ little, or once."""
    if own.count(".") > 1 or usual.count(".") > 1 or not own.replace(".", "").isdecimal():
        return False  # versions, addresses
    try:
        one, other = sorted((float(own), float(usual)))
    except ValueError:
        return False
    if _is_timed(before, behind):
        return other < 2 * _SLOW * max(one, 1.0)
    return other >= 10 and one > other * (1 - _CLOSE)


def _is_timed(before: str, behind: str) -> bool:
    return _TIMED.match(behind[:_BEHIND]) is not None or _TIMED.search(before[-_BEFORE:]) is not None


def _write(row: _Row, odd: frozenset[_Member], slot: int, strength: int) -> RankDifference:
    """One form with two values."""
    form, rows, first = row
    one, other = (min(names, key=str) for names in (odd, rows.keys() - odd))
    own, usual = rows[one][0], rows[other][0]
    texts = form.text.split(SLOT)
    return RankDifference(
        odd, strength, (form.write(own), first[one]), (form.write(usual), first[other]), first[one].nccl,
        (_write_around(texts, own, slot), _write_around(texts, usual, slot)),
    )  # fmt: skip


def _write_around(texts: list[str], values: tuple[str, ...], slot: int) -> str:
    """The value and the words beside it."""
    before = "".join(text + value for text, value in zip(texts[:slot], values, strict=False)) + texts[slot]
    behind = "".join(value + text for value, text in zip(("", *values[slot + 1 :]), texts[slot + 1 :], strict=True))
    kept, more = before.split(" ")[-_BESIDE - 1 :], behind.split(" ")[:_BESIDE]
    return " ".join(kept).lstrip() + values[slot] + " ".join(more).rstrip()


def _compare_forms(peers: _Peers) -> Iterator[RankDifference]:
    """A form that a few print in place of one that the others print, or alone, or that they never came to."""
    own: dict[frozenset[_Member], list[_Row]] = defaultdict(list)
    for row in peers.forms:
        own[frozenset(row[1])].append(row)
    for members, forms in own.items():
        if not peers.are_few(members):
            continue
        for form, rows, first in forms[:_MOST_OWN]:
            nccl = next(iter(first.values())).nccl
            if peers.are_of_a_role(members, nccl) or _OF_THE_RING.match(form.text):
                continue
            one = min(members, key=str)
            text = form.write(rows[one][0]), first[one]
            usual = _find_sibling(peers, form, members, nccl)
            if usual is not None:
                other, others, begin = usual
                peer = min(others, key=str)
                yield RankDifference(members, 0, text, (other.write(others[peer][0]), begin[peer]), nccl)
            elif not peers.are_of_a_role(members, False) and _WORRYING.search(form.text):
                yield RankDifference(members, 1, text, ("", None), nccl)
    for form, rows, first in peers.forms:
        members = peers.members.difference(rows)
        if peers.are_few(members) and not peers.are_of_a_role(members, False):
            peer = min(rows, key=str)
            yield RankDifference(members, 2, ("", None), (form.write(rows[peer][0]), first[peer]), first[peer].nccl)


def _find_sibling(peers: _Peers, form: LineForm, members: frozenset[_Member], nccl: bool) -> _Row | None:
    """The form that other processes print where these print theirs: it begins alike, and these do not have it."""
    words = form.text.split()
    best: tuple[float, _Row] | None = None
    for row in peers.by_word.get(words[0] if words else "", ()):
        other, rows, first = row
        if not members.isdisjoint(rows) or next(iter(first.values())).nccl != nccl:
            continue
        theirs = other.text.split()
        shared = sum((Counter(words) & Counter(theirs)).values()) / max(len(words), len(theirs))
        if (words[:2] == theirs[:2] or shared >= _ALIKE) and (best is None or shared > best[0]):
            best = shared, row
    return best[1] if best is not None else None


def _compare_times(peers: _Peers) -> Iterator[RankDifference]:
    """A time or a rate that is steady on all others, and worse on one."""
    for form, rows, first in peers.forms:
        if len(rows) < len(peers.members):
            continue
        texts = form.text.split(SLOT)
        for slot, (before, behind) in enumerate(pairwise(texts)):
            if not _is_timed(before, behind) or any(len(row) < _SAMPLES for row in rows.values()):
                continue
            try:
                middles = {name: find_median(float(values[slot]) for values in row) for name, row in rows.items()}
            except ValueError:
                continue
            usual = find_median(middles.values())
            near = [value for value in middles.values() if usual / _STEADY <= value <= usual * _STEADY]
            odd = frozenset(name for name, value in middles.items() if not usual / _SLOW < value < usual * _SLOW)
            if usual and len(near) + len(odd) == len(middles) and peers.are_few(odd):
                yield _write((form, rows, first), odd, slot, 1)


def describe_differences(evidence: Evidence, blamed: Collection[int]) -> Iterator[PossibleCause]:
    """One candidate for each set of processes that differs, without those that a cause names; of low confidence."""
    by_members: dict[frozenset[_Member], list[RankDifference]] = defaultdict(list)
    for difference in find_differences(evidence):
        by_members[difference.members].append(difference)
    for members, rows in list(by_members.items())[:_SETS]:
        ranks = sorted(name for name in members if isinstance(name, int))
        first = rows[0]
        if first.strength == 2 and (evidence.forms.is_cut or not set(ranks).isdisjoint(blamed)):
            continue
        hosts = find_hosts(evidence, ranks)
        who = name_ranks(evidence, ranks, hosts) if ranks else ", ".join(sorted(map(str, members)))
        candidate = PossibleCause("rank-differs", "note", "rank", "", "low")
        candidate.blame(ranks, hosts)
        does = f"print{'' if len(members) > 1 else 's'}"
        own, usual = first.values or _cut_alike(first.own[0], first.usual[0])
        if first.own[1] is None:
            candidate.summary = f"{who} did not come to what all others print: {usual}"
        elif first.usual[1] is None:
            candidate.summary = f"only {who} {does}: {own}"
        else:
            candidate.summary = f"{who} {does} “{own}”, where the others print “{usual}”"
        if len(rows) > 1:
            more = len(rows) - 1
            candidate.summary += f" ({more} more difference{'s' if more > 1 else ''})"
        candidate.facts["version"] = "yes" if any(map(_is_of_version, rows)) else ""
        candidate.facts["missing"] = "yes" if first.own[1] is None else ""
        for text, line in (first.own, first.usual):
            if line is not None:
                candidate.show_text(text[:400], evidence.names[line.file], line.number)
        place = hosts[0] if len(hosts) == 1 else who
        candidate.next = [f"what is different on {place}: image, environment, versions, its NICs and GPUs"]
        yield candidate


def _is_of_version(row: RankDifference) -> bool:
    """Whether a version is what differs."""
    own, usual = (set(_VERSION.findall(text)) for text in (row.values or ("", "")))
    return bool(own - usual and usual - own)


def _cut_alike(one: str, other: str) -> tuple[str, str]:
    """Two messages without most of what they begin and end with alike.

    >>> _cut_alike("NET : a b c d e 1 f g h i j", "NET : a b c d e 2 f g h i j")
    ('.. c d e 1 f g h ..', '.. c d e 2 f g h ..')
    """
    first, second = one.split(), other.split()
    least = min(len(first), len(second))
    ahead = next((place for place in range(least) if first[place] != second[place]), least)
    behind = next((place for place in range(least - ahead) if first[-1 - place] != second[-1 - place]), least - ahead)
    start = max(0, ahead - _AROUND)
    texts = []
    for words in (first, second):
        end = len(words) - max(0, behind - _AROUND)
        texts.append(" ".join([*[".."][: start > 0], *words[start:end], *[".."][: end < len(words)]])[:_SHOWN])
    return texts[0], texts[1]
