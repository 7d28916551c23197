"""Nodes whose rows of a table are equal as far as questions compare them: a digest of these, in a column of table host.

One node of each digest is then read in place of all. A column that a question compares by digest must be listed here; a
digest that an earlier version wrote from other columns only makes nodes differ that are alike.
"""

from __future__ import annotations

COMPARED: dict[str, tuple[str, ...]] = {
    "pci": (
        *("id", "class", "physical_function", "acs"),
        *("max_payload_bytes", "max_read_request_bytes", "relaxed_ordering"),
    ),
    "link": ("id", "kind", "bandwidth_gbyte_s", "quality", "conclusive_speed_gt_s", "conclusive_width"),
    "gpu": (
        *("id", "label", "name", "pci", "numa_node", "vbios", "memory_mib", "bar1_mib", "mig", "driver_state"),
        *("nvlinks", "nvlinks_active", "fabric_state", "fabric_status", "clique", "cluster_uuid", "recovery_action"),
    ),
    "nic": ("id", "label", "rail", "role", "model", "board_id", "firmware", "driver", "numa_node", "state"),
    "port": (
        *("nic", "label", "port", "rail", "link_layer", "state", "phys_state", "rate_gbit_s", "width", "speed"),
        *("active_mtu", "gid_types", "roce_gid_index"),
    ),
    "netdev": (
        *("id", "label", "nic", "rail", "speed_gbit_s", "mtu", "fec", "pause_rx", "pause_tx", "trust", "pfc"),
        *("dscp_prio", "prio_tc", "tc_bandwidth", "ecn", "cnp_dscp", "cnp_priority"),
    ),
    "check": ("rule", "state", "reason"),
}


def digest_column(table: str) -> str:
    """The column of table host that has the digests of a table's rows."""
    return f"{table}_digest"
