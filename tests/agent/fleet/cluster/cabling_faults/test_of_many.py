"""One cause of many cables is one fault, in fabrics of the generator; nothing else is found there."""

from __future__ import annotations

import re

import pytest

from agent.fleet.cluster.build import build
from agent.fleet.cluster.cabling_faults import CablingFault, find_cabling_faults
from agent.fleet.cluster.fabric_view import build_views
from agent.fleet.cluster.from_reports import ClusterTables, NetdevRow
from bench.fleet import cabling
from bench.fleet.cables import OF_MANY
from bench.fleet.plan import Plan, plan
from tests.agent.fleet.cluster.given import UP, rails


def planted(kind: str) -> Plan:
    """Five units of 32 nodes."""
    return plan(160, 3, {kind: 1}, mix={"h100-ib": 1})


@pytest.mark.parametrize("kind", OF_MANY)
def test_one_line_with_the_units_behind_it(kind: str) -> None:
    made = planted(kind)
    (odd,) = made.truth["oddities"]

    wrong, moved = cabling.found({made.fabrics[0]: "".join(made.fabric_text())})

    assert cabling.planted(made.truth) == cabling.told(wrong, moved)
    (fault,) = wrong
    assert set(odd["hosts"]) <= set(fault.hosts)
    assert fault.compared
    assert len(fault.text) < 300


def by_lldp(
    units: int, leaves: int, moved: dict[tuple[int, int], int], hosts: int = 4, only: int | None = None
) -> list[CablingFault]:
    """RoCE nodes of four rails. `leaves`: of a unit. `moved`: rail that a unit's rail is in the place of; `only`: on so
    many of its nodes."""
    rows = []
    for unit in range(units):
        for host in range(hosts):
            places = [moved.get((unit, rail), rail) if only is None or host < only else rail for rail in range(4)]
            for rail, place in enumerate(places):
                twice = 100 * places[:rail].count(place)
                leaf, port = place * leaves // 4, host * 4 // leaves + place % (4 // leaves) + 1
                name = f"n{unit * hosts + host:02d}"
                rows.append(
                    NetdevRow(
                        name,
                        f"eth{rail}",
                        f"x{rail}",
                        rail,
                        400.0,
                        f"leaf-{unit + 1}-{leaf + 1}",
                        None,
                        f"swp{port + twice}",
                    )
                )
    cluster = build([], ClusterTables(netdev=rows))
    return find_cabling_faults(cluster, build_views(cluster))


@pytest.mark.parametrize("leaves", [1, 2, 4])
@pytest.mark.parametrize("unit", [0, 3])
def test_two_rails_exchanged_on_roce_leaves(unit: int, leaves: int) -> None:
    """On one leaf, or on two; by LLDP."""
    (fault,) = by_lldp(4, leaves, {(unit, 1): 2, (unit, 2): 1})
    assert fault.kind == "exchanged-rails"
    assert fault.text.startswith("all 4 nodes of ")
    assert "rail 1 and rail 2 swapped on " in fault.text
    assert fault.hosts == tuple(f"n{unit * 4 + host:02d}" for host in range(4))
    assert fault.compared == "3 of 4 units have them the other way round"


@pytest.mark.parametrize("leaves", [2, 4])
@pytest.mark.parametrize("only", [3, 4, 5])
def test_two_rails_exchanged_on_about_half_of_a_units_nodes(only: int, leaves: int) -> None:
    """Within the unit neither place is the usual one: the other units show which nodes are wrong."""
    (fault,) = by_lldp(4, leaves, {(1, 1): 2, (1, 2): 1}, hosts=8, only=only)
    assert fault.kind == "exchanged-rails"
    assert fault.text.startswith(f"{only} of 8 nodes of ")
    assert "rail 1 and rail 2 swapped on leaf-2-" in fault.text
    assert fault.hosts == tuple(f"n{8 + host:02d}" for host in range(only))
    assert fault.compared == "3 of 3 units have them the other way round"


def both_on_one_leaf(nodes: int, units: int = 4, hosts: int = 8) -> list[CablingFault]:
    """The first nodes of a unit have rail 1 on the leaf of rail 0, and nothing on its own."""
    return by_lldp(units, 4, {(1, 1): 0}, hosts=hosts, only=nodes)


