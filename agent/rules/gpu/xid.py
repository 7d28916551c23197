"""gpu-xid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from agent.model.finding import SEVERITIES, Evidence
from agent.model.node import Event
from agent.rules.case import Case
from agent.rules.counting import named
from agent.rules.devices import is_nvidia, label_of, lowered
from agent.rules.gpu.xids import XIDS, Xid
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule
from agent.rules.threshold import Threshold

_RECENT = Threshold("gpu-xid.recent_hours", 24.0, "hours after which an Xid of a GPU that works is one step less grave")
_NONE = "0 by itself: a trace of a job that failed."
_SHOWN = 6  # lines of evidence
_LOST = Xid("critical", "the GPU fell off the bus", XIDS["79"].action)
_INIT = Xid("critical", "the driver could not initialize the GPU", XIDS["143"].action)
_FATAL_SXID = Xid("error", "fatal NVSwitch error", "Drain the node; reset all GPUs and NVSwitches together, or reboot.")
_SXID = Xid("info", "non-fatal NVSwitch error", "Nothing by itself; a growing number points at the link that it names.")


@rule("gpu-xid", "critical", needs=("kernel_log",), references=("PCIE-034",), thresholds=(_RECENT,))
def gpu_xid(case: Case) -> Iterator[Answer]:
    """The driver reported an error of a GPU or NVSwitch (Xid, SXid) since boot.

    ## What it checks
    The kernel log of this boot, as far back as it reaches (`software.kernel_log_since` of the report), for lines of the
    NVIDIA driver about each GPU and NVSwitch.

    ## Why it matters
    Xid 79 means that 1 of 8 GPUs is gone; an NVLink Xid that the job at its end blames on NCCL. The line has the date,
    the GPU and often the link.

    ## How it is decided
    The gravest Xid of each GPU, by the driver's own catalogue: lost, not initialized, PCIe timeout: critical; NVLink,
    GSP, ECC that was not contained, reset needed: error; C2C, encryption: warning; those that applications cause (13,
    31, 43, 45) and remapped rows: info. An Xid 45 that names the Xid before it counts as that one, whose own line the
    log may have lost. Fatal SXids are errors. When the last one is older than a day and the driver
    works with the GPU, it is one step less grave: the GPU was reset, or got over it.

    ## What keeps it silent
    - A number that the catalogue does not have.
    - The kernel log could not be read: unknown, and the reason says what would allow it.
    - No NVIDIA GPU: not applicable.

    ## How to confirm
    `dmesg -T | grep -iE 'xid|fallen off'` or `journalctl -k -b | grep -i xid`

    ## How to fix
    As the finding says; the catalogue has a page for each number. `nvidia-smi -q | grep -i recovery` tells what the
    driver itself wants.

    ## Source
    NVIDIA Xid catalogue (docs.nvidia.com/deploy/xid-errors); gpud, which embeds it; Fabric Manager user guide (SXid).
    """
    gpus = {gpu.pci: f"gpu:{gpu.id}" for gpu in case.topology.gpus if gpu.pci and is_nvidia(case, gpu)}
    subjects = gpus | {switch.pci: f"nvswitch:{switch.id}" for switch in case.topology.nvswitches}
    told: dict[str, list[Event]] = {}
    for event in case.events:
        if event.kind in ("xid", "sxid", "gpu_lost", "gpu_init") and event.subject and _meaning(event):
            told.setdefault(event.subject, []).append(event)
    if not subjects and not told:
        yield NotApplicable("node", "no NVIDIA GPU")
    unread = case.probe_failure("kernel_log")
    for pci in sorted(subjects.keys() | told.keys()):
        subject = subjects.get(pci, f"pci:{pci}")
        if events := told.get(pci):
            yield _fault(case, subject, pci, events)
        else:
            yield Unknown(subject, f"the kernel log was not read: {unread}") if unread else Pass(subject)


def _meaning(event: Event) -> Xid | None:
    if event.kind == "gpu_lost":
        return _LOST
    if event.kind == "gpu_init":
        return _INIT
    if event.kind == "sxid":
        return _FATAL_SXID if event.detail.get("severity") == "Fatal" else _SXID
    return XIDS.get(_code(event))


def _code(event: Event) -> str:
    """45 is the clean-up after another error, which its line names; that error's own line may have left the log."""
    previous = event.detail.get("previous", "")
    return previous if event.code == "45" and previous in XIDS else event.code or ""


def _fault(case: Case, subject: str, pci: str, events: Sequence[Event]) -> Fail:
    ranked = sorted(events, key=lambda event: (_rank(event), event.at or "", event.code or ""), reverse=True)
    worst = ranked[0]
    meaning = _meaning(worst)
    assert meaning is not None, "only events with a meaning are kept"
    passed = _is_over(case, pci, ranked)
    return Fail(
        subject=subject,
        label=label_of(case, pci),
        summary=f"{_name(worst)}: {meaning.meaning}{_others(ranked[1:])}" + (", long ago" if passed else ""),
        impact=_impact(subject, meaning),
        remedy=_addressed(case, pci, meaning.action),
        evidence=tuple(_evidence(event) for event in ranked[:_SHOWN]),
        severity=lowered(meaning.severity) if passed else meaning.severity,
        cause=_name(worst),
        places=frozenset({pci, subject.partition(":")[2]}),
    )


def _impact(subject: str, meaning: Xid) -> str:
    if meaning.severity == "info":
        return _NONE
    if subject.startswith("nvswitch:"):
        return "Jobs whose NVLink traffic passes this switch end or hang: up to 100 % of the node's GPUs."
    return "Jobs on this GPU end or hang; 1 lost GPU stops a job that uses all of them."


def _addressed(case: Case, pci: str, action: str) -> str:
    """The action with the GPU that its command is for."""
    gpu = case.gpu_by_pci.get(pci)
    which = str(gpu.index) if gpu is not None and gpu.index is not None else pci
    return action.replace("nvidia-smi -r -i", f"nvidia-smi -r -i {which}")


def _rank(event: Event) -> int:
    meaning = _meaning(event)
    return SEVERITIES.index(meaning.severity) if meaning else -1


def _name(event: Event) -> str:
    if event.kind == "xid":
        link = event.detail.get("link")
        return f"Xid {_code(event)}" + (f" on NVLink {link.lstrip('0') or '0'}" if link and link.isdecimal() else "")
    return f"SXid {event.code}" if event.kind == "sxid" else "GPU lost" if event.kind == "gpu_lost" else "GPU not ready"


def _others(events: Sequence[Event]) -> str:
    names = dict.fromkeys(_name(event) for event in events)
    return f"; also {named(list(names))}" if names else ""


def _evidence(event: Event) -> Evidence:
    when = event.at or event.logged or "no date"
    times = f" (last of {event.count})" if event.count > 1 else ""
    return Evidence(what=f"kernel log, {when}{times}", value=event.text, source=event.source)


def _is_over(case: Case, pci: str, events: Sequence[Event]) -> bool:
    """Whether the driver works with the GPU, and nothing was said of it for a day."""
    gpu = case.gpu_by_pci.get(pci)
    now = _moment(case.observed_at)
    if gpu is None or gpu.driver_state != "open" or now is None:
        return False
    moments = [_moment(event.at) for event in events if _rank(event) > 0]
    hours = case.threshold(_RECENT)
    return bool(moments) and all(at is not None and (now - at).total_seconds() > 3600 * hours for at in moments)


def _moment(text: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")) if text else None
    except ValueError:
        return None
