"""What a service of the node states of a fault: fabric manager, subnet managers, IMEX, DCGM and others.

The sentences are rows of `probes/services/sentences.py`; here stands what each of them means.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from agent.model.finding import Evidence
from agent.model.node import Event
from agent.rules.context import RuleContext
from agent.rules.devices import quote_log
from agent.rules.host.error_numbers import explain_number
from agent.rules.host.meaning import Meaning, fill_forms
from agent.rules.host.unexplained import KIND, describe_period, shorten
from agent.rules.nvlink.fabric import MANAGER, PLACE, unmanaged_reason
from agent.rules.nvlink.link_counts import LinkForm, find_form
from agent.rules.rule import NODE, Fail, NotApplicable
from agent.rules.wording import count_of, join_labels

_NO_CUDA = "CUDA ends with error 802 on every GPU that is connected over NVSwitches."
SERVICE_MEANINGS = {
    "fm-version": Meaning(
        "critical", "the fabric manager and the driver are of different versions, so it ended", _NO_CUDA,
    ),
    "fm-config": Meaning("critical", "an item of its configuration has no valid value, so it ended", _NO_CUDA),
    "no-umad": Meaning(
        "critical", "the kernel module ib_umad is not loaded, over which the NVLink switches are managed", _NO_CUDA,
    ),
    "umad-missing": Meaning(
        "warning", "the kernel module ib_umad is not loaded",
        "Tools and subnet managers of InfiniBand do not work on this host. Where GPUs are connected over NVSwitches "
        "with NVLink 5, CUDA ends with error 802 on each of them.", True, "medium",
    ),
    "fm-topology": Meaning(
        "critical", "the driver offers a number of NVSwitches that no board has, so it ended", _NO_CUDA,
    ),
    "fm-no-switch": Meaning("critical", "it found no NVSwitch and ended", _NO_CUDA),
    "switch-fatal": Meaning(
        "critical", "an NVSwitch reports a fatal error", "Jobs that use its NVLinks end; others may hang.", False,
    ),
    "multicast": Meaning(
        "error", "it refused a multicast team (NVLS): a GPU in the request is not registered with it",
        "NCCL cannot use NVLS with these GPUs: jobs that ask for it end with a CUDA error.", False,
    ),
    "switch-error": Meaning("warning", "an NVSwitch reports an error that is not fatal", "Traffic goes on.", False),
    "imex-memory": Meaning(
        "error", "it could not allocate a reference to memory of another node",
        "Jobs of several trays cannot share GPU memory over NVLink.", False, "medium",
    ),
    "imex-address": Meaning(
        "error", "no address in its list of nodes belongs to this node, so it ended",
        "Jobs of several trays cannot share GPU memory over NVLink.",
    ),
    "sm-port-closed": Meaning("error", "it cannot open its own port", "The subnet is not managed from here."),
    "sm-port-unknown": Meaning(
        "error", "it cannot read its own port: no port here has this GUID, or the port does not answer",
        "The subnet is not managed from here.", False, "medium",
    ),
    "sm-routing": Meaning(
        "warning", "it does not route as configured, but by its default (Min Hop)",
        "Routes may be uneven: some links carry more than others.", False,
    ),
    "sm-partition-full": Meaning(
        "warning", "the partition table of a port is full", "That port is not in all of its partitions.", False,
    ),
    "numa-memory": Meaning(
        "error", "it cannot put the GPU's memory online as memory of the node",
        "Programs cannot use this memory from the CPU (GH200, GB200).", False, "medium",
    ),
    "ofed-load": Meaning("error", "a kernel module of the OFED was not loaded", "RDMA does not work on its devices."),
    "dcgm-second": Meaning("info", "another host engine runs already", "None: the first one does the work."),
    "sm-second": Meaning("warning", "another subnet manager uses this port already", "This one does nothing.", True),
    "sm-no-ports": Meaning("error", "it found no InfiniBand port on this node", "The subnet is not managed from here."),
    "sm-key": Meaning(
        "warning", "a subnet manager with another key is in the same subnet", "Two may manage it.", False,
    ),
    "sm-duplicate-guid": Meaning(
        "error", "two nodes of the subnet have the same GUID", "Routes to both are wrong.", False,
    ),
    "sm-errors": Meaning(
        "error", "it could not initialize the subnet without errors", "Some ports stay in INIT.", False, "medium",
    ),
    "sm-port-down": Meaning("error", "its own port is down", "The subnet is not managed from here.", False, "medium"),
    "sm-port-removed": Meaning(
        "warning", "a port left the subnet several times, and no other port of its node did",
        "Jobs over this port end or hang each time, where the link is not only for tests.", False, "low",
    ),
    "sm-lids-out": Meaning(
        "error", "it has no free address (LID) left", "Further ports get no LID and stay in INIT.", False,
    ),
    "sm-files": Meaning(
        "warning", "it cannot write its files", "After its next start ports may get other LIDs: running jobs end.",
        False,
    ),
    "sm-noisy-port": Meaning(
        "warning", "it took a port out of use that sends traps all the time",
        "Traffic of that link goes another way, or its node is cut off.", False, "medium",
    ),
    "sm-link-trap": Meaning(
        "warning", "a port reports that errors of its link are above the limit",
        "Packets on that link are sent again or lost.", False, "medium",
    ),
    "sm-prefix": Meaning(
        "warning", "ports use another subnet prefix than it is configured for",
        "IPoIB and connections by GID fail between these ports and others.", False, "medium",
    ),
    "sm-tables": Meaning(
        "warning", "a switch did not take its routing table", "Routes over that switch are old or missing.",
        False, "low",
    ),
    "sm-group-refused": Meaning(
        "info", "it refused to let ports join a multicast group: settings differ, or the group does not exist",
        "IP over these ports (IPoIB) does not work; RDMA does not need it.", False, "medium",
    ),
    "sm-link-lost": Meaning(
        "info", "a port of a switch lost its link",
        "Jobs over this port end or hang; a node that was restarted looks the same.", False, "low",
    ),
    "sm-no-answer": Meaning(
        "info", "nodes or switches did not answer it in time",
        "Their ports may be missing in the routes; one that was restarted comes back by itself.", False, "low",
    ),
    "sm-bad-key": Meaning(
        "warning", "a node sends packets with a key of another partition",
        "These packets are dropped: the two nodes do not communicate.", False, "low",
    ),
    "vgpu-versions": Meaning(
        "error", "the driver in a virtual machine does not fit the vGPU manager of this host",
        "That virtual machine has no virtual GPU.", False,
    ),
    "vgpu-no-driver": Meaning(
        "error", "it cannot open the NVIDIA driver: none is loaded, or it is not the one for vGPU hosts",
        "No virtual machine gets a virtual GPU.", True, "medium",
    ),
    "vgpu-not-started": Meaning(
        "error", "it could not start a virtual GPU", "The virtual machine that it is for does not start.",
        False, "medium",
    ),
    "vgpu-unlicensed": Meaning(
        "warning", "a virtual GPU has no license", "It runs at a lower rate, and later runs no CUDA.", False, "medium",
    ),
    "no-devices": Meaning("error", "it cannot open the NVIDIA device files", "GPUs lose their state between jobs."),
    "library-missing": Meaning("warning", "a library of the driver is missing (libnvidia-cfg)", "It does not start."),
    "nvml-failed": Meaning("error", "DCGM cannot start NVML", "GPUs are not monitored.", True, "medium"),
    "ofed-modules": Meaning(
        "error", "the module of the kernel would be loaded in place of that of the installed OFED",
        "RDMA drivers of the OFED are not loaded after a kernel update.", True, "medium",
    ),
    "rshim-lockdown": Meaning(
        "warning", "the kernel is locked down, and rshim needs VFIO then", "No console of the DPU.",
    ),
    "rshim-unreadable": Meaning("warning", "the DPU's registers cannot be read", "No console of the DPU.", False),
    "rshim-taken": Meaning("info", "another host or the BMC uses the DPU's rshim", "No console of the DPU from here."),
    "cuda-802": Meaning(
        "critical", "CUDA reports error 802: the system is not yet initialized",
        "No program uses the GPUs before the NVLink fabric is set up.", True, "medium", alone=False,
    ),
    "crashed": Meaning(
        "warning", "a tool or service of the devices crashed",
        "A service that crashed does not do its work until it is started again.", False, "medium",
    ),
    "dcgm-failed": Meaning("warning", "DCGM did not start", "GPUs are not monitored.", alone=False),
    "failed": Meaning("warning", "it failed, and its log does not state why", "Its function is missing.", alone=False),
}  # fmt: skip
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
    stated = [event for event in counting if SERVICE_MEANINGS[event.code or ""].alone]
    counting = sorted(stated or counting, key=lambda event: _ORDER.index(event.code or ""))
    if counting:
        yield _fail(context, service, counting, events)
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
    if unmanaged is not None and forms and forms <= {LinkForm.CARD, LinkForm.SUPERCHIP}:
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
