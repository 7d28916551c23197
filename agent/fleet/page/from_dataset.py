"""A dataset -> the scene, the whole way on one page: columns of nodes, answers to questions, what is unknown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple

from agent.fleet.cluster.from_dataset import Wiring
from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import query, statement
from agent.fleet.lossless.answer import LosslessAnswer
from agent.fleet.page import answers, reading
from agent.fleet.page import findings as page_findings
from agent.fleet.page.columns import (
    FACTS,
    code_numbers,
    code_texts,
    find_distinct,
    find_skew,
    format_lines,
    read_judged,
)
from agent.fleet.page.devices import Shape, build_rails, format_gbyte_s, make_gpu_shape, make_rail_shape
from agent.fleet.page.findings import MOST, join_outliers
from agent.fleet.page.hops import build_hops
from agent.fleet.page.scene import LOOKS, STATES, CodedColumn, FleetScene, Nodes, Section
from agent.fleet.questions import drift, duplicates, findings, outliers, summary
from agent.fleet.questions.options import Options, find_reference_time, find_state, read_dataset_time, subtract_time
from agent.fleet.questions.summary import LOST, describe_lost_node, list_lost_gpus
from agent.fleet.racks import find_racks
from agent.fleet.text.summary import describe_coverage, describe_lost_gpus, describe_silence
from agent.model.labels import group_by_key
from agent.outputs.names import begin_sentence
from agent.version import VERSION

Hosts = Mapping[str, Sequence[Any]]  # columns of the table `host`
_NOTHING = Shape()
AGES = ((3600.0, "within an hour"), (6 * 3600.0, "1 to 6 hours earlier"), (86_400.0, "6 to 24 hours earlier"),
        (2 * 86_400.0, "1 to 2 days earlier"), (7 * 86_400.0, "2 to 7 days earlier"))  # fmt: skip
DAYS = 14
NO_REPORT = "."
_LETTERS = {look: look[0] for look in LOOKS}  # c e w u s o n
_VERDICTS = query("page", "verdict_changes")
_CHANGES = query("page", "finding_changes", episode=statement("views", "finding_episode"))
_DAY = timedelta(days=1)
WEEK = timedelta(days=7)


class PageOptions(NamedTuple):
    """What was asked for besides the dataset.

    `since`: from when on changes are shown, UTC without a zone; None: a week before the newest look at a node. `pages`:
    node -> address of its own page. `part`: not all nodes of the dataset are meant.
    """

    stale_after_seconds: float = 86_400.0
    since: datetime | None = None
    rack: str | None = None
    pages: Mapping[str, str] = {}
    part: bool = False
    now: datetime | None = None  # UTC without a zone; None: when the newest report arrived

    @property
    def options(self) -> Options:
        """The parameters of the page's questions."""
        return Options(stale_after_seconds=self.stale_after_seconds, now=self.now)


class DatasetFacts(NamedTuple):
    """What the dataset states of its nodes."""

    nodes: Nodes
    newest: datetime | None
    wires: Wiring


