"""nvlink-matrix-uneven."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import combinations

from agent.model.finding import Evidence
from agent.model.gpu import Gpu
from agent.rules.case import Case
from agent.rules.counting import majority, named
from agent.rules.devices import model_of, no_gpu
from agent.rules.nvlink.fabric import places
from agent.rules.nvlink.tally import Form, form_of, not_offered
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule

Pair = tuple[str, str]  # ids of GPUs

_NV = re.compile(r"NV\d{1,3}", re.ASCII)
_SWITCHED = 8  # links of one pair that no wiring of three GPUs and more has without switches
_CUBE, _MESH = 8, 2  # GPUs of a cube mesh (DGX-1), and the most links that a pair of it has


@rule("nvlink-matrix-uneven", "error", needs=("nvml|nvidia_smi",), references=("NVL-005",))
def nvlink_matrix_uneven(case: Case) -> Iterator[Answer]:
    """NVLink does not join all pairs of GPUs alike.

    ## What it checks
    The NV# of every pair of GPUs of one model on a baseboard, as the driver or a saved matrix says it.

    ## Why it matters
    NCCL's rings run at the speed of the thinnest pair: NV16 among NV18 costs all 8 GPUs 11 % of 450 GB/s.

    ## How it is decided
    On switches every pair has the same number. Four GPUs wired to each other with more than 2 links a pair are all
    alike, too. The eight of a DGX-1 have pairs of NV1, NV2 and none, and equal sums: 6 links for every GPU.

    ## What keeps it silent
    - Cards with bridges, fewer than three GPUs, no NV# at all: not applicable. So are MIG, no driver, and
      a reduced bandwidth mode.
    - Other meshes are their builders' own: not applicable. So is a DGX-1 in a container or a virtual machine, or with a
      GPU that the driver does not offer: the links to the others are not in the matrix.
    - A cell or the state of a link that is not known, or GPUs that nothing names: unknown.
    - Pairs on switches without any NVLink: nvlink-path-missing judges them.
    - Links that are down, or fewer than another GPU has: nvlink-inactive and nvlink-asymmetric stand for this one.

    ## How to confirm
    `nvidia-smi topo -m`

    ## How to fix
    Find the links that are down with `nvidia-smi nvlink -s`; see nvlink-inactive.

    ## Source
    NVIDIA Fabric Manager user guide; matrices of DGX-1, HGX A100, H100, H200 and B200 machines.
    """
    yield from no_gpu(case)
    groups: dict[str, list[Gpu]] = {}
    for gpu in sorted(case.topology.gpus, key=lambda each: each.id):
        if answer := not_offered(case, gpu):
            yield answer
        elif gpu.mig and gpu.mig.current:
            yield NotApplicable(f"gpu:{gpu.id}", "MIG is on: NVLink is not used")
        else:
            groups.setdefault(model_of(case, gpu), []).append(gpu)
    ways = {frozenset((path.a, path.b)): path.kind for path in case.topology.paths}
    for group in groups.values():
        ids = [gpu.id for gpu in group]
        yield _judge(case, group, {pair: ways.get(frozenset(pair)) for pair in combinations(ids, 2)})


def _judge(case: Case, group: list[Gpu], cells: Mapping[Pair, str | None]) -> Answer:
    subject = f"gpu:{group[0].id}" if len(group) < len(case.topology.gpus) else "node"
    counts = {pair: int(kind[2:]) for pair, kind in cells.items() if kind and _NV.fullmatch(kind)}
    forms = {form_of(case, gpu) for gpu in group}
    if len(group) < 3 or not counts:
        return NotApplicable(subject, "fewer than three GPUs, or no NVLink between any")
    if Form.CARD in forms:
        return NotApplicable(subject, "cards: which NVLinks are bridged is the builder's choice")
    if None in cells.values():
        return Unknown(subject, "how some pairs reach each other is not known")
    if {case.topology.bandwidth_mode, *(gpu.nvlink_bandwidth_mode for gpu in group)} - {"full", None}:
        return NotApplicable(subject, "a reduced NVLink bandwidth mode: links are off on purpose")
    if any(link.state == "unknown" for gpu in group for link in gpu.links):
        return Unknown(subject, "the state of a link is not known")
    whole = len(counts) == len(cells)
    if Form.UNKNOWN in forms and not whole:
        return Unknown(subject, "what GPUs these are is not known, nor how they are wired")
    if max(counts.values()) >= _SWITCHED:
        usual = majority(counts.values()) or max(counts.values())
        thin = [pair for pair, links in counts.items() if links < usual]
        return _fault(case, thin, counts, f"NV{usual}") if thin else Pass(subject)
    return _wired(case, group, counts, subject, whole)


def _wired(case: Case, group: list[Gpu], counts: Mapping[Pair, int], subject: str, whole: bool) -> Answer:
    """GPUs wired to each other: four all alike, or the eight of a DGX-1. Other meshes are their builders' own."""
    if whole and max(counts.values()) > _MESH:
        thin = [pair for pair, links in counts.items() if links < max(counts.values())]
        return _fault(case, thin, counts, f"NV{max(counts.values())}") if thin else Pass(subject)
    if len(group) != _CUBE or max(counts.values()) > _MESH:
        return NotApplicable(subject, "wired to each other, and not in one of the ways that are known")
    if case.node.container or case.virtual_machine or any(g.driver_state != "open" for g in case.topology.gpus):
        return NotApplicable(subject, "wired to each other, and not all GPUs of the board are seen here")
    sums = {gpu.id: sum(links for pair, links in counts.items() if gpu.id in pair) for gpu in group}
    short = {gpu: max(sums.values()) - links for gpu, links in sums.items() if links < max(sums.values())}
    if not short:
        return Pass(subject)
    most = max(short, key=lambda gpu: short[gpu])
    # Every lost link shows in two rows: one GPU is at an end of all where it lacks as many as its peers together
    alone = 2 * short[most] == sum(short.values())
    thin = (
        [(min(most, gpu), max(most, gpu)) for gpu in short if gpu != most] if alone else [(gpu, gpu) for gpu in short]
    )
    return _fault(case, thin, counts, f"{max(sums.values())} links in each row")


def _fault(case: Case, thin: list[Pair], counts: Mapping[Pair, int], due: str) -> Fail:
    """A pair of one GPU with itself stands for its whole row."""
    name = {gpu.id: gpu.label for gpu in case.topology.gpus}
    links = [f"NV{counts[pair]}" if pair in counts else "no NVLink" for pair in thin]
    labels = [name[a] if a == b else f"{name[a]} - {name[b]} {link}" for (a, b), link in zip(thin, links, strict=True)]
    ends = {end for pair in thin for end in pair}
    common = [end for end in sorted(ends) if all(end in pair for pair in thin)]
    if len(common) == 1:
        subject, label = f"gpu:{common[0]}", name[common[0]]
    elif common:
        subject, label = f"pair:{thin[0][0]}+{thin[0][1]}", labels[0]
    else:
        subject, label = "node", "node"
    return Fail(
        subject=subject,
        label=label,
        summary=f"fewer NVLinks than between the others ({due}): {named(labels)}",
        impact="Collectives of all GPUs run at the speed of the thinnest pair.",
        remedy="Find the links that are down: nvidia-smi nvlink -s; reset the GPUs or power cycle.",
        evidence=tuple(Evidence(what="pair", value=label, source="nvidia-smi topo -m") for label in labels[:8]),
        places=frozenset().union(*(places(case, case.gpus[end]) for end in ends)),
    )
