"""Rules of this family: The scan itself."""

from __future__ import annotations

from agent.rules.host.probe_hung import probe_hung
from agent.rules.rule import Rule

RULES: tuple[Rule, ...] = (probe_hung,)
