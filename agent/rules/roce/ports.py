"""RoCE ports of rail and storage NICs, and their interfaces."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from agent.model.nic import Netdev, Nic, Port
from agent.model.reasons import Reason
from agent.rules.context import RuleContext
from agent.rules.devices import find_function, location_unknown, severity_by_role, unreachable_reason
from agent.rules.node_wide import aggregate_node_wide
from agent.rules.rule import NotApplicable, Result, Unknown

# Drivers whose RDMA is not RoCE (iWARP, SRD, eRDMA), or whose network is the cloud's and not the guest's to set
_NOT_ROCE = frozenset({"efa", "erdma", "iw_cxgb4", "cxgb4", "siw", "mana", "gve", "ena"})


class RocePort(msgspec.Struct, frozen=True):
    """One active port of a NIC that speaks RoCE, with its interface where this namespace shows it."""

    nic: Nic
    port: Port
    netdev: Netdev | None

    @property
    def subject(self) -> str:
        """The port."""
        return f"port:{self.nic.id}/{self.port.port}"

    @property
    def label(self) -> str:
        """The port for people, with its interface."""
        if self.netdev and self.netdev.label == self.nic.label:
            return self.nic.label
        port = f"{self.nic.label}/{self.port.port}"
        return f"{port} ({self.netdev.label})" if self.netdev else port

    @property
    def places(self) -> frozenset[str]:
        """What a fault of this port is about."""
        return frozenset(
            {f"{self.nic.id}/{self.port.port}", self.nic.id, self.nic.pci or self.nic.accelerator or self.nic.id}
        )

    @property
    def folder(self) -> str:
        """Where sysfs describes the port."""
        return f"/sys/class/infiniband/{self.nic.rdma_device or self.nic.label}/ports/{self.port.port}"

    def severity(self, rail: str) -> str:
        """How grave a fault is here that has severity `rail` on a rail."""
        return severity_by_role(rail, self.nic) or "info"


def roce_ports(case: RuleContext, down: bool = False) -> Iterator[RocePort | Result]:
    """Every active RoCE port of a rail or storage NIC, in the order of NICs; an answer for every other.

    `down`: ports that are not active, too.
    """
    seen = False
    for nic in sorted(case.topology.nics, key=lambda nic: nic.id):
        for port in nic.ports:
            if port.link_layer != "InfiniBand":
                seen = True
                yield _not_judged(case, nic, port, down) or RocePort(nic, port, _port_interface(case, port))
    unread = case.probe_failure("rdma")
    if not seen and (unread is None or (case.bus_unread is None and not case.topology.nics)):
        yield NotApplicable("node", Reason("no-such-device", detail="no RoCE port"))


def _not_judged(case: RuleContext, nic: Nic, port: Port, down: bool) -> Result | None:
    subject, function = f"port:{nic.id}/{port.port}", find_function(case, nic)
    driver = nic.driver or (function.driver if function else None)
    absent = unreachable_reason(function)
    if nic.software:
        return NotApplicable(subject, Reason("other-kind", detail="a software device"))
    if nic.node_type == "RNIC" or driver in _NOT_ROCE or port.link_layer not in ("Ethernet", None):
        return NotApplicable(subject, Reason("other-kind", detail="RDMA, but not RoCE (iWARP, EFA or a cloud's own)"))
    if nic.limited:
        return NotApplicable(subject, Reason("other-kind", detail=f"not a NIC for jobs: {nic.limited}"))
    if absent:
        return NotApplicable(subject, absent)
    if function and function.physical_function in case.functions:
        return NotApplicable(subject, Reason("guest", detail="a virtual function, for guests"))
    asked_for = _is_asked_for(case, nic, port)
    if nic.role == "unknown" and not asked_for and (why := location_unknown(case, nic)):
        return Unknown(subject, Reason("role-not-known", why=why))
    if nic.role not in ("rail", "storage") and not asked_for:
        return NotApplicable(subject, Reason("by-design", detail=f"role {nic.role}: nothing is expected of it"))
    if port.link_layer is None:
        return Unknown(subject, Reason("link-layer-not-known"))
    if port.state is None:
        return None if asked_for else Unknown(subject, Reason("not-read", fact="its state"))
    return (
        NotApplicable(subject, Reason("not-in-use", detail="not active"))
        if port.state != "ACTIVE" and not down
        else None
    )


def _is_asked_for(case: RuleContext, nic: Nic, port: Port) -> bool:
    """Whether a source of saved outputs alone holds the QoS settings of this port: nobody saves those of a port that is
    not in use, and nothing in the source could state what it is for."""
    netdev = _port_interface(case, port)
    settings = netdev is not None and netdev.qos is not None
    return settings and nic.role == "unknown" and bool(case.bus_unread) and not case.topology.gpus


def _port_interface(case: RuleContext, port: Port) -> Netdev | None:
    """The interface of a port; of several (VLANs above it) the one that has a MTU of its own is the first by name."""
    interfaces = [case.netdevs[name] for name in sorted(port.netdevs) if name in case.netdevs]
    plain = [netdev for netdev in interfaces if not netdev.vlan]
    return next(iter(plain or interfaces), None)


ELSEWHERE = Reason("namespace-hides", detail="its interface is in another network namespace")
NOT_SHOWN = Reason(
    "namespace-hides", detail="no interface of it is visible here: in another network namespace, or not in this source"
)


def for_each_port(
    case: RuleContext, judge: Callable[[RocePort], Result], alike: str, down: bool = False
) -> Iterator[Result]:
    """What a rule says of every RoCE port; one finding, "`alike` on every RoCE port", where all have the fault."""
    answers = (judge(port) if isinstance(port, RocePort) else port for port in roce_ports(case, down))
    yield from aggregate_node_wide(answers, f"{alike} on every RoCE port")


def is_virtual(case: RuleContext, roce_port: RocePort) -> Result | None:
    """The answer where a hypervisor or provider decides, and not who runs this system."""
    if case.virtual_machine or roce_port.nic.virtual_function:
        return NotApplicable(
            roce_port.subject, Reason("guest", detail="a virtual function or machine: the provider sets it")
        )
    return None


def visible_interface(roce_port: RocePort) -> Netdev | Unknown:
    """The port's interface; unknown, where it is not in sight."""
    if roce_port.nic.state == "other_namespace":
        return Unknown(roce_port.subject, ELSEWHERE)
    return roce_port.netdev or Unknown(roce_port.subject, NOT_SHOWN)


def report_hidden(roce_port: RocePort) -> Result | None:
    """Unknown, where the port's interface is not in sight."""
    netdev = visible_interface(roce_port)
    return None if isinstance(netdev, Netdev) else netdev


def cabled_interfaces(case: RuleContext, roce_port: RocePort) -> list[Netdev]:
    """The interfaces that have the cables of a port: the members of a bond, else its own; empty: not in sight."""
    if roce_port.netdev is None:
        return []
    if roce_port.netdev.bond is None:
        return [roce_port.netdev]
    return [netdev for netdev in case.topology.netdevs if netdev.master == roce_port.netdev.label]
