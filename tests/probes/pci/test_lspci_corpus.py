"""The lspci parser on real outputs: what their index states, both halves of a dump, both readings of a machine."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from probes.pci.facts import PciFunction, build_functions
from probes.pci.lspci import parse_lspci
from probes.pci.sysfs import read_pci
from probes.text import ParseError
from tests.probes.machine import recorded

Machine = dict[str, PciFunction]

H100_SERVER = "lspci/xe9680-8xh100_lspci_-vvv.txt"
NO_FUNCTIONS = {  # lines of one register, and two drawings of a tree
    "acsctl-grep-all-off.txt",
    "tv-asus-esc8000a-e12.txt",
    "tvnn-dell-2s-broadwell.txt",
}
HEX_ROW = re.compile(r"(?m)^[0-9a-f]{2,3}: [0-9a-f ]+\n?")


@pytest.fixture
def text(corpus: Path) -> Callable[[str], str]:
    """One output of the corpus."""
    return lambda name: (corpus / name).read_text(errors="replace")


@pytest.fixture
def machine(text: Callable[[str], str]) -> Callable[[str], Machine]:
    """The functions of one output, by address."""
    return lambda name: _parsed(text(name if "/" in name else f"text/lspci/{name}"))


def test_every_output_is_read(corpus: Path) -> None:
    """As many functions as lines begin with an address; what lists none is refused."""
    refused, files = set(), [*(corpus / "lspci").iterdir(), *(corpus / "text" / "lspci").iterdir()]

    for path in files:
        output = path.read_text(errors="replace")
        heads = re.findall(r"(?m)^(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7](?= |$)", output)
        try:
            result = _parsed(output)
        except ParseError:
            refused.add(path.name)
            continue

        assert len(set(heads)) == len(result), path.name
        assert {None, *result} >= {function.parent for function in result.values()}, path.name

    assert NO_FUNCTIONS == refused


@pytest.mark.parametrize(
    ("name", "address", "link"),
    [
        ("lnk-4x-mi50-x8-gen1.txt", "0000:31:00.0", (2.5, 8, 16.0, 16)),
        ("lnk-4x-mi50-x8-gen4.txt", "0000:4e:00.0", (16.0, 8, 16.0, 16)),
        ("pciutils-cap-dpc.txt", "0000:05:01.0", (8.0, 4, 8.0, 4)),
        ("pciutils-cap-phy32.txt", "0000:2e:00.0", (16.0, 2, 32.0, 2)),
        ("vvv-arm-n1sdp-plx.txt", "0000:00:00.0", (5.0, 16, 8.0, 16)),
        ("vvv-cx4lx-domain-prefixed.txt", "0000:01:00.0", (8.0, 8, 8.0, 8)),
        ("vvv-cx7-gen4x8-downgraded-and-vf.txt", "0000:b1:00.1", (16.0, 8, 32.0, 16)),
        ("vvv-cx7-gen4x8-downgraded-and-vf.txt", "0000:b1:00.2", (None, 0, 32.0, 16)),
        ("vvv-cx7-gen5x16.txt", "0000:21:00.0", (32.0, 16, 32.0, 16)),
        ("vvv-gpu-rtx6000ada-idle.txt", "0000:01:00.0", (2.5, 16, 16.0, 16)),
        ("vvv-gpu-rtx6000ada-numa1.txt", "0000:e1:00.0", (2.5, 16, 16.0, 16)),
        ("vvv-h100-gpu-gen5x16-correrr.txt", "0000:19:00.0", (32.0, 16, 32.0, 16)),
        ("vvv-nvme-mps128-downgraded.txt", "0000:04:00.0", (2.5, 1, 8.0, 4)),
        ("vvv-plx8725-acs-on.txt", "0000:01:00.0", (8.0, 8, 8.0, 8)),
        ("vvv-tegra-rootport-downgraded.txt", "0005:00:00.0", (5.0, 1, 16.0, 8)),
    ],
)
def test_links_as_the_index_states_them(
    machine: Callable[[str], Machine], name: str, address: str, link: tuple[float | None, int, float, int]
) -> None:
    """Running speed and width, possible speed and width, whatever marks stand behind them."""
    function = machine(name)[address]

    assert link == (
        function.current_link_speed_gt_s,
        function.current_link_width,
        function.max_link_speed_gt_s,
        function.max_link_width,
    )


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("vvv-a100-sxm-numa5-TRUNCATED.txt", (5, 256, 512, False)),
        ("vvv-cx7-gen5x16.txt", (0, 512, 512, True)),
        ("vvv-gpu-rtx6000ada-idle.txt", (0, 256, 512, True)),
        ("vvv-h100-gpu-gen5x16-correrr.txt", (0, 256, 4096, True)),
        ("vvv-nvme-mps128-downgraded.txt", (None, 128, 512, True)),
    ],
)
def test_settings_as_the_index_states_them(
    machine: Callable[[str], Machine], name: str, settings: tuple[int | None, int, int, bool]
) -> None:
    """NUMA node, payload and read request sizes, and whether the output goes far enough to know of ACS."""
    (function,) = machine(name).values()

    assert settings == (
        function.numa_node,
        function.max_payload_bytes,
        function.max_read_request_bytes,
        function.acs_known,
    )


def test_access_control_as_the_index_states_it(machine: Callable[[str], Machine]) -> None:
    """Off on the NIC, redirecting on the switch port."""
    nic = machine("vvv-cx7-gen5x16.txt")["0000:21:00.0"]
    port = machine("vvv-plx8725-acs-on.txt")["0000:02:01.0"]

    assert nic.acs is not None
    assert port.acs is not None
    assert (frozenset(), True) == (nic.acs.control, {"SV", "RR"} <= port.acs.control)


def test_an_azure_node_has_a_domain_for_every_device(machine: Callable[[str], Machine]) -> None:
    """-nn only: numbers and domains, and no locality at all but the root buses."""
    result = machine("nn-azure-nda100v4.txt").values()

    ids = Counter(f"{str(item.vendor)[2:]}:{str(item.device)[2:]}" for item in result)
    assert (8, 6, 8, 1) == (ids["10de:20b2"], ids["10de:1af1"], ids["15b3:101c"], ids["15b3:1016"])
    assert {None} == {item.parent for item in result}
    assert {None} == {item.driver for item in result}


def test_devices_that_fell_off_the_bus(machine: Callable[[str], Machine]) -> None:
    """All of the listed ones are gone; elsewhere none is."""
    assert all(function.gone for function in machine("vvv-rev-ff-fallen-off-bus.txt").values())
    assert not any(function.gone for function in machine(H100_SERVER).values())


def test_empty_slots_have_no_lanes(machine: Callable[[str], Machine]) -> None:
    """The two-socket Dell marks every value; its GPU is there, its empty ports run nothing."""
    result = machine("vvv-FULL-socket0-dell-p100-ok-suffix.txt")

    assert "0x030200" == result["0000:04:00.0"].class_code
    assert {0} == {
        value.current_link_width
        for value in result.values()
        if value.max_link_width and value.current_link_speed_gt_s is None
    }


def test_text_and_bytes_of_the_same_function_agree(corpus: Path) -> None:
    """Every dump that holds both: the text parser and the decoder say the same of each register that both see."""
    compared = Counter[str]()

    for path in (corpus / "lspci").iterdir():
        output = path.read_text(errors="replace")
        if not HEX_ROW.search(output):
            continue
        text, bytes_ = _parsed(HEX_ROW.sub("", output)), _parsed(re.sub(r"(?m)^[ \t].*\n", "", output))
        for address, result in text.items():
            for field in PciFunction._fields:
                one, other = getattr(result, field), getattr(bytes_[address], field)
                if None not in (one, other) and field not in _TEXT_ONLY:
                    compared[field] += 1
                    if field == "serial" and path.name in ("cap-address-xlation", "cap-pcie-2"):
                        one = "-".join(reversed(one.split("-")))  # pciutils 3.0 printed it from its other end
                    assert one == other, f"{path.name} {address} {field}"

    assert 20 < compared["current_link_width"]
    assert 10 < compared["port_type"]
    assert {"acs", "ats", "serial", "target_link_speed_gt_s", "max_read_request_bytes", "aspm"} <= set(compared)


_TEXT_ONLY = {
    "acs_known",  # bytes know it where the text was printed by somebody who may not
    "aer_status",  # of a live host the kernel counts the errors
    "gone",
    "name",  # of the head line, which both halves have
    "vendor_name",
    "driver",
}
_UNLIKE = {  # the tree was made from the text, and keeps less of it
    "aer_status",
    "bars_bytes",
    "config_bytes",
    "slot_occupied",
    "slot_powered",
    "link_active",
    "subsystem_vendor",
    "subsystem_device",
    "vendor_name",
    "name",
    "vendor",  # three makers that the tree does not know are 0xffff there
    "device",
    "revision",
    "power_state",
    "serial",
    "target_link_speed_gt_s",
    "extended_tags_supported",
    "ten_bit_tags",
    "ten_bit_tags_supported",
    "virtual_functions",
    "virtual_functions_supported",
    "ats",
    "acs_known",  # the text shows no extended capability of integrated endpoints: none there, or none to read
}


def test_both_doors_to_the_h100_server_lead_to_the_same_functions(
    corpus: Path, machine: Callable[[str], Machine]
) -> None:
    """sysfs and text of one machine: the same places, classes, drivers, slots, NUMA, links, settings and ACS."""
    by_text = machine(H100_SERVER)
    by_sysfs = {
        function.address: function for function in read_pci(recorded(corpus, "lspci-xe9680-h100")).facts.functions
    }

    assert list(by_sysfs) == list(by_text)
    for field in PciFunction._fields:
        if field not in _UNLIKE:
            differing = [key for key in by_text if getattr(by_text[key], field) != getattr(by_sysfs[key], field)]
            assert [] == differing, field
    for key, name in ((key, name) for key in by_text for name in ("vendor", "device")):
        assert getattr(by_sysfs[key], name) in ("0xffff", getattr(by_text[key], name)) or not getattr(
            by_text[key], name
        )


def _parsed(output: str) -> Machine:
    return {function.address: function for function in build_functions(parse_lspci(output).drafts)}
