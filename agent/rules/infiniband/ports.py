"""InfiniBand ports of rail and storage NICs."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from agent.model.finding import Evidence
from agent.model.nic import Nic, Port
from agent.model.reasons import Reason
from agent.rules.cabling import board_model, position_on_card
from agent.rules.context import RuleContext
from agent.rules.devices import (
    MELLANOX,
    find_device_id,
    find_function,
    is_off_bus,
    location_unknown,
    unreachable_reason,
)
from agent.rules.rule import NotApplicable, Result, Unknown

_CONNECTX_5 = 0x1017
_INFINIBAND_CLASS = "0x0207"
EXPECTED = ("rail", "storage")  # roles that have a cable
PLUGGED = (*EXPECTED, "management", "unknown")  # roles that may have one


class IbPort(msgspec.Struct, frozen=True):
    """One port of a NIC that carries GPU or storage traffic."""

    nic: Nic
    port: Port
    board: str  # of one board and role, ports should run alike
    position: tuple[int, str]  # port number and function number: the second ports of all cards are alike, too

    @property
    def subject(self) -> str:
        """The port."""
        return f"port:{self.nic.id}/{self.port.port}"

    @property
    def label(self) -> str:
        """The port for people."""
        return f"{self.nic.label}/{self.port.port}"

    @property
    def places(self) -> frozenset[str]:
        """What a fault of this port is about."""
        return frozenset({f"{self.nic.id}/{self.port.port}", self.nic.id, self.nic.pci or self.nic.id})

    def evidence(self, what: str, value: str, file: str) -> Evidence:
        """One observation, with the file of sysfs that holds it."""
        source = f"/sys/class/infiniband/{self.nic.rdma_device or self.nic.label}/ports/{self.port.port}/{file}"
        return Evidence(what=f"{what} of {self.label}", value=value, source=source)


def ib_ports(case: RuleContext, roles: tuple[str, ...] = EXPECTED) -> Iterator[IbPort | Result]:
    """Every InfiniBand port of NICs in these roles, in the order of NICs; an answer for every other."""
    seen = False
    for nic in sorted(case.topology.nics, key=lambda nic: nic.id):
        for port in nic.ports:
            if port.link_layer in ("InfiniBand", None):
                seen = True
                yield _not_judged(case, nic, port, roles) or _build_port(case, nic, port)
        if not nic.ports and _is_infiniband(case, nic):
            seen = True
            yield Unknown(f"pci:{nic.pci}", _no_ports_reason(case, nic))
    if not seen and (case.bus_unread is None or case.probe_failure("rdma") is None):
        yield NotApplicable("node", Reason("no-such-device", detail="no InfiniBand port"))


def has_no_infiniband(case: RuleContext) -> bool:
    """Known to have none: the PCI bus was read, and holds no InfiniBand function; nor is there a port of it."""
    if case.bus_unread is not None:
        return False
    ports = (port for nic in case.topology.nics for port in nic.ports)
    return not any(_is_infiniband(case, nic) for nic in case.topology.nics) and not any(
        port.link_layer in ("InfiniBand", None) for port in ports
    )


def is_rate_unparsed(case: RuleContext, ib_port: IbPort) -> bool:
    """An active port of a ConnectX-5 or later that reports SDR: the kernel has no name for its speed."""
    if ib_port.port.speed != "SDR":
        return False
    number = device_number(case, ib_port.nic)
    return number is not None and number >= _CONNECTX_5


def device_number(case: RuleContext, nic: Nic) -> int | None:
    """PCI device id of an NVIDIA NIC as a number; the HCA type (MT4129) is the same in decimal."""
    function = find_function(case, nic)
    if function and function.vendor not in (MELLANOX, None):
        return None
    text, base = (
        (find_device_id(case, nic), 16) if function and function.device else ((nic.model or "").removeprefix("MT"), 10)
    )
    try:
        return int(text, base)
    except ValueError:
        return None


def _not_judged(case: RuleContext, nic: Nic, port: Port, roles: tuple[str, ...]) -> Result | None:
    subject, function = f"port:{nic.id}/{port.port}", find_function(case, nic)
    absent = unreachable_reason(function)
    if nic.software:
        return NotApplicable(subject, Reason("other-kind", detail="a software device"))
    if nic.limited:
        return NotApplicable(subject, Reason("other-kind", detail=f"not a NIC for jobs: {nic.limited}"))
    if absent and not is_off_bus(function):
        return NotApplicable(subject, absent)
    if function and function.physical_function in case.functions:
        return NotApplicable(subject, Reason("guest", detail="a virtual function, for guests"))
    if nic in case.maybe_rails and case.no_rail_known and port.state != "ACTIVE" and "unknown" not in roles:
        return Unknown(subject, case.no_rail_known.prefixed(f"{port.state or 'its state could not be read'}; "))
    if nic.role == "unknown" and nic.role not in roles and (why := location_unknown(case, nic)):
        return Unknown(subject, Reason("role-not-known", why=why))
    if nic.role not in roles:
        return NotApplicable(subject, Reason("by-design", detail=f"role {nic.role}: nothing is expected of it"))
    if port.link_layer is None:
        return Unknown(subject, Reason("link-layer-not-known"))
    if port.state is None:
        return Unknown(subject, Reason("not-read", fact="its state"))
    return None


def _build_port(case: RuleContext, nic: Nic, port: Port) -> IbPort:
    return IbPort(nic, port, board_model(case, nic), position_on_card(nic, port.port))


def _is_infiniband(case: RuleContext, nic: Nic) -> bool:
    """A physical function that is an InfiniBand controller by its PCI class, and that a job could have used."""
    function = find_function(case, nic)
    if function is None or not (function.class_code or "").startswith(_INFINIBAND_CLASS):
        return False
    owned = nic.state == "vfio" or function.driver == "vfio-pci" or nic.limited or nic.virtual_function
    return not owned and unreachable_reason(function) is None


def _no_ports_reason(case: RuleContext, nic: Nic) -> Reason:
    why = case.probe_failure("rdma")
    text = "no driver is bound to it" if nic.state == "no_driver" else "it has no RDMA device"
    return why or Reason("undecided", detail=text)
