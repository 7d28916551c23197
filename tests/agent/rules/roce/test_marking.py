"""Marking and trust: how RoCE packets get their priority."""

from __future__ import annotations

import msgspec
import pytest

from agent.model.node import NcclLibrary, NcclSetting
from agent.rules.roce.lossless import (
    roce_marking_unset,
    roce_nccl_tc_suspect,
    roce_trust_pcp_untagged,
    roce_vlan_no_egress_map,
)
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import changed_netdev, changed_nic, changed_port, fails, probe, software
from tests.agent.rules.roce.qos import (
    PORT,
    dcb,
    dcb_everywhere,
    facts,
    lost,
    nccl_sets,
    netdevs,
    roce,
    silent,
    traffic,
    vlan,
)
from tests.agent.rules.rows import only

# roce-marking-unset: nothing marks RDMA, or nothing that could be seen; and every guard alone.


def unset():
    return nccl_sets(roce())


def seen(context, **changes):
    """The same machine with another view of NCCL."""
    return software(context, nccl=msgspec.structs.replace(context.software.nccl, **changes))


def test_nothing_marks_is_a_warning() -> None:
    """With the value that the lossless class needs, and how to declare it."""
    (fault,) = fails(roce_marking_unset, unset())

    assert ("node", "warning", "medium") == (fault.subject, fault.severity, fault.confidence)
    assert fault.summary.startswith(
        "nothing marks RDMA: NCCL sends DSCP 0, which is priority 0; PFC is on for priority 3"
    )
    assert (("TRAFFIC_CLASS", "106"),) == fault.values
    assert "roce_traffic_class = 106 below [facts]" in fault.remedy
    assert ("not set (DSCP 0)", "/etc/nccl.conf") == (fault.evidence[0].value, fault.evidence[0].source)


def test_lost_packets_make_it_an_error() -> None:
    """On the port that lost them."""
    result = {fault.subject: (fault.severity, fault.confidence) for fault in fails(roce_marking_unset, lost(unset()))}

    assert ("error", "high") == result[PORT]
    assert 3 == sum(("warning", "medium") == value for value in result.values())


@pytest.mark.parametrize(
    ("doubt", "word"),
    [
        pytest.param({"jobs": 2, "jobs_unread": 1}, "1 of 2 jobs", id="jobs unread"),
        pytest.param({"jobs": None}, "is not known", id="jobs not known"),
        pytest.param({"plugins": [NcclLibrary(path="/opt/libnccl-net.so")]}, "plugin may mark by itself", id="plugin"),
    ],
)
def test_what_was_not_seen_may_set_it(doubt, word: str) -> None:
    """Info, and roce-lossy does not say it."""
    (fault,) = fails(roce_marking_unset, seen(unset(), **doubt))

    assert ("info", "low") == (fault.severity, fault.confidence)
    assert word in fault.summary


def test_a_key_with_a_blank_sets_nothing() -> None:
    """NCCL takes the text before "=" as the name."""
    assert 1 == len(fails(roce_marking_unset, nccl_sets(roce(), **{"NCCL_IB_TC ": "106"})))


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: facts(c, roce_mode="lossy"), NotApplicable, id="declared lossy"),
        pytest.param(lambda c: facts(c, roce_traffic_class=106), Pass, id="declared class"),
        pytest.param(lambda c: nccl_sets(c, NCCL_IB_TC="106"), Pass, id="set"),
        pytest.param(
            lambda c: seen(
                c, settings=[NcclSetting(key="NCCL_IB_TC", value="106", source="environment of pid 7 (a)", scope="job")]
            ),
            Pass,
            id="set by a job",
        ),
        pytest.param(lambda c: dcb_everywhere(c, pfc=only(0)), Pass, id="DSCP 0 is lossless"),
        pytest.param(lambda c: dcb_everywhere(c, dscp_prio={"0": 3}), Pass, id="the table sends DSCP 0 there"),
        pytest.param(lambda c: dcb_everywhere(c, trust="pcp"), Pass, id="trust PCP"),
        pytest.param(lambda c: dcb_everywhere(c, pfc=only()), Pass, id="PFC off"),
        pytest.param(lambda c: probe(c, "nccl", "denied"), Unknown, id="files not read"),
        pytest.param(lambda c: seen(c, searched=[]), Unknown, id="file not looked for"),
        pytest.param(lambda c: netdevs(c, qos=None), Unknown, id="DCB not known"),
    ],
)
def test_a_guard_keeps_marking_unset_silent(circumstance, kind) -> None:
    """The firing case and this circumstance."""
    silent(roce_marking_unset, circumstance(unset()), kind)


