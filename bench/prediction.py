"""How well predictions fit published measurements: `python -m bench.prediction TABLE... [--write PAGE | --fit]`.

TABLE has the columns of `bench/measured.tsv`. Rows between nodes are predicted with overheads that were fitted without
any table of their own source; `--fit` prints those of all tables, which `agent/recommend/overheads.py` holds.
"""

from __future__ import annotations

import csv
import math
import re
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from agent.platforms.profiles import load_profile
from agent.recommend.constants import NVLS, NVLS_TREE, RING, TREE
from agent.recommend.machine import NodeFacts, assume_node
from agent.recommend.overheads import (
    ANY,
    PLUGINS,
    WIDER,
    Fit,
    Overhead,
    OverheadKey,
    Overheads,
    classify_job,
    grow_latency,
)
from agent.recommend.predict import HEALTHY, Request, predict, version_of
from agent.recommend.tuning import bus_factor

PLATFORMS = (  # by what the name of a machine holds; the first that fits
    ("p4de", "p4de.24xlarge"), ("p5en", "p5en.48xlarge"), ("p5.48", "p5.48xlarge"), ("p6", "p6-b200.48xlarge"),
    ("H100", "hgx-h100-8"), ("H200", "hgx-h200-8"), ("A100", "hgx-a100-8"), ("a3-mega", "hgx-h100-8"),
    ("GPU4.8", "hgx-a100-8"), ("B200", "hgx-b200-8"), ("MI300X", "mi300x-8"), ("MI325X", "mi325x-8"),
)  # fmt: skip
CLASSES = ("nvs-1n", "nvs-Nn", "xgmi", "xgmi-Nn")
BETWEEN = "nvs-Nn"
LARGE, MIDDLE = 1_000_000_000, 8_000_000
MARK = "<!-- table -->"
_ALGORITHMS = {"ring": RING, "tree": TREE, "nvlstree": NVLS_TREE, "collnet": NVLS}
_DEVIATIONS = 2.0  # of the normal distribution, on each side
_PRIOR = 2  # tables that the spread of all classes counts for in that of one
_ENOUGH = 6  # tables from which on two nodes, or more, are a class of their own
_LEAST_SPREAD = 0.03  # of a share: what one machine varies from run to run
_ROUNDS = 8


class Measured(NamedTuple):
    """One published row, and what it takes to predict it."""

    name: str
    source: str
    kind: str
    machine: str
    node: NodeFacts
    request: Request
    busbw: float


class Outcome(NamedTuple):
    """One measured row and its prediction."""

    row: Measured
    predicted: float | None
    low: float
    high: float

    @property
    def inside(self) -> bool:
        """Whether the measurement is in the stated range."""
        return self.low <= self.row.busbw <= self.high

    @property
    def error(self) -> float:
        """Relative; positive: the prediction is too high."""
        return (self.predicted or 0.0) / self.row.busbw - 1

    @property
    def width(self) -> float:
        """The wider half of the range, relative to the prediction."""
        return max(self.high / self.predicted - 1, 1 - self.low / self.predicted) if self.predicted else 0.0


def read_tables(paths: Iterable[Path]) -> list[Measured]:
    """Every healthy row of a class that is modelled, on whole nodes of eight GPUs."""
    rows: list[Measured] = []
    for path in paths:
        with path.open(newline="", encoding="utf-8") as file:
            rows += [row for fields in csv.DictReader(file, delimiter="\t") if (row := _read(fields)) is not None]
    return rows


def evaluate(rows: Sequence[Measured]) -> list[Outcome]:
    """Each row predicted by a fit that has not seen its source."""
    sources = {row.source for row in rows if row.kind == BETWEEN}
    fits = {source: fit_overheads([row for row in rows if row.source != source]) for source in sources}
    everything = fit_overheads(rows)
    return [_predict(row, fits.get(row.source, everything)) for row in rows]


