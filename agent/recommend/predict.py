"""Predictions for one job: what NCCL chooses, what its wires then carry, and which device bounds it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from agent.model.prediction import Bound, Prediction
from agent.recommend.constants import NEWEST, NVLS, NVLS_TREE, RING, TREE, Version, parse_version
from agent.recommend.graph import ChannelPlan, plan_nvls, plan_of_job, plan_ring, plan_tree, search_rings
from agent.recommend.machine import NodeFacts
from agent.recommend.overheads import (
    FITTED,
    LARGE,
    TCPXO,
    Overheads,
    Reached,
    classify_job,
    count_gbyte_s,
    find_overhead,
    reach,
)
from agent.recommend.rails import merge_rails, rail_gbyte_s
from agent.recommend.tuning import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    REDUCE_SCATTER,
    SEND_RECEIVE,
    Choice,
    TunedJob,
    bus_factor,
    choose,
)

AS_IS, HEALTHY = "as_is", "healthy"
_ASYMPTOTE = 1 << 40  # bytes
_NO_RING = "no ring over the direct links joins all GPUs: measure with nccl-tests"
_HOST_COPY = {80: 0.35, 90: 0.30, 100: 0.30}  # of the rail, through host memory: nccl#1412, nccl#1676 (measured)
# us at 8 MB that large transfers take beyond NCCL's own times, growing with size^0.4: fitted on public tables
_FILL_US = {NVLS: 14.0, RING: 8.0}
MODELLED_FROM = 8_000_000  # bytes: below, launch and plugins decide, which no topology shows


class Request(NamedTuple):
    """One row to predict."""

    collective: str
    size: int  # bytes
    nodes: int
    version: Version = NEWEST
    algorithm: str | None = None  # the only one that `NCCL_ALGO` leaves; None: NCCL chooses


class _Wires(NamedTuple):
    """What the wires allow of what NCCL plans: a factor of 1 or less, and the device that sets it."""

    factor: float
    device: str | None = None
    host: str | None = None
    kind: str = "nic"
    measured: bool = False


def predict(nodes: Sequence[NodeFacts], request: Request, case: str, fitted: Overheads = FITTED) -> Prediction:
    """One row for a job on these nodes; a single node stands for `request.nodes` of which the others are healthy."""
    node = nodes[0]
    ranks = len(node.gpus) * request.nodes
    reason = find_refusal(nodes, request.nodes, request.size)
    if reason:
        return _row(request, case, ranks, known_by="not-modelled", note=reason)
    if node.kind in ("xgmi", "hccs"):
        return _predict_sum(nodes, request, case, ranks)
    if request.collective in (ALL_TO_ALL, SEND_RECEIVE):
        return _predict_pairs(nodes, request, case, ranks)
    return _predict_tuned(nodes, request, case, ranks, fitted)


def _predict_tuned(
    nodes: Sequence[NodeFacts], request: Request, case: str, ranks: int, fitted: Overheads
) -> Prediction:
    healthy = case == HEALTHY
    node = min(nodes, key=lambda facts: facts.sm)
    amd, arm = any(facts.amd_cpu for facts in nodes), any(facts.arm_cpu for facts in nodes)
    collnet = request.algorithm == NVLS and request.nodes > 1
    job = TunedJob(request.nodes, ranks, node.sm, request.version, amd, arm, collnet=collnet)
    plans = _plans(nodes, request, healthy)
    size = request.size if request.nodes > 1 else max(request.size, LARGE)
    chosen = choose(request.collective, size, job, plans)
    if chosen is None:
        return _row(request, case, ranks, known_by="not-modelled", note=_NO_RING)
    choice, _ = chosen
    plan = plans[choice.algorithm]
    if request.nodes == 1:
        reached = _reach_inside(choice, request, job, plan, node)
    else:
        inside = plan_of_job([plan_nvls(facts.search_input(1, request.version, healthy)) for facts in nodes])
        counted = count_gbyte_s(choice, request.collective, job, plan, inside)
        choice = choice._replace(algorithm_gbyte_s=counted)
        overhead = find_overhead(classify_job(node.network, choice.algorithm, request.nodes), fitted)
        reached = reach(choice, request.size, request.collective, job, plan.channels, overhead)
        if request.nodes > 16:  # of a working cluster
            reached = reached._replace(low=reached.busbw * 0.3, high=reached.busbw * 1.05)
    wires = _WIRES_OK if healthy else _wires(nodes, request, choice, plan, ranks)
    busbw = reached.busbw * wires.factor
    bound = _bound(nodes, request, choice, plan, healthy)
    if wires.factor < 1:
        bound = Bound(kind=wires.kind, device=wires.device, host=wires.host if len(nodes) > 1 else None)
    elif not healthy and choice.algorithm != NVLS and request.nodes == 1 and node.weakest_gpu:
        bound = Bound(kind="nvlink", device=node.weakest_gpu)
    return _row(
        request, case, ranks,
        algorithm=choice.algorithm, protocol=choice.protocol, channels=plan.channels,
        channel_gbyte_s=_round(plan.inter_gbyte_s if request.nodes > 2 else plan.intra_gbyte_s),
        busbw_gbyte_s=_round(busbw), algbw_gbyte_s=_round(busbw / bus_factor(request.collective, ranks)),
        range_gbyte_s=(_round(reached.low * wires.factor), _round(reached.high * wires.factor)), bound=bound,
        known_by=_known_by(node, wires, reached),
        note=_note(request, reached),
    )  # fmt: skip


_WIRES_OK = _Wires(1.0)


def _plans(nodes: Sequence[NodeFacts], request: Request, healthy: bool) -> dict[str, ChannelPlan]:
    """The graphs that the job gets: the least over its nodes, and over the healthy ones that are not described."""
    if not nodes[0].regular:
        ring_sets = [search_rings(len(node.gpus), node.mesh, node.sm, request.version) for node in nodes]
        return {RING: plan_of_job(ring_sets)}
    inputs = [node.search_input(request.nodes, request.version, healthy) for node in nodes]
    if not healthy and len(nodes) < request.nodes:
        inputs.append(nodes[0].search_input(request.nodes, request.version, True))
    plans = {
        RING: plan_of_job([plan_ring(node) for node in inputs]),
        TREE: plan_of_job([plan_tree(node) for node in inputs]),
    }
    switch = plan_of_job([plan_nvls(node) for node in inputs])
    if request.nodes == 1 or nodes[0].network != TCPXO:  # between nodes its plugin needs NVLS off (settings.py)
        plans[NVLS if request.nodes == 1 or request.algorithm == NVLS else NVLS_TREE] = switch
    return {name: plan for name, plan in plans.items() if request.algorithm in (None, name)}


def _reach_inside(choice: Choice, request: Request, job: TunedJob, plan: ChannelPlan, node: NodeFacts) -> Reached:
    """One node: NCCL's time and what large transfers take beyond it, else a half-size; with what tables spread over."""
    busbw = _busbw_inside(choice, request, job, plan)
    large = request.size >= LARGE
    if not node.regular:
        low, high = (0.85, 1.25) if large else (0.6, 1.5)  # NCCL counts a fifth less than links of that time carry
    else:
        low, high = (0.9, 1.06) if large else (0.78, 1.4 if request.size < 32e6 else 1.12)
    return Reached(busbw, busbw * low, busbw * high, False)


