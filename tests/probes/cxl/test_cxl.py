"""The CXL bus: a described machine, what files may refuse, and outputs of `cxl list` in all of their forms."""

from __future__ import annotations

import json
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.outputs.html.page import render_html
from agent.outputs.text.page import render_page
from probes.catalogue import probe
from probes.cxl.cxl_list import parse_cxl_list
from probes.cxl.facts import CxlFacts
from probes.cxl.probe import BUS
from probes.host.interface import Denied
from probes.kernel.log_events import events
from probes.kernel.log_lines import lines
from probes.probe import Status
from probes.run import run_probes
from probes.sources.memory import SymlinkNode
from probes.text import ParseError
from tests.machines import machine, scan_machine
from tests.probes.machine import Machine, ask, read_facts

SHAPE = "2xl40s-2s-4xcxl"
FUNCTION = "/sys/devices/pci0000:38/0000:38:01.0/0000:39:00.0"
GIB = 1 << 30
MEMDEV = {"memdev": "mem0", "ram_size": 128 * GIB, "numa_node": 0, "host": "0000:39:00.0"}


outcome, facts = partial(ask, "cxl"), partial(read_facts, "cxl")


def bus(**memdev: str) -> Machine:
    """A bus of one memory device, whose files these are."""
    host = Machine(live=True, kind="live")
    host.put({f"{FUNCTION}/mem0/{name.replace('__', '/')}": text for name, text in memdev.items()})
    return host.put({f"{BUS}/mem0": SymlinkNode(f"{FUNCTION}/mem0")})


def test_the_described_machine_has_two_regions() -> None:
    """Four devices with their ports, two regions over two each, and the nodes that are their memory."""
    read = facts(machine(SHAPE))

    assert [
        ("mem0", "0000:d3:00.0", 128 * GIB, 128 * GIB, "endpoint5", ("root0", "port1")),
        ("mem1", "0000:a9:00.0", 128 * GIB, 128 * GIB, "endpoint6", ("root0", "port2")),
        ("mem2", "0000:5b:00.0", 128 * GIB, 128 * GIB, "endpoint7", ("root0", "port3")),
        ("mem3", "0000:39:00.0", 128 * GIB, 128 * GIB, "endpoint8", ("root0", "port4")),
    ] == [(m.name, m.address, m.ram_bytes, m.decoded_bytes, m.endpoint, m.ports) for m in read.memdevs]
    assert [
        ("region0", 256 * GIB, 2, 256, True, ("mem3", "mem2"), 2, None, None, None, 1),
        ("region1", 256 * GIB, 2, 256, True, ("mem1", "mem0"), 3, None, None, None, 1),
    ] == [tuple(region) for region in read.regions]


def test_a_device_without_endpoint_has_no_decoders() -> None:
    """What is not shown is None, and 0 is a size."""
    (memdev,) = facts(bus(ram__size="0x0", ram__qos_class="-1", numa_node="-1", firmware_version="")).memdevs

    assert ("mem0", "0000:39:00.0", 0, None, None, None, None, None, (), None, None, None) == tuple(memdev)


def test_an_endpoint_of_no_memory_device_and_one_without_decoder() -> None:
    """A port that is half torn down is nobody's; without a decoder it is not known what is used."""
    host = bus(ram__size="0x100")
    host.put({f"{BUS}/endpoint1/depth": "2\n", f"{BUS}/endpoint2/uport": SymlinkNode(f"{FUNCTION}/mem0")})
    (memdev,) = facts(host).memdevs

    assert ("endpoint2", None) == (memdev.endpoint, memdev.decoded_bytes)


def test_a_decoder_that_is_refused_leaves_the_use_unknown() -> None:
    """One of two decoders may not be read: their sum is not known, and the outcome says why."""
    host = bus(ram__size="0x100")
    host.put({f"{BUS}/endpoint2/uport": SymlinkNode(f"{FUNCTION}/mem0"), f"{BUS}/decoder2.0/dpa_size": "0x80\n"})
    host.put({f"{BUS}/decoder2.1/dpa_size": "0x80\n"})
    whole = facts(host).memdevs[0].decoded_bytes
    host.refused[f"{BUS}/decoder2.1/dpa_size"] = Denied("EACCES")
    read = outcome(host)

    assert (256, None) == (whole, read.facts.memdevs[0].decoded_bytes)
    assert (Status.PARTIAL, "EACCES") == (read.status, read.reason)


def test_no_bus_is_absent() -> None:
    """A kernel without CXL: the reason names the folder."""
    read = outcome(Machine(live=True, kind="live"))

    assert Status.ABSENT == read.status
    assert BUS in (read.reason or "")


