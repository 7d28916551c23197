"""Logs of NCCL: what they hold, what differs from what their machine should give, what transfers cost beside it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent.cli.main import run
from agent.job.evidence import Evidence
from agent.job.log_reader import LogReader
from agent.model.recommend_answers import LogAnswer
from agent.model.report import Report
from agent.outputs.text.lines import to_plain_text
from agent.outputs.text.recommend_answers import render_log_answer
from agent.platforms.profiles import load_profile
from agent.recommend.constants import NEWEST, NVLS_TREE, RING, TREE
from agent.recommend.explain import explain_log
from agent.recommend.graph import ChannelPlan
from agent.recommend.machine import NodeFacts, assume_node, read_node
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
from tests.machines import scan_machine

H100 = "8xh100-sxm-2s-8xcx7-ib-4nvsw"
HEALTHY_LOG = """\
n1:1:2 [0] NCCL INFO NCCL version 2.27.7+cuda12.8
n1:1:2 [0] NCCL INFO NET/IB : Using {devices} [RO]; OOB eth0:10.0.0.1<0>
n1:1:2 [0] NCCL INFO Using network IB
n1:1:2 [0] NCCL INFO DMA-BUF is available on GPU device 0
n1:1:2 [0] NCCL INFO GPU Direct RDMA Disabled for GPU 19000 / HCA 7 (distance 8 > 5)
n1:1:2 [0] NCCL INFO NVLS multicast support is available on dev 0 (NVLS_NCHANNELS 16)
n1:1:2 [0] NCCL INFO comm 0x3 rank 0 nRanks 16 nNodes 2 localRanks 8 localRank 0 MNNVL 0
n1:1:2 [0] NCCL INFO Pattern 4, crossNic 0, nChannels 8, bw 48.000000/48.000000, type NVL/PIX, sameChannels 1
n1:1:2 [0] NCCL INFO 16 coll channels, 16 collnet channels, 8 nvls channels, 16 p2p channels, 2 p2p channels per peer
n1:1:2 [0] NCCL INFO Channel 00/0 : 8[0] -> 0[0] [receive] via NET/IB/0(1)/GDRDMA
n1:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM
n1:1:2 [0] NCCL INFO AllReduce: 1073741824 Bytes -> Algo NVLS_TREE proto SIMPLE channel{{Lo..Hi}}={{0..7}}
"""


def explain(text: str, report: Report | None) -> LogAnswer:
    """What a log shows against the host of a report."""
    evidence = Evidence()
    LogReader(evidence).read_file("log", text.encode().splitlines(keepends=True))
    return explain_log(evidence.nccl.result(), read_node(report) if report else None, report)


@pytest.fixture(scope="module")
def h100() -> Report:
    """A healthy machine."""
    return scan_machine(H100)


@pytest.fixture(scope="module")
def healthy(h100: Report) -> str:
    """A log that is as it should be, with the names of that machine's rails."""
    rails = [rail.label for rail in read_node(h100).rails]
    return HEALTHY_LOG.format(devices=" ".join(f"[{number}]{name}:1/IB" for number, name in enumerate(rails)))


def test_a_healthy_job_has_no_difference(healthy: str, h100: Report) -> None:
    """A pair that is far apart is no fault: every rail has a nearer GPU."""
    answer = explain(healthy, h100)

    assert [] == answer.differences
    assert [] == answer.not_compared
    assert ["network", "NICs", "GPUDirect RDMA", "GPUs of a node", "NVLS", "graphs", "choices"] == answer.as_expected
    assert {"NET/IB/GDRDMA": 1, "P2P/CUMEM": 1} == answer.log.transports
    assert "nothing of what could be compared" in to_plain_text(render_log_answer(answer, 90))


