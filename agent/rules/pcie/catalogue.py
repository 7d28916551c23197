"""Rules of this family: PCIe links and paths."""

from __future__ import annotations

from agent.rules.pcie.device_gone import pcie_device_gone
from agent.rules.pcie.path_bottleneck import pcie_path_bottleneck
from agent.rules.pcie.speed_downgraded import pcie_speed_downgraded
from agent.rules.pcie.width_downgraded import pcie_width_downgraded
from agent.rules.rule import Rule

RULES: tuple[Rule, ...] = (
    pcie_device_gone,
    pcie_width_downgraded,
    pcie_speed_downgraded,
    pcie_path_bottleneck,
)
