"""The Ascend NPUs of a machine, and those of them that are missing or that the driver does not offer."""

from __future__ import annotations

from agent.model.finding import Evidence
from agent.model.gpu import Gpu
from agent.model.reasons import Reason
from agent.rules.context import RuleContext
from agent.rules.devices import DIES, about_gpu, find_device_id, find_function, find_lost_addresses, why_unreachable
from agent.rules.rule import NODE, Fail, Result, rule
from agent.rules.wording import format_ranges, join_labels

A2 = "0xd802"
CONFIGURATION = "/etc/hccn.conf"
VENDOR = "0x19e5"
_A3_DIES = frozenset(f"0000:{bus:02x}:00.0" for bus in range(0x81, 0xA1, 2))  # public outputs of three machines
_BOARDS = (8, 16)  # NPUs of a board


def find_npus(context: RuleContext) -> list[Gpu]:
    """The Ascend NPUs."""
    return [gpu for gpu in context.topology.gpus if gpu.vendor == "Huawei"]


def is_a3(context: RuleContext) -> bool:
    """Whether an NPU is a die of an Atlas A3, by its PCI id: names do not separate A3 from A2."""
    return any(find_device_id(context, npu) in DIES for npu in find_npus(context))


@rule("npu-missing")
def npu_missing(context: RuleContext) -> Result:
    on_bus = [npu for npu in find_npus(context) if find_device_id(context, npu)]
    dies = [npu for npu in on_bus if find_device_id(context, npu) in DIES]
    ascend = context.topology.ascend
    known = {port.npu for port in ascend.ports} if ascend else set()
    nodes = (ascend.device_nodes if ascend else None) or 0
    if context.virtual_machine or not context.node.virtualization_known:
        return NODE.not_applicable(
            "guest", detail="a virtual machine, or it is not known: it has the NPUs that it was given"
        )
    if not dies and not known and not nodes:
        return NODE.not_applicable(
            "judged-elsewhere", detail="no die of an Atlas A3, no settings and no device nodes; see device-count-low"
        )
    if context.why_bus_unread:
        return NODE.unknown(context.why_bus_unread)
    if len(dies) % 2 or _gone_from_a3(dies):
        return _fail_dies(context, dies)
    if len(known) > len(on_bus):
        return _fail_known(context, on_bus, known)
    if nodes > len(on_bus) and not _has_virtual(context):
        return NODE.fail(
            summary=f"NPUs on the PCI bus: {len(on_bus)}; the driver has made {nodes} device nodes /dev/davinciN",
            impact=f"Jobs that ask for {nodes} NPUs do not start, or fail on those that left the bus.",
            evidence=(
                Evidence("NPUs on the PCI bus", str(len(on_bus)), "lspci -d 19e5: -nn"),
                Evidence("device nodes", str(nodes), "/dev/davinci*"),
            ),
            severity="error",
            confidence="medium",
            cause="device-nodes",
            ids=frozenset({"count of GPUs", *find_lost_addresses(context)}),
        )
    return NODE.passes()


def _has_virtual(context: RuleContext) -> bool:
    """Whether NPUs are divided: then one function of the bus may have several device nodes."""
    return any(function.vendor == VENDOR and function.physical_function for function in context.topology.pci)


def _gone_from_a3(dies: list[Gpu]) -> list[str]:
    """Addresses of dies that are not there, where all others are at those of an Atlas A3."""
    present = {die.id for die in dies}
    return sorted(_A3_DIES - present) if present and present.issubset(_A3_DIES) else []


