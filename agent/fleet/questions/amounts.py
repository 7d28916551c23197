"""Numbers that differ a little on every node: odd is only what is far off, absolutely and relatively."""

from __future__ import annotations

from collections.abc import Iterator

from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import Pending, Row, lookup, query, statement
from agent.fleet.questions.baseline import CLASS, Usual, counted, median, spread, usual
from agent.fleet.questions.deviations import Deviation, PeerGroup
from agent.fleet.questions.options import Options
from agent.fleet.receipt import TOLERANCE
from agent.fleet.table import INT, TEXT
from agent.fleet.tables import LONGEST_SECONDS

_STEP = 0.05  # seconds: probes' durations are counted in steps
_SLOWER_BY = 2.0  # seconds
_SLOWER_TIMES = 5.0
_SPREADS = 10.0  # median distances from the median
_SERVED = ("ok", "partial")
_LESS_MIB = 4096  # firmware and crash kernels take some
_LESS_SHARE = 0.02


_TIMED = {"longest_seconds": LONGEST_SECONDS, "step_seconds": _STEP}
_STEPS = statement("outliers", "step")
MEMORY = query("outliers", "memory_counts")
CLOCKS = query("outliers", "clocks_ahead").bind(ahead_seconds=TOLERANCE.total_seconds())
PROBES = query("outliers", "probe_counts", step=_STEPS).bind(**_TIMED)
NODES = lookup({CLASS: TEXT, "memory_mib": INT}, "outliers", "memory_nodes")
_ENDED = {CLASS: TEXT, "name": TEXT, "status": TEXT, "step": INT}
ENDS = lookup(_ENDED, "outliers", "probe_nodes", step=_STEPS).bind(**_TIMED)


def memory(tables: Tables, begun: Pending, classes: dict[str, int], options: Options) -> Iterator[Deviation]:
    """Nodes with clearly less or more memory than the median of their class."""
    sums: dict[str, list[tuple[float, int]]] = {}
    for name, mib, count in begun():
        if name in classes:
            sums.setdefault(name, []).append((mib, count))
    ordinary: dict[str, tuple[float, float, Usual]] = {}
    for name, rows in sums.items():
        counts = counted(rows)
        if sum(counts.values()) < options.fewest:
            continue
        middle = median(counts)
        off = max(_LESS_MIB, _LESS_SHARE * middle, _SPREADS * spread(counts, middle))
        near = sum(count for mib, count in counts.items() if abs(mib - middle) <= off)
        of = sum(counts.values())
        if options.majority * of <= near < of:
            ordinary[name] = middle, off, Usual(middle, near, of)
    far = [
        (name, mib)
        for name, (middle, off, _) in ordinary.items()
        for mib, _ in sums[name]
        if mib is not None and abs(mib - middle) > off
    ]
    for node, name, mib in tables.fetch_by_keys(NODES, far):
        middle, _, normal = ordinary[name]
        group = PeerGroup("memory", "memory", name, None, "node")
        yield Deviation(
            group, normal, _gib(mib), f"about {_gib(middle)}", node, None, f"{100 * (mib - middle) / middle:+.0f} %"
        )


def clocks(begun: Pending, classes: dict[str, int], options: Options) -> Iterator[Deviation]:
    """Nodes whose clock is ahead of the machine that collects; where most of a class are, that machine is behind."""
    ahead: dict[str, list[tuple[str, float]]] = {}
    for node, name, seconds in begun():
        if name in classes:
            ahead.setdefault(name, []).append((node, seconds))
    for name, nodes in ahead.items():
        of = classes[name]
        if of - len(nodes) < options.majority * of:
            continue
        normal = Usual(0, of - len(nodes), of)
        group = PeerGroup("clock", "clock ahead by", name, None, "node")
        for node, seconds in nodes:
            yield Deviation(group, normal, _span(seconds), "less than 5 min", node, None)


def probes(tables: Tables, begun: Pending, classes: dict[str, int], options: Options) -> Iterator[Deviation]:
    """Nodes where a probe failed that serves nearly everywhere in their class, or takes far longer than the median."""
    rows = [row for row in begun() if row[0] in classes]
    yield from _failed(tables, rows, options)
    yield from _slow(tables, rows, options)


def _failed(tables: Tables, rows: list[Row], options: Options) -> Iterator[Deviation]:
    """`rows`: class, probe, status, step, how many."""
    statuses: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for name, what, status, _, count in rows:
        statuses.setdefault((name, what), []).append((status, count))
    expected: dict[tuple[str, str], Usual] = {}
    for key, each in statuses.items():
        normal = usual(counted(each), options)
        if normal is not None and normal.value in _SERVED and normal.has < normal.of:
            expected[key] = normal
    failed = [row[:-1] for row in rows if row[:2] in expected and row[2] is not None and row[2] not in _SERVED]
    for node, name, what, status, _ in tables.fetch_by_keys(ENDS, failed):
        group = PeerGroup("probe-status", "end of a probe", name, what, "node")
        yield Deviation(group, expected[name, what], status, expected[name, what].value, node, None)


def _slow(tables: Tables, rows: list[Row], options: Options) -> Iterator[Deviation]:
    """`rows`: class, probe, status, step, how many."""
    limits = _limits(rows, options)
    late = [
        row[:-1] for row in rows if row[:2] in limits and row[3] is not None and row[3] * _STEP > limits[row[:2]][0]
    ]
    far: dict[tuple[str, str], list[tuple[str, float]]] = {}
    for node, name, what, _, seconds in tables.fetch_by_keys(ENDS, late):
        if seconds > limits[name, what][0] + _STEP:
            far.setdefault((name, what), []).append((node, seconds))
    for (name, what), found in far.items():
        normal = limits[name, what][1]
        group = PeerGroup("probe-seconds", f"duration of probe {what}", name, what, "node")
        took = _between(min(seconds for _, seconds in found), max(seconds for _, seconds in found))
        for node, _ in found:
            yield Deviation(group, normal, took, f"about {max(normal.value, _STEP):.2g} s", node, None)


def _limits(rows: list[Row], options: Options) -> dict[Row, tuple[float, Usual]]:
    """Of a probe in a class: seconds from which on it is slow."""
    times: dict[Row, list[tuple[float | None, int]]] = {}
    for name, what, _, step, count in rows:
        times.setdefault((name, what), []).append((None if step is None else step * _STEP, count))
    limits = {}
    for key, each in times.items():
        counts = counted(each)
        of = sum(counts.values())
        if of < options.fewest:
            continue
        middle = median(counts)
        limit = max(middle + _SLOWER_BY, _SLOWER_TIMES * middle, middle + _SPREADS * spread(counts, middle))
        near = sum(count for seconds, count in counts.items() if seconds <= limit)
        if options.majority * of <= near < of:
            limits[key] = limit, Usual(middle, near, of)
    return limits


def _between(low: float, high: float) -> str:
    return f"{low:.1f} s" if f"{low:.1f}" == f"{high:.1f}" else f"{low:.1f} to {high:.1f} s"


def _span(seconds: float) -> str:
    """
    >>> _span(400), _span(72_000), _span(90_000)
    ('7 min', '20 h', '1.0 days')
    """
    if seconds < 3600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h" if seconds < 86_400 else f"{seconds / 86_400:.1f} days"


def _gib(mib: float) -> str:
    return f"{mib / 1024:.0f} GiB"
