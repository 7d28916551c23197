"""Of a label that no field has a few parts differ from most of their peers: one note for each."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from msgspec.structs import replace

from agent.model.report import ProbeRun
from agent.model.topology import UnequalLabel
from agent.rules.context import RuleContext
from agent.rules.peers.differs import peer_differs
from agent.rules.rule import Fail, Pass
from tests.agent.rules.build import gpu_id, server

GPUS = 8


def label(
    context: RuleContext, *values: str, name: str = "Compute Mode", names: list[str] | None = None
) -> RuleContext:
    """The machine of which an output states these values, a device each; its GPUs where no names are given."""
    devices = defaultdict(list)
    for n, value in enumerate(values):
        devices[value].append(names[n] if names else f"0000{gpu_id(n)}")
    rows = context.topology.unequal_labels or []
    row = UnequalLabel(source="nvidia-smi -q", label=name, values=dict(devices))
    return replace(context, topology=replace(context.topology, unequal_labels=[*rows, row]))


def notes(context: RuleContext) -> list[tuple[str, str]]:
    """Which part, and what is noted."""
    return [(answer.label, answer.summary) for answer in peer_differs.check(context) if isinstance(answer, Fail)]


def test_one_of_eight_is_noted() -> None:
    """With what most have, and the command that shows it; it does not pass besides."""
    context = label(server(GPUS), *"aaabaaaa")
    answers = list(peer_differs.check(context))
    (fault,) = [answer for answer in answers if isinstance(answer, Fail)]

    assert ("GPU3", "Compute Mode is b (the 7 other GPUs: a)") == (fault.label, fault.summary)
    assert ("info", "nvidia-smi -q", "b") == (fault.severity, fault.evidence[0].source, fault.evidence[0].value)
    assert Pass(fault.subject) not in answers
    assert [] == notes(server(GPUS))


@pytest.mark.parametrize("values", ["aaabbbaa", "abababab", "aaaabbbb", "aaabaaab", "abcdefgh", "aab", "baabaaa"])
def test_more_than_a_quarter_an_order_or_few_parts_are_no_minority(values: str) -> None:
    """The fourth and the eighth follow the order on the bus."""
    assert [] == notes(label(server(GPUS), *values))


def test_two_of_eight_without_an_order_are_noted_one_by_one() -> None:
    """Each with its own value."""
    assert ["GPU0", "GPU3"] == [part for part, _ in notes(label(server(GPUS), *"baabaaaa"))]


def test_a_part_that_differs_in_several_labels_is_one_note() -> None:
    """The same label of a second form of the output counts once."""
    context = label(label(server(GPUS), *"aaabaaaa"), *"cccdcccc", name="Driver Model/Current")
    context = label(context, *"aaabaaaa", name="compute_mode")
    summary = "differs from the 7 other GPUs in 2 labels: Compute Mode b (a); Driver Model/Current d (c)"

    assert [("GPU3", summary)] == notes(context)


def test_what_a_field_states_is_not_noted_again() -> None:
    """Its difference is reported already: the value with and without its unit is the same one."""
    machine = server(GPUS)
    gpus = [replace(one, bar1_mib=256 if n == 3 else 131072) for n, one in enumerate(machine.topology.gpus)]
    machine = replace(machine, topology=replace(machine.topology, gpus=gpus))
    values = ["256 MiB" if n == 3 else "131072 MiB" for n in range(GPUS)]

    assert 1 == len(notes(label(machine, *values, name="BAR1 Memory Usage/Total")))
    assert 2 == len(notes(label(machine, *"aaaabaaa")))


def test_parts_that_are_not_compared_are_left_out() -> None:
    """Bridges, virtual functions, functions that no peer group has."""
    context = server(GPUS)
    bridges = [function.id for function in context.topology.pci if function.port_type == "root_port"]

    assert [] == notes(label(context, *"aaabaaaa", names=bridges))


def test_devices_that_nothing_else_names_are_peers_of_those_named_alike() -> None:
    """Interfaces with other names are others; of addresses each may be one, where no list has them."""
    ports, other = [f"ens{n}f0np0" for n in range(4)], [f"enp{n}s0" for n in range(4)]
    unlisted = [f"0001:{n}0:00.0" for n in "1a2b"]

    assert [("ens2f0np0", "Compute Mode is b (the 3 other interfaces: a)")] == notes(
        label(server(), *"aaba", names=ports)
    )
    assert [] == notes(label(server(), *"aaba", names=ports[:2] + other[:2]))
    assert [("0001:20:00.0", "Compute Mode is b (the 3 other devices: a)")] == notes(
        label(server(), *"aaba", names=unlisted)
    )


@pytest.mark.parametrize(("count", "is_noted"), [(7, True), (8, False)])
def test_a_device_that_differs_in_many_labels_is_of_another_kind(count: int, is_noted: bool) -> None:
    """Where nothing names its product."""
    context = server()
    for n in range(count):
        context = label(context, *"aaba", name=f"label {n}", names=[f"ens{port}f0" for port in range(4)])

    assert is_noted == bool(notes(context))


@pytest.mark.parametrize(("count", "end"), [(8, "label 7 b (a)"), (9, "label 7 b (a), and 1 more")])
def test_a_gpu_that_differs_in_many_labels_names_some(count: int, end: str) -> None:
    """Its product is that of its peers."""
    context = server(GPUS)
    for n in range(count):
        context = label(context, *"aaabaaaa", name=f"label {n}")
    ((_, summary),) = notes(context)

    assert summary.endswith(end)


def unknown_role(context: RuleContext, **changes: Any) -> RuleContext:
    """The machine whose NICs have no known role, and no list of PCI devices."""
    nics = [replace(nic, role="unknown", **changes) for nic in context.topology.nics]
    probes = {**context.probes, "pci": ProbeRun(name="pci", status="absent")}
    return replace(context, probes=probes, topology=replace(context.topology, nics=nics, pci=[]))


def test_nics_of_unknown_role_are_compared_within_their_product() -> None:
    """By their device, address or interface; not what is down, or of another model or link layer."""
    context = unknown_role(server(GPUS, ethernet=True))
    names = [nic.rdma_device or "" for nic in context.topology.nics]
    interfaces = [netdev.label for netdev in context.topology.netdevs]
    down = [replace(port, state="DOWN") for port in context.topology.nics[3].ports]
    odd_down = [replace(nic, ports=down) if n == 3 else nic for n, nic in enumerate(context.topology.nics)]
    odd_model = [replace(nic, model="other") if n == 3 else nic for n, nic in enumerate(context.topology.nics)]

    assert [names[3]] == [part for part, _ in notes(label(context, *"aaabaaaa", names=names))]
    assert [interfaces[3]] == [part for part, _ in notes(label(context, *"aaabaaaa", names=interfaces))]
    assert [names[3]] == [
        part for part, _ in notes(label(unknown_role(server(GPUS, ethernet=True), ports=[]), *"aaabaaaa", names=names))
    ]
    for nics in (odd_down, odd_model):
        other = replace(context, topology=replace(context.topology, nics=nics))
        assert [] == notes(label(other, *"aaabaaaa", names=names)) == notes(label(other, *"aaabaaaa", names=interfaces))


def test_nics_of_which_nothing_is_expected_are_not_compared() -> None:
    """Their role is known: they are for management."""
    context = server(GPUS)
    names = [nic.rdma_device or "" for nic in context.topology.nics]
    nics = [replace(nic, role="management") for nic in context.topology.nics]
    context = replace(context, topology=replace(context.topology, nics=nics))

    assert [] == notes(label(context, *"aaabaaaa", names=names))


def test_what_is_handed_to_a_guest_is_not_compared() -> None:
    """Its driver is not that of its peers, by choice."""
    context = server(GPUS)
    gpus = [replace(one, driver_state="vfio") if n == 3 else one for n, one in enumerate(context.topology.gpus)]
    context = replace(context, topology=replace(context.topology, gpus=gpus))

    assert [] == [part for part, summary in notes(label(context, *"aaabaaaa")) if "Compute" in summary]


def test_rails_are_compared_by_the_names_of_their_devices() -> None:
    """An RDMA device, its address and its interface are parts of the machine."""
    context = server(GPUS)
    devices = [nic.rdma_device or "" for nic in context.topology.nics]
    addresses = [nic.pci or "" for nic in context.topology.nics]

    for names in (devices, addresses):
        ((part, summary),) = notes(label(context, *"aaabaaaa", names=names))
        assert "the 7 other" in summary, (part, summary)


def test_a_gpu_is_found_by_its_number_too() -> None:
    """As tables name it; a number that no GPU has is a device of its own."""
    names = [f"GPU {n}" for n in range(GPUS)]

    assert ["GPU3"] == [part for part, _ in notes(label(server(GPUS), *"aaabaaaa", names=names))]
