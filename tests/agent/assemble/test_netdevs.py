"""Interfaces: identity by place where that is unique, else by name."""

from __future__ import annotations

from agent.model.nic import Netdev as Row
from probes.netdev.probe import Netdev, NetdevFacts
from tests.agent.assemble.hosts import assemble_facts, hgx

NIC = "0000:14:00.0"


def rows(*interfaces: Netdev) -> list[Row]:
    """The rows of a machine with one NIC."""
    return assemble_facts(pci=hgx(1).facts(), netdev=NetdevFacts(interfaces)).topology.netdevs


def test_an_interface_is_known_by_its_function() -> None:
    """Names change; the function below does not. Its NIC is referred to."""
    (row,) = rows(Netdev("ens1f0np0", NIC, speed_mbit_s=400000, mtu=9000, addresses=("fe80::2/64", "10.0.0.1/24")))

    assert (NIC, "ens1f0np0", NIC, NIC, 400.0, ["10.0.0.1/24", "fe80::2/64"]) == (
        row.id,
        row.label,
        row.pci,
        row.nic,
        row.speed_gbit_s,
        row.addresses,
    )


def test_two_ports_on_one_function_are_told_apart_by_port_or_by_name() -> None:
    """As ConnectX-3 has them."""
    by_port = rows(Netdev("a", NIC, dev_port=0), Netdev("b", NIC, dev_port=1))
    by_name = rows(Netdev("a", NIC), Netdev("b", NIC, dev_port=1))
    alike = rows(Netdev("a", NIC, dev_port=0), Netdev("b", NIC, dev_port=0))

    assert [f"{NIC}/0", f"{NIC}/1"] == [row.id for row in by_port]
    assert ["a", "b"] == [row.id for row in by_name] == [row.id for row in alike]


def test_what_is_stacked_on_a_port_does_not_take_its_identity() -> None:
    """Representors of virtual functions and VLANs share the address."""
    interfaces = (
        Netdev("eth0", NIC, port_name="p0"),
        Netdev("eth0_rep3", NIC, port_name="pf0vf3"),
        Netdev("eth0.100", NIC, vlan={"parent": "eth0", "id": 100}),
        Netdev("br0", virtual=True),
    )
    result = {row.label: row.id for row in rows(*interfaces)}

    assert {"eth0": NIC, "eth0_rep3": "eth0_rep3", "eth0.100": "eth0.100", "br0": "br0"} == result


def test_unknown_stays_null() -> None:
    """A port that is down has no speed, not 0."""
    (row,) = rows(Netdev("eth0", NIC))

    assert (None, None, None, {}) == (row.speed_gbit_s, row.mtu, row.bond, row.counters)


def test_bonds_keep_their_slaves() -> None:
    """In the source's order."""
    (row,) = rows(Netdev("bond0", bond={"slaves": ("b", "a"), "mode": "802.3ad"}, virtual=True))

    assert {"mode": "802.3ad", "slaves": ["b", "a"]} == row.bond
