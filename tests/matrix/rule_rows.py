"""When a rule fires and what keeps it silent, as rows: the tables of tests/matrix/rules/*.toml.

The tables beside this module lay a cause over whole machines and ask every rule; these lay one change over one small
machine of model objects (tests/agent/rules/build.py, moves.py) and ask one rule: limits, guards, words. A rule has

    [roce-rt-crc]
    machine = "roce"                   # of MACHINES: healthy; the runtime ones with a window in which nothing moved
    firing.window = ...                # what makes this rule fire there
    finds = ["port1 warning"]          # which faults it then reports: subject, severity, cause where it has one
    silent_when.not_applicable = ["virtual machine"]   # the firing machine with one circumstance of guards.toml:
                                       # no fault, and this state of what was at fault
    silent_when."unknown of node: no earlier sample" = ["no earlier sample"]   # one answer, for the node; behind the
                                       # colon a part of the reason; "unknown of all": every subject is
    silent_when.healthy = ["storage"]  # answers as on the healthy machine
    groups = ["counters", "rails"]     # circumstances that many rules share, with their answers: groups of guards.toml

    [roce-rt-crc.rows]                 # anything else: limits, counters restarted, drivers
    "one below the limit" = { window.moved.port1.crc = 9 }
    "storage matters less" = { firing = true, nics.rail1.role = "storage", finds = ["port1 info"] }

A row states what differs from the healthy machine. Its keys are facts (of the case, or of its topology), or

    machine, firing                    # another machine; from the firing machine, not the healthy one
    finds, unknown, not_applicable, passes   # subjects with this answer; "gpu*" is every such subject of the healthy
    gone                               # subjects that are not answered
    rest                               # what the others answer: "healthy" (as on the healthy machine), "gone", or a
                                       # state; if not given, "gone" where one machine has an answer for the node and
                                       # the other has answers for devices
    says, omits                        # words of its texts (summaries, remedies, evidence, reasons; behind a fault's
                                       # evidence the lines "ids: A B.", "explains: A B.", "situation: S." and
                                       # "values: NAME=V."), words in none of them; "\\n" is where a text begins or ends
    absorbs                            # what the finding explains, with all rules
    state                              # where a rule answers nothing: what the engine makes of it, part of the reason
    each                               # several machines: what each has besides, by name or as a list
    change                             # more facts, as a list: a line of a file may end in it

healthy.toml has what each rule answers about the machines without a change; `python -m tests.matrix.rule_rows` writes
it again.

A change is laid over the machine as data: tables are merged, rows of a list are named by their id (paths by their
ends, by their number, "0-3" by several, "{gpus}" and "{rails}", "rx_*", "<all>"), "<gone>" takes something away,
"<none>" is null; any other list is put in the place of the old one. A new row of a list has what is not given from the
row that `like` names, else as the model has it by default. `gpu1`, `rail1` are addresses (counted from 0), `above:gpu1`
the switch port above, `uplink:rail1` the upstream port of that switch, `top:rail1` its root port, `port1` and
`netdev1` the subjects of rail 1; in braces where they are part of a text. A subject may have them without braces:
"gpu1", "pci:rail1"; and a range of numbers: "gpu0-3", "link:{gpu1}/0-17".

What follows from a change is not stated: the bandwidth of a link from its speed and width, the line of an NCCL setting
from its name and value, the name of a probe, the source of an event (dmesg). `probes.pci = "failed"` and
`quality = "idle"` are states with a reason for the test.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache, partial
from types import MappingProxyType
from typing import Any, get_type_hints
from zlib import crc32

import msgspec

from agent.model.pci import bandwidth_gbyte_s
from agent.model.topology import Topology
from agent.rules.catalogue import every_rule
from agent.rules.context import RuleContext, Settings
from agent.rules.rule import Fail, NotApplicable, Pass, Result, Rule, Unknown
from tests.agent.rules import build, fabric, machines, moves
from tests.agent.rules.machines import direct_nic
from tests.conftest import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = ROOT / "tests" / "matrix" / "rules"
GUARDS = "guards"  # the file of circumstances that many rules share
HEALTHY = "healthy"  # the file of answers about machines without a change
GONE, NONE, ALL, LIKE = "<gone>", "<none>", "<all>", "like"
MACHINES: dict[str, Callable[[], RuleContext]] = {
    "infiniband server": build.server,
    "ethernet server": lambda: build.server(ethernet=True),
    "infiniband server, seen before": lambda: machines.seen_before(build.server()),
    "ethernet server, seen before": lambda: machines.seen_before(build.server(ethernet=True)),
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
    **{f"{n} GPU{'s' * (n > 1)}, ethernet": partial(build.server, n, ethernet=True) for n in (1, 2, 3)},
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
_TOPOLOGY = frozenset(field.encode_name for field in msgspec.structs.fields(Topology))

States = dict[str, list[str]]  # by subject: "passes", "unknown", "not_applicable", or severity and cause of a fault
Changes = tuple[dict[str, Any], ...]


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One machine, what a rule answers about it otherwise than about the healthy one, and words of the answers."""

    name: str
    machine: str
    firing: bool = False
    changes: Changes = ()
    finds: list[str] = []
    unknown: list[str] = []
    not_applicable: list[str] = []
    passes: list[str] = []
    gone: list[str] = []
    rest: str = ""
    says: list[str] = []
    omits: list[str] = []
    absorbs: list[str] = []
    state: str = ""


class Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All rows of a rule, as they are written."""

    machine: str
    firing: dict[str, Any] = {}
    finds: list[str] = []
    unknown: list[str] = []
    not_applicable: list[str] = []
    passes: list[str] = []
    gone: list[str] = []
    rest: str = ""
    says: list[str] = []
    omits: list[str] = []
    silent_when: dict[str, list[str]] = {}
    groups: list[str] = []
    rows: dict[str, dict[str, Any]] = {}

    @property
    def circumstances(self) -> dict[str, list[str]]:
        """Guards by the answer that they lead to: its own, and those of its groups."""
        result = {state: list(names) for state, names in self.silent_when.items()}
        for group in self.groups:
            for state, names in guard_groups()[group].items():
                result.setdefault(state, []).extend(names)
        return result


_EXPECTED = ("finds", "unknown", "not_applicable", "passes", "gone", "rest", "says", "omits")
_KEYS = frozenset({*_EXPECTED, "machine", "firing", "absorbs", "state"})


@cache
def tables() -> dict[str, Table]:
    """Every rule's table by the name of the rule."""
    read: dict[str, Table] = {}
    for path in sorted(FOLDER.glob("*.toml")):
        if path.stem not in (GUARDS, HEALTHY):
            result = msgspec.convert(tomllib.loads(path.read_text()), dict[str, Table])
            assert not read.keys() & result.keys(), f"{path.name}: {sorted(read.keys() & result.keys())} twice"
            read.update(result)
    return read


@cache
def guards() -> dict[str, dict[str, Any]]:
    """Circumstances by name: changes that keep many rules silent."""
    return {name: change for name, change in _read_guards().items() if name != "groups"}


@cache
def guard_groups() -> dict[str, dict[str, list[str]]]:
    """Circumstances that many rules share: by the name of the group, guards by the answer that they lead to."""
    return msgspec.convert(_read_guards()["groups"], dict[str, dict[str, list[str]]])


def _read_guards() -> dict[str, dict[str, Any]]:
    return tomllib.loads((FOLDER / f"{GUARDS}.toml").read_text())


@cache
def rules() -> dict[str, Rule]:
    """Every rule by name."""
    return {rule.name: rule for rule in every_rule()}


def row_ids() -> list[tuple[str, str]]:
    """Rule and row of all that is to be asked; rows of the firing machine and of guards have names of their own."""
    return [(rule, row) for rule in tables() for row in rows(rule)]


def row(rule: str, name: str) -> tuple[RuleContext, Row]:
    """The machine of a row, and the row."""
    result = rows(rule)[name]
    return machine_of(tables()[rule], result), result


@cache
def rows(rule: str) -> dict[str, Row]:
    """Every row of a rule by its name: "fires", "silent when: GUARD", "ROW", "ROW: MACHINE" or "ROW #2"."""
    table = tables()[rule]
    read = [Row(name="fires", machine=table.machine, firing=True, **_expected(table))] if table.finds else []
    for state, names in table.circumstances.items():
        read += [_silenced(table, guard, state) for guard in names]
    for name, written in table.rows.items():
        read += _rows(table, name, written)
    result = {row.name: row for row in read}
    assert len(result) == len(read), f"{rule}: two rows of one name: {Counter(row.name for row in read).most_common(1)}"
    return result


