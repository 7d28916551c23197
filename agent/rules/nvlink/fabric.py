"""Who runs the NVLink fabric of a node, and what its GPUs say of it: what the fabric rules share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from agent.model.gpu import Fabric, Gpu
from agent.model.node import Service
from agent.rules.case import Case
from agent.rules.devices import device_id, function_of, no_gpu
from agent.rules.folding import joined
from agent.rules.nvlink.tally import Form, form_of, not_offered
from agent.rules.rule import Answer, Fail, NotApplicable, Unknown

PLACE = "nvlink-fabric"  # what is wrong with the fabric as a whole: the place that its consequences share
MANAGER, IMEX = "nvidia-fabricmanager", "nvidia-imex"
FABRIC_ARCHITECTURES = ("Hopper", "Blackwell", "Rubin")  # their GPUs register with the fabric
# HGX boards whose NVLink switches are no PCI functions of the host, and whose fabric manager runs on it all the same
_HIDDEN_SWITCHES = frozenset({"0x2901", "0x2909", "0x3182"})
_WHOLE_BOARD = 8
_NO_UUID = "00000000-0000-0000-0000-000000000000"


class Registered(NamedTuple):
    """A GPU that registers with a fabric, and what it says of that."""

    gpu: Gpu
    fabric: Fabric


T = TypeVar("T", Gpu, Registered)


def unmanaged(case: Case) -> Answer | None:
    """Why no fabric manager is due on this node; None where one is."""
    gpus = [gpu for gpu in case.topology.gpus if device_id(case, gpu) in _HIDDEN_SWITCHES]
    hidden = len(gpus) >= _WHOLE_BOARD and not case.virtual_machine
    if not case.topology.nvswitches and not hidden:
        if unread := case.bus_unread:
            return Unknown("node", f"whether there are NVSwitches: {unread}")
        return NotApplicable("node", "no NVSwitch of this host: its GPUs need no fabric manager on it")
    if case.node.container:
        return Unknown("node", "a container does not show the services of its host")
    switches = [case.functions.get(switch.pci) for switch in case.topology.nvswitches]
    if switches and all(each and (each.driver or "").startswith("vfio") for each in switches):
        return NotApplicable("node", "the NVSwitches wait for a virtual machine (vfio-pci): it manages them")
    if not any(gpu.driver_state in ("open", "not_open", "error", "unknown") for gpu in case.topology.gpus):
        return NotApplicable("node", "no GPU has an NVIDIA driver here: nothing is to be managed")
    return None


def service(case: Case, name: str) -> Service | Unknown:
    """A system service, or why nothing is known of it."""
    found = next((each for each in case.software.services if each.name == name), None)
    if found is None:
        return Unknown("node", case.probe_failure("services") or f"the state of {name} is not known")
    if found.state == "unknown":
        return Unknown("node", f"whether {name} runs is not known")
    return found


def registered(case: Case) -> Iterator[Registered | Answer]:
    """Every GPU that registers with a fabric and what it says of it, or why it is not judged."""
    yield from no_gpu(case)
    for gpu in case.topology.gpus:
        yield _registered(case, gpu)


def _registered(case: Case, gpu: Gpu) -> Registered | Answer:
    subject = f"gpu:{gpu.id}"
    if answer := not_offered(case, gpu):
        return answer
    if gpu.mig and gpu.mig.current:
        return NotApplicable(subject, "MIG is on: NVLink is not used")
    fabric = gpu.fabric
    if fabric is not None and fabric.state == "not_supported":
        return NotApplicable(subject, "it registers with no fabric (driver: not supported)")
    if fabric is not None and fabric.state is not None:
        return Registered(gpu, fabric)
    if gpu.architecture is not None and gpu.architecture not in FABRIC_ARCHITECTURES:
        return NotApplicable(subject, "GPUs before Hopper register with no fabric")
    if form_of(case, gpu) is Form.CARD:
        return NotApplicable(subject, "a card: it registers with no fabric")
    return Unknown(subject, case.probe_failure("nvml|nvidia_smi") or "the driver does not tell its fabric state")


def cluster(gpu: Gpu) -> str | None:
    """The NVLink domain of several nodes that a GPU is in; None on a node of its own."""
    uuid = gpu.fabric.cluster_uuid if gpu.fabric and gpu.fabric.state == "completed" else None
    return None if uuid in (None, "", _NO_UUID) else uuid


def by_each(found: Iterable[T | Answer], judge: Callable[[T], Answer]) -> Iterator[Answer]:
    """The answers about all that is judged, and those that came in its place; faults last, and alike ones as one."""
    judged, faults = 0, []
    for each in found:
        if isinstance(each, Answer):
            yield each
            continue
        judged += 1
        answer = judge(each)
        if isinstance(answer, Fail):
            faults.append(answer)
        else:
            yield answer
    yield from together(faults, judged)


def together(faults: Sequence[Fail], judged: int) -> Iterator[Fail]:
    """One finding for the node where every GPU has the same fault: one part explains all."""
    if len(faults) < 2 or len(faults) < judged or len({(f.severity, f.cause, f.summary) for f in faults}) > 1:
        yield from faults
    else:
        yield joined(faults, faults[0].summary)


def places(case: Case, gpu: Gpu) -> frozenset[str]:
    """The ids of one GPU."""
    function = function_of(case, gpu)
    return frozenset({gpu.id, function.id if function else gpu.id})
