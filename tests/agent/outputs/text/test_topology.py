"""Topology in text: the tree, the matrices, and the section about GPUDirect."""

from __future__ import annotations

from itertools import combinations

import msgspec
import pytest

from agent.model.finding import Gpudirect
from agent.model.gpu import Gpu, Mig, NvSwitch
from agent.model.nic import FabricNeighbor, Nic, Port
from agent.model.node import Node, NumaNode
from agent.model.pci import PciFunction
from agent.model.topology import Disagreement, Path, Topology
from agent.outputs.html.page import render_html
from agent.outputs.text.gpudirect import render_gpudirect
from agent.outputs.text.lines import to_plain_text
from agent.outputs.text.matrix import join_side_by_side, render_gpu_matrix, render_rail_matrix
from agent.outputs.text.tree import render_tree
from tests.agent.outputs.text.reports import GPUS, NICS, at, below_one_switch, make_path, report
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


def test_equal_devices_without_an_address_share_one_row() -> None:
    """From three on, one after the other; one that differs has its own."""
    gpus = [Gpu(id=f"gpu-index-{n}", label=f"GPU{n}") for n in range(8)]
    nics = [Nic(id=f"n{n}", label=f"mlx5_{n}", role="rail" if n < 2 else "unknown") for n in range(5)]

    assert [
        "unknown position in the PCI tree", "├─ GPU0-7", "├─ mlx5_0    rail", "├─ mlx5_1    rail",
        "└─ mlx5_2-4  role unknown",
    ] == draw(Topology(gpus=gpus, nics=nics))  # fmt: skip


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


# The matrix, and the section about GPUDirect.


# The matrices: one sentence, one row for neighbours that are alike, blocks that fit.


FOUR_GPUS = [rows.gpu(f"0000:{n:02x}:00.0", n) for n in range(4)]
FOUR_NICS = [rows.nic(f"0000:{n + 16:02x}:00.0", n) for n in range(4)]


def near(a: int, b: int) -> str:
    """Neighbours of one half of the four_gpus are near."""
    return "PXB" if a // 2 == b // 2 else "SYS"


def four_gpus(**more: list[Path]) -> Topology:
    """Four GPUs and four rails in two halves."""
    paths = [
        make_path(g.id, o.id, near(g.index or 0, o.index or 0)) for g in FOUR_GPUS for o in FOUR_GPUS if g.id < o.id
    ]
    paths += [make_path(g.id, n.id, near(k, j)) for k, g in enumerate(FOUR_GPUS) for j, n in enumerate(FOUR_NICS)]
    return Topology(gpus=FOUR_GPUS, nics=FOUR_NICS, paths=more.get("paths", paths))


def test_rows_and_columns_that_are_alike_are_one() -> None:
    """Four by four becomes two by two."""
    assert (
        "          mlx5_0,1  mlx5_2,3\n  GPU0,1  PXB*      SYS\n  GPU2,3  SYS       PXB*\n  * nearest rail\n"
    ) == to_plain_text(render_rail_matrix(report(four_gpus()), 80))


def test_gpus_stand_each_for_itself() -> None:
    """People look for a pair there."""
    assert (
        "        GPU0  GPU1  GPU2  GPU3\n"
        "  GPU0  X     PXB   SYS   SYS\n"
        "  GPU1  PXB   X     SYS   SYS\n"
        "  GPU2  SYS   SYS   X     PXB\n"
        "  GPU3  SYS   SYS   PXB   X\n"
    ) == to_plain_text(render_gpu_matrix(report(four_gpus()), 80)).replace("; over PCIe it would be PIX", "")


def test_what_does_not_fit_goes_into_a_second_block() -> None:
    """Each block has the names of its rows."""
    text = to_plain_text(render_gpu_matrix(report(four_gpus()), 21))

    assert 2 == text.count("GPU0  X") + text.count("GPU0  SYS")
    assert all(len(line) <= 21 for line in text.splitlines())


def test_a_disagreement_is_told_with_its_pairs() -> None:
    """What the driver says is not hidden."""
    output = make_path(FOUR_GPUS[0].id, FOUR_GPUS[1].id, "PXB", disagrees=Disagreement(source="nvml", kind="SYS"))

    assert "nvml reports SYS, the PCI tree has PIX: GPU0-GPU1" in to_plain_text(
        render_gpu_matrix(report(four_gpus(paths=[output])), 80)
    )


def test_side_by_side_only_where_both_are_tables_and_fit() -> None:
    """A sentence beside a table would leave a hole."""
    output = report(four_gpus())
    tables = render_gpu_matrix(output, 200), render_rail_matrix(output, 200)
    both = join_side_by_side(*tables, 80)

    assert both is not None
    assert to_plain_text(both).splitlines()[1] == "  GPU0  X     PXB   SYS   SYS       GPU0,1  PXB*      SYS"
    assert join_side_by_side(*tables, 40) is None
    assert join_side_by_side(tables[0][:1], tables[1], 200) is None


