"""When a rule fires and what keeps it silent, as rows: the tables of tests/matrix/rules/*.toml.

The tables beside this module lay a cause over whole machines and ask every rule; these lay one change over one small
machine of model objects (tests/agent/rules/build.py, moves.py) and ask one rule: limits, guards, words. A rule has

    [roce-rt-crc]
    machine = "roce"                   # of MACHINES: healthy; the runtime ones with a window in which nothing moved
    firing = { "window" = ... }        # what makes this rule fire there
    finds = [["{port1}", "warning"]]   # which faults it then tells: subject, severity, cause where it has one
    passes = 3                         # how many other subjects it looks at and finds as they should be
    silent_when."virtual machine" = "not_applicable"   # the firing machine with one circumstance of guards.toml:
                                       # no fault, and this state of what was at fault; all others as before
    silent_when."no earlier sample" = "unknown of node: no earlier sample"   # one answer, for the node; a part of
                                       # the reason behind the colon; "unknown of all": every subject is

    [roce-rt-crc.rows]                 # anything else, one machine a line: limits, counters restarted, drivers
    "limits: one below" = { change = { ... }, passes = 4 }
    "storage" = { firing = true, change = { ... }, finds = [["{port1}", "info"]], passes = 3 }

A row states all that the rule answers: `finds`, `unknown` and `not_applicable` (subjects), `passes` (how many), and
with `says` words of its texts (summaries, remedies, evidence, reasons; behind a fault's evidence the lines "places: A
B.", "covers: A B.", "situation: S." and "values: NAME=V."), with `omits` words that are in none of them; "\\n" is
where a text begins or ends: "\\nhigh\\n" is a whole one. `firing = true` begins from the firing machine, else from
the healthy one; `machine` names another one. Machines with the same answers are one row:

    [roce-rt-crc.rows."a guard keeps it silent"]
    firing = true
    not_applicable = ["{port1}"]
    passes = 3
    each.management = { topology.nics."{rail1}".role = "management" }
    each.unused = { topology.nics."{rail1}".role = "unused" }

With all rules: `absorbs` is what the finding explains. Where a rule answers nothing, `state` is what the engine makes
of it, and part of the reason: "unknown: pci: failed".

A change is laid over the machine as data: tables are merged, rows of a list are named by their id (paths by their
ends, rows without an id by "#0"), "<all>" is all of them, "<gone>" takes something away, "<none>" is null; any other
list is put in the place of the old one. What is not given is as the model has it by default. `{gpu1}`, `{rail1}` are
addresses (counted from 0), `{above:gpu1}` the switch port above, `{uplink:rail1}` the upstream port of that switch,
`{top:rail1}` its root port, `{port1}` and `{netdev1}` the subjects of rail 1.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from types import MappingProxyType
from typing import Any, NamedTuple, get_type_hints

import msgspec

from agent.rules.catalogue import every_rule
from agent.rules.context import RuleContext, Settings
from agent.rules.rule import Fail, NotApplicable, Pass, Result, Rule, Unknown
from tests.agent.rules import build, fabric, machines, moves
from tests.agent.rules.gpudirect.machines import direct_nic
from tests.conftest import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = ROOT / "tests" / "matrix" / "rules"
GUARDS = "guards"  # the file of circumstances that many rules share
GONE, NONE, ALL = "<gone>", "<none>", "<all>"
MACHINES: dict[str, Callable[[], RuleContext]] = {
    "infiniband server": build.server,
    "ethernet server": lambda: build.server(ethernet=True),
    "eight GPUs": lambda: build.server(8),
    "eight GPUs, ethernet": lambda: build.server(8, ethernet=True),
    "eight MI300X": build.instinct,
    "CXL expanders": machines.expanders,
    "Gaudi cards": machines.gaudi_cards,
    "Gaudi modules": machines.gaudi_modules,
    "Neuron devices": machines.neuron_devices,
    "eight 910B": machines.npus,
    "eight dies": partial(machines.npus, "0xd803"),
    **{f"{n} GPU{'s' * (n > 1)}": partial(build.server, n) for n in (1, 2, 3, 12)},
    **{f"{n} GPU{'s' * (n > 1)}, ethernet": partial(build.server, n, ethernet=True) for n in (1, 2)},
    "riser": machines.riser,
    "two-port cards": machines.two_port_cards,
    "interfaces": machines.interfaces,
    "bonded card": machines.bonded_card,
    "bonded card, two devices": partial(machines.bonded_card, one_device=False),
    "NVSwitch": fabric.hgx,
    **{f"NVSwitch, {n} GPUs": partial(fabric.hgx, n) for n in (1, 2, 3)},
    "GB200 tray": fabric.tray,
    "direct NIC": lambda: direct_nic(build.server()),
    "infiniband": moves.infiniband,
    "roce": moves.roce,
    "gpus": moves.gpus,
}
_FIELDS = {name: kind for name, kind in get_type_hints(RuleContext).items() if name in RuleContext.__struct_fields__}


class Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One machine and all that a rule answers about it."""

    machine: str | None = None
    firing: bool = False
    change: dict[str, Any] = {}
    finds: list[list[str]] = []
    unknown: list[str] = []
    not_applicable: list[str] = []
    passes: int = 0
    says: list[str] = []
    omits: list[str] = []
    absorbs: list[str] = []
    state: str = ""
    each: dict[str, dict[str, Any]] = {}


class Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All rows of a rule."""

    machine: str
    firing: dict[str, Any] = {}
    finds: list[list[str]] = []
    unknown: list[str] = []
    not_applicable: list[str] = []
    passes: int = 0
    says: list[str] = []
    omits: list[str] = []
    silent_when: dict[str, str] = {}
    rows: dict[str, Row] = {}


class Answers(NamedTuple):
    """What a rule answers, without its words."""

    finds: list[list[str]]
    unknown: list[str]
    not_applicable: list[str]
    passes: int


@cache
def tables() -> dict[str, Table]:
    """Every rule's table by the name of the rule."""
    read: dict[str, Table] = {}
    for path in sorted(FOLDER.glob("*.toml")):
        if path.stem != GUARDS:
            result = msgspec.convert(tomllib.loads(path.read_text()), dict[str, Table])
            assert not read.keys() & result.keys(), (
                f"{path.name}: {sorted(read.keys() & result.keys())} stand elsewhere"
            )
            read.update(result)
    return read


@cache
def guards() -> dict[str, dict[str, Any]]:
    """Circumstances by name: changes that keep many rules silent."""
    return tomllib.loads((FOLDER / f"{GUARDS}.toml").read_text())


@cache
def rules() -> dict[str, Rule]:
    """Every rule by name."""
    return {rule.name: rule for rule in every_rule()}


def row_ids() -> list[tuple[str, str]]:
    """Rule and row of all that is to be asked; rows of the firing machine and of guards have names of their own."""
    return [(rule, row) for rule in tables() for row in _rows(rule)]


def row(rule: str, name: str) -> tuple[RuleContext, Row]:
    """The machine of a row, and the row with all that the rule has to answer."""
    result = _rows(rule)[name]
    texts = {name: _filled(getattr(result, name)) for name in ("says", "omits", "absorbs")}
    return _case(tables()[rule], result), msgspec.structs.replace(result, **texts)


_ANSWERS = ("finds", "unknown", "not_applicable", "passes", "says", "omits")


@cache
def _rows(rule: str) -> dict[str, Row]:
    collected, table = {}, tables()[rule]
    if table.finds:
        collected["fires"] = Row(firing=True, **{name: getattr(table, name) for name in _ANSWERS})
    for guard, state in table.silent_when.items():
        collected[f"silent when: {guard}"] = _silenced(table, guards()[guard], state)
    for name, row in table.rows.items():
        item = {f"{name}: {what}": {what: change} for what, change in row.each.items()}
        more = {one: msgspec.structs.replace(row, each=change) for one, change in item.items()} or {name: row}
        assert not collected.keys() & more.keys(), f"two rows of one name: {collected.keys() & more.keys()}"
        collected |= more
    return collected


