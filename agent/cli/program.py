"""The program with the commands of `fleet` or without: a node never needs them, and would pay for them each time."""

from __future__ import annotations

import os
from collections.abc import Sequence

import typer

NAME = "fleet"
HELP = "Many reports: what is odd, what drifted, which cable is wrong. Needs the extra: fabricscope[fleet]."
COMPLETING = ("COMP_WORDS", "_TYPER_COMPLETE_ARGS")  # where a shell puts the line that it wants completed


def program(app: typer.Typer, arguments: Sequence[str]) -> typer.Typer:
    """The program for these arguments; where they do not name `fleet`, it is there by name and help alone."""
    app.registered_groups = [each for each in app.registered_groups if each.name != NAME]
    if NAME in arguments or any(NAME in os.environ.get(each, "") for each in COMPLETING):
        return whole(app)
    app.add_typer(typer.Typer(help=HELP), name=NAME)
    return app


def whole(app: typer.Typer) -> typer.Typer:
    """The program with all its commands."""
    from agent.cli.fleet import fleet

    app.registered_groups = [each for each in app.registered_groups if each.name != NAME]
    app.add_typer(fleet, name=NAME)
    return app
