"""What follows from faults that tools state: one finding per part, by what the code of its line means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from agent.model.finding import SEVERITIES, Evidence
from agent.model.gpu import Gpu
from agent.model.node import Event
from agent.rules.cabling import UNPLUGGED
from agent.rules.context import RuleContext
from agent.rules.devices import device_label
from agent.rules.gpu.p2p import iommu_translates
from agent.rules.host.failure_words import OF_VALUES, UNEXPLAINED, WORDS_MEANINGS, list_commands, name_code
from agent.rules.host.meaning import Meaning, fill_forms, read_meanings
from agent.rules.node_wide import merge_if_on_all
from agent.rules.rule import Fail
from agent.rules.wording import join_labels

MEANINGS = {**read_meanings("tool-reports-fault"), **WORDS_MEANINGS}
_ORDER = list(MEANINGS)
_MAKERS = ("AMD", "NVIDIA")  # as the reader names a GPU by number
_SUBJECTS = {
    **dict.fromkeys(("ethtool", "bonding", "interface", "tc", "ip"), "INTERFACE"),
    "mlxlink": "DEVICE",
}  # that the tool's output is about
# Of which a PCI list shows more, or which counts where little else is there
_WITHOUT_LIST = ("modules-nouveau", "cmdline-iommu", "numa-none", "dimm-slow")
_OF_PERFTEST = "perftest-"  # whose command names the device
_WITHOUT_LINK = ("link-failure", "link-closed", "link-inactive", UNPLUGGED)  # why a port is down
_OF_LOG = ("driver", "peermem")  # kinds of lines in which the kernel states why it refused a module
_OF_XID = ("metric-xid", "alert-xid", "check-xid", "stated-xid")
_XID_STEPS = {
    "power-cycle": "xid-lost",
    "memory": "xid-memory",
    **dict.fromkeys(("init", "reset", "reboot"), "xid-reset"),
}
_FORMS = (  # what a line states beside its code, in this order
    "{what}", "{errors} errors", "{columns}", "{condition} {status}", "({message})", "{driver} ABI {wants} | {wants}",
    "{counted} by its label", "{xid} of {device} | {xid} | {device}",
)  # fmt: skip
_SHOWN = 6
_ALSO = 3
_SWITCH = "switch-"
_WITH_REASON = ("switch-port-down",)
_SHORT = {  # beside another fault of the same port
    "switch-port-down": "no link now",
    "switch-log-down": "no link at the end of the log",
    "switch-flaps": "link changes",
    "switch-flaps-most": "link changes, far more than on others:",
    "switch-log-flaps": "link losses in the log:",
    "switch-uncorrected": "FEC could not correct:",
    "switch-uncorrected-few": "FEC could not correct:",
    "switch-drops": "drops:",
    "switch-drops-most": "drops:",
    "switch-errors": "damaged frames:",
    "switch-errors-few": "damaged frames:",
    "switch-errors-sent": "damaged frames sent:",
    "switch-slow": "slower than most others:",
}
_BMC_DAYS = 30  # between an event and the newest one of the BMC's log: after that it is history


def list_tool_faults(context: RuleContext, events: Sequence[Event]) -> Iterator[Fail]:
    """The faults that these events are: one per part, and those of all GPUs of the host together."""
    parts: dict[str, list[Event]] = {}
    for event in events:
        if (event.code in MEANINGS or event.code in OF_VALUES) and not _is_known(context, event):
            event = _join(context, event)
            parts.setdefault(event.subject or f"node {event.code}", []).append(event)
    faults = [_fail(context, parts[part]) for part in sorted(parts)]
    of_gpus = [fault for fault in faults if fault.subject.startswith("gpu:")]
    title = MEANINGS[of_gpus[0].cause].title if of_gpus else ""
    yield from merge_if_on_all(of_gpus, len(context.topology.gpus), title)
    others = (fault for fault in faults if fault not in of_gpus)
    yield from sorted(others, key=lambda fault: _ORDER.index(fault.cause))


def _join(context: RuleContext, event: Event) -> Event:
    """A line of ACS with what the kernel's log states of the IOMMU, networks that interfaces share with the settings
    for them; a line that no check explains by its words."""
    if event.code == "unnamed-acs" and iommu_translates(context):
        return msgspec.structs.replace(event, code="unnamed-acs-translated")
    if event.code == "network-shared" and any(one.code == "paths-open" for one in context.events):
        return msgspec.structs.replace(event, code="network-shared-open")
    code = name_code(event.code or "", event.text, event.detail.get("what", ""))
    return msgspec.structs.replace(event, code=code)


def _is_known(context: RuleContext, event: Event) -> bool:
    """Whether something else in the source shows it: the PCI list each GPU's driver, a second sample which counters
    grow, the link of an interface what its FEC means, a port that is down that its virtual function has no GUID."""
    code = event.code or ""
    if code.startswith("fec-"):
        netdev = context.netdevs.get(event.subject or "")
        return netdev is not None and netdev.operstate is not None
    if code == "guid-zero":
        ports = [port for nic in context.topology.nics if nic.label in event.text.split(", ") for port in nic.ports]
        return any(port.state == "DOWN" for port in ports)
    if code == "paths-open":
        return any(one.code == "network-shared" for one in context.events)
    if code == "smi-hot" and (gpu := _find_gpu(context, event.subject)) and gpu.health:
        return any("thermal" in limit for limit in gpu.health.clock_limits or ())  # gpu-throttled
    if code == "module-refused" or code in _OF_XID:
        return any(_is_same(one, event) for one in context.events)
    if code.startswith(("nvlink-counted", "pauses-")):
        return context.why_not_counted is None
    return code in _WITHOUT_LIST and context.why_bus_unread is None


def _is_same(logged: Event, event: Event) -> bool:
    """Whether a line of the kernel log states the same: why it refused the module, or the Xid of that GPU."""
    if event.code in _OF_XID:
        return (logged.kind, logged.code, logged.subject) == ("xid", event.detail.get("xid"), event.subject)
    module = event.detail.get("what", "").partition(":")[0].replace("-", "_")
    begins = logged.text.partition(":")[0].replace("-", "_")
    return logged.kind in _OF_LOG and begins == module


def _fail(context: RuleContext, events: Sequence[Event]) -> Fail:
    """One finding per part: the most severe of its codes decides."""
    events = sorted(events, key=lambda event: (_ORDER.index(event.code or ""), _rank_xid(event)))
    first = events[0]
    meaning = MEANINGS[first.code or ""]
    gpu = _find_gpu(context, first.subject)
    texts = list(dict.fromkeys(text for event in events if event.code == first.code if (text := _describe(event))))
    details = join_labels(texts)
    if first.code in _OF_XID and len(texts) > 1:
        details = f"{texts[0]}; also {join_labels([text.partition(' (')[0] for text in texts[1:]])}"
    situation, remedy = _plan_xid(context, first) if first.code in _OF_XID else (meaning.steps, "")
    on_bus = (first.subject or "").count(":") == 2
    number = (first.subject or "").rpartition(" ")[2]
    if gpu is not None:
        subject, label = f"gpu:{gpu.id}", gpu.label
    elif on_bus:
        subject, label = f"pci:{first.subject}", device_label(context, first.subject or "")
    else:
        is_gpu = (first.subject or "").startswith(tuple(f"{maker} " for maker in _MAKERS))
        subject, label = "node", f"GPU{number}" if is_gpu else first.subject or "node"
    explained = _find_port_ids(context, first.subject) if first.code in _WITHOUT_LINK else frozenset()
    return Fail(
        subject=subject,
        label=label,
        summary=f"{meaning.title}{f': {details}' if details else ''}{_describe_others(events)}",
        impact=meaning.impact,
        evidence=tuple(Evidence(_name_source(event), event.text, event.source) for event in events[:_SHOWN]),
        severity=_find_severity(context, first, meaning),
        confidence=meaning.confidence,
        cause=first.code or "",
        situation=situation,
        remedy=remedy,
        values=_list_values(first, meaning),
        ids=frozenset({gpu.id if gpu else first.subject or f"tool {first.code}"})
        | (explained if first.code == UNPLUGGED else frozenset()),
        explains_ids=explained,
    )


def _find_port_ids(context: RuleContext, name: str | None) -> frozenset[str]:
    """The name of an RDMA device or an interface, and the ports that it is."""
    return frozenset({name or ""}).union(
        f"{nic.id}/{port.port}"
        for nic in context.topology.nics
        for port in nic.ports
        if name in (nic.rdma_device or nic.label, *port.netdevs)
    )


def _describe_others(events: Sequence[Event]) -> str:
    """What else is stated of the same part beside the most severe: that a port has no link now, for example."""
    title = MEANINGS[events[0].code or ""].title
    others = {
        event.code: event
        for event in events
        if event.code != UNEXPLAINED
        and MEANINGS[event.code or ""].title != title
        and not MEANINGS[event.code or ""].steps.startswith("words-")
    }
    texts = [_describe_other(code or "", _describe(event)) for code, event in others.items()]
    return f"; also: {'; '.join(texts[:_ALSO])}" if texts else ""


def _describe_other(code: str, details: str) -> str:
    title = _SHORT.get(code, MEANINGS[code].title)
    if details and code in _WITH_REASON:
        return f"{title} ({details})"
    return f"{title} {details}".strip()


def _plan_xid(context: RuleContext, event: Event) -> tuple[str, str]:
    """The steps of an Xid that a tool states, and the sentence of its own: as those of the kernel log's."""
    from agent.rules.gpu.xid_catalogue import UNLISTED, XIDS  # lazy: few sources hold metrics
    from agent.rules.gpu.xid_recovery import plan_recovery

    number = event.detail.get("xid", "")
    logged = msgspec.structs.replace(event, kind="xid", code=number)
    situation, remedy = plan_recovery(context, logged, XIDS.get(number, UNLISTED), alone=True, over=False)
    return _XID_STEPS.get(situation, "xid"), remedy


