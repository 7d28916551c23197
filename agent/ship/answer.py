"""What came of one try to hand a report over, and what follows from it."""

from __future__ import annotations

import time
from enum import Enum
from http import HTTPStatus
from typing import NamedTuple, Protocol

from agent.ship.parcel import Parcel

WAIT_LIMIT_SECONDS = 86400.0  # a server's slip of the pen must not silence a node for longer


class Kind(Enum):
    """What to do next."""

    TAKEN = "taken"  # the report is theirs now
    REFUSED = "refused"  # they will not have this report; others may pass
    AGAIN = "again"  # it may pass in a while
    BLOCKED = "blocked"  # nothing passes until somebody mends the address, the credentials or the server


class Answer(NamedTuple):
    """One try."""

    kind: Kind
    why: str = ""  # for people; no secret, and nothing of a server's page
    wait: float | None = None  # seconds that the server asked for


class BadTarget(Exception):
    """The target, or a secret that it needs, cannot be used; the message is one line and holds no secret."""


class Target(Protocol):
    """Where reports go."""

    shown: str  # for people: no query, no secret

    def hand_over(self, parcel: Parcel, until: float) -> Answer:
        """Try once, not past `until` (of the monotonic clock)."""


_REFUSED = (400, 413, 422)
_AGAIN = (408, 409, 425, 429)
_BLOCKED = (501, 505, 511)  # not implemented, HTTP version, a network's login page: no retry mends these


def by_status(status: int, retry_after: str | None = None) -> Answer:
    """What an HTTP status means: docs/ship.md has the table."""
    if 200 <= status < 300:
        return Answer(Kind.TAKEN)
    if status in _REFUSED:
        return Answer(Kind.REFUSED, named(status))
    if status in _AGAIN or (500 <= status < 600 and status not in _BLOCKED):
        return Answer(Kind.AGAIN, named(status), seconds_asked(retry_after))
    return Answer(Kind.BLOCKED, named(status))


def named(status: int) -> str:
    """A status with its name, of our own table: what a server calls it is not repeated."""
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def seconds_asked(retry_after: str | None) -> float | None:
    """Seconds of a Retry-After header, which is a number or a date; None where it is neither.

    >>> seconds_asked("120")
    120.0
    >>> seconds_asked("Fri, 31 Dec 1999 23:59:59 GMT")
    0.0
    """
    text = (retry_after or "").strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:12]), WAIT_LIMIT_SECONDS)
    from email.utils import parsedate_to_datetime  # brings sockets, which a folder has no need of

    try:
        until = parsedate_to_datetime(text).timestamp()
    except (TypeError, ValueError, IndexError, OverflowError, OSError):
        return None
    return min(max(until - time.time(), 0.0), WAIT_LIMIT_SECONDS)
