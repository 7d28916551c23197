"""What a join of one cause with one host's report looks at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from agent.job.candidate import PossibleCause
from agent.job.conclusion import Conclusion
from agent.model.gpu import Gpu
from agent.model.nic import Nic
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
