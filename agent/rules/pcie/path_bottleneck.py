"""pcie-path-bottleneck."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.gpu import Gpu
from agent.model.pci import PciFunction
from agent.model.topology import Path
from agent.rules.case import Case
from agent.rules.counting import named, share_lost
from agent.rules.devices import kernel_log, label_of, on_c2c, pci_source
from agent.rules.pcie.wires import Wire, bandwidth, expected_speed, expected_width, faces_up, kernel_said, unjudged
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule

_NEAREST_FIRST = ("PIX", "PXB", "PHB", "NODE", "SYS")
_NOISE = 0.98  # two ways to round the same bandwidth differ by less


@rule(
    "pcie-path-bottleneck",
    "warning",
    needs=("pci|lspci",),
    references=("PCIE-008", "PCIE-032"),
    absorbs=("pcie-nic-starved",),
)
def pcie_path_bottleneck(case: Case) -> Iterator[Answer]:
    """A hop between a GPU and its rail is slower than the links of both.

    ## What it checks
    The PCIe way from every GPU to its nearest rails: each link between two switches on it.

    ## Why it matters
    GPUDirect traffic is as fast as the slowest hop: two Gen 5 x16 devices (63 GB/s in each direction) behind a Gen 4 x8
    hop get 15.8, a quarter.

    ## How it is decided
    The bandwidth that the GPU's and the NIC's own links can reach is compared with that of every link between them. A
    hop that is slower than both is the limit; it is named once, however many pairs cross it. Warning; error where it
    carries less than half.
    A hop that runs below what its own two ends can do is the fault of pcie-width-downgraded or
    pcie-speed-downgraded, which then stands for this one.

    ## What keeps it silent
    - A hop that runs at all it can and that several GPUs or rails share: built so.
    - Hops whose registers describe no real wire (synthetic switch ports, virtual machines): left out.
    - GPUs of superchips, which reach their NICs by C2C; nodes without rails: not applicable.
    - A hop that could not be read, or which NICs are rails is not known: unknown.

    ## How to confirm
    `lspci -tv`, then `lspci -vv -s ADDRESS | grep -E 'LnkCap:|LnkSta:'` on the hop.

    ## How to fix
    Move GPU or NIC to slots below one switch, or replace the riser or cable that limits the hop.

    ## Source
    Linux `pcie_bandwidth_available()` in `drivers/pci/pci.c`; NCCL `src/graph/paths.cc` (a path is as fast as its
    slowest hop).
    """
    if not case.rails:
        undecided = None if case.virtual_machine else case.no_rail_known
        yield Unknown("node", undecided) if undecided else NotApplicable("node", "no rail")
        return
    slow: dict[str, list[tuple[Path, float]]] = {}
    for gpu in case.topology.gpus:
        yield _ways_of(case, gpu, slow)
    for hop in sorted(slow):
        yield _fault(case, case.functions[hop], sorted(slow[hop], key=lambda each: (each[0].a, each[0].b)))


def _ways_of(case: Case, gpu: Gpu, slow: dict[str, list[tuple[Path, float]]]) -> Answer:
    """The answer for one GPU; hops that limit it are added to `slow`, with what they should carry."""
    subject = f"gpu:{gpu.id}"
    if case.virtual_machine:
        return NotApplicable(subject, "virtual machine: links are what the hypervisor shows")
    if on_c2c(case, gpu):
        return NotApplicable(subject, "a superchip: its GPU reaches NICs by C2C")
    nearest = _nearest(case, gpu)
    if not nearest:
        return Unknown(subject, "no PCIe way to a rail is known")
    unread = None
    for path in nearest:
        full = _ends(case, path)
        if full is None:
            unread = unread or "the links of its ends are not known"
            continue
        for hop in path.hops:
            bridge = case.functions.get(hop)
            if bridge is None or not faces_up(case, bridge):
                continue  # the wire below a root or downstream port is that of the next hop
            wire = _wire(case, bridge)
            silent = unjudged(case, wire)
            if isinstance(silent, Unknown):
                unread = unread or f"{hop}: {silent.reason}"
            carried = bridge.link.bandwidth_gbyte_s if bridge.link and not silent else None
            if carried is not None and carried < full * _NOISE and not _by_design(case, wire):
                slow.setdefault(hop, []).append((path, full))
    limited = any(path in nearest for found in slow.values() for path, _ in found)
    if unread and not limited:
        return Unknown(subject, unread)
    return NotApplicable(subject, "limited by a hop that has a finding") if limited else Pass(subject)


def _nearest(case: Case, gpu: Gpu) -> list[Path]:
    rails = {nic.id for nic in case.rails}
    ways = [p for p in case.paths_of.get(gpu.id, ()) if p.pcie_kind in _NEAREST_FIRST and rails & {p.a, p.b}]
    best = min((_NEAREST_FIRST.index(p.pcie_kind) for p in ways), default=None)
    nearest = [p for p in ways if _NEAREST_FIRST.index(p.pcie_kind) == best]
    return sorted(nearest, key=lambda p: (p.a, p.b))


def _ends(case: Case, path: Path) -> float | None:
    """What the slower of the two devices' own links can reach, GB/s."""
    reach = []
    for end in (path.a, path.b):
        device = case.gpus.get(end) or case.nics.get(end)
        function = case.functions.get((device.pci if device else None) or "")
        wire = _wire(case, function) if function else None
        reach.append(bandwidth(expected_speed(case, wire), expected_width(case, wire)) if wire else None)
    known = [r for r in reach if r is not None]
    return min(known) if len(known) == len(reach) else None


