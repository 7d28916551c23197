"""The table of the rules: what each is, and its remedies by the family of the switch's command line."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache

import msgspec

from agent.toml_file import read_toml

HOST, OTHER, ALSO = "host", "other", "also"
_FILE = os.path.join(os.path.dirname(__file__), "rules.toml")


class SwitchRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One rule. `remedy`: steps by family (sonic, nvue), of a host (`host`), of all others (`other`); `also` follows
    any of them."""

    id: str
    severity: str
    title: str
    impact: str
    remedy: dict[str, list[str]]


class _RuleTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    rule: list[SwitchRule]


@cache
def switch_rules() -> Mapping[str, SwitchRule]:
    """All rules by their names, in the order of the table."""
    return {rule.id: rule for rule in read_toml(_FILE, _RuleTable).rule}


def choose_remedy(rule: SwitchRule, family: str | None) -> list[str]:
    """The steps for a family; a family without its own gets the ones without commands, never another's."""
    return [*rule.remedy.get(family or OTHER, rule.remedy.get(OTHER, [])), *rule.remedy.get(ALSO, [])]
