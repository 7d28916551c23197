"""What every way of running probes shares: their outcomes, and whose turn it is."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from probes.host.interface import Host, ReadError, Refusal
from probes.probe import Gap, Outcome, Probe, Status

if TYPE_CHECKING:
    from probes.host.recording import Recording

PROGRESS_SECONDS = 1.0  # a run shorter than this reports nothing
_BUS = "pci"  # the probe that lists it
HUNG = "HUNG"  # the code of a refusal in a capture
ANSWERED = (Status.OK, Status.PARTIAL)
Progress = Callable[[str], None]


class Scheduler(ABC):
    """What both ways of running share: the outcomes, and which probe stands in for which."""

    def __init__(
        self,
        probes: Sequence[Probe],
        host: Host,
        timeout_seconds: float,
        record: bool,
        progress: Progress | None,
        began: float | None = None,
    ) -> None:
        self.probes = probes
        self.host = host
        self.record = record
        self.timeout_seconds = timeout_seconds
        self.started = time.monotonic()
        self.deadline = (self.started if began is None else began) + timeout_seconds
        self.outcomes: dict[str, Outcome] = {}
        self.waiting = list(probes)
        self.recording = _new_recording(host) if record else None
        self._names = {probe.name for probe in probes}
        self._on_bus: set[tuple[str | None, str]] | None = None  # vendors and classes
        self._progress = progress
        self._shown = ""

    @abstractmethod
    def run(self) -> None:
        """Give every probe an outcome."""

    def settle(self, probe: Probe, status: Status, reason: str, seconds: float = 0.0, hung: bool = False) -> None:
        """An outcome that the probe itself did not give."""
        code = reason.code if isinstance(reason, Gap) else None
        self.outcomes[probe.name] = Outcome(probe.name, status, None, str(reason), (), seconds, hung, reason_code=code)
        if self.recording is not None and status in (Status.TIMED_OUT, Status.FAILED):
            self.recording.lost[probe.name] = Refusal(status.value, reason, HUNG if hung else None)

    def keep(self, outcome: Outcome) -> None:
        """The outcome that a probe gave; a recording keeps why it has no facts."""
        self.outcomes[outcome.name] = outcome
        if self.recording is not None and outcome.facts is None:
            self.recording.unanswered[outcome.name] = Refusal(outcome.status.value, outcome.reason or "")

    def settle_unreached(self, probe: Probe) -> None:
        """The outcome of a probe for which there was no time."""
        self.settle(probe, Status.TIMED_OUT, f"not reached within the {self.timeout_seconds:g} s of the whole run")

    def is_turn(self, probe: Probe) -> bool:
        """Whether it may run now: a fall-back waits for what it falls back for, a vendor's probe for the bus."""
        first = probe.fallback_for or (_BUS if probe.devices else None)
        return first is None or first not in self._names or first in self.outcomes

    def resolve_without_running(self, probe: Probe) -> bool:
        """Whether the probe that it falls back for has answered, or the bus has no device of its; then it has its
        outcome."""
        if probe.devices and not self.has_evidence(probe) and self._has_no_device(probe):
            vendors = ", ".join(sorted({vendor for vendor, _ in probe.devices if vendor}))
            kind = f"accelerator of PCI vendor {vendors}" if vendors else f"device of PCI class {probe.devices[0][1]}"
            self.settle(probe, Status.ABSENT, Gap("no-device", f"no {kind}"))
            return True
        first = self.outcomes.get(probe.fallback_for or "")
        if first is None or first.status not in ANSWERED or self.has_evidence(probe):
            return False
        self.settle(probe, Status.SKIPPED, f"{first.name} answered")
        return True

    def _has_no_device(self, probe: Probe) -> bool:
        """Whether the bus was read and shows none of the devices that it speaks for."""
        bus = self.outcomes.get(_BUS)
        if bus is None or bus.facts is None:
            return False
        if self._on_bus is None:
            self._on_bus = {(function.vendor, (function.class_code or "")[:6]) for function in bus.facts.functions}
        return not any(
            vendor is None or (of in ("", vendor) and code.startswith(kind))
            for vendor, code in self._on_bus
            for of, kind in probe.devices
        )

    def has_evidence(self, probe: Probe) -> bool:
        """Whether a recorded host holds what this probe reads, so that it shows more at no cost."""
        if self.host.live or probe.evidence is None:
            return False
        try:
            return probe.evidence(self.host)
        except ReadError:
            return False

    def show(self, running: Sequence[str]) -> None:
        """Report how far it is."""
        if not running:
            return
        text = f"{len(self.outcomes)} of {len(self.probes)} probes; asking {', '.join(running)}"
        if self._progress and text != self._shown and time.monotonic() - self.started > PROGRESS_SECONDS:
            self._shown = text
            self._progress(text)


def _new_recording(host: Host) -> Recording:
    from probes.host.recording import Recording  # lazy: most runs record nothing

    return Recording(observed_at=host.observed_at, source_kind=host.kind)
