"""The physical part that a finding is about: what it is, where it sits, its identifiers, the far end of its cable."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from agent.model.finding import FarEnd, Location
from agent.model.gpu import Gpu, link_name
from agent.model.nic import Netdev, Nic, Port
from agent.model.pci import PciFunction
from agent.rules.context import RuleContext
from agent.rules.devices import AMD, DIES, WITHOUT_CHIPS, find_function, is_nvidia, is_on_c2c

# Platforms whose rails are part of a board or of a module in it, not cards in slots (DGX H100 user guide: network
# modules of four ConnectX-7; HGX B300 and GB300: ConnectX-8 on the I/O board; GB200: mezzanine boards of the tray)
_ONBOARD_RAILS = frozenset(
    {"dgx-h100", "dgx-h200", "dgx-b200", "dgx-b300", "hgx-b300-8", "gb200-tray", "gb300-tray", "gh200"}
)
_SXM_WORDS = ("sxm", "hgx", "h100 80gb hbm3", "nvidia h200", "nvidia b200", "nvidia b300")
_OAM_WORDS = ("mi250", "mi300x", "mi308x", "mi325x", "mi350x", "mi355x")
_CARD_WORDS = (
    "pcie", " nvl", "geforce", "titan", "rtx", "quadro", "tesla t4", "nvidia t4", "l40", "nvidia l4", "a10", "a16",
    "nvidia a2", "a30", "a40", "mi210", "mi100",
)  # fmt: skip
_SUPERCHIP_WORDS = ("gh200", "gb200", "gb300")
_MAC_LENGTH = len("00:00:00:00:00:00")
_BRIDGE, _DRIVE = "0x0604", "0x0108"
NOUNS = {
    "sxm": "SXM module",
    "oam": "OAM module",
    "pcie-card": "PCIe card",
    "superchip": "superchip module",
    "onboard-nic": "NIC on the board",
    "onboard-switch": "on-board PCIe switch",
    "root-port": "root port of the CPU",
    "nvswitch": "NVSwitch on the GPU baseboard",
    "drive": "drive",
    "virtual": "virtual device",
}

NO_CHIP = "none"


def find_location(context: RuleContext, subject: str) -> Location | None:
    """Where the subject of a finding is; None for a pair of devices, and where nothing of it is known."""
    kind, _, rest = subject.partition(":")
    if kind == "node":
        node = context.node
        if not (node.serial or node.chassis.serial):
            return None
        return Location(part="node", slot=node.chassis.slot, serial=node.serial or node.chassis.serial)
    device, _, part = rest.partition("/")
    if kind == "netdev":
        return _locate_interface(context, device)
    if kind == "nvswitch":
        return Location(part=NOUNS[kind], form_factor=None if context.virtual_machine else kind, pci=device)
    gpu, nic = find_gpu(context, device), find_nic(context, device)
    if gpu:
        return _locate_gpu(context, gpu, f"{link_name(gpu.links)} {part} of " if kind == "link" else "")
    if nic:
        return _locate_nic(context, nic, find_port(nic, part))
    function = context.functions.get(device)
    if function is None:
        return Location(part="PCI device", pci=device) if device.count(":") == 2 else None
    return _describe_function(context, function)


def find_gpu(context: RuleContext, device: str) -> Gpu | None:
    """A GPU by its id or by its PCI function."""
    return context.gpus.get(device) or context.gpu_by_pci.get(device)


def find_npu_number(context: RuleContext, device: str) -> str | None:
    """The number by which hccn_tool and /etc/hccn.conf call an NPU: of its id, or of "npu-3", an NPU without a row."""
    if device.startswith("npu-"):
        number = device.removeprefix("npu-")
        return number if number.isascii() and number.isdigit() and len(number) < 5 else None
    nic = find_nic(context, device)
    if nic is not None and nic.accelerator:  # the ports inside an NPU
        return find_npu_number(context, nic.accelerator)
    gpu, ascend = find_gpu(context, device), context.topology.ascend
    if gpu is None or gpu.vendor != "Huawei":
        return None
    numbers = [port.npu for port in (ascend.ports if ascend else []) if port.gpu == gpu.id]
    known = numbers or ([gpu.index] if gpu.index is not None else [])
    return str(known[0]) if known else None


def find_npu_chip(context: RuleContext, npu: str) -> tuple[str, str]:
    """Card and chip by which npu-smi calls an NPU: a module of an Atlas A3 has two chips, every other card one.

    NO_CHIP where npu-smi takes none.
    """
    if any(function.device in WITHOUT_CHIPS for function in context.topology.pci):
        return npu, NO_CHIP
    chips = 2 if any(function.device in DIES for function in context.topology.pci) else 1
    card, chip = divmod(int(npu), chips)
    return str(card), str(chip)


def find_nic(context: RuleContext, device: str) -> Nic | None:
    """A NIC by its id, which is its PCI function where it has one of its own."""
    return context.nics.get(device)


def find_port(nic: Nic, number: str) -> Port | None:
    """The port of that number; without a number the only port."""
    if number:
        return next((port for port in nic.ports if str(port.port) == number), None)
    return nic.ports[0] if len(nic.ports) == 1 else None


def find_netdev(context: RuleContext, nic: Nic, port: Port | None) -> Netdev | None:
    """The interface of a port, or of a NIC that has one only."""
    labels = port.netdevs if port else [n.label for n in context.topology.netdevs if nic.id in (n.nic, n.pci)]
    return context.netdevs.get(labels[0]) if len(labels) == 1 else None


def gpu_form_factor(context: RuleContext, gpu: Gpu) -> str | None:
    """How a GPU is built in; None where neither its name nor the driver shows it."""
    if context.virtual_machine:
        return "virtual"
    function = find_function(context, gpu)
    name = f"{gpu.name or ''} | {(function.name if function else None) or ''}".lower()
    if is_on_c2c(context, gpu) or any(word in name for word in _SUPERCHIP_WORDS):
        return "superchip"
    if any(word in name for word in _SXM_WORDS):
        return "sxm"
    if any(word in name for word in _OAM_WORDS):
        return "oam"
    if any(word in name for word in _CARD_WORDS):
        return "pcie-card"
    return "sxm" if gpu.module_id is not None and is_nvidia(context, gpu) else None


def nic_form_factor(context: RuleContext, nic: Nic) -> str | None:
    """How a NIC is built in; None where it is not known."""
    function = find_function(context, nic)
    if context.virtual_machine or nic.virtual_function or nic.software:
        return "virtual"
    if nic.limited:
        return "onboard-nic"
    if function and function.slot:
        return "pcie-card"
    return "onboard-nic" if nic.role == "rail" and context.platform.profile in _ONBOARD_RAILS else None


def function_form_factor(context: RuleContext, function: PciFunction) -> str | None:
    """What a PCI function that is no GPU and no NIC is part of; None where it is not known."""
    if context.virtual_machine:
        return "virtual"
    if any(function.id in (switch.pci, switch.id) for switch in context.topology.nvswitches):
        return "nvswitch"
    kind = (function.class_code or "")[:6]
    if kind == _BRIDGE:
        if function.parent is None:
            return "root-port"
        # AMD GPUs have a switch of their own on the module
        return None if function.vendor == AMD else "onboard-switch"
    return "drive" if kind == _DRIVE else None


def find_common_form_factor(context: RuleContext, devices: Iterable[str]) -> str | None:
    """The form factor of all GPUs, or else all NICs, among these devices; None where they differ."""
    gpus = [gpu for gpu in (find_gpu(context, device) for device in devices) if gpu]
    nics = [nic for nic in (find_nic(context, device) for device in devices) if nic]
    forms = {gpu_form_factor(context, gpu) for gpu in gpus} or {nic_form_factor(context, nic) for nic in nics}
    return next(iter(forms)) if len(forms) == 1 else None


def _locate_gpu(context: RuleContext, gpu: Gpu, prefix: str) -> Location:
    form, function = gpu_form_factor(context, gpu), find_function(context, gpu)
    slot = _find_slot(context, function) if form in ("pcie-card", None) else None
    return Location(
        part=prefix + _describe_part(form, "NPU" if gpu.vendor == "Huawei" else "GPU", slot, gpu.module_id),
        form_factor=form,
        slot=slot,
        module_id=gpu.module_id,
        serial=gpu.serial,
        uuid=gpu.uuid,
        pci=gpu.pci,
    )


def _locate_nic(context: RuleContext, nic: Nic, port: Port | None) -> Location:
    form, function = nic_form_factor(context, nic), find_function(context, nic)
    slot = _find_slot(context, function)
    netdev = find_netdev(context, nic, port)
    many = len(nic.ports) > 1 and port
    return Location(
        part=(f"port {port.port} of " if many and port else "") + _describe_part(form, "NIC", slot, None),
        form_factor=form,
        slot=slot,
        pci=nic.pci,
        port_guid=(port.port_guid if port else None) or (None if many else nic.node_guid),
        mac=_read_mac(netdev),
        far_end=_find_far_end(port, netdev),
    )


def _locate_interface(context: RuleContext, device: str) -> Location | None:
    netdev = next((n for n in context.topology.netdevs if device in (n.id, n.label)), None)
    if netdev is None:
        return None
    nic, function = find_nic(context, netdev.nic or netdev.pci or ""), context.functions.get(netdev.pci or "")
    far_end = _find_far_end(None, netdev)
    if nic:
        located = _locate_nic(context, nic, next((p for p in nic.ports if netdev.label in p.netdevs), None))
        far_end = located.far_end or far_end
    elif function:
        located = _describe_function(context, function)
    else:
        located = Location(part="interface")
    return msgspec.structs.replace(located, mac=_read_mac(netdev), far_end=far_end)


def _describe_function(context: RuleContext, function: PciFunction) -> Location:
    form, slot = function_form_factor(context, function), _find_slot(context, function)
    return Location(part=_describe_part(form, "PCI device", slot, None), form_factor=form, slot=slot, pci=function.id)


def _describe_part(form: str | None, noun: str, slot: str | None, module: int | None) -> str:
    """The part in words.

    >>> _describe_part("sxm", "GPU", None, 4), _describe_part("pcie-card", "NIC", "21", None)
    ('SXM module 4', 'PCIe card in slot 21')
    >>> _describe_part(None, "GPU", None, 6)  # a Gaudi, whose id says where it is on its board
    'GPU with module id 6'
    """
    text = NOUNS[form] if form else noun
    if module is not None and form is None and not slot:
        return f"{text} with module id {module}"
    if module is not None and form in ("sxm", "oam", "superchip"):
        return f"{text} {module}"
    return f"{text} in slot {slot}" if slot else text


def _find_slot(context: RuleContext, function: PciFunction | None) -> str | None:
    """The slot of the function, or of another function of the same card."""
    if function is None:
        return None
    first = context.functions.get(f"{function.id.rpartition('.')[0]}.0")
    physical = context.functions.get(function.physical_function or "")
    return next((f.slot for f in (function, first, physical) if f and f.slot), None)


def _read_mac(netdev: Netdev | None) -> str | None:
    """The MAC; the 20-byte hardware address of IP over InfiniBand holds the port GUID and is left out."""
    mac = netdev.mac if netdev else None
    return mac if mac and len(mac) == _MAC_LENGTH else None


def _find_far_end(port: Port | None, netdev: Netdev | None) -> FarEnd | None:
    """The switch port at the other end of the cable: the InfiniBand neighbor, else LLDP."""
    if port and port.neighbor:
        neighbor = port.neighbor
        return FarEnd(system=neighbor.name or neighbor.node_guid, port=str(neighbor.port))
    lldp = netdev.neighbor if netdev else None
    if lldp and (lldp.system or lldp.chassis or lldp.port):
        return FarEnd(system=lldp.system or lldp.chassis, port=lldp.port or lldp.port_description)
    return None
