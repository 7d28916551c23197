"""Reads an operator's TOML file into a struct, within a size limit, with one-line errors."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Any, Literal, TypeVar, get_args, get_origin

import msgspec
import msgspec.structs

LIMIT_BYTES = 1 << 20
_HEAD = r"\s*\[{1,2}([^\[\]]+)\]"
T = TypeVar("T")


class TomlError(Exception):
    """The file cannot be used; the message names it and the problem."""


def read_toml(path: str, shape: type[T]) -> T:
    """Read a file and validate it fully. Raises TomlError."""
    try:
        with open(path, "rb") as file:
            data = file.read(LIMIT_BYTES + 1)
    except OSError as error:
        raise TomlError(f"{path}: {error.strerror}") from error
    if len(data) > LIMIT_BYTES:
        raise TomlError(f"{path}: larger than {LIMIT_BYTES} bytes")
    try:
        return parse_toml(data.decode(), shape)
    except msgspec.ValidationError as error:
        raise TomlError(f"{path}{_explain(str(error), data.decode(), shape)}") from error
    except UnicodeDecodeError as error:
        raise TomlError(f"{path}: not a text file (byte {error.start} is not UTF-8)") from error
    except (ValueError, RecursionError) as error:  # TOML's and UTF-8's errors are ValueErrors
        raise TomlError(f"{path}: {error}") from error


def parse_toml(text: str, shape: type[T]) -> T:
    """What a text holds, validated. Raises ValueError, RecursionError."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    return msgspec.convert(tomllib.loads(text), shape)


def find_line(text: str, keys: Sequence[str], entry: int = 0) -> int | None:
    """The line of a key, by the last of its names and the nearest table that the others name.

    `entry`: in which of several tables of that name, from 0; the line of its head where it does not have the key.

    >>> find_line("[rules]\\noff = []\\n[facts]\\nroce_mode = 1", ["facts", "roce_mode"])
    4
    >>> find_line("[[a]]\\nb = 1\\n[[a]]\\nc = 1\\nb = 2", ["a", "b"], 1)
    5
    """
    lines = text.splitlines()
    if entry:
        heads = [number for number, line in enumerate(lines) if re.match(_HEAD, line)]
        named = [number for number in heads if _table_names(lines[number]) == list(keys)[:1]]
        if entry < len(named):
            end = next((number for number in heads if number > named[entry]), len(lines))
            return named[entry] + (find_line("\n".join(lines[named[entry] : end]), keys) or 1)
    table: list[str] = []
    for number, line in enumerate(lines, 1):
        if re.match(_HEAD, line):
            table = _table_names(line)
            if table == list(keys):
                return number
        elif key := re.match(r"\s*([\w.\"-]+)\s*=", line):
            names = [*table, *key[1].replace('"', "").split(".")]
            if names[-len(keys) :] == list(keys) or names == list(keys)[: len(names)]:
                return number
    return None


def _table_names(line: str) -> list[str]:
    head = re.match(_HEAD, line)
    return [name.strip() for name in head[1].split(".")] if head else []


def locate(path: str, text: str) -> str:
    """The file and the first line that has the text: "fabricscope.toml:3"; without a line where none has it."""
    try:
        with open(path, encoding="utf-8") as file:
            line = next((number for number, line in enumerate(file, 1) if text in line), None)
    except (OSError, ValueError):
        line = None
    return f"{path}:{line}" if line else path


def locate_entry(path: str, table: str, entry: int, key: str) -> str:
    """The file and the line of a key in one of the tables of that name."""
    try:
        with open(path, encoding="utf-8") as file:
            line = find_line(file.read(LIMIT_BYTES), [table, key], entry)
    except (OSError, ValueError):
        line = None
    return f"{path}:{line}" if line else path


def list_choices(kind: Any) -> list[str]:
    """The values of a type that has a few only."""
    if get_origin(kind) is Literal:
        return [str(value) for value in get_args(kind)]
    return [choice for part in get_args(kind) for choice in list_choices(part)]


def _explain(message: str, text: str, shape: Any) -> str:
    """`:LINE: key: problem; valid: ...` of msgspec's message."""
    problem, _, place = message.partition(" - at `$")
    keys = re.findall(r"\.([\w-]+)", place)
    kind = shape
    for key in keys:
        fields = {field.name: field.type for field in _fields(kind)}
        kind = fields.get(key, Any)
    unknown = re.search(r"unknown field `(.*)`", problem)
    valid = [field.name for field in _fields(kind)] if unknown else list_choices(kind)
    if unknown:
        keys, problem = [*keys, unknown[1]], "no such key"
    numbers = re.findall(r"\[(\d+)\]", place)
    line = find_line(text, keys, int(numbers[0]) if numbers else 0) if keys else None
    choices = f"; valid: {', '.join(valid)}" if valid else ""
    return f"{f':{line}' if line else ''}: {f'{chr(46).join(keys)}: ' if keys else ''}{problem}{choices}"


def _fields(kind: Any) -> Sequence[msgspec.structs.FieldInfo]:
    """The fields of a struct, also of an optional one or of a list of them."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return msgspec.structs.fields(kind)
    return next((fields for part in get_args(kind) if (fields := _fields(part))), ())
