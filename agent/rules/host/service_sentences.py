"""What a service of the node states of a fault: fabric manager, subnet managers, IMEX, DCGM and others.

The sentences are rows of `probes/services/sentences.py`, their meanings those of `meanings/service-reports-failure.md`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from agent.model.finding import Evidence
from agent.model.node import Event
from agent.rules.context import RuleContext
from agent.rules.devices import quote_log
from agent.rules.host.error_numbers import explain_number
from agent.rules.host.meaning import fill_forms, read_meanings
from agent.rules.host.unexplained import KIND, describe_period, shorten
from agent.rules.nvlink.fabric import MANAGER, PLACE, unmanaged_reason
from agent.rules.nvlink.link_counts import LinkForm, find_form
from agent.rules.rule import NODE, Fail, NotApplicable
from agent.rules.wording import count_of, join_labels

SERVICE_MEANINGS = read_meanings("service-reports-failure")
CONTEXT = frozenset({"pre-nvl5"})  # evidence of other sentences
_ORDER = list(SERVICE_MEANINGS)
_OF_FABRIC = frozenset({
    "fm-version", "fm-config", "no-umad", "fm-topology", "fm-no-switch", "switch-fatal", "cuda-802",
})  # fmt: skip
_OF_NO_SERVICE = "umad-missing"  # a tool prints it, too
_OF_SWITCHES = {_OF_NO_SERVICE: "no-umad"}  # what it is on a host with NVSwitches
_SELDOM_NEEDED = ("irqbalance", "rshim")  # installed on many nodes that do not need them
_FORMS = (  # what a line states beside its code, in this order
    "fabric manager {version}, driver {driver}", "{item}", "{node}, {times}", "{task}", "SXid {sxid}", "{what}",
    "LID {lid}", "NVSwitch {pci}", "port {port}", "module {module}", "error {error}", "{result}", "status {status}",
)  # fmt: skip
_SHOWN = 6
_REMOVED = "sm-port-removed"
_SEVERAL_TIMES = 2


def judge_services(context: RuleContext, events: Sequence[Event]) -> Iterator[Fail]:
    """The faults of all services that the events are of."""
    for service in sorted({event.subject or "" for event in events}):
        yield from _judge_service(context, service, [event for event in events if event.subject == service])


def _judge_service(context: RuleContext, service: str, events: Sequence[Event]) -> Iterator[Fail]:
    """One finding per service: the first cause, with all that its log states."""
    state = next((known.state for known in context.software.services if known.name == service), None)
    waits = any(gpu.fabric and gpu.fabric.state == "in_progress" for gpu in context.topology.gpus)
    if waits or any(event.subject == MANAGER for event in context.events):
        events = [replace(event, code=_OF_SWITCHES.get(event.code or "", event.code)) for event in events]
    counting = [
        event
        for event in events
        if event.code in SERVICE_MEANINGS
        and not (SERVICE_MEANINGS[event.code].of_start and state == "active")
        and not _is_known(context, event)
        and not (event.code == _REMOVED and _is_restart(event, events))
    ]
    if counting:
        yield _fail(context, service, sorted(counting, key=lambda event: _ORDER.index(event.code or "")), events)
    elif state != "active" and (unexplained := [event for event in events if event.code == KIND]):
        yield _note(service, unexplained)


def _is_restart(removed: Event, events: Sequence[Event]) -> bool:
    """Whether a port left the subnet once, or with others of its node: as with each reboot."""
    name = removed.detail.get("node", "").split(" ")[0]
    others = [
        event for event in events if event.code == _REMOVED and event.detail.get("node", "").split(" ")[0] == name
    ]
    return removed.count < _SEVERAL_TIMES or len(others) > 1


def _note(service: str, events: Sequence[Event]) -> Fail:
    """Lines of errors that no sentence explains."""
    lines = count_of(sum(event.count for event in events), "lines")
    numbers = list(dict.fromkeys(filter(None, (explain_number(service, event.text) for event in events))))
    return NODE.fail(
        f"its log has errors that no check explains ({lines}{describe_period(events)}): {shorten(events[-1].text)}"
        + (f" ({join_labels(numbers[:2])})" if numbers else ""),
        "Not known: the line states that something failed, and not what depends on it.",
        label=service,
        evidence=tuple(quote_log(event, "log") for event in events[:_SHOWN]),
        values=(("UNIT", service),),
        severity="info",
        confidence="low",
        cause=f"{KIND} {service}",
        situation=KIND,
        ids=frozenset({f"service {service}"}),
        explains_ids=frozenset(),
    )


def _is_known(context: RuleContext, event: Event) -> bool:
    """Whether another rule decides it: the kernel log has the same error of a switch, or the service's state is all."""
    if event.code in ("switch-fatal", "switch-error"):
        return any(other.kind == "sxid" and other.code == event.detail.get("sxid") for other in context.events)
    if event.code == "crashed":
        task = event.detail.get("task", "")
        return any(
            (one.code == "tool-crashed" and one.detail.get("task") == task)
            or one.detail.get("result") == "core-dump"  # of a service that failed by it
            for one in context.events
        )
    if event.code == "failed" and event.subject == MANAGER:
        return unmanaged_reason(context) is None
    return event.code == "cuda-802" and any(gpu.fabric and gpu.fabric.state for gpu in context.topology.gpus)


