"""PCIe settings in configuration space: payload size, tags, link power management."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from agent.model.finding import Evidence
from agent.model.gpu import Gpu
from agent.model.nic import Nic
from agent.model.pci import PciFunction
from agent.model.reasons import Reason
from agent.rules.context import RuleContext
from agent.rules.devices import find_function, is_consumer, severity_by_role, why_unreachable
from agent.rules.node_wide import on_all
from agent.rules.rule import NODE, Fail, NamedSubject, Pass, Result, Subject, Unknown, rule
from agent.rules.wording import join_labels

_HEADER_BYTES = 64  # what the kernel gives of config space to a reader without CAP_SYS_ADMIN
HIDDEN = Reason("needs-root", detail="config space past its first 64 bytes needs root (CAP_SYS_ADMIN)")


class DeviceRegisters(Subject, frozen=True):
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
    def ids(self) -> frozenset[str]:
        """What a fault of its settings is about."""
        return frozenset({self.function.id})

    def severity(self, word: str) -> str:
        """How severe a fault is here that has severity `word` on a GPU or a rail."""
        return word if self.nic is None else severity_by_role(word, self.nic) or "info"


def device_registers(context: RuleContext) -> Iterator[DeviceRegisters | Result]:
    """Every GPU and NIC whose settings are its own and in use; an answer for every other."""
    for gpu in sorted(context.topology.gpus, key=lambda gpu: gpu.id):
        yield _read_registers(context, gpu)
    for nic in sorted(context.topology.nics, key=lambda nic: nic.id):
        yield _read_registers(context, nic)


def nic_registers(context: RuleContext) -> Iterator[DeviceRegisters | Result]:
    """The same without GPUs that could be judged: for settings that only matter on NICs."""
    return (
        register
        for register in device_registers(context)
        if not isinstance(register, DeviceRegisters) or register.nic is not None
    )


def _read_registers(context: RuleContext, device: Gpu | Nic) -> DeviceRegisters | Result:
    function = find_function(context, device)
    about = NamedSubject(f"pci:{device.pci or device.id}", device.label, frozenset())
    if context.virtual_machine:
        return about.not_applicable("guest", detail="virtual machine: the hypervisor controls its settings")
    if isinstance(device, Nic):
        if device.virtual_function or (function and function.physical_function):
            return about.not_applicable(
                "guest", detail="a virtual function: its settings are those of the physical one"
            )
        if severity_by_role("warning", device) is None:
            return about.not_applicable("not-in-use", detail="a NIC that no job uses")
    if function is None or device.id not in (device.pci, function.id):
        return about.not_applicable("no-such-device", detail="no PCI function of its own")
    if absent := why_unreachable(function):
        return about.not_applicable(absent)
    gpu, nic = (device, None) if isinstance(device, Gpu) else (None, device)
    return DeviceRegisters(function, device.label, gpu, nic)


def why_unread(function: PciFunction, what: str) -> Reason:
    """Why a setting is not known: a short read is never "off". Without an address: many functions have one reason."""
    return HIDDEN if is_hidden(function) else Reason("not-read", fact=what)


def is_hidden(function: PciFunction) -> bool:
    """Whether its settings were not shown for lack of privilege."""
    return function.config_bytes == _HEADER_BYTES


def register_evidence(function: PciFunction, what: str, value: str, name: str) -> Evidence:
    """A setting as evidence; `name`: its register, as lspci prints it."""
    return Evidence(f"{what} of {function.id}", value, f"lspci -vvv -s {function.id} ({name}; root)")


_EMULATED = frozenset({"0x1b36"})  # QEMU: its ports state a payload size that limits nothing


@rule("pcie-mps-mismatch")
def pcie_mps_mismatch(context: RuleContext) -> Iterator[Result]:
    reported: set[str] = set()
    peers: list[DeviceRegisters] = []
    for register in device_registers(context):
        if not isinstance(register, DeviceRegisters):
            yield register
            continue
        answers = list(_judge_mps_mismatch(context, register, reported))
        yield from answers
        fits = any(isinstance(answer, Pass | Unknown) for answer in answers)
        if fits and (register.gpu or (register.nic and register.nic.role == "rail")):
            peers.append(register)
    # Nothing where all send one size, or where one is not known: its device has that answer already.
    of: dict[int, list[DeviceRegisters]] = {}
    for peer in peers:
        if peer.function.max_payload_bytes is not None:
            of.setdefault(peer.function.max_payload_bytes, []).append(peer)
    if len(of) < 2:
        return
    if context.node.cmdline is None:
        yield NODE.unknown(
            "not-shown", detail=f"GPUs and rails send different sizes, and whether {_PERF} lets them is not known"
        )
    elif _PERF in context.node.cmdline:
        yield _fail_mps_uneven(of, "error" if _meets_smaller(context, of) else "warning")


def _judge_mps_mismatch(context: RuleContext, registers: DeviceRegisters, reported: set[str]) -> Iterator[Result]:
    unread: Reason | None = None
    failed = False
    way = [registers.function, *context.ancestors(registers.function)]
    if len(way) == 1:
        yield registers.not_applicable("no-such-device", detail="no port above it")
        return
    if registers.function.driver == "":
        yield registers.not_applicable("not-in-use", detail="no driver is bound: it sends nothing")
        return
    for child, parent in pairwise(way):
        if why_unreachable(parent):
            yield registers.not_applicable(
                "other-kind", detail=f"the port above it, {parent.id}: {why_unreachable(parent)}"
            )
            return
        if parent.vendor in _EMULATED:
            yield registers.not_applicable("other-kind", detail=f"the port above it, {parent.id}, is an emulated one")
            return
        small, large = parent.max_payload_bytes, child.max_payload_bytes
        if small is None or large is None:
            unread = unread or why_unread(parent if small is None else child, "the payload size")
        elif large > small:
            failed = True
            if child.id not in reported:
                reported.add(child.id)
                yield _fail_mps_mismatch(registers, child, parent, large, small)
    if not failed:
        yield registers.unknown(unread) if unread else registers.passes()


def _fail_mps_mismatch(
    registers: DeviceRegisters, child: PciFunction, parent: PciFunction, large: int, small: int
) -> Fail:
    return Fail(
        subject=f"pci:{child.id}",
        label=registers.label if child.id == registers.function.id else f"{child.id} above {registers.label}",
        summary=f"it may send packets of {large} bytes; the port above it, {parent.id}, takes {small}",
        impact=f"a packet of more than {small} bytes is a fatal error that takes the device off the bus, under load.",
        evidence=(
            register_evidence(child, "MPS", f"{large} bytes", "DevCtl: MaxPayload"),
            register_evidence(parent, "MPS", f"{small} bytes", "DevCtl: MaxPayload"),
        ),
        severity=registers.severity("error"),
        ids=frozenset({child.id, parent.id, registers.function.id}),
    )


_PERF = "pcie_bus_perf"


def _meets_smaller(context: RuleContext, of: Mapping[int, list[DeviceRegisters]]) -> bool:
    """Whether two with different sizes meet at a PCIe switch, without a root complex that may split packets."""
    sizes = {place: size for size, peers in of.items() for peer in peers for place in peer.ids}
    return any(
        path.kind in ("PIX", "PXB") and len({sizes.get(path.a), sizes.get(path.b)} - {None}) > 1
        for path in context.topology.paths
    )


def _fail_mps_uneven(of: Mapping[int, list[DeviceRegisters]], severity: str) -> Fail:
    sizes = sorted(of)
    sizes_text = "; ".join(
        f"{size} bytes: {join_labels([registers.label for registers in of[size]])}" for size in sizes
    )
    return NODE.fail(
        summary=f"GPUs and rails send PCIe packets of {len(sizes)} sizes ({sizes_text}), as {_PERF} lets them",
        impact="A packet larger than its peer accepts is a fatal error: one peer-to-peer transfer can stop a job.",
        evidence=tuple(
            register_evidence(registers.function, "MPS", f"{size} bytes", "DevCtl: MaxPayload")
            for size in sizes
            for registers in of[size]
        ),
        severity=severity,
        cause="uneven",
        ids=frozenset().union(*(registers.ids for size in sizes[1:] for registers in of[size])),
        explains_ids=frozenset(),  # a size that is too small is another fault
    )


_LEAST = 128
_BETTER = 256
_BY_DESIGN = "pcie_bus_peer2peer"


@rule("pcie-mps-small", each=device_registers, merge=on_all("PCIe packets of 128 bytes on every GPU and NIC"))
def pcie_mps_small(context: RuleContext, registers: DeviceRegisters) -> Result:
    if registers.gpu and is_consumer(context, registers.gpu):
        return registers.not_applicable("other-kind", detail="a card for desktops")
    above = context.ancestors(registers.function)
    if not above:
        return registers.not_applicable("no-such-device", detail="no port above it")
    if registers.function.max_payload_bytes is None:
        return registers.unknown(why_unread(registers.function, "the payload size"))
    if registers.function.max_payload_bytes > _LEAST:
        return registers.passes()
    kin = [f for f in context.topology.pci if above[-1] in (f, *context.ancestors(f)) and not f.physical_function]
    able = {f.id: f.max_payload_supported_bytes for f in kin}
    if any(size is not None and size < _BETTER for size in able.values()):
        return registers.passes()
    if None in able.values():
        return registers.unknown(why_unread(next(f for f in kin if able[f.id] is None), "the payload size"))
    if context.node.cmdline is None:
        return registers.unknown("not-shown", detail=f"128 bytes, and whether {_BY_DESIGN} asked for it is not known")
    if _BY_DESIGN in context.node.cmdline:
        return registers.not_applicable("by-design", detail=f"{_BY_DESIGN} on the kernel command line: set on purpose")
    top = above[-1]
    return registers.fail(
        summary=f"it sends PCIe packets of {_LEAST} bytes; everything below {top.id} can take {_BETTER}",
        impact="With payloads of 128 bytes a larger part of the link carries headers, and its usable "
        "bandwidth is lower.",
        evidence=(
            register_evidence(registers.function, "MPS", f"{_LEAST} bytes", "DevCtl: MaxPayload"),
            register_evidence(
                registers.function,
                "most that it can",
                f"{registers.function.max_payload_supported_bytes} bytes",
                "DevCap: MaxPayload",
            ),
        ),
        severity=registers.severity("warning"),
    )
