"""`recommend`: predictions for a machine, a platform or a job, and what a job's log or a benchmark's table shows.

Only options, output and exit codes belong here, not the model: that is in agent/recommend.
"""

from __future__ import annotations

from typing import Annotated

import typer

from agent.cli import options as opt
from agent.cli.errors import print_warning
from agent.cli.plain import JobFormat
from agent.cli.recommend.machine import recommend as recommend
from agent.cli.recommend.plan import plan


@recommend.command("explain-log")
def explain_log(
    log: Annotated[str, typer.Argument(metavar="FILE", help="Output of a job with NCCL_DEBUG=INFO; - for stdin.")],
    report: opt.ReportFile = None,
    source: opt.Source = None,
    profile: Annotated[str | None, opt.option("NAME|FILE", "Compare with this platform.")] = None,
    form: Annotated[
        JobFormat | None, typer.Option("--format", help="text (default), json or html.", show_default=False)
    ] = None,
    output: opt.Output = None,
    no_color: opt.NoColor = False,
) -> None:
    """Explain the log of a job: the old name of `job`.

    It runs `fabricscope job FILE`.
    """
    from agent.cli.job import JobOptions, run_job

    print_warning("recommend explain-log is now fabricscope job: the JSON is fabricscope.job/1")
    options = JobOptions([report] if report else [], source, None, None, profile)
    run_job([log], options, form, output, no_color)


recommend.command("plan")(plan)