def _wire(case: Case, function: PciFunction) -> Wire:
    return Wire(function, case.functions.get(function.parent or ""), "warning", (), frozenset({function.id}))


def _by_design(case: Case, wire: Wire) -> bool:
    """A hop at all it can, which several devices share: an uplink that was built so."""
    link = wire.child.link
    width, speed = expected_width(case, wire), expected_speed(case, wire)
    at_most = link is not None and link.width == width and link.speed_gt_s == speed
    below = [gpu.pci for gpu in case.topology.gpus] + [nic.pci for nic in case.rails]
    users = [function for pci in below if (function := case.functions.get(pci or ""))]
    sharing = sum(wire.child in case.ancestors(function) for function in users)
    return at_most and sharing > 1


def _fault(case: Case, hop: PciFunction, found: list[tuple[Path, float]]) -> Fail:
    now = (hop.link.bandwidth_gbyte_s if hop.link else None) or 0.0
    full = max(full for _, full in found)
    pairs = sorted({f"{_name(case, path.a)} and {_name(case, path.b)}" for path, _ in found})
    return Fail(
        subject=f"pci:{hop.id}",
        label=label_of(case, hop.id),
        summary=f"the link of {hop.id} carries {now:.1f} GB/s, and is the slowest between {named(pairs)}, "
        f"whose own links can do {full:.1f}",
        impact=f"{share_lost(now, full)} of what GPUDirect could move between {named(pairs)}, in each direction.",
        remedy="Move GPU or NIC to slots below one switch, or replace the riser or cable that limits this hop.",
        evidence=(
            Evidence(
                what=f"link of {hop.id}",
                value=f"x{hop.link.width} at {hop.link.speed_gt_s:g} GT/s"
                if hop.link and hop.link.width and hop.link.speed_gt_s
                else f"{now:.1f} GB/s",
                source=pci_source(case, hop.id, "current_link_speed"),
            ),
            *(
                Evidence(
                    what=f"way of {_name(case, path.a)} to {_name(case, path.b)}",
                    value=f"{path.pcie_kind}: {' '.join(path.hops)}",
                    source="lspci -tv",
                )
                for path, _ in found[:2]
            ),
            *kernel_log(case, hop.id),
            *kernel_said(case, hop.id),
        ),
        severity="error" if now < full / 2 * _NOISE else "warning",
        places=frozenset({hop.id}),
    )


def _name(case: Case, end: str) -> str:
    device = case.gpus.get(end) or case.nics.get(end)
    return device.label if device else end
