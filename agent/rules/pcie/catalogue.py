"""Rules of this family: PCIe links and paths."""

from __future__ import annotations

from agent.rules.pcie.aspm_on import pcie_aspm_on
from agent.rules.pcie.containment import pcie_containment
from agent.rules.pcie.device_gone import pcie_device_gone
from agent.rules.pcie.driver_missing import pci_driver_missing
from agent.rules.pcie.ends_disagree import pcie_ends_disagree
from agent.rules.pcie.link_down import pcie_link_down
from agent.rules.pcie.mps_mismatch import pcie_mps_mismatch
from agent.rules.pcie.mps_small import pcie_mps_small
from agent.rules.pcie.mps_uneven import pcie_mps_uneven
from agent.rules.pcie.nic_starved import pcie_nic_starved
from agent.rules.pcie.path_bottleneck import pcie_path_bottleneck
from agent.rules.pcie.slot_limits_card import pcie_slot_limits_card
from agent.rules.pcie.slower_than_siblings import pcie_slower_than_siblings
from agent.rules.pcie.speed_downgraded import pcie_speed_downgraded
from agent.rules.pcie.tags_off import pcie_tags_off
from agent.rules.pcie.uplink_oversubscribed import pcie_uplink_oversubscribed
from agent.rules.pcie.width_downgraded import pcie_width_downgraded
from agent.rules.rule import Rule

RULES: tuple[Rule, ...] = (
    pcie_device_gone,
    pcie_width_downgraded,
    pcie_speed_downgraded,
    pcie_path_bottleneck,
    pcie_link_down,
    pcie_ends_disagree,
    pcie_slot_limits_card,
    pcie_slower_than_siblings,
    pcie_nic_starved,
    pcie_uplink_oversubscribed,
    pcie_mps_mismatch,
    pcie_mps_small,
    pcie_mps_uneven,
    pcie_tags_off,
    pcie_aspm_on,
    pci_driver_missing,
    pcie_containment,
)
