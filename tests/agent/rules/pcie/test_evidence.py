"""What supports a finding about a link: retraining that the port remembers, and what the kernel wrote."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from agent.model.node import Event
from agent.rules.pcie.bandwidth import pcie_nic_starved
from agent.rules.pcie.link_training import pcie_speed_downgraded, pcie_width_downgraded
from tests.agent.rules.build import fails, function, kinds, nic_id, relinked, server
from tests.agent.rules.rows import link

NIC, TO_NIC = nic_id(0), "0000:12:01.0"


def said(kind: str, text: str) -> tuple[Event, ...]:
    return (Event(kind=kind, subject="0000:99:00.0", text=text, source="/dev/kmsg"),)


@pytest.mark.parametrize(
    ("rule", "made"), [(pcie_width_downgraded, link(width=8)), (pcie_speed_downgraded, link(speed=8.0))]
)
def test_a_port_that_remembers(rule, made) -> None:
    """Sticky and undated: it supports a finding, and makes none."""
    case = function(server(), TO_NIC, retrained=["bandwidth_managed", "autonomous"])
    (fault,) = fails(rule, relinked(case, NIC, made))

    assert "bandwidth managed and autonomous" in [row.value for row in fault.evidence]
    assert kinds(rule, server()) == kinds(rule, case)


@pytest.mark.parametrize("remembered", [None, []])
def test_a_port_that_remembers_nothing(remembered) -> None:
    """No row."""
    case = relinked(function(server(), TO_NIC, retrained=remembered), NIC, link(width=8))
    (fault,) = fails(pcie_width_downgraded, case)

    assert not [row for row in fault.evidence if "retrained" in row.what]


@pytest.mark.parametrize(
    ("kind", "text", "shown"),
    [
        ("pcie_bandwidth", f"31.506 Gb/s available, limited by 8.0 GT/s PCIe x4 link at {NIC}", True),
        ("pcie_bandwidth", "31.506 Gb/s available, limited by 8.0 GT/s PCIe x4 link at 0000:98:00.0", False),
        ("mlx5", f"something else of {NIC}", False),
    ],
)
@pytest.mark.parametrize("rule", [pcie_width_downgraded, pcie_nic_starved])
def test_the_kernel_named_the_hop(rule, kind: str, text: str, shown: bool) -> None:
    """Its line on the limiting link is evidence, and never a finding of its own."""
    case = replace(relinked(server(), NIC, link(width=8)), events=said(kind, text))
    (fault,) = fails(rule, case)

    assert shown == (text in [row.value for row in fault.evidence])
    assert [] == fails(rule, replace(server(), events=said(kind, text)))
