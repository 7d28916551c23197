"""Paths: kinds, hops, bandwidth and what limits it; and what other sources say of the same pairs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path as File

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.assemble import Assembled, assemble
from agent.assemble.paths import PathFinder
from agent.assemble.pcie_tree import PcieTree
from agent.model.topology import Disagreement, Path
from probes.catalogue import probe, providers
from probes.gpu.facts import Gpu, GpuFacts, NvLink, PairCell
from probes.gpu.nvidia_smi_topo import parse_matrix
from probes.pci.facts import PciFacts
from probes.probe import outcome_of
from probes.rdma.facts import RdmaDevice, RdmaFacts
from probes.sources.open_source import open_source
from probes.system.numa import NumaFacts, NumaNodeFacts
from tests.agent.assemble.boards import (
    GEN1,
    GEN3,
    GEN4,
    GEN5,
    Board,
    assemble_facts,
    driver,
    hgx,
    parse_tree,
    paths_by_pair,
)
from tests.texts import read_fields

GPU, NIC, OTHER, FAR_NIC = "0000:13:00.0", "0000:14:00.0", "0000:23:00.0", "0000:24:00.0"
UP, DOWN, NIC_PORT = "0000:11:00.0", "0000:12:00.0", "0000:12:01.0"


def path(board: Board, a: str = GPU, b: str = NIC, **facts: object) -> Path:
    """One path of a machine."""
    return paths_by_pair(assemble_facts(pci=board.facts(), **facts))[a, b]


def test_one_switch_is_pix_and_its_ports_are_the_hops() -> None:
    """From a's side."""
    result = path(hgx(1))

    assert ("PIX", "PIX", [DOWN, UP, NIC_PORT], "pci-tree") == read_fields(result, "kind pcie_kind hops source")


def test_a_second_switch_is_pxb() -> None:
    """A switch on the board of the GPU, below the switch of the chassis, as in a DGX A100."""
    board = hgx(1)
    inner = board.upstream("0000:17:00.0", DOWN)
    board.change(GPU, parent=board.downstream("0000:18:00.0", inner))
    result = path(board)

    assert ("PXB", ["0000:18:00.0", "0000:17:00.0", DOWN, UP, NIC_PORT]) == (result.kind, result.hops)


def test_ports_of_one_card_and_what_shares_a_port_are_pix() -> None:
    """Directly below a root port there is no switch at all."""
    board = Board()
    root = board.root_port("0000:20:03.1")
    board.gpu("0000:21:00.0", root)
    board.nic("0000:21:00.1", root)
    result = path(board, "0000:21:00.0", "0000:21:00.1")

    assert ("PIX", [root]) == (result.kind, result.hops)


@pytest.mark.parametrize(
    ("other_root", "node", "nodes", "kind"),
    [
        ("0000:10:02.0", 0, ("0-7", "8-15"), "PHB"),
        ("0000:20:01.0", 0, ("0-7", "8-15"), "NODE"),
        ("0000:20:01.0", 1, ("0-7", "8-15"), "SYS"),
        ("0000:20:01.0", -1, ("0-7", "8-15"), None),
        ("0000:20:01.0", -1, ("0-15",), "NODE"),
        ("0000:20:01.0", -1, ("0-15", ""), "NODE"),  # the second node is memory
        ("0000:20:01.0", None, (), None),
    ],
)
def test_over_host_bridges(other_root: str, node: int | None, nodes: tuple[str, ...], kind: str | None) -> None:
    """One host bridge; two of one node; two of two nodes; not known, unless there is only one node."""
    board = Board()
    board.gpu(GPU, board.root_port("0000:10:01.0"))
    board.nic(NIC, board.root_port(other_root, numa=node))
    result = path(board, numa=NumaFacts(tuple(NumaNodeFacts(n, cpus) for n, cpus in enumerate(nodes))))

    assert (kind, kind) == (result.kind, result.pcie_kind)
    assert (["0000:10:01.0", other_root] if kind else []) == result.hops


