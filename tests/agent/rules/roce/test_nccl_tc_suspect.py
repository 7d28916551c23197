"""roce-nccl-tc-suspect: DSCP for traffic class, too large, no number; and every guard alone."""

from __future__ import annotations

import pytest

from agent.rules.roce.lossless import roce_nccl_tc_suspect as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import changed_nic, changed_port, fails
from tests.agent.rules.roce.qos import dcb_everywhere, facts, nccl_sets, netdevs, roce, silent, traffic
from tests.agent.rules.rows import only


def slip(value: str = "26"):
    return nccl_sets(roce(), NCCL_IB_TC=value)


def test_26_is_dscp_6() -> None:
    """Every port has it: one finding, and the value that is right."""
    (fault,) = fails(rule, slip())

    assert ("node", "error", "") == (fault.subject, fault.severity, fault.cause)
    assert fault.summary.startswith(
        "traffic class 26 is DSCP 6; DSCP 26 would be 106: RDMA uses priority 0, PFC is on for priority 3"
    )
    assert fault.remedy.startswith("It should be 106: set NCCL_IB_TC=106")


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
    assert fires == bool(fails(rule, slip(value)))


def test_what_is_no_number_is_named_so() -> None:
    """With the class that is lossless as the right value."""
    (word,), (large,) = fails(rule, slip('"106"')), fails(rule, slip("300"))

    assert "wrong" == word.cause
    assert """traffic class '"106"' is no number of 0 to 255: NCCL takes 0""" in word.summary
    assert "is above 255" in large.summary
    assert "It should be 106" in word.remedy


def test_the_forced_class_can_be_a_slip_too() -> None:
    """On its port only."""
    (fault,) = fails(rule, changed_port(roce(), 1, traffic_class=26))

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
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance."""
    silent(rule, circumstance(slip()), kind)


def test_guards_of_one_port() -> None:
    """Bytes that prove otherwise, and storage."""
    assert 3 == len(fails(rule, traffic(slip(), 3)))
    assert {"error", "warning"} == {fault.severity for fault in fails(rule, changed_nic(slip(), 1, role="storage"))}