def test_guards_of_one_port_for_marking_unset() -> None:
    """A forced class, bytes that prove otherwise, storage."""
    assert 3 == len(fails(roce_marking_unset, changed_port(unset(), 1, traffic_class=106)))
    assert 3 == len(fails(roce_marking_unset, traffic(unset(), 3)))
    assert "info" in {fault.severity for fault in fails(roce_marking_unset, changed_nic(unset(), 1, role="storage"))}


def test_without_doubt_and_without_a_good_class_neither_is_told() -> None:
    """No DSCP leads to the lossless priority: there is no value to declare."""
    (fault,) = fails(roce_marking_unset, dcb_everywhere(unset(), dscp_prio={"0": 0}))

    assert "PFC is on for priority 3; the same on 4 ports" in fault.summary
    assert ((), "") == (fault.values, fault.remedy)


# roce-nccl-tc-suspect: DSCP for traffic class, too large, no number; and every guard alone.


def slip(value: str = "26"):
    return nccl_sets(roce(), NCCL_IB_TC=value)


def test_26_is_dscp_6() -> None:
    """Every port has it: one finding, and the value that is right."""
    (fault,) = fails(roce_nccl_tc_suspect, slip())

    assert ("node", "error", "") == (fault.subject, fault.severity, fault.cause)
    assert fault.summary.startswith(
        "traffic class 26 is DSCP 6; DSCP 26 would be 106: RDMA uses priority 0, PFC is on for priority 3"
    )
    assert (("TRAFFIC_CLASS", "106"),) == fault.values


@pytest.mark.parametrize(
    ("value", "fires"),
    [
        ("26", True),
        ("24", True),
        ("31", True),
        ("32", False),  # as a DSCP it is priority 4, which has no PFC: another class, no slip
        ("0", False),
        ("256", True),
        ("300", True),
        ("362", False),  # cut to a byte it is 106
        ("255", False),
        ("abc", True),
        ('"106"', True),
        ("", True),
        ("-1", True),
        ("96", False),
        ("106", False),
    ],
)
def test_which_values_look_like_a_slip(value: str, fires: bool) -> None:
    """Only where they lead to a class without PFC."""
    assert fires == bool(fails(roce_nccl_tc_suspect, slip(value)))


def test_what_is_no_number_is_named_so() -> None:
    """With the class that is lossless as the right value."""
    (word,), (large,) = fails(roce_nccl_tc_suspect, slip('"106"')), fails(roce_nccl_tc_suspect, slip("300"))

    assert "wrong" == word.cause
    assert """traffic class '"106"' is not a number from 0 to 255: NCCL uses 0""" in word.summary
    assert "is above 255" in large.summary
    assert (("TRAFFIC_CLASS", "106"),) == word.values
    (no_class,) = fails(roce_nccl_tc_suspect, dcb_everywhere(slip("300"), dscp_prio={"0": 0}))
    assert () == no_class.values  # no DSCP ends in the lossless priority


def test_the_forced_class_can_be_a_slip_too() -> None:
    """On its port only."""
    (fault,) = fails(roce_nccl_tc_suspect, changed_port(roce(), 1, traffic_class=26))

    assert fault.evidence[0].source.endswith("mlx5_1/tc/1/traffic_class")


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: facts(c, roce_mode="lossy"), NotApplicable, id="declared lossy"),
        pytest.param(lambda c: dcb_everywhere(c, pfc=only()), Pass, id="PFC off"),
        pytest.param(lambda c: dcb_everywhere(c, pfc=only(0)), Pass, id="lossless there"),
        pytest.param(lambda c: dcb_everywhere(c, trust="pcp"), Pass, id="trust PCP"),
        pytest.param(lambda c: dcb_everywhere(c, trust=None), Unknown, id="trust not known"),
        pytest.param(lambda c: netdevs(c, qos=None), Unknown, id="DCB not known"),
    ],
)
def test_a_guard_keeps_nccl_tc_suspect_silent(circumstance, kind) -> None:
    """The firing case and this circumstance."""
    silent(roce_nccl_tc_suspect, circumstance(slip()), kind)


def test_guards_of_one_port_for_nccl_tc_suspect() -> None:
    """Bytes that prove otherwise, and storage."""
    assert 3 == len(fails(roce_nccl_tc_suspect, traffic(slip(), 3)))
    assert {"error", "warning"} == {
        fault.severity for fault in fails(roce_nccl_tc_suspect, changed_nic(slip(), 1, role="storage"))
    }


# roce-trust-pcp-untagged: no tag, no class; and every guard alone.


def pcp():
    return dcb(roce(), trust="pcp")


def test_trust_in_tags_that_are_not_there_is_an_error() -> None:
    """All packets are priority 0."""
    (fault,) = fails(roce_trust_pcp_untagged, pcp())

    assert (PORT, "error", "high") == (fault.subject, fault.severity, fault.confidence)
    assert "trust is PCP, and no packet has a VLAN tag: all are priority 0, PFC is on for priority 3" == fault.summary
    assert "mlnx_qos -i eth1 --trust dscp` (upstream: `dcb app add dev eth1 dscp-prio 0:0" in fault.remedy


