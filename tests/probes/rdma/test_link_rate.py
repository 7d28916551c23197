"""Link rates as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.rdma.normalize import SPEEDS, parse_rate, rate_text
from probes.text import ParseError


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("800 Gb/sec (4X XDR)\n", (800.0, "4X", "XDR")),
        ("400 Gb/sec (4X NDR)", (400.0, "4X", "NDR")),
        ("200 Gb/sec (2X NDR)", (200.0, "2X", "NDR")),
        ("100 Gb/sec (2X HDR)", (100.0, "2X", "HDR")),
        ("100 Gb/sec (4X EDR)", (100.0, "4X", "EDR")),
        ("40 Gb/sec (4X FDR10)", (40.0, "4X", "FDR10")),
        ("2.5 Gb/sec (1X SDR)", (2.5, "1X", "SDR")),
        ("10 Gb/sec (4X)", (10.0, "4X", None)),
        ("56", (56.0, None, None)),
    ],
)
def test_printed_rates(text: str, rate: tuple[float, str | None, str | None]) -> None:
    """sysfs of new and old kernels, and the bare number of ibstat."""
    assert rate == parse_rate(text)


@pytest.mark.parametrize("text", ["", "-1", "unknown", "400 Gb/sec (4X ND", "400 Gb", "1e3", "٤٠٠"])
def test_anything_else_is_no_rate(text: str) -> None:
    """A cut or foreign text gives no number."""
    with pytest.raises(ParseError, match="rate"):
        parse_rate(text)


@given(st.sampled_from((1, 2, 4, 8, 12)), st.sampled_from(sorted(SPEEDS)))
def test_what_is_put_together_can_be_taken_apart(lanes: int, code: int) -> None:
    """The text made from width and speed code is one that sysfs could print."""
    name, lane = SPEEDS[code]

    assert (lanes * lane, f"{lanes}X", name) == parse_rate(rate_text(lanes, code) or "")


@given(st.text())
def test_any_text_is_survived(text: str) -> None:
    """Whatever it is: a rate that is not negative, or ParseError."""
    try:
        rate = parse_rate(text)
    except ParseError:
        return

    assert rate.gbit_s >= 0
