"""roce-tc-rate-limited."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.nic import Netdev
from agent.rules.case import Case
from agent.rules.roce.lossless import Chain
from agent.rules.roce.told import fault, over_readable
from agent.rules.rule import Answer, Pass, Unknown, rule
from agent.rules.threshold import Threshold

ENOUGH = Threshold("roce-tc-rate-limited.percent", 95, "limit that counts as none, percent of the link's rate")


@rule(
    "roce-tc-rate-limited",
    "warning",
    needs=("rdma|rdma_tools", "netdev"),
    references=("roce-tc-rate-limited",),
    thresholds=(ENOUGH,),
)
def roce_tc_rate_limited(case: Case) -> Iterator[Answer]:
    """A rate limit holds back the queue of RDMA.

    ## What it checks
    The rate limits of the traffic class queues of every RoCE port.

    ## Why it matters
    A limit that was set for a test and forgotten caps the rail: 100 Gb/s on a link of 400 Gb/s costs 75 %.

    ## How it is decided
    The queue of RDMA's priority has a limit below 95 % of the link's rate (threshold `roce-tc-rate-limited.percent`).
    Where that priority is not known: every queue has one. Warning; storage: info.

    ## What keeps it silent
    - No limit (0), or one near the rate of the link.
    - Some queues are limited and RDMA's is not known; limits or rate not read, virtual functions: unknown.
    - Limits that tenants are meant to have: switch the rule off, or lower the threshold.

    ## How to confirm
    `dcb maxrate show dev INTERFACE`, or `mlnx_qos -i INTERFACE | grep ratelimit`

    ## How to fix
    `mlnx_qos -i INTERFACE --ratelimit 0,0,0,0,0,0,0,0`

    ## Source
    Linux `include/uapi/linux/dcbnl.h` (`ieee_maxrate`, kbit/s).
    """
    yield from over_readable(case, lambda each, netdev: _judge(case, each, netdev))


def _judge(case: Case, each: Chain, netdev: Netdev) -> Answer:
    subject, qos, rates = each.each.subject, each.qos, each.qos.max_rate_kbit_s
    link = netdev.speed_gbit_s or each.each.port.rate_gbit_s
    if not rates:
        return Unknown(subject, "its rate limits could not be read")
    if not any(rates):
        return Pass(subject)
    if not link:
        return Unknown(subject, "the rate of its link is not known")
    low = [n for n, rate in enumerate(rates) if rate and rate / 1e6 < link * case.threshold(ENOUGH) / 100]
    if not low:
        return Pass(subject)
    if each.priority is not None and each.priority < len(qos.prio_tc):
        queue = qos.prio_tc[each.priority]
        if queue not in low:
            return Pass(subject)
    elif len(low) == len(rates):
        queue = low[0]
    else:
        return Unknown(subject, "some queues are limited, and which one RDMA uses is not known")
    limit = rates[queue] / 1e6
    return fault(
        each,
        f"queue {queue} of RDMA is limited to {limit:g} Gb/s, the link runs at {link:g}",
        "mlnx_qos -i INTERFACE --ratelimit 0,0,0,0,0,0,0,0, where no tenant is meant to be limited.",
        impact=f"{100 * (1 - limit / link):.0f} % of the link cannot be used.",
        severity=each.each.severity("warning"),
        evidence=(
            Evidence(
                what=f"limits of queue 0 to 7 of {netdev.label}, kbit/s",
                value=",".join(map(str, rates)),
                source=f"dcb maxrate show dev {netdev.label}",
            ),
        ),
    )
