"""Recall and false alarms of `job` over made jobs with planted causes.

`python -m bench.jobs [--ranks 8,64,256,1024] [--seeds 3]` writes a table.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.job_logs import CASES, Job, Planted, Truth

TOP = 3  # causes that are shown first
STOPPING = ("failed", "hung", "killed")


def ask(folder: Path) -> dict[str, Any]:
    """The answer as anyone gets it."""
    command = [sys.executable, "-m", "fabricscope", "job", str(folder), "--format", "json", "--quiet"]
    answer: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return answer


def names(cause: dict[str, Any], planted: Planted) -> bool:
    """Whether a cause of the answer is the planted one: its kind, and the ranks, host and NIC that it has to name."""
    fault = cause["at_fault"]
    return (
        cause["id"] in planted.ids
        and (not planted.ranks or planted.ranks == set(fault["ranks"]))
        and (planted.host is None or planted.host == fault["host"])
        and (planted.nic is None or planted.nic == fault["nic"])
    )


def score(answer: dict[str, Any], truth: Truth) -> tuple[int, bool, int]:
    """Planted causes that are named, whether the first cause is a planted one, and causes that are none."""
    causes = answer["causes"]
    found = sum(any(names(cause, planted) for cause in causes[:TOP]) for planted in truth.causes)
    first = bool(causes) and any(names(causes[0], planted) for planted in truth.causes)
    alarms = sum(not any(names(cause, planted) for planted in truth.causes) for cause in causes)
    healthy = not truth.causes and not causes
    return found, first or healthy, alarms


def run(ranks: list[int], seeds: int) -> list[str]:
    """One row of the table for each case."""
    rows = [
        "| planted | jobs | causes | named | first cause right | false alarms | slowest |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, make in CASES.items():
        jobs = causes = named = right = alarms = 0
        slowest = 0.0
        for size in ranks:
            for seed in range(seeds):
                with tempfile.TemporaryDirectory() as folder:
                    truth = make(Job(Path(folder) / "job", size, seed * 1000 + size))
                    start = time.perf_counter()
                    found, first, others = score(ask(Path(folder) / "job"), truth)
                    slowest = max(slowest, time.perf_counter() - start)
                jobs, causes, named = jobs + 1, causes + len(truth.causes), named + found
                right, alarms = right + first, alarms + others
                if found < len(truth.causes) or others or not first:
                    print(
                        f"{name}, {size} ranks, seed {seed}: {found} of {len(truth.causes)} named, {others} others",
                        file=sys.stderr,
                    )
        rows.append(f"| {name} | {jobs} | {causes} | {named} | {right} | {alarms} | {slowest:.1f} s |")
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", default="8,64,256,1024")
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    print("\n".join(run([int(size) for size in arguments.ranks.split(",")], arguments.seeds)))
