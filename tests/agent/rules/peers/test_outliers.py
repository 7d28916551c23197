"""Which counts are of a part: those of its own interfaces, none of a VLAN above it."""

from __future__ import annotations

from msgspec.structs import replace

from agent.model.nic import Netdev
from agent.rules.context import RuleContext
from agent.rules.peers.outliers import counter_outlier
from tests.agent.rules.build import changed_netdev, changed_port, fails, server, topology

OFTEN = {"carrier_down_count": 500}


def with_vlans(case: RuleContext, listed: bool, **counts: dict[str, int]) -> RuleContext:
    """A VLAN above each of four rails, with its counters by the name of the interface below."""
    for n in range(4):
        below = case.topology.netdevs[n]
        case = changed_netdev(case, n, counters={"carrier_down_count": 0, **counts.get(below.label, {})})
        name = f"{below.label}.5"
        above = Netdev(
            id=name, label=name, vlan={"id": 5, "parent": below.label}, nic=below.nic, operstate="up",
            counters={"carrier_down_count": 0, **counts.get(f"vlan{n}", {})},
        )  # fmt: skip
        case = topology(case, netdevs=[*case.topology.netdevs, above])
        if listed:
            case = changed_port(case, n, netdevs=[below.label, name])
    return case


def test_a_count_of_an_interface_is_no_less_for_the_vlan_above_it() -> None:
    """RDMA lists both as interfaces of the port."""
    (fault,) = fails(counter_outlier, with_vlans(server(ethernet=True), True, eth1=OFTEN))

    assert ("mlx5_1/1", "500") == (fault.label, fault.evidence[0].value.partition(";")[0])


def test_counts_of_vlans_are_those_of_the_interface_below() -> None:
    """None by itself is a finding, listed or not."""
    for listed in (True, False):
        assert [] == fails(counter_outlier, with_vlans(server(ethernet=True), listed, vlan1=OFTEN))


def test_only_large_counts_are_named() -> None:
    """Where fewer times those of peers are enough, the least count still is."""
    case = with_vlans(server(ethernet=True), True, eth1={**OFTEN, "rx_crc_errors_phy": 99, "rx_symbol_err_phy": 100})
    for n in (0, 2, 3):
        case = changed_netdev(
            case, n, counters={"carrier_down_count": 0, "rx_crc_errors_phy": 0, "rx_symbol_err_phy": 0}
        )
    case = replace(case, settings=replace(case.settings, thresholds={"counter-outlier.times": 2}))
    (fault,) = fails(counter_outlier, case)

    assert ["500", "100"] == [row.value.partition(";")[0] for row in fault.evidence]
