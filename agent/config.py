"""The operator's configuration: one TOML file; every departure from the defaults is listed in the report.

[rules]
off = ["roce-mtu-small"]

[facts]
roce_mode = "lossy"        # no PFC, deliberately; or "lossless"
roce_traffic_class = 106   # what job launchers set as NCCL_IB_TC: DSCP 26 and ECT(0)
cable_metres = 30.0        # the longest cable between a NIC and its switch
adaptive_routing = true    # switches or NICs send packets of one connection over several paths
roce_congestion_control = "none"   # no ECN, deliberately (PFC alone); or "dcqcn"

[thresholds]
roce-ets-starved.percent = 20

[[silence]]                # a finding that is known: it counts in no verdict and no exit code
rule = "pcie-width-downgraded"
device = "GPU3"            # an id, a label or a fingerprint; without it all devices
until = 2026-03-31         # the last day (UTC); without it there is no end
reason = "riser ordered"
ticket = "OPS-4711"
all = false                # true: what the finding explains is silenced, too

[ship]                     # where reports are sent: docs/ship.md
to = "https://inventory.example/reports"
token_file = "token"       # beside this file
"""

from __future__ import annotations

import datetime
import math
import os
from collections.abc import Callable
from typing import Annotated, Literal

import msgspec

from agent.rules.context import Settings, Silence
from agent.rules.renamed import find_renamed
from agent.toml_file import TomlError, locate, locate_entry, read_toml


class ConfigurationError(Exception):
    """The file cannot be used; the message names the file and the problem."""


