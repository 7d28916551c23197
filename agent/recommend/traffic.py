"""What each kind of parallelism sends, and how fast its groups are on a machine.

Volumes of a step and GPU; times are volume by the bus bandwidth that a group reaches. Formulas: Megatron-LM (arXiv
1909.08053, 2104.04473, 2205.05198), ZeRO (1910.02054), Llama 3 (2407.21783), DeepSeek-V3 (2412.19437).
"""

from __future__ import annotations

from typing import NamedTuple

from agent.model.recommend_answers import Traffic
from agent.recommend.constants import Version
from agent.recommend.machine import NodeFacts
from agent.recommend.predict import HEALTHY, MODELLED_FROM, Request, predict
from agent.recommend.rails import rail_gbyte_s
from agent.recommend.tuning import ALL_GATHER, ALL_TO_ALL

BYTES = 2  # of an element: bf16


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
