"""roce-ecn-off: congestion control that is off, or does not answer; and every guard alone."""

from __future__ import annotations

import pytest

from agent.model.nic import Pause
from agent.rules.roce.lossless import roce_ecn_off as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import changed_netdev, changed_nic, changed_port, fails
from tests.agent.rules.roce.qos import PORT, dcb, limited, roce, silent, window
from tests.agent.rules.rows import only

ON, OFF = [True] * 8, [False] * 8
BUT_3 = [n != 3 for n in range(8)]


def ecn(np=ON, rp=ON, **changes):
    return dcb(roce(), ecn={"np": np, "rp": rp}, **changes)


def marked(marks: int = 10_000, answered: int = 0, **changes):
    """A driver that does not tell, and marks counted over the window."""
    case = dcb(roce(), ecn={}, **changes)
    case = changed_port(case, 1, hw_counters={"np_ecn_marked_roce_packets": marks, "np_cnp_sent": answered})
    return window(case, {PORT: {"np_ecn_marked_roce_packets": marks, "np_cnp_sent": answered}})


@pytest.mark.parametrize(
    ("case", "sides"),
    [
        pytest.param(ecn(np=BUT_3), "notification point", id="np"),
        pytest.param(ecn(rp=BUT_3), "reaction point", id="rp"),
        pytest.param(ecn(OFF, OFF), "notification point and reaction point", id="both"),
        pytest.param(ecn(np=only(5)), "notification point", id="on for another priority"),
    ],
)
def test_off_for_the_class_of_rdma_is_a_warning(case, sides: str) -> None:
    """Either side."""
    (fault,) = fails(rule, case)

    assert (PORT, "warning", "medium") == (fault.subject, fault.severity, fault.confidence)
    assert f"ECN is off for priority 3: {sides}" == fault.summary
    assert fault.remedy.startswith("echo 1 > /sys/class/net/eth1/ecn/roce_np/enable/3")
    assert fault.evidence[0].source.startswith("/sys/class/net/eth1/ecn/roce_")


def test_severity() -> None:
    """Graver where nothing else protects; less on storage and where ECN may not be needed."""
    assert ["error"] == [fault.severity for fault in fails(rule, ecn(OFF, pfc=only()))]
    paused = changed_netdev(ecn(OFF, pfc=only()), 1, pause=Pause(rx=True, tx=True))
    assert ["warning"] == [fault.severity for fault in fails(rule, paused)]
    assert "; PFC is off, too" in fails(rule, ecn(OFF, pfc=only()))[0].summary
    assert ["info"] == [fault.severity for fault in fails(rule, changed_nic(ecn(OFF), 1, role="storage"))]
    for model in ("BlueField-3", "ConnectX-8"):
        assert ["info"] == [fault.severity for fault in fails(rule, changed_nic(ecn(OFF), 1, model=model))]


def test_where_the_class_is_not_known_all_eight_must_be_off() -> None:
    """Off for some proves nothing."""
    (fault,) = fails(rule, ecn(OFF, trust=None))

    assert "ECN is off for every priority: notification point" == fault.summary
    assert "enable/PRIORITY" in fault.remedy
    silent(rule, ecn(BUT_3, trust=None), Unknown)
    silent(rule, ecn(trust=None), Pass)


def test_marks_that_nobody_answers() -> None:
    """10000 in the window, and not one CNP."""
    (fault,) = fails(rule, marked())

    assert ("marks", "10000 marks of congestion were received and none was answered") == (fault.cause, fault.summary)
    assert ["10000", "0"] == [row.value for row in fault.evidence]
    silent(rule, marked(9_999), Unknown)
    silent(rule, marked(10_000, 1), Unknown)
    assert 1 == len(fails(rule, limited(marked(5), "roce-ecn-off.marks", 5)))
    silent(rule, marked(0), Unknown)


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        pytest.param(ecn(), Pass, id="on"),
        pytest.param(ecn(only(3), only(3)), Pass, id="on for RDMA"),
        pytest.param(dcb(roce(), ecn={}), Unknown, id="not told"),
        pytest.param(dcb(roce(), ecn={"np": ON}), Unknown, id="half told"),
        pytest.param(dcb(roce(), ecn={"np": [True], "rp": [True]}), Unknown, id="cut short"),
        pytest.param(ecn([True] * 3, [True] * 3), Unknown, id="cut short before RDMA's priority"),
        pytest.param(ecn([False] * 3, [False] * 3), Unknown, id="off as far as it goes"),
        pytest.param(changed_netdev(ecn(OFF), 1, qos=None), Unknown, id="DCB not known"),
        pytest.param(changed_nic(ecn(OFF), 1, virtual_function=True), Unknown, id="virtual function"),
        pytest.param(changed_nic(ecn(OFF), 1, role="unused"), NotApplicable, id="unused"),
    ],
)
def test_a_guard_keeps_it_silent(case, kind) -> None:
    """No fault, and the answer that the page promises."""
    silent(rule, case, kind)
