"""What reaches a terminal: colours of ours, and no control character of anybody else."""

from __future__ import annotations

import io

import pytest

from agent.outputs.terminal import print_styled
from agent.outputs.text.lines import to_plain_text

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
