"""Late ranks, slow communicators, slow pairs: metrics and point-to-point records of Inspector, clocks of dumps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.agent.job.jobs import answer, first

LABELS = 'version="v5.1",slurm_job_id="7",node="{}",gpu="GPU{}",comm_name="{}",n_nodes="{}",nranks="{}",{}'


def metrics(times: dict[tuple[str, int, str], float], nodes: int = 1, function: str = "AllReduce") -> str:
    """Of (host, GPU, communicator): microseconds."""
    rows = ["# HELP nccl_collective_exec_time_microseconds NCCL collective execution time"]
    members = {name: sum(key[2] == name for key in times) for _, _, name in times}
    for (host, gpu, name), time in times.items():
        rest = f'collective="{function}",message_size="134-135MB",algo_proto="RING_SIMPLE"'
        labels = LABELS.format(host, gpu, name, nodes, members[name], rest)
        rows += [
            f"nccl_bus_bandwidth_gbs{{{labels}}} 44.1",
            f"nccl_collective_exec_time_microseconds{{{labels}}} {time}",
        ]
    return "\n".join(rows) + "\n"


def test_a_late_gpu_by_metrics(tmp_path: Path) -> None:
    """Its time is short where the others' are long; means show no more than a suspicion."""
    times = {("gpu1", gpu, "tp0"): 300.0 if gpu == 2 else 2500.0 for gpu in range(4)}
    cause = first(answer(tmp_path, a__prom=metrics(times)))

    assert ("rank-late", "low", "gpu1") == (cause.id, cause.confidence, cause.at_fault.host)
    assert "GPU2 of gpu1 is late" in cause.summary
    assert "AllReduce 134-135MB in tp0: 300 us, the others 2500 us" == cause.evidence[0].text


@pytest.mark.parametrize(
    ("late", "other", "function", "name"),
    [
        (1300.0, 2500.0, "AllReduce", "tp0"),  # more than half
        (20.0, 60.0, "AllReduce", "tp0"),  # below the jitter
        (300.0, 2500.0, "Broadcast", "tp0"),  # a root need not wait
        (300.0, 2500.0, "AllReduce", "unknown"),  # of several communicators together
    ],
)
def test_metrics_of_no_late_gpu(tmp_path: Path, late: float, other: float, function: str, name: str) -> None:
    """None is named."""
    times = {("gpu1", gpu, name): late if gpu == 2 else other for gpu in range(4)}

    assert [] == answer(tmp_path, a__prom=metrics(times, function=function)).causes


def test_a_gpu_that_is_late_in_one_of_its_communicators_only(tmp_path: Path) -> None:
    """Is not late itself."""
    times = {("gpu1", gpu, "tp0"): 300.0 if gpu == 2 else 2500.0 for gpu in range(4)}
    times |= {("gpu1", gpu, "dp0"): 900.0 for gpu in range(4)}

    assert [] == answer(tmp_path, a__prom=metrics(times)).causes


def test_a_slow_communicator_by_metrics(tmp_path: Path) -> None:
    """The same GPU of every host: its rail."""
    times = {(f"gpu{host}", gpu, f"dp{gpu}"): 2600.0 if gpu == 3 else 900.0 for host in range(4) for gpu in range(8)}
    cause = first(answer(tmp_path, a__prom=metrics(times, nodes=4)))

    assert ("communicator-slow", "fabric") == (cause.id, cause.at_fault.kind)
    assert "communicator dp3: AllReduce of 134-135MB takes 2.9 times" in cause.summary
    assert "common to all of them: GPU3 of every host" in cause.summary


