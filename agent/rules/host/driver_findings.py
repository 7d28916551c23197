"""What the sentences of drivers in the kernel log come to on this host: why a device is not driven, or fails.

The sentences are rows of `probes/kernel/sentences.py`, their meanings those of `meanings/driver-reports-failure.md`.
The sentence decides the cause and its steps: rules about the hardware fold into it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from agent.model.finding import SEVERITIES
from agent.model.gpu import Gpu
from agent.model.nic import Nic
from agent.model.node import Event
from agent.rules.context import RuleContext
from agent.rules.devices import (
    about_function,
    about_gpu,
    device_label,
    list_log_words,
    one_level_lower,
    quote_log,
    severity_by_role,
)
from agent.rules.host.meaning import Meaning, fill_forms, read_meanings
from agent.rules.node_wide import merge_if_on_all
from agent.rules.rule import NODE, Fail
from agent.rules.wording import count_of, join_labels

MEANINGS = read_meanings("driver-reports-failure")
_ORDER = list(MEANINGS)  # of several sentences about one device the first is the cause
_ON_PURPOSE = "vfio"
_UNLESS_GEAR = ("inaccessible", "iommu-fault", "reset-unanswered")  # every device has them, also those of no job
_SIZE, _LARGE = re.compile(r"\[mem size 0x([0-9a-f]{1,16})"), 1 << 30
_OF_GUESTS = ("region-taken", "reserved-memory")  # what vfio-pci states of a device that is given to a guest
_AUXILIARY = ("rdma-probe", "interface-probe")
_DRIVERS_OF_JOBS = ("nvidia", "amdgpu", "habanalabs", "neuron", "mlx5_core")
_OF_INTEL = "intel-"  # a GPU of that maker is a function of the PCI list alone
_MISMATCH = "version mismatch"  # NVML's error 18, and nvidia-smi's sentence
_LOCKUP, _OF_RCU = "cpu-lockup", "rcu"
_PASSING = ("cpu-lockup", "drive-failed", "interrupt-lost", "out-of-memory", "machine-check", "bus-error")
_LONG_AGO_SECONDS = 86_400.0
_FIRMWARE_KINDS = ("mlx5", "nic_firmware")
_EXPLAINED_BY = {"gsp-silent": ("xid", "gpu_lost", "gpu_init"), "queue-stalled": _FIRMWARE_KINDS}
_OF_CLOUDS = ("cloud-nic-silent", "cloud-nic-stalled", "cloud-nic-reset")  # the instance's only way to the others
_OF_INTERFACES = ("queue-stalled", *_OF_CLOUDS)  # which they name
_FORMS = (  # what a line states beside its code, in this order
    "{name}", "{unit} by the driver's own count", "held by {holder}", "{devices}", "BAR{bar} of {size} MB | BAR{bar}",
    "{interface}", "at {server}", "{command}", "{got} of {asked}", "{file}", "{chip}", "{task}", "{what}", "{block}",
    "NVLink {link}", "HBM {hbm}", "CPU {cpu}", "{service}", "node {node}", "module {module}", "error {error}",
    "before it: {before}",
)  # fmt: skip
_SHOWN = 6


def list_driver_faults(context: RuleContext, events: Iterable[Event]) -> Iterator[Fail]:
    """The faults that these events are: one per device and sentence of the host, those of all GPUs together."""
    groups: dict[str, list[Event]] = {}
    for event in events:
        if event.code in MEANINGS and _counts(context, event):
            groups.setdefault(_find_address(context, event), []).append(event)
    faults = [fault for address in sorted(groups) for fault in _judge(context, address, groups[address])]
    of_gpus = [fault for fault in faults if fault.subject.startswith("gpu:")]
    title = MEANINGS[of_gpus[0].cause].title if of_gpus else ""
    yield from merge_if_on_all(of_gpus, len(context.topology.gpus), title)
    yield from (fault for fault in faults if fault not in of_gpus)


def _find_address(context: RuleContext, event: Event) -> str:
    """The PCI address of the part; of an RDMA device or interface that only its name identifies, that of its NIC; ""
    for none."""
    subject = event.subject or ""
    named = next((nic.pci for nic in context.topology.nics if subject in _list_names(nic)), None)
    return named or subject


def _list_names(nic: Nic) -> set[str | None]:
    return {nic.rdma_device, *(name for port in nic.ports for name in port.netdevs)}


def _counts(context: RuleContext, event: Event) -> bool:
    """Whether a sentence is about a part that runs jobs, and is not overtaken by what the host shows now."""
    address, code = _find_address(context, event), event.code or ""
    meaning = MEANINGS[code]
    if not meaning.alone and _is_explained(context, event):
        return False
    gpu = context.gpu_by_pci.get(address)
    nic = context.nic_by_pci.get(address)
    function = context.functions.get(address)
    if function is not None and function.physical_function:
        return False
    if code == "api-mismatch" and _MISMATCH in (context.why_probe_failed("gpu") or "").lower():
        return False  # gpu-driver-unusable has both versions
    if gpu is not None:
        return not (meaning.of_start and gpu.driver_state == "open")
    if nic is not None:
        return not (meaning.of_start and _works_now(nic, code)) and severity_by_role("error", nic) is not None
    if meaning.of_start and any(netdev.label == event.subject for netdev in context.topology.netdevs):
        return False  # an interface whose state is known: rules about links judge it
    if code == "queue-stalled" and context.why_bus_unread is None:
        return False  # of an interface that has no RDMA
    if code in _OF_CLOUDS or _may_be_anything(context, event):
        return True
    driver = event.detail.get("driver")
    is_of_jobs = driver in _DRIVERS_OF_JOBS or code not in _UNLESS_GEAR
    kept = driver == "nouveau" or (driver == "vfio-pci" and code not in _OF_GUESTS)
    if function is not None and code.startswith(_OF_INTEL):
        return not (meaning.of_start and function.driver)
    if function is not None or not is_of_jobs or kept or (code in _AUXILIARY and _any_nic_works(context, event)):
        return False
    return bool(address) or not meaning.of_start or not _any_gpu_works(context)


def _works_now(nic: Nic, code: str) -> bool:
    """Whether the part of a NIC works now whose start a sentence is about."""
    has_rdma, has_interface = bool(nic.rdma_device), any(port.netdevs for port in nic.ports)
    parts = {"rdma-port": False, "rdma-probe": has_rdma, "rdma-start": has_rdma, "interface-probe": has_interface}
    return parts.get(code, has_rdma or has_interface)


def _may_be_anything(context: RuleContext, event: Event) -> bool:
    """Whether a sentence that any device may have is about one that nothing lists, because nothing lists devices."""
    unlisted = (event.subject or "").count(":") == 2 and context.why_bus_unread is not None
    of_jobs = event.detail.get("driver") in (*_DRIVERS_OF_JOBS, "nouveau")
    return unlisted and not of_jobs and event.code in _UNLESS_GEAR and event.subject not in context.functions


def _any_nic_works(context: RuleContext, event: Event) -> bool:
    """Of a function of a NIC that only its driver's count identifies: whether NICs of that driver work now."""
    functions = {function.id for function in context.topology.pci if function.driver == event.detail.get("parent")}
    return any(nic.pci in functions and nic.rdma_device for nic in context.topology.nics)


