"""Differences as sentences."""

from __future__ import annotations

import pytest

from agent.fleet.questions.deviations import Outlier
from agent.fleet.questions.multisets import ABSENT
from agent.fleet.text.outliers import describe_outlier


@pytest.mark.parametrize(
    ("attribute", "what", "value", "usual", "one", "sentence"),
    [
        ("driver", "GPU driver", "570.30", "570.124", "node", "GPU driver is 570.30; 31 of 32 nodes have 570.124."),
        ("rail-mtu", "MTU of a rail", "1500", "4220", "rail", "MTU is 1500; 31 of 32 rails have 4220."),
        ("rail-pfc", "PFC by priority of a rail", "00000000", "00010000", "rail",
         "PFC is off; 31 of 32 rails have priority 3."),
        ("rail-pfc", "PFC by priority of a rail", "00011000", "00000000", "rail",
         "PFC is on for priorities 3, 4; 31 of 32 rails have PFC off."),
        ("nic-state", "state of a NIC", "no_driver", "present", "NIC",
         "No driver is bound; 31 of 32 NICs have a driver."),
        ("services", "services", "nvidia-fabricmanager=failed", "nvidia-fabricmanager=active", "node",
         "Service nvidia-fabricmanager is failed; 31 of 32 nodes have active."),
        ("cmdline", "kernel command line", ABSENT, "iommu=pt", "node",
         "Kernel command line: missing; 31 of 32 nodes have iommu=pt."),
        ("cmdline", "kernel command line", "iommu=pt", ABSENT, "node",
         "Kernel command line has iommu=pt; 31 of 32 nodes do not have it."),
    ],
)  # fmt: skip
def test_a_difference_is_a_sentence(attribute: str, what: str, value: str, usual: str, one: str, sentence: str) -> None:
    """What it is, and what its peers have."""
    outlier = Outlier(
        attribute=attribute, what=what, hardware_class="H100", value=value, usual=usual, usual_count=31, of=32, one=one,
        hosts="gpu1", nodes=1, things=1,
    )  # fmt: skip

    assert sentence == describe_outlier(outlier)