def _fail_dies(context: RuleContext, dies: list[Gpu]) -> Fail:
    gone = _gone_from_a3(dies)
    buses = {int(die.id.split(":")[1], 16): die for die in dies}
    alone = [die for bus, die in buses.items() if not _partners(bus, bool(gone)) & buses.keys()]
    one = alone[0] if len(alone) == 1 else None
    partner = f", {one.label} has no partner: each module has two" if one else ": each module has two"
    return (about_gpu(one) if one else NODE).fail(
        summary=f"dies on the PCI bus: {len(dies)} of {len(_A3_DIES)}; nothing is at {join_labels(gone)}"
        if gone
        else f"dies on the PCI bus: {len(dies)}{partner}",
        impact="Jobs that ask for whole modules, or for all of them, do not start.",
        evidence=(Evidence("dies of Atlas A3", str(len(dies)), "lspci -d 19e5: -nn"),),
        severity=None if len(dies) % 2 else "error",  # the addresses are those of three machines
        confidence="high" if len(dies) % 2 else "medium",
        cause="" if one else "dies",
        ids=frozenset({"count of GPUs", *(die.id for die in alone), *gone, *find_lost_addresses(context)}),
    )


def _partners(bus: int, is_known: bool) -> set[int]:
    """Buses of the other die of a module; `is_known`: at the addresses of an Atlas A3, from 81 on in pairs."""
    return {bus ^ 2} if is_known else {bus - 2, bus + 2}


def _fail_known(context: RuleContext, on_bus: list[Gpu], known: set[int]) -> Fail:
    """NPUs with settings of their ports, and not so many on the bus."""
    present = {npu.index for npu in on_bus}
    gone = sorted(known.difference(present)) if known.issuperset(present) else []
    whole_board = known == set(range(len(known))) and len(known) in _BOARDS
    is_sure = whole_board and bool(
        on_bus or context.why_gpu_driver_idle
    )  # else cards that were taken out left them behind
    return NODE.fail(
        summary=f"NPUs on the PCI bus: {len(on_bus)} of {len(known)} that have settings of their RoCE port"
        + (f"; NPU {format_ranges(gone)} missing" if gone and on_bus else ""),
        impact=f"Jobs that ask for {len(known)} NPUs do not start, or run on fewer.",
        evidence=(
            Evidence("NPUs on the PCI bus", str(len(on_bus)), "lspci -d 19e5: -nn"),
            Evidence("NPUs with settings of their RoCE port", format_ranges(known), CONFIGURATION),
        ),
        severity=None if is_sure else "warning",
        confidence="high" if is_sure else "medium",
        cause="settings",
        ids=frozenset({"count of GPUs", *find_lost_addresses(context)}),
    )


@rule("npu-driver-missing")
def npu_driver_missing(context: RuleContext) -> Result:
    npus = [npu for npu in find_npus(context) if npu.driver_state not in ("vfio", "no_driver") and npu.pci]
    nodes = context.topology.ascend.device_nodes if context.topology.ascend else None
    npus = [npu for npu in npus if why_unreachable(find_function(context, npu)) is None]
    if not npus:
        return NODE.not_applicable("no-such-device", detail="no Ascend NPU on the bus that a driver is bound to")
    if context.node.container or context.node.job_limit:
        return NODE.not_applicable("container", detail="a container or job has the device nodes that it was given")
    if nodes is None or any(npu.driver_state == "unknown" and not _has_driver(context, npu) for npu in npus):
        return NODE.unknown(
            context.why_probe_failed("hccn") or Reason("not-shown", detail="/dev or the driver of an NPU was not read")
        )
    if nodes >= len(npus):
        return NODE.passes()
    lost = [npu for npu in npus if npu.driver_state == "not_open"]
    alone = lost[0] if len(lost) == 1 else None
    return (about_gpu(alone) if alone else NODE).fail(
        summary=f"{len(npus)} NPU{'s' if len(npus) != 1 else ''} on the bus with a driver, "
        f"{nodes} device node{'s' if nodes != 1 else ''} /dev/davinciN"
        + (f"; without one: {join_labels([npu.label for npu in lost])}" if lost else ""),
        impact=f"{len(npus) - nodes} of {len(npus)} NPUs cannot be used.",
        evidence=(
            Evidence("on the bus", join_labels([npu.label for npu in npus]), "lspci -d 19e5: -nnk"),
            Evidence("device nodes", str(nodes), "/dev/davinci*"),
        ),
        ids=frozenset(npu.id for npu in lost or npus),
    )


def _has_driver(context: RuleContext, npu: Gpu) -> bool:
    function = find_function(context, npu)
    return function is not None and bool(function.driver)
