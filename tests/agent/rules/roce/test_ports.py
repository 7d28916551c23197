"""Which ports are RoCE ports, and when the faults of all of them are one."""

from __future__ import annotations

import pytest

from agent.rules.node_wide import merge_if_on_all
from agent.rules.roce.counters import roce_rt_crc
from agent.rules.roce.ports import RocePort, roce_ports
from agent.rules.rule import Fail, NotApplicable, Unknown
from tests.agent.rules.build import changed_netdev, changed_nic, changed_port, fails, nic_id, probe, server, topology
from tests.agent.rules.moves import moved, roce

PORT = f"port:{nic_id(1)}/1"


def made(n: int, **changes) -> Fail:
    """A fault of one port."""
    values = {"summary": "", "impact": "", "remedy": "", "evidence": (), "severity": "error"} | changes
    return Fail(subject=f"port:{n}", label=f"mlx5_{n}", places=frozenset({str(n)}), **values)


@pytest.mark.parametrize(
    ("faults", "judged", "subjects"),
    [
        ([], 0, []),
        ([made(0)], 1, ["port:0"]),
        ([made(0), made(1)], 2, ["node"]),
        ([made(0), made(1)], 3, ["port:0", "port:1"]),
        ([made(0), made(1, severity="warning")], 2, ["port:0", "port:1"]),
        ([made(0), made(1, cause="x")], 2, ["port:0", "port:1"]),
        ([made(0), made(1), made(2)], 3, ["node"]),
    ],
)
def test_the_same_of_all_is_one(faults, judged: int, subjects: list[str]) -> None:
    """Two at least, all that were judged, as grave and of one cause."""
    assert subjects == [fault.subject for fault in merge_if_on_all(faults, judged, "all")]


@pytest.mark.parametrize(
    ("state", "down", "kind"),
    [
        ("ACTIVE", False, None),
        ("ACTIVE", True, None),
        ("DOWN", False, NotApplicable),
        ("DOWN", True, None),
        (None, False, Unknown),
        (None, True, Unknown),
    ],
)
def test_ports_that_are_down_are_wanted_by_some(state: str | None, down: bool, kind: type | None) -> None:
    """One whose state was not read is unknown to all."""
    (found,) = [
        each for each in roce_ports(changed_port(server(ethernet=True), 1, state=state), down) if each.subject == PORT
    ]

    assert kind is None or isinstance(found, kind)
    assert kind is not None or not isinstance(found, NotApplicable | Unknown)


def test_a_nic_of_unknown_use_is_unknown_where_the_half_read_bus_does_not_show_it() -> None:
    """Where it is shown, nothing is expected of it."""
    case = probe(changed_nic(server(ethernet=True), 1, role="unknown"), "pci", "failed", "x")
    hidden = topology(case, pci=[f for f in case.topology.pci if f.id != nic_id(1)])

    def of(each):
        return next(type(port) for port in roce_ports(each) if port.subject == PORT)

    assert NotApplicable is of(case)
    assert Unknown is of(hidden)
    assert Unknown is not of(changed_nic(hidden, 1, role="rail"))


def test_no_port_is_one_answer_where_somebody_looked() -> None:
    """At the bus, or at RDMA."""
    bare = topology(server(ethernet=True), nics=[])
    half = probe(bare, "pci", "failed", "x")

    assert [NotApplicable("node", "no RoCE port")] == list(roce_ports(bare))
    assert [NotApplicable("node", "no RoCE port")] == list(roce_ports(half))
    assert [] == list(roce_ports(probe(half, "rdma", "failed", "x")))


def test_a_port_is_about_the_bus_too() -> None:
    """A sub-function has an id of its own, and the place of its card."""
    case = changed_nic(server(ethernet=True), 1, id="mlx5_core.sf.4")
    found = [each.places for each in roce_ports(case) if isinstance(each, RocePort)]

    assert {"mlx5_core.sf.4/1", "mlx5_core.sf.4", nic_id(1)} in found


def test_a_fault_is_about_the_port_and_its_interface() -> None:
    """Told by the name of the port, found by either."""
    case = changed_netdev(roce(), 1, id="eth1 of 25:00.0")
    (fault,) = fails(roce_rt_crc, moved(case, "netdev:eth1 of 25:00.0", {"rx_crc_errors_phy": 10}))

    assert (PORT, "mlx5_1/1 (eth1)") == (fault.subject, fault.label)
    assert {"eth1 of 25:00.0", PORT.removeprefix("port:")} <= fault.places
