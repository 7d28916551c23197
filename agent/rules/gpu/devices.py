"""GPUs that are missing, need recovery, or cannot reach each other."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from msgspec.structs import replace

from agent.model.finding import Evidence
from agent.model.gpu import Gpu
from agent.model.pci import CARD_SWITCHES
from agent.model.reasons import Reason, quote_source
from agent.rules.applicability import HABANA
from agent.rules.context import RuleContext
from agent.rules.devices import (
    about_gpu,
    about_pair,
    about_pairs,
    device_label,
    find_device_id,
    find_function,
    gpu_model,
    is_nvidia,
    is_off_bus,
    kernel_log_evidence,
    list_gpus,
    report_no_gpu,
    why_unreachable,
)
from agent.rules.nvlink.link_counts import LinkForm, find_form
from agent.rules.rule import NODE, Fail, Result, rule
from agent.rules.wording import name_pairs

_EXCLUDED = "NVreg_ExcludedGpus"
_NO_BOARD = (3, 5, 6, 7)  # SXM modules of one board: it has 4 or 8, and guests get 1, 2, 4 or 8
_BOARDS = {  # modules by PCI device id: their maker, how many of them servers have
    "0x1020": (HABANA, (1, 2, 4, 8)),
    "0x1060": (HABANA, (1, 2, 4, 8)),
    "0xd802": ("Huawei", (1, 2, 4, 8, 16)),
    "0xd803": ("Huawei", (2, 4, 8, 16)),
    "0xd804": ("Huawei", (2, 4, 8, 16)),
}


@rule("gpu-missing")
def gpu_missing(context: RuleContext) -> Iterator[Result]:
    for gpu in context.topology.gpus:
        yield _judge_missing(context, gpu)
    if not context.topology.gpus and context.why_bus_unread is None:
        yield from _judge_empty_board(context)
    if not (context.virtual_machine or context.why_bus_unread or context.profile):
        yield from _judge_counts(context)
    if context.recorded and context.why_bus_unread:
        yield from _judge_listed_counts(context)


def _judge_counts(context: RuleContext) -> Iterator[Result]:
    """Modules of other makers, so many as no board has: some may be missing. Nothing else on a bus shows that."""
    for device, (maker, boards) in _BOARDS.items():
        alike = [g for g in context.topology.gpus if g.vendor == maker and find_device_id(context, g) == device]
        is_wired = any(link.remote and link.remote.kind == "gpu" for gpu in alike for link in gpu.links)
        if alike and len(alike) not in boards and not is_wired:  # gaudi-missing recognizes the board by its wiring
            yield NODE.unknown(
                "undecided",
                detail=f"{len(alike)} {alike[0].name or device} on the PCI bus, and no known server has this "
                "number: some may be missing; --profile states how many are expected",
            )


def _judge_listed_counts(context: RuleContext) -> Iterator[Fail]:
    """Modules that a saved nvidia-smi lists, so many as no board has and a few less than one: a note, as it may have
    been run where not all of them are given to."""
    node, listed = context.node, context.probes.get("nvidia_smi")
    if context.virtual_machine or node.container or node.job_limit or listed is None or listed.status != "ok":
        return
    if all("nvlink" in source for source in listed.sources):  # people show some GPUs of those
        return
    models = Counter(gpu.name for gpu in context.topology.gpus if find_form(context, gpu) is LinkForm.BOARD)
    for name, count in models.items():
        if count in _NO_BOARD and count == len(context.topology.gpus):  # all of them are of one model
            yield NODE.fail(
                summary=f"{count} {name} are listed, and boards of this model have 4 or 8",
                impact="If this is the whole node, a GPU is missing, and jobs that ask for all of them do not start.",
                evidence=(Evidence("GPUs", str(count), ", ".join(listed.sources)),),
                severity="info",
                confidence="low",
                cause="count",
                situation="count",
                ids=frozenset({"count of GPUs"}),
                explains_ids=frozenset(),
            )


def _judge_empty_board(context: RuleContext) -> Iterator[Result]:
    """Not one GPU on the bus: what is left of their board shows that there were some, their driver makes it likely."""
    what, parts = _board_parts(context)
    if not parts:
        if context.why_gpu_driver_idle:
            yield NODE.unknown(context.why_gpu_driver_idle)
    elif context.virtual_machine:
        yield NODE.not_applicable("guest", detail=f"a virtual machine with {what} alone manages the fabric of others")
    elif not context.node.virtualization_known:
        yield NODE.unknown(
            "guest-hides", detail=f"{what} and no GPU, and whether this is a virtual machine is not known"
        )
    else:
        yield NODE.fail(
            summary=f"no GPU is on the PCI bus, and {len(parts)} {what} of their baseboard are",
            impact="No job can use this node: none of its GPUs came up.",
            evidence=tuple(
                Evidence(device_label(context, part), "on the bus", f"lspci -s {part}") for part in parts[:8]
            ),
            cause="board",
            situation="board",
            ids=frozenset({"count of GPUs", *parts}),
        )


def _board_parts(context: RuleContext) -> tuple[str, list[str]]:
    """PCI addresses of what is on the board of GPUs, or in their modules, and what to call it."""
    if context.topology.nvswitches:
        return "NVSwitches", [switch.id for switch in context.topology.nvswitches]
    managers = [nic.pci for nic in context.topology.nics if nic.limited and nic.pci]
    if managers:
        return "management functions of NVLink switches", managers
    filled = {function.parent for function in context.topology.pci}
    switches = [f.id for f in context.topology.pci if (f.vendor, f.device) in CARD_SWITCHES and f.id not in filled]
    return "ports of PCIe switches in GPU modules", switches


def _judge_missing(context: RuleContext, gpu: Gpu) -> Result:
    about, function = about_gpu(gpu), find_function(context, gpu)
    if not is_nvidia(context, gpu):
        return _judge_other_maker(context, gpu)
    absent = why_unreachable(function)
    if absent and not is_off_bus(function):
        return about.not_applicable(absent)
    if gpu.driver_state == "error" and context.recorded and context.why_probe_failed("pci"):
        return _fail_stated(context, gpu)
    if function is None and (unread := context.why_probe_failed("pci")):
        return about.unknown(unread.prefixed("whether others are on the bus: "))
    if gpu.driver_state == "open":
        return about.passes()
    if gpu.driver_state == "error":
        return _fail_missing(
            context, gpu, f"the driver cannot open it: {quote_source(gpu.driver_error) or 'no reason given'}"
        )
    driver = function.driver if function else None
    if gpu.driver_state == "vfio" or driver == "vfio-pci":
        return about.not_applicable("guest", detail="bound to vfio-pci: it waits for a virtual machine")
    if gpu.driver_state == "no_driver" or (driver is not None and driver != "nvidia"):
        return about.not_applicable(
            "no-such-device", detail=f"no NVIDIA driver is bound to it{f' but {driver}' if driver else ''}"
        )
    unread = context.why_probe_failed("gpu")
    if context.node.container and not unread:
        return about.not_applicable("container", detail="a container sees only the GPUs that it was given")
    if context.node.job_limit and not unread:
        return about.not_applicable(
            "container", detail=f"{context.node.job_limit} sees only the GPUs that it was given"
        )
    if gpu.driver_state != "not_open":
        return about.unknown(
            unread or quote_source(gpu.driver_error) or Reason("not-shown", detail="the driver's list does not show")
        )
    if context.virtual_machine:
        return about.unknown("guest-hides", detail="not listed by the driver, in a virtual machine")
    if driver is None:
        return about.unknown("not-known", fact="not listed by the driver, and whether one is bound to it")
    if context.why_lists_differ:
        return about.unknown(
            "undecided",
            detail=f"not listed by the driver; {context.why_lists_differ}: outputs of two hosts, or of two times?",
        )
    if _EXCLUDED in (context.node.cmdline or ""):
        return about.unknown("undecided", detail=f"not listed, and the kernel command line sets {_EXCLUDED}")
    return _fail_missing(context, gpu, "its driver, which is bound, does not list it")


def _judge_other_maker(context: RuleContext, gpu: Gpu) -> Result:
    """The rules of its maker find one that is missing from a list. Where there is no list, nothing was looked at."""
    about = about_gpu(gpu)
    limited = context.node.container or context.node.job_limit or why_unreachable(find_function(context, gpu))
    if limited or gpu.driver_state != "unknown":
        return about.not_applicable("judged-elsewhere", detail="not of NVIDIA: rules for its vendor judge it")
    return about.unknown(
        quote_source(gpu.driver_error)
        or context.why_probe_failed("gpu")
        or Reason("not-shown", detail="its driver's list does not show it")
    )


def _fail_missing(context: RuleContext, gpu: Gpu, what: str) -> Fail:
    nvidia = [g for g in context.topology.gpus if is_nvidia(context, g)]
    undecided = [g for g in nvidia if g.driver_state == "unknown"]
    unplaced = [g for g in nvidia if g.driver_state == "error" and g.pci is None] if undecided else []
    usable = sum(g.driver_state == "open" for g in nvidia) + len(undecided) - len(unplaced)  # each is an undecided one
    most = "at most " if undecided else ""
    of_all = f"{most}{usable} of {len(nvidia) - len(unplaced)} GPUs"
    place = f"one of {', '.join(g.id for g in undecided)}" if gpu in unplaced else gpu.pci or gpu.id
    return about_gpu(gpu).fail(
        summary=f"on the PCI bus, but {what}",
        impact=f"{of_all[0].upper()}{of_all[1:]} can be used; jobs that ask for all do not start.",
        evidence=(
            Evidence("on the PCI bus", place, "lspci -d 10de: -nnk"),
            Evidence("listed by the driver", f"{most}{usable} GPUs, not this one", "nvidia-smi -L"),
            *kernel_log_evidence(context, gpu.pci or gpu.id),
        ),
        situation="lost" if "LOST" in (gpu.driver_error or "") else "",
    )


def _fail_stated(context: RuleContext, gpu: Gpu) -> Fail:
    """By nvidia-smi's own words, of a source that does not show the bus."""
    error = quote_source(gpu.driver_error) or ""
    return about_gpu(gpu).fail(
        summary=f"the driver cannot open it: {error}",
        impact="Jobs that ask for all GPUs of the node do not start. Whether the GPU is still on the bus is not known.",
        evidence=(
            Evidence("the driver's error", error, "nvidia-smi"),
            *kernel_log_evidence(context, gpu.pci or gpu.id),
        ),
        confidence="medium",
        situation="lost" if "LOST" in error.upper() else "",
    )


