"""Rules about the health of GPUs: their steps, and what they explain; the rest is rows of tests/matrix."""

from __future__ import annotations

import msgspec
import pytest

from agent.rules.context import RuleContext
from agent.rules.engine import judge
from agent.rules.gpu.devices import gpu_missing
from agent.rules.gpu.health import gpu_clocks_limited, gpu_power_limited
from agent.rules.gpu.memory import gpu_ecc
from agent.rules.rule import Rule
from tests.agent.rules.build import changed_gpu, fails, gpu_id, server, topology
from tests.agent.rules.rows import HEALTHY_GPU


def unwell(**changes: object) -> RuleContext:
    return changed_gpu(server(), 2, health=msgspec.structs.replace(HEALTHY_GPU, **changes))


@pytest.mark.parametrize(
    ("rule", "changes", "words"),
    [
        (gpu_power_limited, {"power_limit_watts": 500.0, "power_limit_requested_watts": 500.0}, "-pl"),
        (gpu_power_limited, {"power_limit_watts": 500.0, "power_limit_requested_watts": None}, "-pl"),
        (gpu_power_limited, {"power_limit_watts": 500.0, "power_limit_requested_watts": 600.0}, "BMC"),
        (gpu_clocks_limited, {"application_clock_mhz": 1200}, "-rgc"),
        (gpu_clocks_limited, {"sm_clock_mhz": 345}, "nvidia-smi -r -i 2"),
    ],
)
def test_steps_by_what_limits(rule: Rule, changes: dict, words: str) -> None:
    """A limit from outside is not reset in the driver, and a clock without a reason not by a setting."""
    (finding,) = judge(unwell(**changes), [rule])[1]

    assert words in finding.remedy


def test_errors_of_its_life_are_evidence_beside_those_since_the_driver_was_loaded() -> None:
    """One sentence for one fault."""
    (fault,) = fails(gpu_ecc, unwell(uncorrectable_volatile=2, uncorrectable_aggregate=3))

    assert "2 uncorrectable ECC errors since the driver was loaded" == fault.summary
    assert ["2", "3", "Enabled"] == [row.value for row in fault.evidence]


def test_what_is_not_reported_is_no_evidence() -> None:
    """Neither the mode nor the counter of its life."""
    (fault,) = fails(gpu_ecc, unwell(uncorrectable_volatile=2, uncorrectable_aggregate=None, ecc=None))

    assert ["2"] == [row.value for row in fault.evidence]


@pytest.mark.parametrize(("changes", "explains"), [({"uncorrectable_volatile": 1}, True), ({"ecc": False}, False)])
def test_only_errors_explain_what_the_log_has_of_the_memory(changes: dict, explains: bool) -> None:
    """That ECC is off explains no Xid."""
    (fault,) = fails(gpu_ecc, unwell(**changes))

    assert explains == bool(fault.explains_ids)


def test_a_lost_gpu_without_an_address_is_one_of_those_that_are_not_listed() -> None:
    """It is counted once: four GPUs on the bus, two listed with addresses, one by its number alone."""
    context = server()
    for n in (1, 2):
        context = changed_gpu(context, n, driver_state="unknown")
    lost = msgspec.structs.replace(
        context.topology.gpus[1], id="gpu-index-1", pci=None, driver_state="error", driver_error="GPU_IS_LOST"
    )
    (fault,) = fails(gpu_missing, topology(context, gpus=[*context.topology.gpus, lost]))

    assert "At most 3 of 4 GPUs can be used; jobs that ask for all do not start." == fault.impact
    assert f"one of {gpu_id(1)}, {gpu_id(2)}" == fault.evidence[0].value
