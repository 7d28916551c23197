"""The sub-commands of `fleet`, a file each. Everything they need is the extra `fleet`, imported when they run."""

from __future__ import annotations

import typer

from agent.cli.fleet.cables import cables
from agent.cli.fleet.html import html
from agent.cli.fleet.ingest import ingest
from agent.cli.fleet.questions import drift, duplicates, findings, outliers, summary
from agent.cli.fleet.tables import export, load, query
from agent.cli.fleet.topology import topology

fleet = typer.Typer(
    help="Many reports: what is odd, what drifted, which cable is wrong. Needs the extra: fabricscope[fleet].",
    no_args_is_help=True,
)
fleet.command("ingest")(ingest)
fleet.command("topology")(topology)
fleet.command("cables")(cables)
fleet.command("html")(html)
for each in (summary, outliers, drift, findings, duplicates, query, export, load):
    fleet.command(each.__name__)(each)
