"""Lines of styled text, and their colours on a terminal."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.outputs.terminal import print_styled
from agent.outputs.text.lines import clean, line_length, make_line, to_plain_text, wrap_paragraph


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
