"""Which devices of now are those of an earlier run."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from agent.model.gpu import NvSwitch
from agent.model.node import Platform
from agent.model.pci import PciFunction
from agent.model.profile import Expected, Profile
from agent.model.topology import Topology
from agent.rules.context import RuleContext
from agent.rules.host.inventory_matching import build_inventory, healthy_subjects, match_devices, merge_inventory
from agent.rules.host.profile import device_count_low
from tests.agent.rules.build import (
    changed_gpu,
    changed_nic,
    changed_port,
    function,
    gpu_id,
    kinds,
    nic_id,
    server,
    topology,
)
from tests.agent.rules.rows import nvlinks

GPU, RAIL = gpu_id(1), nic_id(1)


def at(context: RuleContext, now: RuleContext, subject: str) -> str | None:
    return match_devices(build_inventory(context.topology), build_inventory(now.topology)).at.get(subject)


def moved(context: RuleContext, address: str) -> RuleContext:
    """GPU 1 at another address."""
    return function(changed_gpu(context, 1, id=address, pci=address), GPU, id=address)


def without(context: RuleContext, n: int) -> RuleContext:
    """GPU n is gone without a trace."""
    pci = [f for f in context.topology.pci if f.id != gpu_id(n)]
    return topology(context, pci=pci, gpus=[g for g in context.topology.gpus if g.id != gpu_id(n)])


def switches(*addresses: str) -> Topology:
    """NVSwitches, which have no serial."""
    return Topology(
        pci=[PciFunction(id=address) for address in addresses],
        nvswitches=[NvSwitch(id=address, pci=address) for address in addresses],
    )


def test_an_inventory_holds_devices_and_their_parts() -> None:
    """GPUs with links, NICs with ports; the ports above tell what would go together."""
    rows = {item.subject: item for item in build_inventory(server(2).topology)}

    assert 2 + 2 * 18 + 2 + 2 == len(rows)
    assert ["0000:22:00.0", "0000:21:00.0", "0000:20:01.0"] == rows[f"gpu:{GPU}"].above
    assert ("uuid GPU-00000001", "NVIDIA H100 80GB HBM3") == (rows[f"gpu:{GPU}"].identity, rows[f"gpu:{GPU}"].detail)
    assert ("ConnectX-7", "rail") == (rows[f"nic:{RAIL}"].detail, rows[f"nic:{RAIL}"].role)
    assert "mlx5_1/1" == rows[f"port:{RAIL}/1"].label


def test_only_an_active_port_has_a_rate_to_keep() -> None:
    """What a port that is down states is no speed that it ran at."""
    down = build_inventory(changed_port(server(2), 1, state="DOWN", rate_gbit_s=10.0).topology)

    assert {f"port:{nic_id(0)}/1": 400.0, f"port:{RAIL}/1": None} == {
        row.subject: row.rate_gbit_s for row in down if row.subject.startswith("port:")
    }


@pytest.mark.parametrize(
    "changes", [{"virtual_function": True}, {"software": True}, {"limited": "a fabric manager's"}, {"pci": None}]
)
def test_what_comes_and_goes_is_in_no_inventory(changes: dict[str, object]) -> None:
    """Virtual, software and limited functions, and what is on no bus."""
    assert f"nic:{RAIL}" not in {item.subject for item in build_inventory(changed_nic(server(), 1, **changes).topology)}


def test_a_device_is_found_where_it_was_moved_to() -> None:
    """With its links."""
    now = moved(server(), "0000:99:00.0")

    assert "gpu:0000:99:00.0" == at(server(), now, f"gpu:{GPU}")
    assert "link:0000:99:00.0/3" == at(server(), now, f"link:{GPU}/3")


def test_a_device_without_identity_is_found_in_its_place() -> None:
    """The driver did not answer, then or now; or told a GUID then, and a serial now."""
    silent = changed_gpu(server(), 1, uuid=None)

    assert f"gpu:{GPU}" == at(server(), silent, f"gpu:{GPU}") == at(silent, server(), f"gpu:{GPU}")
    serial = function(changed_nic(server(), 1, node_guid=None), RAIL, serial="00-11")
    assert f"nic:{RAIL}" == at(server(), serial, f"nic:{RAIL}")


def test_another_device_in_its_place_has_replaced_it() -> None:
    """And so has one of its make that came elsewhere."""
    new = changed_gpu(server(), 1, uuid="GPU-new")
    for now in (new, moved(new, "0000:99:00.0")):
        match = match_devices(build_inventory(server().topology), build_inventory(now.topology))

        assert frozenset({f"gpu:{GPU}"}) == match.replaced
        assert f"link:{GPU}/3" not in match.at


def test_a_new_one_that_tells_nothing_may_be_it() -> None:
    """Only one of its make."""
    now = moved(changed_gpu(server(), 1, uuid=None), "0000:99:00.0")
    other = moved(changed_gpu(server(), 1, uuid=None, name="NVIDIA T4"), "0000:99:00.0")

    assert {f"gpu:{GPU}": "gpu:0000:99:00.0"} == match_devices(
        build_inventory(server().topology), build_inventory(now.topology)
    ).unsure
    assert {} == match_devices(build_inventory(server().topology), build_inventory(other.topology)).unsure


def test_a_new_device_stands_in_for_none_of_another_kind() -> None:
    """Neither an NVSwitch nor a link has a product, and a link that is down is not a new switch."""
    now, new = server().topology, switches("0000:83:00.0")
    match = match_devices(
        build_inventory(now), [*build_inventory(without(server(), 1).topology), *build_inventory(new)]
    )

    assert ({}, frozenset()) == (match.unsure, match.replaced)


def test_two_that_changed_places_are_both_found() -> None:
    """By what lasts of them."""
    now = changed_gpu(changed_gpu(server(), 0, uuid="GPU-00000001"), 1, uuid="GPU-00000000")

    assert (f"gpu:{gpu_id(0)}", f"gpu:{GPU}") == (
        at(server(), now, f"gpu:{GPU}"),
        at(server(), now, f"gpu:{gpu_id(0)}"),
    )


def test_what_is_missing_stays_until_it_returns() -> None:
    """With all that was part of it."""
    first = build_inventory(server().topology)
    later, whole = merge_inventory(first, without(server(), 1).topology)
    again, healed = merge_inventory(later, server().topology)

    assert not whole
    assert {item.subject for item in first} == {item.subject for item in later}
    assert healed
    assert {item.subject for item in first} == {item.subject for item in again}


def test_a_rail_whose_cable_is_out_stays_a_rail() -> None:
    """A NIC without an active port has no role that can be seen; another role is a change that counts."""
    first = build_inventory(server().topology)
    roles = {
        role: {row.subject: row.role for row in merge_inventory(first, changed_nic(server(), 1, role=role).topology)[0]}
        for role in ("unused", "storage")
    }

    assert "rail" == roles["unused"][f"nic:{RAIL}"]
    assert "storage" == roles["storage"][f"nic:{RAIL}"]


def test_what_was_replaced_leaves_with_its_parts() -> None:
    """A card without NVLink in its place: nobody misses the links."""
    now = changed_gpu(server(), 1, uuid="GPU-new", links=[])
    remaining, whole = merge_inventory(build_inventory(server().topology), now.topology)

    assert whole
    assert not [item for item in remaining if item.subject.startswith(f"link:{GPU}/")]


def test_buses_that_are_numbered_anew_lose_nothing() -> None:
    """Nothing lasts of an NVSwitch: after one run that cannot tell, the new addresses are the inventory."""
    first, _ = merge_inventory([], switches("0000:83:00.0", "0000:84:00.0"))
    second, whole = merge_inventory(first, switches("0000:85:00.0", "0000:86:00.0"))

    assert whole
    assert ["nvswitch:0000:85:00.0", "nvswitch:0000:86:00.0"] == [item.subject for item in second]


@pytest.mark.parametrize("state", ["gone", "changed_during_scan"])
def test_what_does_not_answer_is_not_taken_in_and_not_let_go(state: str) -> None:
    """A device that is about to vanish."""
    shaky = function(server(), GPU, state=state).topology
    new, _ = merge_inventory([], shaky)
    remaining, whole = merge_inventory(build_inventory(server().topology), shaky)

    assert f"gpu:{GPU}" not in {item.subject for item in new}
    assert f"gpu:{GPU}" in {item.subject for item in remaining}
    assert not whole


def test_only_links_that_are_up_are_taken_in() -> None:
    """A bridge that was never plugged is not missed; a link that slept was up."""
    links = [*nvlinks(1), *(link for link in nvlinks(3)[1:])]
    links = [links[0], type(links[1])(link=1, state="inactive"), type(links[2])(link=2, state="sleep")]
    remaining, _ = merge_inventory([], changed_gpu(server(), 1, links=links).topology)

    assert [f"link:{GPU}/0", f"link:{GPU}/2"] == [item.subject for item in remaining if f"link:{GPU}" in item.subject]


def test_what_is_not_told_this_time_is_still_known() -> None:
    """Or a GPU that moves with the next reboot would not be found."""
    remaining, _ = merge_inventory(
        build_inventory(server().topology), changed_gpu(server(), 1, uuid=None, name=None).topology
    )
    (row,) = [item for item in remaining if item.subject == f"gpu:{GPU}"]

    assert ("uuid GPU-00000001", "NVIDIA H100 80GB HBM3") == (row.identity, row.detail)


def test_a_circle_of_bridges_ends() -> None:
    """A hostile report."""
    rows = build_inventory(
        function(
            function(server(1), "0000:12:00.0", parent="0000:11:00.0"), "0000:11:00.0", parent="0000:12:00.0"
        ).topology
    )

    assert all(len(row.above) <= 3 for row in rows)


def test_a_gpu_without_a_place_and_a_sub_function_are_in_no_inventory() -> None:
    """What is on no bus of its own comes and goes."""
    context = changed_gpu(changed_nic(server(), 1, id=f"{RAIL}/sf1"), 1, pci=None)
    subjects = {item.subject for item in build_inventory(context.topology)}

    assert not {s for s in subjects if GPU in s or RAIL in s}


def test_what_is_told_anew_is_renewed() -> None:
    """Identity and product of the earlier run; new ones where they are told."""
    silent, _ = merge_inventory(
        build_inventory(server().topology), changed_gpu(server(), 1, uuid=None, name=None).topology
    )
    result, _ = merge_inventory(silent, changed_gpu(server(), 1, name="NVIDIA H100 NVL").topology)
    unnamed = build_inventory(changed_gpu(server(), 1, uuid=None).topology)
    first = {item.subject: item.identity for item in merge_inventory(unnamed, server().topology)[0]}
    row = next(item for item in silent if item.subject == f"gpu:{GPU}")
    later = next(item for item in result if item.subject == f"gpu:{GPU}")

    assert ("uuid GPU-00000001", "NVIDIA H100 80GB HBM3") == (row.identity, row.detail)
    assert ("uuid GPU-00000001", "NVIDIA H100 NVL") == (later.identity, later.detail)
    assert "uuid GPU-00000001" == first[f"gpu:{GPU}"]


@pytest.mark.parametrize("state", ["gone", "changed_during_scan"])
def test_what_does_not_answer_is_not_here_for_certain(state: str) -> None:
    """Of GPUs, NICs and switches alike."""
    context = server()
    top = switches("0000:83:00.0")
    context = topology(context, pci=[*context.topology.pci, *top.pci], nvswitches=top.nvswitches)
    for address, kind in ((GPU, "gpu"), (RAIL, "nic"), ("0000:83:00.0", "nvswitch")):
        assert f"{kind}:{address}" in healthy_subjects(context.topology)
        left = healthy_subjects(function(context, address, state=state).topology)
        assert f"{kind}:{address}" not in left
        assert not any(item.partition(":")[2].startswith(f"{address}/") for item in left)


def test_a_place_that_another_one_has_now_is_taken() -> None:
    """GPU 0 stands where GPU 1 stood, which told no identity then: it is not both."""
    was = changed_gpu(server(2), 1, uuid=None)
    now = without(was, 1)
    swapped = function(changed_gpu(now, 0, id=GPU, pci=GPU), gpu_id(0), id=GPU)

    match = match_devices(build_inventory(was.topology), build_inventory(swapped.topology))
    assert f"gpu:{GPU}" == match.at[f"gpu:{gpu_id(0)}"]
    assert f"gpu:{GPU}" not in match.at


def test_a_chain_of_bridges_is_bounded() -> None:
    """A report may hold any number of them: 16 are kept."""
    chain = [PciFunction(id=f"0000:{n:02x}:00.0", parent=f"0000:{n + 1:02x}:00.0") for n in range(40)]
    rows = build_inventory(Topology(pci=chain, nvswitches=[NvSwitch(id=chain[0].id, pci=chain[0].id)]))

    assert 16 == len(rows[0].above)


@pytest.mark.parametrize("value", [True, "4"])
def test_what_is_no_number_expects_nothing(value) -> None:
    """A word or a switch of a profile that somebody wrote; 3 of 4 GPUs would be too few."""
    context = server(3)
    profile = Profile(name="test", gpus=Expected(value=value, source="a good source"))
    context = replace(context, profile=profile, platform=Platform(profile="test", confidence="exact"))

    assert set() == kinds(device_count_low, context)
