"""nvlink-path-missing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import combinations

from agent.model.finding import Evidence
from agent.model.gpu import Gpu
from agent.model.topology import Path
from agent.rules.case import Case
from agent.rules.counting import named
from agent.rules.devices import model_of
from agent.rules.nvlink.fabric import PLACE, places
from agent.rules.nvlink.tally import Form, Tally, by_model, tallies, tally_of
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule

Pair = tuple[Tally, Tally]

_SWITCHED = 8  # links of one pair that no wiring of three GPUs and more has without switches
_NV = re.compile(r"NV(\d{1,3})", re.ASCII)
_ANOTHER_WAY = {None: "not known", "U": "unknown"}


@rule("nvlink-path-missing", "critical", needs=("nvml|nvidia_smi",), references=("NVL-006",))
def nvlink_path_missing(case: Case) -> Iterator[Answer]:
    """Two GPUs on NVSwitches do not reach each other by NVLink, although their links are up.

    ## What it checks
    Every pair of GPUs of one model whose active NVLinks lead to switches: whether the driver offers NVLink between
    them. Where nothing is told of links: modules of a baseboard whose matrix has pairs of NV8 and more.

    ## Why it matters
    NCCL then takes PCIe for the pair: 63 GB/s at best instead of 450 on an H100, and a ring of 8 GPUs runs at its
    slowest pair.

    ## How it is decided
    The links of both are active, and the driver says that P2P over NVLink is not possible. Where only a matrix of
    nvidia-smi is there: other pairs are NV#, this one is not. A GPU that no other reaches is one finding, and so are
    all pairs together.

    ## What keeps it silent
    - Only a matrix is there, of a virtual machine, or a GPU that no other reaches may be in MIG mode: unknown.
    - GPUs wired to each other or by bridges: which pairs are joined is the builder's choice: not applicable.
    - MIG, a reduced bandwidth mode, confidential computing, no driver, one GPU: not applicable.
    - Links that are down: nvlink-inactive stands for this one. The fabric manager does not run: fabric-manager-down.
    - The host started less than 15 minutes ago: unknown.
    - A matrix without any NV# may be one of PCI paths alone (`topo -mp`): unknown. So is a driver that does not tell.

    ## How to confirm
    `nvidia-smi topo -m; nvidia-smi topo -p2p n`

    ## How to fix
    Read the fabric manager's log for GPUs and routes that it left out; restart it with all jobs gone; reset the GPUs.

    ## Source
    NVML nvmlDeviceGetP2PStatus (NVML_P2P_CAPS_INDEX_NVLINK); NVIDIA Fabric Manager user guide (degraded mode).
    """
    ways = {frozenset((path.a, path.b)): path for path in case.topology.paths}
    found: list[Tally] = []
    for said in tallies(case):
        each = _by_matrix(case, said, ways) if isinstance(said, Unknown) else said
        if isinstance(each, Tally):
            found.append(each)
        else:
            yield each
    if case.software.driver.confidential_computing:
        yield NotApplicable("node", "confidential computing: the driver closes NVLink between GPUs")
        return
    for group in by_model(found):
        yield from _judge(case, group, ways)


def _by_matrix(case: Case, said: Unknown, ways: Mapping[frozenset[str], Path]) -> Tally | Unknown:
    """A GPU of whose links nothing is told, where a saved matrix shows that it stands on switches."""
    gpu = case.gpus.get(said.subject.removeprefix("gpu:"))
    if gpu is None or case.virtual_machine or not _full(case, gpu):
        return said
    own = tally_of(case, gpu)
    like = {each.id for each in case.topology.gpus if model_of(case, each) == own.model}
    links = {ends: int(nv[1]) for ends, way in ways.items() if ends <= like and (nv := _NV.fullmatch(way.kind or ""))}
    if own.form is not Form.BOARD or max(links.values(), default=0) < _SWITCHED:
        return said
    if not any(gpu.id in ends for ends in links) and (gpu.mig is None or gpu.mig.current is None):
        return said._replace(reason="no NVLink to any other in the matrix, and whether MIG is on is not known")
    return own


def _full(case: Case, gpu: Gpu) -> bool:
    return {case.topology.bandwidth_mode, gpu.nvlink_bandwidth_mode} <= {"full", None}


def _judge(case: Case, group: list[Tally], ways: Mapping[frozenset[str], Path]) -> Iterator[Answer]:
    switched = [tally for tally in group if _to_switches(tally)]
    for tally in group:
        if tally not in switched:
            yield NotApplicable(tally.subject, "none of its NVLinks leads to a switch")
    if len(switched) == 1:
        yield NotApplicable(switched[0].subject, "no other GPU on its switches")
    pairs = list(combinations(switched, 2))
    some = any((way.kind or "").startswith("NV") for a, b in pairs if (way := ways.get(_ends(a, b))))
    missing: list[Pair] = []
    for a, b in pairs:
        subject = f"pair:{a.gpu.id}+{b.gpu.id}"
        said = _pair(a, b, ways.get(_ends(a, b)), some)
        if said is None and case.settling:
            yield Unknown(subject, case.settling)
        elif said is None:
            missing.append((a, b))
        else:
            yield Pass(subject) if said == "" else Unknown(subject, said)
    yield from _faults(case, switched, missing, ways)


def _pair(a: Tally, b: Tally, way: Path | None, some: bool) -> str | None:
    """None where the pair is cut; "" where it is joined; else why that is not known."""
    if way is None or way.kind is None:
        return "how they reach each other is not known"
    if way.kind.startswith("NV"):
        return ""
    word = (a.gpu.p2p or {}).get(b.gpu.id, {}).get("nvlink")
    if word in (None, "U"):
        cut = some and way.source == "nvidia-smi"
        return None if cut else "the driver does not say whether NVLink joins them"
    return "P2P over NVLink is OK, and the matrix says otherwise" if word == "OK" else None


def _faults(case: Case, group: list[Tally], missing: list[Pair], ways: Mapping[frozenset[str], Path]) -> Iterator[Fail]:
    """All pairs as one; a GPU that reaches no other as one; each other pair alone."""
    if len(group) > 2 and len(missing) == len(group) * (len(group) - 1) // 2:
        yield _fault(case, missing, "node", "node", ways)
        return
    for tally in group if len(group) > 2 else ():
        own = [pair for pair in missing if tally.gpu.id in _ends(*pair)]
        if len(own) == len(group) - 1:
            yield _fault(case, own, tally.subject, tally.gpu.label, ways)
            missing = [pair for pair in missing if tally.gpu.id not in _ends(*pair)]
    for a, b in missing:
        yield _fault(case, [(a, b)], f"pair:{a.gpu.id}+{b.gpu.id}", f"{a.gpu.label} - {b.gpu.label}", ways)


def _fault(case: Case, pairs: list[Pair], subject: str, label: str, ways: Mapping[frozenset[str], Path]) -> Fail:
    labels = [f"{a.gpu.label} - {b.gpu.label}" for a, b in pairs]
    a, b = pairs[0]
    alone = subject.removeprefix("gpu:")
    ends = {alone} if alone in case.gpus else {tally.gpu.id for pair in pairs for tally in pair}
    cell = ways[_ends(a, b)].kind
    due, links = f"NV{len(a.active)}", "and their links are up"
    if not (a.active and b.active):
        others = [kind for way in ways.values() if _NV.fullmatch(kind := way.kind or "")]
        due, links = max(set(others), key=others.count), "as others have; their links were not told of"
    return Fail(
        subject=subject,
        label=label,
        summary=f"no NVLink between {named(labels)}: {cell} instead of {due}, {links}",
        impact="NCCL takes PCIe for these pairs: 63 GB/s at best instead of 450; rings run at their slowest pair.",
        remedy="Read the fabric manager's log for what it left out; restart it with all jobs gone; reset the GPUs.",
        evidence=(
            Evidence(what=labels[0], value=str(cell), source="nvidia-smi topo -m"),
            Evidence(what=labels[0], value=_word(a, b), source="nvidia-smi topo -p2p n"),
        ),
        places=frozenset({PLACE}).union(*(places(case, case.gpus[end]) for end in ends)),
    )


def _word(a: Tally, b: Tally) -> str:
    word = (a.gpu.p2p or {}).get(b.gpu.id, {}).get("nvlink")
    return _ANOTHER_WAY.get(word) or str(word)


def _ends(a: Tally, b: Tally) -> frozenset[str]:
    return frozenset((a.gpu.id, b.gpu.id))


def _to_switches(tally: Tally) -> bool:
    """Wired on a board, and not to another GPU or a CPU. Without any link told of: by the matrix."""
    if not tally.total:
        return True
    if tally.form not in (Form.BOARD, Form.SUPERCHIP) or not tally.active:
        return False
    return not any(link.remote and link.remote.kind in ("gpu", "cpu") for link in tally.active)
