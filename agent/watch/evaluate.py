"""One evaluation after another: runs the affected probes, keeps the other outcomes, lists the changes."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

from msgspec.structs import replace

from agent.diagnose import ScanPlan, scan, utc_now
from agent.diff import diff, is_same_host
from agent.diff.ledger import Change
from agent.history.state import HostState, add_history, update_state
from agent.history.window import carry_window
from agent.model.report import Report
from agent.watch.debounce import affected_probes, with_fallbacks
from probes.catalogue import probes
from probes.host.interface import Host
from probes.probe import Outcome

FINDINGS = "findings"
NEW_OR_GONE = ("new", "gone")
MINOR_GROUPS = ("counters", "evidence")  # of changes: a counter that grows is no change of the machine
AddHistory = Callable[[Report, bool], Report]  # a report, whether all of it was read: adds what earlier runs left of it


class Evaluation(NamedTuple):
    """One evaluation: its report, the verdict before it, which probes ran, and what changed."""

    report: Report
    verdict_before: str | None  # None: there is no earlier report
    read: list[str]
    changes: list[Change]
    notes: list[str]


class SignalGuard:
    """When a signal may interrupt an evaluation: while probes run, and never while something is written."""

    def interruptible(self) -> AbstractContextManager[None]:
        """Within it a signal to end raises an exception."""
        return nullcontext()

    def uninterruptible(self) -> AbstractContextManager[None]:
        """Within `interruptible`: a signal waits until the end of this block."""
        return nullcontext()


class Evaluator:
    """Holds what was read last, and the last report."""

    def __init__(
        self,
        host: Callable[[], Host],
        plan: ScanPlan,
        remember: AddHistory | None = None,
        earlier: Report | None = None,
        guard: SignalGuard | None = None,
    ) -> None:
        """`host` opens it again for each reading. `earlier`: a report of a former run, to begin with."""
        self._host = host
        self._plan = plan
        self._history = remember or ProcessHistory()
        self._catalogue = probes()
        names = [probe.name for probe in self._catalogue]
        self._selected = frozenset(plan.only or names) - frozenset(plan.skip)
        self._outcomes: dict[str, Outcome] = {}
        self._full_report: Report | None = None
        self.last = earlier
        self._signal_guard = guard or SignalGuard()

    def affected_probes(self, kinds: Collection[str]) -> frozenset[str]:
        """The probes that events of these kinds affect. Empty: nothing that is read here."""
        return affected_probes(kinds, self._catalogue) & self._selected

    def evaluate(self, names: Collection[str] | None = None) -> Evaluation:
        """Run these probes (None: all) and evaluate. Raises BadProfile; then everything is as it was."""
        full = names is None or self._full_report is None
        plan = replace(self._plan, history=lambda report: self._add_history(report, full))
        read = self._selected
        if names is not None and not full:
            read = with_fallbacks(names, self._catalogue) & self._selected
            plan = replace(
                plan,
                only=read,
                skip=(),
                preloaded={name: outcome for name, outcome in self._outcomes.items() if name not in read},
            )
        host = self._host()
        read_at = host.observed_at or utc_now()
        with self._signal_guard.interruptible():
            result = scan(host, plan)
        self._outcomes = {
            outcome.name: outcome if outcome.observed_at else outcome._replace(observed_at=read_at)
            for outcome in result.outcomes
            if outcome.name in self._selected
        }
        if full:
            self._full_report = result.report
        before, self.last = self.last, result.report
        return _compare(before, result.report, [probe.name for probe in self._catalogue if probe.name in read])

    def _add_history(self, report: Report, full: bool) -> Report:
        with self._signal_guard.uninterruptible():
            report = self._history(report, full)
        return report if full or self._full_report is None else carry_window(self._full_report, report)


class ProcessHistory:
    """What earlier runs left, where no state directory is given: the runs of this process."""

    def __init__(self) -> None:
        self._state: HostState | None = None

    def __call__(self, report: Report, full: bool) -> Report:
        """The report with what earlier runs left; kept for the next one where all of it was read."""
        compared_report = add_history(self._state, report)
        if full:
            self._state = update_state(self._state, report)
        return compared_report


def _compare(before: Report | None, report: Report, read: list[str]) -> Evaluation:
    """New and gone findings come first. Without an earlier report every finding is new."""
    first = before is None or not is_same_host(before, report)
    old = replace(report, findings=[], checks=[]) if first or before is None else before
    comparison = diff(old, report)
    changes = sorted(comparison.changes, key=lambda item: not (item.group == FINDINGS and item.kind in NEW_OR_GONE))
    return Evaluation(
        report=report,
        verdict_before=None if first or before is None else before.summary.verdict,
        read=read,
        changes=changes,
        notes=comparison.notes,
    )
