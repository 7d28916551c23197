"""Xid and SXid errors that the driver reported, and what each of them means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import msgspec
from msgspec.structs import replace

from agent.model.finding import SEVERITIES, Evidence
from agent.model.node import Event
from agent.model.reasons import Reason
from agent.rules.context import RuleContext, parse_time
from agent.rules.devices import device_label, is_nvidia, one_level_lower, states_driver_cause
from agent.rules.pages import read_limit
from agent.rules.rule import Fail, NotApplicable, Pass, Result, Unknown, rule
from agent.rules.wording import join_labels


class Xid(msgspec.Struct, frozen=True):
    """One number: how grave it is, what it says, what to do."""

    severity: str
    meaning: str
    action: str


_RESET = "Stop the jobs on this GPU and reset it (`nvidia-smi -r -i`); where that fails, reboot."
_REBOOT = "Drain the node and power cycle it completely."
_NVLINK5 = "Read the link's counters (`nvidia-smi nvlink -e`); reset the GPU; where it comes back, have it looked at."
_MEMORY = "Reset the GPU when the job has ended; where it comes back, have the GPU replaced (NVIDIA's RMA criteria)."
_CONTAINED = "Restart the job that ended; reset the GPU when it is free. Where it comes back, have the GPU replaced."
_REMAPPED = "Nothing at once: reset the GPU when it is free, which makes the remapped row take effect."
_POWER = "Drain the node; check the power cables of the card, its riser and the power supplies."
_APPLICATION = "Look at the application first: a fault of its own ends so, or one that another Xid explains."

_COPY_ENGINES = ("39", "40", "41", "70", "71", "72", "75", "76", "77", "85", "126", *map(str, range(127, 136)))
_OF_APPLICATIONS = tuple(
    (code, "info", "copy engine error, mostly an application's", _APPLICATION) for code in _COPY_ENGINES
)
_LISTED: tuple[tuple[str, str, str, str], ...] = (
    ("79", "critical", "the GPU fell off the bus", _REBOOT),
    ("167", "critical", "PCIe fatal timeout", _REBOOT),
    ("143", "critical", "the GPU could not be initialized", _RESET),
    ("74", "error", "NVLink error", "Reset the GPU; where it comes back, look at both ends of the link named there."),
    ("144", "error", "NVLink 5: SAW error", _NVLINK5),
    ("145", "error", "NVLink 5: RLW error", _NVLINK5),
    ("146", "error", "NVLink 5: TLW error", _NVLINK5),
    ("147", "error", "NVLink 5: TREX error", _NVLINK5),
    ("148", "error", "NVLink 5: NVLPW_CTRL error", _NVLINK5),
    ("149", "error", "NVLink 5: NETIR error", _NVLINK5),
    ("150", "error", "NVLink 5: MSE error", _NVLINK5),
    ("155", "error", "NVLink: error that software declared", _RESET),
    ("137", "warning", "NVLink: privileged access error, often an application's", _APPLICATION),
    ("166", "warning", "NVLink: encryption error", "Look at the confidential computing set-up of both ends."),
    ("170", "warning", "NVLink: other security error", "Look at the confidential computing set-up of both ends."),
    ("121", "warning", "C2C error", "Watch its rate; where it grows, have the superchip looked at."),
    ("154", "warning", "the driver asks for a recovery action", "Do what `nvidia-smi -q` names as recovery action."),
    ("158", "error", "GPU fatal timeout", _RESET),
    ("109", "error", "context switch timeout", _RESET),
    ("110", "error", "security fault", _RESET),
    ("46", "error", "the GPU stopped processing", _RESET),
    ("54", "error", "auxiliary power is not connected, or too low", _POWER),
    ("62", "error", "the GPU's micro-controller stopped", _RESET),
    ("136", "error", "link training failed", _RESET),
    ("151", "warning", "key rotation failed (confidential computing)", "Restart the virtual machine."),
    ("159", "warning", "unified memory error", "Restart the job; where jobs go on to fail, reset the GPU."),
    ("168", "warning", "less GPU memory: errors in a protected region", "Reboot; where it stays, switch ECC on."),
    ("169", "warning", "the security processor (SEC2) stopped", _RESET),
    ("119", "error", "GSP does not answer", _RESET),
    ("120", "error", "GSP error", _RESET),
    ("48", "error", "double-bit ECC error", _MEMORY),
    ("63", "info", "a row was remapped, or a page retired", _REMAPPED),
    ("64", "error", "row remapping, or page retirement, failed", _MEMORY),
    ("92", "warning", "high rate of single-bit ECC errors", _MEMORY),
    ("94", "error", "contained ECC error", _CONTAINED),
    ("95", "error", "uncontained ECC error", _MEMORY),
    ("140", "error", "ECC error that was not recovered from", _MEMORY),
    ("156", "error", "resource retirement", _MEMORY),
    ("157", "error", "resource retirement failed", _MEMORY),
    ("171", "error", "memory error, more of Xid 48 and 94", _MEMORY),
    ("172", "error", "memory error, more of Xid 48 and 94", _MEMORY),
    ("13", "info", "graphics engine exception, mostly an application's", _APPLICATION),
    ("31", "info", "memory page fault, mostly an application's", _APPLICATION),
    ("43", "info", "the GPU stopped processing, mostly an application's", _APPLICATION),
    ("45", "info", "clean-up after another error", _APPLICATION),
    ("69", "info", "graphics engine class error, mostly an application's", _APPLICATION),
    ("83", "info", "video decoder error, mostly an application's", _APPLICATION),
    ("84", "info", "video decoder error, mostly an application's", _APPLICATION),
    ("161", "info", "a note of the driver, to be ignored by NVIDIA's catalogue", "Nothing by itself."),
    *_OF_APPLICATIONS,
)  # fmt: skip
XIDS = {code: Xid(severity, meaning, action) for code, severity, meaning, action in _LISTED}


_NVLINK = frozenset(["74", "137", "144", "145", "146", "147", "148", "149", "150"])  # Xids of links
_MEMORY_CODES = frozenset(["48", "63", "64", "92", "94", "95", "140", "156", "157", "171", "172"])
_NVLINK5_CODES = _NVLINK - {"74", "137"}
_NONFATAL = (
    "Nothing by itself: the link recovered. Watch its counters (`nvidia-smi nvlink -e`); a growing number wears."
)
_UNLISTED = Xid(
    "info", "not in this catalogue", "Look it up in NVIDIA's Xid catalogue (docs.nvidia.com/deploy/xid-errors)."
)
_RECENT = read_limit("gpu-xid.recent_hours")
_NONE = "None by itself: a trace of a job that failed."
_SHOWN = 6  # lines of evidence
_LOST = Xid("critical", "the GPU fell off the bus", XIDS["79"].action)
_INIT = Xid("critical", "the driver could not initialize the GPU", XIDS["143"].action)
_FATAL_SXID = Xid("error", "fatal NVSwitch error", "Drain the node; reset all GPUs and NVSwitches together, or reboot.")
_SXID = Xid("info", "non-fatal NVSwitch error", "Nothing by itself; a growing number points at the link that it names.")


@rule("gpu-xid")
def gpu_xid(case: RuleContext) -> Iterator[Result]:
    gpus = {gpu.pci: f"gpu:{gpu.id}" for gpu in case.topology.gpus if gpu.pci and is_nvidia(case, gpu)}
    subjects = gpus | {switch.pci: f"nvswitch:{switch.id}" for switch in case.topology.nvswitches}
    events_of: dict[str, list[Event]] = {}
    for event in case.events:
        if event.kind == "gpu_init" and states_driver_cause(case, event.subject or ""):
            continue  # the sentence is the finding: driver-reports-failure
        if event.kind in ("xid", "sxid", "gpu_lost", "gpu_init") and event.subject:
            events_of.setdefault(event.subject, []).append(event)
    if not subjects and not events_of:
        yield NotApplicable("node", Reason("no-such-device", detail="no NVIDIA GPU"))
    unread = case.probe_failure("kernel_log")
    for pci in sorted(subjects.keys() | events_of.keys()):
        subject = subjects.get(pci, f"pci:{pci}")
        if events := events_of.get(pci):
            yield _fail_xid(case, subject, pci, events)
        else:
            yield Unknown(subject, Reason("log-not-read", why=unread)) if unread else Pass(subject)


def _look_up(event: Event) -> Xid:
    if event.kind == "gpu_lost":
        return _LOST
    if event.kind == "gpu_init":
        return _INIT
    if event.kind == "sxid":
        return _FATAL_SXID if event.detail.get("severity") == "Fatal" else _SXID
    code = _effective_code(event)
    if code in _NVLINK5_CODES and event.detail.get("severity") == "Nonfatal":
        return replace(XIDS[code], severity="warning" if event.count > 1 else "info", action=_NONFATAL)
    return XIDS.get(code, _UNLISTED)


def _effective_code(event: Event) -> str:
    """45 is the clean-up after another error, which its line names; that error's own line may have left the log."""
    previous = event.detail.get("previous", "")
    return previous if event.code == "45" and previous in XIDS else event.code or ""


