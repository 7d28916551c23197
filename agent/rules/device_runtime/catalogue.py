"""Rules of this family: how error counters of PCIe links, NVLinks and C2C moved."""

from __future__ import annotations

from agent.rules.device_runtime.c2c_errors import c2c_errors
from agent.rules.device_runtime.errors_correctable import pcie_errors_correctable
from agent.rules.device_runtime.errors_uncorrectable import pcie_errors_uncorrectable
from agent.rules.device_runtime.nvlink_errors import nvlink_errors
from agent.rules.device_runtime.recoveries import pcie_recoveries
from agent.rules.device_runtime.replays import pcie_replays
from agent.rules.rule import Rule

RULES: tuple[Rule, ...] = (
    pcie_errors_uncorrectable,
    pcie_errors_correctable,
    pcie_replays,
    pcie_recoveries,
    nvlink_errors,
    c2c_errors,
)
