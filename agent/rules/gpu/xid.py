"""Xid and SXid errors that the driver reported, and what each of them means."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from msgspec.structs import replace

from agent.model.finding import SEVERITIES, Evidence
from agent.model.node import Event
from agent.model.reasons import Reason
from agent.rules.context import RuleContext, parse_time
from agent.rules.devices import device_label, is_nvidia, one_level_lower, states_driver_cause
from agent.rules.gpu.xid_catalogue import NVLINK5, UNLISTED, XIDS, Xid, decode_link_error, effective_code
from agent.rules.pages import read_limit
from agent.rules.rule import NODE, Fail, Pass, Result, Unknown, rule
from agent.rules.wording import join_labels

_NVLINK = frozenset(["74", "137", "144", "145", "146", "147", "148", "149", "150"])  # Xids of links
_MEMORY_CODES = frozenset(["48", "63", "64", "92", "94", "95", "140", "156", "157", "171", "172"])
_ACTION = "154"  # of the driver, for an error that other lines state
_UNUSABLE = r"(?i)(?!.*drain).*(?:reset|reboot)"  # until that is done
_RECENT = read_limit("gpu-xid.recent_hours")
_NONE = "None by itself: a trace of a job that failed."
_SHOWN = 6  # lines of evidence
_LOST = Xid("critical", "the GPU fell off the bus", "RESTART_BM")
_INIT = Xid("critical", "the driver could not initialize the GPU", "RESET_GPU")
_FATAL_SXID = Xid("error", "fatal NVSwitch error")
_SXID = Xid("info", "non-fatal NVSwitch error")
_SXID_PART = Xid("warning", "NVSwitch error; a line before this one states whether it is fatal")


@rule("gpu-xid")
def gpu_xid(context: RuleContext) -> Iterator[Result]:
    gpus = {gpu.pci: f"gpu:{gpu.id}" for gpu in context.topology.gpus if gpu.pci and is_nvidia(context, gpu)}
    subjects = gpus | {switch.pci: f"nvswitch:{switch.id}" for switch in context.topology.nvswitches}
    events_of: dict[str, list[Event]] = {}
    for event in context.events:
        if event.kind == "gpu_init" and states_driver_cause(context, event.subject or ""):
            continue  # the sentence is the finding: driver-reports-failure
        if event.kind in ("xid", "sxid", "gpu_lost", "gpu_init") and event.subject:
            events_of.setdefault(event.subject, []).append(event)
    unread = context.why_probe_failed("kernel_log")
    if not subjects and not events_of:
        if unread and unread.code != "evidence-absent" and context.why_bus_unread:  # both are there
            yield NODE.unknown(Reason("log-not-read", why=unread))
        else:
            yield NODE.not_applicable("no-such-device", detail="no NVIDIA GPU")
    for pci in sorted(subjects.keys() | events_of.keys()):
        known = context.gpu_by_pci.get(pci)
        subject = subjects.get(pci) or (f"gpu:{known.id}" if known else f"pci:{pci}")
        if events := events_of.get(pci):
            yield _fail_xid(context, subject, pci, events)
        else:
            yield Unknown(subject, Reason("log-not-read", why=unread)) if unread else Pass(subject)


def _look_up(event: Event) -> Xid:
    if event.kind == "gpu_lost":
        return _LOST
    if event.kind == "gpu_init":
        return _INIT
    if event.kind == "sxid":
        return {"Fatal": _FATAL_SXID, None: _SXID_PART}.get(event.detail.get("severity"), _SXID)
    code = effective_code(event)
    if code in NVLINK5 and event.detail.get("severity") == "Nonfatal":
        return replace(XIDS[code], severity="warning" if event.count > 1 else "info")
    if asked := _describe_action(event):
        severity = "info" if "none" in asked.lower() else "error" if re.match(_UNUSABLE, asked) else "warning"
        return replace(XIDS[code], severity=severity)
    return XIDS.get(code, UNLISTED)


def _fail_xid(context: RuleContext, subject: str, pci: str, events: Sequence[Event]) -> Fail:
    from agent.rules.gpu.xid_recovery import plan_recovery  # lazy: most logs have no such line

    ranked = sorted(
        events,
        key=lambda event: (_rank(event), event.code != _ACTION, _needs_reset(event), event.at or "", event.code or ""),
        reverse=True,
    )
    worst = ranked[0]
    meaning = _look_up(worst)
    passed = _is_over(context, pci, ranked)
    situation, remedy = plan_recovery(context, worst, meaning, alone=_is_alone(ranked), over=passed)
    return Fail(
        subject=subject,
        label=_label(context, pci, worst),
        summary=f"{_name(worst)}: {meaning.meaning}{_describe_action(worst)}{_describe_return(worst)}"
        + _count_others(ranked[1:])
        + (", long ago" if passed else ""),
        impact=_impact(worst, meaning),
        remedy=remedy,
        evidence=tuple(_evidence(event) for event in ranked[:_SHOWN]),
        severity=one_level_lower(meaning.severity) if passed else meaning.severity,
        cause=_name(worst),
        situation=situation,
        ids=_about(pci, subject, ranked),
        explains_ids=frozenset({pci, subject.partition(":")[2]}),
    )


def _about(pci: str, subject: str, events: Sequence[Event]) -> frozenset[str]:
    """The GPU's NVLinks where the log has no other Xid of it, each by itself where the log names them; its memory, or
    the repair of that, likewise."""
    ids = {pci, subject.partition(":")[2]}
    codes = {effective_code(event) for event in events}
    if codes.issubset(_MEMORY_CODES):
        return frozenset(f"{name}/{'remap' if codes == {'63'} else 'memory'}" for name in ids)
    if not codes.issubset(_NVLINK):
        return frozenset(f"{name}/xid" for name in ids)
    links = {(event.detail.get("link") or "").lstrip("0") or "0" for event in events if event.detail.get("link")}
    return frozenset(f"{name}/{link}" for name in ids for link in links or {"nvlink"})


def _label(context: RuleContext, pci: str, worst: Event) -> str:
    """Only an NVSwitch has SXids: a log alone names it by its address."""
    return f"NVSwitch {pci}" if worst.kind == "sxid" else device_label(context, pci)


def _is_alone(events: Sequence[Event]) -> bool:
    """Whether the log has one kind of error of this GPU, and none that a clean-up (45) would follow."""
    return len({_name(event) for event in events}) == 1


def _impact(worst: Event, meaning: Xid) -> str:
    if meaning.severity == "info":
        return "None by itself." if worst.kind == "sxid" else _NONE
    if meaning is _SXID_PART:
        return "If it is fatal, jobs whose NVLink traffic passes this switch end or hang; if not, none by itself."
    if worst.kind == "sxid":
        return "Jobs whose NVLink traffic passes this switch end or hang: all GPUs of the node can be affected."
    return "Jobs on this GPU end or hang; a job that uses all GPUs of the node stops."


def _describe_action(event: Event) -> str:
    """What the driver asks for in a line of Xid 154."""
    asked = event.detail.get("after", "") if event.code == _ACTION else ""
    return f": {asked.partition('(')[2].rstrip(')') or asked}" if asked else ""


def _describe_return(event: Event) -> str:
    return ", and again after a reset or a new load of the driver" if "after_reset" in event.detail else ""


def _needs_reset(event: Event) -> bool:
    """Whether it is more than the end of one application."""
    return _look_up(event).at_once not in ("RESTART_APP", "IGNORE")


def _rank(event: Event) -> int:
    return SEVERITIES.index(_look_up(event).severity)


def _name(event: Event) -> str:
    if event.kind == "xid":
        link = event.detail.get("link")
        return f"Xid {effective_code(event)}" + (
            f" on NVLink {link.lstrip('0') or '0'}" if link and link.isdecimal() else ""
        )
    return f"SXid {event.code}" if event.kind == "sxid" else "GPU lost" if event.kind == "gpu_lost" else "GPU not ready"


def _count_others(events: Sequence[Event]) -> str:
    names = dict.fromkeys(_name(event) for event in events)
    return f"; also {join_labels(list(names))}" if names else ""


def _evidence(event: Event) -> Evidence:
    date = event.at or event.logged or "no date"
    times = f" (last of {event.count})" if event.count > 1 else ""
    return Evidence(f"kernel log, {date}{times}", event.text, event.source)


def _is_over(context: RuleContext, pci: str, events: Sequence[Event]) -> bool:
    """Whether the driver works with the GPU, and nothing was reported of it for a day."""
    gpu = context.gpu_by_pci.get(pci)
    if gpu is None or gpu.driver_state != "open":
        return False
    ages = [context.seconds_since(event.at) for event in events if _rank(event) > 0]
    hours = context.threshold(_RECENT)
    return bool(ages) and all(age is not None and age > 3600 * hours for age in ages)


_ROOT, _FOLLOWING = "149", "145"
_BLAMED = {  # by what the root's own code states has to be looked into
    "INVESTIGATE_PEER_DEVICE": "peer", "INVESTIGATE_SW_USER": "software", "INVESTIGATE_HOST": "software",
}  # fmt: skip
_ENDS = {
    "peer": "by its code the device at the other end failed first",
    "software": "by its code software or an administrator took the link down",
}
_TOGETHER_SECONDS = 60.0
_OF_GPUS = frozenset(["xid", "gpu_lost", "gpu_init"])


@rule("xid-root-of-many")
def xid_root_of_many(context: RuleContext) -> Iterator[Result]:
    gpus = {gpu.pci: gpu.id for gpu in context.topology.gpus if gpu.pci and is_nvidia(context, gpu)}
    if not gpus:
        yield NODE.not_applicable("no-such-device", detail="no NVIDIA GPU")
        return
    if unread := context.why_probe_failed("kernel_log"):
        yield NODE.unknown("log-not-read", why=unread)
        return
    severe = [
        event for event in context.events if event.kind in _OF_GPUS and event.subject in gpus and _rank(event) > 0
    ]
    roots = [event for event in severe if _link_number(event) and _is_fatal(event, _ROOT)]
    roots = [root for root in roots if not any(_may_be_switch(event, root) for event in context.events)]
    faults = [fault for root in roots if (fault := _judge_root(context, root, severe, gpus))]
    yield from faults
    if not faults:
        yield NODE.passes()


def _is_fatal(event: Event, code: str) -> bool:
    return event.code == code and event.detail.get("severity") != "Nonfatal"


def _may_be_switch(event: Event, root: Event) -> bool:
    """Whether an NVSwitch failed, too, so that the link may not be what failed first."""
    dated = parse_time(event.at) is not None
    return _look_up(event) is _FATAL_SXID and (not dated or _are_together(event, root))


def _judge_root(context: RuleContext, root: Event, severe: Sequence[Event], gpus: Mapping[str, str]) -> Fail | None:
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
    link, blamed = _link_number(root), (decode_link_error(root) or ("", ""))[1]
    situation = _BLAMED.get(blamed, "")
    whole = all(_link_number(event) == link for event in of_root)
    label = f"{device_label(context, root.subject or '')} NVLink {link}"
    labels = [device_label(context, pci) for pci in sorted(followers)]
    return Fail(
        subject=f"link:{own}/{link}",
        label=label,
        summary=f"Xid {_ROOT} on this link, and within a minute Xid {_FOLLOWING} on {join_labels(labels)}",
        impact=f"Jobs on {len(followers) + 1} GPUs ended by the fault of one link"
        + (f"; {_ENDS[situation]}." if situation else "."),
        remedy=_describe_resets(context, [root, *(events[0] for _, events in sorted(followers.items()))]),
        evidence=(_evidence(root), *(_evidence(events[0]) for _, events in sorted(followers.items())[: _SHOWN - 1])),
        cause=f"NVLink {link}",
        situation=situation,
        ids=frozenset({f"{own}/{link}"}),
        explains_ids=frozenset({*followers, *(gpus[pci] for pci in followers), *({f"{own}/{link}"} if whole else ())}),
    )


def _describe_resets(context: RuleContext, events: Sequence[Event]) -> str:
    """The GPUs that the driver, else the words of their own lines, want to be reset."""
    from agent.rules.gpu.xid_recovery import find_driver_action  # lazy, as in `_fail_xid`

    wanted, asked = [], False
    for event in events:
        action, decoded = find_driver_action(context, event.subject or ""), decode_link_error(event)
        if action in (None, "none") and decoded and decoded[0] == "IGNORE":
            continue
        asked = asked or action != "none"
        gpu = context.gpu_by_pci.get(event.subject or "")
        wanted.append(str(gpu.index) if gpu and gpu.index is not None else event.subject or "")
    if not wanted:
        return "Reset no GPU: neither the driver nor the words of the lines ask for it."
    when = "D" if asked else "The driver asks for no reset now. Where jobs go on to fail, d"
    commands = ", ".join(f"`nvidia-smi -r -i {index}`" for index in wanted)
    return (
        f"{when}rain the node and end what uses the GPUs: jobs, HOLDERS Then reset the GPUs that need it, and start "
        f"what was stopped: {commands} (costs a reset)"
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