def _fail_xid(case: RuleContext, subject: str, pci: str, events: Sequence[Event]) -> Fail:
    ranked = sorted(events, key=lambda event: (_rank(event), event.at or "", event.code or ""), reverse=True)
    worst = ranked[0]
    meaning = _look_up(worst)
    passed = _is_over(case, pci, ranked)
    return Fail(
        subject=subject,
        label=_label(case, pci, worst),
        summary=f"{_name(worst)}: {meaning.meaning}{_count_others(ranked[1:])}" + (", long ago" if passed else ""),
        impact=_impact(worst, meaning),
        remedy=_fill_gpu_id(case, pci, meaning.action),
        evidence=tuple(_evidence(event) for event in ranked[:_SHOWN]),
        severity=one_level_lower(meaning.severity) if passed else meaning.severity,
        cause=_name(worst),
        situation=_situation(worst, meaning),
        places=_about(pci, subject, ranked),
        covers=frozenset({pci, subject.partition(":")[2]}),
    )


def _about(pci: str, subject: str, events: Sequence[Event]) -> frozenset[str]:
    """The GPU's NVLinks where the log has no other Xid of it, each by itself where the log names them; its memory, or
    the repair of that, likewise."""
    ids = {pci, subject.partition(":")[2]}
    codes = {_effective_code(event) for event in events}
    if codes.issubset(_MEMORY_CODES):
        return frozenset(f"{name}/{'remap' if codes == {'63'} else 'memory'}" for name in ids)
    if not codes.issubset(_NVLINK):
        return frozenset(f"{name}/xid" for name in ids)
    links = {(event.detail.get("link") or "").lstrip("0") or "0" for event in events if event.detail.get("link")}
    return frozenset(f"{name}/{link}" for name in ids for link in links or {"nvlink"})


