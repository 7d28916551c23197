"""Parts of reports that are decoded apart from the rest."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeVar

import msgspec
from msgspec import Raw
from msgspec.json import Decoder

_T = TypeVar("_T")
_Key = TypeVar("_Key", bound=Hashable)


class DamagedPart(Exception):
    """A part of a report that is not what the schema says; the message says where and what."""


def once(keys: Sequence[_Key], where: str, what: str = "an id") -> frozenset[_Key]:
    """What tells the members of a list apart. Raises DamagedPart where two have the same."""
    found = frozenset(keys)
    if len(found) != len(keys):
        raise DamagedPart(f"{what} stands there twice - in {where}")
    return found


def decoded(decoder: Decoder[_T], raw: Raw | bytes, where: str, place: int | None = None) -> _T:
    """Raises DamagedPart."""
    try:
        return decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedPart(f"{error} - in {where}{'' if place is None else f'[{place}]'}") from error
