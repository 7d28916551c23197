"""Addresses and places: from paths, and from the bus numbers of bridges."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.pci.tree import UNPLACED, address_key, neighbour, place_in_path, places_from_buses
from probes.text import ParseError

HEX = "0123456789abcdef"
ADDRESSES = st.builds(
    "{:04x}:{:02x}:{:02x}.{}".format, st.integers(0, 0x10002), st.integers(0, 9), st.integers(0, 3), st.integers(0, 7)
)


def test_addresses_sort_as_numbers() -> None:
    """Domain 10000 is after ffff, bus 0a after 09."""
    addresses = ["10000:e1:00.0", "ffff:00:00.0", "0000:0a:00.0", "0000:09:00.1"]

    assert addresses[::-1] == sorted(addresses, key=address_key)


@pytest.mark.parametrize("text", ["", "19:00.0", "0000:19:00.8", "0000:19:00.0 ", "0000:1G:00.0"])
def test_what_is_no_address(text: str) -> None:
    """Everything but the kernel's spelling is refused."""
    with pytest.raises(ParseError):
        address_key(text)


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("../../../devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0", ("0000:16:00.0", "0000:15")),
        ("/sys/devices/pci0000:00/0000:00:00.0", (None, "0000:00")),
        ("../../../devices/pci10000:00/10000:00:04.0/", (None, "10000:00")),  # a tree made by hand
        ("/sys/devices/pci0000:80/0000:80:05.5/pci10000:e0/10000:e0:06.0/10000:e1:00.0", ("10000:e0:06.0", "10000:e0")),
        ("/sys/devices/LNXSYSTM:00/ACPI0004:00/VMBUS:00/4705-0001/pci0001:00/0001:00:00.0", (None, "0001:00")),
        ("/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:02.0/0000:18:00.0", ("0000:16:00.0", "0000:15")),
        ("/sys/bus/pci/devices/0000:19:00.0", UNPLACED),
        ("", UNPLACED),
    ],
)
def test_the_path_of_a_device_tells_its_place(path: str, place: tuple[str | None, str | None]) -> None:
    """The nearest bridge above that is listed, and the root bus: the last of the path, for a domain behind VMD."""
    listed = {"0000:15:01.0", "0000:16:00.0", "0000:17:01.0", "0000:80:05.5", "10000:e0:06.0"}

    assert place == place_in_path(path, listed)


def test_places_without_paths_come_from_bridges() -> None:
    """GPU and NIC below one switch below a root port."""
    bridges = {"0000:15:01.0": 0x16, "0000:16:00.0": 0x17, "0000:17:01.0": 0x19, "0000:17:02.0": 0x1A}
    devices = ["0000:19:00.0", "0000:1a:00.0"]

    placed = places_from_buses([*bridges, *devices], bridges, ["0000:15:01.0"])

    assert ("0000:17:01.0", "0000:15") == placed["0000:19:00.0"]
    assert ("0000:17:02.0", "0000:15") == placed["0000:1a:00.0"]
    assert ("0000:16:00.0", "0000:15") == placed["0000:17:01.0"]
    assert (None, "0000:15") == placed["0000:15:01.0"]


def test_an_excerpt_does_not_make_root_buses() -> None:
    """A bus without a bridge above is a root bus only where something says so; bus 0 always is."""
    placed = places_from_buses(["0000:19:00.0", "0001:00:00.0", "0000:5d:00.0"], {}, ["0000:5d:00.0"])

    assert {"0000:19:00.0": UNPLACED, "0001:00:00.0": (None, "0001:00"), "0000:5d:00.0": (None, "0000:5d")} == placed


def test_two_bridges_that_claim_one_bus_tell_nothing() -> None:
    """Neither is taken: a wrong parent is worse than none."""
    bridges = {"0000:00:01.0": 1, "0000:00:02.0": 1}

    assert UNPLACED == places_from_buses(["0000:01:00.0"], bridges, [])["0000:01:00.0"]


@given(st.dictionaries(ADDRESSES, st.integers(0, 255), max_size=20), st.lists(ADDRESSES, max_size=10))
def test_no_bus_numbers_make_a_loop(secondary: dict[str, int], at_root: list[str]) -> None:
    """Walking up from any function ends, whatever the bridges claim."""
    placed = places_from_buses(secondary, secondary, at_root)

    for address in secondary:
        steps, above = 0, placed[address][0]
        while above is not None:
            steps, above = steps + 1, placed[above][0]
            assert steps <= len(secondary)


@given(st.text(alphabet=HEX + ":./pci", max_size=60))
def test_any_path_has_an_answer(path: str) -> None:
    """No path raises."""
    assert 2 == len(place_in_path(path, ()))


def test_routing_ids_carry_into_the_next_bus() -> None:
    """Virtual functions may lie past their own bus, never past the domain."""
    assert ("0000:3b:00.2", "0000:3c:00.0", None) == (
        neighbour("0000:3b:00.0", 2),
        neighbour("0000:3b:00.0", 256),
        neighbour("0000:ff:1f.7", 1),
    )
