"""roce-cnp-class: where feedback travels; and every guard alone."""

from __future__ import annotations

import pytest

from agent.rules.roce.lossless import roce_cnp_class as rule
from agent.rules.rule import Pass, Unknown
from tests.agent.rules.build import changed_netdev, changed_nic, fails
from tests.agent.rules.roce.qos import PORT, dcb, dcb_everywhere, roce, silent, traffic


@pytest.mark.parametrize(
    ("dscp", "cause"),
    [(24, "data"), (26, "data"), (0, "default"), (7, "default"), (48, None), (46, None), (56, None)],
)
def test_a_class_of_its_own_is_fine(dscp: int, cause) -> None:
    """Whatever number it has, alike on all ports."""
    found = fails(rule, dcb_everywhere(roce(), cnp_dscp=dscp))

    assert ([("node", "info", cause)] if cause else []) == [(f.subject, f.severity, f.cause) for f in found]


def test_one_port_that_differs() -> None:
    """From more than half of its kind."""
    (fault,) = fails(rule, dcb(roce(), cnp_dscp=46))

    assert (PORT, "info", "differs") == (fault.subject, fault.severity, fault.cause)
    assert "CNPs have DSCP 46, those of other ports 48" == fault.summary
    assert "/sys/class/net/eth1/ecn/roce_np/cnp_dscp" == fault.evidence[0].source
    assert [] == fails(rule, dcb(dcb(roce(), 0, cnp_dscp=46), cnp_dscp=46))
    assert [] == fails(rule, changed_nic(dcb(roce(), cnp_dscp=46), 1, role="storage"))


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: dcb(c, cnp_dscp=None, cnp_priority=None), Unknown, id="CNPs not known"),
        pytest.param(lambda c: dcb(c, trust=None), Unknown, id="RDMA's class not known"),
        pytest.param(lambda c: changed_netdev(c, 1, qos=None), Unknown, id="DCB not known"),
        pytest.param(lambda c: c, Pass, id="healthy"),
        pytest.param(lambda c: dcb(c, cnp_dscp=None), Pass, id="a DSCP that was not read differs from none"),
        pytest.param(
            lambda c: traffic(dcb(c, dscp_prio={}), 3), Pass, id="without a DSCP table their own priority counts"
        ),
    ],
)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """No fault, and the answer that the page promises."""
    silent(rule, circumstance(roce()), kind)


def test_ports_that_do_not_tell_have_no_vote() -> None:
    """Two of the three that tell are most of them."""
    case = dcb(dcb(roce(), 0, cnp_dscp=None), 1, cnp_dscp=46)

    assert [(PORT, "differs")] == [(fault.subject, fault.cause) for fault in fails(rule, case)]


@pytest.mark.parametrize(
    ("changes", "value"),
    [
        ({"cnp_dscp": None, "cnp_priority": 3}, "DSCP not known, priority 3"),
        ({"cnp_dscp": 26, "cnp_priority": None}, "DSCP 26, priority not known"),
    ],
)
def test_what_was_not_read_is_said(changes, value: str) -> None:
    """Either of the two is enough to judge."""
    (fault,) = fails(rule, dcb(roce(), **changes))

    assert value == fault.evidence[0].value
