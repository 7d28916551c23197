"""Rules of this family: NVLink, NVSwitch, fabric and C2C."""

from __future__ import annotations

from agent.rules.nvlink.asymmetric import nvlink_asymmetric
from agent.rules.nvlink.inactive import nvlink_inactive
from agent.rules.nvlink.speed_low import nvlink_speed_low
from agent.rules.rule import Rule

RULES: tuple[Rule, ...] = (
    nvlink_inactive,
    nvlink_asymmetric,
    nvlink_speed_low,
)
