"""Loads the cluster graph of `fleet topology` and `fleet cables`: fabric files and a dataset's reports."""

from __future__ import annotations

import gzip
import sys
import zlib
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.errors import CliError
from agent.cli.fleet.options import open_engine, require_libraries

if TYPE_CHECKING:
    from agent.fleet.cluster.build import FabricFile
    from agent.fleet.cluster.graph import FabricGraph
    from agent.fleet.engines.engine import Tables

UNREAD_SHARE, UNREAD_LINES = 0.05, 10  # of a file: with more of its lines not understood it gives no topology
LIMIT_BYTES = 1 << 30  # of one file, unpacked: ten times the largest fabric there is

Fabric = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE",
        help="Output of ibnetdiscover, iblinkinfo or ibdiagnet (- for stdin); may be repeated.",
        show_default=False,
    ),
]
Dataset = Annotated[
    str | None,
    typer.Option(
        metavar="DIR|URL",
        help="Dataset of `fleet ingest`: LLDP, adapters, NVLink domains.",
        envvar="FABRICSCOPE_DATASET",
        show_default=False,
    ),
]
All = Annotated[bool, typer.Option("--all", help="Print whole lists.")]


def load_cluster(fabric: list[str] | None, dataset: str | None, engine: str | None) -> FabricGraph:
    """Load the graph of fabric files and a dataset. Raises CliError."""
    from agent.fleet.cluster.build import build
    from agent.fleet.cluster.from_dataset import read_identity_rows, rename_by_host
    from agent.fleet.engines import holds_tables

    reports_are_there = bool(dataset) or holds_tables(engine)
    if not fabric and not reports_are_there:
        raise CliError("--fabric FILE (of ibnetdiscover, iblinkinfo or ibdiagnet), --dataset DIR, or both are needed")
    files = [_read_fabric_file(name) for name in fabric or ()]
    if not reports_are_there:
        return build(files, None)
    require_libraries()
    with open_engine(dataset, engine) as reports:
        return build(files, rename_by_host(read_identity_rows(reports, beside_files=bool(files))))


def load_cluster_with_reports(fabric: list[str], reports: Tables) -> FabricGraph:
    """The graph of fabric files and of an open dataset, its nodes as there. Raises CliError, EngineRefused."""
    from agent.fleet.cluster.build import build
    from agent.fleet.cluster.from_dataset import read_identity_rows

    return build([_read_fabric_file(name) for name in fabric], read_identity_rows(reports, beside_files=True))


def _read_fabric_file(name: str) -> FabricFile:
    from agent.fleet.cluster.build import FabricFile, read_generated_date
    from probes.fabric.files import read_fabric

    data = _read_bytes(name)
    text = data.decode("utf-8", "replace")
    label = "stdin" if name == "-" else name
    fabric = read_fabric(text, label)
    if not fabric.nodes and not fabric.links:
        raise CliError(fabric.problems[0] if fabric.problems else f"{label}: contains no switch and no adapter")
    lines = text.count("\n") + 1
    if fabric.unread > max(UNREAD_LINES, UNREAD_SHARE * lines):
        raise CliError(
            f"{label}: {fabric.unread:,} of {lines:,} lines are not understood as {fabric.format_name}, "
            f"too many for a topology; the first: {fabric.problems[0].removeprefix(f'{label}, ')}",
            "save the tool's output as it is: an editor, a chat or a table may have changed its blanks",
        )
    return FabricFile(label, fabric, read_generated_date(text))


def _read_bytes(name: str) -> bytes:
    try:
        if name == "-":
            data = sys.stdin.buffer.read(LIMIT_BYTES + 1)
        else:
            with open(name, "rb") as file:
                data = file.read(LIMIT_BYTES + 1)
        if data[:2] == b"\x1f\x8b" and len(data) <= LIMIT_BYTES:
            import io

            with gzip.open(io.BytesIO(data)) as packed:
                data = packed.read(LIMIT_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise CliError(f"{name}: {getattr(error, 'strerror', None) or error}") from error
    if len(data) > LIMIT_BYTES:
        raise CliError(f"{name}: larger than {LIMIT_BYTES >> 20} MiB")
    return data
