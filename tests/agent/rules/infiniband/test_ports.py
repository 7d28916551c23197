"""Which InfiniBand ports are judged: every reason to leave one alone, and each case beside it that is none."""

from __future__ import annotations

import pytest

from agent.rules.catalogue import every_rule
from agent.rules.engine import judge
from agent.rules.infiniband.ports import EXPECTED, PLUGGED, IbPort, has_no_infiniband, ib_ports
from agent.rules.rule import NotApplicable, Unknown
from tests.agent.rules.build import changed_nic, changed_nics, changed_port, function, nic_id, probe, server, topology

NIC = nic_id(1)


def down(**changes):
    """Rail 1 is down, and changed."""
    return changed_nic(changed_port(server(), 1, state="DOWN"), 1, **changes)


def nameless(**changes):
    """The same where nothing shows what the NICs are for."""
    return changed_nic(changed_nics(down(), role="unknown"), 1, **changes)


def unread(context):
    """The same where the PCI bus was not read."""
    return probe(topology(context, pci=[]), "pci", "failed", "broken")


@pytest.mark.parametrize(
    ("make", "roles", "kind"),
    [
        pytest.param(lambda: function(down(), NIC, state="gone"), EXPECTED, IbPort, id="gone: folded into its cause"),
        pytest.param(lambda: function(down(), NIC, state="asleep"), EXPECTED, NotApplicable, id="asleep"),
        pytest.param(nameless, EXPECTED, Unknown, id="perhaps a rail"),
        pytest.param(nameless, PLUGGED, IbPort, id="any role will do"),
        pytest.param(lambda: nameless(role="storage"), EXPECTED, IbPort, id="storage, whichever are rails"),
        pytest.param(lambda: changed_port(nameless(), 1, state="ACTIVE"), EXPECTED, NotApplicable, id="active"),
        pytest.param(lambda: down(role="unknown"), EXPECTED, NotApplicable, id="the rails are others"),
        pytest.param(lambda: unread(down(role="unknown")), EXPECTED, Unknown, id="role and bus not known"),
        pytest.param(lambda: unread(down(role="unknown")), PLUGGED, IbPort, id="bus not known, any role will do"),
        pytest.param(lambda: unread(down(role="management")), EXPECTED, NotApplicable, id="role told, bus not known"),
    ],
)
def test_a_port_is_judged_or_says_why_not(make, roles, kind) -> None:
    """A port is left alone for what it is, and its state is not known to matter where its use is not."""
    of_it = [ib_port for ib_port in ib_ports(make(), roles) if ib_port.subject == f"port:{NIC}/1"]

    assert [kind] == [type(item) for item in of_it], of_it


def test_a_port_is_at_its_nic_and_its_function() -> None:
    """A sub-function is not what its parent's function is, and a fault of it is about both."""
    context = changed_nic(server(), 1, id=f"{NIC}/sf1")
    (port,) = [
        ib_port for ib_port in ib_ports(context) if isinstance(ib_port, IbPort) and ib_port.nic.id == f"{NIC}/sf1"
    ]

    assert {f"{NIC}/sf1/1", f"{NIC}/sf1", NIC} == set(port.ids)


@pytest.mark.parametrize(
    ("class_code", "ethernet", "none"),
    [
        pytest.param("0x020000", True, True, id="Ethernet alone"),
        pytest.param("0x0c0600", False, False, id="ports of a controller of another class"),
        pytest.param("0x020700", True, False, id="a controller whose ports speak Ethernet now"),
    ],
)
def test_no_infiniband_is_said_where_nothing_is_of_it(class_code: str, ethernet: bool, none: bool) -> None:
    """Neither a function's class nor a port."""
    context = function(server(1, ethernet), nic_id(0), class_code=class_code)

    assert none == has_no_infiniband(context)
    assert not has_no_infiniband(unread(context))


HDR = {"rate_gbit_s": 200.0, "speed": "HDR"}


def different():
    """Two kinds of rails: nobody is slower than its own board."""
    context = server()
    for n in (0, 1):
        context = changed_nic(changed_port(context, n, **HDR), n, board_id="MT_HDR")
    return context


def test_it_remains_where_no_board_is_degraded() -> None:
    """Nothing above info stands for it; boards and rates differ by order, which is a choice."""
    _, findings, _ = judge(different(), every_rule())

    assert [
        ("ib-rate-mixed", "warning"),
        ("peer-differs", "info"),
        ("peer-differs", "info"),
        ("ib-rate-degraded", "info"),
    ] == [(f.rule, f.severity) for f in findings]
