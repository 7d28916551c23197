"""The operator's configuration: one TOML file, every change of which is a line in the report.

[rules]
off = ["roce-mtu-small"]

[facts]
roce_mode = "lossy"        # no PFC, and meant so; or "lossless"
roce_traffic_class = 106   # what job launchers set as NCCL_IB_TC: DSCP 26 and ECT(0)
cable_metres = 30.0        # the longest cable between a NIC and its switch

[thresholds]
roce-ets-starved.percent = 20

[ship]                     # where reports go: docs/ship.md
to = "https://inventory.example/reports"
token_file = "token"       # beside this file
"""

from __future__ import annotations

import math
import os
from typing import Annotated, Literal

import msgspec

from agent.rules.case import Settings
from agent.toml_file import BadToml, read_toml


class BadConfiguration(Exception):
    """The file cannot be used; the message names it and what is wrong."""


class RuleSwitches(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which rules are not judged."""

    off: list[str] = []


class Facts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the operator declares, because no host can tell."""

    roce_mode: Literal["lossless", "lossy"] | None = None
    roce_traffic_class: Annotated[int, msgspec.Meta(ge=0, le=255)] | None = None  # of RDMA, as launchers set it
    cable_metres: Annotated[float, msgspec.Meta(gt=0, le=100_000)] | None = None  # the longest from a NIC to its switch


class Ship(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `ship` is told on its command line otherwise; a path that is not whole is beside the configuration file."""

    to: str | None = None
    method: str | None = None
    compress: str | None = None
    token_file: str | None = None
    cert: str | None = None
    key: str | None = None
    ca: str | None = None
    endpoint: str | None = None
    region: str | None = None
    credentials: str | None = None
    spool: str | None = None
    spool_limit: int | None = None  # bytes
    spool_count: int | None = None
    timeout: float | None = None  # seconds


class Configuration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole file. An unknown key is an error: a misspelt rule must not pass in silence."""

    rules: RuleSwitches = RuleSwitches()
    facts: Facts = Facts()
    thresholds: dict[str, float | dict[str, float]] = {}  # rule -> word -> limit, as TOML reads "rule.word = 20"
    ship: Ship = Ship()

    @property
    def limits(self) -> dict[str, float]:
        """Limits by the whole name of their threshold: "roce-ets-starved.percent"."""
        flat: dict[str, float] = {}
        for name, value in self.thresholds.items():
            flat.update(
                {f"{name}.{word}": limit for word, limit in value.items()} if isinstance(value, dict) else {name: value}
            )
        return flat

    @property
    def settings(self) -> Settings:
        """The same as rules get it."""
        facts = {key: value for key, value in msgspec.structs.asdict(self.facts).items() if value is not None}
        return Settings(disabled=frozenset(self.rules.off), thresholds=self.limits, facts=facts)

    @property
    def changed(self) -> list[str]:
        """One line for each departure from the defaults, for the report."""
        lines = [f"rules.off: {name}" for name in sorted(set(self.rules.off))]
        lines += [f"facts.{key} = {value}" for key, value in sorted(self.settings.facts.items())]
        return lines + [f"thresholds.{name} = {value:g}" for name, value in sorted(self.limits.items())]


def load(path: str, rule_names: frozenset[str]) -> Configuration:
    """Read and check a configuration file. Raises BadConfiguration."""
    try:
        configuration = read_toml(path, Configuration)
    except BadToml as error:
        raise BadConfiguration(str(error)) from error
    for name in configuration.rules.off:
        if name not in rule_names:
            raise BadConfiguration(f"{path}: rules.off names no rule of ours: {name!r}")
    if configuration.thresholds:
        _check_limits(path, configuration.limits)
    return configuration


def load_ship(path: str) -> Ship:
    """The table [ship] of a configuration file, its paths whole. Names of rules are not looked up: that is of a scan.

    Raises BadConfiguration.
    """
    try:
        ship = read_toml(path, Configuration).ship
    except BadToml as error:
        raise BadConfiguration(str(error)) from error
    folder = os.path.dirname(os.path.abspath(path))
    names = ("token_file", "cert", "key", "ca", "credentials", "spool")
    whole = {name: os.path.join(folder, value) for name in names if (value := getattr(ship, name))}
    return msgspec.structs.replace(ship, **whole)


def _check_limits(path: str, limits: dict[str, float]) -> None:
    from agent.rules.catalogue import every_rule  # every rule's module: only where a limit is named

    known = {limit.name for rule in every_rule() for limit in rule.thresholds}
    for name, value in limits.items():
        if name not in known:
            raise BadConfiguration(f"{path}: thresholds names no limit of ours: {name!r}")
        if not 0 <= value < math.inf:
            raise BadConfiguration(f"{path}: thresholds.{name} is no limit: {value}")
