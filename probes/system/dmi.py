"""What the firmware states the machine is: /sys/class/dmi/id (serials need root), the device tree on Arm and POWER; and
the same strings as `dmidecode` prints them, for bundles that hold no sysfs.

Kernel page: Documentation/ABI/testing/sysfs-class-dmi (product_serial and chassis_serial have mode 0400).
"""

import re
from collections.abc import Mapping

from probes.host.interface import Absent, Denied, Failed, Host, ReadError
from probes.host_reader import HostReader, as_text
from probes.named_tuple import NamedTuple
from probes.probe import Reading
from probes.text import ParseError, first_line, lazy_pattern

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
_HANDLE = lazy_pattern(r"Handle 0x[0-9A-Fa-f]{4}, DMI type \d{1,3}, ")


def parse_dmidecode(text: str) -> "DmiFacts":
    r"""The strings of the system, its board and its chassis. Raises ParseError where no structure is there.

    >>> parse_dmidecode("Handle 0x0100, DMI type 1, 27 bytes\nSystem Information\n\tProduct Name: DGXH100\n").product
    'DGXH100'
    """
    values: dict[str, str | None] = {}
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
                values.setdefault(field, meaning(value[:256]))
    if not handles:
        raise ParseError(f"dmidecode printed no structure; it begins with: {first_line(text)}")
    return DmiFacts(**values)


FOLDERS = ("/sys/class/dmi/id", "/sys/devices/virtual/dmi/id")
DEVICE_TREE = "/proc/device-tree"
FIELDS = {
    "sys_vendor": "vendor",
    "product_name": "product",
    "product_sku": "product_sku",
    "product_serial": "serial",
    "board_name": "board",
    "board_vendor": "board_vendor",
    "bios_version": "bios_version",
    "chassis_serial": "chassis_serial",
    "chassis_asset_tag": "chassis_asset_tag",
}
# The modalias joins the same strings, without their blanks: all that udev's export keeps of them.
MODALIAS = lazy_pattern(r"(bvn|bvr|bd|br|efr|svn|pn|pvr|rvn|rn|rvr|cvn|ct|cvr|sku|pfa)(.*)", re.DOTALL)
MODALIAS_FIELDS = {
    "svn": "vendor",
    "pn": "product",
    "sku": "product_sku",
    "rn": "board",
    "rvn": "board_vendor",
    "bvr": "bios_version",
}
# What firmware ships where no one filled a field in: it reports nothing.
FILLERS = frozenset(
    {"0123456789", "123456789", "1234567890", "defaultstring", "invalid", "n/a", "noassettag", "none", "null"}
    | {"notapplicable", "notavailable", "notspecified", "o.e.m.", "oem", "systemmanufacturer", "systemproductname"}
    | {"systemserialnumber", "tobefilledbyo.e.m.", "unknown"}
)


class DmiFacts(NamedTuple):
    """DMI strings. None: not there, not readable, or the firmware's own filler ("To be filled by O.E.M.")."""

    vendor: str | None = None  # sys_vendor
    product: str | None = None  # product_name
    product_sku: str | None = None
    serial: str | None = None  # product_serial (root)
    board: str | None = None  # board_name
    board_vendor: str | None = None
    bios_version: str | None = None
    chassis_serial: str | None = None  # (root)
    chassis_asset_tag: str | None = None


def read(host: Host) -> Reading:
    """DMI strings, or the device tree's model. Raises Absent where the machine has neither."""
    for folder in FOLDERS:
        try:
            answers = host.attributes(folder, tuple(FIELDS))
        except Absent:
            continue
        if answers:
            return _from_dmi(folder, answers)
    reader = HostReader(host)
    modalias = reader.first(*(f"{folder}/modalias" for folder in FOLDERS))
    if modalias:
        reader.gap("only the modalias is here: strings without their blanks, and no serial numbers")
        return Reading(parse_modalias(modalias), reader.sources, reader.missing)
    if not host.live and host.has_output("dmidecode"):
        return _from_dmidecode(reader)
    model = reader.text(f"{DEVICE_TREE}/model")
    if not model:
        raise Absent(f"neither {FOLDERS[0]} nor {DEVICE_TREE}/model is here")
    serial = reader.text(f"{DEVICE_TREE}/serial-number")
    vendor = reader.text(f"{DEVICE_TREE}/vendor")
    facts = DmiFacts(vendor=meaning(vendor or ""), product=model, serial=meaning(serial or ""))
    return Reading(facts, reader.sources, reader.missing)


def parse_modalias(text: str) -> DmiFacts:
    """The strings that a modalias holds.

    >>> parse_modalias("dmi:bvnDellInc.:bvr2.0.21:svnDellInc.:pnPowerEdgeR820:pvr:rvnDellInc.:rn:").product
    'PowerEdgeR820'
    """
    values: dict[str, str | None] = {}
    for part in text.split(":")[1:]:
        match = MODALIAS.fullmatch(part)
        if match and match[1] in MODALIAS_FIELDS:
            values.setdefault(MODALIAS_FIELDS[match[1]], meaning(match[2]))
    return DmiFacts(**values)


def meaning(text: str) -> str | None:
    """A DMI string, or None where it is empty or only a filler.

    >>> meaning("DGXA100 920-23687-2530-000"), meaning("To Be Filled By O.E.M."), meaning("0000")
    ('DGXA100 920-23687-2530-000', None, None)
    """
    text = text.strip()
    if text.casefold().replace(" ", "") in FILLERS or not text.strip("0 .-xX"):
        return None
    return text


def _from_dmi(folder: str, answers: Mapping[str, bytes | ReadError]) -> Reading:
    values: dict[str, str | None] = {}
    denied: list[str] = []
    others: list[str] = []
    for name, answer in answers.items():
        if isinstance(answer, Denied):
            denied.append(name)
        elif isinstance(answer, ReadError):
            others.append(answer.reason)
        else:
            values[FIELDS[name]] = meaning(as_text(answer))
    reasons = ([f"serial numbers need root ({', '.join(denied)})"] if denied else []) + others
    sources = tuple(f"{folder}/{name}" for name in answers if FIELDS[name] in values)
    return Reading(DmiFacts(**values), sources, "; ".join(reasons) or None)


def _from_dmidecode(reader: HostReader) -> Reading:
    text = reader.output("dmidecode")
    if text is None:
        raise Failed(reader.missing or "dmidecode: no output")
    try:
        return Reading(parse_dmidecode(text), reader.sources, reader.missing)
    except ParseError as why:
        raise Failed(str(why)) from None
