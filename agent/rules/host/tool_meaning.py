"""What one code of a tool's output means."""

from __future__ import annotations

import msgspec


class ToolMeaning(msgspec.Struct, frozen=True):
    """What one code means. `steps`: the part of the page that has its steps."""

    severity: str
    says: str
    impact: str
    steps: str
    confidence: str = "medium"
