"""GPUs that are missing, need recovery, or cannot reach each other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations

from agent.model.finding import Evidence
from agent.model.gpu import Gpu
from agent.model.pci import CARD_SWITCHES
from agent.model.reasons import Reason, quote_source
from agent.rules.context import RuleContext
from agent.rules.devices import (
    device_label,
    find_device_id,
    find_function,
    gpu_model,
    is_nvidia,
    is_off_bus,
    kernel_log_evidence,
    report_no_gpu,
    unreachable_reason,
)
from agent.rules.gates import HABANA
from agent.rules.rule import Fail, NotApplicable, Pass, Result, Unknown, rule
from agent.rules.wording import name_pairs

_EXCLUDED = "NVreg_ExcludedGpus"
_BOARDS = {  # modules by PCI device id: their maker, how many of them servers have
    "0x1020": (HABANA, (1, 2, 4, 8)),
    "0x1060": (HABANA, (1, 2, 4, 8)),
    "0xd802": ("Huawei", (1, 2, 4, 8, 16)),
    "0xd803": ("Huawei", (2, 4, 8, 16)),
    "0xd804": ("Huawei", (2, 4, 8, 16)),
}


@rule("gpu-missing")
def gpu_missing(case: RuleContext) -> Iterator[Result]:
    for gpu in case.topology.gpus:
        yield _judge_missing(case, gpu)
    if not case.topology.gpus and case.bus_unread is None:
        yield from _judge_empty_board(case)
    if not (case.virtual_machine or case.bus_unread or case.profile):
        yield from _judge_counts(case)


def _judge_counts(case: RuleContext) -> Iterator[Result]:
    """Modules of other makers, so many as no board has: some may be missing. Nothing else on a bus shows that."""
    for device, (maker, boards) in _BOARDS.items():
        alike = [g for g in case.topology.gpus if g.vendor == maker and find_device_id(case, g) == device]
        is_wired = any(link.remote and link.remote.kind == "gpu" for gpu in alike for link in gpu.links)
        if alike and len(alike) not in boards and not is_wired:  # gaudi-missing knows the board by its wiring
            yield Unknown(
                "node",
                Reason(
                    "undecided",
                    detail=f"{len(alike)} {alike[0].name or device} on the PCI bus, and no known server has this "
                    "number: some may be missing; --profile states how many are expected",
                ),
            )


def _judge_empty_board(case: RuleContext) -> Iterator[Result]:
    """Not one GPU on the bus: what is left of their board shows that there were some, their driver makes it likely."""
    what, parts = _board_parts(case)
    if not parts:
        if case.idle_gpu_driver:
            yield Unknown("node", case.idle_gpu_driver)
    elif case.virtual_machine:
        yield NotApplicable(
            "node", Reason("guest", detail=f"a virtual machine with {what} alone manages the fabric of others")
        )
    elif not case.node.virtualization_known:
        yield Unknown(
            "node",
            Reason("guest-hides", detail=f"{what} and no GPU, and whether this is a virtual machine is not known"),
        )
    else:
        yield Fail(
            subject="node",
            label="node",
            summary=f"no GPU is on the PCI bus, and {len(parts)} {what} of their baseboard are",
            impact="No job can use this node: none of its GPUs came up.",
            evidence=tuple(
                Evidence(what=device_label(case, part), value="on the bus", source=f"lspci -s {part}")
                for part in parts[:8]
            ),
            cause="board",
            situation="board",
            places=frozenset({"count of GPUs", *parts}),
        )


def _board_parts(case: RuleContext) -> tuple[str, list[str]]:
    """PCI addresses of what is on the board of GPUs, or in their modules, and what to call it."""
    if case.topology.nvswitches:
        return "NVSwitches", [switch.id for switch in case.topology.nvswitches]
    managers = [nic.pci for nic in case.topology.nics if nic.limited and nic.pci]
    if managers:
        return "management functions of NVLink switches", managers
    filled = {function.parent for function in case.topology.pci}
    switches = [f.id for f in case.topology.pci if (f.vendor, f.device) in CARD_SWITCHES and f.id not in filled]
    return "ports of PCIe switches in GPU modules", switches


def _judge_missing(case: RuleContext, gpu: Gpu) -> Result:
    subject, function = f"gpu:{gpu.id}", find_function(case, gpu)
    if not is_nvidia(case, gpu):
        return _judge_other_maker(case, gpu)
    absent = unreachable_reason(function)
    if absent and not is_off_bus(function):
        return NotApplicable(subject, absent)
    if gpu.driver_state == "error" and case.recorded and case.probe_failure("pci"):
        return _fail_stated(case, gpu)
    if function is None and (unread := case.probe_failure("pci")):
        return Unknown(subject, unread.prefixed("whether others are on the bus: "))
    if gpu.driver_state == "open":
        return Pass(subject)
    if gpu.driver_state == "error":
        return _fail_missing(
            case, gpu, f"the driver cannot open it: {quote_source(gpu.driver_error) or 'no reason given'}"
        )
    driver = function.driver if function else None
    if gpu.driver_state == "vfio" or driver == "vfio-pci":
        return NotApplicable(subject, Reason("guest", detail="bound to vfio-pci: it waits for a virtual machine"))
    if gpu.driver_state == "no_driver" or (driver is not None and driver != "nvidia"):
        return NotApplicable(
            subject,
            Reason("no-such-device", detail=f"no NVIDIA driver is bound to it{f' but {driver}' if driver else ''}"),
        )
    unread = case.probe_failure("gpu")
    if case.node.container and not unread:
        return NotApplicable(subject, Reason("container", detail="a container sees only the GPUs that it was given"))
    if case.node.job_limit and not unread:
        return NotApplicable(
            subject, Reason("container", detail=f"{case.node.job_limit} sees only the GPUs that it was given")
        )
    if gpu.driver_state != "not_open":
        return Unknown(
            subject,
            unread or quote_source(gpu.driver_error) or Reason("not-shown", detail="the driver's list does not show"),
        )
    if case.virtual_machine:
        return Unknown(subject, Reason("guest-hides", detail="not listed by the driver, in a virtual machine"))
    if driver is None:
        return Unknown(subject, Reason("not-known", fact="not listed by the driver, and whether one is bound to it"))
    if case.lists_differ:
        return Unknown(
            subject,
            Reason(
                "undecided",
                detail=f"not listed by the driver; {case.lists_differ}: outputs of two hosts, or of two times?",
            ),
        )
    if _EXCLUDED in (case.node.cmdline or ""):
        return Unknown(subject, Reason("undecided", detail=f"not listed, and the kernel command line sets {_EXCLUDED}"))
    return _fail_missing(case, gpu, "its driver, which is bound, does not list it")


def _judge_other_maker(case: RuleContext, gpu: Gpu) -> Result:
    """The rules of its maker find one that is missing from a list. Where there is no list, nobody looked at all."""
    subject = f"gpu:{gpu.id}"
    limited = case.node.container or case.node.job_limit or unreachable_reason(find_function(case, gpu))
    if limited or gpu.driver_state != "unknown":
        return NotApplicable(subject, Reason("judged-elsewhere", detail="not of NVIDIA: rules for its vendor judge it"))
    return Unknown(
        subject,
        quote_source(gpu.driver_error)
        or case.probe_failure("gpu")
        or Reason("not-shown", detail="its driver's list does not show it"),
    )


def _fail_missing(case: RuleContext, gpu: Gpu, what: str) -> Fail:
    nvidia = [g for g in case.topology.gpus if is_nvidia(case, g)]
    usable = sum(g.driver_state in ("open", "unknown") for g in nvidia)
    most = "at most " if any(g.driver_state == "unknown" for g in nvidia) else ""
    return Fail(
        subject=f"gpu:{gpu.id}",
        label=gpu.label,
        summary=f"on the PCI bus, but {what}",
        impact=f"{most.capitalize()}{usable} of {len(nvidia)} GPUs can be used; jobs that ask for all do not start.",
        evidence=(
            Evidence(what="on the PCI bus", value=gpu.pci or gpu.id, source="lspci -d 10de: -nnk"),
            Evidence(what="listed by the driver", value=f"{most}{usable} GPUs, not this one", source="nvidia-smi -L"),
            *kernel_log_evidence(case, gpu.pci or gpu.id),
        ),
        situation="lost" if "LOST" in (gpu.driver_error or "") else "",
        places=frozenset(place for place in (gpu.id, gpu.pci) if place),
    )


def _fail_stated(case: RuleContext, gpu: Gpu) -> Fail:
    """By nvidia-smi's own words, of a source that does not show the bus."""
    error = quote_source(gpu.driver_error) or ""
    return Fail(
        subject=f"gpu:{gpu.id}",
        label=gpu.label,
        summary=f"the driver cannot open it: {error}",
        impact="Jobs that ask for all GPUs of the node do not start. Whether the GPU is still on the bus is not known.",
        evidence=(
            Evidence(what="the driver's error", value=error, source="nvidia-smi"),
            *kernel_log_evidence(case, gpu.pci or gpu.id),
        ),
        confidence="medium",
        situation="lost" if "LOST" in error.upper() else "",
        places=frozenset(place for place in (gpu.id, gpu.pci) if place),
    )


