"""Rows of the answer: switches, and hops with both of their ends."""

from __future__ import annotations

import msgspec


class HopEnd(msgspec.Struct, frozen=True, kw_only=True):
    """One end of a hop. `kind`: host, switch, or unknown: no report and no output of it."""

    node: str
    port: str
    kind: str
    rail: int | None = None
    alias: str | None = None
    trust: str | None = None
    priority: int | None = None
    pfc: list[int] | None = None
    queue: int | None = None
    speed_gbit_s: float | None = None
    mtu: int | None = None
    fec: str | None = None


class HopRow(msgspec.Struct, frozen=True, kw_only=True):
    """One hop. `reason`: why the verdict is no better; `settle`: what would decide it, of an unknown one."""

    a: HopEnd
    b: HopEnd
    verdict: str
    reason: str = ""
    settle: str = ""
    told_by: str = ""
    metres_plan: float | None = None
    metres_module: float | None = None
    findings: list[str] = []

    @property
    def label(self) -> str:
        """ "leaf1 Ethernet0 - gpu01 eth0"."""
        a, b = (f"{end.node} {end.port}".strip() for end in (self.a, self.b))
        return f"{a} - {b}" if b else a


class SwitchRow(msgspec.Struct, frozen=True, kw_only=True):
    """A switch that was read."""

    name: str
    nos: str | None
    model: str | None
    version: str | None
    role: str | None
    ports: int
    complete: bool
    unknown_columns: int
    sources: list[str]
    observed_at: str | None = None
