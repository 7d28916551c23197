"""pci-driver-missing."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.gpu import Gpu
from agent.model.nic import Nic
from agent.model.pci import PciFunction
from agent.rules.case import Case
from agent.rules.counting import named
from agent.rules.devices import AMD, MELLANOX, NVIDIA, away, by_role, function_of, is_nvidia, kernel_log
from agent.rules.folding import as_one
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule

_WRONG = {"nouveau": "nvidia", "nova_core": "nvidia", "nvidiafb": "nvidia"}  # drive the GPU's display, run no CUDA
_RIGHT = {NVIDIA: "nvidia", AMD: "amdgpu", MELLANOX: "mlx5_core"}
_PARTITION = "pci-pf-stub"


@rule("pci-driver-missing", "warning", needs=("pci|lspci",), references=("PCIE-028",))
def pci_driver_missing(case: Case) -> Iterator[Answer]:
    """A GPU or NIC has no driver, or one that is of no use for its work.

    ## What it checks
    The driver of every GPU, and of every NIC that could do RDMA.

    ## Why it matters
    The device is there and can do nothing: 1 of 8 GPUs or rails is missing from every job.

    ## How it is decided
    No driver is bound, or a GPU of NVIDIA is held by nouveau: warning. A NIC without a driver has no role of its own,
    so it has that of the NICs of its kind: rails warning, others info. Bound to vfio-pci (or another driver that hands
    it to a virtual machine): info, because somebody chose that. Where no GPU has a driver it is one finding.

    ## What keeps it silent
    - Which driver is bound could not be read: unknown.
    - Virtual functions, which wait for guests; functions that a fabric manager owns; NICs without a use.
    - A device that sleeps, is gone, or came or went during the scan: not applicable.

    ## How to confirm
    `lspci -nnk -s ADDRESS`; `dmesg | grep ADDRESS`

    ## How to fix
    Load the driver (`modprobe nvidia`, `modprobe mlx5_core`) and read in the kernel log why it did not bind. Keep
    nouveau from loading (`modprobe.blacklist=nouveau`). Give a device back that a virtual machine does not need.

    ## Source
    Linux `Documentation/ABI/testing/sysfs-bus-pci`; NVIDIA driver installation guide (nouveau).
    """
    faults: list[Fail] = []
    for gpu in sorted(case.topology.gpus, key=lambda each: each.id):
        answer = _judge(case, gpu, function_of(case, gpu), "warning")
        if isinstance(answer, Fail):
            faults.append(answer)
        else:
            yield answer
    for fault in as_one(faults, len(case.topology.gpus), "no GPU can be used, for want of its driver"):
        all_gpus = f"{len(faults)} of {len(faults)} GPUs cannot be used by jobs of this host."
        yield fault._replace(impact=all_gpus) if fault.subject == "node" else fault
    for nic in case.topology.nics:
        if nic.software or nic.virtual_function:
            yield NotApplicable(f"pci:{nic.pci or nic.id}", "a virtual function or a software device")
        elif nic.id == nic.pci:
            yield _judge(case, nic, function_of(case, nic), _of_its_kind(case, nic))


def _judge(case: Case, device: Gpu | Nic, function: PciFunction | None, severity: str | None) -> Answer:
    subject = f"pci:{device.pci or device.id}"
    if function is None:
        return Unknown(subject, "its PCI function is not known")
    absent = away(function)
    if absent and not _handed_out(function.driver or ""):
        return NotApplicable(subject, absent)
    if function.physical_function:
        return NotApplicable(subject, "a virtual function: it waits for a guest")
    if severity is None:
        return NotApplicable(subject, "a NIC that no job uses")
    driver = function.driver
    if isinstance(device, Gpu) and device.driver_state == "open" and not driver:
        return Pass(subject)  # who listed it is its driver; sources differ in age
    if driver is None:
        return Unknown(subject, "whether a driver is bound to it is not known")
    wrong = _WRONG.get(driver) if isinstance(device, Gpu) and is_nvidia(case, device) else None
    if driver and not wrong and not _handed_out(driver):
        return Pass(subject)
    return _fault(case, device, function, "info" if _handed_out(driver) else severity)


def _handed_out(driver: str) -> bool:
    """Held for a virtual machine: vfio-pci, its variants, the stub for partitions."""
    return driver == _PARTITION or "vfio" in driver


def _of_its_kind(case: Case, nic: Nic) -> str | None:
    """How grave it is: a NIC without a driver shows no role, those of its kind do."""
    if nic.limited:
        return None
    if nic.driver or nic.role not in ("unknown", "unused"):
        return by_role("warning", nic)
    function = function_of(case, nic)
    like = [
        other for other in case.topology.nics if other.role == "rail" and _alike(function, function_of(case, other))
    ]
    return "warning" if like else "info"


def _alike(one: PciFunction | None, other: PciFunction | None) -> bool:
    if one is None or other is None or one.device is None:
        return False
    return (one.vendor, one.device, one.subsystem_device) == (other.vendor, other.device, other.subsystem_device)


def _fault(case: Case, device: Gpu | Nic, function: PciFunction, severity: str) -> Fail:
    driver = function.driver or ""
    due = _RIGHT.get(function.vendor or "", "its driver")
    what = "GPUs" if isinstance(device, Gpu) else "NICs"
    rows = case.topology.gpus if isinstance(device, Gpu) else case.topology.nics
    with_driver = sorted(row.label for row in rows if (f := function_of(case, row)) and f.driver == due)
    handed = _handed_out(driver)
    return Fail(
        subject=f"pci:{function.id}",
        label=device.label,
        summary=f"bound to {driver}: it is kept for a virtual machine"
        if handed
        else f"driven by {driver}, which runs no jobs; {due} is due"
        if driver
        else "no driver is bound to it",
        impact=f"1 of {len(rows)} {what} cannot be used by jobs of this host.",
        remedy="Bind it to its driver again, if no virtual machine needs it."
        if handed
        else f"Load {due}, and read in the kernel log why it did not bind"
        + (f"; keep {driver} from loading." if driver else "."),
        evidence=(
            Evidence(
                what=f"driver of {function.id}",
                value=driver or "none",
                source=f"/sys/bus/pci/devices/{function.id}/driver",
            ),
            Evidence(what=f"{what} with {due}", value=named(with_driver) or "none", source="lspci -nnk"),
            *kernel_log(case, function.id),
        ),
        severity=severity,
        cause=driver or "none",
        places=frozenset({function.id, device.id}),
    )