@pytest.mark.parametrize("nodes", [3, 4, 6, 7])
def test_part_of_a_unit_has_both_rails_on_one_leaf(nodes: int) -> None:
    """However many of its nodes: other units show which are wrong, and the fix is for these."""
    (fault,) = both_on_one_leaf(nodes)
    assert fault.kind == "rail-elsewhere"
    assert fault.text == f"{nodes} of 8 nodes of leaf-2 have rail 1 on leaf-2-1, not on leaf-2-2"
    assert fault.hosts == tuple(f"n{8 + host:02d}" for host in range(nodes))
    assert fault.fix == "move these cables to leaf-2-2"
    assert set(fault.should.values()) == {"leaf-2-2"}
    assert re.fullmatch(
        r"(3 of [34]|4 of 4) units have rail 1 on a leaf like leaf-2-2, . of 8 nodes of leaf-2", fault.compared
    )


def test_two_nodes_with_both_rails_on_one_leaf_are_as_many_faults() -> None:
    assert [("rail-elsewhere", 1)] * 2 == [(fault.kind, len(fault.hosts)) for fault in both_on_one_leaf(2)]


@pytest.mark.parametrize(("nodes", "units"), [(4, 2), (4, 1), (8, 4)])
def test_where_no_other_unit_or_no_node_shows_the_leaf_of_a_rail_none_is_wrong(nodes: int, units: int) -> None:
    """Two units of which one is half wrong; one alone; a unit that never had that leaf."""
    faults = both_on_one_leaf(nodes, units) if units > 1 else by_lldp(1, 4, {(0, 1): 0}, hosts=8, only=nodes)
    assert faults == []


@pytest.mark.parametrize("leaves", [1, 2, 4])
@pytest.mark.parametrize("only", [6, 7])
def test_nearly_all_nodes_of_a_unit_have_two_rails_exchanged(only: int, leaves: int) -> None:
    """They are the wrong ones, not the few that are as in other units; and the text does not state that all are."""
    (fault,) = by_lldp(4, leaves, {(1, 1): 2, (1, 2): 1}, hosts=8, only=only)
    assert fault.kind == "exchanged-rails"
    assert fault.text.startswith(f"{only} of 8 nodes of ")
    assert fault.hosts == tuple(f"n{8 + host:02d}" for host in range(only))


@pytest.mark.parametrize(("only", "kinds"), [(1, 1), (2, 2), (3, 1), (4, 1)])
def test_two_rails_exchanged_on_the_ports_of_one_leaf(only: int, kinds: int) -> None:
    faults = by_lldp(4, 1, {(1, 1): 2, (1, 2): 1}, hosts=8, only=only)
    assert len(faults) == kinds
    if only < 3:
        assert {fault.kind for fault in faults} == {"swapped-cables"}
        assert faults[0].text == (
            "n08 rail 1 (eth1) is on leaf-2-1/swp3 and rail 2 (eth2) on leaf-2-1/swp2: each on the port of the other"
        )
        assert faults[0].should == {"n08 rail 1 (eth1)": "leaf-2-1/swp2", "n08 rail 2 (eth2)": "leaf-2-1/swp3"}
        assert faults[0].compared == f"{8 - only} of 8 nodes of leaf-2-1 have them in the other order of ports"
    else:
        assert faults[0].text == f"{only} of 8 nodes of leaf-2-1 have rail 1 and rail 2 swapped on leaf-2-1"
        assert faults[0].hosts == tuple(f"n{8 + host:02d}" for host in range(only))


@pytest.mark.parametrize("ring", [(1, 2, 3, 0), (1, 0, 3, 2)])
def test_a_node_with_more_than_two_rails_on_other_ports_of_a_leaf_keeps_its_own_order(ring: tuple[int, ...]) -> None:
    assert by_lldp(4, 1, {(1, rail): place for rail, place in enumerate(ring)}, hosts=8, only=1) == []


def test_a_rail_less_shifts_the_ports_of_the_others_and_swaps_none() -> None:
    rows = [
        NetdevRow(f"n{host}", f"eth{rail}", f"x{rail}", rail, 400.0, "leaf", None, f"swp{host * 4 + rail + 1}")
        for host in range(8)
        for rail in range(4)
        if (host, rail) != (3, 1)
    ]
    cluster = build([], ClusterTables(netdev=rows))
    assert "swapped-cables" not in {fault.kind for fault in find_cabling_faults(cluster, build_views(cluster))}


