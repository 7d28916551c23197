"""Numbers that differ a little on every node: odd is only what is far off, absolutely and relatively."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeVar

from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import Pending, Row, lookup, query, statement
from agent.fleet.questions.baseline import CLASS, Baseline, find_baseline, median, spread, sum_by_key
from agent.fleet.questions.deviations import Deviation, PeerGroup
from agent.fleet.questions.kinds import find_members, query_members
from agent.fleet.questions.options import Options
from agent.fleet.questions.peer_classes import PeerClasses
from agent.fleet.receipt import TOLERANCE
from agent.fleet.table import INT, TEXT
from agent.fleet.tables import LONGEST_SECONDS
from agent.model.labels import group_by_key

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
CLOCKS = query("outliers", "wrong_clocks").bind(
    ahead_seconds=TOLERANCE.total_seconds(), behind_seconds=-TOLERANCE.total_seconds()
)
PROBES = query("outliers", "probe_counts", step=_STEPS).bind(**_TIMED)
NODES = query_members((CLASS, "memory_mib"))
NUMA_MEMORY = query("outliers", "numa_memory_counts")
NUMA_NODES = query_members((CLASS, "numa_memory_gib"))
_ENDED = {CLASS: TEXT, "name": TEXT, "status": TEXT, "step": INT}
_Key = TypeVar("_Key", bound=Hashable)
ENDS = lookup(_ENDED, "outliers", "probe_nodes", step=_STEPS).bind(**_TIMED)


def find_memory_deviations(
    tables: Tables, begun: Pending, of: Mapping[str, str], options: Options
) -> Iterator[Deviation]:
    """Nodes with clearly less or more memory than the median of their class."""
    rows = [row for row in begun() if row[0] in of]
    ordinary = _sum_ordinary_memory([(of[name], mib, count) for name, mib, count in rows], options)
    far = [(name, mib) for name, mib, _ in rows if _is_far(mib, ordinary.get(of[name]))]
    for (name, mib), nodes in find_members(tables, NODES, far).items():
        group = PeerGroup("memory", "memory", of[name], None, "node")
        yield from (_make_memory_deviation(group, mib, ordinary[of[name]], node) for node in nodes)


def find_numa_deviations(
    tables: Tables, begun: Pending, of: Mapping[str, str], options: Options
) -> Iterator[Deviation]:
    """NUMA nodes with clearly less or more memory than the same one of other nodes: a DIMM that is not used."""
    rows = [(name, text, _list_amounts(text), count) for name, text, count in begun() if name in of]
    # how many NUMA nodes: with another number the memory is divided otherwise
    sizes = sum_by_key((of[name], len(amounts), count) for name, _, amounts, count in rows)
    usual = {name: max(counts, key=lambda size: counts[size]) for name, counts in sizes.items()}
    rows = [row for row in rows if len(row[2]) == usual[of[row[0]]]]
    ordinary = _sum_ordinary_memory(
        [((of[name], place), mib, count) for name, _, amounts, count in rows for place, mib in enumerate(amounts)],
        options,
    )
    far = [
        (name, text)
        for name, text, amounts, _ in rows
        if any(_is_far(mib, ordinary.get((of[name], place))) for place, mib in enumerate(amounts))
    ]
    for (name, text), nodes in find_members(tables, NUMA_NODES, far).items():
        for place, mib in enumerate(_list_amounts(text)):
            normal = ordinary.get((of[name], place))
            if normal is not None and _is_far(mib, normal):
                group = PeerGroup("numa-memory", f"memory of NUMA node {place}", of[name], f"NUMA node {place}", "node")
                yield from (_make_memory_deviation(group, mib, normal, node) for node in nodes)


def _list_amounts(text: str) -> list[int]:
    """MiB of each NUMA node."""
    return [int(gib) * 1024 for gib in text.split()]


class _Memory(NamedTuple):
    middle: float
    off: float  # from the middle
    usual: Baseline


def _sum_ordinary_memory(rows: Iterable[tuple[_Key, float | None, int]], options: Options) -> dict[_Key, _Memory]:
    ordinary: dict[_Key, _Memory] = {}
    for key, counts in sum_by_key(rows).items():
        of = sum(counts.values())
        if of < options.fewest:
            continue
        middle = median(counts)
        off = max(_LESS_MIB, _LESS_SHARE * middle, _SPREADS * spread(counts, middle))
        near = sum(count for mib, count in counts.items() if abs(mib - middle) <= off)
        if options.majority * of <= near < of:
            ordinary[key] = _Memory(middle, off, Baseline(middle, near, of))
    return ordinary


def _is_far(mib: float | None, normal: _Memory | None) -> bool:
    return mib is not None and normal is not None and abs(mib - normal.middle) > normal.off


def _make_memory_deviation(group: PeerGroup, mib: float, normal: _Memory, node: str) -> Deviation:
    by = f"{100 * (mib - normal.middle) / normal.middle:+.0f}%" if normal.middle else None
    return Deviation(group, normal.usual, _format_gib(mib), f"about {_format_gib(normal.middle)}", node, None, by)


def find_clock_deviations(begun: Pending, peers: PeerClasses, options: Options) -> Iterator[Deviation]:
    """Nodes whose clock is ahead of the machine that collects, or was set back while the node ran; where most clocks
    of a class are wrong, it is that machine's."""
    wrong = group_by_key((peers.of[name], (node, seconds)) for node, name, seconds in begun() if name in peers.of)
    for name, nodes in wrong.items():
        of = peers.sizes[name]
        if of - len(nodes) < options.majority * of:
            continue
        normal = Baseline(0, of - len(nodes), of)
        group = PeerGroup("clock", "clock", name, None, "node")
        for node, seconds in nodes:
            value = f"{_format_span(abs(seconds))} {'ahead' if seconds > 0 else 'behind'}"
            yield Deviation(group, normal, value, "less than 5 min off", node, None)