def test_host_bridges_that_are_not_told_apart_are_as_far_as_they_may_be() -> None:
    """The place is known, and which root bus it is not: PHB and NODE look alike, and NODE is the farther."""
    board = Board()
    board.gpu(GPU, board.root_port("0000:10:01.0"))
    board.nic(NIC, board.root_port("0000:10:02.0"))
    for function in list(board.functions):
        board.change(function.address, root_bus="")

    assert "NODE" == path(board).kind


def test_without_a_hierarchy_nothing_is_derived() -> None:
    """A listing that says neither parents nor root buses."""
    board = hgx(1)
    for function in list(board.functions):
        board.change(function.address, parent=None, root_bus=None)
    result = path(board)

    assert (None, None, [], None, None, None) == read_fields(
        result, "kind pcie_kind hops bandwidth_gbyte_s limiting source"
    )


def test_the_slowest_link_limits() -> None:
    """Of the two below one switch."""
    board = hgx(1)
    board.change(NIC, current_link_width=8)
    result = path(board)

    assert (31.508, NIC) == (result.bandwidth_gbyte_s, result.limiting)


def test_the_link_above_the_common_switch_is_not_on_the_way() -> None:
    """Traffic between the two turns at the switch; to another switch it does not."""
    board = hgx(2)
    board.change(UP, current_link_width=4)

    assert 63.015 == path(board).bandwidth_gbyte_s
    assert (15.754, UP) == (lambda p: (p.bandwidth_gbyte_s, p.limiting))(path(board, GPU, FAR_NIC))


def test_of_equal_links_the_one_nearest_to_the_root_limits() -> None:
    """As the kernel blames."""
    assert UP == path(hgx(2), GPU, FAR_NIC).limiting


def test_hops_that_cannot_be_believed_do_not_count() -> None:
    """A synthetic upstream port at Gen2 between two Gen5 links; a sleeping NIC."""
    board = hgx(2)
    board.change(UP, vendor="0x1000", device="0xc030", current_link_speed_gt_s=5.0, max_link_speed_gt_s=5.0)
    board.change(FAR_NIC, asleep=True, current_link_width=1)
    result = path(board, GPU, FAR_NIC)

    assert (63.015, "0000:21:00.0") == (result.bandwidth_gbyte_s, result.limiting)


def test_an_idle_gpu_counts_with_what_its_link_can_reach() -> None:
    """Gen1 at rest, Gen4 by its slot."""
    board = hgx(1)
    board.change(GPU, current_link_speed_gt_s=GEN1)
    board.change(DOWN, max_link_speed_gt_s=GEN4)
    result = path(board)

    assert (31.508, GPU) == (result.bandwidth_gbyte_s, result.limiting)


def test_the_driver_s_interconnect_is_the_kind_and_the_tree_s_stays_beside_it() -> None:
    """NV18 for the pair, SYS over PCIe; 18 links carry 450 GB/s of payload in one direction."""
    links = tuple(NvLink(n, "active", speed_gbyte_s=26.562) for n in range(18))
    nvml = driver(
        [Gpu(index=0, address=GPU, nvlinks=links), Gpu(index=1, address=OTHER)],
        pairs=(PairCell("GPU0", "GPU1", "NV18"),),
    )
    result = path(hgx(2), GPU, OTHER, nvml=nvml)

    assert ("NV18", "SYS", "nvml", 450.0, None, None) == read_fields(
        result, "kind pcie_kind source bandwidth_gbyte_s limiting disagrees"
    )


def test_links_to_places_that_are_not_told_leave_the_kind_open() -> None:
    """`nvlink -s` without a matrix: PCIe need not be the way. Links that are down, or lead to a CPU, decide nothing."""

    def kind(*links: NvLink) -> tuple[str | None, str | None, str | None]:
        gpus = [Gpu(index=0, address=GPU, nvlinks=links), Gpu(index=1, address=OTHER, nvlinks=links)]
        result = path(hgx(2), GPU, OTHER, nvidia_smi=driver(gpus))
        return result.kind, result.pcie_kind, result.source

    assert (None, "SYS", None) == kind(NvLink(0, "active", speed_gbyte_s=26.562))
    assert (None, "SYS", None) == kind(NvLink(0, "active", remote_kind="switch"))
    assert ("SYS", "SYS", "pci-tree") == kind(NvLink(0, "inactive")) == kind(NvLink(0, "active", remote_kind="cpu"))