def _list_values(event: Event, meaning: Meaning) -> tuple[tuple[str, str], ...]:
    """Words of the steps, as the line has them."""
    is_device = (event.code or "").startswith(_OF_PERFTEST)
    is_node = meaning.steps.startswith("slurm")
    named = "SLURM_NODE" if is_node else "DEVICE" if is_device else _SUBJECTS.get(_name_tool(event))
    of_words = event.code == UNEXPLAINED or meaning.steps.startswith("words-")
    values = (
        (named or "", event.subject if named else None),
        ("REPORTER", event.detail.get("reporter")),
        ("RULE", event.detail.get("rule")),
        (
            "COMMANDS",
            list_commands(event.subject, f"{event.detail.get('what', '')} {event.text}") if of_words else None,
        ),
    )
    return tuple((name, value) for name, value in values if value)


def _find_severity(context: RuleContext, event: Event, meaning: Meaning) -> str:
    """As the table states; an Xid that applications cause is a note, and so is what a BMC logged long ago, or beside
    the rest of a host, which shows how its parts are now, and no leak."""
    if (event.code or "").startswith("bmc-"):
        is_old = int(event.detail.get("days_before", "0")) > _BMC_DAYS
        is_shown = context.why_bus_unread is None and meaning.severity != "critical"
        return "info" if is_old or is_shown else meaning.severity
    return "info" if _rank_xid(event) == 0 else meaning.severity


