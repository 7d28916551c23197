"""pci-branch-differs on switches with several devices each; one device each is in tests/matrix/rules/pcie.toml."""

from __future__ import annotations

from collections.abc import Collection

import msgspec
import pytest

from agent.model.gpu import Gpu
from agent.model.nic import Nic
from agent.model.pci import PciFunction
from agent.model.topology import Topology
from agent.rules.pcie.branches import pci_branch_differs as rule
from agent.rules.rule import NotApplicable, Pass
from tests.agent.rules.build import fails, kinds, replace, server

BRIDGE, DISPLAY, NETWORK, DRIVE = "0x060400", "0x030200", "0x020700", "0x010802"


def bridge(address: str, parent: str | None) -> PciFunction:
    return PciFunction(id=address, parent=parent, class_code=BRIDGE, vendor="0x1000", device="0xc030")


def board(switches: int, ids: int, without: Collection[tuple[int, int]] = (), **others: tuple[str, str]):
    """Switches with a GPU below each of their ports but those in `without`; `others`: "s1p2" -> class and device there.

    A GPU has a switch of its own in front of it, as an OAM module has.
    """
    functions, gpus, nics = [], [], []
    for switch in range(switches):
        root, top = f"0000:{switch:02x}:01.0", f"0000:{switch + 16:02x}:00.0"
        functions += [bridge(root, None), bridge(top, root)]
        for place in range(ids):
            port, inner = f"0000:{switch + 32:02x}:{place:02x}.0", f"0000:{64 + switch * ids + place:02x}:00.0"
            leaf = f"0000:{160 + switch * ids + place:02x}:00.0"
            functions.append(bridge(port, top))
            kind, device = others.get(f"s{switch}p{place}", (DISPLAY, "0x26b9"))
            if (switch, place) in without:
                continue
            functions.append(bridge(inner, port))
            functions.append(PciFunction(id=leaf, parent=inner, class_code=kind, vendor="0x10de", device=device))
            if kind == DISPLAY:
                gpus.append(Gpu(id=leaf, label=f"GPU{len(gpus)}", pci=leaf))
            elif kind == NETWORK:
                nics.append(Nic(id=leaf, label=f"mlx5_{len(nics)}", pci=leaf, role="rail"))
    return replace(server(), topology=Topology(pci=functions, gpus=gpus, nics=nics))


@pytest.mark.parametrize(
    ("switches", "ids", "without", "ports"),
    [
        (2, 4, {(1, 2)}, ["0000:21:02.0"]),  # 7 of 8 cards
        (2, 4, {(0, 0)}, ["0000:20:00.0"]),
        (2, 4, {(0, 3), (1, 2)}, []),  # two of eight on two switches: nobody knows what was bought
        (2, 5, {(0, 3), (1, 2)}, []),
        (2, 3, {(1, 2)}, []),  # five cards
        (2, 4, {(1, 2), (1, 3)}, []),
        (3, 2, {(2, 1)}, []),  # two switches have it
        (3, 4, {(2, 1)}, []),
        (4, 2, {(2, 1)}, ["0000:22:01.0"]),
        (4, 2, {(2, 1), (1, 0)}, ["0000:21:00.0", "0000:22:01.0"]),
        (4, 2, {(2, 1), (1, 1)}, []),
        (5, 1, {(2, 0)}, []),  # one port each: no switch
        (5, 2, {(2, 1), (1, 1)}, ["0000:21:01.0", "0000:22:01.0"]),
    ],
)
def test_what_is_missing(switches: int, ids: int, without: set[tuple[int, int]], ports: list[str]) -> None:
    """Of three switches and more by majority; of two only one device of eight or so."""
    result = fails(rule, board(switches, ids, without))

    assert ports == sorted(fault.subject.removeprefix("pci:") for fault in result)


