"""One judging after the other: reads what was touched, keeps the rest with its time, and says what changed."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import msgspec

from agent.diagnose import ScanPlan, scan, utc_now
from agent.diff import diff, is_same_host
from agent.diff.change import Change
from agent.history.kept import carried
from agent.history.state import State, compared, remember
from agent.model.report import Report
from agent.watch.touched import touched, with_fallbacks
from probes.catalogue import probes
from probes.host.interface import Host
from probes.probe import Outcome

FINDINGS = "findings"
CAME_OR_WENT = ("new", "gone")
Remember = Callable[[Report, bool], Report]  # a report, whether all of it was read: what earlier runs know of it


class Judged(NamedTuple):
    """One judging: its report, the verdict before it, which probes were asked, and what changed."""

    report: Report
    was: str | None  # None: there is no earlier report
    read: list[str]
    changes: list[Change]
    notes: list[str]


class Guard:
    """When a signal may break into a judging: while probes run, and never while something is written."""

    def interruptible(self) -> AbstractContextManager[None]:
        """In here a signal to end is an exception."""
        return nullcontext()

    def whole(self) -> AbstractContextManager[None]:
        """In here, inside of that, it is not: it waits."""
        return nullcontext()


class Judge:
    """Holds what was read last, and the last report."""

    def __init__(
        self,
        host: Callable[[], Host],
        plan: ScanPlan,
        remember: Remember | None = None,
        earlier: Report | None = None,
        guard: Guard | None = None,
    ) -> None:
        """`host` opens it anew for each reading. `earlier`: a report of a former run, to begin with."""
        self._host = host
        self._plan = plan
        self._remember = remember or Memory()
        self._catalogue = probes()
        names = [probe.name for probe in self._catalogue]
        self._chosen = frozenset(plan.only or names) - frozenset(plan.skip)
        self._kept: dict[str, Outcome] = {}
        self._whole: Report | None = None
        self.last = earlier
        self._guard = guard or Guard()

    def asked(self, kinds: Collection[str]) -> frozenset[str]:
        """The probes that events of these kinds touch. None: nothing that is read here."""
        return touched(kinds, self._catalogue) & self._chosen

    def judge(self, names: Collection[str] | None = None) -> Judged:
        """Read these probes (None: all) and judge. Raises BadProfile; then everything is as it was."""
        whole = names is None or self._whole is None
        plan = self._plan._replace(history=lambda report: self._known(report, whole))
        read = self._chosen
        if names is not None and not whole:
            read = with_fallbacks(names, self._catalogue) & self._chosen
            plan = plan._replace(
                only=read, skip=(), preloaded={k: each for k, each in self._kept.items() if k not in read}
            )
        host = self._host()
        at = host.observed_at or utc_now()
        with self._guard.interruptible():
            seen = scan(host, plan)
        self._kept = {
            each.name: each if each.observed_at else each._replace(observed_at=at)
            for each in seen.outcomes
            if each.name in self._chosen
        }
        if whole:
            self._whole = seen.report
        before, self.last = self.last, seen.report
        return _compared(before, seen.report, [probe.name for probe in self._catalogue if probe.name in read])

    def _known(self, report: Report, whole: bool) -> Report:
        with self._guard.whole():
            known = self._remember(report, whole)
        return known if whole or self._whole is None else carried(self._whole, known)


class Memory:
    """What earlier runs know, where no state directory is given: the runs of this process."""

    def __init__(self) -> None:
        self._state: State | None = None

    def __call__(self, report: Report, whole: bool) -> Report:
        """The report with what is known; remembered, where all of it was read."""
        made = compared(self._state, report)
        if whole:
            self._state = remember(self._state, report)
        return made


def _compared(before: Report | None, report: Report, read: list[str]) -> Judged:
    """Findings that came or went stand first. Without an earlier report every finding has come."""
    first = before is None or not is_same_host(before, report)
    old = msgspec.structs.replace(report, findings=[], checks=[]) if first or before is None else before
    made = diff(old, report)
    changes = sorted(made.changes, key=lambda each: not (each.group == FINDINGS and each.kind in CAME_OR_WENT))
    return Judged(
        report=report,
        was=None if first or before is None else before.summary.verdict,
        read=read,
        changes=changes,
        notes=made.notes,
    )
