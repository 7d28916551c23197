"""Rules of this family: GPUDirect RDMA."""

from __future__ import annotations

from agent.rules.gpudirect.no_path import gdr_no_path
from agent.rules.rule import Rule

RULES: tuple[Rule, ...] = (gdr_no_path,)
