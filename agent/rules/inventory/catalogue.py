"""Rules of this family: What an earlier run saw."""

from __future__ import annotations

from agent.rules.inventory.lost import inventory_lost
from agent.rules.rule import Rule

RULES: tuple[Rule, ...] = (inventory_lost,)
