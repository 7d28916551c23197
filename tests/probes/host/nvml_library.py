"""A made-up libnvidia-ml for the real binding to call."""

from __future__ import annotations

import ctypes
from typing import Any

import pynvml


class Library:
    """libnvidia-ml as ctypes shows it: attributes are C functions that fill references and return an nvmlReturn_t.
    A symbol that is not here raises AttributeError, as ctypes does."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def answers(self, symbol: str, *values: Any, code: int = 0, at: int = 1) -> None:
        """Let a symbol put `values` behind its references, from argument `at` on."""

        def function(*arguments: Any) -> int:
            self.calls.append(symbol)
            for argument, value in zip(arguments[at:], values, strict=False):
                put(argument, value)
            return code

        setattr(self, symbol, function)
        pynvml._nvmlGetFunctionPointer_cache.pop(symbol, None)


def put(reference: Any, value: Any) -> None:
    target = getattr(reference, "_obj", reference)
    if isinstance(value, dict):
        for name, member in value.items():
            setattr(target, name, member)
    elif isinstance(target, ctypes.Array) and not isinstance(value, bytes):
        target[:] = value
    else:
        target.value = value
