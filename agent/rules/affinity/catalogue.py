"""Rules of this family: Which devices are near each other."""

from __future__ import annotations

from agent.rules.affinity.gpu_far_from_nic import affinity_gpu_far_from_nic
from agent.rules.affinity.numa_unknown import numa_unknown
from agent.rules.rule import Rule

RULES: tuple[Rule, ...] = (
    affinity_gpu_far_from_nic,
    numa_unknown,
)
