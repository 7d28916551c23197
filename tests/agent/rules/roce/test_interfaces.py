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
    changed_nic,
    changed_nics,
    changed_port,
    fails,
    function,
    kinds,
    nic_id,
    probe,
    server,
    topology,
    virtual,
)
from tests.agent.rules.moves import moved, reset, roce
from tests.agent.rules.roce.qos import NETDEV, NIC, NOT_ACTIVE, PORT, PROVIDERS, ROLES, UNSEEN, limited

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


def test_a_switch_that_takes_smaller_frames_is_an_error() -> None:
    """The MTU and what the switch announced are the evidence."""
    (fault,) = fails(roce_mtu_mismatch, told(1518))

    assert (PORT, "error", "switch") == (fault.subject, fault.severity, fault.cause)
    assert "MTU 4200 needs frames of 4218 bytes; the switch takes 1518" == fault.summary
    assert ["4200", "1518"] == [row.value for row in fault.evidence]
    assert {NIC, f"{NIC}/1"} <= fault.ids


@pytest.mark.parametrize(("frame", "fires"), [(4217, True), (4218, False), (9216, False), (0, False), (None, False)])
def test_eighteen_bytes_of_ethernet_are_counted(frame: int | None, fires: bool) -> None:
    """A switch port of MTU 9216 is what most say."""
    assert fires == bool(fails(roce_mtu_mismatch, told(frame)))


@pytest.mark.parametrize("counter", ["rx_oversize_pkts_phy", "rx_out_of_range_len_phy", "rx_oversize_pkts_buffer"])
def test_frames_that_are_too_large_are_a_warning(counter: str) -> None:
    """Ten in a window."""
    (fault,) = fails(roce_mtu_mismatch, oversize(10, counter))

    assert (PORT, "warning", "peers") == (fault.subject, fault.severity, fault.cause)
    assert [(counter, "+10")] == [(row.what, row.value) for row in fault.evidence[1:]]
    assert [] == fails(roce_mtu_mismatch, oversize(9, counter))


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


@pytest.mark.parametrize("mtu", [4192, 4220, 9000])
def test_mtus_of_one_packet_size_are_fine(mtu: int) -> None:
    """4096 bytes fit into each; and a storage NIC is not compared with rails."""
    context = changed_netdev(server(ethernet=True), 1, mtu=mtu)

    assert Pass("node") in list(roce_mtu_mismatch.check(context))
    assert [] == fails(roce_mtu_mismatch, changed_nic(changed_netdev(context, 1, mtu=1500), 1, role="storage"))


def test_storage_is_less_grave_for_mtu_mismatch() -> None:
    """One step below a rail."""
    assert ["warning"] == [
        fault.severity for fault in fails(roce_mtu_mismatch, changed_nic(told(1518), 1, role="storage"))
    ]


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


def test_counters_alone_are_enough_to_pass() -> None:
    """Without LLDP, where a window compares them; not where they began anew."""
    context = changed_netdev(oversize(0), 1, neighbor=None)

    assert [Pass(PORT)] == answers(roce_mtu_mismatch, context, PORT)
    assert [NotApplicable] == [type(a) for a in answers(roce_mtu_mismatch, reset(context, NETDEV), PORT)]


def test_one_rail_is_compared_with_nothing() -> None:
    """And InfiniBand has no part in it."""
    assert [] == answers(roce_mtu_mismatch, server(1, ethernet=True), "node")
    assert {NotApplicable} == kinds(roce_mtu_mismatch, server())


def test_two_rails_can_differ() -> None:
    """The least that can be compared."""
    assert ["rails"] == [
        fault.cause for fault in fails(roce_mtu_mismatch, changed_netdev(server(2, ethernet=True), 1, mtu=1500))
    ]


def test_no_frame_is_no_fault_whatever_the_limit() -> None:
    """The operator may want to hear of the first one."""
    assert [] == fails(roce_mtu_mismatch, limited(oversize(0), "roce-mtu-mismatch.frames", 0))
    assert 1 == len(fails(roce_mtu_mismatch, limited(oversize(1), "roce-mtu-mismatch.frames", 0)))


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


@pytest.mark.parametrize(
    ("mtu", "found"),
    [
        (4191, [("warning", "")]),
        (4192, []),
        (4200, []),
        (4220, []),
        (9000, []),
        (1120, [("warning", "")]),
        (1119, [("error", "tiny")]),
        (300, [("error", "tiny")]),
    ],
)
def test_the_limits_are_those_of_the_kernel(mtu: int, found: list[tuple[str, str]]) -> None:
    """The largest InfiniBand MTU that fits beside 96 bytes of headers."""
    assert found == [(fault.severity, fault.cause) for fault in fails(roce_mtu_small, small(mtu))]


def test_storage_is_less_grave_for_mtu_small() -> None:
    """One step below a rail."""
    assert ["info"] == [fault.severity for fault in fails(roce_mtu_small, changed_nic(small(), 1, role="storage"))]


