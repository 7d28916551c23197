"""`fleet html`: the fleet as one page for browsers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from agent.cli import options as opt
from agent.cli.errors import ErrorTranslation
from agent.cli.fleet import open_tables
from agent.cli.fleet import options as shared
from agent.cli.fleet.cluster import Fabric, Switches, load_cluster_with_reports
from agent.cli.fleet.switches import read_hops
from agent.cli.output import deliver_text

if TYPE_CHECKING:
    from agent.fleet.episodes.silences import Silences
    from agent.fleet.page.from_dataset import PageOptions

NodesDir = Annotated[str | None, opt.option("DIR", "Folder with one page per node (NODE.html) to link to.")]
Rack = Annotated[str | None, opt.option("REGEX", "Regular expression for the rack in a host name: '^r[0-9]+'.")]
Title = Annotated[str, opt.shown_option("TITLE", "The heading.")]

Since = Annotated[
    str | None,
    opt.option(
        "TIME|DURATION", "Changes since: 2026-01-15, or 24h, 7d before now. Default: 7d before the newest report."
    ),
]


def html(
    dataset: shared.Dataset = None,
    engine: shared.EngineUrl = None,
    fabric: Fabric = None,
    switches: Switches = None,
    where: shared.WhereOption = None,
    nodes_dir: NodesDir = None,
    rack: Rack = None,
    title: Title = "Fleet",
    stale_after: shared.StaleAfter = "24h",
    since: Since = None,
    silences: shared.SilencesOption = None,
    output: opt.Output = None,
) -> None:
    """Write the fleet as one HTML page.

    A map of all nodes, findings, outliers and changes. RoCE hop by hop: of --switches, else what
    `fleet lossless --store` stored. The page loads nothing.
    """
    seconds = open_tables.parse_duration(stale_after)
    moment = open_tables.parse_time(since) if since is not None else None
    open_tables.require_libraries()
    from agent.fleet.page.from_dataset import PageOptions

    pages, now, silenced = (
        _find_node_pages(nodes_dir, output),
        open_tables.utc_now(),
        open_tables.read_silences(silences),
    )
    page_options = PageOptions(seconds, moment, rack, pages, bool(where), now)
    page = _render_page((dataset, engine), (fabric, switches), where, page_options, title, silenced)
    deliver_text(page, output, public=True)


def _render_page(
    source: tuple[str | None, str | None],
    files: tuple[list[str] | None, list[str] | None],
    where: list[str] | None,
    page_options: PageOptions,
    title: str,
    silenced: Silences,
) -> str:
    """Render the page of a dataset, an engine, or both. `files`: of fabrics, of switches. Raises CliError."""
    from datetime import datetime, timezone

    from agent.fleet.cluster.from_dataset import Wiring, build_from_reports, read_wiring
    from agent.fleet.dataset import BadDataset, open_dataset
    from agent.fleet.engines.engine import EngineRefused
    from agent.fleet.episodes.silences import silence
    from agent.fleet.lossless.stored_answer import read_stored_answer
    from agent.fleet.page.from_dataset import build_scene
    from agent.fleet.page.page import page
    from agent.fleet.racks import BadPattern

    chosen, (fabric, switches) = open_tables.parse_where(where), files
    with ErrorTranslation(EngineRefused, BadDataset, BadPattern), open_tables.open_engine(*source) as whole:
        tables = silence(open_tables.select_nodes(whole, chosen, where), silenced)
        quarantined = open_dataset(source[0]).manifest.quarantined if source[0] else None
        now = datetime.now(timezone.utc)

        hops = read_hops(switches, whole) if switches else None
        lossless = hops.answer if hops else read_stored_answer(whole)

        def find_wiring() -> Wiring:
            if not fabric and hops is None:
                return read_wiring(build_from_reports(whole))
            return read_wiring(load_cluster_with_reports(fabric or [], whole, hops.outputs if hops else None))

        return page(build_scene(
            tables, find_wiring, page_options, now, title=title, quarantined=quarantined, lossless=lossless
        ))  # fmt: skip


def _find_node_pages(folder: str | None, output: str | None) -> dict[str, str]:
    """The pages of the nodes below a folder, by node. Raises CliError."""
    from agent.fleet.page.page import render_pages

    if folder is None:
        return {}
    with ErrorTranslation(OSError, about=f"--nodes-dir {folder}"):
        return render_pages(folder, output)
