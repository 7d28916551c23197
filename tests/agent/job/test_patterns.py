"""The table of failure lines, the rows of the reference in it, and jobs of the bench: each is found, its like not."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from agent.cli.job import JobOptions, answer_job
from agent.job import catalogue
from agent.job.catalogue import FOLDER, OTHERS, ROLES, FailureRow, find_patterns, load_codes, load_patterns
from agent.job.evidence import Evidence
from agent.job.log_reader import LogReader
from agent.model.job_answer import FAULT_KINDS
from agent.toml_file import parse_toml
from bench.job_logs import CASES, Job
from bench.jobs import score

ROWS = tuple(pattern.row for pattern in load_patterns())


def matching(line: str) -> set[str]:
    """The rows that match a line, found as a log's lines are."""
    return {pattern.row.id for pattern in find_patterns(line.encode()) if pattern.search(line)}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_a_row_fires_on_its_lines_and_on_no_line_like_them(row: FailureRow) -> None:
    """Found by its words, then by its pattern."""
    assert row.fires
    assert row.silent
    for line in row.fires:
        assert row.id in matching(line), line
    for line in row.silent:
        assert row.id not in matching(line), line


def test_rows_are_well_formed() -> None:
    """A name once, a role and a fault that exist, words without digits, a summary whose names exist."""
    assert {} == {name: count for name, count in Counter(row.id for row in ROWS).items() if count > 1}
    for row in ROWS:
        assert row.role in ROLES, row.id
        assert row.info is None or row.info in ROLES, row.id
        assert row.fault in FAULT_KINDS, row.id
        assert not any(re.search(r"\d", word) for word in row.words), row.id
        names = set(re.findall(r"\{(\w+)\}", " ".join([row.summary, *row.next])))
        known = {
            "who",
            "ranks",
            "where",
            "host",
            "text",
            "line",
            "meaning",
            "check",
            *re.compile(row.pattern).groupindex,
        }
        assert names <= known, row.id


def test_rows_are_cut_out_of_their_files_as_the_library_reads_these() -> None:
    """Their words are read without it, and each of them when a line has one."""
    texts = {name: (Path(FOLDER) / name).read_text() for name in sorted(os.listdir(FOLDER)) if name not in OTHERS}
    files = [parse_toml(text, dict[str, list[FailureRow]]) for text in texts.values()]
    rows = [row for file in files for row in file["row"]]

    assert rows == list(ROWS)
    assert [row.words for row in rows] == [pattern.words for pattern in load_patterns()]


