"""roce-lossy: the verdict of the chain, told where the rule of the cause is switched off; what it stands for."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from agent.rules.catalogue import every_rule
from agent.rules.context import Settings
from agent.rules.engine import judge
from agent.rules.roce.lossless import roce_lossy as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import changed_netdev, changed_nic, changed_port, fails, kinds, probe, server
from tests.agent.rules.roce.qos import PORT, dcb, dcb_everywhere, facts, lost, nccl_sets, netdevs, roce, silent, vlan
from tests.agent.rules.rows import only

CAUSES = {
    "roce-pfc-off": lambda: dcb(roce(), pfc=only()),
    "roce-class-mismatch": lambda: dcb(roce(), pfc=only(4)),
    "roce-nccl-tc-suspect": lambda: nccl_sets(roce(), NCCL_IB_TC="26"),
    "roce-marking-unset": lambda: nccl_sets(roce()),
    "roce-trust-pcp-untagged": lambda: dcb(roce(), trust="pcp"),
    "roce-vlan-no-egress-map": lambda: vlan(roce(), ""),
}


def told(context, *disabled: str):
    """Findings above info: rule, severity, subject, what it explains."""
    result = judge(replace(context, settings=Settings(disabled=frozenset(disabled))), every_rule())[1]
    return [(f.rule, f.severity, f.subject, [row.split()[0] for row in f.absorbs]) for f in result]


@pytest.mark.parametrize("cause", CAUSES)
def test_the_cause_stands_and_names_it(cause: str) -> None:
    """One finding above info for one fault, with the rule that says what to mend."""
    result = [row for row in told(CAUSES[cause]()) if row[1] != "info"]

    assert [cause] == [row[0] for row in result]
    assert "roce-lossy" in result[0][3]


@pytest.mark.parametrize("cause", CAUSES)
def test_it_is_told_where_the_rule_of_the_cause_is_off(cause: str) -> None:
    """It says which rule knows more."""
    (fault,) = fails(rule, CAUSES[cause]())

    assert "error" == fault.severity
    assert f": see {cause}" in fault.summary
    assert cause == fault.cause
    assert "roce-lossy" in [row[0] for row in told(CAUSES[cause](), cause)]


def test_it_explains_what_follows_of_it() -> None:
    """A rail that differs, and a switch that announces another class, are the same fault."""
    (result,) = [row for row in told(CAUSES["roce-pfc-off"]()) if row[1] != "info"]

    assert ["peer-differs", "roce-lossy", "roce-pfc-nic-asymmetry", "roce-pfc-switch-mismatch"] == sorted(result[3])


def test_every_port_is_one_finding_and_some_are_some() -> None:
    """In the same words."""
    everywhere = fails(rule, dcb_everywhere(roce(), pfc=only()))

    assert ["node"] == [fault.subject for fault in everywhere]
    assert "the same on 4 ports: mlx5_0-3" in everywhere[0].summary
    assert [PORT] == [fault.subject for fault in fails(rule, CAUSES["roce-pfc-off"]())]
    mixed = dcb(dcb_everywhere(roce(), pfc=only()), 1, pfc=only(4))
    assert 4 == len(fails(rule, mixed))


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


def test_storage_is_less_grave() -> None:
    """One step."""
    assert ["warning"] == [
        f.severity for f in fails(rule, changed_nic(CAUSES["roce-class-mismatch"](), 1, role="storage"))
    ]


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: facts(c, roce_mode="lossy"), NotApplicable, id="by design"),
        pytest.param(lambda c: changed_netdev(c, 1, qos=None), Unknown, id="DCB"),
        pytest.param(lambda c: changed_nic(c, 1, virtual_function=True), Unknown, id="virtual function"),
        pytest.param(lambda c: changed_nic(c, 1, software=True), NotApplicable, id="software"),
        pytest.param(lambda c: changed_nic(c, 1, driver="efa"), NotApplicable, id="EFA"),
        pytest.param(lambda c: changed_nic(c, 1, role="unused"), NotApplicable, id="unused"),
        pytest.param(lambda c: changed_port(c, 1, state="DOWN"), NotApplicable, id="down"),
        pytest.param(lambda c: probe(dcb(nccl_sets(c), pfc=only(4)), "nccl", "failed"), Unknown, id="marking"),
        pytest.param(lambda c: dcb(c, pfc=only(3)), Pass, id="lossless"),
        pytest.param(lambda c: dcb(c, pfc=[True] * 8), Pass, id="all"),
    ],
)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance."""
    silent(rule, circumstance(netdevs(CAUSES["roce-class-mismatch"]())), kind)


def test_infiniband_is_not_applicable() -> None:
    """One answer for the node."""
    assert {NotApplicable} == kinds(rule, server())
