"""`fleet repeat`: parts that fail again and again."""

from __future__ import annotations

from typing import Annotated

import typer

from agent.cli import options as opt
from agent.cli.fleet.news import LeastSeverity, Severity
from agent.cli.fleet.options import (
    Dataset,
    EngineUrl,
    Form,
    SilencesOption,
    WhereOption,
    choose_format,
    query_tables,
    read_silences,
)
from agent.cli.fleet.questions import parse_time, print_answer, utc_now


def repeat(
    since: Annotated[str, typer.Option(metavar="TIME|DURATION", help="2026-01-15, or 24h, 30d before now.")] = "30d",
    times: Annotated[int, typer.Option(metavar="COUNT", help="Fewest episodes of a part.", min=2)] = 2,
    dataset: Dataset = None,
    engine: EngineUrl = None,
    where: WhereOption = None,
    severity: LeastSeverity = Severity.WARNING,
    silences: SilencesOption = None,
    form: Form = None,
    output: opt.Output = None,
    no_color: opt.NoColor = False,
) -> None:
    """Parts with findings again and again.

    With serial numbers, for an RMA: --format csv.
    """
    format_name, moment, silenced = choose_format(form, output), parse_time(since), read_silences(silences)
    with query_tables(dataset, engine, where) as tables:
        from agent.fleet.episodes.repeat import Offender, repeats
        from agent.fleet.text.repeat import page

        answer = repeats(tables, moment, utc_now(), times, severity.value, silenced)
        print_answer(
            answer, answer.offenders, Offender, lambda width: page(answer, width), format_name, output, no_color
        )