# What the driver asks for, how grave that is, and the situation of the page that has the steps
_ACTIONS = {
    "reset": ("error", ""),
    "bus_reset": ("error", "bus"),
    "drain_and_reset": ("error", ""),
    "drain_p2p": ("warning", "peer"),
    "recover_imex_domain": ("error", "imex"),
    "reboot": ("critical", "reboot"),
    "system_reboot": ("critical", "reboot"),
}


@rule("gpu-recovery-needed")
def gpu_recovery_needed(case: RuleContext) -> Iterator[Result]:
    yield from report_no_gpu(case)
    for gpu in case.topology.gpus:
        yield _judge_recovery_needed(case, gpu)


def _judge_recovery_needed(case: RuleContext, gpu: Gpu) -> Result:
    subject, absent = f"gpu:{gpu.id}", unreachable_reason(find_function(case, gpu))
    if not is_nvidia(case, gpu):
        return NotApplicable(subject, Reason("no-such-device", detail="not of NVIDIA"))
    if absent:
        return NotApplicable(subject, absent)
    if gpu.driver_state in ("no_driver", "vfio", "not_open"):
        return NotApplicable(subject, Reason("not-measured", detail="the driver does not offer it"))
    action = gpu.recovery_action
    if action is None:
        why = case.probe_failure("gpu") or quote_source(gpu.driver_error)
        return Unknown(
            subject, why or Reason("not-shown", detail="the driver names no recovery action (R570 and later do)")
        )
    if action == "none":
        return Pass(subject)
    severity, situation = _ACTIONS.get(action, ("warning", "unlisted"))
    word = action.replace("_", " ")
    return Fail(
        subject=subject,
        label=gpu.label,
        summary=f"the driver asks for: {word}",
        impact="New jobs on it fail, and jobs that use all GPUs of the node with them, until that is done."
        if severity != "warning"
        else "Jobs that use it together with other GPUs may fail; others go on.",
        situation=situation,
        evidence=(
            Evidence(what="recovery action", value=word, source="nvidia-smi -q"),
            *kernel_log_evidence(case, gpu.pci or gpu.id),
        ),
        severity=severity,
        cause=action,
        places=frozenset({gpu.id, gpu.pci or gpu.id}),
    )