def test_links_that_name_each_other_s_gpu_are_the_pair_s() -> None:
    """`nvlink -R` without a matrix: four active links, reported by both ends; a matrix that is there has the word."""

    def to(far: str, count: int, state: str = "active") -> tuple[NvLink, ...]:
        return tuple(NvLink(n, state, speed_gbyte_s=14.062, remote_address=far) for n in range(count))

    def found(a: tuple[NvLink, ...], b: tuple[NvLink, ...], **matrix: object) -> Path:
        gpus = [Gpu(index=0, address=GPU, nvlinks=a), Gpu(index=1, address=OTHER, nvlinks=b)]
        return path(hgx(2), GPU, OTHER, nvidia_smi=driver(gpus, **matrix))

    four = found(to(OTHER, 4), to(GPU, 4))
    assert ("NV4", "SYS", "nvidia-smi", 56.248) == (four.kind, four.pcie_kind, four.source, four.bandwidth_gbyte_s)
    assert "NV4" != found(to(OTHER, 4), to(GPU, 3)).kind
    assert "SYS" == found(to(OTHER, 4, "inactive"), to(GPU, 4, "inactive")).kind
    assert "SYS" == found(to(NIC, 4), to(NIC, 4), pairs=(PairCell("GPU0", "GPU1", "SYS"),)).kind
    assert "SYS" == found(to(OTHER, 4), to(GPU, 4), pairs=(PairCell("GPU0", "GPU1", "SYS"),)).kind


def test_a_pcie_kind_of_another_source_that_differs_is_recorded() -> None:
    """Ours is shown; SOC is SYS; agreement leaves no trace."""
    names = {"NIC0": "mlx5_0", "NIC1": "mlx5_1"}
    rdma = RdmaFacts((RdmaDevice("mlx5_0", NIC), RdmaDevice("mlx5_1", FAR_NIC)))
    tool = GpuFacts(
        (Gpu(index=0, address=GPU), Gpu(index=1, address=OTHER)),
        pairs=(PairCell("GPU0", "NIC0", "PHB"), PairCell("GPU0", "NIC1", "SOC"), PairCell("NIC0", "NIC1", "SYS")),
        nic_names=names,
    )
    board = hgx(2)
    differs, agrees = (path(board, GPU, nic, nvidia_smi=tool, rdma=rdma) for nic in (NIC, FAR_NIC))

    assert ("PIX", Disagreement(source="nvidia-smi", kind="PHB")) == (differs.kind, differs.disagrees)
    assert ("SYS", None) == (agrees.kind, agrees.disagrees)


def test_where_the_tree_is_silent_the_matrix_speaks() -> None:
    """And is named as the source."""
    tool = GpuFacts((Gpu(index=0),), pairs=(PairCell("GPU0", "mlx5_0", "PXB"),))
    (result,) = assemble_facts(nvidia_smi=tool).topology.paths

    assert ("gpu-index-0", "mlx5_0", "PXB", "PXB", "nvidia-smi", None) == read_fields(
        result, "a b kind pcie_kind source disagrees"
    )


def test_every_pair_has_a_row_and_virtual_functions_only_where_there_is_nothing_else() -> None:
    """GPUs first, in order."""
    board = hgx(2)
    board.nic("0000:14:00.1", NIC_PORT, physical_function=NIC)
    guest = hgx(2, nic="0x101e")

    assert [(GPU, OTHER), (GPU, NIC), (GPU, FAR_NIC), (OTHER, NIC), (OTHER, FAR_NIC)] == list(
        paths_by_pair(assemble_facts(pci=board.facts()))
    )
    assert 5 == len(assemble_facts(pci=guest.facts()).topology.paths)


SPEEDS = st.sampled_from([GEN1, GEN3, GEN4, GEN5])
WIDTHS = st.sampled_from([1, 4, 8, 16, 0, 63])


