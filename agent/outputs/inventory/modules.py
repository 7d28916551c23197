"""GPUs, NIC cards and NVSwitches as modules, each in a bay named by its PCI address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from agent.model.gpu import Gpu
from agent.model.nic import Nic
from agent.model.pci import PciFunction
from agent.model.topology import Topology
from agent.outputs.inventory.objects import (
    DESCRIPTION,
    MODEL,
    PART,
    POSITION,
    SERIAL,
    InventoryModule,
    UniqueNames,
    fit_text,
)
from agent.platforms.devices import find_device

_NO_GUID = "0000:0000:0000:0000"
_MANUFACTURERS = {  # by PCI vendor, as device type libraries name them
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
    """The functions of one NIC card, and its bay."""

    bay: str
    nics: Sequence[Nic]


def build_modules(topology: Topology) -> tuple[list[InventoryModule], list[Card]]:
    """Build the modules, and the NICs of each card."""
    functions = {function.id: function for function in topology.pci}
    names = UniqueNames()
    modules = [_gpu_module(gpu, functions.get(gpu.pci or ""), names) for gpu in topology.gpus]
    cards = [Card(names.assign(f"NIC {nics[0].id}", nics[0].id), nics) for nics in _group_by_card(topology.host_nics)]
    modules += [_nic_module(card, functions) for card in cards]
    for switch in topology.nvswitches:
        modules.append(_switch_module(names.assign(f"NVSwitch {switch.id}", switch.id), functions.get(switch.pci)))
    return modules, cards


def _gpu_module(gpu: Gpu, function: PciFunction | None, names: UniqueNames) -> InventoryModule:
    driver = gpu.driver_state == "open" and bool(gpu.name)
    maker = _manufacturer(function) or fit_text(gpu.vendor, MODEL) or "unknown"
    name = fit_text((gpu.name or "").removeprefix("NVIDIA "), MODEL)  # drivers since 470 put the maker before it
    return InventoryModule(
        bay=names.assign(f"GPU {gpu.id}", gpu.id),
        kind="GPU",
        position=_position(function),
        manufacturer=maker,
        model=name or _model_from_id(function),
        certain=driver,
        serial=fit_text(gpu.serial, SERIAL),
        description=fit_text(gpu.uuid, DESCRIPTION),
    )


def _group_by_card(nics: Sequence[Nic]) -> list[list[Nic]]:
    """Group NICs by card: ports share its slot; one in two slots (Socket Direct) has one system image GUID."""
    cards: dict[str, list[Nic]] = {}
    for nic in nics:
        if nic.virtual_function or nic.software or nic.limited:
            continue  # created by a driver, or a function of the baseboard's switches
        slot = nic.pci.rpartition(".")[0] if nic.pci else nic.id
        guid = nic.system_image_guid if nic.system_image_guid not in (None, _NO_GUID) else None
        same = next((key for key, card in cards.items() if key == slot or (guid and _card_guid(card) == guid)), slot)
        cards.setdefault(same, []).append(nic)
    return list(cards.values())


def _card_guid(card: Sequence[Nic]) -> str | None:
    return next((nic.system_image_guid for nic in card if nic.system_image_guid != _NO_GUID), None)


def _nic_module(card: Card, functions: Mapping[str, PciFunction]) -> InventoryModule:
    first = card.nics[0]
    function = functions.get(first.pci or "")
    board = fit_text(next((nic.board_id for nic in card.nics if nic.board_id), None), PART)
    model = fit_text(first.model, MODEL) or _model_from_id(function)
    guid = next((nic.node_guid for nic in card.nics if nic.node_guid not in (None, "", _NO_GUID)), None)
    return InventoryModule(
        bay=card.bay,
        kind="NIC",
        position=_position(function),
        manufacturer=_manufacturer(function) or "unknown",
        model=fit_text(f"{model} {board}", MODEL) or model if board else model,  # one family has many boards
        part_number=board,
        certain=board is not None,
        serial=fit_text(function.serial, SERIAL) if function else None,
        board_serial=False,
        description=fit_text(f"node GUID {guid}", DESCRIPTION) if guid else None,
        ports_known=all(nic.state == "present" and nic.ports for nic in card.nics),
    )


def _switch_module(bay: str, function: PciFunction | None) -> InventoryModule:
    name = find_device(function.vendor, function.device) if function else None
    return InventoryModule(
        bay=bay,
        kind="NVSwitch",
        position=_position(function),
        manufacturer=_manufacturer(function) or "NVIDIA",
        model=name.name if name else _model_from_id(function),
        certain=name is not None,
        serial=fit_text(function.serial, SERIAL) if function else None,
        board_serial=False,
    )


def _position(function: PciFunction | None) -> str | None:
    return fit_text(function.slot, POSITION) if function else None


def _manufacturer(function: PciFunction | None) -> str | None:
    if function is None or not function.vendor:
        return None
    return _MANUFACTURERS.get(function.vendor) or fit_text(f"PCI vendor {function.vendor}", MODEL)


def _model_from_id(function: PciFunction | None) -> str:
    return (
        fit_text(f"PCI {function.vendor}:{function.device}", MODEL) if function and function.device else None
    ) or "unknown"
