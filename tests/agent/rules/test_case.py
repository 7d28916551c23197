"""What the case says of its own gaps: absence is claimed only where everything was seen."""

from __future__ import annotations

import msgspec
import pytest

from agent.rules.catalogue import every_rule
from agent.rules.engine import judge
from tests.agent.rules.build import probe, server, topology
from tests.agent.rules.rows import bridge


def bare(class_code: str | None):
    """No GPU, no NIC; one function of that class."""
    only = msgspec.structs.replace(bridge("0000:00:00.0", None, "root_port"), class_code=class_code)
    return topology(server(1), pci=[only], gpus=[], nics=[], paths=[])


def listed(case):
    """The same, from a saved listing of lspci instead of sysfs."""
    return probe(probe(case, "pci", "absent", "no sysfs"), "lspci", "ok")


@pytest.mark.parametrize(
    ("case", "why"),
    [
        pytest.param(bare("0x060400"), None, id="sysfs is whole"),
        pytest.param(bare(None), "what 1 of 1 PCI functions are is not known", id="no class files"),
        pytest.param(
            listed(bare("0x060400")), "a listing of some PCI functions only: it has no host bridge", id="lspci -s"
        ),
        pytest.param(listed(bare("0x060000")), None, id="lspci of all"),
        pytest.param(probe(bare("0x060400"), "pci", "failed", "broken"), "pci: failed: broken", id="nobody looked"),
    ],
)
def test_absence_needs_a_whole_bus(case, why) -> None:
    """A GPU that is not among the functions may be among those that were not seen."""
    assert why == case.bus_unread


def test_no_gpu_on_a_bus_that_was_not_seen_whole_is_not_ok() -> None:
    """The verdict is unknown: an essential rule looked at nothing, and nothing says that there is nothing."""
    verdicts = [
        judge(case, every_rule())[2].verdict for case in (bare("0x060400"), bare(None), listed(bare("0x060400")))
    ]

    assert ["ok", "unknown", "unknown"] == verdicts


def test_a_function_that_came_or_went_is_no_gap() -> None:
    """It has no class because it left while it was read."""
    case = bare(None)
    left = msgspec.structs.replace(case.topology.pci[0], state="changed_during_scan")

    assert None is topology(case, pci=[left]).bus_unread
