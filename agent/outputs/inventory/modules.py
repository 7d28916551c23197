"""GPUs, NIC cards and NVSwitches as modules, each in a bay that is named by its place on the bus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from agent.model.gpu import Gpu
from agent.model.nic import Nic
from agent.model.pci import PciFunction
from agent.model.topology import Topology
from agent.outputs.inventory.fit import DESCRIPTION, MODEL, PART, POSITION, SERIAL, Names, fit
from agent.outputs.inventory.objects import Module
from agent.platforms.devices import find_device

_NO_GUID = "0000:0000:0000:0000"
_MAKERS = {  # by PCI vendor: the names that device type libraries use
    "0x10de": "NVIDIA",
    "0x15b3": "Mellanox",
    "0x1002": "AMD",
    "0x19e5": "Huawei",
    "0x14e4": "Broadcom",
    "0x8086": "Intel",
    "0x1d0f": "Amazon",
    "0x1dd8": "Pensando",
    "0x1414": "Microsoft",
    "0x1ded": "Alibaba",
    "0x1425": "Chelsio",
    "0x1077": "QLogic",
}


class Card(NamedTuple):
    """The functions of one NIC, and the bay it is in."""

    bay: str
    nics: Sequence[Nic]


def modules(topology: Topology) -> tuple[list[Module], list[Card]]:
    """The modules, and which NICs each card of them has."""
    functions = {function.id: function for function in topology.pci}
    names = Names()
    found = [_gpu(gpu, functions.get(gpu.pci or ""), names) for gpu in topology.gpus]
    cards = [Card(names.own(f"NIC {nics[0].id}", nics[0].id), nics) for nics in _cards(topology.nics)]
    found += [_nic(card, functions) for card in cards]
    for switch in topology.nvswitches:
        found.append(_switch(names.own(f"NVSwitch {switch.id}", switch.id), functions.get(switch.pci)))
    return found, cards


def _gpu(gpu: Gpu, function: PciFunction | None, names: Names) -> Module:
    driver = gpu.driver_state == "open" and bool(gpu.name)
    maker = _maker(function) or fit(gpu.vendor, MODEL) or "unknown"
    name = fit((gpu.name or "").removeprefix("NVIDIA "), MODEL)  # drivers since 470 put the maker before it
    return Module(
        bay=names.own(f"GPU {gpu.id}", gpu.id),
        kind="GPU",
        position=_position(function),
        manufacturer=maker,
        model=name or _by_id(function),
        certain=driver,
        serial=fit(gpu.serial, SERIAL),
        description=fit(gpu.uuid, DESCRIPTION),
    )


def _cards(nics: Sequence[Nic]) -> list[list[Nic]]:
    """NICs by card. Ports of a card share its slot; a card in two slots (Socket Direct) has one system image GUID."""
    cards: dict[str, list[Nic]] = {}
    for nic in nics:
        if nic.virtual_function or nic.software or nic.limited:
            continue  # made up by a driver, or a function of the baseboard's switches
        slot = nic.pci.rpartition(".")[0] if nic.pci else nic.id
        guid = nic.system_image_guid if nic.system_image_guid not in (None, _NO_GUID) else None
        same = next((key for key, card in cards.items() if key == slot or (guid and _guid(card) == guid)), slot)
        cards.setdefault(same, []).append(nic)
    return list(cards.values())


def _guid(card: Sequence[Nic]) -> str | None:
    return next((nic.system_image_guid for nic in card if nic.system_image_guid != _NO_GUID), None)


def _nic(card: Card, functions: Mapping[str, PciFunction]) -> Module:
    first = card.nics[0]
    function = functions.get(first.pci or "")
    board = fit(next((nic.board_id for nic in card.nics if nic.board_id), None), PART)
    model = fit(first.model, MODEL) or _by_id(function)
    guid = next((nic.node_guid for nic in card.nics if nic.node_guid not in (None, "", _NO_GUID)), None)
    return Module(
        bay=card.bay,
        kind="NIC",
        position=_position(function),
        manufacturer=_maker(function) or "unknown",
        model=fit(f"{model} {board}", MODEL) or model if board else model,  # one family has many boards
        part_number=board,
        certain=board is not None,
        serial=fit(function.serial, SERIAL) if function else None,
        board_serial=False,
        description=fit(f"node GUID {guid}", DESCRIPTION) if guid else None,
        ports_known=all(nic.state == "present" and nic.ports for nic in card.nics),
    )


def _switch(bay: str, function: PciFunction | None) -> Module:
    name = find_device(function.vendor, function.device) if function else None
    return Module(
        bay=bay,
        kind="NVSwitch",
        position=_position(function),
        manufacturer=_maker(function) or "NVIDIA",
        model=name.name if name else _by_id(function),
        certain=name is not None,
        serial=fit(function.serial, SERIAL) if function else None,
        board_serial=False,
    )


def _position(function: PciFunction | None) -> str | None:
    return fit(function.slot, POSITION) if function else None


def _maker(function: PciFunction | None) -> str | None:
    if function is None or not function.vendor:
        return None
    return _MAKERS.get(function.vendor) or fit(f"PCI vendor {function.vendor}", MODEL)


def _by_id(function: PciFunction | None) -> str:
    return (
        fit(f"PCI {function.vendor}:{function.device}", MODEL) if function and function.device else None
    ) or "unknown"
