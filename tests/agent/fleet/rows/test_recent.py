"""Equal parts are found, others are not taken for them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent.fleet.rows.recent import Recent

TEXT = st.text(alphabet='ab"\\: ', max_size=6)


def test_a_part_with_another_serial_number_is_found_and_one_with_more_is_not() -> None:
    recent = Recent()
    recent.add(0, b'{"serial": "X1", "y": 1}', "made", (12, 14))

    assert recent.find(0, b'{"serial": "X1", "y": 1}') == ("made", "X1")
    assert recent.find(0, b'{"serial": "other", "y": 1}') == ("made", "other")
    assert recent.find(0, b'{"serial": "", "y": 1}') is None
    assert recent.find(0, b'{"serial": "a", "z": "b", "y": 1}') is None
    assert recent.find(0, b'{"serial": "a\\" , "y": 1}') is None
    assert recent.find(0, b'{"serial": "", "y": 2}') is None
    assert recent.find(1, b'{"serial": "X1", "y": 1}') is None


@given(st.lists(st.tuples(st.integers(0, 2), TEXT), max_size=40), TEXT)
def test_whole_parts_are_found_by_their_bytes_alone(parts: list[tuple[int, str]], text: str) -> None:
    recent = Recent()
    for place, each in parts:
        recent.add(place, each.encode(), (place, each))
    for place in range(3):
        found = recent.find(place, text.encode())
        assert found is None or found == ((place, text), None)
        of_place = [each for at, each in parts if at == place]
        if text in of_place[-12:]:
            assert found is not None
