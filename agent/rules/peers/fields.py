"""The fields of a struct of the model that are compared, with the fields of what it holds, and their values."""

from __future__ import annotations

import typing
from collections.abc import Iterable, Iterator
from functools import cache
from operator import attrgetter
from typing import Any

import msgspec

from agent.model.peers import PeerWord, equal, read_compared

Value = Any  # of a field: a scalar, a list or a table
_PREFIX = "prefix"
NOTHING: tuple[Value, ...] = (None, [], {}, "")


class PeerField(msgspec.Struct, frozen=True):
    """One field, by its path from the part that has it: "qos.trust"."""

    path: str
    word: PeerWord
    parent: tuple[str, ...]  # the fields that lead to the struct with the field

    @property
    def now(self) -> str:
        """The path of the field with the value now, where this one is that of after a reset; "" else."""
        return ".".join((*self.parent, self.word.after)) if self.word.after else ""

    def read(self, part: object) -> Value:
        """The value of a part; None where it is not known."""
        for name in self.parent:
            part = getattr(part, name)
            if part is None:
                return None
        if isinstance(part, list):
            return _read_prefixes(part)
        value = getattr(part, self.path.rpartition(".")[2])
        if value in NOTHING:
            return None
        if isinstance(value, dict):
            return {key: entry for key, entry in value.items() if key not in self.word.without}
        return value


@cache
def list_fields(struct: Any, word: str) -> tuple[PeerField, ...]:
    """The fields with a word of a struct, and of the structs that it holds one of."""
    return tuple(field for field in _list_all(struct) if field.word.word == word)


@cache
def _list_all(struct: type) -> tuple[PeerField, ...]:
    return tuple(_walk(struct, ()))


def _walk(struct: type, parent: tuple[str, ...]) -> Iterator[PeerField]:
    for name, declared in read_compared(struct).items():
        word = next((extra for extra in declared.extras if isinstance(extra, PeerWord)), None)
        if word is not None:
            yield PeerField(".".join((*parent, name)), word, parent)
            if word.prefix:
                yield PeerField(".".join((*parent, name, _PREFIX)), equal(word.prefix), (*parent, name))
        elif (inner := _find_struct(declared.type)) is not None:
            yield from _walk(inner, (*parent, name))


def _read_prefixes(addresses: Iterable[str]) -> str | None:
    """The lengths of IPv4 prefixes ("24" of 10.0.0.1/24); IPv6 has one for all."""
    lengths = {one.partition("/")[2] for one in addresses if ":" not in one}
    return ",".join(sorted(lengths)) or None


def _find_struct(hint: Any) -> type | None:
    """The struct that a field holds one of; None for lists of them, whose members are parts by themselves."""
    choices = (hint,) if typing.get_origin(hint) is list else typing.get_args(hint) or (hint,)
    return next((choice for choice in choices if hasattr(choice, "__struct_fields__")), None)


def read_all(field: PeerField, parts: list[Any]) -> list[Value] | None:
    """The values of all parts, None for one that states none. None where it is seen at once that all are the same."""
    try:
        values = list(map(attrgetter(field.path), parts))
    except AttributeError:  # one of them has not the struct with the field
        values = [field.read(part) for part in parts]
    if values.count(values[0]) == len(values):  # most are
        return None
    return [field.read(part) for part in parts]
