"""hwloc's XML and its masks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.system.cpu import cpulist, members, parse_cpulist
from probes.text import ParseError
from probes.topology_files.hwloc_xml import parse
from tests.probes.topology_files.samples import HWLOC

# What a hwloc topology says.


def test_functions_with_their_place_and_what_their_links_carry() -> None:
    """Host bridges begin root buses; the bandwidth is all that is told of a link; zeros are no ids."""
    functions = {f.address: f for f in parse(HWLOC).facts["pci"].functions}
    bridge, gpu, nic = functions.values()

    assert (None, "0000:17", "0x060400", 15.754) == (
        bridge.parent,
        bridge.root_bus,
        bridge.class_code,
        bridge.link_gbyte_s,
    )
    assert ("0000:17:00.0", "0000:17", "0x1db8", "0x131d") == (
        gpu.parent,
        gpu.root_bus,
        gpu.device,
        gpu.subsystem_device,
    )
    assert (None, "0000:ae", None, "4", "ConnectX-5 Ex") == (
        nic.parent,
        nic.root_bus,
        nic.link_gbyte_s,
        nic.slot,
        nic.name,
    )
    assert [0, 0, 1] == [f.numa_node for f in functions.values()]
    assert {None} == {f.current_link_width for f in functions.values()} | {f.max_link_width for f in functions.values()}


def test_nodes_of_memory_alone_have_no_processors_of_their_own() -> None:
    """hwloc gives them those of the node beside them. Distances are put in the order of the numbers."""
    nodes = parse(HWLOC).facts["numa"].nodes

    assert [(0, "0-3", 1 << 20), (1, "4-7", 1024), (2, "", 1024)] == [(n.id, n.cpus, n.memory_mib) for n in nodes]
    assert [(10, 21, 80), (21, 10, 80), (80, 80, 10)] == [n.distances for n in nodes]


def test_the_machine() -> None:
    """Names, processors; a firmware's filler is no serial number; a metal instance is no guest."""
    result = parse(HWLOC).facts

    assert ("Amazon EC2", "g4dn.metal", None) == (result["dmi"].vendor, result["dmi"].product, result["dmi"].serial)
    assert ("GenuineIntel", 6, 85, "Xeon", 2, "0-7") == result["cpu"][:6]
    assert ("n1", "5.10.1", "x86_64") == (result["kernel"].hostname, result["kernel"].kernel, result["kernel"].arch)
    assert (None, True, 1024 * 1026) == (
        result["kernel"].virtualization,
        result["kernel"].virtualization_known,
        result["kernel"].memory_mib,
    )


def test_devices() -> None:
    """GPUs of NVML are the driver's own list; RDMA devices have state, LID and GIDs."""
    result = parse(HWLOC).facts
    device, interface = result["rdma"].devices[0], result["netdev"].netdevs[0]

    assert [(0, "0000:18:00.0", "Tesla V100", "GPU-1", "032")] == [
        (g.index, g.address, g.name, g.uuid, g.serial) for g in result["nvml"].gpus
    ]
    assert result["nvml"].told_by is None
    assert ("mlx5_0", "0000:af:00.0", "506b:4b03:003c:eee8") == (device.name, device.address, device.node_guid)
    assert [(1, "ACTIVE", 0x527, "fe80:0000:0000:0000:506b:4b03:003c:eee8")] == [
        (p.port, p.state, p.lid, p.gids[0].gid) for p in device.ports
    ]
    assert ("ib0", "0000:af:00.0", 1, "20:00") == (interface.name, interface.address, interface.dev_port, interface.mac)


@pytest.mark.parametrize(("backend", "told_by"), [("cuda0", "hwloc-xml"), ("rsmi0", "hwloc-xml"), ("nvml0", None)])
def test_whose_list_of_gpus_it_is(backend: str, told_by: str | None) -> None:
    """CUDA hides GPUs by an environment variable; what ROCm's library lists is not asked of a driver of ours."""
    result = parse(HWLOC.replace(b'"nvml0"', f'"{backend}"'.encode())).facts["nvml"]

    assert told_by == result.told_by
    assert ["Tesla V100"] == [gpu.name for gpu in result.gpus]


def test_a_display_that_no_library_numbers_or_names_is_no_gpu() -> None:
    """The VGA of a management controller has a card0 of DRM, and no model."""
    display = HWLOC.replace(b'"nvml0"', b'"card0"').replace(b'"GPUModel"', b'"Vendor"')

    assert HWLOC != display
    assert "nvml" not in parse(display).facts


