"""Rules of this family: GPUDirect RDMA."""

from __future__ import annotations

from agent.rules.gpudirect.bar1_small import gdr_bar1_small
from agent.rules.gpudirect.mrrs_small import gdr_mrrs_small
from agent.rules.gpudirect.no_path import gdr_no_path
from agent.rules.gpudirect.relaxed_ordering_off import gdr_relaxed_ordering_off
from agent.rules.rule import Rule

RULES: tuple[Rule, ...] = (
    gdr_no_path,
    gdr_mrrs_small,
    gdr_relaxed_ordering_off,
    gdr_bar1_small,
)
