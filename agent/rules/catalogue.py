"""Every rule, in the order in which they are judged and listed. A rule that is not here does not run; a test finds it."""

from __future__ import annotations

from agent.rules.rule import Rule

RULES: tuple[Rule, ...] = ()
