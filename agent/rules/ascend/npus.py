"""The Ascend NPUs of a case, and those of them that are missing or that the driver does not offer."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.gpu import Gpu
from agent.rules.context import RuleContext
from agent.rules.devices import find_device_id, find_function, unreachable_reason
from agent.rules.rule import Fail, NotApplicable, Pass, Result, Unknown, rule
from agent.rules.wording import join_labels

A2 = "0xd802"
DIES = frozenset({"0xd803", "0xd804"})  # Atlas A3: two of them are a module


def find_npus(case: RuleContext) -> list[Gpu]:
    """The Ascend NPUs."""
    return [gpu for gpu in case.topology.gpus if gpu.vendor == "Huawei"]


def is_a3(case: RuleContext) -> bool:
    """Whether an NPU is a die of an Atlas A3, by its PCI id: names do not tell A3 from A2."""
    return any(find_device_id(case, npu) in DIES for npu in find_npus(case))


@rule("npu-missing")
def npu_missing(case: RuleContext) -> Iterator[Result]:
    dies = [npu for npu in find_npus(case) if find_device_id(case, npu) in DIES]
    if not dies:
        yield NotApplicable("node", "no die of an Atlas A3; counts of a platform have device-count-low")
    elif case.virtual_machine or not case.node.virtualization_known:
        yield NotApplicable("node", "a virtual machine, or it is not known: it has the dies that it was given")
    elif case.bus_unread:
        yield Unknown("node", case.bus_unread)
    elif len(dies) % 2 == 0:
        yield Pass("node")
    else:
        yield _fail_missing(dies)


def _fail_missing(dies: list[Gpu]) -> Fail:
    buses = {int(die.id.split(":")[1], 16): die for die in dies}
    alone = [die for bus, die in buses.items() if bus + 2 not in buses and bus - 2 not in buses]
    named = f", {alone[0].label} has no partner" if len(alone) == 1 else ""
    return Fail(
        subject=f"gpu:{alone[0].id}" if len(alone) == 1 else "node",
        label=alone[0].label if len(alone) == 1 else "node",
        summary=f"{len(dies)} dies on the bus{named}: each module has two",
        impact="One die of a module is gone; jobs that ask for whole modules do not start.",
        evidence=(Evidence(what="dies of Atlas A3", value=str(len(dies)), source="lspci -d 19e5: -nn"),),
        places=frozenset(die.id for die in alone) or frozenset({"node"}),
    )


@rule("npu-driver-missing")
def npu_driver_missing(case: RuleContext) -> Iterator[Result]:
    npus = [npu for npu in find_npus(case) if npu.driver_state not in ("vfio", "no_driver") and npu.pci]
    nodes = case.topology.ascend.device_nodes if case.topology.ascend else None
    npus = [npu for npu in npus if unreachable_reason(find_function(case, npu)) is None]
    if not npus:
        yield NotApplicable("node", "no Ascend NPU on the bus that a driver is bound to")
    elif case.node.container or case.node.job_limit:
        yield NotApplicable("node", "a container or job has the device nodes that it was given")
    elif nodes is None or any(npu.driver_state == "unknown" and not _has_driver(case, npu) for npu in npus):
        yield Unknown("node", case.probe_failure("hccn") or "/dev or the driver of an NPU was not read")
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
        summary=f"{len(npus)} NPUs on the bus with a driver, {nodes} device nodes /dev/davinciN"
        + (f"; without one: {join_labels([npu.label for npu in lost])}" if lost else ""),
        impact=f"{len(npus) - nodes} of {len(npus)} NPUs cannot be used.",
        evidence=(
            Evidence(what="on the bus", value=join_labels([npu.label for npu in npus]), source="lspci -d 19e5: -nnk"),
            Evidence(what="device nodes", value=str(nodes), source="/dev/davinci*"),
        ),
        places=frozenset(npu.id for npu in lost or npus),
    )
