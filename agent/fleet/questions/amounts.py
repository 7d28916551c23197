"""Numbers that differ a little on every node: odd is only what is far off, absolutely and relatively."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from agent.fleet.engines.engine import Asked, Tables
from agent.fleet.questions.classes import CLASS
from agent.fleet.questions.odd import Group, Odd
from agent.fleet.questions.options import Options
from agent.fleet.questions.usual import Usual, counted, median, spread, usual

if TYPE_CHECKING:
    from ibis.expr import types as ir

_STEP = 0.05  # seconds: probes' durations are counted in steps
_SLOWER_BY = 2.0  # seconds
_SLOWER_TIMES = 5.0
_SPREADS = 10.0  # median distances from the median
_SERVED = ("ok", "partial")
_LESS_MIB = 4096  # firmware and crash kernels take some
_LESS_SHARE = 0.02


def memory_begun(tables: Tables) -> Asked:
    """How many nodes of a class have how much."""
    return tables.prepared("outliers: memory", _memory)


def _memory(tables: Tables) -> ir.Table:
    host = tables.latest("host")
    return host.group_by([CLASS, "memory_mib"]).agg(count=host.count())


def probes_begun(tables: Tables) -> Asked:
    """How probes ended in a class, and how long they took, in steps."""
    return tables.prepared("outliers: probes", _probes)


def _probes(tables: Tables) -> ir.Table:
    probe = tables.latest("probe")
    steps = probe.mutate(step=(probe.duration_seconds / _STEP).floor().cast("int64"))
    return steps.group_by([CLASS, "name", "status", "step"]).agg(count=steps.count())


def memory(tables: Tables, begun: Asked, classes: dict[str, int], options: Options) -> Iterator[Odd]:
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
    if not ordinary:
        return
    host = tables.latest("host")
    far = reduce(
        or_,
        [
            (host[CLASS] == name) & ((host.memory_mib < middle - off) | (host.memory_mib > middle + off))
            for name, (middle, off, _) in ordinary.items()
        ],
    )
    for node, name, mib in tables.rows(host.filter(far).select("node", CLASS, "memory_mib")):
        middle, _, normal = ordinary[name]
        group = Group("memory", "memory", name, None, "node")
        yield Odd(
            group, normal, _gib(mib), f"about {_gib(middle)}", node, None, f"{100 * (mib - middle) / middle:+.0f} %"
        )


def probes(tables: Tables, begun: Asked, classes: dict[str, int], options: Options) -> Iterator[Odd]:
    """Nodes where a probe failed that serves nearly everywhere in their class, or takes far longer than the median."""
    statuses: dict[tuple[str, str], list[tuple[str, int]]] = {}
    times: dict[tuple[str, str], list[tuple[float | None, int]]] = {}
    for name, what, status, step, count in begun():
        if name in classes:
            statuses.setdefault((name, what), []).append((status, count))
            times.setdefault((name, what), []).append((None if step is None else step * _STEP, count))
    yield from _failed(tables, statuses, options)
    yield from _slow(tables, times, options)


def _failed(tables: Tables, statuses: dict[tuple[str, str], list[tuple[str, int]]], options: Options) -> Iterator[Odd]:
    expected: dict[tuple[str, str], Usual] = {}
    for key, rows in statuses.items():
        normal = usual(counted(rows), options)
        if normal is not None and normal.value in _SERVED and normal.has < normal.of:
            expected[key] = normal
    if not expected:
        return
    probe, names = tables.latest("probe"), sorted({what for _, what in expected})
    failed = probe.filter(probe.name.isin(names) & ~probe.status.isin(_SERVED))
    for node, name, what, status in tables.rows(failed.select("node", CLASS, "name", "status")):
        if (name, what) in expected and status is not None:
            normal = expected[name, what]
            group = Group("probe-status", "end of a probe", name, what, "node")
            yield Odd(group, normal, status, normal.value, node, None)


def _slow(
    tables: Tables, times: dict[tuple[str, str], list[tuple[float | None, int]]], options: Options
) -> Iterator[Odd]:
    limits: dict[tuple[str, str], tuple[float, Usual]] = {}
    for key, rows in times.items():
        counts = counted(rows)
        of = sum(counts.values())
        if of < options.fewest:
            continue
        middle = median(counts)
        limit = max(middle + _SLOWER_BY, _SLOWER_TIMES * middle, middle + _SPREADS * spread(counts, middle))
        near = sum(count for seconds, count in counts.items() if seconds <= limit)
        if options.majority * of <= near < of:
            limits[key] = limit, Usual(middle, near, of)
    if not limits:
        return
    probe = tables.latest("probe")
    slow = probe.filter(probe.duration_seconds > min(limit for limit, _ in limits.values()))
    far: dict[tuple[str, str], list[tuple[str, float]]] = {}
    for node, name, what, seconds in tables.rows(slow.select("node", CLASS, "name", "duration_seconds")):
        if (name, what) in limits and seconds > limits[name, what][0] + _STEP:
            far.setdefault((name, what), []).append((node, seconds))
    for (name, what), found in far.items():
        normal = limits[name, what][1]
        group = Group("probe-seconds", f"duration of probe {what}", name, what, "node")
        took = _between(min(seconds for _, seconds in found), max(seconds for _, seconds in found))
        for node, _ in found:
            yield Odd(group, normal, took, f"about {max(normal.value, _STEP):.2g} s", node, None)


def _between(low: float, high: float) -> str:
    return f"{low:.1f} s" if f"{low:.1f}" == f"{high:.1f}" else f"{low:.1f} to {high:.1f} s"


def _gib(mib: float) -> str:
    return f"{mib / 1024:.0f} GiB"
