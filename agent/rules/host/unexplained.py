"""Lines of drivers that read as a failure and that no sentence explains: a note with the line, never more.

The reader of the log collects them (`probes/kernel/unexplained.py`). What is left out here: lines beside a failure that
is explained, about parts that work now, and about devices that run no jobs.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence

from agent.model.counters import FABRIC_PORT
from agent.model.node import Event
from agent.rules.context import RuleContext, parse_time, read_since_boot
from agent.rules.devices import about_function, about_gpu, device_label, list_log_words, quote_log, severity_by_role
from agent.rules.host.error_numbers import explain_number
from agent.rules.host.failure_words import FAILURE_WORDS, find_kind
from agent.rules.rule import NODE, Fail
from agent.rules.wording import count_of, join_labels

KIND = "unexplained"
_NO_FAILURES = frozenset({"link_down", "link_up", "xgmi", "pcie_bandwidth", "tool", "service", FABRIC_PORT, KIND})
_NEAR_SECONDS = 600  # lines of one failure stand so close
_SHOWN, _PARTS = 4, 4
_FAMILIES = (  # drivers of one maker's part, and what to save of it
    ("NVIDIA driver", ("NVRM", "nvidia", "nv_peer_mem", "gdrdrv"), "nvidia-smi -q; nvidia-smi"),
    ("mlx5", ("mlx5_", "mlx4_"), "ibstat; rdma link; ip -d link"),
    ("bnxt", ("bnxt_",), "rdma link; ip -d link"),
    ("amdgpu", ("amdgpu", "kfd"), "amd-smi static; amd-smi metric"),
    ("habanalabs", ("habanalabs", "accel"), "hl-smi"),
    ("Intel GPU driver", ("i915", "xe"), "xpu-smi discovery; xpu-smi health -l"),
    ("Neuron driver", ("neuron",), "neuron-ls"),
    ("PCIe port", ("pcieport",), "lspci -vvv"),
    ("IOMMU", ("DMAR", "AMD-Vi", "arm-smmu-v3"), "lspci -vvv"),
    ("vfio-pci", ("vfio-pci",), "lspci -vvv"),
    ("Ascend driver", ("ascend", "[ascend]"), "npu-smi info"),
    ("drive", ("nvme",), "nvme list; lspci -vvv"),
    ("CXL", ("cxl_",), "cxl list; lspci -vvv"),
    ("Slingshot driver", ("cxi_",), "cxi_stat; ip -d link"),
)
_OF_NICS = "rdma link; ip -d link"


def find_unexplained(context: RuleContext) -> Iterator[Fail]:
    """One note per driver."""
    groups: dict[str, list[Event]] = {}
    for event in context.events:
        if event.kind == KIND and _counts(context, event) and not _is_explained(context, event):
            groups.setdefault(_find_family(_find_driver(event))[0], []).append(event)
    for name, events in sorted(groups.items()):
        yield _note(context, name, events)


def _find_family(driver: str) -> tuple[str, str]:
    """The name of a driver for people, and what to save of its parts."""
    found = next(((name, save) for name, starts, save in _FAMILIES if driver.startswith(starts)), None)
    return found or (driver, _OF_NICS)


def _find_driver(event: Event) -> str:
    """The driver that wrote a line; of one of the RDMA core that of the device in it."""
    return (event.subject if event.code == "infiniband" else event.code) or event.code or ""


def _counts(context: RuleContext, event: Event) -> bool:
    """Whether the part runs jobs, and nothing shows that it works now."""
    address = event.subject or ""
    gpu, nic = context.gpu_by_pci.get(address), context.nic_by_pci.get(address)
    if gpu is not None:
        return gpu.driver_state != "open"
    if nic is not None:
        works = bool(nic.rdma_device) or any(port.netdevs for port in nic.ports)
        return not works and severity_by_role("error", nic) is not None
    is_listed = any(address == nic.rdma_device for nic in context.topology.nics)
    return context.why_bus_unread is not None and not is_listed


def _is_explained(context: RuleContext, event: Event) -> bool:
    """Whether the log states a failure of the same part, or of the same driver where a line names no part, near it."""
    family = _find_family(_find_driver(event))[0]
    for other in context.events:
        if other.kind in _NO_FAILURES or other.code == "started" or not _is_near(event, other):
            continue
        if not (event.subject and other.subject):
            if _find_family(other.text.split(" ")[0].rstrip(":"))[0] == family:
                return True
        elif _card(event.subject) == _card(other.subject) or re.search(rf"\b{re.escape(event.subject)}\b", other.text):
            return True
    return False


def _card(subject: str) -> str:
    """A device without its function: what one of them reports holds for its siblings."""
    return subject.partition(".")[0]


def _is_near(event: Event, other: Event) -> bool:
    """Whether two lines stand close in time; where a log has no dates they do."""
    mine, others = _list_seconds(event), _list_seconds(other)
    if not mine or not others:
        return True
    return max(mine) >= min(others) - _NEAR_SECONDS and min(mine) <= max(others) + _NEAR_SECONDS


def _list_seconds(event: Event) -> list[float]:
    if event.at:
        return [time.timestamp() for time in map(parse_time, (event.first_at, event.at)) if time is not None]
    times = map(read_since_boot, (event.detail.get("first"), event.logged))
    return [seconds for seconds in times if seconds is not None]


def _note(context: RuleContext, name: str, events: Sequence[Event]) -> Fail:
    subjects = sorted({event.subject for event in events if event.subject})
    alone = subjects[0] if len(subjects) == 1 else ""
    gpu = context.gpu_by_pci.get(alone)
    on_bus = alone.count(":") == 2
    about = about_gpu(gpu) if gpu else about_function(context, alone) if on_bus else NODE
    labels = [device_label(context, one) if ":" in one else one for one in subjects]
    units = sorted({unit for event in events if (unit := event.detail.get("unit"))})
    parts = labels or [f"{unit} by the driver's own count" for unit in units]
    shown = join_labels(parts) if len(parts) <= _PARTS else count_of(len(parts), "devices")
    lines = sum(event.count for event in events) + sum(_count_more(event) for event in events)
    numbers = dict.fromkeys(filter(None, (explain_number(event.code or "", event.text) for event in events)))
    first = events[0]
    where = f" of {shown}" if shown and not on_bus else ""
    return about.fail(
        f"{_name_driver(name)} reports a failure{where} that no check explains "
        f"({count_of(lines, 'lines')}{describe_period(events)}): {shorten(first.text)}"
        + (f" ({join_labels(list(numbers)[:2])})" if numbers else ""),
        f"Not known: the line states that something failed, and not what depends on it.{_describe_words(events)}",
        label=shown if on_bus else name,
        evidence=tuple(quote_log(event) for event in events[:_SHOWN]),
        values=(("COMMANDS", _find_family(_find_driver(first))[1]), *list_log_words(events)),
        severity="info",
        confidence="low",
        cause=f"{KIND} {name}",
        situation=KIND,
        ids=frozenset({alone} if on_bus else {f"{KIND} {name}"}),
        explains_ids=frozenset(),
    )


def _describe_words(events: Sequence[Event]) -> str:
    kind = find_kind(*(event.text for event in events))
    return f" By its words: {FAILURE_WORDS[kind].title}." if kind else ""


def _name_driver(name: str) -> str:
    return f"the {name}" if name in ("PCIe port", "IOMMU") else f"the {name.removesuffix(' driver')} driver"


def _count_more(event: Event) -> int:
    """Lines of the part in other forms."""
    more = event.detail.get("more", "")
    return int(more) if re.fullmatch(r"[0-9]{1,9}", more) else 0


def describe_period(events: Sequence[Event]) -> str:
    """From the first line to the last, where the log has dates."""
    dates = sorted(date for event in events for date in (event.first_at, event.at) if date)
    if not dates:
        dates = [date for date in (events[0].detail.get("first"), events[0].logged) if date]
    if not dates:
        return ""
    return f", {dates[0]}" if dates[0] == dates[-1] else f", {dates[0]} to {dates[-1]}"


def shorten(text: str, limit: int = 160) -> str:
    """The beginning of a long line."""
    return textwrap.shorten(text, limit, placeholder=" ...")