def _expected(table: Table) -> dict[str, Any]:
    return {name: getattr(table, name) for name in _EXPECTED}


def _rows(table: Table, name: str, written: dict[str, Any]) -> Iterator[Row]:
    """The rows of one name; each of several machines has the changes and answers of all and its own."""
    common = _row(Row(name=name, machine=table.machine), {key: written[key] for key in written if key != "each"})
    several = written.get("each", [{}])
    if isinstance(several, dict):
        several = [{"name": label, **own} for label, own in several.items()]
    for n, own in enumerate(several, 1):
        full = f"{name}: {own['name']}" if "name" in own else f"{name} #{n}" if n > 1 else name
        yield _row(msgspec.structs.replace(common, name=full), own)


def _row(row: Row, written: dict[str, Any]) -> Row:
    stated = {key: written[key] for key in written if key in _KEYS}
    return msgspec.convert(
        {**msgspec.structs.asdict(row), **stated, "changes": [*row.changes, *_changes(written)]}, Row
    )


def _changes(written: dict[str, Any]) -> Changes:
    """The facts in a row, in the order in which they are laid over the machine."""
    facts = {key: value for key, value in written.items() if key not in _KEYS and key not in ("name", "change")}
    return (*((facts,) if facts else ()), *written.get("change", ()))


def _silenced(table: Table, guard: str, written: str) -> Row:
    """The firing machine and one guard: what was at fault has this state, or all, or the node instead of them."""
    state, _, reason = written.partition(": ")
    state, _, whose = state.partition(" of ")
    row = Row(
        name=f"silent when: {guard}",
        machine=table.machine,
        firing=True,
        changes=(guards()[guard],),
        says=[reason] if reason else [],
    )
    if state == "healthy":
        return row
    assert state in ("unknown", "not_applicable"), written
    if whose == "all":
        return msgspec.structs.replace(row, rest=state)
    subjects = ["node"] if whose else list(dict.fromkeys(fault.split(" ")[0] for fault in table.finds))
    return msgspec.structs.replace(row, **{state: subjects})


def machine_of(table: Table, row: Row) -> RuleContext:
    """The machine of a row."""
    value = data(row.machine)
    for change in (*(_changes(table.firing) if row.firing else ()), *row.changes):
        value = laid_over(value, filled(change))
    value = completed(value, data(row.machine))
    case = case_of(value)
    own = _own_parts(row.machine)
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


def filled(change: Mapping[str, Any]) -> dict[str, Any]:
    """A change as it is laid over a machine: places as addresses, parts of the topology in the topology."""
    result: dict[str, Any] = {}
    for key, value in change.items():
        into = result.setdefault("topology", {}) if key in _TOPOLOGY else result
        into[key] = _filled(value)
    for name, run in result.get("probes", {}).items():
        result["probes"][name] = _spelled_out("status", run)
    return result


def _spelled_out(field: str, state: Any) -> Any:
    """A state of one word with a reason for it."""
    if not isinstance(state, str) or state in (GONE, NONE):
        return state
    return {field: state, "reason": f"{state} for the test"}


def completed(value: dict[str, Any], healthy: dict[str, Any]) -> dict[str, Any]:
    """A machine with what follows from what was changed; what a change states itself stays."""
    topology, software = value["topology"], value["software"]
    probes = {name: {"name": name, **run} for name, run in value["probes"].items()}
    result = {**value, "probes": probes, "events": [{"source": "dmesg", **event} for event in value["events"]]}
    if "pci" in topology:
        links = {row["id"]: row.get("link") for row in healthy["topology"]["pci"]}
        functions = [_with_bandwidth(row, links.get(row["id"])) for row in topology["pci"]]
        result["topology"] = {**topology, "pci": functions}
    if settings := software.get("nccl", {}).get("settings"):
        before = healthy["software"].get("nccl", {}).get("settings", [])
        lines = [_with_line(row, before[n] if n < len(before) else {}) for n, row in enumerate(settings)]
        result["software"] = {**software, "nccl": {**software["nccl"], "settings": lines}}
    return result