# What the driver asks for, how severe that is, and the situation of the page that has the steps
_ACTIONS = {
    "reset": ("error", ""),
    "bus_reset": ("error", "bus"),
    "drain_and_reset": ("error", ""),
    "drain_p2p": ("warning", "peer"),
    "recover_imex_domain": ("error", "imex"),
    "reboot": ("critical", "reboot"),
    "system_reboot": ("critical", "reboot"),
}


@rule("gpu-recovery-needed", each=list_gpus)
def gpu_recovery_needed(context: RuleContext, gpu: Gpu) -> Result:
    about, absent = about_gpu(gpu), why_unreachable(find_function(context, gpu))
    if not is_nvidia(context, gpu):
        return about.not_applicable("no-such-device", detail="not of NVIDIA")
    if absent:
        return about.not_applicable(absent)
    if gpu.driver_state in ("no_driver", "vfio", "not_open"):
        return about.not_applicable("not-measured", detail="the driver does not offer it")
    action = gpu.recovery_action
    if action is None:
        why = context.why_probe_failed("gpu") or quote_source(gpu.driver_error)
        return about.unknown(
            why or Reason("not-shown", detail="the driver names no recovery action (R570 and later do)")
        )
    if action == "none":
        return about.passes()
    severity, situation = _ACTIONS.get(action, ("warning", "unlisted"))
    word = action.replace("_", " ")
    return about.fail(
        summary=f"the driver asks for: {word}",
        impact="New jobs on it fail, and jobs that use all GPUs of the node with them, until that is done."
        if severity != "warning"
        else "Jobs that use it together with other GPUs may fail; others go on.",
        situation=situation,
        evidence=(Evidence("recovery action", word, "nvidia-smi -q"), *kernel_log_evidence(context, gpu.pci or gpu.id)),
        severity=severity,
        cause=action,
    )


