"""dmidecode: the machine's names where only its output was saved."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.host.interface import Failed
from probes.sources.dump import SavedOutputs
from probes.sources.memory import MemoryFiles
from probes.sources.tree import TreeHost
from probes.system import dmi
from probes.system.dmi import DmiFacts, parse_dmidecode
from probes.text import ParseError

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


@given(st.text() | st.text(alphabet="Handle 0x1,DMItyp\n\t:S"))
def test_any_text_is_facts_or_unparsable(text: str) -> None:
    """Never anything else."""
    try:
        facts = parse_dmidecode(text)
    except ParseError:
        return
    assert isinstance(facts, DmiFacts)
