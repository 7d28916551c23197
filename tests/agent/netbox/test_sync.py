"""Nodes into a NetBox, and again: what is made, that nothing is made twice, and what is left alone."""

from __future__ import annotations

from typing import Any

from agent.netbox.changes import NetBoxChange
from agent.netbox.run import ApplyOptions, ApplyResult, DevicePlacement, apply, plan
from agent.outputs.inventory.objects import DesiredNode
from tests.agent.netbox.conftest import House
from tests.agent.netbox.nodes import (
    ETHERNET,
    GPUS,
    INFINIBAND,
    SWITCH,
    changed,
    finding,
    gpu,
    linked,
    node,
    port,
    report_nodes,
)


def applied(house: House, *nodes: DesiredNode, **wish: Any) -> ApplyResult:
    """Apply, and hold that a second time changes nothing, and a plan says so."""
    done = apply(house.client(), report_nodes(*nodes), ApplyOptions(**wish), wait=lambda _: None)
    again = apply(house.client(), report_nodes(*nodes), ApplyOptions(**wish), wait=lambda _: None)
    assert [] == told(again.done)
    assert [] == told(plan(house.client(), report_nodes(*nodes), ApplyOptions(**wish)).changes)
    assert [] == again.failed
    return done


def told(changes: list[NetBoxChange]) -> list[str]:
    """Changes in short."""
    return [f"{change.action} {change.kind} {change.name}" for change in changes]


def test_a_node_that_netbox_knows_by_serial_gets_its_parts(house: House) -> None:
    """Modules in bays, ports in modules, MAC address and GUID, model and maker; once."""
    device = house.device("other-name", serial=node(house).serial)

    done = applied(house, node(house))

    modules = {row["module_bay"]["name"]: row for row in house.rows("dcim/modules", device_id=device)}
    ports = {row["name"]: row for row in house.rows("dcim/interfaces", device_id=device)}
    assert {*GPUS, ETHERNET, INFINIBAND, SWITCH} == set(modules)
    assert ("1650420", "H100 80GB HBM3") == (modules[GPUS[0]]["serial"], modules[GPUS[0]]["module_type"]["model"])
    assert "NVIDIA" == modules[GPUS[0]]["module_type"]["manufacturer"]["name"]
    assert ETHERNET == ports["ens1f0np0"]["module"]["module_bay"]["name"]
    assert ("100gbase-x-qsfp28", 100_000_000) == (ports["ens1f0np0"]["type"]["value"], ports["ens1f0np0"]["speed"])
    assert "B8:3F:D2:33:9C:B0" == ports["ens1f0np0"]["primary_mac_address"]["mac_address"]
    assert ("infiniband-ndr", "B8:3F:D2:03:00:76:F9:6B") == (ports["ibp26s0"]["type"]["value"], ports["ibp26s0"]["wwn"])
    assert all([tag["slug"] for tag in row["tags"]] == ["fabricscope"] for row in [*modules.values(), *ports.values()])
    fields = house.rows("dcim/devices", id=device)[0]["custom_fields"]
    assert ("ok", "none") == (fields["fabricscope_verdict"], fields["fabricscope_findings"])
    assert ([], "serial", None) == (done.failed, done.plan.matches[0].by, done.broken)


def test_a_name_will_do_and_the_serial_number_is_filled_in(house: House) -> None:
    """Also where the node says a whole domain name."""
    device = house.device("gpu01")

    done = applied(house, changed(node(house), name=f"GPU01-{house.mark}.example.com"))

    assert "name" == done.plan.matches[0].by
    assert node(house).serial == house.rows("dcim/devices", id=device)[0]["serial"]


