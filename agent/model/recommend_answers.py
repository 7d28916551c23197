"""What `recommend` answers besides predictions. Bandwidth in GB/s.

Layouts of a training job (`fabricscope.plan/1`), measured tables against the model (`fabricscope.measured/1`), and the
log of a job (`fabricscope.explain-log/1`).
"""

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


SCHEMA_MEASURED = "fabricscope.measured/1"


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """One figure of a table."""

    tool: str  # nccl-tests | nvbandwidth | perftest | osu
    what: str  # all_reduce, device_to_device_memcpy_read_ce GPU0 GPU1, mlx5_0
    size_bytes: int | None = None
    gbyte_s: float  # of nccl-tests the bus bandwidth
    algbw_gbyte_s: float | None = None
    reduces: bool | None = None  # nccl-tests: the column redop names an operation
    out_of_place_gbyte_s: float | None = None  # nccl-tests: bus bandwidth of the two halves of a row
    in_place_gbyte_s: float | None = None
    wrong: int | None = None  # nccl-tests: values that are wrong


class MeasuredTable(msgspec.Struct, frozen=True, kw_only=True):
    """All figures of a file, and what it states of the run."""

    rows: list[Measurement] = []
    ranks: int | None = None
    hosts: int | None = None
    devices: list[str] = []
    models: list[str] = []  # of the GPUs, as the output names them


class JudgedMeasurement(msgspec.Struct, frozen=True, kw_only=True):
    """A figure beside what the model expects."""

    measured: Measurement
    verdict: str  # good | low | above | not-judged
    expected_gbyte_s: float | None = None
    range_gbyte_s: tuple[float, float] | None = None
    reasons: list[str] = []  # low: what could explain it, the likeliest first; not-judged: why


class MeasuredAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The whole answer."""

    schema: str = SCHEMA_MEASURED
    machine: str
    verdict: str  # the worst of its rows
    rows: list[JudgedMeasurement] = []
    shapes: list[str] = []  # what the shape of the table shows, the most specific first


SCHEMA_EXPLAIN_LOG = "fabricscope.explain-log/1"


class Graph(msgspec.Struct, frozen=True, kw_only=True):
    """What NCCL's search found for one algorithm."""

    algorithm: str  # ring | tree | nvls | collnet
    channels: int
    intra_gbyte_s: float
    inter_gbyte_s: float
    paths: str  # the worst between GPUs, and to NICs: "NVL/PIX"


class NcclChoice(msgspec.Struct, frozen=True, kw_only=True):
    """Algorithm and protocol of one size."""

    collective: str
    size_bytes: int
    algorithm: str
    protocol: str


class NcclLog(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of a log that was written with NCCL_DEBUG=INFO."""

    lines: int  # of NCCL
    version: str | None = None
    ranks: int | None = None
    nodes: int | None = None
    local_ranks: int | None = None
    network: str | None = None  # IB, Socket, or a plugin's name
    devices: list[str] = []  # RDMA ports that NCCL uses: "mlx5_0:1/IB"
    no_rdma_device: bool = False
    gpudirect_off: list[str] = []  # "HCA 0 'mlx5_0'": as the log words it
    too_far: list[str] = []  # pairs that NCCL takes no GPUDirect for: "GPU 19000 / HCA 3 (distance 7 > 4)"
    dmabuf: bool = False  # the log states that it is available
    transports: dict[str, int] = {}  # channels by transport: "P2P/CUMEM", "NET/IB", "NET/IB/GDRDMA"
    nvls: bool | None = None  # multicast is available
    collective_channels: int | None = None
    nvls_channels: int | None = None
    graphs: list[Graph] = []
    rings: list[str] = []  # ranks of each channel, in order
    gpudirect: bool | None = None  # "Connected all rings, use ring PXN .. GDR .."
    choices: list[NcclChoice] = []
    settings: dict[str, str] = {}
    no_affinity: list[int] = []  # GPUs whose CPUs the job may not use
    warnings: list[str] = []


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One difference from what this machine should give."""

    what: str
    seen: str
    expected: str
    reasons: list[str] = []  # what could explain it, the likeliest first


class LogAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The whole answer."""

    schema: str = SCHEMA_EXPLAIN_LOG
    machine: str | None = None  # that the log is compared with; null: with none
    log: NcclLog
    differences: list[Difference] = []
    as_expected: list[str] = []  # what was compared and is right
    not_compared: list[str] = []  # and why
