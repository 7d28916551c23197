"""Devices whose PCIe errors are judged, the links to them, and how many errors a link of their speed may have."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

from agent.model.counters import aer_counters, gpu_counters
from agent.model.gpu import Gpu
from agent.model.pci import Link, PciFunction
from agent.rules import gates
from agent.rules.case import Case
from agent.rules.devices import away, label_of
from agent.rules.rule import Answer, NotApplicable, Unknown
from agent.rules.runtime import Counters, Place

# Errors a minute and lane by GT/s: a bit error rate of 1e-12 (DCGM, PcieMain.cpp)
_PER_LANE = {2.5: 0.15, 5.0: 0.30, 8.0: 0.48, 16.0: 0.96, 32.0: 1.92, 64.0: 3.84}
_DRIVE, _SWITCH, _NVIDIA = "0x0108", "0x0680", "0x10de"
ABOVE_A_LINK = ("root_port", "downstream")


class End(NamedTuple):
    """One function with its error counters; its link is the one to the port above it."""

    function: PciFunction
    counters: Counters
    place: Place


def ends(case: Case) -> Iterator[End | Answer]:
    """GPUs, NICs, NVSwitches and NVMe drives, and every port above them, in the order of ids."""
    shut = gates.device_runtime(case)
    if shut is not None:
        yield shut
        return
    if not case.topology.pci and case.bus_unread:
        yield Unknown("node", case.bus_unread)
    devices = [function for function in case.topology.pci if _matters(case, function)]
    above = {port.id for function in devices for port in case.ancestors(function)}
    wanted = above | {function.id for function in devices}
    for function in case.topology.pci:
        if function.id in wanted:
            yield _end(case, function)


def gpus(case: Case) -> Iterator[tuple[Gpu, Place, Counters] | Answer]:
    """GPUs with the counters that their driver keeps of their links."""
    shut = gates.device_runtime(case)
    if shut is not None:
        yield shut
        return
    if not case.topology.gpus:
        why = case.bus_unread
        yield Unknown("node", why) if why else NotApplicable("node", "no GPU")
    for gpu in case.topology.gpus:
        absent = away(case.functions.get(gpu.pci or ""))
        place = Place(f"gpu:{gpu.id}", gpu.label, frozenset({gpu.id, gpu.pci or gpu.id}))
        if absent:
            yield NotApplicable(place.subject, absent)
        else:
            which = f" -i {gpu.index}" if gpu.index is not None else ""
            yield gpu, place, Counters(place.subject, gpu_counters(gpu), called(f"nvidia-smi -q{which}"))


def budget(link: Link | None) -> int:
    """Errors a minute that a link of this speed and width may have; unknown ones as Gen 5 x16.

    The best speed that it can do: a GPU that idles at 2.5 GT/s in between is not held to less.
    """
    speed = (link and (link.max_speed_gt_s or link.speed_gt_s)) or 32.0
    width = (link and (link.max_width or link.width)) or 16
    return math.ceil(width * _PER_LANE.get(speed, max(_PER_LANE.values())))


def port_above(case: Case, function: PciFunction) -> PciFunction | None:
    """The other end of a function's link; for one function of a card, so that its errors are told once."""
    if not function.id.endswith(".0"):
        return None
    port = case.functions.get(function.parent or "")
    return port if port is not None and port.port_type in ABOVE_A_LINK else None


def of_function(function: PciFunction) -> Counters:
    """The AER counters of a function."""
    folder = f"/sys/bus/pci/devices/{function.id}/aer_dev_"
    return Counters(f"pci:{function.id}", aer_counters(function), lambda name: folder + name.partition(".")[0])


def called(command: str) -> Callable[[str], str]:
    """The same command for every counter."""
    return lambda name: command


def _matters(case: Case, function: PciFunction) -> bool:
    if function.physical_function in case.functions:
        return False
    kind = (function.class_code or "")[:6]
    nvswitch = kind == _SWITCH and function.vendor == _NVIDIA
    return function.id in case.gpu_by_pci or function.id in case.nic_by_pci or kind == _DRIVE or nvswitch


def _end(case: Case, function: PciFunction) -> End | Answer:
    absent = away(function)
    if absent:
        return NotApplicable(f"pci:{function.id}", absent)
    place = Place(
        f"pci:{function.id}",
        label_of(case, function.id),
        frozenset({function.id}),
        case.nic_by_pci.get(function.id),
    )
    return End(function, of_function(function), place)
