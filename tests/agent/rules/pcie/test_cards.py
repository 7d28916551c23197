"""Cards of several functions: one that is gone, and ports that share a link; the rest is rows of tests/matrix/rules."""

from __future__ import annotations

import msgspec

from agent.rules.context import RuleContext
from agent.rules.pcie.bandwidth import pcie_nic_starved as rule
from agent.rules.pcie.cards import USABLE, RequiredRate, is_sufficient
from agent.rules.pcie.devices import pcie_device_gone
from tests.agent.rules.build import (
    changed_nic,
    changed_port,
    fails,
    function,
    nic_id,
    relinked,
    server,
    topology,
)
from tests.agent.rules.rows import link

NIC, SECOND = nic_id(0), f"{nic_id(0)[:-1]}1"


def severities(context: RuleContext) -> list[tuple[str, str | None]]:
    return [(fault.subject, fault.severity) for fault in fails(rule, context)]


def two_ports(context: RuleContext, rate: float) -> RuleContext:
    """A second function of NIC 0, with a port of its own; both at `rate`."""
    context = changed_port(context, 0, rate_gbit_s=rate)
    twin = msgspec.structs.replace(context.nics[NIC], id=SECOND, pci=SECOND, label="mlx5_9")
    like = msgspec.structs.replace(context.functions[NIC], id=SECOND)
    return topology(context, pci=[*context.topology.pci, like], nics=[*context.topology.nics, twin])


def gone(context: RuleContext, address: str) -> RuleContext:
    """The same machine, one function of which does not answer."""
    return function(relinked(context, address, link(quality="unreadable")), address, state="gone")


def second_of(context: RuleContext, class_code: str) -> RuleContext:
    """NIC 0 is the second function of its card; the first is something else."""
    first = msgspec.structs.replace(context.functions[NIC], class_code=class_code, driver=None)
    context = changed_nic(function(context, NIC, id=SECOND), 0, id=SECOND, pci=SECOND)
    return topology(context, pci=[*context.topology.pci[:5], first, *context.topology.pci[5:]])


def test_just_enough_is_enough() -> None:
    """A link carries a rate that is all that can be used of it."""
    assert is_sufficient(1.0, 8 * USABLE)
    assert not is_sufficient(1.0, 8.1 * USABLE)


def test_what_a_link_fails_to_carry() -> None:
    """Both ports where it is just enough for one; one port where it is too little for that."""
    assert [800.0, 400.0] == [RequiredRate(400.0, 800.0).missed(gbyte_s) for gbyte_s in (50.0, 49.9)]


def test_a_better_slot_that_is_enough_for_one_port_of_two_helps() -> None:
    """Each port starves; a Gen 5 slot carries one of them, though never both."""
    (fault,) = fails(rule, two_ports(relinked(server(1), NIC, link(16.0)), 400.0))

    assert "error" == fault.severity
    assert fault.summary.startswith("its port runs at 400 Gb/s")


def test_a_card_whose_first_function_is_no_nic() -> None:
    """A management function stands first: the card is judged by its NIC."""
    context = second_of(relinked(server(), NIC, link(16.0)), "0x088000")

    assert [(f"pci:{SECOND}", "error")] == severities(context)


def test_two_ports_together() -> None:
    """Either fits, both do not: a warning where the card could do more, info where no card of its kind could."""
    built_so = two_ports(relinked(server(1), NIC, link()), 300.0)

    assert [(f"pci:{NIC}", "warning")] == severities(two_ports(relinked(server(), NIC, link(16.0)), 200.0))
    assert [(f"pci:{NIC}", "info")] == severities(built_so)
    assert frozenset() == fails(rule, built_so)[0].ids


def test_functions_of_one_card_are_one_finding() -> None:
    """Both ports of a dual-port card fall off together."""
    context = gone(server(), NIC)
    functions = [msgspec.structs.replace(context.functions[NIC], id=SECOND), *context.topology.pci]
    nics = [*context.topology.nics, msgspec.structs.replace(context.topology.nics[0], id=SECOND, pci=SECOND)]
    (fault,) = fails(pcie_device_gone, topology(context, pci=functions, nics=nics))

    assert f"pci:{NIC}" == fault.subject
    assert {NIC, SECOND} <= fault.ids
