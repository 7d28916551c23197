"""Lines of styled text, their colours on a terminal, and pages and lists of rules, which lose nothing."""

from __future__ import annotations

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.outputs.terminal import print_styled
from agent.outputs.text.lines import clean, line_length, make_line, to_plain_text, wrap_paragraph
from agent.outputs.text.rule_page import fold_page, list_rules
from agent.rules.catalogue import every_rule


def test_a_paragraph_hangs_below_its_first_word() -> None:
    """The indent of the following lines is the width of what stands before the first."""
    folded = wrap_paragraph("one two three four five six seven eight nine ten", 40, indent="      ", first="  a - ")

    assert to_plain_text(folded) == "  a - one two three four five six seven\n      eight nine ten\n"


@given(st.text(max_size=300), st.integers(40, 200))
def test_no_control_character_gets_through(text: str, width: int) -> None:
    """Whatever a host name or a firmware says, the page stays printable and folds."""
    lines = wrap_paragraph(text, width)

    assert all(line == clean(line) for line in to_plain_text(lines).splitlines())
    assert all(line_length(line) <= width or " " not in to_plain_text([line]).strip() for line in lines)


def test_a_line_takes_bare_strings_and_styles() -> None:
    """A string without a style is plain."""
    assert make_line("a", ("b", "bold")) == (("a", ""), ("b", "bold"))


HOSTILE = [(("GPU0 \x1b]0;owned\x07", ""), ("\x9b31m\r\n\x00\u202ebad", "bold"))]


@pytest.mark.parametrize("drawn", ["pipe", "terminal"])
def test_a_device_name_cannot_command_the_terminal(drawn: str) -> None:
    """Interface names may hold any byte but a slash, and saved outputs and reports hold what they like."""
    stream = io.StringIO()
    print_styled(HOSTILE, stream)
    text = to_plain_text(HOSTILE) if drawn == "pipe" else stream.getvalue()

    assert "owned" in text
    assert not any(sign in text for sign in ("\x1b]", "\x07", "\x9b", "\r", "\x00", "\u202e"))
    assert 1 == text.count("\n")


# Pages and lists of rules fit a terminal, and lose nothing.


LONG_WORD = 40  # a path or command has no place to fold


def test_a_page_is_folded_by_its_blocks() -> None:
    """Lines of a paragraph or item are joined first; headings, items and empty lines stay."""
    page = "## How it is decided\nA long line\nand another.\n\n- an item\n  goes on\n  - below it\n12. a step\n"

    assert (
        "How it is decided\nA long line and another.\n\n- an item goes on\n  - below it\n12. a step\n"
    ) == to_plain_text(fold_page(page, 80))
    assert "12. a step that is folded behind the\n    number\n" == to_plain_text(
        fold_page("12. a step that is folded behind the number", 40)
    )


@pytest.mark.parametrize("width", [60, 80, 200])
def test_every_page_fits_and_has_all_its_words(width: int) -> None:
    """But for words that are longer than a line."""
    for rule in every_rule():
        lines = fold_page(rule.page, width)
        words = re.sub(r"^#+ ", "", rule.page, flags=re.MULTILINE).split()

        assert words == to_plain_text(lines).split(), rule.name
        over = [line for line in lines if line_length(line) > width]
        assert all(max(map(len, to_plain_text([line]).split())) > LONG_WORD for line in over), rule.name


def test_a_list_is_in_columns_where_titles_have_room() -> None:
    """Else the title is below the name."""
    rows = [("pcie-x", "error", True, "A link is narrow."), ("ib-longer", "info", False, "A port is down.")]
    columns = "pcie-x     error     essential  A link is narrow.\nib-longer  info                 A port is down.\n"
    below = "pcie-x  error, essential\n    A link is narrow.\nib-longer  info\n    A port is down.\n"

    assert columns == to_plain_text(list_rules(rows, 49))
    assert below == to_plain_text(list_rules(rows, 48))