_CONSUMER = r"(?i)GeForce|TITAN"
_BY_REGISTRY = "DR"
_NEAR = ("PIX", "PXB")
_MOST = 3  # times as many pairs with P2P as without, of one kind of way
_WORDS = {
    "DR": "switched off by a registry key of the driver",
    "CNS": "the driver does not allow it on this chipset",
    "GNS": "the driver does not allow it on this GPU",
    "TNS": "the driver does not allow it over this topology",
    "NS": "not supported",
}


@rule("gpu-p2p-blocked")
def gpu_p2p_blocked(context: RuleContext) -> Iterator[Result]:
    yield from report_no_gpu(context)
    if context.software.driver.confidential_computing:
        yield NODE.not_applicable("by-design", detail="confidential computing: the driver disables P2P between GPUs")
        return
    able = []
    for gpu in context.topology.gpus:
        why = _why_unable(context, gpu)
        if why:
            yield about_gpu(gpu).not_applicable(why)
        else:
            able.append(gpu)
    if len(able) == 1:
        yield about_gpu(able[0]).not_applicable("nothing-to-compare", detail="no other GPU")
    kinds = {frozenset((path.a, path.b)): path.kind for path in context.topology.paths}
    blocked: dict[str, list[tuple[Gpu, Gpu]]] = {}
    undecided: dict[str, list[tuple[Gpu, Gpu]]] = {}  # of a matrix of words alone
    usual_kinds = _find_working_kinds(able, kinds)
    for a, b in combinations(able, 2):
        kind = kinds.get(frozenset((a.id, b.id)))
        answer = _judge_pair(context, a, b, kind, kind in usual_kinds)
        if isinstance(answer, str):
            blocked.setdefault(answer, []).append((a, b))
        elif kind is None and context.why_bus_unread and (words := _list_refusals(a, b)):
            undecided.setdefault(words[0], []).append((a, b))
        else:
            yield answer
    for word, pairs in sorted(blocked.items()):
        yield _fail_p2p_blocked(word, pairs)
    for word, pairs in sorted(undecided.items()):
        fault = _fail_p2p_blocked(word, pairs)
        impact = f"{_DEPENDS} {fault.impact}"
        yield replace(fault, severity="info", confidence="low", impact=impact, remedy=_SETTLE)


