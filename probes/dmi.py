"""What the firmware says the machine is: /sys/class/dmi/id (serials need root), the device tree on Arm."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DmiFacts:
    """DMI strings. None: not there, or not readable."""

    vendor: str | None = None  # sys_vendor
    product: str | None = None  # product_name
    product_sku: str | None = None
    serial: str | None = None  # product_serial (root)
    board: str | None = None  # board_name
    board_vendor: str | None = None
    bios_version: str | None = None
    chassis_serial: str | None = None  # (root)
    chassis_asset_tag: str | None = None
