"""What NetBox should hold of a node, as JSON: what `fabricscope netbox plan` compares NetBox with.

Words: NetBox 4.6 (modules in module bays; inventory items are deprecated since 4.3).
"""

from __future__ import annotations

import msgspec

from agent.model.report import Report
from agent.outputs.inventory.node import desired


def export(report: Report) -> str:
    """The whole file."""
    return msgspec.json.format(msgspec.json.encode(desired(report)), indent=2).decode() + "\n"
