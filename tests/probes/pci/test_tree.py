"""The tree of PCI functions and their attributes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.pci.sysfs import aer_counters, bars, link_speed
from probes.pci.tree import UNPLACED, address_key, neighbour, place_in_path, places_from_buses
from probes.text import ParseError

# Addresses and places: from paths, and from the bus numbers of bridges.


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


def test_routing_ids_carry_into_the_next_bus() -> None:
    """Virtual functions may lie past their own bus, never past the domain."""
    assert ("0000:3b:00.2", "0000:3c:00.0", None) == (
        neighbour("0000:3b:00.0", 2),
        neighbour("0000:3b:00.0", 256),
        neighbour("0000:ff:1f.7", 1),
    )


# sysfs attribute texts of three kernel generations, and texts that no kernel writes.


@pytest.mark.parametrize(
    ("text", "speed"),
    [
        ("2.5 GT/s", 2.5),
        ("5 GT/s\n", 5.0),
        ("16 GT/s", 16.0),
        ("8.0 GT/s PCIe\n", 8.0),
        ("64.0 GT/s PCIe", 64.0),
        ("Unknown speed", None),
        ("Unknown", None),
        ("", None),
        ("16", None),
        ("sixteen GT/s", None),
    ],
)
def test_link_speeds(text: str, speed: float | None) -> None:
    """Every form that a kernel prints; what is no speed is unknown."""
    assert speed == link_speed(text)


def test_bars_are_the_first_six_lines() -> None:
    """The ROM, the BARs of virtual functions and bridge windows are not BARs of the function."""
    gone = "0x0000000000000000 0x0000000000000000 0x0000000000000000"
    lines = ["0x0000000096000000 0x0000000096ffffff 0x0000000000040200", gone]
    lines += ["0x0000210000000000 0x0000211fffffffff 0x000000000014220c", gone, gone, gone]
    lines += ["0x0000000097000000 0x00000000970fffff 0x0000000000046200"]

    assert {"0": 16 << 20, "2": 128 << 30} == bars("\n".join(lines))


def test_no_bars_is_not_unread() -> None:
    """A table of zeros is a function without BARs; no table is unknown."""
    assert ({}, None, None) == (bars("0x0 0x0 0x0\n0x0 0x0 0x0"), bars(""), bars("no table"))


def test_aer_counters_by_name() -> None:
    """Names of real kernels, and with spaces as the kernel page spells them; a line without a number is left out."""
    assert {"BadTLP": 12, "Receiver Error": 2} == aer_counters("BadTLP 12\nReceiver Error 2\nnonsense\n\n")
    assert aer_counters("") is None
