"""pcie-device-gone."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import SEVERITIES, Evidence
from agent.model.pci import PciFunction
from agent.rules.case import Case
from agent.rules.counting import named
from agent.rules.devices import by_role, kernel_log, label_of, pci_source
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, rule


@rule(
    "pcie-device-gone",
    "critical",
    needs=("pci|lspci",),
    references=("PCIE-003",),
    essential=True,
    absorbs=(
        "pcie-width-downgraded",
        "pcie-speed-downgraded",
        "pcie-path-bottleneck",
        "pcie-link-down",
        "pcie-containment",
        "pcie-errors-uncorrectable",
        "pcie-errors-correctable",
        "gpu-missing",
        "gpu-xid",
        "device-count-low",
        "nvswitch-missing",
        "gpu-module-missing",
        "profile-differs",
        "nvlink-inactive",
        "nvlink-speed-low",
        "nvlink-asymmetric",
        "ib-port-down",
        "ib-no-sm",
        "ib-rate-degraded",
        "ib-rate-mixed",
        "ib-link-flap",
        "roce-link-flap",
        "roce-mtu-small",
        "roce-gid-v1-only",
        "roce-link-down",
        "roce-speed-degraded",
        "roce-netdev-missing",
        "affinity-gpu-far-from-nic",
        "inventory-lost",
    ),
)
def pcie_device_gone(case: Case) -> Iterator[Answer]:
    """A GPU, NIC, drive or switch is on the bus and does not answer any more.

    ## What it checks
    GPUs, NVSwitches, NICs that can do RDMA, NVMe drives, and every port above them; ports that are gone by themselves.

    ## Why it matters
    The device has fallen off the bus: an 8-GPU node without one GPU runs no 8-GPU job, and jobs that use it hang or
    die. It does not come back without a reset of the slot or a power cycle.

    ## How it is decided
    The kernel lists the function, and its config space reads all-ones (a link width of 63 is the same). A port that is
    gone takes everything below it along: that is one finding, on the topmost port; so are the functions of one card.
    GPUs, NVSwitches and rails: critical. Other NICs and drives: error. NICs without a use, and ports below which
    nothing is left that says what was lost: warning.

    ## What keeps it silent
    - A sleeping device (D3cold, suspended) reads all-ones too, and is healthy: not applicable.
    - A device that came or went while the scan ran: not applicable.
    - Other functions (audio, USB, management controllers) are not judged.

    ## How to confirm
    `lspci -s ADDRESS` shows `(rev ff)`; `setpci -s ADDRESS 0.l` reads `ffffffff`; the kernel log shows Xid 79 for a
    GPU.

    ## How to fix
    Drain the node, power cycle it (a warm reboot may not do). If it comes back gone, reseat the card, then try another
    slot, then replace the card.

    ## Source
    Linux `drivers/pci/pci-sysfs.c`; NVIDIA Xid catalogue, Xid 79.
    """
    gear = _gear(case)
    gone: dict[tuple[str | None, str], list[PciFunction]] = {}
    for function in case.topology.pci:
        if function.id not in gear:
            continue
        subject = f"pci:{function.id}"
        if function.state == "gone" and not (function.power_state or "").startswith("D3"):
            top = [up for up in case.ancestors(function) if up.state == "gone"]
            place = top[-1] if top else function
            gone.setdefault((place.parent, place.id.rpartition(".")[0]), []).append(function)
        elif function.state == "present":
            yield Pass(subject)
        else:
            yield NotApplicable(subject, f"not awake to answer: {function.state}")
    for members in gone.values():
        yield _fault(case, members, gear)


def _gear(case: Case) -> dict[str, str]:
    """Judged functions with how grave it is to lose them; a port counts as the gravest thing below it."""
    switches = {s.pci for s in case.topology.nvswitches}
    found: dict[str, str] = {}
    for function in case.topology.pci:
        nic = case.nic_by_pci.get(function.id)
        if function.id in case.gpu_by_pci or function.id in switches:
            severity = "critical"
        elif nic and not nic.virtual_function:
            severity = by_role("critical", nic) or "warning"
        elif (function.class_code or "").startswith("0x010802"):
            severity = "error"
        elif function.state == "gone" and (function.class_code or "").startswith("0x0604"):
            severity = "warning"
        else:
            continue
        for place in (function, *case.ancestors(function)):
            found[place.id] = max(found.get(place.id, "info"), severity, key=SEVERITIES.index)
    return found


def _fault(case: Case, members: list[PciFunction], gear: dict[str, str]) -> Fail:
    ids = {f.id for f in members}
    tops = [f for f in members if not any(up.id in ids for up in case.ancestors(f))]
    first = min(tops, key=lambda f: f.id)
    ends = sorted(label_of(case, f.id) for f in members if f.id in case.gpu_by_pci or f.id in case.nic_by_pci)
    below = [name for name in ends if name != label_of(case, first.id)]
    gpus = sum(f.id in case.gpu_by_pci for f in members)
    lost = f"{gpus} of {len(case.topology.gpus)} GPUs" if gpus else named(ends) or label_of(case, first.id)
    return Fail(
        subject=f"pci:{first.id}",
        label=label_of(case, first.id),
        summary="on the bus, and answers all-ones: fallen off" + (f", with {named(below)}" if below else ""),
        impact=f"{lost} lost until a reset or power cycle; jobs that use it hang or die.",
        remedy="Drain the node and power cycle it. If it stays gone, reseat the card, try another slot, replace it.",
        evidence=(
            Evidence(what=f"config space of {first.id}", value="all-ones", source=pci_source(case, first.id, "config")),
            *_switched_off(case, first),
            *kernel_log(case, first.id),
        ),
        severity=max((gear[f.id] for f in members), key=SEVERITIES.index),
        places=_places(case, ids),
    )


def _switched_off(case: Case, function: PciFunction) -> tuple[Evidence, ...]:
    port = case.functions.get(function.parent or "")
    if port is None or not port.link_disabled:
        return ()
    return (Evidence(what=f"Link Disable of {port.id}", value="set", source=f"lspci -vv -s {port.id} (LnkCtl; root)"),)


def _places(case: Case, ids: set[str]) -> frozenset[str]:
    places = set(ids)
    for rows in (case.topology.gpus, case.topology.nics, case.topology.nvswitches):
        places |= {row.id for row in rows if row.pci in ids}
    return frozenset(places)
