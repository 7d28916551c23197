"""What a rule gets: the body of a report as data, with the look-ups that rules share.

No probe, file, clock or subprocess is reachable from here: judging a report again gives the same answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import cached_property
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from agent.model.gpu import Gpu
from agent.model.nic import Netdev, Nic
from agent.model.node import Event, Node, Platform, Software
from agent.model.pci import PciFunction
from agent.model.profile import Profile
from agent.model.reasons import NO_EARLIER_SAMPLE, Reason, Settle, UnknownCode, list_commands
from agent.model.report import CountersWindow, History, ProbeRun
from agent.model.topology import Path, Topology
from agent.rules.pages import Threshold

T = TypeVar("T")
_ACCELERATORS = ("0x0302", "0x1200")  # 3D controllers, processing accelerators
_HOST_BRIDGE = "0x0600"
# Kernel modules that drive accelerators and little else, by the PCI vendor of these
_DRIVERS = {
    "nvidia": "0x10de",
    "amdgpu": "0x1002",
    "habanalabs": "0x1da3",
    "neuron": "0x1d0f",
    "drv_pcie_host": "0x19e5",
}
# How a run ended that has no facts, nearest to an answer first
_NEAREST: Mapping[str, UnknownCode] = {
    "denied": "evidence-denied",
    "timed_out": "evidence-timed-out",
    "failed": "evidence-failed",
    "skipped": "evidence-skipped",
    "partial": "evidence-failed",  # of a source of which a part could not be read
}
SETTLE_SECONDS = 900.0  # after boot; the shortest that peers use (OCI waits 30 min, gpud 5)
_CLOCK_SLACK_SECONDS = 3600.0  # saved outputs: the uptime is of another minute than the rest


class Silence(msgspec.Struct, frozen=True):
    """Findings of one rule that the operator acknowledged."""

    rule: str
    reason: str
    device: str | None = None  # an id, a label or a fingerprint; None: all
    until: str | None = None  # the last day, "2026-03-31"
    ticket: str | None = None
    all: bool = False  # also what they explain
    field: str | None = None  # of a part that differs from its peers; None: any


class Settings(msgspec.Struct, frozen=True):
    """What the operator declared: rules switched off, thresholds, facts, silences. Each is a line of the report."""

    disabled: frozenset[str] = frozenset()
    thresholds: Mapping[str, float] = MappingProxyType({})
    facts: Mapping[str, str | bool | int | float] = MappingProxyType({})
    silences: tuple[Silence, ...] = ()
    free_fields: frozenset[str] = frozenset()  # that are not compared among peers


class RuleContext(msgspec.Struct, frozen=True, dict=True):
    """One node to be judged."""

    node: Node
    platform: Platform
    probes: Mapping[str, ProbeRun]
    providers: Mapping[str, tuple[str, ...]]  # names of probes by the subject that their facts are about
    software: Software
    events: tuple[Event, ...]  # of this boot
    topology: Topology  # its nics are those of the host
    earlier_events: tuple[Event, ...] = ()  # of boots before this one
    accelerator_nics: tuple[Nic, ...] = ()  # network ports inside accelerators
    settings: Settings = Settings()
    window: CountersWindow | None = None
    history: History | None = None
    profile: Profile | None = None
    observed_at: str | None = None  # RFC 3339; when the node was as it is described
    recorded: bool = False  # not a live host: more evidence is saved there, not read here
    lists_whole: bool = False  # assumed, of a fragment: what no list has does not exist
    assumed_window: str = ""  # of a fragment: when its window is assumed to have begun, in words

    @cached_property
    def functions(self) -> Mapping[str, PciFunction]:
        """PCI functions by id."""
        return {f.id: f for f in self.topology.pci}

    @cached_property
    def gpu_by_pci(self) -> Mapping[str, Gpu]:
        """GPUs by the id of their PCI function; their own is that where the source does not show the bus."""
        return {g.pci or g.id: g for g in self.topology.gpus}

    @cached_property
    def gpus(self) -> Mapping[str, Gpu]:
        """GPUs by id."""
        return {g.id: g for g in self.topology.gpus}

    @cached_property
    def nics(self) -> Mapping[str, Nic]:
        """NICs by id."""
        return {n.id: n for n in self.topology.nics}

    @cached_property
    def nic_by_pci(self) -> Mapping[str, Nic]:
        """NICs by the id of their PCI function; a sub-function is not what its parent's function is."""
        return {n.id: n for n in self.topology.nics if n.id == n.pci}

    @cached_property
    def netdevs(self) -> Mapping[str, Netdev]:
        """Interfaces by name."""
        return {n.label: n for n in self.topology.netdevs}

    @cached_property
    def rails(self) -> tuple[Nic, ...]:
        """NICs that carry GPU traffic."""
        return tuple(n for n in self.topology.nics if n.role == "rail")

    @cached_property
    def maybe_rails(self) -> tuple[Nic, ...]:
        """NICs that GPUs could use, and of which nothing shows what they are for."""
        could = (n for n in self.topology.nics if n.role == "unknown" and n.state != "vfio" and not n.virtual_function)
        return tuple(could) if self.topology.gpus else ()

    @cached_property
    def why_no_rail_known(self) -> Reason | None:
        """Why it is not known which NICs are rails, where none is one; None where it is known."""
        if self.rails or not self.maybe_rails:
            return None
        evidence = "; ".join(self.maybe_rails[0].role_evidence) or "no evidence"
        return Reason("rails-not-known", why=evidence)

    @cached_property
    def paths_of(self) -> Mapping[str, tuple[Path, ...]]:
        """Paths by either end."""
        paths_by_end: dict[str, list[Path]] = {}
        for path in self.topology.paths:
            paths_by_end.setdefault(path.a, []).append(path)
            paths_by_end.setdefault(path.b, []).append(path)
        return {end: tuple(paths) for end, paths in paths_by_end.items()}

    @cached_property
    def memo(self) -> dict[str, Any]:
        """What rules of one family work out once for all of them, by a name of the family's."""
        return {}

    @cached_property
    def above(self) -> dict[str, tuple[PciFunction, ...]]:
        """What `ancestors` found so far."""
        return {}

    def once(self, make: Callable[[RuleContext], Iterable[T]]) -> tuple[T, ...]:
        """What a function makes of this context: many rules ask, and it is made for the first."""
        key = f"{make.__module__}.{make.__qualname__}"
        if key not in self.memo:
            self.memo[key] = tuple(make(self))
        values: tuple[T, ...] = self.memo[key]
        return values

    @property
    def virtual_machine(self) -> bool:
        """A guest: links, IOMMU and tree are what the hypervisor shows."""
        return self.node.virtualization is not None

    @cached_property
    def cpu_nodes(self) -> tuple[int, ...]:
        """NUMA nodes that have CPUs: memory-only ones are GPU or CXL memory."""
        return tuple(n.id for n in self.node.numa_nodes if n.cpus)

    @property
    def why_settling(self) -> Reason | None:
        """Why links may still come up; None where the host has run long enough, or where no source shows how long."""
        up = self.node.uptime_seconds
        if up is None or up >= SETTLE_SECONDS:
            return None
        text = f"the host started {up / 60:.0f} min ago: links, drivers and counters still settle"
        return Reason("still-settling", detail=text)

    @property
    def why_not_counted(self) -> Reason | None:
        """Why no counter can be compared with an earlier sample; None where there is one."""
        if self.assumed_window:
            return None
        if self.window is None or not self.window.seconds:
            why = self.window.reset_reason if self.window else None
            return Reason("no-second-sample", why=why or NO_EARLIER_SAMPLE)
        return self.why_settling

    def counter_delta(self, subject: str, counter: str, now: Mapping[str, int]) -> int | None:
        """By how much a counter moved over the window; None where that is not known. `now`: what it is."""
        if self.window is None or counter not in now:
            return None
        gaps = self.window.not_compared.get(subject, {})
        if "*" in gaps or counter in gaps:
            return None
        return self.window.moved.get(subject, {}).get(counter, 0)

    def why_no_delta(self, subject: str, counter: str) -> Reason:
        """Why `counter_delta` has no answer."""
        gaps = self.window.not_compared.get(subject, {}) if self.window else {}
        gap = gaps.get(counter) or gaps.get("*")
        if gap is None and self.why_not_counted:
            return self.why_not_counted
        return Reason("not-compared", why=gap or f"{counter} is not among its counters")

    def seconds_since(self, at: str | None) -> float | None:
        """Seconds from a line of the kernel log to the observation. None: not known, as of a line that is dated before
        this boot: the clock was wrong when it was written."""
        now, then, up = parse_time(self.observed_at), parse_time(at), self.node.uptime_seconds
        if now is None or then is None:
            return None
        seconds = (now - then).total_seconds()
        return None if up is not None and seconds > up + _CLOCK_SLACK_SECONDS else seconds

    def threshold(self, limit: Threshold) -> float:
        """A limit as the operator set it, else its default."""
        return self.settings.thresholds.get(limit.name, limit.value)

    def ancestors(self, function: PciFunction) -> tuple[PciFunction, ...]:
        """Bridges above a function, nearest first. Bounded: a hostile report may hold a circle."""
        try:
            return self.above[function.id]
        except KeyError:
            return self.above.setdefault(function.id, tuple(self._ancestors(function)))

    def _ancestors(self, function: PciFunction) -> list[PciFunction]:
        above: list[PciFunction] = []
        seen = {function.id}
        while (parent := self.functions.get(function.parent or "")) and parent.id not in seen:
            seen.add(parent.id)
            above.append(parent)
            function = parent
        return above

    @cached_property
    def why_bus_unread(self) -> Reason | None:
        """Why a device that is not among the PCI functions may be there all the same; None where all were seen."""
        if self.lists_whole:
            return None
        failure = self.why_probe_failed("pci")
        if failure:
            return failure
        functions = self.topology.pci
        nameless = sum(f.class_code is None and f.state != "changed_during_scan" for f in functions)
        if nameless:
            return Reason(
                "list-incomplete", detail=f"the class of {nameless} of {len(functions)} PCI functions is unknown"
            )
        listed_whole = any((f.class_code or "").startswith(_HOST_BRIDGE) for f in functions)
        if self.why_probe_failed("pci_sysfs") and not listed_whole:
            return Reason("list-incomplete", detail="the PCI list is partial: it has no host bridge")
        return self._why_list_cut or self.why_lists_differ

    @cached_property
    def _why_list_cut(self) -> Reason | None:
        cut = self.why_partial("pci")
        return cut if cut and cut.code == "list-incomplete" else None

    @cached_property
    def why_lists_differ(self) -> Reason | None:
        """Why a saved PCI list and the driver's list may be of two hosts or times; None where they agree. A list that
        is known to be cut misses what comes before its first address or after its last, and nothing between them."""
        # an id is the address that the driver reported, or a UUID, or an index
        missing_ids = [gpu.id for gpu in self.topology.gpus if gpu.pci is None and ":" in gpu.id]
        if self._why_list_cut:
            listed = [function.id for function in self.topology.pci]
            missing_ids = [address for address in missing_ids if listed and min(listed) < address < max(listed)]
        unlisted = len(missing_ids)
        if self.why_probe_failed("pci_sysfs") and unlisted:  # sysfs is whole: there it left the bus
            missing = f"{unlisted} GPUs of the driver are" if unlisted > 1 else "a GPU of the driver is"
            return Reason("sources-disagree", detail=f"the PCI list is incomplete: {missing} missing from it")
        return None

    @cached_property
    def devices_unread(self) -> Reason | None:
        """Why there may be accelerators or RDMA devices that are not listed; None where the list is whole."""
        if self.why_bus_unread:
            return self.why_bus_unread
        listed = {*self.gpus, *self.gpu_by_pci}
        others = [f for f in self.topology.pci if self._may_be_accelerator(f) and f.id not in listed]
        if not others:
            return self.why_gpu_driver_idle
        return Reason("unsupported-device", devices=", ".join(f.id for f in others[:4]))

    @cached_property
    def why_gpu_driver_idle(self) -> Reason | None:
        """Why a node without an accelerator may have lost its own: the driver of one is loaded and drives nothing.

        None where there is none, in a guest, or where it is not known what drives a function of that vendor.
        """
        if self.topology.gpus or self.virtual_machine:
            return None
        loaded = [module.name for module in self.software.modules if module.name in _DRIVERS]
        used = {function.driver for function in self.topology.pci}
        unknown = {function.vendor for function in self.topology.pci if function.driver is None}
        idle = [name for name in loaded if name not in used and _DRIVERS[name] not in unknown]
        return Reason("driver-without-device", drivers=", ".join(idle)) if idle else None

    def _may_be_accelerator(self, function: PciFunction) -> bool:
        """By its class; on bare metal one without a port above it is part of the CPU, as the NPUs of laptops are."""
        by_class = (function.class_code or "")[:6] in _ACCELERATORS
        return by_class and (function.parent is not None or self.virtual_machine)

    @cached_property
    def has_devices(self) -> bool:
        """Whether an accelerator or RDMA device is here, or was in the last run's inventory."""
        topology = self.topology
        return bool(topology.gpus or topology.nics or topology.nvswitches or (self.history and self.history.inventory))

    def why_probe_failed(self, *needs: str) -> Reason | None:
        """Why the first subject has no facts; None where all have some. "a|b" is met by either."""
        for need in needs:
            if need not in self._failures:
                self._failures[need] = self._find_failure(need)
            if (why := self._failures[need]) is not None:
                return why
        return None

    @cached_property
    def _failures(self) -> dict[str, Reason | None]:
        """What `why_probe_failed` found so far, by subject: all rules of a kind ask the same."""
        return {}

    def _find_failure(self, need: str) -> Reason | None:
        names = [name for subject in need.split("|") for name in self.providers[subject]]
        runs = [self.probes[name] for name in names if name in self.probes]
        # attributes of a few functions are no list of them: what needs all that sysfs has cannot decide
        unread = ("log-unread", "list-cut") if need == "pci_sysfs" else ("log-unread",)
        if any(run.status in ("ok", "partial") and run.reason_code not in unread for run in runs):
            return None
        runs = [run for run in runs if run.reason_code != "no-device"] or runs
        return self._describe_failure(need, runs) if runs else Reason("evidence-not-run", probes="|".join(names))

    def _describe_failure(self, need: str, runs: list[ProbeRun]) -> Reason:
        """The code is that of the run that came nearest to an answer."""
        reasons: dict[str, list[str]] = {}
        for run in runs:
            reasons.setdefault(f"{run.status}{': ' + run.reason if run.reason else ''}", []).append(run.name)
        text = "; ".join(f"{', '.join(names)}: {why}" for why, names in reasons.items())
        statuses = {run.status for run in runs}
        code: UnknownCode = next((_NEAREST[status] for status in _NEAREST if status in statuses), "evidence-absent")
        settles = self.commands_for((need,)) if code == "evidence-absent" else ()
        return Reason(code, *settles, subject=need, why=text)

    def commands_for(self, needs: Iterable[str]) -> tuple[Settle, ...]:
        """What to save for the facts of these subjects; nothing on a live host, where they were asked for."""
        if not self.recorded:
            return ()
        return tuple(dict.fromkeys(settle for need in needs for settle in list_commands(need, self._maker)))

    @property
    def _maker(self) -> str | None:
        """Of the accelerators; None: not known."""
        return next((gpu.vendor for gpu in self.topology.gpus), None)

    def why_partial(self, subject: str) -> Reason | None:
        """Why things of a subject may be there that no probe reported; None where one probe has all of them."""
        runs = [self.probes[name] for name in self.providers[subject] if name in self.probes]
        if any(run.status == "ok" for run in runs):
            return None
        partial = [run for run in runs if run.status == "partial"]
        if not partial:
            return None
        run = next((run for run in partial if run.reason_code != "list-cut"), partial[0])
        code: UnknownCode = "list-incomplete" if run.reason_code == "list-cut" else "evidence-partial"
        return Reason(code, detail=f"{run.name}: {run.reason or run.status}")


def parse_time(text: str | None) -> datetime | None:
    """A time of a report (RFC 3339, which states its zone); None where there is none, or it is not one."""
    try:
        moment = datetime.fromisoformat((text or "").replace("Z", "+00:00"))
    except ValueError:
        return None
    return moment if moment.tzinfo else None


def read_since_boot(text: str | None) -> float | None:
    """Seconds since the kernel started, of a line of a log that does not state when it did; None: not such a time.

    >>> read_since_boot("+12.345 s"), read_since_boot("2026-05-01T12:00:00Z"), read_since_boot(None)
    (12.345, None, None)
    """
    match = re.fullmatch(r"\+([0-9]{1,12}(?:\.[0-9]{1,9})?) s", text or "")
    return float(match[1]) if match else None
