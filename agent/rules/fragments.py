"""What a fragment states by itself: rules judged again as if the missing context were the usual one.

A pasted `ibstat` has no PCI list, so no rule knows what its ports are for. Where a rule is unknown for want of such
context alone, it is asked again of the same machine with that context assumed: NICs carry GPU traffic, what is listed
is all there is. What it then finds is a finding of low confidence, which names the assumption and what settles it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from agent.model.nic import Nic, Port
from agent.model.reasons import Reason
from agent.rules.context import RuleContext
from agent.rules.rule import Fail, Result, Rule, Unknown

_OPEN = frozenset({"role-not-known", "rails-not-known", "link-layer-not-known", "list-incomplete"})
_BUS = frozenset({"pci", "pci_sysfs"})


def is_context(why: Reason) -> bool:
    """Whether a reason is about what surrounds a part, and the source simply does not hold it."""
    return why.code in _OPEN or (why.code == "evidence-absent" and why.parameters.get("subject") in _BUS)


def assume_context(case: RuleContext) -> RuleContext:
    """The same machine as if its NICs carried GPU traffic and its lists were whole."""
    nics = [_assume_rail(nic) for nic in case.topology.nics]
    return replace(case, topology=replace(case.topology, nics=nics), lists_whole=True)


def _assume_rail(nic: Nic) -> Nic:
    if nic.role != "unknown" or nic.software or nic.virtual_function:
        return nic
    return replace(nic, role="rail", ports=[_assume_layer(port) for port in nic.ports])


def _assume_layer(port: Port) -> Port:
    """A port with a network interface that no tool calls InfiniBand carries Ethernet."""
    return replace(port, link_layer="Ethernet") if port.link_layer is None and port.netdevs else port


def find_in_fragment(assumed: RuleContext, rule: Rule, answers: Sequence[Result]) -> Iterator[Fail]:
    """Faults of subjects that are unknown for want of context alone."""
    gates = {answer.subject: answer.reason for answer in answers if isinstance(answer, Unknown)}
    gates = {subject: why for subject, why in gates.items() if is_context(why)}
    if not gates:
        return
    for fault in rule.check(assumed):
        why = gates.get(fault.subject) or (gates.get("node") if isinstance(fault, Fail) else None)
        if isinstance(fault, Fail) and why is not None:
            yield replace(fault, confidence="low", depends_on=why)


def find_before_boot(earlier: RuleContext, rule: Rule, answers: Sequence[Result]) -> Iterator[Fail]:
    """Faults that the logs of earlier boots show, of subjects that have none in this one: people reboot before they
    collect. `earlier`: the same machine with the events of earlier boots in place of its own."""
    failing = {answer.subject for answer in answers if isinstance(answer, Fail)}
    for fault in rule.check(earlier):
        if isinstance(fault, Fail) and fault.subject not in failing:
            confidence = "medium" if fault.confidence == "high" else fault.confidence
            yield replace(fault, summary=f"before the last boot: {fault.summary}", confidence=confidence)
