"""What a NCCL topology says, and what it only seems to say."""

from __future__ import annotations

import pytest

from probes.text import ParseError
from probes.topology_files.nccl_topo import parse
from tests.probes.topology_files.samples import NCCL


def system(*inside: str, version: int = 1, numa: str = "0") -> bytes:
    """A topology of one processor."""
    return f'<system version="{version}"><cpu numaid="{numa}">{"".join(inside)}</cpu></system>'.encode()


def gpu(address: str, dev: int, *links: str, ids: str = 'vendor="0x10de" device="0x2330"') -> str:
    """A GPU with its links."""
    return f'<pci busid="{address}" class="0x030200" {ids}><gpu dev="{dev}" sm="90">{"".join(links)}</gpu></pci>'


def test_bridges_are_switches_on_a_host_bridge_that_is_not_told() -> None:
    """NCCL leaves out root ports and downstream ports: what it keeps of a switch is its upstream port."""
    functions = {f.address: f for f in parse(NCCL).facts["pci"].functions}

    assert ["0000:15:00.0", "0000:19:00.0", "0000:1a:00.0", "0000:28:00.0", "0000:9d:00.0"] == list(functions)
    assert (None, "", "upstream") == (*functions["0000:15:00.0"][1:3], functions["0000:15:00.0"].port_type)
    assert ("0000:15:00.0", "", None) == (*functions["0000:19:00.0"][1:3], functions["0000:19:00.0"].port_type)
    assert [0, 0, 0, 0, 1] == [f.numa_node for f in functions.values()]


def test_link_numbers_are_capabilities_but_those_of_a_gpu_which_nobody_can_date() -> None:
    """NCCL 2.30 began to write what a GPU runs at; nothing in the file tells who wrote it. An empty one is none."""
    functions = {f.address: f for f in parse(NCCL).facts["pci"].functions}
    nic, gpu, nothing = (functions[f"0000:{place}"] for place in ("1a:00.0", "19:00.0", "28:00.0"))

    assert (None, None, 32.0, 16, None) == _link(nic)[:5]
    assert (32.0, 16, None, None) == _link(gpu)[:4]
    assert "NCCL's version" in (gpu.link_doubt or "")
    assert (None, None, None, None, None) == _link(nothing)


def _link(f: object) -> tuple[object, ...]:
    names = ("current_link_speed_gt_s", "current_link_width", "max_link_speed_gt_s", "max_link_width", "link_doubt")
    return tuple(getattr(f, name) for name in names)


def test_processors_and_nodes() -> None:
    """As far as devices hang on them."""
    result = parse(NCCL).facts

    assert [(0, "0-3"), (1, "4-7")] == [(node.id, node.cpus) for node in result["numa"].nodes]
    assert ("GenuineIntel", 6, 143, None) == result["cpu"][:4]
    assert "x86_64" == result["kernel"].arch


def test_gpus_are_those_of_a_job_and_not_the_driver_s_list() -> None:
    """NVLinks are counted by where they lead; two GPUs on the same switches are joined by all that both have."""
    result = parse(NCCL).facts["nvml"]

    assert "nccl-topo" == result.told_by
    assert [(0, "0000:19:00.0", "9.0"), (1, "0000:9d:00.0", "9.0")] == [
        (gpu.index, gpu.address, gpu.compute_capability) for gpu in result.gpus
    ]
    assert [("GPU0", "GPU1", "NV18")] == list(result.pairs)
    assert {()} == {gpu.nvlinks for gpu in result.gpus}