@pytest.mark.parametrize(
    ("old", "new", "what", "reason"),
    [
        ("Using network IB", "Using network Socket", "network", "NCCL_IB_DISABLE=1 or NCCL_NET=Socket"),
        ("NET/IB/0(1)/GDRDMA", "NET/IB/0(1)", "GPUDirect RDMA", "distance 8 > 5"),
        (
            "DMA-BUF is",
            "NET/IB : GPU Direct RDMA Disabled for HCA 0 'a' DMA-BUF",
            "GPUDirect RDMA",
            "nor DMA-BUF of the NIC",
        ),
        ("via P2P/CUMEM", "via SHM/direct/direct", "GPUs of a node", "IOMMU or ACS"),
        ("support is available", "support is not available", "NVLS", "fabric manager"),
        ("nChannels 8, bw 48.000000/48", "nChannels 8, bw 24.000000/24", "ring graph", "another node"),
        ("[0]mlx5_", "[0]eth_", "NICs", "only some of the devices"),
        ("Algo NVLS_TREE", "Algo RING", "all_reduce of 1073741824 bytes", "tuner plugin"),
        ("Using network IB", "NCCL_P2P_DISABLE set by environment to 1.", "NCCL_P2P_DISABLE", "host memory"),
        ("Using network IB", "ncclTopoGetCpuAffinity: Affinity for GPU 3 is empty, x", "CPU binding", "NUMA node"),
    ],
)
def test_what_differs_is_named_with_its_reasons(
    healthy: str, h100: Report, old: str, new: str, what: str, reason: str
) -> None:
    """One thing at a time."""
    assert old in healthy
    answer = explain(healthy.replace(old, new), h100)

    row = next(row for row in answer.differences if row.what == what)
    assert reason in " ".join(row.reasons)
    assert what in to_plain_text(render_log_answer(answer, 90))


def test_a_setting_of_the_job_is_the_first_reason(healthy: str, h100: Report) -> None:
    """Before what else could be."""
    line = "Using network Socket\nNCCL INFO NCCL_IB_DISABLE set by environment to 1."
    answer = explain(healthy.replace("Using network IB", line), h100)

    assert "the job sets NCCL_IB_DISABLE=1" == answer.differences[0].reasons[0]


def test_without_a_machine_only_what_the_log_shows(healthy: str) -> None:
    """Nothing is said of what a machine would have to tell."""
    answer = explain(healthy.replace("support is available", "support is not available"), None)

    assert [] == answer.differences
    assert any("--report" in text for text in answer.not_compared)


def test_public_logs(corpus: Path) -> None:
    """Sockets because there is no device; RDMA without GPUDirect."""
    logs = corpus / "measured" / "logs"
    sockets = explain((logs / "a100-vm-socket-fallback.log").read_text(), None)
    copied = explain((logs / "h100-1gpu-roce-gdr-off-allreduce.log").read_text(), None)

    assert ["network", "CPU binding"] == [row.what for row in sockets.differences]
    assert "/dev/infiniband" in sockets.differences[0].reasons[0]
    assert ["GPUDirect RDMA", "NCCL_ALGO"] == [row.what for row in copied.differences]
    assert "4 of 4 network channels" in copied.differences[0].seen
    assert (["0 1"], False) == (copied.log.rings, copied.log.gpudirect)
    assert ("2.26.2", 2, 2) == (copied.log.version, copied.log.ranks, copied.log.nodes)


def test_the_command(tmp_path: Path, healthy: str, capsys: pytest.CaptureFixture[str]) -> None:
    """JSON, text, a platform instead of a machine; a file without NCCL's lines is one line and exit 2."""
    log, empty = tmp_path / "nccl.log", tmp_path / "empty.log"
    log.write_text(healthy)
    empty.write_text("nothing\n")

    assert 0 == run(["recommend", "explain-log", str(log), "--profile", "dgx-h100", "--format", "json"])
    answer = json.loads(capsys.readouterr().out)
    assert ("fabricscope.job/1", []) == (answer["schema"], answer["machine"]["differences"])
    assert 0 == run(["recommend", "explain-log", str(log), "--profile", "dgx-h100"])
    printed = capsys.readouterr()
    assert "ring: 8 channels x 48 GB/s" in printed.out
    assert "fabricscope job" in printed.err
    for wrong in ([str(empty)], [str(tmp_path / "none")], [str(log), "--profile", "dgx-h100", "--report", "x"]):
        assert 2 == run(["recommend", "explain-log", *wrong])
        assert "error: " in capsys.readouterr().err


def test_a_choice_that_is_as_good_is_no_difference(healthy: str, h100: Report) -> None:
    """On four nodes a ring and a tree over NVLS take the same time for 1 GiB with NCCL 2.30."""
    four = healthy.replace("nRanks 16 nNodes 2", "nRanks 32 nNodes 4").replace("2.27.7", "2.30.4")

    for algorithm in ("RING", "NVLS_TREE"):
        answer = explain(four.replace("Algo NVLS_TREE", f"Algo {algorithm}"), h100)
        assert "choices" in answer.as_expected
    tree = explain(four.replace("NVLS_TREE proto SIMPLE", "TREE proto LL128"), h100)
    assert ["tree LL128"] == [row.seen for row in tree.differences]


# What transfers between nodes reach beside NCCL's own figures.


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
