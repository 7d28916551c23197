"""`fleet lossless`: whether RoCE is lossless from host to host, hop by hop."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from agent.cli import options as opt
from agent.cli.errors import CliError, ErrorTranslation
from agent.cli.fleet.cables import Plan, read_plan_file
from agent.cli.fleet.cluster import All, Dataset
from agent.cli.fleet.ingest import translate_write_errors
from agent.cli.fleet.open_tables import choose_format, open_engine, require_libraries
from agent.cli.fleet.options import EngineUrl
from agent.cli.fleet.switches import read_collected, read_host_ports, read_switches
from agent.cli.output import deliver_text, write_answer
from agent.fleet.collection import without_collection

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agent.fleet.engines.engine import Tables
    from agent.fleet.lossless.answer import LosslessAnswer
    from agent.fleet.lossless.hop import HostPort
    from probes.switches.facts import SwitchFacts

LosslessFormat = Literal["text", "json", "csv", "svg"]

Form = Annotated[
    LosslessFormat | None,
    typer.Option("--format", help="text (default), or by the suffix of --output.", show_default=False),
]
Switches = Annotated[
    list[str] | None,
    opt.option(
        "DIR|FILE", "Saved outputs of switches: a folder for each, a tar, or normalized JSON lines; may be repeated."
    ),
]
Before = Annotated[
    list[str] | None,
    opt.option("DIR|FILE", "An earlier collection of the same switches: counters are compared with it."),
]
ReportFile = Annotated[str | None, opt.option("FILE", "Report of one host, in place of a dataset.", "--report")]
Dscp = Annotated[
    int | None, opt.option("NUMBER", "DSCP of the RDMA packets. Default: what hosts mark, else 26.", min=0, max=63)
]
Recipe = Annotated[
    str | None,
    opt.option("NOS", "Print the read-only commands to save on a switch: sonic, sonic-enterprise or cumulus."),
]
Store = Annotated[
    bool, typer.Option("--store", help="Store switches, hops and findings in the dataset, for its other questions.")
]


def lossless(
    switches: Switches = None,
    before: Before = None,
    dataset: Dataset = None,
    engine: EngineUrl = None,
    report: ReportFile = None,
    plan: Plan = None,
    dscp: Dscp = None,
    store: Store = False,
    recipe: Recipe = None,
    form: Form = None,
    everything: All = False,
    output: opt.Output = None,
    no_color: opt.NoColor = False,
) -> None:
    """Check that RoCE is lossless from host to host.

    Joins saved outputs of switches with hosts' reports, and judges every hop. Nothing logs in to a switch. Without
    --switches: what --store stored.
    """
    from agent.fleet.lossless.answer import Inputs, judge
    from agent.fleet.lossless.host_ports import choose_marking

    if recipe is not None:
        _print_recipe(recipe, output)
        return
    format_name = form or ("svg" if (output or "").lower().endswith(".svg") else choose_format(None, output))
    if not switches:
        stored = None if before or report or plan or store or dscp is not None else _read_stored(dataset, engine)
        if stored is None:
            raise CliError(
                "--switches DIR is needed: a folder of saved outputs for each switch", "--recipe NOS lists what to save"
            )
        _deliver(stored, format_name, everything, output, no_color)
        return
    if report is not None and dataset is not None and "FABRICSCOPE_DATASET" not in os.environ:
        raise CliError("--report and --dataset are two sources of hosts: give one of them")
    if store and (not dataset or engine is not None or report is not None):
        raise CliError("--store needs --dataset, and neither --engine nor --report")
    with without_collection():
        hosts, from_dataset = _read_hosts(dataset, engine, report, store)
        kept = choose_marking(dscp, hosts).dscp
        now = read_switches(switches, kept)
        earlier = read_collected(before, kept) if before else None
        planned = read_plan_file(plan) if plan is not None else []
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
        if store and dataset:
            _store_switches(dataset, now.switches, answer)
    _deliver(answer, format_name, everything, output, no_color)


def _deliver(answer: LosslessAnswer, format_name: str, everything: bool, output: str | None, no_color: bool) -> None:
    from agent.fleet.lossless.picture import draw_hops
    from agent.fleet.lossless.text import page

    write_answer(
        answer, format_name, partial(page, every=everything), output, no_color,
        csv=lambda: _format_csv(answer), svg=lambda: draw_hops(answer),
    )  # fmt: skip


def _print_recipe(system: str, output: str | None) -> None:
    """Raises CliError."""
    from probes.switches.recipe import RECIPES, format_recipe

    if system not in RECIPES:
        raise CliError(
            f"--recipe {system!r:.40}: expected {', '.join(RECIPES)}",
            "of all other systems normalized JSON lines are read: docs/fleet-lossless.md",
        )
    deliver_text(format_recipe(system), output, public=True)


def _store_switches(dataset: str, switches: Mapping[str, SwitchFacts], answer: LosslessAnswer) -> None:
    """Store them in the dataset. Raises CliError; then the dataset is unchanged."""
    from datetime import datetime, timezone

    from agent.fleet.ingest.run import IngestOptions, ingest
    from agent.fleet.rows.switches import make_records
    from agent.fleet.text.parts import count

    records = make_records(switches, answer, datetime.now(timezone.utc))
    with translate_write_errors(dataset):
        result = ingest(IngestOptions(sources=[], dataset=dataset, switches=records), lambda stage, done: None)
    late = f" ({result.late:,} late)" if result.late else ""
    many = count(len(records), "switch")
    print(f"{many} stored: {result.fresh:,} new{late}, {result.repeated:,} known", file=sys.stderr)


def _read_stored(dataset: str | None, engine: str | None) -> LosslessAnswer | None:
    """What `--store` left; None without a dataset, and where nothing was stored. Raises CliError."""
    with _open_tables(dataset, engine) as tables:
        if tables is None:
            return None
        from agent.fleet.lossless.stored_answer import read_stored_answer

        return read_stored_answer(tables)


def _read_hosts(
    dataset: str | None, engine: str | None, report: str | None, may_be_new: bool
) -> tuple[list[HostPort], bool]:
    """Ports of hosts, and whether they are all that there are. Raises CliError.

    `may_be_new`: of a folder that is no dataset yet there are none.
    """
    from agent.fleet.lossless.host_ports import read_report_ports

    if report is not None:
        from agent.cli.job import read_one

        return read_report_ports(read_one(report)), False
    with _open_tables(dataset, engine, may_be_new) as tables:
        return ([], False) if tables is None else (read_host_ports(tables), True)


@contextmanager
def _open_tables(dataset: str | None, engine: str | None, may_be_new: bool = False) -> Iterator[Tables | None]:
    """Tables of the dataset or the engine; None where neither is given, or is a dataset yet. Raises CliError."""
    from agent.fleet.engines import holds_tables

    if not dataset and not holds_tables(engine):
        yield None
        return
    require_libraries()
    if may_be_new and dataset:
        from agent.fleet.dataset import BadDataset, read_manifest, store_at

        with ErrorTranslation(BadDataset):
            is_new = read_manifest(store_at(dataset)) is None
        if is_new:
            yield None
            return
    with open_engine(dataset, engine) as tables:
        yield tables


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
