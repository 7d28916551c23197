"""nvlink-inactive."""

from __future__ import annotations

from collections.abc import Iterator

from agent.rules.case import Case
from agent.rules.counting import named
from agent.rules.nvlink.fabric import PLACE
from agent.rules.nvlink.tally import Form, Tally, by_model, lost_ends, tallies
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule

_WHOLE_BOARD = 8  # so many GPUs of one model fill a baseboard: all their links are wired


@rule(
    "nvlink-inactive",
    "error",
    needs=("nvml|nvidia_smi",),
    references=("NVL-001", "NVL-002", "NVL-011"),
    essential=True,
    absorbs=(
        "inventory-lost",
        "nvlink-asymmetric",
        "nvlink-errors",
        "gpu-xid",
        "profile-differs",
        "nvlink-matrix-uneven",
        "nvlink-path-missing",
        "gpu-p2p-blocked",
    ),
)
def nvlink_inactive(case: Case) -> Iterator[Answer]:
    """NVLinks of a GPU are down that should be up.

    ## What it checks
    The state of every NVLink of every NVIDIA GPU.

    ## Why it matters
    A collective runs at its slowest pair: one dead link of 18 costs an H100 25 of its 450 GB/s in each direction, and
    NCCL then uses fewer channels for all GPUs. A GPU without any NVLink talks PCIe, seven times slower.

    ## How it is decided
    GPUs of one model on one node should look alike. A GPU with inactive links, and fewer active ones than another
    GPU of its model, has lost them. On a whole baseboard (eight SXM GPUs and more) all links are wired, so inactive
    links on every GPU are a fault too: an NVSwitch or the fabric manager; that is one finding for the node. Two GPUs
    that miss the same number of direct links share one wire and one finding.
    All links of a GPU down while others have theirs: critical. Some of them: error. A card whose bridge connects only
    in part: warning.

    ## What keeps it silent
    - A sleeping link is healthy. MIG is on, the NVLink bandwidth mode is not full, no driver is bound, the GPU sleeps
      or is gone: not applicable.
    - A card (PCIe) without any active link has no bridge: not applicable.
    - A800 and H800 with the 8 links that they are sold with pass; so do H100 PCIe and NVL with the 12 of their bridges.
    - Every GPU of a smaller board (4 GPUs and fewer), of a superchip or of a small virtual machine misses the same
      links: wired so, not applicable.
    - One GPU of its model has nothing to be compared with: unknown for an SXM module of a physical machine, else not
      applicable.
    - The driver did not say, or nothing says what GPU it is: unknown.

    ## How to confirm
    `nvidia-smi nvlink -s`; on NVSwitch machines also `systemctl status nvidia-fabricmanager`.

    ## How to fix
    Look for Xid 74 and SXid lines in the kernel log. Reset all GPUs and the fabric manager, then power cycle. A link
    that stays down: the GPU module, its socket or the NVSwitch; bridged cards: reseat the bridge.

    ## Source
    NVML field 165 (NVLINK_GET_STATE); NVIDIA Fabric Manager user guide; Azure and OCI GPU health checks.
    """
    found: list[Tally] = []
    for each in tallies(case):
        if isinstance(each, Tally):
            found.append(each)
        else:
            yield each
    for group in by_model(found):
        answers = [(tally, _judge(case, tally, group)) for tally in group]
        faults = [(tally, answer) for tally, answer in answers if isinstance(answer, Fail)]
        yield from (answer for _, answer in answers if not isinstance(answer, Fail))
        yield from _grouped(group, faults)


