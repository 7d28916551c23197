"""Where tensor, pipeline, data, context and expert parallel go: layouts that fit memory, the shortest step first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from agent.model.prediction import RankPlace
from agent.model.recommend_answers import Layout, Traffic, TrainingPlan
from agent.model.report import Report
from agent.recommend.constants import Version, nvlink_wire_gbyte_s
from agent.recommend.machine import NodeFacts
from agent.recommend.traffic import (
    Degrees,
    Model,
    Speeds,
    context_traffic,
    data_traffic,
    expert_traffic,
    held_params,
    pipeline_traffic,
    tensor_traffic,
)

_NO_INDEX = 1 << 20


def place_ranks(report: Report, node: NodeFacts) -> list[RankPlace]:
    """One rank per GPU in the order of their indexes; its rails are those that are nearest to it."""
    gpus = [gpu for gpu in report.topology.gpus if gpu.label in node.gpus]
    gpus.sort(key=lambda gpu: (_NO_INDEX if gpu.index is None else gpu.index, gpu.pci or gpu.id))
    cpus = {numa.id: numa.cpus for numa in report.node.numa_nodes}
    rails: dict[str, list[str]] = {}
    for rail in node.rails:
        if rail.gpu is not None:
            rails.setdefault(rail.gpu, []).append(rail.label)
    return [
        RankPlace(
            local_rank=rank, gpu=gpu.label, pci=gpu.pci, rails=rails.get(gpu.label, []), numa_node=gpu.numa_node,
            cpus=cpus.get(gpu.numa_node) if gpu.numa_node is not None else None,
        )
        for rank, gpu in enumerate(gpus)
    ]  # fmt: skip


_PEAK_TFLOPS = {80: 312.0, 90: 989.0, 100: 2250.0}  # bf16, dense: NVIDIA's data sheets of A100, H100 and B200
_ACHIEVED = 0.45  # of the peak: 38 to 52% in public runs (Llama 3, Megatron-LM)
_WEIGHTS, _STATES = 4, 12  # bytes of a parameter: bf16 weights and gradients; fp32 copy and two moments of Adam
_SAVED, _SAVED_FULL = 34, 2  # bytes of activations per element of b s h: arXiv 2205.05198, selective and full recompute
_USABLE = 0.9  # of a GPU's memory: the rest is the CUDA context, NCCL's buffers and fragments
_SHOWN = 8

RULES = [
    "Order of ranks, innermost first: tensor, context, expert, pipeline, data (Llama 3; arXiv 2407.21783).",
    "One process per GPU, local rank = CUDA index; CUDA_DEVICE_ORDER=PCI_BUS_ID makes it nvidia-smi's.",
    "The same local rank of every node on the same rail: rings then never leave a rail.",
    "Nodes in the order of the fabric, leaf by leaf: ring neighbours are under one leaf.",
    "Bind each rank to the CPUs of its GPU's NUMA node.",
]


class Cluster(NamedTuple):
    """What the model runs on."""

    node: NodeFacts
    gpus: int
    memory_gbyte: float  # of a GPU
    version: Version


def plan_training(model: Model, cluster: Cluster) -> TrainingPlan:
    """All layouts of powers of two that use every GPU, judged."""
    peak = _PEAK_TFLOPS.get(min(cluster.node.sm // 10 * 10, 100), 0.0)
    flops = 6 * model.active_params * model.batch_tokens
    flops += (
        6 * model.layers * model.hidden * model.sequence * model.batch_tokens
    )  # attention, causal: half of 12 L h s
    compute = flops / (cluster.gpus * peak * 1e12 * _ACHIEVED) if peak else 0.0
    rejected: Counter[str] = Counter()
    layouts = []
    speeds = Speeds(cluster.node, cluster.version)
    for at in _list_degrees(model, cluster):
        layout = _judge(model, cluster, at, compute, speeds)
        if isinstance(layout, str):
            rejected[layout] += 1
        else:
            layouts.append(layout)
    layouts.sort(key=lambda row: (sum(row.step_seconds), row.tensor * row.pipeline, row.context))
    share = f"{peak:g} TFLOP/s x {_ACHIEVED}"
    return TrainingPlan(
        machine=f"{cluster.gpus} GPUs: nodes of {cluster.node.title}",
        assumed=list(cluster.node.assumed),
        arithmetic=[
            f"FLOP of a step: 6 x {model.active_params:.3g} x {model.batch_tokens:.3g} tokens + attention "
            f"6 L h s a token (causal) = {flops:.3g}",
            f"compute: {flops:.3g} / ({cluster.gpus} GPUs x {share}) = {compute:.3g} s",
            _describe_links(cluster.node),
            f"usable memory of a GPU: {_USABLE} x {cluster.memory_gbyte:.0f} GB",
            "step = compute x (1 + (p-1)/micro-batches) + what is exposed of each kind",
        ],
        layouts=layouts[:_SHOWN],
        rejected=dict(rejected),
        rules=RULES,
    )


def _describe_links(node: NodeFacts) -> str:
    """What one GPU can send, in one direction, on the wire."""
    network = sum(rail.healthy_network_gbyte_s for rail in node.rails) / len(node.gpus)
    return (
        f"a GPU sends at most {nvlink_wire_gbyte_s(node.sm, node.healthy_links):.0f} GB/s over its NVLinks and "
        f"{network:.0f} GB/s over NICs, one direction"
    )


def _list_degrees(model: Model, cluster: Cluster) -> Iterator[Degrees]:
    """Every layout; tensor parallel stays where GPUs have direct links, context parallel is for long sequences."""
    domain = len(cluster.node.gpus)
    contexts = [c for c in _powers(64) if c == 1 or model.sequence / c >= 8192]
    for tensor in (t for t in _powers(domain) if model.hidden // t >= 1024 or t == 1):
        for context in contexts:
            for pipeline in (p for p in range(1, min(model.layers, 64) + 1) if model.layers % p == 0):
                used = tensor * context * pipeline
                if cluster.gpus % used:
                    continue
                data = cluster.gpus // used
                experts = [e for e in _powers(model.experts) if model.experts % e == 0 and (data * context) % e == 0]
                yield from (Degrees(tensor, context, e, pipeline, data) for e in experts or [1])


def _judge(model: Model, cluster: Cluster, at: Degrees, compute: float, speeds: Speeds) -> Layout | str:
    """The layout, or why it is none."""
    sequences = model.batch_tokens / model.sequence / model.micro_batch
    micro_batches = int(sequences / at.data)
    if micro_batches < 1:
        return "the batch has fewer sequences than data parallel groups"
    for zero3 in (False, True):
        for saved, recompute in ((_SAVED, "selective"), (_SAVED_FULL, "full")):
            if zero3 and at.pipeline > 1:
                continue  # parameters would be gathered for every micro-batch of every stage
            memory, formula = _memory(model, at, micro_batches, zero3, saved)
            if memory <= _USABLE * cluster.memory_gbyte:
                time = compute * (4 / 3 if saved == _SAVED_FULL else 1.0)
                return _build(model, at, speeds, time, micro_batches, zero3, recompute, (memory, formula))
    return "does not fit the memory of a GPU"


def _memory(model: Model, at: Degrees, micro_batches: int, zero3: bool, saved: int) -> tuple[float, str]:
    """GB of a GPU: the first stage of a pipeline holds the activations of as many micro-batches as there are stages."""
    params, shards = held_params(model, at), at.data * at.context
    weights = (_WEIGHTS + _STATES) * params / shards if zero3 else _WEIGHTS * params + _STATES * params / shards
    flying = min(at.pipeline, micro_batches)
    layer = model.micro_batch * model.sequence * model.hidden / (at.tensor * at.context)
    activations = saved * layer * model.layers / at.pipeline * flying + (_SAVED * layer if saved != _SAVED else 0)
    sharding = f"16 bytes / {shards}" if zero3 else f"(4 + 12/{shards}) bytes"
    formula = (
        f"{params / 1e9:.3g}e9 parameters x {sharding} = {weights / 1e9:.3g} GB; activations {saved} x b s h / (t c) x "
        f"{model.layers // at.pipeline} layers x {flying} in flight = {activations / 1e9:.3g} GB"
    )
    return (weights + activations) / 1e9, formula


def _build(
    model: Model, at: Degrees, speeds: Speeds, compute: float, micro_batches: int, zero3: bool, recompute: str,
    memory: tuple[float, str],
) -> Layout:  # fmt: skip
    rows: list[Traffic] = []
    if at.tensor > 1:
        rows.append(tensor_traffic(model, at, speeds, micro_batches))
    if at.context > 1:
        rows.append(context_traffic(model, at, speeds, micro_batches))
    if at.expert > 1:
        rows.append(expert_traffic(model, at, speeds, micro_batches))
    if at.pipeline > 1:
        rows.append(pipeline_traffic(model, at, speeds, micro_batches))
    if at.data * at.context > 1:
        window = compute if zero3 else compute / micro_batches
        rows.append(data_traffic(model, at, speeds, micro_batches, zero3, window))
    bubble = (at.pipeline - 1) / micro_batches
    least, most = (compute * (1 + bubble) + sum(row.exposed_seconds[end] for row in rows) for end in (0, 1))
    return Layout(
        **at._asdict(), sharding="zero-3" if zero3 else "zero-1", recompute=recompute, micro_batches=micro_batches,
        memory_gbyte=round(memory[0], 1), memory_formula=memory[1], compute_seconds=round(compute, 4),
        bubble_percent=round(100 * bubble, 1), step_seconds=(round(least, 3), round(most, 3)), traffic=rows,
    )  # fmt: skip


def _powers(limit: int) -> list[int]:
    """
    >>> _powers(8), _powers(0)
    ([1, 2, 4, 8], [])
    """
    return [1 << power for power in range(max(limit, 0).bit_length()) if 1 << power <= limit]
