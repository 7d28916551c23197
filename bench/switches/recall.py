"""How many planted faults are named, and what is named that is not planted: a row per rule.

python -m bench.switches.recall [--leaves 24] [--spines 6] [--hosts 120] [--each 3]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bench.switches.fabric import MadeFabric, build
from bench.switches.faults import FAULTS, plant
from bench.switches.render import write

ROOT = Path(__file__).resolve().parents[2]


def named(answer: dict[str, Any]) -> set[tuple[str, str]]:
    """Rule and port of every finding; of one for several ports each of them."""
    return {
        (finding["rule"], subject)
        for finding in answer["findings"]
        for subject in finding["devices"] or [finding["subject"]]
        if finding["severity"] != "info"
    }


def run(folder: Path, hosts: Iterable[str] = ()) -> dict[str, Any]:
    """The answer of the command on a folder of `write`."""
    arguments = ["--switches", "now", "--before", "before", "--plan", "plan.csv", *hosts, "--format", "json"]
    command = [sys.executable, str(ROOT / "fabricscope.py"), "fleet", "lossless", *arguments]
    result = subprocess.run(command, cwd=folder, capture_output=True, check=True)
    return json.loads(result.stdout)  # type: ignore[no-any-return]


def compare(fabric: MadeFabric, told: set[tuple[str, str]]) -> list[tuple[str, int, int, int]]:
    """Rule, planted, named of these, named beside."""
    planted = set(fabric.planted)
    counts = Counter(rule for rule, _ in planted)
    hits = Counter(rule for rule, _ in planted & told)
    beside = Counter(rule for rule, _ in told - planted)
    rules = dict.fromkeys([rule for rule, *_ in FAULTS] + sorted(beside))
    return [(rule, counts[rule], hits[rule], beside[rule]) for rule in rules]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in (
        ("leaves", 24),
        ("spines", 6),
        ("hosts", 120),
        ("pods", 1),
        ("cores", 0),
        ("each", 3),
        ("seed", 1),
    ):
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    fabric = build(options.leaves, options.spines, options.hosts, pods=options.pods, cores=options.cores)
    plant(fabric, options.each, options.seed)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        write(fabric, place)
        dataset = ["fleet", "ingest", "reports.ndjson", "--dataset", "fleet"]
        subprocess.run(
            [sys.executable, str(ROOT / "fabricscope.py"), *dataset], cwd=place, check=True, capture_output=True
        )
        start = time.monotonic()
        answer = run(place, ("--dataset", "fleet"))
        seconds = time.monotonic() - start
    rows = compare(fabric, named(answer))
    print(f"{'rule':<26}{'planted':>9}{'named':>7}{'beside':>8}")
    for rule, planted, hits, beside in rows:
        print(f"{rule:<26}{planted:>9}{hits:>7}{beside:>8}")
    print(f"{len(answer['switches'])} switches, {answer['hosts']} hosts, {len(answer['hops'])} hops in {seconds:.1f} s")


if __name__ == "__main__":
    main()
