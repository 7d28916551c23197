"""What a table of a dataset is made of."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from agent.model.peers import list_columns

TEXT, INT, FLOAT, BOOL, TIME = "text", "int", "float", "bool", "time"  # int: 64 bits; time: microseconds, UTC


class Column(NamedTuple):
    """One column. `volatile`: moves by itself, so a change of it is no change of the node."""

    name: str
    type: str
    about: str = ""
    volatile: bool = False


_TYPES = {int: INT, float: FLOAT, bool: BOOL}
CLASS = Column("hardware_class", TEXT, "of the node, as in `host`", volatile=True)


class Table(NamedTuple):
    """One table. `key`: with `node`, what a row is known by. `history`: its changes are kept."""

    name: str
    about: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    history: bool = True

    @property
    def own(self) -> tuple[Column, ...]:
        """What a row states: all but the node and its class."""
        return tuple(column for column in self.columns[1:] if column is not CLASS)


def columns_of(part: Any, after: Mapping[str, str] = MappingProxyType({})) -> tuple[Column, ...]:
    """The columns that the model states of a part, and the node's class. `after`: a column that is behind another than
    in the report.

    What is neither a number nor yes or no is text; a struct's is computed for its row.
    """
    own = {name: Column(name, _type_of(hint), *stored) for name, (hint, stored) in list_columns(part).items()}
    names = [name for name in own if name not in after]
    for name, place in after.items():
        names.insert(names.index(place) + 1, name)
    return (*(own[name] for name in names), CLASS)


def _type_of(hint: Any) -> str:
    return next((_TYPES[part] for part in typing.get_args(hint) or (hint,) if part in _TYPES), TEXT)
