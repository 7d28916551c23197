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
    if NAME in arguments or any(NAME in os.environ.get(each, "") for each in COMPLETING):
        return whole(app)
    return _with(app, typer.Typer(help=HELP))


def whole(app: typer.Typer) -> typer.Typer:
    """The program with all its commands."""
    from agent.cli.fleet import fleet

    return _with(app, fleet)


def _with(app: typer.Typer, fleet: typer.Typer) -> typer.Typer:
    """In place of the one that an earlier call left there."""
    app.registered_groups = [each for each in app.registered_groups if each.name != NAME]
    app.add_typer(fleet, name=NAME)
    return app
