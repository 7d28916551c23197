"""The topology tree of the text page."""

from __future__ import annotations

import msgspec
import pytest

from agent.model.gpu import Gpu, Mig, NvSwitch
from agent.model.nic import FabricNeighbor, Nic, Port
from agent.model.node import Node, NumaNode
from agent.model.pci import PciFunction
from agent.model.topology import Topology
from agent.outputs.html.page import render_html
from agent.outputs.text.lines import to_plain_text
from agent.outputs.text.tree import render_tree
from tests.agent.outputs.text.reports import GPUS, NICS, at, below_one_switch, report
from tests.agent.rules import rows


def draw(topology: Topology, width: int = 80, **more: object) -> list[str]:
    """The tree's lines as a pipe gets them."""
    return to_plain_text(render_tree(report(topology, **more), width)).splitlines()


def test_a_machine_without_gpu_and_nic_has_no_tree() -> None:
    """Nothing is drawn of nothing."""
    assert [] == draw(Topology(pci=[rows.bridge("0000:00:01.0", None, "root_port")]))


def test_nvswitches_that_differ_in_nothing_are_one_line() -> None:
    """And the reason why their links are not believed stands once, below."""
    places = [f"0000:0{n}:00.0" for n in range(3, 7)]
    functions = [
        PciFunction(
            id=place, class_code="0x068000", root_bus="0000:00", numa_node=0, link=rows.link(8.0, 2, "untrusted")
        )
        for place in places
    ]
    topology = Topology(pci=functions, nvswitches=[NvSwitch(id=place, pci=place) for place in places])

    assert [
        "NUMA 0  cpus 0-15  64 GiB",
        "└─ root bus 00",
        "   └─ 4x NVSwitch 03:00.0 .. 06:00.0  Gen3 x2 of Gen5 x16 (a)",
        "  (a) untrusted for the test",
    ] == draw(topology)


def test_devices_that_share_a_root_bus_stand_below_it() -> None:
    """A root bus of its own is not worth a line."""
    functions = [at(rows.gpu_function(line, None), root_bus=bus) for line, bus in zip(GPUS, "ab", strict=True)]
    gpus = below_one_switch().gpus
    apart = draw(Topology(pci=functions, gpus=gpus))
    together = draw(Topology(pci=[at(function, root_bus="0000:18") for function in functions], gpus=gpus))

    assert ["├─ GPU0 18:00.0", "└─ GPU1 19:00.0"] == [line.split("  ")[0] for line in apart[1:]]
    assert ["└─ root bus 18", "   ├─ GPU0 18:00.0", "   └─ GPU1 19:00.0"] == [
        (line[:3] + line[3:].split("  ")[0]) for line in together[1:]
    ]


@pytest.mark.parametrize(
    ("mig", "told"),
    [
        (Mig(current=True, instances=["MIG-a", "MIG-b"]), "MIG, 2 instances"),
        (Mig(current=True), "MIG"),
        (Mig(current=False), None),
    ],
)
def test_instances_that_no_source_names_are_not_counted_as_none(mig: Mig, told: str | None) -> None:
    """`--query-gpu` has the mode alone."""
    gpu = Gpu(id=GPUS[0], label="GPU0", pci=GPUS[0], driver_state="open", mig=mig)
    (line,) = (row for row in draw(Topology(pci=[rows.gpu_function(GPUS[0], None)], gpus=[gpu])) if "GPU0" in row)

    assert (told is not None) == ("MIG" in line)
    assert line.rstrip().endswith(told or "")


def test_virtual_functions_are_drawn_where_there_is_nothing_else() -> None:
    """In a guest they are the NICs; on a host with its physical function they would hide it."""
    virtual = [msgspec.structs.replace(rows.nic(line, n), virtual_function=True) for n, line in enumerate(NICS)]
    functions = [rows.nic_function(line, None) for line in NICS]
    guest = draw(Topology(pci=functions, nics=virtual))
    physical = msgspec.structs.replace(virtual[0], virtual_function=False, virtual_functions=1)
    host = draw(Topology(pci=functions, nics=[physical, virtual[1]]))

    assert 2 == sum("mlx5_" in line for line in guest)
    assert 1 == sum("mlx5_" in line for line in host)
    assert "1 VFs" in host[-1]


def test_memory_only_nodes_say_whose_they_are() -> None:
    """A NUMA node without CPUs is no socket."""
    topology = below_one_switch()
    owner = msgspec.structs.replace(topology.gpus[0], memory_numa_node=2)
    nodes = [NumaNode(id=0, cpus="0-7"), NumaNode(id=1, cpus="8-15"), NumaNode(id=2, cpus="")]
    lines = draw(msgspec.structs.replace(topology, gpus=[owner]), node=Node(numa_nodes=nodes))

    assert ["  without GPU or NIC: NUMA 1", "  memory only: NUMA 2 of GPU0"] == lines[-2:]


