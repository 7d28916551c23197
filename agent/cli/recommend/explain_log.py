"""`recommend explain-log`: the old name of `job`."""

from __future__ import annotations

from typing import Annotated

import typer

from agent.cli import options as opt
from agent.cli.errors import print_warning
from agent.cli.job import JobFormat, JobOptions, run_job


def explain_log(
    log: Annotated[str, typer.Argument(metavar="FILE", help="Output of a job with NCCL_DEBUG=INFO; - for stdin.")],
    report: opt.ReportFile = None,
    source: opt.Source = None,
    profile: Annotated[str | None, opt.option("NAME|FILE", "Compare with this platform.")] = None,
    form: Annotated[JobFormat, typer.Option("--format", help="text, json or html.")] = JobFormat.TEXT,
    output: opt.Output = None,
    no_color: opt.NoColor = False,
) -> None:
    """Explain the log of a job: the old name of `job`.

    It runs `fabricscope job FILE`.
    """
    print_warning("recommend explain-log is now fabricscope job: the JSON is fabricscope.job/1")
    options = JobOptions([report] if report else [], source, None, None, profile)
    run_job([log], options, form.value, output, no_color)
