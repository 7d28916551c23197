"""Changing places: whoever comes to a place finds it empty, and ends where it belongs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent.netbox.changes import order_moves


@given(st.permutations(range(6)), st.sets(st.integers(0, 5)), st.sets(st.integers(6, 9)))
def test_any_reordering_can_be_done_step_by_step(order: list[int], moving: set[int], empty: set[int]) -> None:
    """Some move among six places and some empty ones; the others stay."""
    places = {who: f"p{who}" for who in range(6)}
    targets = {who: f"p{order[who]}" for who in moving}
    targets |= {who: f"p{place}" for who, place in zip(sorted(moving), sorted(empty), strict=False)}
    if len(set(targets.values())) < len(targets):
        return

    moves = order_moves(places, targets, "aside")

    where = dict(places)
    for who, to in moves.steps:
        assert to not in where.values()
        where[who] = to
    assert "aside" not in where.values()
    stay = {places[who] for who in range(6) if who not in targets}
    for who, to in targets.items():
        if who in moves.stuck:
            assert where[who] == places[who]
        else:
            assert where[who] == to
    if not stay & set(targets.values()):
        assert [] == moves.stuck


def test_nobody_moves_without_need() -> None:
    """Who is where it belongs takes no step."""
    assert ([], []) == order_moves({1: "a", 2: "b"}, {1: "a"}, "x")
    assert ([(1, "c")], []) == order_moves({1: "a", 2: "b"}, {1: "c", 2: "b"}, "x")