def _label(case: RuleContext, pci: str, worst: Event) -> str:
    """Only an NVSwitch has SXids: a log alone names it by its address."""
    return f"NVSwitch {pci}" if worst.kind == "sxid" else device_label(case, pci)


def _situation(worst: Event, meaning: Xid) -> str:
    if meaning.severity == "critical":
        return "lost"
    if meaning.severity == "info":
        return "harmless"
    return "nvswitch" if worst.kind == "sxid" else ""


def _impact(worst: Event, meaning: Xid) -> str:
    if meaning.severity == "info":
        return "None by itself." if worst.kind == "sxid" else _NONE
    if worst.kind == "sxid":
        return "Jobs whose NVLink traffic passes this switch end or hang: all GPUs of the node can be affected."
    return "Jobs on this GPU end or hang; a job that uses all GPUs of the node stops."


def _fill_gpu_id(case: RuleContext, pci: str, action: str) -> str:
    """The action with the GPU that its command is for."""
    gpu = case.gpu_by_pci.get(pci)
    which = str(gpu.index) if gpu is not None and gpu.index is not None else pci
    return action.replace("nvidia-smi -r -i", f"nvidia-smi -r -i {which}")


def _rank(event: Event) -> int:
    return SEVERITIES.index(_look_up(event).severity)


def _name(event: Event) -> str:
    if event.kind == "xid":
        link = event.detail.get("link")
        return f"Xid {_effective_code(event)}" + (
            f" on NVLink {link.lstrip('0') or '0'}" if link and link.isdecimal() else ""
        )
    return f"SXid {event.code}" if event.kind == "sxid" else "GPU lost" if event.kind == "gpu_lost" else "GPU not ready"


def _count_others(events: Sequence[Event]) -> str:
    names = dict.fromkeys(_name(event) for event in events)
    return f"; also {join_labels(list(names))}" if names else ""


def _evidence(event: Event) -> Evidence:
    date = event.at or event.logged or "no date"
    times = f" (last of {event.count})" if event.count > 1 else ""
    return Evidence(what=f"kernel log, {date}{times}", value=event.text, source=event.source)