def find_probe_deviations(
    tables: Tables, begun: Pending, of: Mapping[str, str], options: Options
) -> Iterator[Deviation]:
    """Nodes where a probe failed that serves nearly everywhere in their class, or takes far longer than the median."""
    rows = [row for row in begun() if row[0] in of]
    usual, limits = _find_served(rows, of, options), _find_limits([(of[row[0]], *row[1:]) for row in rows], options)
    failed = {
        row[:-1] for row in rows if (of[row[0]], row[1]) in usual and row[2] is not None and row[2] not in _SERVED
    }
    late = {
        row[:-1]
        for row in rows
        if (key := (of[row[0]], row[1])) in limits and row[3] is not None and row[3] * _STEP > limits[key][0]
    }
    far: dict[tuple[str, str], list[tuple[str, float]]] = {}
    for node, *ended, seconds in tables.fetch_by_keys(ENDS, failed | late):
        name, what, status, _ = ended
        if tuple(ended) in failed:
            normal = usual[of[name], what]
            group = PeerGroup("probe-status", "status of a probe", of[name], what, "node")
            yield Deviation(group, normal, status, normal.value, node, None)
        if tuple(ended) in late and seconds > limits[of[name], what][0] + _STEP:
            far.setdefault((of[name], what), []).append((node, seconds))
    yield from _describe_slow(far, limits)


def _find_served(rows: list[Row], of: Mapping[str, str], options: Options) -> dict[tuple[str, str], Baseline]:
    """Probes that serve nearly everywhere in their class, and not everywhere."""
    statuses = sum_by_key(((of[name], what), status, count) for name, what, status, _, count in rows)
    expected: dict[tuple[str, str], Baseline] = {}
    for key, counts in statuses.items():
        normal = find_baseline(counts, options)
        if normal is not None and normal.value in _SERVED and normal.has < normal.of:
            expected[key] = normal
    return expected


def _describe_slow(
    far: Mapping[tuple[str, str], list[tuple[str, float]]], limits: Mapping[Row, tuple[float, Baseline]]
) -> Iterator[Deviation]:
    for (name, what), distances in far.items():
        normal = limits[name, what][1]
        group = PeerGroup("probe-seconds", f"duration of probe {what}", name, what, "node")
        took = _format_range(min(seconds for _, seconds in distances), max(seconds for _, seconds in distances))
        for node, _ in distances:
            yield Deviation(group, normal, took, f"about {max(normal.value, _STEP):.2g} s", node, None)


def _find_limits(rows: list[Row], options: Options) -> dict[Row, tuple[float, Baseline]]:
    """Of a probe in a class: seconds from which on it is slow."""
    times = (((name, what), None if step is None else step * _STEP, count) for name, what, _, step, count in rows)
    limits: dict[Row, tuple[float, Baseline]] = {}
    for key, counts in sum_by_key(times).items():
        of = sum(counts.values())
        if of < options.fewest:
            continue
        middle = median(counts)
        limit = max(middle + _SLOWER_BY, _SLOWER_TIMES * middle, middle + _SPREADS * spread(counts, middle))
        near = sum(count for seconds, count in counts.items() if seconds <= limit)
        if options.majority * of <= near < of:
            limits[key] = limit, Baseline(middle, near, of)
    return limits


def _format_range(low: float, high: float) -> str:
    return f"{low:.1f} s" if f"{low:.1f}" == f"{high:.1f}" else f"{low:.1f} to {high:.1f} s"


def _format_span(seconds: float) -> str:
    """
    >>> _format_span(400), _format_span(72_000), _format_span(90_000)
    ('7 min', '20 h', '1.0 days')
    """
    if seconds < 3600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h" if seconds < 86_400 else f"{seconds / 86_400:.1f} days"


def _format_gib(mib: float) -> str:
    return f"{mib / 1024:.0f} GiB"
