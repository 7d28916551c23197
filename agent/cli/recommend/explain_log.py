"""`recommend explain-log`: what the log of a job shows that its machine should give otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli import options as opt
from agent.cli.errors import CliError
from agent.cli.recommend.evidence import read_lines

if TYPE_CHECKING:
    from agent.model.report import Report
    from agent.recommend.machine import NodeFacts


def explain_log(
    log: Annotated[str, typer.Argument(metavar="FILE", help="Output of a job with NCCL_DEBUG=INFO; - for stdin.")],
    report: opt.ReportFile = None,
    source: opt.Source = None,
    profile: Annotated[
        str | None, typer.Option(metavar="NAME|FILE", help="Compare with this platform.", show_default=False)
    ] = None,
    form: Annotated[opt.DiffFormat, typer.Option("--format", help="text or json.")] = opt.DiffFormat.TEXT,
    output: opt.Output = None,
    no_color: opt.NoColor = False,
) -> None:
    """Explain the NCCL log of a job.

    What differs from what its machine should give, and what could be the reason.
    For all facts: NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH,ENV,NET,TUNING.
    """
    from agent.cli.output import deliver, show
    from agent.recommend.explain import explain_log as explain
    from agent.job.nccl_log import read_log

    facts = read_log(read_lines(log))
    if not facts.lines:
        raise CliError(f"{log}: no line of NCCL: run the job with NCCL_DEBUG=INFO")
    answer = explain(facts, *_read_machine(report, source, profile))
    if form is opt.DiffFormat.JSON:
        import msgspec

        deliver(msgspec.json.format(msgspec.json.encode(answer), indent=1) + b"\n", output)
    else:
        from agent.outputs.text.recommend_answers import render_log_answer

        show(lambda width: render_log_answer(answer, width), output, no_color)


def _read_machine(
    report: str | None, source: str | None, profile: str | None
) -> tuple[NodeFacts | None, Report | None]:
    """The machine that the log is compared with. Raises CliError."""
    if profile is not None:
        if report or source:
            raise CliError("--profile excludes --report and --source: one machine")
        from agent.cli.recommend.machine import load_platform
        from agent.recommend.machine import assume_node

        return assume_node(load_platform(profile), None), None
    if not report and not source:
        return None, None
    from agent.cli.request import ReportRequest
    from agent.recommend.machine import read_node

    document = ReportRequest(source, None, report, None, None, 30.0, None, False).make_report()[0]
    return read_node(document), document
