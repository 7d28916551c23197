"""Where tensor, pipeline, data, context and expert parallel go: layouts that fit memory, the shortest step first; what
each kind sends, and how fast its groups are on a machine.

Volumes of a step and GPU; times are volume by the bus bandwidth that a group reaches. Formulas: Megatron-LM (arXiv
1909.08053, 2104.04473, 2205.05198), ZeRO (1910.02054), Llama 3 (2407.21783), DeepSeek-V3 (2412.19437).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from agent.model.labels import group_by_key
from agent.model.prediction import RankPlace
from agent.model.recommend_answers import Layout, Traffic, TrainingPlan
from agent.model.report import Report
from agent.recommend.constants import Version, nvlink_wire_gbyte_s
from agent.recommend.machine import NodeFacts
from agent.recommend.predict import HEALTHY, MODELLED_FROM, Request, predict
from agent.recommend.rails import rail_gbyte_s
from agent.recommend.tuning import ALL_GATHER, ALL_TO_ALL

BYTES = 2  # of an element: bf16
_NO_INDEX = 1 << 20
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


class Model(NamedTuple):
    """The model and its training."""

    params: float
    layers: int
    hidden: int
    sequence: int
    batch_tokens: float  # of a step, all GPUs
    micro_batch: int = 1  # sequences
    experts: int = 0
    top_k: int = 1
    active_params: float = 0.0  # of a token; of a dense model all
    kv_share: float = 1.0  # key and value heads by heads

    @property
    def expert_params(self) -> float:
        """Parameters of all experts: what a token does not use is theirs, but for the share that it uses."""
        return (self.params - self.active_params) / (1 - self.top_k / self.experts) if self.experts else 0.0


class Degrees(NamedTuple):
    """GPUs of each kind of group; their product is the number of GPUs, experts are on those of data."""

    tensor: int
    context: int
    expert: int
    pipeline: int
    data: int


class Speeds:
    """Bus bandwidth in GB/s of groups on a machine, by how many of its GPUs are in one node."""

    def __init__(self, node: NodeFacts, version: Version) -> None:
        self._node, self._version = node, version
        self.domain = len(node.gpus)
        rails = sum(rail_gbyte_s(rail, True) for rail in node.rails)
        self.nic = rails / max(1, self.domain)  # of each GPU
        self._known: dict[tuple[str, int], float] = {}

    def of(self, collective: str, group: int, in_node: int, size: float) -> tuple[float, str]:
        """A group of `group` GPUs of which `in_node` are in each node, for messages of `size` bytes."""
        if group <= in_node:
            return self._inside(collective, size), "NVLink"
        if collective == ALL_TO_ALL or in_node == 1:
            return self.nic, "one NIC of each GPU"
        reached = min(self._inside(collective, size), in_node * self.nic)
        where = "whole nodes" if in_node == self.domain else f"{in_node} GPUs of each node"
        return reached * size / (size + 54e6), where  # half-size on two nodes with InfiniBand: public tables

    def _inside(self, collective: str, size: float) -> float:
        request = Request(collective, max(int(size), MODELLED_FROM), 1, self._version)
        key = (collective, request.size)
        if key not in self._known:
            self._known[key] = predict([self._node], request, HEALTHY).busbw_gbyte_s or 0.0
        return self._known[key]


def tensor_traffic(model: Model, at: Degrees, speeds: Speeds, micro_batches: int) -> Traffic:
    """Sequence parallel: all-gather and reduce-scatter before and after each half of a layer."""
    t, part = at.tensor, _activation(model, at)
    volume = 8 * (t - 1) / t * part * model.layers / at.pipeline * micro_batches
    reached, where = speeds.of(ALL_GATHER, t, min(t, speeds.domain), part)
    formula = (
        f"8 x ({t}-1)/{t} x {part / 1e6:.0f} MB (b s h w / c) x {model.layers // at.pipeline} layers x {micro_batches}"
    )
    return _traffic("tensor", t, volume, reached, where, (0.3, 1.0), formula, "arXiv 2205.05198; 30% with overlap")


def context_traffic(model: Model, at: Degrees, speeds: Speeds, micro_batches: int) -> Traffic:
    """Ring attention: keys and values go round, once forward and twice back."""
    c, part = at.context, _activation(model, at) * model.kv_share
    volume = 6 * (c - 1) / c * part * c / at.tensor * model.layers / at.pipeline * micro_batches
    in_node = min(c, max(1, speeds.domain // at.tensor))
    reached, where = speeds.of(ALL_GATHER, c, in_node, part) if c <= in_node else (speeds.nic, "one NIC of each GPU")
    formula = f"3 x 2 x ({c}-1)/{c} x b s h_kv w / t x {model.layers // at.pipeline} layers x {micro_batches}"
    return _traffic("context", c, volume, reached, where, (0.0, 1.0), formula, "arXiv 2407.21783; hidden by attention")


def pipeline_traffic(model: Model, at: Degrees, speeds: Speeds, micro_batches: int) -> Traffic:
    """Activations to the next stage, their gradients back; only the first and the last of them are exposed."""
    p, part = at.pipeline, _activation(model, at) / at.tensor
    volume = 2 * part * micro_batches
    inside = at.tensor * at.context * p <= speeds.domain
    reached, where = (speeds.of(ALL_GATHER, 2, 2, part)) if inside else (speeds.nic, "one NIC of each GPU")
    formula = f"2 x {part / 1e6:.0f} MB (b s h w / (t c)) x {micro_batches} micro-batches"
    share = min(1.0, (p - 1) / micro_batches)
    return _traffic("pipeline", p, volume, reached, where, (share, share), formula, "arXiv 2104.04473")


def data_traffic(model: Model, at: Degrees, speeds: Speeds, micro_batches: int, zero3: bool, window: float) -> Traffic:
    """Gradients and parameters. `window`: seconds of compute that they hide behind."""
    d, params = at.data * at.context, held_params(model, at)
    in_node = min(d, max(1, speeds.domain // (at.tensor * at.pipeline), min(at.context, speeds.domain // at.tensor)))
    times, count = (3 * micro_batches, f"3 x {micro_batches}") if zero3 else (2, "2")
    volume = times * (d - 1) / d * BYTES * params
    reached, where = speeds.of(ALL_GATHER, d, in_node, BYTES * params / (model.layers / at.pipeline))
    if in_node == 1 and d > 1:
        reached, where = speeds.nic, "one NIC of each GPU"
    seconds = volume / reached / 1e9 if reached else 0.0
    least = max(0.0, seconds - window) / seconds if seconds else 0.0
    formula = f"{count} x ({d}-1)/{d} x 2 bytes x {params / 1e9:.2f}e9 parameters of a GPU"
    return _traffic("data", d, volume, reached, where, (least, 1.0), formula, "arXiv 1910.02054; least: behind compute")


def expert_traffic(model: Model, at: Degrees, speeds: Speeds, micro_batches: int) -> Traffic:
    """Dispatch and combine, forward and backward: four all-to-all of a layer."""
    e, part = at.expert, _activation(model, at) * model.top_k / at.tensor
    volume = 4 * (e - 1) / e * part * model.layers / at.pipeline * micro_batches
    in_node = min(e, max(1, speeds.domain // at.tensor))
    reached, where = speeds.of(ALL_TO_ALL, e, in_node, part)
    formula = f"4 x ({e}-1)/{e} x b s k h w / (t c) x {model.layers // at.pipeline} layers x {micro_batches}"
    return _traffic("expert", e, volume, reached, where, (0.5, 1.0), formula, "arXiv 2412.19437; half with overlap")


def _activation(model: Model, at: Degrees) -> float:
    """Bytes of a layer's input of one micro-batch: b s h w / c."""
    return model.micro_batch * model.sequence * model.hidden * BYTES / at.context


