"""`fleet forget`: nodes that are scrapped or renamed, and old history."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer

from agent.cli import options as opt
from agent.cli.errors import CliError, ErrorTranslation, print_warning
from agent.cli.fleet.ingest import translate_write_errors
from agent.cli.fleet.open_tables import AMBIGUOUS_HINT, parse_duration, require_libraries, unfold_nodes


def forget(
    nodes: Annotated[str | None, opt.argument("[HOSTLIST]", "Nodes, as gpu[001-128].")] = None,
    dataset: Annotated[
        str | None, opt.option("DIR|URL", "Folder or URL of the dataset.", envvar="FABRICSCOPE_DATASET")
    ] = None,
    unseen: Annotated[str | None, opt.option("DURATION", "Nodes whose last report arrived longer ago: 30d.")] = None,
    history: Annotated[str | None, opt.option("DURATION", "Keep history this long: 400d.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be forgotten.")] = False,
    wait: Annotated[
        float, opt.shown_option("SECONDS", "Wait for another command that holds the dataset.", min=0)
    ] = 60.0,
    quiet: opt.Quiet = False,
) -> None:
    """Remove nodes or old history from a dataset.

    A node that reports again is back. Its history stays, unless it is too old.
    """
    if not dataset:
        raise CliError("--dataset is missing: a folder, or a URL such as s3://BUCKET/PREFIX")
    if nodes is None and unseen is None and history is None:
        raise CliError("nothing to forget: name nodes, or use --unseen DURATION or --history DURATION")
    names, spans = unfold_nodes(nodes, f"{nodes!r:.60}"), [_parse_span(text) for text in (unseen, history)]
    require_libraries("pyarrow")
    from agent.fleet.hostlist import AmbiguousName, fold
    from agent.fleet.ingest.forgetting import ForgetRequest
    from agent.fleet.ingest.forgetting import forget as do

    wanted = ForgetRequest(
        dataset=dataset, nodes=names, unseen=spans[0], history=spans[1], dry_run=dry_run, wait_seconds=wait
    )
    with translate_write_errors(dataset), ErrorTranslation(AmbiguousName, hint=AMBIGUOUS_HINT):
        result = do(wanted)
    if result.unknown:
        print_warning(f"not in the dataset: {fold(result.unknown)}")
    if quiet:
        return
    will = "would be forgotten" if dry_run else "forgotten"
    count = len(result.nodes)
    print(f"{count:,} node{'s'[: count != 1]} {will}{f': {fold(result.nodes)}' if count else ''}")
    if history is not None:
        print(f"{result.history_rows:,} rows of history {will}")


def _parse_span(text: str | None) -> timedelta | None:
    if text is None:
        return None
    try:
        return timedelta(seconds=parse_duration(text))
    except OverflowError as error:
        raise CliError(f"{text!r:.60}: too long") from error
