"""What can go wrong between us and a NetBox, each with the one line that a person reads."""

from __future__ import annotations

from collections.abc import Sequence


class BadAccess(Exception):
    """NetBox cannot be asked: a wrong address or token, nobody there, no right to read, no NetBox at all."""


class Rejected(Exception):
    """NetBox refused a request as a whole; `each`: what is wrong with every object of it, "" for nothing."""

    def __init__(self, why: str, each: Sequence[str] = ()) -> None:
        super().__init__(why)
        self.each = tuple(each)


class Forbidden(Rejected):
    """The token may not do this to objects of this kind."""


class Unsure(Exception):
    """A request that makes something went out and no answer came: it may have been done."""
