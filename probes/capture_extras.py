"""The pass after the probes of a capture: what a later version may ask, each group in a child of its own.

It is no probe of the report: what it finds goes into the recording alone, and never over what a probe was answered.
"""

from __future__ import annotations

from functools import partial

from probes.capture import extra_reader as extra
from probes.capture.extra_names import GROUPS, Group
from probes.host import kmsg as kernel_log
from probes.host.interface import Host
from probes.host.recording import Recording
from probes.probe import Probe, Reading
from probes.run import run_probes
from probes.turns import Progress

BOUND_SECONDS = 8.0  # of one group's child
KERNEL_LOG = "kernel log"


def record_extras(recording: Recording, host: Host, timeout_seconds: float, progress: Progress | None = None) -> None:
    """Add to a recording what stands in the allow-list. What could not be had is in `recording.missing`."""
    passes = [Probe(group.name, partial(_read, group), BOUND_SECONDS) for group in GROUPS]
    if host.live and kernel_log.PLACE not in recording.files | recording.refusals:  # the probe of it was left out
        passes.append(Probe(KERNEL_LOG, _kernel_log, BOUND_SECONDS))
    ran = run_probes(passes, host, timeout_seconds, record=True, progress=progress)
    if ran.recording is not None:
        recording.add(ran.recording)
    for outcome in ran.outcomes:
        if outcome.reason:
            recording.missing.append(f"{outcome.name}: {outcome.reason}")


def _read(group: Group, host: Host) -> Reading:
    return Reading((), (), extra.ask(host, group))


def _kernel_log(host: Host) -> Reading:
    host.read(kernel_log.PLACE)  # what it says is in the recording
    return Reading((), (kernel_log.PLACE,))
