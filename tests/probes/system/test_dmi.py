"""Firmware tables: from sysfs and from dmidecode."""

from __future__ import annotations

import pytest

from probes.catalogue import probe
from probes.host.interface import Denied, Failed
from probes.probe import Status, outcome_of
from probes.sources.dump import SavedOutputs
from probes.sources.memory import MemoryFiles
from probes.sources.tree import TreeHost
from probes.system import dmi
from probes.system.dmi import DmiFacts, parse_dmidecode
from tests.probes.machine import Machine

# What firmware says: fillers, serials that need root, the modalias and the device tree as last resorts.


FOLDER = "/sys/class/dmi/id"


def dgx(folder: str = FOLDER) -> Machine:
    """A DGX B200's strings."""
    texts = {"sys_vendor": "NVIDIA", "product_name": "DGXB200", "product_sku": "920-24387-2561-000"}
    return Machine().put({f"{folder}/{name}": f"{text}\n" for name, text in texts.items()})


def test_strings_as_firmware_has_them():
    """Vendor, product and SKU without white space around them."""
    outcome = outcome_of(probe("dmi"), dgx())

    assert Status.OK == outcome.status
    assert DmiFacts("NVIDIA", "DGXB200", "920-24387-2561-000") == outcome.facts
    assert f"{FOLDER}/sys_vendor" in outcome.sources


def test_serial_that_needs_root_is_missing_not_empty():
    """Without privilege the rest is read, and the reason says what would make it whole."""
    host = dgx().put({f"{FOLDER}/product_serial": "1660123000001\n"})
    host.refused[f"{FOLDER}/product_serial"] = Denied("product_serial: Permission denied")
    outcome = outcome_of(probe("dmi"), host)

    assert Status.PARTIAL == outcome.status
    assert outcome.facts.serial is None
    assert outcome.facts.product == "DGXB200"
    assert outcome.reason.startswith("serial numbers need root")


def test_fillers_say_nothing():
    """What the maker left unfilled would be the same on a thousand machines."""
    host = dgx().put({f"{FOLDER}/board_name": "To Be Filled By O.E.M.\n", f"{FOLDER}/chassis_asset_tag": "00000000\n"})
    outcome = outcome_of(probe("dmi"), host)

    assert (None, None) == (outcome.facts.board, outcome.facts.chassis_asset_tag)


def test_folder_without_its_class_link_serves():
    """A gathered tree may hold only /sys/devices/virtual/dmi/id."""
    assert "DGXB200" == outcome_of(probe("dmi"), dgx("/sys/devices/virtual/dmi/id")).facts.product


def test_modalias_alone_names_the_machine_and_says_what_it_lacks():
    """udev's export holds nothing but the modalias."""
    alias = "dmi:bvnAMI:bvr1.32:bd11/03/2025:br1.32:svnNVIDIA:pnDGXA100920-23687-2530-000:rnDGXA100:skuDefaultstring:"
    outcome = outcome_of(probe("dmi"), Machine().put({f"{FOLDER}/modalias": alias}))

    assert Status.PARTIAL == outcome.status
    assert DmiFacts("NVIDIA", "DGXA100920-23687-2530-000", board="DGXA100", bios_version="1.32") == outcome.facts


def test_device_tree_names_an_arm_board():
    """Arm without DMI: the model, with the NUL that ends it in the device tree taken off."""
    host = Machine().put({"/proc/device-tree/model": "NVIDIA Jetson AGX Orin\0"})
    host.put({"/proc/device-tree/serial-number": "1423\0"})

    assert DmiFacts(product="NVIDIA Jetson AGX Orin", serial="1423") == outcome_of(probe("dmi"), host).facts


def test_neither_is_absent():
    """No firmware strings at all: absent, with the places that were looked at."""
    outcome = outcome_of(probe("dmi"), Machine())

    assert Status.ABSENT == outcome.status
    assert "device-tree" in outcome.reason


# dmidecode: the machine's names where only its output was saved.


OUTPUT = """# dmidecode 3.3
Getting SMBIOS data from sysfs.
SMBIOS 3.3.0 present.

Handle 0x0000, DMI type 0, 26 bytes
BIOS Information
\tVendor: Dell Inc.
\tVersion: 2.3.1
\tCharacteristics:
\t\tVersion: 9 is supported

Handle 0x0100, DMI type 1, 27 bytes
System Information
\tManufacturer: Dell Inc.
\tProduct Name: PowerEdge XE9680
\tVersion: Not Specified
\tSerial Number: 4XK2Z34
\tSKU Number: SKU=0BF9;ModelName=PowerEdge XE9680

Handle 0x0200, DMI type 2, 8 bytes
Base Board Information
\tManufacturer: Dell Inc.
\tProduct Name: 0W0DT0

Handle 0x0201, DMI type 2, 8 bytes
Base Board Information
\tProduct Name: a second board

Handle 0x0300, DMI type 3, 22 bytes
Chassis Information
\tSerial Number: To Be Filled By O.E.M.
"""
FACTS = DmiFacts(
    vendor="Dell Inc.",
    product="PowerEdge XE9680",
    product_sku="SKU=0BF9;ModelName=PowerEdge XE9680",
    serial="4XK2Z34",
    board="0W0DT0",
    board_vendor="Dell Inc.",
    bios_version="2.3.1",
)


def test_the_machine_is_named() -> None:
    """By the structure that a line stands in; fillers say nothing, and of two boards the first counts."""
    assert parse_dmidecode(OUTPUT) == FACTS


def test_it_is_read_where_there_is_no_sysfs() -> None:
    """And what could not be read then says so: the structures need root."""
    denied = b"# dmidecode 3.3\n/dev/mem: Permission denied\n"
    host, other = (
        TreeHost("dump", "x", MemoryFiles(), SavedOutputs(MemoryFiles({"dmidecode.txt": text})))
        for text in (OUTPUT.encode(), denied)
    )

    assert (dmi.read(host).facts, dmi.read(host).sources) == (FACTS, ("dmidecode",))
    with pytest.raises(Failed, match="no structure"):
        dmi.read(other)