@st.composite
def boards(draw: st.DrawFn) -> Board:
    """Random machines: some root buses, switches below switches, NICs at random places, links of all sorts."""
    board = Board(privileged=draw(st.booleans()))
    ports = []
    for bus in range(draw(st.integers(1, 3))):
        numa = draw(st.sampled_from([0, 1, -1]))
        ports += [
            board.root_port(f"0000:{0x40 * bus:02x}:{n:02x}.0", numa=numa) for n in range(draw(st.integers(1, 2)))
        ]
    fresh = iter(range(0xC0, 0x100))
    for _ in range(draw(st.integers(0, 4))):
        parent = draw(st.sampled_from(ports))
        up = board.upstream(
            f"0000:{next(fresh):02x}:00.0", parent, speed=draw(SPEEDS), width=draw(WIDTHS), max_width=16
        )
        ports += [board.downstream(f"0000:{next(fresh):02x}:{n:02x}.0", up) for n in range(draw(st.integers(1, 2)))]
    for place in range(draw(st.integers(2, 5))):
        fields = {"speed": draw(SPEEDS), "max_speed": GEN5, "width": draw(WIDTHS), "max_width": 16}
        add = board.nic if place else board.gpu
        if draw(st.booleans()):
            fields["power_state"] = draw(st.sampled_from(["D0", "D3hot"]))
        add(f"0001:{place:02x}:00.0", draw(st.sampled_from(ports)), **fields)
        board.change(f"0001:{place:02x}:00.0", link_error=draw(st.sampled_from([None, None, "EINVAL"])))
    return board


@given(boards())
def test_any_tree_gives_paths_that_hold(board: Board) -> None:
    """Symmetric; the limiting hop is on the way; no link that can be believed on the way is slower."""
    result = assemble_facts(pci=board.facts())
    rows = {row.id: row for row in result.topology.pci}
    tree = PcieTree(board.functions)
    finder = PathFinder(tree, result.topology.pci, result.node.numa_nodes)
    for path in result.topology.paths:
        kind, hops, bandwidth, limiting = finder.between(path.b, path.a)
        turn = (
            min(path.hops, key=lambda hop: len(tree.above(hop)), default=None) if path.kind in ("PIX", "PXB") else None
        )
        crossed = [path.a, path.b, *(hop for hop in path.hops if hop in board.upstreams and hop != turn)]
        links = [link for place in crossed if (link := rows[place].link) and link.quality.state == "conclusive"]

        assert (path.kind, path.hops[::-1], path.bandwidth_gbyte_s, path.limiting) == (kind, hops, bandwidth, limiting)
        assert set(path.hops) <= set(rows)
        assert path.limiting in (path.a, path.b, *path.hops, None)
        assert (path.bandwidth_gbyte_s is None) == (path.limiting is None)
        if path.kind:
            assert all((path.bandwidth_gbyte_s or 0.0) <= (link.bandwidth_gbyte_s or 0.0) for link in links)
            assert path.bandwidth_gbyte_s or not links


@pytest.mark.parametrize(
    ("name", "nodes"),
    [
        ("asus-esc8000a-e12", {bus: int(bus >= "80") for bus in ("00", "20", "40", "60", "80", "a0", "c0", "e0")}),
        ("puget-threadripper-pro-wrx90", dict.fromkeys(("00", "20", "c0", "e0"), 0)),
    ],
)
def test_our_kinds_are_those_of_nvidia_smi_on_the_same_machine(
    corpus: File, name: str, nodes: Mapping[str, int]
) -> None:
    """Two servers of which both `lspci -tv` and `nvidia-smi topo -m` were saved: every pair, no disagreement."""
    text = (corpus / "misc" / "stelline" / f"{name}.md").read_text()
    functions = parse_tree(text.split("lspci -tv\n", 1)[1].split("```", 1)[0], dict(nodes))
    output = parse_matrix(text.split("nvidia-smi topo -m\n", 1)[1].split("```", 1)[0])
    nics = [f.address for f in functions if f.vendor == "0x15b3"]
    result = assemble_facts(
        pci=PciFacts(tuple(functions)),
        numa=NumaFacts(tuple(NumaNodeFacts(n, f"{n}") for n in sorted(set(nodes.values())))),
        nvidia_smi=GpuFacts(output.gpus, pairs=output.pairs, nic_names=output.nic_names),
        rdma=RdmaFacts(tuple(RdmaDevice(f"mlx5_{n}", address) for n, address in enumerate(nics))),
    )
    gpus = [gpu.id for gpu in result.topology.gpus]
    names = {f"GPU{n}": gpu for n, gpu in enumerate(gpus)} | {f"NIC{n}": nic for n, nic in enumerate(nics)}
    theirs = {frozenset((names[cell.a], names[cell.b])): cell.kind for cell in output.pairs}
    ours = {frozenset((p.a, p.b)): p.pcie_kind for p in result.topology.paths}

    assert len(ours) == len(gpus) * (len(gpus) - 1) / 2 + len(gpus) * len(nics)
    assert {pair: theirs[pair] for pair in ours} == ours
    assert [] == [p for p in result.topology.paths if p.disagrees]
    finder = PathFinder(PcieTree(functions), result.topology.pci, result.node.numa_nodes)
    assert "PIX" == theirs[frozenset(nics[:2])] == finder.between(nics[0], nics[1])[0]


