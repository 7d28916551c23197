"""Equal parts are found, others are not taken for them."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.fleet.rows.recent import Lists, Members, Recent, following, serial_place

TEXT = st.text(alphabet='ab"\\: ', max_size=6)
MEMBER = st.fixed_dictionaries(
    {
        "id": st.sampled_from("abc"),
        "serial": st.one_of(st.none(), TEXT, st.sampled_from(["X1", "00-1a", "é", "x" * 300])),
    }
)
INDENT = st.sampled_from([None, 2])


def members(text: bytes) -> list[tuple[int, bytes]]:
    """Where each begins, and its text."""
    found, at = [], 0
    for raw in msgspec.json.decode(text, type=list[msgspec.Raw]):
        at = text.index(bytes(raw), at)
        found.append((at, bytes(raw)))
        at += len(bytes(raw))
    return found


def test_a_part_with_another_serial_number_is_found_and_one_with_more_is_not() -> None:
    seen = Members()
    first = b'{"serial": "X1", "y": 1}'
    seen.add(0, first, "made", serial_place(first, "X1"))

    assert seen.find(0, b"[" + first + b",", 1) == ("made", 1 + len(first), "X1")
    assert seen.find(0, b'{"serial": "other-2", "y": 1}', 0) == ("made", 29, "other-2")
    for other in (
        b'{"serial": "", "y": 1}',
        b'{"serial": "a", "z": "b", "y": 1}',
        b'{"serial": "a\\" , "y": 1}',
        b'{"serial": "a b", "y": 1}',
        b'{"serial": "\xc3\xa9", "y": 1}',
        b'{"serial": "a", "y": 2}',
        b'{"serial": "a',
        b'{"serial": "' + b"a" * 300 + b'", "y": 1}',
    ):
        assert seen.find(0, other, 0) is None, other
    assert seen.find(1, first, 0) is None


@pytest.mark.parametrize(
    ("member", "serial", "place"),
    [
        (b'{"serial":"X1"}', "X1", (11, 13)),
        (b'{"serial": "X1"}', "X1", (12, 14)),
        (b'{"serial":  "X1"}', "X1", (0, 0)),
        (b'{"serial":null}', None, (0, 0)),
        (b'{"name":"\\"serial\\":\\"X1","serial":"X2"}', "X2", (36, 38)),
        (b'{"far":{"serial":"X1"},"serial":"X2"}', "X2", (0, 0)),  # of something else, too
        (b'{"far":{"serial":"X1"},"serial":"X1"}', "X1", (0, 0)),
        (b'{"serial":"a b"}', "a b", (0, 0)),
    ],
)
def test_where_a_serial_number_stands(member: bytes, serial: str | None, place: tuple[int, int]) -> None:
    assert serial_place(member, serial) == place


@given(st.lists(st.tuples(st.integers(0, 2), TEXT), max_size=40), TEXT)
def test_whole_texts_are_found_by_their_bytes_alone(parts: list[tuple[int, str]], text: str) -> None:
    recent = Recent()
    for place, each in parts:
        recent.add(place, each.encode(), (place, each))
    for place in range(3):
        found = recent.find(place, text.encode())
        assert found is None or found == (place, text)
        of_place = [each for at, each in parts if at == place]
        if text in of_place[-12:]:
            assert found is not None


@given(st.lists(MEMBER, max_size=6), INDENT)
def test_members_are_gone_through_one_by_one(rows: list[dict[str, object]], indent: int | None) -> None:
    text = json.dumps(rows, indent=indent, separators=None if indent else (",", ":")).encode()
    at = following(text, 1)
    for start, member in members(text):
        assert at == start
        at = following(text, at + len(member))
    assert text[at:] == b"]" or not rows


@given(st.lists(MEMBER, max_size=5), st.lists(MEMBER, max_size=5), INDENT)
def test_a_list_that_is_found_says_what_its_text_says(
    seen: list[dict[str, str | None]], asked: list[dict[str, str | None]], indent: int | None
) -> None:
    lists = Lists()
    texts = [json.dumps(rows, indent=indent, ensure_ascii=False).encode() for rows in (seen, asked)]
    holes = []
    for place, (start, member) in enumerate(members(texts[0])):
        first, last = serial_place(member, seen[place]["serial"])
        if last:
            holes.append((place, start + first, start + last))
    lists.add("kind", texts[0], holes, seen)

    assert lists.find("another kind", texts[0]) is None
    assert lists.find("kind", texts[0]) == (
        seen,
        [place for place, _, _ in holes],
        [seen[p]["serial"] for p, _, _ in holes],
    )
    found = lists.find("kind", texts[1])
    if found is not None:
        made = [dict(row) for row in seen]
        for place, serial in zip(found[1], found[2], strict=True):
            made[place]["serial"] = serial
        assert made == asked
