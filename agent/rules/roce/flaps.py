"""Links of RoCE ports that go down again and again."""

from __future__ import annotations

from collections.abc import Iterator

from agent.rules.context import RuleContext
from agent.rules.counter_deltas import delta
from agent.rules.link_flaps import LinkDowns, judge_flaps, judge_unlisted, largest_delta, read_limits
from agent.rules.roce.port_counters import RocePortCounters, by_interface, read_ports
from agent.rules.rule import Result, rule

_COUNTERS = ("carrier_down_count", "link_down_events_phy", "link_down_events")
_LIMITS = read_limits("roce-link-flap")
_IMPACT = (
    "Its traffic stops for seconds each time; after about 30 s of retries (7 of 4.3 s) a job of NCCL or HCCL ends."
)


@rule("roce-link-flap")
def roce_link_flap(context: RuleContext) -> Iterator[Result]:
    downs: list[LinkDowns] = []
    for counters in by_interface(context, read_ports(context, down=True)):
        if isinstance(counters, RocePortCounters):
            counts = [delta(context, counters.eth, [name]) for name in _COUNTERS]
            nic = counters.roce.nic
            function = (counters.cabled_netdev.pci if counters.cabled_netdev else None) or nic.pci or nic.accelerator
            history = counters.roce.subject, counters.eth.subject
            downs.append(LinkDowns(counters.place, largest_delta(*counts), history, function))
        else:
            yield counters
    yield from judge_flaps(context, downs, _LIMITS, _IMPACT)
    yield from judge_unlisted(context, _LIMITS, _IMPACT)