@pytest.mark.parametrize(
    ("vendor", "maker", "gpus"),
    [
        ("1d0f", "NVIDIA Corporation", 0),  # the VGA adapter of a cloud
        ("10de", "NVIDIA Corporation", 1),
        ("1002", "Advanced Micro Devices, Inc.", 1),
        ("1002", "NVIDIA Corporation", 0),
        ("1d0f", "Nobody", 1),
        ("0000", "NVIDIA Corporation", 1),
    ],
)
def test_a_gpu_that_opencl_places_at_another_makers_function_is_none(vendor: str, maker: str, gpus: int) -> None:
    opencl = HWLOC.replace(b'"nvml0"', b'"opencl0d0"').replace(
        b'<info name="NVIDIASerial"', f'<info name="GPUVendor" value="{maker}"/><info name="NVIDIASerial"'.encode()
    )
    device = "1111" if vendor != "0000" else "0000"
    facts = parse(opencl.replace(b"[10de:1db8]", f"[{vendor}:{device}]".encode())).facts

    assert gpus == (len(facts["nvml"].gpus) if "nvml" in facts else 0)


def test_format_3_names_kinds_by_bits() -> None:
    """16 is a network, 32 OpenFabrics; 2 and 3, which were those, are memory."""
    newer = HWLOC.replace(b'version="2.0"', b'version="3.0"')
    kinds = newer.replace(b'osdev_type="3"', b'osdev_type="32"').replace(b'osdev_type="2"', b'osdev_type="16"')

    assert {"rdma", "netdev"} <= set(parse(kinds).facts)
    assert not {"rdma", "netdev"} & set(parse(newer).facts)


def test_xgmi_peers_are_pairs() -> None:
    """Each once, whoever names the other."""

    def accelerator(number: int, peers: str) -> str:
        return (
            f'<object type="PCIDev" pci_busid="0000:0{number}:00.0" pci_type="1200 [1002:74a0] [1002:74a0] 00">'
            f'<object type="OSDev" name="rsmi{number}" osdev_type="1"><info name="XGMIPeers" value="{peers}"/>'
            f'<info name="AMDUUID" value="0000"/></object></object>'
        )

    inside = accelerator(0, "rsmi1 rsmi9 ") + accelerator(1, "rsmi0 rsmi1") + accelerator(2, "")
    result = parse(f'<topology><object type="Machine">{inside}</object></topology>'.encode()).facts["nvml"]

    assert [("GPU0", "GPU1", "XGMI")] == list(result.pairs)
    assert {None} == {gpu.uuid for gpu in result.gpus}


def test_without_node_sets_the_nodes_in_an_object_tell() -> None:
    """As in files that were written by hand."""
    bare = HWLOC.replace(b"nodeset", b"no")

    assert [0, 0, 1] == [f.numa_node for f in parse(bare).facts["pci"].functions]


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        (b'"0000:18:00.0"', b'"0000:17:00.0"', "twice"),
        (b'"0000:18:00.0"', b'"18:00.0"', "not a PCI address"),
        (b'"NUMANode" os_index="2"', b'"NUMANode" os_index="0"', "number of their own"),
        (b"<object", b"<thing", "not XML|without an object"),
    ],
)
def test_what_contradicts_itself_is_refused(old: bytes, new: bytes, fault: str) -> None:
    """Each with what is wrong."""
    with pytest.raises(ParseError, match=fault):
        parse(HWLOC.replace(old, new))


# Masks in every spelling are lists of processors, and a mask that is none is refused.


@given(st.sets(st.integers(0, 4000)))
def test_a_mask_is_the_list_that_the_kernel_would_print(numbers: set[int]) -> None:
    """Groups of 32 bits, the highest first, with or without 0x, empty where zero."""
    value = sum(1 << number for number in numbers)
    groups = [f"{value >> shift & 0xFFFFFFFF:08x}" for shift in range(4000 // 32 * 32, -1, -32)]

    assert tuple(sorted(numbers)) == members(",".join(groups)) == parse_cpulist(cpulist(sorted(numbers)))
    assert members(",".join(groups)) == members(",".join("" if int(g, 16) == 0 else f"0x{g}" for g in groups))


@pytest.mark.parametrize("mask", ["0-3", "0xf...f,0x1", "123456789", "0x1;0x2", ",".join(["0"] * 3000)])
def test_what_is_no_mask_is_refused(mask: str) -> None:
    """Among them hwloc's mask without end."""
    with pytest.raises(ParseError):
        members(mask)
