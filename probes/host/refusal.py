"""A reason why there is no answer, as plain data: what a recording keeps and a capture holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from probes.host.interface import Absent, Denied, Failed, TimedOut, Unanswered

KINDS: Mapping[str, type[Unanswered]] = {kind.status: kind for kind in (Absent, Denied, TimedOut, Failed)}


class Refusal(NamedTuple):
    """`status` is one of absent, denied, timed_out, failed; a probe's own may be skipped."""

    status: str
    reason: str
    code: str | None = None

    @staticmethod
    def of(why: Unanswered) -> Refusal:
        """The same reason as data."""
        return Refusal(why.status, why.reason, why.code)

    def error(self) -> Unanswered:
        """The same reason to be raised again."""
        return KINDS[self.status](self.reason, self.code)

    def renamed(self, old: str, new: str) -> Refusal:
        """The same reason for the same file under another of its names."""
        if not self.reason.startswith(f"{old}:"):
            return self
        return Refusal(self.status, new + self.reason[len(old) :], self.code)
