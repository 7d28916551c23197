"""Rules of this family: RoCE: lossless classes, addresses, links."""

from __future__ import annotations

from agent.rules.roce.class_mismatch import roce_class_mismatch
from agent.rules.roce.cnp_class import roce_cnp_class
from agent.rules.roce.dcb_unreadable import roce_dcb_unreadable
from agent.rules.roce.dcbx_firmware_owned import roce_dcbx_firmware_owned
from agent.rules.roce.default_mode_v1 import roce_default_mode_v1
from agent.rules.roce.ecn_off import roce_ecn_off
from agent.rules.roce.ets_starved import roce_ets_starved
from agent.rules.roce.fec_wrong import roce_fec_wrong
from agent.rules.roce.gid_index_wrong import roce_gid_index_wrong
from agent.rules.roce.gid_v1_only import roce_gid_v1_only
from agent.rules.roce.global_pause import roce_global_pause
from agent.rules.roce.headroom_small import roce_headroom_small
from agent.rules.roce.lag_broken import roce_lag_broken
from agent.rules.roce.lag_on_rails import roce_lag_on_rails
from agent.rules.roce.link_down import roce_link_down
from agent.rules.roce.lossy import roce_lossy
from agent.rules.roce.marking_unset import roce_marking_unset
from agent.rules.roce.mtu_mismatch import roce_mtu_mismatch
from agent.rules.roce.mtu_small import roce_mtu_small
from agent.rules.roce.nccl_gid_default_old import roce_nccl_gid_default_old
from agent.rules.roce.nccl_tc_suspect import roce_nccl_tc_suspect
from agent.rules.roce.netdev_missing import roce_netdev_missing
from agent.rules.roce.no_ip import roce_no_ip
from agent.rules.roce.pause_and_pfc import roce_pause_and_pfc
from agent.rules.roce.pfc_multi import roce_pfc_multi
from agent.rules.roce.pfc_nic_asymmetry import roce_pfc_nic_asymmetry
from agent.rules.roce.pfc_off import roce_pfc_off
from agent.rules.roce.pfc_on_cnp_or_default import roce_pfc_on_cnp_or_default
from agent.rules.roce.pfc_switch_mismatch import roce_pfc_switch_mismatch
from agent.rules.roce.prio2buffer_shared import roce_prio2buffer_shared
from agent.rules.roce.speed_degraded import roce_speed_degraded
from agent.rules.roce.tc_rate_limited import roce_tc_rate_limited
from agent.rules.roce.trust_pcp_untagged import roce_trust_pcp_untagged
from agent.rules.roce.vlan_no_egress_map import roce_vlan_no_egress_map
from agent.rules.rule import Rule

RULES: tuple[Rule, ...] = (
    roce_lossy,
    roce_pfc_off,
    roce_class_mismatch,
    roce_trust_pcp_untagged,
    roce_marking_unset,
    roce_nccl_tc_suspect,
    roce_pfc_multi,
    roce_pfc_on_cnp_or_default,
    roce_global_pause,
    roce_pause_and_pfc,
    roce_pfc_nic_asymmetry,
    roce_pfc_switch_mismatch,
    roce_dcbx_firmware_owned,
    roce_headroom_small,
    roce_prio2buffer_shared,
    roce_ets_starved,
    roce_tc_rate_limited,
    roce_vlan_no_egress_map,
    roce_dcb_unreadable,
    roce_ecn_off,
    roce_cnp_class,
    roce_mtu_small,
    roce_mtu_mismatch,
    roce_gid_v1_only,
    roce_no_ip,
    roce_gid_index_wrong,
    roce_nccl_gid_default_old,
    roce_default_mode_v1,
    roce_netdev_missing,
    roce_lag_on_rails,
    roce_lag_broken,
    roce_speed_degraded,
    roce_link_down,
    roce_fec_wrong,
)
