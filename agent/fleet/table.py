"""What a table of a dataset is made of."""

from __future__ import annotations

from typing import NamedTuple

TEXT, INT, FLOAT, BOOL, TIME = "text", "int", "float", "bool", "time"  # int: 64 bits; time: microseconds, UTC


class Column(NamedTuple):
    """One column. `volatile`: moves by itself, so a change of it is no change of the node."""

    name: str
    type: str
    about: str = ""
    volatile: bool = False


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
        """What a row says: all but the node and its class."""
        return tuple(column for column in self.columns[1:] if column is not CLASS)


def columns(text: str, of: Column | None = CLASS) -> tuple[Column, ...]:
    """Lines "name type[~] about", "~" is volatile; the node stands before them, its class after them."""
    rows = (line.split(None, 2) for line in text.strip().splitlines())
    result = [Column(name, kind.rstrip("~"), about[0] if about else "", kind[-1] == "~") for name, kind, *about in rows]
    return (Column("node", TEXT, "the host"), *result, *([of] if of else []))
