"""Corners of the comparison, without a NetBox: what identifies a device, ports and cables, what is left alone, what
people settle.
"""

from __future__ import annotations

from typing import Any

from agent.netbox import diff_devices, diff_interfaces, diff_modules
from agent.netbox.changes import DiffResult, ObjectRef
from agent.netbox.diff_modules import DeviceDiff
from agent.netbox.state import (
    CablePeer,
    CableRef,
    CustomField,
    MacAddress,
    ModuleBay,
    ModuleType,
    NestedRow,
    NetBoxCable,
    NetBoxChoice,
    NetBoxDevice,
    NetBoxInterface,
    SharedState,
)
from agent.outputs.inventory import objects
from tests.agent.netbox.nodes import ETHERNET, GPUS, changed, gpu, linked, nic, node, port
from tests.agent.netbox.store import DEVICE, GUESS, H100, NAMED, OURS, bay, interface, make_diff, module, short


def modules_of(what: DeviceDiff) -> DiffResult:
    """What is to be done about modules."""
    return diff_modules.diff_modules(what, diff_modules.pair_modules(what))


def gpus(*modules: objects.InventoryModule) -> objects.DesiredNode:
    """A node with these modules and no ports."""
    return changed(node(None), modules=list(modules), interfaces=[])


def test_gpus_of_one_board_share_its_serial_number_and_are_told_by_uuid() -> None:
    """Neither is taken for the other, and neither is made twice."""
    board = [gpu(GPUS[0], "1", serial="B"), gpu(GPUS[1], "2", serial="B")]
    has = [module(at, at, "B", description=each.description) for at, each in enumerate(board, start=1)]

    assert [] == modules_of(make_diff(gpus(*board), bays=[bay(1, GPUS[0]), bay(2, GPUS[1])], modules=has)).changes


def test_a_gpu_without_a_serial_number_is_known_by_its_uuid_where_it_moves() -> None:
    """GeForce has none."""
    made = gpu(GPUS[1], "1", serial=None)
    found = modules_of(
        make_diff(gpus(made), bays=[bay(1, GPUS[0])], modules=[module(1, 1, description=made.description)])
    )

    assert [f"create module bay {GPUS[1]}", f"update module {GPUS[1]} {{'bay': '{GPUS[1]}'}}"] == short(found.changes)


def test_what_a_run_without_root_cannot_say_is_not_taken_away() -> None:
    """Nor a model that is only guessed by its PCI id."""
    blind = gpu(GPUS[0], "1", serial=None, description=None, model="H100 SXM5 80GB", certain=False)
    has = module(1, 1, "1650421", description="GPU-x")

    assert [] == modules_of(make_diff(gpus(blind), types=(H100, GUESS), bays=[bay(1, GPUS[0])], modules=[has])).changes


def test_a_guessed_model_becomes_the_true_one() -> None:
    """As soon as a driver tells it."""
    has = module(
        1, 1, "1650421", description=gpu("", "1").description, module_type=NestedRow(id=6, model="H100 SXM5 80GB")
    )

    found = modules_of(make_diff(gpus(gpu(GPUS[0], "1")), types=(H100, GUESS), bays=[bay(1, GPUS[0])], modules=[has]))
    assert [f"update module {GPUS[0]} {{'model': 'NVIDIA H100 80GB HBM3'}}"] == short(found.changes)


def test_a_type_that_people_made_stays_and_is_found_by_its_part_number() -> None:
    """Ours is not better."""
    has = module(1, 1, "1650421", description=gpu("", "1").description, module_type=NestedRow(id=8, model="HGX H100"))

    assert (
        []
        == modules_of(make_diff(gpus(gpu(GPUS[0], "1")), types=(NAMED,), bays=[bay(1, GPUS[0])], modules=[has])).changes
    )
    new = modules_of(make_diff(gpus(gpu(GPUS[0], "1")), types=(NAMED,))).changes
    assert 8 == new[1].body["module_type"]
    foreign = ModuleType(id=9, manufacturer=NestedRow(id=2, name="PNY"), model="H100 80GB HBM3")
    made = modules_of(make_diff(gpus(gpu(GPUS[0], "1")), types=(foreign,))).changes
    assert ObjectRef("module type", "", "NVIDIA H100 80GB HBM3") == made[1].body["module_type"]


def test_a_module_with_an_asset_tag_is_a_thing_that_somebody_counts() -> None:
    """It does not become another one: a person has to say where it went."""
    has = module(1, 1, "1650421", asset_tag="A-77")
    found = modules_of(make_diff(gpus(gpu(GPUS[0], "9")), bays=[bay(1, GPUS[0])], modules=[has]))

    assert ([], [True]) == (found.changes, [note.conflict for note in found.notes])
    assert "asset tag A-77 and the serial number 1650421 in NetBox, and the node has 1650429" in found.notes[0].text
    same = module(1, 1, "1650429", asset_tag="A-77", description=gpu("", "9").description)
    assert ([], []) == modules_of(make_diff(gpus(gpu(GPUS[0], "9")), bays=[bay(1, GPUS[0])], modules=[same]))


