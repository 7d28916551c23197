"""Two whole GPU machines to test with: an HGX with switches, and a workstation with bridges."""

from __future__ import annotations

from probes.gpu import nvml
from probes.gpu.facts import GpuFacts
from tests.probes.gpu.gpu_machine import (
    NOT_SUPPORTED,
    GpuMachine,
    gpu_answers,
    link_answers,
    pair_answers,
    system_answers,
)

HGX = [f"0000:{bus}:00.0" for bus in ("1b", "43", "52", "61", "9d", "c3", "d1", "df")]
SWITCHES = [f"0000:{bus}:00.0" for bus in ("05", "06", "07", "08")]


def hgx_h100() -> GpuMachine:
    """8 H100 SXM, each with 18 links into 4 NVSwitches."""
    answers = system_answers(8)
    for index, address in enumerate(HGX):
        into_switches = {link: (SWITCHES[link % 4], 32 + link) for link in range(18)}
        answers |= gpu_answers(index, address) | link_answers(index, into_switches, kind=2)
        for other in range(index):
            answers |= pair_answers(other, index, level=50, nvlink=0)
    return GpuMachine(answers).with_pci(*HGX).with_driver()


def bridged_pairs() -> GpuMachine:
    """4 A6000-like cards in two pairs, 0-2 and 1-3, each with a bridge of 4 links."""
    at = HGX[:4]
    peers = {0: 2, 1: 3, 2: 0, 3: 1}
    answers = system_answers(4)
    for index, address in enumerate(at):
        bridge = {link: (at[peers[index]], link) for link in range(4)}
        answers |= gpu_answers(index, address, GetArchitecture=7, GetGpuFabricInfoV=NOT_SUPPORTED)
        answers |= link_answers(index, bridge, kind=0, version=5, mbyte_s=14062, count=4)
        for other in range(index):
            bridged = peers[index] == other
            answers |= pair_answers(other, index, level=30 if bridged else 40, nvlink=0 if bridged else 5)
    return GpuMachine(answers).with_pci(*at).with_driver()


def facts_of(machine: GpuMachine) -> GpuFacts:
    facts = nvml.read(machine).facts
    assert isinstance(facts, GpuFacts)
    return facts
