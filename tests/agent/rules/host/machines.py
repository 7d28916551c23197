"""Machines with a profile: what is due, what is missing, what a good device was like."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from agent.model.node import Platform
from agent.model.profile import Device, Expected, Profile
from tests.agent.rules.build import gpu_id, server, topology


def due(value: float | str, confidence: str = "high") -> Expected:
    """One expected number or word."""
    return Expected(value=value, source="a good source", confidence=confidence)


def with_profile(case, sure: str = "exact", **expected: Any):
    """The same machine with a profile."""
    made = Profile(name="test", **expected)
    return replace(case, profile=made, platform=Platform(profile="test", confidence=sure))


def without_gpu(case, n: int = 3):
    """The same machine with one GPU off the bus."""
    return topology(
        case,
        pci=[f for f in case.topology.pci if f.id != gpu_id(n)],
        gpus=[gpu for gpu in case.topology.gpus if gpu.id != gpu_id(n)],
    )


def short(**more: Any):
    """Three of four GPUs."""
    return with_profile(without_gpu(server()), gpus=due(4), **more)


def like(pci: str, **more: Any) -> Device:
    """A device of a learnt profile: a GPU at Gen 5 x16 unless told otherwise."""
    words = {"kind": "gpu", "name": "GPU1", "link_gt_s": 32.0, "link_width": 16} | more
    return Device(pci=pci, **words)
