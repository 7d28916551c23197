"""Rates of errors between the two samples of each node, beside those at the same place of its class.

Only errors that a healthy device makes few of, whatever it carries: retransmissions depend on traffic, and a node that
alone is busy would differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import Pending, Row, lookup, matching, query, statement
from agent.fleet.questions.baseline import CLASS, Baseline, median, spread, sum_by_key, sum_by_value
from agent.fleet.questions.deviations import Deviation, PeerGroup
from agent.fleet.questions.options import Options
from agent.fleet.table import INT, TEXT
from agent.model.error_counters import GPU_LINK, LOST, MEMORY, PCIE, WIRE, find_error_family
from agent.model.finding import list_devices

_LEAST_ERRORS = 3
_LEAST_PER_HOUR = 1.0  # slower ones count as none
_LIMIT_PER_HOUR = 10.0  # of errors that the hardware repeats
_TIMES = 10.0  # the median
_SPREADS = 10.0  # median distances from the median
_FAMILIES = {family: f"error-rate-{family}" for family in (PCIE, MEMORY, WIRE, GPU_LINK, LOST)}
RATE_KEYS = frozenset(_FAMILIES.values())
_FEW = frozenset(("link_downed", "carrier_down_count", "link_down_events_phy"))  # of which each interrupts a job
_PARTS = {"port": "port", "netdev": "interface", "gpu": "GPU", "link": "link", "pci": "function"}

_KEYS = {CLASS: TEXT, "name": TEXT, "place": TEXT, "per_hour": INT}
_FRAGMENTS = {name: statement("outliers", name) for name in ("per_hour", "enough")}
_BOUNDS = {"least_errors": _LEAST_ERRORS, "least_per_hour": _LEAST_PER_HOUR}
WINDOWS = query("outliers", "window_counts")
RATES = query("outliers", "rate_counts", **_FRAGMENTS).bind(**_BOUNDS)
NODES = lookup(_KEYS, "outliers", "rate_nodes", matching=matching(_KEYS).replace("thing", "timed"), **_FRAGMENTS).bind(
    **_BOUNDS
)


class _RateLimit(NamedTuple):
    """Of a counter at a place in a class."""

    per_hour: float  # from which on a rate is an outlier
    usual: Baseline


class _FastCounter(NamedTuple):
    """A counter that grows faster than its peers."""

    class_name: str
    name: str
    place: str
    per_hour: int
    subject: str
    label: str | None


def find_rate_deviations(
    tables: Tables, windows: Pending, rates: Pending, of: Mapping[str, str], options: Options
) -> Iterator[Deviation]:
    """Parts whose errors grow clearly faster than those of the same place on other nodes of the class."""
    compared = sum_by_value((of[name], nodes) for name, nodes in windows() if name in of)
    rows = [row for row in rates() if row[0] in of and _is_compared(row[1])]
    limits = _find_limits(rows, of, compared, options)
    far = {row[:4] for row in rows if (key := (of[row[0]], *row[1:3])) in limits and row[3] >= limits[key].per_hour}
    fastest: dict[tuple[str, str, str], _FastCounter] = {}
    for node, name, counter, place, per_hour, subject, label, _ in tables.fetch_by_keys(NODES, far):
        found = find_error_family(counter)
        assert found is not None
        fast = _FastCounter(of[name], counter, place, per_hour, subject, label)
        key = (node, found[0], _find_part(subject))
        if key not in fastest or (fastest[key].per_hour, fastest[key].name) < (per_hour, counter):
            fastest[key] = fast
    yield from _describe(fastest, limits)


def _is_compared(name: str) -> bool:
    found = find_error_family(name)
    return found is not None and found[0] in _FAMILIES


def _find_part(subject: str) -> str:
    """One for a port and its interface, whose counters grow by the same fault."""
    kind = subject.partition(":")[0]
    return next(iter(list_devices(subject)), subject) if kind in ("port", "netdev") else subject


def _find_limits(
    rows: list[Row], of: Mapping[str, str], compared: Mapping[str, int], options: Options
) -> dict[tuple[str, str, str], _RateLimit]:
    """`compared`: nodes with a window of each class; those without a row have a rate of none."""
    counts = sum_by_key(
        ((of[name], counter, place), per_hour, nodes) for name, counter, place, per_hour, _, nodes in rows
    )
    limits = {}
    for key, rates in counts.items():
        nodes = compared.get(key[0], 0)
        rates[0.0] = rates.get(0.0, 0) + max(0, nodes - sum(rates.values()))
        if nodes < options.fewest:
            continue
        middle = median(rates)
        least = _LEAST_PER_HOUR if key[1] in _FEW else _LIMIT_PER_HOUR
        limit = max(least, _TIMES * middle, middle + _SPREADS * spread(rates, middle))
        near = sum(count for per_hour, count in rates.items() if per_hour < limit)
        if options.majority * nodes <= near < nodes:
            limits[key] = _RateLimit(limit, Baseline(middle, near, nodes))
    return limits


def _describe(
    fastest: Mapping[tuple[str, str, str], _FastCounter], limits: Mapping[tuple[str, str, str], _RateLimit]
) -> Iterator[Deviation]:
    """Of one counter and kind of part in a class, the rates are one answer."""
    alike: dict[tuple[Any, ...], list[tuple[str, _FastCounter]]] = {}
    for (node, family, _), fast in fastest.items():
        place = fast.place if fast.place.startswith("rail ") else family
        alike.setdefault((fast.class_name, fast.name, place, family), []).append((node, fast))
    for (class_name, name, _, family), parts in sorted(alike.items(), key=lambda item: item[0]):
        lowest, highest = (edge(fast.per_hour for _, fast in parts) for edge in (min, max))
        value = format_rate(lowest) if lowest == highest else f"{format_rate(lowest)} to {format_rate(highest)}"
        what = (find_error_family(name) or ("", name))[1]
        for node, fast in parts:
            limit = limits[class_name, name, fast.place]
            one = "rail" if fast.place.startswith("rail ") else _PARTS.get(fast.subject.partition(":")[0], "part")
            group = PeerGroup(_FAMILIES[family], "error rate", class_name, fast.place, one)
            usual = f"under {format_rate(limit.per_hour)} per hour"
            yield Deviation(group, limit.usual, f"{value} per hour ({what})", usual, node, fast.label)


def format_rate(per_hour: float) -> str:
    """Two digits that count.

    >>> format_rate(3), format_rate(1234), format_rate(56_789)
    ('3', '1,200', '57,000')
    """
    digits = len(str(int(per_hour)))
    return f"{int(round(per_hour, 2 - digits)) if digits > 2 else int(per_hour):,}"
