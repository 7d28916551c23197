"""The pass after the probes of a capture: what is in the allow-list for later versions, each group in a child of its
own.

It reads through the host interface like a probe: bounded, and nothing of a device that sleeps. It makes no facts; what
it finds goes into the recording alone, and never over what a probe was answered.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import partial

from probes.capture.extra_names import GROUPS, ExtraGroup
from probes.host import kmsg
from probes.host.interface import Host, ReadError
from probes.host.recording import Recording
from probes.host_reader import SLEEPING
from probes.probe import Probe, Reading
from probes.run import run_probes
from probes.scheduler import Progress
from probes.text import is_pci_address

SECONDS = 6.0  # of one group; a child that does not come so far is ended from outside
LIMIT_BYTES = 8 << 20  # of one group
FOLDERS_LIMIT = 4096  # of one row


def read_group(host: Host, group: ExtraGroup) -> str | None:
    """Ask for every file of a group. What was left out because time or room was used up, or None."""
    return _ExtraReader(host).all(group)


class _ExtraReader:
    def __init__(self, host: Host) -> None:
        self.host = host
        self.until = time.monotonic() + SECONDS
        self.left_bytes = LIMIT_BYTES
        self.asleep: dict[str, bool] = {}

    def all(self, group: ExtraGroup) -> str | None:
        for row in group.rows:
            for number, folder in enumerate(_folders(self.host, row.folder)):
                if number == FOLDERS_LIMIT:
                    return f"{row.folder}: only {FOLDERS_LIMIT} folders were read"
                if time.monotonic() > self.until:
                    return f"{row.folder} and what follows: not read within {SECONDS:g} s"
                if self.left_bytes < 0:
                    return f"{row.folder} and what follows: more than {LIMIT_BYTES >> 20} MiB"
                self._read(folder, row.names)
        return None

    def _read(self, folder: str, names: tuple[str, ...]) -> None:
        try:
            if self._sleeps(self.host.resolve(folder)):
                return
            if any("*" in name for name in names):
                names = tuple(n for n in self.host.listdir(folder) if any(fnmatchcase(n, pattern) for pattern in names))
            answers = self.host.attributes(folder, names)
        except ReadError:
            return
        self.left_bytes -= sum(len(answer) for answer in answers.values() if isinstance(answer, bytes))

    def _sleeps(self, real: str) -> bool:
        """Whether the PCI function that a folder belongs to is suspended: reported by the kernel, not by the device."""
        parts = real.split("/")
        last = next((i for i in range(len(parts) - 1, 0, -1) if is_pci_address(parts[i])), None)
        if last is None:
            return False
        function = "/".join(parts[: last + 1])
        if function not in self.asleep:
            self.asleep[function] = self._is_asleep(function)
        return self.asleep[function]

    def _is_asleep(self, function: str) -> bool:
        """A state that cannot be read is taken for sleep, unless the kernel keeps none."""
        try:
            states = self.host.attributes(function, ("power/runtime_status", "power_state"))
        except ReadError:
            return True
        words = [states.get(name, b"") for name in ("power/runtime_status", "power_state")]
        if any(isinstance(word, ReadError) for word in words):
            return True
        status, state = (word.decode("ascii", "replace").strip() for word in words if isinstance(word, bytes))
        return status in SLEEPING or state == "D3cold"


def _folders(host: Host, pattern: str) -> Iterator[str]:
    """The folders that a pattern names, in their order. A class folder holds links to its devices."""
    before, star, after = pattern.partition("*")
    if not star:
        yield pattern
        return
    folder, _, start = before.rpartition("/")
    end, slash, rest = after.partition("/")
    try:
        names = host.listdir(folder)
    except ReadError:
        return
    for name in names:
        if fnmatchcase(name, f"{start}*{end}"):
            yield from _folders(host, f"{folder}/{name}{slash}{rest}")


BOUND_SECONDS = 8.0  # of one group's child
KERNEL_LOG = "kernel log"


def record_extras(recording: Recording, host: Host, timeout_seconds: float, progress: Progress | None = None) -> None:
    """Add to a recording what is in the allow-list. What could not be had is in `recording.missing`."""
    passes = [Probe(group.name, partial(_read, group), BOUND_SECONDS) for group in GROUPS]
    if host.live and kmsg.PLACE not in recording.files | recording.refusals:  # the probe of it was left out
        passes.append(Probe(KERNEL_LOG, _kernel_log, BOUND_SECONDS))
    ran = run_probes(passes, host, timeout_seconds, record=True, progress=progress)
    if ran.recording is not None:
        recording.add(ran.recording)
    for outcome in ran.outcomes:
        if outcome.reason:
            recording.missing.append(f"{outcome.name}: {outcome.reason}")


def _read(group: ExtraGroup, host: Host) -> Reading:
    return Reading((), (), read_group(host, group))


def _kernel_log(host: Host) -> Reading:
    host.read(kmsg.PLACE)  # its content is in the recording
    return Reading((), (kmsg.PLACE,))