def _busbw_inside(choice: Choice, request: Request, job: TunedJob, plan: ChannelPlan) -> float:
    factor = bus_factor(request.collective, job.ranks)
    peak = choice.algorithm_gbyte_s * factor
    if choice.algorithm == NVLS and job.version < (2, 28):  # older tables understate what the hardware does
        newest = choose(request.collective, _ASYMPTOTE, job._replace(version=NEWEST), {NVLS: plan})
        peak = max(peak, newest[0].algorithm_gbyte_s * factor) if newest else peak
    if job.sm < 90 and request.collective in (ALL_GATHER, REDUCE_SCATTER):
        peak *= 0.95  # A100, one node: 213 to 223 of 240 GB/s (public table of Azure ND A100 v4)
    if request.size < LARGE:
        half = 23e6 if job.sm >= 90 else 12e6 if request.collective == ALL_REDUCE else 32e6  # of public tables
        return peak * request.size / (request.size + half)
    fill = _FILL_US.get(choice.algorithm, 0.0) * math.pow(request.size / 8e6, 0.4)
    return request.size / (choice.latency_us + fill + request.size * factor / (1000 * peak)) / 1000 * factor


def _wires(nodes: Sequence[NodeFacts], request: Request, choice: Choice, plan: ChannelPlan, ranks: int) -> _Wires:
    """How far the slowest wire holds back channels that all carry the same share."""
    if request.nodes == 1:
        return _WIRES_OK
    share = choice.algorithm_gbyte_s
    if choice.algorithm == RING or request.nodes > 2:  # of two nodes each sends a tree's bytes once
        share *= bus_factor(request.collective, ranks)
    worst = _WIRES_OK
    for node in nodes:
        rails = [rail for rail in node.rails if rail_gbyte_s(rail, False) > 0]
        devices = len(merge_rails([rail_gbyte_s(rail, False) for rail in rails], len(node.gpus)))
        load = share / max(1, min(plan.channels, devices)) / max(1, len(rails) // max(1, devices))
        for rail in rails:
            wire = min(rail.wire_gbyte_s, rail.network_gbyte_s)
            measured = False
            if not rail.direct:
                wire, measured = wire * _HOST_COPY.get(node.sm // 10 * 10, 0.3), True
            if wire < load * 0.999 and wire / load < worst.factor:
                kind = "pcie" if wire < rail.network_gbyte_s * 0.999 else "nic"
                device = rail.slowest if kind == "pcie" and rail.direct and rail.slowest else rail.label
                worst = _Wires(wire / load, device, node.host, kind, measured)
    return worst


def _bound(nodes: Sequence[NodeFacts], request: Request, choice: Choice, plan: ChannelPlan, healthy: bool) -> Bound:
    """Of a job the rails of the node that has the least; the port that runs below its siblings, where one does."""
    if request.nodes == 1:
        return Bound(kind="nvls" if choice.algorithm == NVLS else "nvlink")
    if request.nodes == 2 and choice.algorithm == NVLS_TREE and choice.algorithm_gbyte_s < plan.total_gbyte_s * 0.999:
        return Bound(kind="nvls")  # the NICs, which carry every byte once, could carry more
    node = min(nodes, key=lambda facts: sum(rail_gbyte_s(rail, healthy) for rail in facts.rails))
    slow = [rail for rail in node.rails if rail.network_gbyte_s < rail.healthy_network_gbyte_s * 0.999]
    if slow and not healthy:
        return Bound(kind="nic", device=slow[0].label, host=node.host if len(nodes) > 1 else None)
    narrow = all(rail.plan_gbyte_s < rail.healthy_network_gbyte_s * 0.95 for rail in node.rails)
    return Bound(kind="pcie" if narrow else "nic")


def _predict_pairs(nodes: Sequence[NodeFacts], request: Request, case: str, ranks: int) -> Prediction:
    """Send/receive and all-to-all: NCCL has no bandwidth model; shares of the payload that healthy machines reach."""
    node, healthy = nodes[0], case == HEALTHY
    payload = min((facts.healthy_links if healthy else min(facts.links, default=0.0)) for facts in nodes) * 1.25
    share, half = (0.65, 23e6) if request.collective == SEND_RECEIVE else (0.75, 32e6)
    busbw = payload * (share if node.sm < 90 else 0.8)
    bound = Bound(kind="nvlink", device=None if healthy else node.weakest_gpu)
    if request.nodes > 1:
        worst = min(
            ((_rails_gbyte_s(facts, healthy) / len(facts.gpus), index) for index, facts in enumerate(nodes)),
            default=(0.0, 0),
        )
        crossing = (request.nodes - 1) * len(node.gpus) / (ranks - 1) if request.collective == ALL_TO_ALL else 1.0
        busbw = min(busbw, worst[0] / crossing)
        bound = Bound(kind="nic", host=nodes[worst[1]].host if len(nodes) > 1 else None)
    busbw *= request.size / (request.size + half)
    return _row(
        request, case, ranks,
        busbw_gbyte_s=_round(busbw), algbw_gbyte_s=_round(busbw / bus_factor(request.collective, ranks)),
        range_gbyte_s=(_round(busbw * 0.6), _round(busbw * 1.2)), bound=bound, known_by="assumed",
        note="NCCL has no bandwidth model; 60% to 120% of this figure, the spread of published results",
    )  # fmt: skip


def _rails_gbyte_s(node: NodeFacts, healthy: bool) -> float:
    if healthy:
        return sum(rail_gbyte_s(rail, True) for rail in node.rails)
    return sum(min(rail_gbyte_s(rail, False), rail.wire_gbyte_s) for rail in node.rails)


def _predict_sum(nodes: Sequence[NodeFacts], request: Request, case: str, ranks: int) -> Prediction:
    """xGMI, HCCS: 0.71 of a GPU's links inside a node, 0.875 of the rails between nodes (public RCCL tables)."""
    healthy = case == HEALTHY
    inside = min(facts.healthy_links if healthy else min(facts.links, default=0.0) for facts in nodes)
    node = min(nodes, key=lambda facts: _sum_rails(facts, healthy))
    busbw, bound = inside * 0.71, Bound(kind="xgmi" if node.kind == "xgmi" else "hccs")
    if request.nodes > 1:
        host = node.host if len(nodes) > 1 and not healthy else None
        busbw, bound = _sum_rails(node, healthy) * 0.875, Bound(kind="nic", host=host)
    if request.collective in (ALL_TO_ALL, SEND_RECEIVE):
        return _row(
            request, case, ranks, known_by="not-modelled", note=f"no public table of this collective over {node.kind}"
        )
    half = 11e6 if request.nodes == 1 else 64e6
    busbw *= request.size / (request.size + half)
    spread = 0.1 if request.size >= LARGE and node.kind == "xgmi" else 0.35
    source = "public RCCL tables reach" if node.kind == "xgmi" else "xGMI reaches (no public table for HCCS)"
    return _row(
        request, case, ranks,
        busbw_gbyte_s=_round(busbw), algbw_gbyte_s=_round(busbw / bus_factor(request.collective, ranks)),
        range_gbyte_s=(_round(busbw * (1 - spread)), _round(busbw * (1 + spread))), bound=bound,
        known_by="measured" if node.kind == "xgmi" and not node.assumed else "assumed",
        note=f"not NCCL's model: the share of the link rate that {source}",
    )  # fmt: skip


def _sum_rails(node: NodeFacts, healthy: bool) -> float:
    return sum(min(rail.healthy_network_gbyte_s if healthy else rail.network_gbyte_s, 63.0) for rail in node.rails)


def _known_by(node: NodeFacts, wires: _Wires, reached: Reached) -> str:
    if node.assumed or reached.contradicted:
        return "assumed"
    return "measured" if wires.measured else "model"


def _note(request: Request, reached: Reached) -> str | None:
    notes = []
    if request.nodes > 16 or (request.nodes >= 4 and request.size < LARGE):
        notes.append("an upper limit: a production cluster of such nodes reached half to a ninth (public percentiles)")
    if reached.contradicted:
        notes.append("public tables of such networks differ, by versions and settings of NCCL and its plugin")
    return "; ".join(notes) or None


def _row(request: Request, case: str, ranks: int, **figures: object) -> Prediction:
    return Prediction(
        case=case,
        collective=request.collective,
        size_bytes=request.size,
        nodes=request.nodes,
        ranks=ranks,
        nccl=".".join(map(str, request.version)),
        **figures,  # type: ignore[arg-type]  # fields of Prediction, which checks them
    )


def _round(value: float) -> float:
    return round(value, 3)


def version_of(requested: str | None, nodes: Iterable[NodeFacts]) -> Version:
    """The version that was asked for, else the oldest that the nodes have, else the newest known."""
    if requested:
        return parse_version(requested)
    return min((parse_version(node.nccl) for node in nodes if node.nccl), default=NEWEST)


def find_refusal(job: Sequence[NodeFacts], nodes: int, size: int) -> str | None:
    """Why a job on these nodes has no prediction; None: it has one."""
    return next((text for node in job if (text := _refuse(node, nodes, size))), None) or _unlike(job)


def _refuse(node: NodeFacts, nodes: int, size: int) -> str | None:
    if node.missing:
        return f"missing: {', '.join(node.missing)}"
    if len(node.gpus) * nodes < 2:
        return "a collective needs two GPUs"
    if node.kind in ("pcie", "none"):
        return "GPUs without direct links: measure with nccl-tests; NCCL's constants do not fit PCIe-only machines"
    if not node.regular and (nodes > 1 or not node.mesh):
        return "the direct links do not join all GPUs alike: measure with nccl-tests"
    if nodes > 1 and not any(rail_gbyte_s(rail, True) for rail in node.rails):
        return "no rail with a known rate: give --rails, for example 8x400"
    if size < MODELLED_FROM:
        return "below 8 MB launch time and network plugin decide, which no topology shows"
    return None


def _unlike(nodes: Sequence[NodeFacts]) -> str | None:
    """Nodes of different kinds in one job have no model."""
    shapes = {(node.kind, len(node.gpus)): node.host for node in nodes}
    if len(shapes) < 2:
        return None
    return "nodes differ: " + ", ".join(f"{host} has {count} GPUs ({kind})" for (kind, count), host in shapes.items())
