"""`config show`: the effective configuration, and the source of each value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import typer

from agent.cli import options as opt
from agent.cli.errors import ErrorTranslation, print_warning
from agent.cli.output import deliver_text

if TYPE_CHECKING:
    from agent.config import Configuration
    from agent.rules.rule import Rule

config = typer.Typer(help="Show the effective configuration.", no_args_is_help=True)


@config.callback()
def _group() -> None:
    """Show the effective configuration."""


@config.command("show")
def config_show(file: opt.ConfigFile = None) -> None:
    """Print every setting with its value and source.

    As TOML: what the file does not set is a comment with its default.
    """
    from agent.config import Configuration, ConfigurationError, load_configuration
    from agent.rules.catalogue import every_rule, names

    with ErrorTranslation(ConfigurationError):
        configuration = load_configuration(file, names(), print_warning) if file else Configuration()
    deliver_text(format_configuration(configuration, file, every_rule()), None)


def format_configuration(configuration: Configuration, file: str | None, rules: Sequence[Rule]) -> str:
    """TOML with every key: a value of the file has it as its source, a default is a comment."""
    import msgspec

    from agent.config import DeclaredFacts, PeerSettings, RuleSwitches, ShipSettings
    from agent.toml_file import list_choices

    lines = [f"# {'from ' + file if file else 'no --config: all defaults'}", ""]
    tables = (("rules", RuleSwitches), ("facts", DeclaredFacts), ("peers", PeerSettings), ("ship", ShipSettings))
    for title, shape in tables:
        lines.append(f"[{title}]")
        table = getattr(configuration, title)
        for field in msgspec.structs.fields(shape):
            value = getattr(table, field.name)
            default = [] if field.default is msgspec.NODEFAULT else field.default
            lines.append(_format_key(field.name, value, value == default, ", ".join(list_choices(field.type))))
        lines.append("")
    for entry in configuration.silence:
        values = msgspec.structs.asdict(entry)
        lines += [
            "[[silence]]",
            *(_format_key(key, value, value in (None, False), "") for key, value in values.items()),
        ]
        lines.append("")
    lines += ["[thresholds]", *_format_thresholds(configuration.limits, rules)]
    return "\n".join(lines) + "\n"


def _format_thresholds(limits: dict[str, float], rules: Sequence[Rule]) -> Iterator[str]:
    for threshold in sorted({limit for rule in rules for limit in rule.thresholds}, key=lambda limit: limit.name):
        value = limits.get(threshold.name, threshold.value)
        yield f"{_format_key(threshold.name, value, threshold.name not in limits, '')}  # {threshold.what}"


def _format_key(name: str, value: Any, is_default: bool, choices: str) -> str:
    from agent.platforms.profiles import to_toml_value

    value_text = "" if value is None else to_toml_value(value)
    note = f"  # {choices}" if choices else ""
    return f"# {name} = {value_text}".rstrip() + note if is_default else f"{name} = {value_text}{note}"
