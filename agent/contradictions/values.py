"""What two outputs of one host state of the same part, and not alike: only one of them can be so now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from agent.model.gpu import Gpu
from agent.model.nic import Netdev, Nic, Port
from agent.model.node import Event
from agent.model.pci import PciFunction
from agent.model.peers import usual
from agent.model.report import Report
from agent.rules.peers.fields import NOTHING, PeerField, list_fields

CODE = "outputs-differ"
# By struct, beside the fields that peers have alike: those that neither power saving nor traffic changes
_COMPARED: dict[Any, dict[str, str]] = {
    PciFunction: {"numa_node": "NUMA node", "iommu_group": "IOMMU group", "link.width": "link width"},
    Gpu: {"numa_node": "NUMA node"},
    Nic: {"numa_node": "NUMA node"},
    Port: {"state": "state", "phys_state": "physical state", "link_layer": "link layer"},
    Netdev: {"operstate": "state", "admin_up": "set up", "driver": "driver"},
}
_OTHER_WORDS = ("name", "revision")  # tools have words of their own for them
_NO_VALUE = (*NOTHING, "unknown", "unspecified")
_CLOSE = 0.05  # share by which numbers may differ: tools round, and count in other units
_SHOWN = 4  # values of a part


class _Stated(NamedTuple):
    """What an output states of a field of a part."""

    value: Any
    read_as: str


def note_differing_values(alone: Sequence[tuple[str, Report]]) -> list[Event]:
    """An event for each part of which two outputs state a field differently. `alone`: the command of each output that
    is used, and the report of nothing else."""
    compared = {kind: _list_compared(kind) for kind in _COMPARED}
    stated: dict[tuple[str, str, PeerField], list[_Stated]] = {}
    for read_as, one in alone:
        for key, label, part in _list_parts(one):
            for field in compared[type(part)]:
                value = field.read(part)
                if not isinstance(value, (list, dict)) and value not in _NO_VALUE:
                    stated.setdefault((key, label, field), []).append(_Stated(value, read_as))
    differing: dict[str, list[str]] = {}
    for (_, label, field), values in stated.items():
        other = next((one for one in values if _differ(one, values[0])), None)
        if other is not None:
            differing.setdefault(label, []).append(_describe(field, values[0], other))
    return [
        Event(
            kind="tool",
            code=CODE,
            text=f"{label}: {'; '.join(what[:_SHOWN])}",
            source="two outputs",
            detail={"what": f"{label}: {'; '.join(what[:_SHOWN])}"},
        )
        for label, what in differing.items()
    ]


def _list_parts(report: Report) -> Iterator[tuple[str, str, object]]:
    """Each part of a report, with a key that is the same in each, and the name that people know it by."""
    topology = report.topology
    for function in topology.pci:
        yield f"pci:{function.id}", function.id, function
    for gpu in topology.gpus:
        for key in (gpu.pci, gpu.uuid, None if gpu.index is None else f"GPU{gpu.index}"):
            if key is not None:
                yield f"gpu:{key}", gpu.label, gpu
                break
    for nic in topology.nics:
        if nic.rdma_device:
            yield f"nic:{nic.rdma_device}", nic.label, nic
            for port in nic.ports:
                yield f"port:{nic.rdma_device}/{port.port}", f"{nic.rdma_device}/{port.port}", port
    for netdev in topology.netdevs:
        yield f"netdev:{netdev.label}", netdev.label, netdev


def _list_compared(kind: Any) -> list[PeerField]:
    alike = [field for word in ("equal", "usual") for field in list_fields(kind, word)]
    more = [PeerField(path, usual(title), tuple(path.split(".")[:-1])) for path, title in _COMPARED[kind].items()]
    return [field for field in (*alike, *more) if field.path not in _OTHER_WORDS]


def _differ(one: _Stated, other: _Stated) -> bool:
    if one.read_as == other.read_as:
        return False
    a, b = one.value, other.value
    if isinstance(a, int | float) and isinstance(b, int | float):
        return abs(a - b) > _CLOSE * max(abs(a), abs(b))
    return bool(str(a).lower() != str(b).lower())


def _describe(field: PeerField, one: _Stated, other: _Stated) -> str:
    unit = f" {field.word.unit}" if field.word.unit else ""
    values = (f"{_format(stated.value)}{unit} ({stated.read_as})" for stated in (one, other))
    return f"{field.word.title} {', '.join(values)}"


def _format(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)
