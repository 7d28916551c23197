"""gpu-missing: the place of a lost GPU; the rest is rows of tests/matrix/rules/gpu.toml."""

from __future__ import annotations

from agent.rules.gpu.devices import gpu_missing as rule
from tests.agent.rules.build import changed_gpu, fails, gpu_id, server

GPU = gpu_id(1)


def unlisted():
    return changed_gpu(server(), 1, driver_state="not_open")


def test_a_gpu_that_the_driver_does_not_list_is_critical() -> None:
    """Bound to the driver, on the bus, not offered."""
    (fault,) = fails(rule, unlisted())

    assert (f"gpu:{GPU}", "GPU1", "critical", "") == (
        fault.subject, fault.label, fault.severity or rule.severity, fault.cause,
    )  # fmt: skip
    assert fault.impact.startswith("3 of 4 GPUs")
    assert frozenset({GPU}) == fault.places
