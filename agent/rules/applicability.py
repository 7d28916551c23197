"""Whether a family of rules has anything to judge on a node. A gate is shut only where that is certain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import TypeVar

from agent.model.reasons import NO_EARLIER_RUN
from agent.rules.context import RuleContext
from agent.rules.rule import NODE, Gate, Result

S = TypeVar("S")
HABANA, AMAZON = "Intel Habana", "Amazon"  # makers of Gaudi cards and of Neuron devices, as GPU rows name them


def behind(
    gate: Gate,
) -> Callable[[Callable[[RuleContext], Iterable[S | Result]]], Callable[[RuleContext], Iterator[S | Result]]]:
    """What a function lists; where the gate is shut, its answer alone."""

    def guard(listing: Callable[[RuleContext], Iterable[S | Result]]) -> Callable[[RuleContext], Iterator[S | Result]]:
        @wraps(listing)
        def list_if_open(context: RuleContext) -> Iterator[S | Result]:
            shut = gate(context)
            yield from listing(context) if shut is None else (shut,)

        return list_if_open

    return guard


def always(context: RuleContext) -> Result | None:
    """Judged on every node."""
    del context
    return None


def has_roce(context: RuleContext) -> Result | None:
    """Shut where every port is known to be another kind than Ethernet."""
    return _has_link_layer(context, "Ethernet", "no RoCE port")


def has_infiniband(context: RuleContext) -> Result | None:
    """Shut where every port is known to be another kind than InfiniBand."""
    return _has_link_layer(context, "InfiniBand", "no InfiniBand port")


def lists_no_gpu(context: RuleContext) -> bool:
    """Whether no GPU is seen because nothing that lists them was read."""
    return not context.topology.gpus and _is_unlisted(context, "gpu")


def lists_no_nic(context: RuleContext) -> bool:
    """Whether no NIC is seen because nothing that lists them was read."""
    return not context.topology.nics and _is_unlisted(context, "rdma")


def lists_no_port(context: RuleContext) -> bool:
    """Whether no port of a NIC is seen because nothing that lists them was read."""
    nics = context.topology.nics
    if not nics:
        return lists_no_nic(context)
    return context.why_probe_failed("rdma") is not None and not any(nic.ports for nic in nics)


def shows_no_module(context: RuleContext) -> bool:
    """Whether neither a list shows a NIC nor the kernel log has a line of one about its module."""
    return lists_no_nic(context) and not any(event.kind in ("mlx5", "unplugged") for event in context.events)


def shows_no_acs(context: RuleContext) -> bool:
    """Whether neither a GPU is listed nor a port whose ACS is shown."""
    return lists_no_gpu(context) and not any(function.acs for function in context.topology.pci)


def lists_no_function(context: RuleContext) -> bool:
    """Whether no PCI function is seen because no list of them was read."""
    return not context.topology.pci and _is_unlisted(context, "pci")


def _is_unlisted(context: RuleContext, subject: str) -> bool:
    """Whether devices may be here that nothing lists, also where it is assumed of a fragment that there are none."""
    unread = context.lists_whole or context.why_bus_unread is not None
    return unread and context.profile is None and context.why_probe_failed(subject) is not None


def _where_seen(sees: Callable[[RuleContext], object], nothing: str, is_shut_unread: bool = True) -> Gate:
    """A gate, shut where nothing is seen. Where the bus was not read it may be there all the same: the answer is that,
    or the gate is open."""

    def gate(context: RuleContext) -> Result | None:
        why = context.why_bus_unread
        if sees(context) or (why and not is_shut_unread):
            return None
        return NODE.unknown(why) if why else NODE.not_applicable("no-such-device", detail=nothing)

    return gate


has_nics = _where_seen(lambda context: context.topology.nics, "no NIC that supports RDMA", is_shut_unread=False)
has_gpus = _where_seen(lambda context: context.topology.gpus, "no GPU", is_shut_unread=False)
has_amd_gpus = _where_seen(lambda context: _has_maker(context, "AMD"), "no GPU of AMD", is_shut_unread=False)
_has_devices = _where_seen(
    lambda context: context.topology.gpus or context.topology.nics, "no GPU and no NIC", is_shut_unread=False
)
shows_gpus = _where_seen(lambda context: context.topology.gpus, "no GPU")
has_gaudi = _where_seen(lambda context: _has_maker(context, HABANA), "no Gaudi")
has_neuron = _where_seen(lambda context: _has_maker(context, AMAZON), "no Neuron device")
has_ascend = _where_seen(lambda context: context.topology.ascend, "no Ascend NPU")  # nor an output about one
has_cxl = _where_seen(lambda context: context.topology.cxl, "no CXL memory device")


def _where_logged(kinds: str, otherwise: Gate) -> Gate:
    """The same gate, which a line of the kernel log opens, too: it names a device that nothing lists. `kinds`: how
    those of its events begin."""

    def gate(context: RuleContext) -> Result | None:
        return None if any(event.kind.startswith(kinds) for event in context.events) else otherwise(context)

    return gate


has_npu_events = _where_logged("npu_", has_ascend)
has_neuron_events = _where_logged("neuron_", has_neuron)
has_cxl_events = _where_logged("cxl", has_cxl)


def has_nvlink(context: RuleContext) -> Result | None:
    """Shut where there is certainly neither a GPU nor an NVSwitch. A profile may expect what is not here."""
    if context.topology.nvswitches or context.profile:
        return None
    return has_gpus(context)


def has_gpudirect(context: RuleContext) -> Result | None:
    """Shut without a GPU, and without anything that could be a rail: both must be known."""
    return has_gpus(context) or has_nics(context)


def has_amd_rails(context: RuleContext) -> Result | None:
    """Shut where GPUDirect has nothing to judge, and where no GPU is of AMD."""
    return has_gpudirect(context) or has_amd_gpus(context)


def has_peers(context: RuleContext) -> Result | None:
    """Shut where there are no two parts of a kind."""
    topology = context.topology
    others = [*(topology.cxl.devices if topology.cxl else ()), *(topology.ascend.ports if topology.ascend else ())]
    if (
        max(len(topology.gpus), len(topology.nics), len(topology.netdevs), len(others)) > 1
        or context.why_bus_unread is not None
    ):
        return None
    return NODE.not_applicable("nothing-to-compare", detail="no two parts of a kind")


def has_profile(context: RuleContext) -> Result | None:
    """Shut without a profile to compare with."""
    if context.profile:
        return None
    return NODE.not_applicable("no-profile", detail="no profile: none is recognized, and --profile names none")


def has_roce_counters(context: RuleContext) -> Result | None:
    """Shut without RoCE, and without an earlier sample of its counters."""
    return (None if _has_inner_ports(context) else has_roce(context)) or has_window(context)


def _has_inner_ports(context: RuleContext) -> bool:
    """Whether counters of RoCE ports inside accelerators are there: they are judged as those of NICs."""
    return any(port.hw_counters for nic in context.accelerator_nics for port in nic.ports)


def has_infiniband_counters(context: RuleContext) -> Result | None:
    """Shut without InfiniBand, and without an earlier sample of its counters."""
    return has_infiniband(context) or has_window(context)


def has_roce_flaps(context: RuleContext) -> Result | None:
    """Shut without RoCE, and where neither counters nor the kernel log hold what links did."""
    return (None if _has_inner_ports(context) else has_roce(context)) or _has_link_history(context)


def has_infiniband_flaps(context: RuleContext) -> Result | None:
    """Shut without InfiniBand, and where neither counters nor the kernel log hold what links did."""
    return has_infiniband(context) or _has_link_history(context)


def _has_link_history(context: RuleContext) -> Result | None:
    logged = any(event.kind in ("link_down", "link_up") for event in context.events)
    noted = context.history is not None and context.history.link_downs
    return None if logged or noted else has_window(context)


def has_device_counters(context: RuleContext) -> Result | None:
    """Shut without GPUs and NICs, and without an earlier sample of their counters."""
    return _has_devices(context) or has_window(context)


def has_pcie_counters(context: RuleContext) -> Result | None:
    """The same; a PCIe error in the kernel log or in a device's own status opens it, too."""
    is_stated = any(function.aer_status for function in context.topology.pci)
    return None if is_stated or any(event.kind == "aer" for event in context.events) else has_device_counters(context)


