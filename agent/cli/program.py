"""Builds the program for one command line: typer inspects each command it has, which takes milliseconds each."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from agent.cli.options import FLEET_HELP

FLEET = "fleet"
GROUPS = {  # of the help
    "This host": ("scan", "check", "watch", "recommend", "job", "capture", "demo"),
    "Reports": ("diff", "export", "explain", "rules", "schema"),
    "Fleet": ("ship", "receive", "fleet", "netbox"),
    "Setup": ("config", "profile", "install-units", "completion"),
}


class GroupedHelp(TyperGroup):
    """The program's help, its commands in groups and with whole summaries."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write one section per group; a command of no group is an error that a test finds."""
        for title, names in GROUPS.items():
            known = [(name, command) for name in names if (command := self.get_command(ctx, name))]
            if known:
                with formatter.section(title):
                    formatter.write_dl([(name, command.get_short_help_str(formatter.width)) for name, command in known])


class PlainUsage(TyperCommand):
    """A command whose usage line has `OLD NEW`, where typer writes `{OLD} {NEW}`."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The line's parts."""
        return [piece[1:-1] if piece.startswith("{") else piece for piece in super().collect_usage_pieces(ctx)]


def set_plain_usage(app: typer.Typer) -> typer.Typer:
    """For all commands, those of groups too."""
    for command in app.registered_commands:
        command.cls = PlainUsage
    for group in app.registered_groups:
        if group.typer_instance is not None:
            set_plain_usage(group.typer_instance)
    return app


def build_program(app: typer.Typer, arguments: Sequence[str]) -> typer.Typer:
    """Build the program for these arguments: the command they name, else all, with `fleet` as a name with help."""
    first, second = [*arguments, "", ""][:2]
    if first == "--version":
        return _select(app, "")
    if first in _names(app):
        return _select(app, first)
    if FLEET not in arguments:
        return _add_fleet(app, typer.Typer(help=FLEET_HELP))
    from agent.cli.fleet.commands import fleet

    if first == FLEET and second in _names(fleet):
        return _add_fleet(_select(app, ""), _select(fleet, second))
    return build_full_program(app)


def build_full_program(app: typer.Typer) -> typer.Typer:
    """Build the program with all commands."""
    from agent.cli.fleet.commands import fleet

    return _add_fleet(app, fleet)


def _add_fleet(app: typer.Typer, fleet: typer.Typer) -> typer.Typer:
    """Replace the `fleet` group of an earlier call."""
    app.registered_groups = [group for group in app.registered_groups if group.name != FLEET]
    app.add_typer(fleet, name=FLEET)
    return app


def _names(app: typer.Typer) -> set[str | None]:
    """Names of all commands and groups."""
    return {*map(_name, app.registered_commands), *(group.name for group in app.registered_groups)} - {FLEET}


def _select(app: typer.Typer, name: str) -> typer.Typer:
    """The same program with this command alone."""
    selected = copy.copy(app)
    selected.registered_commands = [command for command in app.registered_commands if _name(command) == name]
    selected.registered_groups = [group for group in app.registered_groups if group.name == name]
    return selected


def _name(command: typer.models.CommandInfo) -> str:
    """As typer derives it from a function without a name of its own."""
    return command.name or getattr(command.callback, "__name__", "").replace("_", "-")
