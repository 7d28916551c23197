"""What `recommend` answers: predictions, settings and repairs. `fabricscope.recommend/1`. Bandwidth in GB/s."""

from __future__ import annotations

import msgspec

SCHEMA_RECOMMEND = "fabricscope.recommend/1"


class Bound(msgspec.Struct, frozen=True, kw_only=True):
    """What sets the bandwidth."""

    kind: str  # nvlink | nvls | xgmi | hccs | nic | pcie | cpu-link | latency
    device: str | None = None  # label of the device that does, where one device does
    host: str | None = None  # of a job on several nodes


class Prediction(msgspec.Struct, frozen=True, kw_only=True):
    """One collective of one size on one job, for the machine as it is or as it should be."""

    case: str  # as_is | healthy
    collective: str  # all_reduce | all_gather | reduce_scatter | all_to_all | sendrecv
    size_bytes: int
    nodes: int
    ranks: int
    nccl: str  # the version whose constants were used: "2.30"
    algorithm: str | None = None  # ring | tree | nvls | nvls-tree; null: NCCL has no choice, or it is not modelled
    protocol: str | None = None  # LL | LL128 | Simple
    channels: int | None = None
    channel_gbyte_s: float | None = None
    busbw_gbyte_s: float | None = None  # as nccl-tests prints it
    algbw_gbyte_s: float | None = None
    range_gbyte_s: tuple[float, float] | None = None  # of busbw
    bound: Bound | None = None
    known_by: str = "model"  # model | measured | assumed | not-modelled
    note: str | None = None  # why it is not modelled, or what the figure leaves out


class SettingAdvice(msgspec.Struct, frozen=True, kw_only=True):
    """One setting of NCCL that this machine needs, or that is set and hurts."""

    name: str
    value: str | None  # null: remove it
    default: str  # what NCCL does without it
    reason: str
    gain: str
    verify: str  # the line of the log that proves it
    remove: str  # when it is to be removed again
    evidence: list[str] = []


class NotNeeded(msgspec.Struct, frozen=True, kw_only=True):
    """A setting that people set by habit, and why it is not needed here."""

    name: str
    reason: str


class Repair(msgspec.Struct, frozen=True, kw_only=True):
    """A finding, and what its repair gives back."""

    rule: str
    device: str
    collective: str
    nodes: int
    gain_gbyte_s: float
    percent: float  # of the healthy bandwidth
    known_by: str
    until: str | None = None  # what to do until it is repaired
    host: str | None = None  # of a job on several nodes


class RankPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where one process of a job belongs on its node."""

    local_rank: int
    gpu: str
    pci: str | None = None
    rails: list[str] = []  # that are nearest to it; none: it shares those of other GPUs
    numa_node: int | None = None
    cpus: str | None = None  # cpulist to bind it to


class PlatformComparison(msgspec.Struct, frozen=True, kw_only=True):
    """The host's settings beside those that NVIDIA's own validation uses on this platform: no advice."""

    platform: str
    source: str
    same: list[str] = []
    differs: list[str] = []
    not_set: list[str] = []


class Recommendation(msgspec.Struct, frozen=True, kw_only=True):
    """The whole answer."""

    schema: str = SCHEMA_RECOMMEND
    machine: str  # "8x H100 80GB HBM3, 18 NVLinks each, 8 rails of 400 Gb/s"
    assumed: list[str] = []  # figures that are a profile's, not this machine's
    missing: list[str] = []  # fields of the report that a prediction would need
    predictions: list[Prediction] = []
    settings: list[SettingAdvice] = []
    not_needed: list[NotNeeded] = []
    repairs: list[Repair] = []  # what gives back most is first
    placement: list[RankPlace] = []
    node_order: list[str] = []  # of a job: hosts along the fabric, "leaf: hosts" for each leaf switch
    platform: PlatformComparison | None = None
    summary: list[str] = []  # of a job on several nodes: what all repairs cost together