def pair_records(slow: set[tuple[int, int]], count: int = 30, time: float = 900.0) -> dict[str, str]:
    """Files of 8 ranks on 2 hosts that send to all others."""
    files = {}
    for rank in range(8):
        lines = []
        for peer in range(8):
            for number in range(count if peer != rank else 0):
                inside = rank // 4 == peer // 4
                usual = 100.0 if inside else 300.0
                p2p = {"p2p": "Send", "p2p_sn": number, "p2p_peer": peer, "p2p_msg_size_bytes": 1 << 24,
                       "p2p_exec_time_us": (time if (rank, peer) in slow else usual) + number % 5,
                       "p2p_timing_source": "kernel_gpu"}  # fmt: skip
                header = {"id": "0x1", "comm_name": "pp", "rank": rank, "n_ranks": 8, "nnodes": 2}
                metadata = {"hostname": f"gpu{rank // 4 + 1}", "pid": 100 + rank}
                lines.append(json.dumps({"header": header, "metadata": metadata, "p2p_perf": p2p}))
        files[f"gpu{rank // 4 + 1}-pid{100 + rank}__log"] = "\n".join(lines) + "\n"
    return files


def test_slow_pairs_with_one_process_in_common(tmp_path: Path) -> None:
    """Beside pairs of the same reach: GPUs of one host are faster than those of two."""
    cause = first(answer(tmp_path, **pair_records({(2, peer) for peer in (4, 5, 6)})))

    assert ("pair-slow", "medium", "gpu1") == (cause.id, cause.confidence, cause.at_fault.host)
    assert "common to all of them: process 102 on gpu1" in cause.summary
    assert "3 pairs are slow: the fastest Send takes" in cause.summary


def test_pairs_that_are_not_slow(tmp_path: Path) -> None:
    """All alike, few records, and half of all."""
    for number, files in enumerate((
        pair_records(set()),
        pair_records({(2, 4)}, count=19),
        pair_records({(rank, peer) for rank in range(8) for peer in range(8) if rank % 4 != 3}),
    )):  # fmt: skip
        folder = tmp_path / str(number)
        folder.mkdir()
        assert [] == answer(folder, **files).causes, number


def dump(rank: int, late: int | None, delay: float = 3.0, offset: float = 0.0, **changes: Any) -> str:
    """30 collectives, 10 s apart, by the clock of the rank's host."""
    start = 1_793_760_000 + offset
    entries = []
    for number in range(1, 31):
        created = start + number * 10 + (delay if rank == late else 0.0)
        done = start + number * 10 + delay + 0.5 + 0.05 * (rank % 3)
        entry = {"process_group": ["0", "default_pg"], "pg_id": 0, "collective_seq_id": number, "state": "completed",
                 "profiling_name": "nccl:all_reduce", "time_created_ns": int(created * 1e9),
                 "time_discovered_completed_ns": int(done * 1e9), "retired": True}  # fmt: skip
        entries.append(entry | changes)
    config = {"0": {"name": "0", "desc": "default_pg", "ranks": str(list(range(4)))}}
    return json.dumps({"version": "2.10", "pg_config": config, "pg_status": {}, "entries": entries})


def test_a_late_rank_by_dumps_whose_clocks_differ(tmp_path: Path) -> None:
    """Offsets of hosts are taken away: the end of a collective is one moment."""
    offsets = (0.0, 25.0, -40.0, 3.0)
    cause = first(answer(tmp_path, **{f"trace_rank_{rank}": dump(rank, 2, offset=offsets[rank]) for rank in range(4)}))

    assert ("rank-late", [2]) == (cause.id, cause.at_fault.ranks)
    assert "2.9 s after the other ranks of default_pg, clocks corrected" in cause.summary


@pytest.mark.parametrize(
    ("delay", "changes"),
    [(0.7, {}), (3.0, {"time_discovered_completed_ns": 0}), (3.0, {"time_created_ns": None}), (3.0, {"is_p2p": True})],
)
def test_dumps_that_decide_nothing(tmp_path: Path, delay: float, changes: dict[str, Any]) -> None:
    """Delays below a second, and times that are missing."""
    files = {f"trace_rank_{rank}": dump(rank, 2, delay, **changes) for rank in range(4)}

    assert [] == answer(tmp_path, **files).causes


def test_one_damaged_line_of_metrics_is_one_line(tmp_path: Path) -> None:
    """The reason is in the singular."""
    times = {("gpu1", rank, str(rank)): 100.0 for rank in range(8)}
    result = answer(tmp_path, a__prom=metrics(times) + "cut of\n")

    assert ["1 line cut or damaged"] == [file.reason for file in result.source.files]
