"""What tables of benchmarks show against the model. `fabricscope.measured/1`. Bandwidth in GB/s."""

from __future__ import annotations

import msgspec

SCHEMA_MEASURED = "fabricscope.measured/1"


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """One figure of a table."""

    tool: str  # nccl-tests | nvbandwidth | perftest
    what: str  # all_reduce, device_to_device_memcpy_read_ce GPU0 GPU1, mlx5_0
    size_bytes: int | None = None
    gbyte_s: float  # of nccl-tests the bus bandwidth
    algbw_gbyte_s: float | None = None
    reduces: bool | None = None  # nccl-tests: the column redop names an operation


class MeasuredTable(msgspec.Struct, frozen=True, kw_only=True):
    """All figures of a file, and what it says of the run."""

    rows: list[Measurement] = []
    ranks: int | None = None
    hosts: int | None = None
    devices: list[str] = []


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
