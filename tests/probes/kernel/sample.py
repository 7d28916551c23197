"""The shape of a sample of a sentence, and the parts that samples name."""

from __future__ import annotations

from typing import NamedTuple

GPU, NIC, PORT = "0000:3b:00.0", "0000:5e:00.0", "0000:3a:01.0"


class Sample(NamedTuple):
    """A line that a row of the table reads."""

    kind: str
    code: str | None
    line: str
    subject: str | None
    unlike: str  # has the row's literal, and is another thing


def of_driver(code: str, line: str, unlike: str, subject: str | None = None) -> Sample:
    """A sample of kind `driver`."""
    return Sample("driver", code, line, subject, unlike)
