"""Rules of this family: cables and optical modules."""

from __future__ import annotations

from agent.rules.optics.module_fault import roce_module_fault
from agent.rules.optics.optics_power import roce_optics_power
from agent.rules.rule import Rule

RULES: tuple[Rule, ...] = (
    roce_module_fault,
    roce_optics_power,
)
