"""An operator's TOML file as a struct: read within bounds, and refused in one line."""

from __future__ import annotations

import sys
from typing import TypeVar

import msgspec

LIMIT_BYTES = 1 << 20
T = TypeVar("T")


class BadToml(Exception):
    """The file cannot be used; the message names it and what is wrong."""


def read_toml(path: str, shape: type[T]) -> T:
    """The file, every word of it checked. Raises BadToml."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        with open(path, "rb") as file:
            data = file.read(LIMIT_BYTES + 1)
    except OSError as error:
        raise BadToml(f"{path}: {error.strerror}") from error
    if len(data) > LIMIT_BYTES:
        raise BadToml(f"{path}: larger than {LIMIT_BYTES} bytes")
    try:
        return msgspec.convert(tomllib.loads(data.decode()), shape)
    except (ValueError, RecursionError) as error:  # TOML, UTF-8 and msgspec's errors are all ValueErrors
        raise BadToml(f"{path}: {error}") from error
