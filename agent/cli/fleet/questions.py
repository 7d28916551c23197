"""`fleet summary`, `outliers`, `findings`, `duplicates`, `drift`: run a query and print its result."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from agent.cli import options as opt
from agent.cli.fleet import options as shared


def summary(
    dataset: shared.Dataset = None,
    engine: shared.EngineUrl = None,
    where: shared.WhereOption = None,
    stale_after: shared.StaleAfter = "24h",
    form: shared.Form = None,
    output: opt.Output = None,
    no_color: opt.NoColor = False,
) -> None:
    """Verdicts, coverage, stale and worst nodes."""
    format_name, seconds = shared.choose_format(form, output), shared.parse_duration(stale_after)
    with shared.query_tables(dataset, engine, where) as tables:
        from agent.fleet.questions.options import Options
        from agent.fleet.questions.summary import build_summary as ask
        from agent.fleet.text.summary import page

        answer = ask(tables, Options(stale_after_seconds=seconds, now=shared.utc_now()))
        shared.print_answer(answer, "classes", page, format_name, output, no_color)


def outliers(
    dataset: shared.Dataset = None,
    engine: shared.EngineUrl = None,
    where: shared.WhereOption = None,
    majority: Annotated[
        float, opt.shown_option("SHARE", "Share of a class that makes a value its majority.", min=0.51, max=1.0)
    ] = 0.8,
    fewest: Annotated[int, opt.shown_option("COUNT", "Smallest class that is compared.", min=3)] = 5,
    form: shared.Form = None,
    output: opt.Output = None,
    no_color: opt.NoColor = False,
) -> None:
    """Nodes that differ from their hardware class.

    Firmware, drivers, links, QoS, settings.
    """
    format_name = shared.choose_format(form, output)
    with shared.query_tables(dataset, engine, where) as tables:
        from agent.fleet.questions.options import Options
        from agent.fleet.questions.outliers import find_outliers as ask
        from agent.fleet.text.outliers import page

        answer = ask(tables, Options(majority=majority, fewest=fewest, now=shared.utc_now()))
        shared.print_answer(answer, "outliers", page, format_name, output, no_color)


def findings(
    name: Annotated[
        str | None, opt.argument("[RULE|NODES]", "Parts and steps: of this rule, or on these nodes.")
    ] = None,
    dataset: shared.Dataset = None,
    engine: shared.EngineUrl = None,
    where: shared.WhereOption = None,
    silences: shared.SilencesOption = None,
    form: shared.Form = None,
    output: opt.Output = None,
    no_color: opt.NoColor = False,
) -> None:
    """Findings of all nodes, grouped by rule.

    A table; with RULE or NODES what each is about and what to do.
    """
    from agent.fleet.lossless.fault import switch_rules
    from agent.rules.catalogue import names

    format_name = shared.choose_format(form, output)
    rule = name if name in names() or name in switch_rules() else None
    if name and not rule:
        where = [*(where or []), f"nodes={name}"]
    with shared.query_tables(dataset, engine, where, shared.read_silences(silences)) as tables:
        from agent.fleet.questions.findings import find_findings as ask
        from agent.fleet.questions.options import Options
        from agent.fleet.text.findings import page

        answer = ask(tables, Options(now=shared.utc_now()))
        if rule:
            import msgspec

            groups = [group for group in answer.findings if group.rule == rule]
            answer = msgspec.structs.replace(answer, findings=groups, lost=None)
        shared.print_answer(answer, "findings", partial(page, detail=bool(name)), format_name, output, no_color)


def duplicates(
    dataset: shared.Dataset = None,
    engine: shared.EngineUrl = None,
    where: shared.WhereOption = None,
    form: shared.Form = None,
    output: opt.Output = None,
    no_color: opt.NoColor = False,
) -> None:
    """Identifiers that appear on more than one node.

    GUIDs, serial numbers, machine ids, LIDs, addresses.
    """
    format_name = shared.choose_format(form, output)
    with shared.query_tables(dataset, engine, where) as tables:
        from agent.fleet.questions.duplicates import find_duplicates as ask
        from agent.fleet.text.duplicates import page

        answer = ask(tables)
        shared.print_answer(answer, "duplicates", page, format_name, output, no_color)


def drift(
    since: Annotated[
        str, opt.shown_option("TIME|DURATION", "2026-01-15, 2026-01-15T08:00:00Z, or 24h, 7d before now.")
    ],
    dataset: shared.Dataset = None,
    engine: shared.EngineUrl = None,
    where: shared.WhereOption = None,
    form: shared.Form = None,
    output: opt.Output = None,
    no_color: opt.NoColor = False,
) -> None:
    """Changes since a point in time.

    Versions, settings, devices, findings, nodes.
    """
    format_name, moment = shared.choose_format(form, output), shared.parse_time(since)
    with shared.query_tables(dataset, engine, where) as tables:
        from agent.fleet.questions.drift import find_drift as ask
        from agent.fleet.text.drift import page

        answer = ask(tables, moment)
        shared.print_answer(answer, "changes", page, format_name, output, no_color)