def _with_bandwidth(function: dict[str, Any], before: dict[str, Any] | None) -> dict[str, Any]:
    link = function.get("link")
    if not link or not before or link.get("bandwidth_gbyte_s") != before.get("bandwidth_gbyte_s"):
        return function
    if all(link.get(name) == before.get(name) for name in ("speed_gt_s", "width")):
        return function
    rest = {name: fact for name, fact in link.items() if name != "bandwidth_gbyte_s"}
    bandwidth = bandwidth_gbyte_s(link.get("speed_gt_s"), link.get("width"))
    return {**function, "link": rest if bandwidth is None else {**rest, "bandwidth_gbyte_s": bandwidth}}


def _with_line(setting: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    if setting.get("line") != before.get("line") or setting == before:
        return setting
    return {**setting, "line": f"{setting['key']}={setting['value']}"}


def laid_over(value: Any, change: Any) -> Any:
    """Data with a change laid over it."""
    if change == NONE:
        return None
    if not isinstance(change, dict):
        return [laid_over(None, row) for row in change] if isinstance(change, list) else change
    if isinstance(value, list):
        fields, names = row_names(value)
        table = dict(zip(names, value, strict=True))
        return list(_merged(table, {_numbered(key, table): new for key, new in change.items()}, fields).values())
    return _merged(value if isinstance(value, dict) else {}, change)


def _merged(rows: dict[str, Any], change: dict[str, Any], fields: Sequence[str] = ()) -> dict[str, Any]:
    before, rows = rows, dict(rows)
    for name, new in change.items():
        for key in _several(name, before):
            if new == GONE:
                assert key in rows, f"{key} is not there"
                del rows[key]
            elif key in rows or not fields:
                rows[key] = laid_over(rows.get(key), new)
            else:
                names = {} if key.startswith("#") else dict(zip(fields, key.split(" "), strict=True))
                like = before[new[LIKE]] if LIKE in new else {}
                rows[key] = laid_over({**like, **names}, {field: new[field] for field in new if field != LIKE})
    return rows


def _several(name: str, rows: Mapping[str, Any]) -> Sequence[str]:
    """What a name stands for: all rows, GPUs, rails, those of some numbers, or those that match; else for itself."""
    if name == ALL:
        return list(rows)
    if name in _PLACES:
        return [key for key in rows if key in _PLACES[name]]
    if found := re.fullmatch(r"#?(\d+)-(\d+)", name):
        return [key for n, key in enumerate(rows) if int(found[1]) <= n <= int(found[2])]
    if "*" in name[:-1] or name[1:].endswith("*"):
        return [key for key in rows if fnmatchcase(key, name)] or [name]
    return [name]


_PLACES = {"{gpus}": frozenset(map(build.gpu_id, range(12))), "{rails}": frozenset(map(build.nic_id, range(12)))}


def _numbered(key: str, rows: Mapping[str, Any]) -> str:
    """The name of a row by its number."""
    if not key.isdigit() or key in rows:
        return key
    return list(rows)[int(key)] if int(key) < len(rows) else f"#{key}"


def row_names(rows: list[Any]) -> tuple[Sequence[str], list[str]]:
    """What rows of a list are named by: the fields of their id or their two ends, else their place."""
    for fields in (("id",), ("name",), ("a", "b"), ("subject",)):
        if rows and all(isinstance(row, dict) and all(isinstance(row.get(f), str) for f in fields) for row in rows):
            names = [" ".join(row[field] for field in fields) for row in rows]
            if len(set(names)) == len(names):
                return fields, names
    return (), [f"#{place}" for place in range(len(rows))]


def states(answers: list[Result], severity: str) -> States:
    """What a rule of this severity answers, by subject."""
    result: States = defaultdict(list)
    for answer in answers:
        if isinstance(answer, Fail):
            result[answer.subject].append(" ".join(filter(None, [answer.severity or severity, answer.cause])))
        else:
            result[answer.subject].append(_STATES[type(answer)])
    return {subject: sorted(stated) for subject, stated in result.items()}


_STATES: dict[type[Any], str] = {Pass: "passes", Unknown: "unknown", NotApplicable: "not_applicable"}


def healthy_states(rule: Rule, machine: str) -> States:
    """What a rule answers about a machine without a change."""
    return states(list(rule.check(case_of(data(machine)))), rule.severity)


def wanted(row: Row, healthy: States) -> States:
    """What a rule has to answer: what the row states, and of all other subjects what it answers of the healthy one."""
    stated = stated_by(row, healthy)
    rest = row.rest or ("gone" if _excludes_node(stated, healthy) else "healthy")
    others = {} if rest == "gone" else healthy if rest == "healthy" else {subject: [rest] for subject in healthy}
    gone = {subject for pattern in _subjects(row.gone) for subject in _matched(pattern, healthy)}
    return {**{subject: others[subject] for subject in others if subject not in gone}, **stated}


def _excludes_node(stated: States, healthy: States) -> bool:
    """Whether one of both is of the node, the other of its devices."""
    return ("node" in stated and "node" not in healthy) or (bool(stated) and healthy.keys() == {"node"} - stated.keys())


def stated_by(row: Row, healthy: States) -> States:
    """What a row states about subjects that it names."""
    result: States = defaultdict(list)
    for fault in row.finds:
        subjects, _, rest = fault.partition(" ")
        for one in (subject for pattern in _subjects([subjects]) for subject in _matched(pattern, healthy)):
            result[one].append(rest)
    for state in ("passes", "unknown", "not_applicable"):
        for pattern in _subjects(getattr(row, state)):
            for one in _matched(pattern, healthy):
                result[one].append(state)
    return {subject: sorted(stated) for subject, stated in result.items()}


def _subjects(written: list[str]) -> list[str]:
    return [_subject(one) for text in written for one in _one_each(text)]


def _one_each(text: str) -> list[str]:
    """A range of numbers at the end of a subject as the subjects that it stands for."""
    if (found := _RANGE.fullmatch(text)) is None:
        return [text]
    return [f"{found[1]}{number}" for number in range(int(found[2]), int(found[3]) + 1)]


_RANGE = re.compile(r"(.*(?:/|gpu|rail|port|netdev))(\d+)-(\d+)")


def _matched(pattern: str, healthy: States) -> list[str]:
    return [subject for subject in healthy if fnmatchcase(subject, pattern)] if "*" in pattern else [pattern]


def machines_of(rule: str) -> set[str]:
    """Machines that the rows of a rule begin from."""
    return {row.machine for row in rows(rule).values()}


@cache
def read_healthy() -> dict[str, dict[str, str]]:
    """By rule and machine what it answers about the machine without a change."""
    result: dict[str, dict[str, str]] = defaultdict(dict)
    for machine, answers in tomllib.loads((FOLDER / f"{HEALTHY}.toml").read_text()).items():
        for text, names in answers.items():
            for name in names:
                result[name][machine] = text
    return result


def summarize(rule: Rule, machine: str) -> str:
    """What a rule answers about a machine without a change: how many of which kind; which, where states differ."""
    healthy = healthy_states(rule, machine)
    by_state: dict[str, list[str]] = defaultdict(list)
    for subject, stated in healthy.items():
        for state in stated:
            by_state[state].append(subject)
    texts = []
    for state, subjects in sorted(by_state.items(), key=lambda item: (-len(item[1]), item[0])):
        kinds = Counter(subject.partition(":")[0] for subject in subjects)
        names = [f"{count} {kind}" for kind, count in sorted(kinds.items())]
        if texts and len(subjects) <= 3:
            names = sorted(subjects)
        elif texts:
            names.append(f"{crc32(' '.join(sorted(subjects)).encode()):08x}")
        texts.append(f"{state}: {', '.join(names)}")
    return "; ".join(texts) or "nothing"


def write_healthy() -> None:
    """Write what every rule answers about the machines that its rows begin from, and about those listed before."""
    listed: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name in sorted(tables()):
        for machine in machines_of(name) | read_healthy().get(name, {}).keys():
            listed[machine][summarize(rules()[name], machine)].append(name)
    lines = [
        "# What each rule answers about each machine without a change. `python -m tests.matrix.rule_rows` writes it."
    ]
    for machine, answers in sorted(listed.items()):
        lines += ["", f'["{machine}"]']
        for text, names in sorted(answers.items()):
            line = f'"{text}" = ['
            for name in names:
                if len(line) + len(name) > 114:
                    lines.append(line.rstrip())
                    line = "  "
                line += f'"{name}", '
            lines.append(line[:-2] + "]")
    (FOLDER / f"{HEALTHY}.toml").write_text("\n".join(lines) + "\n")


def find_superfluous(table: Table, row: Row, healthy: States) -> Iterator[str]:
    """What a row states and would be so without it."""
    expected = wanted(row, healthy)
    for kind in ("finds", "unknown", "not_applicable", "passes", "gone"):
        entries: list[str] = getattr(row, kind)
        for n, entry in enumerate(entries):
            if wanted(msgspec.structs.replace(row, **{kind: entries[:n] + entries[n + 1 :]}), healthy) == expected:
                yield f"{kind} {entry} is so without it"
    if row.rest and wanted(msgspec.structs.replace(row, rest=""), healthy) == expected:
        yield f"the rest is {row.rest} without it"
    before = data(row.machine)
    for change in (*(_changes(table.firing) if row.firing else ()), *row.changes):
        after = laid_over(before, filled(change))
        if after == before:
            yield f"{change} changes nothing"
        yield from (f"{path} is so without it" for path in find_unchanged(before, filled(change), ""))
        before = after
    if before == data(row.machine) and not any((row.says, row.omits, row.absorbs, row.state)):
        yield "it is the healthy machine"


def find_unchanged(value: Any, change: Any, path: str) -> Iterator[str]:
    """Facts of a change that a machine has before it."""
    if not isinstance(change, dict) or LIKE in change:
        if laid_over(value, change) == value:
            yield path
        return
    rows = dict(zip(row_names(value)[1], value, strict=True)) if isinstance(value, list) else value
    if not isinstance(rows, dict):
        return
    stated = Counter(key for name in change for key in _several(_numbered(name, rows), rows))
    for name, new in change.items():
        keys = _several(_numbered(name, rows), rows)
        if new != GONE and max((stated[key] for key in keys), default=0) == 1:  # else it may set right what another did
            unchanged = [set(find_unchanged(rows[key], new, f"{path}.{name}")) for key in keys if key in rows]
            yield from set.intersection(*unchanged) if unchanged else ()


def words(answers: list[Result]) -> str:
    """All that people read of answers, one text a line."""
    return "\n".join(["", *(text for answer in answers for text in _texts(answer)), ""])


def _texts(answer: Result) -> Iterator[str]:
    if isinstance(answer, Fail):
        yield from (answer.label, answer.summary, answer.impact, answer.remedy, answer.confidence)
        for item in answer.evidence:
            yield from (str(item.what), str(item.value), str(item.source))
        yield f"ids: {' '.join(sorted(answer.ids))}."
        yield f"explains: {' '.join(sorted(answer.explains_ids or ()))}."
        yield f"situation: {answer.situation}."
        yield f"values: {' '.join(f'{name}={value}' for name, value in answer.values)}."
    elif not isinstance(answer, Pass):
        yield answer.reason


_PLACE = r"(?:(above|uplink|top):)?(gpu|rail|port|netdev)(\d+)"
_PLACEHOLDER = re.compile(rf"\{{{_PLACE}\}}")
_BARE = re.compile(_PLACE)
_SUBJECT = re.compile(rf"(pci:|gpu:|nic:)?{_PLACE}")


def _filled(value: Any) -> Any:
    if isinstance(value, dict):
        value = {**value, "quality": _spelled_out("state", value["quality"])} if "quality" in value else value
        return {_key(key): _place(item) if key == LIKE else _filled(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item) for item in value]
    return fill(value) if isinstance(value, str) else value


def fill(text: str) -> str:
    """A text with the places in it as addresses."""
    return _PLACEHOLDER.sub(lambda found: address(*found.groups()), text)


def _key(key: str) -> str:
    """The name of a row or field."""
    return " ".join(map(_place, key.split(" ")))


def _place(word: str) -> str:
    bare = _BARE.fullmatch(word)
    return address(*bare.groups()) if bare else fill(word)


def _subject(word: str) -> str:
    bare = _SUBJECT.fullmatch(word)
    if not bare:
        return fill(word)
    kind = bare[1] or {"gpu": "gpu:", "rail": "nic:"}.get(bare[3], "")
    return f"{kind}{address(bare[2], bare[3], bare[4])}"


def address(way: str | None, kind: str, number: str) -> str:
    """What a placeholder stands for on the machines of build.py."""
    n = int(number)
    bus = f"0000:{n + 1:x}"
    if way:
        return {"above": f"{bus}2:0{int(kind == 'rail')}.0", "uplink": f"{bus}1:00.0", "top": f"{bus}0:01.0"}[way]
    rail = build.nic_id(n)
    return {"gpu": build.gpu_id(n), "rail": rail, "port": f"port:{rail}/1", "netdev": f"netdev:{rail}"}[kind]


if __name__ == "__main__":
    write_healthy()
