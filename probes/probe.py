"""What a probe is, and what it answers: facts, or the reason why there are none.

A probe is one function that asks a `Host` and returns a `Reading`. It never judges. `outcome_of` runs one
probe: times it, names the reason of a failure, and lets no failure out.
"""

import time
from collections.abc import Callable
from enum import Enum
from importlib import import_module
from typing import Any, Literal

from probes.host.interface import Host, ReadError
from probes.named_tuple import NamedTuple


class Status(str, Enum):
    """How a probe ended. The words of the report's `probes[].status`."""

    OK = "ok"
    PARTIAL = "partial"  # facts, and a reason why they are not all
    ABSENT = "absent"  # the source does not hold what this probe reads
    DENIED = "denied"  # it is there, and needs more privilege
    TIMED_OUT = "timed_out"
    FAILED = "failed"
    SKIPPED = "skipped"  # not asked, on purpose: the reason states why


GapCode = Literal[
    "no-device",  # the bus has none of what the probe is for
    "list-cut",  # a saved list ends within an entry, or is a part of what its command printed
    "needs-root",
    "left-out",  # by an option of the run
    "log-unread",  # a kernel log that the source holds could not be read whole
    "service-log-unread",  # the same of a log of a service
]


class Gap(str):
    """A text about what is missing, with a code to decide by: texts may be reworded."""

    __slots__ = ("code",)
    code: GapCode

    def __new__(cls, code: GapCode, text: str) -> "Gap":
        """A text and its code."""
        made = str.__new__(cls, text)
        made.code = code
        return made


class Reading(NamedTuple):
    """The facts of one probe, where they came from, and what is missing from them."""

    facts: Any
    sources: tuple[str, ...]  # files and commands that a person can repeat
    missing: Gap | str | None = None  # None: whole; else why not, and what would make it whole


class Outcome(NamedTuple):
    """One probe's answer. `facts` is None exactly where nothing could be read; `reason` then states why."""

    name: str
    status: Status
    facts: Any
    reason: str | None
    sources: tuple[str, ...]
    seconds: float
    hung: bool = False  # its process could not be killed and was left behind, now or by an earlier run
    observed_at: str | None = None  # RFC 3339, where it was kept from an earlier reading
    reason_code: GapCode | None = None  # of a reason that others decide by


class Skipped(Exception):
    """A probe leaves on purpose, before it has touched anything: the message states why."""


class ModuleReader:
    """Reads by a function of a module that is imported for it: most sources have nothing for most probes. `require`:
    raises Absent or Skipped before the import where the host has nothing for it."""

    def __init__(self, module: str, function: str = "read", require: Callable[[Host], None] | None = None) -> None:
        self.module = module
        self.function = function
        self.require = require

    def __call__(self, host: Host) -> Reading:
        """See Probe.read."""
        if self.require:
            self.require(host)
        reading: Reading = getattr(import_module(self.module), self.function)(host)
        return reading


class Probe(NamedTuple):
    """One line of the catalogue.

    `fallback_for`: on a live host it runs only where that probe did not answer; on a recorded source it runs
    wherever the evidence is: `evidence` states whether a host holds what this probe reads, without asking a device.
    `bound_seconds`: how long its child may take before it is left behind.
    `gives`: the subjects that its facts are about, where its name is not the only one: rules need subjects.
    `devices`: PCI vendor ("": any) and class ("0x1002", "0x12") of what it speaks for; where the bus was read and has
    none of them it does not run, and nothing of it is imported.
    `loads_library`: it loads a vendor's library: on a live host its child runs no other probe after it.
    `nothing_saved`: what it answers of saved outputs among which is none of `evidence`; nothing of it is imported then.
    "{kind}" in it stands for the source. `in_sysfs`: what it reads below /sys: of a tree that holds nothing but /sys,
    and none of these, it answers the same. None: it is run.
    """

    name: str
    read: Callable[[Host], Reading]
    bound_seconds: float = 10.0
    fallback_for: str | None = None
    evidence: Callable[[Host], bool] | None = None
    gives: tuple[str, ...] = ()
    devices: tuple[tuple[str, str], ...] = ()
    loads_library: bool = False
    nothing_saved: str | None = None
    in_sysfs: tuple[str, ...] | None = None


def outcome_of(probe: Probe, host: Host) -> Outcome:
    """Run one probe in this process and never raise: a broken probe must not take the report with it."""
    started = time.monotonic()

    def ended(status: Status, reason: str | None, reading: Reading | None = None) -> Outcome:
        facts, sources = (reading.facts, reading.sources) if reading else (None, ())
        code, text = (reason.code, str(reason)) if isinstance(reason, Gap) else (None, reason)
        seconds = round(time.monotonic() - started, 3)
        return Outcome(probe.name, status, facts, text, sources, seconds, reason_code=code)

    try:
        reading = probe.read(host)
    except Skipped as why:
        return ended(Status.SKIPPED, str(why))
    except ReadError as why:
        return ended(Status(why.status), why.reason)
    except Exception as bug:  # noqa: BLE001 - the outermost wall: one broken probe must not take the others along
        import traceback  # lazy: it reads source files, and imports what does

        place = traceback.extract_tb(bug.__traceback__)[-1]
        return ended(Status.FAILED, f"{type(bug).__name__} at {place.name}:{place.lineno}: {bug}"[:300])
    return ended(Status.PARTIAL if reading.missing else Status.OK, reading.missing, reading)
