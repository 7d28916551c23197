"""`fleet lossless`: whether RoCE is lossless from host to host, hop by hop."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.cli import options as opt
from agent.cli.errors import CliError
from agent.cli.fleet.cables import Plan, read_plan_file
from agent.cli.fleet.cluster import All, Dataset
from agent.cli.fleet.options import EngineUrl, Form, choose_format
from agent.cli.output import deliver, show
from agent.fleet.collection import without_collection

if TYPE_CHECKING:
    from agent.fleet.lossless.answer import LosslessAnswer
    from agent.fleet.lossless.hop import HostPort
    from probes.switches.collection import Collection


Switches = Annotated[
    list[str] | None,
    typer.Option(
        metavar="DIR|FILE",
        help="Saved outputs of switches: a folder for each, a tar, or normalized JSON lines; may be repeated.",
        show_default=False,
    ),
]
Before = Annotated[
    list[str] | None,
    typer.Option(
        metavar="DIR|FILE",
        help="An earlier collection of the same switches: counters are compared with it.",
        show_default=False,
    ),
]
ReportFile = Annotated[
    str | None,
    typer.Option("--report", metavar="FILE", help="Report of one host, in place of a dataset.", show_default=False),
]
Dscp = Annotated[
    int | None,
    typer.Option(
        min=0, max=63, help="DSCP of the RDMA packets. Default: what hosts mark, else 26.", show_default=False
    ),
]
Recipe = Annotated[
    str | None,
    typer.Option(
        metavar="NOS",
        help="Print the read-only commands to save on a switch: sonic, sonic-enterprise or cumulus.",
        show_default=False,
    ),
]


def lossless(
    switches: Switches = None,
    before: Before = None,
    dataset: Dataset = None,
    engine: EngineUrl = None,
    report: ReportFile = None,
    plan: Plan = None,
    dscp: Dscp = None,
    recipe: Recipe = None,
    form: Form = None,
    everything: All = False,
    output: opt.Output = None,
    no_color: opt.NoColor = False,
) -> None:
    """Check that RoCE is lossless from host to host.

    Joins saved outputs of switches with hosts' reports, and judges every hop. Nothing logs in to a switch.
    """
    from agent.fleet.lossless.answer import Inputs, judge

    if recipe is not None:
        _print_recipe(recipe, output)
        return
    format_name = choose_format(form, output)
    if not switches:
        raise CliError(
            "--switches DIR is needed: a folder of saved outputs for each switch", "--recipe NOS lists what to save"
        )
    if report is not None and dataset is not None and "FABRICSCOPE_DATASET" not in os.environ:
        raise CliError("--report and --dataset are two sources of hosts: give one of them")
    with without_collection():
        now = _read(switches)
        if not now.switches:
            reason = now.problems[0] if now.problems else f"{switches[0]}: contains no file"
            raise CliError(f"no output of a switch could be read: {reason}")
        earlier = _read(before) if before else None
        planned = read_plan_file(plan) if plan is not None else []
        hosts, from_dataset = _read_hosts(dataset, engine, report)
        answer = judge(
            Inputs(
                now.switches,
                earlier.switches if earlier else {},
                hosts,
                planned,
                [*now.problems, *(earlier.problems if earlier else [])],
                dscp,
                only_known_hosts=from_dataset,
            )
        )
    if format_name == "json":
        import msgspec

        deliver(msgspec.json.format(msgspec.json.encode(answer)) + b"\n", output)
    elif format_name == "csv":
        deliver(_format_csv(answer).encode("utf-8", "replace"), output)
    else:
        from agent.fleet.lossless.text import page

        show(lambda width: page(answer, width, everything), output, no_color)


def _print_recipe(system: str, output: str | None) -> None:
    """Raises CliError."""
    from probes.switches.recipe import RECIPES, format_recipe

    if system not in RECIPES:
        raise CliError(
            f"--recipe {system!r:.40}: expected {', '.join(RECIPES)}",
            "of all other systems normalized JSON lines are read: docs/fleet-lossless.md",
        )
    deliver(format_recipe(system).encode(), output, public=True)


def _read(paths: list[str]) -> Collection:
    """Raises CliError."""
    from probes.switches.collection import UnreadableCollection, read_collection

    try:
        return read_collection(paths)
    except UnreadableCollection as error:
        raise CliError(str(error)) from error


def _read_hosts(dataset: str | None, engine: str | None, report: str | None) -> tuple[list[HostPort], bool]:
    """Ports of hosts, and whether they are all that there are. Raises CliError."""
    from agent.fleet.lossless.host_ports import DATASET_COLUMNS, read_dataset_ports, read_report_ports

    if report is not None:
        from agent.cli.job import read_one

        return read_report_ports(read_one(report)), False
    from agent.fleet.engines import holds_tables

    if not dataset and not holds_tables(engine):
        return [], False
    from agent.cli.fleet.options import open_engine, require_libraries
    from agent.fleet.engines.query import table_query

    require_libraries()
    rows: dict[str, list[dict[str, Any]]] = {}
    with open_engine(dataset, engine) as tables:
        for table, columns in DATASET_COLUMNS.items():
            rows[table] = [
                dict(zip(columns, row, strict=True)) for row in tables.many_rows(table_query(table, list(columns)))
            ]
    return read_dataset_ports(rows), True


def _format_csv(answer: LosslessAnswer) -> str:
    """One row per hop."""
    from agent.fleet.text.tables import format_sheet

    names = ("verdict", "a", "a_port", "a_priority", "a_pfc", "b", "b_port", "b_priority", "b_pfc", "metres_plan",
             "told_by", "reason", "settle", "findings")  # fmt: skip
    rows = []
    for hop in answer.hops:
        ends: list[str] = []
        for end in (hop.a, hop.b):
            pfc = "" if end.pfc is None else " ".join(map(str, end.pfc)) or "none"
            ends += [end.node, end.port, "" if end.priority is None else str(end.priority), pfc]
        metres = "" if hop.metres_plan is None else f"{hop.metres_plan:g}"
        rows.append([hop.verdict, *ends, metres, hop.told_by, hop.reason, hop.settle, " ".join(hop.findings)])
    return format_sheet(names, rows)
