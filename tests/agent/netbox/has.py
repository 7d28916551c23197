"""What a NetBox has of a device, as plain data: for comparisons that need no NetBox."""

from __future__ import annotations

from typing import Any

from agent.netbox.changes import Change
from agent.netbox.current import (
    Bay,
    Choice,
    Device,
    Holding,
    Interface,
    Module,
    ModuleType,
    Nested,
)
from agent.netbox.of_modules import Of
from agent.outputs.inventory import objects

OURS = [Nested(id=1, name="fabricscope", slug="fabricscope")]
DEVICE, NVIDIA = Nested(id=7, name="gpu01"), Nested(id=1, name="NVIDIA", slug="nvidia")
H100 = ModuleType(id=5, manufacturer=NVIDIA, model="H100 80GB HBM3", tags=OURS)
GUESS = ModuleType(id=6, manufacturer=NVIDIA, model="H100 SXM5 80GB", tags=OURS)
NAMED = ModuleType(id=8, manufacturer=NVIDIA, model="HGX H100", part_number="H100 80GB HBM3")


def bay(number: int, name: str, ours: bool = True) -> Bay:
    """A bay of the device."""
    return Bay(id=number, device=DEVICE, name=name, tags=OURS if ours else [])


def module(number: int, in_bay: int, serial: str = "", ours: bool = True, **more: Any) -> Module:
    """A GPU in a bay."""
    made = {"module_type": Nested(id=5, model="H100 80GB HBM3"), "tags": OURS if ours else []}
    return Module(id=number, device=DEVICE, module_bay=Nested(id=in_bay), serial=serial, **{**made, **more})


def interface(number: int, name: str, ours: bool = True, **more: Any) -> Interface:
    """An Ethernet port."""
    made = {"type": Choice("100gbase-x-qsfp28"), "speed": 100_000_000, "module": Nested(id=3)}
    return Interface(id=number, device=DEVICE, name=name, tags=OURS if ours else [], **{**made, **more})


def of(one: objects.DesiredNode, prune: bool = False, types: tuple[ModuleType, ...] = (H100,), **has: Any) -> Of:
    """A node and what NetBox has of it."""
    holding = Holding(device=Device(id=7, name="gpu01", serial="S"), **has)
    return Of("#7", one, holding, types, prune)


def short(changes: list[Change]) -> list[str]:
    """Changes in few words."""
    return [f"{c.action} {c.kind} {c.name}" + (f" {c.after}" if c.action == "update" else "") for c in changes]
