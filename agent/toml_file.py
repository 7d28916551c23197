"""Reads an operator's TOML file into a struct, within a size limit, with one-line errors."""

from __future__ import annotations

import sys
from typing import TypeVar

import msgspec

LIMIT_BYTES = 1 << 20
T = TypeVar("T")


class TomlError(Exception):
    """The file cannot be used; the message names it and the problem."""


def read_toml(path: str, shape: type[T]) -> T:
    """Read a file and validate it fully. Raises TomlError."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        with open(path, "rb") as file:
            data = file.read(LIMIT_BYTES + 1)
    except OSError as error:
        raise TomlError(f"{path}: {error.strerror}") from error
    if len(data) > LIMIT_BYTES:
        raise TomlError(f"{path}: larger than {LIMIT_BYTES} bytes")
    try:
        return msgspec.convert(tomllib.loads(data.decode()), shape)
    except (ValueError, RecursionError) as error:  # TOML, UTF-8 and msgspec's errors are all ValueErrors
        raise TomlError(f"{path}: {error}") from error
