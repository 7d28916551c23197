"""GPUs and NICs whose settings in config space are judged: which are looked at, and why the others are not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from agent.model.finding import Evidence
from agent.model.gpu import Gpu
from agent.model.nic import Nic
from agent.model.pci import PciFunction
from agent.rules.case import Case
from agent.rules.devices import away, by_role, function_of
from agent.rules.rule import Answer, NotApplicable

_HEADER_BYTES = 64  # what the kernel gives of config space to a reader without CAP_SYS_ADMIN
HIDDEN = "config space past its first 64 bytes needs root (CAP_SYS_ADMIN)"


class Gear(NamedTuple):
    """A GPU, or a NIC that can do RDMA, with its PCI function."""

    function: PciFunction
    label: str
    gpu: Gpu | None = None
    nic: Nic | None = None

    @property
    def subject(self) -> str:
        """The function."""
        return f"pci:{self.function.id}"

    @property
    def places(self) -> frozenset[str]:
        """What a fault of its settings is about."""
        return frozenset({self.function.id})

    def severity(self, word: str) -> str:
        """How grave a fault is here that has severity `word` on a GPU or a rail."""
        return word if self.nic is None else by_role(word, self.nic) or "info"


def gear(case: Case) -> Iterator[Gear | Answer]:
    """Every GPU and NIC whose settings are its own and in use; an answer for every other."""
    for gpu in sorted(case.topology.gpus, key=lambda each: each.id):
        yield _judged(case, gpu, function_of(case, gpu), Gear)
    for nic in sorted(case.topology.nics, key=lambda each: each.id):
        yield _judged(case, nic, function_of(case, nic), Gear)


def nic_gear(case: Case) -> Iterator[Gear | Answer]:
    """The same without GPUs that could be judged: for settings that only matter on NICs."""
    return (each for each in gear(case) if not isinstance(each, Gear) or each.nic is not None)


def _judged(case: Case, device: Gpu | Nic, function: PciFunction | None, made: type[Gear]) -> Gear | Answer:
    subject = f"pci:{device.pci or device.id}"
    if case.virtual_machine:
        return NotApplicable(subject, "virtual machine: its settings are the hypervisor's")
    if isinstance(device, Nic):
        if device.virtual_function or (function and function.physical_function):
            return NotApplicable(subject, "a virtual function: its settings are those of the physical one")
        if by_role("warning", device) is None:
            return NotApplicable(subject, "a NIC that no job uses")
    if function is None or device.id not in (device.pci, function.id):
        return NotApplicable(subject, "no PCI function of its own")
    absent = away(function)
    if absent:
        return NotApplicable(subject, absent)
    gpu, nic = (device, None) if isinstance(device, Gpu) else (None, device)
    return made(function, device.label, gpu, nic)


def not_told(function: PciFunction, what: str) -> str:
    """Why a setting is not known: a short read is never "off". Without an address: many functions have one reason."""
    return HIDDEN if hidden(function) else f"{what} could not be read"


def hidden(function: PciFunction) -> bool:
    """Whether its settings were not shown for lack of privilege."""
    return function.config_bytes == _HEADER_BYTES


def register(function: PciFunction, what: str, value: str, name: str) -> Evidence:
    """A setting as evidence; `name`: its register, as lspci prints it."""
    return Evidence(what=f"{what} of {function.id}", value=value, source=f"lspci -vvv -s {function.id} ({name}; root)")
