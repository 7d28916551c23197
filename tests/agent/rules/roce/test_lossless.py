"""The chain of a port: marking, DSCP, trust, priority, PFC; every link of it, and what is known without one.
roce-lossy: the verdict of the chain, given where the rule of the cause is switched off.
"""

from __future__ import annotations

import msgspec
import pytest

from agent.model.nic import Neighbor, Pause
from agent.model.node import NcclLibrary, NcclSetting
from agent.rules.roce.lossless import roce_lossy as rule
from tests.agent.rules.build import changed_netdev, changed_nic, changed_port, fails, probe, software
from tests.agent.rules.roce.qos import (
    NETDEV,
    dcb,
    dcb_everywhere,
    facts,
    lost,
    nccl_sets,
    netdevs,
    of,
    roce,
    traffic,
    vlan,
)
from tests.agent.rules.rows import only

ODD = {str(dscp): 5 if dscp == 10 else 0 for dscp in range(64)}
CAUSES = {
    "roce-pfc-off": lambda: dcb(roce(), pfc=only()),
    "roce-class-mismatch": lambda: dcb(roce(), pfc=only(4)),
    "roce-nccl-tc-suspect": lambda: nccl_sets(roce(), NCCL_IB_TC="26"),
    "roce-marking-unset": lambda: nccl_sets(roce()),
    "roce-trust-pcp-untagged": lambda: dcb(roce(), trust="pcp"),
    "roce-vlan-no-egress-map": lambda: vlan(roce(), ""),
}


def settings(context, *rows: tuple[str, str, str], **more):
    """NCCL with settings of (scope, source, value) for the traffic class."""
    result = [NcclSetting(key="NCCL_IB_TC", value=value, source=source, scope=scope) for scope, source, value in rows]
    return software(context, nccl=msgspec.structs.replace(context.software.nccl, settings=result, **more))


@pytest.mark.parametrize(
    ("value", "traffic_class"),
    [("106", 106), ("0x6a", 106), ("0152", 106), (" 106", 106), ("362", 106), ("-1", 0), ("abc", 0), ("9" * 30, 0)],
)
def test_a_value_is_read_as_nccl_does(value: str, traffic_class: int) -> None:
    """strtoll, a byte, and 0 for what is no number."""
    marking = of(nccl_sets(roce(), NCCL_IB_TC=value)).marking

    assert marking
    assert traffic_class == marking.traffic_class


def test_who_sets_the_class_in_which_order() -> None:
    """The driver forces, then jobs, then the operator's word, then users, then the system; 0 where nobody does."""
    system = ("system", "/etc/nccl.conf:1", "4")
    user = ("user", "/home/a/.nccl.conf:1", "8")
    job = ("job", "environment of pid 7 (python3)", "12")
    context = settings(roce(), system, user, job)
    kinds = []
    for item in (
        changed_port(facts(context, roce_traffic_class=16), 1, traffic_class=20),
        facts(context, roce_traffic_class=16),
        facts(settings(context, system, user), roce_traffic_class=16),
        settings(context, system, user),
        settings(context, system),
        settings(context),
    ):
        marking = of(item).marking
        assert marking
        kinds.append((marking.kind, marking.traffic_class))

    assert [("forced", 20), ("job", 12), ("declared", 16), ("file", 8), ("file", 4), ("default", 0)] == kinds


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param(
            lambda c: probe(c, "nccl", "denied", "EPERM"), "how RDMA packets are marked is not known", id="probe"
        ),
        pytest.param(
            lambda c: settings(c, searched=[], unread=["/etc/nccl.conf: EACCES"]), "/etc/nccl.conf: EACCES", id="file"
        ),
        pytest.param(lambda c: settings(c, jobs=2, jobs_unread=1), "1 of 2 jobs", id="jobs unread"),
        pytest.param(lambda c: settings(c, jobs=None), "which processes use a GPU", id="jobs not known"),
        pytest.param(
            lambda c: settings(c, plugins=[NcclLibrary(path="/opt/libnccl-net.so")]),
            "may mark by itself: /opt/libnccl-net.so",
            id="plugin",
        ),
        pytest.param(lambda c: dcb(c, trust=None), "whether the port trusts", id="trust"),
        pytest.param(lambda c: dcb(c, dscp_prio={}), "to which priority a DSCP goes", id="table"),
        pytest.param(lambda c: dcb(c, pfc=[]), "its PFC state", id="PFC"),
        pytest.param(lambda c: changed_netdev(c, 1, qos=None, qos_reason="EOPNOTSUPP"), "EOPNOTSUPP", id="no DCB"),
        pytest.param(lambda c: changed_netdev(c, 1, qos=None), "DCB was not read", id="not asked"),
        pytest.param(lambda c: changed_nic(c, 1, virtual_function=True), "a virtual function", id="virtual function"),
        pytest.param(lambda c: changed_nic(c, 1, state="other_namespace"), "another network namespace", id="namespace"),
        pytest.param(lambda c: changed_port(c, 1, netdevs=[]), "no interface of it", id="no interface"),
    ],
)
def test_what_is_not_known_is_unknown(change, reason: str) -> None:
    """Nothing set in the files that were read, and one more thing that cannot be known."""
    result = of(change(settings(roce())))

    assert "unknown" == result.verdict
    assert reason in result.reason


