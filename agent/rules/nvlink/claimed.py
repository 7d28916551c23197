"""nvlink-claimed."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.gpu import Gpu
from agent.rules.case import Case
from agent.rules.nvlink.fabric import places, together
from agent.rules.nvlink.tally import not_offered
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule


@rule("nvlink-claimed", "info", needs=("nvml|nvidia_smi",), references=("NVL-027",))
def nvlink_claimed(case: Case) -> Iterator[Answer]:
    """A profile expects NVLinks of GPUs that have none.

    ## What it checks
    The number of NVLinks that the node's profile expects, where the driver says that the GPU has no NVLink at all.

    ## Why it matters
    Plans that count on 112 GB/s between two cards get PCIe. L40, L40S, L4, T4, A10, A2, GeForce cards since the
    RTX 40 series and RTX PRO Blackwell have no NVLink connector.

    ## How it is decided
    The profile says one link or more, and the driver says that there is none to be had: the profile is wrong.

    ## What keeps it silent
    - No profile, or one that expects no NVLink: not applicable. No driver: not applicable.
    - MIG, or a driver that does not tell: unknown.
    - GPUs that have NVLinks, up or down: passes here; nvlink-inactive judges them.

    ## How to confirm
    `nvidia-smi nvlink -s` says "Device does not have or support Nvlink"

    ## How to fix
    Correct the profile.

    ## Source
    nvidia-smi of an L40S; NVIDIA product pages.
    """
    expected = case.profile.nvlinks_per_gpu.value if case.profile and case.profile.nvlinks_per_gpu else 0
    if not isinstance(expected, int | float) or expected < 1:
        yield NotApplicable("node", "no profile expects NVLinks here")
        return
    judged, faults = 0, []
    for gpu in case.topology.gpus:
        answer = not_offered(case, gpu) or _judge(case, gpu, expected)
        judged += not isinstance(answer, NotApplicable)
        if isinstance(answer, Fail):
            faults.append(answer)
        else:
            yield answer
    yield from together(faults, judged)


def _judge(case: Case, gpu: Gpu, expected: float) -> Answer:
    subject = f"gpu:{gpu.id}"
    if not gpu.links_known:
        return Unknown(subject, gpu.links_reason or "NVLinks not known")
    if gpu.links:
        return Pass(subject)
    return Fail(
        subject=subject,
        label=gpu.label,
        summary=f"{gpu.name or 'the GPU'} has no NVLink, and the profile expects {expected:g}",
        impact="GPUs talk PCIe: what counts on 112 GB/s of NVLink and more does not get it.",
        remedy="Correct the profile.",
        evidence=(Evidence(what="NVLink", value=gpu.links_reason or "none", source="nvidia-smi nvlink -s"),),
        places=places(case, gpu),
    )
