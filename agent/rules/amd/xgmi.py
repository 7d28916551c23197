"""XGMI: GPUs outside their hive, pairs without a link, links that are slower than their peers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from math import comb

import msgspec

from agent.model.finding import Evidence
from agent.model.gpu import Gpu
from agent.model.reasons import Reason, quote_source
from agent.model.topology import Path
from agent.rules.amd.gpus import BRIDGED, FULL_MESH, KFD, NO_HIVE, PAIRED, all_pass, find_guard, select_gpus
from agent.rules.context import RuleContext
from agent.rules.devices import about_gpu, about_pair, about_pairs, find_device_id, kernel_log_evidence
from agent.rules.rule import NODE, Fail, NamedSubject, Result, Subject, rule
from agent.rules.wording import find_majority, join_labels

_LINKS = f"{KFD}/*/io_links/*/properties"
_SEVERAL = 3  # pairs of three GPUs: what so many have, every link can do
_PERHAPS_A_GUEST = Reason(
    "guest-hides", detail="no GPU is in a hive, and whether this is a virtual machine is not known"
)
_BRIDGE_SIZES = (2, 4)  # cards that one bridge joins
_HIVE, _MOST = 4, 3 / 4  # GPUs, and the share of their pairs that shows how all of them are joined
_MANY = 2  # up to so many pairs without a GPU in common are a finding each
_SLOWEST_LINK_GBYTE_S = 50.0  # one link of the slowest generation: 16 lanes at 25 GT/s


class _Pair(Subject, frozen=True):
    """Two GPUs of one hive, and their path."""

    a: Gpu
    b: Gpu
    path: Path | None

    @property
    def about(self) -> Subject:
        return about_pair(self.a, self.b)


@rule("xgmi-hive-split")
def xgmi_hive_split(context: RuleContext) -> Iterator[Result]:
    groups, answers = select_gpus(context, FULL_MESH | PAIRED, lambda gpu: gpu.hive is not None)
    yield from answers
    for group in groups:
        yield from (
            _judge_mesh(context, group)
            if find_device_id(context, group[0]) in FULL_MESH
            else _judge_modules(context, group)
        )


def _judge_modules(context: RuleContext, group: list[Gpu]) -> Iterator[Result]:
    """Two GPUs in one module are in one hive in every server; how modules are joined differs."""
    outside = [gpu for gpu in group if gpu.hive == NO_HIVE]
    if len(outside) == len(group) and not context.node.virtualization_known:
        yield NODE.unknown(_PERHAPS_A_GUEST)
        return
    yield from all_pass([gpu for gpu in group if gpu.hive != NO_HIVE])
    if outside:
        many = f"{len(outside)} of {len(group)} GPUs"
        summary = f"{many} in no XGMI hive; their module joins each with another one"
        yield _fail_hive(context, outside, summary, _describe_reach(outside, group))


def _describe_reach(outside: list[Gpu], group: list[Gpu]) -> str:
    reach = "reaches" if len(outside) == 1 else "reach"
    return f"{len(outside)} of {len(group)} GPUs {reach} the others by PCIe and host memory only."


def _judge_mesh(context: RuleContext, group: list[Gpu]) -> Iterator[Result]:
    hives = Counter(gpu.hive for gpu in group if gpu.hive != NO_HIVE)
    if not hives and not context.node.virtualization_known:
        yield NODE.unknown(_PERHAPS_A_GUEST)
        return
    largest = min(hives, key=lambda hive: (-hives[hive], hive)) if hives else None
    outside = [gpu for gpu in group if gpu.hive != largest]
    yield from all_pass([gpu for gpu in group if gpu.hive == largest])
    if not outside:
        return
    if not hives:
        summary = f"none of {len(group)} GPUs is in an XGMI hive; their board joins all of them"
    elif len(hives) == 1:
        summary = f"{len(outside)} of {len(group)} GPUs in no XGMI hive; the other {hives[largest]} are in one"
    else:
        summary = f"{len(group)} GPUs are in {len(hives)} XGMI hives; their board joins all of them"
    yield _fail_hive(context, outside, summary, _describe_reach(outside, group))


@rule("xgmi-bridge-uneven")
def xgmi_bridge_uneven(context: RuleContext) -> Iterator[Result]:
    groups, answers = select_gpus(context, BRIDGED, lambda gpu: gpu.hive is not None)
    yield from answers
    for group in groups:
        yield from _judge_bridges(context, group)


def _judge_bridges(context: RuleContext, group: list[Gpu]) -> Iterator[Result]:
    hives = Counter(gpu.hive for gpu in group if gpu.hive != NO_HIVE)
    sizes = set(hives.values())
    alone = [gpu for gpu in group if gpu.hive == NO_HIVE]
    if not hives:
        yield from (
            about_gpu(gpu).not_applicable("other-kind", detail="a card without a bridge, as all of its model")
            for gpu in alone
        )
    elif len(sizes) == 1 and max(sizes) in _BRIDGE_SIZES and len(alone) < 2:
        yield from all_pass([gpu for gpu in group if gpu not in alone])
        yield from (
            about_gpu(gpu).not_applicable("nothing-to-compare", detail="one spare card beside whole bridges")
            for gpu in alone
        )
    else:
        short = [gpu for gpu in group if hives[gpu.hive] < max(sizes)] or group
        yield from all_pass([gpu for gpu in group if gpu not in short])
        members = ", ".join(str(hives[hive]) for hive in sorted(hives, key=lambda hive: (-hives[hive], hive)))
        yield _fail_hive(
            context,
            alone if len(alone) == 1 else short,
            f"XGMI hives of {members} GPUs, and {len(alone)} in none: a bridge joins 2 or 4 cards",
            f"{join_labels([gpu.label for gpu in short])} reach some GPUs by PCIe instead of XGMI.",
        )


def _fail_hive(context: RuleContext, gpus: list[Gpu], summary: str, impact: str) -> Fail:
    single = len(gpus) == 1
    return (about_gpu(gpus[0]) if single else NODE).fail(
        summary=summary,
        impact=impact,
        evidence=(
            *(Evidence(f"hive of {g.label}", g.hive or "", f"{KFD}/*/properties") for g in gpus[:8]),
            *kernel_log_evidence(context, gpus[0].id),
        ),
        ids=frozenset(gpu.id for gpu in gpus),
    )


@rule("xgmi-pair-missing")
def xgmi_pair_missing(context: RuleContext) -> Iterator[Result]:
    matrix = _find_nearly_joined(context)
    if matrix:
        yield from (answer for gpu in context.topology.gpus if (answer := find_guard(context, gpu)))
        yield from _judge_matrix(context, matrix)
        return
    groups, answers = select_gpus(context, None, lambda gpu: gpu.hive is not None)
    yield from answers
    for pairs in _pairs_by_hive(context, groups):
        yield from _judge_pairs(context, pairs)


def _find_nearly_joined(context: RuleContext) -> list[_Pair]:
    """All pairs, where a matrix of a tool is all that is known of hives, and XGMI joins most of them, or all GPUs but
    one, which are no bridge of cards: in no product it joins most and leaves some out."""
    gpus = [gpu for gpu in context.topology.gpus if find_guard(context, gpu) is None]
    matrix = context.probes.get("amd_smi")
    known = matrix is not None and matrix.status == "ok"  # a table that is cut is not read
    if len(gpus) < _HIVE or any(gpu.hive is not None or not (known or gpu.links_known) for gpu in gpus):
        return []
    paths = {frozenset((path.a, path.b)): path for path in context.topology.paths}
    pairs = [_Pair(a, b, paths.get(frozenset((a.id, b.id)))) for a, b in combinations(gpus, 2)]
    joined = [pair for pair in pairs if _is_joined(pair)]
    ends = {gpu for pair in joined for gpu in pair.ids}
    but_one = len(ends) == len(gpus) - 1 and len(joined) == comb(len(ends), 2) and len(ends) not in _BRIDGE_SIZES
    return pairs if but_one or len(joined) >= len(pairs) * _MOST else []


def _is_joined(pair: _Pair) -> bool:
    return pair.path is not None and pair.path.kind == "XGMI"


def _judge_matrix(context: RuleContext, pairs: list[_Pair]) -> Iterator[Result]:
    missing = [pair for pair in pairs if not _is_joined(pair)]
    yield from (pair.passes() for pair in pairs if _is_joined(pair))
    for group in _group_pairs(missing):
        fault = _fail_missing(context, group, len(pairs))
        summary = f"{fault.summary.partition(', which are')[0]}; XGMI joins the other {len(pairs) - len(missing)} pairs"
        rows = tuple(msgspec.structs.replace(row, source="amd-smi topology") for row in fault.evidence)
        yield msgspec.structs.replace(fault, summary=summary, evidence=rows, confidence="medium")


def _judge_pairs(context: RuleContext, pairs: list[_Pair]) -> Iterator[Result]:
    joined = [pair for pair in pairs if pair.path is not None and pair.path.kind == "XGMI"]
    missing: list[_Pair] = []
    yield from (pair.passes() for pair in joined)
    for pair in pairs:
        unread = next((gpu for gpu in (pair.a, pair.b) if not gpu.links_known), None)
        if unread and pair not in joined:
            yield pair.unknown(
                quote_source(unread.links_reason)
                or Reason("not-shown", detail=f"the links of {unread.label} are not known")
            )
        elif pair not in joined:
            missing.append(pair)
    if missing and not joined and not context.node.virtualization_known:
        yield NODE.unknown("not-known", fact="no XGMI link inside a hive, and whether this is a virtual machine")
        return
    yield from (_fail_missing(context, group, len(pairs)) for group in _group_pairs(missing))


def _pairs_by_hive(context: RuleContext, groups: list[list[Gpu]]) -> Iterator[list[_Pair]]:
    paths = {frozenset((path.a, path.b)): path for path in context.topology.paths}
    for group in groups:
        for hive in dict.fromkeys(gpu.hive for gpu in group if gpu.hive != NO_HIVE):
            members = [gpu for gpu in group if gpu.hive == hive]
            yield [_Pair(a, b, paths.get(frozenset((a.id, b.id)))) for a, b in combinations(members, 2)]


def _group_pairs(pairs: list[_Pair]) -> list[list[_Pair]]:
    """All pairs, where they have a GPU in common or are many; else each pair by itself."""
    common = frozenset.intersection(*(pair.ids for pair in pairs)) if pairs else frozenset()
    return [pairs] if common or len(pairs) > _MANY else [[pair] for pair in pairs]


def _about(pairs: list[_Pair]) -> tuple[NamedSubject, list[Gpu]]:
    """What a fault of a group is of; the ends of its pairs, once, one that they have in common first."""
    ends = {gpu.id: gpu for pair in pairs for gpu in (pair.a, pair.b)}
    about = about_pairs([(pair.a, pair.b) for pair in pairs])
    gpus = sorted(ends.values(), key=lambda gpu: about.subject != f"gpu:{gpu.id}")
    return NamedSubject(about.subject, about.label, frozenset(ends)), gpus


def _fail_missing(context: RuleContext, pairs: list[_Pair], of: int) -> Fail:
    about, gpus = _about(pairs)
    if about.subject != "node":
        others = join_labels([gpu.label for gpu in gpus[1:]])
        summary = f"no XGMI link between {gpus[0].label} and {others}, which are in one hive"
    elif len(pairs) == of:
        summary = f"no XGMI link between any two of {len(gpus)} GPUs, which are in one hive"
    else:
        summary = f"{len(pairs)} of {of} pairs of GPUs in one hive have no XGMI link"
    return about.fail(
        summary=summary,
        impact=f"Traffic of {'these pairs' if len(pairs) > 1 else 'this pair'} goes over PCIe and host memory; "
        "collectives run at the slowest pair's speed.",
        evidence=(
            *(Evidence(p.label, (p.path.kind if p.path else None) or "no path", _LINKS) for p in pairs[:8]),
            *kernel_log_evidence(context, gpus[0].id),
        ),
    )


@rule("xgmi-bandwidth-uneven")
def xgmi_bandwidth_uneven(context: RuleContext) -> Iterator[Result]:
    groups, answers = select_gpus(context, FULL_MESH | BRIDGED, lambda gpu: gpu.hive is not None)
    yield from answers
    for group in groups:
        pairs = [pair for of_hive in _pairs_by_hive(context, [group]) for pair in of_hive]
        yield from _judge_bandwidth(context, pairs)


def _judge_bandwidth(context: RuleContext, pairs: list[_Pair]) -> Iterator[Result]:
    joined = [pair for pair in pairs if pair.path is not None and pair.path.kind == "XGMI"]
    rates = {pair.subject: pair.path.bandwidth_gbyte_s for pair in joined if pair.path}
    known = Counter(rate for rate in rates.values() if rate is not None)
    several = [rate for rate, count in known.items() if count >= _SEVERAL]
    usual_rate = max((*several, find_majority(known.elements()) or 0)) or None
    slow: list[_Pair] = []
    for pair in joined:
        rate = rates[pair.subject]
        if any(end.partition is not None and (end.partition.count or 0) > 1 for end in (pair.a, pair.b)):
            yield pair.not_applicable(
                "not-measured", detail="the driver states no rate between GPUs in several partitions"
            )
        elif rate is None or usual_rate is None:
            yield pair.unknown("no-peers", detail="the driver states no rate, or no two pairs to compare")
        elif usual_rate < _SLOWEST_LINK_GBYTE_S:
            why = f"the driver states at most {usual_rate:g} GB/s, and one XGMI link has {_SLOWEST_LINK_GBYTE_S:g}"
            yield pair.unknown("undecided", detail=why)
        elif rate >= usual_rate:
            yield pair.passes()
        else:
            slow.append(pair)
    if 2 * len(slow) > len(joined):
        yield _fail_most_slow(slow, min(rates[pair.subject] or 0 for pair in slow), usual_rate or 0)
        return
    for group in _group_pairs(slow):
        yield _fail_slow(context, group, min(rates[pair.subject] or 0 for pair in group), usual_rate or 0)


def _fail_most_slow(pairs: list[_Pair], rate: float, best: float) -> Fail:
    """Most pairs are no measure of what a link can do: no GPU is blamed."""
    return NODE.fail(
        summary=f"XGMI of {len(pairs)} pairs at down to {rate:g} GB/s; other pairs have {best:g} GB/s",
        impact=f"{best - rate:g} GB/s less in each direction; collectives run at the slowest pair's speed.",
        evidence=tuple(Evidence(f"slow: {pair.label}", "max_bandwidth", _LINKS) for pair in pairs[:8]),
        confidence="medium",
        ids=frozenset(gpu.id for pair in pairs for gpu in (pair.a, pair.b)),
    )


def _fail_slow(context: RuleContext, pairs: list[_Pair], rate: float, usual_rate: float) -> Fail:
    about, gpus = _about(pairs)
    return about.fail(
        summary=f"XGMI of {len(pairs)} pairs at {rate:g} GB/s; other pairs have {usual_rate:g} GB/s"
        if len(pairs) > 1
        else f"XGMI at {rate:g} GB/s; other pairs have {usual_rate:g} GB/s",
        impact=f"{usual_rate - rate:g} GB/s less in each direction; collectives run at the slowest pair's speed.",
        evidence=(
            *(Evidence(f"max_bandwidth of {pair.label}", f"{rate * 1000:g} MB/s", _LINKS) for pair in pairs[:8]),
            *kernel_log_evidence(context, gpus[0].id),
        ),
    )
