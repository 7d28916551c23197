"""Which ports the RoCE rules judge, and what a port that is not judged is said to be."""

from __future__ import annotations

import pytest

from agent.model.nic import Neighbor
from agent.rules.roce.counters import roce_rt_crc
from agent.rules.roce.lossless import roce_lossy
from agent.rules.roce.ports import RocePort, cabled_interfaces, report_hidden, roce_ports
from agent.rules.rule import NotApplicable, Unknown
from tests.agent.rules.build import changed_netdev, changed_nic, changed_port, fails, nic_id, probe, server, topology
from tests.agent.rules.moves import moved, roce
from tests.agent.rules.roce.qos import NIC, PORT, dcb, dcb_everywhere
from tests.agent.rules.roce.qos import roce as roce_server
from tests.agent.rules.rows import only

# Which ports are RoCE ports, and when the faults of all of them are one.


def test_no_port_is_one_answer_where_somebody_looked() -> None:
    """At the bus, or at RDMA."""
    bare = topology(server(ethernet=True), nics=[])
    half = probe(bare, "pci", "failed", "x")

    assert [NotApplicable("node", "no RoCE port")] == list(roce_ports(bare))
    assert [NotApplicable("node", "no RoCE port")] == list(roce_ports(half))
    assert [] == list(roce_ports(probe(half, "rdma", "failed", "x")))


def test_a_port_is_about_the_bus_too() -> None:
    """A sub-function has an id of its own, and the place of its card."""
    context = changed_nic(server(ethernet=True), 1, id="mlx5_core.sf.4")
    result = [roce_port.ids for roce_port in roce_ports(context) if isinstance(roce_port, RocePort)]

    assert {"mlx5_core.sf.4/1", "mlx5_core.sf.4", nic_id(1)} in result


def test_a_fault_is_about_the_port_and_its_interface() -> None:
    """Told by the name of the port, found by either."""
    context = changed_netdev(roce(), 1, id="eth1 of 25:00.0")
    (fault,) = fails(roce_rt_crc, moved(context, "netdev:eth1 of 25:00.0", {"rx_crc_errors_phy": 10}))

    assert (PORT, "mlx5_1/1 (eth1)") == (fault.subject, fault.label)
    assert {"eth1 of 25:00.0", PORT.removeprefix("port:")} <= fault.ids


# What rules about lossless classes say alike: evidence only of what was read, one finding only in the same words.


def mismatch(**changes):
    """A rail with PFC on another priority than that of RDMA, and something about its interface."""
    return changed_netdev(dcb(roce_server(), pfc=only(4)), 1, **changes)


@pytest.mark.parametrize(
    ("context", "row"),
    [
        pytest.param(mismatch(pause=None), "global pause of eth1", id="pause"),
        pytest.param(mismatch(neighbor=None), "PFC that", id="neighbor"),
        pytest.param(mismatch(neighbor=Neighbor(system="leaf1", port="swp1")), "PFC that", id="PFC of the switch"),
        pytest.param(dcb(mismatch(), prio_tc=[0, 1, 2]), "traffic class queue at eth1", id="queue of priority 3"),
        pytest.param(dcb(roce_server(), pfc=only(), trust=None), "trust of eth1", id="trust"),
    ],
)
def test_what_was_not_read_is_no_evidence(context, row: str) -> None:
    """The rest of the chain is."""
    (fault,) = fails(roce_lossy, context)
    result = [item.what for item in fault.evidence]

    assert "PFC of eth1" in result
    assert [] == [what for what in result if what.startswith(row)]


def saved(role: str = "unknown", gpus: bool = False, bus: str = "absent"):
    """Saved outputs of DCB tools: one NIC with an interface, and nothing of the PCI bus."""
    context = changed_port(changed_nic(roce_server(1), 0, role=role), 0, state=None)
    bare = topology(context, pci=[], gpus=context.topology.gpus if gpus else [])
    return probe(bare, "pci", bus, "no sysfs")


@pytest.mark.parametrize(
    ("context", "judged"),
    [
        pytest.param(saved(), True, id="settings alone"),
        pytest.param(changed_netdev(saved(), 0, qos=None), False, id="without settings"),
        pytest.param(changed_port(saved(), 0, netdevs=[]), False, id="without an interface"),
        pytest.param(saved(gpus=True), False, id="beside GPUs"),
        pytest.param(saved(bus="ok"), False, id="beside a bus that was read"),
        pytest.param(saved("rail"), False, id="a rail whose state was not read"),
        pytest.param(saved("management"), False, id="a NIC that is known to be for something else"),
    ],
)
def test_settings_that_somebody_saved_are_of_a_port_in_use(context, judged: bool) -> None:
    """What it is for and its state are in no output; where another source could have them, they decide."""
    assert [judged] == [isinstance(each, RocePort) for each in roce_ports(context)]


def test_a_fault_is_about_the_interface_too() -> None:
    """Its id is not always that of the NIC."""
    context = changed_port(changed_netdev(mismatch(), 1, id="eth1"), 1, netdevs=["eth1"])

    assert {NIC, f"{NIC}/1", "eth1"} == fails(roce_lossy, context)[0].ids


def test_evidence_of_many_ports_is_cut() -> None:
    """Nobody reads more than 32 rows."""
    (fault,) = fails(roce_lossy, dcb_everywhere(roce_server(8), pfc=only(4)))

    assert 32 == len(fault.evidence)


def test_an_interface_out_of_sight_has_no_cables() -> None:
    """Of a container's, or nobody's."""
    hidden = changed_port(roce_server(), 1, netdevs=[])
    (port,) = [
        roce_port for roce_port in roce_ports(hidden) if isinstance(roce_port, RocePort) and roce_port.subject == PORT
    ]
    (plain,) = [
        roce_port
        for roce_port in roce_ports(roce_server())
        if isinstance(roce_port, RocePort) and roce_port.subject == PORT
    ]

    assert [] == cabled_interfaces(hidden, port)
    assert ["eth1"] == [netdev.label for netdev in cabled_interfaces(roce_server(), plain)]
    assert isinstance(report_hidden(port), Unknown)
    assert report_hidden(plain) is None
