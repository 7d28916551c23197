"""`fleet ingest`: options, one line of what was done, and the exit code. The work is in agent/fleet/ingest."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli import options as opt
from agent.cli.fleet.needed import fleet_libraries
from agent.cli.refused import Refused

if TYPE_CHECKING:
    from agent.fleet.ingest.run import Ingested

MOST_SAID = 5


def ingest(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...",
            help="Reports: files, folders, tar archives, lines of JSON, - for stdin, URLs such as s3://BUCKET/PREFIX.",
            show_default=False,
        ),
    ],
    dataset: Annotated[
        str | None,
        typer.Option(
            metavar="DIR|URL",
            help="Where the dataset is, or is to be.",
            envvar="FABRICSCOPE_DATASET",
            show_default=False,
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Put before every node, with a slash: names are unique.", show_default=False),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(metavar="NUMBER", help="Processes; else one a CPU.", min=1, max=256, show_default=False),
    ] = None,
    wait: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", help="For another ingest that holds the dataset.", min=0, callback=opt.a_number
        ),
    ] = 60.0,
    quiet: opt.Quiet = False,
) -> None:
    """Take reports into a dataset. Exit 0 also where some could not be taken: they are counted and in quarantine."""
    fleet_libraries("pyarrow")
    from agent.fleet.dataset import BadDataset
    from agent.fleet.ingest.progress import progress
    from agent.fleet.ingest.run import Asked
    from agent.fleet.ingest.run import ingest as do
    from agent.fleet.ingest.sources import BadSource
    from agent.fleet.ingest.workers import WorkerLost

    if not dataset:
        raise Refused("--dataset says where the dataset is: a folder, or a URL such as s3://BUCKET/PREFIX")
    if cluster is not None and (
        not cluster.strip() or not cluster.isprintable() or "/" in cluster or len(cluster) > 64
    ):
        raise Refused(f"--cluster {cluster!r:.80}: a name of up to 64 characters, without a slash")
    count = jobs or len(os.sched_getaffinity(0))
    asked = Asked(sources=sources, dataset=dataset, cluster=cluster, jobs=count, wait_seconds=wait)
    try:
        with progress(sys.stderr, quiet) as tell:
            made = do(asked, tell)
    except (BadSource, BadDataset, WorkerLost) as error:
        raise Refused(str(error)) from error
    except OSError as error:
        raise Refused(_of_dataset(error, dataset)) from error
    _tell(made, dataset, quiet)


def _of_dataset(error: OSError, dataset: str) -> str:
    """What a disk says of a file that is written, which may have no name or one of our own."""
    from agent.fleet.store import shown

    why = os.strerror(error.errno) if error.errno else error.strerror or str(error)[:200]
    return f"{shown(dataset)}: cannot be written: {why}; it is as it was"


def _tell(made: Ingested, dataset: str, quiet: bool) -> None:
    from agent.fleet.store import shown

    for lines, what in ((made.vanished, "gone before they were read"), (made.unread, "not to be read")):
        for line in lines[:MOST_SAID]:
            print(f"fabricscope: {line}"[:1000], file=sys.stderr)
        if len(lines) > MOST_SAID:
            print(f"fabricscope: and {len(lines) - MOST_SAID} more {what}", file=sys.stderr)
    if quiet:
        return
    parts = [f"{made.fresh:,} new{f' ({made.late:,} late)' if made.late else ''}", f"{made.repeated:,} known"]
    if made.quarantined:
        parts.append(f"{made.quarantined:,} in quarantine (quarantine/reasons.ndjson says why)")
    if made.vanished or made.unread:
        parts.append(f"{len(made.vanished) + len(made.unread):,} not read")
    reports = f"{made.read:,} report{'s'[: made.read != 1]}"
    print(f"{reports}: {', '.join(parts)}; {made.nodes:,} node{'s'[: made.nodes != 1]} in {shown(dataset)}")
