"""JSON that was pasted without its end: closed behind the last value that is whole."""

from __future__ import annotations

import json
from typing import Any

from probes.text import ParseError

_ENDS = {"{": "}", "[": "]"}
_DEEPEST = 64


def load_first(text: str) -> Any:
    """The value that a text begins with. Raises ParseError."""
    try:
        return json.JSONDecoder().raw_decode(text.lstrip())[0]
    except (ValueError, RecursionError) as why:
        raise ParseError(f"no JSON, cut or elided: {str(why)[:80]}") from why


def load_json(text: str) -> tuple[Any, bool]:
    """The document that a text begins with, and whether its end is missing: what its last objects lack is not known.
    Raises ParseError where it is no JSON.

    >>> load_json('[{"a": 1, "b": {"c": true, "d": "of')
    ([{'a': 1, 'b': {'c': True}}], True)
    >>> load_json('{"a": [1, 2]}\\nThanks!')
    ({'a': [1, 2]}, False)
    """
    try:
        return json.JSONDecoder().raw_decode(text.lstrip())[0], False
    except (ValueError, RecursionError) as why:
        closed = _close(text.lstrip())
        try:
            return json.loads(closed or ""), True
        except (ValueError, RecursionError):
            raise ParseError(f"no JSON: {str(why)[:80]}") from why


def _close(text: str) -> str | None:
    """The text up to the last comma or bracket outside of strings, closed; None where nothing is open, or too much."""
    stack: list[str] = []
    end, ends = 0, list[str]()
    is_string = is_escaped = False
    for at, character in enumerate(text):
        if is_string:
            is_string = is_escaped or character != '"'
            is_escaped = character == "\\" and not is_escaped
        elif character == '"':
            is_string = True
        elif character in _ENDS:
            if len(stack) == _DEEPEST:
                return None
            stack.append(_ENDS[character])
            end, ends = at + 1, list(stack)
        elif character == ",":
            end, ends = at, list(stack)
        elif stack and character == stack[-1]:
            stack.pop()
            end, ends = at + 1, list(stack)
            if not stack:
                return None  # whole, and yet no JSON
    return text[:end] + "".join(reversed(ends)) if ends else None
