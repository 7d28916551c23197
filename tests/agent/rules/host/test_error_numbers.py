"""Numbers in lines of drivers by their names."""

from __future__ import annotations

import pytest

from agent.rules.host.error_numbers import explain_number


@pytest.mark.parametrize(
    ("driver", "text", "expected"),
    [
        ("mlx5_core", "x failed, err(-12)", "-12 is ENOMEM: out of memory"),
        ("bnxt_en", "probe failed with error -110", "-110 is ETIMEDOUT: timed out"),
        ("nvidia-uvm", "x returned: -5", "-5 is EIO: input or output error"),
        ("ice", "x failed: -16", "-16 is EBUSY: device or resource busy"),
        ("mlx5_core", "x failed, err(-999)", None),
        ("NVRM", "could not do it, status 0x62", "0x62 is NV_ERR_RESET_REQUIRED"),
        ("NVRM", "failed with status 0x0000000f for fn 78", "0xf is NV_ERR_GPU_IS_LOST"),
        ("NVRM", "failed with status 0x7123", None),
        ("NVRM", "failed: Timeout [NV_ERR_TIMEOUT] (0x00000065), status 0x65", None),
        ("mlx5_core", "failed, status 0x62", None),
        ("mlx5_core", "at -12 of a table", None),
    ],
)
def test_a_number_has_its_name(driver: str, text: str, expected: str | None) -> None:
    assert expected == explain_number(driver, text)
