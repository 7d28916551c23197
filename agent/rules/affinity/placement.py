"""Where GPUs and NICs are on NUMA nodes and PCIe, seen from each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from agent.model.finding import Evidence
from agent.model.gpu import Gpu
from agent.model.nic import Nic
from agent.model.node import NumaNode
from agent.model.reasons import NO_EARLIER_RUN, Reason
from agent.model.topology import NEAREST_FIRST, Path
from agent.rules.context import RuleContext
from agent.rules.devices import (
    about_function,
    about_gpu,
    device_label,
    find_function,
    is_on_c2c,
    near_rail_id,
    pci_source,
    why_unreachable,
)
from agent.rules.rule import NODE, Fail, NotApplicable, Pass, Result, Unknown, rule
from agent.rules.wording import join_labels

_NEAR = ("PIX", "PXB")
_SURELY = 3  # times as many GPUs with a rail near as others: half of a node without is how some are built
_OTHER_SOCKET = 20  # ACPI SLIT: 20 and more is another socket; nodes of one socket (NPS, SNC) are 11 to 16 apart
_DIE_ON_HCCS = ("0x19e5", "0xd803")  # Ascend 910_93: HCCS is its link to the host, not PCIe
_UNSURE = "whether the way crosses the sockets of a physical machine is not known"


@rule("affinity-gpu-far-from-nic")
def affinity_gpu_far_from_nic(context: RuleContext) -> Iterator[Result]:
    if not context.rails:
        if context.why_no_rail_known and not context.virtual_machine:
            yield NODE.unknown(context.why_no_rail_known)
        elif context.why_bus_unread is None:
            yield NODE.not_applicable("no-such-device", detail="no rail")
        return
    near: list[Gpu] = []
    far: list[tuple[Gpu, Path]] = []
    doubtful: list[Gpu] = []  # they may have a rail near
    resting = 0  # GPUs that are not judged, as those of guests, and have none near
    for gpu in sorted(context.topology.gpus, key=lambda gpu: gpu.id):
        answer = _not_judged_reason(context, gpu)
        best = _nearest_path(context, gpu)
        if answer:
            resting += best is not None and best.pcie_kind not in _NEAR
            yield answer
        elif best is None:
            yield about_gpu(gpu).unknown("not-known", fact="its way to the rails")
        elif best.pcie_kind in _NEAR:
            near.append(gpu)
            yield about_gpu(gpu).passes()
        elif _undecided_nic(context, gpu):
            doubtful.append(gpu)
            yield about_gpu(gpu).unknown("not-known", fact="whether the NIC near it is a rail")
        elif context.why_bus_unread:
            doubtful.append(gpu)
            yield about_gpu(gpu).unknown(context.why_bus_unread.prefixed("a rail near it may not be listed: "))
        else:
            far.append((gpu, best))
    is_usual = len(near) >= _SURELY * (len(doubtful) + len(far) + resting)
    if not near:
        yield from _judge_without_switches(context, far)
    elif is_usual or _count_own_rails(context) >= _count_root_ports(context):
        yield from (_fail_distance(context, gpu, best) for gpu, best in far)
    elif far:
        yield _fail_few_nics(context, far)


def _not_judged_reason(context: RuleContext, gpu: Gpu) -> Result | None:
    about = about_gpu(gpu)
    absent = why_unreachable(find_function(context, gpu))
    if context.virtual_machine:
        return about.not_applicable("guest", detail="virtual machine: the hypervisor controls its PCI tree")
    if absent:
        return about.not_applicable(absent)
    if is_on_c2c(context, gpu) or any(p.kind == "C2C" for p in context.paths_of.get(gpu.id, ())):
        return about.not_applicable("other-kind", detail="a superchip: its GPU reaches NICs by C2C")
    return None


def _nearest_path(context: RuleContext, gpu: Gpu) -> Path | None:
    rails = {nic.id for nic in context.rails}
    ways = [p for p in context.paths_of.get(gpu.id, ()) if p.pcie_kind in NEAREST_FIRST and p.b in rails]
    return min(ways, key=lambda p: (NEAREST_FIRST.index(p.pcie_kind or ""), p.b), default=None)


def _undecided_nic(context: RuleContext, gpu: Gpu) -> Nic | None:
    """A NIC behind a switch with this GPU, of which its use is unknown, and which answers."""
    near = {end for p in context.paths_of.get(gpu.id, ()) if p.pcie_kind in _NEAR for end in (p.a, p.b)}
    return next(
        (nic for nic in context.maybe_rails if nic.id in near and why_unreachable(find_function(context, nic)) is None),
        None,
    )


def _judge_without_switches(context: RuleContext, far: list[tuple[Gpu, Path]]) -> Iterator[Result]:
    """Everything hangs on the CPUs: what can be wrong is the socket."""
    across = [_crosses_sockets(context, gpu, best) for gpu, best in far]
    if far and all(across):
        yield NODE.fail(
            summary=f"every rail is on another socket than {join_labels([gpu.label for gpu, _ in far])}",
            impact="All traffic between nodes crosses the link between the sockets and is copied through host memory.",
            evidence=tuple(_evidence(context, gpu, best) for gpu, best in far),
            severity="warning",
            values=(("LEVEL", "SYS"),),
            confidence="medium",
            cause="other-socket",
            ids=frozenset(place for gpu, _ in far for place in (gpu.id, near_rail_id(gpu.id))),
        )
        return
    for (gpu, _), crossed in zip(far, across, strict=True):
        why = "no GPU here has a rail behind a switch"
        yield (
            about_gpu(gpu).unknown("undecided", detail=f"{why}; {_UNSURE}")
            if crossed is None
            else about_gpu(gpu).not_applicable("other-kind", detail=why)
        )


def _crosses_sockets(context: RuleContext, gpu: Gpu, best: Path) -> bool | None:
    """Whether a way leads from one socket to another; None where it may. Nodes of one socket are SYS to each other."""
    if best.pcie_kind != "SYS":
        return False
    rail = context.nics[best.b]
    rows: dict[int | None, NumaNode] = {row.id: row for row in context.node.numa_nodes}
    here, there = rows.get(gpu.numa_node), rows.get(rail.numa_node)
    if not context.node.virtualization_known or here is None or there is None or there.id >= len(here.distances):
        return None
    return here.distances[there.id] >= _OTHER_SOCKET


def _count_root_ports(context: RuleContext) -> int:
    """How many root ports the GPUs hang from, those of guests, too: each could have a rail of its own."""
    tops = set()
    for gpu in context.topology.gpus:
        function = find_function(context, gpu)
        above = context.ancestors(function) if function else []
        tops.add(above[-1].id if above else gpu.id)
    return len(tops)


def _count_own_rails(context: RuleContext) -> int:
    """Rails of sockets with GPUs: where a server is filled by half, a rail of the other socket waits for its GPUs."""
    sockets = {gpu.numa_node for gpu in context.topology.gpus}
    return sum(nic.numa_node is None or nic.numa_node in sockets for nic in context.rails)


def _fail_distance(context: RuleContext, gpu: Gpu, best: Path) -> Fail:
    linked = any(link.state in ("active", "sleep") for link in gpu.links) or not gpu.links_known
    return about_gpu(gpu).fail(
        summary=f"nearest rail is {context.nics[best.b].label} at {best.pcie_kind}; "
        "other GPUs have one behind a switch",
        impact="NCCL does not use GPUDirect RDMA here by default: traffic is copied through host memory"
        + (", unless NCCL sends through another GPU's rail (PXN)." if linked else "."),
        evidence=(_evidence(context, gpu, best),),
        severity="warning" if linked else "error",
        values=(("LEVEL", "SYS" if best.pcie_kind == "SYS" else "PHB"),),  # NCCL has no NODE: its host bridge
        confidence="medium" if best.disagrees or not context.node.virtualization_known else "high",
        ids=frozenset({gpu.id, gpu.pci or gpu.id, near_rail_id(gpu.id)})
        | {f.id for f in context.topology.pci if f.state == "gone"},
    )


def _fail_few_nics(context: RuleContext, far: list[tuple[Gpu, Path]]) -> Fail:
    labels = join_labels([gpu.label for gpu, _ in far])
    return NODE.fail(
        summary=f"{len(context.rails)} rails for {len(context.topology.gpus)} GPUs; "
        f"{labels} reach one through the CPU only",
        impact="NCCL does not use GPUDirect RDMA for these by default: their traffic is copied through host memory.",
        evidence=tuple(_evidence(context, gpu, best) for gpu, best in far),
        severity="info",
        values=(("LEVEL", "SYS" if any(best.pcie_kind == "SYS" for _, best in far) else "PHB"),),
        confidence="medium",
        cause="few-nics",
        ids=frozenset(place for gpu, _ in far for place in (gpu.id, near_rail_id(gpu.id))),
    )


def _evidence(context: RuleContext, gpu: Gpu, best: Path) -> Evidence:
    return Evidence(f"{gpu.label} to {context.nics[best.b].label}", best.pcie_kind or "not known", "nvidia-smi topo -m")


@rule("numa-unknown")
def numa_unknown(context: RuleContext) -> Iterator[Result]:
    nodes = context.node.numa_nodes
    devices = {gpu.pci for gpu in context.topology.gpus if gpu.pci} | {nic.pci for nic in context.rails if nic.pci}
    devices |= _expanders(context)
    if not devices and context.why_bus_unread is None:
        yield NODE.not_applicable("no-such-device", detail="no GPU, no rail and no CXL memory")
    elif not devices or not nodes:
        return
    elif any(node.cpus is None for node in nodes):
        yield NODE.unknown("not-known", fact="which NUMA nodes have CPUs")
    elif len(context.cpu_nodes) < 2:
        yield NODE.not_applicable("nothing-to-compare", detail="one NUMA node with CPUs")
    else:
        yield from _judge_numa_unknown(context, sorted(devices & context.functions.keys()))


def _expanders(context: RuleContext) -> set[str]:
    """CXL memory in slots; what is part of the root complex is where its processor is."""
    devices = context.topology.cxl.devices if context.topology.cxl else []
    functions = [context.functions[device.id] for device in devices if device.id in context.functions]
    return {function.id for function in functions if function.parent is not None}


def _judge_numa_unknown(context: RuleContext, devices: list[str]) -> Iterator[Result]:
    lost: list[str] = []
    for pci in devices:
        function, about = context.functions[pci], about_function(context, pci)
        absent = why_unreachable(function)
        if absent or context.virtual_machine:
            yield about.not_applicable(
                absent or Reason("guest", detail="virtual machine: the hypervisor hides proximity")
            )
        elif (function.vendor, function.device) == _DIE_ON_HCCS and function.numa_declared is False:
            yield about.not_applicable(
                "other-kind",
                detail="Atlas A3: its dies are connected by HCCS, and the firmware names no NUMA node for them",
            )
        elif function.numa_declared is False:
            lost.append(pci)
        elif function.numa_declared is None:
            yield about.unknown("not-read", fact="its NUMA node")
        else:
            yield about.passes()
    memory = _expanders(context)
    if others := [pci for pci in lost if pci not in memory]:
        yield _fail_numa_unknown(context, others)
    if expanders := [pci for pci in lost if pci in memory]:
        yield replace(
            _fail_numa_unknown(context, expanders),
            severity="info",
            cause="memory",
            impact="To which socket this memory is near is not known from its slot.",
        )


def _fail_numa_unknown(context: RuleContext, lost: list[str]) -> Fail:
    labels = [device_label(context, pci) for pci in lost]
    count = len(context.cpu_nodes)
    return (about_function(context, lost[0]) if len(lost) == 1 else NODE).fail(
        label=labels[0] if len(lost) == 1 else "node",
        summary=f"the firmware names no NUMA node for {join_labels(labels)}, on a node that has {count}",
        impact=f"Processes and buffers that are not bound can be on the wrong one of {count} NUMA nodes.",
        evidence=tuple(
            Evidence(f"NUMA node of {label}", "-1", pci_source(context, pci, "numa_node"))
            for pci, label in zip(lost, labels, strict=True)
        ),
        ids=frozenset(lost),
    )


@rule("numa-changed")
def numa_changed(context: RuleContext) -> Iterator[Result]:
    devices = {f"gpu:{gpu.id}": gpu for gpu in context.topology.gpus} | {f"nic:{nic.id}": nic for nic in context.rails}
    if context.virtual_machine:
        yield NODE.not_applicable("guest", detail="virtual machine: the hypervisor hides proximity")
    elif not devices:
        if context.why_bus_unread is None:
            yield NODE.not_applicable("no-such-device", detail="no GPU and no rail")
    elif context.history is None or not context.history.runs:
        yield NODE.unknown("no-baseline", why=NO_EARLIER_RUN)
    elif count := context.history.settings.get("node", {}).get("numa_nodes"):
        yield NODE.fail(
            summary=f"{len(context.cpu_nodes)} NUMA nodes with CPUs, {count} in the last run: "
            "a sub-NUMA setting (NPS, SNC)",
            impact="Bindings by number of a NUMA node mean other CPUs and other memory than before.",
            evidence=(
                Evidence(
                    "NUMA nodes with CPUs", f"{len(context.cpu_nodes)}, was {count}", "/sys/devices/system/node/has_cpu"
                ),
            ),
            severity="info",
            cause="count",
            ids=frozenset({"NUMA nodes"}),
        )
    elif len(context.node.numa_nodes) == 1:
        yield NODE.not_applicable("nothing-to-compare", detail="one NUMA node")
    else:
        yield from _judge_numa_changed(context, devices, context.history.settings)


def _judge_numa_changed(
    context: RuleContext, devices: Mapping[str, Gpu | Nic], was: Mapping[str, Mapping[str, str]]
) -> Iterator[Result]:
    changed: list[tuple[str, str]] = []
    for subject, device in devices.items():
        absent = why_unreachable(find_function(context, device))
        before = was.get(subject, {}).get("numa_node")
        if absent:
            yield NotApplicable(subject, absent)
        elif device.numa_node is None:
            yield Unknown(subject, Reason("not-known", fact="its NUMA node"))
        elif before is None:
            yield Pass(subject)
        else:
            changed.append((subject, before))
    if changed:
        yield _fail_numa_changed(context, devices, changed)


def _fail_numa_changed(context: RuleContext, devices: Mapping[str, Gpu | Nic], changed: list[tuple[str, str]]) -> Fail:
    moves: dict[tuple[str, int | None], list[str]] = {}
    for subject, before in changed:
        moves.setdefault((before, devices[subject].numa_node), []).append(devices[subject].label)
    alone = changed[0][0] if len(changed) == 1 else "node"
    return Fail(
        subject=alone,
        label=devices[alone].label if alone in devices else "node",
        summary="; ".join(f"NUMA node {now}, was {before}: {join_labels(who)}" for (before, now), who in moves.items()),
        impact="Jobs, interrupts and buffers that are bound by number are on the wrong NUMA node for these devices.",
        evidence=tuple(
            Evidence(
                f"NUMA node of {devices[subject].label}",
                f"{devices[subject].numa_node}, was {before}",
                pci_source(context, devices[subject].pci or devices[subject].id, "numa_node"),
            )
            for subject, before in changed[:8]
        ),
        cause="device",
        ids=frozenset(devices[subject].pci or devices[subject].id for subject, _ in changed),
    )