@pytest.mark.parametrize(
    ("a", "b", "cell"),
    [
        ('<nvlink target="0000:02:00.0" count="4" tclass="0x030200"/>', "", ("GPU0", "GPU1", "NV4")),
        ('<nvlink target="fffffff:ffff:ff" count="18" tclass="0x068000"/>',) * 2 + (("GPU0", "GPU1", "NV18"),),
        ('<nvlink target="0000:01:00.0" count="12" tclass="0x030200"/>', "", None),  # to itself
        ('<nvlink target="0000:07:00.0" count="3" tclass="0x068001"/>',) * 2 + (None,),  # to the processor
        ('<nvlink target="0000:02:00.0" count="-7"/>', '<nvlink target="0000:01:00.0" count="x"/>', None),
        ('<xgmi target="0000:02:00.0" count="1" tclass="0x120000"/>', "", ("GPU0", "GPU1", "XGMI")),
    ],
)
def test_what_joins_two_gpus(a: str, b: str, cell: tuple[str, str, str] | None) -> None:
    """Directly, through switches that a PCI bus shows or hides, by XGMI; a file for a kind of machine may say less."""
    result = parse(system(gpu("0000:01:00.0", 0, a), gpu("0000:02:00.0", 1, b))).facts["nvml"]

    assert ([cell] if cell else []) == list(result.pairs)


def test_gpus_that_share_a_number_are_not_paired() -> None:
    """ "GPU0" would be two."""
    link = '<nvlink target="fffffff:ffff:ff" count="18" tclass="0x068000"/>'

    assert () == parse(system(gpu("0000:01:00.0", 0, link), gpu("0000:02:00.0", 0, link))).facts["nvml"].pairs


def test_an_active_port_with_the_system_image_s_guid_and_a_plain_interface() -> None:
    """NCCL prints the GUID with its bytes reversed, and a place in a list for sockets."""
    result = parse(NCCL).facts
    device = result["rdma"].devices[0]

    assert ("mlx5_0", "0000:1a:00.0", "1070:fd03:00b5:951e") == (device.name, device.address, device.system_image_guid)
    assert [(1, "ACTIVE", "400 Gb/sec", None)] == [
        (port.port, port.state, port.rate_text, port.link_layer) for port in device.ports
    ]
    assert [("eno1", "0000:28:00.0", None)] == [(n.name, n.address, n.speed_mbit_s) for n in result["netdev"].netdevs]


def card(*nets: tuple[str, int]) -> bytes:
    """A card with these devices and ports below its first function."""
    result = "".join(f'<net name="{name}" port="{port}" guid="0x1e95b50003fd7010"/>' for name, port in nets)
    return system(f'<pci busid="0000:02:00.0" class="0x020700" vendor="0x15b3"><nic>{result}</nic></pci>')


@pytest.mark.parametrize(
    ("nets", "devices"),
    [
        ([("mlx5_0", 1), ("mlx5_1", 2)], [("mlx5_0", "0000:02:00.0", [1]), ("mlx5_1", "0000:02:00.1", [1])]),
        ([("mlx4_0", 1), ("mlx4_0", 2)], [("mlx4_0", "0000:02:00.0", [1, 2])]),
        ([("mlx5_1", 2)], [("mlx5_1", "0000:02:00.0", [2])]),
        ([("eno1", 0), ("mlx5_1", 2)], [("mlx5_1", "0000:02:00.0", [2])]),
        ([("mlx5_0", 1), ("mlx5_1", 1)], [("mlx5_0", "0000:02:00.0", [1]), ("mlx5_1", "0000:02:00.0", [1])]),
        ([("mlx5_0", 1), ("mlx5_8", 9)], [("mlx5_0", "0000:02:00.0", [1]), ("mlx5_8", "0000:02:00.0", [9])]),
        (
            [("mlx5_0", 1), ("mlx5_1", 2), ("mlx5_2", 2)],
            [("mlx5_0", "0000:02:00.0", [1]), ("mlx5_1", "0000:02:00.1", [1]), ("mlx5_2", "0000:02:00.0", [2])],
        ),
    ],
)
def test_a_second_device_of_a_card_is_its_next_function(
    nets: list[tuple[str, int]], devices: list[tuple[str, str, list[int]]]
) -> None:
    """NCCL folds the functions of a card into the first and numbers the ports through."""
    result = parse(card(*nets)).facts

    assert devices == [(d.name, d.address, [port.port for port in d.ports]) for d in result["rdma"].devices]
    assert {address for _, address, _ in devices} == {f.address for f in result["pci"].functions}


