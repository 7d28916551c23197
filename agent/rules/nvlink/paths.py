"""NVLink paths between pairs of GPUs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations
from typing import Literal

from msgspec.structs import replace

from agent.model.finding import Evidence
from agent.model.gpu import Gpu
from agent.model.reasons import Reason
from agent.model.topology import Path
from agent.rules.applicability import has_gpus
from agent.rules.context import RuleContext
from agent.rules.devices import about_gpu, about_pair, about_pairs, gpu_model
from agent.rules.nvlink.fabric import PLACE
from agent.rules.nvlink.link_counts import (
    LinkCounts,
    LinkForm,
    count_links,
    find_form,
    group_by_model,
    link_counts,
    not_offered_reason,
)
from agent.rules.rule import NODE, Fail, NamedSubject, Result, Unknown, rule
from agent.rules.wording import find_majority, join_labels, name_pairs

GpuPair = tuple[str, str]  # ids of GPUs

_MATRIX_UNEVEN_NV = r"(?a)NV\d{1,3}"
_SWITCHED = 8  # links of one pair that no wiring of three GPUs and more has without switches
_MOST_OF_THEM = 3  # GPUs that are joined alike, and for each without NVLink
_CUBE, _MESH = 8, 2  # GPUs of a cube mesh (DGX-1), and the most links that a pair of it has


@rule("nvlink-matrix-uneven", gate=has_gpus)
def nvlink_matrix_uneven(context: RuleContext) -> Iterator[Result]:
    groups: dict[str, list[Gpu]] = {}
    for gpu in sorted(context.topology.gpus, key=lambda gpu: gpu.id):
        if answer := not_offered_reason(context, gpu):
            yield answer
        elif gpu.mig and gpu.mig.current:
            yield about_gpu(gpu).not_applicable("not-in-use", detail="MIG is on: NVLink is not used")
        else:
            groups.setdefault(gpu_model(context, gpu), []).append(gpu)
    ways = {frozenset((path.a, path.b)): path.kind for path in context.topology.paths}
    for group in groups.values():
        ids = [gpu.id for gpu in group]
        yield _judge_matrix_uneven(context, group, {pair: ways.get(frozenset(pair)) for pair in combinations(ids, 2)})


def _judge_matrix_uneven(context: RuleContext, group: list[Gpu], cells: Mapping[GpuPair, str | None]) -> Result:
    about = about_gpu(group[0]) if len(group) < len(context.topology.gpus) else NODE
    counts = {pair: int(kind[2:]) for pair, kind in cells.items() if kind and re.fullmatch(_MATRIX_UNEVEN_NV, kind)}
    forms = {find_form(context, gpu) for gpu in group}
    if len(group) < 3 or not counts:
        return about.not_applicable("nothing-to-compare", detail="fewer than three GPUs, or no NVLink between any")
    if LinkForm.CARD in forms:
        return about.not_applicable("by-design", detail="cards: which NVLinks are bridged is the builder's choice")
    if None in cells.values():
        return about.unknown("not-known", fact="how some pairs reach each other")
    if {context.topology.bandwidth_mode, *(gpu.nvlink_bandwidth_mode for gpu in group)} - {"full", None}:
        return about.not_applicable("by-design", detail="a reduced NVLink bandwidth mode: links are off on purpose")
    if any(link.state == "unknown" for gpu in group for link in gpu.links):
        return about.unknown("not-known", fact="the state of a link")
    whole = len(counts) == len(cells)
    if LinkForm.UNKNOWN in forms and not whole:
        without = [pair for pair in cells if pair not in counts]
        alike = len(set(counts.values())) == 1 and len(counts) >= _JOINED_PER_MISSING * len(without)
        if alike and context.why_bus_unread is not None:
            return _fail_few_pairs(context, without, counts)
        return about.unknown("not-shown", detail="the GPU model and the wiring are not known")
    if max(counts.values()) >= _SWITCHED:
        usual_count = find_majority(counts.values()) or max(counts.values())
        thin = [pair for pair, links in counts.items() if links < usual_count]
        return _fail_matrix_uneven(context, thin, counts, f"NV{usual_count}") if thin else about.passes()
    return _is_known_mesh(context, group, counts, about, whole)


def _is_known_mesh(
    context: RuleContext, group: list[Gpu], counts: Mapping[GpuPair, int], about: NamedSubject, whole: bool
) -> Result:
    """GPUs wired to each other: four all alike, or the eight of a DGX-1. Other meshes are their builders' own."""
    if whole and max(counts.values()) > _MESH:
        thin = [pair for pair, links in counts.items() if links < max(counts.values())]
        return _fail_matrix_uneven(context, thin, counts, f"NV{max(counts.values())}") if thin else about.passes()
    if len(group) != _CUBE or max(counts.values()) > _MESH:
        return about.not_applicable(
            "other-kind", detail="wired to each other, and not in one of the ways that are known"
        )
    if (
        context.node.container
        or context.virtual_machine
        or any(g.driver_state != "open" for g in context.topology.gpus)
    ):
        return about.not_applicable(
            "other-kind", detail="wired to each other, and not all GPUs of the board are seen here"
        )
    sums = {gpu.id: sum(links for pair, links in counts.items() if gpu.id in pair) for gpu in group}
    short = {gpu: max(sums.values()) - links for gpu, links in sums.items() if links < max(sums.values())}
    if not short:
        return about.passes()
    most = max(short, key=lambda gpu: short[gpu])
    # Every lost link shows in two rows: one GPU is at an end of all where as many are missing as at its peers together
    alone = 2 * short[most] == sum(short.values())
    thin = (
        [(min(most, gpu), max(most, gpu)) for gpu in short if gpu != most] if alone else [(gpu, gpu) for gpu in short]
    )
    return _fail_matrix_uneven(context, thin, counts, f"{max(sums.values())} links in each row")


