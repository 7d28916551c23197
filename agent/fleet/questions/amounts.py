"""Numbers that differ a little on every node: odd is only what is far off, absolutely and relatively."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import or_

import ibis

from agent.fleet.engines.engine import Tables
from agent.fleet.questions.classes import CLASS, with_class
from agent.fleet.questions.odd import Group, Odd
from agent.fleet.questions.options import Options
from agent.fleet.questions.usual import Usual, counted, median, spread

_STEP = 0.05  # seconds: probes' durations are counted in steps
_SLOWER_BY = 2.0  # seconds
_SLOWER_TIMES = 5.0
_SPREADS = 10.0  # median distances from the median
_LESS_MIB = 4096  # firmware and crash kernels take some
_LESS_SHARE = 0.02


def memory(tables: Tables, classes: dict[str, int], options: Options) -> Iterator[Odd]:
    """Nodes with clearly less or more memory than the median of their class."""
    host = tables.latest("host")
    sums: dict[str, list[tuple[float, int]]] = {}
    for name, mib, count in tables.rows(host.group_by([CLASS, "memory_mib"]).agg(count=host.count())):
        if name in classes:
            sums.setdefault(name, []).append((mib, count))
    usual: dict[str, tuple[float, float, Usual]] = {}
    for name, rows in sums.items():
        counts = counted(rows)
        if sum(counts.values()) < options.fewest:
            continue
        middle = median(counts)
        off = max(_LESS_MIB, _LESS_SHARE * middle, _SPREADS * spread(counts, middle))
        near = sum(count for mib, count in counts.items() if abs(mib - middle) <= off)
        of = sum(counts.values())
        if options.majority * of <= near < of:
            usual[name] = middle, off, Usual(middle, near, of)
    if not usual:
        return
    far = reduce(
        or_,
        [
            (host[CLASS] == name) & ((host.memory_mib < middle - off) | (host.memory_mib > middle + off))
            for name, (middle, off, _) in usual.items()
        ],
    )
    for node, name, mib in tables.rows(host.filter(far).select("node", CLASS, "memory_mib")):
        middle, _, normal = usual[name]
        group = Group("memory", "memory", name, None, "node")
        yield Odd(
            group, normal, _gib(mib), f"about {_gib(middle)}", node, None, f"{100 * (mib - middle) / middle:+.0f} %"
        )


def slow_probes(tables: Tables, classes: dict[str, int], options: Options) -> Iterator[Odd]:
    """Nodes where a probe takes far longer than the median of their class."""
    probe = with_class(tables, "probe").filter(lambda t: t.duration_seconds.notnull())
    steps = probe.mutate(step=(probe.duration_seconds / _STEP).floor().cast("int64"))
    sums: dict[tuple[str, str], list[tuple[float, int]]] = {}
    for name, what, step, count in tables.rows(steps.group_by([CLASS, "name", "step"]).agg(count=steps.count())):
        if name in classes:
            sums.setdefault((name, what), []).append((step * _STEP, count))
    limits: dict[tuple[str, str], tuple[float, Usual]] = {}
    for key, rows in sums.items():
        counts = counted(rows)
        of = sum(counts.values())
        middle = median(counts)
        limit = max(middle + _SLOWER_BY, _SLOWER_TIMES * middle, middle + _SPREADS * spread(counts, middle))
        near = sum(count for seconds, count in counts.items() if seconds <= limit)
        if of >= options.fewest and options.majority * of <= near < of:
            limits[key] = limit, Usual(middle, near, of)
    if not limits:
        return
    slow = probe.filter(probe.duration_seconds > ibis.literal(min(limit for limit, _ in limits.values())))
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
