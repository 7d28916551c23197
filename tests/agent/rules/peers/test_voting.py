"""Which parts are the odd ones out, and which orders are a choice."""

from __future__ import annotations

import pytest

from agent.rules.peers.parts import PeerPart
from agent.rules.peers.voting import Vote, is_irregular, vote


def parts(count: int, positions: str = "", products: str = "", sockets: str = "") -> list[PeerPart]:
    """Parts in the order of the bus, with an attribute each."""
    return [
        PeerPart(
            "netdev", f"netdev:{n}", f"eth{n}", None, frozenset(), str(n), "rail",
            products[n] if products else "A", (positions[n],) if positions else (),
            int(sockets[n]) if sockets else None, f"{n:02}",
        )
        for n in range(count)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("values", "odd", "pattern", "halves"),
    [
        ("aaabaaaa", (3,), "", False),
        ("aabaabba", (2, 5, 6), "", False),  # 3:5
        ("aabbccd", (6,), "", False),  # 2:2:2:1
        ("aab", (2,), "", False),
        ("ab", (1,), "", True),
        ("aaaabbbb", (4, 5, 6, 7), "order on the bus", True),
        ("abababab", (1, 3, 5, 7), "order on the bus", True),
        ("abba", (1, 2), "", True),
        ("aaabaaab", (3, 7), "order on the bus", False),  # each fourth one
        ("abaa", (1,), "", False),
        ("aabb", (2, 3), "order on the bus", True),
        ("abaabaab", (1, 4, 7), "", False),  # nothing repeats to the end
        ("aaaabbcc", (4, 5, 6, 7), "order on the bus", True),
        ("aabbccdd", (2, 3, 4, 5, 6, 7), "order on the bus", True),  # two rails at each switch
        ("aabbcddc", (2, 3, 4, 5, 6, 7), "", True),
    ],
)
def test_a_minority_is_odd_and_halves_are_halves(values: str, odd: tuple[int, ...], pattern: str, halves: bool) -> None:
    """One in eight, three in eight, one of seven in pairs; what repeats or lies together is a choice."""
    verdict = vote(values, parts(len(values)))

    assert verdict is not None
    assert (odd, pattern, halves) == (verdict.odd, verdict.pattern, verdict.halves)
    assert set(range(len(values))) - set(odd) == set(verdict.usual) or halves or "c" in values


@pytest.mark.parametrize("values", ["abc", "abcdefgh", "aabcdefg"])
def test_each_its_own_is_no_difference(values: str) -> None:
    """An address, a VLAN of each rail: no value is the usual one."""
    assert None is vote(values, parts(len(values)))


@pytest.mark.parametrize(
    ("values", "attributes", "pattern"),
    [
        ("aaaabb", {"positions": "111122"}, "position on the card"),
        ("abaabb", {"products": "ABAABB"}, "board"),
        ("aabaaab", {"sockets": "0010001"}, "socket"),
        ("aaabaaa", {"positions": "1112111"}, ""),  # a position of its own is no order
        ("aabaaab", {"sockets": "0011001"}, ""),
        ("aabaaab", {"sockets": "0000000"}, ""),
    ],
)
def test_values_that_follow_an_attribute_are_a_choice(values: str, attributes: dict[str, str], pattern: str) -> None:
    """Each of at least two parts."""
    verdict = vote(values, parts(len(values), **attributes))

    assert verdict is not None
    assert pattern == verdict.pattern


def test_of_halves_the_first_value_is_the_usual_one() -> None:
    """It is what the others are compared with."""
    verdict = vote("abba", parts(4))

    assert verdict is not None
    assert ((0, 3), (1, 2)) == (verdict.usual, verdict.odd)


def test_halves_are_irregular_in_groups_where_an_order_could_be_seen() -> None:
    assert is_irregular(Vote((1, 2), (0, 3), "", True))
    assert not is_irregular(Vote((1,), (0,), "", True))
    assert not is_irregular(Vote((1, 2), (0, 3), "board", True))
    assert not is_irregular(Vote((1,), (0, 2, 3), "", False))
    assert not is_irregular(Vote((1, 2), (0, 3, 4), "", False))