def _fail_matrix_uneven(
    context: RuleContext, thin: list[GpuPair], counts: Mapping[GpuPair, int], expected: str
) -> Fail:
    """A pair of one GPU with itself stands for its whole row."""
    pairs = [(context.gpus[a], context.gpus[b]) for a, b in thin]
    links = [f"NV{counts[pair]}" if pair in counts else "no NVLink" for pair in thin]
    labels = [a.label if a is b else f"{a.label} - {b.label} {link}" for (a, b), link in zip(pairs, links, strict=True)]
    about = about_pairs(pairs)
    return about.fail(
        label=labels[0] if about.subject.startswith("pair:") else None,
        summary=f"fewer NVLinks than between the others ({expected}): {join_labels(labels)}",
        impact="Collectives of all GPUs run at the speed of the slowest pair.",
        evidence=tuple(Evidence("pair", label, "nvidia-smi topo -m") for label in labels[:8]),
        ids=frozenset().union(*(about_gpu(gpu).ids for pair in pairs for gpu in pair)),
    )


def _fail_few_pairs(context: RuleContext, without: list[GpuPair], counts: Mapping[GpuPair, int]) -> Fail:
    """The odd pairs of a matrix that is all the source has."""
    fault = _fail_matrix_uneven(context, without, counts, f"NV{next(iter(counts.values()))}")
    depends = "What it means depends on how the board joins its GPUs, which the source leaves open."
    return replace(fault, severity="warning", confidence="low", impact=f"{depends} {fault.impact}")


TallyPair = tuple[LinkCounts, LinkCounts]

_JOINED_PER_MISSING = 5  # bridges between cards join fewer; a GPU of eight in MIG mode leaves three per pair
_PATH_MISSING_NV = r"(?a)NV(\d{1,3})"
_ANOTHER_WAY = {None: "not known", "U": "unknown"}


