"""Processors: /proc/cpuinfo and /sys/devices/system/cpu."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cpu:
    """The processors, as /proc/cpuinfo names them."""

    vendor: str | None = None  # "GenuineIntel", "AuthenticAMD", "ARM"
    family: int | None = None
    model: int | None = None
    name: str | None = None
    sockets: int | None = None
    online: str | None = None  # cpulist