_CONSUMER = re.compile(r"GeForce|TITAN", re.IGNORECASE)
_BY_REGISTRY = "DR"
_NEAR = ("PIX", "PXB")
_WORDS = {
    "DR": "switched off by a registry key of the driver",
    "CNS": "the driver does not allow it on this chipset",
    "GNS": "the driver does not allow it on this GPU",
    "TNS": "the driver does not allow it over this topology",
    "NS": "not supported",
}


@rule("gpu-p2p-blocked")
def gpu_p2p_blocked(case: RuleContext) -> Iterator[Result]:
    yield from report_no_gpu(case)
    if case.software.driver.confidential_computing:
        yield NotApplicable(
            "node", Reason("by-design", detail="confidential computing: the driver disables P2P between GPUs")
        )
        return
    able = []
    for gpu in case.topology.gpus:
        why = _unable_reason(case, gpu)
        if why:
            yield NotApplicable(f"gpu:{gpu.id}", why)
        else:
            able.append(gpu)
    if len(able) == 1:
        yield NotApplicable(f"gpu:{able[0].id}", Reason("nothing-to-compare", detail="no other GPU"))
    kinds = {frozenset((path.a, path.b)): path.kind for path in case.topology.paths}
    blocked: dict[str, list[tuple[Gpu, Gpu]]] = {}
    for a, b in combinations(able, 2):
        answer = _judge_pair(case, a, b, kinds.get(frozenset((a.id, b.id))))
        if isinstance(answer, str):
            blocked.setdefault(answer, []).append((a, b))
        else:
            yield answer
    for word, pairs in sorted(blocked.items()):
        yield from _merge_pairs(word, pairs)


