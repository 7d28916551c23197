"""Layouts of a training job: tensor, pipeline, data, context and expert parallel. `fabricscope.plan/1`."""

from __future__ import annotations

import msgspec

SCHEMA_PLAN = "fabricscope.plan/1"


class Traffic(msgspec.Struct, frozen=True, kw_only=True):
    """What one kind of parallelism sends, of one GPU and step."""

    kind: str  # tensor | context | pipeline | data | expert
    group: int  # GPUs
    gbyte: float
    gbyte_s: float  # that the group reaches
    where: str  # "NVLink", "whole nodes", "one NIC of each GPU"
    seconds: float
    exposed_seconds: tuple[float, float]  # not hidden behind compute: least and most
    formula: str  # with the figures in it
    source: str


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """One way to place the model on the GPUs."""

    tensor: int
    context: int
    expert: int
    pipeline: int
    data: int
    sharding: str  # zero-1: optimizer states; zero-3: parameters too
    recompute: str  # selective | full: activations in the backward pass
    micro_batches: int
    memory_gbyte: float  # of a GPU
    memory_formula: str
    compute_seconds: float
    bubble_percent: float
    step_seconds: tuple[float, float]
    traffic: list[Traffic] = []


class TrainingPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The whole answer."""

    schema: str = SCHEMA_PLAN
    machine: str
    assumed: list[str] = []
    arithmetic: list[str] = []  # what holds for every layout, with its figures
    layouts: list[Layout] = []  # that fit; the shortest step is first
    rejected: dict[str, int] = {}  # layouts by the reason why they are left out
    rules: list[str] = []  # of placing ranks
