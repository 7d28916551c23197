"""Asks a question of the fleet and prints its answer, by the values of a command's options (questions.py beside it).

No typer here: to import it takes a quarter as long as a question of a small fleet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from agent.cli.fleet.open_tables import (
    choose_format,
    parse_duration,
    parse_time,
    print_answer,
    query_tables,
    read_silences,
    utc_now,
)

Values = Mapping[str, Any]


def show_summary(values: Values) -> None:
    """See `summary`. Raises CliError."""
    form, seconds = _choose_format(values), parse_duration(values["stale_after"])
    with query_tables(values["dataset"], values["engine"], values["where"]) as tables:
        from agent.fleet.questions.options import Options
        from agent.fleet.questions.summary import build_summary
        from agent.fleet.text.summary import page

        answer = build_summary(tables, Options(stale_after_seconds=seconds, now=utc_now()))
        print_answer(answer, "classes", page, form, values["output"], values["no_color"])


def show_outliers(values: Values) -> None:
    """See `outliers`. Raises CliError."""
    form = _choose_format(values)
    with query_tables(values["dataset"], values["engine"], values["where"]) as tables:
        from agent.fleet.questions.options import Options
        from agent.fleet.questions.outliers import find_outliers
        from agent.fleet.text.outliers import page

        options = Options(majority=values["majority"], fewest=values["fewest"], now=utc_now())
        print_answer(find_outliers(tables, options), "outliers", page, form, values["output"], values["no_color"])


def show_findings(values: Values) -> None:
    """See `findings`. Raises CliError."""
    from agent.fleet.lossless.fault import switch_rules
    from agent.rules.catalogue import names

    form, name, where = _choose_format(values), values["name"], values["where"]
    rule = name if name in names() or name in switch_rules() else None
    if name and not rule:
        where = [*(where or []), f"nodes={name}"]
    with query_tables(values["dataset"], values["engine"], where, read_silences(values["silences"])) as tables:
        from agent.fleet.questions.findings import find_findings
        from agent.fleet.questions.options import Options
        from agent.fleet.text.findings import page

        answer = find_findings(tables, Options(now=utc_now()))
        if rule:
            import msgspec

            groups = [group for group in answer.findings if group.rule == rule]
            answer = msgspec.structs.replace(answer, findings=groups, lost=None)
        page_of = partial(page, detail=bool(name))
        print_answer(answer, "findings", page_of, form, values["output"], values["no_color"])


def show_duplicates(values: Values) -> None:
    """See `duplicates`. Raises CliError."""
    form = _choose_format(values)
    with query_tables(values["dataset"], values["engine"], values["where"]) as tables:
        from agent.fleet.questions.duplicates import find_duplicates
        from agent.fleet.text.duplicates import page

        print_answer(find_duplicates(tables), "duplicates", page, form, values["output"], values["no_color"])


def show_drift(values: Values) -> None:
    """See `drift`. Raises CliError."""
    form, moment = _choose_format(values), parse_time(values["since"])
    with query_tables(values["dataset"], values["engine"], values["where"]) as tables:
        from agent.fleet.questions.drift import find_drift
        from agent.fleet.text.drift import page

        print_answer(find_drift(tables, moment), "changes", page, form, values["output"], values["no_color"])


PLAIN: Mapping[str, Callable[[Values], None]] = {  # by command; those of agent/cli/plain.py
    "fleet summary": show_summary,
    "fleet findings": show_findings,
    "fleet outliers": show_outliers,
    "fleet duplicates": show_duplicates,
}


def _choose_format(values: Values) -> str:
    return choose_format(values["form"], values["output"])
