"""Cabling: by its pattern, and against a plan."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.fleet.cluster.cabling_pattern import judge_by_pattern
from agent.fleet.cluster.cabling_plan import BadPlan, Cables, judge_by_plan, read_plan
from agent.fleet.cluster.fabric_view import build_views
from tests.agent.fleet.cluster.given import Plant, fat_tree, rails

# `fleet cables` without a plan: what the pattern of most cables says, and no more.


def judged(plant: Plant) -> Cables:
    """By pattern."""
    cluster = plant.cluster()
    return judge_by_pattern(cluster, build_views(cluster))


def test_all_is_where_it_should_be() -> None:
    """Every cable of hosts and between switches is counted."""
    result = judged(rails(nodes=6))

    assert (80, 80, 80, []) == (result.right, result.judged, result.of, result.wrong)
    assert ["su1: a node has the same port on all leaves (24 of 24 cables)"] == result.patterns[:1]


def test_two_ports_of_a_leaf_exchanged() -> None:
    """The right leaf, each at the other's port: harmless, but not as meant."""
    plant = rails(nodes=6)
    plant.swap("n002 mlx5_1", "n004 mlx5_1")

    result = judged(plant)

    assert [
        ("n002 mlx5_1", "swapped", "su1-leaf2/2", "su1-leaf2/4", "n004 mlx5_1"),
        ("n004 mlx5_1", "swapped", "su1-leaf2/4", "su1-leaf2/2", "n002 mlx5_1"),
    ] == [(item.end, item.state, item.should, item.found, item.there) for item in result.wrong]
    assert (78, 80) == (result.right, result.judged)
    assert [] == plant.breaks()


def test_a_missing_cable_of_a_host() -> None:
    """Its place is known by the node's other rails."""
    plant = rails(nodes=6)
    plant.cut("n003 mlx5_2")

    (result,) = judged(plant).wrong

    assert ("n003 mlx5_2", "missing", "su1-leaf3/3", None) == (result.end, result.state, result.should, result.found)


def test_a_node_that_lost_an_adapter_and_renumbered_the_rest() -> None:
    """One cable is missing; the others are where they were, by whatever names their host has for them now."""
    plant = rails(nodes=6)
    plant.cut("n003 mlx5_1")
    for rail in (2, 3):
        cable = plant.of(f"n003 mlx5_{rail}")
        plant.cables.remove(cable)
        plant.cable(f"n003 mlx5_{rail - 1}", 1, *cable.b)

    (result,) = judged(plant).wrong

    assert ("n003 mlx5_1", "missing", "su1-leaf2/3") == (result.end, result.state, result.should)


def test_a_cable_on_another_leaf_and_what_is_at_its_place() -> None:
    """Something else was plugged in there."""
    plant = rails(nodes=6)
    plant.cut("n003 mlx5_0")
    plant.cable("n003 mlx5_0", 1, "su1-leaf2", 20)
    plant.cable("login mlx5_0", 1, "su1-leaf1", 3)

    (result,) = judged(plant).wrong

    assert ("elsewhere", "su1-leaf1/3", "su1-leaf2/20", "login mlx5_0") == (
        result.state, result.should, result.found, result.there,
    )  # fmt: skip


def disordered() -> Plant:
    """Each leaf has its nodes in an order of its own."""
    plant = rails(units=1, nodes=6)
    for rail in range(4):
        for node in range(6):
            cable = plant.of(f"n{node + 1:03d} mlx5_{rail}")
            cable.b = (cable.b[0], (node * (rail + 1) + rail) % 7 + 8 * (rail % 3) + 1)

    return plant


def test_leaves_are_judged_where_ports_follow_no_pattern() -> None:
    """The leaf of a rail, not its port; and cables between switches."""
    result = judged(disordered())

    assert [] == result.wrong
    assert (40, 40) == (result.right, result.judged)
    assert ["su1: the leaf of each rail, its ports follow no pattern"] == [
        pattern for pattern in result.patterns if pattern.startswith("su1")
    ]


