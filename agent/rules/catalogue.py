"""Every rule, in the order in which they are judged and listed. What is not here does not run; a test finds it."""

from __future__ import annotations

from agent.rules.affinity.gpu_far_from_nic import affinity_gpu_far_from_nic
from agent.rules.affinity.numa_unknown import numa_unknown
from agent.rules.gpu.missing import gpu_missing
from agent.rules.gpudirect.no_path import gdr_no_path
from agent.rules.host.probe_hung import probe_hung
from agent.rules.infiniband.no_sm import ib_no_sm
from agent.rules.infiniband.port_down import ib_port_down
from agent.rules.infiniband.rate_degraded import ib_rate_degraded
from agent.rules.infiniband.rate_mixed import ib_rate_mixed
from agent.rules.nic.fw_mixed import nic_fw_mixed
from agent.rules.nvlink.asymmetric import nvlink_asymmetric
from agent.rules.nvlink.inactive import nvlink_inactive
from agent.rules.nvlink.speed_low import nvlink_speed_low
from agent.rules.pcie.device_gone import pcie_device_gone
from agent.rules.pcie.path_bottleneck import pcie_path_bottleneck
from agent.rules.pcie.speed_downgraded import pcie_speed_downgraded
from agent.rules.pcie.width_downgraded import pcie_width_downgraded
from agent.rules.roce.gid_v1_only import roce_gid_v1_only
from agent.rules.roce.mtu_small import roce_mtu_small
from agent.rules.rule import Rule

RULES: tuple[Rule, ...] = (
    pcie_device_gone,
    pcie_width_downgraded,
    pcie_speed_downgraded,
    pcie_path_bottleneck,
    gpu_missing,
    nvlink_inactive,
    nvlink_asymmetric,
    nvlink_speed_low,
    ib_port_down,
    ib_no_sm,
    ib_rate_degraded,
    ib_rate_mixed,
    roce_mtu_small,
    roce_gid_v1_only,
    nic_fw_mixed,
    affinity_gpu_far_from_nic,
    numa_unknown,
    gdr_no_path,
    probe_hung,
)