def test_rails_of_many_nodes_that_are_on_a_third_leaf_are_not_swapped() -> None:
    """Each is where another one belongs, in a ring: no two are each other's."""
    faults = by_lldp(4, 4, {(1, 1): 2, (1, 2): 3, (1, 3): 1}, hosts=8, only=4)
    assert "exchanged-rails" not in {fault.kind for fault in faults}


@pytest.mark.parametrize(
    ("units", "moved"),
    [
        (4, {}),
        (3, {(0, 1): 2, (0, 2): 1}),  # two of three are no majority
        (4, {(0, rail): 3 - rail for rail in range(4)}),  # an order of its own
        (4, {(unit, rail): 2 if rail == 1 else 1 for unit in (0, 1) for rail in (1, 2)}),  # half of the units each
    ],
)
def test_where_it_is_not_clear_which_rails_are_exchanged_none_are(
    units: int, moved: dict[tuple[int, int], int]
) -> None:
    for leaves in (1, 4):
        assert [] == [fault for fault in by_lldp(units, leaves, moved) if fault.kind == "exchanged-rails"]


def test_a_unit_without_a_leaf_has_no_exchanged_rails() -> None:
    plant = rails(units=5)
    for node in range(4):
        plant.cut(f"n{node + 1:03d} mlx5_1")
    assert "exchanged-rails" not in {fault.kind for fault in plant.breaks()}


@pytest.mark.parametrize(("nodes", "lines"), [(1, 1), (2, 2), (3, 1)])
def test_a_row_of_nodes_with_two_cables_exchanged(nodes: int, lines: int) -> None:
    plant = rails(units=2, nodes=12)
    for node in range(nodes):
        plant.swap(f"n{node + 1:03d} mlx5_0", f"n{node + 1:03d} mlx5_1")
    faults = plant.breaks()
    assert [fault.kind for fault in faults] == ["swapped-cables"] * lines
    assert {host for fault in faults for host in fault.hosts} == {f"n{node + 1:03d}" for node in range(nodes)}
    assert sum(len(fault.should) for fault in faults) == 2 * nodes


@pytest.mark.parametrize(("leaves", "lines"), [(2, 2), (3, 1)])
def test_leaves_without_a_cable_to_the_same_switch(leaves: int, lines: int) -> None:
    plant = rails(units=4, spines=8, each=1)
    for rail in range(leaves):
        plant.cut(f"su{rail + 1}-leaf{rail + 1}", 33 + 2)
    faults = plant.breaks()
    assert [fault.kind for fault in faults] == ["missing-uplink"] * lines
    assert sum(len(fault.should) for fault in faults) == leaves
    assert all("spine3" in fault.text for fault in faults)


def test_leaves_of_two_units_that_lack_many_cables_are_two_faults() -> None:
    plant = rails(units=6, spines=8, each=1)
    for unit in (1, 3):
        for leaf, lost in enumerate((3, 4, 5, 4)):
            for spine in range(lost):
                plant.cut(f"su{unit}-leaf{leaf + 1}", 33 + (spine + leaf) % 8)
    faults = plant.breaks()
    assert [fault.kind for fault in faults] == ["fewer-uplinks"] * 2
    assert [len(fault.hosts) for fault in faults] == [4, 4]
    assert "4 of 4 leaves of su1 have 3 to 5 of 8 cables up" in faults[0].text


@pytest.mark.parametrize("every", [2, 3])
def test_a_half_wired_unit_of_which_a_leaf_is_exchanged_with_another_units(every: int) -> None:
    """Both are reported, each by the leaves that are the unit's own by their names."""
    plant = rails(units=6, nodes=8, spines=4)
    for leaf in range(1, 5):
        for port in range(UP, UP + 8, every):
            plant.cut(f"su2-leaf{leaf}", port)
    for node in range(1, 9):
        plant.swap(f"n{8 + node:03d} mlx5_0", f"n{16 + node:03d} mlx5_0")

    exchanged, thin = plant.breaks()

    assert exchanged.text == "all nodes of su2 and su3 are on each other's leaf: mlx5_0 on su3-leaf1 and on su2-leaf1"
    left = 8 - len(range(0, 8, every))
    assert thin.text.startswith(f"each of the 4 leaves of su2 has {left} of 8 cables up")
    assert set(thin.ports) == {f"su2-leaf{leaf}" for leaf in range(1, 5)}
