"""Is a measured figure good, low (and what could explain it), or above what is possible; and what the shape of a
measured table shows, whatever the machine: where it falls, scatters, or is wrong.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from statistics import median

from agent.model.prediction import Recommendation
from agent.model.recommend_answers import JudgedMeasurement, MeasuredAnswer, MeasuredTable, Measurement
from agent.recommend.constants import Version, nvlink_wire_gbyte_s
from agent.recommend.machine import NodeFacts
from agent.recommend.predict import AS_IS, HEALTHY, MODELLED_FROM, Request, predict
from agent.recommend.rails import NCCL_SHARE
from agent.recommend.tuning import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, REDUCE_SCATTER, bus_factor

_LARGE = 8_000_000  # bytes from which bandwidth decides, not latency
_SHARES = ((1, 8), (1, 4), (3, 8), (1, 2), (5, 8), (3, 4), (7, 8))
Asked = tuple["str | None", "int | None"]  # collective and nodes, where the user names them
GOOD, LOW, ABOVE, NOT_JUDGED = "good", "low", "above", "not-judged"
_WORST = (ABOVE, LOW, GOOD, NOT_JUDGED)
# Shares of the nominal rate that healthy links reach: nvbandwidth on HGX A100 and H200, perftest on 100 to 400 Gb/s
_NVLINK_SHARE, _PCIE_SHARE, _RDMA_SHARE = (0.78, 0.88, 0.95), (0.74, 0.85, 0.93), (0.94, 0.97, 0.99)
_RATES, _FILLED, _STEADY = (10, 25, 40, 50, 56, 100, 200, 400, 800), 0.9, 1 << 15  # Gbit/s; share; bytes
_LARGEST = 16 << 30  # bytes: what no message of any size exceeds
_BY_SIZE, _ONE_WAY = ("nccl-tests", "osu"), ("perftest", "osu")
_SIBLINGS = 0.9  # of the median of figures of the same test
_HINT = "`fabricscope job` with the output of NCCL_DEBUG=INFO shows what NCCL chose"


def describe_shape(table: MeasuredTable) -> list[str]:
    """What rows show by themselves, the most specific first."""
    rows = [row for row in table.rows if row.tool in _BY_SIZE]
    texts = [text for run in _runs(rows) for text in _describe(run, table)]
    copies = [row.gbyte_s for row in table.rows if row.tool in _ONE_WAY and (row.size_bytes or 0) >= _STEADY]
    texts += filter(None, (describe_rate(max(copies)),) if copies else ())
    return list(dict.fromkeys(texts))


def describe_rate(gbyte_s: float) -> str | None:
    """The rate of a port that a transfer by RDMA fills; None where it fills none.

    >>> describe_rate(11.53), describe_rate(24.4), describe_rate(8.0)
    ('92% of 100 Gbit/s', '98% of 200 Gbit/s', None)
    """
    for rate in _RATES:
        if _FILLED <= (share := gbyte_s * 8 / rate) <= 1:
            return f"{share:.0%} of {rate} Gbit/s"
    return None


def describe_share(measured: float, expected: float, rails: int) -> str | None:
    """Which part of the rails would give what was measured.

    >>> describe_share(180.0, 360.0, 8)
    'about 1/2 of what is expected: that share of the rails is in use, or half by ACS or copies through host memory'
    """
    for part, whole in _SHARES:
        if rails % whole == 0 and abs(measured / expected - part / whole) < 0.04:
            half = ", or half by ACS or copies through host memory" if (part, whole) == (1, 2) else ""
            return f"about {part}/{whole} of what is expected: that share of the rails is in use{half}"
    return None


def _runs(rows: Sequence[Measurement]) -> Iterator[list[Measurement]]:
    """Rows of one run each: sizes rise within it."""
    run: list[Measurement] = []
    for row in rows:
        if run and (row.size_bytes or 0) < (run[-1].size_bytes or 0):
            yield run
            run = []
        run.append(row)
    if run:
        yield run


def _describe(run: list[Measurement], table: MeasuredTable) -> Iterator[str]:
    wrong = sum(row.wrong or 0 for row in run)
    if wrong:
        yield (
            f"{wrong} wrong values: data is corrupted (GPU memory, relaxed ordering on the NIC, "
            f"NCCL_CHUNK_SIZE): stop using these nodes"
        )
    least = _STEADY if run[0].tool in _ONE_WAY else _LARGE
    large = [row for row in run if (row.size_bytes or 0) >= least]
    if large and not any(row.gbyte_s for row in large):
        yield "bus bandwidth is 0 in every row: one rank in each job; nccl-tests were built without MPI=1"
        return
    if len(large) >= 3:
        fall = _find_fall(large)
        if fall is not None:
            yield fall
        else:
            yield from _scatter(large)
            yield from _places(large)
        top = max(row.gbyte_s for row in large)
        if (table.hosts or 1) > 1 and 0.5 < top < 3.5 and fall is None:
            yield f"a plateau of {top:.1f} GB/s between hosts: TCP sockets, unless the network is that slow"


def _find_fall(rows: list[Measurement]) -> str | None:
    """A fall by more than four fifths at one size, from which it does not recover."""
    top = 0.0
    for number, row in enumerate(rows):
        after = [later.gbyte_s for later in rows[number:]]
        if top and max(after) < 0.2 * top and len(after) >= 2:
            return (
                f"falls from {top:.3g} to {row.gbyte_s:.3g} GB/s at {_size(row)} and stays there: loss under load "
                "(RoCE without PFC or ECN, incast), which drops and retransmissions of the rails show"
            )
        top = max(top, row.gbyte_s)
    return None


def _scatter(rows: list[Measurement]) -> Iterator[str]:
    """Single rows that are off, a step that recovers, or rows that go up and down."""
    values = [row.gbyte_s for row in rows]
    changes = [(later - earlier) / max(earlier, 1e-9) for earlier, later in itertools.pairwise(values)]
    turns = sum(one * other < 0 and abs(one) > 0.15 and abs(other) > 0.15 for one, other in itertools.pairwise(changes))
    if turns >= 3:
        yield (
            "goes up and down from size to size: a shared fabric, ECMP collisions, starved proxy threads or "
            "power limits; repeat before judging"
        )
        return
    for number in range(1, len(values) - 1):
        neighbors = min(values[number - 1], values[number + 1])
        if values[number] < 0.7 * neighbors:
            yield (
                f"only the row of {_size(rows[number])} is off ({values[number]:.3g} GB/s): noise, such as "
                f"another job; repeat before judging"
            )
    for number, change in enumerate(changes):
        later = values[number + 1 :]
        if -0.5 <= change <= -0.2 and max(later) > values[number] and len(later) > 1:
            yield (
                f"a step down at {_size(rows[number + 1])} that recovers: NCCL changes its algorithm or "
                f"protocol there; harmless"
            )


def _places(rows: list[Measurement]) -> Iterator[str]:
    """Out of place against in place."""
    ratios = [
        row.in_place_gbyte_s / row.out_of_place_gbyte_s
        for row in rows[len(rows) // 2 :]
        if row.in_place_gbyte_s and row.out_of_place_gbyte_s
    ]
    if ratios and not 0.85 < median(ratios) < 1.18:
        better = "in place" if median(ratios) > 1 else "out of place"
        yield (
            f"{better} is {abs(median(ratios) - 1) * 100:.0f}% off the other at large sizes: the first column is "
            f"cold (too few "
            "warm-up iterations, registration, clocks); if it stays over repeats: buffers on another NUMA node"
        )


def _size(row: Measurement) -> str:
    size = float(row.size_bytes or 0)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.3g} {unit}"
        size /= 1024
    return f"{size:.3g} GiB"


def judge_table(
    table: MeasuredTable, node: NodeFacts, answer: Recommendation, version: Version, question: Asked
) -> MeasuredAnswer:
    """`answer`: what is recommended for that machine."""
    rows = [row for row in table.rows if row.tool == "nccl-tests"]
    judged = list(_judge_collectives(rows, table, node, answer, version, question))
    for tool, judge in (("nvbandwidth", _judge_copy), ("perftest", _judge_rdma)):
        others = [row for row in table.rows if row.tool == tool]
        median_of = {name: median(row.gbyte_s for row in others if _test(row) == name) for name in map(_test, others)}
        judged += [_with_siblings(judge(row, node), median_of[_test(row)]) for row in others]
    verdict = next((name for name in _WORST if any(row.verdict == name for row in judged)), NOT_JUDGED)
    return MeasuredAnswer(machine=node.title, verdict=verdict, rows=judged, shapes=describe_shape(table))


def _judge_collectives(
    rows: Sequence[Measurement], table: MeasuredTable, node: NodeFacts, answer: Recommendation, version: Version,
    question: Asked,
) -> Iterator[JudgedMeasurement]:  # fmt: skip
    ranks = table.ranks if table.ranks and table.ranks > 1 else max(map(_ranks_of, rows[-3:]), default=0)
    nodes = question[1] or (ranks // len(node.gpus) if node.gpus and ranks % len(node.gpus) == 0 else 0)
    for row in rows:
        collective = question[0] or _collective_of(row, ranks)
        named = Measurement(
            tool=row.tool, what=collective, size_bytes=row.size_bytes, gbyte_s=row.gbyte_s,
            algbw_gbyte_s=row.algbw_gbyte_s, reduces=row.reduces,
        )  # fmt: skip
        if not row.gbyte_s and (row.size_bytes or 0) >= MODELLED_FROM:
            yield _not_judged(named, "busbw is 0: one rank in each job; nccl-tests were built without MPI=1")
        elif not nodes:
            yield _not_judged(
                named, f"{ranks or 'an unknown number of'} ranks are no whole nodes of {len(node.gpus)} GPUs"
            )
        elif (row.size_bytes or 0) >= MODELLED_FROM:
            yield _judge_collective(named, node, answer, Request(collective, row.size_bytes or 0, nodes, version))


def _judge_collective(row: Measurement, node: NodeFacts, answer: Recommendation, request: Request) -> JudgedMeasurement:
    have, healthy = predict([node], request, AS_IS), predict([node], request, HEALTHY)
    if have.busbw_gbyte_s is None or have.range_gbyte_s is None or healthy.busbw_gbyte_s is None:
        return _not_judged(row, have.note or "not modelled")
    low, high = have.range_gbyte_s
    reasons = []
    most = predict([node], request._replace(size=max(request.size, _LARGEST)), AS_IS).range_gbyte_s
    if row.gbyte_s > max(high, most[1] if most else high):
        verdict, reasons = ABOVE, list(_explain_above(row, request, have.ranks, high))
    elif row.gbyte_s < low:
        verdict, reasons = LOW, list(_explain_low(row, node, answer, request, low))
    else:
        verdict = GOOD
        if have.busbw_gbyte_s < 0.97 * healthy.busbw_gbyte_s:
            reasons = [f"as this machine is; {healthy.busbw_gbyte_s:.0f} GB/s after the repairs of its findings"]
    return JudgedMeasurement(
        measured=row, verdict=verdict, expected_gbyte_s=have.busbw_gbyte_s, range_gbyte_s=(low, high), reasons=reasons
    )


def _explain_above(row: Measurement, request: Request, ranks: int, high: float) -> Iterator[str]:
    factor = bus_factor(request.collective, ranks)
    if row.gbyte_s / max(factor, 1e-9) <= high < row.gbyte_s and factor > 1.05:
        yield "bus bandwidth was multiplied twice, or another collective ran: check which column was read"
    if request.nodes == 2 and request.collective == ALL_REDUCE:
        yield "on two nodes a tree sends each byte once over the network: NCCL_ALGO=Ring shows what the NICs carry"
    if request.nodes > 1:
        yield "the job ran on fewer nodes, or inside one node: check the ranks' hosts"
        yield "SHARP reduced in the switches: the bus bandwidth is then no measure of the links"
    yield "the machine is another one than the report's or the platform's"


def _explain_low(
    row: Measurement, node: NodeFacts, answer: Recommendation, request: Request, low: float
) -> Iterator[str]:
    algorithm = row.algbw_gbyte_s or 0.0
    if request.nodes == 1 and request.collective == ALL_REDUCE and node.sm >= 90 and node.kind == "nvlink":
        ring = predict([node._replace(sm=80)], request, AS_IS).busbw_gbyte_s
        if ring and row.gbyte_s >= 0.85 * ring:
            yield "NVLS is not in use: this is what rings reach"
    for setting in answer.settings:
        if setting.value is None:
            yield f"{setting.name} is set on this host ({setting.reason})"
    if request.nodes > 1:
        share = describe_share(row.gbyte_s, low / 0.9, len(node.rails)) if node.rails else None
        if share is not None:
            yield share
        blocked = [rail.label for rail in node.rails if not rail.direct]
        yield f"GPUDirect RDMA is not used{' on ' + ', '.join(blocked) if blocked else ''}: a third and less"
        down = [rail.label for rail in node.rails if not rail.network_gbyte_s]
        yield f"not all {len(node.rails)} rails are used{': down are ' + ', '.join(down) if down else ''}"
        yield "another node of the job is slower: test halves of the job"
        yield "the fabric: congestion, uneven ECMP, PFC not end to end on RoCE"
    else:
        yield "the job does not use NVLink: peer-to-peer is off, or a container hides GPUs from each other"
    if request.size < 1_000_000_000:
        yield "too few warm-up iterations: the first collective of a size sets up its connections"
    if algorithm and row.gbyte_s < low <= 2 * row.gbyte_s and algorithm == row.gbyte_s:
        yield "algorithm bandwidth was read instead of bus bandwidth"
    yield _HINT


def _judge_copy(row: Measurement, node: NodeFacts) -> JudgedMeasurement:
    """nvbandwidth: between GPUs by their NVLinks, between CPU and GPU by PCIe; bidirectional tests are not judged."""
    if "bidirectional" in row.what or "all_to" in row.what or "_to_all" in row.what or "latency" in row.what:
        return _not_judged(row, "both directions, or several copies, at once")
    if "device_to_device" in row.what:
        if node.kind != "nvlink" or not node.sm:
            return _not_judged(row, "GPUs without NVLink: compare pairs with each other")
        nominal = nvlink_wire_gbyte_s(node.sm, node.healthy_links)
        return _by_share(row, nominal, _NVLINK_SHARE, ["an NVLink of the pair is down, or trained below its speed"])
    if "host" not in row.what or not node.rails:
        return _not_judged(row, "no nominal rate is known")
    nominal = max(rail.plan_gbyte_s for rail in node.rails) / NCCL_SHARE  # the GPU's slot is as its NIC's at least
    reasons = [
        "the GPU's PCIe link runs below its width or speed",
        "the copying process runs on another NUMA node than the GPU",
    ]
    return _by_share(row, nominal, _PCIE_SHARE, reasons)


def _judge_rdma(row: Measurement, node: NodeFacts) -> JudgedMeasurement:
    """perftest: by the rate of the rail; small messages are not judged."""
    rail = next((rail for rail in node.rails if rail.label == row.what), None)
    if rail is None:
        if len({rail.healthy_network_gbyte_s for rail in node.rails}) != 1:
            return _not_judged(row, f"{row.what} is no rail of this machine")
        rail = node.rails[0]
    if (row.size_bytes or 0) < 65536:
        return _not_judged(row, "messages below 64 KiB: latency decides")
    reasons = [
        f"the path of {rail.label} over PCIe carries less",
        "one queue pair: add -q 4 from 400 Gb/s on",
        "ACS sends traffic between GPU and NIC through the root complex",
        "relaxed ordering is off",
    ]
    return _by_share(row, rail.healthy_network_gbyte_s, _RDMA_SHARE, reasons)


def _by_share(
    row: Measurement, nominal: float, shares: tuple[float, float, float], reasons: list[str]
) -> JudgedMeasurement:
    low, expected, high = (round(nominal * share, 1) for share in shares)
    verdict = LOW if row.gbyte_s < low else ABOVE if row.gbyte_s > nominal * 1.01 else GOOD
    above = [f"more than the {nominal:.1f} GB/s of the link in one direction: both directions, or another path"]
    return JudgedMeasurement(
        measured=row, verdict=verdict, expected_gbyte_s=expected, range_gbyte_s=(low, high),
        reasons={LOW: reasons, ABOVE: above}.get(verdict, []),
    )  # fmt: skip


def _with_siblings(row: JudgedMeasurement, median_gbyte_s: float) -> JudgedMeasurement:
    """A figure that is far below the others of its test is low, whatever the nominal rate."""
    if row.verdict in (LOW, ABOVE) or row.measured.gbyte_s >= _SIBLINGS * median_gbyte_s:
        return row
    reasons = [f"the others of this test reach {median_gbyte_s:.1f} GB/s", *row.reasons]
    return JudgedMeasurement(
        measured=row.measured, verdict=LOW, expected_gbyte_s=row.expected_gbyte_s, range_gbyte_s=row.range_gbyte_s,
        reasons=reasons,
    )  # fmt: skip


def _not_judged(row: Measurement, reason: str) -> JudgedMeasurement:
    return JudgedMeasurement(measured=row, verdict=NOT_JUDGED, reasons=[reason])


def _test(row: Measurement) -> str:
    return f"{row.tool} {row.what.partition(' ')[0] if row.tool == 'nvbandwidth' else row.size_bytes}"


def _ranks_of(row: Measurement) -> int:
    """Ranks by the factor between bus and algorithm bandwidth, where the table does not list them."""
    ratio = row.gbyte_s / row.algbw_gbyte_s if row.algbw_gbyte_s else 0.0
    if row.reduces and 1 < ratio < 2:
        return round(2 / (2 - ratio))
    return round(1 / (1 - ratio)) if 0 < ratio < 1 else 0


def _collective_of(row: Measurement, ranks: int) -> str:
    """By the columns: a table does not name its collective. All-to-all looks like all-gather: --collective names it."""
    ratio = row.gbyte_s / row.algbw_gbyte_s if row.algbw_gbyte_s else 0.0
    if row.reduces:
        return REDUCE_SCATTER if ratio and ranks > 2 and ratio < 1 else ALL_REDUCE
    return ALL_GATHER if ratio < 0.999 or ranks <= 1 else ALL_TO_ALL
