"""Rules of this family: the node against its profile."""

from __future__ import annotations

from agent.rules.profile.device_count_low import device_count_low
from agent.rules.profile.differs import profile_differs
from agent.rules.profile.gpu_module_missing import gpu_module_missing
from agent.rules.profile.nvswitch_missing import nvswitch_missing
from agent.rules.rule import Rule

RULES: tuple[Rule, ...] = (device_count_low, nvswitch_missing, gpu_module_missing, profile_differs)