def test_a_function_that_is_there_is_not_made() -> None:
    """A file by hand may name both."""
    two = card(("mlx5_0", 1), ("mlx5_1", 2)).replace(b"</cpu>", b'<pci busid="0000:02:00.1" class="0x0207"/></cpu>')

    assert ["0000:02:00.0", "0000:02:00.1"] == [f.address for f in parse(two).facts["pci"].functions]


@pytest.mark.parametrize("name", ["mlx5_0+mlx5_1", ""])
def test_merged_and_nameless_nets_are_no_devices(name: str) -> None:
    """NCCL makes one device of two ports for itself."""
    net = f'<pci busid="0000:01:00.0"><nic><net name="{name}" port="1" guid="0x1e95b50003fd7010"/></nic></pci>'

    assert "rdma" not in parse(system(net)).facts


def test_a_file_written_by_hand_proves_no_port_and_no_link() -> None:
    """Without GUIDs and device ids: placeholders of a cloud, whose bridges do not exist."""
    result = parse(
        system(
            '<pci busid="ffff:ff:01.0" class="0x060400" vendor="0xffff" link_speed="8 GT/s" link_width="16">',
            '<pci busid="0000:10:1b.0" class="0x020000" link_speed="8 GT/s" link_width="16"><nic>',
            '<net name="rdmap16s27" port="1" guid="3" speed="100000"/></nic></pci></pci>',
        )
    ).facts
    nic, bridge = result["pci"].functions

    assert ("placeholder of a switch", None, None, None) == (bridge.name, bridge.vendor, *_link(bridge)[2:4])
    assert "written by hand" in (nic.link_doubt or "")
    assert (None, None) == (result["rdma"].devices[0].ports[0].state, result["rdma"].devices[0].system_image_guid)


@pytest.mark.parametrize(("version", "vendor"), [(1, "0x10de"), (2, "0x1002")])
def test_whose_gpus_a_file_without_ids_means(version: int, vendor: str) -> None:
    """NCCL writes version 1, RCCL 2."""
    result = parse(system('<pci busid="0001:00:00.0" class="0x030200"/>', version=version)).facts

    assert vendor == result["pci"].functions[0].vendor
    assert "nvml" not in result


def test_an_unknown_node_is_not_the_firmware_s_minus_one() -> None:
    """NCCL writes -1 too where it could not read /sys."""
    result = parse(system('<pci busid="0000:01:00.0" class="0x030200"/>', numa="-1")).facts

    assert result["pci"].functions[0].numa_node is None
    assert "numa" not in result


def test_a_newer_version_is_read_aloud() -> None:
    """As the newest that is known."""
    result = parse(system('<pci busid="0000:01:00.0"/>', version=3))

    assert "newer than 2" in result.unsaid["pci"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (system('<pci busid="0000:01:00.0"/>', '<pci busid="0000:01:00.0"/>'), "two places"),
        (system('<pci busid="0000:01:00"/>'), "not a PCI address"),
        (system(), "no <cpu>"),
        (b'<system version="1"/>', "no <cpu>"),
        (b'<system><cpu host_hash="1"><pci busid="0000:01:00.0"/></cpu><cpu host_hash="2"/></system>', "2 hosts"),
        (system(*(f'<pci busid="{n:04x}:00:00.0" class="0x030200"/>' for n in range(129))), "more than one machine"),
        (system(*(f'<pci busid="{n:04x}:00:00.0" class="0x020700"/>' for n in range(4097))), "more than one machine"),
        (system(*(f'<pci busid="{n:04x}:00:00.0"/>' for n in range(16385))), "more than one machine"),
    ],
)
def test_what_is_no_single_machine_is_refused(text: bytes, fault: str) -> None:
    """Each with what is wrong."""
    with pytest.raises(ParseError, match=fault):
        parse(text)
