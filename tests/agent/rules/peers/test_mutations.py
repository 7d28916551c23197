"""One part with another value is found and named, all parts with it are a choice: for every field of every machine."""

from __future__ import annotations

import pytest

from agent.rules.peers.differs import peer_differs
from agent.rules.rule import Fail
from tests.agent.rules.peers.mutating import context_of, list_mutations, mutate, other_value
from tests.conftest import IN_FULL
from tests.machines import SOME_HOSTS, scan_machine

SEVERITY = {"equal": "warning", "usual": "info"}


@pytest.mark.parametrize("word", ["equal", "usual"])
@pytest.mark.parametrize("host", SOME_HOSTS)
def test_the_odd_one_is_named_and_a_choice_is_not_a_fault(host: str, word: str) -> None:
    """Of each group the first part, a middle one and the last one; a plain run takes one of them by turns."""
    case = context_of(scan_machine(host))
    for turn, mutation in enumerate(list_mutations(case, word)):
        group = mutation.group
        value = other_value(mutation.field.read(group[0].row))
        places = (0, len(group) // 2, len(group) - 1)
        for place in places if IN_FULL else places[turn % 3 : turn % 3 + 1]:
            part = group[place]
            storage = part.role.startswith("storage")
            faults = [f for f in peer_differs.check(mutate(case, mutation, [part], value)) if isinstance(f, Fail)]
            found = [(f.subject, f.severity, f.field) for f in faults]
            assert [(part.subject, "info" if storage else SEVERITY[word], mutation.path)] == found, mutation.path
        alike = peer_differs.check(mutate(case, mutation, group, value))
        assert [] == [f for f in alike if isinstance(f, Fail) and f.severity != "info"], mutation.path
