"""When to evaluate, which probes an event affects, and for what reasons: a burst of events is one evaluation.

Pure: no clock here.

Every moment is in seconds of one clock that only goes forward.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from probes.kernel import events
from probes.kernel.events import KernelEvent
from probes.probe import Probe

SETTLE_LIMIT_FACTOR = 10  # times the quiet time: a link that flaps for ever is evaluated all the same
REST_FACTOR = 9  # pause after an evaluation, in times of its duration: a tenth of the time is spent at most
REST_SECONDS = 60.0  # longest pause of a kind after an evaluation that found a change
IDLE_REST_SECONDS = 300.0  # the same where it found none, again and again
REASON_LIMIT = 20  # listed for one evaluation

START, TIME, REQUESTED = "start", "time", "asked"  # reasons that are no event: always a full scan


ALWAYS_READ = ("kernel", "kernel_log")  # the time of the reading, and what the kernel wrote about it

_NIC = ("rdma", "rdma_netlink", "netdev", "ethtool", "optics", "dcb", "lldp")
_GPU = ("pci", "nvml", "limits")  # its device nodes too

AFFECTED_PROBES: dict[str, tuple[str, ...]] = {
    events.INTERFACE: _NIC,
    events.SOFTWARE_INTERFACE: (),  # veth and its kin come and go with every container; no rule is about them
    events.RDMA: ("pci", "modules", "limits", *_NIC),
    events.PCI: ("numa", "modules", *_GPU, *_NIC),
    events.GPU: ("modules", *_GPU),
    events.MODULE: ("modules", "services", *_GPU, *_NIC),
    # lines of the kernel's log
    "xid": ("pci", "nvml"),
    "sxid": ("pci", "nvml", "services"),
    "gpu_lost": ("pci", "nvml"),
    "gpu_init": ("pci", "nvml"),
    "driver": ("modules", "pci", "nvml"),
    "amd_ras": ("kfd",),
    "amd_fatal": ("pci", "kfd"),
    "amd_bad_pages": ("kfd",),
    "amd_reset": ("pci", "kfd"),
    "amd_reset_failed": ("pci", "kfd"),
    "amd_vram_lost": ("pci", "kfd"),
    "amd_init": ("pci", "kfd"),
    "xgmi": ("kfd",),
    "npu_heartbeat": ("pci", "npu"),
    "npu_fault": ("npu",),
    "neuron_hw": ("neuron_errors",),
    "aer": ("pci",),
    "dpc": ("pci", "nvml", *_NIC),
    "hotplug": ("pci", "nvml", *_NIC),
    "pcie_bandwidth": ("pci",),
    "mlx5": ("pci", *_NIC),
    "nic_firmware": ("pci", *_NIC),
    "link_down": _NIC,
    "link_up": _NIC,
    "peermem": ("modules",),
}


def is_relevant(event: KernelEvent) -> bool:
    """Whether it affects anything that is read. A kind that is not known may affect all of it."""
    return bool(AFFECTED_PROBES.get(event.kind, True))


def affected_probes(kinds: Iterable[str], catalogue: Sequence[Probe]) -> frozenset[str]:
    """The probes to run again, with their fallbacks. Empty where the events affect nothing that is read."""
    direct = {name for kind in kinds for name in AFFECTED_PROBES[kind]}
    if not direct:
        return frozenset()
    return with_fallbacks({*direct, *ALWAYS_READ}, catalogue)


def with_fallbacks(names: Collection[str], catalogue: Sequence[Probe]) -> frozenset[str]:
    """Those of the catalogue, and the probes that replace them where they fail."""
    return frozenset(probe.name for probe in catalogue if probe.name in names or probe.fallback_for in names)


class EventReason(NamedTuple):
    """Why it is evaluated: an event, and how often it came."""

    event: KernelEvent
    times: int = 1


class Batch(NamedTuple):
    """Events that are due for one evaluation."""

    full: bool
    kinds: frozenset[str]
    reasons: tuple[EventReason, ...]
    more: int  # reasons that are not listed


class Debouncer:
    """Collects events, and decides when they are evaluated."""

    def __init__(self, settle_seconds: float, every_seconds: float) -> None:
        self._settle_seconds = settle_seconds
        self._full_scan_seconds = every_seconds
        self._next_full = 0.0
        self._events: dict[str, dict[KernelEvent, int]] = {}  # by kind
        self._first_event: dict[str, float] = {}  # when the first of a kind came
        self._last_event = 0.0
        self._rest_seconds: dict[str, float] = {}
        self._resting_until: dict[str, float] = {}  # until when each kind rests
        self._unlisted: dict[str, int] = {}

    def add(self, events: Iterable[KernelEvent], now: float) -> None:
        """Take an event."""
        for event in events:
            if not is_relevant(event):
                continue
            waiting = self._events.setdefault(event.kind, {})
            self._first_event.setdefault(event.kind, now)
            self._last_event = now
            if event in waiting or len(waiting) < REASON_LIMIT:
                waiting[event] = waiting.get(event, 0) + 1
            else:
                self._unlisted[event.kind] = self._unlisted.get(event.kind, 0) + 1

    def next_due(self) -> float:
        """The moment of the next evaluation."""
        return min([self._next_full, *(self._due_of(kind) for kind in self._events)])

    def due_batch(self, now: float) -> Batch | None:
        """What is to be evaluated now; None: nothing yet. A full scan covers everything that waits."""
        if now >= self._next_full:
            why = KernelEvent(TIME, None, f"{self._full_scan_seconds:g} s since the last full scan", "clock")
            return self.full_batch(why, now)
        kinds = [kind for kind in self._events if now >= self._due_of(kind)]
        if not kinds:
            return None
        ready = [kind for kind in self._events if now >= self._resting_until.get(kind, now)]
        full = any(kind not in AFFECTED_PROBES for kind in ready)
        return self._make_batch(list(self._events) if full else ready, full, ())

    def full_batch(self, reason: KernelEvent, now: float) -> Batch:
        """A full scan for that reason, now."""
        self._next_full = now + self._full_scan_seconds
        return self._make_batch(list(self._events), True, (EventReason(reason),))

    def finish(self, batch: Batch, changed: bool, seconds: float, now: float) -> None:
        """An evaluation took that long. Where nothing changes again and again, the pauses get longer."""
        if batch.full:
            self._next_full = now + self._full_scan_seconds
        for kind in batch.kinds:
            rest = min(REST_FACTOR * seconds, REST_SECONDS)
            if not changed:
                lately = now - seconds - self._resting_until.get(kind, now) < IDLE_REST_SECONDS
                rest = min(
                    max(2 * self._rest_seconds.get(kind, 0.0) * lately, rest, self._settle_seconds), IDLE_REST_SECONDS
                )
            self._rest_seconds[kind], self._resting_until[kind] = rest, now + rest

    def _due_of(self, kind: str) -> float:
        quiet = min(
            self._last_event + self._settle_seconds,
            self._first_event[kind] + SETTLE_LIMIT_FACTOR * self._settle_seconds,
        )
        return max(quiet, self._resting_until.get(kind, quiet))

    def _make_batch(self, kinds: list[str], full: bool, first: tuple[EventReason, ...]) -> Batch:
        reasons = [EventReason(event, times) for kind in kinds for event, times in self._events.pop(kind).items()]
        more = sum(self._unlisted.pop(kind, 0) for kind in kinds) + max(len(reasons) - REASON_LIMIT, 0)
        for kind in kinds:
            del self._first_event[kind]
        return Batch(full, frozenset(kinds), (*first, *reasons[:REASON_LIMIT]), more)
