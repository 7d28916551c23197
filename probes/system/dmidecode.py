"""What `dmidecode` prints: the same strings as /sys/class/dmi/id, for bundles that hold no sysfs."""

from __future__ import annotations

import re

from probes.system.dmi import DmiFacts, meaning
from probes.text import Unparsable

# (structure, its line) -> field, as dmidecode 2.12 to 3.6 name them; of several boards or chassis the first counts
_LINES = {
    ("BIOS Information", "Version"): "bios_version",
    ("System Information", "Manufacturer"): "vendor",
    ("System Information", "Product Name"): "product",
    ("System Information", "SKU Number"): "product_sku",
    ("System Information", "Serial Number"): "serial",
    ("Base Board Information", "Manufacturer"): "board_vendor",
    ("Base Board Information", "Product Name"): "board",
    ("Chassis Information", "Serial Number"): "chassis_serial",
    ("Chassis Information", "Asset Tag"): "chassis_asset_tag",
}
_HANDLE = re.compile(r"Handle 0x[0-9A-Fa-f]{4}, DMI type \d{1,3}, ")


def parse_dmidecode(text: str) -> DmiFacts:
    r"""The strings of the system, its board and its chassis. Raises Unparsable where no structure is there.

    >>> parse_dmidecode("Handle 0x0100, DMI type 1, 27 bytes\nSystem Information\n\tProduct Name: DGXH100\n").product
    'DGXH100'
    """
    said: dict[str, str | None] = {}
    handles, title = 0, ""
    for line in text.splitlines():
        if _HANDLE.match(line):
            handles, title = handles + 1, ""
        elif handles and not title:
            title = line.strip()
        elif line.startswith("\t") and not line.startswith("\t\t"):
            name, _, value = line.strip().partition(":")
            field = _LINES.get((title, name))
            if field is not None:
                said.setdefault(field, meaning(value[:256]))
    if not handles:
        first = next((line.strip() for line in text.splitlines() if line.strip()), "nothing")
        raise Unparsable(f"dmidecode printed no structure; it begins with: {first[:120]}")
    return DmiFacts(**said)
