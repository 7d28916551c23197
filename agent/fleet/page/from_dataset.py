"""A dataset -> the scene: the whole way on one page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from agent.fleet.cluster.from_dataset import Wiring
from agent.fleet.engines.engine import Tables
from agent.fleet.page import reading
from agent.fleet.page.columns import distinct, named, ranked
from agent.fleet.page.days import DAYS, finding_changes, verdicts_by_day
from agent.fleet.page.devices import Shape, gbyte_s, gpu_shape, rail_shape, rails
from agent.fleet.page.findings import MOST, findings
from agent.fleet.page.locations import domains, racks
from agent.fleet.page.scene import STATES, Coded, Nodes
from agent.fleet.page.versions import FACTS, judged, lines
from agent.fleet.questions.options import Options, of_dataset, reference

Hosts = Mapping[str, Sequence[Any]]  # columns of the table `host`


class Wish(NamedTuple):
    """What was asked for besides the dataset.

    `since`: from when on changes are told, UTC without a zone; None: a week before the newest look at a node. `pages`:
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
        """What the page's questions are told."""
        return Options(stale_after_seconds=self.stale_after_seconds, now=self.now)


class DatasetFacts(NamedTuple):
    """What the dataset says of its nodes."""

    nodes: Nodes
    newest: datetime | None
    wires: Wiring


def known(tables: Tables, wish: Wish, find_wiring: Callable[[], Wiring]) -> DatasetFacts:
    """All nodes in columns, in the order of their names. Raises EngineRefused, BadPattern.

    What takes the database most memory is read first, before there is much here.
    """
    digests = reading.NodeDigests(tables)
    gpus, wired = reading.gpus(tables, digests), reading.rails(tables, digests)
    rules, letters = reading.letters(tables, STATES, digests)
    unjudged = reading.unjudged(tables, digests)
    wires = find_wiring()
    hosts = reading.hosts(tables)
    names, received = hosts["node"], hosts["received_at"]
    newest = of_dataset(tables, max(filter(None, received), default=None))
    now = reference(newest, wish.options) if newest else None
    classes = named("class", "class", hosts["hardware_class"])
    made = _Shapes([gpu_shape(text) for text in gpus.all], [rail_shape(text) for text in wired.all])
    shapes = [_both(name, gpus, wired, made) for name in names]
    found = findings(names, reading.findings(tables, MOST))
    lined, line_codes = distinct([(*a.lines, *b.lines) or None for a, b in shapes])
    by_day = verdicts_by_day(tables, dict(zip(names, received, strict=True)), newest)
    came = finding_changes(tables, newest)
    changed, changed_codes = distinct([tuple(came[name]) if name in came else None for name in names])
    reasons, reason_codes = distinct([unjudged.of.get(name) for name in names])
    nodes = Nodes(
        names=names,
        verdicts=[verdict or "unknown" for verdict in hosts["verdict"]],
        stale=[_stale(at, now, wish.stale_after_seconds) for at in received],
        classes=classes,
        places=_places(names, hosts, shapes, wires, wish),
        metrics=_metrics(tables, names, received, shapes, classes, newest),
        facts=[
            *(named(key, title, _fact(hosts, key)) for key, title in FACTS),
            named("vbios", "VBIOS", [gpu.versions for gpu, _ in shapes]),
            named("firmware", "firmware of rails", [rail.versions for _, rail in shapes]),
        ],
        rails=rails(names, wired, found.on_devices, wires.leaves),
        judged=judged(names, rules, letters),
        found=found.found,
        found_sets=found.sets,
        found_codes=found.codes,
        lines=[list(each) for each in lined],
        line_codes=line_codes,
        unjudged=[lines(unjudged.all[reason]) for reason in reasons],
        unjudged_codes=reason_codes,
        days=named("days", f"last {DAYS} days", [by_day.get(name) for name in names]),
        changed=[list(each) for each in changed],
        changed_codes=changed_codes,
        pages={at: wish.pages[name] for at, name in enumerate(names) if name in wish.pages},
    )
    return DatasetFacts(nodes, newest, wires)