def _judge(case: Case, tally: Tally, group: list[Tally]) -> Answer:
    if tally.enough is not None and len(tally.active) >= tally.enough:
        return Pass(tally.subject)
    if not tally.inactive:
        return Unknown(tally.subject, "the state of a link is not known") if tally.unknown else Pass(tally.subject)
    if tally.form is Form.CARD and not tally.active:
        return NotApplicable(tally.subject, "a card without a bridge: no link is active")
    if tally.form is Form.UNKNOWN:
        return Unknown(tally.subject, "what GPU it is is not known, nor whether all its NVLinks are wired")
    if len(group) < 2:
        nothing = "the only GPU of its model: nothing to compare with"
        wired = tally.form is Form.BOARD and not case.virtual_machine
        return Unknown(tally.subject, nothing) if wired else NotApplicable(tally.subject, nothing)
    if tally.form is Form.CARD:
        return _fault(case, tally, "warning", f"its bridge connects {len(tally.active)} of {tally.total} NVLinks")
    most = max(len(other.active) for other in group)
    what = f"{len(tally.inactive)} of {tally.total} NVLinks inactive"
    if len(tally.active) < most:
        severity = "error" if tally.active else "critical"
        return _fault(case, tally, severity, f"{what}; others of its model have {most} active")
    if tally.form is Form.BOARD and len(group) >= _WHOLE_BOARD:
        return _fault(
            case, tally, "error" if tally.active else "critical", f"{what}, on a board that wires all of them"
        )
    if tally.form is Form.BOARD and not tally.active and not case.virtual_machine:
        return _fault(case, tally, "critical", f"{what}, on a board that wires them")
    return NotApplicable(tally.subject, f"every GPU of this model has the same {len(tally.active)} links: wired so")


def _fault(case: Case, tally: Tally, severity: str, summary: str) -> Fail:
    gpu = tally.gpu
    ends = {link.remote.id for link in tally.inactive if link.remote and link.remote.id}
    return Fail(
        subject=tally.subject,
        label=gpu.label,
        summary=summary,
        impact=_impact(tally, gpu.label),
        remedy="Look for Xid 74 and SXid in the kernel log; reset GPUs and fabric manager, power cycle; else replace.",
        evidence=(tally.evidence,),
        severity=severity,
        places=frozenset({gpu.id, gpu.pci or gpu.id}) | ends | lost_ends(case, tally),
    )


def _impact(tally: Tally, whom: str) -> str:
    rate = max((link.signal_gbyte_s or 0 for link in tally.active), default=0)
    lost = f"{rate * len(tally.inactive):.0f} GB/s less in each direction" if rate else "PCIe instead of NVLink"
    return (
        f"{lost} for {whom} ({len(tally.inactive)} of {tally.total} links); collectives run at the slowest GPU's speed."
    )


def _grouped(group: list[Tally], faults: list[tuple[Tally, Fail]]) -> Iterator[Fail]:
    """One finding where one part explains all: a switch below a whole board, one wire between two GPUs."""
    tallied = [tally for tally, _ in faults]
    if len(faults) == len(group) and len(group) > 2 and group[0].form is Form.BOARD:
        counts = {f"{len(tally.inactive)} of {tally.total}" for tally in tallied}
        what = f"{counts.pop()} NVLinks inactive" if len(counts) == 1 else "inactive NVLinks"
        whole = _as_one(faults, "node", "node", f"{what} on every one of {len(group)} GPUs")
        none_left = not any(tally.active for tally in group)
        yield whole._replace(places=whole.places | {PLACE}) if none_left else whole
    elif len(faults) == 2 and len({len(t.inactive) for t in tallied}) == 1 and not any(_to_switch(t) for t in tallied):
        ends = "+".join(sorted(t.gpu.id for t in tallied))
        labels = " - ".join(t.gpu.label for t in tallied)
        yield _as_one(faults, f"pair:{ends}", labels, f"{len(tallied[0].inactive)} NVLinks between them inactive")
    else:
        yield from (fault for _, fault in faults)


def _to_switch(tally: Tally) -> bool:
    return not tally.active or any(link.remote is None or link.remote.kind != "gpu" for link in tally.active)


def _as_one(faults: list[tuple[Tally, Fail]], subject: str, label: str, summary: str) -> Fail:
    first = faults[0][1]
    grave = [fault.severity for _, fault in faults]
    return Fail(
        subject=subject,
        label=label,
        summary=summary,
        impact=_impact(faults[0][0], named([tally.gpu.label for tally, _ in faults])),
        remedy=first.remedy,
        evidence=tuple(tally.evidence for tally, _ in faults),
        severity="critical" if "critical" in grave else first.severity,
        places=frozenset().union(*(fault.places for _, fault in faults)),
    )