def test_a_device_that_sleeps_or_has_no_driver_says_so_in_words() -> None:
    """And nothing is made up of a link that was not read."""
    asleep = at(rows.gpu_function(GPUS[0], None), state="asleep", link=rows.link(quality="asleep"))
    asleep = at(asleep, link=msgspec.structs.replace(asleep.link, speed_gt_s=None, width=None))
    gpu = Gpu(id=GPUS[0], label=f"GPU@{GPUS[0]}", pci=GPUS[0], driver_state="vfio")
    lines = draw(Topology(pci=[asleep], gpus=[gpu]))

    assert "└─ GPU 18:00.0  asleep (a)  passed to a guest (vfio)" == lines[1]
    assert "  (a) asleep, not woken: asleep for the test" == lines[2]


def test_outputs_without_pci_still_show_the_devices() -> None:
    """`nvidia-smi topo -m` alone knows no address."""
    topology = Topology(gpus=[Gpu(id="gpu-index-0", label="GPU0")], nics=[Nic(id="NIC0", label="NIC0", role="rail")])

    assert ["unknown position in the PCI tree", "├─ GPU0", "└─ NIC0  rail"] == draw(topology)


def test_an_address_that_the_driver_told_is_shown() -> None:
    """What leads there is not known."""
    gpu = Gpu(id="0000:1a:00.0", label="GPU0")

    assert ["unknown position in the PCI tree", "└─ GPU0 1a:00.0"] == draw(Topology(gpus=[gpu]))


def test_a_circle_of_parents_is_no_endless_tree() -> None:
    """A damaged listing can say that a bridge is below itself."""
    functions = [rows.bridge("0000:01:00.0", "0000:02:00.0", "upstream")]
    functions += [rows.bridge("0000:02:00.0", "0000:01:00.0", "upstream"), rows.gpu_function(GPUS[0], "0000:02:00.0")]

    assert [] == draw(Topology(pci=functions, gpus=[rows.gpu(GPUS[0], 0)]))


def test_a_wide_page_shows_interfaces_with_their_addresses() -> None:
    """MTU of the interface and an IPv4 address."""
    topology = below_one_switch()
    own = msgspec.structs.replace(topology.netdevs[0], addresses=["10.0.0.1/31", "fe80::1/64"])
    lines = draw(msgspec.structs.replace(topology, netdevs=[own, topology.netdevs[1]]), width=200)

    assert any("rail  eth0 MTU 4200 10.0.0.1/31  ConnectX-7" in line for line in lines)


def test_a_port_without_a_v2_gid_says_so() -> None:
    """What RoCE traffic needs, at a glance."""
    topology = below_one_switch()
    port = topology.nics[0].ports[0]
    old = msgspec.structs.replace(port, gids=[gid for gid in port.gids if gid.type == "IB/RoCE v1"])
    nics = [msgspec.structs.replace(topology.nics[0], ports=[old])]

    assert any("RoCE 400G up GID v1 only" in line for line in draw(msgspec.structs.replace(topology, nics=nics)))


def draw_nic(neighbor: FabricNeighbor | None) -> str:
    """The line of a NIC."""
    port = Port(port=1, link_layer="InfiniBand", state="ACTIVE", rate_gbit_s=400.0, speed="NDR", neighbor=neighbor)
    nic = Nic(id="mlx5_0", label="mlx5_0", role="rail", ports=[port])
    return to_plain_text(render_tree(report(Topology(nics=[nic])), 100))


@pytest.mark.parametrize(
    ("name", "guid", "output"),
    [
        ("MF0;leaf-1:MQM9700/U1", None, "to leaf-1 port 17"),
        ("leaf1", None, "to leaf1 port 17"),
        (None, "0c42:a103:00bb:0200", "to 0c42:a103:00bb:0200 port 17"),
        (None, None, "to a switch port 17"),
    ],
)
def test_a_nic_says_where_its_cable_leads(name: str | None, guid: str | None, output: str) -> None:
    """As people call the switch."""
    assert f"rail  {output}" in draw_nic(FabricNeighbor(name=name, node_guid=guid, port=17, source="iblinkinfo"))


def test_without_a_known_far_end_nothing_is_said() -> None:
    """No empty words."""
    assert " to " not in draw_nic(None)


def test_what_a_switch_is_called_moves_no_cursor() -> None:
    """A node description is typed by anybody."""
    output = draw_nic(FabricNeighbor(name="a\x1b[2J\x07b\x85c\nd", port=1, source="iblinkinfo"))

    assert not {character for character in output if not character.isprintable()} - {"\n"}
    assert 1 == sum("mlx5_0" in line for line in output.splitlines())
    assert " to a" in output


def test_the_page_for_browsers_has_it_as_a_part_of_its_own() -> None:
    """Below its port."""
    far = FabricNeighbor(name="leaf1", port=17, could_width="4X", source="iblinkinfo")
    output = render_html(report(Topology(nics=[Nic(id="mlx5_0", label="mlx5_0", ports=[Port(port=1, neighbor=far)])])))

    assert "neighbour of port 1" in output
    assert "<dt>could width</dt><dd>4X</dd>" in output
