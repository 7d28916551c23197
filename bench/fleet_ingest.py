"""Measures the ingest of a generated fleet's reports: `python -m bench.fleet_ingest --nodes 2000`.

Processor seconds are printed besides wall time: on a busy machine only they are meaningful.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_POLL_SECONDS = 0.1
_SETTLED_SECONDS = 3.0  # a file that was written just now is read again the next time


def main() -> None:
    """Make the reports, then ingest them twice: the second time nothing is new."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--gz", action="store_true", help="packed, as `ship` hands them over")
    parser.add_argument("--mix", help="of bench.fleet.make: gb200-ib=1 are smaller reports, l40s-roce=1 smaller still")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        reports, dataset = Path(folder, "reports"), Path(folder, "dataset")
        make = ["bench.fleet.make", "--nodes", str(args.nodes), "--seed", "1", "--out", str(reports)]
        make += (["--gz"] if args.gz else []) + (["--mix", args.mix] if args.mix else [])
        subprocess.run([sys.executable, "-m", *make], check=True)
        size = sum(path.stat().st_size for path in reports.rglob("*") if path.is_file())
        time.sleep(_SETTLED_SECONDS)
        costs = []
        for name in ("first", "again"):
            seconds, processor, memory = _measured(
                ["fleet", "ingest", str(reports), "--dataset", str(dataset), "--jobs", str(args.jobs)]
            )
            costs.append(processor)
            print(
                f"{name}: {args.nodes} reports, {size / 1e6:.0f} MB: {seconds:.1f} s, {args.nodes / seconds:.0f}/s, "
                f"{processor / args.nodes * 1e3:.2f} ms of a processor each, {memory} MiB of memory at most a process"
            )
        print(f"a known report costs {costs[1] / costs[0]:.3f} of a new one")
        size_on_disk = sum(path.stat().st_size for path in dataset.rglob("*") if path.is_file())
        print(f"dataset: {size_on_disk / 1e6:.1f} MB, {size_on_disk / args.nodes:.0f} bytes a node")


def _measured(arguments: list[str]) -> tuple[float, float, int]:
    """Seconds, processor seconds of all processes, and the most anonymous memory of one of them (MiB)."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    running = subprocess.Popen([sys.executable, "-m", "fabricscope", *arguments])
    memory = 0
    while running.poll() is None:
        memory = max([memory, *map(_anonymous, _family(running.pid))])
        time.sleep(_POLL_SECONDS)
    seconds = time.monotonic() - start
    if running.returncode:
        sys.exit(running.returncode)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, memory


def _family(parent: int) -> list[int]:
    try:
        return [parent, *map(int, Path(f"/proc/{parent}/task/{parent}/children").read_text().split())]
    except OSError:
        return []


def _anonymous(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) // 1024 for line in lines if line.startswith("RssAnon")), 0)


if __name__ == "__main__":
    main()
