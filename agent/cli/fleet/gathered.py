"""What `fleet topology` and `fleet cables` look at: fabric files and a dataset's reports as one graph."""

from __future__ import annotations

import gzip
import sys
import zlib
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.fleet.asked import opened
from agent.cli.fleet.needed import fleet_libraries
from agent.cli.refused import Refused

if TYPE_CHECKING:
    from agent.fleet.cluster.build import FabricFile
    from agent.fleet.cluster.graph import Cluster
    from agent.fleet.engines.engine import Tables

LIMIT_BYTES = 1 << 30  # of one file, unpacked: ten times the largest fabric there is

Fabric = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE",
        help="What ibnetdiscover, iblinkinfo or ibdiagnet wrote (or - for stdin); may be given several times.",
        show_default=False,
    ),
]
Dataset = Annotated[
    str | None,
    typer.Option(
        metavar="DIR|URL",
        help="Reports of the nodes, as ingest keeps them: LLDP, adapters, NVLink domains.",
        envvar="FABRICSCOPE_DATASET",
        show_default=False,
    ),
]
All = Annotated[bool, typer.Option("--all", help="Cut no list.")]


def gathered(fabric: list[str] | None, dataset: str | None, engine: str | None) -> Cluster:
    """The graph. Raises Refused."""
    from agent.fleet.cluster.build import build
    from agent.fleet.engines import holds_tables

    reports_are_there = bool(dataset) or holds_tables(engine)
    if not fabric and not reports_are_there:
        raise Refused("give --fabric FILE (of ibnetdiscover, iblinkinfo or ibdiagnet), --dataset DIR, or both")
    files = [_read(name) for name in fabric or ()]
    if not reports_are_there:
        return build(files, None)
    fleet_libraries()
    with opened(dataset, engine) as reports:
        return _joined(files, reports)


def joined(fabric: list[str], reports: Tables) -> Cluster:
    """The graph of fabric files and of an opened dataset. Raises Refused, EngineRefused."""
    return _joined([_read(name) for name in fabric], reports)


def _joined(files: list[FabricFile], reports: Tables) -> Cluster:
    from agent.fleet.cluster.build import build
    from agent.fleet.cluster_rows import telling

    return build(files, telling(reports, beside_files=bool(files)))


def _read(name: str) -> FabricFile:
    from agent.fleet.cluster.build import FabricFile, generated
    from probes.fabric.topology import read_fabric

    data = _bytes(name)
    text = data.decode("utf-8", "replace")
    shown = "stdin" if name == "-" else name
    fabric = read_fabric(text, shown)
    if not fabric.nodes and not fabric.links:
        raise Refused(fabric.problems[0] if fabric.problems else f"{shown}: there is no switch and no adapter in it")
    return FabricFile(shown, fabric, generated(text))


def _bytes(name: str) -> bytes:
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
        raise Refused(f"{name}: {getattr(error, 'strerror', None) or error}") from error
    if len(data) > LIMIT_BYTES:
        raise Refused(f"{name}: larger than {LIMIT_BYTES >> 20} MiB")
    return data
