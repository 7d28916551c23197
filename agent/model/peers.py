"""What equal parts of a machine have alike: each field of the model states it in its own declaration.

    vbios: Annotated[str | None, usual("VBIOS version")] = None

`equal`: a job can feel a difference. `usual`: a difference is worth a note. `unique`: no two parts have the same value.
`free`: parts may differ, and why. A field whose type is a struct of the model has no word: each of its fields has one.

A field of a part that the fleet stores as it is has its column there, too: `STORED`, or `stored("null: not known")`.
"""

import sys
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

FREE: Mapping[str, str] = MappingProxyType(
    {
        "identity": "identifies the part or its product",
        "name": "a name or a number that software gave",
        "place": "follows from where the part is",
        "use": "what the part is used for",
        "intent": "state: whether it is meant to be up decides",
        "state": "a state or an event, which rules judge by itself",
        "traffic": "depends on traffic",
        "counter": "a count: compared as a count, not as a setting",
        "measured": "a measured value: temperature, power, light",
        "power": "depends on power saving",
        "clock": "depends on clocks",
        "derived": "another field has it too",
        "evidence": "how a fact was read",
        "host": "one per host",
        "catalogue": "what the part can do, by its product",
    }
)
COMPARED_WORDS = ("equal", "usual")


class PeerWord(msgspec.Struct, frozen=True):
    """How a field compares among peers."""

    word: str  # equal | usual | unique | free
    title: str = ""  # of the field, in a sentence
    unit: str = ""
    mixed_boards: bool = False  # parts of different boards have it alike, too
    shared: bool = False  # unique among boards: all parts of a board have the same
    tolerance: float = 0.0  # share of the usual value by which a number may differ
    enough: int = 0  # whether numbers from this one on differ is only a note
    without: tuple[str, ...] = ()  # keys of a table that are not compared
    reason: str = ""  # of `free`
    after: str = ""  # the field beside it with the value now, which this one has after a reset
    prefix: str = ""  # title of the prefix lengths of addresses, which are equal


def equal(title: str, unit: str = "", *, without: tuple[str, ...] = (), after: str = "") -> PeerWord:
    """Of parts of one product: a minority with another value is a warning. `without`: keys that may differ.

    `after`: the field with the value that a reset replaces by this one: where they are alike, one of them is reported.
    """
    return PeerWord("equal", title, unit, without=without, after=after)


def setting(title: str, unit: str = "", *, enough: int = 0) -> PeerWord:
    """Equal, and alike on parts of different boards: an operator sets it. `enough`: numbers from it on do the same."""
    return PeerWord("equal", title, unit, mixed_boards=True, enough=enough)


def usual(title: str, unit: str = "", *, tolerance: float = 0.0) -> PeerWord:
    """Of parts of one product: a minority with another value is a note."""
    return PeerWord("usual", title, unit, tolerance=tolerance)


def unique(title: str, *, shared: bool = False, prefix: str = "") -> PeerWord:
    """Two parts with the same value are an error. `shared`: all parts of one board have the same value.

    `prefix`: of addresses, whose prefix lengths are equal.
    """
    return PeerWord("unique", title, shared=shared, prefix=prefix)


def free(reason: str) -> PeerWord:
    """Not compared, for a reason of `FREE`."""
    return PeerWord("free", reason=reason)


class StoredColumn(NamedTuple):
    """The column of a field in the fleet's table of its part: its meaning, where the name does not give it."""

    about: str = ""
    volatile: bool = False  # changes by itself


STORED = StoredColumn()


def stored(about: str = "", *, volatile: bool = False) -> StoredColumn:
    """The fleet stores the field. `volatile`: it changes by itself, so a change of it is no change of the node."""
    return StoredColumn(about, volatile)


class DeclaredType(msgspec.Struct, frozen=True):
    """The type of a field, and what `Annotated` states of it."""

    type: Any
    extras: tuple[Any, ...] = ()


class _Annotated:
    """Stands in for `typing.Annotated`, whose checks take longer than all else of a comparison."""

    def __class_getitem__(cls, parts: tuple[Any, ...]) -> DeclaredType:
        return DeclaredType(parts[0], parts[1:])


@cache
def read_types(struct: type) -> dict[str, DeclaredType]:
    """The type of each field as it is declared.

    All of a struct in one expression: `typing.get_type_hints` compiles each alone, and takes three times as long.
    """
    return _evaluate(struct, struct.__annotations__)


@cache
def read_compared(struct: type) -> dict[str, DeclaredType]:
    """The same without those that are declared free, which are most."""
    return _evaluate(struct, {name: text for name, text in struct.__annotations__.items() if "free(" not in text})


def _evaluate(struct: type, texts: Mapping[str, str]) -> dict[str, DeclaredType]:
    names = vars(sys.modules[struct.__module__])
    types = eval(f"({','.join((*texts.values(), ''))})", names, {"Annotated": _Annotated})  # noqa: S307 - our own text
    declared = (one if isinstance(one, DeclaredType) else DeclaredType(one) for one in types)
    return dict(zip(texts, declared, strict=True))


@cache
def list_words(struct: type) -> dict[str, PeerWord]:
    """The word of each field of a struct that has one."""
    return {
        name: extra
        for name, declared in read_types(struct).items()
        for extra in declared.extras
        if isinstance(extra, PeerWord)
    }


def list_columns(struct: Any) -> dict[str, tuple[Any, StoredColumn]]:
    """The type and column of each field that the fleet stores, by its name in JSON, in the order of the struct."""
    names = dict(zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True))
    return {
        names[name]: (declared.type, extra)
        for name, declared in read_types(struct).items()
        for extra in declared.extras
        if isinstance(extra, StoredColumn)
    }