def _silenced(table: Table, guard: dict[str, Any], said: str) -> Row:
    """The firing machine and one guard: what was at fault has this state, or all, or the node instead of them."""
    state, _, reason = said.partition(": ")
    state, _, whose = state.partition(" of ")
    faulty = [fault[0] for fault in table.finds]
    row = Row(firing=True, change=guard, says=[reason] if reason else [])
    if state == "pass":
        return msgspec.structs.replace(row, passes=table.passes + len(faulty))
    assert state in ("unknown", "not_applicable"), said
    subjects = {"": faulty, "all": [ALL] * (table.passes + len(faulty)), "node": ["node"]}[whose]
    return msgspec.structs.replace(row, passes=0 if whose else table.passes, **{state: subjects})


def _case(table: Table, row: Row) -> RuleContext:
    name = row.machine or table.machine
    value = data(name)
    if row.firing:
        value = laid_over(value, _filled(table.firing))
    for change in (row.change, *row.each.values()):
        value = laid_over(value, _filled(change))
    case = case_of(value)
    own = _own_parts(name)
    unread = [key for field in value.keys() - {"settings"} for key in _unread(value[field], getattr(case, field), own)]
    assert not unread, f"the model has no field {unread}"
    return case


def _unread(value: Any, made: Any, own: frozenset[int]) -> Iterator[str]:
    """Keys of the data that no field of the model reads: a change by such a name would change nothing."""
    if id(value) in own:
        return
    if isinstance(made, msgspec.Struct) and isinstance(value, dict):
        names = {field.encode_name: field.name for field in _fields(type(made))}
        for key, below in value.items():
            yield from _unread(below, getattr(made, names[key]), own) if key in names else [key]
    elif isinstance(made, Mapping):
        for key, below in made.items():
            yield from _unread(value[str(key)], below, own)
    elif isinstance(made, list | tuple) and isinstance(value, list | tuple):
        for one, below in zip(value, made, strict=True):
            yield from _unread(one, below, own)


@cache
def _own_parts(machine: str) -> frozenset[int]:
    """The ids of all parts of a machine's data: a changed machine holds the same objects where nothing is changed."""
    found, todo = set(), [data(machine)]
    while todo:
        part = todo.pop()
        found.add(id(part))
        todo += part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    return frozenset(found)


@cache
def data(machine: str) -> dict[str, Any]:
    """A machine as plain data."""
    return data_of(MACHINES[machine]())


def data_of(case: RuleContext) -> dict[str, Any]:
    """A case as plain data, without what is as the model has it by default."""
    plain = {name: _plain(getattr(case, name)) for name in _FIELDS if name != "settings"}
    thresholds, facts = dict(case.settings.thresholds), dict(case.settings.facts)
    return {**plain, "settings": {"disabled": sorted(case.settings.disabled), "thresholds": thresholds, "facts": facts}}


_fields = cache(msgspec.structs.fields)


