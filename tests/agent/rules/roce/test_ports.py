"""Which ports the RoCE rules judge, and what a port that is not judged is called; roce-link-down: when it fires, when
it must not, and every guard alone.
"""

from __future__ import annotations

import pytest

from agent.model.nic import Lane, Neighbor, TransceiverModule
from agent.rules.roce.counters import roce_rt_crc
from agent.rules.roce.links import roce_link_down as rule
from agent.rules.roce.lossless import roce_lossy
from agent.rules.roce.ports import RocePort, cabled_interfaces, report_hidden, roce_ports
from agent.rules.rule import NotApplicable, Unknown
from tests.agent.rules.build import (
    answers,
    changed_netdev,
    changed_nic,
    changed_port,
    fails,
    nic_id,
    probe,
    server,
    topology,
)
from tests.agent.rules.moves import moved, roce
from tests.agent.rules.roce.qos import NIC, PORT, dcb, dcb_everywhere
from tests.agent.rules.roce.qos import roce as roce_server
from tests.agent.rules.rows import only

# Which ports are RoCE ports, and when the faults of all of them are one.
DARK = {"state": "DOWN", "phys_state": "Disabled", "rate_gbit_s": None}


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


def down(gpus: int = 4, **interface):
    result = {"operstate": "down", "speed_gbit_s": None, **interface}
    return changed_netdev(changed_port(server(gpus, ethernet=True), 1, **DARK), 1, **result)


def test_a_dark_rail_among_bright_ones_is_an_error() -> None:
    """States of port and interface, and the module, are the evidence; the share of the rails is the cost."""
    (fault,) = fails(rule, down())

    assert (PORT, "mlx5_1/1 (eth1)", "error", "") == (fault.subject, fault.label, fault.severity, fault.cause)
    assert "DOWN: eth1 has no carrier" == fault.summary
    assert "1 of 4 rails: this node injects 25% less" in fault.impact
    assert ["DOWN", "down", "up", "OSFP NVIDIA MMA4Z00-NS400 MT0001 ready"] == [row.value for row in fault.evidence]
    assert "/sys/class/infiniband/mlx5_1/ports/1/state" == fault.evidence[0].source
    assert {NIC, f"{NIC}/1"} <= fault.ids


def module(*dark: int) -> TransceiverModule:
    return TransceiverModule(lanes=[Lane(lane=n, flags=["rx_los"] if n in dark else []) for n in (1, 2)])


def test_one_known_rail_is_enough() -> None:
    """A NIC of unknown use beside rails is not expected."""
    assert [NotApplicable(PORT, "role unknown: nothing is expected of it")] == answers(
        rule, changed_nic(down(), 1, role="unknown"), PORT
    )


@pytest.mark.parametrize(
    ("interface", "rows"),
    [
        ({"admin_up": False}, ["eth1 is set: down", "module of eth1: OSFP NVIDIA MMA4Z00-NS400 MT0001 ready"]),
        ({"admin_up": None, "module": None, "module_reason": "EPERM"}, ["module of eth1: EPERM"]),
        ({"module": None}, ["eth1 is set: up"]),
    ],
)
def test_what_was_not_read_of_a_link_that_is_down_is_no_evidence(interface, rows: list[str]) -> None:
    """Beside the states of port and interface."""
    (fault,) = fails(rule, down(**interface))

    assert rows == [f"{row.what}: {row.value}" for row in fault.evidence[2:]]


def test_what_a_rail_costs_is_its_share() -> None:
    """Of two; of a single one all; of several that are down their sum."""
    single = changed_port(server(1, ethernet=True), 0, state="DOWN", phys_state="LinkUp")

    several = changed_port(down(), 2, state="DOWN", phys_state="Disabled")

    assert fails(rule, down(2))[0].impact.startswith("1 of 2 rails: this node injects 50% less")
    assert fails(rule, several)[0].impact.startswith("2 of 4 rails are down: this node injects 50% less")
    assert fails(rule, single)[0].impact.startswith("This port carries nothing")
