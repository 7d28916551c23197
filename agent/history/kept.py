"""The window of counters of a report of which a part only was read again: it stays that of the last full reading.

Why: counters that were not read again stand still in such a report, and a window up to its own time would call them
quiet. Errors that the last reading found would be gone, and come back with the next.
"""

from __future__ import annotations

import msgspec

from agent.history.window import seen_at
from agent.model.counters import counted
from agent.model.identity import Earlier, identities
from agent.model.report import CountersWindow, Report

NOT_THERE = "not there at the last full scan, or another device stands there now"


def carried(whole: Report, report: Report) -> Report:
    """The report with the window of `whole`, the last one for which everything was read; its subjects as named now."""
    window = whole.counters_window
    if window is None:
        return msgspec.structs.replace(report, counters_window=None)
    then = {each.subject for each in counted(whole.topology)}
    earlier = Earlier(identities(whole.topology), then, report.topology)
    moved: dict[str, dict[str, int]] = {}
    gaps: dict[str, dict[str, str]] = {}
    for now in counted(report.topology):
        was = earlier.subject(now.subject)
        if was is None:
            if now.counters:
                gaps[now.subject] = {"*": NOT_THERE}
            continue
        if was in window.moved:
            moved[now.subject] = window.moved[was]
        if was in window.not_compared:
            gaps[now.subject] = window.not_compared[was]
    made: CountersWindow = msgspec.structs.replace(
        window, until=window.until or seen_at(whole), moved=moved, not_compared=gaps
    )
    return msgspec.structs.replace(report, counters_window=made)