@rule("nvlink-path-missing")
def nvlink_path_missing(context: RuleContext) -> Iterator[Result]:
    ways = {frozenset((path.a, path.b)): path for path in context.topology.paths}
    counts: list[LinkCounts] = []

    @cache
    def numbers_of(model: str) -> dict[frozenset[str], int]:
        return _nvlinks_in_matrix(context, model, ways)

    alone = {fault.subject: fault for fault in (*_list_outside(context, ways), *_list_refused(context))}
    for tally in link_counts(context):
        if isinstance(tally, Unknown) and tally.subject in alone:
            yield alone[tally.subject]
            continue
        tally_or_result = _is_switched_by_matrix(context, tally, numbers_of) if isinstance(tally, Unknown) else tally
        if isinstance(tally_or_result, LinkCounts):
            counts.append(tally_or_result)
        else:
            yield tally_or_result
    if context.software.driver.confidential_computing:
        yield NODE.not_applicable("by-design", detail="confidential computing: the driver disables NVLink between GPUs")
        return
    for group in group_by_model(counts):
        yield from _judge_path_missing(context, group, ways)


def _list_outside(context: RuleContext, ways: Mapping[frozenset[str], Path]) -> list[Fail]:
    """GPUs without NVLink to any other in a matrix that joins all the others, three and more, alike over switches.
    Only where the source shows nothing else of them: whether they are in MIG mode, which uses no NVLink, is open."""
    gpus = [gpu.id for gpu in context.topology.gpus]
    numbers = {ends: kind for ends, way in ways.items() if re.fullmatch(_PATH_MISSING_NV, kind := way.kind or "")}
    inside = [gpu for gpu in gpus if any(gpu in ends for ends in numbers)]
    outside = [gpu for gpu in context.topology.gpus if gpu.id not in inside]
    if context.why_bus_unread is None or len(set(numbers.values())) != 1 or len(inside) < _MOST_OF_THEM * len(outside):
        return []
    pairs = [frozenset(pair) for pair in combinations(inside, 2)]
    cut_off = [pair for pair in pairs if pair not in ways or ways[pair].kind is None]  # rows that were not pasted
    joined = all(pair in numbers or pair in cut_off for pair in pairs) and len(pairs) > _MOST_OF_THEM * len(cut_off)
    shown = all(frozenset((gpu.id, other)) in ways for gpu in outside for other in inside)
    models = {gpu_model(context, gpu) for gpu in context.topology.gpus}
    if int(next(iter(numbers.values()))[2:]) < _SWITCHED or not joined or not shown or len(models) > 1:
        return []
    return [_fail_outside(context, gpu, ways) for gpu in outside]


def _fail_outside(context: RuleContext, gpu: Gpu, ways: Mapping[frozenset[str], Path]) -> Fail:
    cells = sorted((f"{context.gpus[other].label}", way.kind) for ends, way in ways.items() if gpu.id in ends
                   for other in ends - {gpu.id} if other in context.gpus)  # fmt: skip
    summary = f"no NVLink to any other GPU in the matrix; the others are joined by {_usual_kind(ways)}"
    return _fail_alone(gpu, summary, cells, "nvidia-smi topo -m")


def _fail_alone(gpu: Gpu, summary: str, cells: Sequence[tuple[str, str | None]], source: str) -> Fail:
    """A GPU that a matrix joins with no other one. `cells`: the label of each other GPU, and what the matrix has."""
    about = about_gpu(gpu)
    return about.fail(
        summary=summary,
        impact="What this means here depends on whether the GPU is in MIG mode, which uses no NVLink. If it is not, "
        "jobs that use all GPUs reach it over PCIe, and run at that speed or fail.",
        evidence=tuple(Evidence(f"{gpu.label} - {label}", str(cell), source) for label, cell in cells),
        confidence="low",
        situation="matrix",
        ids=about.ids | {PLACE},
    )


