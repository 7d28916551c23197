"""`fleet ingest`: options, a one-line summary and the exit code. The work is in agent/fleet/ingest."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from agent.cli import options as opt
from agent.cli.errors import CliError, ErrorTranslation, print_error, print_warning
from agent.cli.fleet.open_tables import require_libraries
from agent.cli.stdin import notice_pipe

if TYPE_CHECKING:
    from agent.fleet.ingest.run import Ingested

PRINTED_LINES = 5

NodeKeyOption = Annotated[
    str | None,
    opt.option("KEY", "Identity of a node: hostname (default), machine-id or serial. The first ingest fixes it."),
]


def ingest(
    sources: Annotated[
        list[str],
        opt.argument(
            "SOURCE...",
            "Reports: files, folders, tar archives, lines of JSON, - for stdin, URLs such as s3://BUCKET/PREFIX.",
        ),
    ],
    dataset: Annotated[
        str | None, opt.option("DIR|URL", "Folder or URL of the dataset.", envvar="FABRICSCOPE_DATASET")
    ] = None,
    cluster: Annotated[str | None, opt.option("NAME", "Cluster name, put before each node name.")] = None,
    node_key: NodeKeyOption = None,
    jobs: Annotated[
        int | None, opt.option("NUMBER", "Number of processes. Default: one per CPU.", min=1, max=256)
    ] = None,
    wait: Annotated[
        float, opt.shown_option("SECONDS", "Wait for another ingest that holds the dataset.", min=0)
    ] = 60.0,
    move: Annotated[str | None, opt.option("DIR", "Move files there after their reports are in the dataset.")] = None,
    move_limit: Annotated[
        int | None,
        opt.option("BYTES", "Largest size of received reports in that folder; the oldest are removed.", min=0),
    ] = None,
    move_days: Annotated[float | None, opt.option("DAYS", "Keep received reports there for DAYS.", min=0)] = None,
    quiet: opt.Quiet = False,
) -> None:
    """Load reports into a dataset.

    Reports that cannot be read are counted and kept in quarantine. Exit 1:
    nothing was taken.
    """
    require_libraries("pyarrow")
    from agent.fleet.dataset import NodeKey
    from agent.fleet.ingest.moving import Keep
    from agent.fleet.ingest.progress import progress
    from agent.fleet.ingest.run import IngestOptions
    from agent.fleet.ingest.run import ingest as do
    from agent.fleet.ingest.sources import UnreadableSource
    from agent.fleet.ingest.worker_pool import WorkerLost

    if not dataset:
        raise CliError("--dataset is missing: a folder, or a URL such as s3://BUCKET/PREFIX")
    if cluster is not None and (
        not cluster.strip() or not cluster.isprintable() or "/" in cluster or len(cluster) > 64
    ):
        raise CliError(f"--cluster {cluster!r:.80}: expected a name of up to 64 characters without a slash")
    if move is None and (move_limit is not None or move_days is not None):
        raise CliError("--move-limit and --move-days need --move")
    key = next((get_arg for get_arg in get_args(NodeKey) if get_arg == node_key), None)
    if node_key is not None and key is None:
        raise CliError(f"--node-key {node_key!r:.80}: expected hostname, machine-id or serial")
    count = jobs or len(os.sched_getaffinity(0))
    request = IngestOptions(
        sources=sources,
        dataset=dataset,
        cluster=cluster,
        node_key=key,
        jobs=count,
        wait_seconds=wait,
        move=move,
        keep=Keep(move_limit, move_days),
    )
    refused = ErrorTranslation(UnreadableSource, WorkerLost)
    waiting, drawing = notice_pipe(*sources), progress(sys.stderr, quiet)
    with translate_write_errors(dataset), refused, waiting as arrived, drawing as tell:

        def show(stage: str, done: int) -> None:
            arrived()
            tell(stage, done)

        result = do(request, show)
    _print_summary(result, dataset, quiet)
    if result.nodes == 0 or (result.read and not result.fresh and not result.repeated):
        print_error(_describe_nothing(result), "reports are what `fabricscope scan --format json` prints")
        raise typer.Exit(1)


@contextmanager
def translate_write_errors(dataset: str) -> Iterator[None]:
    """Errors of writing a dataset; the failed file may have no name or an internal one. Raises CliError."""
    from agent.fleet.dataset import BadDataset
    from agent.fleet.store import hide_secrets

    try:
        with ErrorTranslation(BadDataset):
            yield
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else error.strerror or str(error)[:200]
        raise CliError(f"{hide_secrets(dataset)}: cannot be written: {why}; it is as it was") from error


def _describe_nothing(result: Ingested) -> str:
    """Why no report was taken."""
    if result.refused:
        return f"nothing was taken: {result.quarantined:,} of {result.read:,} are not reports; {result.refused}"[:500]
    return "nothing was taken: no file was read" if result.read else "nothing was taken: there is no report"


def _troubles(result: Ingested) -> Iterator[tuple[list[str], str]]:
    yield result.vanished, "gone before they were read"
    yield result.unread, "not to be read"
    yield result.unmoved, "not moved"


def _print_summary(result: Ingested, dataset: str, quiet: bool) -> None:
    from agent.fleet.store import hide_secrets

    for lines, what in _troubles(result):
        for line in lines[:PRINTED_LINES]:
            print_warning(line)
        if len(lines) > PRINTED_LINES:
            print_warning(f"and {len(lines) - PRINTED_LINES} more {what}")
    if quiet or not result.nodes:
        return
    late = f"{result.late:,} late" if result.late else ""
    if result.unjudged:
        late = f"{late}, counters of {result.unjudged:,} not compared: no earlier report in this run"
    parts = [f"{result.fresh:,} new{f' ({late})' if late else ''}", f"{result.repeated:,} known"]
    if result.quarantined:
        parts.append(f"{result.quarantined:,} in quarantine (quarantine/reasons.ndjson says why)")
    if result.moved:
        parts.append(f"{result.moved:,} file{'s'[: result.moved != 1]} moved")
    if result.vanished or result.unread:
        parts.append(f"{len(result.vanished) + len(result.unread):,} not read")
    reports = f"{result.read:,} report{'s'[: result.read != 1]}"
    print(f"{reports}: {', '.join(parts)}; {result.nodes:,} node{'s'[: result.nodes != 1]} in {hide_secrets(dataset)}")
