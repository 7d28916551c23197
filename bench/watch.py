"""Measures `watch`: CPU time and wake-ups while idle, memory over many evaluations.

python -m bench.watch [--minutes 5] [--judgings 100]
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from typing import NamedTuple

TICKS = os.sysconf("SC_CLK_TCK")
PAGE_KIB = os.sysconf("SC_PAGE_SIZE") // 1024
WARM = 10  # judgings before memory is compared: caches fill


class ProcessCost(NamedTuple):
    """The cost of one process, including its waited-for children."""

    cpu_seconds: float
    children_seconds: float
    rss_kib: int
    switches: int  # times that it went to sleep


def main() -> None:
    """Both parts on this host."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--judgings", type=int, default=100)
    options = parser.parse_args()
    argv = [sys.executable, "-m", "fabricscope", "watch", "--quiet", "--format", "ndjson", "--every", "1e6"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, bufsize=0) as watch:
        try:
            _idle(watch, options.minutes * 60)
            _memory(watch, options.judgings)
        finally:
            watch.send_signal(signal.SIGTERM)
            watch.wait(60)


def _idle(watch: subprocess.Popen[bytes], seconds: float) -> None:
    _wait_for_line(watch)
    time.sleep(1)
    before, started = measure_process(watch.pid), time.monotonic()
    time.sleep(seconds)
    after, took = measure_process(watch.pid), time.monotonic() - started
    cpu = after.cpu_seconds - before.cpu_seconds
    print(f"idle for {took:.0f} s: {cpu:.2f} s of CPU ({100 * cpu / took:.4f} % of a core), ", end="")
    print(f"{after.switches - before.switches} wake-ups, {after.rss_kib / 1024:.1f} MiB", flush=True)


def _memory(watch: subprocess.Popen[bytes], judgings: int) -> None:
    """Full scans, one after the other."""
    rows = []
    for count in range(judgings):
        os.kill(watch.pid, signal.SIGUSR1)
        _wait_for_line(watch)
        if count + 1 in (1, WARM, judgings // 2, judgings):
            rows.append((count + 1, measure_process(watch.pid)))
    for count, row in rows:
        print(f"after {count} full scans: {row.rss_kib / 1024:.1f} MiB, ", end="")
        print(f"{row.cpu_seconds:.1f} s of CPU of its own, {row.children_seconds:.1f} s of probes")


def _wait_for_line(watch: subprocess.Popen[bytes]) -> None:
    """Wait for the next line."""
    assert watch.stdout is not None
    if not watch.stdout.readline():
        raise RuntimeError("watch has ended")


def measure_process(pid: int) -> ProcessCost:
    """By /proc/PID/stat, statm and status."""
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        fields = file.read().rpartition(")")[2].split()
    user, system, of_children, of_children_system = (int(field) / TICKS for field in fields[11:15])
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        resident = int(file.read().split()[1]) * PAGE_KIB
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        rows = dict(line.split(":", 1) for line in file)
    return ProcessCost(user + system, of_children + of_children_system, resident, int(rows["voluntary_ctxt_switches"]))


if __name__ == "__main__":
    main()
