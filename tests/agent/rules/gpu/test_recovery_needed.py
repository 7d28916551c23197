"""gpu-recovery-needed: what it is about; the rest is rows of tests/matrix/rules/gpu.toml."""

from __future__ import annotations

from agent.rules.gpu.devices import gpu_recovery_needed as rule
from tests.agent.rules.build import changed_gpu, fails, gpu_id, server

GPU = gpu_id(2)


def asks(action: str | None = "reset"):
    return changed_gpu(server(), 2, recovery_action=action)


def test_it_is_about_the_gpu_and_its_function() -> None:
    """Both are places, where they have different ids."""
    (fault,) = fails(rule, changed_gpu(asks(), 2, pci="0000:99:00.0"))

    assert {GPU, "0000:99:00.0"} == fault.places
