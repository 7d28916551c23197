"""HCCS: ports that are down or run on a part of their lanes, pairs that the matrix does not join."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import msgspec
from msgspec.structs import replace

from agent.model.finding import Evidence
from agent.model.gpu import Gpu, GpuLink
from agent.model.reasons import Reason, quote_source
from agent.model.topology import Path
from agent.rules.applicability import has_ascend
from agent.rules.ascend.npus import A2, find_npus
from agent.rules.context import RuleContext
from agent.rules.devices import about_gpu, about_pair, about_pairs, find_device_id, find_function, why_unreachable
from agent.rules.node_wide import merge_failures
from agent.rules.rule import NODE, Fail, NotApplicable, Pass, Result, Unknown, rule
from agent.rules.wording import format_ranges, join_labels, name_pairs

LINKED = ("HCCS", "SIO")
_COUNTERS = {"crc", "retries"}
_MOSTLY = 0.75  # of a row of the matrix
_COMMAND = "npu-smi info -t hccs -i N -c C"


class _Ports(msgspec.Struct, frozen=True):
    """One NPU with ports of HCCS, and those of them that are at fault."""

    npu: Gpu
    faulty: list[GpuLink]


def _known_ports(context: RuleContext) -> tuple[list[tuple[Gpu, list[GpuLink]]], list[Result]]:
    """NPUs whose ports are known, and the answers for the others."""
    answer = has_ascend(context)
    known, answers = [], [answer] if answer else []
    for npu in find_npus(context):
        about, absent = about_gpu(npu), why_unreachable(find_function(context, npu))
        links = [link for link in npu.links if link.protocol == "hccs" and link.state != "unknown"]
        if absent:
            answers.append(about.not_applicable(absent))
        elif links:
            known.append((npu, links))
        else:
            answers.append(about.unknown(quote_source(npu.links_reason) or Reason("output-missing", command=_COMMAND)))
    return known, answers


@rule("hccs-link-down")
def hccs_link_down(context: RuleContext) -> Iterator[Result]:
    known, answers = _known_ports(context)
    yield from answers
    down = {npu.id: [link for link in links if link.state == "inactive"] for npu, links in known}
    everywhere = set.intersection(*({link.link for link in down[npu.id]} for npu, _ in known)) if known else set()
    faults: list[_Ports] = []
    for npu, links in known:
        dead = [link for link in down[npu.id] if link.link not in everywhere or link.errors.get("first_error")]
        if dead:
            faults.append(_Ports(npu, dead))
        elif len(down[npu.id]) == len(links):
            yield about_gpu(npu).not_applicable("no-such-device", detail="no HCCS port of this board is in use")
        elif down[npu.id] and len(known) == 1:
            yield about_gpu(npu).unknown(
                "no-peers", detail="ports of one NPU alone: a board may leave some of them out"
            )
        else:
            yield about_gpu(npu).passes()
    yield from _merge(context, faults, len(known), _fail_down)


@rule("hccs-lanes-degraded")
def hccs_lanes_degraded(context: RuleContext) -> Iterator[Result]:
    known, answers = _known_ports(context)
    yield from answers
    rates = Counter(link.signal_gbyte_s for _, links in known for link in links if link.signal_gbyte_s)
    full = max((rate for rate, count in rates.items() if count > 1), default=None)
    faults: list[_Ports] = []
    for npu, links in known:
        slow = [link for link in links if full and link.signal_gbyte_s and link.signal_gbyte_s < full]
        if slow:
            faults.append(_Ports(npu, slow))
        elif full is None or not any(link.signal_gbyte_s for link in links):
            yield about_gpu(npu).unknown("no-peers", detail="the speed of its ports is not known, or of no two alike")
        else:
            yield about_gpu(npu).passes()
    yield from _merge(context, faults, len(known), _fail_lanes(full or 0.0))


@rule("hccs-errors")
def hccs_errors(context: RuleContext) -> Iterator[Result]:
    known, answers = _known_ports(context)
    yield from answers
    faults: list[_Ports] = []
    for npu, links in known:
        moves = {
            (at, name): _read_increase(context, npu, link, name) for at, link in enumerate(links) for name in _COUNTERS
        }
        bad = [link for at, link in enumerate(links) if any(moves[at, name] for name in _COUNTERS)]
        gaps = [(links[at].link, name) for (at, name), move in moves.items() if move is None]
        if context.why_not_counted or not any(_COUNTERS & link.errors.keys() for link in links):
            yield about_gpu(npu).unknown(
                context.why_not_counted or Reason("undecided", detail=f"no error counts in an output of {_COMMAND}")
            )
        elif bad:
            faults.append(_Ports(npu, bad))
        elif gaps:
            port, name = min(gaps)
            yield about_gpu(npu).unknown(context.why_no_delta(f"link:{npu.id}/{port}", name))
        else:
            yield about_gpu(npu).passes()
    yield from _merge(context, faults, len(known), _fail_errors)


def _read_increase(context: RuleContext, npu: Gpu, link: GpuLink, name: str) -> int | None:
    return context.counter_delta(f"link:{npu.id}/{link.link}", name, link.errors)


def _fail_errors(context: RuleContext, faults: list[_Ports]) -> Fail:
    def describe(npu: Gpu, link: GpuLink) -> str:
        moves = {name: _read_increase(context, npu, link, name) for name in sorted(_COUNTERS)}
        return ", ".join(f"+{move} {name}" for name, move in moves.items() if move)

    noted = any(link.errors.get("first_error") for fault in faults for link in fault.faulty)
    alone = [[_Ports(fault.npu, [link])] for fault in faults for link in fault.faulty]
    whole = _fail(
        faults,
        summary=f"HCCS port {_numbers(faults[0])} counts errors{_far_ends(faults)}",
        impact="Packets are sent again; a port that keeps counting errors loses lanes, then its link.",
        severity="error" if noted else "warning",
        describe=describe,
    )
    # About its ports alone: another port of the NPU is another fault
    return replace(
        whole,
        ids=_port_places(faults),
        parts=tuple(_fail_errors(context, one) for one in alone) if len(alone) > 1 else (),
    )


def _merge(
    context: RuleContext, faults: list[_Ports], count: int, fail: Callable[[RuleContext, list[_Ports]], Fail]
) -> Iterator[Fail]:
    """One finding for both ends of a pair, for one NPU and the far ends of its ports, and for all; else one each."""
    most = max((len(fault.faulty) for fault in faults), default=0)
    first = [fault for fault in faults if len(fault.faulty) == most]
    others = [fault for fault in faults if len(fault.faulty) < most]
    is_mesh = all(find_device_id(context, fault.npu) == A2 for fault in faults)
    alone = len(first) == 1 and all(len(fault.faulty) == 1 for fault in others) and len(others) <= most
    pair = len(faults) == 2 and most == 1
    if is_mesh and (pair or alone):
        yield fail(context, first + others)
    elif len(faults) == count > 1:
        each = [fail(context, [fault]) for fault in faults]
        yield merge_failures(
            [part for one in each for part in one.parts or (one,)], "HCCS ports of all NPUs are faulty"
        )
    else:
        yield from (fail(context, [fault]) for fault in faults)


def _fail_down(context: RuleContext, faults: list[_Ports]) -> Fail:
    mesh = find_device_id(context, faults[0].npu) == A2
    ports = sum(link.protocol == "hccs" for link in faults[0].npu.links)
    dead = len(faults[0].faulty)
    whole = _fail(
        faults,
        summary=f"HCCS port {_numbers(faults[0])} of {ports} down{_far_ends(faults)}",
        impact="A pair of NPUs has no direct link: collectives of all NPUs wait for it."
        if mesh
        else f"{dead} of {ports} ports lost: this die has {100 * dead / ports:.0f}% less HCCS bandwidth.",
        severity="critical" if mesh else "error",
    )
    return replace(whole, explains_ids=_port_places(faults) | {fault.npu.id for fault in faults}, explains_parts=False)


def _fail_lanes(full: float) -> Callable[[RuleContext, list[_Ports]], Fail]:
    def fail(context: RuleContext, faults: list[_Ports]) -> Fail:
        del context
        slowest = min(link.signal_gbyte_s or 0 for link in faults[0].faulty)
        ports = _numbers(faults[0])
        whole = _fail(
            faults,
            summary=f"HCCS port {ports} at {slowest:g} GB/s, other ports have {full:g}{_far_ends(faults)}",
            impact=f"{full - slowest:g} GB/s less in each direction; collectives run at the slowest port's speed.",
            severity="error",
        )
        return replace(whole, explains_ids=_port_places(faults), explains_parts=False)

    return fail


def _describe_state(npu: Gpu, link: GpuLink) -> str:
    del npu
    return f"{link.state}, {link.signal_gbyte_s or 0:g} GB/s"


def _fail(
    faults: list[_Ports],
    summary: str,
    impact: str,
    severity: str,
    describe: Callable[[Gpu, GpuLink], str] = _describe_state,
) -> Fail:
    npus = [fault.npu for fault in faults]
    pair = len(npus) == 2 and len(faults[0].faulty) == 1
    evidence = tuple(
        Evidence(f"HCCS port {link.link} of {fault.npu.label}", describe(fault.npu, link), _COMMAND)
        for fault in faults[:4]
        for link in fault.faulty[:4]
    )
    return (about_pair(npus[0], npus[1]) if pair else about_gpu(npus[0])).fail(
        summary=summary, impact=impact, evidence=evidence, severity=severity, ids=frozenset(npu.id for npu in npus)
    )


def _port_places(faults: list[_Ports]) -> frozenset[str]:
    return frozenset(f"{fault.npu.id}/{link.link}" for fault in faults for link in fault.faulty)


def _numbers(fault: _Ports) -> str:
    return format_ranges(link.link for link in fault.faulty)


def _far_ends(faults: list[_Ports]) -> str:
    others = [f"port {_numbers(fault)} of {fault.npu.label}" for fault in faults[1:]]
    return f", and {join_labels(others)}" if others else ""


@rule("hccs-matrix-asymmetric")
def hccs_matrix_asymmetric(context: RuleContext) -> Iterator[Result]:
    answer = has_ascend(context)
    if answer is not None:
        yield answer
        return
    ids = {npu.id for npu in find_npus(context)}
    paths = [path for path in context.topology.paths if path.a in ids and path.b in ids]
    rows = {npu: [path for path in paths if npu in (path.a, path.b)] for npu in sorted(ids)}
    if not any(path.kind == "HCCS" for path in paths):
        yield NODE.unknown(
            "not-shown", detail="no HCCS pair: a board without HCCS, or npu-smi info -t topo was not saved"
        )
        return
    missing = [path for path in paths if path.kind is not None and path.kind not in LINKED and _is_odd(path, rows)]
    yield from (
        Unknown(_pair(path), Reason("not-shown", detail="npu-smi does not state how they are joined"))
        for path in paths
        if not path.kind
    )
    yield from (Pass(_pair(path)) for path in paths if path.kind in LINKED)
    yield from (
        NotApplicable(_pair(path), Reason("other-kind", detail="HCCS joins a part of this board's NPUs"))
        for path in paths
        if path.kind and path.kind not in LINKED and path not in missing
    )
    yield from _fail_pairs(context, missing)


def _is_odd(path: Path, rows: dict[str, list[Path]]) -> bool:
    """Whether HCCS joins most pairs of both ends: not so between halves of a board."""
    shares = [sum(path.kind in LINKED for path in rows[end]) / len(rows[end]) for end in (path.a, path.b)]
    return max(shares) >= _MOSTLY


def _pair(path: Path) -> str:
    return f"pair:{path.a}+{path.b}"


def _fail_pairs(context: RuleContext, paths: list[Path]) -> Iterator[Fail]:
    common = frozenset.intersection(*(frozenset((path.a, path.b)) for path in paths)) if paths else frozenset()
    groups = [paths] if common else [[path] for path in paths]
    yield from (_fail_matrix(context, group) for group in groups)


def _fail_matrix(context: RuleContext, paths: list[Path]) -> Fail:
    pairs = [(context.gpus[path.a], context.gpus[path.b]) for path in paths]
    labels = [(a.label, b.label) for a, b in pairs]
    return about_pairs(pairs).fail(
        summary=f"no HCCS {name_pairs(labels)}; their other pairs have it",
        impact="Traffic of these pairs goes over PCIe; collectives run at the slowest pair's speed.",
        evidence=tuple(
            Evidence(" - ".join(label), path.kind or "", "npu-smi info -t topo")
            for label, path in zip(labels[:8], paths, strict=False)
        ),
        ids=frozenset(end for path in paths for end in (path.a, path.b)),
    )
