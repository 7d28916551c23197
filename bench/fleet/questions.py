"""What each question to a fleet costs, as a user asks it: a whole process, from start to answer.

    python -m bench.fleet.questions DATASET [--runs 3] [--engine URL]

With an engine the questions go to what `fleet load` made of the dataset there.

Wall is the best of the runs; CPU time is told beside it, as other work on the machine moves only the wall.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time

from agent.fleet.dataset import open_dataset

SINCE = "2026-01-15T08:59:59Z"  # between the two sweeps of bench.fleet.make
QUESTIONS = (
    ["summary"],
    ["outliers"],
    ["findings"],
    ["duplicates"],
    ["drift", "--since", SINCE],
    ["query", "select hardware_class, count(*) from host group by 1"],
)


def asked(arguments: list[str], *address: str) -> tuple[float, float, float]:
    """Wall and CPU seconds, and the most memory in MiB."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "fabricscope", "fleet", *arguments, *address]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(arguments)} ended with {child.returncode}")
    return time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--engine")
    given = parser.parse_args()
    address = ("--engine", given.engine) if given.engine else ("--dataset", given.dataset)
    print(f"{open_dataset(given.dataset).manifest.nodes:,} nodes, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}")
    print("| question | wall s | CPU s | MiB |")
    print("|---|---|---|---|")
    for arguments in QUESTIONS:
        runs = [asked(arguments, *address) for _ in range(given.runs)]
        wall, cpu, memory = (min(row[at] for row in runs) for at in range(3))
        print(f"| {arguments[0]} | {wall:.2f} | {cpu:.2f} | {memory:.0f} |", flush=True)


if __name__ == "__main__":
    main()
