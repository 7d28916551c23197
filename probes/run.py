"""Runs probes on a host: in children on a live host, one after the other in this process on any other."""

import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from probes.host.interface import Host, Refusal
from probes.host_reader import HostReader, list_saved, may_hold
from probes.named_tuple import NamedTuple
from probes.probe import Outcome, Probe, Status, outcome_of
from probes.scheduler import HUNG, Progress, Scheduler
from probes.time_limit import TimeIsUp, TimeLimit

if TYPE_CHECKING:
    from probes.host.recording import Recording
    from probes.sources.dump import SavedOutputs


class ProbeResults(NamedTuple):
    """The outcomes in the order of the probes, and what was asked and answered, where that was wanted."""

    outcomes: list[Outcome]
    recording: "Recording | None"


def run_probes(
    probes: Sequence[Probe],
    host: Host,
    timeout_seconds: float,
    record: bool = False,
    progress: Progress | None = None,
    began: float | None = None,
) -> ProbeResults:
    """Every probe has an outcome, whatever happens. `timeout_seconds` bounds the whole run, from when it `began`
    (time.monotonic(); None: now); after it, a live run takes at most the time to end its children (1.3 s). This process
    must have one thread only: it forks."""
    run = _scheduler_class(host)(probes, host, timeout_seconds, record, progress, began)
    run.run()
    return ProbeResults([run.outcomes[probe.name] for probe in probes], run.recording)


def _scheduler_class(host: Host) -> type[Scheduler]:
    if not host.live:
        return InProcessScheduler
    from probes.worker_pool import WorkerPool

    return WorkerPool


def is_outputs_alone(host: Host) -> bool:
    """Whether a source is saved outputs of commands and nothing else of a machine."""
    saved: SavedOutputs | None = getattr(host, "saved", None)
    return saved is not None and not saved.has_tree


def _holds_sysfs_alone(host: Host) -> bool:
    """Whether a source is a tree with nothing but /sys, as tests of other tools keep them."""
    return host.kind == "tree" and list_saved(host, "/") == frozenset({"sys"})


@lru_cache(maxsize=16)  # several probes ask
def _may_be_there(host: Host, path: str) -> bool:
    """Whether no listing rules it out; "*": in any of the folders."""
    above, _, name = path.rpartition("/")
    if not above.endswith("/*"):
        return HostReader(host).is_there(path)
    folders = list_saved(host, above[:-2])
    return folders is None or any(may_hold(host, f"{above[:-1]}{folder}", name) for folder in folders)


class InProcessScheduler(Scheduler):
    """A recorded host answers from memory and files: nothing can hang, and what takes long is interrupted."""

    def run(self) -> None:
        """See Scheduler.run."""
        host: Host = self.host
        if self.recording is not None:
            from probes.host.recording import RecordingHost

            tee = RecordingHost(host)
            host, self.recording = tee, tee.recording
        lost: Mapping[str, Refusal] = getattr(self.host, "lost", {})
        unanswered: Mapping[str, Refusal] = getattr(self.host, "unanswered", {})
        self._is_outputs_alone = is_outputs_alone(self.host)
        self._is_sysfs_alone = self.recording is None and _holds_sysfs_alone(self.host)
        while self.waiting:
            probe = next((p for p in self.waiting if self.is_turn(p)), self.waiting[0])
            self.waiting.remove(probe)
            self.show([probe.name])
            if time.monotonic() > self.deadline:
                self.settle_unreached(probe)
            elif probe.name in lost:
                refusal = lost[probe.name]
                self.settle(probe, Status(refusal.status), refusal.reason, hung=refusal.code == HUNG)
            elif not self.resolve_without_running(probe) and not self._has_nothing_saved(probe):
                try:
                    with TimeLimit(self.deadline):
                        outcome = outcome_of(probe, host)
                except TimeIsUp:
                    why = f"no answer within {self.timeout_seconds:g} s of the whole run"
                    self.settle(probe, Status.TIMED_OUT, why)
                    continue
                outcome = _as_recorded(outcome, unanswered.get(probe.name))
                self.keep(_as_far_as_saved(outcome, getattr(self.host, "cut_commands", {})))

    def _has_nothing_saved(self, probe: Probe) -> bool:
        """Whether the source is saved outputs alone, or /sys, and none of it is for this probe; then it has its
        outcome."""
        is_for_others = self._is_outputs_alone or (
            self._is_sysfs_alone
            and probe.in_sysfs is not None
            and not any(_may_be_there(self.host, path) for path in probe.in_sysfs)
        )
        if not is_for_others or probe.nothing_saved is None or self.has_evidence(probe):
            return False
        reason = probe.nothing_saved.replace("{kind}", "dump" if self._is_outputs_alone else self.host.kind)
        self.keep(Outcome(probe.name, Status.ABSENT, None, reason, (), 0.0))
        return True


def _as_far_as_saved(outcome: Outcome, cut_commands: Mapping[str, str]) -> Outcome:
    """Facts of outputs that all end early are not all facts, whatever the parser makes of them."""
    ends = [cut_commands[source] for source in outcome.sources if source in cut_commands]
    if outcome.status is not Status.OK or not ends or len(ends) < len(outcome.sources):
        return outcome
    reason = f"{outcome.sources[0]} may be cut: {ends[0]}"
    return outcome._replace(status=Status.PARTIAL, reason=reason, reason_code="list-cut")


def _as_recorded(outcome: Outcome, why: Refusal | None) -> Outcome:
    """A probe that finds no facts in a capture has none for the reason that it had on the live host."""
    if why is None or outcome.facts is not None:
        return outcome
    return outcome._replace(status=Status(why.status), reason=why.reason)
