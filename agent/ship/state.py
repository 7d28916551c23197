"""What a spool remembers of itself (`state.json`): what it handed over, what it dropped, what the last failure was."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

Say = Callable[[str], None]
SPOOL = "fabricscope.spool/1"


class Dropped(msgspec.Struct, kw_only=True):
    """Reports that were given up because the spool was full, since `State.since`."""

    healthy: int = 0  # verdict ok
    not_judged: int = 0  # verdict unknown
    with_findings: int = 0
    set_aside: int = 0  # damaged ones, and those that the endpoint would not have


class State(msgspec.Struct, kw_only=True):
    """The file; a person may read it."""

    schema: str = SPOOL
    since: str = ""  # when counting began
    handed_over: int = 0
    dropped: Dropped = msgspec.field(default_factory=Dropped)
    set_aside: int = 0
    waiting: int = 0  # reports, at the end of the last run
    waiting_bytes: int = 0
    last_run: str | None = None
    last_handed_over: str | None = None
    last_failure: str | None = None  # what kept reports waiting, in the last run
    not_before: float | None = None  # unix seconds: the endpoint asked to be left alone until then
    not_before_of: str | None = None  # which one
    folding: list[str] = []  # tombstones that are counted already, and perhaps not yet removed


KINDS = tuple(Dropped.__struct_fields__)


def kind_of(verdict: str) -> str:
    """Under what a dropped report is counted."""
    return {"ok": "healthy", "unknown": "not_judged"}.get(verdict, "with_findings")