@pytest.mark.parametrize("shape", ["8xh100-sxm-2s-8xcx7-ib-4nvsw", "cpu-only-2s"])
def test_without_an_expander_nothing_is_asked(shape: str) -> None:
    """The PCI list decides: the probe does not run."""
    results = run_probes([probe("pci"), probe("cxl")], machine(shape), 30.0)

    (read,) = [outcome for outcome in results.outcomes if outcome.name == "cxl"]
    assert (Status.ABSENT, "no device of PCI class 0x0502", ()) == (read.status, read.reason, read.sources)


def test_a_saved_output_is_read_where_there_is_no_bus() -> None:
    """Nested as -v prints it, or a list; an idle device has no decoder."""
    endpoint = {
        "endpoint": "endpoint2",
        "memdev": MEMDEV,
        "decoders:endpoint2": [{"decoder": "decoder2.0", "dpa_size": 64 * GIB}],
    }
    region = {
        "region": "region0", "size": 64 * GIB, "interleave_ways": 2, "interleave_granularity": 256,
        "decode_state": "reset", "mappings": [{"position": 1, "memdev": "mem0"}, {"position": 0}],
        "daxregion": {"devices": [{"target_node": 2}]},
    }  # fmt: skip
    document = [
        {"bus": "root0", "ports:root0": [{"port": "port1", "endpoints:port1": [endpoint]}], "regions": [region]}
    ]
    host = Machine(kind="dump").says("cxl", "list", "-v", stdout=json.dumps(document))
    read = facts(host)

    first = ("mem0", "0000:39:00.0", 128 * GIB, 0, 64 * GIB, None, 0, "endpoint2", ("root0", "port1"), None, None, None)
    assert first == read.memdevs[0]
    assert ("region0", 64 * GIB, 2, 256, False, ("mem0",), 2, None, None, None, None) == read.regions[0]


def test_classes_are_those_of_the_device_and_of_its_window() -> None:
    """A region that is a folder of its own, without a decoder above it, is in a window that is not known."""
    host = machine(SHAPE)
    alone = bus(ram__size="0x100", ram__qos_class="7").put({f"{BUS}/region0/size": "0x100\n"})

    assert ({1}, {1}) == ({m.qos_class for m in facts(host).memdevs}, {r.qos_class for r in facts(host).regions})
    assert [7] == [memdev.qos_class for memdev in parse_cxl_list(json.dumps([MEMDEV | {"ram_qos_class": 7}])).memdevs]
    assert (7, None) == (facts(alone).memdevs[0].qos_class, facts(alone).regions[0].qos_class)


