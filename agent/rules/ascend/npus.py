"""The Ascend NPUs of a case, and those of them that are missing or that the driver does not offer."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.gpu import Gpu
from agent.model.reasons import Reason
from agent.rules.context import RuleContext
from agent.rules.devices import DIES, find_device_id, find_function, find_lost_addresses, unreachable_reason
from agent.rules.rule import Fail, NotApplicable, Pass, Result, Unknown, rule
from agent.rules.wording import format_ranges, join_labels

A2 = "0xd802"
CONFIGURATION = "/etc/hccn.conf"
VENDOR = "0x19e5"
_A3_DIES = frozenset(f"0000:{bus:02x}:00.0" for bus in range(0x81, 0xA1, 2))  # public outputs of three machines
_BOARDS = (8, 16)  # NPUs of a board


def find_npus(case: RuleContext) -> list[Gpu]:
    """The Ascend NPUs."""
    return [gpu for gpu in case.topology.gpus if gpu.vendor == "Huawei"]


def is_a3(case: RuleContext) -> bool:
    """Whether an NPU is a die of an Atlas A3, by its PCI id: names do not tell A3 from A2."""
    return any(find_device_id(case, npu) in DIES for npu in find_npus(case))


@rule("npu-missing")
def npu_missing(case: RuleContext) -> Iterator[Result]:
    on_bus = [npu for npu in find_npus(case) if find_device_id(case, npu)]
    dies = [npu for npu in on_bus if find_device_id(case, npu) in DIES]
    ascend = case.topology.ascend
    known = {port.npu for port in ascend.ports} if ascend else set()
    nodes = (ascend.device_nodes if ascend else None) or 0
    if case.virtual_machine or not case.node.virtualization_known:
        yield NotApplicable(
            "node", Reason("guest", detail="a virtual machine, or it is not known: it has the NPUs that it was given")
        )
    elif not dies and not known and not nodes:
        yield NotApplicable(
            "node",
            Reason(
                "judged-elsewhere",
                detail="no die of an Atlas A3, no settings and no device nodes; see device-count-low",
            ),
        )
    elif case.bus_unread:
        yield Unknown("node", case.bus_unread)
    elif len(dies) % 2 or _gone_from_a3(dies):
        yield _fail_dies(case, dies)
    elif len(known) > len(on_bus):
        yield _fail_known(case, on_bus, known)
    elif nodes > len(on_bus) and not _has_virtual(case):
        yield _fail_nodes(case, on_bus, nodes)
    else:
        yield Pass("node")


def _has_virtual(case: RuleContext) -> bool:
    """Whether NPUs are divided: then one function of the bus may have several device nodes."""
    return any(function.vendor == VENDOR and function.physical_function for function in case.topology.pci)


def _fail_nodes(case: RuleContext, on_bus: list[Gpu], nodes: int) -> Fail:
    return Fail(
        subject="node",
        label="node",
        summary=f"NPUs on the PCI bus: {len(on_bus)}; the driver has made {nodes} device nodes /dev/davinciN",
        impact=f"Jobs that ask for {nodes} NPUs do not start, or fail on those that left the bus.",
        evidence=(
            Evidence(what="NPUs on the PCI bus", value=str(len(on_bus)), source="lspci -d 19e5: -nn"),
            Evidence(what="device nodes", value=str(nodes), source="/dev/davinci*"),
        ),
        severity="error",
        confidence="medium",
        cause="device-nodes",
        places=frozenset({"count of GPUs", *find_lost_addresses(case)}),
    )


def _gone_from_a3(dies: list[Gpu]) -> list[str]:
    """Addresses of dies that are not there, where all others are at those of an Atlas A3."""
    present = {die.id for die in dies}
    return sorted(_A3_DIES - present) if present and present.issubset(_A3_DIES) else []


def _fail_dies(case: RuleContext, dies: list[Gpu]) -> Fail:
    gone = _gone_from_a3(dies)
    buses = {int(die.id.split(":")[1], 16): die for die in dies}
    alone = [die for bus, die in buses.items() if not _partners(bus, bool(gone)) & buses.keys()]
    one = alone[0] if len(alone) == 1 else None
    partner = f", {one.label} has no partner: each module has two" if one else ": each module has two"
    return Fail(
        subject=f"gpu:{one.id}" if one else "node",
        label=one.label if one else "node",
        summary=f"dies on the PCI bus: {len(dies)} of {len(_A3_DIES)}; nothing is at {join_labels(gone)}"
        if gone
        else f"dies on the PCI bus: {len(dies)}{partner}",
        impact="Jobs that ask for whole modules, or for all of them, do not start.",
        evidence=(Evidence(what="dies of Atlas A3", value=str(len(dies)), source="lspci -d 19e5: -nn"),),
        severity=None if len(dies) % 2 else "error",  # the addresses are those of three machines
        confidence="high" if len(dies) % 2 else "medium",
        cause="" if one else "dies",
        places=frozenset({"count of GPUs", *(die.id for die in alone), *gone, *find_lost_addresses(case)}),
    )


def _partners(bus: int, is_known: bool) -> set[int]:
    """Buses of the other die of a module; `is_known`: at the addresses of an Atlas A3, from 81 on in pairs."""
    return {bus ^ 2} if is_known else {bus - 2, bus + 2}


def _fail_known(case: RuleContext, on_bus: list[Gpu], known: set[int]) -> Fail:
    """NPUs with settings of their ports, and not so many on the bus."""
    present = {npu.index for npu in on_bus}
    gone = sorted(known.difference(present)) if known.issuperset(present) else []
    whole_board = known == set(range(len(known))) and len(known) in _BOARDS
    is_sure = whole_board and bool(on_bus or case.idle_gpu_driver)  # else cards that were taken out left them behind
    return Fail(
        subject="node",
        label="node",
        summary=f"NPUs on the PCI bus: {len(on_bus)} of {len(known)} that have settings of their RoCE port"
        + (f"; NPU {format_ranges(gone)} missing" if gone and on_bus else ""),
        impact=f"Jobs that ask for {len(known)} NPUs do not start, or run on fewer.",
        evidence=(
            Evidence(what="NPUs on the PCI bus", value=str(len(on_bus)), source="lspci -d 19e5: -nn"),
            Evidence(what="NPUs with settings of their RoCE port", value=format_ranges(known), source=CONFIGURATION),
        ),
        severity=None if is_sure else "warning",
        confidence="high" if is_sure else "medium",
        cause="settings",
        places=frozenset({"count of GPUs", *find_lost_addresses(case)}),
    )


@rule("npu-driver-missing")
def npu_driver_missing(case: RuleContext) -> Iterator[Result]:
    npus = [npu for npu in find_npus(case) if npu.driver_state not in ("vfio", "no_driver") and npu.pci]
    nodes = case.topology.ascend.device_nodes if case.topology.ascend else None
    npus = [npu for npu in npus if unreachable_reason(find_function(case, npu)) is None]
    if not npus:
        yield NotApplicable(
            "node", Reason("no-such-device", detail="no Ascend NPU on the bus that a driver is bound to")
        )
    elif case.node.container or case.node.job_limit:
        yield NotApplicable(
            "node", Reason("container", detail="a container or job has the device nodes that it was given")
        )
    elif nodes is None or any(npu.driver_state == "unknown" and not _has_driver(case, npu) for npu in npus):
        yield Unknown(
            "node",
            case.probe_failure("hccn") or Reason("not-shown", detail="/dev or the driver of an NPU was not read"),
        )
    elif nodes >= len(npus):
        yield Pass("node")
    else:
        yield _fail_driver(npus, nodes)


def _has_driver(case: RuleContext, npu: Gpu) -> bool:
    function = find_function(case, npu)
    return function is not None and bool(function.driver)


def _fail_driver(npus: list[Gpu], nodes: int) -> Fail:
    lost = [npu for npu in npus if npu.driver_state == "not_open"]
    alone = lost[0] if len(lost) == 1 else None
    return Fail(
        subject=f"gpu:{alone.id}" if alone else "node",
        label=alone.label if alone else "node",
        summary=f"{len(npus)} NPU{'s' if len(npus) != 1 else ''} on the bus with a driver, "
        f"{nodes} device node{'s' if nodes != 1 else ''} /dev/davinciN"
        + (f"; without one: {join_labels([npu.label for npu in lost])}" if lost else ""),
        impact=f"{len(npus) - nodes} of {len(npus)} NPUs cannot be used.",
        evidence=(
            Evidence(what="on the bus", value=join_labels([npu.label for npu in npus]), source="lspci -d 19e5: -nnk"),
            Evidence(what="device nodes", value=str(nodes), source="/dev/davinci*"),
        ),
        places=frozenset(npu.id for npu in lost or npus),
    )
