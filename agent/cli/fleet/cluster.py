"""Loads the cluster graph of `fleet topology` and `fleet cables`: fabric files and a dataset's reports."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli import options as opt
from agent.cli.errors import CliError, ErrorTranslation
from agent.cli.fleet.open_tables import open_engine, require_libraries
from agent.cli.stdin import notice_pipe

if TYPE_CHECKING:
    from agent.fleet.cluster.build import FabricFile
    from agent.fleet.cluster.graph import FabricGraph
    from agent.fleet.engines.engine import Tables
    from agent.fleet.lossless.cluster_links import SwitchOutputs

UNREAD_SHARE, UNREAD_LINES = 0.05, 10  # of a file: with more of its lines not understood it gives no topology
LIMIT_BYTES = 1 << 30  # of one file, unpacked: ten times the largest fabric there is

Fabric = Annotated[
    list[str] | None,
    opt.option("DIR|FILE", "Output of ibnetdiscover, iblinkinfo or ibdiagnet (- for stdin); may be repeated."),
]
Dataset = Annotated[
    str | None,
    opt.option("DIR|URL", "Dataset of `fleet ingest`: LLDP, adapters, NVLink domains.", envvar="FABRICSCOPE_DATASET"),
]
Switches = Annotated[
    list[str] | None,
    opt.option("DIR|FILE", "Saved outputs of Ethernet switches, as `fleet lossless` reads them; may be repeated."),
]
All = Annotated[bool, typer.Option("--all", help="Print whole lists.")]


def load_cluster(
    fabric: list[str] | None, dataset: str | None, engine: str | None, switches: list[str] | None = None
) -> FabricGraph:
    """Load the graph of fabric files, a dataset and outputs of switches. Raises CliError."""
    from agent.fleet.cluster.build import build
    from agent.fleet.cluster.from_dataset import read_identity_rows, rename_by_host
    from agent.fleet.engines import holds_tables

    reports_are_there = bool(dataset) or holds_tables(engine)
    if not fabric and not reports_are_there and not switches:
        raise CliError(
            "--fabric FILE (of ibnetdiscover, iblinkinfo or ibdiagnet), --switches DIR, --dataset DIR, or several of "
            "them are needed"
        )
    files = _read_fabric_files(fabric or [])
    if not reports_are_there:
        return build(files, None, _read_outputs(switches, None) if switches else None)
    require_libraries()
    with open_engine(dataset, engine) as reports:
        tables = rename_by_host(read_identity_rows(reports, beside_files=bool(files)))
        return build(files, tables, _read_outputs(switches, reports) if switches else None)


def _read_outputs(paths: list[str], reports: Tables | None) -> SwitchOutputs:
    """Outputs of switches beside the hosts' ports. Raises CliError, EngineRefused."""
    from agent.cli.fleet.switches import read_host_ports, read_switches
    from agent.fleet.collection import without_collection
    from agent.fleet.lossless.cluster_links import SwitchOutputs

    with without_collection():
        found = read_switches(paths)
        return SwitchOutputs(found.switches, read_host_ports(reports) if reports is not None else None, found.problems)


def load_cluster_with_reports(fabric: list[str], reports: Tables, outputs: SwitchOutputs | None = None) -> FabricGraph:
    """The graph of fabric files, outputs of switches and an open dataset, its nodes as there.

    Raises CliError, EngineRefused.
    """
    from agent.fleet.cluster.build import build
    from agent.fleet.cluster.from_dataset import read_identity_rows

    files = _read_fabric_files(fabric)
    return build(files, read_identity_rows(reports, beside_files=bool(files)), outputs)


def _read_fabric_files(names: list[str]) -> list[FabricFile]:
    """The files that are named, and all in the folders that are, but for links there. Raises CliError."""
    files: list[FabricFile] = []
    for name in names:
        if not os.path.isdir(name):
            files.append(_read_fabric_file(name))
            continue
        with ErrorTranslation(OSError, about=name):
            entries = [entry for entry in os.scandir(name) if entry.is_file(follow_symlinks=False)]
        members = sorted(entry.path for entry in entries if not entry.name.startswith("."))
        if not members:
            raise CliError(f"{name}: the folder has no file")
        files += [_read_fabric_file(member) for member in members]
    return files


def _read_fabric_file(name: str) -> FabricFile:
    from agent.fleet.cluster.build import FabricFile, read_generated_date
    from probes.fabric.files import read_fabric

    label = "stdin" if name == "-" else name
    with notice_pipe(name):
        text = _unpack(read_bounded(name), label).decode("utf-8", "replace")
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


def read_bounded(name: str, limit: int = LIMIT_BYTES) -> bytes:
    """A file, or stdin for "-". Raises CliError, also for more than `limit` bytes: of a file that states its size
    nothing is read then."""
    label = "stdin" if name == "-" else name
    with ErrorTranslation(OSError, about=label):
        if name == "-":
            data = sys.stdin.buffer.read(limit + 1)
        else:
            from probes.planted import PathUse, follow_links

            follow_links(name, PathUse.READ)
            with open(name, "rb") as file:
                data = file.read(limit + 1) if os.fstat(file.fileno()).st_size <= limit else None
    if data is None or len(data) > limit:
        raise CliError(f"{label}: larger than {limit >> 20} MiB")
    return data


def _unpack(data: bytes, label: str) -> bytes:
    """Without compression. Raises CliError."""
    from probes.compression import DamagedData, decompress  # lazy: --help reads nothing

    with ErrorTranslation(DamagedData, about=label):
        unpacked = decompress(data, LIMIT_BYTES + 1)
    if len(unpacked) > LIMIT_BYTES:
        raise CliError(f"{label}: larger than {LIMIT_BYTES >> 20} MiB")
    return unpacked
