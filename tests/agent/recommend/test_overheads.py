"""What transfers between nodes reach beside NCCL's own figures."""

from __future__ import annotations

import pytest

from agent.platforms.profiles import load_profile
from agent.recommend.constants import NEWEST, NVLS_TREE, RING, TREE
from agent.recommend.graph import ChannelPlan
from agent.recommend.machine import NodeFacts, assume_node
from agent.recommend.overheads import (
    ANY,
    EFA,
    FITTED,
    MORE,
    PLUGIN,
    RDMA,
    TCPXO,
    TWO,
    Fit,
    Overhead,
    classify_job,
    count_gbyte_s,
    find_overhead,
    grow_latency,
    reach,
)
from agent.recommend.predict import HEALTHY, Request, predict
from agent.recommend.tuning import ALL_GATHER, ALL_REDUCE, Choice, TunedJob, bus_factor

MIB, GIB = 1 << 20, 1 << 30
NOTHING = Overhead(Fit(0, 0, 0), Fit(1, 1, 1), 1)


def make_node(profile: str, number: int = 8, gbit_s: float = 400.0) -> NodeFacts:
    """A platform with these rails."""
    return assume_node(load_profile(profile), (number, gbit_s))


@pytest.mark.parametrize(
    ("version", "size", "measured"),
    [((2, 23), GIB, 450), ((2, 25), 1 << 34, 470), ((2, 26), 256 * MIB, 392), ((2, 27), 8 * MIB, 118.6)],
)
def test_two_nodes_of_h100(version: tuple[int, int], size: int, measured: float) -> None:
    """16 rails of 200 Gb/s, two of each GPU: more than the 400 GB/s of the NICs, by NVLS."""
    row = predict([make_node("hgx-h100-8", 16, 200.0)], Request(ALL_REDUCE, size, 2, version), HEALTHY)
    low, high = row.range_gbyte_s or (0, 0)

    assert NVLS_TREE == row.algorithm
    assert row.bound is not None
    assert "nvls" == row.bound.kind
    assert measured == pytest.approx(row.busbw_gbyte_s, rel=0.1)
    assert low < measured < high


def test_two_nodes_of_b200_are_bound_by_their_nics() -> None:
    """Public tables reach 675 to 696 GB/s from 1 to 8 GB."""
    row = predict([make_node("hgx-b200-8")], Request(ALL_REDUCE, 4 * GIB, 2), HEALTHY)

    assert row.bound is not None
    assert ("nic", 690) == (row.bound.kind, pytest.approx(row.busbw_gbyte_s, rel=0.03))


@pytest.mark.parametrize(("size", "measured"), [(8, 76.8), (64, 209), (512, 393), (1024, 437), (16384, 487)])
def test_efa_with_h100(size: int, measured: float) -> None:
    """p5.48xlarge: 32 NICs of 100 Gb/s."""
    node = assume_node(load_profile("p5.48xlarge"), None)
    row = predict([node], Request(ALL_REDUCE, size * MIB, 2), HEALTHY)

    assert measured == pytest.approx(row.busbw_gbyte_s, rel=0.1)


def test_counted_bandwidth() -> None:
    """On two nodes what NVLS of one node has, or the NICs; on more what NCCL counts."""
    job, choice = TunedJob(2, 16, 90, (2, 26)), Choice(NVLS_TREE, "Simple", 266.7, 53.0)
    inside, plan = ChannelPlan(8, 40, 40), ChannelPlan(8, 40, 48)
    counted = count_gbyte_s(choice, ALL_REDUCE, job, plan, inside)

    assert 476 == pytest.approx(counted * bus_factor(ALL_REDUCE, 16))
    assert 192 == count_gbyte_s(choice, ALL_REDUCE, job, ChannelPlan(8, 24, 24), inside)
    assert 266.7 == count_gbyte_s(choice, ALL_REDUCE, job._replace(nodes=4, ranks=32), plan, inside)
    assert 266.7 == count_gbyte_s(choice, ALL_REDUCE, job, plan, ChannelPlan(0, 0, 0))
    assert 204.8 == count_gbyte_s(
        choice._replace(algorithm=RING, algorithm_gbyte_s=204.8), ALL_REDUCE, job, plan, inside
    )


@pytest.mark.parametrize(("network", "own", "kind"), [("InfiniBand", RDMA, RDMA), ("EFA", EFA, PLUGIN)])
def test_classes_fall_back_to_wider_ones(network: str, own: str, kind: str) -> None:
    """The job's own, the algorithm on its network, on networks like it, all of those, all."""
    keys = list(dict.fromkeys([
        (own, RING, TWO), (own, RING, ANY), (kind, RING, ANY), (kind, ANY, ANY), (ANY, ANY, ANY),
    ]))  # fmt: skip
    overheads = [NOTHING._replace(tables=number) for number in range(len(keys))]

    for number in range(len(keys)):
        fitted = dict(zip(keys[number:], overheads[number:], strict=True))
        assert number == find_overhead(classify_job(network, RING, 2), fitted).tables