def _list_refused(context: RuleContext) -> list[Fail]:
    """The same of the matrix of what the driver states of P2P over NVLink: GPUs that have it with no other one."""
    words = {
        frozenset((gpu.id, other)): states.get("nvlink")
        for gpu in context.topology.gpus
        for other, states in (gpu.p2p or {}).items()
    }
    joined = {pair for pair, word in words.items() if word == "OK"}
    inside = {gpu for pair in joined for gpu in pair}
    outside = [gpu for gpu in context.topology.gpus if gpu.id not in inside]
    shown = all(words.get(frozenset((gpu.id, other))) for gpu in outside for other in inside)
    models = {gpu_model(context, gpu) for gpu in context.topology.gpus}
    whole = len(joined) == len(inside) * (len(inside) - 1) // 2 and len(models) == 1
    is_fault = context.why_bus_unread and whole and shown and len(inside) >= _MOST_OF_THEM * len(outside)
    return [_fail_refused(context, gpu) for gpu in outside] if is_fault else []


def _fail_refused(context: RuleContext, gpu: Gpu) -> Fail:
    cells = [
        (other.label, (gpu.p2p or {}).get(other.id, {}).get("nvlink"))
        for other in context.topology.gpus
        if other is not gpu
    ]
    summary = "no P2P over NVLink with any other GPU; the others have it with each other"
    return _fail_alone(gpu, summary, cells, "nvidia-smi topo -p2p n")


def _usual_kind(ways: Mapping[frozenset[str], Path]) -> str:
    """The most frequent NV# of the matrix."""
    kinds = [kind for way in ways.values() if re.fullmatch(_PATH_MISSING_NV, kind := way.kind or "")]
    return max(sorted(set(kinds)), key=kinds.count)


def _nvlinks_in_matrix(
    context: RuleContext, model: str, ways: Mapping[frozenset[str], Path]
) -> dict[frozenset[str], int]:
    """How many NVLinks the matrix shows between two GPUs of a model."""
    like = {gpu.id for gpu in context.topology.gpus if gpu_model(context, gpu) == model}
    return {
        ends: int(nv[1])
        for ends, way in ways.items()
        if ends <= like and (nv := re.fullmatch(_PATH_MISSING_NV, way.kind or ""))
    }


def _is_switched_by_matrix(
    context: RuleContext, unknown: Unknown, numbers_of: Callable[[str], Mapping[frozenset[str], int]]
) -> LinkCounts | Unknown:
    """A GPU of whose links nothing is reported, where a saved matrix shows that it is on switches."""
    gpu = context.gpus.get(unknown.subject.removeprefix("gpu:"))
    if gpu is None or context.virtual_machine or not _all_links_active(context, gpu):
        return unknown
    own = count_links(context, gpu)
    links = numbers_of(own.model)
    if own.form is not LinkForm.BOARD or max(links.values(), default=0) < _SWITCHED:
        return unknown
    if not any(gpu.id in ends for ends in links) and (gpu.mig is None or gpu.mig.current is None):
        why = "no NVLink to any other in the matrix, and whether MIG is on is not known"
        return replace(unknown, reason=Reason("not-shown", detail=why))
    return own


def _all_links_active(context: RuleContext, gpu: Gpu) -> bool:
    return {context.topology.bandwidth_mode, gpu.nvlink_bandwidth_mode} <= {"full", None}


def _judge_path_missing(
    context: RuleContext, group: list[LinkCounts], ways: Mapping[frozenset[str], Path]
) -> Iterator[Result]:
    switched = [tally for tally in group if _leads_to_switches(tally)]
    for tally in group:
        if tally not in switched:
            yield tally.not_applicable("no-such-device", detail="none of its NVLinks leads to a switch")
    if len(switched) == 1:
        yield switched[0].not_applicable("nothing-to-compare", detail="no other GPU on its switches")
    pairs = list(combinations(switched, 2))
    some = any((way.kind or "").startswith("NV") for a, b in pairs if (way := ways.get(_ends(a, b))))
    missing: list[TallyPair] = []
    for a, b in pairs:
        about = about_pair(a.gpu, b.gpu)
        result = _judge_pair(a, b, ways.get(_ends(a, b)), some)
        if isinstance(result, Reason):
            yield about.unknown(result)
        elif result == "joined":
            yield about.passes()
        elif context.why_settling:
            yield about.unknown(context.why_settling)
        else:
            missing.append((a, b))
    yield from _merge_pairs(switched, missing, ways)


