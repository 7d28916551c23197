"""A column of a table is stated once, in the table: fields that are read for it and its place in a row follow."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Any, TypeVar

import msgspec

from agent.fleet.table import BOOL, FLOAT, INT, TEXT, Table
from agent.model.peers import COMPARED_WORDS, list_words, read_types

LEAST, MOST = -(2**63), 2**63 - 1  # of a number in a column; counters are 64 bits without sign
Int = Annotated[int, msgspec.Meta(ge=LEAST, le=MOST)]
Row = tuple[Any, ...]
S = TypeVar("S", bound=msgspec.Struct)
_TYPES: dict[str, Any] = {TEXT: str | None, INT: Int | None, FLOAT: float | None, BOOL: bool | None}


class RowColumns:
    """Makes rows of one table. `computed`: columns whose value is no field of its own; `row` is given those."""

    row: Callable[..., Row]  # of a part, in the order of the table, without the node and its class

    def __init__(self, table: Table, *computed: str) -> None:
        self._types = {column.name: _TYPES.get(column.type) for column in table.own}
        self._computed = computed

    def add_fields(self, parts: type[S]) -> type[S]:
        """Decorates a class: it gets a field for each column that it does not declare itself."""
        declared = {field.encode_name: field.name for field in msgspec.structs.fields(parts)}
        own = {name: declared.get(name, name) for name in self._types if name not in self._computed}
        missing = [(name, self._types[name], None) for name in own if name not in declared]
        self.row = compile_row([own.get(name, name) for name in self._types], self._computed)
        module = parts.__module__
        return msgspec.defstruct(parts.__name__, missing, bases=(parts,), module=module, frozen=True, gc=False)  # type: ignore[return-value]


def compile_row(names: Iterable[str], computed: Iterable[str] = ()) -> Callable[..., Row]:
    """A function that makes a tuple of the fields of its argument, in a tenth of the time that attrgetter takes;
    `computed`: of these it is given the values by name."""
    values = "".join(f"{name}, " if name in computed else f"source.{name}, " for name in names)
    make: Callable[..., Row] = eval(f"lambda {', '.join(('source', *computed))}: ({values})")  # noqa: S307 - our own text
    return make


def add_compared(model: Any) -> Callable[[type[S]], type[S]]:
    """Decorates a class: it gets each field of `model` that is compared among peers and that it does not declare."""

    def extend(parts: type[S]) -> type[S]:
        types, own = read_types(model), parts.__struct_fields__
        compared = [name for name, word in list_words(model).items() if word.word in COMPARED_WORDS]
        missing = [(name, types[name].type | None, None) for name in compared if name not in own]
        module = parts.__module__
        return msgspec.defstruct(parts.__name__, missing, bases=(parts,), module=module, frozen=True, gc=False)  # type: ignore[return-value]

    return extend


def fill_row(table: Table, source: object, **computed: Any) -> Row:
    """A row of a table that few have: a column takes the value of its name, unless it is computed."""
    return tuple(
        computed[column.name] if column.name in computed else getattr(source, column.name) for column in table.own
    )
