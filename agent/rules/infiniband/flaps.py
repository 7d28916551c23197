"""Links of InfiniBand ports that go down again and again."""

from __future__ import annotations

from collections.abc import Iterator

from agent.rules.context import RuleContext
from agent.rules.counter_deltas import delta
from agent.rules.infiniband.counters import LINK_DOWNED, IbPortCounters, read_ports
from agent.rules.link_flaps import LinkDowns, judge_flaps, largest_delta, read_limits
from agent.rules.rule import Result, rule

_OF_IPOIB = ("carrier_down_count", "link_down_events_phy")
_LIMITS = read_limits("ib-link-flap")
_IMPACT = "Its traffic stops while the link trains; after about 30 s of retries (7 of 4.3 s) a NCCL job ends."


@rule("ib-link-flap")
def ib_link_flap(context: RuleContext) -> Iterator[Result]:
    downs: list[LinkDowns] = []
    for port in read_ports(context):
        if isinstance(port, IbPortCounters):
            ipoib = [delta(context, counters, [name]) for counters in port.ipoib for name in _OF_IPOIB]
            count = largest_delta(delta(context, port.counters, [LINK_DOWNED]), *ipoib)
            history = port.ib.subject, *(counters.subject for counters in port.ipoib)
            downs.append(LinkDowns(port.place, count, history, port.ib.nic.pci))
        else:
            yield port
    yield from judge_flaps(context, downs, _LIMITS, _IMPACT)