def stamp(at: datetime | None) -> str | None:
    """To the minute, UTC: a dataset's nodes share these."""
    return f"{at:%Y-%m-%d %H:%M} UTC" if at else None


def _stale(at: datetime | None, now: datetime | None, after: float) -> bool:
    return at is None or (now is not None and now - at > timedelta(seconds=after))


class _Shapes(NamedTuple):
    gpus: list[Shape]
    rails: list[Shape]


_NOTHING = Shape()


def _both(name: str, gpus: reading.Texts, wired: reading.Texts, shapes: _Shapes) -> tuple[Shape, Shape]:
    gpu, rail = gpus.of.get(name), wired.of.get(name)
    return (
        shapes.gpus[gpu] if gpu is not None else _NOTHING,
        shapes.rails[rail] if rail is not None else _NOTHING,
    )


def _places(
    names: Sequence[str], hosts: Hosts, shapes: Sequence[tuple[Shape, Shape]], wires: Wiring, wish: Wish
) -> list[Coded]:
    ways = (
        ("rack", "rack", racks(names, hosts["chassis_serial"], wish.rack)),
        ("unit", "scalable unit", [wires.units.get(name) for name in names]),
        ("domain", "NVLink domain", domains([gpu.domain for gpu, _ in shapes])),
    )
    made = [named(key, title, values) for key, title, values in ways]
    return [coded for coded in made if coded.labels]


def _metrics(
    tables: Tables,
    names: Sequence[str],
    received: Sequence[datetime | None],
    shapes: Sequence[tuple[Shape, Shape]],
    classes: Coded,
    newest: datetime | None,
) -> list[Coded]:
    errors, counted = reading.errors(tables)
    ages = [(newest - at).total_seconds() if newest and at else None for at in received]
    links = [min((shape.link for shape in both if shape.link is not None), default=None) for both in shapes]
    bad = [-_power(errors.get(name, 0)) if name in counted else None for name in names]
    made = [
        ranked("pcie", "slowest PCIe link of GPUs and rails", links, gbyte_s, classes),
        ranked("nvlink", "fewest active NVLinks of a GPU", [gpu.nvlinks for gpu, _ in shapes], _nv, classes),
        ranked("rate", "slowest rail", [rail.rate for _, rail in shapes], _gbit_s, classes),
        ranked("errors", "sum of error counters", bad, _many, classes),
        ranked("age", "last seen", [None if age is None else -_age(age) for age in ages], _ago, classes),
    ]
    return [coded for coded in made if coded.labels]


def _fact(hosts: Hosts, key: str) -> Sequence[str | None]:
    if key != "seen":
        return hosts[key]
    stamps = {at: stamp(at) for at in set(hosts["received_at"])}
    return [stamps[at] for at in hosts["received_at"]]


def _nv(count: float) -> str:
    return f"NV{count:.0f}" if count else "none"


def _gbit_s(rate: float) -> str:
    return f"{rate:g} Gbit/s" if rate else "a rail is not active"


def _power(count: int) -> float:
    """The least power of ten that is as many, 0 for none."""
    return float(10 ** (len(str(count)) - 1)) if count > 0 else 0.0


def _many(power: float) -> str:
    return "none" if not power else f"{-power:,.0f} and more" if power != -1 else "1 to 9"


AGES = ((3600.0, "within an hour"), (6 * 3600.0, "1 to 6 hours earlier"), (86_400.0, "6 to 24 hours earlier"),
        (2 * 86_400.0, "1 to 2 days earlier"), (7 * 86_400.0, "2 to 7 days earlier"))  # fmt: skip


def _age(seconds: float) -> float:
    return next((float(at) for at, (bound, _) in enumerate(AGES) if seconds <= bound), float(len(AGES)))


def _ago(rank: float) -> str:
    at = int(-rank)
    return AGES[at][1] if at < len(AGES) else "more than a week earlier"