def has_window(context: RuleContext) -> Result | None:
    """Shut where there is no earlier sample: the value of a counter alone is no evidence."""
    why = context.why_not_counted
    return NODE.unknown(why) if why else None


def has_inventory(context: RuleContext) -> Result | None:
    """Shut where no earlier run left an inventory."""
    if context.history is None:
        return NODE.unknown("no-baseline", why=NO_EARLIER_RUN)
    if context.history.reason:
        return NODE.unknown("no-baseline", why=context.history.reason)
    if context.history.inventory:
        return None
    return NODE.not_applicable("other-kind", detail="the inventory of the last run is empty")


def _has_maker(context: RuleContext, maker: str) -> bool:
    return any(gpu.vendor == maker for gpu in context.topology.gpus)


def _has_link_layer(context: RuleContext, link_layer: str, nothing: str) -> Result | None:
    """Not judged where no port is, or could be, of that kind; NICs without a driver could be anything."""
    if context.why_bus_unread is not None or context.why_probe_failed("rdma") is not None:
        return None
    if any(not nic.ports for nic in context.topology.nics):
        return None
    ports = [port for nic in context.topology.nics for port in nic.ports]
    if any(port.link_layer in (link_layer, None) for port in ports):
        return None
    return NODE.not_applicable("no-such-device", detail=nothing)
