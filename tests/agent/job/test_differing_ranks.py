"""What one rank, or one host, prints otherwise than the others: a suspect of low confidence, never in a healthy log."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.job import line_forms
from agent.job.lines import Prefixes
from tests.agent.job.jobs import NONE, answer, info

HOSTS = 4
EACH = 4
RANKS = HOSTS * EACH
VIA = "Channel 00/0 : {0}[{1}] -> {2}[0] via P2P/CUMEM"
TIMED_OUT = (
    "[rank{0}]:[E1103 04:12:57.1 ProcessGroupNCCL.cpp:616] [Rank {0}] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=41, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 600042 milliseconds\n"
)


def lines_of(rank: int) -> list[str]:
    """What each rank of a healthy job prints: alike, but for what differs by place."""
    host, local = divmod(rank, EACH)
    lines = [
        f"Bootstrap : Using eno1:10.7.{host}.9<0>",
        "cudaDriverVersion 12040",
        "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eno1:10.7.0.9<0>",
        "Using network IB",
        f"ncclCommInitRank comm 0x55{rank:06x} rank {rank} nranks {RANKS} cudaDev {local} nvmlDev {local} busId "
        f"{local + 1}b000 commId 0x8d1f - Init START",
        f"Setting affinity for GPU {local} to {'ffff,00000000' if local < 2 else 'ffff0000,00000000'}",
        f"Trees [0] {rank + 1}/-1/-1->{rank}->{rank - 1}",
        f"Channel 01/0 : {rank}[{local}] -> {(rank + EACH) % RANKS}[{local}] [send] via NET/IB/{local}/GDRDMA"
        if local == EACH - 1
        else VIA.format(rank, local, rank + 1),
        "16 coll channels, 0 nvls channels, 16 p2p channels, 2 p2p channels per peer",
    ]
    return [*lines, "Connected all rings", "Connected all trees"]


def write(change: dict[int, dict[int, str | None]], hangs: bool = False) -> str:
    """The log of all ranks; `change`: by rank and line, another line or none."""
    rows = []
    for rank in range(RANKS):
        host, local = divmod(rank, EACH)
        for number, text in enumerate(lines_of(rank)):
            new = change.get(rank, {}).get(number, text)
            rows += [info(rank, part, f"gpu{host + 1}", local) for part in (new or "").split("|") if part]
    return "".join(rows) + ("".join(TIMED_OUT.format(rank) for rank in range(RANKS)) if hangs else "")


def differences(folder: Path, log: str) -> list[str]:
    """The sentences about ranks that differ, as notes and as causes."""
    result = answer(folder, log=log)
    notes = [row.summary for row in result.notes if "what is different" in row.summary]
    return notes + [cause.summary for cause in result.causes if cause.id == "rank-differs"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param({6: {3: "Using network Socket"}}, "rank 6 on gpu2, GPU 2 prints “Using network Socket”, where",
                     id="one form in place of another"),
        pytest.param({6: {8: "12 coll channels, 0 nvls channels, 16 p2p channels, 2 p2p channels per peer"}},
                     "prints “12 coll channels, 0”, where the others print “16 coll", id="one value"),
        pytest.param({rank: {1: "cudaDriverVersion 12020"} for rank in range(8, 12)}, "ranks 8-11 on gpu3 print “cuda",
                     id="all ranks of a host"),
        pytest.param({rank: {2: "NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eno1:10.7.0.9<0>"} for rank in range(8, 12)},
                     "[1]mlx5_1:1/IB", id="a NIC that one host does not have"),
        pytest.param({6: {7: VIA.format(6, 2, 7).replace("P2P/CUMEM", "SHM/direct/direct")}},
                     "7[0] via SHM/direct/direct”, where", id="another transport"),
        pytest.param({6: {3: "Using network IB|NCCL_P2P_DISABLE set by environment to 1."}},
                     "only rank 6 on gpu2, GPU 2 prints: NCCL_P2P_DISABLE", id="a setting of one rank"),
    ],
)  # fmt: skip
def test_that_a_rank_differs_is_a_note_and_names_both_sides(
    tmp_path: Path, change: dict[int, dict[int, str | None]], words: str
) -> None:
    found = differences(tmp_path, write(change))

    assert len(found) == 1
    assert words in found[0]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({}, id="nothing"),
        pytest.param({0: {8: "NCCL version 2.21.5+cuda12.4|" + lines_of(0)[8]}}, id="the first rank"),
        pytest.param({rank: {3: "Using network IB|Proxy of the host runs"} for rank in range(0, RANKS, EACH)},
                     id="the first rank of each host"),
        pytest.param({rank: {8: f"{rank} coll channels, 0 nvls channels"} for rank in range(RANKS)}, id="each its own"),
        pytest.param({rank: {10: None} for rank in (5, 6)}, id="two that are behind at the end of an excerpt"),
    ],
)  # fmt: skip
def test_ranks_that_differ_by_their_part_of_the_job_are_no_suspects(
    tmp_path: Path, change: dict[int, dict[int, str | None]]
) -> None:
    assert not differences(tmp_path, write(change))


def test_a_hang_without_a_cause_has_the_rank_that_differs_as_its_last_suspect(tmp_path: Path) -> None:
    change: dict[int, dict[int, str | None]] = {6: {3: "Using network Socket"}}
    result = answer(tmp_path, log=write(change, hangs=True))

    assert [cause.id for cause in result.causes] == ["collective-stuck", "rank-differs"]
    suspect = result.causes[1]
    assert (suspect.confidence, suspect.at_fault.ranks, suspect.at_fault.host) == ("low", [6], "gpu2")
    assert [row.text for row in suspect.evidence] == ["Using network Socket", "Using network IB"]


def test_a_rank_that_never_came_to_what_the_others_print_is_named_where_the_job_hung(tmp_path: Path) -> None:
    change: dict[int, dict[int, str | None]] = {6: {9: None, 10: None}}

    assert not differences(tmp_path, write(change))
    assert "did not come to what all others print: Connected all rings" in differences(tmp_path, write(change, True))[0]


def steps(slow: int | None, count: int = 8, noise: int = 0) -> str:
    """Steps of ranks with the time of each; one of them is slow."""
    rows = []
    for step in range(6):
        for rank in range(count):
            time = 200 + step + (230 if rank == slow else 0) + (rank * 37 + step) * noise % 190
            rows.append(f"{rank}: step {step}/100 loss {2 + rank / 7 + step / 13:.4f} forward time: {time:.1f} ms\n")
    return "".join(rows)


def test_a_steady_time_that_is_longer_on_one_rank_is_noted_and_a_noisy_one_is_not(tmp_path: Path) -> None:
    found = differences(tmp_path, steps(slow=5))

    assert len(found) == 1
    assert "forward time: 43" in found[0]
    assert not differences(tmp_path, steps(slow=None))
    assert not differences(tmp_path, steps(slow=5, noise=1))


def test_files_of_ranks_are_compared_where_their_lines_name_no_rank(tmp_path: Path) -> None:
    text = "torch 2.4.0 cuda 12.4\nloading the model\nbuilding the data loader with 8 workers\n"
    files = {f"worker_{number}__log": text for number in range(6)}
    files["worker_3__log"] = text.replace("8 workers", "0 workers")

    result = answer(tmp_path, NONE, **files)

    assert "worker_3.log prints “the data loader with 0 workers" in " ".join(row.summary for row in result.notes)


def test_a_dump_of_bytes_has_no_ranks(tmp_path: Path) -> None:
    rows = [f"{number * 10}: {number % 7:02x} 00 12 00 04" for number in range(8)]

    assert not differences(tmp_path, "\n".join([*rows, "90: 00 42 3c 39 01 77", "CUDA error: out of memory", ""]))


def test_a_log_without_end_is_collected_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit, value in (("_MOST_EFFORT", 3000), ("_MOST_FORMS", 40), ("_MOST_ROWS", 500)):
        monkeypatch.setattr(line_forms, limit, value)
    forms, prefixes = line_forms.LineForms(), Prefixes(())
    for number in range(9000):
        raw = b"gpu1:%d:7 [0] NCCL INFO step %d of %s\n" % (number % 64, number, b"x" * (number % 90))
        forms.add(raw, number, 0, prefixes, number)

    assert forms.is_cut
    assert len(forms.forms) == 40
    assert sum(forms.lines.values()) <= 3000
    assert sum(len(rows) for form in forms.forms.values() for rows in form.rows.values()) == 500
