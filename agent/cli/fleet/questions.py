"""`fleet summary`, `outliers`, `findings`, `duplicates`, `drift`: run a query and print its result."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from agent.cli import options as opt
from agent.cli.errors import CliError
from agent.cli.fleet.options import (
    Dataset,
    EngineUrl,
    Form,
    SilencesOption,
    StaleAfter,
    WhereOption,
    choose_format,
    query_tables,
    read_silences,
)
from agent.cli.output import deliver_json, deliver_text, show

if TYPE_CHECKING:
    from agent.outputs.text.lines import Line

_DURATION = re.compile(r"([0-9]{1,6})(s|m|h|d|w)")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def summary(
    dataset: Dataset = None,
    engine: EngineUrl = None,
    where: WhereOption = None,
    stale_after: StaleAfter = "24h",
    form: Form = None,
    output: opt.Output = None,
    no_color: opt.NoColor = False,
) -> None:
    """Verdicts, coverage, stale and worst nodes."""
    format_name, seconds = choose_format(form, output), parse_duration(stale_after)
    with query_tables(dataset, engine, where) as tables:
        from agent.fleet.questions.options import Options
        from agent.fleet.questions.summary import build_summary as ask
        from agent.fleet.text.summary import page

        answer = ask(tables, Options(stale_after_seconds=seconds, now=utc_now()))
        print_answer(answer, "classes", page, format_name, output, no_color)


def outliers(
    dataset: Dataset = None,
    engine: EngineUrl = None,
    where: WhereOption = None,
    majority: Annotated[
        float, opt.number("SHARE", "Share of a class that makes a value its majority.", min=0.51, max=1.0)
    ] = 0.8,
    fewest: Annotated[int, opt.shown_option("COUNT", "Smallest class that is compared.", min=3)] = 5,
    form: Form = None,
    output: opt.Output = None,
    no_color: opt.NoColor = False,
) -> None:
    """Nodes that differ from their hardware class.

    Firmware, drivers, links, QoS, settings.
    """
    format_name = choose_format(form, output)
    with query_tables(dataset, engine, where) as tables:
        from agent.fleet.questions.options import Options
        from agent.fleet.questions.outliers import find_outliers as ask
        from agent.fleet.text.outliers import page

        answer = ask(tables, Options(majority=majority, fewest=fewest, now=utc_now()))
        print_answer(answer, "outliers", page, format_name, output, no_color)


def findings(
    name: Annotated[
        str | None, opt.argument("[RULE|NODES]", "Parts and steps: of this rule, or on these nodes.")
    ] = None,
    dataset: Dataset = None,
    engine: EngineUrl = None,
    where: WhereOption = None,
    silences: SilencesOption = None,
    form: Form = None,
    output: opt.Output = None,
    no_color: opt.NoColor = False,
) -> None:
    """Findings of all nodes, grouped by rule.

    A table; with RULE or NODES what each is about and what to do.
    """
    from agent.fleet.lossless.fault import switch_rules
    from agent.rules.catalogue import names

    format_name = choose_format(form, output)
    rule = name if name in names() or name in switch_rules() else None
    if name and not rule:
        where = [*(where or []), f"nodes={name}"]
    with query_tables(dataset, engine, where, read_silences(silences)) as tables:
        from agent.fleet.questions.findings import find_findings as ask
        from agent.fleet.questions.options import Options
        from agent.fleet.text.findings import page

        answer = ask(tables, Options(now=utc_now()))
        if rule:
            import msgspec

            groups = [group for group in answer.findings if group.rule == rule]
            answer = msgspec.structs.replace(answer, findings=groups, lost=None)
        print_answer(answer, "findings", partial(page, detail=bool(name)), format_name, output, no_color)


def duplicates(
    dataset: Dataset = None,
    engine: EngineUrl = None,
    where: WhereOption = None,
    form: Form = None,
    output: opt.Output = None,
    no_color: opt.NoColor = False,
) -> None:
    """Identifiers that appear on more than one node.

    GUIDs, serial numbers, machine ids, LIDs, addresses.
    """
    format_name = choose_format(form, output)
    with query_tables(dataset, engine, where) as tables:
        from agent.fleet.questions.duplicates import find_duplicates as ask
        from agent.fleet.text.duplicates import page

        answer = ask(tables)
        print_answer(answer, "duplicates", page, format_name, output, no_color)


def drift(
    since: Annotated[
        str, opt.shown_option("TIME|DURATION", "2026-01-15, 2026-01-15T08:00:00Z, or 24h, 7d before now.")
    ],
    dataset: Dataset = None,
    engine: EngineUrl = None,
    where: WhereOption = None,
    form: Form = None,
    output: opt.Output = None,
    no_color: opt.NoColor = False,
) -> None:
    """Changes since a point in time.

    Versions, settings, devices, findings, nodes.
    """
    format_name, moment = choose_format(form, output), parse_time(since)
    with query_tables(dataset, engine, where) as tables:
        from agent.fleet.questions.drift import find_drift as ask
        from agent.fleet.text.drift import page

        answer = ask(tables, moment)
        print_answer(answer, "changes", page, format_name, output, no_color)


def utc_now() -> datetime:
    """Now, UTC without a zone, as times of a dataset are."""
    return datetime.now(timezone.utc).replace(tzinfo=None)


def parse_duration(text: str) -> float:
    """Parse a duration such as "90m" to seconds. Raises CliError."""
    matched = _DURATION.fullmatch(text.strip())
    if not matched:
        raise CliError(f"{text!r:.60}: not a duration; expected a number with s, m, h, d or w, such as 24h")
    return float(int(matched[1]) * _UNITS[matched[2]])


def parse_time(text: str) -> datetime:
    """Parse a time, or a duration before now, to naive UTC. Raises CliError."""
    try:
        if _DURATION.fullmatch(text.strip()):
            moment = datetime.now(timezone.utc) - timedelta(seconds=parse_duration(text))
        else:
            moment = datetime.fromisoformat(text.strip().replace("Z", "+00:00").replace("z", "+00:00"))
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=timezone.utc)
        return moment.astimezone(timezone.utc).replace(tzinfo=None)
    except ValueError as error:
        raise CliError(f"{text!r:.60}: not a time; expected 2026-01-15, 2026-01-15T08:00:00Z or 24h") from error
    except OverflowError as error:
        raise CliError(f"{text!r:.60}: not a time of the years 1 to 9999") from error


def print_answer(
    answer: Any, rows: str, page: Callable[[Any, int], list[Line]], form: str, output: str | None, no_color: bool
) -> None:
    """Print an answer: its field `rows` is what CSV has."""
    if form == "text":
        show(lambda width: page(answer, width), output, no_color)
    elif form == "csv":
        from agent.fleet.text.tables import sheet

        deliver_text(sheet(answer, rows), output)
    else:
        deliver_json(answer, output)
