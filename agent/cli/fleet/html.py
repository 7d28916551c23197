"""`fleet html`: the fleet as one page for browsers."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli import options as opt
from agent.cli.delivery import deliver
from agent.cli.fleet.gathered import Dataset, Fabric, Output, gathered
from agent.cli.fleet.needed import fleet_libraries
from agent.cli.refused import Refused

if TYPE_CHECKING:
    from agent.fleet.page.from_dataset import Wish

DAY = 86_400.0

NodesDir = Annotated[
    str | None,
    typer.Option(
        metavar="DIR",
        help="Where nodes' own pages are, NODE.html each (scan --output NODE.html): the page leads to them.",
        show_default=False,
    ),
]
Rack = Annotated[
    str | None,
    typer.Option(
        metavar="REGEX",
        help="What in a host name is its rack, the first group where there is one: '^r[0-9]+'.",
        show_default=False,
    ),
]
Title = Annotated[str, typer.Option(metavar="TEXT", help="The heading.")]
StaleAfter = Annotated[
    float,
    typer.Option(
        metavar="SECONDS",
        help="A node that was last seen so long before the newest one is stale.",
        min=1,
        max=1e9,
        callback=opt.a_number,
    ),
]
Days = Annotated[
    float,
    typer.Option(
        metavar="NUMBER",
        help="How far back changes are told, from the newest look at a node.",
        min=0,
        max=36_500,
        callback=opt.a_number,
    ),
]


def html(
    dataset: Dataset = None,
    fabric: Fabric = None,
    nodes_dir: NodesDir = None,
    rack: Rack = None,
    title: Title = "Fleet",
    stale_after: StaleAfter = DAY,
    days: Days = 7.0,
    output: Output = None,
) -> None:
    """Write the fleet as one page: a map of all nodes, what is wrong, odd, changed or not judged. It loads nothing."""
    if not dataset:
        raise Refused("which dataset? --dataset DIR or URL, or FABRICSCOPE_DATASET")
    fleet_libraries()
    from agent.fleet.page.from_dataset import Wish

    wish = Wish(stale_after, rack, _pages(nodes_dir, output))
    deliver(_page(dataset, fabric, wish, title, timedelta(days=days)), output)


def _page(dataset: str, fabric: list[str] | None, wish: Wish, title: str, back: timedelta) -> bytes:
    """Raises Refused."""
    from agent.fleet.dataset import BadDataset, open_dataset
    from agent.fleet.engines import connect
    from agent.fleet.engines.engine import EngineRefused
    from agent.fleet.page.build import scene
    from agent.fleet.page.page import page
    from agent.fleet.page.places import BadPattern
    from agent.fleet.page.wiring import wiring

    try:
        quarantined = open_dataset(dataset).manifest.quarantined
        wires = wiring(gathered(fabric, dataset, None))
        opened = connect(None, dataset)
        try:
            now = datetime.now(timezone.utc)
            made = scene(opened, wires, wish, now, title=title, back=back, quarantined=quarantined)
        finally:
            opened.close()
    except (EngineRefused, BadDataset, BadPattern) as error:
        raise Refused(str(error)) from error
    return page(made).encode("utf-8", "replace")


def _pages(folder: str | None, output: str | None) -> dict[str, str]:
    """Raises Refused."""
    from agent.fleet.page.pages import pages

    if folder is None:
        return {}
    try:
        return pages(folder, output)
    except OSError as error:
        raise Refused(f"--nodes-dir {folder}: {error.strerror or error}") from error
