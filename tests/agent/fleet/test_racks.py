"""One notion of rack for all questions: chassis serials that trays share, then host names."""

from __future__ import annotations

import pytest

from agent.fleet.racks import MOST, find_racks


@pytest.mark.parametrize(
    ("names", "chassis", "racks"),
    [
        (["a", "b", "c", "d"], ["S1", "S1", "S2", "S2"], ["S1", "S1", "S2", "S2"]),
        (["a", "b", "c"], ["S1", "S2", "S3"], [None] * 3),  # a server alone in its chassis
        (["a", "b", "r1n1", "r1n2", "r2n1", "r2n2"], ["S", "S", None, "T", None, None],
         ["S", "S", "r1", "r1", "r2", "r2"]),
        (["r1n1", "r1n2", "r1n3"], [None] * 3, [None] * 3),  # one for all
        (["gpu1", "gpu2"], [None] * 2, [None] * 2),
    ],
)  # fmt: skip
def test_racks(names, chassis, racks):
    assert find_racks(names, chassis) == racks


@pytest.mark.parametrize(("nodes", "known"), [(MOST, True), (MOST + 1, False)])
def test_what_too_many_nodes_share_is_no_rack(nodes, known):
    names = [f"x{n}" for n in range(nodes)]
    assert find_racks(names, ["0"] * nodes) == [("0" if known else None)] * nodes
    by_name = [f"c1-{n}" for n in range(nodes)] + ["c2-1", "c2-2", "c3-1", "c3-2"]
    assert find_racks(by_name, [None] * len(by_name))[:nodes] == [("c1" if known else None)] * nodes


def test_a_pattern_comes_first():
    assert find_racks(["row1-a", "row2-b"], ["S", "S"], r"row[0-9]") == ["row1", "row2"]
