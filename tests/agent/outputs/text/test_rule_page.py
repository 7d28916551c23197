"""Pages and lists of rules fit a terminal, and lose nothing."""

from __future__ import annotations

import re

import pytest

from agent.outputs.text.lines import line_length, to_plain_text
from agent.outputs.text.rule_page import fold_page, list_rules
from agent.rules.catalogue import every_rule

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
