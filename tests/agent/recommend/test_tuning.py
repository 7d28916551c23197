"""NCCL's own numbers, as its public logs print them."""

from __future__ import annotations

import pytest

from agent.platforms.profiles import load_profile
from agent.recommend.constants import (
    NEWEST,
    NVLS,
    NVLS_TREE,
    PAT,
    RING,
    TREE,
    Version,
    nvlink_gbyte_s,
    pcie_gbyte_s,
    search_speeds,
)
from agent.recommend.graph import ChannelPlan, SearchInput, plan_nvls, plan_of_job, plan_ring, plan_tree, search_rings
from agent.recommend.machine import assume_node
from agent.recommend.predict import Request, predict
from agent.recommend.tuning import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    BROADCAST,
    REDUCE_SCATTER,
    TunedJob,
    bus_factor,
    choose,
    list_choices,
    time_us,
)


def printed(collective: str, job: TunedJob, plan: ChannelPlan, algorithm: str) -> list[tuple[str, str, str]]:
    """Protocol, latency and bandwidth of one algorithm, as NCCL's TUNING lines round them."""
    return [
        (choice.protocol, f"{choice.latency_us:.1f}", f"{choice.algorithm_gbyte_s:.1f}")
        for choice in list_choices(collective, job, {algorithm: plan})
    ]


def test_three_nodes_of_h100_with_2_22() -> None:
    """nccl#1453: "8589934592 Bytes -> Algo 1 proto 2 time 86069.968750", 8 rails of 200 Gb/s."""
    job = TunedJob(nodes=3, ranks=24, sm=90, version=(2, 22))
    plan = plan_ring(SearchInput(8, 90, 370.8, (25.0,) * 8, (2, 22)))
    (simple,) = (choice for choice in list_choices(ALL_REDUCE, job, {RING: plan}) if choice.protocol == "Simple")

    assert ChannelPlan(8, 24, 24) == plan
    assert 86069.968750 == pytest.approx(time_us(simple, 8589934592, ALL_REDUCE, job, 8), rel=1e-6)


@pytest.mark.parametrize(
    ("collective", "algorithm", "expected"),
    [
        (ALL_GATHER, RING, [("LL", "23.3", "10.7"), ("LL128", "44.6", "19.6"), ("Simple", "70.0", "21.3")]),
        (BROADCAST, RING, [("LL", "9.3", "10.0"), ("LL128", "18.0", "18.4"), ("Simple", "22.4", "20.0")]),
        (ALL_REDUCE, TREE, [("LL", "25.2", "2.4"), ("LL128", "48.5", "8.6"), ("Simple", "448.0", "9.2")]),
        (ALL_REDUCE, RING, [("LL", "43.4", "5.3"), ("LL128", "79.4", "9.8"), ("Simple", "152.8", "10.7")]),
    ],
)
def test_sixteen_ranks_on_two_nodes(collective: str, algorithm: str, expected: list[tuple[str, str, str]]) -> None:
    """nccl#1519: AllGather 23.3/44.6/70.0 us, 21.3 GB/s; AllReduce tree 25.2/48.5/448.0, ring LL 43.4, LL128 79.4."""
    job = TunedJob(nodes=2, ranks=16, sm=90, version=(2, 21))

    assert expected == printed(collective, job, ChannelPlan(1, 20, 20), algorithm)


def test_one_gpu_per_node_uses_the_latency_of_trees() -> None:
    """A public log of 2 nodes with 1 GPU: AllGather 11.6/22.5/22.4 us, AllReduce tree 16.8/31.0/36.4."""
    job = TunedJob(nodes=2, ranks=2, sm=90, version=(2, 27))
    plan = ChannelPlan(1, 4.8, 4.8)

    assert ["11.6", "22.5", "22.4"] == [row[1] for row in printed(ALL_GATHER, job, plan, RING)]
    assert ["16.8", "31.0", "36.4"] == [row[1] for row in printed(ALL_REDUCE, job, plan, TREE)]


