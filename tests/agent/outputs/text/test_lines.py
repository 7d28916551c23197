"""Lines of styled text: folding, cleaning, and what a pipe gets."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

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
