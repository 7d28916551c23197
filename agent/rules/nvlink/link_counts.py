"""Active, expected and missing NVLinks of each GPU."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum

from agent.model.finding import Evidence
from agent.model.gpu import Gpu, GpuLink
from agent.model.reasons import Reason, quote_source
from agent.rules.context import RuleContext
from agent.rules.devices import (
    C2C_GPUS,
    about_gpu,
    ask_nvidia_smi,
    find_device_id,
    find_function,
    gpu_model,
    is_consumer,
    is_nvidia,
    is_off_bus,
    report_no_gpu,
    why_unreachable,
)
from agent.rules.rule import Result, Subject
from agent.rules.wording import format_ranges

_ALL_INACTIVE = "all links are inactive"  # of nvidia-smi, which lists none of them then


class LinkForm(Enum):
    """How a GPU gets its NVLinks."""

    BOARD = "board"  # SXM: wired on a baseboard, to switches or to each other
    SUPERCHIP = "superchip"  # wired by the maker of the tray or rack
    CARD = "card"  # by bridges that someone plugs, or does not
    UNKNOWN = "unknown"  # neither its id nor its name states


# SXM modules (pci.ids): V100, A100 and A800, H100 and H200 with H800 and H20, B200, B300
_BOARD = frozenset({
    "0x1db1", "0x1db5", "0x1db8", "0x20b0", "0x20b2", "0x20f3", "0x2324", "0x2329", "0x232c", "0x2330", "0x2335",
    "0x2337", "0x2338", "0x2339", "0x2901", "0x2909", "0x3182",
})  # fmt: skip
# Links that a product has, where its chip can do more: A800 and H800 SXM; bridges of H100 PCIe, H100 NVL and H800 PCIe
_FEWER_ON_PURPOSE = {"0x20f3": 8, "0x2324": 8, "0x2331": 12, "0x2321": 12, "0x2322": 8}
# The same by name, where no PCI id is known: saved outputs of nvidia-smi alone
_NAMED = (
    (r"\bH100 \d{2}[^P\n]{0,8}\.\.\.$", LinkForm.UNKNOWN),  # the table of nvidia-smi cuts HBM3 or HBM2e off
    (r"\b(GH200|GB[123]00)\b", LinkForm.SUPERCHIP),
    (r"(?i)PCIe\b|\bNVL\b", LinkForm.CARD),
    (r"\bSXM|\bHBM3|\b(H20|H200|H800|B[123]00)\b", LinkForm.BOARD),
)
_NAMED_FEWER = ((r"\b[AH]800\b", 8), (r"(?i)\bH100 (PCIe|NVL)\b", 12))


# Names of products that NVIDIA makes with NVLink, or with a connector for a bridge, among lines that have none:
# GeForce, TITAN, Quadro, RTX and Tesla cards (data sheets)
_LINKED = (
    r"(?i)\b(?:G?P100|[GV]?V100S?|GV100|A100X?|A800|A30X?|A40|TITAN (?:RTX|V CEO)|RTX (?:2070 SUPER|2080|3090)"
    r"|RTX A(?:4500|5000|5500|6000)|Quadro RTX (?:5000|6000|8000)|RTX (?:5000|6000|8000)$)"
)
_UNLINKED = (
    r"(?i)\b(?:GeForce|TITAN|Quadro|NVS|Tesla [CKMPT]\d+|T4G?|L4|L20|L2|L40S?|A2|A10G?M?|A16|RTX (?:PRO|A?\d{3,4})"
    r"|T\d{3,4}|GTX?|MX\d{3})\b"
)


def never_has_nvlink(context: RuleContext, gpu: Gpu) -> bool:
    """Whether the model of a GPU is one that NVIDIA builds without NVLink, by its name."""
    function = find_function(context, gpu)
    name = f"{gpu.name or ''} {(function.name if function else None) or ''}"
    return re.search(_UNLINKED, name) is not None and re.search(_LINKED, name) is None


class LinkCounts(Subject, frozen=True):
    """The NVLinks of one GPU by state. A sleeping link is a healthy one."""

    gpu: Gpu
    form: LinkForm
    model: str
    enough: int | None  # so many active links are all that this product has, whatever its chip could do
    active: tuple[GpuLink, ...]
    inactive: tuple[GpuLink, ...]
    unread: tuple[GpuLink, ...]

    @property
    def about(self) -> Subject:
        """The GPU: dead links of one GPU are one fault."""
        return about_gpu(self.gpu)

    @property
    def total(self) -> int:
        """All links that the driver shows."""
        return len(self.active) + len(self.inactive) + len(self.unread)

    @property
    def evidence(self) -> Evidence:
        """What a person sees, and with which command."""
        numbers = format_ranges(link.link for link in self.inactive)
        return Evidence(
            f"NVLinks of {self.gpu.label}",
            f"{len(self.active)} of {self.total} active; inactive: {numbers}",
            ask_nvidia_smi("nvlink -s", self.gpu),
        )


def link_counts(context: RuleContext) -> tuple[LinkCounts | Result, ...]:
    """For every GPU its links, or why they are not judged."""
    return context.once(_count_all)


def _count_all(context: RuleContext) -> Iterator[LinkCounts | Result]:
    yield from report_no_gpu(context)
    for gpu in context.topology.gpus:
        yield _not_judged_reason(context, gpu) or count_links(context, gpu)


def group_by_model(counts: list[LinkCounts]) -> list[list[LinkCounts]]:
    """GPUs of one product stand together: they should look alike. Groups and members in the order of ids."""
    groups: dict[str, list[LinkCounts]] = {}
    for tally in sorted(counts, key=lambda tally: tally.gpu.id):
        groups.setdefault(tally.model, []).append(tally)
    return list(groups.values())


def lost_ends(context: RuleContext, tally: LinkCounts) -> frozenset[str]:
    """GPUs and NVSwitches that are gone or not offered, where dead links of this GPU may lead to them.

    A dead link does not show where it leads; what the live ones lead to shows.
    """
    kinds = {link.remote.kind for link in tally.active if link.remote} or {"gpu", "switch"}
    lost: set[str] = set()
    if "gpu" in kinds:
        lost |= {
            gpu.id
            for gpu in context.topology.gpus
            if is_off_bus(context.functions.get(gpu.pci or "")) or gpu.driver_state in ("not_open", "error")
        }
    if "switch" in kinds:
        lost |= {switch.id for switch in context.topology.nvswitches if is_off_bus(context.functions.get(switch.pci))}
    return frozenset(lost)


def not_offered_reason(context: RuleContext, gpu: Gpu) -> Result | None:
    """Why the driver reports nothing of a GPU here; None where it does."""
    about = about_gpu(gpu)
    absent = why_unreachable(find_function(context, gpu))
    if not is_nvidia(context, gpu):
        return about.not_applicable("no-such-device", detail="not of NVIDIA: no NVLink")
    if absent:
        return about.not_applicable(absent)
    if gpu.driver_state in ("not_open", "error"):
        return about.not_applicable("judged-elsewhere", detail="the driver does not offer it: see gpu-missing")
    if gpu.driver_state in ("no_driver", "vfio"):
        return about.not_applicable("no-such-device", detail="no NVIDIA driver is bound to it")
    return None


def _not_judged_reason(context: RuleContext, gpu: Gpu) -> Result | None:
    about = about_gpu(gpu)
    if answer := not_offered_reason(context, gpu):
        return answer
    if gpu.mig and gpu.mig.current:
        return about.not_applicable("not-in-use", detail="MIG is on: NVLink is not used and cannot be queried")
    if not gpu.links and never_has_nvlink(context, gpu):
        return about.not_applicable("other-kind", detail="a model without NVLink")
    if not gpu.links_known and is_consumer(context, gpu):
        return about.not_applicable(
            "other-kind", detail="a consumer card: a bridge is the builder's choice, and none is listed"
        )
    if not gpu.links_known:
        why = (
            quote_source(gpu.links_reason)
            or context.why_probe_failed("gpu")
            or Reason("not-shown", detail="NVLinks not known")
        )
        return about.unknown(why)
    if not any(link.protocol == "nvlink" for link in gpu.links):
        return about.not_applicable(
            quote_source(gpu.links_reason, "no-such-device") or Reason("other-kind", detail="a GPU without NVLink")
        )
    for mode in (context.topology.bandwidth_mode, gpu.nvlink_bandwidth_mode):
        if mode not in (None, "full"):
            return about.not_applicable("by-design", detail=f"NVLink bandwidth mode {mode}: links are off on purpose")
    return None


def count_links(context: RuleContext, gpu: Gpu) -> LinkCounts:
    """The links of one GPU; none where no source reported them."""
    device = find_device_id(context, gpu)
    links = sorted((link for link in gpu.links if link.protocol == "nvlink"), key=lambda link: link.link)
    return LinkCounts(
        gpu=gpu,
        form=find_form(context, gpu),
        model=gpu_model(context, gpu),
        enough=_FEWER_ON_PURPOSE.get(device) if device else _fewer_by_name(gpu),
        active=tuple(link for link in links if link.state in ("active", "sleep")),
        inactive=tuple(link for link in links if link.state == "inactive"),
        unread=tuple(link for link in links if link.state not in ("active", "sleep", "inactive")),
    )


def find_form(context: RuleContext, gpu: Gpu) -> LinkForm:
    """By PCI id, else by name: saved outputs of nvidia-smi alone have no other."""
    device = find_device_id(context, gpu)
    if device in _BOARD:
        return LinkForm.BOARD
    if device in C2C_GPUS:
        return LinkForm.SUPERCHIP
    if device:
        return LinkForm.CARD
    named = next((form for pattern, form in _NAMED if re.search(pattern, gpu.name or "")), None)
    return named or (LinkForm.CARD if gpu.name else LinkForm.UNKNOWN)


def is_stated_inactive(context: RuleContext, gpu: Gpu) -> bool:
    """Whether the driver states no more of a GPU than that all its links are inactive, and a board wires them."""
    stated = (gpu.links_reason or "").lower()
    return _ALL_INACTIVE in stated and find_form(context, gpu) is LinkForm.BOARD and not context.virtual_machine


def _fewer_by_name(gpu: Gpu) -> int | None:
    return next((links for pattern, links in _NAMED_FEWER if re.search(pattern, gpu.name or "")), None)