_DEPENDS = (
    "What it means depends on the GPUs and on how they are joined, which the source leaves open (`nvidia-smi topo -m`, "
    "`lspci -vvv`): consumer GPUs, GPUs of a virtual machine and GPUs at two CPUs often have no P2P."
)

_SETTLE = (
    "Save `nvidia-smi topo -m` and `lspci -vvv` of this host beside this source, and scan the folder. Where a PCIe "
    "switch or NVLink joins the GPUs, compare the versions of driver, GPU and switch firmware with those of a good "
    "node."
)


def _list_refusals(a: Gpu, b: Gpu) -> list[str]:
    return [word for word in _list_p2p_states(a, b) if word in _WORDS]


def _find_working_kinds(gpus: Sequence[Gpu], kinds: Mapping[frozenset[str], str | None]) -> set[str | None]:
    """The kinds of ways over which P2P works between most pairs: a chipset that allows it allows it for all."""
    works, fails = Counter[str | None](), Counter[str | None]()
    for a, b in combinations(gpus, 2):
        states = {*_list_p2p_states(a, b)} - {None}
        counts = works if states == {"OK"} else fails
        counts[kinds.get(frozenset((a.id, b.id)))] += len(states) > 0
    return {kind for kind, count in works.items() if count >= _MOST * fails[kind]}


