"""Rules of this family: GPUs."""

from __future__ import annotations

from agent.rules.gpu.missing import gpu_missing
from agent.rules.gpu.p2p_blocked import gpu_p2p_blocked
from agent.rules.gpu.recovery_needed import gpu_recovery_needed
from agent.rules.gpu.siblings_differ import gpu_siblings_differ
from agent.rules.gpu.xid import gpu_xid
from agent.rules.rule import Rule

RULES: tuple[Rule, ...] = (gpu_missing, gpu_xid, gpu_siblings_differ, gpu_recovery_needed, gpu_p2p_blocked)