def test_a_virtual_machine_s_matrix_that_differs_from_its_bus_is_recorded(corpus: File) -> None:
    """A guest whose four GPUs sit on one virtual root bus, and whose nvidia-smi says SYS between all of them."""
    output = parse_matrix((corpus / "text" / "nvidia-smi-topo-m" / "4gpu-sys-but-same-numa.txt").read_text())
    board = Board()
    for place in range(4):
        board.gpu(f"0000:{place + 1:02x}:00.0", board.root_port(f"0000:00:{place + 2:02x}.0", vendor="0x1b36"))
    result = assemble_facts(pci=board.facts(), nvidia_smi=GpuFacts(output.gpus, pairs=output.pairs))

    assert [("PHB", Disagreement(source="nvidia-smi", kind="SYS"))] * 6 == [
        (p.kind, p.disagrees) for p in result.topology.paths
    ]


def _tree(corpus: File, name: str) -> Assembled:
    host = open_source(str(corpus / "trees" / f"{name}.tar.xz"))
    return assemble([outcome_of(probe(name), host) for name in ("pci", "numa")], providers())


def test_every_gpu_of_an_xe9680_shares_a_switch_with_one_connectx_7(corpus: File) -> None:
    """As the index of the corpus states it; the front-end cards on two of these switches are no rails."""
    element = _tree(corpus, "lspci-xe9680-h100")
    rails = {nic.id for nic in element.topology.nics if nic.role == "rail"}
    near = [(p.a, p.b, p.bandwidth_gbyte_s) for p in element.topology.paths if p.kind == "PIX" and p.b in rails]
    gpus, nics = ("19", "3b", "4c", "5d", "9b", "bb", "cb", "db"), ("1a", "3c", "4d", "5e", "9c", "bc", "cc", "dc")

    assert [(f"0000:{gpu}:00.0", f"0000:{nic}:00.0", 63.015) for gpu, nic in zip(gpus, nics, strict=True)] == near
    assert ["management"] * 4 == [nic.role for nic in element.topology.nics if nic.id not in rails]
    assert [] == [p.kind for p in element.topology.paths if p.kind not in ("PIX", "NODE", "SYS")]


def test_pairs_of_gpus_and_rails_of_a_dgx_a100_are_pxb(corpus: File) -> None:
    """Two GPUs and two rails below one pair of switches; the dual-port card for storage is near to nobody."""
    element = _tree(corpus, "merged-dgx-a100")
    roles = {nic.id: nic.role for nic in element.topology.nics}
    pairs: dict[tuple[str, ...], set[str]] = {}
    for gpu in element.topology.gpus:
        near = tuple(
            sorted(p.b[5:7] for p in element.topology.paths if p.a == gpu.id and p.kind == "PXB" and p.b in roles)
        )
        pairs.setdefault(near, set()).add(gpu.id[5:7])

    assert {
        ("0c", "12"): {"07", "0f"},
        ("4b", "54"): {"47", "4e"},
        ("8d", "94"): {"87", "90"},
        ("ba", "cc"): {"b7", "bd"},
    } == pairs
    assert ["storage", "storage"] == [roles[f"0000:e1:00.{n}"] for n in (0, 1)]
    assert 8 == sum(role == "rail" for role in roles.values())
