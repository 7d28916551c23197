"""Small nodes as desired objects: two GPUs, an Ethernet card of two ports, an InfiniBand card, an NVSwitch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from agent.netbox.matching import ReportedNode
from agent.outputs.inventory.objects import (
    DesiredNode,
    InventoryCable,
    InventoryFinding,
    InventoryInterface,
    InventoryModule,
)
from tests.agent.netbox.conftest import House

GPUS = ("GPU 0000:19:00.0", "GPU 0000:3b:00.0")
ETHERNET, INFINIBAND, SWITCH = "NIC 0000:27:00.0", "NIC 0000:1a:00.0", "NVSwitch 0000:83:00.0"


def gpu(bay: str, number: str, **changes: Any) -> InventoryModule:
    """A GPU whose serial and UUID end in `number`."""
    result = {
        "bay": bay,
        "kind": "GPU",
        "manufacturer": "NVIDIA",
        "model": "H100 80GB HBM3",
        "serial": f"165042{number}",
        "description": f"GPU-1767971f-9859-6f7c-50b3-{number:0>12}",
    }
    return InventoryModule(**{**result, **changes})


def nic(bay: str, model: str, guid: str, **changes: Any) -> InventoryModule:
    """A card."""
    result = {"bay": bay, "kind": "NIC", "manufacturer": "Mellanox", "model": model, "description": f"node GUID {guid}"}
    return InventoryModule(**{**result, "serial": f"b8-3f-d2-03-00-{guid}", "board_serial": False, **changes})


def port(name: str, number: str, **changes: Any) -> InventoryInterface:
    """An Ethernet port whose MAC address ends in `number`."""
    result = {"name": name, "bay": ETHERNET, "type": "100gbase-x-qsfp28", "speed_kbit_s": 100_000_000}
    return InventoryInterface(**{**result, "mac": f"B8:3F:D2:33:9C:{number}", **changes})


def finding(
    print_: str, severity: str = "error", rule: str = "pcie-width-downgraded", label: str = "GPU2"
) -> InventoryFinding:
    """A finding with this fingerprint."""
    return InventoryFinding(
        fingerprint=print_, severity=severity, rule=rule, label=label, summary="8 lanes; both ends can do 16"
    )


def node(house: House | None, name: str = "gpu01", **changes: Any) -> DesiredNode:
    """A node; its name and serial are of one house, as a real one keeps what earlier tests made."""
    mark = house.mark if house else "0"
    result: dict[str, Any] = {
        "name": f"{name}-{mark}",
        "serial": f"S-{name}-{mark}",
        "machine_id": f"{name}-{mark}",
        "verdict": "ok",
        "modules_known": True,
        "interfaces_known": True,
        "modules": [
            *(gpu(bay, f"{at}") for at, bay in enumerate(GPUS)),
            nic(ETHERNET, "ConnectX-6 Dx MT_0000000359", "33-9c-bf", part_number="MT_0000000359"),
            nic(INFINIBAND, "ConnectX-7 MT_0000000838", "76-f9-6b"),
            InventoryModule(bay=SWITCH, kind="NVSwitch", manufacturer="NVIDIA", model="NVSwitch 3"),
        ],
        "interfaces": [
            port("ens1f0np0", "B0"),
            port("ens1f1np1", "B1"),
            InventoryInterface(name="ibp26s0", bay=INFINIBAND, type="infiniband-ndr", wwn="B8:3F:D2:03:00:76:F9:6B"),
        ],
    }
    return DesiredNode(**{**result, **changes})


def report_nodes(*nodes: DesiredNode) -> Sequence[ReportedNode]:
    """Nodes as a run takes them."""
    return [ReportedNode(node, f"{node.name}.json") for node in nodes]


def changed(desired: DesiredNode, **changes: Any) -> DesiredNode:
    """The same node, later."""
    return msgspec.structs.replace(desired, **changes)


def linked(switch: str, port_name: str = "swp1", interface: str = "ens1f0np0") -> list[InventoryCable]:
    """What LLDP says of one port."""
    return [InventoryCable(interface=interface, device=switch, ports=[port_name])]
