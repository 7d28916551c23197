"""`fleet cables`: find miswired cables."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

from agent.cli import options as opt
from agent.cli.errors import CliError, ErrorTranslation
from agent.cli.fleet.cluster import All, Dataset, Fabric, Switches, load_cluster, read_bounded
from agent.cli.fleet.open_tables import choose_format
from agent.cli.fleet.options import EngineUrl, Form
from agent.cli.output import write_answer

if TYPE_CHECKING:
    from agent.fleet.cluster.cabling_plan import Cables, Planned
    from agent.outputs.text.lines import Line


_PLAN_BYTES = 1 << 27
Plan = Annotated[
    str | None,
    opt.option(
        "FILE",
        "CSV: node, rail or adapter, switch, port of the switch; or UFM's NDT file. Default: the majority pattern.",
    ),
]


def cables(
    fabric: Fabric = None,
    switches: Switches = None,
    dataset: Dataset = None,
    engine: EngineUrl = None,
    plan: Plan = None,
    form: Form = None,
    everything: All = False,
    output: opt.Output = None,
    no_color: opt.NoColor = False,
) -> None:
    """Find miswired cables.

    Compared with a cabling plan, or with the majority pattern.
    """
    import msgspec

    from agent.fleet.cluster.cabling_pattern import judge_by_pattern
    from agent.fleet.cluster.cabling_plan import BadPlan, judge_by_plan
    from agent.fleet.cluster.fabric_view import build_views
    from agent.fleet.cluster.text import render_cables_page

    format_name = choose_format(form, output)
    planned = read_plan_file(plan) if plan is not None else None
    cluster = load_cluster(fabric, dataset, engine, switches)
    seen = build_views(cluster)
    with ErrorTranslation(BadPlan, about=plan):
        cables_found = judge_by_pattern(cluster, seen) if planned is None else judge_by_plan(cluster, seen, planned)
    cables_found = msgspec.structs.replace(cables_found, notes=list(cluster.notes))

    def page(answer: Cables, width: int) -> list[Line]:
        return render_cables_page(answer, cluster.sources, width, everything)

    write_answer(cables_found, format_name, page, output, no_color, csv=lambda: _format_csv(cables_found))


def read_plan_file(path: str) -> list[Planned]:
    """The lines of a cabling plan. Raises CliError."""
    import io

    from agent.fleet.cluster.cabling_plan import BadPlan, read_plan

    text = read_bounded(path, _PLAN_BYTES).decode("utf-8-sig", "replace")
    with ErrorTranslation(BadPlan, about=path):
        planned = list(read_plan(io.StringIO(text, newline="")))
    if not planned:
        raise CliError(f"{path}: empty: expected lines of node, rail, switch, port")
    return planned


def _format_csv(cables_found: Cables) -> str:
    from agent.fleet.text.tables import format_sheet

    names = ("end", "state", "should", "found", "there", "why")
    return format_sheet(names, (map(partial(getattr, cable), names) for cable in cables_found.wrong))
