"""The parts of a node that have peers: what each is, where it is, and with which others it is compared."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from agent.model.gpu import Gpu, GpuLink, NpuPort
from agent.model.nic import Netdev, Nic, Port, is_link_local
from agent.model.node import NumaNode
from agent.model.pci import CxlDevice, PciFunction
from agent.model.reasons import Reason
from agent.rules.cabling import position_on_card
from agent.rules.context import RuleContext
from agent.rules.devices import (
    device_label,
    find_device_id,
    find_function,
    gpu_model,
    is_virtual_gpu,
    why_location_unknown,
    why_unreachable,
)
from agent.rules.peers.fields import list_fields
from agent.rules.rule import Subject
from agent.rules.wording import find_median

ROLES = ("rail", "storage")  # of NICs that are compared
_READ = ("open", "unknown")  # states of a GPU
_ALIKE = "GPU"  # all of a source of nvidia-smi that names none
_DOWN = ("down", "notpresent", "lowerlayerdown", "dormant")


class PeerPart(Subject, frozen=True):
    """One part. `row`: the struct of the model that has its fields."""

    kind: str  # gpu | link | pci | nic | port | netdev | npu | cxl | numa: begins the names of its fields
    subject: str
    label: str
    row: Any
    ids: frozenset[str]  # at which findings of other rules about it are
    key: str  # the one of them that is its own
    role: str = ""  # rail | storage, of what belongs to NICs
    product: str = ""  # the board or model
    position: tuple[Any, ...] = ()  # on its card
    socket: int | None = None
    order: str = ""  # by which it is between its peers
    is_partial: bool = False  # it states less than its peers, and why is known


class PartsSkipped(msgspec.Struct, frozen=True):
    """A part that is not compared, and why."""

    subject: str
    reason: Reason
    is_open: bool = False  # the reason is that something is not known


_STRUCTS: dict[str, type] = {
    "gpu": Gpu, "link": GpuLink, "pci": PciFunction, "nic": Nic, "port": Port, "netdev": Netdev, "npu": NpuPort,
    "cxl": CxlDevice, "numa": NumaNode,
}  # fmt: skip


def list_compared_fields() -> frozenset[str]:
    """The names of all fields that are compared: "netdev.mtu"."""
    kinds = [(kind, struct, word) for kind, struct in _STRUCTS.items() for word in ("equal", "usual", "unique")]
    return frozenset(f"{kind}.{field.path}" for kind, struct, word in kinds for field in list_fields(struct, word))


def list_parts(context: RuleContext) -> Iterator[PeerPart | PartsSkipped]:
    """Every part of the node that may have peers, GPUs first."""
    for gpu in context.topology.gpus:
        yield from _list_gpu_parts(context, gpu)
    yield from _state_vlans(context, [part for nic in context.topology.nics for part in _list_nic_parts(context, nic)])
    yield from _list_stacked_netdevs(context)
    yield from _list_scale_out_netdevs(context)
    # Ports inside NPUs, CXL expanders, and the memory of sockets.
    ports = context.topology.ascend.ports if context.topology.ascend else []
    for port in ports:
        ids = frozenset(filter(None, (port.gpu, port.nic, f"npu-{port.npu}")))
        order = f"{port.npu:06}"
        subject = f"gpu:{port.gpu}" if port.gpu else f"npu:{port.npu}"
        yield PeerPart("npu", subject, f"NPU {port.npu}", port, ids, f"npu-{port.npu}", "rail", "NPU", order=order)
    for device in context.topology.cxl.devices if context.topology.cxl else []:
        function = context.functions.get(device.id)
        if function is not None and device.memdev is not None:
            product = f"{function.vendor}:{function.device}:{function.subsystem_vendor}:{function.subsystem_device}"
            label, ids = device_label(context, device.id), frozenset({device.id})
            yield PeerPart(
                "cxl", f"pci:{device.id}", label, device, ids, device.id, "", product, (), device.numa_node, device.id
            )
    for node in context.node.numa_nodes:
        if node.cpus and not context.virtual_machine:
            label, ids = f"NUMA node {node.id}", frozenset({f"numa-{node.id}"})
            yield PeerPart("numa", "node", label, node, ids, f"numa-{node.id}", order=f"{node.id:06}")


def _list_gpu_parts(context: RuleContext, gpu: Gpu) -> Iterator[PeerPart | PartsSkipped]:
    subject, function = f"gpu:{gpu.id}", find_function(context, gpu)
    absent = why_unreachable(function)
    if absent:
        yield PartsSkipped(subject, absent)
        return
    if is_virtual_gpu(gpu) or gpu.driver_state == "vfio":
        yield PartsSkipped(subject, Reason("guest", detail="a virtual GPU, or one for a virtual machine"))
        return
    model = gpu_model(context, gpu)
    if gpu.vendor == "NVIDIA" and not any(gpu_model(context, other) for other in context.topology.gpus):
        model = _ALIKE
    if not model:
        yield PartsSkipped(subject, Reason("not-known", fact="its product"), is_open=True)
        return
    ids = frozenset(filter(None, (gpu.id, gpu.pci)))
    sliced = gpu.mig is not None and bool(gpu.mig.current)
    # memory and its window are those of the instances then, and who made instances chose the mode
    mig = None if gpu.mig and gpu.mig.instances else gpu.mig
    row = msgspec.structs.replace(gpu, bar1_mib=None, memory_mib=None, mig=mig) if sliced else gpu
    if gpu.driver_state != "open":  # its name is that of a table
        row = msgspec.structs.replace(row, name=None)
    order, is_partial = gpu.id, sliced or gpu.driver_state not in _READ
    yield PeerPart("gpu", subject, gpu.label, row, ids, gpu.id, "", model, (), gpu.numa_node, order, is_partial)
    for link in gpu.links:
        if link.state == "active":
            place = f"{gpu.id}/{link.link}"
            at = ids | {f"{device}/{link.link}" for device in ids}
            label = f"{gpu.label} link {link.link}"
            yield PeerPart("link", f"link:{place}", label, link, at, place, "", f"{model} {link.protocol}", order=order)
    yield from _list_functions(context, function, "", model, (), gpu.numa_node)


def _list_functions(
    context: RuleContext,
    function: PciFunction | None,
    role: str,
    product: str,
    position: tuple[Any, ...],
    socket: int | None,
) -> Iterator[PeerPart]:
    """The PCI function of a device."""
    if function is None or context.virtual_machine or function.driver == "vfio-pci":
        return
    ids, label = frozenset({function.id}), device_label(context, function.id)
    yield PeerPart(
        "pci", f"pci:{function.id}", label, function, ids, function.id, role, product, position, socket, function.id
    )


def _list_nic_parts(context: RuleContext, nic: Nic) -> Iterator[PeerPart | PartsSkipped]:
    function = find_function(context, nic)
    why = _why_not_compared(context, nic, function)
    netdevs = [netdev for netdev in context.topology.netdevs if netdev.nic == nic.id]
    if why is not None:
        yield why
        if why.is_open:
            yield from (PartsSkipped(f"port:{nic.id}/{port.port}", why.reason, is_open=True) for port in nic.ports)
            yield from (PartsSkipped(f"netdev:{netdev.id}", why.reason, is_open=True) for netdev in netdevs)
        return
    pci, socket = nic.pci or nic.id, nic.numa_node
    ids, product = (
        frozenset({nic.id, pci}),
        find_device_id(context, nic) or nic.model or nic.board_id or f"{len(nic.ports)} ports",
    )
    place = position_on_card(nic, 1)
    is_up = any(port.state == "ACTIVE" for port in nic.ports)
    if is_up:
        yield PeerPart("nic", f"pci:{pci}", nic.label, nic, ids, nic.id, nic.role, product, place, socket, pci)
    if is_up or not nic.ports:  # without an RDMA device, which the driver makes
        yield from _list_functions(context, function, nic.role, product, place, socket)
    for port in nic.ports:
        key = f"{nic.id}/{port.port}"
        if port.state == "ACTIVE":
            at, place, order = ids | {key}, position_on_card(nic, port.port), f"{pci}/{port.port}"
            label, role = f"{nic.label}/{port.port}", f"{nic.role} {port.link_layer or ''}".strip()
            elsewhere = port.link_layer == "Ethernet" and not port.netdevs  # in another network namespace
            yield PeerPart("port", f"port:{key}", label, port, at, key, role, product, place, socket, order, elsewhere)
    for netdev in netdevs:
        if _is_compared(context, nic, netdev):
            at, place = ids | {netdev.id}, _find_position(nic, netdev)
            order = f"{pci} {netdev.label}"
            yield PeerPart(
                "netdev",
                f"netdev:{netdev.id}",
                netdev.label,
                netdev,
                at,
                netdev.id,
                nic.role,
                product,
                place,
                socket,
                order,
            )


def _state_vlans(context: RuleContext, parts: Sequence[PeerPart | PartsSkipped]) -> Iterator[PeerPart | PartsSkipped]:
    """The same parts; of interfaces that VLANs are above with what these are compared by.

    Compared are how many most peers have, how many of these have an address, and the ids that most have: few have the
    others by choice, as one id per rail, or one rail for storage, too. One that is set down is none.
    """
    above: dict[str, list[Netdev]] = defaultdict(list)
    for netdev in context.topology.netdevs:
        if netdev.vlan and netdev.admin_up is not False:
            above[str(netdev.vlan.get("parent"))].append(netdev)
    groups: dict[tuple[str, tuple[Any, ...]], list[list[Netdev]]] = defaultdict(list)
    for part in parts:
        if isinstance(part, PeerPart) and part.kind == "netdev":
            groups[part.role, part.position].append(above.get(part.row.label, []))
    for part in parts:
        if above and isinstance(part, PeerPart) and part.kind == "netdev":
            vlan = _describe_vlans(above.get(part.row.label, []), groups[part.role, part.position])
            yield msgspec.structs.replace(part, row=msgspec.structs.replace(part.row, vlan=vlan))
        else:
            yield part


def _describe_vlans(own: Sequence[Netdev], peers: Sequence[Sequence[Netdev]]) -> dict[str, int | str]:
    counts = Counter(number for vlans in peers for number in _list_ids(vlans))
    shared = {number for number, count in counts.items() if 2 * count > len(peers)}
    shown = shared & _list_ids(own) or _list_ids(own)
    described: dict[str, int | str] = {"VLANs above": min(len(own), int(find_median(list(map(len, peers)))))}
    if usual_count := int(find_median(list(map(_count_addressed, peers)))):
        described["VLANs with an address"] = min(_count_addressed(own), usual_count)
    if shared:
        described["VLAN id"] = ",".join(sorted(shown, key=lambda number: (len(number), number))) or "none"
    return described


def _list_ids(vlans: Sequence[Netdev]) -> set[str]:
    return {str((vlan.vlan or {}).get("id")) for vlan in vlans}


def _count_addressed(vlans: Sequence[Netdev]) -> int:
    return sum(any(not is_link_local(address) for address in vlan.addresses) for vlan in vlans)


def _why_not_compared(context: RuleContext, nic: Nic, function: PciFunction | None) -> PartsSkipped | None:
    subject, absent = f"pci:{nic.pci or nic.id}", why_unreachable(function)
    if nic.software or nic.limited:
        return PartsSkipped(subject, Reason("other-kind", detail="not a NIC for jobs"))
    if absent:
        return PartsSkipped(subject, absent)
    if context.virtual_machine or nic.virtual_function:
        return PartsSkipped(subject, Reason("guest", detail="a virtual function or machine: the provider sets it"))
    if nic.role == "unknown" and (why := why_location_unknown(context, nic)):
        return PartsSkipped(subject, Reason("role-not-known", why=why), is_open=True)
    if nic.role not in ROLES:
        return PartsSkipped(subject, Reason("by-design", detail=f"role {nic.role}: nothing is expected of it"))
    return None


def _is_compared(context: RuleContext, nic: Nic, netdev: Netdev) -> bool:
    """Whether an interface is up and of Ethernet: IPoIB carries nothing of RDMA."""
    if netdev.admin_up is False or (netdev.operstate or "").lower() in _DOWN or netdev.vlan:
        return False
    port = _find_port(nic, netdev)
    return port is None or (port.link_layer != "InfiniBand" and port.state in ("ACTIVE", None))


def _find_port(nic: Nic, netdev: Netdev) -> Port | None:
    return next((port for port in nic.ports if netdev.label in port.netdevs), None)


def _find_position(nic: Nic, netdev: Netdev) -> tuple[Any, ...]:
    port = _find_port(nic, netdev)
    return position_on_card(nic, port.port if port else 1)


def _list_scale_out_netdevs(context: RuleContext) -> Iterator[PeerPart]:
    """The interfaces of ports that accelerators have of their own, each with those of one number on the others."""
    for nic in context.accelerator_nics:
        for port in nic.ports:
            netdevs = [context.netdevs[name] for name in port.netdevs if name in context.netdevs]
            for netdev in netdevs if port.state == "ACTIVE" else ():
                ids, role = frozenset({netdev.id}), "rail scale-out"
                place, product, order = (port.port,), nic.model or "", f"{nic.accelerator} {port.port:03}"
                yield PeerPart(
                    "netdev", f"netdev:{netdev.id}", netdev.label, netdev, ids, netdev.id, role, product, place,
                    nic.numa_node, order,
                )  # fmt: skip


def _list_stacked_netdevs(context: RuleContext) -> Iterator[PeerPart]:
    """VLANs and bonds above the interfaces of NICs that are compared; VLANs of one id are peers of their own."""
    counts = Counter(netdev.vlan.get("id") for netdev in context.topology.netdevs if netdev.vlan)
    for netdev in context.topology.netdevs:
        below = _find_nic_below(context, netdev) if netdev.vlan or netdev.bond is not None else None
        if below is None or below.role not in ROLES or netdev.admin_up is False:
            continue
        number = netdev.vlan.get("id") if netdev.vlan else None
        kind = (f"VLAN {number}" if counts[number] > 1 else "VLAN") if netdev.vlan else "bond"
        order, ids = f"{below.pci or below.id} {netdev.label}", frozenset({netdev.id, below.id})
        yield PeerPart(
            "netdev", f"netdev:{netdev.id}", netdev.label, netdev, ids, netdev.id, f"{below.role} {kind}", kind,
            (), below.numa_node, order,
        )  # fmt: skip


def _find_nic_below(context: RuleContext, netdev: Netdev) -> Nic | None:
    """The NIC below a VLAN or bond; of several the first."""
    for _ in range(3):  # a VLAN of a bond of an interface
        if netdev.vlan:
            names = [str(netdev.vlan.get("parent"))]
        elif netdev.bond is not None:
            names = [one.label for one in context.topology.netdevs if one.master == netdev.label]
        else:
            return context.nics.get(netdev.nic or "")
        below = next((context.netdevs[name] for name in sorted(names) if name in context.netdevs), None)
        if below is None:
            return None
        netdev = below
    return None
