"""JSON that was pasted in part: closed behind the last value that is whole, or its objects that are whole."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from probes.text import ParseError

_ENDS = {"{": "}", "[": "]"}
_DEEPEST = 64
_MOST_TRIED = 2_000  # places where an object may begin


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


def list_whole_objects(text: str, is_wanted: Callable[[dict[str, Any]], bool]) -> Iterator[dict[str, Any]]:
    """Objects that are wanted, the outermost of those that are whole; what is within one is its own.

    >>> list(list_whole_objects('"Id": "7"}, {"Id": "8", "Links": {}}, {"Id": "9"', lambda row: "Id" in row))
    [{'Id': '8', 'Links': {}}]
    """
    decoder = json.JSONDecoder()
    at = text.find("{")
    for _ in range(_MOST_TRIED):
        if at < 0:
            return
        end = at + 1
        try:
            value, whole_end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            pass
        else:
            if isinstance(value, dict) and is_wanted(value):
                yield value
                end = whole_end
        at = text.find("{", end)
