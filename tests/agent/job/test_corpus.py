"""Made jobs and public threads: what each answer must name, and what it must not."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from agent.cli.job import answer_job
from agent.model.job_answer import JobAnswer
from agent.outputs.text.job import render_job
from agent.outputs.text.lines import to_plain_text
from tests.agent.job.jobs import NONE

# name: how it ended, id of the first cause, what the answer has, what it has not
JOBS: dict[str, tuple[str, str | None, tuple[str, ...], tuple[str, ...]]] = {
    "efa-empty-list-in-container": (
        "well",
        "efa-not-found",
        ("TCP sockets instead of EFA", "/dev/infiniband/uverbs"),
        ("MLNX_OFED", "mlx5"),
    ),
    "flight-recorder-64-missing-43": (
        "hung",
        "rank-behind",
        ("rank 43 on gpu-e06, GPU 3", "tp5 at 151", "dp3 at 144"),
        ("rank 40 ", "rank 44 ", "clock"),
    ),
    "hccl-tls-of-one-npu": (
        "failed",
        "tls-differs",
        ("rank 6", "device 2 of 10.52.0.12", "same value everywhere"),
        ("mlx5", "port down", "NCCL_"),
    ),
    "healthy-gb200-info-noise": ("well", None, ("No failure in it",), ("libmlx5", "refused", "0xaa", "failed")),
    "inspector-64-slow-rail-3": (
        "unknown",
        "communicator-slow",
        ("communicator dp3", "rail 3", "1 line cut or damaged"),
        ("is late", "straggler"),
    ),
    "nvls-bind-401": (
        "failed",
        "nvls-bind-failed",
        ("all 8 ranks on hgx-c11", "nvidia-fabricmanager", "reset of all GPUs, or a reboot"),
        ("RoCE", "mlx5_", "2. "),
    ),
    "oom-kill-one-task": (
        "killed",
        "oom-kill",
        ("rank 11 on gpu-h02", "out of host memory"),
        ("rank 11 on gpu-h01", "2. "),
    ),
    "port-flap-then-retries": (
        "failed",
        "port-down",
        ("port 1 of mlx5_5 on gpu-b03 (rank 21)", "came up again after 5 s", "[from port-down]"),
        ("GID", "2. "),
    ),
    "ras-three-snapshots": (
        "hung",
        "rank-behind",
        ("rank 21 (GPU 5 on 10.31.7.22, process 52021)", "2210", "2 snapshots"),
        ("rank 6 ", "rank 7 "),
    ),
    "shm-64-mb": (
        "failed",
        "shm-full",
        ("/dev/shm of trainer-7f9c6d-0 is full", "--shm-size", "emptyDir"),
        ("network", "GPU memory", "NCCL_SHM_DISABLE"),
    ),
    "status12-linklocal-misspelt": (
        "failed",
        "gid-link-local",
        ("fe80", "NCCL_IB_GID_INDX is no setting of NCCL", "status 5"),
        ("ACS", "GPUDirect", "cable"),
    ),
    "watchdog-one-rank-behind": (
        "hung",
        "rank-behind",
        ("rank 13 on gpu-d02, GPU 5", "collective 913", "before the network"),
        ("rank 4 on", "fabric,"),
    ),
}
THREADS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "async-port-error": ("port-down", ("nd1", "status 12", "[from port-down]"), ()),
    "e810-lid-1": (
        "qp-invalid",
        ("Invalid argument", "rocep59s0f1 port 1: DOWN", "LID 1 on an Ethernet port"),
        ("subnet manager",),
    ),
    "gid-index-1-link-local": (
        "qp-address-unresolved",
        ("GID index 1 is link-local", "index 3 is RoCE v2"),
        ("no RoCE v2",),
    ),
    "k8s-macvlan-gids-from-4": ("gid-type-unreadable", ("type of a GID", "2.24"), ("no RoCE v2",)),
    "locked-memory-limit": ("memlock-low", ("locked memory", "--ulimit memlock=-1"), ("GPUDirect RDMA is not",)),
    "nvls-401-h100": ("nvls-cuda-error", ("NVLS", "fabric manager", "reboot"), ("No failure",)),
    "one-hca-of-four-named": (
        "nics-left-out",
        ("NCCL_IB_HCA=mlx5_0", "mlx5_1, mlx5_2, mlx5_3"),
        ("since 2.21", "RoCE loss"),
    ),
    "rccl-port-error-polling": ("port-down", ("mlx5_7", "Polling"), ("mlx5_6 on",)),
}


def read(folder: Path, target: Path) -> tuple[JobAnswer, str]:
    """The answer, and its text; without what says the truth."""
    shutil.copytree(folder, target, ignore=shutil.ignore_patterns("truth.json", "paste.md"))
    result = answer_job([str(target)], NONE)
    return result, " ".join(to_plain_text(render_job(result, 100)).split())


@pytest.mark.parametrize("name", JOBS)
def test_made_jobs(corpus: Path, tmp_path: Path, name: str) -> None:
    """Each of what its truth demands."""
    ended, cause, must, must_not = JOBS[name]
    result, text = read(corpus / "jobs" / name, tmp_path / "job")

    assert ended == result.job.ended
    assert cause == (result.causes[0].id if result.causes else None)
    for part in must:
        assert part in text
    for part in must_not:
        assert part not in text


def test_every_made_job_is_here(corpus: Path) -> None:
    """None is left out."""
    assert {path.parent.name for path in (corpus / "jobs").glob("*/truth.json")} <= set(JOBS)


@pytest.mark.parametrize("name", THREADS)
def test_public_threads(corpus: Path, tmp_path: Path, name: str) -> None:
    """Logs beside saved outputs of the same host."""
    cause, must, must_not = THREADS[name]
    result, text = read(corpus / "threads" / name / "in", tmp_path / "in")

    assert cause == result.causes[0].id
    for part in must:
        assert part in text
    for part in must_not:
        assert part not in text


@pytest.mark.parametrize("name", ["e810-lid-1", "one-hca-of-four-named", "rccl-port-error-polling"])
def test_pasted_threads(corpus: Path, name: str) -> None:
    """A log and outputs of commands in one text."""
    result = answer_job([str(corpus / "threads" / name / "paste.md")], NONE)
    text = " ".join(to_plain_text(render_job(result, 100)).split())

    assert THREADS[name][0] == result.causes[0].id
    assert [True] == [row.joined for row in result.reports]
    assert THREADS[name][1][0] in text


def test_published_measurements_have_no_failure(corpus: Path) -> None:
    """Whole logs of healthy runs."""
    for name in (
        "a100-8x-allreduce.log",
        "dgx-h100-1n-allreduce.txt",
        "gb200-nvl72-allreduce.txt",
        "mi300x-1n-allreduce.txt",
    ):
        result = answer_job([str(corpus / "measured" / "logs" / name)], NONE)

        assert ("No failure in it", []) == (result.headline, result.causes), name
        assert 1 == len(result.measured)


def test_the_same_evidence_gives_the_same_bytes(corpus: Path) -> None:
    """But for the time at which it was made."""
    import msgspec

    texts = set()
    for _ in range(2):
        result = answer_job([str(corpus / "jobs" / "port-flap-then-retries")], NONE)
        document = json.loads(msgspec.json.encode(result))
        del document["generated_at"]
        texts.add(json.dumps(document))

    assert 1 == len(texts)
