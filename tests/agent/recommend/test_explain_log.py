"""Logs of jobs: what they hold, and what differs from what their machine should give."""

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
from agent.recommend.explain import explain_log
from agent.recommend.machine import read_node
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
