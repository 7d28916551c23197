"""What this package knows of a NetBox: lists, and requests that do all or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

Row = dict[str, Any]

IN_ADDRESS = 40  # values of one filter: an address of some 2,000 characters, which every server takes


class Client(Protocol):
    """What the rest of this package knows of NetBox."""

    def read(self, kind: str, **filters: Any) -> list[Row]:
        """All rows of a kind that the filters let through. Raises BadAccess."""

    def create(self, kind: str, bodies: Sequence[Row]) -> list[int]:
        """Make all or none; their ids, in the same order. Raises Rejected, Unsure, BadAccess."""

    def update(self, kind: str, bodies: Sequence[Row]) -> None:
        """Change all or none; each body has its id. Raises Rejected, BadAccess."""

    def delete(self, kind: str, ids: Sequence[int]) -> None:
        """Delete all or none. Raises Rejected, BadAccess."""
