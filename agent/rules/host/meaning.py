"""The shape of what a sentence of a driver or service means, and of a code of a tool's output."""

from __future__ import annotations

import msgspec


class Meaning(msgspec.Struct, frozen=True):
    """What one sentence means."""

    severity: str
    title: str
    impact: str = "The device cannot be used by jobs."
    of_start: bool = True  # over where the driver drives the device now
    confidence: str = "high"
    alone: bool = True  # False: it states that, and not why; it counts where nothing else explains the failure


class ToolMeaning(msgspec.Struct, frozen=True):
    """What one code means. `steps`: the part of the page that has its steps."""

    severity: str
    title: str
    impact: str
    steps: str
    confidence: str = "medium"
