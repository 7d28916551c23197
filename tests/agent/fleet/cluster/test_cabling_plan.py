"""`fleet cables --plan`: a CSV that somebody wrote, with whatever is wrong in it."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.fleet.cluster.cabling_plan import BadPlan, by_plan, read_plan
from agent.fleet.cluster.expected_cables import Cables
from agent.fleet.cluster.fabric_view import views
from tests.agent.fleet.cluster.given import Plant, rails


def plan_of(plant: Plant) -> list[str]:
    """The plan that this plant follows."""
    return [
        f"{cable.a[0].replace(' ', ',')},{cable.b[0]},{cable.b[1]}"
        for cable in plant.cables
        if cable.a[0].startswith("n")
    ]


def judged(plant: Plant, lines: list[str]) -> Cables:
    """By these lines."""
    cluster = plant.cluster()
    return by_plan(cluster, views(cluster), read_plan(lines))


def test_all_as_planned() -> None:
    """With a line of names, comments and blank lines; names in any case of letters."""
    plant = rails()
    lines = ["node,rail,switch,port", "", "# rack 1", *(line.upper() for line in plan_of(plant))]

    found = judged(plant, lines)

    assert (32, 32, []) == (found.right, found.judged, found.wrong)


def test_a_small_fabric_has_no_majority_but_a_plan() -> None:
    """Two nodes: without the plan nobody could say."""
    plant = rails(units=1, nodes=2)
    lines = plan_of(plant)
    plant.swap("n001 mlx5_0", "n001 mlx5_1")

    found = judged(plant, lines)

    assert [("n001 mlx5_0", "swapped"), ("n001 mlx5_1", "swapped")] == [(each.end, each.state) for each in found.wrong]
    assert {"line 1 of the plan", "line 2 of the plan", "line 3 of the plan"} > {each.why for each in found.wrong}


def test_every_kind_of_difference() -> None:
    """Missing, elsewhere, a switch that is not there, a cable that the plan lacks, a cable between switches."""
    plant = rails()
    lines = [line for line in plan_of(plant) if line != "n002,mlx5_3,su1-leaf4,2"]
    lines += ["n001,mlx5_7,su1-leaf1,40", "n001,mlx5_8,nowhere,1", "su1-leaf1,33,spine1,01", "su1-leaf1,34,spine2,1"]
    lines.append("ghost,0,su1-leaf2,9")
    plant.cut("n003 mlx5_0")
    plant.cable("n003 mlx5_0", 1, "su1-leaf2", 20)

    found = {each.end: (each.state, each.should, each.found) for each in judged(plant, lines).wrong}

    assert {
        "n003 mlx5_0": ("elsewhere", "su1-leaf1/3", "su1-leaf2/20"),
        "n001 mlx5_7": ("missing", "su1-leaf1/40", None),
        "n001 mlx5_8": ("unknown", "nowhere/1", None),
        "n002 mlx5_3": ("unplanned", None, "su1-leaf4/2"),
        "su1-leaf1/34": ("elsewhere", "spine2/1", "spine1/2"),
        "ghost 0": ("missing", "su1-leaf2/9", None),
    } == found


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
    with pytest.raises(BadPlan) as told:
        list(read_plan(lines))

    assert str(told.value).startswith(said)


@given(st.lists(st.text(), max_size=30))
def test_any_text_is_a_plan_or_refused(lines: list[str]) -> None:
    """Never another error."""
    plant = rails(units=1, nodes=2)
    with contextlib.suppress(BadPlan):
        judged(plant, lines)


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

    found = judged(plant, [*lines, ",,su1-leaf1,Port 60,,n001 mlx5_9,Port 1,,Disabled,In-Scope"])

    assert (62, 64) == (found.right, found.judged)
    assert [("n001 mlx5_0", "su1-leaf1/1"), ("n001 mlx5_1", "su1-leaf2/1")] == [
        (each.end, each.should) for each in found.wrong
    ]
    assert "line 2 of the plan, cable length 5" == found.wrong[0].why


def test_an_ndt_line_without_an_end_is_refused() -> None:
    """As in a plan of four columns."""
    with pytest.raises(BadPlan, match="line 2: StartDevice, StartPort, EndDevice and EndPort are needed"):
        list(read_plan([NDT, ",,leaf,Port 1,,,,,,"]))


def test_a_plan_of_another_fabric_is_refused() -> None:
    """Thousands of false alarms help no one."""
    lines = [f"other{number},mlx5_0,leaf{number},1" for number in range(40)]

    with pytest.raises(BadPlan, match="only 0 of its 40 cables are between a node and a switch that are known here"):
        judged(rails(), lines)


def test_a_line_is_named_as_an_editor_counts() -> None:
    """Comments and blank lines count, and a quote in a comment opens nothing."""
    with pytest.raises(BadPlan, match="line 4: node, rail, switch and port are needed"):
        list(read_plan(['# the "new rack', "", "node,rail,switch,port", "n1,,leaf,1"]))
