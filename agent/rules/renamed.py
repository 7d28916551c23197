"""Names that rules had, and where each went: files and habits keep working, with a note."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

RENAMED: Mapping[str, str] = {  # a name with a dot is a threshold's
    "roce-module-fault": "port-module-fault",
    "pcie-mps-uneven": "pcie-mps-mismatch",
    "roce-rt-pause-received": "roce-rt-congested",
    "roce-rt-pause-received.percent": "roce-rt-congested.paused_percent",
    "roce-rt-pause-received.warning_percent": "roce-rt-congested.paused_warning_percent",
    "ib-link-recovery": "ib-symbol-errors",
    "ib-link-recovery.per_hour": "ib-symbol-errors.recoveries_per_hour",
    "ib-rcv-errors": "ib-symbol-errors",
    "ib-rcv-errors.per_hour": "ib-symbol-errors.received_per_hour",
    "ib-link-integrity": "ib-symbol-errors",
    "ib-link-integrity.events": "ib-symbol-errors.integrity_events",
    "gpu-siblings-differ": "peer-differs",
    "cxl-sibling-differs": "peer-differs",
}
# Those whose fault another rule, which had its own before, reports with it
MERGED: frozenset[str] = frozenset({
    "pcie-mps-uneven", "roce-rt-pause-received", "ib-link-recovery", "ib-rcv-errors", "ib-link-integrity",
    "gpu-siblings-differ", "cxl-sibling-differs",
})  # fmt: skip
# What is no rule any more: where the report holds what it read
FIELDS: Mapping[str, str] = {
    "pcie-tags-off": "topology.pci[].extended_tags, ten_bit_tags",
    "pcie-aspm-on": "topology.pci[].aspm",
    "pcie-uplink-oversubscribed": "topology.pci[].link.bandwidth_gbyte_s",
    "roce-default-mode-v1": "topology.nics[].ports[].default_roce_mode",
    "ib-vl15-dropped": "topology.nics[].ports[].counters.VL15_dropped",
    "gdr-nccl-debug-leftover": "software.nccl.settings",
    "nvlink-claimed": "topology.gpus[].links",
}


class RenamedRule(msgspec.Struct, frozen=True):
    """What an old name stands for now."""

    name: str | None  # of today; None: no rule any more
    note: str


def find_renamed(name: str) -> RenamedRule | None:
    """What became of a rule of that name; None where no rule ever had it, or one has it."""
    if name in FIELDS:
        return RenamedRule(None, f"{name} is not a rule any more: the report has it as {FIELDS[name]}")
    new = RENAMED.get(name)
    if new is None:
        return None
    if name in MERGED:
        return RenamedRule(new, f"{name} is part of {new} now: what is set for the one is set for the other")
    return RenamedRule(new, f"{name} is called {new} now")
