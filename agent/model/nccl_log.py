"""What the log of a job says of NCCL's choices, and where they differ. `fabricscope.explain-log/1`. GB/s."""

from __future__ import annotations

import msgspec

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
    dmabuf: bool = False  # the log says that it is available
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
    """One thing that is not as this machine should give it."""

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