def held_params(model: Model, at: Degrees) -> float:
    """Those of one GPU, before sharding over data."""
    dense = (model.params - model.expert_params) / (at.tensor * at.pipeline)
    return dense + model.expert_params / (at.expert * at.pipeline * at.tensor)


def _traffic(
    kind: str, group: int, volume: float, reached: float, where: str, exposed: tuple[float, float], formula: str,
    source: str,
) -> Traffic:  # fmt: skip
    seconds = volume / reached / 1e9 if reached else 0.0
    return Traffic(
        kind=kind, group=group, gbyte=round(volume / 1e9, 3), gbyte_s=round(reached, 1), where=where,
        seconds=round(seconds, 4), exposed_seconds=(round(seconds * exposed[0], 4), round(seconds * exposed[1], 4)),
        formula=f"{formula} = {volume / 1e9:.3g} GB / {reached:.4g} GB/s = {seconds:.3g} s", source=source,
    )  # fmt: skip


def place_ranks(report: Report, node: NodeFacts) -> list[RankPlace]:
    """One rank per GPU in the order of their indexes; its rails are those that are nearest to it."""
    gpus = [gpu for gpu in report.topology.gpus if gpu.label in node.gpus]
    gpus.sort(key=lambda gpu: (_NO_INDEX if gpu.index is None else gpu.index, gpu.pci or gpu.id))
    cpus = {numa.id: numa.cpus for numa in report.node.numa_nodes}
    rails = group_by_key((rail.gpu, rail.label) for rail in node.rails if rail.gpu is not None)
    return [
        RankPlace(
            local_rank=rank, gpu=gpu.label, pci=gpu.pci, rails=rails.get(gpu.label, []), numa_node=gpu.numa_node,
            cpus=cpus.get(gpu.numa_node) if gpu.numa_node is not None else None,
        )
        for rank, gpu in enumerate(gpus)
    ]  # fmt: skip


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