def _any_gpu_works(context: RuleContext) -> bool:
    """Of a sentence that names no device: it is over, or about devices that are kept for something else."""
    nvidia = {function.driver for function in context.topology.pci if function.vendor == "0x10de"}
    held = any(_ON_PURPOSE in (driver or "") for driver in nvidia)
    return held or any(gpu.driver_state == "open" for gpu in context.topology.gpus)


def _is_explained(context: RuleContext, event: Event) -> bool:
    """Whether another line of the log states why. The firmware of amdgpu counts only where its start failed: many files
    are optional."""
    ids = (event.subject, _find_address(context, event))
    others = [one for one in context.events if event.subject is None or one.subject in ids]
    if event.code == "firmware-missing":
        return not any(one.kind == "amd_init" for one in others)
    if event.code in _EXPLAINED_BY:
        return any(one.kind in _EXPLAINED_BY[event.code] and one.code != "started" for one in others)
    if "words" in MEANINGS[event.code or ""].marks and any(
        one.kind in _FIRMWARE_KINDS and one.code != "started" for one in others
    ):
        return True
    return any(
        one.kind in ("gpu_lost", "gpu_init", "amd_reset") or (one.kind, one.code) == ("mlx5", "load")
        or (one.kind == "amd_init" and event.code != "amd-block")  # which states what of the start failed
        or (one.kind == "driver" and one.code in MEANINGS and _is_before(one, event))
        for one in others
    )  # fmt: skip


def _is_before(one: Event, other: Event) -> bool:
    """Whether one may be the cause of the other; a note of another part is none of something graver."""
    severities = [SEVERITIES.index(MEANINGS[event.code or ""].severity) for event in (one, other)]
    return _ORDER.index(one.code or "") < _ORDER.index(other.code or "") and severities[0] >= severities[1]


