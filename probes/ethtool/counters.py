"""Which of a driver's own counters are facts for us: of thousands, those that tell of links, pause and loss.

Names by driver after the kernel's Documentation/networking/device_drivers and the drivers' sources: mlx5, bnxt_en, ice,
i40e. Counters of single queues, rings and channels are left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

MOST = 512
NOT_KNOWN = 2**64 - 1  # what a driver gives for a counter that it could not read
_PRIORITY = "[0-7]"
_WANTED = re.compile(
    "|".join(
        (
            # mlx5
            rf"[rt]x_prio{_PRIORITY}_(?:bytes|packets|discards|buf_discard|cong_discard|marked)",
            rf"[rt]x_prio{_PRIORITY}_pause(?:_duration|_transition)?",
            r"[rt]x_global_pause(?:_duration|_transition)?",
            r"tx_pause_storm_(?:warning|error)_events",
            r"[rt]x_(?:packets|bytes|discards|errors|crc_errors|symbol_err|pcs_symbol_err|corrected_bits|bits)_phy",
            r"[rt]x_(?:pause_ctrl|oversize_pkts|undersize_pkts|in_range_len_errors|unsupported_op)_phy",
            r"rx_(?:pcs_)?(?:fc_fec|rs_fec)[a-z_]*_phy(?:_lane[0-9])?|rx_err_lane_[0-7]_phy|fec_[a-z_]{1,40}",
            r"rx_buffer_passed_thres_phy|link_down_events(?:_phy)?",
            r"(?:rx|dev)_out_of_buffer|rx_steer_missed_packets|dev_internal_queue_oob",
            r"module_(?:unplug|bus_stuck|high_temp|bad_shorted)",
            r"outbound_pci_[a-z_]{1,40}|[rt]x_pci_signal_integrity",
            r"[rt]x_vport_rdma_(?:uni|multi)cast_(?:packets|bytes)",
            # bnxt_en
            r"[rt]x_pause_frames|[rt]x_pfc_frames|[rt]x_pfc_ena_frames_pri[0-7]|pfc_pri[0-7]_[rt]x_(?:duration_us|transitions)",
            r"continuous_(?:roce_)?pause_events|resume_(?:roce_)?pause_events",
            r"rx_roce_(?:discards|good_(?:bytes|packets)|error[a-z_]*)|rx_discard_(?:bytes|packets)_cos[0-7]",
            r"rx_fec_(?:corrected|uncorrectable)_blocks|rx_pcs_symbol_err|rx_corrected_bits|rx_fcs_err_frames",
            r"[rt]x_(?:bytes|packets)_(?:pri|cos)[0-7]|link_down_events",
            # ice, i40e
            r"[rt]x_priority_[0-7]_x(?:on|off)(?:_2_xoff)?(?:\.nic)?|port\.[rt]x_priority_[0-7]_x(?:on|off)(?:_[rt]x)?",
            r"link_x(?:on|off)_[rt]x(?:\.nic)?|port\.link_x(?:on|off)_[rt]x",
            r"(?:rx_crc_errors|rx_dropped|tx_dropped_link_down|illegal_bytes|mac_(?:local|remote)_faults)(?:\.nic)?",
            r"port\.(?:rx_crc_errors|rx_dropped|tx_dropped_link_down|illegal_bytes|mac_(?:local|remote)_faults)",
        )
    )
)


def wanted(counters: Mapping[str, int]) -> dict[str, int]:
    """Those that the report keeps, by the driver's names; at most MOST.

    >>> wanted({"rx_prio3_pause": 7, "ch0_poll": 12, "rx0_packets": 9, "rx_discards_phy": 2**64 - 1})
    {'rx_prio3_pause': 7}
    """
    kept = ((name, value) for name, value in counters.items() if _WANTED.fullmatch(name) and value != NOT_KNOWN)
    return dict(sorted(kept)[:MOST])