def test_plugins_by_name_leave_doubt() -> None:
    """NCCL_NET_PLUGIN names one; the built-in transport does not."""
    plugin = NcclSetting(key="NCCL_NET_PLUGIN", value="gib", source="/etc/nccl.conf:1")
    context = settings(roce())
    named = software(context, nccl=msgspec.structs.replace(context.software.nccl, settings=[plugin]))
    built_in = NcclSetting(key="NCCL_NET", value="IB", source="/etc/nccl.conf:1")
    own = software(context, nccl=msgspec.structs.replace(context.software.nccl, settings=[built_in]))

    assert "gib (/etc/nccl.conf:1)" in of(named).reason
    assert "lossy" == of(own).verdict


def test_the_table_decides_and_what_is_not_in_it_is_priority_0() -> None:
    """A site's own table; OCI marks 41 (DSCP 10)."""
    context = dcb(nccl_sets(roce(), NCCL_IB_TC="41"), dscp_prio=ODD, pfc=only(5))

    assert ("lossless", 5) == (of(context).verdict, of(context).priority)
    assert 0 == of(dcb(context, dscp_prio={"26": 3})).priority


@pytest.mark.parametrize(
    ("pause", "verdict"),
    [
        (Pause(rx=True, tx=True), "pause"),
        (Pause(rx=True, tx=False), "lossy"),
        (Pause(rx=False, tx=None), "lossy"),
        (Pause(rx=None, tx=False), "lossy"),
        (Pause(rx=True, tx=None), "unknown"),
        (Pause(rx=None, tx=True), "unknown"),
        (None, "unknown"),
    ],
)
def test_without_pfc_global_pause_decides(pause, verdict: str) -> None:
    """Both directions: nothing is lost; not known: nothing is said."""
    assert verdict == of(changed_netdev(dcb(roce(), pfc=only()), 1, pause=pause)).verdict


def test_why_pfc_is_meant() -> None:
    """The switch, another rail, the operator; else nothing says so."""
    context = netdevs(dcb_everywhere(roce(), pfc=only()), neighbor=None)

    assert "" == of(context).meant
    assert (
        "the switch announces PFC on priority 3"
        == of(changed_netdev(context, 1, neighbor=Neighbor(system="leaf9", pfc=only(3)))).meant
    )
    assert "it is on at eth2" == of(dcb(context, 2, pfc=only(3))).meant
    assert "declared lossless" in of(facts(context, roce_mode="lossless")).meant
    assert "" == of(changed_nic(dcb(context, 2, pfc=only(3)), 2, role="storage")).meant
    assert "" == of(changed_port(dcb(context, 2, pfc=only(3)), 2, state="DOWN")).meant