def _is_over(case: RuleContext, pci: str, events: Sequence[Event]) -> bool:
    """Whether the driver works with the GPU, and nothing was said of it for a day."""
    gpu = case.gpu_by_pci.get(pci)
    if gpu is None or gpu.driver_state != "open":
        return False
    ages = [case.seconds_since(event.at) for event in events if _rank(event) > 0]
    hours = case.threshold(_RECENT)
    return bool(ages) and all(age is not None and age > 3600 * hours for age in ages)


_ROOT, _FOLLOWING = "149", "145"
_TOGETHER_SECONDS = 60.0
_OF_GPUS = frozenset(["xid", "gpu_lost", "gpu_init"])


@rule("xid-root-of-many")
def xid_root_of_many(case: RuleContext) -> Iterator[Result]:
    gpus = {gpu.pci: gpu.id for gpu in case.topology.gpus if gpu.pci and is_nvidia(case, gpu)}
    if not gpus:
        yield NotApplicable("node", Reason("no-such-device", detail="no NVIDIA GPU"))
        return
    if unread := case.probe_failure("kernel_log"):
        yield Unknown("node", Reason("log-not-read", why=unread))
        return
    severe = [event for event in case.events if event.kind in _OF_GPUS and event.subject in gpus and _rank(event) > 0]
    roots = [event for event in severe if _link_number(event) and _is_fatal(event, _ROOT)]
    roots = [root for root in roots if not any(_may_be_switch(event, root) for event in case.events)]
    faults = [fault for root in roots if (fault := _judge_root(case, root, severe, gpus))]
    yield from faults
    if not faults:
        yield Pass("node")


def _is_fatal(event: Event, code: str) -> bool:
    return event.code == code and event.detail.get("severity") != "Nonfatal"


def _may_be_switch(event: Event, root: Event) -> bool:
    """Whether an NVSwitch failed, too, so that the link may not be what failed first."""
    dated = parse_time(event.at) is not None
    return _look_up(event) is _FATAL_SXID and (not dated or _are_together(event, root))


def _judge_root(case: RuleContext, root: Event, severe: Sequence[Event], gpus: Mapping[str, str]) -> Fail | None:
    """A fault of one link, where within a minute other GPUs report nothing but that their links lost the other end."""
    own = gpus[root.subject or ""]
    others: dict[str, list[Event]] = {}
    for event in severe:
        others.setdefault(event.subject or "", []).append(event)
    of_root = others.pop(root.subject or "")
    followers = {
        pci: events
        for pci, events in others.items()
        if all(_is_fatal(event, _FOLLOWING) and _are_together(event, root) for event in events)
    }
    if not followers:
        return None
    link = _link_number(root)
    whole = all(_link_number(event) == link for event in of_root)
    label = f"{device_label(case, root.subject or '')} NVLink {link}"
    labels = [device_label(case, pci) for pci in sorted(followers)]
    return Fail(
        subject=f"link:{own}/{link}",
        label=label,
        summary=f"Xid {_ROOT} on this link, and within a minute Xid {_FOLLOWING} on {join_labels(labels)}",
        impact=f"Jobs on {len(followers) + 1} GPUs ended by the fault of one link; only this one is at fault.",
        evidence=(
            _evidence(root),
            *(_evidence(events[0]) for _, events in sorted(followers.items())[: _SHOWN - 1]),
        ),
        cause=f"NVLink {link}",
        places=frozenset({f"{own}/{link}"}),
        covers=frozenset({*followers, *(gpus[pci] for pci in followers), *({f"{own}/{link}"} if whole else ())}),
    )


def _link_number(event: Event) -> str:
    link = event.detail.get("link", "")
    return (link.lstrip("0") or "0") if link.isdecimal() else ""


def _are_together(event: Event, root: Event) -> bool:
    """Whether all times of an event are near one of the root's. Of more than two only the first and last are known."""
    own, others = _known_times(root), _known_times(event)
    if not others or (event.count > 2 and _seconds_between(others[0], others[-1]) > _TOGETHER_SECONDS):
        return False
    return all(any(_seconds_between(time, other) <= _TOGETHER_SECONDS for time in own) for other in others)


def _known_times(event: Event) -> list[datetime]:
    return [time for time in (parse_time(event.first_at), parse_time(event.at)) if time is not None]


def _seconds_between(one: datetime, other: datetime) -> float:
    return abs((one - other).total_seconds())
