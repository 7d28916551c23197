"""roce-mtu-small."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.nic import Netdev
from agent.rules.case import Case
from agent.rules.roce.ports import RocePort
from agent.rules.roce.wires import by_port
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule

_HEADERS = 96  # GRH, UDP, BTH, XRC, AtomicETH and ICRC, as the kernel counts them
_IB_MTUS = (256, 512, 1024, 2048, 4096)
_WIRE_OVERHEAD = 82  # RoCEv2 over IPv4 with Ethernet framing: what a packet costs besides its payload


@rule(
    "roce-mtu-small",
    "warning",
    needs=("rdma|rdma_tools", "netdev"),
    references=("roce-mtu-small",),
    absorbs=("roce-mtu-mismatch",),
)
def roce_mtu_small(case: Case) -> Iterator[Answer]:
    """A RoCE port sends small packets, because its interface has a small MTU.

    ## What it checks
    The MTU of the interface of every active RoCE port of a rail or storage NIC.

    ## Why it matters
    RoCE takes the largest InfiniBand MTU that fits: 1500 gives 1024. Of the wire 92.6 % are then payload instead of
    98.0 %, and the NIC handles four times as many packets, each of which can be lost.

    ## How it is decided
    The active MTU is the largest of 256, 512, 1024, 2048 and 4096 that is at most the interface's MTU less 96. 4192 is
    enough for 4096. Below 4096: warning on rails, info on storage NICs. An interface MTU below 1120 (active MTU 512
    and less): one step graver. Where every port has the same MTU it is one finding for the node.

    ## What keeps it silent
    - 4200, 4220 and 9000 are all fine: nobody needs 9000 for this.
    - Virtual functions and virtual machines, whose MTU the provider sets; EFA, iWARP, eRDMA and other cloud NICs;
      ports that are not active or have no role; functions that a fabric manager owns: not applicable.
    - The interface is in another network namespace (a container has it), or its MTU could not be read; outputs of RDMA
      tools alone, which do not say what a NIC is for: unknown.

    ## How to confirm
    `ip link show INTERFACE`, and `ibv_devinfo -d DEVICE | grep active_mtu`

    ## How to fix
    `ip link set INTERFACE mtu 9000` (or 4200), on all nodes, with the switches at 9216; make it last in the network
    configuration.

    ## Source
    Linux `iboe_get_mtu()` in `include/rdma/ib_addr.h`; OCI uses 4220.
    """
    yield from by_port(case, lambda each: _judge(case, each), "small packets")


def _judge(case: Case, each: RocePort) -> Answer:
    if case.virtual_machine or each.nic.virtual_function:
        return NotApplicable(each.subject, "a virtual function or machine: the provider sets the MTU")
    if each.nic.state == "other_namespace":
        return Unknown(each.subject, "its interface is in another network namespace")
    if each.netdev is None:
        return Unknown(each.subject, "no interface of it is visible here (another network namespace?)")
    mtu = each.netdev.mtu
    if mtu is None:
        return Unknown(each.subject, "the MTU of its interface could not be read")
    active = active_mtu(mtu)
    return Pass(each.subject) if active >= _IB_MTUS[-1] else _fault(each, each.netdev, mtu, active)


def active_mtu(mtu: int) -> int:
    """The InfiniBand MTU that the kernel derives from that of an interface, bytes; 0 where none fits.

    >>> active_mtu(1500), active_mtu(4192), active_mtu(4191), active_mtu(9000)
    (1024, 4096, 2048, 4096)
    """
    return max((size for size in _IB_MTUS if size <= mtu - _HEADERS), default=0)


def _fault(each: RocePort, netdev: Netdev, mtu: int, active: int) -> Fail:
    tiny = active < _IB_MTUS[2]  # 1024, which an MTU of 1500 gives
    payload = 100 * active / (active + _WIRE_OVERHEAD)
    return Fail(
        subject=f"netdev:{netdev.id}",
        label=each.label,
        summary=f"MTU {mtu}: RoCE sends packets of {active} bytes; 4096 are possible from MTU 4192 on",
        impact=f"{payload:.1f} % of the wire are payload, not 98.0 %, in {4096 // max(active, 256)} times the packets.",
        remedy="ip link set INTERFACE mtu 9000 (or 4200) on all nodes, with the switches at 9216.",
        evidence=(
            Evidence(what=f"MTU of {netdev.label}", value=str(mtu), source=f"/sys/class/net/{netdev.label}/mtu"),
        ),
        severity=each.severity("error" if tiny else "warning"),
        cause="tiny" if tiny else "",
        places=each.places | {netdev.id},
    )
