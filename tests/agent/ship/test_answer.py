"""What statuses mean."""

from __future__ import annotations

import time
from email.utils import formatdate

import pytest

from agent.ship.answer import WAIT_LIMIT_SECONDS, Kind, by_status, seconds_asked


@pytest.mark.parametrize(
    ("statuses", "kind"),
    [
        ((200, 201, 202, 204), Kind.TAKEN),
        ((400, 413, 422), Kind.REFUSED),
        ((408, 409, 425, 429, 500, 502, 503, 504, 507, 520, 599), Kind.AGAIN),
        ((401, 403, 404, 405, 407, 410, 415, 451, 501, 505, 511, 100, 304, 700), Kind.BLOCKED),
    ],
)
def test_every_status_has_its_consequence(statuses: tuple[int, ...], kind: Kind) -> None:
    """Whose fault it is decides."""
    assert {kind} == {by_status(status).kind for status in statuses}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0),
        (" 120 ", 120.0),
        ("99999999999999999999", WAIT_LIMIT_SECONDS),
        ("-5", None),
        ("1.5", None),
        ("²", None),
        ("soon", None),
        ("", None),
        (None, None),
        ("Fri, 31 Dec 1999 23:59:59 GMT", 0.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", WAIT_LIMIT_SECONDS),
        ("Fri, 99 Dec 1999 23:59:59 GMT", None),
    ],
)
def test_retry_after(text: str | None, seconds: float | None) -> None:
    """A number, a date, or nonsense."""
    assert seconds == seconds_asked(text)


def test_retry_after_as_a_date() -> None:
    """From now."""
    seconds = seconds_asked(formatdate(time.time() + 600, usegmt=True))

    assert seconds is not None
    assert 500 < seconds <= 600
