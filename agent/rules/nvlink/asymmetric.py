"""nvlink-asymmetric."""

from __future__ import annotations

from collections.abc import Iterator

from agent.rules.case import Case
from agent.rules.counting import majority
from agent.rules.nvlink.tally import Form, Tally, by_model, lost_ends, tallies
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule


@rule(
    "nvlink-asymmetric",
    "error",
    needs=("nvml|nvidia_smi",),
    references=("NVL-003",),
    absorbs=("nvlink-matrix-uneven", "profile-differs"),
)
def nvlink_asymmetric(case: Case) -> Iterator[Answer]:
    """A GPU has fewer active NVLinks than the other GPUs of its model.

    ## What it checks
    The number of active NVLinks of every GPU, beside that of the other GPUs of its model on this node.

    ## Why it matters
    NCCL builds as many channels as the weakest GPU can carry: 16 links instead of 18 on one GPU of eight cost all
    eight 11 % of 450 GB/s.

    ## How it is decided
    More than half of the GPUs of one model agree on a number; where no number has a majority, the highest is what the
    product can do. A GPU below it has lost links, whatever the driver calls them. Where the driver shows them as
    inactive, nvlink-inactive says so and this finding stands behind it.

    ## What keeps it silent
    - Cards with bridges (PCIe): which are connected is the builder's choice: not applicable.
    - MIG is on, the NVLink bandwidth mode is not full, no driver is bound, the GPU sleeps or is gone: not applicable.
    - One GPU of its model has nothing to be compared with: not applicable. A cube mesh (DGX-1) has equal numbers.
    - A sleeping link counts as active. Links of unknown state: unknown.
    - A fabric manager in degraded mode leaves links out on purpose; that is reported all the same: the speed is lost.

    ## How to confirm
    `nvidia-smi nvlink -s`, and `nvidia-smi topo -m`: NV# should be the same in every cell.

    ## How to fix
    Read the fabric manager's log for links and GPUs that it left out, the kernel log for Xid 74 and SXid; reset the
    GPUs or power cycle.

    ## Source
    NVIDIA Fabric Manager user guide (degraded mode); NVML field 165 (NVLINK_GET_STATE).
    """
    found: list[Tally] = []
    for each in tallies(case):
        if isinstance(each, Tally):
            found.append(each)
        else:
            yield each
    for group in by_model(found):
        counts = [len(tally.active) for tally in group]
        usual = majority(counts) or max(counts)
        for tally in group:
            yield _judge(case, tally, group, usual)


def _judge(case: Case, tally: Tally, group: list[Tally], usual: int) -> Answer:
    if tally.form is Form.CARD:
        return NotApplicable(tally.subject, "a card: which NVLinks are bridged is the builder's choice")
    if len(group) < 2:
        return NotApplicable(tally.subject, "the only GPU of its model: nothing to compare with")
    if len(tally.active) >= usual:
        return Pass(tally.subject)
    if tally.unknown:
        return Unknown(tally.subject, "the state of a link is not known")
    missing = usual - len(tally.active)
    return Fail(
        subject=tally.subject,
        label=tally.gpu.label,
        summary=f"{len(tally.active)} active NVLinks; the other GPUs of its model have {usual}",
        impact=f"{100 * missing / usual:.0f} % of its NVLink bandwidth ({missing} of {usual} links); "
        "collectives run at its speed.",
        remedy="Read the fabric manager's log and the kernel log (Xid 74, SXid); reset the GPUs or power cycle.",
        evidence=tuple(each.evidence for each in (tally, *(other for other in group if len(other.active) == usual)))[
            :2
        ],
        places=frozenset({tally.gpu.id, tally.gpu.pci or tally.gpu.id}) | lost_ends(case, tally),
    )