@pytest.mark.parametrize("word", ["", "~", "12", "NET_"])
def test_a_word_that_finds_no_line_is_refused(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the table is loaded, with the row's name."""
    fields = {"pattern": "odd", "role": "note", "summary": "odd"}
    row = f'\nid = "odd"\nwords = ["{word}"]\nfires = []\nsilent = []\n' + "".join(
        f'{name} = "{text}"\n' for name, text in fields.items()
    )
    monkeypatch.setattr(catalogue, "load_patterns", lambda: (catalogue.Pattern(row),))
    with pytest.raises(ValueError, match="row odd"):
        catalogue.load_words.__wrapped__()


def test_no_pattern_is_slower_than_the_length_of_its_line() -> None:
    """A line of one repeated piece, twice as long, takes about twice the time: bounded repeats only."""
    import time

    for row in ROWS:
        search = re.compile(row.pattern).search
        for piece in (*row.fires, row.words[0], "a", "[rank1]:", "1,", "failed ", "NET/IB : "):
            line = (piece * 4000)[:4000]
            start = time.thread_time()
            search(line)
            assert time.thread_time() - start < 0.25, (row.id, piece)


def test_codes_have_meanings() -> None:
    """Of every table."""
    for table, codes in load_codes().items():
        assert codes
        for code, entry in codes.items():
            assert entry["means"], (table, code)
            assert entry.get("fault", "unknown") in FAULT_KINDS, (table, code)
            assert entry.get("role", "note") in ROLES, (table, code)


# The table of failures of the reference: each of its rows is a row here, or a fact that a reader takes.


REFERENCE = {
    "A1": "completion-error", "A1b": "completion-error-resilient", "A2": "qp-address-unresolved", "A3": "qp-invalid",
    "A4": "qp-no-route", "A5": "qp-failed", "A6": "verbs-create-failed verbs-create-denied", "A7": "memlock-low",
    "A8": "gpu-memory-not-registered", "A9": "dmabuf-unsupported", "A10": "async-event", "A11": "gid-table-changed",
    "A12": "device-error-consequence", "A13": "port-given-up", "A14": "link-speed-changed",
    "A15": "link-layers-mixed", "A16": "verbs-device-unusable", "A17": "no-rdma-device",
    "A18": "no-libibverbs no-libmlx5", "A19": "collective-mismatch", "A20": "gid-type-unreadable", "A23": "hint",
    "B6": "p2p-disabled", "C1": "cuda-error", "C2": "driver-too-old", "C3": "allocation-failed",
    "C4": "cumem-unsupported",
    "C5": "nvml-failed", "C6": "duplicate-gpu", "C7": "wrong-world-size",
    "D1": "shm-full shm-failed", "D2": "uds-failed",
    "E1": "no-socket-interface", "E2": "connect-failed", "E3": "connection-closed", "E4": "connection-broken",
    "E5": "bootstrap-truncated", "E6": "socket-truncated", "E7": "rank-claimed-twice", "E8": "versions-differ",
    "E9": "device-counts-differ local-net-devices", "E10": "stranger-connected", "E12": "proxy-failed",
    "E13": "proxy-gone", "E14": "proxy-progress", "E15": "unwinding", "F1": "nvls-cuda-error nvls-out-of-memory",
    "F2": "nvls-bind-failed nvls-out-of-memory", "F3": "nvls-available", "F4": "imex-not-working", "F5": "mnnvl-forced",
    "F6": "fabric-state", "F7": "topology-broken", "F8": "topology-file", "F9": "no-real-path",
    "G1": "plugin-not-found",
    "G2": "network-plugin-missing", "G3": "sharp-not-there", "G4": "ofi-provider", "G5": "efa-not-found",
    "G6": "efa-completion-error", "G7": "efa-address efa-gdr-off", "H1": "no-algorithm", "H2": "setting-rejected",
    "H4": "collective-mismatch-old", "H5": "bad-call", "H6": "async-error-state", "I5": "init-slow",
    "J1": "iommu-parameters", "J2": "numa-balancing", "J3": "hsa-settings", "J4": "no-peer-client",
    "K1": "ucx-completion", "K2": "ucx-error ucx-memlock ucx-unreachable", "L1": "watchdog-timeout",
    "L2": "watchdog-status", "L3": "watchdog-dump", "L4": "heartbeat-stuck", "L5": "torch-async-exception",
    "L6": "nccl-result", "L7": "collectives-differ", "L8": "store-lost store-unreachable", "L9": "exit-code",
    "L10": "gpu-out-of-memory gpu-out-of-memory-hip", "M1": "oom-kill", "M2": "task-exit", "M3": "xid",
    "M4": "mpi-exit", "N2": "hccl-link-timeout", "N3": "hccl-root-timeout", "N4": "hccl-completion",
    "N5": "hccl-heartbeat", "N6": "hccl-notify-timeout", "N7": "hccl-mismatch", "N8": "hccl-port-taken",
    "N9": "hccl-fault-code", "O1": "gaudi-acquire-failed",
}  # fmt: skip
HEAD = "gpu1:100:200 [0] NCCL INFO "
# id: a line, one like it that is none, and what the line gives
FACTS = {
    "B1": (HEAD + "NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0' (no module)",
           HEAD + "NET/IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0'",
           lambda evidence: evidence.nccl.result().gpudirect_off),
    "B2": (HEAD + "GPU Direct RDMA Disabled for GPU 3 / HCA 1 (distance 8 > 5)", HEAD + "GPU Direct RDMA for GPU 3",
           lambda evidence: evidence.nccl.result().too_far),
    "B4": (HEAD + "Channel 03/0 : 9[1] -> 1[1] [receive] via NET/IB/3/GDRDMA", HEAD + "Channel 03/0 of 4",
           lambda evidence: evidence.nccl.result().transports),
    "B5": (HEAD + "Channel 00 : 0[0] -> 1[1] via SHM/direct/direct", HEAD + "SHM is off",
           lambda evidence: evidence.nccl.result().transports),
    "B8": (HEAD + "ncclTopoGetCpuAffinity: Affinity for GPU 3 is empty",
           HEAD + "ncclTopoGetCpuAffinity: Affinity for GPU 3 is 0-31",
           lambda evidence: evidence.nccl.result().no_affinity),
    "B9": (HEAD + "Using network Socket", HEAD + "Using non-device net plugin version 0",
           lambda evidence: evidence.nccl.result().network),
    "B10": (HEAD + "NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:10.0.0.1<0>", HEAD + "NET/IB : none",
            lambda evidence: evidence.ranks.devices.get("gpu1")),
    "I1": ("NCCL version 2.21.5+cuda12.4", "NCCL versions differ", lambda evidence: evidence.library),
    "I2": ("RCCL version : 2.27.7-HEAD:185e78a", "RCCL is here", lambda evidence: evidence.library),
    "I3": (HEAD + "ncclCommInitRank comm 0xaa rank 1 nranks 8 cudaDev 1 nvmlDev 1 busId c1000 commId 0x2 - Init START",
           HEAD + "comm 0xaa of rank 1", lambda evidence: evidence.ranks.rank_of("gpu1", 100)),
    "I4": (HEAD + "NCCL_IB_DISABLE set by environment to 1.", HEAD + "NCCL_IB_DISABLE is known",
           lambda evidence: evidence.settings),
    "N1": ("[EVENT] HCCL(4242,python3):2026-07-01-10:00:00.000.001 [a.cc:1] [LocalRank Key Info]userRank[6] "
           "hostIp[10.0.0.1] devicePhyId[2] server[s] deviceIp[10.1.0.1]", "HCCL is here",
           lambda evidence: evidence.ranks.host_of),
}  # fmt: skip


def test_every_row_of_the_reference_is_here() -> None:
    """By its id; the reference is not in every checkout."""
    path = Path(__file__).parents[4] / "shared" / "reference" / "job-patterns.json"
    if not path.exists():
        pytest.skip("the reference is not here")
    entries = json.loads(path.read_text())
    assert {entry["id"] for entry in entries} <= REFERENCE.keys() | FACTS.keys()
    for entry in entries:
        for sample in entry["samples"] if entry["id"] in REFERENCE else ():
            line = re.sub(r"^.*NCCL (?:WARN|INFO) (?!HINT)", "", sample) if entry["id"] != "F1" else sample
            found = {pattern.row.id for pattern in find_patterns(line.encode()) if pattern.search(line)}
            slow = entry["id"] == "I5"
            assert slow or found & set(REFERENCE[entry["id"]].split()), (entry["id"], sample)


def test_the_names_of_rows_exist() -> None:
    """Each."""
    known = {row.id for row in ROWS}
    assert {name for names in REFERENCE.values() for name in names.split()} <= known


@pytest.mark.parametrize("name", FACTS)
def test_facts_are_read(name: str) -> None:
    """The line gives the fact; one that is like it does not."""
    line, other, fact = FACTS[name]
    results = []
    for text in (line, other):
        evidence = Evidence()
        LogReader(evidence).read_file("log", [text.encode() + b"\n"])
        results.append(fact(evidence))

    assert results[0] not in (None, [], {}, False)
    assert not results[1]


# Jobs that the bench makes, of one and of eight hosts: every planted cause is named, and nothing else is.


@pytest.mark.parametrize("ranks", [8, 64])
@pytest.mark.parametrize("case", CASES)
def test_planted_causes_are_found(tmp_path: Path, case: str, ranks: int) -> None:
    """First of all, with ranks, host and NIC."""
    truth = CASES[case](Job(tmp_path / "job", ranks, ranks))
    answer = msgspec.to_builtins(answer_job([str(tmp_path / "job")], JobOptions([])))
    found, first, alarms = score(answer, truth)

    assert (len(truth.causes), True, 0) == (found, first, alarms), [cause["summary"] for cause in answer["causes"]]


def test_the_generator_imports_nothing_of_the_readers() -> None:
    """Else it would prove nothing."""
    text = (Path(__file__).parents[3] / "bench" / "job_logs.py").read_text()

    assert "agent" not in [
        line.split()[1].partition(".")[0] for line in text.splitlines() if line.startswith(("import ", "from "))
    ]