def test_a_rail_on_another_leaf_where_ports_follow_no_pattern() -> None:
    """As with two ToRs per rack and RoCE."""
    plant = disordered()
    plant.swap("n002 mlx5_1", "n002 mlx5_3")

    result = judged(plant)

    assert [("n002 mlx5_1", "elsewhere", "su1-leaf2"), ("n002 mlx5_3", "elsewhere", "su1-leaf4")] == [
        (item.end, item.state, item.should) for item in result.wrong
    ]
    assert (38, 40) == (result.right, result.judged)
    assert "5 of 6 nodes of su1 have mlx5_1 on su1-leaf2" == result.wrong[0].why


def test_a_pattern_that_too_few_cables_follow_is_none() -> None:
    """Three of a node's four cables on one port, the fourth always on another."""
    plant = rails(units=1, nodes=6)
    for node in range(1, 7):
        cable = plant.of(f"n{node:03d} mlx5_{node % 4}")
        cable.b = (cable.b[0], 20 + node)

    assert [] == judged(plant).wrong


def test_cables_between_switches() -> None:
    """One is out, one leads to another spine."""
    plant = fat_tree(leaves=6, spines=4)
    plant.cut("leaf03", 36)
    plant.swap("leaf02", "leaf05", 33, 38)

    result = judged(plant).wrong

    assert [("leaf03/36", "missing", "spine02/6", None)] == [
        (item.end, item.state, item.should, item.found) for item in result if item.state == "missing"
    ]
    assert {("leaf02/33", "spine01"), ("leaf05/38", "spine03")} == {
        (item.end, item.should) for item in result if item.state == "swapped"
    }


def test_one_rail_a_node_has_no_pattern_of_ports() -> None:
    """Nothing says on which port a node with one cable should be."""
    plant = fat_tree()
    plant.swap("n001 mlx5_0", "n002 mlx5_0")

    assert [] == judged(plant).wrong


# `fleet cables --plan`: a CSV that somebody wrote, with whatever is wrong in it.


def plan_of(plant: Plant) -> list[str]:
    """The plan that this plant follows."""
    return [
        f"{cable.a[0].replace(' ', ',')},{cable.b[0]},{cable.b[1]}"
        for cable in plant.cables
        if cable.a[0].startswith("n")
    ]


def judge_plan(plant: Plant, lines: list[str]) -> Cables:
    """By these lines."""
    cluster = plant.cluster()
    return judge_by_plan(cluster, build_views(cluster), read_plan(lines))


def test_all_as_planned() -> None:
    """With a line of names, comments and blank lines; names in any case of letters."""
    plant = rails()
    lines = ["node,rail,switch,port", "", "# rack 1", *(line.upper() for line in plan_of(plant))]

    result = judge_plan(plant, lines)

    assert (32, 32, []) == (result.right, result.judged, result.wrong)


def test_a_small_fabric_has_no_majority_but_a_plan() -> None:
    """Two nodes: without the plan nobody could say."""
    plant = rails(units=1, nodes=2)
    lines = plan_of(plant)
    plant.swap("n001 mlx5_0", "n001 mlx5_1")

    result = judge_plan(plant, lines)

    assert [("n001 mlx5_0", "swapped"), ("n001 mlx5_1", "swapped")] == [(item.end, item.state) for item in result.wrong]
    assert {"line 1 of the plan", "line 2 of the plan", "line 3 of the plan"} > {item.why for item in result.wrong}


