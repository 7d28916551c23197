"""`recommend plan`: where tensor, pipeline, data, context and expert parallel of a training job go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli import options as opt
from agent.cli.errors import CliError
from agent.cli.output import write_answer

if TYPE_CHECKING:
    from agent.model.report import Report
    from agent.recommend.machine import NodeFacts
    from agent.recommend.plan import Cluster, Model

_MEMORY_GB = {"h100": 80.0, "h200": 141.0, "b200": 180.0, "b300": 288.0, "mi300x": 192.0, "v100": 32.0}


def plan(
    params: Annotated[float, opt.shown_option("COUNT", "Parameters of the model, as 70e9.", min=1e6, max=1e15)],
    layers: Annotated[int, opt.shown_option("COUNT", "Layers.", min=1, max=10_000)],
    hidden: Annotated[int, opt.shown_option("SIZE", "Hidden size.", min=64, max=1_000_000)],
    gpus: Annotated[int, opt.shown_option("COUNT", "GPUs of the job.", min=1, max=1_000_000)],
    seq: Annotated[int, opt.shown_option("TOKENS", "Sequence length.", min=1, max=100_000_000)] = 8192,
    batch: Annotated[float, opt.shown_option("TOKENS", "Tokens per step.", min=1, max=1e12)] = 4 * 2.0**20,
    experts: Annotated[int, opt.shown_option("COUNT", "Experts per layer.", min=0, max=65_536)] = 0,
    top_k: Annotated[int, opt.shown_option("COUNT", "Experts per token.", min=1, max=1024)] = 1,
    active: Annotated[float | None, opt.option("COUNT", "With --experts: parameters used per token.")] = None,
    kv_share: Annotated[float, opt.shown_option("SHARE", "KV heads by heads.", min=0.001, max=1.0)] = 0.125,
    memory: Annotated[float | None, opt.option("GB", "Memory of a GPU. Default: the machine's.")] = None,
    report: opt.ReportFile = None,
    source: opt.Source = None,
    profile: opt.ProfileName = "auto",
    rails: Annotated[str | None, opt.option("NUMBERxGBITS", "With --profile: rails, as 8x400.")] = None,
    form: Annotated[opt.TextOrJson, typer.Option("--format", help="text or json.")] = "text",
    output: opt.Output = None,
    no_color: opt.NoColor = False,
) -> None:
    """Plan the parallelism of a training job.

    Layouts that fit the memory, what they send, and the step on this fabric, with the arithmetic.
    """
    from agent.outputs.text.recommend_answers import render_plan
    from agent.recommend.plan import plan_training

    node, document = _read_machine(report, source, profile, rails)
    answer = plan_training(
        _check_model(params, layers, hidden, seq, batch, experts, top_k, active, kv_share),
        _check_cluster(node, document, gpus, memory, profile),
    )
    write_answer(answer, form, render_plan, output, no_color, indent=1)


def _check_model(
    params: float, layers: int, hidden: int, seq: int, batch: float, experts: int, top_k: int, active: float | None,
    kv_share: float,
) -> Model:  # fmt: skip
    from agent.recommend.plan import Model

    if experts and (active is None or not 0 < active < params or top_k >= experts):
        raise CliError("--experts needs --active, the parameters of a token (below --params), and --top-k below it")
    if batch < seq:
        raise CliError(f"--batch {batch:g}: a step has at least one sequence of {seq} tokens")
    return Model(
        params, layers, hidden, seq, batch, experts=experts, top_k=top_k, active_params=active or params,
        kv_share=kv_share,
    )  # fmt: skip


def _check_cluster(node: NodeFacts, document: Report | None, gpus: int, memory: float | None, profile: str) -> Cluster:
    """Raises CliError, naming what is missing."""
    from agent.recommend.plan import Cluster
    from agent.recommend.predict import version_of

    known = memory or _memory_of(document, profile)
    missing = [*node.missing, *([] if known else ["topology.gpus[].memory_mib: give --memory"])]
    if node.kind != "nvlink" or not node.sm:
        missing.append("NVLinks and a generation of NVIDIA GPUs whose peak is known")
    if gpus > len(node.gpus) and not node.rails:
        missing.append("rails: give --profile with --rails, for example 8x400")
    if gpus > len(node.gpus) and node.gpus and gpus % len(node.gpus):
        raise CliError(f"--gpus {gpus}: no whole number of nodes of {len(node.gpus)} GPUs")
    if missing or known is None:
        raise CliError(f"nothing can be planned: missing {'; '.join(missing)}")
    return Cluster(node, gpus, known, version_of(None, [node]))


def _memory_of(document: Report | None, profile: str) -> float | None:
    """GB of the smallest GPU of a report, or of a platform's usual GPU."""
    if document is not None:
        sizes = [gpu.memory_mib for gpu in document.topology.gpus if gpu.memory_mib]
        return min(sizes) * 1.048576e-3 if sizes else None
    return next((size for name, size in _MEMORY_GB.items() if name in profile.lower()), None)


def _read_machine(
    report: str | None, source: str | None, profile: str, rails: str | None
) -> tuple[NodeFacts, Report | None]:
    from agent.cli.recommend.machine import load_platform, parse_rails
    from agent.recommend.machine import assume_node, read_node

    if profile not in ("auto", "none") and not report and not source:
        return assume_node(load_platform(profile), parse_rails(rails)), None
    if rails is not None:
        raise CliError("--rails needs --profile without a source: a report has its own rails")
    from agent.cli.request import ReportRequest

    document = ReportRequest(source=source, report=report, profile=profile).make_report()[0]
    return read_node(document), document
