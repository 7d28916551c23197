"""The desired inventory objects of a node as JSON: what `fabricscope netbox plan` compares with NetBox.

Terms: NetBox 4.6 (modules in module bays; inventory items are deprecated since 4.3).
"""

from __future__ import annotations

import msgspec

from agent.model.report import Report
from agent.outputs.inventory.node import build_desired


def export(report: Report) -> str:
    """The JSON document."""
    return msgspec.json.format(msgspec.json.encode(build_desired(report)), indent=2).decode() + "\n"
