"""Measures the ingest of a generated fleet's reports: `python -m bench.fleet_ingest --nodes 2000`.

Processor seconds are printed besides wall time: on a busy machine only they are meaningful. Memory is that of all
processes together at the same moment, once as each one's share of what is mapped (PSS), once as what is theirs alone
(RssAnon). Byte code is written, whatever the environment sets: without it every process compiles everything.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, NamedTuple

import msgspec

from agent.model.report import Report

_POLL_SECONDS = 0.1
_DECODED, _DECODED_TIMES = 100, 5
_SETTLED_SECONDS = 3.0  # a file that was written just now is read again the next time


def main() -> None:
    """Make the reports, then ingest them twice: the second time nothing is new."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--gz", action="store_true", help="packed, as `ship` hands them over")
    parser.add_argument("--mix", help="of bench.fleet.make: gb200-ib=1 are smaller reports, l40s-roce=1 smaller still")
    parser.add_argument("--pipe", action="store_true", help="lines by a pipe from the generator: nothing is on a disk")
    parser.add_argument("--runs", type=int, default=1, help="the least processor time of so many is printed")
    args = parser.parse_args()
    if args.pipe:
        _measure_pipe(args)
        return
    with tempfile.TemporaryDirectory() as folder:
        reports, dataset = Path(folder, "reports"), Path(folder, "dataset")
        make = ["bench.fleet.make", "--nodes", str(args.nodes), "--seed", "1", "--out", str(reports)]
        make += (["--gz"] if args.gz else []) + (["--mix", args.mix] if args.mix else [])
        subprocess.run([sys.executable, "-m", *make], check=True)
        size = sum(path.stat().st_size for path in reports.rglob("*") if path.is_file())
        time.sleep(_SETTLED_SECONDS)
        ingest = ["fleet", "ingest", str(reports), "--dataset", str(dataset), "--jobs", str(args.jobs)]
        costs = []
        for name in ("first", "again"):
            for run in range(args.runs):
                if name == "first" and run:
                    shutil.rmtree(dataset)
                cost = _measure(ingest)
                print(f"{name}: {args.nodes} reports, {size / 1e6:.0f} MB: {cost.describe(args.nodes)}", flush=True)
                costs.append((name, cost.processor))
        first, again = (min(cost for of, cost in costs if of == name) for name in ("first", "again"))
        decoding = _time_decoding(reports)
        print(f"least: {first / args.nodes * 1e3:.2f} ms of a processor each")
        if decoding:
            times = first / args.nodes / decoding
            print(f"to decode a report alone: {decoding * 1e3:.2f} ms; its ingest is {times:.1f} times that")
        print(f"a known report costs {again / first:.3f} of a new one")
        size_on_disk = sum(path.stat().st_size for path in dataset.rglob("*") if path.is_file())
        print(f"dataset: {size_on_disk / 1e6:.1f} MB, {size_on_disk / args.nodes:.0f} bytes a node")


class _Cost(NamedTuple):
    """Of all processes."""

    seconds: float
    processor: float
    shared: int  # MiB: the most of PSS
    own: int  # MiB: the most of RssAnon
    load: float  # of the machine, before

    def describe(self, nodes: int) -> str:
        """One line."""
        return (
            f"load {self.load:.1f}: {self.seconds:.1f} s, {nodes / self.seconds:.0f}/s, "
            f"{self.processor / nodes * 1e3:.2f} ms of a processor each; all processes at most {self.shared} MiB PSS, "
            f"{self.own} MiB RssAnon"
        )


def _time_decoding(reports: Path) -> float:
    """Processor seconds to decode one report into the model and do nothing else; 0 where they are packed."""
    decoder = msgspec.json.Decoder(Report)
    paths = sorted(reports.rglob("*.json"))
    bodies = [path.read_bytes() for path in paths[:: len(paths) // _DECODED + 1]]
    least = 0.0
    for _ in range(_DECODED_TIMES if bodies else 0):
        start = time.process_time()
        for body in bodies:
            with contextlib.suppress(msgspec.DecodeError):  # some are planted
                decoder.decode(body)
        took = (time.process_time() - start) / len(bodies)
        least = min(least or took, took)
    return least


def _measure_pipe(args: argparse.Namespace) -> None:
    make = ["-m", "bench.fleet.make", "--nodes", str(args.nodes), "--seed", "1", "--out", "-"]
    make += ["--mix", args.mix] if args.mix else []
    with tempfile.TemporaryDirectory() as folder:
        generator = subprocess.Popen([sys.executable, *make], stdout=subprocess.PIPE)
        ingest = ["fleet", "ingest", "-", "--dataset", f"{folder}/dataset", "--jobs", str(args.jobs)]
        cost = _measure(ingest, generator.stdout)
        print(f"{args.nodes} reports by a pipe: {cost.describe(args.nodes)} (the generator beside it)")
        generator.wait()


def _measure(arguments: list[str], reports: IO[bytes] | None = None) -> _Cost:
    """`reports`: stdin."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    load, start = os.getloadavg()[0], time.monotonic()
    running = subprocess.Popen([sys.executable, "-m", "fabricscope", *arguments], stdin=reports, env=environment)
    if reports is not None:
        reports.close()
    shared = own = 0
    while True:
        sizes = [_read_memory(process) for process in _list_family(running.pid)]
        shared, own = max(shared, sum(size for size, _ in sizes)), max(own, sum(size for _, size in sizes))
        ended, status, usage = os.wait4(running.pid, os.WNOHANG)
        if ended:
            break
        time.sleep(_POLL_SECONDS)
    if status:
        sys.exit(os.waitstatus_to_exitcode(status))
    return _Cost(time.monotonic() - start, usage.ru_utime + usage.ru_stime, shared // 1024, own // 1024, load)


def _list_family(parent: int) -> list[int]:
    try:
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    except OSError:
        return []
    return [parent, *(process for child in children for process in _list_family(int(child)))]


def _read_memory(process: int) -> tuple[int, int]:
    """PSS and RssAnon, KiB."""
    try:
        rollup, status = (Path(f"/proc/{process}/{name}").read_text() for name in ("smaps_rollup", "status"))
    except OSError:
        return 0, 0
    return _find_size("Pss:", rollup), _find_size("RssAnon:", status)


def _find_size(name: str, text: str) -> int:
    return next((int(line.split()[1]) for line in text.splitlines() if line.startswith(name)), 0)


if __name__ == "__main__":
    main()
