"""Which faults are reported, and which are the consequence of another: a cause explains what it covers, and no more.

A finding for several devices stands for one fault per device (`Fail.parts`); each is explained by itself. Where all
are, the finding is folded. Where less than half are left, these stand one by one; else it stands whole. A cause is at
least as severe as what it explains, and an info explains nothing above info. Of two that explain each other the worse
one is reported, of equal ones the one that assumes nothing, then the first.

What a device has beyond a fault of all of them (`Fail.residue`) is in the words of that fault; where a cause explains
the fault, it stands by itself.

A rule and a comparison with peers that judge the same field of the same part report one fault. But what the rule finds
on most peers, too, is not what makes the part differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from agent.model.finding import SEVERITIES
from agent.rules.rule import Fail, Rule

_ALONE = "row-odd"
Failures = Sequence[tuple[Rule, Fail]]


class RootFinding(msgspec.Struct, frozen=True):
    """A fault that becomes a finding, and what it explains."""

    rule: Rule
    fault: Fail
    severity: str
    absorbs: tuple[str, ...]  # "rule subject" of each consequence
    ids: frozenset[str]  # of the fault and of its consequences


class _Unit(msgspec.Struct, frozen=True):
    """One fault on one device: a whole failure, or a part of one."""

    owner: int  # index of the failure
    fault: Fail


def find_standing(failures: Failures) -> list[RootFinding]:
    """The faults that nothing explains, with their consequences; of rows that differ only where there is no other."""
    failures = [row for row in failures if row[1].cause != _ALONE] or failures
    units = [_Unit(i, part) for i, (_, fault) in enumerate(failures) for part in _parts(fault)]
    index = _Index(failures, units)
    direct = [index.find(rule, fault) for rule, fault in failures]
    _break_cycles(failures, units, direct)
    explained = set[int]().union(*direct)
    whole, alone = _split(failures, units, explained)
    rows = [(i, failures[i][1], direct[i]) for i in whole]
    rows += [(unit.owner, unit.fault, index.find(failures[unit.owner][0], unit.fault)) for unit in alone]
    folded = {n for n in explained if units[n].owner not in whole}
    standing = []
    for i, fault, hit in sorted(rows, key=lambda row: row[0]):
        below = _follow(hit, units, direct) & folded
        standing.append(_stand(failures, units, (i, fault), below, {unit.owner for unit in alone}))
    return [*standing, *_list_residue(failures, whole | {unit.owner for unit in alone}, standing)]


def _list_residue(failures: Failures, stands: set[int], standing: Sequence[RootFinding]) -> Iterator[RootFinding]:
    """What single devices have beyond a fault that a cause explains, unless a cause explains that, too."""
    for i, (rule, failure) in enumerate(failures):
        for fault in failure.residue if i not in stands else ():
            if not any(_covers(cause, rule, fault) for cause in standing):
                yield RootFinding(rule, fault, _severity(rule, fault), (), fault.ids)


def _covers(cause: RootFinding, rule: Rule, fault: Fail) -> bool:
    ids = cause.fault.ids if cause.fault.explains_ids is None else cause.fault.explains_ids
    return rule.name in cause.rule.absorbs and not ids.isdisjoint(fault.ids)


class _Index:
    """Units by the rule and the places that they are about."""

    def __init__(self, failures: Failures, units: Sequence[_Unit]) -> None:
        self._severities = [_severity(failures[unit.owner][0], unit.fault) for unit in units]
        self._units = units
        self._judges: dict[str, set[str]] = {}  # rules by the field that they judge
        for rule, _ in failures:
            for field in rule.fields:
                self._judges.setdefault(field, set()).add(rule.name)
        self._exact: dict[tuple[str, str], list[int]] = {}
        self._below: dict[tuple[str, str], list[int]] = {}
        for number, unit in enumerate(units):
            names = [failures[unit.owner][0].name]
            if unit.fault.field:
                names.append(_by_field(unit.fault.field))
            for place in unit.fault.ids:
                device, slash, _ = place.rpartition("/")
                for name in names:
                    self._exact.setdefault((name, place), []).append(number)
                    if slash:
                        self._below.setdefault((name, device), []).append(number)

    def find(self, rule: Rule, fault: Fail) -> set[int]:
        """The units that a cause explains directly."""
        ids = fault.ids if fault.explains_ids is None else fault.explains_ids
        indices: set[int] = set()
        for name in rule.absorbs:
            for place in ids:
                indices.update(self._exact.get((name, place), ()))
                if fault.explains_parts:
                    indices.update(self._below.get((name, place), ()))
        indices |= self._find_same_field(rule, fault)
        notes_only = _severity(rule, fault) == "info"
        return {number for number in indices if not (notes_only and self._severities[number] != "info")}

    def _find_same_field(self, rule: Rule, fault: Fail) -> set[int]:
        """Of a rule the comparisons of its fields on these places; of a comparison the findings of such rules."""
        names = [_by_field(field) for field in rule.fields]
        if fault.field and not self._is_of_peers(fault, self._judges.get(fault.field, ())):
            names += self._judges.get(fault.field, ())
        ids = {*fault.ids, *(place.rpartition("/")[0] for place in fault.ids)}
        numbers = {n for name in names for place in ids for n in self._find_at(name, place)}
        return {n for n in numbers if not self._is_of_peers(self._units[n].fault, (rule.name,))}

    def _find_at(self, name: str, place: str) -> list[int]:
        """The units of a rule that are about a device or its parts."""
        return [*self._exact.get((name, place), ()), *self._below.get((name, place), ())]

    def _is_of_peers(self, fault: Fail, rules: Iterable[str]) -> bool:
        """Whether these rules find something on most peers of the part."""
        on_peers = sum(any(self._find_at(name, peer) for name in rules) for peer in fault.peers)
        return bool(fault.peers) and 2 * on_peers > len(fault.peers)


def _by_field(field: str) -> str:
    """The name under which comparisons of a field are found; no rule has such a name."""
    return f"={field}"


def _parts(fault: Fail) -> list[Fail]:
    """What the fault stands for; places of the whole that no part has are those of every part."""
    if not fault.parts:
        return [fault]
    common = fault.ids.difference(*(part.ids for part in fault.parts))
    return [replace(part, ids=part.ids | common) for part in fault.parts]


def _break_cycles(failures: Failures, units: Sequence[_Unit], direct: list[set[int]]) -> None:
    """Of failures that explain each other, first directly, then through others, the weaker explains no stronger one."""
    for through_others in (False, True):
        reached = [_follow(hit, units, direct) if through_others else hit for hit in direct]
        below = [{units[number].owner for number in hit} for hit in reached]
        for i, hit in enumerate(direct):
            direct[i] = {n for n in hit if i not in below[units[n].owner] or _is_stronger(failures, i, units[n].owner)}


def _is_stronger(failures: Failures, i: int, j: int) -> bool:
    """By severity, then by what is assumed, then by the order of the failures."""
    return (_rank(failures[i]), j) > (_rank(failures[j]), i)


def _rank(failure: tuple[Rule, Fail]) -> tuple[int, bool]:
    return SEVERITIES.index(_severity(*failure)), failure[1].depends_on is None


def _split(failures: Failures, units: Sequence[_Unit], explained: set[int]) -> tuple[set[int], list[_Unit]]:
    """The failures that stand as they are, and the parts that stand by themselves."""
    whole: set[int] = set()
    alone: list[_Unit] = []
    left: dict[int, list[_Unit]] = {}
    for number, unit in enumerate(units):
        if number not in explained:
            left.setdefault(unit.owner, []).append(unit)
    for owner, rest in left.items():
        parts = len(failures[owner][1].parts)
        if 2 * len(rest) >= parts:
            whole.add(owner)
        else:
            alone += rest
    return whole, alone


def _follow(hit: set[int], units: Sequence[_Unit], direct: Sequence[set[int]]) -> set[int]:
    """Consequences, and what they in turn explain."""
    indices: set[int] = set()
    todo = list(hit)
    while todo:
        number = todo.pop()
        if number not in indices:
            indices.add(number)
            todo += direct[units[number].owner]
    return indices


def _stand(
    failures: Failures, units: Sequence[_Unit], cause: tuple[int, Fail], below: set[int], broken: set[int]
) -> RootFinding:
    """A standing fault with its consequences; a failure of which parts stand alone is listed by its other parts."""
    owner, fault = cause
    rule = failures[owner][0]
    subjects: set[str] = set()
    ids = fault.ids.union(*(units[number].fault.ids for number in below))
    severities = [_severity(rule, fault)]
    for number in below:
        unit = units[number]
        own_rule, own = failures[unit.owner]
        subjects.add(f"{own_rule.name} {unit.fault.subject if unit.owner in broken else own.subject}")
        severities.append(_severity(own_rule, own))
    return RootFinding(rule, fault, max(severities, key=SEVERITIES.index), tuple(sorted(subjects)), ids)


def _severity(rule: Rule, fault: Fail) -> str:
    return fault.severity or rule.severity
