"""The group `fleet` and its commands, for typer."""

from __future__ import annotations

import typer

from agent.cli.fleet.cables import cables
from agent.cli.fleet.expected import expected
from agent.cli.fleet.forget import forget
from agent.cli.fleet.html import html
from agent.cli.fleet.ingest import ingest
from agent.cli.fleet.lossless import lossless
from agent.cli.fleet.news import news, repeat
from agent.cli.fleet.pull import pull
from agent.cli.fleet.questions import drift, duplicates, findings, outliers, summary
from agent.cli.fleet.tables import export, load, query
from agent.cli.fleet.topology import topology
from agent.cli.options import FLEET_HELP

fleet = typer.Typer(help=FLEET_HELP, no_args_is_help=True)
for command in (
    ingest,
    pull,
    summary,
    findings,
    outliers,
    drift,
    duplicates,
    topology,
    cables,
    lossless,
    html,
    query,
    export,
    load,
    forget,
    news,
    repeat,
    expected,
):
    fleet.command(command.__name__)(command)
