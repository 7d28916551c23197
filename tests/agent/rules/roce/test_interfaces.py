"""MTU of the interfaces of RoCE ports."""

from __future__ import annotations

import msgspec
import pytest

from agent.rules.catalogue import every_rule
from agent.rules.engine import judge
from agent.rules.roce.interfaces import find_subnet, roce_mtu_mismatch, roce_mtu_small
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import (
    answers,
    changed_netdev,
    changed_nics,
    fails,
    kinds,
    nic_id,
    probe,
    server,
    topology,
)
from tests.agent.rules.moves import moved, roce
from tests.agent.rules.roce.qos import NETDEV, NOT_ACTIVE, PORT, PROVIDERS, ROLES, UNSEEN

# roce-mtu-mismatch: when it fires, when it must not, and every guard alone.


def told(frame: int | None, gpus: int = 4):
    """A switch that announces its largest frame."""
    context = server(gpus, ethernet=True)
    neighbor = msgspec.structs.replace(context.topology.netdevs[1].neighbor, max_frame_bytes=frame)
    return changed_netdev(context, 1, neighbor=neighbor)


def oversize(frames: int, counter: str = "rx_oversize_pkts_phy"):
    """Frames that came in too large."""
    context = roce()
    counters = {**context.topology.netdevs[1].counters, counter: 7}
    return moved(changed_netdev(context, 1, counters=counters), NETDEV, {counter: frames})


def test_rails_that_differ_are_one_error() -> None:
    """Two packet sizes; the rail with the small MTU has a rule of its own, which stands for this one."""
    context = changed_netdev(server(ethernet=True), 1, mtu=1500)
    (fault,) = fails(roce_mtu_mismatch, context)
    _, findings, _ = judge(context, every_rule())

    assert ("node", "error", "rails") == (fault.subject, fault.severity, fault.cause)
    assert fault.summary.endswith("mlx5_1/1 (eth1) 1024")
    assert 4 == len(fault.evidence)
    explained = [f"peer-differs netdev:{nic_id(1)}", "roce-mtu-mismatch node"]
    assert [("roce-mtu-small", explained)] == [(f.rule, f.absorbs) for f in findings]


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
def test_a_guard_keeps_mtu_mismatch_silent(circumstance, kind) -> None:
    """The firing case of two rails and this circumstance: nothing on the port but the answer that is promised."""
    (answer,) = answers(roce_mtu_mismatch, circumstance(told(1518, gpus=2)), PORT)

    assert isinstance(answer, kind), answer


def test_only_counters_that_moved_are_evidence() -> None:
    """Beside the MTU."""
    context = oversize(10)
    counters = {**context.topology.netdevs[1].counters, "rx_oversize_pkts_buffer": 7}
    (fault,) = fails(roce_mtu_mismatch, changed_netdev(context, 1, counters=counters))

    assert ["rx_oversize_pkts_phy"] == [row.what for row in fault.evidence[1:]]


def test_a_number_of_four_digits_is_in_no_address() -> None:
    """A report may hold any text."""
    assert ("10.0.100.0/24", None) == (find_subnet("10.0.100.1/24"), find_subnet("10.0.1000.1/24"))


@pytest.mark.parametrize("address", ["10.0.0.1", "10.0.0.1/", "10.0.0.1/x", "10.0.0/24", "10.0.x.1/24"])
def test_what_is_no_address_with_a_length_is_in_no_network(address: str) -> None:
    """A report may hold any text."""
    assert find_subnet(address) is None


def test_all_addresses_are_no_network() -> None:
    """And a network of two addresses joins two ports with a cable."""
    assert (None, None, "10.0.0.0/30") == tuple(find_subnet(f"10.0.0.1/{bits}") for bits in (0, 31, 30))


# roce-mtu-small: when it fires, when it must not, and every guard alone.


def small(mtu: int = 1500):
    return changed_netdev(server(ethernet=True), 1, mtu=mtu)


def test_a_small_mtu_is_a_warning_on_the_interface() -> None:
    """1500 gives packets of 1024 bytes."""
    (fault,) = fails(roce_mtu_small, small())

    assert (NETDEV, "mlx5_1/1 (eth1)", "warning", "") == (fault.subject, fault.label, fault.severity, fault.cause)
    assert fault.summary.startswith("interface MTU 1500 limits the RoCE MTU to 1024")
    assert fault.impact.startswith("92.6% of the bytes are payload")
    assert ("1500", "/sys/class/net/eth1/mtu") == (fault.evidence[0].value, fault.evidence[0].source)


def test_infiniband_and_nothing_are_not_applicable() -> None:
    """One answer for the node; unknown where nobody looked."""
    bare = probe(topology(server(1), nics=[]), "rdma", "absent", "no class")

    assert {NotApplicable} == kinds(roce_mtu_small, server())
    assert {NotApplicable} == kinds(roce_mtu_small, bare)
    assert "unknown" == judge(probe(bare, "pci", "failed", "broken"), [roce_mtu_small])[0][0].state


def test_nics_whose_ports_nobody_read_may_speak_roce() -> None:
    """Without the RDMA probe nothing is said of them, and the engine says why."""
    unread = probe(changed_nics(server(1), ports=[]), "rdma", "denied", "no permission")

    assert [] == list(roce_mtu_small.check(unread))
    assert "unknown" == judge(unread, [roce_mtu_small])[0][0].state
