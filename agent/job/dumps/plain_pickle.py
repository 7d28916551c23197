"""Reads a pickle that holds plain data only, without ever loading it.

A pickle is a program. Here its opcodes are walked, those that build numbers, texts, lists, dicts and tuples are
carried out, and any other ends the reading: nothing can be imported or called.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable
from typing import Any, NoReturn

LIMIT_BYTES = 64 << 20
_MOST_OBJECTS = 4_000_000
_DEEPEST = 64


class NotPlain(Exception):
    """It holds more than plain data, or is damaged; the message names the opcode."""


class _Mark:
    """Where a list, dict or tuple begins on the stack."""


_MARK = _Mark()
_VALUE_CODES = (
    "INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT BINFLOAT UNICODE BINUNICODE SHORT_BINUNICODE BINUNICODE8 STRING "
    "BINSTRING SHORT_BINSTRING BINBYTES SHORT_BINBYTES BINBYTES8"
)
_VALUES = frozenset(_VALUE_CODES.split())
_CONSTANTS: dict[str, Any] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_EMPTY: dict[str, Callable[[], Any]] = {"EMPTY_LIST": list, "EMPTY_DICT": dict, "EMPTY_TUPLE": tuple}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_IGNORED = frozenset(("PROTO", "FRAME"))


def read_plain_pickle(data: bytes) -> Any:
    """The data. Raises NotPlain.

    >>> import pickle
    >>> read_plain_pickle(pickle.dumps({"a": [1, 2.5, None, ("x", True)]}, protocol=2))
    {'a': [1, 2.5, None, ('x', True)]}
    """
    if len(data) > LIMIT_BYTES:
        raise NotPlain(f"larger than {LIMIT_BYTES >> 20} MiB")
    try:
        return _Machine().run(data)
    except NotPlain:
        raise
    except (ValueError, IndexError, KeyError, TypeError, OverflowError, RecursionError, UnicodeError) as error:
        raise NotPlain(f"damaged: {type(error).__name__}") from None


class _Machine:
    """A stack, and what is remembered of it."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memory: dict[int, Any] = {}
        self.objects = 0
        self.depths: dict[int, int] = {}  # of containers, by id()

    def run(self, data: bytes) -> Any:
        """The value on the stack at STOP."""
        for opcode, argument, _ in pickletools.genops(data):
            name = opcode.name
            if name == "STOP":
                if len(self.stack) != 1 or self.stack[0] is _MARK:
                    _refuse("a damaged pickle")
                return self.stack[0]
            self.step(name, argument)
        return _refuse("no end")

    def step(self, name: str, argument: Any) -> None:
        """One opcode."""
        stack = self.stack
        if name in _VALUES:
            self.push(argument)
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in _EMPTY:
            self.push(_EMPTY[name]())
        elif name == "MARK":
            self.push(_MARK)
        elif name in ("APPEND", "APPENDS"):
            items = [stack.pop()] if name == "APPEND" else self.pop_to_mark()
            target = self.top(list)
            self.fill(target, items)
            target.extend(items)
        elif name in ("SETITEM", "SETITEMS"):
            items = [stack.pop(), stack.pop()][::-1] if name == "SETITEM" else self.pop_to_mark()
            target = self.top(dict)
            self.fill(target, items)
            target.update(zip(items[::2], items[1::2], strict=True))
        elif name in ("TUPLE", "LIST", "DICT", *_TUPLES):
            self.push(self.build(name))
        elif name in ("BINPUT", "LONG_BINPUT", "PUT"):
            self.memory[int(argument)] = stack[-1]
        elif name == "MEMOIZE":
            self.memory[len(self.memory)] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET", "GET"):
            self.push(self.memory[int(argument)])
        elif name == "POP":
            stack.pop()
        elif name not in _IGNORED:
            _refuse(f"opcode {name}: more than plain data")

    def push(self, value: Any) -> None:
        """One object more, within the limit."""
        self.objects += 1
        if self.objects > _MOST_OBJECTS:
            _refuse(f"more than {_MOST_OBJECTS} objects")
        self.stack.append(value)

    def build(self, name: str) -> Any:
        """A tuple, list or dict of what is on the stack."""
        count = _TUPLES.get(name)
        items = [self.stack.pop() for _ in range(count)][::-1] if count else self.pop_to_mark()
        value: Any = tuple(items)
        if name == "LIST":
            value = list(items)
        elif name == "DICT":
            value = dict(zip(items[::2], items[1::2], strict=True))
        self.fill(value, items)
        return value

    def top(self, kind: type) -> Any:
        """The container on the stack."""
        if not self.stack or type(self.stack[-1]) is not kind:
            _refuse("a damaged pickle")
        return self.stack[-1]

    def pop_to_mark(self) -> list[Any]:
        """What is above the last mark."""
        items: list[Any] = []
        while (item := self.stack.pop()) is not _MARK:
            items.append(item)
        return items[::-1]

    def fill(self, target: Any, items: list[Any]) -> None:
        """Keeps containers from being too deep, or in themselves."""
        deepest = 0
        for item in items:
            if isinstance(item, (list, dict, tuple)):
                if item is target:
                    _refuse("a container in itself")
                deepest = max(deepest, self.depths.get(id(item), 1))
        depth = max(self.depths.get(id(target), 1), deepest + 1)
        if depth > _DEEPEST:
            _refuse("nested too deep")
        self.depths[id(target)] = depth


def _refuse(why: str) -> NoReturn:
    raise NotPlain(why)