def test_a_device_serial_number_does_not_replace_one_from_a_label() -> None:
    """What PCI tells of a card is printed nowhere; what people typed is."""
    card = nic(ETHERNET, "ConnectX-7", "33-9c-bf")
    theirs = module(1, 1, "MT2245X01234", ours=False)
    nobody = module(1, 1, "", ours=False)

    assert [] == modules_of(make_diff(gpus(card), bays=[bay(1, ETHERNET)], modules=[theirs])).changes
    filled = modules_of(make_diff(gpus(card), bays=[bay(1, ETHERNET)], modules=[nobody])).changes
    assert [f"update module {ETHERNET} {{'serial': '{card.serial}'}}"] == short(filled)


def test_two_bays_of_one_name_are_one() -> None:
    """NetBox lets them be; the one that holds the module counts, and pruning takes the other."""
    bays = [bay(1, GPUS[0]), bay(2, GPUS[0])]
    bays[1] = ModuleBay(id=2, device=DEVICE, name=GPUS[0], tags=OURS, installed_module=NestedRow(id=1))
    has = module(1, 2, "1650421", description=gpu("", "1").description)

    found = modules_of(make_diff(gpus(gpu(GPUS[0], "1")), prune=True, bays=bays, modules=[has]))
    assert [("delete", "module bay", 1)] == [(c.action, c.kind, c.id) for c in found.changes]


def test_a_place_that_another_module_holds_is_told_and_not_forced() -> None:
    """A GPU moved to where NetBox has one that is gone; until that is pruned it stays where it was."""
    moved = gpus(gpu(GPUS[0], "3"), gpu(GPUS[1], "1"))
    bays = [bay(1, GPUS[0]), bay(2, GPUS[1])]
    has = [module(1, 1, "1650421", description=gpu("", "1").description), module(2, 2, "1650422", description="GPU-2")]

    kept = modules_of(make_diff(moved, bays=bays, modules=has))
    assert ([], [True, False]) == (short(kept.changes), [note.conflict for note in kept.notes])

    pruned = modules_of(make_diff(moved, prune=True, bays=bays, modules=has))
    assert [
        f"create module {GPUS[0]}",
        f"delete module {GPUS[1]}",
        f"update module {GPUS[1]} {{'bay': '{GPUS[1]}'}}",
    ] == short(pruned.changes)


def test_a_run_that_was_interrupted_while_two_changed_places_is_finished() -> None:
    """One of them still stands aside."""
    bays = [bay(1, GPUS[0]), bay(2, GPUS[1]), bay(9, diff_modules.TEMPORARY_BAY)]
    has = [module(at, where, f"165042{at}", description=gpu("", str(at)).description) for at, where in ((1, 9), (2, 2))]

    found = modules_of(make_diff(gpus(gpu(GPUS[0], "2"), gpu(GPUS[1], "1")), bays=bays, modules=has))
    assert [(GPUS[0], 0), (GPUS[1], 1)] == [(change.after["bay"], change.step) for change in found.changes]


def test_pruning_spares_a_module_that_others_use() -> None:
    """An interface of theirs in it, or a cable of theirs at it, would go with it."""
    gone = module(3, 1)
    for wire in (interface(1, "a", ours=False), interface(1, "a", cable=CableRef(4))):
        has = {"bays": [bay(1, "NIC x")], "modules": [gone], "interfaces": [wire], "cables": {4: NetBoxCable(id=4)}}
        found = modules_of(make_diff(gpus(), prune=True, **has))
        assert ([], 1) == (found.changes, len(found.notes))
        assert "so it stays" in found.notes[0].text


def test_a_bay_that_goes_is_not_mistaken_for_the_module_of_its_number() -> None:
    """Numbers are of a kind: bay 2 is pruned, module 2 stays, and holds the bay that another should have."""
    moved = gpus(gpu(GPUS[0], "3"), gpu(GPUS[1], "1"))
    bays = [bay(1, GPUS[0]), bay(5, GPUS[1]), bay(2, "GPU gone")]
    has = [module(1, 1, "1650421", description=gpu("", "1").description), module(2, 5, "1650422", ours=False)]

    found = modules_of(make_diff(moved, prune=True, bays=bays, modules=has))
    assert (["delete module bay GPU gone"], [True]) == (short(found.changes), [note.conflict for note in found.notes])


def test_fields_that_exist_for_other_objects_are_widened() -> None:
    """And not made a second time."""
    fields = [CustomField(id=1, name="fabricscope_verdict", object_types=["dcim.rack"])]
    found = diff_devices.diff_shared([], SharedState(custom_fields=fields, tags=OURS), [])

    assert [
        "update custom field fabricscope_verdict {'of': 'devices'}",
        "create custom field fabricscope_findings",
    ] == short(found)
    assert ["dcim.rack", "dcim.device"] == found[0].body["object_types"]


def test_a_maker_is_found_by_its_slug_too() -> None:
    """NetBox takes neither a name nor a slug twice."""
    makers = [NestedRow(id=3, name="NVIDIA Corporation", slug="nvidia")]
    what = make_diff(gpus(gpu(GPUS[0], "1")), types=())
    wanted = modules_of(what).changes

    found = diff_devices.diff_shared([what.node], SharedState(tags=OURS, manufacturers=makers), wanted)
    assert 3 == next(change for change in found if change.kind == "module type").body["manufacturer"]
    assert "manufacturer" not in {change.kind for change in found}


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
