"""Rules of this family: how the counters of RoCE ports and their interfaces moved."""

from __future__ import annotations

from agent.rules.roce_runtime.ack_timeout import roce_rt_ack_timeout
from agent.rules.roce_runtime.adaptive_retrans import roce_rt_adaptive_retrans
from agent.rules.roce_runtime.class_usage import roce_rt_class_usage
from agent.rules.roce_runtime.cnp_ignored import roce_cnp_ignored
from agent.rules.roce_runtime.congested import roce_rt_congested
from agent.rules.roce_runtime.crc import roce_rt_crc
from agent.rules.roce_runtime.duplicates import roce_rt_duplicates
from agent.rules.roce_runtime.fec_ber import roce_fec_ber
from agent.rules.roce_runtime.host_bound import roce_rt_host_bound
from agent.rules.roce_runtime.icrc import roce_rt_icrc
from agent.rules.roce_runtime.link_flap import roce_link_flap
from agent.rules.roce_runtime.pause_received import roce_rt_pause_received
from agent.rules.roce_runtime.pause_sent import roce_rt_pause_sent
from agent.rules.roce_runtime.pause_storm import roce_rt_pause_storm
from agent.rules.roce_runtime.pause_unanswered import roce_rt_pause_unanswered
from agent.rules.roce_runtime.retrans import roce_rt_retrans
from agent.rules.roce_runtime.retry_exceeded import roce_rt_retry_exceeded
from agent.rules.roce_runtime.rnr import roce_rt_rnr
from agent.rules.roce_runtime.rx_discards import roce_rt_rx_discards
from agent.rules.roce_runtime.soft_loss import roce_rt_soft_loss
from agent.rules.rule import Rule

RULES: tuple[Rule, ...] = (
    roce_link_flap,
    roce_fec_ber,
    roce_rt_retrans,
    roce_rt_ack_timeout,
    roce_rt_retry_exceeded,
    roce_rt_rnr,
    roce_rt_duplicates,
    roce_rt_rx_discards,
    roce_rt_pause_received,
    roce_rt_pause_sent,
    roce_rt_pause_storm,
    roce_rt_pause_unanswered,
    roce_rt_icrc,
    roce_rt_crc,
    roce_rt_adaptive_retrans,
    roce_rt_class_usage,
    roce_rt_host_bound,
    roce_rt_congested,
    roce_cnp_ignored,
    roce_rt_soft_loss,
)