def read_dataset(tables: Tables, page_options: PageOptions, find_wiring: Callable[[], Wiring]) -> DatasetFacts:
    """All nodes in columns, in the order of their names. Raises EngineRefused, BadPattern.

    What takes the database most memory is read first, before there is much here.
    """
    digests = reading.NodeDigests(tables)
    gpus, wired = reading.read_gpus(tables, digests), reading.read_rails(tables, digests)
    rules, letters = reading.read_letters(tables, STATES, digests)
    unjudged = reading.read_unjudged(tables, digests)
    wires = find_wiring()
    hosts = reading.read_hosts(tables)
    names, received = hosts["node"], hosts["received_at"]
    newest = read_dataset_time(tables, max(filter(None, received), default=None))
    now = find_reference_time(newest, page_options.options) if newest else None
    classes = code_texts("class", "class", hosts["hardware_class"])
    device_shapes = _Shapes([make_gpu_shape(text) for text in gpus.all], [make_rail_shape(text) for text in wired.all])
    shapes = [_pair_shapes(name, gpus, wired, device_shapes) for name in names]
    reported = page_findings.findings(names, reading.read_findings(tables, MOST))
    lost_gpus = {lost.node: lost for lost in list_lost_gpus(tables.submit(LOST), newest)} if newest else {}
    lost_lines = [
        (f"had {lost_gpus[name].before} GPUs before {lost_gpus[name].since}",) if name in lost_gpus else ()
        for name in names
    ]
    lined, line_codes = find_distinct(
        [(*lost, *a.lines, *b.lines) or None for lost, (a, b) in zip(lost_lines, shapes, strict=True)]
    )
    by_day = list_verdicts_by_day(tables, dict(zip(names, received, strict=True)), newest)
    came = list_finding_changes(tables, newest)
    changed, changed_codes = find_distinct([tuple(came[name]) if name in came else None for name in names])
    reasons, reason_codes = find_distinct([unjudged.of.get(name) for name in names])
    nodes = Nodes(
        names=names,
        verdicts=[verdict or "unknown" for verdict in hosts["verdict"]],
        stale=[_is_stale(at, now, page_options.stale_after_seconds) for at in received],
        classes=classes,
        lost_gpus={
            at: (lost_gpus[name].state, describe_lost_node(lost_gpus[name]))
            for at, name in enumerate(names)
            if name in lost_gpus
        },
        places=_list_places(names, hosts, shapes, wires, page_options),
        metrics=_list_metrics(tables, names, received, shapes, classes, newest),
        facts=[
            *(code_texts(key, title, _list_fact(hosts, key)) for key, title in FACTS),
            code_texts("vbios", "VBIOS", [gpu.versions for gpu, _ in shapes]),
            code_texts("firmware", "firmware of rails", [rail.versions for _, rail in shapes]),
        ],
        rails=build_rails(names, wired, reported.on_devices, wires.leaves),
        judged=read_judged(names, rules, letters),
        found=reported.found,
        found_sets=reported.sets,
        found_codes=reported.codes,
        lines=[list(node_lines) for node_lines in lined],
        line_codes=line_codes,
        unjudged=[format_lines(unjudged.all[reason]) for reason in reasons],
        unjudged_codes=reason_codes,
        days=code_texts("days", f"last {DAYS} days", [by_day.get(name) for name in names]),
        changed=[list(node_changes) for node_changes in changed],
        changed_codes=changed_codes,
        pages={at: page_options.pages[name] for at, name in enumerate(names) if name in page_options.pages},
    )
    return DatasetFacts(nodes, newest, wires)


def format_stamp(at: datetime | None) -> str | None:
    """To the minute, UTC: a dataset's nodes share these."""
    return f"{at:%Y-%m-%d %H:%M} UTC" if at else None


def _is_stale(at: datetime | None, now: datetime | None, after: float) -> bool:
    return at is None or (now is not None and now - at > timedelta(seconds=after))


class _Shapes(NamedTuple):
    gpus: list[Shape]
    rails: list[Shape]


def _pair_shapes(name: str, gpus: reading.Texts, wired: reading.Texts, shapes: _Shapes) -> tuple[Shape, Shape]:
    gpu, rail = gpus.of.get(name), wired.of.get(name)
    return (
        shapes.gpus[gpu] if gpu is not None else _NOTHING,
        shapes.rails[rail] if rail is not None else _NOTHING,
    )


def _list_places(
    names: Sequence[str], hosts: Hosts, shapes: Sequence[tuple[Shape, Shape]], wires: Wiring, page_options: PageOptions
) -> list[CodedColumn]:
    ways = (
        ("rack", "rack", find_racks(names, hosts["chassis_serial"], page_options.rack)),
        ("unit", "scalable unit", [wires.units.get(name) for name in names]),
        ("domain", "NVLink domain", _list_domains([gpu.domain for gpu, _ in shapes])),
    )
    places = [code_texts(key, title, values) for key, title, values in ways]
    return [coded for coded in places if coded.labels]