def _fail(context: RuleContext, service: str, events: Sequence[Event], all_events: Sequence[Event]) -> Fail:
    first = events[0]
    code = first.code or ""
    meaning = SERVICE_MEANINGS[code]
    details = _describe_details(first)
    title = meaning.title
    if code == "failed" and (unexplained := [event for event in all_events if event.code == KIND]):
        title = f"it failed; an error before that, which no check explains: {shorten(unexplained[-1].text)}"
    fabric = code in _OF_FABRIC
    shared = frozenset({PLACE if fabric else f"service {service}"})
    fault = NODE.fail(
        label="node" if code == _OF_NO_SERVICE else service,
        summary=f"{'' if code == _OF_NO_SERVICE else 'its log states: '}{title}{f' ({details})' if details else ''}",
        impact=meaning.impact,
        evidence=(
            *(
                quote_log(event, "log")
                for event in all_events
                if event in events or event.code in ("failed", KIND, *CONTEXT)
            ),
            *(_describe_fabric(context) if fabric else ()),
        )[:_SHOWN],
        severity=meaning.severity,
        confidence=meaning.confidence,
        cause=f"{service} {code}",
        situation=code,
        values=(("UNIT", service),),
        ids=shared | (_list_gpus(context) if fabric else frozenset()),
        # of the fabric what its consequences share: links of single GPUs are down for another reason
        explains_ids=shared if meaning.confidence == "high" else frozenset(),
    )
    if code == "failed" and service in _SELDOM_NEEDED:
        return replace(fault, severity="info")
    if service == MANAGER and code in ("failed", "fm-no-switch") and (why := _why_unneeded(context)):
        return replace(
            fault,
            summary=f"it failed, and is not needed here: {why}",
            impact="None: GPUs without NVSwitches work without it.",
            severity="info",
            situation="not-needed",
            explains_ids=frozenset(),
        )
    return _judge_no_switch(context, fault, all_events) if code == "fm-no-switch" else fault


def _why_unneeded(context: RuleContext) -> str | None:
    """Why no fabric manager is due on this node, by its PCI list or by what its GPUs are; None where one may be."""
    unmanaged = unmanaged_reason(context)
    forms = {find_form(context, gpu) for gpu in context.topology.gpus}
    if isinstance(unmanaged, NotApplicable):
        return str(unmanaged.reason)
    if unmanaged is not None and forms and not forms - {LinkForm.CARD, LinkForm.SUPERCHIP}:
        return "its GPUs are on no NVSwitch of this node"
    return None


def _judge_no_switch(context: RuleContext, fault: Fail, events: Sequence[Event]) -> Fail:
    """A fabric manager without a switch: a fault on a board that has NVSwitches."""
    unneeded = unmanaged_reason(context)
    if unneeded is None and not context.topology.nvswitches and any(event.code == "pre-nvl5" for event in events):
        return replace(
            fault,
            summary="it took this node for one from before NVLink 5 and ended: it found no management port of the "
            f"NVLink switches{_describe_modules(context)}",
            situation="no-umad",
        )
    if unneeded is None:
        return fault
    board = any(find_form(context, gpu) is LinkForm.BOARD for gpu in context.topology.gpus)
    return replace(
        fault,
        impact="What it means depends on the GPUs: on boards with NVSwitches (HGX, DGX) no program can use them (CUDA "
        "error 802), nodes with PCIe cards alone do not need the fabric manager.",
        severity="error" if board else "warning",
        confidence="medium" if board else "low",
        explains_ids=frozenset(),
    )


def _describe_modules(context: RuleContext) -> str:
    loaded = {module.name for module in context.software.modules}
    missing = [name for name in ("mlx5_ib", "ib_umad") if name not in loaded] if loaded else []
    verb = "is" if len(missing) == 1 else "are"
    return f" ({join_labels(missing)} {verb} not loaded)" if missing else ""


def _list_gpus(context: RuleContext) -> set[str]:
    return {place for gpu in context.topology.gpus for place in (gpu.id, gpu.pci) if place}


def _describe_fabric(context: RuleContext) -> Iterator[Evidence]:
    """How far the registration of the GPUs with the fabric went."""
    states: dict[str, list[str]] = {}
    for gpu in context.topology.gpus:
        if gpu.fabric and gpu.fabric.state:
            states.setdefault(gpu.fabric.state.replace("_", " "), []).append(gpu.label)
    for state, labels in states.items():
        yield Evidence(f"NVLink fabric state of {join_labels(labels)}", state, "nvidia-smi -q")


def _describe_details(event: Event) -> str:
    """What else the line states that a person needs."""
    return join_labels(fill_forms({**event.detail, "times": count_of(event.count, "times")}, _FORMS))
