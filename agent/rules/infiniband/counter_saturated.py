"""ib-counter-saturated."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.counters import PORT_COUNTER_BITS
from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.folding import folded
from agent.rules.infiniband.ports import IbPort, ib_ports
from agent.rules.rule import Answer, Fail, Pass, Unknown, rule

_OF_SWITCHES = "port_rcv_switch_relay_errors"  # no NIC relays
_BITS = {name: bits for name, bits in PORT_COUNTER_BITS.items() if name != _OF_SWITCHES}


@rule("ib-counter-saturated", "info", needs=("rdma|rdma_tools",), references=("ib-counter-saturated",))
def ib_counter_saturated(case: Case) -> Iterator[Answer]:
    """An error counter of an InfiniBand port stands at its maximum, and counts no further.

    ## What it checks
    The error counters of every InfiniBand port of a rail or storage NIC that have 4, 8 or 16 bits.

    ## Why it matters
    They stick at 15, 255 or 65535. From then on no new error shows in them: monitoring is blind to flaps and bit errors
    of that port.

    ## How it is decided
    A counter is at the maximum of its width: info, one line a port, one for the node where all ports have some. No
    fault of the link is told: the errors may be years old.

    ## What keeps it silent
    - A value above the maximum: the driver counts wider.
    - Counters that could not be read: unknown. Ports without a role: not applicable.

    ## How to confirm
    `grep . /sys/class/infiniband/DEVICE/ports/1/counters/{symbol_error,link_downed,link_error_recovery}`

    ## How to fix
    `perfquery -R` as root, on this host, when nobody else compares with older values.

    ## Source
    InfiniBand specification, PortCounters; Linux `drivers/infiniband/core/sysfs.c`.
    """
    answers = (_judge(each) if isinstance(each, IbPort) else each for each in ib_ports(case))
    yield from folded(answers, "counters at their maximum on every InfiniBand port")


def _judge(each: IbPort) -> Answer:
    counters = each.port.counters
    if not any(name in counters for name in _BITS):
        return Unknown(each.subject, "its error counters could not be read")
    full = [name for name, bits in _BITS.items() if counters.get(name) == (1 << bits) - 1]
    if not full:
        return Pass(each.subject)
    return Fail(
        subject=each.subject,
        label=each.label,
        summary=f"counts no further: {', '.join(f'{name} {counters[name]}' for name in full)}",
        impact=f"{len(full)} of its counters show no new error: flaps and bit errors go unseen.",
        remedy="perfquery -R, as root, when nobody else compares with older values.",
        evidence=tuple(
            Evidence(what=name, value=str(counters[name]), source=f"{each.evidence('', '', 'counters').source}/{name}")
            for name in full
        ),
        severity="info",
        places=each.places,
    )