def _judge(context: RuleContext, address: str, events: Sequence[Event]) -> Iterator[Fail]:
    """One finding per device; of the node one per sentence."""
    if address:
        yield _fail(context, address, sorted(events, key=lambda event: _ORDER.index(event.code or "")))
        return
    for code in _ORDER:
        if rows := [event for event in events if event.code == code]:
            yield _fail(context, "", rows)


def _fail(context: RuleContext, address: str, events: Sequence[Event]) -> Fail:
    first = events[0]
    meaning = MEANINGS[first.code or ""]
    gpu, nic = context.gpu_by_pci.get(address), context.nic_by_pci.get(address)
    anything = gpu is None and nic is None and _may_be_anything(context, first)
    for_guest = first.detail.get("driver") == "vfio-pci"  # someone gives it to a virtual machine
    depends = f"What it means depends on what the device is: `lspci -nn -s {address}`. If jobs use it: "
    details = _describe_details(first)
    on_bus, is_guest = address.count(":") == 2, bool(context.virtual_machine)
    about = about_gpu(gpu) if gpu else about_function(context, address) if on_bus else NODE
    who = "kernel log" if "kernel" in meaning.marks else "driver"
    passed = first.code in _PASSING and all(_is_long_ago(context, event) for event in events)
    severity = ("warning" if for_guest else "info") if anything else _find_severity(first, meaning, gpu, nic, is_guest)
    more = f"{f' ({details})' if details else ''}{', long ago' if passed else ''}"
    return about.fail(
        label=device_label(context, address) if on_bus else address or "node",
        summary=f"the {who} states: {meaning.title}{more}",
        impact=f"{depends if anything else ''}{meaning.impact}",
        evidence=tuple(quote_log(event) for event in events[:_SHOWN]),
        severity=one_level_lower(severity) if passed else severity,
        confidence="low" if anything else meaning.confidence,
        cause=f"{first.code}{f' {address}' if address and not on_bus else ''}",
        situation=first.code or "",
        values=list_log_words(events) + _list_interface(first),
        ids=frozenset({address} if on_bus else _list_places(context, first, address)),
        explains_ids=None if meaning.confidence == "high" else frozenset(),
    )


def _list_interface(event: Event) -> tuple[tuple[str, str], ...]:
    """The word of commands for the interface that the line names."""
    name = event.detail.get("name") if event.code in _OF_INTERFACES else None
    return (("INTERFACE", name),) if name else ()


def _is_long_ago(context: RuleContext, event: Event) -> bool:
    """Whether a node that is seen as a whole went on for a day since."""
    seconds = context.seconds_since(event.at)
    return context.why_bus_unread is None and seconds is not None and seconds > _LONG_AGO_SECONDS


def _find_severity(event: Event, meaning: Meaning, gpu: Gpu | None, nic: Nic | None, is_guest: bool) -> str:
    if event.code == "bar-unassigned" and gpu is None and nic is None:
        size = _SIZE.search(event.text)  # of a device that may be anything; so much memory has an accelerator
        return "warning" if size and int(size[1], 16) >= _LARGE else "info"
    if _ON_PURPOSE in event.detail.get("holder", "") or (is_guest and event.code == _LOCKUP and _OF_RCU in event.text):
        return "info"  # a guest waits for its host when it is paused or moved
    if nic is not None:
        return severity_by_role(meaning.severity, nic) or "info"
    return meaning.severity


def _list_places(context: RuleContext, event: Event, name: str) -> set[str]:
    """Of a sentence about the driver as a whole: the GPUs of its maker, and the place of findings about the node."""
    if name:
        return {f"driver {event.code}", name}  # of a NIC that nothing lists: no GPU is a part of it
    if "kernel" in MEANINGS[event.code or ""].marks:
        return {f"driver {event.code}"}
    maker = "AMD" if event.code in ("no-atomics", "firmware-missing") else "NVIDIA"
    return {f"driver {event.code}", *(gpu.id for gpu in context.topology.gpus if gpu.vendor == maker)}


def _describe_details(event: Event) -> str:
    """What else the line states that a person needs."""
    detail = dict(event.detail)
    if event.code == "api-mismatch":
        detail.pop("what", None)
    devices = detail.pop("devices", "")
    if devices.isdecimal():
        detail["devices"] = count_of(int(devices), "devices")
    return join_labels(fill_forms(detail, _FORMS))