def test_sizes_may_be_texts() -> None:
    """As `-u` prints them."""
    (memdev,) = parse_cxl_list(json.dumps([MEMDEV | {"ram_size": "1.50 GiB (1.61 GB)", "host": 7}])).memdevs

    assert (3 * GIB // 2, None) == (memdev.ram_bytes, memdev.address)


@pytest.mark.parametrize("text", ["", "Warning: no matching devices found", '[{"memdev":"mem0",}]', "[" * 100_000])
def test_what_is_no_json_is_refused(text: str) -> None:
    """One line, and no traceback."""
    with pytest.raises(ParseError, match="cxl list: no JSON"):
        parse_cxl_list(text)


_KEYS = st.sampled_from(
    ["memdev", "host", "endpoint", "region", "mappings", "daxregion", "devices", "decoders:e", "bus"]
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.just("e"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS, inner, max_size=6),
    max_leaves=24,
)


@given(_JSON)
def test_any_document_gives_facts(document: object) -> None:
    """Whatever is where: facts, or a ParseError."""
    assert isinstance(parse_cxl_list(json.dumps(document)), CxlFacts)


def test_text_and_page_show_devices_regions_and_nodes() -> None:
    """What is broken is shown as it is."""
    report = scan_machine(SHAPE, "cxl-no-driver")
    text = "\n".join("".join(part for part, _ in line) for line in render_page(report, 100))
    page = render_html(report)

    assert "memory only: NUMA 2 of region0, NUMA 3" in text
    assert "CXL mem0 a9:00.0  128 GiB, Gen5 x8, at NUMA 1, cxl_pci" in text
    assert "CXL memory d3:00.0  no memory device, Gen5 x8, no driver" in text
    assert "CXL region1  256 GiB over mem0, not committed" in text
    assert ">mem0<" in page
    assert "CXL memory, 128 GiB" in page
    assert "NUMA 2" in page


def test_media_errors_of_a_saved_list() -> None:
    """By the source that the device states; none asked is not none found."""
    records = [{"offset": "0x40000000", "length": 64, "source": "Injected"}, {"source": 5}, {"source": "Injected"}]
    said = [{"memdev": "mem9", "media_errors": records}, {"memdev": "mem1", "host": "x", "media_errors": []}]
    read = parse_cxl_list(json.dumps([*said, MEMDEV, {"memdev": "mem7", "host": "x", "media_errors": "many"}]))

    assert {"mem1": {}, "mem7": None, "mem9": {"Injected": 2, "Unknown": 1}} == {
        memdev.name: memdev.media_errors for memdev in read.memdevs if memdev.name != MEMDEV["memdev"]
    }
    assert [None] == [memdev.media_errors for memdev in read.memdevs if memdev.name == MEMDEV["memdev"]]


def test_health_and_blocks_of_a_saved_list() -> None:
    """What a device reports that is not as it should be; a region that is not online, its devices not listed."""
    health = {"maintenance_needed": True, "performance_degraded": False, "media_normal": False, "ext_temperature": "x"}
    dax = {"devices": [{"target_node": 3, "mode": "system-ram", "online_memblocks": 0, "total_memblocks": 4}]}
    text = json.dumps(
        [{"memdev": "mem0", "health": health}, {"region": "region4", "interleave_ways": 2, "daxregion": dax}]
    )
    read = parse_cxl_list("# cxl list -RH\n" + text)

    assert [("mem0", ("maintenance_needed", "media_normal"))] == [(m.name, m.health) for m in read.memdevs]
    assert [(3, "system-ram", 0, 4, ())] == [
        (r.numa_node, r.mode, r.online_blocks, r.total_blocks, r.memdevs) for r in read.regions
    ]
    assert parse_cxl_list(json.dumps([{"memdev": "mem0", "health": {"media_normal": True}}])).memdevs[0].health == ()
    assert parse_cxl_list(json.dumps([MEMDEV])).memdevs[0].health is None


@pytest.mark.parametrize(("driver", "mode"), [("kmem", "system-ram"), ("device_dax", "devdax"), ("other", None)])
def test_what_a_region_is_used_as(driver: str, mode: str | None) -> None:
    """By the driver of its dax device."""
    host = bus(ram__size="0x100")
    dax = "/sys/devices/platform/ACPI0017:00/root0/region0/dax_region0"
    host.put(
        {f"{BUS}/region0/size": "0x100\n", f"{BUS}/dax_region0": SymlinkNode(dax), f"{dax}/dax0.0/target_node": "2\n"}
    )
    host.put({f"{dax}/dax0.0/driver": SymlinkNode(f"/sys/bus/dax/drivers/{driver}")})

    assert [(2, mode)] == [(region.numa_node, region.mode) for region in facts(host).regions]


RECORD = """\
[ 4711.1] {1}[Hardware Error]: event severity: recoverable
[ 4711.1] {1}[Hardware Error]:  Error 0, type: recoverable
[ 4711.1] {1}[Hardware Error]:   section_type: CXL Protocol Error
[ 4711.1] {1}[Hardware Error]:   agent_type: 2, CXL Device
[ 4711.1] {1}[Hardware Error]:   agent_address: 0000:0c:00.0
[ 4711.1] {1}[Hardware Error]:  Error 1, type: corrected
[ 4711.1] {1}[Hardware Error]:   section_type: PCIe error
[ 4711.1] {1}[Hardware Error]:   agent_address: 0000:0d:00.0
[ 4711.2] {2}[Hardware Error]:   section_type: CXL Protocol Error
[ 4711.2] {3}[Hardware Error]:   agent_address: 0000:0e:00.0
[ 4711.2] {4}[Hardware Error]:   section_type: CXL Protocol Error
[ 4711.2] {4}[Hardware Error]:   agent_address: 0000:0f:00.0
""".replace(".1]", ".100000]").replace(".2]", ".200000]")


def test_records_of_the_firmware_in_the_kernel_log() -> None:
    """Each line belongs to its record; sections of other kinds, and agents of other records, are no CXL errors."""
    found, _ = events(lines(RECORD, None))

    assert [("cxl_protocol", "0000:0c:00.0", "recoverable"), ("cxl_protocol", "0000:0f:00.0", None)] == [
        (event.kind, event.subject, event.code) for event in found
    ]
    assert ["recoverable, agent_address", "severity not stated, agent_address"] == [
        event.text.partition(", ")[2].partition(":")[0] for event in found
    ]
