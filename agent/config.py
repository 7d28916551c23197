"""The operator's configuration: one TOML file, every change of which is a line in the report.

[rules]
off = ["roce-mtu-small"]

[facts]
roce_mode = "lossy"
"""

from __future__ import annotations

import sys
from typing import Literal

import msgspec

from agent.rules.case import Settings

CONFIG_LIMIT_BYTES = 1 << 20


class BadConfiguration(Exception):
    """The file cannot be used; the message names it and what is wrong."""


class RuleSwitches(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which rules are not judged."""

    off: list[str] = []


class Facts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the operator declares, because no host can tell."""

    roce_mode: Literal["lossless", "lossy"] | None = None


class Configuration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole file. An unknown key is an error: a misspelt rule must not pass in silence."""

    rules: RuleSwitches = RuleSwitches()
    facts: Facts = Facts()

    @property
    def settings(self) -> Settings:
        """The same as rules get it."""
        facts = {key: value for key, value in msgspec.structs.asdict(self.facts).items() if value is not None}
        return Settings(disabled=frozenset(self.rules.off), facts=facts)

    @property
    def changed(self) -> list[str]:
        """One line for each departure from the defaults, for the report."""
        lines = [f"rules.off: {name}" for name in sorted(set(self.rules.off))]
        return lines + [f"facts.{key} = {value}" for key, value in sorted(self.settings.facts.items())]


def load(path: str, rule_names: frozenset[str]) -> Configuration:
    """Read and check a configuration file. Raises BadConfiguration."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        with open(path, "rb") as file:
            text = file.read(CONFIG_LIMIT_BYTES + 1)
    except OSError as error:
        raise BadConfiguration(f"{path}: {error.strerror}") from error
    if len(text) > CONFIG_LIMIT_BYTES:
        raise BadConfiguration(f"{path}: larger than {CONFIG_LIMIT_BYTES} bytes")
    try:
        made = msgspec.convert(tomllib.loads(text.decode()), Configuration)
    except (ValueError, RecursionError) as error:  # TOML, UTF-8 and msgspec's errors are all ValueErrors
        raise BadConfiguration(f"{path}: {error}") from error
    for name in made.rules.off:
        if name not in rule_names:
            raise BadConfiguration(f"{path}: rules.off names no rule of ours: {name!r}")
    return made
