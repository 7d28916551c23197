"""The words of a difference: values as a person would write them, and of tables only what differs."""

from __future__ import annotations

from typing import Any

import pytest

from agent.rules.peers.differs import format_difference, format_value


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (True, "", "on"),
        (False, "", "off"),
        ([False, False, False, True, True], "", "3,4"),
        ([False, False], "", "none"),
        ([], "", ""),
        ([1, True], "", "1,on"),
        (["0xffff", "0x8001"], "", "0xffff,0x8001"),
        ({"mode": "802.3ad", "slaves": ["a", "b"]}, "", "mode 802.3ad, slaves a,b"),
        ({str(n): n for n in range(9)}, "", ", ".join(f"{n} {n}" for n in range(8))),
        (700.0, "W", "700 W"),
        (1 << 36, "bytes", "64 GiB"),
        (3 << 19, "bytes", "1.5 MiB"),
        ((1 << 20) - 1, "bytes", "1048575 bytes"),
        (30, "%", "30%"),
        ("dscp", "", "dscp"),
    ],
)
def test_a_value_is_written_as_a_person_would(value: Any, unit: str, text: str) -> None:
    assert text == format_value(value, unit)


@pytest.mark.parametrize(
    ("one", "other", "texts"),
    [
        ({"26": 3, "48": 6}, {"26": 4, "48": 6}, ("26 3", "26 4")),
        ({"26": 3}, {"26": 3, "48": 6}, ("48 missing", "48 6")),
        ({str(n): 1 for n in range(9)}, {}, tuple(", ".join(f"{n} {w}" for n in range(8)) for w in ("1", "missing"))),
        ({"26": 3}, "none", ("26 3", "none")),
        ("none", {"26": 3}, ("none", "26 3")),
        (1500, 9000, ("1500 bytes", "9000 bytes")),
    ],
)
def test_of_tables_only_what_differs_is_written(one: Any, other: Any, texts: tuple[str, str]) -> None:
    assert texts == format_difference(one, other, "" if isinstance(one, dict | str) else "bytes")
