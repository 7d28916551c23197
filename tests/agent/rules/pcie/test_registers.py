"""Settings of the config space: which are read of which devices."""

from __future__ import annotations

from agent.model.pci import PciFunction
from agent.rules.pcie import registers
from tests.agent.rules.build import (
    gpu_id,
    nic_id,
)
from tests.agent.rules.configured import configured

GPU, NIC = gpu_id(0), nic_id(0)


def test_what_root_alone_may_read_is_one_reason() -> None:
    """Eighty functions, one line of the page."""
    short, broken = (PciFunction(id=f"0000:0{n}:00.0", config_bytes=size) for n, size in ((1, 64), (2, 256)))

    assert (
        registers.unread_reason(short, "ASPM") == registers.unread_reason(short, "the payload size") == registers.HIDDEN
    )
    assert "ASPM could not be read" == registers.unread_reason(broken, "ASPM")


def test_settings_that_matter_on_nics_only_are_asked_of_nics() -> None:
    """A GPU that could be judged is left out."""
    assert [NIC] == [
        each.function.id
        for each in registers.nic_registers(configured(1))
        if isinstance(each, registers.DeviceRegisters)
    ]
