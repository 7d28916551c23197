"""Xid and SXid errors that the driver reported, and what each of them means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from agent.model.finding import SEVERITIES, Evidence
from agent.model.node import Event
from agent.rules.context import RuleContext
from agent.rules.devices import device_label, is_nvidia, one_level_lower
from agent.rules.pages import read_limit
from agent.rules.rule import Fail, NotApplicable, Pass, Result, Unknown, rule
from agent.rules.wording import join_labels


class Xid(NamedTuple):
    """One number: how grave it is, what it says, what to do."""

    severity: str
    meaning: str
    action: str


_RESET = "Stop the jobs on this GPU and reset it (`nvidia-smi -r -i`); where that fails, reboot."
_REBOOT = "Drain the node and power cycle it completely."
_NVLINK5 = "Read the link's counters (`nvidia-smi nvlink -e`); reset the GPU; where it comes back, have it looked at."
_MEMORY = "Reset the GPU when the job has ended; where it comes back, have the GPU replaced (NVIDIA's RMA criteria)."
_APPLICATION = "Look at the application first: a fault of its own ends so, or one that another Xid explains."

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
    ("119", "error", "GSP does not answer", _RESET),
    ("120", "error", "GSP error", _RESET),
    ("48", "error", "double-bit ECC error", _MEMORY),
    ("63", "info", "a row was remapped, or a page retired", _MEMORY),
    ("64", "error", "row remapping, or page retirement, failed", _MEMORY),
    ("92", "warning", "high rate of single-bit ECC errors", _MEMORY),
    ("94", "error", "contained ECC error", _MEMORY),
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
)  # fmt: skip
XIDS = {code: Xid(severity, meaning, action) for code, severity, meaning, action in _LISTED}


_NVLINK = frozenset(["74", "137", "144", "145", "146", "147", "148", "149", "150"])  # Xids of links
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
    told: dict[str, list[Event]] = {}
    for event in case.events:
        if event.kind in ("xid", "sxid", "gpu_lost", "gpu_init") and event.subject and _look_up(event):
            told.setdefault(event.subject, []).append(event)
    if not subjects and not told:
        yield NotApplicable("node", "no NVIDIA GPU")
    unread = case.probe_failure("kernel_log")
    for pci in sorted(subjects.keys() | told.keys()):
        subject = subjects.get(pci, f"pci:{pci}")
        if events := told.get(pci):
            yield _fail_xid(case, subject, pci, events)
        else:
            yield Unknown(subject, f"the kernel log was not read: {unread}") if unread else Pass(subject)


def _look_up(event: Event) -> Xid | None:
    if event.kind == "gpu_lost":
        return _LOST
    if event.kind == "gpu_init":
        return _INIT
    if event.kind == "sxid":
        return _FATAL_SXID if event.detail.get("severity") == "Fatal" else _SXID
    return XIDS.get(_effective_code(event))


def _effective_code(event: Event) -> str:
    """45 is the clean-up after another error, which its line names; that error's own line may have left the log."""
    previous = event.detail.get("previous", "")
    return previous if event.code == "45" and previous in XIDS else event.code or ""


def _fail_xid(case: RuleContext, subject: str, pci: str, events: Sequence[Event]) -> Fail:
    ranked = sorted(events, key=lambda event: (_rank(event), event.at or "", event.code or ""), reverse=True)
    worst = ranked[0]
    meaning = _look_up(worst)
    assert meaning is not None, "only events with a meaning are kept"
    passed = _is_over(case, pci, ranked)
    return Fail(
        subject=subject,
        label=device_label(case, pci),
        summary=f"{_name(worst)}: {meaning.meaning}{_count_others(ranked[1:])}" + (", long ago" if passed else ""),
        impact=_impact(subject, meaning),
        remedy=_fill_gpu_id(case, pci, meaning.action),
        evidence=tuple(_evidence(event) for event in ranked[:_SHOWN]),
        severity=one_level_lower(meaning.severity) if passed else meaning.severity,
        cause=_name(worst),
        situation="lost" if meaning.severity == "critical" else "",
        places=_about(pci, subject, ranked),
        covers=frozenset({pci, subject.partition(":")[2]}),
    )


def _about(pci: str, subject: str, events: Sequence[Event]) -> frozenset[str]:
    """The GPU's NVLinks where the log has no other Xid of it, each by itself where the log names them."""
    ids = {pci, subject.partition(":")[2]}
    if not all(event.kind == "xid" and _effective_code(event) in _NVLINK for event in events):
        return frozenset(f"{name}/xid" for name in ids)
    links = {(event.detail.get("link") or "").lstrip("0") or "0" for event in events if event.detail.get("link")}
    return frozenset(f"{name}/{link}" for name in ids for link in links or {"nvlink"})


def _impact(subject: str, meaning: Xid) -> str:
    if meaning.severity == "info":
        return _NONE
    if subject.startswith("nvswitch:"):
        return "Jobs whose NVLink traffic passes this switch end or hang: all GPUs of the node can be affected."
    return "Jobs on this GPU end or hang; a job that uses all GPUs of the node stops."


def _fill_gpu_id(case: RuleContext, pci: str, action: str) -> str:
    """The action with the GPU that its command is for."""
    gpu = case.gpu_by_pci.get(pci)
    which = str(gpu.index) if gpu is not None and gpu.index is not None else pci
    return action.replace("nvidia-smi -r -i", f"nvidia-smi -r -i {which}")


def _rank(event: Event) -> int:
    meaning = _look_up(event)
    return SEVERITIES.index(meaning.severity) if meaning else -1


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
    when = event.at or event.logged or "no date"
    times = f" (last of {event.count})" if event.count > 1 else ""
    return Evidence(what=f"kernel log, {when}{times}", value=event.text, source=event.source)


def _is_over(case: RuleContext, pci: str, events: Sequence[Event]) -> bool:
    """Whether the driver works with the GPU, and nothing was said of it for a day."""
    gpu = case.gpu_by_pci.get(pci)
    now = _parse_time(case.observed_at)
    if gpu is None or gpu.driver_state != "open" or now is None:
        return False
    moments = [_parse_time(event.at) for event in events if _rank(event) > 0]
    hours = case.threshold(_RECENT)
    return bool(moments) and all(at is not None and (now - at).total_seconds() > 3600 * hours for at in moments)


def _parse_time(text: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")) if text else None
    except ValueError:
        return None
