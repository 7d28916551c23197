"""`fleet cables`: what should be on which switch port, and is not."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli import options as opt
from agent.cli.delivery import deliver, show
from agent.cli.fleet.asked import EngineUrl, Form, form_of
from agent.cli.fleet.gathered import All, Dataset, Fabric, gathered
from agent.cli.refused import Refused

if TYPE_CHECKING:
    from agent.fleet.cluster.cables import Cable, Cables


Plan = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="CSV: node, rail or adapter, switch, port of the switch. Without it the pattern of most cables counts.",
        show_default=False,
    ),
]


def cables(
    fabric: Fabric = None,
    dataset: Dataset = None,
    engine: EngineUrl = None,
    plan: Plan = None,
    form: Form = None,
    everything: All = False,
    output: opt.Output = None,
    no_color: opt.NoColor = False,
) -> None:
    """Which cable is not where it should be: by a plan, else by the pattern that most cables follow."""
    import msgspec

    from agent.fleet.cluster.pattern import by_pattern
    from agent.fleet.cluster.plan import BadPlan, by_plan, read_plan
    from agent.fleet.cluster.view import views

    wanted = form_of(form, output)
    planned = None
    if plan is not None:
        try:
            with open(plan, encoding="utf-8-sig", errors="replace", newline="") as lines:
                planned = list(read_plan(lines))
        except OSError as error:
            raise Refused(f"{plan}: {error.strerror}") from error
        except BadPlan as error:
            raise Refused(f"{plan}: {error}") from error
        if not planned:
            raise Refused(f"{plan}: there is no line in it: node, rail, switch and port are needed")
    cluster = gathered(fabric, dataset, engine)
    seen = views(cluster)
    made = by_pattern(cluster, seen) if planned is None else by_plan(cluster, seen, planned)
    made = msgspec.structs.replace(made, notes=list(cluster.notes))
    if wanted == "text":
        from agent.fleet.cluster.words import cables_page

        show(lambda width: cables_page(made, cluster.sources, width, everything), output, no_color)
    elif wanted == "json":
        deliver(msgspec.json.format(msgspec.json.encode(made)) + b"\n", output)
    else:
        deliver(_csv(made).encode("utf-8", "replace"), output)


def _csv(made: Cables) -> str:
    from agent.fleet.words.sheet import cell

    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(("end", "state", "should", "found", "there", "why"))
    for each in made.wrong:
        writer.writerow([cell(text) for text in _columns(each)])
    return file.getvalue()


def _columns(each: Cable) -> tuple[str, ...]:
    return each.end, each.state, each.should or "", each.found or "", each.there or "", each.why
