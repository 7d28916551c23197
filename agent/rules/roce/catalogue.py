"""Rules of this family: RoCE: lossless classes, addresses, links."""

from __future__ import annotations

from agent.rules.roce.gid_v1_only import roce_gid_v1_only
from agent.rules.roce.mtu_small import roce_mtu_small
from agent.rules.rule import Rule

RULES: tuple[Rule, ...] = (
    roce_mtu_small,
    roce_gid_v1_only,
)