def _rank_xid(event: Event) -> int:
    """How severe the Xid is that a tool states, the gravest least; 0: a note, or one that no catalogue has."""
    if event.code not in _OF_XID:
        return -1
    from agent.rules.gpu.xid_catalogue import UNLISTED, XIDS  # lazy: few sources hold metrics

    return -SEVERITIES.index(XIDS.get(event.detail.get("xid", ""), UNLISTED).severity)


def _find_gpu(context: RuleContext, subject: str | None) -> Gpu | None:
    """By its address, or by the number that the tool of its maker gives it."""
    maker, _, number = (subject or "").partition(" ")
    if maker not in _MAKERS:
        by_uuid = next((gpu for gpu in context.topology.gpus if subject and gpu.uuid == subject), None)
        return context.gpus.get(subject or "") or by_uuid
    return next((gpu for gpu in context.topology.gpus if (gpu.vendor, str(gpu.index)) == (maker, number)), None)


def _describe(event: Event) -> str:
    """What the line states beside its code."""
    detail = event.detail
    if "allocatable" in detail:
        return f"{detail['resource']} {detail['allocatable']} of {detail['capacity']}"
    words = {**detail, "xid": _name_xid(detail["xid"])} if "xid" in detail else detail
    return " ".join(fill_forms(words, _FORMS))


def _name_xid(number: str) -> str:
    """With what the catalogue has of it."""
    from agent.rules.gpu.xid_catalogue import XIDS  # lazy: few sources hold metrics

    return f"Xid {number} ({XIDS[number].meaning})" if number in XIDS else f"Xid {number}"


def _name_tool(event: Event) -> str:
    return event.source.partition(" ")[0]


def _name_source(event: Event) -> str:
    """What an evidence is called: a line of a program that no output names is one."""
    return "line" if event.source.startswith("error of ") else _name_tool(event)