def test_classes_of_jobs() -> None:
    """By network, algorithm, and two nodes or more; the fit has one for each."""
    assert (EFA, TREE, MORE) == classify_job("EFA", TREE, 3)
    assert (RDMA, TREE, TWO) == classify_job("none", TREE, 2)
    for network in (RDMA, EFA, TCPXO):
        assert all(find_overhead((network, name, MORE), FITTED).tables for name in (RING, TREE, NVLS_TREE))


def test_what_is_reached() -> None:
    """Latency and share; its range has the other side of both, and is no wider than a quarter from 1 GB on."""
    job, choice = TunedJob(2, 16, 90, NEWEST), Choice(RING, "Simple", 360.0, 70.0)
    overhead = Overhead(Fit(-1000, 100, 90_000), Fit(0.5, 0.9, 2.0), 3)
    plain = reach(choice, 64 * MIB, ALL_GATHER, job, 8, NOTHING)
    low, high = 70 + 90_000 + 64 * MIB / (0.5 * 360e3), (70 + 64 * MIB / (2 * 360e3)) / 2
    usual = 70 + 100 + 64 * MIB / (0.9 * 360e3)
    reached = reach(choice, 64 * MIB, ALL_GATHER, job, 8, overhead)
    large = reach(choice, GIB, ALL_GATHER, job, 8, overhead)

    def busbw(time: float) -> object:
        return pytest.approx(64 * MIB * 15 / 16 / time / 1000)

    assert (busbw(70 + 64 * MIB / 360e3), plain.busbw, plain.busbw) == (plain.busbw, plain.low, plain.high)
    assert (busbw(low), busbw(usual), busbw(high)) == (reached.low, reached.busbw, reached.high)
    assert (0.76, 1.24) == pytest.approx((large.low / large.busbw, large.high / large.busbw))
    assert [False, True, True] == [plain.contradicted, reached.contradicted, large.contradicted]
    assert not reach(choice, GIB, ALL_GATHER, job, 8, overhead._replace(tables=1)).contradicted
    assert [0.5, 1, 1] == [grow_latency(RING, size * MIB) for size in (16, 64, 256)]
    assert [0.5, 1, 1] == [grow_latency(TREE, size * MIB) for size in (4, 16, 64)]


def test_a_network_whose_plugin_wants_nvls_off() -> None:
    """TCPXO: a tree, as its tables have; one node keeps NVLS."""
    node = make_node("hgx-h100-8", 8, 200.0)._replace(network=TCPXO)
    between, inside = (predict([node], Request(ALL_REDUCE, 4 * GIB, nodes), HEALTHY) for nodes in (2, 1))

    assert (TREE, "nvls") == (between.algorithm, inside.algorithm)
    assert 330.6 == pytest.approx(between.busbw_gbyte_s, rel=0.05)


@pytest.mark.parametrize(("algorithm", "nodes", "busbw"), [(RING, 2, 372), (TREE, 2, 312), ("nvls", 12, 385)])
def test_an_algorithm_that_is_forced(algorithm: str, nodes: int, busbw: float) -> None:
    """As `NCCL_ALGO` does; NVLS beyond one node is CollNet's."""
    row = predict([make_node("hgx-h100-8")], Request(ALL_REDUCE, 4 * GIB, nodes, NEWEST, algorithm), HEALTHY)

    assert (algorithm, busbw) == (row.algorithm, pytest.approx(row.busbw_gbyte_s, rel=0.03))


@pytest.mark.parametrize(
    ("nodes", "size", "known_by", "note"),
    [
        (2, 64 * MIB, "assumed", "networks differ"), (2, 16 * GIB, "model", ""),
        (4, 64 * MIB, "assumed", "an upper limit: a production cluster"),
        (32, GIB, "assumed", "an upper limit: a production cluster"),
    ],
)  # fmt: skip
def test_what_is_less_sure_says_so(nodes: int, size: int, known_by: str, note: str) -> None:
    """Where tables of one network differ by more than a fifth for a size; where no table reaches."""
    node = assume_node(load_profile("p5.48xlarge"), None)._replace(assumed=())
    row = predict([node], Request(ALL_REDUCE, size, nodes), HEALTHY)

    assert known_by == row.known_by
    assert note in (row.note or "")
    assert bool(note) == bool(row.note)