def test_seven_of_eight_below_switches_of_two_shapes() -> None:
    """Two switches with a NIC beside their GPUs and two without: those of one chip have seven together."""
    nics = {f"s{switch}p2": (NETWORK, "0x1021") for switch in (0, 1)}

    def without(*cards: tuple[int, int], chip: str = "") -> list[str]:
        context = board(4, 3, {*cards, (2, 2), (3, 2)}, **nics)
        gone = {"0000:22:02.0", "0000:23:02.0"}  # the ports that would make the shapes the same
        pci = [
            msgspec.structs.replace(function, device=chip) if function.id[5:7] == "10" and chip else function
            for function in context.topology.pci
            if function.id not in gone
        ]
        topology = msgspec.structs.replace(context.topology, pci=pci)
        return sorted(fault.subject for fault in fails(rule, replace(context, topology=topology)))

    assert ["pci:0000:21:01.0"] == without((1, 1))
    assert ["pci:0000:23:01.0"] == without((3, 1))
    assert [] == without((0, 0), (3, 1)) == without((3, 1), chip="0xc034")


def test_another_device_is_no_empty_port() -> None:
    """A drive where the others have a GPU; and where some have a drive, an empty port is nothing."""
    assert {Pass} == kinds(rule, board(4, 2, s2p1=(DRIVE, "0xa80a")))
    assert {Pass} == kinds(rule, board(4, 2, {(2, 1)}, s1p1=(DRIVE, "0xa80a")))


def test_of_two_switches_only_devices_of_the_same_kind_count() -> None:
    """Drives are no GPUs, and a NIC in the slot of a GPU is the builder's choice."""
    drives = {"s0p0": (DRIVE, "0xa80a"), "s1p0": (DRIVE, "0xa80a")}

    assert {Pass} == kinds(rule, board(2, 4, {(1, 2)}, **drives))
    assert {Pass} == kinds(rule, board(2, 4, {(1, 2)}, s1p1=(NETWORK, "0x1021")))


def test_a_place_of_cards_with_a_gpu_and_a_nic_is_not_compared() -> None:
    """A converged card has a switch of its own, with both below: which of them is missing cannot be told."""
    context = board(4, 2, {(2, 1)})
    cards = [function for function in context.topology.pci if function.class_code == DISPLAY]
    pci, nics = list(context.topology.pci), []
    for gpu in cards:
        port, nic = f"{gpu.id[:5]}{gpu.id[5:7]}:01.0", gpu.id.replace("0000:", "0001:")
        pci += [bridge(port, gpu.parent), PciFunction(id=nic, parent=port, class_code=NETWORK, vendor="0x15b3")]
        nics.append(Nic(id=nic, label=f"mlx5_{len(nics)}", pci=nic, role="rail"))

    assert {Pass} == kinds(
        rule, replace(context, topology=msgspec.structs.replace(context.topology, pci=pci, nics=nics))
    )


def test_a_rail_is_named_as_such_with_its_slot() -> None:
    """The port of the place, and the GPUs that would be near."""
    nics = {f"s{switch}p1": (NETWORK, "0x1021") for switch in range(4)}
    context = board(4, 2, {(2, 1)}, **nics)
    slot = [replace_slot(function) for function in context.topology.pci]
    (fault,) = fails(
        rule, replace(context, topology=Topology(pci=slot, gpus=context.topology.gpus, nics=context.topology.nics))
    )

    assert "nothing below this switch port (slot 7); the same port of 3 other switches has a rail NIC" == fault.summary
    assert {"0000:22:01.0", "count of rails", "rail of 0000:a4:00.0"} == fault.ids
    assert "3 rail NICs are on the bus" in fault.impact
    assert ["nothing", "mlx5_0 (0x10de:0x1021)"] == [row.value for row in fault.evidence][:2]


def test_one_other_switch_is_not_several() -> None:
    (fault,) = fails(rule, board(2, 4, {(1, 2)}))
    assert "nothing below this switch port; the same port of 1 other switch has a GPU" == fault.summary


def replace_slot(function: PciFunction) -> PciFunction:
    return msgspec.structs.replace(function, slot="7") if function.id == "0000:22:01.0" else function


def test_a_missing_gpu_takes_no_rail_along() -> None:
    """The other GPU of its switch has its rail as before."""
    (fault,) = fails(rule, board(4, 2, {(2, 1)}))

    assert {"0000:22:01.0", "count of GPUs"} == fault.ids


def test_one_switch_has_nothing_to_be_compared_with() -> None:
    """Not applicable, and no pass."""
    assert {NotApplicable} == kinds(rule, board(1, 4))