def test_the_same_on_every_port_is_one_finding() -> None:
    """Somebody configured it so; two groups are two findings."""
    context = server(ethernet=True)
    for n in range(4):
        context = changed_netdev(context, n, mtu=1500)
    (fault,) = fails(roce_mtu_small, context)

    assert ("node", "warning") == (fault.subject, fault.severity)
    assert 4 == len(fault.evidence)
    assert 4 == len(fails(roce_mtu_small, changed_netdev(context, 0, mtu=1000)))
    assert 3 == len(fails(roce_mtu_small, changed_netdev(context, 0, mtu=9000)))


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(virtual, NotApplicable, id="virtual machine"),
        pytest.param(
            lambda c: changed_nic(c, 1, virtual_function=True), NotApplicable, id="virtual function by its id"
        ),
        pytest.param(
            lambda c: function(c, NIC, physical_function=nic_id(0)), NotApplicable, id="virtual function by the kernel"
        ),
        pytest.param(lambda c: changed_nic(c, 1, driver="efa"), NotApplicable, id="EFA by its driver"),
        pytest.param(lambda c: changed_port(c, 1, link_layer="unspecified"), NotApplicable, id="EFA by its link layer"),
        pytest.param(lambda c: changed_nic(c, 1, node_type="RNIC"), NotApplicable, id="iWARP"),
        pytest.param(lambda c: changed_nic(c, 1, software=True), NotApplicable, id="software"),
        pytest.param(lambda c: changed_nic(c, 1, limited="mezz internal"), NotApplicable, id="fabric manager's"),
        pytest.param(lambda c: changed_nic(c, 1, role="management"), NotApplicable, id="management"),
        pytest.param(lambda c: changed_nic(c, 1, role="unused"), NotApplicable, id="unused"),
        pytest.param(lambda c: changed_port(c, 1, state="DOWN"), NotApplicable, id="not active"),
        pytest.param(lambda c: function(c, NIC, state="gone"), NotApplicable, id="gone"),
        pytest.param(lambda c: changed_port(c, 1, state=None), Unknown, id="state not read"),
        pytest.param(lambda c: changed_port(c, 1, link_layer=None), Unknown, id="link layer not read"),
        pytest.param(
            lambda c: changed_nic(c, 1, state="other_namespace"), Unknown, id="another namespace, says assemble"
        ),
        pytest.param(lambda c: changed_port(c, 1, netdevs=[]), Unknown, id="no interface in sight"),
        pytest.param(lambda c: changed_port(c, 1, netdevs=["moved0"]), Unknown, id="its interface went away"),
        pytest.param(
            lambda c: function(changed_nic(c, 1, driver=None), NIC, driver="efa"), NotApplicable, id="EFA by the bus"
        ),
        pytest.param(lambda c: changed_netdev(c, 1, mtu=None), Unknown, id="MTU not read"),
        pytest.param(lambda c: changed_netdev(c, 1, mtu=4220), Pass, id="large enough"),
    ],
)
def test_a_guard_keeps_mtu_small_silent(circumstance, kind) -> None:
    """The firing case and this circumstance: no fault, and the answer that the page promises."""
    context = circumstance(small())
    (answer,) = answers(roce_mtu_small, context, PORT)

    assert isinstance(answer, kind), answer
    assert [] == fails(roce_mtu_small, context)


def test_a_vlan_above_the_port_is_not_its_interface() -> None:
    """The port's own interface decides; a VLAN only where it is all that is shown."""
    context = changed_port(small(9000), 1, netdevs=["eth0", "eth1"])
    vlan = changed_netdev(context, 0, mtu=1500, vlan={"id": 5, "parent": "eth1"})

    assert [Pass(PORT)] == answers(roce_mtu_small, vlan, PORT)


def test_infiniband_and_nothing_are_not_applicable() -> None:
    """One answer for the node; unknown where nobody looked."""
    bare = probe(topology(server(1), nics=[]), "rdma", "absent", "no class")

    assert {NotApplicable} == kinds(roce_mtu_small, server())
    assert {NotApplicable} == kinds(roce_mtu_small, bare)
    assert "unknown" == judge(probe(bare, "pci", "failed", "broken"), [roce_mtu_small])[0][0].state


def test_what_a_nic_is_for_takes_its_place_on_the_bus() -> None:
    """Outputs of RDMA tools alone: unknown, where the PCI functions that are here would say that it is no rail."""
    context = changed_nic(small(), 1, role="unknown")
    alone = probe(probe(topology(context, pci=[]), "pci", "absent", "no sysfs"), "lspci", "absent", "no output")
    elsewhere = topology(context, pci=[f for f in context.topology.pci if f.id != NIC])

    assert {NotApplicable} == {
        type(answer) for item in (context, elsewhere) for answer in answers(roce_mtu_small, item, PORT)
    }
    placeless = changed_nic(elsewhere, 1, role="unknown", pci=None)  # which of the functions it is nobody tells
    assert ["what it is for is not known: where it is on the PCI bus is not known"] == [
        answer.reason for answer in answers(roce_mtu_small, placeless, PORT) if isinstance(answer, Unknown)
    ]
    assert {Unknown} == {type(answer) for answer in answers(roce_mtu_small, alone, PORT)}


def test_nics_whose_ports_nobody_read_may_speak_roce() -> None:
    """Without the RDMA probe nothing is said of them, and the engine says why."""
    unread = probe(changed_nics(server(1), ports=[]), "rdma", "denied", "no permission")

    assert [] == list(roce_mtu_small.check(unread))
    assert "unknown" == judge(unread, [roce_mtu_small])[0][0].state
