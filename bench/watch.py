"""Measures `watch`: CPU time and wake-ups while idle, memory over many evaluations; on a host whose cores are busy.

python -m bench.watch [--minutes 5] [--judgings 100]
python -m bench.watch --busy 2 [--minutes 5]      # processes that keep a core busy each

With --busy (root): an interface of hardware is announced again and again as if it flapped (`change`, written to its
`uevent`, which nobody acts on), and full scans are due every 20 s. Printed: how late full scans were, how many of the
events stand in the lines, and how long they waited for their line.
"""

from __future__ import annotations

import argparse
import glob
import json
import os
import signal
import subprocess
import sys
import threading
import time
from itertools import pairwise
from typing import Any, NamedTuple

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
    parser.add_argument("--busy", type=int, default=0)
    options = parser.parse_args()
    if options.busy:
        _under_load(options.busy, options.minutes * 60)
        return
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


EVERY, SETTLE = 20.0, 1.0  # seconds
BURST, PAUSE = 3, 7.0  # events at once, and seconds between bursts
SPIN = "while True: pass"


def _under_load(busy: int, seconds: float) -> None:
    """Full scans and events beside busy processes, and without them first."""
    for count in (0, busy):
        load = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(count)]
        try:
            _print_load(count, *_watch_events(seconds))
        finally:
            for process in load:
                process.kill()
                process.wait()


def _watch_events(seconds: float) -> tuple[list[tuple[float, Any]], list[float], ProcessCost, ProcessCost]:
    """Lines with the moment at which they came, moments of events, and the costs before and after."""
    (device, *_) = glob.glob("/sys/class/net/*/device") or sys.exit("no network device of hardware")
    argv = [sys.executable, "-m", "fabricscope", "watch", "--quiet", "--format", "ndjson"]
    argv += ["--every", f"{EVERY:g}", "--settle", f"{SETTLE:g}"]
    rows: list[tuple[float, Any]] = []
    events: list[float] = []
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as watch:
        assert watch.stdout is not None
        lines = watch.stdout
        lines.readline()  # the first scan
        reader = threading.Thread(target=lambda: rows.extend((time.monotonic(), json.loads(line)) for line in lines))
        reader.start()
        before, end = measure_process(watch.pid), time.monotonic() + seconds
        while time.monotonic() < end - 2 * PAUSE:  # the last ones shall have their line
            for _ in range(BURST):
                with open(f"{os.path.dirname(device)}/uevent", "w", encoding="ascii") as file:
                    file.write("change")
                events.append(time.monotonic())
            time.sleep(PAUSE)
        time.sleep(max(end - time.monotonic(), 0))
        after = measure_process(watch.pid)
        watch.send_signal(signal.SIGTERM)
        reader.join(60)
    return rows, events, before, after


def _print_load(
    busy: int, rows: list[tuple[float, Any]], events: list[float], before: ProcessCost, after: ProcessCost
) -> None:
    scans = [at for at, line in rows if any(why["kind"] == "time" for why in line["why"])]
    gaps = [later - sooner for sooner, later in pairwise(scans)]
    told = [(at, why["times"]) for at, line in rows for why in line["why"] if why["source"] == "uevents"]
    waits = [min(at - moment for at, _ in told if at > moment) for moment in events if moment < told[-1][0]]
    took = [line["duration_seconds"] for _, line in rows]
    own, probes = after.cpu_seconds - before.cpu_seconds, after.children_seconds - before.children_seconds
    print(f"{busy} busy processes, load {os.getloadavg()[0]:.1f}: {len(rows)} evaluations of {max(took):.2f} s at most")
    print(f"  full scans every {EVERY:g} s: {len(gaps)} intervals of {min(gaps):.2f} to {max(gaps):.2f} s")
    print(f"  events: {sum(times for _, times in told)} of {len(events)} are in the lines, ", end="")
    print(f"{min(waits):.1f} to {max(waits):.1f} s later")
    print(f"  {own:.2f} s of CPU of its own, {probes:.2f} s of probes", flush=True)


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
