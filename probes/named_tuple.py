"""`typing.NamedTuple`, whose constructor is compiled when it has been called a few times.

A scan defines some eighty classes of facts and fills a quarter of them. The library compiles a constructor for each
and checks the type of every field: a sixth of the instructions of a scan (docs/decisions/0007).
"""

import collections
import sys
from collections.abc import Iterable
from operator import itemgetter
from typing import TYPE_CHECKING, Any


def _property_of_item(position: int, documentation: str) -> property:
    return property(itemgetter(position), doc=documentation)


_FEW_CALLS = 12  # of a class: to compile its constructor takes as long as so many calls without one
_field = getattr(collections, "_tuplegetter", _property_of_item)  # in C, as the library's own classes have it


def _make(cls: Any, values: Iterable[Any]) -> Any:
    made = tuple.__new__(cls, values)
    if len(made) != len(cls._fields):
        raise TypeError(f"{cls.__name__} has {len(cls._fields)} fields, not {len(made)}")
    return made


def _replace(self: Any, /, **changes: Any) -> Any:
    made = self._make(map(changes.pop, self._fields, self))
    if changes:
        raise ValueError(f"{type(self).__name__} has no fields {', '.join(changes)}")
    return made


def _as_dictionary(self: Any) -> dict[str, Any]:
    return dict(zip(self._fields, self, strict=True))


def _list_values(self: Any) -> tuple[Any, ...]:
    return tuple(self)


def _show(self: Any) -> str:
    return f"{type(self).__name__}({', '.join(map('{}={!r}'.format, self._fields, self))})"


def _compile_constructor(name: str, fields: tuple[str, ...], defaults: tuple[Any, ...]) -> Any:
    """The constructor that collections.namedtuple makes, without the class that it makes around it."""
    parameters, values = ", ".join(("_class", *fields)), "".join(f"{field}, " for field in fields)
    construct = eval(f"lambda {parameters}: _new(_class, ({values}))", {"_new": tuple.__new__})  # noqa: S307 - our own text
    construct.__defaults__ = defaults
    construct.__name__, construct.__qualname__ = "__new__", f"{name}.__new__"
    return construct


_MAKE = classmethod(_make)


class _Definition(type):
    """Makes a class of tuples of the body of a class: its annotations name the fields, its values are defaults."""

    def __new__(cls, name: str, _bases: Any, body: dict[str, Any]) -> Any:
        fields = tuple(body.get("__annotations__", ()))
        defaults = {field: body.pop(field) for field in fields if field in body}
        if tuple(defaults) != fields[len(fields) - len(defaults) :]:
            raise TypeError(f"{name}: a field without a default follows one that has one")

        calls = iter(range(_FEW_CALLS))

        def construct(cls: Any, /, *values: Any, **named: Any) -> Any:
            if len(values) == len(fields) and not named:  # as from a child: a class that is only read so has no other
                return tuple.__new__(cls, values)
            rest, given = fields[len(values) :], defaults | named
            if named.keys() <= {*rest} <= given.keys() and rest and next(calls, None) is not None:
                return tuple.__new__(cls, (*values, *map(given.__getitem__, rest)))
            made.__new__ = _compile_constructor(name, fields, tuple(defaults.values()))
            return made.__new__(cls, *values, **named)

        body |= {field: _field(position, "") for position, field in enumerate(fields)}
        body |= {"_fields": fields, "_field_defaults": defaults, "__match_args__": fields, "__slots__": ()}
        body |= {"_make": _MAKE, "_replace": _replace, "_asdict": _as_dictionary, "__repr__": _show}
        body |= {"__new__": construct, "__getnewargs__": _list_values}
        made: Any = type(name, (tuple,), body)
        return made


if TYPE_CHECKING or sys.version_info >= (3, 14):  # from there on the body of a class holds no annotations
    from typing import NamedTuple as NamedTuple
else:

    class NamedTuple:
        """The base that a class of facts names: it leaves the class a tuple."""

        def __mro_entries__(self, _bases: tuple[Any, ...]) -> tuple[type]:
            return (_BASE,)

    _BASE = type.__new__(_Definition, "NamedTuple", (), {})
    NamedTuple = NamedTuple()