class RuleSwitches(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which rules are disabled."""

    off: list[str] = []


class DeclaredFacts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Facts the operator declares, because no host reports them."""

    roce_mode: Literal["lossless", "lossy"] | None = None
    roce_traffic_class: Annotated[int, msgspec.Meta(ge=0, le=255)] | None = None  # of RDMA, as launchers set it
    cable_metres: Annotated[float, msgspec.Meta(gt=0, le=100_000)] | None = None  # longest, from a NIC to its switch
    adaptive_routing: bool | None = None  # packets may overtake each other, also where no variable states it
    roce_congestion_control: Literal["dcqcn", "none"] | None = None  # "none": PFC alone holds senders back


class PeerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What may differ among peers here, by choice."""

    free: list[str] = []  # fields that are not compared: "netdev.mtu"


class SilenceEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Findings of one rule that are known, on one device or on all, until a day."""

    rule: str
    reason: Annotated[str, msgspec.Meta(min_length=1)]
    device: Annotated[str, msgspec.Meta(min_length=1)] | None = None
    field: Annotated[str, msgspec.Meta(min_length=1)] | None = None  # of a part that differs from its peers
    until: datetime.date | None = None
    ticket: str | None = None
    all: bool = False

    @property
    def silence(self) -> Silence:
        """The entry as rules receive it."""
        until = self.until.isoformat() if self.until else None
        return Silence(self.rule, self.reason, self.device, until, self.ticket, self.all, self.field)

    @property
    def line(self) -> str:
        """The entry as a line of the report."""
        field = f" ({self.field})" if self.field else ""
        about = f"silence: {self.rule}{field} of {self.device or 'all devices'}"
        what = " and what it explains" if self.all else ""
        ticket = f" ({self.ticket})" if self.ticket else ""
        return f"{about}{what}{f' until {self.until}' if self.until else ''}: {self.reason}{ticket}"


class ShipSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Defaults of `ship`'s command-line options; relative paths are relative to the configuration file."""

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
    """The whole file. Unknown keys are errors, so that a misspelt rule is noticed."""

    rules: RuleSwitches = RuleSwitches()
    facts: DeclaredFacts = DeclaredFacts()
    thresholds: dict[str, float | dict[str, float]] = {}  # rule -> word -> limit, as TOML reads "rule.word = 20"
    peers: PeerSettings = PeerSettings()
    silence: list[SilenceEntry] = []
    ship: ShipSettings = ShipSettings()

    @property
    def limits(self) -> dict[str, float]:
        """Limits by the full name of their threshold: "roce-ets-starved.percent"."""
        flat: dict[str, float] = {}
        for name, value in self.thresholds.items():
            flat.update(
                {f"{name}.{word}": limit for word, limit in value.items()} if isinstance(value, dict) else {name: value}
            )
        return flat

    @property
    def settings(self) -> Settings:
        """The settings as rules receive them."""
        facts = {key: value for key, value in msgspec.structs.asdict(self.facts).items() if value is not None}
        return Settings(
            disabled=frozenset(self.rules.off),
            thresholds=self.limits,
            facts=facts,
            silences=tuple(entry.silence for entry in self.silence),
            free_fields=frozenset(self.peers.free),
        )

    @property
    def changed(self) -> list[str]:
        """One line per departure from the defaults, for the report."""
        lines = [f"rules.off: {name}" for name in sorted(set(self.rules.off))]
        lines += [f"facts.{key} = {value}" for key, value in sorted(self.settings.facts.items())]
        lines += [f"thresholds.{name} = {value:g}" for name, value in sorted(self.limits.items())]
        lines += [f"peers.free: {field}" for field in sorted(set(self.peers.free))]
        return lines + sorted(entry.line for entry in self.silence)


def load_configuration(
    path: str, rule_names: frozenset[str], note: Callable[[str], None] = lambda text: None
) -> Configuration:
    """Read and check a configuration file; `note` gets a line for each old name. Raises ConfigurationError."""
    try:
        configuration = read_toml(path, Configuration)
    except TomlError as error:
        raise ConfigurationError(str(error)) from error
    configuration = _rename_rules(configuration, lambda text: note(f"{path}: {text}"))
    for name in configuration.rules.off:
        if name not in rule_names:
            raise _unknown_rule(f"{locate(path, name)}: rules.off", name, rule_names)
    for number, entry in enumerate(configuration.silence):
        if entry.rule not in rule_names:
            raise _unknown_rule(
                f"{locate_entry(path, 'silence', number, 'rule')}: silence.rule", entry.rule, rule_names
            )
    if configuration.thresholds:
        _check_limits(path, configuration.limits)
    fields = [*configuration.peers.free, *(entry.field for entry in configuration.silence if entry.field)]
    if fields:
        _check_fields(path, fields)
    return configuration


def _rename_rules(configuration: Configuration, note: Callable[[str], None]) -> Configuration:
    """The same with today's names of rules; entries about what is no rule any more are left out."""

    def rename(name: str) -> str | None:
        rule, dot, word = name.partition(".")
        threshold = find_renamed(name) if dot else None
        renamed = threshold or find_renamed(rule)
        if renamed is None:
            return name
        note(renamed.note)
        return renamed.name if threshold or not renamed.name else f"{renamed.name}{dot}{word}"

    off = [new for name in configuration.rules.off if (new := rename(name))]
    thresholds = {new: value for name, value in configuration.limits.items() if (new := rename(name))}
    silence = [
        msgspec.structs.replace(entry, rule=new) for entry in configuration.silence if (new := rename(entry.rule))
    ]
    rules = msgspec.structs.replace(configuration.rules, off=off)
    return msgspec.structs.replace(configuration, rules=rules, thresholds=thresholds, silence=silence)


def load_ship_settings(path: str) -> ShipSettings:
    """The [ship] table of a configuration file, with absolute paths. Rule names are not checked, as a scan does.

    Raises ConfigurationError.
    """
    try:
        ship = read_toml(path, Configuration).ship
    except TomlError as error:
        raise ConfigurationError(str(error)) from error
    folder = os.path.dirname(os.path.abspath(path))
    names = ("token_file", "cert", "key", "ca", "credentials", "spool")
    whole = {name: os.path.join(folder, value) for name in names if (value := getattr(ship, name))}
    return msgspec.structs.replace(ship, **whole)


def _unknown_rule(place: str, name: str, rule_names: frozenset[str]) -> ConfigurationError:
    import difflib

    near = difflib.get_close_matches(name, rule_names, n=1, cutoff=0.75)
    hint = f"; did you mean {near[0]}?" if near else "; `fabricscope rules` lists them"
    return ConfigurationError(f"{place}: no rule {name!r}{hint}")


def _check_fields(path: str, fields: list[str]) -> None:
    from agent.rules.peers.parts import list_compared_fields  # lazy: most configurations name none

    known = list_compared_fields()
    for name in fields:
        if name not in known:
            import difflib

            near = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
            hint = f"near: {', '.join(near)}" if near else "docs/peer-fields.md lists them"
            raise ConfigurationError(f"{locate(path, name)}: no field {name!r} is compared among peers; {hint}")


def _check_limits(path: str, limits: dict[str, float]) -> None:
    from agent.rules.catalogue import every_rule  # lazy: imports every rule, needed only for limits

    known = {limit.name for rule in every_rule() for limit in rule.thresholds}
    for name, value in limits.items():
        if name not in known:
            import difflib

            near = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
            valid = f"near: {', '.join(near)}" if near else "`fabricscope config show` lists them"
            raise ConfigurationError(f"{locate(path, name)}: thresholds: no threshold {name!r}; {valid}")
        if not 0 <= value < math.inf:
            raise ConfigurationError(
                f"{locate(path, name)}: thresholds.{name} = {value}: expected a number of 0 or more"
            )
