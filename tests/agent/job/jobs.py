"""Answers about files that tests write."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from agent.cli.job import JobOptions, answer_job
from agent.model.job_answer import JobAnswer, JobCause

NONE = JobOptions([])


def answer(folder: Path, options: JobOptions = NONE, **files: str | bytes) -> JobAnswer:
    """About these files (`__` in a name is a dot), or about what the folder holds."""
    for name, content in files.items():
        data = content.encode() if isinstance(content, str) else content
        (folder / name.replace("__", ".")).write_bytes(data)
    return answer_job([str(folder)], options)


def first(result: JobAnswer) -> JobCause:
    """The cause that is the headline."""
    return result.causes[0]


def describe(result: JobAnswer) -> str:
    """How the job ended, each cause and what followed from it, and how many lines are notes.

    `failed: port-down (wire, high, ranks [1], gpu1, mlx5_1), then ranks [0, 2]; 1 note`
    """
    parts = []
    for cause in result.causes:
        fault = cause.at_fault
        ranks = f"ranks {fault.ranks}" if fault.ranks else None
        text = f"{cause.id} ({', '.join(filter(None, (fault.kind, cause.confidence, ranks, fault.host, fault.nic)))})"
        after = sorted({rank for row in result.consequences if row.of == cause.id for rank in row.ranks})
        parts.append(f"{text}, then ranks {after}" if after else text)
    if result.notes:
        parts.append(f"{len(result.notes)} notes" if len(result.notes) > 1 else "1 note")
    return f"{result.job.ended}: {'; '.join(parts) or 'no cause'}"


class Log(NamedTuple):
    """What a log shows, the log, the answer as `describe` gives it, words of the headline or the first summary."""

    about: str
    log: str
    found: str
    words: str = ""


def check(folder: Path, row: Log) -> None:
    """The answer about this log is the row's; of a job that ended well nothing is left open."""
    result = answer(folder, log=row.log)

    assert row.found == describe(result)
    assert row.words in "\n".join([result.headline, *(cause.summary for cause in result.causes[:1]), ""])
    assert result.job.ended != "well" or not result.cannot_tell


def info(rank: int, text: str, host: str = "gpu1", local: int | None = None) -> str:
    """A line of NCCL at level INFO."""
    return f"{host}:{100 + rank}:{200 + rank} [{rank if local is None else local}] NCCL INFO {text}\n"


def warn(
    rank: int, text: str, host: str = "gpu1", at: str | None = None, place: str = "transport/net_ib.cc:1295"
) -> str:
    """A line of NCCL at level WARN, after its empty line."""
    stamp = f"[2026-11-03 {at}] " if at else ""
    return f"\n{stamp}{host}:{100 + rank}:{200 + rank} [{rank}] {place} NCCL WARN {text}\n"


def begin(ranks: int, hosts: int = 1, done: bool = True) -> str:
    """Communicators of ranks on hosts gpu1, gpu2, .."""
    lines = "NCCL version 2.21.5+cuda12.4\n"
    each = ranks // hosts
    for rank in range(ranks):
        host, local = f"gpu{rank // each + 1}", rank % each
        lines += info(rank, f"Bootstrap : Using eth0:10.0.0.{rank // each + 1}<0>", host, local)
        lines += info(rank, "NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>", host, local)
        for what in ("START", "COMPLETE")[: 2 if done else 1]:
            text = (
                f"ncclCommInitRank comm 0x{rank + 1:x} rank {rank} nranks {ranks} cudaDev {local} nvmlDev "
                f"{local} busId {local + 1:x}1000 commId 0x9 - Init {what}"
            )
            lines += info(rank, text, host, local)
    return lines


def steps(count: int = 5) -> str:
    """Lines of training."""
    return "".join(f"iteration {number} | loss 1.0\n" for number in range(count))
