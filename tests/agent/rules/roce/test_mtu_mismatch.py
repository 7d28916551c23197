"""roce-mtu-mismatch: when it fires, when it must not, and every guard alone."""

from __future__ import annotations

import msgspec
import pytest

from agent.rules.catalogue import every_rule
from agent.rules.engine import judge
from agent.rules.roce.interfaces import roce_mtu_mismatch as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import answers, changed_netdev, changed_nic, fails, kinds, server
from tests.agent.rules.moves import moved, reset, roce
from tests.agent.rules.roce.guards import NETDEV, NIC, NOT_ACTIVE, PORT, PROVIDERS, ROLES, UNSEEN
from tests.agent.rules.roce.qos import limited


def told(frame: int | None, gpus: int = 4):
    """A switch that announces its largest frame."""
    case = server(gpus, ethernet=True)
    neighbor = msgspec.structs.replace(case.topology.netdevs[1].neighbor, max_frame_bytes=frame)
    return changed_netdev(case, 1, neighbor=neighbor)


def oversize(frames: int, counter: str = "rx_oversize_pkts_phy"):
    """Frames that came in too large."""
    case = roce()
    counters = {**case.topology.netdevs[1].counters, counter: 7}
    return moved(changed_netdev(case, 1, counters=counters), NETDEV, {counter: frames})


def test_a_switch_that_takes_smaller_frames_is_an_error() -> None:
    """The MTU and what the switch announced are the evidence."""
    (fault,) = fails(rule, told(1518))

    assert (PORT, "error", "switch") == (fault.subject, fault.severity, fault.cause)
    assert "MTU 4200 needs frames of 4218 bytes; the switch takes 1518" == fault.summary
    assert ["4200", "1518"] == [row.value for row in fault.evidence]
    assert {NIC, f"{NIC}/1"} <= fault.places


@pytest.mark.parametrize(("frame", "fires"), [(4217, True), (4218, False), (9216, False), (0, False), (None, False)])
def test_eighteen_bytes_of_ethernet_are_counted(frame: int | None, fires: bool) -> None:
    """A switch port of MTU 9216 is what most say."""
    assert fires == bool(fails(rule, told(frame)))


@pytest.mark.parametrize("counter", ["rx_oversize_pkts_phy", "rx_out_of_range_len_phy", "rx_oversize_pkts_buffer"])
def test_frames_that_are_too_large_are_a_warning(counter: str) -> None:
    """Ten in a window."""
    (fault,) = fails(rule, oversize(10, counter))

    assert (PORT, "warning", "peers") == (fault.subject, fault.severity, fault.cause)
    assert [(counter, "+10")] == [(row.what, row.value) for row in fault.evidence[1:]]
    assert [] == fails(rule, oversize(9, counter))


def test_rails_that_differ_are_one_error() -> None:
    """Two packet sizes; the rail with the small MTU has a rule of its own, which stands for this one."""
    case = changed_netdev(server(ethernet=True), 1, mtu=1500)
    (fault,) = fails(rule, case)
    _, findings, _ = judge(case, every_rule())

    assert ("node", "error", "rails") == (fault.subject, fault.severity, fault.cause)
    assert fault.summary.endswith("mlx5_1/1 (eth1) 1024")
    assert 4 == len(fault.evidence)
    assert [("roce-mtu-small", ["roce-mtu-mismatch node"])] == [(f.rule, f.absorbs) for f in findings]


@pytest.mark.parametrize("mtu", [4192, 4220, 9000])
def test_mtus_of_one_packet_size_are_fine(mtu: int) -> None:
    """4096 bytes fit into each; and a storage NIC is not compared with rails."""
    case = changed_netdev(server(ethernet=True), 1, mtu=mtu)

    assert Pass("node") in list(rule.check(case))
    assert [] == fails(rule, changed_nic(changed_netdev(case, 1, mtu=1500), 1, role="storage"))


def test_storage_is_less_grave() -> None:
    """One step below a rail."""
    assert ["warning"] == [fault.severity for fault in fails(rule, changed_nic(told(1518), 1, role="storage"))]


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        *ROLES,
        NOT_ACTIVE,
        *PROVIDERS,
        *UNSEEN,
        pytest.param(lambda c: changed_netdev(c, 1, mtu=None), Unknown, id="MTU not read"),
        pytest.param(lambda c: changed_netdev(c, 1, mtu=1500), Pass, id="as the switch says"),
        pytest.param(lambda c: changed_netdev(c, 1, neighbor=None), NotApplicable, id="nobody tells, first run"),
    ],
)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case of two rails and this circumstance: nothing on the port but the answer that is promised."""
    (answer,) = answers(rule, circumstance(told(1518, gpus=2)), PORT)

    assert isinstance(answer, kind), answer


def test_counters_alone_are_enough_to_pass() -> None:
    """Without LLDP, where a window compares them; not where they began anew."""
    case = changed_netdev(oversize(0), 1, neighbor=None)

    assert [Pass(PORT)] == answers(rule, case, PORT)
    assert [NotApplicable] == [type(a) for a in answers(rule, reset(case, NETDEV), PORT)]


def test_one_rail_is_compared_with_nothing() -> None:
    """And InfiniBand has no part in it."""
    assert [] == answers(rule, server(1, ethernet=True), "node")
    assert {NotApplicable} == kinds(rule, server())


def test_two_rails_can_differ() -> None:
    """The least that can be compared."""
    assert ["rails"] == [fault.cause for fault in fails(rule, changed_netdev(server(2, ethernet=True), 1, mtu=1500))]


def test_no_frame_is_no_fault_whatever_the_limit() -> None:
    """The operator may want to hear of the first one."""
    assert [] == fails(rule, limited(oversize(0), "roce-mtu-mismatch.frames", 0))
    assert 1 == len(fails(rule, limited(oversize(1), "roce-mtu-mismatch.frames", 0)))


def test_only_counters_that_moved_are_evidence() -> None:
    """Beside the MTU."""
    case = oversize(10)
    counters = {**case.topology.netdevs[1].counters, "rx_oversize_pkts_buffer": 7}
    (fault,) = fails(rule, changed_netdev(case, 1, counters=counters))

    assert ["rx_oversize_pkts_phy"] == [row.what for row in fault.evidence[1:]]
