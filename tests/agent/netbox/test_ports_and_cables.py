"""Corners of the comparison of ports and cables, without a NetBox."""

from __future__ import annotations

from typing import Any

from agent.netbox import diff_interfaces, diff_modules
from agent.netbox.changes import DiffResult
from agent.netbox.diff_modules import DeviceDiff
from agent.netbox.state import (
    CablePeer,
    CableRef,
    MacAddress,
    NestedRow,
    NetBoxCable,
    NetBoxChoice,
    NetBoxDevice,
    NetBoxInterface,
    SharedState,
)
from agent.outputs.inventory import objects
from tests.agent.netbox.nodes import ETHERNET, changed, linked, nic, node, port
from tests.agent.netbox.store import OURS, bay, interface, make_diff, module, short


def interfaces_of(what: DeviceDiff) -> DiffResult:
    """What is to be done about interfaces."""
    return diff_interfaces.diff_interfaces(what, diff_modules.pair_modules(what), diff_interfaces.pair_ports(what))


def test_a_card_without_a_driver_keeps_its_ports() -> None:
    """No driver tells them; they are still there."""
    card = nic(ETHERNET, "ConnectX-7", "33-9c-bf", ports_known=False)
    has = {
        "bays": [bay(1, ETHERNET)],
        "modules": [module(3, 1, card.serial or "")],
        "interfaces": [interface(1, "ens1")],
    }

    result = interfaces_of(make_diff(changed(carded(), modules=[card]), prune=True, **has))
    assert ([], ["interface ens1 is not in the report; the report does not list all ports, so it stays"]) == (
        result.changes,
        [note.text for note in result.notes],
    )


def wired(**port_changes: Any) -> dict[str, Any]:
    """A card with one port in NetBox, as the node has it."""
    card = nic(ETHERNET, "ConnectX-7", "33-9c-bf")
    remaining = module(3, 1, card.serial or "", description=card.description)
    mac = MacAddress(
        id=2, mac_address="B8:3F:D2:33:9C:B0", assigned_object_type="dcim.interface", assigned_object_id=1, tags=OURS
    )
    one = interface(1, "ens1f0np0", **{"primary_mac_address": NestedRow(id=2), **port_changes})
    return {"bays": [bay(1, ETHERNET)], "modules": [remaining], "interfaces": [one], "macs": [mac]}


def carded(*ports: objects.InventoryInterface) -> objects.DesiredNode:
    """A node with one card."""
    return changed(node(None), modules=[nic(ETHERNET, "ConnectX-7", "33-9c-bf")], interfaces=list(ports))


def test_a_port_as_it_is_needs_nothing() -> None:
    """Also a bond's member, whose address is not its own, and one whose type is not certain today."""
    unsure = port("ens1f0np0", "B0", type="other", certain=False, speed_kbit_s=None)

    assert [] == interfaces_of(make_diff(carded(port("ens1f0np0", "B0")), **wired())).changes
    assert [] == interfaces_of(make_diff(carded(port("ens1f0np0", "", mac=None)), **wired())).changes
    assert [] == interfaces_of(make_diff(carded(unsure), **wired())).changes


def test_a_port_that_becomes_known_better_is_corrected() -> None:
    """Type, speed, and the module it is in."""
    has = wired(type=NetBoxChoice("other"), speed=None, module=None)

    result = interfaces_of(make_diff(carded(port("ens1f0np0", "B0")), **has)).changes
    assert [{"type": "100gbase-x-qsfp28", "speed": "100000000", "module": ETHERNET}] == [
        change.after for change in result
    ]


def test_an_address_that_people_chose_as_primary_stays() -> None:
    """As long as ours is among the interface's."""
    has = wired(primary_mac_address=NestedRow(id=9))
    has["macs"].append(
        MacAddress(id=9, mac_address="02:00:00:00:00:01", assigned_object_type="dcim.interface", assigned_object_id=1)
    )

    assert [] == interfaces_of(make_diff(carded(port("ens1f0np0", "B0")), **has)).changes
    other = interfaces_of(make_diff(carded(port("ens1f0np0", "C0")), **has)).changes
    assert ["create MAC address ens1f0np0", "update interface ens1f0np0 {'primary MAC': 'B8:3F:D2:33:9C:C0'}"] == short(
        other
    )


def test_a_name_that_another_interface_has_is_told() -> None:
    """By MAC address it is ours; the name belongs to one of others."""
    has = wired()
    has["interfaces"].append(interface(2, "ens9", ours=False))

    result = interfaces_of(make_diff(carded(port("ens9", "B0")), **has))
    assert ([], [True]) == (result.changes, [note.conflict for note in result.notes])
    assert "interface ens1f0np0 is ens9 on the node" in result.notes[0].text


def test_addresses_of_bonds_and_bridges_do_not_mislead() -> None:
    """They borrow the address of a member."""
    has = wired()
    has["interfaces"].insert(0, interface(4, "bond0", type=NetBoxChoice("lag")))
    has["macs"].append(
        MacAddress(id=5, mac_address="B8:3F:D2:33:9C:B0", assigned_object_type="dcim.interface", assigned_object_id=4)
    )

    assert [] == [c for c in interfaces_of(make_diff(carded(port("ens1f0np0", "B0")), **has)).changes if c.id != 4]


def cabled(near: dict[str, Any], far: dict[str, Any] | None = None) -> DiffResult:
    """What is to be done about a port that LLDP says leads to swp1 of a switch."""
    one = changed(carded(port("ens1f0np0", "B0")), cables=linked("leaf"))
    what = make_diff(one, cables={4: NetBoxCable(id=4)}, **wired(**near))
    end = NetBoxInterface(
        id=50, device=NestedRow(id=9, name="leaf"), name="swp1", type=NetBoxChoice("other"), **(far or {})
    )
    shared = SharedState(devices=[NetBoxDevice(id=9, name="leaf")], interfaces=[end])
    return diff_interfaces.diff_cables(what, diff_interfaces.pair_ports(what), shared)


def test_cables_of_others_and_through_panels_are_left_alone() -> None:
    """A difference is told; what a patch panel hides is none."""
    peer = {"cable": CableRef(4), "link_peers_type": "dcim.interface"}

    assert ["create cable ens1f0np0"] == short(cabled({}).changes)
    assert DiffResult([], []) == cabled({**peer, "link_peers": [CablePeer(50, "swp1")]})
    assert DiffResult([], []) == cabled({**peer, "link_peers_type": "dcim.frontport", "link_peers": [CablePeer(3)]})
    elsewhere = cabled({**peer, "link_peers": [CablePeer(51, "swp9", NestedRow(id=9, name="leaf"))]})
    assert ([], "ens1f0np0 leads to leaf swp9 in NetBox, and to leaf swp1 by LLDP") == (
        elsewhere.changes,
        elsewhere.notes[0].text,
    )
    taken = cabled({}, {"cable": CableRef(5)})
    assert ([], [True]) == (taken.changes, [note.conflict for note in taken.notes])
