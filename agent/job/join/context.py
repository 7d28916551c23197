"""What a join of one cause with one host's report looks at."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from agent.job.candidate import PossibleCause
from agent.job.conclusion import Conclusion
from agent.job.lines import find_time
from agent.model.gpu import Gpu
from agent.model.nic import Nic
from agent.model.node import Event
from agent.model.report import Report


class HostReport(NamedTuple):
    """A report, and where it is from."""

    report: Report
    source: str
    guessed: bool = False  # made of other files in the folder


class CauseOnHost(NamedTuple):
    """One cause, a host of it, and the parts of that host's report that the cause is about."""

    conclusion: Conclusion
    cause: PossibleCause
    host: str
    report: Report
    gpus: Sequence[Gpu]
    nics: Sequence[Nic]


_CLOCKS = 5.0  # seconds


def match_time(cause: PossibleCause, times: Iterable[str]) -> str | None:
    """The first of these times that is the cause's, for a sentence.

    Clocks of logs have no zone: a whole number of half hours away is the same time.
    """
    for text in times if cause.at is not None else ():
        moment = find_time(text.replace("T", " "))
        if moment is None or cause.at is None:
            continue
        offset = cause.at.seconds - moment.seconds
        hours = round(offset / 1800) * 1800
        if abs(offset - hours) <= _CLOCKS and abs(hours) <= 14 * 3600:
            zone = "" if not hours else f" (the log's clock is {hours / 3600:+g} h from the report's)"
            return f"at {text}, at the time of the failure{zone}"
    return None


def list_times(event: Event) -> list[str]:
    """When it was, as far as that is known."""
    return event.times or [time for time in (event.at, event.first_at) if time]