def _list_metrics(
    tables: Tables,
    names: Sequence[str],
    received: Sequence[datetime | None],
    shapes: Sequence[tuple[Shape, Shape]],
    classes: CodedColumn,
    newest: datetime | None,
) -> list[CodedColumn]:
    errors, counted = reading.read_errors(tables)
    ages = [(newest - at).total_seconds() if newest and at else None for at in received]
    links = [min((shape.link for shape in both if shape.link is not None), default=None) for both in shapes]
    bad = [-_round_power(errors.get(name, 0)) if name in counted else None for name in names]
    metrics = [
        code_numbers("pcie", "slowest PCIe link of GPUs and rails", links, format_gbyte_s, classes),
        code_numbers(
            "nvlink", "fewest active links of a GPU to others", [gpu.nvlinks for gpu, _ in shapes], _format_nv, classes
        ),
        code_numbers("rate", "slowest rail", [rail.rate for _, rail in shapes], _format_gbit_s, classes),
        code_numbers("errors", "sum of error counters", bad, _format_many, classes),
        code_numbers(
            "age", "last seen", [None if age is None else -_compute_age(age) for age in ages], _format_ago, classes
        ),
    ]
    return [coded for coded in metrics if coded.labels]


def _list_fact(hosts: Hosts, key: str) -> Sequence[str | None]:
    if key != "seen":
        return hosts[key]
    stamps = {at: format_stamp(at) for at in set(hosts["received_at"])}
    return [stamps[at] for at in hosts["received_at"]]


def _format_nv(count: float) -> str:
    return f"NV{count:.0f}" if count else "none"


def _format_gbit_s(rate: float) -> str:
    return f"{rate:g} Gbit/s" if rate else "a rail is not active"


def _round_power(count: int) -> float:
    """The least power of ten that is as many, 0 for none."""
    return float(10 ** (len(str(count)) - 1)) if count > 0 else 0.0


def _format_many(power: float) -> str:
    return "none" if not power else f"{-power:,.0f} and more" if power != -1 else "1 to 9"


def _compute_age(seconds: float) -> float:
    return next((float(at) for at, (bound, _) in enumerate(AGES) if seconds <= bound), float(len(AGES)))


def _format_ago(rank: float) -> str:
    at = int(-rank)
    return AGES[at][1] if at < len(AGES) else "more than a week earlier"


def _list_domains(values: Sequence[str | None]) -> list[str | None]:
    """The start of the cluster's UUID and the clique, where that distinguishes them."""
    short = {value: _shorten(value) for value in values if value}
    apart = len(set(short.values())) == len(short)
    return [None if value is None else short[value] if apart else value for value in values]


def _shorten(domain: str) -> str:
    uuid, _, clique = domain.rpartition(".")
    return f"{uuid[:8]}.{clique}"


def list_verdicts_by_day(
    tables: Tables, last_reports: Mapping[str, datetime | None], newest: datetime | None
) -> dict[str, str]:
    """Node -> a letter for each of the last days, the newest last: the state at its end; "." where none is known.

    Days after a node's last report have none: what was not scanned is not shown as it was.
    """
    if newest is None:
        return {}
    first = date.fromordinal(max(newest.toordinal() - DAYS + 1, date.min.toordinal()))
    days = [first + timedelta(days=at) for at in range(newest.toordinal() - first.toordinal() + 1)]
    rows = sorted(tables.rows(_VERDICTS), key=lambda row: (row[0], row[1]))
    days_of = group_by_key(
        (node, (at.date(), _LETTERS[find_state(verdict, stale=False)])) for node, at, verdict in rows
    )
    return {
        node: _encode_days(days_of[node], days, last.date())
        for node, last in last_reports.items()
        if last is not None and node in days_of
    }


