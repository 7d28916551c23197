"""sysfs attribute texts of three kernel generations, and texts that no kernel writes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.pci.sysfs import aer_counters, bars, decimal, identifier, link_speed


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


@given(st.text(max_size=80))
def test_any_text_has_an_answer(text: str) -> None:
    """No text raises, in any parser."""
    for parse in (link_speed, decimal, identifier, bars, aer_counters):
        parse(text)