@pytest.mark.parametrize(
    ("driver", "source", "severity", "confidence"),
    [
        ("mlx5_core", "APP table", "error", "high"),
        (None, "APP table", "error", "high"),
        ("bnxt_en", "APP table", "warning", "medium"),
        ("bnxt_en", "trust table", "error", "high"),
    ],
)
def test_what_an_empty_table_means_depends_on_the_driver(driver, source, severity, confidence) -> None:
    """mlx5 is known to keep it empty in PCP trust; a trust table says it itself."""
    (fault,) = fails(roce_trust_pcp_untagged, changed_nic(dcb(pcp(), trust_source=source), 1, driver=driver))

    assert (severity, confidence) == (fault.severity, fault.confidence)


def test_storage_is_less_grave() -> None:
    """One step below a rail."""
    assert ["warning"] == [
        fault.severity for fault in fails(roce_trust_pcp_untagged, changed_nic(pcp(), 1, role="storage"))
    ]


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: facts(c, roce_mode="lossy"), NotApplicable, id="declared lossy"),
        pytest.param(lambda c: dcb(c, trust="dscp"), Pass, id="trust DSCP"),
        pytest.param(lambda c: dcb(c, trust=None), Unknown, id="trust not known"),
        pytest.param(lambda c: dcb(c, pfc=only(0)), Pass, id="PFC on 0"),
        pytest.param(lambda c: dcb(c, pfc=only()), Pass, id="PFC off"),
        pytest.param(lambda c: vlan(c, "0:3"), Pass, id="tagged and mapped"),
        pytest.param(lambda c: vlan(c, ""), Pass, id="tagged: told elsewhere"),
        pytest.param(lambda c: changed_port(c, 1, gids_known=False), Unknown, id="addresses not known"),
        pytest.param(lambda c: traffic(c, 3), Pass, id="bytes prove it"),
        pytest.param(lambda c: changed_netdev(c, 1, qos=None), Unknown, id="DCB not known"),
        pytest.param(lambda c: changed_nic(c, 1, virtual_function=True), Unknown, id="virtual function"),
        pytest.param(lambda c: changed_port(c, 1, state="DOWN"), NotApplicable, id="down"),
    ],
)
def test_a_guard_keeps_trust_pcp_untagged_silent(circumstance, kind) -> None:
    """The firing case and this circumstance."""
    silent(roce_trust_pcp_untagged, circumstance(pcp()), kind)


# roce-vlan-no-egress-map: tags with the wrong priority; and every guard alone.


def unmapped():
    return vlan(roce(), "")


def test_a_vlan_without_a_map_is_a_warning() -> None:
    """Tags say 0."""
    (fault,) = fails(roce_vlan_no_egress_map, unmapped())

    assert (PORT, "warning", "medium") == (fault.subject, fault.severity, fault.confidence)
    assert "VLAN tags carry priority 0, PFC is on for priority 3" == fault.summary
    assert fault.remedy.startswith("`ip link set eth1.5 type vlan egress 0:3 4:3`, or NCCL_IB_SL=3")
    assert ("none", "ip -d link show eth1.5") == (fault.evidence[0].value, fault.evidence[0].source)
    assert "0:2" == fails(roce_vlan_no_egress_map, vlan(roce(), "0:2"))[0].evidence[0].value


def test_severity() -> None:
    """Lost packets make it graver, storage less."""
    assert ["error"] == [fault.severity for fault in fails(roce_vlan_no_egress_map, lost(unmapped()))]
    assert ["info"] == [
        fault.severity for fault in fails(roce_vlan_no_egress_map, changed_nic(unmapped(), 1, role="storage"))
    ]


@pytest.mark.parametrize(
    ("context", "kind"),
    [
        pytest.param(vlan(roce(), "0:3"), Pass, id="map"),
        pytest.param(nccl_sets(unmapped(), NCCL_IB_SL="3"), Pass, id="service level"),
        pytest.param(dcb(unmapped(), trust="dscp"), Pass, id="trust DSCP"),
        pytest.param(dcb(unmapped(), pfc=only(0)), Pass, id="PFC on 0"),
        pytest.param(vlan(roce(), None), Unknown, id="map not read"),
        pytest.param(facts(unmapped(), roce_mode="lossy"), NotApplicable, id="declared lossy"),
        pytest.param(dcb(roce(), trust="pcp"), Pass, id="no VLAN: told elsewhere"),
    ],
)
def test_a_guard_keeps_vlan_no_egress_map_silent(context, kind) -> None:
    """The firing case and this circumstance."""
    silent(roce_vlan_no_egress_map, context, kind)
