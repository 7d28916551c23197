"""RoCE ports of rail and storage NICs, and their interfaces."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.nic import Netdev, Port
from agent.model.reasons import Reason
from agent.rules.context import RuleContext
from agent.rules.devices import NicPort, find_function, why_location_unknown, why_unreachable
from agent.rules.rule import NODE, Result, Unknown

# Drivers whose RDMA is not RoCE (iWARP, SRD, eRDMA), or whose network is the cloud's and not the guest's to set
_NOT_ROCE = frozenset({"efa", "erdma", "iw_cxgb4", "cxgb4", "siw", "mana", "gve", "ena"})


class RocePort(NicPort, frozen=True):
    """One active port of a NIC that speaks RoCE, with its interface where this namespace shows it."""

    netdev: Netdev | None

    @property
    def label(self) -> str:
        """The port for people, with its interface."""
        if self.netdev and self.netdev.label == self.nic.label:
            return self.nic.label
        return f"{super().label} ({self.netdev.label})" if self.netdev else super().label


def roce_ports(context: RuleContext, down: bool = False) -> Iterator[RocePort | Result]:
    """Every active RoCE port of a rail or storage NIC, in the order of NICs; an answer for every other.

    `down`: ports that are not active, too.
    """
    seen = False
    for nic in sorted(context.topology.nics, key=lambda nic: nic.id):
        for port in nic.ports:
            if port.link_layer != "InfiniBand":
                seen = True
                roce_port = RocePort(nic, port, _port_interface(context, port))
                yield _not_judged(context, roce_port, down) or roce_port
    unread = context.why_probe_failed("rdma")
    if not seen and (unread is None or (context.why_bus_unread is None and not context.topology.nics)):
        yield NODE.not_applicable("no-such-device", detail="no RoCE port")


def _not_judged(context: RuleContext, roce_port: RocePort, down: bool) -> Result | None:
    nic, port = roce_port.nic, roce_port.port
    function = find_function(context, nic)
    driver = nic.driver or (function.driver if function else None)
    absent = why_unreachable(function)
    if nic.software:
        return roce_port.not_applicable("other-kind", detail="a software device")
    if nic.node_type == "RNIC" or driver in _NOT_ROCE or port.link_layer not in ("Ethernet", None):
        return roce_port.not_applicable("other-kind", detail="RDMA, but not RoCE (iWARP, EFA or a cloud's own)")
    if nic.limited:
        return roce_port.not_applicable("other-kind", detail=f"not a NIC for jobs: {nic.limited}")
    if absent:
        return roce_port.not_applicable(absent)
    if function and function.physical_function in context.functions:
        return roce_port.not_applicable("guest", detail="a virtual function, for guests")
    asked_for = _is_asked_for(context, roce_port)
    if nic.role == "unknown" and not asked_for and (why := why_location_unknown(context, nic)):
        return roce_port.unknown("role-not-known", why=why)
    if nic.role not in ("rail", "storage") and not asked_for:
        return roce_port.not_applicable("by-design", detail=f"role {nic.role}: nothing is expected of it")
    if port.link_layer is None:
        return roce_port.unknown("link-layer-not-known")
    if port.state is None:
        return None if asked_for else roce_port.unknown("not-read", fact="its state")
    if port.state != "ACTIVE" and not down:
        return roce_port.not_applicable("not-in-use", detail="not active")
    return None


def _is_asked_for(context: RuleContext, roce_port: RocePort) -> bool:
    """Whether a source of saved outputs alone holds the QoS settings of this port: no one saves those of a port that is
    not in use, and nothing in the source could state what it is for."""
    settings = roce_port.netdev is not None and roce_port.netdev.qos is not None
    return settings and roce_port.nic.role == "unknown" and bool(context.why_bus_unread) and not context.topology.gpus


def _port_interface(context: RuleContext, port: Port) -> Netdev | None:
    """The interface of a port; of several (VLANs above it) the one that has a MTU of its own is the first by name."""
    interfaces = [context.netdevs[name] for name in sorted(port.netdevs) if name in context.netdevs]
    plain = [netdev for netdev in interfaces if not netdev.vlan]
    return next(iter(plain or interfaces), None)


ELSEWHERE = Reason("namespace-hides", detail="its interface is in another network namespace")
NOT_SHOWN = Reason(
    "namespace-hides", detail="no interface of it is visible here: in another network namespace, or not in this source"
)


def is_virtual(context: RuleContext, roce_port: RocePort) -> Result | None:
    """The answer where a hypervisor or provider decides, and not this system."""
    if context.virtual_machine or roce_port.nic.virtual_function:
        return roce_port.not_applicable("guest", detail="a virtual function or machine: the provider sets it")
    return None


def visible_interface(roce_port: RocePort) -> Netdev | Unknown:
    """The port's interface; unknown, where it is not in sight."""
    if roce_port.nic.state == "other_namespace":
        return roce_port.unknown(ELSEWHERE)
    return roce_port.netdev or roce_port.unknown(NOT_SHOWN)


def report_hidden(roce_port: RocePort) -> Result | None:
    """Unknown, where the port's interface is not in sight."""
    netdev = visible_interface(roce_port)
    return None if isinstance(netdev, Netdev) else netdev


def cabled_interfaces(context: RuleContext, roce_port: RocePort) -> list[Netdev]:
    """The interfaces that have the cables of a port: the members of a bond, else its own; empty: not in sight."""
    if roce_port.netdev is None:
        return []
    if roce_port.netdev.bond is None:
        return [roce_port.netdev]
    return [netdev for netdev in context.topology.netdevs if netdev.master == roce_port.netdev.label]
