"""Whether a family of rules has anything to judge on a node. A gate is shut only where that is certain."""

from __future__ import annotations

from collections.abc import Callable

from agent.model.reasons import NO_EARLIER_RUN, Reason
from agent.rules.context import RuleContext
from agent.rules.rule import NotApplicable, Result, Unknown

HABANA, AMAZON = "Intel Habana", "Amazon"  # makers of Gaudi cards and of Neuron devices, as GPU rows name them


def always(case: RuleContext) -> Result | None:
    """Judged on every node."""
    del case
    return None


def has_roce(case: RuleContext) -> Result | None:
    """Shut where every port is known to be another kind than Ethernet."""
    return _has_link_layer(case, "Ethernet", "no RoCE port")


def has_infiniband(case: RuleContext) -> Result | None:
    """Shut where every port is known to be another kind than InfiniBand."""
    return _has_link_layer(case, "InfiniBand", "no InfiniBand port")


def has_nics(case: RuleContext) -> Result | None:
    """Shut where there is certainly no NIC that supports RDMA."""
    if case.topology.nics or case.bus_unread is not None:
        return None
    return NotApplicable("node", Reason("no-such-device", detail="no NIC that supports RDMA"))


def has_gpus(case: RuleContext) -> Result | None:
    """Shut where there is certainly no GPU."""
    return (
        NotApplicable("node", Reason("no-such-device", detail="no GPU"))
        if not case.topology.gpus and case.bus_unread is None
        else None
    )


def has_amd_gpus(case: RuleContext) -> Result | None:
    """Shut where there is certainly no GPU of AMD."""
    if _has_maker(case, "AMD") or case.bus_unread is not None:
        return None
    return NotApplicable("node", Reason("no-such-device", detail="no GPU of AMD"))


def _where_seen(sees: Callable[[RuleContext], bool], nothing: str) -> Callable[[RuleContext], Result | None]:
    """A gate, shut where nothing is seen; where the bus was not read it may be there all the same."""

    def gate(case: RuleContext) -> Result | None:
        if sees(case):
            return None
        why = case.bus_unread
        return Unknown("node", why) if why else NotApplicable("node", Reason("no-such-device", detail=nothing))

    return gate


has_gaudi = _where_seen(lambda case: _has_maker(case, HABANA), "no Gaudi")
has_neuron = _where_seen(lambda case: _has_maker(case, AMAZON), "no Neuron device")
has_ascend = _where_seen(lambda case: case.topology.ascend is not None, "no Ascend NPU")  # nor an output about one
has_cxl = _where_seen(lambda case: case.topology.cxl is not None, "no CXL memory device")


def has_npu_events(case: RuleContext) -> Result | None:
    """Shut where neither an Ascend NPU nor a line of its driver is seen."""
    return None if any(event.kind.startswith("npu_") for event in case.events) else has_ascend(case)


def has_nvlink(case: RuleContext) -> Result | None:
    """Shut where there is certainly neither a GPU nor an NVSwitch. A profile may expect what is not here."""
    if case.topology.nvswitches or case.profile:
        return None
    return has_gpus(case)


def has_gpudirect(case: RuleContext) -> Result | None:
    """Shut without a GPU, and without anything that could be a rail: both must be known."""
    if case.bus_unread is not None:
        return None
    if not case.topology.gpus:
        return NotApplicable("node", Reason("no-such-device", detail="no GPU"))
    return (
        None
        if case.topology.nics
        else NotApplicable("node", Reason("no-such-device", detail="no NIC that supports RDMA"))
    )


def has_amd_rails(case: RuleContext) -> Result | None:
    """Shut where GPUDirect has nothing to judge, and where no GPU is of AMD."""
    return has_gpudirect(case) or has_amd_gpus(case)


def has_peers(case: RuleContext) -> Result | None:
    """Shut where there are no two parts of a kind."""
    topology = case.topology
    others = [*(topology.cxl.devices if topology.cxl else ()), *(topology.ascend.ports if topology.ascend else ())]
    if (
        max(len(topology.gpus), len(topology.nics), len(topology.netdevs), len(others)) > 1
        or case.bus_unread is not None
    ):
        return None
    return NotApplicable("node", Reason("nothing-to-compare", detail="no two parts of a kind"))


def has_profile(case: RuleContext) -> Result | None:
    """Shut without a profile to compare with."""
    return (
        None
        if case.profile
        else NotApplicable(
            "node", Reason("no-profile", detail="no profile: none is recognized, and --profile names none")
        )
    )


def has_roce_counters(case: RuleContext) -> Result | None:
    """Shut without RoCE, and without an earlier sample of its counters."""
    return (None if _has_inner_ports(case) else has_roce(case)) or has_window(case)


def _has_inner_ports(case: RuleContext) -> bool:
    """Whether counters of RoCE ports inside accelerators are there: they are judged as those of NICs."""
    return any(port.hw_counters for nic in case.accelerator_nics for port in nic.ports)


def has_infiniband_counters(case: RuleContext) -> Result | None:
    """Shut without InfiniBand, and without an earlier sample of its counters."""
    return has_infiniband(case) or has_window(case)


def has_roce_flaps(case: RuleContext) -> Result | None:
    """Shut without RoCE, and where neither counters nor the kernel log hold what links did."""
    return (None if _has_inner_ports(case) else has_roce(case)) or _has_link_history(case)


def has_infiniband_flaps(case: RuleContext) -> Result | None:
    """Shut without InfiniBand, and where neither counters nor the kernel log hold what links did."""
    return has_infiniband(case) or _has_link_history(case)


def _has_link_history(case: RuleContext) -> Result | None:
    logged = any(event.kind in ("link_down", "link_up") for event in case.events)
    noted = case.history is not None and case.history.link_downs
    return None if logged or noted else has_window(case)


def has_device_counters(case: RuleContext) -> Result | None:
    """Shut without GPUs and NICs, and without an earlier sample of their counters."""
    if not case.topology.gpus and not case.topology.nics and case.bus_unread is None:
        return NotApplicable("node", Reason("no-such-device", detail="no GPU and no NIC"))
    return has_window(case)


def has_window(case: RuleContext) -> Result | None:
    """Shut where there is no earlier sample: what a counter stands at says nothing."""
    why = case.not_counted
    return Unknown("node", why) if why else None


def has_inventory(case: RuleContext) -> Result | None:
    """Shut where no earlier run left an inventory."""
    if case.history is None:
        return Unknown("node", Reason("no-baseline", why=NO_EARLIER_RUN))
    if case.history.reason:
        return Unknown("node", Reason("no-baseline", why=case.history.reason))
    return (
        None
        if case.history.inventory
        else NotApplicable("node", Reason("other-kind", detail="the inventory of the last run is empty"))
    )


def _has_maker(case: RuleContext, maker: str) -> bool:
    return any(gpu.vendor == maker for gpu in case.topology.gpus)


def _has_link_layer(case: RuleContext, link_layer: str, nothing: str) -> Result | None:
    """Not judged where no port is, or could be, of that kind; NICs without a driver could be anything."""
    if case.bus_unread is not None or case.probe_failure("rdma") is not None:
        return None
    if any(not nic.ports for nic in case.topology.nics):
        return None
    ports = [port for nic in case.topology.nics for port in nic.ports]
    if any(port.link_layer in (link_layer, None) for port in ports):
        return None
    return NotApplicable("node", Reason("no-such-device", detail=nothing))