def test_two_gpus_that_change_places_stay_themselves(house: House) -> None:
    """Also three in a ring. A module is a thing, and its asset tag goes with it."""
    device = house.device("gpu01", serial=node(house).serial)
    bays = [*GPUS, "GPU 0000:4c:00.0"]
    before = changed(node(house), modules=[gpu(bay, f"{at}") for at, bay in enumerate(bays)], interfaces=[])
    applied(house, before)
    first = house.rows("dcim/modules", device_id=device, serial="1650420")[0]
    house.patch("dcim/modules", first["id"], asset_tag=f"A-{house.mark}")

    ring = [gpu(bay, f"{(at + 1) % 3}") for at, bay in enumerate(bays)]
    applied(house, changed(before, modules=ring))

    rows = {row["serial"]: row for row in house.rows("dcim/modules", device_id=device)}
    assert {"1650421": bays[0], "1650422": bays[1], "1650420": bays[2]} == {
        serial: row["module_bay"]["name"] for serial, row in rows.items()
    }
    assert (first["id"], f"A-{house.mark}") == (rows["1650420"]["id"], rows["1650420"]["asset_tag"])


def test_a_gpu_that_was_replaced_is_another_one_in_its_place(house: House) -> None:
    """Serial, UUID and model."""
    device = house.device("gpu01", serial=node(house).serial)
    applied(house, node(house))

    other = gpu(GPUS[0], "9", model="H200")
    applied(house, changed(node(house), modules=[other, *node(house).modules[1:]]))

    row = next(r for r in house.rows("dcim/modules", device_id=device) if r["module_bay"]["name"] == GPUS[0])
    assert ("1650429", "H200", other.description) == (row["serial"], row["module_type"]["model"], row["description"])


def test_interfaces_that_change_their_names_keep_what_hangs_on_them(house: House) -> None:
    """udev renames: two ports swap their names, and are recognized by their MAC addresses."""
    device = house.device("gpu01", serial=node(house).serial)
    applied(house, node(house))
    before = {row["name"]: row["id"] for row in house.rows("dcim/interfaces", device_id=device)}

    swapped = [port("ens1f0np0", "B1"), port("ens1f1np1", "B0"), node(house).interfaces[2]]
    applied(house, changed(node(house), interfaces=swapped))

    after = {row["name"]: row["id"] for row in house.rows("dcim/interfaces", device_id=device)}
    assert (before["ens1f1np1"], before["ens1f0np0"]) == (after["ens1f0np0"], after["ens1f1np1"])
    assert 3 == len(after)


def test_a_new_card_brings_new_addresses_to_the_same_ports(house: House) -> None:
    """A NIC was replaced: names as before, MAC addresses another; the old ones are gone, as we made them."""
    device = house.device("gpu01", serial=node(house).serial)
    applied(house, node(house))

    applied(house, changed(node(house), interfaces=[port("ens1f0np0", "C0"), *node(house).interfaces[1:]]))

    macs = [row["mac_address"] for row in house.rows("dcim/mac-addresses", device_id=device)]
    assert ["B8:3F:D2:33:9C:B1", "B8:3F:D2:33:9C:C0"] == sorted(macs)


def test_findings_become_a_journal_entry_when_their_set_changes(house: House) -> None:
    """New ones, gone ones, and no word while nothing changes."""
    device = house.device("gpu01", serial=node(house).serial)
    one, two = finding("aaaaaaaaaaaaaaa1"), finding("aaaaaaaaaaaaaaa2", "warning", "roce-mtu-small", "ens1f0np0")

    def entries() -> list[tuple[str, str]]:
        rows = house.rows("extras/journal-entries", assigned_object_id=device, assigned_object_type="dcim.device")
        return [(row["kind"]["value"], row["comments"]) for row in sorted(rows, key=lambda row: int(row["id"]))]

    applied(house, node(house))
    assert [] == entries()

    applied(house, changed(node(house), verdict="error", findings=[one]))
    applied(house, changed(node(house), verdict="error", findings=[two, one]))
    applied(house, changed(node(house), verdict="warning", findings=[two]))
    applied(house, node(house))

    kinds = [kind for kind, _ in entries()]
    heads = [comments.splitlines()[0] for _, comments in entries()]
    assert ["danger", "warning", "success", "success"] == kinds
    assert [
        "**fabricscope**: 1 new",
        "**fabricscope**: 1 new, 1 as before",
        "**fabricscope**: 1 gone, 1 as before",
        "**fabricscope**: 1 gone",
    ] == heads
    assert "`pcie-width-downgraded` `GPU2`" in entries()[2][1]
    fields = house.rows("dcim/devices", id=device)[0]["custom_fields"]
    assert ("ok", "none") == (fields["fabricscope_verdict"], fields["fabricscope_findings"])


