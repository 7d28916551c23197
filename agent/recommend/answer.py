"""The whole answer for a report, a profile or a job: predictions, settings and repairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from agent.model.prediction import Prediction, Recommendation, Repair
from agent.model.profile import BadProfile, Profile
from agent.model.report import Report
from agent.platforms.profiles import load_profile
from agent.recommend.constants import Version
from agent.recommend.cost import find_repairs
from agent.recommend.machine import NodeFacts, assume_node, complete_node, read_node
from agent.recommend.plan import place_ranks
from agent.recommend.predict import AS_IS, HEALTHY, Request, predict, version_of
from agent.recommend.settings import advise, compare_platform
from agent.recommend.tuning import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, SEND_RECEIVE

_USUAL = (ALL_REDUCE, ALL_GATHER, ALL_TO_ALL, SEND_RECEIVE)
_USUAL_NODES = (1, 2, 4)
USUAL_SIZE = 1 << 30  # bytes


class Question(NamedTuple):
    """What is asked; None: the usual ones."""

    collective: str | None = None
    size: int | None = None  # bytes
    nodes: int | None = None
    nccl: str | None = None


def answer_report(report: Report, question: Question) -> Recommendation:
    """For the host of one report: as it is and as it should be."""
    node = complete_node(read_node(report), report, _platform_of(report))
    version = version_of(question.nccl, [node])
    advice = advise(report, node, version)
    return Recommendation(
        machine=node.title,
        assumed=list(node.assumed),
        missing=list(node.missing),
        predictions=_predictions([node], question, version, (AS_IS, HEALTHY)),
        settings=advice.settings,
        not_needed=advice.not_needed,
        repairs=find_repairs(report, node, version),
        placement=place_ranks(report, node),
        platform=compare_platform(report, node),
    )


def _platform_of(report: Report) -> Profile | None:
    """The profile that the report was judged by."""
    try:
        return load_profile(report.platform.profile) if report.platform.profile else None
    except BadProfile:  # of a file that is not on this machine
        return None


def answer_profile(profile: Profile, rails: tuple[int, float] | None, question: Question) -> Recommendation:
    """For a platform, without a machine: what it would reach. `rails`: number and Gb/s of each."""
    node = assume_node(profile, rails)
    return Recommendation(
        machine=node.title,
        assumed=list(node.assumed),
        missing=list(node.missing),
        predictions=_predictions([node], question, version_of(question.nccl, []), (HEALTHY,)),
    )


def answer_nodes(nodes: Sequence[NodeFacts], question: Question, repairs: Sequence[Repair]) -> Recommendation:
    """For a job on all these nodes: the least over them, with the node and device that set it."""
    version = version_of(question.nccl, nodes)
    options = question._replace(nodes=len(nodes))
    differing = list({node._replace(host=""): node for node in reversed(nodes)}.values())[::-1]
    order = sorted(repairs, key=lambda repair: (-repair.percent, repair.host or "", repair.rule, repair.device))
    gpus = sum(len(node.gpus) for node in nodes)
    return Recommendation(
        machine=f"{len(nodes)} nodes, {gpus} GPUs, the first: {nodes[0].title}" if nodes else "no nodes",
        missing=sorted({f"{node.host}: {field}" for node in nodes for field in node.missing}),
        predictions=_predictions(differing, options, version, (AS_IS, HEALTHY)) if nodes else [],
        repairs=order,
        summary=_summarize(nodes, order),
    )


def _summarize(nodes: Sequence[NodeFacts], repairs: Sequence[Repair]) -> list[str]:
    """What the faults cost: each node by its worst one between nodes, and a job on all of them by the worst of all."""
    between = [repair for repair in repairs if repair.nodes > 1]
    if not between:
        return []
    gpus = {node.host: len(node.gpus) for node in nodes}
    worst: dict[str, float] = {}
    for repair in between:
        worst[repair.host or ""] = max(repair.percent, worst.get(repair.host or "", 0.0))
    lost = sum(percent * gpus.get(host, 0) for host, percent in worst.items()) / max(1, sum(gpus.values()))
    first = between[0]
    count = "1 fault between nodes costs" if len(between) == 1 else f"{len(between)} faults between nodes cost"
    return [
        f"{count} {lost:.3g}% of the inter-node bandwidth of {sum(gpus.values())} GPUs, summed over "
        f"single nodes; a job on all of these nodes loses {first.percent:.0f}%. Repair first: "
        f"{first.rule} on {first.host} ({first.device})."
    ]


def _predictions(
    nodes: Sequence[NodeFacts], question: Question, version: Version, cases: Sequence[str]
) -> list[Prediction]:
    collectives = [question.collective] if question.collective else _USUAL
    counts = [question.nodes] if question.nodes else _USUAL_NODES if any(node.rails for node in nodes) else (1,)
    return [
        predict(nodes, Request(collective, question.size or USUAL_SIZE, count, version), case)
        for collective in collectives
        for count in counts
        for case in cases
    ]