@pytest.mark.parametrize(
    ("node", "ring", "nvls"),
    [
        (SearchInput(8, 80, 240, (), NEWEST), ChannelPlan(12, 20, 20), ChannelPlan(0, 0, 0)),  # log of an A100 pair
        (SearchInput(8, 90, 370.8, (), NEWEST), ChannelPlan(12, 30, 30), ChannelPlan(8, 40, 40)),
        (SearchInput(8, 100, 721.8, (), NEWEST), ChannelPlan(16, 45, 45), ChannelPlan(8, 80, 80)),
        (SearchInput(72, 100, 721.8, (), NEWEST), ChannelPlan(16, 45, 45), ChannelPlan(32, 20, 20)),
        (SearchInput(8, 80, 240, (24.0,) * 8, NEWEST), ChannelPlan(8, 24, 24), ChannelPlan(0, 0, 0)),  # nccl#812
        (SearchInput(8, 90, 370.8, (48.0,) * 8, NEWEST), ChannelPlan(8, 48, 48), ChannelPlan(8, 40, 48)),
        (SearchInput(8, 90, 370.8, (48.0,) * 4, NEWEST), ChannelPlan(8, 24, 24), ChannelPlan(4, 48, 48)),
        (SearchInput(8, 80, 240, (24.0,) * 4, NEWEST), ChannelPlan(4, 24, 24), ChannelPlan(0, 0, 0)),  # nccl-tests#119
        (SearchInput(8, 90, 370.8, (48.0,) * 7 + (24.0,), NEWEST), ChannelPlan(15, 24, 24), ChannelPlan(8, 24, 24)),
    ],
)
def test_channels_of_regular_machines(node: SearchInput, ring: ChannelPlan, nvls: ChannelPlan) -> None:
    """Those that logs print, or that the search's own order gives."""
    assert ring == plan_ring(node)
    assert nvls == plan_nvls(node)


def test_trees_of_two_nodes_carry_more_inside() -> None:
    """Two GPUs share a NIC: 192 GB/s by rings, 331 by trees, which NCCL takes for all-reduce."""
    node = SearchInput(8, 90, 370.8, (48.0,) * 4, NEWEST)
    tree = plan_tree(node)
    chosen = choose(ALL_REDUCE, 1 << 33, TunedJob(2, 16, 90, NEWEST), {RING: plan_ring(node), TREE: tree})

    assert ChannelPlan(8, 48, 24) == tree
    assert chosen is not None
    assert (TREE, "Simple") == (chosen[0].algorithm, chosen[0].protocol)
    assert 331.2 == pytest.approx(2 * chosen[0].algorithm_gbyte_s)


def plan_all(rails: int, gbyte_s: float, version: Version) -> dict[str, ChannelPlan]:
    """The graphs of nodes of eight H100."""
    node = SearchInput(8, 90, 8 * 46.35 if version >= (2, 20) else 360.0, (gbyte_s,) * rails, version)
    return {RING: plan_ring(node), TREE: plan_tree(node), NVLS_TREE: plan_nvls(node)}


@pytest.mark.parametrize(
    ("version", "bandwidth"),
    [((2, 18), 224.0), ((2, 19), 266.7), ((2, 22), 266.7), ((2, 27), 266.7), ((2, 28), 246.2), (NEWEST, 246.2)],
)
def test_two_nodes_of_h100_take_a_tree_over_nvls(version: Version, bandwidth: float) -> None:
    """With every version; its ratio is .7 of nodes / 2(nodes - 1), then 5/6, then that of rings (nccl-tests#309)."""
    job, plans = TunedJob(2, 16, 90, version), plan_all(8, 48, version)
    chosen = choose(ALL_REDUCE, 1 << 30, job, plans)

    assert chosen is not None
    assert (NVLS_TREE, f"{bandwidth:.1f}") == (chosen[0].algorithm, f"{chosen[0].algorithm_gbyte_s:.1f}")


@pytest.mark.parametrize(
    ("size", "expected"),
    [(64 << 20, (NVLS_TREE, "Simple", 500)), (1 << 30, (RING, "Simple", 5814))],
)
def test_four_nodes_of_h100_with_2_26(size: int, expected: tuple[str, str, int]) -> None:
    """A tree over NVLS has half of the NICs there, and less latency: nccl-tests#309 measured 579 and 5809 us."""
    job = TunedJob(4, 32, 90, (2, 26))
    chosen = choose(ALL_REDUCE, size, job, plan_all(8, 48, (2, 26)))

    assert chosen is not None
    assert expected == (chosen[0].algorithm, chosen[0].protocol, round(chosen[1]))