def test_what_people_made_is_filled_in_and_never_altered(house: House) -> None:
    """A module of theirs with the serial number, an interface of theirs with the name: used as they are."""
    device = house.device("gpu01", serial=node(house).serial)
    maker = house.post("dcim/manufacturers", name=f"Own {house.mark}", slug=f"own-{house.mark}")["id"]
    kind = house.post("dcim/module-types", manufacturer=maker, model="Our GPU")["id"]
    bay = house.post("dcim/module-bays", device=device, name="GPU-1")["id"]
    module = house.post(
        "dcim/modules", device=device, module_bay=bay, module_type=kind, serial="1650420", description="theirs"
    )["id"]
    own = house.post("dcim/interfaces", device=device, name="ens1f0np0", type="other")["id"]
    plug = house.post("dcim/interfaces", device=device, name="rail 0", type="other", wwn="B8:3F:D2:03:00:76:F9:6B")[
        "id"
    ]

    applied(house, node(house), prune=True)

    rows = {row["id"]: row for row in house.rows("dcim/modules", device_id=device)}
    assert 5 == len(rows)
    theirs = rows[module]
    assert ("theirs", "Our GPU", "GPU-1") == (
        theirs["description"],
        theirs["module_type"]["model"],
        theirs["module_bay"]["name"],
    )
    ports = {row["id"]: row for row in house.rows("dcim/interfaces", device_id=device)}
    assert {own, plug} <= set(ports)
    assert ("other", "B8:3F:D2:33:9C:B0") == (
        ports[own]["type"]["value"],
        ports[own]["primary_mac_address"]["mac_address"],
    )
    assert ("rail 0", None) == (ports[plug]["name"], ports[plug]["module"])


def test_what_is_gone_stays_until_pruning_is_asked_for(house: House) -> None:
    """And then only what the tool made."""
    device = house.device("gpu01", serial=node(house).serial)
    applied(house, node(house))
    less = changed(node(house), modules=node(house).modules[:2], interfaces=[])

    remaining = applied(house, less)
    assert 5 == len(house.rows("dcim/modules", device_id=device))
    assert 3 == sum("--prune removes it" in note.text for note in remaining.plan.notes)
    assert remaining.in_step

    applied(house, less, prune=True)
    assert [*GPUS] == sorted(row["module_bay"]["name"] for row in house.rows("dcim/modules", device_id=device))
    assert [*GPUS] == sorted(row["name"] for row in house.rows("dcim/module-bays", device_id=device))
    assert [] == house.rows("dcim/interfaces", device_id=device)


def test_a_report_that_does_not_know_all_prunes_nothing(house: House) -> None:
    """A scan in which the PCI tree could not be read as a whole."""
    device = house.device("gpu01", serial=node(house).serial)
    applied(house, node(house))

    blind = changed(node(house), modules=[], interfaces=[], modules_known=False, interfaces_known=False)
    applied(house, blind, prune=True)

    assert 5 == len(house.rows("dcim/modules", device_id=device))
    assert 3 == len(house.rows("dcim/interfaces", device_id=device))


