"""`fleet news`: what is new since a moment or since the last run, for people, scripts and webhooks; `fleet repeat`:
parts that fail again and again."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from agent.cli import options as opt
from agent.cli.errors import CliError, ErrorTranslation, print_warning
from agent.cli.fleet import open_tables
from agent.cli.fleet import options as shared
from agent.cli.output import deliver, write_answer

if TYPE_CHECKING:
    from agent.fleet.engines.engine import Tables
    from agent.fleet.episodes.finding_changes import News, NewsState
    from agent.fleet.episodes.silences import Silences
    from agent.fleet.questions.options import Options

_POST_SECONDS = 10.0
_STATE_LIMIT = 1 << 28

NewsFormat = Literal["text", "json", "slack", "webhook"]
Severity = Literal["info", "warning", "error", "critical"]

LeastSeverity = Annotated[Severity, typer.Option("--severity", help="Lowest severity that counts.")]


def news(
    since: Annotated[str | None, opt.option("TIME|DURATION", "2026-01-15T08:00:00Z, or 24h, 7d before now.")] = None,
    since_last: Annotated[bool, typer.Option("--since-last", help="Since the last run with the same --state.")] = False,
    state: Annotated[str | None, opt.option("FILE", "State of --since-last, kept from run to run.")] = None,
    dataset: shared.Dataset = None,
    engine: shared.EngineUrl = None,
    where: shared.WhereOption = None,
    severity: LeastSeverity = "warning",
    silences: shared.SilencesOption = None,
    stale_after: shared.StaleAfter = "24h",
    form: Annotated[NewsFormat, typer.Option("--format", help="slack, webhook: the body of a request.")] = "text",
    post: Annotated[
        str | None,
        opt.option("URL", "Send the body to URL (slack, webhook) if something is new.", envvar="FABRICSCOPE_WEBHOOK"),
    ] = None,
    output: opt.Output = None,
    no_color: opt.NoColor = False,
) -> None:
    """New, recurring, worse, flapping and gone findings.

    Exit 1: something is new.
    """
    if (since is None) == (not since_last):
        raise CliError("either --since TIME or --since-last is needed")
    if since_last != (state is not None):
        raise CliError("--since-last needs --state FILE" if since_last else "--state is for --since-last only")
    if post is not None and form not in ("slack", "webhook"):
        raise CliError("--post needs --format slack or webhook")
    moment = open_tables.parse_time(since) if since is not None else None
    seconds, silenced = open_tables.parse_duration(stale_after), open_tables.read_silences(silences)
    with open_tables.query_tables(dataset, engine, where) as tables:
        from agent.fleet.episodes.finding_changes import news_since
        from agent.fleet.questions.options import Options

        options = Options(stale_after_seconds=seconds, now=open_tables.utc_now())
        if moment is not None:
            answer, left = news_since(tables, moment, options, severity, silenced), None
        else:
            assert state is not None
            answer, left = _compare_with_last(tables, state, options, severity, silenced)
    _print(answer, form, output, no_color)
    if post is not None and answer.items:
        _post(post, _body(answer, form))
    if left is not None and state is not None:
        import msgspec

        from agent.reports import replace_file

        with ErrorTranslation(OSError, about=state):
            replace_file(state, msgspec.json.encode(left) + b"\n")
    if answer.alarming:
        raise typer.Exit(1)


def _compare_with_last(
    tables: Tables, path: str, options: Options, least: str, silences: Silences
) -> tuple[News, NewsState]:
    """With what the last run left; the first run makes the baseline. Raises CliError."""
    from agent.fleet.episodes.finding_changes import News, news_since_last, state_of

    last = _read_state(path)
    if last is not None:
        return news_since_last(tables, last, options, least, silences)
    first = state_of(tables, options, least)
    print_warning(f"{path}: first run, {len(first.findings):,} open findings are the baseline")
    return News(since=first.written_at, newest=None, open=len(first.findings)), first


def _read_state(path: str) -> NewsState | None:
    import msgspec

    from agent.fleet.episodes.finding_changes import STATE_FORMAT, NewsState
    from probes.planted import PathUse, follow_links

    try:
        place = follow_links(path, PathUse.REPLACE)
        if os.path.exists(place) and not (os.path.isfile(place) or os.path.isdir(place)):
            raise CliError(f"{path}: is there, and is no file")
        with open(path, "rb") as file:
            data = file.read(_STATE_LIMIT)
        state = msgspec.json.decode(data, type=NewsState)
        if state.format != STATE_FORMAT:
            raise CliError(f"{path}: its format is {state.format!r:.40}; expected {STATE_FORMAT}")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CliError(f"{error.filename or path}: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CliError(f"{path}: not a state of fleet news, or damaged: {error}", "remove it to begin again") from error
    return state


def _body(answer: News, form: NewsFormat) -> bytes:
    import msgspec

    from agent.fleet.text.news import slack, webhook

    payload: Any = slack(answer) if form == "slack" else webhook(answer)
    return msgspec.json.encode(payload)


def _print(answer: News, form: NewsFormat, output: str | None, no_color: bool) -> None:
    from agent.fleet.text.news import page

    if form in ("slack", "webhook"):
        deliver(_body(answer, form) + b"\n", output)
    else:
        write_answer(answer, form, page, output, no_color)


def _post(url: str, body: bytes) -> None:
    """Send a body; the URL may hold a secret and is not printed. Raises CliError."""
    import urllib3

    from probes.time_limit import TimeIsUp, TimeLimit

    host = "the URL"
    try:
        target = urllib3.util.parse_url(url)
        if target.scheme not in ("http", "https") or not target.host:
            raise CliError("--post: expected a URL with http or https")
        host = target.host
        with TimeLimit(time.monotonic() + _POST_SECONDS):  # that of a socket begins again with every byte
            answer = urllib3.PoolManager().request(
                "POST", url, body=body, headers={"Content-Type": "application/json"},
                timeout=_POST_SECONDS, retries=False, redirect=False, preload_content=False,
            )  # fmt: skip
            answer.close()  # its status is enough
    except TimeIsUp as error:
        raise CliError(f"--post: {host}: not sent: no answer in {_POST_SECONDS:g} s") from error
    except urllib3.exceptions.HTTPError as error:
        raise CliError(f"--post: {host}: not sent: {type(error).__name__}") from error
    if answer.status >= 300:
        raise CliError(f"--post: {host}: not accepted: status {answer.status}")


def repeat(
    since: Annotated[str, opt.shown_option("TIME|DURATION", "2026-01-15, or 24h, 30d before now.")] = "30d",
    times: Annotated[int, opt.shown_option("COUNT", "Fewest episodes of a part.", min=2)] = 2,
    dataset: shared.Dataset = None,
    engine: shared.EngineUrl = None,
    where: shared.WhereOption = None,
    severity: LeastSeverity = "warning",
    silences: shared.SilencesOption = None,
    form: shared.Form = None,
    output: opt.Output = None,
    no_color: opt.NoColor = False,
) -> None:
    """Parts with repeated findings.

    With serial numbers, for an RMA: --format csv.
    """
    format_name, moment = open_tables.choose_format(form, output), open_tables.parse_time(since)
    silenced = open_tables.read_silences(silences)
    with open_tables.query_tables(dataset, engine, where) as tables:
        from agent.fleet.episodes.repeat import repeats
        from agent.fleet.text.news import repeat_page

        answer = repeats(tables, moment, open_tables.utc_now(), times, severity, silenced)
        open_tables.print_answer(answer, "offenders", repeat_page, format_name, output, no_color)