def test_every_kind_of_difference() -> None:
    """Missing, elsewhere, a switch that is not there, a cable that the plan lacks, a cable between switches."""
    plant = rails()
    lines = [line for line in plan_of(plant) if line != "n002,mlx5_3,su1-leaf4,2"]
    lines += ["n001,mlx5_7,su1-leaf1,40", "n001,mlx5_8,nowhere,1", "su1-leaf1,33,spine1,01", "su1-leaf1,34,spine2,1"]
    lines.append("ghost,0,su1-leaf2,9")
    plant.cut("n003 mlx5_0")
    plant.cable("n003 mlx5_0", 1, "su1-leaf2", 20)

    result = {item.end: (item.state, item.should, item.found) for item in judge_plan(plant, lines).wrong}

    assert {
        "n003 mlx5_0": ("elsewhere", "su1-leaf1/3", "su1-leaf2/20"),
        "n001 mlx5_7": ("missing", "su1-leaf1/40", None),
        "n001 mlx5_8": ("unknown", "nowhere/1", None),
        "n002 mlx5_3": ("unplanned", None, "su1-leaf4/2"),
        "su1-leaf1/34": ("elsewhere", "spine2/1", "spine1/2"),
        "ghost 0": ("missing", "su1-leaf2/9", None),
    } == result


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["n1,0,leaf"], "line 1: node, rail, switch and port are needed: 'n1,0,leaf'"),
        (["node,rail,switch,port", "n1,,leaf,1"], "line 2: node, rail, switch and port are needed"),
        (["a,b,c,d", 'x,"y' + "z" * 200_000], "line 2: field larger than field limit"),
    ],
)
def test_a_plan_that_cannot_be_read(lines: list[str], said: str) -> None:
    """The line that is wrong is named."""
    with pytest.raises(BadPlan) as result:
        list(read_plan(lines))

    assert str(result.value).startswith(said)


@given(st.lists(st.text(), max_size=30))
def test_any_text_is_a_plan_or_refused(lines: list[str]) -> None:
    """Never another error."""
    plant = rails(units=1, nodes=2)
    with contextlib.suppress(BadPlan):
        judge_plan(plant, lines)


NDT = "rack #,U height,#Fields:StartDevice,StartPort,StartDeviceLocation,EndDevice,EndPort,Cable Length,State,Domain"


def ndt_of(plant: Plant) -> list[str]:
    """The same plan as UFM writes it: a switch first, or a node first."""
    rows = [
        f",,{cable.a[0]},Port 1,,MF0;{cable.b[0]}:MQM9700/U1,Port {cable.b[1]},5,Active,In-Scope"
        if number % 2
        else f",,MF0;{cable.b[0]}:MQM9700/U1,Port {(cable.b[1] + 1) // 2}/{2 - cable.b[1] % 2},,{cable.a[0]},Port 1,5,,"
        for number, cable in enumerate(plant.cables)
        if cable.a[0].startswith("n")
    ]
    trunks = [
        f",,{cable.a[0]},Port {cable.a[1]},,{cable.b[0]},Port {cable.b[1]},20,Active,In-Scope"
        for cable in plant.cables
        if not cable.a[0].startswith("n")
    ]
    return [NDT, *rows, *trunks]


def test_an_ndt_file_of_ufm() -> None:
    """Nodes at either end, names of switches with their model, ports by cage, cables between switches."""
    plant = rails()
    lines = ndt_of(plant)
    plant.swap("n001 mlx5_0", "n001 mlx5_1")

    result = judge_plan(plant, [*lines, ",,su1-leaf1,Port 60,,n001 mlx5_9,Port 1,,Disabled,In-Scope"])

    assert (62, 64) == (result.right, result.judged)
    assert [("n001 mlx5_0", "su1-leaf1/1"), ("n001 mlx5_1", "su1-leaf2/1")] == [
        (item.end, item.should) for item in result.wrong
    ]
    assert "line 2 of the plan, cable length 5" == result.wrong[0].why


def test_an_ndt_line_without_an_end_is_refused() -> None:
    """As in a plan of four columns."""
    with pytest.raises(BadPlan, match="line 2: StartDevice, StartPort, EndDevice and EndPort are needed"):
        list(read_plan([NDT, ",,leaf,Port 1,,,,,,"]))


def test_a_plan_of_another_fabric_is_refused() -> None:
    """Thousands of false alarms help no one."""
    lines = [f"other{number},mlx5_0,leaf{number},1" for number in range(40)]

    with pytest.raises(BadPlan, match="only 0 of its 40 cables are between a node and a switch that are known here"):
        judge_plan(rails(), lines)


def test_a_line_is_named_as_an_editor_counts() -> None:
    """Comments and blank lines count, and a quote in a comment opens nothing."""
    with pytest.raises(BadPlan, match="line 4: node, rail, switch and port are needed"):
        list(read_plan(['# the "new rack', "", "node,rail,switch,port", "n1,,leaf,1"]))
