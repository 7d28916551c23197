"""The sub-commands of `fleet`, a file each. Everything they need is the extra `fleet`, imported when they run."""

from __future__ import annotations

import typer

from agent.cli.fleet.cables import cables
from agent.cli.fleet.html import html
from agent.cli.fleet.ingest import ingest
from agent.cli.fleet.questions import drift, duplicates, findings, outliers, summary
from agent.cli.fleet.tables import export, load, query
from agent.cli.fleet.topology import topology
from agent.cli.program import HELP

fleet = typer.Typer(help=HELP, no_args_is_help=True)
for each in (ingest, summary, findings, outliers, drift, duplicates, topology, cables, html, query, export, load):
    fleet.command(each.__name__)(each)