def fit_overheads(rows: Iterable[Measured]) -> Overheads:
    """Latency and share of every network and algorithm that rows between nodes show."""
    classes: dict[OverheadKey, dict[str, list[Measured]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        algorithm = _choose(row) if row.kind == BETWEEN else None
        if algorithm:
            classes[classify_job(row.node.network, algorithm, row.request.nodes)][row.name].append(row)
    tables = {key: [_fit_table(own, key[1]) for own in named.values()] for key, named in classes.items()}
    pooled = _pool(tables)
    fitted: dict[OverheadKey, Overhead] = {}
    for wider in WIDER[1:]:
        alike: dict[OverheadKey, list[_TableFit]] = defaultdict(list)
        for key, own in tables.items():
            alike[wider(key)] += own
        for key, own in sorted(alike.items()):
            fitted.setdefault(key, _combine(own, own if wider is WIDER[1] else _of_algorithm(tables, key[1]), pooled))
    for key, own in sorted(tables.items()):
        if len(own) >= _ENOUGH:
            fitted[key] = _combine(own, own, pooled)
    return fitted


def _of_algorithm(tables: Mapping[OverheadKey, Sequence[_TableFit]], algorithm: str) -> list[_TableFit]:
    """Those of all networks: a share of what NCCL counts is the algorithm's, a latency the network's."""
    return [table for key, own in tables.items() if algorithm in (key[1], ANY) for table in own]


def format_overheads(fitted: Overheads) -> str:
    """As `agent/recommend/overheads.py` has them."""
    lines = []
    for key, own in fitted.items():
        latency, share = (", ".join(f"{value:g}" for value in fit) for fit in (own.latency_us, own.share))
        name = ", ".join(key).upper().replace("-", "_")
        lines.append(f"    ({name}): Overhead(Fit({latency}), Fit({share}), {own.tables}),")
    return "\n".join(lines) + "\n"


def describe_overheads(fitted: Overheads) -> list[str]:
    """Lines of a Markdown table."""
    lines = [
        "| network | algorithm | nodes | tables | latency in us | share of NCCL's bandwidth |",
        "|---|---|---|---|---|---|",
    ]
    for (network, algorithm, nodes), own in fitted.items():
        latency, share = own.latency_us, own.share
        lines.append(
            f"| {network} | {algorithm} | {nodes} | {own.tables} | {latency.usual:.0f} ({latency.low:.0f} to "
            f"{latency.high:.0f}) | {share.usual:.2f} ({share.low:.2f} to {share.high:.2f}) |"
        )
    return lines


def summarize(outcomes: Iterable[Outcome]) -> list[str]:
    """Lines of a Markdown table: one per class, collective and size."""
    groups: dict[tuple[str, str, str], list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        size = outcome.row.request.size
        label = ">= 1 GB" if size >= LARGE else "8-512 MB" if size >= MIDDLE else "< 8 MB"
        groups[outcome.row.kind, outcome.row.request.collective, label].append(outcome)
    lines = ["| class | collective | size | rows | median error | within 10% | inside the range | widest | worst |"]
    lines.append("|---|---|---|---|---|---|---|---|---|")
    for (kind, collective, label), own in groups.items():
        known = [outcome for outcome in own if outcome.predicted is not None]
        if not known:
            lines.append(f"| {kind} | {collective} | {label} | {len(own)} | not modelled | | | | |")
            continue
        worst = max(known, key=lambda outcome: abs(outcome.error))
        lines.append(
            f"| {kind} | {collective} | {label} | {len(known)} | {median_error(known):.1%} "
            f"| {share_of(known, lambda outcome: abs(outcome.error) <= 0.1):.0%} "
            f"| {share_of(known, lambda outcome: outcome.inside):.0%} "
            f"| {max(outcome.width for outcome in known):.0%} "
            f"| {worst.error:+.0%}: {_describe(worst.row)} |"
        )
    return lines


def list_misses(outcomes: Iterable[Outcome]) -> list[str]:
    """Lines of a Markdown table: the tables between nodes with a row outside of its range."""
    tables: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        if outcome.row.kind == BETWEEN and outcome.predicted is not None:
            tables[outcome.row.name].append(outcome)
    lines = ["| machine | nodes | collective | rows | outside | farthest |", "|---|---|---|---|---|---|"]
    for own in tables.values():
        outside = [outcome for outcome in own if not outcome.inside]
        if outside:
            worst = max(outside, key=lambda outcome: abs(outcome.error))
            row = worst.row
            lines.append(
                f"| {row.machine} | {row.request.nodes} | {row.request.collective} | {len(own)} | {len(outside)} "
                f"| {row.request.size >> 20} MiB: {row.busbw:.0f} GB/s, predicted {worst.predicted:.0f} "
                f"({worst.low:.0f}-{worst.high:.0f}) |"
            )
    return lines


def median_error(outcomes: Iterable[Outcome]) -> float:
    """Of the absolute errors."""
    return statistics.median(abs(outcome.error) for outcome in outcomes)


def share_of(outcomes: Sequence[Outcome], condition: Callable[[Outcome], bool]) -> float:
    """Of the outcomes that meet a condition."""
    return sum(map(condition, outcomes)) / len(outcomes)


def main(arguments: Sequence[str]) -> int:
    """Print the tables, write them into a page below its mark, or print the fit."""
    paths = [Path(argument) for argument in arguments if argument[:2] != "--"]
    options = [argument for argument in arguments if argument[:2] == "--"]
    page = paths.pop() if options == ["--write"] and paths else None
    if not paths or options not in ([], ["--write"], ["--fit"]):
        sys.stderr.write("usage: python -m bench.prediction TABLE... [--write PAGE | --fit]\n")
        return 2
    rows = read_tables(paths)
    if options == ["--fit"]:
        sys.stdout.write(format_overheads(fit_overheads(rows)))
        return 0
    outcomes = evaluate(rows)
    tables = (summarize(outcomes), list_misses(outcomes), describe_overheads(fit_overheads(rows)))
    text = "\n\n".join("\n".join(table) for table in tables) + "\n"
    if page is None:
        sys.stdout.write(text)
        return 0
    head, mark, _ = page.read_text(encoding="utf-8").partition(MARK)
    page.write_text(f"{head}{mark}\n\n{text}", encoding="utf-8")
    return 0


class _TableFit(NamedTuple):
    """What one table shows of one algorithm; None: its sizes do not show it."""

    latency_us: float | None
    share: float | None
    latencies_us: tuple[float, ...]  # of each row
    shares: tuple[float, ...]


class _Spread(NamedTuple):
    """Of latency and share: the usual values, or how far rows are from them (relative)."""

    latency: float
    share: float


_NOTHING = Overhead(Fit(0, 0, 0), Fit(1, 1, 1), 0)
_SLOW = _NOTHING._replace(share=Fit(0.5, 0.5, 0.5))


def _fit_table(rows: Sequence[Measured], algorithm: str) -> _TableFit:
    """Latency of the middle sizes and share of the large ones, each with what the other leaves."""
    parts = [(row, *_split_time(row)) for row in rows if row.request.size >= MIDDLE]
    latency, share = 0.0, 1.0
    large = [part for part in parts if part[0].request.size >= LARGE]
    middle = [part for part in parts if part[0].request.size < LARGE]
    latencies: list[float] = []
    shares: list[float] = []
    for _ in range(_ROUNDS):
        if large:
            shares = [moved / max(left - latency, moved / 2) for _, left, moved in large]
            share = statistics.median(shares)
        if middle:
            latencies = [
                (left - moved / share) / grow_latency(algorithm, row.request.size) for row, left, moved in middle
            ]
            latency = max(0.0, statistics.median(latencies))
    return _TableFit(latency if middle else None, share if large else None, tuple(latencies), tuple(shares))


def _split_time(row: Measured) -> tuple[float, float]:
    """us that a row took beyond NCCL's latency, and those that NCCL's bandwidth takes for its bytes."""
    factor = bus_factor(row.request.collective, row.request.nodes * len(row.node.gpus))
    times = []
    for overhead in (_NOTHING, _SLOW):
        result = predict([row.node], row.request, HEALTHY, {(ANY, ANY, ANY): overhead})
        times.append(row.request.size * factor / (result.busbw_gbyte_s or math.inf) / 1000)
    moved = times[1] - times[0]
    return row.request.size * factor / row.busbw / 1000 - (times[0] - moved), moved


def _pool(tables: Mapping[OverheadKey, Sequence[_TableFit]]) -> _Spread:
    """Of all classes: by the median, as one table that is far off says nothing of the others."""
    latencies, shares = [], []
    for own in tables.values():
        usual = _usual(own)
        latencies += [
            abs(value - usual.latency) / _at_least(usual.latency) for table in own for value in table.latencies_us
        ]
        shares += [abs(math.log(value / usual.share)) for table in own for value in table.shares]
    return _Spread(*(1.48 * statistics.median(values) if values else 1.0 for values in (latencies, shares)))


def _usual(tables: Sequence[_TableFit]) -> _Spread:
    """Of several latencies the median, of two the less: a table can be slower than its machine, and never faster. Of
    shares the median, too, with what NCCL counts as one of them."""
    latencies = [table.latency_us for table in tables if table.latency_us is not None] or [0.0]
    shares = [1.0, *(table.share for table in tables if table.share)]
    return _Spread(statistics.median_low(latencies), statistics.median(shares))


def _combine(tables: Sequence[_TableFit], sharing: Sequence[_TableFit], pooled: _Spread) -> Overhead:
    usual = _Spread(_usual(tables).latency, _usual(sharing).share)
    latencies = [[value - usual.latency for value in table.latencies_us] for table in tables]
    shares = [[math.log(value / usual.share) for value in table.shares] for table in sharing]
    wide = [_spread(latencies, pooled.latency * _at_least(usual.latency), side) for side in (-1, 0, 1)]
    part = [_spread(shares, max(_LEAST_SPREAD, pooled.share), side) for side in (-1, 0, 1)]
    return Overhead(
        Fit(*(round(usual.latency + value) for value in wide)),
        Fit(*(round(usual.share * math.exp(value), 3) for value in part)),
        len(tables),
    )


def _spread(deviations: Sequence[Sequence[float]], prior: float, side: int) -> float:
    """How far rows are on one side of the usual value, each table counted once; few tables are taken to spread as those
    of all classes do. Latencies are skewed: much can add to them, and little can take from them."""
    squares = [2 * statistics.fmean(max(0.0, side * value) ** 2 for value in own) for own in deviations if own]
    return side * _DEVIATIONS * math.sqrt((sum(squares) + _PRIOR * prior**2) / (len(squares) + _PRIOR))


def _at_least(latency_us: float) -> float:
    return max(latency_us, 100.0)


def _predict(row: Measured, fitted: Overheads) -> Outcome:
    result = predict([row.node], row.request, HEALTHY, fitted)
    return Outcome(row, result.busbw_gbyte_s, *(result.range_gbyte_s or (0.0, 0.0)))


def _choose(row: Measured) -> str | None:
    return predict([row.node], row.request, HEALTHY, {(ANY, ANY, ANY): _NOTHING}).algorithm


def _read(fields: Mapping[str, str]) -> Measured | None:
    profile = next((name for part, name in PLATFORMS if part in fields["machine"]), None)
    busbw = float(fields["busbw_gbyte_s"])
    if fields["state"] != "healthy" or fields["class"] not in CLASSES or profile is None or not busbw:
        return None
    if fields["gpus_per_node"] != "8":
        return None
    collective = {"alltoall": "all_to_all"}.get(fields["collective"], fields["collective"])
    version = version_of(fields["nccl"] if re.fullmatch(r"2\.\d+(\.\d+)?", fields["nccl"]) else None, [])
    algorithm = _ALGORITHMS.get(fields["algo"].lower()) if fields["class"] == BETWEEN else None
    return Measured(
        fields["id"], fields["source"] if "/" in fields["source"] else fields["id"], fields["class"],
        fields["machine"], _read_node(profile, fields),
        Request(collective, int(fields["size_bytes"]), int(fields["nodes"]), version, algorithm), busbw,
    )  # fmt: skip


def _read_node(profile: str, fields: Mapping[str, str]) -> NodeFacts:
    match = re.match(r"(\d+)x(\d+)\b", fields["nics_per_node_x_gbit"])
    node = assume_node(load_profile(profile), (int(match[1]), float(match[2])) if match else None)
    if fields["net"] not in PLUGINS:
        return node
    return node._replace(network=fields["net"])


def _describe(row: Measured) -> str:
    return f"{row.machine}, {row.request.nodes} nodes, {row.request.size >> 20} MiB"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
