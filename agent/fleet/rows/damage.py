"""Parts of reports that are decoded apart from the rest."""

from __future__ import annotations

from typing import TypeVar

import msgspec
from msgspec import Raw
from msgspec.json import Decoder

_T = TypeVar("_T")


class DamagedPart(Exception):
    """A part of a report that is not what the schema says; the message says where and what."""


def decoded(decoder: Decoder[_T], raw: Raw | bytes, where: str, place: int | None = None) -> _T:
    """Raises DamagedPart."""
    try:
        return decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedPart(f"{error} - in {where}{'' if place is None else f'[{place}]'}") from error
