"""QoS of an interface: DCB, LLDP neighbours, and traffic marking, several sources merged into one row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from agent.assemble.facts import ProbeFacts, build_row
from agent.model.labels import group_by_key
from agent.model.nic import Neighbor, Nic, Port, Qos

if TYPE_CHECKING:
    from probes.dcb.facts import Dcb, DcbFacts, DcbInterface, TrafficMarking
    from probes.netdev import lldp
    from probes.netdev.probe import Netdev
    from probes.rdma.netlink import NetlinkDevice, RdmaNetlinkFacts

ETHERNET = 1
_CABLE_LENGTH_DRIVER = "mlx5"  # drivers for whom ieee_pfc's delay is the cable's length; others count bit times


class QosLookup:
    """DCB and neighbours by interface."""

    def __init__(self, facts: ProbeFacts) -> None:
        dcb: DcbFacts | None = facts.get("dcb")
        lldp_facts: lldp.LldpFacts | None = facts.get("lldp")
        outcome = facts.outcomes.get("dcb")
        self._known = {(row.name, row.pci): row for row in dcb.interfaces} if dcb else None
        self._reason = (outcome.reason if outcome else None) or "DCB was not read"
        self._neighbors = group_by_key((row.interface, row) for row in (lldp_facts.neighbors if lldp_facts else ()))

    def words(self, netdev: Netdev) -> dict[str, Any]:
        """Fields of a report row: qos, qos_reason, neighbor."""
        neighbors = self._neighbors.get(netdev.name, [])
        words: dict[str, Any] = {"neighbor": None}
        if len(neighbors) == 1:  # several: not one link
            applications = dict(neighbors[0].applications)
            words["neighbor"] = build_row(Neighbor, neighbors[0], applications=applications)
        if netdev.virtual or netdev.type not in (None, ETHERNET) or netdev.vlan is not None:
            return words
        row = self._known.get((netdev.name, netdev.address)) if self._known is not None else None
        if row is None and not netdev.address:
            return words
        if self._known is None:
            return words | {"qos_reason": self._reason}
        if row is None:
            return words | {"qos_reason": "not asked: the device sleeps"}
        qos = _qos(row, netdev.driver)
        reason = row.reason or "the driver does not report its PFC" if qos is None or not qos.pfc else None
        return words | {"qos": qos, "qos_reason": reason}


def add_markings(nics: Sequence[Nic], facts: ProbeFacts) -> list[Nic]:
    """Add to each port its protocol and the marking of its outgoing traffic."""
    dcb: DcbFacts | None = facts.get("dcb")
    kernel: RdmaNetlinkFacts | None = facts.get("rdma_netlink")
    devices = {device.name: device for device in kernel.devices} if kernel else {}
    markings = {(marking.device, marking.port): marking for marking in dcb.markings} if dcb else {}
    return [
        msgspec.structs.replace(
            nic, ports=[_port(nic.rdma_device or "", port, devices, markings) for port in nic.ports]
        )
        for nic in nics
    ]


def _port(
    device: str, port: Port, devices: dict[str, NetlinkDevice], markings: dict[tuple[str, int], TrafficMarking]
) -> Port:
    kernel, marking = devices.get(device), markings.get((device, port.port))
    interfaces = [name for number, name in kernel.interfaces if number == port.port] if kernel else []
    return msgspec.structs.replace(
        port,
        protocol=kernel.protocol if kernel else None,
        netdevs=port.netdevs or sorted(interfaces),
        traffic_class=marking.traffic_class if marking else None,
        default_roce_mode=marking.default_roce_mode if marking else None,
    )


def _qos(row: DcbInterface, driver: str | None) -> Qos | None:
    """Merge all sources, the best first; None where none has data."""
    metres = [
        source.delay
        for source in row.said
        if (driver or source.source).startswith((_CABLE_LENGTH_DRIVER, "mlnx")) and source.delay
    ]
    modes = _first(row, "dcbx")
    trust, source = _trust(row.said, driver)
    qos = Qos(
        trust=trust,
        trust_source=source,
        pfc=_list(row, "pfc"),
        prio_tc=_list(row, "prio_tc"),
        dscp_prio=_dscp_prio(row),
        tc_bandwidth=_list(row, "tc_bandwidth"),
        tc_tsa=_list(row, "tc_tsa"),
        max_rate_kbit_s=_list(row, "max_rate_kbit_s"),
        buffers=_buffers(row),
        cable_metres=metres[0] if metres else None,
        dcbx=_owner(modes) or _first(row, "dcbx_owner"),
        dcbx_modes=list(modes or ()),
        peer_pfc=_list(row, "peer_pfc"),
        pfc_frames_sent=_list(row, "frames_sent"),
        pfc_frames_received=_list(row, "frames_received"),
        ecn={point: [bool(on) for on in of] for point, of in sorted((row.ecn or {}).items()) if None not in of},
        cnp_dscp=row.cnp_dscp,
        cnp_priority=row.cnp_priority,
    )
    return qos if qos != Qos() else None


def _trust(sources: Sequence[Dcb], driver: str | None) -> tuple[str | None, str | None]:
    """What a frame's priority is taken from, and the source of that.

    An explicit state wins, then a trust table. APP entries for DSCP mean that DSCP is trusted; no such entries
    mean PCP on mlx5 only, whose driver fills and empties the table with the trust state.
    """
    for source in sources:
        if source.trust:
            return source.trust, source.source
    for source in sources:
        words = [word for word in source.trust_order or () if word in ("dscp", "pcp")]
        if words:
            return "dscp" if "dscp" in words else "pcp", "trust table"  # IP packets have a DSCP, whatever the order
    for source in sources:
        if source.applications is not None:
            if any(entry.selector == "dscp" for entry in source.applications):
                return "dscp", "APP table"
            if (driver or "").startswith(_CABLE_LENGTH_DRIVER):
                return "pcp", "APP table"
    return None, None


def _dscp_prio(row: DcbInterface) -> dict[str, int]:
    """The kernel uses the highest priority of several entries for a DSCP."""
    entries = sorted(entry for entry in _first(row, "applications") or () if entry.selector == "dscp")
    return {str(entry.protocol): entry.priority for entry in entries}


def _buffers(row: DcbInterface) -> dict[str, list[int]]:
    both = {"prio_buffer": _list(row, "prio_buffer"), "size_bytes": _list(row, "buffer_bytes")}
    return {name: values for name, values in both.items() if values}


def _owner(modes: Sequence[str] | None) -> str | None:
    return ("host" if "host" in modes else "firmware") if modes else None


def _first(row: DcbInterface, name: str) -> Any:
    """The value of the first source that has it."""
    return next((value for source in row.said if (value := getattr(source, name)) is not None), None)


def _list(row: DcbInterface, name: str) -> list[Any]:
    return list(_first(row, name) or ())
