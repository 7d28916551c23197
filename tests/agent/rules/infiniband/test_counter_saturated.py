"""ib-counter-saturated: counters at the end of their width."""

from __future__ import annotations

import pytest

from agent.rules.infiniband.links import ib_counter_saturated as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import changed_nic, changed_port, changed_ports, fails, server
from tests.agent.rules.moves import PORT, one, severities


def counted(**counters: int):
    """One port whose counters stand so; the others at 0."""
    case = changed_ports(server(), counters={"symbol_error": 0})
    return changed_port(case, 1, counters={"symbol_error": 0, **counters})


@pytest.mark.parametrize(
    ("counters", "expected"),
    [
        ({"link_downed": 255}, True),
        ({"link_downed": 254}, False),
        ({"link_downed": 256}, False),
        ({"symbol_error": 65535}, True),
        ({"local_link_integrity_errors": 15}, True),
        ({"port_xmit_data": 2**32 - 1}, False),
    ],
)
def test_a_counter_at_its_maximum_is_info(counters: dict[str, int], expected: bool) -> None:
    """Below and above it counts."""
    assert [(PORT, "info")] * expected == severities(rule, counted(**counters))


def test_it_says_which() -> None:
    """Name, value and file; all ports are one finding."""
    (fault,) = fails(rule, counted(link_downed=255, symbol_error=65535))

    assert fault.summary == "counts no further: symbol_error 65535, link_downed 255"
    assert fault.evidence[1].source == "/sys/class/infiniband/mlx5_1/ports/1/counters/link_downed"
    assert [("node", "info")] == severities(rule, changed_ports(server(), counters={"link_downed": 255}))


def test_what_was_not_read_is_unknown() -> None:
    """And a port that nobody uses is not judged."""
    assert Pass(PORT) == one(rule, counted(), PORT)
    assert isinstance(one(rule, changed_port(server(), 1, counters={}), PORT), Unknown)
    assert isinstance(one(rule, changed_nic(counted(link_downed=255), 1, role="unused"), PORT), NotApplicable)
