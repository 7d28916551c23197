"""The node compared with the profile of its platform."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agent.model.finding import Evidence
from agent.model.pci import PciFunction, bandwidth_gbyte_s
from agent.model.profile import Device, Expected, Profile
from agent.model.reasons import Reason, quote_source
from agent.rules.context import RuleContext
from agent.rules.devices import (
    about_function,
    about_gpu,
    find_device_id,
    find_lost_addresses,
    one_level_lower,
    pci_source,
    why_unreachable,
)
from agent.rules.node_wide import aggregate_node_wide
from agent.rules.pcie.links import LANES, PcieLink, format_loss, pcie_links
from agent.rules.rule import NODE, Fail, Result, Unknown, rule
from agent.rules.wording import join_labels

NO_PROFILE = Reason("no-profile", detail="no profile: this platform is not recognized, and --profile names none")


def severity_by_confidence(context: RuleContext, expected: Expected, severity: str) -> str:
    """A value of low confidence gives info at most; one of medium, or a likely platform, one severity lower."""
    if expected.confidence == "low":
        return "info"
    sure = expected.confidence == "high" and context.platform.confidence == "exact"
    return severity if sure else one_level_lower(severity)


def profile_evidence(profile: Profile, what: str, expected: Expected) -> Evidence:
    """What the profile states, and where it has it from."""
    return Evidence(f"{what}, profile {profile.name}", str(expected.value), expected.source)


def expected_number(expected: Expected | None) -> int | None:
    """The value as a whole number; None where nothing is expected, or a word."""
    value = expected.value if expected else None
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


_AWS = "Amazon EC2"


@rule("device-count-low")
def device_count_low(context: RuleContext) -> Iterator[Result]:
    profile = context.profile
    if profile is None:
        yield NODE.not_applicable(NO_PROFILE)
        return
    # a cloud whose instance type is the profile, or a profile that was chosen: its devices are judged
    if context.virtual_machine and context.platform.confidence != "exact":
        yield NODE.not_applicable("guest", detail="virtual machine: the hypervisor assigns devices")
        return
    if context.why_bus_unread:
        yield NODE.unknown(context.why_bus_unread)
        return
    yield from _judge_gpu_count(context, profile)
    expected = expected_number(profile.rails)
    if profile.rails is None or expected is None:
        return
    if context.why_no_rail_known:
        yield NODE.unknown(context.why_no_rail_known)
        return
    models = {find_device_id(context, nic) for nic in context.rails} or {
        (device.vendor_device or "").replace(":", ":0x").rpartition(":")[2]
        for device in profile.devices
        if device.role == "rail"
    }
    alike = [
        n
        for n in context.topology.nics
        if find_device_id(context, n) in models and n.role in ("rail", "unused", "unknown")
    ]
    if len(alike) >= expected:
        yield NODE.passes()
        return
    if not alike and context.node.vendor == _AWS:
        yield NODE.not_applicable("by-design", detail="no EFA is attached: that is chosen when an instance is started")
        return
    gone = [device for device in _empty_locations(context, profile, "nic") if device.role == "rail"]
    counted = f"{len(alike)} NIC{'s' if len(alike) != 1 else ''} of the rails' model"
    yield _fail_device_count(
        context, profile, "rails", profile.rails, counted, gone, severity_by_confidence(context, profile.rails, "error")
    )


def _judge_gpu_count(context: RuleContext, profile: Profile) -> Iterator[Result]:
    expected = expected_number(profile.gpus)
    if profile.gpus is None or expected is None:
        return
    seen = [gpu for gpu in context.topology.gpus if gpu.pci and not _is_virtual(context, gpu.pci)]
    if len(seen) >= expected:
        yield NODE.passes()
        return
    gone = _empty_locations(context, profile, "gpu")
    counted = f"{len(seen)} GPU{'s' if len(seen) != 1 else ''} on the PCI bus"
    yield _fail_device_count(
        context, profile, "GPUs", profile.gpus, counted, gone, severity_by_confidence(context, profile.gpus, "critical")
    )


def _empty_locations(context: RuleContext, profile: Profile, kind: str) -> list[Device]:
    """Places of a learnt profile where nothing is now: neither at the address nor in the slot."""
    slots = {f.slot for f in context.topology.pci if f.slot}
    wanted = (device for device in profile.devices if device.kind == kind)
    return [d for d in wanted if d.pci not in context.functions and d.slot not in slots]


def _is_virtual(context: RuleContext, pci: str) -> bool:
    function = context.functions.get(pci)
    return bool(function and function.physical_function)


def _describe_places(devices: Sequence[Device]) -> str:
    """Where learnt devices were, for a sentence; of some a profile has neither address nor slot.

    >>> _describe_places([Device(kind="gpu", pci="0000:19:00.0", slot="3"), Device(kind="gpu", pci="0000:1a:00.0")])
    '; nothing is at 0000:19:00.0 (slot 3), 0000:1a:00.0'
    >>> _describe_places([Device(kind="gpu", slot="3"), Device(kind="gpu")]), _describe_places([Device(kind="gpu")])
    ('; nothing is in slot 3', '')
    """
    at = [f"{device.pci}{f' (slot {device.slot})' if device.slot else ''}" for device in devices if device.pci]
    slots = [device.slot for device in devices if device.slot and not device.pci]
    ids = [f"at {join_labels(at)}"] * bool(at) + [f"in slot {join_labels(slots)}"] * bool(slots)
    return f"; nothing is {', or '.join(ids)}" if ids else ""


def _fail_device_count(
    context: RuleContext,
    profile: Profile,
    what: str,
    expected: Expected,
    counted: str,
    gone: Sequence[Device],
    severity: str,
) -> Fail:
    missing = _describe_places(gone)
    lost = find_lost_addresses(context) | {device.pci for device in gone if device.pci}
    return NODE.fail(
        summary=f"{counted}, {expected.value} expected{missing}",
        impact=f"jobs that ask for {expected.value} {what} do not start, or run on fewer.",
        evidence=(Evidence(what, counted, "/sys/bus/pci/devices"), profile_evidence(profile, what, expected)),
        severity=severity,
        cause=what,
        ids=frozenset({f"count of {what}", *lost}),
        explains_ids=frozenset({*lost, *([f"count of {what}"] if gone else [])}),
    )


@rule("nvswitch-missing")
def nvswitch_missing(context: RuleContext) -> Result:
    profile = context.profile
    expected = expected_number(profile.nvswitches) if profile else None
    if profile is None or profile.nvswitches is None or not expected:
        return NODE.not_applicable(
            Reason("no-profile", detail="the profile expects no NVSwitch") if profile else NO_PROFILE
        )
    if context.virtual_machine:
        return NODE.not_applicable("guest", detail="virtual machine: switches may stay with the host")
    if context.why_bus_unread:
        return NODE.unknown(context.why_bus_unread)
    seen = len(context.topology.nvswitches)
    if seen >= expected:
        return NODE.passes()
    gone = [f.id for f in context.topology.pci if f.state == "gone"]
    return NODE.fail(
        summary=f"{seen} NVSwitches on the PCI bus, {expected} expected",
        impact="the fabric manager does not start: CUDA gives error 802 on every GPU.",
        evidence=(
            Evidence("NVSwitches", str(seen), "lspci -d 10de::0680"),
            profile_evidence(profile, "NVSwitches", profile.nvswitches),
        ),
        severity=severity_by_confidence(context, profile.nvswitches, "critical"),
        ids=frozenset({"count of NVSwitches", *gone}),
        explains_ids=frozenset({"count of NVSwitches"}),
    )


@rule("profile-differs")
def profile_differs(context: RuleContext) -> Iterator[Result]:
    profile = context.profile
    if profile is None:
        yield NODE.not_applicable(NO_PROFILE)
        return
    at = {device.pci: device for device in profile.devices if device.pci}
    for gpu in context.topology.gpus:
        yield from _judge_links(context, profile, gpu.id)
    yield from _judge_lanes(context, profile)
    for pci in sorted(at.keys() & context.functions.keys()):
        yield _judge_profile_device(context, profile, at[pci], pci)


def _judge_links(context: RuleContext, profile: Profile, gpu_id: str) -> Iterator[Result]:
    gpu, expected = context.gpus[gpu_id], expected_number(profile.nvlinks_per_gpu)
    model = _model(context.functions.get(gpu.pci or ""))
    if (
        profile.nvlinks_per_gpu is None
        or not expected
        or model not in profile.gpu_devices
        or gpu.driver_state != "open"
    ):
        return
    about = about_gpu(gpu)
    if not gpu.links_known:
        yield about.unknown(quote_source(gpu.links_reason) or Reason("not-shown", detail="NVLinks not known"))
        return
    if {context.topology.bandwidth_mode, gpu.nvlink_bandwidth_mode} - {"full", None}:
        yield about.not_applicable("by-design", detail="a reduced NVLink bandwidth mode: links are off on purpose")
        return
    up = sum(link.state in ("active", "sleep") for link in gpu.links)
    if up >= expected or context.virtual_machine or (gpu.mig and gpu.mig.current):
        yield about.passes()
        return
    if any(link.state == "unknown" for link in gpu.links):
        yield about.unknown("not-known", fact="the state of a link")
        return
    severity = severity_by_confidence(context, profile.nvlinks_per_gpu, "warning")
    if up and profile.nvlinks_per_gpu.confidence == "high":
        severity = "error"  # a number of the GPU, which its PCI id shows; without any its tray may be outside of a rack
    yield about.fail(
        summary=f"{up} NVLinks are up, {expected} expected",
        impact=f"{100 * (1 - up / expected):.0f}% of the bandwidth between GPUs.",
        evidence=(
            Evidence("NVLinks up", str(up), "nvidia-smi nvlink -s"),
            profile_evidence(profile, "NVLinks of a GPU", profile.nvlinks_per_gpu),
        ),
        severity=severity,
        cause="nvlinks",
    )


def _model(function: PciFunction | None) -> str:
    """As profiles name it: "10de:2330"; "" where nothing is known."""
    return f"{(function.vendor or '')[2:]}:{(function.device or '')[2:]}" if function else ""


def _judge_lanes(context: RuleContext, profile: Profile) -> Iterator[Result]:
    """Each GPU against the lanes that its model has: where all report fewer, none differs from the others."""
    expected, due = profile.gpu_pcie_lanes, expected_number(profile.gpu_pcie_lanes)
    if expected is None or not due:
        return
    gpus = (
        pcie_link for pcie_link in pcie_links(context)
        if pcie_link.child.id in context.gpu_by_pci and _model(pcie_link.child) in profile.gpu_devices
    )  # fmt: skip
    answers = (_judge_lanes_of_gpu(context, profile, expected, due, pcie_link) for pcie_link in gpus)
    yield from aggregate_node_wide(answers, f"all GPUs report fewer PCIe lanes than the {due} of their model")


def _judge_lanes_of_gpu(
    context: RuleContext, profile: Profile, expected: Expected, due: int, pcie_link: PcieLink
) -> Result:
    silent, link = pcie_link.why_not_judged, pcie_link.child.link
    if silent:
        return silent
    if link is None or link.max_width not in LANES:
        return pcie_link.unknown("not-known", fact="how many lanes the GPU has")
    if link.max_width >= due:
        return pcie_link.passes()
    now, full = bandwidth_gbyte_s(link.max_speed_gt_s, link.max_width), bandwidth_gbyte_s(link.max_speed_gt_s, due)
    return pcie_link.fail(
        summary=f"the GPU reports x{link.max_width} as the most that it can do; its model has x{due}",
        impact=format_loss(now, full) or "Every copy to and from the GPU has fewer lanes than it could.",
        evidence=(
            Evidence(
                f"max link width of {pcie_link.child.id}",
                f"x{link.max_width}",
                pci_source(context, pcie_link.child.id, "max_link_width"),
            ),
            profile_evidence(profile, "PCIe lanes of a GPU", expected),
        ),
        severity="warning" if expected.confidence == "high" else "info",  # of the model, which the PCI id shows
        cause="lanes",
    )


def _judge_profile_device(context: RuleContext, profile: Profile, good: Device, pci: str) -> Result:
    function, about = context.functions[pci], about_function(context, pci)
    model = _model(function)
    if why_unreachable(function):
        return about.not_applicable(why_unreachable(function) or Reason("not-in-use", detail=""))
    if good.vendor_device and model != good.vendor_device:
        return about.not_applicable("no-profile", detail=f"the profile has another model here ({model})")
    slower = list(_slower_link(context, good, pci))
    nic = context.nic_by_pci.get(pci)
    other = bool(good.firmware and nic and nic.firmware and nic.firmware != good.firmware)
    if not slower and not other:
        return _unsure_reason(context, good, pci) or about.passes()
    label = nic.label if nic else context.gpu_by_pci[pci].label if pci in context.gpu_by_pci else pci
    differences = slower or [f"firmware {nic.firmware if nic else ''}, {good.firmware} in the profile"]
    return about.fail(
        label=label,
        summary="; ".join(differences),
        impact="Its link is slower than that of the node in the profile." if slower else "None by itself.",
        evidence=(
            Evidence("this node", "; ".join(differences), f"/sys/bus/pci/devices/{pci}"),
            Evidence(f"profile {profile.name}", good.name or pci, "--profile"),
        ),
        severity="warning" if slower else "info",
        cause="slower" if slower else "firmware",
    )


def _slower_link(context: RuleContext, good: Device, pci: str) -> Iterator[str]:
    link = context.functions[pci].link
    if link and link.quality.state == "conclusive":
        if good.link_width and link.width and link.width < good.link_width:
            yield f"PCIe x{link.width}, x{good.link_width} in the profile"
        if good.link_gt_s and link.speed_gt_s and link.speed_gt_s < good.link_gt_s:
            yield f"PCIe {link.speed_gt_s:g} GT/s, {good.link_gt_s:g} in the profile"
    nic = context.nic_by_pci.get(pci)
    for port in nic.ports if nic else ():
        if good.rate_gbit_s and port.state == "ACTIVE" and port.rate_gbit_s and port.rate_gbit_s < good.rate_gbit_s:
            yield f"port at {port.rate_gbit_s:g} Gb/s, {good.rate_gbit_s:g} in the profile"


def _unsure_reason(context: RuleContext, good: Device, pci: str) -> Unknown | None:
    link = context.functions[pci].link
    if good.link_gt_s and link and link.quality.state != "conclusive":
        return about_function(context, pci).unknown(
            "undecided", detail=f"its link is {link.quality.state}: {link.quality.reason or 'no reason given'}"
        )
    return None
