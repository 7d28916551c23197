"""What a NetBox has of a device, as plain data: for comparisons that need no NetBox."""

from __future__ import annotations

from typing import Any

from agent.netbox.changes import NetBoxChange
from agent.netbox.diff_modules import DeviceDiff
from agent.netbox.state import (
    ModuleBay,
    ModuleType,
    NestedRow,
    NetBoxChoice,
    NetBoxDevice,
    NetBoxInterface,
    NetBoxModule,
    NetBoxState,
)
from agent.outputs.inventory import objects

OURS = [NestedRow(id=1, name="fabricscope", slug="fabricscope")]
DEVICE, NVIDIA = NestedRow(id=7, name="gpu01"), NestedRow(id=1, name="NVIDIA", slug="nvidia")
H100 = ModuleType(id=5, manufacturer=NVIDIA, model="H100 80GB HBM3", tags=OURS)
GUESS = ModuleType(id=6, manufacturer=NVIDIA, model="H100 SXM5 80GB", tags=OURS)
NAMED = ModuleType(id=8, manufacturer=NVIDIA, model="HGX H100", part_number="H100 80GB HBM3")


def bay(number: int, name: str, ours: bool = True) -> ModuleBay:
    """A bay of the device."""
    return ModuleBay(id=number, device=DEVICE, name=name, tags=OURS if ours else [])


def module(number: int, in_bay: int, serial: str = "", ours: bool = True, **more: Any) -> NetBoxModule:
    """A GPU in a bay."""
    made = {"module_type": NestedRow(id=5, model="H100 80GB HBM3"), "tags": OURS if ours else []}
    return NetBoxModule(id=number, device=DEVICE, module_bay=NestedRow(id=in_bay), serial=serial, **{**made, **more})


def interface(number: int, name: str, ours: bool = True, **more: Any) -> NetBoxInterface:
    """An Ethernet port."""
    made = {"type": NetBoxChoice("100gbase-x-qsfp28"), "speed": 100_000_000, "module": NestedRow(id=3)}
    return NetBoxInterface(id=number, device=DEVICE, name=name, tags=OURS if ours else [], **{**made, **more})


def make_diff(
    one: objects.DesiredNode, prune: bool = False, types: tuple[ModuleType, ...] = (H100,), **has: Any
) -> DeviceDiff:
    """A node and what NetBox has of it."""
    holding = NetBoxState(device=NetBoxDevice(id=7, name="gpu01", serial="S"), **has)
    return DeviceDiff("#7", one, holding, types, prune)


def short(changes: list[NetBoxChange]) -> list[str]:
    """Changes in few words."""
    return [f"{c.action} {c.kind} {c.name}" + (f" {c.after}" if c.action == "update" else "") for c in changes]
