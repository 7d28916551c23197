"""Device ids: what can do RDMA, what is a GPU, what is a switch."""

from __future__ import annotations

import re

import pytest

from agent.platforms.devices import (
    DEVICES,
    can_rdma,
    find_device,
    is_accelerator,
    is_coherent_port,
    is_nvlink_management,
)


def test_every_id_is_written_as_sysfs_prints_it() -> None:
    """Four hex digits, lower case."""
    assert [] == [key for key in DEVICES if not all(re.fullmatch(r"0x[0-9a-f]{4}", part) for part in key)]


@pytest.mark.parametrize(
    ("vendor", "device", "class_code", "able"),
    [
        ("0x15b3", "0x1021", "0x020700", True),
        ("0x15b3", "0x1234", "0x020000", True),
        ("0x15b3", "0x1979", "0x060400", False),
        ("0x15b3", "0x2100", "0x080100", False),
        ("0x14e4", "0x1750", "0x020000", True),
        ("0x14e4", "0x165f", "0x020000", False),
        ("0x8086", "0x1592", "0x020000", True),
        ("0x8086", "0x1533", "0x020000", False),
        ("0x8086", "0x24f0", "0x020800", True),
        ("0x1d0f", "0xefa2", "0x020000", True),
        ("0x1d0f", "0xec20", "0x020000", False),
        ("0x19e5", "0xa222", "0x020000", True),
        ("0x19e5", "0x0200", "0x020000", False),
        ("0x1dd8", "0x1002", "0x020000", True),
        ("0x1077", "0x7322", "0x0c0600", True),
        ("0x1af4", "0x1041", "0x020000", False),
        (None, None, None, False),
        (None, None, "0x020700", True),  # InfiniBand, whoever makes it
        (None, None, "0x020000", False),
    ],
)
def test_network_functions_that_could_have_an_rdma_device(
    vendor: str | None, device: str | None, class_code: str | None, able: bool
) -> None:
    """By vendor and device, and only of network classes."""
    assert able == can_rdma(vendor, device, class_code)


def test_unknown_ids_are_no_error() -> None:
    """The table is for names; nothing hangs on it being complete."""
    assert find_device("0x10de", "0xffff") is None
    assert find_device(None, None) is None
    assert is_accelerator("0x10de", "0xffff", "0x030200")
    assert not is_accelerator(None, None, None)


@pytest.mark.parametrize(
    ("vendor", "device", "class_code", "is_one"),
    [
        ("0x1002", "0xffff", "0x120000", True),
        ("0x1002", "0x66a1", "0x030000", True),
        ("0x1002", "0x66a1", "0x060000", False),
        ("0x1002", "0x15bf", "0x030000", False),  # the display of an APU
        ("0x19e5", "0xd807", "0x120000", True),
        ("0x19e5", "0x1711", "0x030000", False),  # the display of a management controller
        ("0x1da3", "0x1060", "0x120000", True),
        ("0x1d0f", "0x7364", "0x088000", True),
        ("0x1d0f", "0x8061", "0x088000", False),
        ("0x8086", "0x1060", "0x120000", False),
    ],
)
def test_accelerators_of_other_makers(vendor: str, device: str, class_code: str, is_one: bool) -> None:
    """By class; where that says too little, by the part."""
    assert is_one == is_accelerator(vendor, device, class_code)


def test_every_part_of_the_references_has_a_name() -> None:
    """An accelerator without a name would still be counted; its virtual functions are marked."""
    parts = {
        "0x1002": "66a0 66a1 738c 740f 7408 740c 74a0 74a1 74a2 74a5 74b5 74b9 75a0 75a3",
        "0x19e5": "d100 d500 d801 d802 d803 d804 d805 d806 d807",
        "0x1da3": "1000 1020 1060",
        "0x1d0f": "7164 7264 7364",
    }

    assert [] == [(v, d) for v, ids in parts.items() for d in ids.split() if find_device(v, f"0x{d}") is None]
    assert {("0x1002", "0x74b5"), ("0x1002", "0x74b9"), ("0x19e5", "0xd805")} == {
        key for key, device in DEVICES.items() if device.virtual_function and key[0] in parts
    }


def test_names_of_parts_that_change_what_is_expected() -> None:
    """Grace's root ports, the fabric manager's ConnectX."""
    assert is_coherent_port("0x10de", "0x22b1")
    assert not is_coherent_port("0x8086", "0x22b1")
    assert is_nvlink_management("0x15b3", "0x0087", None)
    assert not is_nvlink_management("0x15b3", "0x0050", "MT2910 Family [ConnectX-7]")