def _unable_reason(case: RuleContext, gpu: Gpu) -> Reason | None:
    if not is_nvidia(case, gpu):
        return Reason("no-such-device", detail="not of NVIDIA: its driver is not queried")
    if absent := unreachable_reason(find_function(case, gpu)):
        return absent
    if gpu.driver_state != "open" and not (gpu.driver_state == "unknown" and gpu.p2p):
        return Reason("not-measured", detail="the driver does not offer it")
    if gpu.mig and gpu.mig.current:
        return Reason("not-in-use", detail="MIG is on: there is no P2P between GPUs")
    return Reason("guest", detail="a vGPU") if gpu.virtualization in ("vgpu", "host_vgpu", "vsga") else None


def _judge_pair(case: RuleContext, a: Gpu, b: Gpu, kind: str | None) -> Result | str:
    """The word of a pair that is blocked, or the answer."""
    subject = f"pair:{a.id}+{b.id}"
    if gpu_model(case, a) != gpu_model(case, b):
        return NotApplicable(subject, Reason("nothing-to-compare", detail="GPUs of different models"))
    states = [
        (one.p2p or {}).get(other.id, {}).get(way) for one, other in ((a, b), (b, a)) for way in ("read", "write")
    ]
    by_nvlink = (kind or "").startswith("NV")
    if _BY_REGISTRY in states:
        return _BY_REGISTRY
    if case.virtual_machine and not by_nvlink:
        return NotApplicable(subject, Reason("guest", detail="over PCIe in a virtual machine: the hypervisor decides"))
    if kind is not None and not by_nvlink and kind not in _NEAR:
        return NotApplicable(subject, Reason("other-kind", detail=f"{kind}: the chipset decides whether P2P works"))
    bad = [word for word in states if word in _WORDS]
    if kind is None and bad:
        return Unknown(subject, Reason("not-known", fact="how they are joined"))
    if bad:
        return bad[0]
    return (
        Pass(subject)
        if states[0] == "OK" and set(states) <= {"OK", None}
        else Unknown(subject, Reason("not-shown", detail="not reported by the driver"))
    )


def _merge_pairs(word: str, pairs: Sequence[tuple[Gpu, Gpu]]) -> Iterator[Fail]:
    """All pairs as one, pairs of one GPU as one, others each alone."""
    shared = [gpu for gpu in pairs[0] if len(pairs) > 1 and all(gpu.id in (a.id, b.id) for a, b in pairs)]
    if shared:
        yield _fail_p2p_blocked(
            word, pairs, f"gpu:{shared[0].id}", shared[0].label, {shared[0].id, shared[0].pci or shared[0].id}
        )
    elif len(pairs) > 1:
        ends = {gpu.id for pair in pairs for gpu in pair}
        yield _fail_p2p_blocked(word, pairs, "node", "node", ends)
    else:
        a, b = pairs[0]
        yield _fail_p2p_blocked(word, pairs, f"pair:{a.id}+{b.id}", f"{a.label} - {b.label}", {a.id, b.id})


def _fail_p2p_blocked(word: str, pairs: Sequence[tuple[Gpu, Gpu]], subject: str, label: str, ends: set[str]) -> Fail:
    labels = [f"{a.label} - {b.label}" for a, b in pairs]
    consumer = all(_CONSUMER.search(gpu.name or "") for pair in pairs for gpu in pair)
    return Fail(
        subject=subject,
        label=label,
        summary=f"P2P blocked {name_pairs([(a.label, b.label) for a, b in pairs])}: {_WORDS[word]} ({word})",
        impact="Copies between them go through the CPU's memory: 10 to 20 GB/s where PCIe 5 has 50, NVLink 4 has 450.",
        remedy="Remove the key (RegistryDwords) from the options of the module nvidia in /etc/modprobe.d."
        if word == _BY_REGISTRY
        else "Compare the versions of driver, GPU and switch firmware with those of a good node; look at ACS.",
        evidence=tuple(Evidence(what=text, value=word, source="nvidia-smi topo -p2p r") for text in labels[:8]),
        severity="info" if consumer else "error",
        cause=word,
        places=frozenset(ends),
    )
