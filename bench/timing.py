"""Times whole processes, interleaved: on a noisy machine only ratios within one run are meaningful."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Cost:
    """One command's median over all rounds."""

    wall_seconds: float
    cpu_seconds: float
    peak_mib: float  # the largest of its processes


def measure_interleaved(
    commands: Mapping[str, Sequence[str]],
    rounds: int,
    environment: Mapping[str, Mapping[str, str]] | None = None,
    accepted: Sequence[int] = (0,),
) -> dict[str, Cost]:
    """Run every command once per round, in turn, after one warm-up round. `accepted`: exit codes."""
    samples: dict[str, list[Cost]] = {name: [] for name in commands}
    for k in range(rounds + 1):
        for name, argv in commands.items():
            cost = measure_once(argv, (environment or {}).get(name, {}), accepted)
            if k:
                samples[name].append(cost)
    return {name: _median(sample) for name, sample in samples.items()}


def measure_once(argv: Sequence[str], extra: Mapping[str, str], accepted: Sequence[int] = (0,)) -> Cost:
    """Run one process with its output discarded; returns the kernel's accounting. Byte code is written, as users do."""
    inherited = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    started = time.perf_counter()
    pid = os.posix_spawnp(
        argv[0],
        list(argv),
        {**inherited, **extra},
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ],
    )
    _, status, usage = os.wait4(pid, 0)
    wall = time.perf_counter() - started
    if os.waitstatus_to_exitcode(status) not in accepted:
        raise RuntimeError(f"{' '.join(argv)} ended with {os.waitstatus_to_exitcode(status)}")
    return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def _median(costs: Sequence[Cost]) -> Cost:
    return Cost(
        statistics.median(c.wall_seconds for c in costs),
        statistics.median(c.cpu_seconds for c in costs),
        max(c.peak_mib for c in costs),
    )
