"""DCB as facts: what each source states of an interface. Lists are by priority or traffic class 0 to 7."""

from collections.abc import Mapping

from probes.named_tuple import NamedTuple


class Application(NamedTuple):
    """One entry of an APP table."""

    selector: str  # dscp | pcp | ethertype | tcp | udp | port; the number of another one
    protocol: int  # the DSCP, the port
    priority: int


class Dcb(NamedTuple):
    """What one source states of one interface. None: it does not show it."""

    source: str  # "DCB netlink", "qos/trust", "mlnx_qos", "dcb"
    trust: str | None = None  # dscp | pcp, where the source has a word for it
    trust_order: tuple[str, ...] | None = None  # selectors of the trust table, the first decides
    pfc: tuple[bool, ...] | None = None
    delay: int | None = None  # of ieee_pfc: cable metres on mlx5, bit times elsewhere
    frames_sent: tuple[int, ...] | None = None
    frames_received: tuple[int, ...] | None = None
    prio_tc: tuple[int, ...] | None = None
    tc_bandwidth: tuple[int, ...] | None = None  # percent
    tc_tsa: tuple[str, ...] | None = None  # strict | cbs | ets | vendor | unused (no priority has it)
    max_rate_kbit_s: tuple[int, ...] | None = None
    prio_buffer: tuple[int, ...] | None = None
    buffer_bytes: tuple[int, ...] | None = None
    applications: tuple[Application, ...] | None = None  # empty: the table is empty
    dcbx: tuple[str, ...] | None = None  # host lld_managed cee ieee static
    dcbx_owner: str | None = None  # host | firmware, where the source has a word for it
    peer_pfc: tuple[bool, ...] | None = None


class DcbInterface(NamedTuple):
    """One Ethernet interface of a PCI device."""

    name: str
    pci: str | None  # None: saved outputs do not state it
    said: tuple[Dcb, ...] = ()  # the best source first
    reason: str | None = None  # why DCB netlink gave nothing: "the driver has no DCB here (EOPNOTSUPP)"
    ecn: Mapping[str, tuple[bool | None, ...]] | None = None  # "np", "rp": by priority (OFED)
    cnp_dscp: int | None = None
    cnp_priority: int | None = None


class TrafficMarking(NamedTuple):
    """What marks the traffic of one RDMA port, whatever program sends it."""

    device: str
    port: int
    traffic_class: int | None = None  # ToS byte that the driver forces on every queue pair
    default_roce_mode: str | None = None  # of rdma-cm


class DcbFacts(NamedTuple):
    """Interfaces and markings, each sorted by name."""

    interfaces: tuple[DcbInterface, ...]
    markings: tuple[TrafficMarking, ...] = ()