def _plain(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        fields = [(field, getattr(value, field.name)) for field in _fields(type(value))]
        return {item.encode_name: _plain(now) for item, now in fields if now != _default(item)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _default(field: msgspec.structs.FieldInfo) -> Any:
    if field.default is msgspec.NODEFAULT and field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return field.default


def case_of(value: Mapping[str, Any]) -> RuleContext:
    """The case that this data is of."""
    result = {
        name: msgspec.convert(value[name], kind, str_keys=True) for name, kind in _FIELDS.items() if name != "settings"
    }
    given = value["settings"]
    thresholds, facts = MappingProxyType(given["thresholds"]), MappingProxyType(given["facts"])
    return RuleContext(**result, settings=Settings(frozenset(given["disabled"]), thresholds, facts))


def laid_over(value: Any, change: Any) -> Any:
    """Data with a change laid over it."""
    if change == NONE:
        return None
    if not isinstance(change, dict):
        return [laid_over(None, row) for row in change] if isinstance(change, list) else change
    if isinstance(value, list):
        names = row_names(value)
        rows = dict(zip(names, value, strict=True))
        return list(_merged(rows, change).values())
    return _merged(value if isinstance(value, dict) else {}, change)


def _merged(rows: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    rows = dict(rows)
    changes = [(key, change[ALL]) for key in rows] if ALL in change else []
    for key, new in (*changes, *((key, new) for key, new in change.items() if key != ALL)):
        if new == GONE:
            assert key in rows, f"{key} is not there"
            del rows[key]
        else:
            rows[key] = laid_over(rows.get(key), new)
    return rows


def row_names(rows: list[Any]) -> list[str]:
    """What rows of a list are named by: their id, their two ends, else their place."""
    for fields in (("id",), ("name",), ("a", "b")):
        if rows and all(isinstance(row, dict) and all(isinstance(row.get(f), str) for f in fields) for row in rows):
            names = [" ".join(row[field] for field in fields) for row in rows]
            if len(set(names)) == len(names):
                return names
    return [f"#{place}" for place in range(len(rows))]


def answered(answers: list[Result], severity: str) -> Answers:
    """What a rule of this severity answered, in order of the subjects."""
    kinds: dict[type[Any], list[str]] = {Pass: [], Unknown: [], NotApplicable: []}
    finds = []
    for answer in answers:
        if isinstance(answer, Fail):
            finds.append([answer.subject, answer.severity or severity, *filter(None, [answer.cause])])
        else:
            kinds[type(answer)].append(answer.subject)
    return Answers(sorted(finds), sorted(kinds[Unknown]), sorted(kinds[NotApplicable]), len(kinds[Pass]))


def wanted(row: Row) -> Answers:
    """What a rule has to answer."""
    finds, unknown, silent = _filled([row.finds, row.unknown, row.not_applicable])
    return Answers(sorted(finds), sorted(unknown), sorted(silent), row.passes)


def counted(answers: Answers, like: Answers) -> Answers:
    """The same with "<all>" for every subject, where the other names none."""
    unknown, silent = ([ALL] * len(a) if ALL in b else a for a, b in zip(answers[1:3], like[1:3], strict=True))
    return answers._replace(unknown=unknown, not_applicable=silent)


def words(answers: list[Result]) -> str:
    """All that people read of answers, one text a line."""
    return "\n".join(["", *(text for answer in answers for text in _texts(answer)), ""])


def _texts(answer: Result) -> Iterator[str]:
    if isinstance(answer, Fail):
        yield from (answer.label, answer.summary, answer.impact, answer.remedy, answer.confidence)
        for item in answer.evidence:
            yield from (str(item.what), str(item.value), str(item.source))
        yield f"places: {' '.join(sorted(answer.places))}."
        yield f"covers: {' '.join(sorted(answer.covers or ()))}."
        yield f"situation: {answer.situation}."
        yield f"values: {' '.join(f'{name}={value}' for name, value in answer.values)}."
    elif not isinstance(answer, Pass):
        yield answer.reason


_PLACEHOLDER = re.compile(r"\{(?:(above|uplink|top):)?(gpu|rail|port|netdev)(\d+)\}")


def _filled(value: Any) -> Any:
    if isinstance(value, dict):
        return {_filled(key): _filled(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item) for item in value]
    return _PLACEHOLDER.sub(lambda found: address(*found.groups()), value) if isinstance(value, str) else value


def address(way: str | None, kind: str, number: str) -> str:
    """What a placeholder stands for on the machines of build.py."""
    n = int(number)
    bus = f"0000:{n + 1:x}"
    if way:
        return {"above": f"{bus}2:0{int(kind == 'rail')}.0", "uplink": f"{bus}1:00.0", "top": f"{bus}0:01.0"}[way]
    rail = build.nic_id(n)
    return {"gpu": build.gpu_id(n), "rail": rail, "port": f"port:{rail}/1", "netdev": f"netdev:{rail}"}[kind]