def _list_p2p_states(a: Gpu, b: Gpu) -> list[str | None]:
    """What the driver states of reads and writes between two GPUs, in both directions."""
    ways = ((a.p2p or {}).get(b.id, {}), (b.p2p or {}).get(a.id, {}))
    return [words.get(way) for words in ways for way in ("read", "write")]


def _why_unable(context: RuleContext, gpu: Gpu) -> Reason | None:
    if not is_nvidia(context, gpu):
        return Reason("no-such-device", detail="not of NVIDIA: its driver is not queried")
    if absent := why_unreachable(find_function(context, gpu)):
        return absent
    if gpu.driver_state != "open" and not (gpu.driver_state == "unknown" and gpu.p2p):
        return Reason("not-measured", detail="the driver does not offer it")
    if gpu.mig and gpu.mig.current:
        return Reason("not-in-use", detail="MIG is on: there is no P2P between GPUs")
    return Reason("guest", detail="a vGPU") if gpu.virtualization in ("vgpu", "host_vgpu", "vsga") else None


def _judge_pair(context: RuleContext, a: Gpu, b: Gpu, kind: str | None, should_work: bool) -> Result | str:
    """The word of a pair that is blocked, or the answer. `should_work`: its way over PCIe is one over which it does."""
    about = about_pair(a, b)
    if gpu_model(context, a) != gpu_model(context, b):
        return about.not_applicable("nothing-to-compare", detail="GPUs of different models")
    states = _list_p2p_states(a, b)
    by_nvlink = (kind or "").startswith("NV")
    if _BY_REGISTRY in states:
        return _BY_REGISTRY
    if context.virtual_machine and not by_nvlink:
        return about.not_applicable("guest", detail="over PCIe in a virtual machine: the hypervisor decides")
    bad = _list_refusals(a, b)
    if kind is not None and not by_nvlink and kind not in _NEAR and not (bad and should_work):
        return about.not_applicable("other-kind", detail=f"{kind}: the chipset decides whether P2P works")
    if kind is None and bad:
        return about.unknown("not-known", fact="how they are joined")
    if bad:
        return bad[0]
    if states[0] == "OK" and set(states) <= {"OK", None}:
        return about.passes()
    return about.unknown("not-shown", detail="not reported by the driver")


def _fail_p2p_blocked(word: str, pairs: Sequence[tuple[Gpu, Gpu]]) -> Fail:
    about, labels = about_pairs(pairs), [f"{a.label} - {b.label}" for a, b in pairs]
    consumer = all(re.search(_CONSUMER, gpu.name or "") for pair in pairs for gpu in pair)
    return about.fail(
        summary=f"P2P blocked {name_pairs([(a.label, b.label) for a, b in pairs])}: {_WORDS[word]} ({word})",
        impact="Copies between them go through the CPU's memory: 10 to 20 GB/s where PCIe 5 has 50, NVLink 4 has 450.",
        remedy="Remove the key (RegistryDwords) from the options of the module nvidia in /etc/modprobe.d."
        if word == _BY_REGISTRY
        else "Compare the versions of driver, GPU and switch firmware with those of a good node; look at ACS.",
        evidence=tuple(Evidence(text, word, "nvidia-smi topo -p2p r") for text in labels[:8]),
        severity="info" if consumer else "error",
        cause=word,
        ids=frozenset(gpu.id for pair in pairs for gpu in pair) if about is NODE else None,
    )
