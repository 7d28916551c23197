"""The commands as data: the manual and the completions are written from it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import typer.main

from agent.cli.program import build_full_program

FILE, FOLDER, NOTHING = "file", "folder", "nothing"
LISTS = {"PROBE,...": "probes", "PART,...": "parts"}  # what a metavar stands for, comma by comma
PLACES = {"FILE": FILE, "PATH": FILE, "DIR": FOLDER, "REPORT...": FILE, "OLD": FILE, "NEW": FILE, "NAME|FILE": FILE}


class Value(NamedTuple):
    """What an option or an argument takes."""

    metavar: str
    choices: tuple[str, ...] = ()
    kind: str = NOTHING  # file, folder, nothing
    listed: bool = False  # several of the choices, with commas


class Option(NamedTuple):
    """One option."""

    names: tuple[str, ...]
    value: Value | None  # None: a switch
    help: str
    default: str | None


class Argument(NamedTuple):
    """One argument by its place."""

    value: Value
    help: str
    required: bool
    many: bool


class Command(NamedTuple):
    """A command, or a group of them."""

    words: tuple[str, ...]  # as they are typed after "fabricscope"
    help: str
    options: tuple[Option, ...]
    arguments: tuple[Argument, ...]
    commands: tuple[Command, ...]

    @property
    def name(self) -> str:
        """As it is typed."""
        return " ".join(self.words)


def read_commands(app: typer.Typer) -> Command:
    """The whole tree, its root first."""
    return _command((), typer.main.get_command(build_full_program(app)))


def walk_commands(command: Command) -> Iterator[Command]:
    """It and all below it, in the order of the help."""
    yield command
    for subcommand in command.commands:
        yield from walk_commands(subcommand)


def read_values() -> dict[str, tuple[str, ...]]:
    """The names that commands take."""
    from agent.platforms.profiles import list_profiles
    from agent.rules.catalogue import every_rule
    from agent.units import SCAN_PART, list_parts
    from probes.catalogue import probes

    return {
        "rules": tuple(rule.name for rule in every_rule()),
        "probes": tuple(probe.name for probe in probes()),
        "profiles": tuple(list_profiles()),
        "parts": tuple(part for part in list_parts() if part != SCAN_PART),
    }


def _command(typed: tuple[str, ...], command: Any) -> Command:
    names = read_values()
    options, arguments = [], []
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            arguments.append(
                Argument(
                    _value(parameter, typed, names), parameter.help or "", parameter.required, parameter.nargs == -1
                )
            )
        elif not parameter.hidden:
            options.append(_option(parameter, typed, names))
    options.append(Option(("-h", "--help"), None, "Show this message and exit.", None))
    below = sorted(getattr(command, "commands", {}).items(), key=lambda item: bool(getattr(item[1], "commands", None)))
    help_text = " ".join((command.help or "").split())
    return Command(
        typed,
        help_text,
        tuple(options),
        tuple(arguments),
        tuple(_command((*typed, name), subcommand) for name, subcommand in below if not subcommand.hidden),
    )


def _option(parameter: Any, typed: tuple[str, ...], names: dict[str, tuple[str, ...]]) -> Option:
    default = getattr(parameter.default, "value", parameter.default)
    show_default = parameter.show_default and not parameter.is_flag and default is not None
    value = None if parameter.is_flag else _value(parameter, typed, names)
    return Option(
        tuple(sorted(parameter.opts, key=len)),
        value,
        parameter.help or "",
        (f"{default:g}" if isinstance(default, float) else str(default)) if show_default else None,
    )


def _value(parameter: Any, typed: tuple[str, ...], names: dict[str, tuple[str, ...]]) -> Value:
    choices = tuple(str(choice) for choice in getattr(parameter.type, "choices", ()))
    metavar = parameter.metavar or ("|".join(choices) if choices else parameter.name.upper())
    if metavar in LISTS:
        return Value(metavar, names[LISTS[metavar]], listed=True)
    if metavar == "NAME|FILE":
        return Value(metavar, ("auto", "none", *names["profiles"]), FILE)
    if typed == ("explain",):
        return Value(metavar, names["rules"])
    if typed == ("profile", "show"):
        return Value(metavar, names["profiles"], FILE)
    return Value(metavar, choices, PLACES.get(metavar, NOTHING))
