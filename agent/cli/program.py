"""Adds the `fleet` commands only when they are used: they slow down the start on every node."""

from __future__ import annotations

import os
from collections.abc import Sequence

import typer

from agent.cli.options import FLEET_HELP

FLEET = "fleet"
_COMPLETION_VARIABLES = ("COMP_WORDS", "_TYPER_COMPLETE_ARGS")  # the command line to complete


def build_program(app: typer.Typer, arguments: Sequence[str]) -> typer.Typer:
    """Build the program for these arguments; without `fleet` in them, `fleet` is only a name with help."""
    if FLEET in arguments or any(FLEET in os.environ.get(variable, "") for variable in _COMPLETION_VARIABLES):
        return build_full_program(app)
    return _add_fleet(app, typer.Typer(help=FLEET_HELP))


def build_full_program(app: typer.Typer) -> typer.Typer:
    """Build the program with all commands."""
    from agent.cli.fleet import fleet

    return _add_fleet(app, fleet)


def _add_fleet(app: typer.Typer, fleet: typer.Typer) -> typer.Typer:
    """Replace the `fleet` group of an earlier call."""
    app.registered_groups = [group for group in app.registered_groups if group.name != FLEET]
    app.add_typer(fleet, name=FLEET)
    return app
