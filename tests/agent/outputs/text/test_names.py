"""What subjects of findings and checks are called."""

from __future__ import annotations

import pytest

from agent.model.gpu import Gpu
from agent.model.topology import Topology
from agent.outputs.names import DisplayNames
from tests.agent.outputs.text.reports import report


@pytest.mark.parametrize(
    ("subject", "name"),
    [
        ("gpu:0000:18:00.0", "GPU3"),
        ("link:0000:18:00.0/7", "GPU3 link 7"),
        ("pci:0000:19:00.0", "19:00.0"),
        ("pair:0000:18:00.0+0000:19:00.0", "GPU3+19:00.0"),
        ("npu:3", "NPU 3"),
        ("node", "node"),
    ],
)
def test_a_subject_is_named(subject: str, name: str) -> None:
    """By its label, its short address, or its number with what it numbers."""
    topology = Topology(gpus=[Gpu(id="0000:18:00.0", label="GPU3")])

    assert DisplayNames(report(topology)).subject(subject) == name
