"""Rows are ordered by identity, numbers as numbers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent.assemble.facts import card_address, sort_key


def test_addresses_come_first_by_domain_as_a_number() -> None:
    """A five-digit domain is greater than every four-digit one, whatever its letters."""
    names = ["mlx5_2", "10000:00:02.0", "0009:01:00.0", "ffff:00:00.0", "0009:01:00.1", "mlx5_10"]

    assert ["0009:01:00.0", "0009:01:00.1", "ffff:00:00.0", "10000:00:02.0", "mlx5_2", "mlx5_10"] == sorted(
        names, key=sort_key
    )


@given(st.lists(st.text(max_size=12), unique=True), st.randoms())
def test_any_names_have_one_order(names: list[str], random: object) -> None:
    """The order does not depend on the order in which names come, and no name is too odd to be ordered."""
    shuffled = sorted(names)

    assert sorted(shuffled, key=lambda n: (sort_key(n), n)) == sorted(names, key=lambda n: (sort_key(n), n))


def test_functions_of_one_card_share_their_slot() -> None:
    """The card is the address without its function."""
    assert card_address("0000:1b:00.0") == card_address("0000:1b:00.1")


def test_a_number_of_any_length_is_ordered() -> None:
    long = "9" * 65_530
    assert sorted([f"eth{long}", "eth10", "eth9", "eth\u0663" + "\u0663" * 5000], key=sort_key)[:2] == ["eth9", "eth10"]