def _encode_days(changes: Sequence[tuple[date, str]], days: Sequence[date], last: date) -> str:
    """
    >>> day = lambda n: date(2026, 1, n)
    >>> _encode_days([(day(2), "o"), (day(3), "e"), (day(3), "w")], [day(n) for n in range(1, 6)], day(4))
    '.oww.'
    """
    text, now, at = "", NO_REPORT, 0
    for day in days:
        while at < len(changes) and changes[at][0] <= day:
            now = changes[at][1]
            at += 1
        text += now if day <= last else NO_REPORT
    return text


def list_finding_changes(tables: Tables, newest: datetime | None) -> dict[str, list[str]]:
    """Node -> "new: RULE on LABEL" and "gone: .." of the last day; of a node that is new nothing is."""
    if newest is None:
        return {}
    since = subtract_time(newest, _DAY)
    return group_by_key(
        (node, f"{'new' if is_new else 'gone'}: {rule}{f' on {label}' if label else ''}")
        for node, rule, label, is_new in sorted(tables.rows(_CHANGES.bind(moment=since)), key=str)
    )


def build_scene(
    tables: Tables,
    find_wiring: Callable[[], Wiring],
    page_options: PageOptions,
    now: datetime,
    *,
    title: str = "Fleet",
    quarantined: int | None = 0,
    lossless: LosslessAnswer | None = None,
) -> FleetScene:
    """Of the nodes in the tables, and of the hops between them. Raises EngineRefused, BadPattern."""
    facts = read_dataset(tables, page_options, find_wiring)
    hops = build_hops(lossless, answers.NodeIndex(facts.nodes)) if lossless is not None else None
    answer = summary.build_summary(tables, page_options.options)
    return FleetScene(
        title=title,
        made=f"{now:%Y-%m-%d %H:%M} UTC",
        version=VERSION,
        newest=format_stamp(facts.newest),
        stale_after_hours=round(page_options.stale_after_seconds / 3600, 2),
        nodes=facts.nodes,
        sections=[*_build_sections(tables, facts, page_options), *([hops.section] if hops else [])],
        hops=hops,
        skew=find_skew(facts.nodes),
        coverage=answer.coverage,
        coverage_words=describe_coverage(answer),
        notes=[*map(begin_sentence, _list_warnings(answer)), *_list_notes(facts)],
        quarantined=quarantined,
    )


def _build_sections(tables: Tables, facts: DatasetFacts, page_options: PageOptions) -> list[Section]:
    options = page_options.options
    numbers = answers.NodeIndex(facts.nodes)
    items = list(
        join_outliers(
            answers.build_findings(findings.find_findings(tables, options), numbers),
            answers.build_outliers(outliers.find_outliers(tables, options), numbers),
        )
    )
    quiet = answers.list_silenced(numbers)
    items[1:1] = [quiet] if quiet else []
    if facts.wires.answer is not None:
        items.append(answers.build_cluster(facts.wires.answer, numbers, page_options.part))
    start = page_options.since or _find_since(reading.read_first_reports(tables), facts.newest)
    if start is not None:
        items.append(
            answers.build_drift(drift.find_drift(tables, start), numbers, requested=page_options.since is not None)
        )
    items.append(answers.build_duplicates(duplicates.find_duplicates(tables, options), numbers))
    return items


def _find_since(firsts: list[datetime], newest: datetime | None) -> datetime | None:
    """A week back; where most nodes were not known then, when the last of them came to be known."""
    if newest is None:
        return None
    start = subtract_time(newest, WEEK)
    young = sum(first > start for first in firsts) * 2 > len(firsts)
    return max(firsts) if young else start


def _list_warnings(answer: summary.FleetSummary) -> Iterator[str]:
    if answer.silent:
        yield describe_silence(answer)
    if answer.lost_gpus:
        yield f"{describe_lost_gpus(answer)}."


def _list_notes(facts: DatasetFacts) -> list[str]:
    notes = list(facts.wires.answer.notes) if facts.wires.answer else []
    alone = sum(code < 0 for code in facts.nodes.classes.codes)
    who = "1 node is" if alone == 1 else f"{alone:,} nodes are"
    notes += [f"{who} of no known hardware class: compared with none"] if alone else []
    return notes