def test_latency_of_a_tree_over_nvls() -> None:
    """2.18: 23 and 19 for each further node, twice; then by the logarithm: 14, from 2.28 on 20.9."""
    latencies = []
    for version in ((2, 18), (2, 19), (2, 21), (2, 27), (2, 28)):
        job = TunedJob(4, 32, 90, version)
        (choice,) = list_choices(ALL_REDUCE, job, {NVLS_TREE: ChannelPlan(8, 40, 48)})
        latencies.append(choice.latency_us)

    assert [23 + 6 * 19, 23 + 4 * 14, 25 + 4 * 14, 25 + 4 * 14, 25 + 4 * 20.9] == pytest.approx(latencies)


@pytest.mark.parametrize(("version", "share"), [((2, 22), None), ((2, 23), 0.85), ((2, 24), 0.75), (NEWEST, 0.75)])
def test_pat_is_for_one_gpu_of_each_node(version: Version, share: float | None) -> None:
    """Since 2.23; 8 us, the logarithm of the nodes, and 2.8 us for each rank."""
    plan, job = {PAT: ChannelPlan(2, 24, 24)}, TunedJob(16, 16, 90, version)
    expected = [] if share is None else [(48 * share, pytest.approx(8 + 4 * 14 / 3.5 + 16 * 2.8))]

    for collective in (ALL_GATHER, REDUCE_SCATTER):
        choices = [(choice.algorithm_gbyte_s, choice.latency_us) for choice in list_choices(collective, job, plan)]
        assert expected == choices
    assert [] == list(list_choices(ALL_REDUCE, job, plan))
    assert [] == list(list_choices(ALL_GATHER, job._replace(ranks=32), plan))


def test_nvls_beyond_one_node_needs_collnet() -> None:
    """12 nodes with SHARP: 384 GB/s, where 387 were measured; never for all-gather."""
    job, plan = TunedJob(12, 96, 90, NEWEST), {NVLS: ChannelPlan(8, 40, 48)}
    (choice,) = list_choices(ALL_REDUCE, job._replace(collnet=True), plan)

    assert [] == list(list_choices(ALL_REDUCE, job, plan))
    assert [] == list(list_choices(ALL_GATHER, job._replace(collnet=True), plan))
    assert 384 == pytest.approx(choice.algorithm_gbyte_s * bus_factor(ALL_REDUCE, 96))


def test_nvls_of_one_node_by_version() -> None:
    """All-gather came with 2.19, lost its 5/6 with 2.23 and an eighth with 2.27."""
    plan = {NVLS: ChannelPlan(8, 40, 40)}
    figures = [
        [round(choice.algorithm_gbyte_s, 1) for choice in list_choices(ALL_GATHER, TunedJob(1, 8, 90, version), plan)]
        for version in ((2, 18), (2, 22), (2, 26), (2, 27), (2, 28))
    ]

    assert [[], [266.7], [320.0], [280.0], [208.2]] == figures


@pytest.mark.parametrize(
    ("collective", "nodes", "version", "bus"),
    [
        (ALL_REDUCE, 1, (2, 20), 60), (ALL_GATHER, 1, (2, 20), 80), (ALL_GATHER, 2, (2, 20), 39),
        (ALL_REDUCE, 1, (2, 21), 120),
    ],
)  # fmt: skip
def test_rings_with_ll_before_2_21(collective: str, nodes: int, version: Version, bus: float) -> None:
    """A quarter or a third of the bandwidth, then a half; between nodes at most 39 GB/s."""
    job = TunedJob(nodes, 8 * nodes, 90, version)
    choice = next(list_choices(collective, job, {RING: ChannelPlan(8, 30, 30)}))

    assert ("LL", bus) == (choice.protocol, pytest.approx(choice.algorithm_gbyte_s * bus_factor(collective, job.ranks)))


