"""Layouts: the forms that outputs of tools have, and what of a damaged one is still said."""

from __future__ import annotations

import doctest
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.layout import DEEPEST, Field, Layout, read_layout, read_switch, read_tree
from tests.conftest import ROOT

PORT = Layout(
    {"number": Field("number", int), "Rate": Field("rate", lambda text: int(text) if text.isdigit() else None)},
    re.compile(r"Port (?P<number>[0-9]{1,3}):"),
    row=re.compile(r"GID\[[0-9]+\] +(\S+)"),
)
DEVICE = Layout(
    {"name": Field("name"), "FEC": Field("fec", read_switch)}, re.compile(r"CA '(?P<name>\w+)'"), inner=PORT
)
OUTPUT = Layout(inner=DEVICE)
TEXT = "CA 'a'\n\tFEC: on\n\tPort 1:\n\t\tRate: 56\n\t\tGID[0] fe80::1\nCA 'b'\n\tPort 1:\n\t\tRate: x\n"


def flat(layout: Layout, text: str) -> list[object]:
    """Values of all sections, in order."""
    return [
        [device.values(), *([port.values(), [row[1] for row in port.rows]] for port in device.sections.values())]
        for device in read_layout(layout, text).sections.values()
    ]


@pytest.mark.parametrize("margin", ["\t", "", "      ", "\t \t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_sections_are_known_by_their_headings(margin: str, end: str) -> None:
    """Whatever the margin became in a mail; a value of another type is left out."""
    text = TEXT.replace("\t", margin).replace("\n", end)

    assert [
        [{"name": "a", "fec": True}, [{"number": 1, "rate": 56}, ["fe80::1"]]],
        [{"name": "b"}, [{"number": 1}, []]],
    ] == flat(OUTPUT, text)


def test_a_section_that_comes_again() -> None:
    """The later one counts, or it goes on: what each output is run for decides."""
    text = "CA 'a'\nFEC: on\nCA 'b'\nCA 'a'\nFEC: off\n"

    assert [[{"name": "a", "fec": False}], [{"name": "b"}]] == flat(OUTPUT, text)
    assert [[{"name": "a", "fec": True}], [{"name": "b"}]] == flat(OUTPUT._replace(resumed=True), text)


def test_a_last_line_that_may_be_cut_is_left_out() -> None:
    """Half a number is a number, too."""
    layout = OUTPUT._replace(whole=re.compile(r"FEC: (?:on|off)"))

    assert [[{"name": "a"}, [{"number": 1}, []]]] == flat(layout, "CA 'a'\nPort 1:\nRate: 4")
    assert [[{"name": "a", "fec": True}]] == flat(layout, "CA 'a'\nFEC: on")
    assert [[{"name": "a"}, [{"number": 1, "rate": 4}, []]]] == flat(OUTPUT, "CA 'a'\nPort 1:\nRate: 4")


def test_a_value_goes_on_in_lines_without_a_label() -> None:
    """Where the layout says so; one that a second output repeats is not mixed into the first."""
    layout = Layout({"Modes": Field("modes", str.split)}, wrapped=True)

    assert {"modes": ["1", "2", "3"]} == read_layout(layout, "Modes: 1\n\t2\n\t3\nX: 0\n9\nModes: 7\n8\n").values()


def test_a_tree_has_a_limit() -> None:
    """A staircase of a thousand steps is cut, and what stands at its foot again is read."""
    text = "".join(f"{' ' * depth}a:\n" for depth in range(1000)) + "b: 1\n"
    top = read_tree(text)

    depth, nodes = 0, top
    while nodes:
        depth, nodes = depth + 1, nodes[0].nodes
    assert (DEEPEST, "1") == (depth, top[1].text)


def test_the_example_of_the_documentation_is_true() -> None:
    """docs/adding-a-probe.md, as a session."""
    path = ROOT / "docs/adding-a-probe.md"
    result = doctest.testfile(str(path), module_relative=False)

    assert (0, True) == (result.failed, result.attempted > 3)


@given(st.text(alphabet="CAPortRateGIDFEC '[]:\n\t0123456789ab", max_size=300))
def test_any_text_is_read(text: str) -> None:
    """Every value is of its type."""
    for device in read_layout(OUTPUT, text).sections.values():
        assert all(isinstance(port.values()["number"], int) for port in device.sections.values())
