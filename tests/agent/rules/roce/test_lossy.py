"""roce-lossy: the verdict of the chain, told where the rule of the cause is switched off; what it stands for."""

from __future__ import annotations

from agent.rules.roce.lossless import roce_lossy as rule
from tests.agent.rules.build import fails
from tests.agent.rules.roce.qos import dcb, lost, nccl_sets, roce, vlan
from tests.agent.rules.rows import only

CAUSES = {
    "roce-pfc-off": lambda: dcb(roce(), pfc=only()),
    "roce-class-mismatch": lambda: dcb(roce(), pfc=only(4)),
    "roce-nccl-tc-suspect": lambda: nccl_sets(roce(), NCCL_IB_TC="26"),
    "roce-marking-unset": lambda: nccl_sets(roce()),
    "roce-trust-pcp-untagged": lambda: dcb(roce(), trust="pcp"),
    "roce-vlan-no-egress-map": lambda: vlan(roce(), ""),
}


def test_evidence_is_the_whole_chain() -> None:
    """Each step with the command or file that shows it."""
    (fault,) = fails(rule, lost(CAUSES["roce-class-mismatch"]()))
    rows = {row.what: (row.value, row.source) for row in fault.evidence}

    assert ("106 (DSCP 26)", "/etc/nccl.conf:1") == rows["traffic class of RDMA"]
    assert ("dscp", "dcb app show dev eth1") == rows["trust of eth1"]
    assert ("3 (DSCP 26)", "dcb app show dev eth1") == rows["priority of RDMA at eth1"]
    assert ("3", "dcb ets show dev eth1") == rows["traffic class queue at eth1"]
    assert ("priority 4", "dcb pfc show dev eth1") == rows["PFC of eth1"]
    assert ("rx off, tx off", "ethtool -a eth1") == rows["global pause of eth1"]
    assert ("3", "lldpcli show neighbors ports eth1") == rows["PFC that leaf1 swp1 announces"]
    hw = "/sys/class/infiniband/mlx5_1/ports/1/hw_counters/packet_seq_err"
    assert ("5", hw) == rows["packet_seq_err of mlx5_1/1 (eth1), moved by"]


def test_what_is_told_and_what_mends_it() -> None:
    """The class of RDMA where PFC is on for another; PFC where it is off for all."""
    (other,), (off,) = fails(rule, CAUSES["roce-class-mismatch"]()), fails(rule, CAUSES["roce-pfc-off"]())
    (bare,) = fails(rule, dcb(roce(), pfc=only(), trust=None))

    assert "RDMA uses priority 3 (DSCP 26), PFC is on for priority 4: see roce-class-mismatch" == other.summary
    assert ("marking", (("TRAFFIC_CLASS", "130"),)) == (
        other.situation,
        other.values,
    )  # DSCP 32: priority 4; and ECT(0)
    assert ("", "") == (other.remedy, off.situation)
    assert "RDMA uses priority 3 (DSCP 26), PFC is on for no priority: see roce-pfc-off" == off.summary
    assert "PFC is on for no priority: see roce-pfc-off" == bare.summary
    assert "--pfc 0,0,0,1,0,0,0,0" in off.remedy
