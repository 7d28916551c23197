"""JSON of a text that was cut at either end: its objects that are whole."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

_MOST_TRIED = 2_000  # places where an object may begin


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