@pytest.mark.parametrize(("version", "share"), [((2, 22), 0.7), ((2, 23), 0.92)])
def test_ll128_of_rings_of_one_gpu_per_node(version: Version, share: float) -> None:
    """Counted with less up to 2.22."""
    job = TunedJob(4, 4, 90, version)
    choice = list(list_choices(ALL_GATHER, job, {RING: ChannelPlan(2, 24, 24)}))[1]

    assert ("LL128", share * 48) == (choice.protocol, pytest.approx(choice.algorithm_gbyte_s * 3 / 4))


def test_a_job_gets_the_least_of_its_nodes() -> None:
    """31 nodes of 8 x 48 and one of 15 x 24: 8 x 24 = 192."""
    assert 192 == plan_of_job([ChannelPlan(8, 48, 48), ChannelPlan(15, 24, 24)]).total_gbyte_s


def test_links_as_nccl_counts_them() -> None:
    """Gen3, 4, 5 and 6 x16: 12, 24, 48, 96; NVLink by generation and version."""
    assert [12, 24, 48, 96] == [pcie_gbyte_s(speed, 16) for speed in (8.0, 16.0, 32.0, 64.0)]
    assert 12 == pcie_gbyte_s(128.0, 16)  # not in the table of NCCL: taken for Gen3
    assert [20.0, 20.6, 20.0, 40.1, 40.0] == [
        nvlink_gbyte_s(80, NEWEST), nvlink_gbyte_s(90, NEWEST), nvlink_gbyte_s(90, (2, 19)),
        nvlink_gbyte_s(100, NEWEST), nvlink_gbyte_s(100, (2, 26)),
    ]  # fmt: skip


def test_speeds_changed_between_versions() -> None:
    """2.18 had neither 50 nor 11 inside a node, 2.27 no 45 for Blackwell, 2.25 no 96 between nodes."""
    assert not {50, 11} & set(search_speeds(90, False, (2, 18)))
    assert 45 not in search_speeds(100, False, (2, 27))
    assert 45 in search_speeds(100, False, (2, 29))
    assert [48, 96, 96] == [search_speeds(100, True, version)[0] for version in ((2, 25), (2, 28), NEWEST)]


def test_bus_bandwidth_is_that_of_nccl_tests() -> None:
    """2(n-1)/n for all-reduce, (n-1)/n for all-gather and all-to-all, 1 for send/receive."""
    assert [1.75, 0.875, 0.875, 1.0] == [
        bus_factor(name, 8) for name in (ALL_REDUCE, ALL_GATHER, ALL_TO_ALL, "sendrecv")
    ]


def test_rings_of_a_hybrid_cube_mesh() -> None:
    """Eight V100: six rings of 20 GB/s; a public table has 135.5 GB/s for all-reduce of 1 GiB, inside the range."""
    node = assume_node(load_profile("dgx1v"), None)
    row = predict([node], Request(ALL_REDUCE, 1 << 30, 1), "healthy")

    assert ChannelPlan(6, 20, 20) == search_rings(8, node.mesh, 70, NEWEST)
    assert ("ring", 6, 20) == (row.algorithm, row.channels, row.channel_gbyte_s)
    assert row.range_gbyte_s is not None
    assert row.range_gbyte_s[0] < 135.5 < row.range_gbyte_s[1]
    assert predict([node], Request(ALL_REDUCE, 1 << 30, 2), "healthy").busbw_gbyte_s is None


def test_the_search_ends() -> None:
    """Pairs have no ring; one link lost costs rings; a budget of few steps finds some."""
    mesh = assume_node(load_profile("dgx1v"), None).mesh
    lost = tuple((a, b, 20.0 if (a, b) == (0, 3) else speed) for a, b, speed in mesh)

    assert 0 == search_rings(4, ((0, 1, 80.0), (2, 3, 80.0)), 86, NEWEST).channels
    assert search_rings(8, lost, 70, NEWEST).total_gbyte_s < 120
    assert 0 <= search_rings(8, mesh, 70, NEWEST, 12).total_gbyte_s <= 120


def test_one_gpu_is_bound_by_its_nic() -> None:
    """Of eight GPUs seven are lost: no NVLink is between what is left, and the plan has an end."""
    one = SearchInput(1, 80, 235.0, (25.0,), (2, 22))

    assert ChannelPlan(1, 24, 24) == plan_ring(one)
    assert 24 == plan_tree(one).inter_gbyte_s
