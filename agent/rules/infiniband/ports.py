"""InfiniBand ports of rail and storage NICs."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.nic import Nic, Port
from agent.model.reasons import Reason
from agent.rules.context import RuleContext
from agent.rules.devices import (
    MELLANOX,
    NicPort,
    about_nic,
    find_device_id,
    find_function,
    is_off_bus,
    why_location_unknown,
    why_unreachable,
)
from agent.rules.rule import NODE, Result

WAITS_FOR_SM = "subnet manager"  # the place of whatever waits for one
NO_LID = 0xFFFF  # of a port that no subnet manager gave one; 0: of RoCE, or before the first
_CONNECTX_5 = 0x1017
_INFINIBAND_CLASS = "0x0207"
EXPECTED = ("rail", "storage")  # roles that have a cable
PLUGGED = (*EXPECTED, "management", "unknown")  # roles that may have one


class IbPort(NicPort, frozen=True):
    """One port of a NIC that carries GPU or storage traffic."""


def ib_ports(context: RuleContext, roles: tuple[str, ...] = EXPECTED) -> Iterator[IbPort | Result]:
    """Every InfiniBand port of NICs in these roles, in the order of NICs; an answer for every other."""
    seen = False
    for nic in sorted(context.topology.nics, key=lambda nic: nic.id):
        for port in nic.ports:
            if port.link_layer in ("InfiniBand", None):
                seen = True
                ib_port = IbPort(nic, port)
                yield _not_judged(context, ib_port, roles) or ib_port
        if not nic.ports and _is_infiniband(context, nic):
            seen = True
            yield about_nic(nic).unknown(_why_no_ports(context, nic))
    if not seen and (context.why_bus_unread is None or context.why_probe_failed("rdma") is None):
        yield NODE.not_applicable("no-such-device", detail="no InfiniBand port")


def has_no_infiniband(context: RuleContext) -> bool:
    """Known to have none: the PCI bus was read, and holds no InfiniBand function; nor is there a port of it."""
    if context.why_bus_unread is not None:
        return False
    ports = (port for nic in context.topology.nics for port in nic.ports)
    return not any(_is_infiniband(context, nic) for nic in context.topology.nics) and not any(
        port.link_layer in ("InfiniBand", None) for port in ports
    )


def is_held_down(port: Port) -> bool:
    """Whether it is down while its link is up and its subnet manager known: no port with a wire of its own is."""
    return (port.state, port.phys_state) == ("DOWN", "LinkUp") and port.sm_lid not in (None, 0, NO_LID)


def is_rate_unparsed(context: RuleContext, ib_port: IbPort) -> bool:
    """An active port of a ConnectX-5 or later that reports SDR: the kernel has no name for its speed."""
    if ib_port.port.speed != "SDR":
        return False
    number = device_number(context, ib_port.nic)
    return number is not None and number >= _CONNECTX_5


def device_number(context: RuleContext, nic: Nic) -> int | None:
    """PCI device id of an NVIDIA NIC as a number; the HCA type (MT4129) is the same in decimal."""
    function = find_function(context, nic)
    if function and function.vendor not in (MELLANOX, None):
        return None
    text, base = (
        (find_device_id(context, nic), 16)
        if function and function.device
        else ((nic.model or "").removeprefix("MT"), 10)
    )
    try:
        return int(text, base)
    except ValueError:
        return None


def _not_judged(context: RuleContext, ib_port: IbPort, roles: tuple[str, ...]) -> Result | None:
    nic, port = ib_port.nic, ib_port.port
    function = find_function(context, nic)
    absent = why_unreachable(function)
    if nic.software:
        return ib_port.not_applicable("other-kind", detail="a software device")
    if nic.limited:
        return ib_port.not_applicable("other-kind", detail=f"not a NIC for jobs: {nic.limited}")
    if absent and not is_off_bus(function):
        return ib_port.not_applicable(absent)
    if function and function.physical_function in context.functions:
        return ib_port.not_applicable("guest", detail="a virtual function, for guests")
    if nic in context.maybe_rails and context.why_no_rail_known and port.state != "ACTIVE" and "unknown" not in roles:
        return ib_port.unknown(context.why_no_rail_known.prefixed(f"{port.state or 'its state could not be read'}; "))
    if nic.role == "unknown" and nic.role not in roles and (why := why_location_unknown(context, nic)):
        return ib_port.unknown("role-not-known", why=why)
    if nic.role not in roles:
        return ib_port.not_applicable("by-design", detail=f"role {nic.role}: nothing is expected of it")
    if port.link_layer is None:
        return ib_port.unknown("link-layer-not-known")
    if port.state is None:
        return ib_port.unknown("not-read", fact="its state")
    return None


def _is_infiniband(context: RuleContext, nic: Nic) -> bool:
    """A physical function that is an InfiniBand controller by its PCI class, and that a job could have used."""
    function = find_function(context, nic)
    if function is None or not (function.class_code or "").startswith(_INFINIBAND_CLASS):
        return False
    owned = nic.state == "vfio" or function.driver == "vfio-pci" or nic.limited or nic.virtual_function
    return not owned and why_unreachable(function) is None


def _why_no_ports(context: RuleContext, nic: Nic) -> Reason:
    why = context.why_probe_failed("rdma")
    text = "no driver is bound to it" if nic.state == "no_driver" else "it has no RDMA device"
    return why or Reason("undecided", detail=text)