def test_a_hundred_gpus_are_counted() -> None:
    """Nobody reads a matrix of a hundred columns."""
    gpus = [rows.gpu(f"{n:04x}:00:00.0", n) for n in range(100)]
    paths = [make_path(g.id, o.id, near(g.index or 0, o.index or 0)) for g in gpus for o in gpus if g.id < o.id]

    assert "  pairs of each kind: PXB 50, SYS 4900 (each pair: --format json)\n" == to_plain_text(
        render_gpu_matrix(report(Topology(gpus=gpus, paths=paths)), 80)
    )


# The section about GPUDirect: groups of pairs that are alike, the worst first.


GPUS_GPUDIRECT = [rows.gpu(f"0000:{n}4:00.0", n) for n in range(1, 5)]
NICS_GPUDIRECT = [rows.nic(f"0000:{n}5:00.0", n) for n in range(1, 5)]


def pair(n: int, verdict: str = "ready", via: str = "dma-buf", *causes: str) -> Gpudirect:
    return Gpudirect(gpu=GPUS_GPUDIRECT[n].id, nic=NICS_GPUDIRECT[n].id, verdict=verdict, via=via, causes=list(causes))


def render(*pairs: Gpudirect, width: int = 80) -> str:
    changed = msgspec.structs.replace(report(Topology(gpus=GPUS_GPUDIRECT, nics=NICS_GPUDIRECT)), gpudirect=list(pairs))
    return to_plain_text(render_gpudirect(changed, width))


def test_all_ready_is_one_sentence() -> None:
    """With the way."""
    assert "  ready (DMA-BUF): GPU1-4 – mlx5_1-4\n" == render(*(pair(n) for n in range(4)))
    assert "" == render()


def test_the_worst_come_first_with_their_causes() -> None:
    """Devices as people call them, and reasons as they are."""
    port = f"ib-port-down port:{NICS_GPUDIRECT[0].id}/1"
    acs = f"gdr-acs-on-path pair:{GPUS_GPUDIRECT[1].id}+{NICS_GPUDIRECT[1].id}"
    text = render(
        pair(3),
        pair(2, "unknown", "unknown", "gdr-no-path: modules could not be listed"),
        pair(1, "degraded", "peermem", acs, "gdr-iommu-translated node"),
        pair(0, "blocked", "none", port, "distance NODE: NCCL uses GPUDirect up to PXB"),
    )

    assert (
        "  blocked: GPU1 – mlx5_1\n"
        "    - ib-port-down of mlx5_1\n"
        "    - distance NODE: NCCL uses GPUDirect up to PXB\n"
        "  degraded (nvidia_peermem): GPU2 – mlx5_2\n"
        "    - gdr-acs-on-path\n"
        "    - gdr-iommu-translated\n"
        "  unknown: GPU3 – mlx5_3\n"
        "    - gdr-no-path: modules could not be listed\n"
        "  ready (DMA-BUF): GPU4 – mlx5_4\n"
    ) == text


def torus(side: int, broken: tuple[int, int] | None = None) -> Topology:
    """Devices of a square torus; `broken`: two of which the link is missing."""
    gpus = [rows.gpu(f"0000:{n:02x}:00.0", n) for n in range(side * side)]
    paths = []
    for a, b in combinations(range(side * side), 2):
        apart = sorted(abs(x - y) for x, y in zip(divmod(a, side), divmod(b, side), strict=True))
        joined = apart in ([0, 1], [0, side - 1]) and (a, b) != broken
        paths.append(make_path(gpus[a].id, gpus[b].id, "NEURON" if joined else "PHB"))
    return Topology(gpus=gpus, paths=paths)


def test_a_whole_torus_is_drawn_as_one() -> None:
    """Row by row, and a sentence for all pairs without a link."""
    text = to_plain_text(render_gpu_matrix(report(torus(4)), 80))

    assert "torus of 4 x 4" in text
    assert "    GPU4   GPU5   GPU6   GPU7\n" in text
    assert text.endswith("all other pairs over PCIe: PHB (each pair: --format json)\n")
    assert "torus of 3 x 3" in to_plain_text(render_gpu_matrix(report(torus(3)), 80))


def test_what_is_no_whole_torus_is_a_matrix() -> None:
    """A link that is missing or one too many, a pair that is not known, a device without number, other counts."""
    whole = torus(4)
    replace = msgspec.structs.replace
    others = [
        torus(4, (5, 6)),
        replace(whole, paths=[replace(path, kind="NEURON") if k == 4 else path for k, path in enumerate(whole.paths)]),
        replace(whole, paths=whole.paths[:-1]),
        replace(whole, gpus=[replace(whole.gpus[0], index=None), *whole.gpus[1:]]),
        replace(whole, gpus=[replace(whole.gpus[0], index=16), *whole.gpus[1:]]),
        replace(whole, gpus=[*whole.gpus, rows.gpu("0000:40:00.0", 16)]),
        torus(2),
    ]

    assert [""] * 7 == ["torus" * ("torus" in to_plain_text(render_gpu_matrix(report(each), 200))) for each in others]
