"""Rules of this family: NVLink, NVSwitch, fabric and C2C."""

from __future__ import annotations

from agent.rules.nvlink.asymmetric import nvlink_asymmetric
from agent.rules.nvlink.bandwidth_mode_reduced import nvlink_bandwidth_mode_reduced
from agent.rules.nvlink.c2c_down import c2c_down
from agent.rules.nvlink.claimed import nvlink_claimed
from agent.rules.nvlink.disabled import nvlink_disabled
from agent.rules.nvlink.fabric_clique_mixed import fabric_clique_mixed
from agent.rules.nvlink.fabric_incomplete import fabric_incomplete
from agent.rules.nvlink.fabric_manager_down import fabric_manager_down
from agent.rules.nvlink.fabric_manager_mismatch import fabric_manager_mismatch
from agent.rules.nvlink.fabric_unhealthy import fabric_unhealthy
from agent.rules.nvlink.gpu_ats_off import gpu_ats_off
from agent.rules.nvlink.gpu_memory_numa_missing import gpu_memory_numa_missing
from agent.rules.nvlink.imex_channel_denied import imex_channel_denied
from agent.rules.nvlink.imex_down import imex_down
from agent.rules.nvlink.inactive import nvlink_inactive
from agent.rules.nvlink.matrix_uneven import nvlink_matrix_uneven
from agent.rules.nvlink.nvls_unavailable import nvls_unavailable
from agent.rules.nvlink.path_missing import nvlink_path_missing
from agent.rules.nvlink.speed_low import nvlink_speed_low
from agent.rules.nvlink.unused_by_mig import nvlink_unused_by_mig
from agent.rules.rule import Rule

RULES: tuple[Rule, ...] = (
    nvlink_inactive,
    nvlink_asymmetric,
    nvlink_speed_low,
    nvlink_matrix_uneven,
    nvlink_path_missing,
    nvlink_bandwidth_mode_reduced,
    nvlink_unused_by_mig,
    nvlink_claimed,
    nvlink_disabled,
    fabric_manager_down,
    fabric_manager_mismatch,
    fabric_incomplete,
    fabric_unhealthy,
    fabric_clique_mixed,
    nvls_unavailable,
    imex_down,
    imex_channel_denied,
    c2c_down,
    gpu_ats_off,
    gpu_memory_numa_missing,
)
