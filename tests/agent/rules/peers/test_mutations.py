"""One part with another value is found and named, all parts with it are a choice: for every field of every machine."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from agent.config import Configuration
from agent.diagnose import evaluate_report
from agent.model.nic import is_link_local
from agent.rules.context import Settings
from agent.rules.peers.differs import peer_differs
from agent.rules.peers.identity import duplicate_identity
from agent.rules.peers.outliers import counter_outlier
from agent.rules.rule import Fail
from tests.agent.rules.peers.mutating import (
    context_of,
    count,
    list_counters,
    list_mutations,
    list_unstated,
    mutate,
    other_value,
)
from tests.conftest import IN_FULL, PARTS, sample_of
from tests.machines import SOME_HOSTS, scan_machine

TOGETHER = ["8xh200-sxm-2s-16xcx7-roce-4nvsw", "8xh100-sxm-2s-8xcx7-ib-4nvsw", "8xmi300x-2s-8xcx7-roce"]
OF_A_SLICE = ("gpu.memory_mib", "gpu.bar1_mib")  # where MIG is on, and compared with no whole GPU
SEVERITY = {"equal": "warning", "usual": "info"}


@pytest.mark.parametrize("word", ["equal", "usual"])
@pytest.mark.parametrize("host", SOME_HOSTS)
def test_the_odd_one_is_named_and_a_choice_is_not_a_fault(host: str, word: str) -> None:
    """Of each group the first part, a middle one and the last one; a plain run takes one of them by turns."""
    context = context_of(scan_machine(host))
    for turn, mutation in enumerate(list_mutations(context, word)):
        group = mutation.group
        value = other_value(mutation.field.read(group[0].row), mutation.field.word.enough)
        ids = (0, len(group) // 2, len(group) - 1)
        for place in ids if IN_FULL else ids[turn % 3 : turn % 3 + 1]:
            part = group[place]
            storage = part.role.startswith("storage")
            faults = [f for f in peer_differs.check(mutate(context, mutation, [part], value)) if isinstance(f, Fail)]
            found = [(f.subject, f.severity, f.field) for f in faults]
            assert [(part.subject, "info" if storage else SEVERITY[word], mutation.path)] == found, mutation.path
        alike = peer_differs.check(mutate(context, mutation, group, value))
        assert [] == [f for f in alike if isinstance(f, Fail) and f.severity != "info"], mutation.path


@pytest.mark.parametrize("word", ["equal", "usual"])
@pytest.mark.parametrize("host", SOME_HOSTS)
def test_a_field_that_the_machine_does_not_state_is_compared_as_well(host: str, word: str) -> None:
    """All parts of a group get a value, and one of them another one."""
    for context, mutation in list_unstated(context_of(scan_machine(host)), word):
        part = mutation.group[-1]
        other = mutate(
            context, mutation, [part], other_value(mutation.field.read(part.row), mutation.field.word.enough)
        )
        expected = (part.subject, "info" if part.role.startswith("storage") else SEVERITY[word])
        faults = [fault for fault in peer_differs.check(other) if isinstance(fault, Fail)]
        assert expected in [(f.subject, f.severity) for f in faults if f.field == mutation.path], mutation.path


@pytest.mark.parametrize("host", SOME_HOSTS)
def test_what_two_parts_have_that_one_can_have_is_found(host: str) -> None:
    """Each identifier of the first part given to the second one, and to no other."""
    context = context_of(scan_machine(host))
    assert [] == [fault for fault in duplicate_identity.check(context) if isinstance(fault, Fail)]
    for mutation in list_mutations(context, "unique"):
        first, second = mutation.group[:2]
        own = mutation.field.read(first.row)
        faults = [
            fault
            for fault in duplicate_identity.check(mutate(context, mutation, [second], own))
            if isinstance(fault, Fail)
        ]
        is_silent = mutation.path in ("npu.address", "port.lid")  # a rule of its own; only in a subnet of its own
        is_silent |= mutation.path == "netdev.addresses" and all(map(is_link_local, own))  # which follow from the MAC
        assert ([] if is_silent else [mutation.path]) == [fault.field for fault in faults], mutation.path
        assert is_silent or {first.key, second.key} <= faults[0].ids


@pytest.mark.parametrize("host", SOME_HOSTS)
def test_a_count_that_no_peer_has_is_found(host: str) -> None:
    """Each error counter of each kind of part, at a thousand times what is counted at least."""
    context = context_of(scan_machine(host))
    assert [] == [fault for fault in counter_outlier.check(context) if isinstance(fault, Fail)]
    for table, name, rows in list_counters(context):
        for place in (0, len(rows) - 1):
            faults = [f for f in counter_outlier.check(count(context, table, name, rows, place)) if isinstance(f, Fail)]
            assert 1 == len(faults), (table, name)
            assert rows[place].id in faults[0].ids
            assert "warning" == (faults[0].severity or "warning")


def test_the_machines_have_enough_fields_to_change() -> None:
    """Otherwise the tests above would pass with nothing to do."""
    cases = [context_of(scan_machine(host)) for host in SOME_HOSTS]
    fields = sum(len(list(list_mutations(context, word))) for context in cases for word in (*SEVERITY, "unique"))

    assert fields > 500 / PARTS
    assert sum(1 for context in cases for _ in list_counters(context)) > 30 / PARTS


def test_a_field_that_may_be_the_same_here_is_left_out() -> None:
    """By `[peers] free`."""
    cases = [context_of(scan_machine(host)) for host in SOME_HOSTS]
    context, mutation = next(
        (context, mutation)
        for context in cases
        for mutation in list_mutations(context, "unique")
        if mutation.path == "gpu.uuid"
    )
    own = mutation.field.read(mutation.group[0].row)
    same = mutate(context, mutation, [mutation.group[1]], own)
    free = replace(same, settings=Settings(free_fields=frozenset({mutation.path})))

    assert any(isinstance(answer, Fail) for answer in duplicate_identity.check(same))
    assert not any(isinstance(answer, Fail) for answer in duplicate_identity.check(free))


@pytest.mark.parametrize("host", TOGETHER)
def test_two_or_three_differences_at_once_are_all_named(host: str) -> None:
    """Of random fields on random parts: each is a finding, or in the list of what another one explains."""
    report = scan_machine(host)
    healthy = context_of(report)
    for number in sample_of(range(120 if IN_FULL else 36)):
        drawn = random.Random(f"{host} {number}")
        context, laid = healthy, set()
        for _ in range(drawn.choice((2, 3))):
            mutation = drawn.choice(list(list_mutations(context, "equal")))
            part = drawn.choice(mutation.group)
            context = mutate(
                context, mutation, [part], other_value(mutation.field.read(part.row), mutation.field.word.enough)
            )
            laid.add((mutation.path, part.subject))
        changed = replace(report, topology=context.topology, node=context.node)
        findings = evaluate_report(changed, Configuration()).findings
        named = {(finding.field, finding.subject) for finding in findings}
        explained = {line for finding in findings for line in finding.absorbs}
        laid -= {(path, part) for path in OF_A_SLICE for name, part in laid if name == "gpu.mig.current"}
        assert [] == [one for one in laid if one not in named and f"peer-differs {one[1]}" not in explained]