def test_a_cable_leads_where_lldp_says(house: House) -> None:
    """Once both ends are in NetBox; an unknown switch is a word, and no error."""
    house.device("gpu01", serial=node(house).serial)
    switch = house.device("leaf")
    far = house.post("dcim/interfaces", device=switch, name="swp1", type="other")["id"]
    with_link = changed(node(house), cables=linked(f"leaf-{house.mark}.example.com", "SWP1"))

    done = applied(house, with_link)
    row = house.rows("dcim/interfaces", id=far)[0]

    assert (["ens1f0np0"], []) == ([peer["name"] for peer in row["link_peers"]], done.plan.notes)
    elsewhere = applied(house, changed(with_link, cables=linked("nobody")))
    assert ["no cable at ens1f0np0: NetBox has no device called nobody"] == [n.text for n in elsewhere.plan.notes]
    assert elsewhere.in_step


def test_a_cable_that_leads_elsewhere_is_told_and_ours_is_replaced_when_pruning(house: House) -> None:
    """A cable of others never."""
    device = house.device("gpu01", serial=node(house).serial)
    switch = house.device("leaf")
    ports = [house.post("dcim/interfaces", device=switch, name=f"swp{at}", type="other")["id"] for at in (1, 2)]
    first = changed(node(house), cables=linked(f"leaf-{house.mark}", "swp1"))
    second = changed(node(house), cables=linked(f"leaf-{house.mark}", "swp2"))
    applied(house, first)

    moved = applied(house, second)
    assert ([True], False) == ([note.conflict for note in moved.plan.notes], moved.in_step)
    assert moved.plan.notes[0].text.endswith("--prune replaces it")

    applied(house, second, prune=True)
    assert 1 == len(house.rows("dcim/interfaces", id=ports[1])[0]["link_peers"])
    assert None is house.rows("dcim/interfaces", id=ports[0])[0]["cable"]
    cable = house.rows("dcim/interfaces", device_id=device, name="ens1f0np0")[0]["cable"]["id"]
    house.patch("dcim/cables", cable, tags=[])

    assert not applied(house, first, prune=True).in_step
    assert 1 == len(house.rows("dcim/interfaces", id=ports[1])[0]["link_peers"])


def test_pruning_an_interface_takes_its_cable_along(house: House) -> None:
    """NetBox would leave it hanging from the switch."""
    house.device("gpu01", serial=node(house).serial)
    switch = house.device("leaf")
    far = house.post("dcim/interfaces", device=switch, name="swp1", type="other")["id"]
    applied(house, changed(node(house), cables=linked(f"leaf-{house.mark}", "swp1")))

    applied(house, changed(node(house), interfaces=node(house).interfaces[1:]), prune=True)

    assert None is house.rows("dcim/interfaces", id=far)[0]["cable"]


def test_a_device_that_netbox_lacks_is_an_error_or_is_made(house: House) -> None:
    """With site, role and type; what the type brings along is found, and not made twice."""
    place = DevicePlacement(f"lab-{house.mark}", f"node-{house.mark}", f"maker-{house.mark}/xe-{house.mark}")

    missing = applied(house, node(house))
    assert not missing.in_step
    assert f"no device in NetBox has the serial number {node(house).serial}" in (missing.plan.matches[0].problem or "")

    result = applied(house, node(house), create=place)
    row = house.rows("dcim/devices", serial=node(house).serial)[0]
    assert (node(house).name, True) == (row["name"], result.in_step)
    assert 5 == len(house.rows("dcim/modules", device_id=row["id"]))


def test_several_nodes_in_a_few_requests(house: House) -> None:
    """And one of them that NetBox does not know keeps nobody else from being in step."""
    nodes = [node(house, f"n{at}") for at in range(4)]
    for each in nodes[:3]:
        house.device(each.name or "", serial=each.serial)

    done = applied(house, *nodes)

    assert [None, None, None] == [match.problem for match in done.plan.matches[:3]]
    assert done.plan.matches[3].problem
    for match in done.plan.matches[:3]:
        assert match.device
        assert 5 == len(house.rows("dcim/modules", device_id=match.device.id))
