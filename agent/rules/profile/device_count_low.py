"""device-count-low."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agent.model.finding import Evidence
from agent.model.profile import Device, Expected, Profile
from agent.rules.case import Case
from agent.rules.counting import named
from agent.rules.devices import device_id
from agent.rules.profile.expected import NO_PROFILE, evidence_of, number_of, severity_of
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule


@rule(
    "device-count-low",
    "critical",
    needs=("pci|lspci",),
    references=("PCIE-026",),
    absorbs=("gpu-module-missing",),
)
def device_count_low(case: Case) -> Iterator[Answer]:
    """The node has fewer GPUs or rails than its platform, or the site's profile, says.

    ## What it checks
    How many GPUs and rails are on the PCI bus, against the profile: that of the recognized platform, or `--profile`.

    ## Why it matters
    A node that boots with 7 of 8 GPUs is healthy in all that it shows; only who knows of the eighth misses it.

    ## How it is decided
    Fewer GPUs, or fewer NICs of the rails' model, than the profile has. A learnt profile names the places that are
    empty. Critical for GPUs, error for rails; one step less where the platform is only likely, or the value of medium
    confidence; info where it is of low confidence.

    ## What keeps it silent
    - No profile: not applicable. Virtual machines, unless the instance type names the shape: not applicable.
    - The PCI bus was not read whole: unknown. Which NICs are rails is not known: unknown.
    - A device that is listed and does not answer: pcie-device-gone.

    ## How to confirm
    `lspci -d 10de: | grep -c '3D controller'`; `fabricscope profile show NAME`

    ## How to fix
    Power cycle; reseat the GPU, its tray or riser; look at the BMC's log for the slot that the finding names.

    ## Source
    `agent/platforms/*.toml`, each value with its source; a site's own file.
    """
    profile = case.profile
    if profile is None:
        yield NotApplicable("node", NO_PROFILE)
        return
    if case.virtual_machine and not _shaped(case):
        yield NotApplicable("node", "virtual machine: it has what the hypervisor gives it")
        return
    if case.bus_unread:
        yield Unknown("node", case.bus_unread)
        return
    yield from _gpus(case, profile)
    yield from _rails(case, profile)


def _shaped(case: Case) -> bool:
    """A cloud whose instance type is the profile, or a profile that somebody chose."""
    return case.platform.confidence == "exact"


def _gpus(case: Case, profile: Profile) -> Iterator[Answer]:
    due = number_of(profile.gpus)
    if profile.gpus is None or due is None:
        return
    seen = [gpu for gpu in case.topology.gpus if gpu.pci and not _virtual(case, gpu.pci)]
    if len(seen) >= due:
        yield Pass("node")
        return
    gone = _empty(case, profile, "gpu")
    counted = f"{len(seen)} GPUs on the PCI bus"
    yield _fault(case, profile, "GPUs", profile.gpus, counted, gone, severity_of(case, profile.gpus, "critical"))


def _rails(case: Case, profile: Profile) -> Iterator[Answer]:
    due = number_of(profile.rails)
    if profile.rails is None or due is None:
        return
    if case.no_rail_known:
        yield Unknown("node", case.no_rail_known)
        return
    models = {device_id(case, nic) for nic in case.rails} or {
        (device.vendor_device or "").replace(":", ":0x").rpartition(":")[2]
        for device in profile.devices
        if device.role == "rail"
    }
    alike = [n for n in case.topology.nics if device_id(case, n) in models and n.role in ("rail", "unused", "unknown")]
    if len(alike) >= due:
        yield Pass("node")
        return
    gone = [device for device in _empty(case, profile, "nic") if device.role == "rail"]
    counted = f"{len(alike)} NICs of the rails' model"
    yield _fault(case, profile, "rails", profile.rails, counted, gone, severity_of(case, profile.rails, "error"))


def _empty(case: Case, profile: Profile, kind: str) -> list[Device]:
    """Places of a learnt profile where nothing is now: neither at the address nor in the slot."""
    slots = {f.slot for f in case.topology.pci if f.slot}
    wanted = (device for device in profile.devices if device.kind == kind)
    return [d for d in wanted if d.pci not in case.functions and d.slot not in slots]


def _virtual(case: Case, pci: str) -> bool:
    function = case.functions.get(pci)
    return bool(function and function.physical_function)


def _fault(
    case: Case,
    profile: Profile,
    what: str,
    expected: Expected,
    counted: str,
    gone: Sequence[Device],
    severity: str,
) -> Fail:
    places = [f"{device.pci}{f' (slot {device.slot})' if device.slot else ''}" for device in gone]
    missing = f"; nothing is at {named(places)}" if places else ""
    known = case.history.inventory if case.history else []
    lost = {item.subject.partition(":")[2] for item in known} - case.functions.keys()
    return Fail(
        subject="node",
        label="node",
        summary=f"{counted}, {expected.value} expected{missing}",
        impact=f"jobs that ask for {expected.value} {what} do not start, or run on fewer.",
        remedy="Power cycle; reseat what is missing, its tray or riser; look at the BMC's log for the slot.",
        evidence=(
            Evidence(what=what, value=counted, source="/sys/bus/pci/devices"),
            evidence_of(profile, what, expected),
        ),
        severity=severity,
        cause=what,
        places=frozenset({f"count of {what}", *lost, *(device.pci or "" for device in gone)}),
    )
