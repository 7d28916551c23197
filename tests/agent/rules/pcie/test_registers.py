"""Settings of PCIe devices, and how many errors of theirs count."""

from __future__ import annotations

import msgspec
import pytest

from agent.model.pci import PciFunction
from agent.rules.pcie import registers
from agent.rules.pcie.counters import error_budget
from tests.agent.rules.build import nic_id, server
from tests.agent.rules.rows import link

# Settings of the config space: which are read of which devices.


NIC = nic_id(0)


def test_what_root_alone_may_read_is_one_reason() -> None:
    """Eighty functions, one line of the page."""
    short, broken = (PciFunction(id=f"0000:0{n}:00.0", config_bytes=size) for n, size in ((1, 64), (2, 256)))

    assert registers.why_unread(short, "ASPM") == registers.why_unread(short, "the payload size") == registers.HIDDEN
    assert "ASPM could not be read" == registers.why_unread(broken, "ASPM")


def test_settings_that_matter_on_nics_only_are_asked_of_nics() -> None:
    """A GPU that could be judged is left out."""
    assert [NIC] == [
        nic_register.function.id
        for nic_register in registers.nic_registers(server(1))
        if isinstance(nic_register, registers.DeviceRegisters)
    ]


# PCIe errors: how many a link may count, and which device a fault is about; the rest is rows of tests/matrix/rules.


@pytest.mark.parametrize(
    ("speed", "width", "expected"),
    [(32.0, 16, 31), (16.0, 16, 16), (8.0, 16, 8), (64.0, 16, 62), (2.5, 1, 1), (128.0, 16, 62), (32.0, 8, 16)],
)
def test_the_budget_is_a_bit_error_rate(speed: float, width: int, expected: int) -> None:
    """DCGM's table, by the best speed and width."""
    assert expected == error_budget(link(max_speed_gt_s=speed, max_width=width))
    assert 31 == error_budget(None)


def test_a_link_whose_best_speed_is_not_known_has_the_budget_of_its_speed() -> None:
    """8 errors a minute at 8 GT/s, 31 where neither is known."""
    unread = msgspec.structs.replace(link(8.0, 16), max_speed_gt_s=None)

    assert 8 == error_budget(unread)
    assert 31 == error_budget(msgspec.structs.replace(unread, speed_gt_s=None))