def _judge_pair(a: LinkCounts, b: LinkCounts, way: Path | None, some: bool) -> Reason | Literal["cut", "joined"]:
    """Whether the pair is cut or joined, or why that is not known."""
    if way is None or way.kind is None:
        return Reason("not-known", fact="how they reach each other")
    if way.kind.startswith("NV"):
        return "joined"
    word = (a.gpu.p2p or {}).get(b.gpu.id, {}).get("nvlink")
    if word in (None, "U"):
        cut = some and way.source == "nvidia-smi"
        return "cut" if cut else Reason("not-reported", fact="whether NVLink joins them")
    if word == "OK":
        return Reason("sources-disagree", detail="P2P over NVLink is OK, and the matrix contradicts it")
    return "cut"


def _merge_pairs(
    group: list[LinkCounts], missing: list[TallyPair], ways: Mapping[frozenset[str], Path]
) -> Iterator[Fail]:
    """All pairs as one; a GPU that reaches no other as one; each other pair alone."""
    if len(group) > 2 and len(missing) == len(group) * (len(group) - 1) // 2:
        yield _fail_path_missing(NODE, missing, ways)
        return
    for tally in group if len(group) > 2 else ():
        own = [pair for pair in missing if tally.gpu.id in _ends(*pair)]
        if len(own) == len(group) - 1:
            yield _fail_path_missing(about_gpu(tally.gpu), own, ways)
            missing = [pair for pair in missing if tally.gpu.id not in _ends(*pair)]
    yield from (_fail_path_missing(about_pair(a.gpu, b.gpu), [(a, b)], ways) for a, b in missing)


def _fail_path_missing(about: NamedSubject, pairs: list[TallyPair], ways: Mapping[frozenset[str], Path]) -> Fail:
    labels = [f"{a.gpu.label} - {b.gpu.label}" for a, b in pairs]
    between = name_pairs([(a.gpu.label, b.gpu.label) for a, b in pairs])
    a, b = pairs[0]
    cell = ways[_ends(a, b)].kind
    expected, links = f"NV{len(a.active)}", "and their links are up"
    if not (a.active and b.active):
        expected, links = _usual_kind(ways), "as others have; their links were not reported"
    ends = [about_gpu(tally.gpu) for pair in pairs for tally in pair]
    return about.fail(
        summary=f"no NVLink {between}: {cell} instead of {expected}, {links}",
        impact="NCCL takes PCIe for these pairs: 63 GB/s at best instead of 450; rings run at their slowest pair.",
        evidence=(
            Evidence(labels[0], str(cell), "nvidia-smi topo -m"),
            Evidence(labels[0], _path_kind(a, b), "nvidia-smi topo -p2p n"),
        ),
        ids=frozenset({PLACE}).union(*(end.ids for end in ([about] if about in ends else ends))),
    )


def _path_kind(a: LinkCounts, b: LinkCounts) -> str:
    word = (a.gpu.p2p or {}).get(b.gpu.id, {}).get("nvlink")
    return _ANOTHER_WAY.get(word) or str(word)


def _ends(a: LinkCounts, b: LinkCounts) -> frozenset[str]:
    return frozenset((a.gpu.id, b.gpu.id))


def _leads_to_switches(tally: LinkCounts) -> bool:
    """Wired on a board, and not to another GPU or a CPU. Without any link reported: by the matrix."""
    if not tally.total:
        return True
    if tally.form not in (LinkForm.BOARD, LinkForm.SUPERCHIP) or not tally.active:
        return False
    return not any(link.remote and link.remote.kind in ("gpu", "cpu") for link in tally.active)
