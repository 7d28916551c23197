"""Membership of GPUs in the NVLink fabric, and its health."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from agent.model.finding import SEVERITIES, Evidence
from agent.model.gpu import Fabric, Gpu
from agent.model.node import Service
from agent.model.reasons import Reason
from agent.rules.context import RuleContext
from agent.rules.devices import about_gpu, ask_nvidia_smi, find_device_id, report_no_gpu
from agent.rules.node_wide import merge_failures
from agent.rules.nvlink.link_counts import LinkForm, find_form, not_offered_reason
from agent.rules.rule import NODE, Fail, Result, Unknown, rule
from agent.rules.wording import join_labels

PLACE = "nvlink-fabric"  # what is wrong with the fabric as a whole: the place that its consequences share
MANAGER, IMEX = "nvidia-fabricmanager", "nvidia-imex"
FABRIC_ARCHITECTURES = ("Hopper", "Blackwell", "Rubin")  # their GPUs register with the fabric
# HGX boards whose NVLink switches are no PCI functions of the host, and whose fabric manager runs on it all the same
_HIDDEN_SWITCHES = frozenset({"0x2901", "0x2909", "0x3182"})
_HIDDEN_NAMES = r"\bB[23]00\b"
_MOST_OF_A_BOARD = 5  # of its eight GPUs: others may be lost
NO_UUID = "00000000-0000-0000-0000-000000000000"


class FabricMember(msgspec.Struct, frozen=True):
    """A GPU that registers with a fabric, and what it states of that."""

    gpu: Gpu
    fabric: Fabric


def unmanaged_reason(context: RuleContext) -> Result | None:
    """Why no fabric manager is due on this node; None where one is."""
    gpus = [gpu for gpu in context.topology.gpus if _is_of_hidden_board(context, gpu)]
    hidden = len(gpus) >= _MOST_OF_A_BOARD and not context.virtual_machine
    if not context.topology.nvswitches and not hidden:
        if unread := context.why_bus_unread:
            return NODE.unknown(unread.prefixed("whether there are NVSwitches: "))
        return NODE.not_applicable(
            "no-such-device", detail="no NVSwitch of this host: its GPUs need no fabric manager on it"
        )
    if context.node.container:
        return NODE.unknown("container-hides", detail="a container does not show the services of its host")
    switches = [context.functions.get(switch.pci) for switch in context.topology.nvswitches]
    if switches and all(function and (function.driver or "").startswith("vfio") for function in switches):
        return NODE.not_applicable(
            "guest", detail="the NVSwitches wait for a virtual machine (vfio-pci): it manages them"
        )
    if not any(gpu.driver_state in ("open", "not_open", "error", "unknown") for gpu in context.topology.gpus):
        return NODE.not_applicable("no-such-device", detail="no GPU has an NVIDIA driver here: no fabric to manage")
    return None


def _is_of_hidden_board(context: RuleContext, gpu: Gpu) -> bool:
    """By PCI id; saved outputs of nvidia-smi alone have the name."""
    device = find_device_id(context, gpu)
    return device in _HIDDEN_SWITCHES or (not device and re.search(_HIDDEN_NAMES, gpu.name or "") is not None)


def find_service(context: RuleContext, name: str) -> Service | Unknown:
    """A system service, or why nothing is known of it."""
    listed = next((service for service in context.software.services if service.name == name), None)
    if listed is None:
        return NODE.unknown(
            context.why_probe_failed("services") or Reason("not-shown", detail=f"the state of {name} is not known")
        )
    if listed.state == "unknown":
        return NODE.unknown("not-shown", detail=f"whether {name} runs is not known")
    return listed


def lacks_umad(context: RuleContext) -> bool:
    """Whether the module is not loaded over which nvlsm manages the switches of B200 and B300 boards."""
    loaded = {module.name for module in context.software.modules}
    built_in = "ib_core" not in loaded and any(nic.rdma_device for nic in context.topology.nics)
    return bool(loaded) and not context.topology.nvswitches and not built_in and "ib_umad" not in loaded


def fabric_members(context: RuleContext) -> Iterator[FabricMember | Result]:
    """Every GPU that registers with a fabric and what it states of it, or why it is not judged."""
    yield from report_no_gpu(context)
    for gpu in context.topology.gpus:
        yield _read_members(context, gpu)


def _read_members(context: RuleContext, gpu: Gpu) -> FabricMember | Result:
    about = about_gpu(gpu)
    if answer := not_offered_reason(context, gpu):
        return answer
    if gpu.mig and gpu.mig.current:
        return about.not_applicable("not-in-use", detail="MIG is on: NVLink is not used")
    fabric = gpu.fabric
    if fabric is not None and fabric.state == "not_supported":
        return about.not_applicable("other-kind", detail="it registers with no fabric (driver: not supported)")
    if fabric is not None and fabric.state is not None:
        return FabricMember(gpu, fabric)
    if gpu.architecture is not None and gpu.architecture not in FABRIC_ARCHITECTURES:
        return about.not_applicable("other-kind", detail="GPUs before Hopper register with no fabric")
    if find_form(context, gpu) is LinkForm.CARD:
        return about.not_applicable("other-kind", detail="a card: it registers with no fabric")
    return about.unknown(context.why_probe_failed("gpu") or Reason("not-reported", fact="its fabric state"))


def multi_node_domain(gpu: Gpu) -> str | None:
    """The NVLink domain of several nodes that a GPU is in; None on a node of its own."""
    uuid = gpu.fabric.cluster_uuid if gpu.fabric and gpu.fabric.state == "completed" else None
    return None if uuid in (None, "", NO_UUID) else uuid


def merge_gpus(context: RuleContext, answers: Sequence[Result]) -> list[Fail]:
    """The `merge` of a rule about GPUs: one finding for the node where every one that is judged has the same fault, in
    the same words: one part explains all."""
    del context
    faults = [answer for answer in answers if isinstance(answer, Fail)]
    alike = len(faults) == len(answers) and len({(f.severity, f.cause, f.summary) for f in faults}) == 1
    return [merge_failures(faults, faults[0].summary)] if alike and len(faults) > 1 else faults


@rule("fabric-incomplete", each=fabric_members, merge=merge_gpus)
def fabric_incomplete(context: RuleContext, member: FabricMember) -> Result:
    gpu, fabric, about = member.gpu, member.fabric, about_gpu(member.gpu)
    if fabric.state == "completed":
        if fabric.status is None:
            return about.unknown("not-shown", detail="completed, and the driver does not report how")
        if fabric.status == "success":
            return about.passes()
        return _fail_incomplete(gpu, f"completed with the error {fabric.status}", "critical")
    if context.why_settling:
        return about.unknown(context.why_settling)
    if _may_still_register(context):
        is_answer = context.recorded and _shows_a_board(context)
        if not is_answer:
            return about.unknown(_STILL_REGISTERS)
        # What a saved output states that shows neither how long the host runs nor what manages its fabric.
        return replace(
            _fail_incomplete(gpu, (fabric.state or "").replace("_", " "), "warning"),
            impact="What this means here depends on how long the host runs: minutes after its start it is usual, later "
            "CUDA ends with error 802 or waits, and nothing sets the fabric up.",
            confidence="low",
            situation="alone",
        )
    unmanaged = _find_why_unmanaged(context)
    severity = "critical" if unmanaged is not None and unmanaged.what == _UMAD else "error"
    return _fail_incomplete(gpu, (fabric.state or "").replace("_", " "), severity, unmanaged)


_UMAD = "ib_umad"
_STILL_REGISTERS = Reason("not-known", fact="registration goes on, and how long the host runs")


def _may_still_register(context: RuleContext) -> bool:
    """Whether the host may have just started: its uptime is unknown, and nothing shows that waiting is in vain."""
    return context.node.uptime_seconds is None and _find_why_unmanaged(context) is None


def _shows_a_board(context: RuleContext) -> bool:
    """Whether the GPUs are most of a baseboard: fewer may be a part that a guest has, and a tray registers with
    switches elsewhere, whose state no output of this host has."""
    return sum(find_form(context, gpu) is LinkForm.BOARD for gpu in context.topology.gpus) >= _MOST_OF_A_BOARD


def _find_why_unmanaged(context: RuleContext) -> Evidence | None:
    """What shows that nothing sets the fabric up, so that waiting does not help; None where nothing shows it."""
    if unmanaged_reason(context) is not None:
        return None
    if lacks_umad(context):
        return Evidence(_UMAD, "not loaded; the switches of this board are managed over it", "lsmod")
    manager = find_service(context, MANAGER)
    if isinstance(manager, Service) and manager.state != "active":
        return Evidence(MANAGER, manager.state, f"systemctl status {MANAGER}")
    return None


def _fail_incomplete(gpu: Gpu, what: str, severity: str, why: Evidence | None = None) -> Fail:
    lacking = why is not None and why.what == _UMAD
    state = Evidence(f"fabric state of {gpu.label}", what, ask_nvidia_smi("-q", gpu))
    about = about_gpu(gpu)
    return about.fail(
        summary=f"registration with the NVLink fabric: {what}" + ("; ib_umad is not loaded" if lacking else ""),
        impact="CUDA on it ends with error 802 or waits; jobs that ask for all GPUs do not start.",
        evidence=(state, *((why,) if why else ())),
        severity=severity,
        cause=what,
        situation="no-umad" if lacking else "",
        ids=about.ids | {PLACE},
    )


_FINE = {
    "degraded_bandwidth": "false",
    "route_recovery": "false",
    "route_unhealthy": "false",
    "access_timeout_recovery": "false",
    "incorrect_configuration": "none",
    "partition_assigned": "true",
    "fabric_manager": "connected",
    "summary": "healthy",
}
_WRONG = {  # where NVML's own word does not show it
    "incorrect_sysguid": "its system GUID does not belong here",
    "incorrect_chassis_sn": "its chassis serial number does not belong here",
    "no_partition": "it is in no partition",
    "insufficient_nvlinks": "too few of its NVLinks are up",
    "incompatible_gpu_fw": "its firmware does not fit the fabric",
    "invalid_location": "its place in the rack is not valid",
    "gpu_state_invalid": "its state is not valid",
}
_SEVERITY = {
    "degraded_bandwidth": "error",
    "route_recovery": "warning",
    "route_unhealthy": "critical",
    "access_timeout_recovery": "warning",
    "incorrect_configuration": "critical",
    "partition_assigned": "error",
    "fabric_manager": "error",
}
_SUMMARIES = {"unhealthy": "error", "limited_capacity": "warning"}
_RECOVERING = frozenset({"route_recovery", "access_timeout_recovery"})  # end by themselves


@rule("fabric-unhealthy", each=fabric_members, merge=merge_gpus)
def fabric_unhealthy(member: FabricMember) -> Result:
    gpu, fabric, about = member.gpu, member.fabric, about_gpu(member.gpu)
    if fabric.state != "completed":
        return about.not_applicable("judged-elsewhere", detail="registration is not completed: see fabric-incomplete")
    problems = {name: word for name, word in fabric.health.items() if word != "not_supported" and name in _FINE}
    if not problems:
        return about.not_applicable("not-measured", detail="the driver reports no fabric health here")
    bad = {name: word for name, word in problems.items() if word != _FINE[name] and not word.startswith("unknown")}
    if bad:
        return _fail_unhealthy(gpu, bad)
    strange = [f"{name} {word}" for name, word in problems.items() if word.startswith("unknown")]
    if strange:
        return about.unknown("undecided", detail=f"a state that is not known here: {', '.join(strange)}")
    return about.passes()


def _fail_unhealthy(gpu: Gpu, bad: Mapping[str, str]) -> Fail:
    details = {name: word for name, word in bad.items() if name != "summary"} or bad
    grave = [_SEVERITY.get(name) or _SUMMARIES.get(word, "warning") for name, word in bad.items()]
    details_text = ", ".join(_format_state(name, word) for name, word in sorted(details.items()))
    return about_gpu(gpu).fail(
        summary=f"NVLink fabric: {details_text}",
        impact="Traffic with its peers is slower than its NVLinks, takes PCIe, or ends with an error; "
        "collectives of all GPUs wait for it.",
        evidence=tuple(
            Evidence(name.replace("_", " "), word, ask_nvidia_smi("-q", gpu)) for name, word in sorted(bad.items())
        ),
        severity=max(grave, key=SEVERITIES.index),
        cause=",".join(sorted(details)),
        situation="recovering" if details.keys() <= _RECOVERING else "",
    )


def _format_state(name: str, word: str) -> str:
    if (name, word) == ("partition_assigned", "false"):
        return "no partition is assigned"
    if name == "incorrect_configuration":
        return f"wrongly set up: {_WRONG.get(word, word.replace('_', ' '))}"
    plain = name.replace("_", " ")
    return plain if word == "true" else f"{plain} {word.replace('_', ' ')}"


_SHORT = 8


@rule("fabric-clique-mixed")
def fabric_clique_mixed(context: RuleContext) -> Iterator[Result]:
    domains: dict[tuple[str | None, int], list[Gpu]] = {}
    for member in fabric_members(context):
        if not isinstance(member, FabricMember):
            yield member
            continue
        gpu, fabric = member.gpu, member.fabric
        if fabric.state != "completed":
            yield about_gpu(gpu).not_applicable(
                "judged-elsewhere", detail="registration is not completed: see fabric-incomplete"
            )
        elif fabric.clique is None or fabric.cluster_uuid is None:
            yield about_gpu(gpu).unknown("not-reported", fact="its cluster and clique")
        else:
            domains.setdefault((multi_node_domain(gpu), fabric.clique), []).append(gpu)
    if len(domains) > 1:
        yield _fail_clique(context, domains)
    elif sum(map(len, domains.values())) > 1:
        yield NODE.passes()
    elif domains:
        yield NODE.not_applicable("nothing-to-compare", detail="one GPU in a fabric: nothing to compare with")


def _fail_clique(context: RuleContext, domains: dict[tuple[str | None, int], list[Gpu]]) -> Fail:
    clusters = {uuid for uuid, _ in domains}
    partitioned = len(clusters) == 1 and None not in clusters
    groups = [
        (f"{(uuid or 'no cluster')[:_SHORT]}/{clique}" if uuid else f"clique {clique}", gpus)
        for (uuid, clique), gpus in sorted(domains.items(), key=lambda group: (group[0][0] or "", group[0][1]))
    ]
    fewest = min((gpus for _, gpus in groups), key=len)
    return NODE.fail(
        summary="GPUs in different NVLink domains: "
        + "; ".join(f"{name}: {join_labels([gpu.label for gpu in gpus])}" for name, gpus in groups),
        impact="NCCL uses no NVLink between them, but PCIe or the network: seven times slower and more.",
        evidence=tuple(
            Evidence(name, join_labels([gpu.label for gpu in gpus]), "nvidia-smi -q") for name, gpus in groups
        ),
        severity="warning" if partitioned else "error",
        cause="clique" if len(clusters) == 1 else "cluster",
        ids=frozenset().union(*(about_gpu(gpu).ids for gpu in fewest)),
    )


@rule("nvls-unavailable")
def nvls_unavailable(context: RuleContext) -> Result:
    if context.virtual_machine:
        return NODE.not_applicable(
            "guest", detail="a virtual machine: its hypervisor decides what of the fabric a guest has"
        )
    if answer := unmanaged_reason(context):
        return answer
    gpus = [
        gpu
        for gpu in context.topology.gpus
        if not_offered_reason(context, gpu) is None
        and gpu.architecture in FABRIC_ARCHITECTURES
        and find_form(context, gpu) is LinkForm.BOARD
        and not (gpu.mig and gpu.mig.current)
    ]
    if len(gpus) < 2:
        return NODE.not_applicable("nothing-to-compare", detail="fewer than two GPUs that could sum in switches")
    without = [gpu for gpu in gpus if gpu.fabric and (gpu.fabric.state, gpu.fabric.status) != ("completed", "success")]
    sure = [
        gpu
        for gpu in without
        if gpu.fabric and gpu.fabric.state and (gpu.fabric.state, gpu.fabric.status) != ("completed", None)
    ]
    if not sure:
        known = all(gpu.fabric and gpu.fabric.status for gpu in gpus)
        return NODE.passes() if known else NODE.unknown("not-reported", fact="the fabric state of every GPU")
    if context.why_settling:
        return NODE.unknown(context.why_settling)
    if all(gpu.fabric.state == "in_progress" for gpu in sure if gpu.fabric) and _may_still_register(context):
        return NODE.unknown(_STILL_REGISTERS)
    return NODE.fail(
        summary=f"no NVLink multicast (NVLS): {join_labels([gpu.label for gpu in sure])} "
        "not registered with the fabric",
        impact="NCCL all-reduce falls back to rings: about 360 instead of 480 GB/s bus bandwidth on 8 H100.",
        evidence=tuple(
            Evidence(f"fabric state of {gpu.label}", gpu.fabric.state or "", "nvidia-smi -q")
            for gpu in sure
            if gpu.fabric
        ),
        ids=frozenset({PLACE}).union(*(about_gpu(gpu).ids for gpu in sure)),
    )