def test_bytes_of_the_window_count_more_than_marking() -> None:
    """At least 10 GB, 80% of them RDMA, more than half in one priority."""
    assert ("lossy", 0, "roce-class-mismatch") == (lambda c: (c.verdict, c.priority, c.cause))(of(traffic(roce(), 0)))
    assert "lossless" == of(traffic(settings(roce()), 3)).verdict
    assert "lossless" == of(traffic(roce(), 0, gbyte=9.9)).verdict
    assert "lossless" == of(traffic(roce(), 0, rdma=0.79)).verdict
    assert "lossy" == of(traffic(roce(), 0, gbyte=10.0)).verdict
    assert "lossy" == of(traffic(roce(), 0, gbyte=12.5, rdma=0.8)).verdict
    assert "lossless" == of(traffic(dcb(roce(), trust="pcp"), 3)).verdict
    half = traffic(roce(), 0)
    assert half.window
    half.window.moved[NETDEV]["tx_prio1_bytes"] = half.window.moved[NETDEV]["tx_prio0_bytes"]
    half.window.moved[NETDEV]["tx_vport_rdma_unicast_bytes"] *= 2
    assert "lossless" == of(half).verdict


def test_bytes_that_agree_keep_the_cause() -> None:
    """What is known of the marking says more than the bytes."""
    assert "roce-nccl-tc-suspect" == of(traffic(nccl_sets(roce(), NCCL_IB_TC="26"), 0)).cause


def test_a_class_of_63_may_be_a_dscp() -> None:
    """64 is none."""
    table = {str(n): 3 if n in (0, 63) else 0 for n in range(64)}

    assert "roce-nccl-tc-suspect" == of(dcb(nccl_sets(roce(), NCCL_IB_TC="63"), dscp_prio=table)).cause
    assert "roce-class-mismatch" == of(dcb(nccl_sets(roce(), NCCL_IB_TC="64"), dscp_prio=table)).cause
    assert "roce-class-mismatch" == of(dcb(nccl_sets(roce(), NCCL_IB_TC="64"), pfc=only(0))).cause
    assert "roce-class-mismatch" == of(dcb(nccl_sets(roce(), NCCL_IB_TC="106"), pfc=only(0))).cause


def test_pfc_on_all_priorities_needs_no_class() -> None:
    """Whatever marks, and whoever is trusted; on seven of them it does."""
    every = dcb(roce(), pfc=only(*range(8)), trust=None)

    assert ("lossless", "") == (of(every).verdict, of(every).reason)
    assert "unknown" == of(dcb(roce(), pfc=only(*range(7)), trust=None)).verdict


def test_bytes_of_the_window_are_enough_from_10_gbyte_on() -> None:
    """Less says nothing of what jobs do; what was measured where markings say the same changes nothing."""
    assert "DSCP 26" == of(traffic(roce(), 5, gbyte=9.9999999995)).how  # a byte less
    assert "most bytes of the window" == of(traffic(roce(), 5, gbyte=10.0)).how
    assert "DSCP 26" == of(traffic(roce(), 3)).how


def test_what_is_measured_ends_a_doubt() -> None:
    """A job that was not looked into may have marked; its bytes went where nothing is lossless all the same."""
    result = of(traffic(settings(roce(), jobs=2, jobs_unread=1), 0))

    assert ("lossy", 0, "roce-class-mismatch") == (result.verdict, result.priority, result.cause)


def test_a_user_s_file_takes_the_place_of_the_system_s() -> None:
    """What is not in force marks nothing."""
    context = settings(roce(), ("system", "/etc/nccl.conf:1", "4"), ("user", "/home/a/.nccl.conf:1", "106"))

    assert "lossless" == of(context).verdict


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
